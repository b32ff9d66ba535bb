//! Everybody who is told of a run.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use hotseat::config::Project;
use hotseat::report::{
    self, Console, Events, GitHub, Look, Markdown, NotWritable, Recordings, Reply, Reporter, SavedCases,
    TraceLines,
};
use hotseat::run::{RunEvent, Setting};

use super::outputs::{self, Output};
use crate::args::TestArgs;
use crate::world::{World, stdout};
use crate::writer::Writer;

/// What decides how a run looks on standard output.
#[derive(Debug, Clone, Copy)]
pub struct Looks {
    /// Whether it is one message that wants its answer and nothing else.
    pub is_message: bool,
    /// Whether somebody may type while it goes on.
    pub somebody_types: bool,
}

/// All reporters of a run. One that cannot write is dropped; the run goes on, and its exit code tells.
pub struct Reporters {
    /// Those that are dropped silently if nobody reads them come last: they tell what became of the others.
    all: Vec<(String, Box<dyn Reporter>)>,
    pub events: Option<Events<io::Stdout>>,
    /// What went wrong and changes nothing.
    pub warnings: Vec<String>,
    /// What functions of scripts around the run said to `console`.
    pub logs: Vec<String>,
    /// What could not be written.
    pub errors: Vec<String>,
    /// The run under which all was kept, if it was.
    pub kept: Option<String>,
}

impl Reporters {
    pub fn report(&mut self, event: &RunEvent) {
        let mut lost: Vec<String> = Vec::new();
        let errors = &mut self.errors;
        self.all.retain_mut(|(name, reporter)| {
            lost.iter().for_each(|output| reporter.lost(output));
            match reporter.report(event) {
                Ok(()) => true,
                // Whoever read our output has read enough: `hotseat test | head` is no failure.
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

/// Everybody who is told of the run, and who writes reports when it is over.
///
/// # Errors
/// The first that cannot write.
pub fn open(
    args: &TestArgs,
    world: &World,
    project: &Project,
    looks: Looks,
    files: Vec<Output>,
    setting: &Arc<Setting>,
) -> Result<(Reporters, Option<Writer>), NotWritable> {
    let mut all: Vec<(String, Box<dyn Reporter>)> = Vec::new();
    for Output { file, format, shown } in files {
        let report = report::open(file, format, &shown, setting.clone())
            .map_err(|error| NotWritable::new(Path::new(&shown), error))?;
        all.push((shown, report));
    }
    if let Some(path) = &args.trace {
        let file = report::create(&world.folder.join(path)).map_err(|error| NotWritable::new(path, error))?;
        all.push((path.display().to_string(), Box::new(TraceLines::new(file))));
    }
    if let Some(path) = &args.record {
        let folder = world.folder.join(path);
        let recordings = Recordings::open(folder, project.root.clone(), setting.clone())
            .map_err(|error| NotWritable::new(path, error))?;
        all.push((format!("recordings in {}", path.display()), Box::new(recordings)));
    }
    if let Some(path) = &args.save {
        let file = report::create(&world.folder.join(path)).map_err(|error| NotWritable::new(path, error))?;
        all.push((path.display().to_string(), Box::new(SavedCases::new(file))));
    }
    let mut writer = None;
    if let Some(who) = &args.reporter {
        let files = args.output.iter().filter(|path| outputs::is_for_writer(path, args, world));
        let files = files.map(|path| world.folder.join(path)).collect();
        let (asked, collects) = Writer::new(who.clone(), files, args.verbose, setting.clone())
            .map_err(|error| NotWritable::new(Path::new("a temporary file"), error))?;
        all.push((format!("what {who} is told"), collects));
        writer = Some(asked);
    }
    let events = args.json.then(|| Events::new(io::stdout(), setting.clone()));
    if events.is_none() && looks.is_message && !args.verbose {
        all.push(("standard output".to_string(), Box::new(Reply::new(stdout(), world.width()))));
    } else if events.is_none() {
        let look = Look {
            color: world.color(),
            width: world.width(),
            // Where somebody types nothing is drawn again and again.
            progress: world.progress() && !looks.somebody_types,
            verbose: args.verbose,
        };
        let console = Console::new(stdout(), look, setting.clone());
        all.push(("standard output".to_string(), Box::new(console)));
    }
    if world.environment.get("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
        let workspace = world.environment.get("GITHUB_WORKSPACE").map(Into::into);
        // They are read wherever they are printed; beside events there is room for them on standard error only.
        let annotations: Box<dyn Reporter> = match events.is_some() {
            true => Box::new(GitHub::new(io::stderr(), workspace)),
            false => Box::new(GitHub::new(io::stdout(), workspace)),
        };
        all.push(("annotations".to_string(), annotations));
    }
    // The page of the job takes Markdown, after what other steps have written there.
    if let Some(path) = world.environment.get("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
        let file = File::options().append(true).create(true).open(world.folder.join(path));
        let file = file.map_err(|error| NotWritable::new(Path::new(path), error))?;
        all.push(("the step summary".to_string(), Box::new(Markdown::new(file, setting.clone()))));
    }
    let (warnings, logs, errors) = (Vec::new(), Vec::new(), Vec::new());
    Ok((Reporters { all, events, warnings, logs, errors, kept: None }, writer))
}
