//! `hotseat extract`: writes each result of a run as a file.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};

use hotseat_document::Diagnostic;
use hotseat_report::extract::{ExtractError, ExtractFormat, extract_results};
use hotseat_report::reporters::{JsonLinesReporter, Reporter as _, format_count};

use crate::args::{ExtractArgs, ExtractFileFormat};
use crate::compare::{REPORT_HELP, invalid_report, is_report};
use crate::context::CliContext;
use crate::exit::{CommandResult, ExitStatus};
use crate::store_location::{self, report_store_error};

/// Runs the command.
pub fn run(args: &ExtractArgs, context: &CliContext) -> CommandResult {
    let (report, name) = load_report(args, context)?;
    let shown = args.output.clone().unwrap_or(name);
    let format = match args.format {
        ExtractFileFormat::Markdown => ExtractFormat::Markdown,
        ExtractFileFormat::Json => ExtractFormat::Json,
    };
    match extract_results(&report, &args.cases, &context.folder.join(&shown), format) {
        Ok(files) => {
            let count = format_count(files.len(), "file");
            Ok(context.print(|out| writeln!(out, "{count} in {}", shown.display())))
        }
        Err(error @ ExtractError::Write(_)) => Err(context.fail(ExitStatus::RunError, error)),
        Err(ExtractError::Read(error)) => Err(context.reject([invalid_report(&args.run, &error)])),
        Err(error @ ExtractError::NoCase(_)) => {
            Err(context.reject([Diagnostic::new(format!("{}: {error}", args.run))]))
        }
    }
}

/// Loads a report file if one has this name, else a saved run as a report. Returns also the default name of the folder.
fn load_report(args: &ExtractArgs, context: &CliContext) -> Result<(Vec<u8>, PathBuf), ExitStatus> {
    let path = context.folder.join(&args.run);
    if is_report(&path) {
        let report = std::fs::read(&path).map_err(|error| {
            let message = format!("{}: cannot be read: {error}", args.run);
            context.reject([Diagnostic::new(message).help(REPORT_HELP)])
        })?;
        if args.output.is_none() && path.exists() && !path.is_file() {
            let message = format!("{} is no regular file, so the folder has no name", args.run);
            return Err(context.reject([Diagnostic::new(message).help("name the folder with `-o DIR`")]));
        }
        let name = Path::new(&args.run);
        let folder = match name.with_extension("") {
            folder if folder == name => name.with_extension("results"),
            folder => folder,
        };
        return Ok((report, folder));
    }
    let store = store_location::open_store(&args.location, context)?;
    let head = store.find(&args.run).map_err(|error| report_store_error(&error, context))?;
    let broken = |error: std::io::Error| {
        context.fail(ExitStatus::RunError, format!("cannot write a temporary file: {error}"))
    };
    let mut file = tempfile::tempfile().map_err(broken)?;
    let copy: File = file.try_clone().map_err(broken)?;
    let mut reporter = JsonLinesReporter::new(copy, head.metadata.setting.clone());
    let mut written = Ok(());
    store
        .replay(&head, &mut |event| {
            if written.is_ok() {
                written = reporter.report(&event);
            }
        })
        .map_err(|error| report_store_error(&error, context))?;
    let mut report = Vec::new();
    written.and_then(|()| file.rewind()).and_then(|()| file.read_to_end(&mut report)).map_err(broken)?;
    Ok((report, PathBuf::from(format!("run-{}", head.short_id()))))
}
