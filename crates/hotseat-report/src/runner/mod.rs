//! Runs the cases of a plan: the runner of `hotseat test` and of test files in Rust.
//!
//! A [`RunBuilder`] starts agents, runs hooks and conversations, saves and reports their events, and stops the agents.

mod event_forwarder;
mod execute;
mod reporter_set;

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::Diagnostic;
use hotseat_engine::run::{
    ExecutionOptions, ResumeState, RunContext, RunControl, RunPlan, RunSummary, ShutdownSignals,
    SweepSettings, start_workers,
};
use hotseat_targets::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::event_forwarder::EventForwarder;
pub use self::event_forwarder::RunSaver;
pub use self::reporter_set::ReporterSet;

/// Writes reports after the last event. The errors say what could not be written.
pub type ReportWriting =
    Box<dyn FnOnce(Arc<RunContext>) -> BoxFuture<'static, Result<(), Vec<String>>> + Send>;

/// Time limit for dropping conversations after an interruption.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// Hooks around a run, by name.
#[derive(Debug, Clone, Default)]
pub struct RunHooks {
    /// Runs before the first case.
    pub before: Option<String>,
    /// Runs after the last case.
    pub after: Option<String>,
}

/// A run that has ended.
pub struct FinishedRun {
    /// The totals, or why the run could not be carried out.
    pub ended: Result<RunSummary, Vec<Diagnostic>>,
    /// Warnings, console lines and write errors.
    pub reporters: ReporterSet,
}

/// Reason why there is no [`FinishedRun`].
#[derive(Debug)]
pub enum RunnerError {
    /// The run could not start.
    Start(io::Error),
    /// The user ended the run while the reader of its output was stuck.
    OutputStuck,
}

/// A run before it starts.
#[must_use]
pub struct RunBuilder {
    plan: Arc<RunPlan>,
    context: RunContext,
    options: ExecutionOptions,
    reporters: ReporterSet,
    saver: Option<Box<dyn RunSaver>>,
    hooks: RunHooks,
    completed: Option<ResumeState>,
    report_writing: Option<ReportWriting>,
    sweep: Option<SweepSettings>,
    synchronous: bool,
}

impl RunBuilder {
    /// Creates a run of all cases of a plan.
    pub fn new(
        plan: RunPlan,
        context: RunContext,
        options: ExecutionOptions,
        reporters: ReporterSet,
    ) -> RunBuilder {
        RunBuilder {
            plan: Arc::new(plan),
            context,
            options,
            reporters,
            saver: None,
            hooks: RunHooks::default(),
            completed: None,
            report_writing: None,
            sweep: None,
            synchronous: false,
        }
    }

    /// Saves all events, each before it is reported.
    pub fn saved_by(self, saver: Option<Box<dyn RunSaver>>) -> Self {
        RunBuilder { saver, ..self }
    }

    /// Runs hooks around the run.
    pub fn with_hooks(self, hooks: RunHooks) -> Self {
        RunBuilder { hooks, ..self }
    }

    /// Skips the cases that an interrupted run has completed, and reports their results.
    pub fn resuming(self, completed: Option<ResumeState>) -> Self {
        RunBuilder { completed, ..self }
    }

    /// Writes further reports after the last event.
    pub fn then_writing(self, report_writing: Option<ReportWriting>) -> Self {
        RunBuilder { report_writing, ..self }
    }

    /// Repeats cases that passed with faults of their MCP servers.
    pub fn sweeping(self, sweep: Option<SweepSettings>) -> Self {
        RunBuilder { sweep, ..self }
    }

    /// Reports each event before the run continues. Needed if a human types: a prompt must not overtake earlier
    /// output.
    pub fn synchronous(self, synchronous: bool) -> Self {
        RunBuilder { synchronous, ..self }
    }

    /// Runs the cases, with the signals of the process. Fails if the run cannot start, or was ended by force
    /// while its output was stuck.
    pub fn run(mut self) -> Result<FinishedRun, RunnerError> {
        let reporters = std::mem::take(&mut self.reporters);
        if let Some(saver) = &mut self.saver {
            saver.show_live(self.context.running.clone());
        }
        let started = EventForwarder::start(reporters, self.saver.take(), self.synchronous);
        let (forwarder, reports) = started.map_err(RunnerError::Start)?;
        self.context.backlog = forwarder.backlog();
        let workers = start_workers(self.options.parallel).map_err(RunnerError::Start)?;
        // This thread only waits for signals and the end.
        let ended = workers.block_on(async {
            let (requests, control) = watch::channel(RunControl::Run);
            let signals = ShutdownSignals::new()
                .map_err(|error| vec![Diagnostic::new(format!("cannot start: {error}"))])?;
            let of_run = forwarder.clone();
            let mut run = JoinSet::new();
            run.spawn(async move {
                let ended = self.execute(control, &of_run).await;
                // Ctrl-C also works while reporters lag behind.
                of_run.flush().await;
                ended
            });
            tokio::select! {
                Some(ended) = run.join_next() => ended.unwrap_or_else(|error| resume_unwind(error.into_panic())),
                // Third Ctrl-C. Dropping the run ends its processes.
                () = signals.forward(requests) => Ok(RunSummary { interrupted: true, ..RunSummary::default() }),
            }
        });
        let is_interrupted = matches!(&ended, Ok(summary) if summary.interrupted);
        let is_stuck = is_interrupted && !forwarder.flush_with_timeout();
        // Conversations that still run have processes to end. Tasks blocked in system calls must not keep the program
        // alive.
        match is_interrupted {
            true => workers.shutdown_timeout(SHUTDOWN_TIMEOUT),
            false => workers.shutdown_background(),
        }
        match is_stuck {
            true => Err(RunnerError::OutputStuck),
            false => Ok(FinishedRun { ended, reporters: forwarder.finish(reports) }),
        }
    }
}
