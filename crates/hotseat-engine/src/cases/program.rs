//! Cases declared by programs (tests in TypeScript or Rust), decoded like case files.

use serde_json::Value;

use super::case::{CaseProgram, TestCase};
use super::decoding::DecodeSettings;
use hotseat_document::{Diagnostic, Diagnostics, SourceSpan, SourceText, json};

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
        if let Some(key) = WRITTEN_ONLY.iter().find(|key| written.get(key).is_some()) {
            let message =
                format!("`{key}` is not supported for tests in code, which run the conversation themselves");
            return Err(Diagnostic::new(message).at(place.clone()).into());
        }
        let source = SourceText::new(place.file().to_string(), written.to_string(), place.line());
        let case = TestCase::read(&source, json::parse, decoding)
            .map_err(|diagnostics| placed_at(diagnostics, place))?;
        Ok(case.driven_by(program, place.clone()))
    }
}

/// Moves diagnostics to the position of a test, since their JSON was generated.
fn placed_at(diagnostics: Diagnostics, place: &SourceSpan) -> Diagnostics {
    let mut all = Diagnostics::new();
    all.extend(diagnostics.into_iter().map(|mistake| Diagnostic { place: Some(place.clone()), ..mistake }));
    all
}
