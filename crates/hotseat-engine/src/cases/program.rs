//! Cases declared by programs (tests in TypeScript or Rust), decoded like case files.

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::case::{CaseProgram, TestCase};
use super::decoding::DecodeSettings;
use super::shape::CASE;
use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, Field, Kind, Shape, SourceSpan, SourceText, check, json,
};

/// Keys of cases with a written conversation. A program runs its conversation itself.
const WRITTEN_ONLY: [&str; 12] = [
    "input",
    "turns",
    "expected",
    "interactive",
    "type",
    "hooks",
    "on_missing_input",
    "on_complete",
    "simulate",
    "simulator",
    "scenarios",
    "suite",
];

/// Keys of tests and groups in code. Their values are checked as those of a case.
static PROGRAM_KEYS: LazyLock<Shape> = LazyLock::new(|| {
    let is_supported = |field: &&Field| !WRITTEN_ONLY.contains(&field.key);
    let any_value = |field: &Field| Field { kind: Kind::Json, required: false, ..*field };
    let fields: Vec<Field> = CASE.fields.iter().filter(is_supported).map(any_value).collect();
    Shape { fields: Vec::leak(fields), ..CASE }
});

/// Parses a test or the options of a group, as JSON, and checks its keys.
fn parse_keys(source: &Arc<SourceText>) -> Result<DocumentNode, Diagnostics> {
    let node = json::parse(source)?;
    if let Some(key) = WRITTEN_ONLY.iter().find(|key| node.get(key).is_some()) {
        let message =
            format!("`{key}` is not supported for tests in code, which run the conversation themselves");
        let wrong = Diagnostic::new(message);
        return Err(match *key {
            "hooks" => wrong.help(
                "call `before` and `after` in the group of the test: their functions run before and after it",
            ),
            _ => wrong,
        }
        .into());
    }
    let mut mistakes = Diagnostics::new();
    check(&node, &Kind::Shape(&PROGRAM_KEYS), source, &mut mistakes);
    if mistakes.is_empty() { Ok(node) } else { Err(mistakes) }
}

/// Checks the keys of the options of a group at `place`, its declaration.
///
/// # Errors
/// The first key that is unknown, or that only written conversations support.
pub fn check_group_keys(written: &Value, place: &SourceSpan) -> Result<(), Diagnostic> {
    let mistakes = parse_keys(&SourceText::generated(written.to_string(), place.clone())).err();
    let first = mistakes.and_then(|mistakes| placed_at(mistakes, place).into_iter().next());
    first.map_or(Ok(()), Err)
}

impl TestCase {
    /// Decodes a test of a program from the keys of a case, as JSON. All diagnostics are placed at `place`,
    /// the position of its body.
    ///
    /// # Errors
    /// All diagnostics, including keys that only written conversations support.
    pub fn from_program(
        written: &Value,
        program: CaseProgram,
        place: &SourceSpan,
        decoding: DecodeSettings<'_>,
    ) -> Result<TestCase, Diagnostics> {
        let source = SourceText::generated(written.to_string(), place.clone());
        let case = TestCase::read(&source, parse_keys, decoding)
            .map_err(|diagnostics| placed_at(diagnostics, place))?;
        Ok(case.driven_by(program, place.clone()))
    }
}

/// Places all diagnostics at a test, also those without a place.
fn placed_at(diagnostics: Diagnostics, place: &SourceSpan) -> Diagnostics {
    let mut all = Diagnostics::new();
    all.extend(diagnostics.into_iter().map(|mistake| Diagnostic { place: Some(place.clone()), ..mistake }));
    all
}
