//! Runs the cases of a plan: the runner of `hotseat test` and of test files in Rust.
//!
//! A [`RunBuilder`] starts agents, runs hooks and conversations, saves and reports their events, and stops the agents.

mod event_forwarder;
mod execute;
mod reporter_set;

use std::io;
use std::sync::Arc;

use hotseat_document::Diagnostic;
use hotseat_engine::run::{
    ExecutionOptions, ResumeState, RunContext, RunControl, RunPlan, RunSummary, ShutdownSignals,
    SweepSettings,
};
use hotseat_targets::BoxFuture;
use tokio::runtime::Builder;
use tokio::sync::watch;

use self::event_forwarder::EventForwarder;
pub use self::event_forwarder::RunSaver;
pub use self::reporter_set::ReporterSet;

/// Writes reports after the last event. The errors say what could not be written.
pub type ReportWriting = Box<dyn FnOnce(Arc<RunContext>) -> BoxFuture<'static, Result<(), Vec<String>>>>;

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
pub struct RunBuilder<'a> {
    plan: Arc<RunPlan>,
    context: RunContext,
    options: ExecutionOptions,
    reporters: ReporterSet,
    saver: Option<Box<dyn RunSaver>>,
    hooks: RunHooks,
    completed: Option<ResumeState<'a>>,
    report_writing: Option<ReportWriting>,
    sweep: Option<SweepSettings>,
    synchronous: bool,
}

impl<'a> RunBuilder<'a> {
    /// Creates a run of all cases of a plan.
    pub fn new(
        plan: RunPlan,
        context: RunContext,
        options: ExecutionOptions,
        reporters: ReporterSet,
    ) -> RunBuilder<'a> {
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
    pub fn resuming(self, completed: Option<ResumeState<'a>>) -> Self {
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
        let forwarder = EventForwarder::start(reporters, self.saver.take(), self.synchronous);
        let mut forwarder = forwarder.map_err(RunnerError::Start)?;
        self.context.backlog = forwarder.backlog();
        // This thread schedules cases and handles Ctrl-C. Conversations run on their own threads, so it is never
        // busy.
        let runtime = Builder::new_current_thread().enable_all().build().map_err(RunnerError::Start)?;
        let ended = runtime.block_on(async {
            let (requests, control) = watch::channel(RunControl::Run);
            let signals = ShutdownSignals::new()
                .map_err(|error| vec![Diagnostic::new(format!("cannot start: {error}"))])?;
            tokio::select! {
                ended = async {
                    let ended = self.execute(control, &mut forwarder).await;
                    // Ctrl-C also works while reporters lag behind.
                    forwarder.flush().await;
                    ended
                } => ended,
                // Third Ctrl-C. Dropping the run ends its processes.
                () = signals.forward(requests) => Ok(RunSummary { interrupted: true, ..RunSummary::default() }),
            }
        });
        let is_interrupted = matches!(&ended, Ok(summary) if summary.interrupted);
        let is_stuck = is_interrupted && !forwarder.flush_with_timeout();
        // Tasks blocked in system calls must not keep the program alive.
        runtime.shutdown_background();
        match is_stuck {
            true => Err(RunnerError::OutputStuck),
            false => Ok(FinishedRun { ended, reporters: forwarder.finish() }),
        }
    }
}
