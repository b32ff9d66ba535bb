//! `hotseat test`.

mod choices;
mod holding;
mod keeping;
mod outputs;
mod rechecking;
mod reporters;
mod telling;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use hotseat::adapters::http::Http;
use hotseat::config::Whose;
use hotseat::document::Diagnostic;
use hotseat::report::{self, Events};
use hotseat::run::{Choices, Control, Keep, Outside, Setting, Signals, Summary};
use hotseat::store::{RunHead, Store};
use tokio::sync::watch;

use crate::args::TestArgs;
use crate::dry_run;
use crate::exit::Exit;
use crate::input::Input;
use crate::kept::refuse;
use crate::list::{Few, open, read};
use crate::view::Viewing;
use crate::world::World;
use rechecking::Rechecking;
use telling::Telling;

/// A run that was broken off, and where it is kept.
pub struct Resumed {
    pub path: PathBuf,
    pub store: Store,
    pub head: RunHead,
}

/// A run whose conversations are to be decided again.
pub struct Rechecked {
    pub store: Store,
    pub head: RunHead,
    /// Whether judges are asked what they were not asked in it.
    pub judge: bool,
}

/// What is to be done with the cases that are selected.
pub enum Task {
    /// They are run.
    New,
    /// What of them is left of a run is run.
    Resume(Resumed),
    /// They are decided by the conversations of a run.
    Recheck(Rechecked),
}

/// Runs the cases that are selected, or what of them is left of a run that was broken off; or decides them again.
pub fn run(args: TestArgs, task: Task, world: &World) -> Exit {
    let json = args.json;
    let mut left = Left::default();
    let mut exit = carry_out(args, task, world, &mut left);
    if json {
        let ended = match &mut left.events {
            Some(events) => events.end(exit.code()),
            // Nobody reads standard output.
            None if exit == Exit::Interrupted => Ok(()),
            None => report::nothing_ran(&mut io::stdout(), exit.code()),
        };
        if ended.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe) {
            exit = Exit::Broken;
        }
    }
    if let Some(viewing) = left.viewing {
        viewing.stay(world);
    }
    exit
}

/// What is left to be done when a run is over.
#[derive(Default)]
struct Left {
    /// Events still lack their end.
    events: Option<Events<io::Stdout>>,
    /// Somebody may still look at the page.
    viewing: Option<Viewing>,
}

/// Whether arguments that could not be read ask for events.
pub fn wants_events(mut arguments: impl Iterator<Item = OsString>) -> bool {
    let tells = |command: OsString| ["test", "resume", "recheck"].iter().any(|name| command == *name);
    arguments.nth(1).is_some_and(tells) && arguments.any(|word| word == "--json")
}

/// Says as events that the arguments are wrong.
pub fn misused(words: &str) {
    let words = words.trim();
    let mistake = Diagnostic::new(words.strip_prefix("error: ").unwrap_or(words));
    let _ = report::mistake(&mut io::stdout(), &mistake)
        .and_then(|()| report::nothing_ran(&mut io::stdout(), Exit::Usage.code()));
}

/// Does what the arguments say.
fn carry_out(args: TestArgs, task: Task, world: &World, left: &mut Left) -> Exit {
    match try_to(args, task, world, left) {
        Ok(exit) | Err(exit) => exit,
    }
}

