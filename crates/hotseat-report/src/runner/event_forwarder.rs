//! Saves the events of a run and forwards them to the reporters, on a separate thread.
//!
//! Events are saved before they are reported, so everything a user or program has seen survives a kill. The
//! run does not wait for files and terminals; if they lag many events behind, no new conversation starts.

use std::error::Error;
use std::panic;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use hotseat_engine::run::{ReportBacklog, RunEvent, RunSummary, RunningConversations};
use tokio::sync::oneshot;

use super::reporter_set::ReporterSet;

/// Number of pending events above which no new conversation starts.
const MAX_PENDING_EVENTS: usize = 256;
/// Time that the thread collects events, so that short cases share a transaction and a wake-up of the thread.
const COLLECT_TIME: Duration = Duration::from_millis(2);
/// Time without events after which reporters update their times.
const TICK_INTERVAL: Duration = Duration::from_secs(1);
/// Time that a forcibly ended run waits for its reporters.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Saves the events of a run.
pub trait RunSaver: Send {
    /// Id of the saved run.
    fn id(&self) -> &str;

    /// Saves events, all or none of them. Fails if they cannot be saved.
    fn save_events(&mut self, events: &[RunEvent]) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// Shows conversations to viewers while they are running, until the end of the run.
    fn show_live(&mut self, _running: Arc<RunningConversations>) {}

    /// Marks the run as incomplete, after events could not be saved.
    fn end_incomplete(&mut self, summary: &RunSummary, reason: &str);
}

/// Handle of the reporting thread.
#[derive(Clone)]
pub struct EventForwarder {
    send: Sender<ForwarderMessage>,
    backlog: Arc<ReportBacklog>,
    thread: Thread,
    /// True if each event is reported before the run continues.
    synchronous: bool,
}

/// What a run says beside its events. It is printed after the run.
pub enum RunRemark {
    /// Console output of a hook script around the run.
    Log(String),
    /// A problem that does not affect the result.
    Warning(String),
    /// A write error.
    Error(String),
}

enum ForwarderMessage {
    Event(Box<RunEvent>),
    Remark(RunRemark),
    /// Request to signal when all earlier events are reported.
    Flush(FlushWaiter),
    /// Request to end the thread.
    End,
}

impl ForwarderMessage {
    /// Returns true if somebody waits for this message to be handled.
    fn is_urgent(&self) -> bool {
        match self {
            ForwarderMessage::Event(event) => matches!(**event, RunEvent::Ended(_)),
            ForwarderMessage::Remark(_) => false,
            ForwarderMessage::Flush(_) | ForwarderMessage::End => true,
        }
    }
}

/// Recipient of a flush signal.
enum FlushWaiter {
    /// A blocked thread.
    Thread(SyncSender<()>),
    /// An async task.
    Task(oneshot::Sender<()>),
}

impl EventForwarder {
    /// Starts the thread. With `synchronous` each event is reported before the run continues: when a human types,
    /// a prompt must not overtake earlier output.
    pub fn start(
        reporters: ReporterSet,
        saver: Option<Box<dyn RunSaver>>,
        synchronous: bool,
    ) -> std::io::Result<(EventForwarder, JoinHandle<ReporterSet>)> {
        let (send, waiting) = channel();
        let backlog = Arc::new(ReportBacklog::new(MAX_PENDING_EVENTS));
        let of_thread = backlog.clone();
        let reports = thread::Builder::new().name("reports".to_string());
        let reports = reports.spawn(move || forward_events(&waiting, &of_thread, reporters, saver))?;
        let thread = reports.thread().clone();
        Ok((EventForwarder { send, backlog, thread, synchronous }, reports))
    }

    /// Returns the back-pressure counter of the reporters.
    pub fn backlog(&self) -> Arc<ReportBacklog> {
        self.backlog.clone()
    }

