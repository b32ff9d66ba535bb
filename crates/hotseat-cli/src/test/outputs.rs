//! Report files: validation and creation.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use hotseat_document::Diagnostic;
use hotseat_engine::config::Project;
use hotseat_engine::run::{CassetteMode, RunCassettes, RunPlan};
use hotseat_report::reporters::{self, OutputFile, ReportFormat, ReportWriteError};

use crate::args::TestArgs;
use crate::context::CliContext;
use crate::folders::walk_files;
use crate::input_files::{InputFiles, resolve_path};

/// Maximum depth and number of the files of cassettes that outputs are compared with.
const MAX_DEPTH: usize = 8;
const MAX_CASSETTE_FILES: usize = 10_000;

/// Returns true if `path` is a folder that receives a report with a generated name.
pub fn is_folder(path: &Path, context: &CliContext) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/") || context.folder.join(path).is_dir()
}

/// Returns true if the report is written by the `--reporter` role.
pub fn is_for_writer(path: &Path, args: &TestArgs, context: &CliContext) -> bool {
    let is_ours = ReportFormat::from_path(path).is_some_and(ReportFormat::is_machine_readable);
    args.reporter.is_some() && !is_ours && !is_folder(path, context)
}

/// Returns true if a report that Hotseat writes needs the events of conversations.
pub fn need_events(args: &TestArgs, context: &CliContext) -> bool {
    let ours = args.output.iter().filter(|path| !is_for_writer(path, args, context));
    ours.filter_map(|path| ReportFormat::from_path(path)).any(ReportFormat::needs_events)
}

/// Checks the report files.
///
/// # Errors
/// Lists unknown formats, reports with the name of a suite, and files that are named twice.
pub fn check_outputs(args: &TestArgs, context: &CliContext) -> Result<(), Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    for path in &args.output {
        if ReportFormat::from_path(path).is_none() && args.reporter.is_none() && !is_folder(path, context) {
            let message = format!(
                "-o {}: unknown extension, expected one of {}",
                path.display(),
                reporters::REPORT_EXTENSIONS
            );
            let help = "to write a file named after the time, give a folder with a trailing `/`";
            diagnostics.push(Diagnostic::new(message).help(help));
        }
    }
    // A dry run writes cases, which may be a suite.
    let reports = output_files(args).filter(|(flag, _)| *flag != "--save" && !args.dry_run);
    diagnostics.extend(reports.filter_map(|(flag, path)| reporters::check_report_name(flag, path).err()));
    if args.dry_run {
        let is_written = |flag: &str, path: &Path| {
            flag == "-o" && ReportFormat::from_path(path) == Some(ReportFormat::JsonLines)
        };
        let folders = [("--record", &args.record), ("--record-cassettes", &args.record_cassettes)];
        let folders = folders.into_iter().filter_map(|(flag, path)| Some((flag, path.as_ref()?)));
        for (flag, path) in output_files(args).filter(|(flag, path)| !is_written(flag, path)).chain(folders) {
            let message = format!("{flag} {}: a dry run has no results to write", path.display());
            let help = "leave it out; `-o FILE.jsonl` writes the cases";
            diagnostics.push(Diagnostic::new(message).help(help));
        }
    }
    if let Some(path) = args.save.as_ref().filter(|path| !holds_json_lines(path)) {
        let message = format!("--save {}: unknown extension, expected .jsonl", path.display());
        diagnostics.push(Diagnostic::new(message).help("the cases are JSON lines"));
    }
    let mut files: BTreeMap<PathBuf, &str> = BTreeMap::new();
    for (flag, path) in output_files(args) {
        match files.insert(resolve_path(&context.folder.join(path)), flag) {
            Some(other) if other == flag => {
                diagnostics.push(Diagnostic::new(format!("{flag} {} is given twice", path.display())));
            }
            Some(other) => {
                let message = format!("{flag} {} is already named by {other}", path.display());
                diagnostics.push(Diagnostic::new(message));
            }
            None => {}
        }
    }
    if let Some(who) = args.reporter.as_ref().filter(|_| args.json)
        && !args.output.iter().any(|path| is_for_writer(path, args, context))
    {
        let message = format!("--reporter {who}: cannot write to standard output together with --json");
        diagnostics.push(Diagnostic::new(message).help("name a file, such as `-o report.md`"));
    }
    if diagnostics.is_empty() { Ok(()) } else { Err(diagnostics) }
}

