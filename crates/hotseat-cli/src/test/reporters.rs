//! The reporters of a run.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use hotseat_engine::config::Project;
use hotseat_engine::run::RunSettings;
use hotseat_report::reporters::{
    self, ConsoleReporter, RecordingsReporter, ReplyReporter, ReportWriteError, SavedCasesReporter,
    TraceReporter,
};

use hotseat_report::runner::ReporterSet;

use super::outputs::{self, ReportFile};
use crate::args::TestArgs;
use crate::context::{CliContext, stdout};
use crate::event_stream::EventStream;
use crate::github_reporters::github_reporters;
use crate::report_writer::ReportWriter;

/// Selects the console output of a run.
#[derive(Debug, Clone, Copy)]
pub struct OutputMode {
    /// True if the run is a single message: only the reply is printed.
    pub is_single_message: bool,
    /// True if a human may type during the run.
    pub is_interactive: bool,
}

/// The opened reporters of a run.
pub struct OpenReporters {
    pub set: ReporterSet,
    /// The event stream of `--json`.
    pub events: Option<EventStream>,
    /// The role that writes reports after the run.
    pub writer: Option<ReportWriter>,
}

/// Opens all reporters of the run, and the report writer if there is one. Fails if an output cannot be
/// opened.
pub fn open_reporters(
    args: &TestArgs,
    context: &CliContext,
    project: &Project,
    looks: OutputMode,
    files: Vec<ReportFile>,
    setting: &Arc<RunSettings>,
) -> Result<OpenReporters, ReportWriteError> {
    let mut set = ReporterSet::default();
    let all = &mut set.reporters;
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
        let file = reporters::create_edited_file(&context.folder.join(path))
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
    let events = args.json.then(|| EventStream::new(setting.clone()));
    if events.is_none() && looks.is_single_message && !args.verbose {
        all.push(("standard output".to_string(), Box::new(ReplyReporter::new(stdout(), context.width()))));
    } else if events.is_none() {
        // Redrawing the progress line would disturb typing.
        let progress = context.shows_progress() && !looks.is_interactive;
        let look = context.console_options(args.verbose, progress);
        let console = ConsoleReporter::new(stdout(), look, setting.clone());
        all.push(("standard output".to_string(), Box::new(console)));
    }
    // GitHub reads annotations from both streams; with JSON events only standard error is free.
    let out: Box<dyn Write + Send> =
        if events.is_some() { Box::new(io::stderr()) } else { Box::new(io::stdout()) };
    all.extend(github_reporters(context, setting, out)?);
    if let Some(events) = &events {
        all.push(("standard output".to_string(), Box::new(events.clone())));
    }
    Ok(OpenReporters { set, events, writer })
}