    /// Forwards an event.
    pub fn report(&self, event: RunEvent) {
        self.backlog.add();
        self.send(ForwarderMessage::Event(Box::new(event)));
        if self.synchronous {
            let (done, wait) = sync_channel(1);
            self.send(ForwarderMessage::Flush(FlushWaiter::Thread(done)));
            let _ = wait.recv();
        }
    }

    /// Adds remarks, to be printed after the run.
    pub fn remark<R>(&self, kind: fn(String) -> RunRemark, remarks: R)
    where
        R: IntoIterator<Item: Into<String>>,
    {
        remarks.into_iter().for_each(|words| self.send(ForwarderMessage::Remark(kind(words.into()))));
    }

    /// Waits until all events are reported.
    pub async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        self.send(ForwarderMessage::Flush(FlushWaiter::Task(done)));
        let _ = wait.await;
    }

    /// Waits for the reporters, but not long. Returns false if they are stuck.
    pub fn flush_with_timeout(&self) -> bool {
        let (done, wait) = sync_channel(1);
        self.send(ForwarderMessage::Flush(FlushWaiter::Thread(done)));
        wait.recv_timeout(FLUSH_TIMEOUT).is_ok()
    }

    fn send(&self, message: ForwarderMessage) {
        let is_urgent = message.is_urgent();
        // A panic of the thread is raised by `finish`.
        let _ = self.send.send(message);
        if is_urgent {
            self.thread.unpark();
        }
    }

    /// Ends the thread and returns the reporters.
    pub fn finish(&self, reports: JoinHandle<ReporterSet>) -> ReporterSet {
        self.send(ForwarderMessage::End);
        reports.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
    }
}

fn forward_events(
    waiting: &Receiver<ForwarderMessage>,
    backlog: &ReportBacklog,
    mut reporters: ReporterSet,
    mut saver: Option<Box<dyn RunSaver>>,
) -> ReporterSet {
    // Reason why the run is no longer saved.
    let mut not_saved: Option<String> = None;
    let mut has_ended = false;
    while !has_ended {
        let first = match waiting.recv_timeout(TICK_INTERVAL) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => {
                reporters.tick();
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if !first.is_urgent() {
            thread::park_timeout(COLLECT_TIME);
        }
        let mut events = Vec::new();
        let mut settled = Vec::new();
        for message in std::iter::once(first).chain(waiting.try_iter().take(MAX_PENDING_EVENTS)) {
            match message {
                ForwarderMessage::Event(event) => events.push(*event),
                ForwarderMessage::Remark(RunRemark::Log(words)) => reporters.logs.push(words),
                ForwarderMessage::Remark(RunRemark::Warning(words)) => reporters.warnings.push(words),
                ForwarderMessage::Remark(RunRemark::Error(words)) => reporters.errors.push(words),
                ForwarderMessage::Flush(waiter) => settled.push(waiter),
                ForwarderMessage::End => has_ended = true,
            }
        }
        if let (Some(saver), None) = (&mut saver, &not_saved)
            && let Err(error) = saver.save_events(&events)
        {
            reporters.warnings.push(format!(
                "this run is not saved completely: {error}. Its results and reports are complete; run the cases again to save a run"
            ));
            not_saved = Some(error.to_string());
        }
        // The saved part must not look like a killed run.
        if let (Some(saver), Some(reason)) = (&mut saver, &not_saved) {
            for event in &events {
                if let RunEvent::Ended(summary) = event {
                    saver.end_incomplete(summary, reason);
                }
            }
        }
        for event in &events {
            reporters.report(event);
            backlog.remove(1);
        }
        reporters.flush();
        for waiter in settled {
            // The waiting side may be gone.
            match waiter {
                FlushWaiter::Thread(done) => drop(done.send(())),
                FlushWaiter::Task(done) => drop(done.send(())),
            }
        }
    }
    reporters.saved_run = saver.filter(|_| not_saved.is_none()).map(|saver| saver.id().to_string());
    reporters
}
