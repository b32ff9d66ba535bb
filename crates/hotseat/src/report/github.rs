//! Annotations for GitHub: workflow commands that put each failure at its line of the file.

use std::io::{self, Write};
use std::path::PathBuf;

use hotseat_trace::Status;

use super::{Reporter, RunEvent};
use crate::document::Place;
use crate::run::Attempt;

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

    fn path(&self, attempt: &Attempt, place: &Place) -> String {
        let suite = &attempt.selected.suite;
        // A check inherited from the target stands in the project file, whose path is shown as it is.
        if place.file() != &*suite.shown {
            return place.file().to_string();
        }
        let absolute = suite.path.canonicalize().unwrap_or_else(|_| suite.path.clone());
        let relative = self.workspace.as_ref().and_then(|workspace| absolute.strip_prefix(workspace).ok());
        relative.map_or_else(|| suite.shown.to_string(), |path| path.to_string_lossy().into_owned())
    }
}

impl<W: Write + Send> Reporter for GitHub<W> {
    fn report(&mut self, event: &RunEvent<'_>) -> io::Result<()> {
        let RunEvent::CaseEnded(attempt) = event else { return Ok(()) };
        let (Status::Failed, Some(failure)) = (attempt.verdict.status, &attempt.verdict.failure) else { return Ok(()) };
        let failed_check = attempt.checks.iter().find(|checked| !checked.verdict.passed);
        let place = failed_check.map_or(&attempt.selected.case.place, |checked| &checked.check.place);
        let message = match &failure.detail {
            Some(detail) => format!("{}\n{detail}", failure.message),
            None => failure.message.clone(),
        };
        writeln!(
            self.out,
            "::error file={},line={},col={},title={}::{}",
            property(&self.path(attempt, place)),
            place.line(),
            place.column(),
            property(&attempt.selected.case.name),
            data(&message),
        )
    }
}

/// A text that cannot end its command or begin another one.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
