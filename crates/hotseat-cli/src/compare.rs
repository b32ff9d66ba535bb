//! `hotseat compare`: compares two runs.

use std::path::Path;

use hotseat_document::{Diagnostic, SourceSpan, SourceText};
use hotseat_report::compare::{
    ComparisonRules, ReportRun, compare, read_report, read_saved_run, write_json, write_text,
};
use hotseat_report::reporters::ReportFormat;
use hotseat_report::{ReportPlace, ReportReadError};

use crate::args::CompareArgs;
use crate::context::CliContext;
use crate::exit::ExitStatus;
use crate::store_location;

/// Runs the command. Fails if the second run is significantly worse.
pub fn run(args: &CompareArgs, context: &CliContext) -> ExitStatus {
    let read = |named: &str| load_run(named, args, context);
    let (before, after) = match (read(&args.before), read(&args.after)) {
        (Ok(before), Ok(after)) => (before, after),
        (one, other) => {
            let mut exit = ExitStatus::Usage;
            let mut diagnostics = Vec::new();
            for refused in one.err().into_iter().chain(other.err()) {
                match refused {
                    LoadRunError::InvalidReport(mistake) => diagnostics.push(mistake),
                    LoadRunError::AlreadyReported(status) => exit = status,
                }
            }
            return if diagnostics.is_empty() { exit } else { context.reject(diagnostics) };
        }
    };
    let rules = ComparisonRules { confidence: args.confidence, allow_other_inputs: args.other_inputs };
    let comparison = compare(&before, &after, rules);
    let exit = match () {
        () if args.strict && comparison.newly_failing() + comparison.lost > 0 => ExitStatus::Failed,
        () if comparison.shared == 0 => ExitStatus::NothingSelected,
        () if comparison.is_worse() => ExitStatus::Failed,
        () => ExitStatus::Passed,
    };
    let printed = match args.json {
        true => context.print_json(|out| write_json(&comparison, exit.code(), out)),
        false => context.print(|out| write_text(&comparison, context.width(), out)),
    };
    if printed == ExitStatus::Passed { exit } else { printed }
}

/// Reason why a run cannot be loaded.
enum LoadRunError {
    InvalidReport(Diagnostic),
    /// The error has been printed.
    AlreadyReported(ExitStatus),
}

/// Loads a run by name: a report file if one exists, else a saved run.
fn load_run(named: &str, args: &CompareArgs, context: &CliContext) -> Result<ReportRun, LoadRunError> {
    let path = context.folder.join(named);
    if is_report(&path) {
        return load_report(named, &path).map_err(LoadRunError::InvalidReport);
    }
    let store = store_location::open_store(&args.location, context).map_err(LoadRunError::AlreadyReported)?;
    store
        .find(named)
        .and_then(|head| read_saved_run(&store, &head))
        .map_err(|error| LoadRunError::AlreadyReported(store_location::report_store_error(&error, context)))
}

/// Says which files can be named in place of a saved run.
pub const REPORT_HELP: &str = "name a report written by `hotseat test -o FILE.json` or `-o FILE.jsonl`, or a saved run by its id in \
                               `hotseat runs`";

/// Returns true if a path means a report: a file or a pipe, or a name with a report extension, even if nothing has it.
pub fn is_report(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_dir()) || ReportFormat::from_path(path).is_some()
}

/// Describes why a report cannot be read, at its place if it has one.
pub fn invalid_report(named: &str, error: &ReportReadError) -> Diagnostic {
    match error {
        ReportReadError::MoreThanOneRun { words, place } => {
            let help = "write each run to a report of its own with `hotseat test -o FILE.json`";
            Diagnostic::new(words).at(place_in_report(named, place)).help(help)
        }
        ReportReadError::InvalidResult { words, place } => {
            let message = format!("this is not the result of a case: {words}");
            Diagnostic::new(message).at(place_in_report(named, place)).help(REPORT_HELP)
        }
        ReportReadError::LaterFormat(_) => {
            Diagnostic::new(format!("{named}: {error}")).help("update Hotseat, or write the report again")
        }
        ReportReadError::NotJson(_) | ReportReadError::NoReport { .. } => {
            Diagnostic::new(format!("{named}: {error}")).help(REPORT_HELP)
        }
    }
}

fn place_in_report(named: &str, place: &ReportPlace) -> SourceSpan {
    let source = SourceText::starting_at(named, place.excerpt.as_str(), place.line, place.column);
    SourceSpan::new(&source, 0..1)
}

fn load_report(named: &str, path: &Path) -> Result<ReportRun, Diagnostic> {
    let text = std::fs::read(path)
        .map_err(|error| Diagnostic::new(format!("{named}: cannot be read: {error}")).help(REPORT_HELP))?;
    read_report(&text, named).map_err(|error| invalid_report(named, &error))
}