/// The same. What keeps the run from beginning has been said when this fails.
fn try_to(mut args: TestArgs, task: Task, world: &World, left: &mut Left) -> Result<Exit, Exit> {
    let (resumed, rechecked) = match task {
        Task::New => (None, None),
        Task::Resume(resumed) => (Some(resumed), None),
        Task::Recheck(rechecked) => (None, Some(rechecked)),
    };
    let calling = choices::calling(&args.call, world).map_err(|wrong| world.refuse(wrong))?;
    let input = args.input.as_deref().map(|written| Input::read(written, &world.folder));
    let input = input.transpose().map_err(|wrong| world.refuse([wrong]))?;
    if let Some(rechecked) = &rechecked {
        rechecking::is_written(&rechecked.head, input.as_ref()).map_err(|wrong| world.refuse([wrong]))?;
    }
    if let Some(Input::File(path)) = &input {
        args.select.paths.push(path.clone());
    }
    let mut project = open(&args.select, calling, args.simulator.as_ref(), world)?;
    if let Some(Input::ScriptTests(reference)) = &input {
        let (agent, path) = project.script_tests(reference).map_err(|wrong| world.refuse([wrong]))?;
        if args.select.agent.is_none() {
            project.choose(&agent).map_err(|wrong| world.refuse([wrong]))?;
        }
        args.select.paths.push(path.display().to_string());
    }
    let project = Arc::new(project);
    if let Some(input) = &input {
        input.check(&args.select, &project, world).map_err(|wrong| world.refuse(wrong))?;
    }
    outputs::check(&args, world).map_err(|wrong| world.refuse(wrong))?;
    let http = Arc::new(Http::default());
    let given = input.as_ref().map(|input| input.suites(&args.select, &project, &http, world));
    let given = given.transpose().map_err(|wrong| {
        world.complain(wrong);
        Exit::Broken
    })?;
    let rechecking = rechecked.map(|rechecked| Rechecking::begin(rechecked, &project, world)).transpose()?;
    let among = match &rechecking {
        Some(rechecking) => args.last_failed.then(|| rechecking.cases()),
        None => {
            args.last_failed.then(|| keeping::last_failed(&project, resumed.as_ref(), world)).transpose()?
        }
    };
    let few = Few { among, shard: args.shard };
    let mut plan = read(&args.select, given.flatten(), few, &project, world)?;
    if let Some(resumed) = &resumed {
        keeping::has_changed(resumed, &plan, input.as_ref()).map_err(|wrong| world.refuse([wrong]))?;
    }
    if let Some(rechecking) = &rechecking {
        let gone = rechecking.gone(&plan, args.select.paths.is_empty(), &project, world)?;
        plan.notes.extend(gone);
    }
    let hooks = args.before.iter().chain(&args.after);
    let wrong: Vec<Diagnostic> = hooks.filter_map(|name| project.wrong_hook(name, &plan.whose())).collect();
    if !wrong.is_empty() {
        return Err(world.refuse(wrong));
    }
    if let Some(writer) = &args.reporter {
        plan.add_helper(
            project
                .find_helper(writer, None, Whose { folder: &project.root, agent: None })
                .map_err(|wrong| world.refuse(wrong))?,
        );
    }
    keeping::can_be_viewed(&args, &project).map_err(|wrong| world.refuse([wrong]))?;
    if plan.lacks_agent() {
        return Err(world.refuse([project.no_target()]));
    }
    let keep = match (&args.trace, &args.record) {
        (Some(_), _) => Keep::Raw,
        (None, Some(_)) => Keep::Events,
        // A run that is gone on with is kept, whatever the project says of those that begin.
        (None, None)
            if resumed.is_some()
                || keeping::wanted(&args, &project)
                || outputs::need_events(&args, world) =>
        {
            Keep::Events
        }
        (None, None) => Keep::Nothing,
    };
    // Who is not contacted need not be known.
    let reached = plan.reached().filter(|_| rechecking.is_none());
    let outside = Outside::new(project.clone(), reached, http.clone(), args.timeout, keep);
    let mut outside = outside.map_err(|wrong| world.refuse(wrong))?;
    outside.overrides = choices::overrides(&args, input.as_ref());
    outside.person = choices::person(&args, world);
    outside.recheck = rechecking.as_ref().map(Rechecking::conversations);
    let mut options = match &rechecking {
        Some(rechecking) => rechecking.options(&project),
        None => choices::options(&args, &project, &plan).map_err(|wrong| world.refuse([wrong]))?,
    };
    if let Some(note) = choices::put_aside(&plan, options) {
        plan.notes.push(note);
    }
    // Whoever goes on after a failure does not want to stop at it again.
    options.fail_fast &= resumed.is_none();
    outputs::overwrite_nothing(&args, &plan, world).map_err(|wrong| world.refuse(wrong))?;
    // Of one message nothing is to be asserted.
    if !matches!(input, Some(Input::Message(_) | Input::Lines)) {
        world.note(&plan.notes);
    }
    if args.dry_run {
        let made_up = matches!(input, Some(Input::Generated(..)));
        return Ok(dry_run::run(&args, made_up, &plan, &project, world));
    }

    let broken = |words: String| {
        world.complain_of(words);
        Exit::Broken
    };
    let files = outputs::open(&args, world).map_err(|error| broken(error.to_string()))?;
    let choices = Choices {
        options,
        parallel_asked: args.parallel.or(project.parallel).is_some(),
        run: args.select.run.clone(),
        agent: args.select.agent.clone(),
        connector: args.call.connector.clone(),
        outputs: files.iter().map(|file| file.shown.clone()).collect(),
    };
    let setting = Setting::new(&plan, &outside, choices);
    let setting = Arc::new(match &rechecking {
        Some(rechecking) => rechecking.setting(setting),
        None => setting,
    });
    let look = reporters::Looks {
        is_message: matches!(input, Some(Input::Message(_))),
        somebody_types: choices::asks_person(&args, &plan),
    };
    let reporters = reporters::open(&args, world, &project, look, files, &setting);
    let (mut reporters, writer) = reporters.map_err(|error| broken(error.to_string()))?;
    let keeping = match &resumed {
        None => {
            let about = match &rechecking {
                Some(rechecking) => rechecking.about(&project, &plan, &setting),
                None => keeping::about(&args, &project, &plan, &setting, world),
            };
            keeping::begin(&args, &project, about, &mut reporters.warnings)
        }
        // What would not be kept is not begun.
        Some(resumed) => Some(keeping::resume(resumed, &project).map_err(|error| refuse(&error, world))?),
    };
    let earlier =
        resumed.as_ref().map(keeping::earlier).transpose().map_err(|error| refuse(&error, world))?;
    let viewing = match args.view {
        true => keeping::view(keeping.as_ref(), &project, world)?,
        false => None,
    };
    let telling = Telling::begin(reporters, keeping, look.somebody_types);
    let mut telling = telling.map_err(|error| broken(format!("cannot start: {error}")))?;
    outside.pace = telling.pace();
    let outside = Arc::new(outside);
    let plan = Arc::new(plan);
    // This thread decides what runs and hears Ctrl-C. Conversations are held on threads of their own, so it is never busy.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| broken(format!("cannot start: {error}")))?;
    let rest = holding::Rest { options, earlier, writer };
    let ended = runtime.block_on(async {
        let (wishes, control) = watch::channel(Control::Run);
        let signals =
            Signals::new().map_err(|error| vec![Diagnostic::new(format!("cannot start: {error}"))])?;
        tokio::select! {
            ended = async {
                let ended = holding::hold_all(&plan, &args, outside, control, &mut telling, rest).await;
                // Who reads slowly can be interrupted, too.
                telling.settled().await;
                ended
            } => ended,
            // The person at the keyboard has asked three times. What is dropped here ends its processes.
            () = signals.pass_on(wishes) => Ok(Summary { interrupted: true, ..Summary::default() }),
        }
    });
    if matches!(ended, Ok(Summary { interrupted: true, .. })) && !telling.settles_soon() {
        // Nobody reads what is told, and somebody wants this to end.
        runtime.shutdown_background();
        return Err(Exit::Interrupted);
    }
    let reporters = telling.end();
    if args.verbose {
        reporters.logs.iter().for_each(|line| world.console(line));
    }
    reporters.warnings.iter().for_each(|words| world.warn(words));
    let can_go_on = !args.json && rechecking.is_none();
    if let (Ok(Summary { interrupted: true, .. }), Some(id), true) = (&ended, &reporters.kept, can_go_on) {
        world.say(&format!("note: `hotseat resume {}` runs what is left", id.get(..8).unwrap_or(id)));
    }
    // Whoever has ended the run wants the program to end.
    let is_whole = matches!(&ended, Ok(summary) if !summary.interrupted);
    match viewing {
        Some(viewing) if is_whole && reporters.kept.is_some() && world.is_watched() => {
            left.viewing = Some(viewing);
        }
        Some(viewing) => viewing.end(reporters.kept.as_deref(), world),
        None => {}
    }
    let not_written = reporters.errors;
    left.events = reporters.events;
    // Tasks that are stuck in something uninterruptible must not keep the program.
    runtime.shutdown_background();
    match ended {
        Err(mistakes) => {
            world.complain(mistakes);
            Err(Exit::Broken)
        }
        Ok(_) if !not_written.is_empty() => {
            not_written.into_iter().for_each(|words| world.complain_of(words));
            Err(Exit::Broken)
        }
        Ok(summary) => Ok(Exit::of(&summary)),
    }
}
