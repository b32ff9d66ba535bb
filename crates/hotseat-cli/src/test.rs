//! `hotseat test`.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use hotseat::adapters::http::{Http, without_credentials};
use hotseat::config::{Project, StartedAgent};
use hotseat::document::Diagnostic;
use hotseat::report::{self, Console, Format, GitHub, Look, Reporter, TraceLines};
use hotseat::run::{Control, Options, Outside, Plan, RunEvent, Summary, execute};
use tokio::sync::watch;

use crate::args::TestArgs;
use crate::exit::Exit;
use crate::list::load;
use crate::world::World;

/// How many conversations are held at once where nobody says: they wait for the network most of the time, and an
/// agent on a developer's machine still copes.
const PARALLEL: usize = 8;

/// Runs the cases that are selected.
pub fn run(args: TestArgs, world: &World) -> Exit {
    let (project, plan) = match load(&args.select, world) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let Some(settings) = project.target else {
        world.complain([project.no_target()]);
        return Exit::Usage;
    };
    let mut timeouts = settings.timeouts;
    timeouts.case = args.timeout;
    let project = Arc::new(project);
    let http = Arc::new(Http::default());
    let keep_events = args.trace.is_some();
    let outside = match Outside::new(project.clone(), http.clone(), timeouts, keep_events, keep_events) {
        Ok(outside) => Arc::new(outside),
        Err(mistakes) => {
            world.complain(mistakes);
            return Exit::Usage;
        }
    };
    if let Err(mistakes) = check_outputs(&args) {
        world.complain(mistakes);
        return Exit::Usage;
    }
    world.note(&plan.notes);
    if args.dry_run {
        println!("{} cases in {} suites are valid; nobody was contacted", plan.selected, plan.selected_suites);
        return Exit::Passed;
    }

    let mut reporters = match reporters(&args, world, &outside) {
        Ok(reporters) => reporters,
        Err(error) => {
            world.complain_of(error.to_string());
            return Exit::Broken;
        }
    };
    let parallel = args.parallel.or(project.parallel).unwrap_or(PARALLEL);
    let options = Options { parallel, fail_fast: args.fail_fast };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, usize::from).min(4))
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            world.complain_of(format!("cannot start: {error}"));
            return Exit::Broken;
        }
    };
    let ended = runtime.block_on(hold_all(&plan, &project, outside, &http, options, &mut reporters));
    let not_written = reporters.errors;
    // Tasks that are stuck in something uninterruptible must not keep the program.
    runtime.shutdown_background();
    match ended {
        Err(mistakes) => {
            world.complain(mistakes);
            Exit::Broken
        }
        Ok(_) if !not_written.is_empty() => {
            not_written.into_iter().for_each(|words| world.complain_of(words));
            Exit::Broken
        }
        Ok(summary) => exit_of(&summary),
    }
}

fn exit_of(summary: &Summary) -> Exit {
    match summary {
        summary if summary.interrupted => Exit::Interrupted,
        summary if summary.never_reached() => Exit::Broken,
        summary if summary.failed > 0 => Exit::Failed,
        _ => Exit::Passed,
    }
}

/// Starts the agent where the project says how, holds all conversations, and stops it again.
async fn hold_all(
    plan: &Plan,
    project: &Project,
    outside: Arc<Outside>,
    http: &Http,
    options: Options,
    reporters: &mut Reporters,
) -> Result<Summary, Vec<Diagnostic>> {
    let (wishes, control) = watch::channel(Control::Run);
    tokio::spawn(listen(wishes));
    let mut agent = None;
    if let Some(start) = &project.start {
        let mut interrupted = control.clone();
        let started = tokio::select! {
            started = StartedAgent::start(start, project.environment(), http) => started,
            // Dropping what was being started ends it.
            Ok(_) = interrupted.changed() => return Ok(Summary { interrupted: true, ..Summary::default() }),
        };
        agent = Some(started.map_err(|failure| {
            let diagnostic = Diagnostic::new(failure.message);
            vec![match failure.detail {
                Some(detail) => diagnostic.help(detail),
                None => diagnostic,
            }]
        })?);
    }
    let ended = execute(plan, outside, options, control, &mut agent, &mut |event| reporters.report(&event)).await;
    if let Some(agent) = agent {
        agent.stop().await;
    }
    ended
}

/// Ctrl-C, or a request to terminate: once, what runs may end; twice, it is cancelled; three times, it is left.
async fn listen(wishes: watch::Sender<Control>) {
    for wish in [Control::Finish, Control::Cancel] {
        signal().await;
        let _ = wishes.send(wish);
    }
    signal().await;
    #[expect(clippy::exit, reason = "the person at the keyboard has asked three times")]
    std::process::exit(130);
}

async fn signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// All reporters of a run. One that cannot write is dropped; the run goes on, and its exit code tells.
struct Reporters {
    all: Vec<(String, Box<dyn Reporter>)>,
    errors: Vec<String>,
}

impl Reporters {
    fn report(&mut self, event: &RunEvent<'_>) {
        let errors = &mut self.errors;
        self.all.retain_mut(|(name, reporter)| match reporter.report(event) {
            Ok(()) => true,
            // Whoever read our output has read enough: `hotseat test | head` is no failure.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => false,
            Err(error) => {
                errors.push(format!("cannot write {name}: {error}"));
                false
            }
        });
    }
}

/// What is wrong with the report files that were asked for.
fn check_outputs(args: &TestArgs) -> Result<(), Vec<Diagnostic>> {
    let mut mistakes = Vec::new();
    for (number, path) in args.output.iter().enumerate() {
        if Format::of(path).is_none() {
            let message = format!("-o {}: the ending names the format, one of {}", path.display(), report::ENDINGS);
            mistakes.push(Diagnostic::new(message));
        }
        if args.output[..number].contains(path) {
            mistakes.push(Diagnostic::new(format!("-o {} is given twice", path.display())));
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

fn reporters(args: &TestArgs, world: &World, outside: &Outside) -> Result<Reporters, report::NotWritable> {
    let look = Look {
        color: world.color(args.color),
        width: world.width(),
        progress: world.progress(),
        verbose: args.verbose,
    };
    let console = Console::new(BufWriter::new(io::stdout()), look, target_shown(outside));
    let mut all: Vec<(String, Box<dyn Reporter>)> = vec![("standard output".to_string(), Box::new(console))];
    for path in &args.output {
        let path = world.folder.join(path);
        if let Some(format) = Format::of(&path) {
            all.push((path.display().to_string(), report::open(&path, format)?));
        }
    }
    if let Some(path) = &args.trace {
        let path = world.folder.join(path);
        all.push((path.display().to_string(), Box::new(TraceLines::new(report::create(&path)?))));
    }
    if world.environment.get("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
        let workspace = world.environment.get("GITHUB_WORKSPACE").map(Into::into);
        all.push(("annotations".to_string(), Box::new(GitHub::new(LineFlushed(io::stdout()), workspace))));
    }
    Ok(Reporters { all, errors: Vec::new() })
}

fn target_shown(outside: &Outside) -> String {
    outside.endpoint().map_or_else(|| "a target for each case".to_string(), without_credentials)
}

/// Standard output whose lines are out before anybody else writes there.
struct LineFlushed<W>(W);

impl<W: Write> Write for LineFlushed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(bytes)?;
        self.0.flush()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
