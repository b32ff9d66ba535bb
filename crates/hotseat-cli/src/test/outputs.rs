//! Report files: which are asked for, and under which names.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use hotseat::document::Diagnostic;
use hotseat::report::{self, Format, NotWritable};
use hotseat::run::Plan;

use crate::args::TestArgs;
use crate::list::project_file;
use crate::world::World;

/// Whether a report is asked for in a folder, under a name of our choice.
pub fn is_folder(path: &Path, world: &World) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/") || world.folder.join(path).is_dir()
}

/// Whether a report is one that a helper writes.
pub fn is_for_writer(path: &Path, args: &TestArgs, world: &World) -> bool {
    let is_ours = Format::of(path).is_some_and(Format::is_for_programs);
    args.reporter.is_some() && !is_ours && !is_folder(path, world)
}

/// Whether a report that Hotseat writes needs the events of conversations.
pub fn need_events(args: &TestArgs, world: &World) -> bool {
    let ours = args.output.iter().filter(|path| !is_for_writer(path, args, world));
    ours.filter_map(|path| Format::of(path)).any(Format::needs_events)
}

/// Whether the report files that are asked for can be had.
///
/// # Errors
/// What is wrong with them.
pub fn check(args: &TestArgs, world: &World) -> Result<(), Vec<Diagnostic>> {
    let mut mistakes = Vec::new();
    for path in &args.output {
        if Format::of(path).is_none() && args.reporter.is_none() && !is_folder(path, world) {
            let message =
                format!("-o {}: the ending names the format, one of {}", path.display(), report::ENDINGS);
            let help = "a folder, written with a `/` at its end, gets a file whose name is the time";
            mistakes.push(Diagnostic::new(message).help(help));
        }
    }
    let mut files: BTreeMap<PathBuf, &str> = BTreeMap::new();
    for (flag, path) in written(args) {
        match files.insert(real(&world.folder.join(path)), flag) {
            Some(other) if other == flag => {
                mistakes.push(Diagnostic::new(format!("{flag} {} is given twice", path.display())));
            }
            Some(other) => {
                let message = format!("{flag} {} is a file that {other} names already", path.display());
                mistakes.push(Diagnostic::new(message));
            }
            None => {}
        }
    }
    if let Some(who) = args.reporter.as_ref().filter(|_| args.json)
        && !args.output.iter().any(|path| is_for_writer(path, args, world))
    {
        let message =
            format!("--reporter {who}: beside --json there is no room for what it writes on standard output");
        mistakes.push(Diagnostic::new(message).help("give it a file, for instance `-o report.md`"));
    }
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

/// Whether the files that are written are others than those that are read: a suite, or the project file.
///
/// # Errors
/// Those that are not.
pub fn overwrite_nothing(args: &TestArgs, plan: &Plan, world: &World) -> Result<(), Vec<Diagnostic>> {
    let suites = plan.suites().filter_map(|suite| Some((real(suite.file()?), "a suite of this run")));
    let project = project_file(args.select.config.as_deref(), None, world);
    let project = project.map(|(file, _)| (real(&file), "the project file"));
    let read: BTreeMap<PathBuf, &str> = suites.chain(project).collect();
    let mistakes: Vec<Diagnostic> = written(args)
        .filter_map(|(flag, path)| {
            let what = read.get(&real(&world.folder.join(path)))?;
            let message = format!("{flag} {} would overwrite {what}", path.display());
            Some(Diagnostic::new(message).help("give it another name"))
        })
        .collect();
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

/// The files that are written, with the arguments that name them.
fn written(args: &TestArgs) -> impl Iterator<Item = (&'static str, &PathBuf)> {
    let outputs = args.output.iter().map(|path| ("-o", path));
    let others = [("--trace", &args.trace), ("--save", &args.save)];
    outputs.chain(others.into_iter().filter_map(|(flag, path)| Some((flag, path.as_ref()?))))
}

/// The file that a path means, whether it is there yet or not.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent().and_then(|folder| folder.canonicalize().ok()), path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_path_buf(),
    }
}

/// A report file that is still empty.
pub struct Output {
    pub file: File,
    pub format: Format,
    /// The file, as it is shown to people.
    pub shown: String,
}

/// Makes the report files that Hotseat writes itself.
///
/// # Errors
/// The first that cannot be written.
pub fn open(args: &TestArgs, world: &World) -> Result<Vec<Output>, NotWritable> {
    let mut outputs = Vec::new();
    for path in args.output.iter().filter(|path| !is_for_writer(path, args, world)) {
        let (path, file) = match is_folder(path, world) {
            true => create_in(path, world)?,
            false => {
                let file = report::create(&world.folder.join(path));
                (path.clone(), file.map_err(|error| NotWritable::new(path, error))?)
            }
        };
        let format = Format::of(&path).unwrap_or(Format::JsonLines);
        outputs.push(Output { file, format, shown: path.display().to_string() });
    }
    Ok(outputs)
}

/// A file of its own for this run: `output-20260131120000.jsonl`, after the time in UTC. Runs of the same second are
/// numbered.
fn create_in(folder: &Path, world: &World) -> Result<(PathBuf, File), NotWritable> {
    let time = jiff::Timestamp::now().strftime("%Y%m%d%H%M%S").to_string();
    let mut number = 1;
    loop {
        let name = match number {
            1 => format!("output-{time}.jsonl"),
            number => format!("output-{time}-{number}.jsonl"),
        };
        let path = folder.join(name);
        match report::create_new(&world.folder.join(&path)) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1_000 => number += 1,
            Err(error) => return Err(NotWritable::new(&path, error)),
        }
    }
}
