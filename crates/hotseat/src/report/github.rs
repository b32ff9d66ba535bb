//! Annotations for GitHub: workflow commands that put each failure at its line of the file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hotseat_trace::Status;

use super::{Reporter, RunEvent};
use crate::run::{Attempt, Outcome, Stability};
use hotseat_document::{Place, visible_char};

/// Writes workflow commands. There is a limit to how many GitHub shows, so each case gets one.
pub struct GitHub<W> {
    out: W,
    /// The folder that paths in annotations are relative to.
    workspace: Option<PathBuf>,
}

impl<W: Write + Send> GitHub<W> {
    /// Annotations to `out`; `workspace` is where the repository is checked out.
    pub fn new(out: W, workspace: Option<PathBuf>) -> Self {
        GitHub { out, workspace: workspace.and_then(|path| path.canonicalize().ok()) }
    }

    /// The file as GitHub knows it; one outside of the repository as it is shown.
    fn path(&self, attempt: &Attempt, place: &Place) -> String {
        let suite = &attempt.selected.suite;
        // What is inherited from the target stands in the project file.
        let path = if place.file() == &*suite.shown { &suite.path } else { Path::new(place.file()) };
        let absolute = path.canonicalize().ok();
        let relative =
            absolute.as_deref().and_then(|path| path.strip_prefix(self.workspace.as_deref()?).ok());
        relative.map_or_else(|| place.file().to_string(), |path| path.to_string_lossy().into_owned())
    }
}

impl<W: Write + Send> Reporter for GitHub<W> {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        let RunEvent::CaseEnded(outcome) = event else { return Ok(()) };
        let Some(Annotation { level, attempt, message, detail }) = Annotation::of(outcome) else {
            return Ok(());
        };
        let failed_check = attempt.checks.iter().find(|checked| checked.fails());
        let place = failed_check.map_or(&attempt.selected.case.place, |checked| &checked.check.place);
        let message = match detail {
            Some(detail) => format!("{message}\n{detail}"),
            None => message,
        };
        let command = format!(
            "::{level} file={},line={},col={},title={}::{}\n",
            property(&self.path(attempt, place)),
            place.line(),
            place.column(),
            property(&attempt.selected.case.name),
            data(&message),
        );
        self.out.write_all(command.as_bytes())?;
        self.out.flush()
    }
}

/// What is said of a case, at a line of its file.
struct Annotation<'a> {
    level: &'static str,
    /// The attempt that it is about.
    attempt: &'a Attempt,
    message: String,
    detail: Option<&'a str>,
}

impl<'a> Annotation<'a> {
    /// Of a case that failed an error; of one that passed in spite of attempts that did not, a warning about the first
    /// of these; otherwise nothing.
    fn of(outcome: &'a Outcome) -> Option<Annotation<'a>> {
        let attempts = outcome.attempts.as_slice();
        match (outcome.verdict.status, &outcome.verdict.failure) {
            (Status::Failed, Some(failure)) => {
                let message = match (&outcome.stability, attempts.len()) {
                    (None, n @ 2..) => format!("failed in each of {n} attempts: {}", failure.message),
                    _ => failure.message.clone(),
                };
                let (attempt, detail) = (outcome.telling(), failure.detail.as_deref());
                Some(Annotation { level: "error", attempt, message, detail })
            }
            (Status::Passed, _) => {
                let attempt = attempts.iter().find(|attempt| attempt.verdict.failure.is_some())?;
                let failure = attempt.verdict.failure.as_ref()?;
                let message = match &outcome.stability {
                    Some(Stability { passed, runs, .. }) => {
                        format!("{passed} of {runs} runs passed; run {}: {}", attempt.number, failure.message)
                    }
                    None if outcome.is_flaky() => {
                        format!("flaky: passed at attempt {}; before: {}", attempts.len(), failure.message)
                    }
                    None => {
                        let words = "an attempt says nothing about the agent";
                        format!("passed at attempt {}; {words}: {}", attempts.len(), failure.message)
                    }
                };
                Some(Annotation { level: "warning", attempt, message, detail: failure.detail.as_deref() })
            }
            (Status::Failed, None) | (Status::Skipped, _) => None,
        }
    }
}

/// A text that cannot end its command, begin another one or steer a terminal.
fn data(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '%' => out.push_str("%25"),
            '\r' => out.push_str("%0D"),
            '\n' => out.push_str("%0A"),
            c => out.push(visible_char(c)),
        }
    }
    out
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_line() {
        assert_eq!(data("50%\r\na: b, c\x1b[31m"), "50%25%0D%0Aa: b, c␛[31m");
        assert_eq!(property("50%\na: b, c"), "50%25%0Aa%3A b%2C c");
    }
}
