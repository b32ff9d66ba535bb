//! The reporters of a run.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use hotseat_engine::config::Project;
use hotseat_engine::run::{RunEvent, RunSettings};
use hotseat_report::reporters;
use hotseat_report::reporters::{
    ConsoleOptions, ConsoleReporter, EventsReporter, GitHubReporter, MarkdownReporter, RecordingsReporter,
    ReplyReporter, ReportWriteError, Reporter, SavedCasesReporter, TraceReporter,
};

use super::outputs::{self, ReportFile};
use crate::args::TestArgs;
use crate::context::{CliContext, stdout};
use crate::report_writer::ReportWriter;

/// Selects the console output of a run.
#[derive(Debug, Clone, Copy)]
pub struct OutputMode {
    /// True if the run is a single message: only the reply is printed.
    pub is_single_message: bool,
    /// True if a human may type during the run.
    pub is_interactive: bool,
}

/// All reporters of a run. A reporter that fails to write is dropped; the run continues and ends with an
/// error status.
pub struct ReporterSet {
    /// Reporters that ignore a closed pipe come last, because they report the failures of the others.
    all: Vec<(String, Box<dyn Reporter>)>,
    pub events: Option<EventsReporter<io::Stdout>>,
    /// Problems that do not affect the result.
    pub warnings: Vec<String>,
    /// Console output of hook scripts around the run.
    pub logs: Vec<String>,
    /// Write errors.
    pub errors: Vec<String>,
    /// Id of the saved run, if it was saved.
    pub saved_run: Option<String>,
}

impl ReporterSet {
    pub fn report(&mut self, event: &RunEvent) {
        let mut lost: Vec<String> = Vec::new();
        let errors = &mut self.errors;
        self.all.retain_mut(|(name, reporter)| {
            lost.iter().for_each(|output| reporter.output_failed(output));
            match reporter.report(event) {
                Ok(()) => true,
                // A closed pipe is not an error: `hotseat test | head`.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => false,
                Err(error) => {
                    errors.push(format!("cannot write {name}: {error}"));
                    lost.push(name.clone());
                    false
                }
            }
        });
        match self.events.as_mut().map(|events| events.report(event)) {
            Some(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
                errors.push(format!("cannot write standard output: {error}"));
                self.events = None;
            }
            Some(Ok(()) | Err(_)) | None => {}
        }
    }
}

/// Opens all reporters of the run, and the report writer if there is one.
///
/// # Errors
/// If an output cannot be opened.
pub fn open_reporters(
    args: &TestArgs,
    context: &CliContext,
    project: &Project,
    looks: OutputMode,
    files: Vec<ReportFile>,
    setting: &Arc<RunSettings>,
) -> Result<(ReporterSet, Option<ReportWriter>), ReportWriteError> {
    let mut all: Vec<(String, Box<dyn Reporter>)> = Vec::new();
    for ReportFile { file, format, shown } in files {
        let report = reporters::open_report(file, format, &shown, setting.clone())
            .map_err(|error| ReportWriteError::new(Path::new(&shown), error))?;
        all.push((shown, report));
    }
    if let Some(path) = &args.trace {
        let file = reporters::create_file(&context.folder.join(path))
            .map_err(|error| ReportWriteError::new(path, error))?;
        all.push((path.display().to_string(), Box::new(TraceReporter::new(file))));
    }
    if let Some(path) = &args.record {
        let folder = context.folder.join(path);
        let recordings = RecordingsReporter::open(folder, project.root.clone(), setting.clone())
            .map_err(|error| ReportWriteError::new(path, error))?;
        all.push((format!("recordings in {}", path.display()), Box::new(recordings)));
    }
    if let Some(path) = &args.save {
        let file = reporters::create_file(&context.folder.join(path))
            .map_err(|error| ReportWriteError::new(path, error))?;
        all.push((path.display().to_string(), Box::new(SavedCasesReporter::new(file))));
    }
    let mut writer = None;
    if let Some(who) = &args.reporter {
        let files = args.output.iter().filter(|path| outputs::is_for_writer(path, args, context));
        let files = files.map(|path| context.folder.join(path)).collect();
        let (report_writer, collects) = ReportWriter::new(who.clone(), files, args.verbose, setting.clone())
            .map_err(|error| ReportWriteError::new(Path::new("a temporary file"), error))?;
        all.push((format!("the input of {who}"), collects));
        writer = Some(report_writer);
    }
    let events = args.json.then(|| EventsReporter::new(io::stdout(), setting.clone()));
    if events.is_none() && looks.is_single_message && !args.verbose {
        all.push(("standard output".to_string(), Box::new(ReplyReporter::new(stdout(), context.width()))));
    } else if events.is_none() {
        let look = ConsoleOptions {
            color: context.uses_color(),
            width: context.width(),
            // Redrawing the progress line would disturb typing.
            progress: context.shows_progress() && !looks.is_interactive,
            verbose: args.verbose,
        };
        let console = ConsoleReporter::new(stdout(), look, setting.clone());
        all.push(("standard output".to_string(), Box::new(console)));
    }
    if context.environment.get("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
        let workspace = context.environment.get("GITHUB_WORKSPACE").map(Into::into);
        // GitHub reads annotations from both streams; with JSON events only standard error is free.
        let annotations: Box<dyn Reporter> = match events.is_some() {
            true => Box::new(GitHubReporter::new(io::stderr(), workspace)),
            false => Box::new(GitHubReporter::new(io::stdout(), workspace)),
        };
        all.push(("annotations".to_string(), annotations));
    }
    // The summary page of a GitHub job collects Markdown of all steps.
    if let Some(path) = context.environment.get("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
        let file = File::options().append(true).create(true).open(context.folder.join(path));
        let file = file.map_err(|error| ReportWriteError::new(Path::new(path), error))?;
        all.push(("the step summary".to_string(), Box::new(MarkdownReporter::new(file, setting.clone()))));
    }
    let (warnings, logs, errors) = (Vec::new(), Vec::new(), Vec::new());
    Ok((ReporterSet { all, events, warnings, logs, errors, saved_run: None }, writer))
}