/// Returns the cassettes that the run records or replays. Fails if the folder does not exist, or cannot be
/// created.
pub fn cassettes(args: &TestArgs, context: &CliContext) -> Result<Option<RunCassettes>, Diagnostic> {
    let (path, mode) = match (&args.record_cassettes, &args.cassettes) {
        (Some(path), _) => (path, CassetteMode::Record),
        (None, Some(path)) => (path, CassetteMode::Replay),
        (None, None) => return Ok(None),
    };
    let folder = context.folder.join(path);
    let shown = path.display();
    if mode == CassetteMode::Replay && !folder.is_dir() {
        let message = format!("--cassettes {shown}: no such folder");
        return Err(Diagnostic::new(message).help(format!("record it with `--record-cassettes {shown}`")));
    }
    if mode == CassetteMode::Record {
        std::fs::create_dir_all(&folder)
            .map_err(|error| Diagnostic::new(format!("--record-cassettes {shown}: {error}")))?;
    }
    Ok(Some(RunCassettes::new(folder, mode)))
}

/// Checks that no output file is an input of the run: a suite, a file of the project or of an agent, or a file that an option names.
///
/// # Errors
/// Lists such files.
pub fn check_no_overwrite(
    args: &TestArgs,
    plan: &RunPlan,
    project: &Project,
    context: &CliContext,
) -> Result<(), Vec<Diagnostic>> {
    let mut inputs = InputFiles::of_project(project);
    for (path, what) in
        [(&args.select.cases, "the file of `--cases`"), (&args.call.ctx, "the file of `--ctx`")]
    {
        path.iter().for_each(|path| inputs.add(&context.folder.join(path), what));
    }
    inputs.add_plan(plan, project);
    if let Some(folder) = &args.cassettes {
        let cassettes = walk_files(&context.folder.join(folder), MAX_DEPTH, MAX_CASSETTE_FILES, &|_| true);
        cassettes.iter().for_each(|file| inputs.add(file, "a cassette"));
    }
    let diagnostics = inputs.conflicts(output_files(args), context);
    if diagnostics.is_empty() { Ok(()) } else { Err(diagnostics) }
}

/// True if a suite of this name is read as a sequence of JSON values.
fn holds_json_lines(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl" || extension == "json")
}

/// Returns the output files, each with its flag.
fn output_files(args: &TestArgs) -> impl Iterator<Item = (&str, &PathBuf)> {
    let outputs = args.output.iter().map(|path| ("-o", path));
    let others = [("--trace", &args.trace), ("--save", &args.save)];
    outputs.chain(others.into_iter().filter_map(|(flag, path)| Some((flag, path.as_ref()?))))
}

/// An empty report file.
pub struct ReportFile {
    pub file: OutputFile,
    pub format: ReportFormat,
    /// Display name of the file.
    pub shown: String,
}

/// Creates the report files that Hotseat writes itself. Fails if a file cannot be created.
pub fn open(args: &TestArgs, context: &CliContext) -> Result<Vec<ReportFile>, ReportWriteError> {
    let mut outputs = Vec::new();
    for path in args.output.iter().filter(|path| !is_for_writer(path, args, context)) {
        let (path, file) = match is_folder(path, context) {
            true => create_in(path, context).map(|(path, file)| (path, file.into()))?,
            false => {
                let file = reporters::open_output_file(&context.folder.join(path));
                (path.clone(), file.map_err(|error| ReportWriteError::new(path, error))?)
            }
        };
        let format = ReportFormat::from_path(&path).unwrap_or(ReportFormat::JsonLines);
        outputs.push(ReportFile { file, format, shown: path.display().to_string() });
    }
    Ok(outputs)
}

/// Creates `output-20260131120000.jsonl`, named after the UTC time. Files of the same second are numbered.
fn create_in(folder: &Path, context: &CliContext) -> Result<(PathBuf, File), ReportWriteError> {
    let time = jiff::Timestamp::now().strftime("%Y%m%d%H%M%S").to_string();
    let mut number = 1;
    loop {
        let name = match number {
            1 => format!("output-{time}.jsonl"),
            number => format!("output-{time}-{number}.jsonl"),
        };
        let path = folder.join(name);
        match reporters::create_new_file(&context.folder.join(&path)) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1_000 => number += 1,
            Err(error) => return Err(ReportWriteError::new(&path, error)),
        }
    }
}
