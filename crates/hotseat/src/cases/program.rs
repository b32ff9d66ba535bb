//! Cases of programs: what a test in TypeScript or Rust says of itself is read as a case file would say it.

use std::sync::Arc;

use serde_json::Value;

use super::case::Case;
use super::suite::Decoding;
use crate::session::Body;
use hotseat_document::{Diagnostic, Diagnostics, Place, Source, json};

/// Keys of cases whose conversation is written. A program holds its conversation itself.
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

impl Case {
    /// Reads what a program says of one of its tests: keys of a case, as JSON. Its body stands at `place`, and every
    /// mistake is told there.
    ///
    /// # Errors
    /// Every mistake, and keys that only a written conversation can have.
    pub fn of_program(
        written: &Value,
        body: Arc<dyn Body>,
        place: &Place,
        decoding: Decoding<'_>,
    ) -> Result<Case, Diagnostics> {
        if let Some(key) = WRITTEN_ONLY.iter().find(|key| written.get(key).is_some()) {
            let message =
                format!("`{key}` is nothing that can be said of a test: it holds the conversation itself");
            return Err(Diagnostic::new(message).at(place.clone()).into());
        }
        let source = Source::new(place.file().to_string(), written.to_string(), place.line());
        let case = Case::read(&source, json::parse, decoding).map_err(|mistakes| at(mistakes, place))?;
        Ok(case.driven_by(body, place.clone()))
    }
}

/// Mistakes at the place of a test: nobody has written the JSON that they were found in.
fn at(mistakes: Diagnostics, place: &Place) -> Diagnostics {
    let mut all = Diagnostics::new();
    all.extend(mistakes.into_iter().map(|mistake| Diagnostic { place: Some(place.clone()), ..mistake }));
    all
}
