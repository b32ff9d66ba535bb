//! GitHub annotations: workflow commands that attach each failure to its source line.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_trace::{ResultLabel, VerdictStatus};

use super::Reporter;
use super::ci_commands::CommandGuard;
use super::failures::labelled_message;
use hotseat_document::{SourceSpan, excerpt, visible_char};
use hotseat_engine::run::{Attempt, AttemptStatus, CaseOutcome, CaseStability, SweepReport, SweepRow};

/// Maximum number of characters of a message, and of its details.
const MAX_SHOWN_CHARS: usize = 4000;

/// Reporter that writes workflow commands. GitHub limits the number of annotations, so each case has at most
/// one.
pub struct GitHubReporter<W> {
    out: W,
    /// Folder that paths in annotations are relative to.
    workspace: Option<PathBuf>,
}

impl<W: Write + Send> GitHubReporter<W> {
    /// Creates a reporter that writes to `out`; `workspace` is the checkout folder of the repository.
    pub fn new(out: W, workspace: Option<PathBuf>) -> Self {
        GitHubReporter { out, workspace: workspace.and_then(|path| path.canonicalize().ok()) }
    }

    /// Returns the path of a file relative to the repository, or its display name if it is outside.
    fn path(&self, attempt: &Attempt, place: &SourceSpan) -> String {
        let suite = &attempt.case_ref.suite;
        // Inherited checks are located in the project file.
        let path = if place.file() == &*suite.shown { &suite.path } else { Path::new(place.file()) };
        let absolute = path.canonicalize().ok();
        let relative =
            absolute.as_deref().and_then(|path| path.strip_prefix(self.workspace.as_deref()?).ok());
        relative.map_or_else(|| place.file().to_string(), |path| path.to_string_lossy().into_owned())
    }
}

impl<W: Write + Send> Reporter for GitHubReporter<W> {
    fn report_case(&mut self, outcome: &CaseOutcome) -> io::Result<()> {
        let Some(CaseAnnotation { level, attempt, message, detail }) = CaseAnnotation::from_outcome(outcome)
        else {
            return Ok(());
        };
        let failed_check = attempt.checks.iter().find(|checked| checked.fails());
        let place = failed_check.map_or(&attempt.case_ref.case.place, |checked| &checked.check.place);
        let mut message = excerpt(&message, MAX_SHOWN_CHARS).into_owned();
        if let Some(detail) = detail {
            message.push('\n');
            message.push_str(&excerpt(detail, MAX_SHOWN_CHARS));
        }
        let command = format!(
            "::{level} file={},line={},col={},title={}::{}\n",
            escape_property(&self.path(attempt, place)),
            place.line(),
            place.column(),
            escape_property(&attempt.case_ref.case.name),
            escape_data(&message),
        );
        self.out.write_all(command.as_bytes())?;
        self.out.flush()
    }

    /// Writes one error for each case with a defect after a fault. Its message lists them.
    fn report_sweep(&mut self, report: &SweepReport) -> io::Result<()> {
        let bad: Vec<&SweepRow> = report.rows.iter().filter(|row| row.outcome.is_bad()).collect();
        for rows in bad.chunk_by(|one, next| (&one.suite, &one.case) == (&next.suite, &next.case)) {
            let lines = rows.iter().map(|row| {
                let why = row.failure_text().map_or_else(String::new, |text| format!(": {text}"));
                format!(
                    "{} after {} of {} #{} at {}{why}",
                    row.outcome, row.fault, row.tool, row.nth, row.server
                )
            });
            let command = format!(
                "::error title={}::{}\n",
                escape_property(&format!("{} (sweep of faults)", rows[0].case)),
                escape_data(&excerpt(&lines.collect::<Vec<_>>().join("\n"), MAX_SHOWN_CHARS)),
            );
            self.out.write_all(command.as_bytes())?;
        }
        self.out.flush()
    }
}

/// Annotation of a case at a line of its file.
struct CaseAnnotation<'a> {
    level: &'static str,
    /// Attempt that the annotation describes.
    attempt: &'a Attempt,
    message: String,
    detail: Option<&'a str>,
}

impl<'a> CaseAnnotation<'a> {
    /// Returns an error for a failed case, a warning for a passed case with a failed attempt, otherwise
    /// `None`.
    fn from_outcome(outcome: &'a CaseOutcome) -> Option<CaseAnnotation<'a>> {
        let attempts = outcome.attempts.as_slice();
        match (outcome.verdict.status, &outcome.verdict.failure) {
            (VerdictStatus::Failed, Some(failure)) => {
                let message = match (&outcome.stability, attempts.len()) {
                    (None, n @ 2..) => {
                        let word = ResultLabel::from(failure.fault).name();
                        let status = outcome.representative().status();
                        let alike = attempts.iter().filter(|attempt| attempt.status() == status).count();
                        let share = if alike == n { "each".to_string() } else { alike.to_string() };
                        format!("{word} in {share} of {n} attempts: {}", failure.message)
                    }
                    _ => labelled_message(failure),
                };
                let (attempt, detail) = (outcome.representative(), failure.detail.as_deref());
                Some(CaseAnnotation { level: "error", attempt, message, detail })
            }
            (VerdictStatus::Passed, _) => {
                // A failure of the agent says more than an invalid attempt.
                let failed = attempts.iter().find(|attempt| attempt.status() == AttemptStatus::Failed);
                let has_failure = |attempt: &&Arc<Attempt>| attempt.verdict.failure.is_some();
                let attempt = failed.or_else(|| attempts.iter().find(has_failure))?;
                let failure = attempt.verdict.failure.as_ref()?;
                let (last, why) = (attempts.len(), labelled_message(failure));
                let message = match &outcome.stability {
                    Some(CaseStability { passed, runs, .. }) => {
                        format!("{passed} of {runs} runs passed; run {}: {why}", attempt.number)
                    }
                    None if outcome.is_flaky() => format!("flaky: passed at attempt {last}; before: {why}"),
                    None => format!("passed at attempt {last}; an attempt was invalid: {why}"),
                };
                Some(CaseAnnotation { level: "warning", attempt, message, detail: failure.detail.as_deref() })
            }
            (VerdictStatus::Failed, None) | (VerdictStatus::Skipped, _) => None,
        }
    }
}

/// Escapes a text so that it cannot end its command, start another one, or control a terminal.
fn escape_data(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '%' => out.push_str("%25"),
            '\r' => out.push_str("%0D"),
            '\n' => out.push_str("%0A"),
            c => out.push(visible_char(c)),
        }
    }
    let mut guarded = Vec::with_capacity(out.len());
    CommandGuard::text(&mut guarded).write_all(out.as_bytes()).expect("writing to memory cannot fail");
    String::from_utf8(guarded).expect("only spaces are added")
}

fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_commands_to_one_line() {
        assert_eq!(escape_data("50%\r\na: b, c\x1b[31m"), "50%25%0D%0Aa: b, c␛[31m");
        assert_eq!(escape_property("50%\na: b, c"), "50%25%0Aa%3A b%2C c");
        // Other CI servers read their own commands anywhere in a line.
        assert_eq!(escape_data("a ##vso[task.x y=z]b\n##[error]c"), "a ## vso[task.x y=z]b%0A## [error]c");
    }
}
