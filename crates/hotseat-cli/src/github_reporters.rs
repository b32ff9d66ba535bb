//! The reporters of a job on GitHub Actions.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use hotseat_engine::run::RunSettings;
use hotseat_report::reporters::{GitHubReporter, MarkdownReporter, ReportWriteError};

use crate::context::CliContext;
use crate::show::NamedReporter;

/// Opens the reporters that the environment of a job asks for, with their names: annotations, which are written to `out`,
/// and the summary page of the job. Fails if the file of the page cannot be opened.
pub fn github_reporters(
    context: &CliContext,
    setting: &Arc<RunSettings>,
    out: impl Write + Send + 'static,
) -> Result<Vec<NamedReporter>, ReportWriteError> {
    let mut all: Vec<NamedReporter> = Vec::new();
    if context.environment.get("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
        let workspace = context.environment.get("GITHUB_WORKSPACE").map(Into::into);
        all.push(("annotations".to_string(), Box::new(GitHubReporter::new(out, workspace))));
    }
    // The summary page of a GitHub job collects Markdown of all steps.
    if let Some(path) = context.environment.get("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
        let file = File::options().append(true).create(true).open(context.folder.join(path));
        let file = file.map_err(|error| ReportWriteError::new(Path::new(path), error))?;
        all.push((
            "the step summary".to_string(),
            Box::new(MarkdownReporter::new(file.into(), setting.clone())),
        ));
    }
    Ok(all)
}
