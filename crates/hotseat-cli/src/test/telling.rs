//! A run is kept, and everybody who reports is told of it, by a thread of its own.
//!
//! What happened is kept first: whatever a person or a program was told of a run is there after the process was killed.
//! A run does not wait for files and terminals; where they are slower than it by many events, no new conversation begins.

use std::panic;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hotseat::run::{Pace, RunEvent};
use hotseat::store::Keeping;
use tokio::sync::oneshot;

use super::reporters::Reporters;

/// How many events may wait to be told before no new conversation begins.
const WAITING: usize = 256;
/// How long a run that is broken off for the third time waits for those who are told of it.
const PATIENCE: Duration = Duration::from_secs(2);

/// The thread that tells.
pub struct Telling {
    /// None once there is nothing more to tell.
    send: Option<Sender<Message>>,
    pace: Arc<Pace>,
    thread: JoinHandle<Reporters>,
    /// Whether each event is told before the run goes on.
    at_once: bool,
    /// What functions of scripts around the run said to `console`.
    pub logs: Vec<String>,
    /// What went wrong and changes nothing.
    pub warnings: Vec<String>,
    /// What could not be written.
    pub errors: Vec<String>,
}

enum Message {
    Event(Box<RunEvent>),
    /// Somebody waits until all that was sent before is told.
    Settle(Waiter),
}

/// Who waits until all is told.
enum Waiter {
    /// A thread, which does nothing else meanwhile.
    Thread(SyncSender<()>),
    /// A task.
    Task(oneshot::Sender<()>),
}

impl Telling {
    /// Begins to tell. Where somebody types while the run goes on, each event is told `at_once`: a question must not
    /// overtake what was said before it.
    pub fn begin(reporters: Reporters, keeping: Option<Keeping>, at_once: bool) -> std::io::Result<Telling> {
        let (send, waiting) = channel();
        let pace = Arc::new(Pace::new(WAITING));
        let tells = thread::Builder::new().name("reports".to_string());
        let seen = pace.clone();
        let thread = tells.spawn(move || tell(&waiting, &seen, reporters, keeping))?;
        let (logs, warnings, errors) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Telling { send: Some(send), pace, thread, at_once, logs, warnings, errors })
    }

    /// How far those who are told lag behind.
    pub fn pace(&self) -> Arc<Pace> {
        self.pace.clone()
    }

    /// Tells of an event.
    pub fn report(&self, event: RunEvent) {
        self.pace.add();
        self.send(Message::Event(Box::new(event)));
        if self.at_once {
            let (told, wait) = sync_channel(1);
            self.send(Message::Settle(Waiter::Thread(told)));
            let _ = wait.recv();
        }
    }

    /// Waits until everything is told.
    pub async fn settled(&self) {
        let (told, wait) = oneshot::channel();
        self.send(Message::Settle(Waiter::Task(told)));
        let _ = wait.await;
    }

    /// Whether everything is told within a moment: nobody may be there who reads it.
    pub fn settles_soon(&self) -> bool {
        let (told, wait) = sync_channel(1);
        self.send(Message::Settle(Waiter::Thread(told)));
        wait.recv_timeout(PATIENCE).is_ok()
    }

    fn send(&self, message: Message) {
        // A thread that broke off shows when its end is waited for.
        if let Some(send) = &self.send {
            let _ = send.send(message);
        }
    }

    /// There is nothing more to tell.
    pub fn end(mut self) -> Reporters {
        self.send = None;
        let mut reporters = self.thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
        reporters.logs.extend(self.logs);
        reporters.warnings.extend(self.warnings);
        reporters.errors.extend(self.errors);
        reporters
    }
}

fn tell(
    waiting: &Receiver<Message>,
    pace: &Pace,
    mut reporters: Reporters,
    mut keeping: Option<Keeping>,
) -> Reporters {
    // Why the run is not kept any more.
    let mut not_kept: Option<String> = None;
    while let Ok(first) = waiting.recv() {
        let mut events = Vec::new();
        let mut settled = Vec::new();
        for message in std::iter::once(first).chain(waiting.try_iter().take(WAITING)) {
            match message {
                Message::Event(event) => events.push(*event),
                Message::Settle(waiter) => settled.push(waiter),
            }
        }
        if let (Some(keeping), None) = (&mut keeping, &not_kept)
            && let Err(error) = keeping.keep(&events)
        {
            reporters.warnings.push(format!("this run is not kept: {error}"));
            not_kept = Some(error.to_string());
        }
        // What is kept of it must not look like a run that was killed.
        if let (Some(keeping), Some(why)) = (&mut keeping, &not_kept) {
            for event in &events {
                if let RunEvent::Ended(summary) = event {
                    let _ = keeping.end_incomplete(summary, why);
                }
            }
        }
        for event in &events {
            reporters.report(event);
            pace.take(1);
        }
        for waiter in settled {
            // Whoever waited may have gone.
            match waiter {
                Waiter::Thread(told) => drop(told.send(())),
                Waiter::Task(told) => drop(told.send(())),
            }
        }
    }
    reporters.kept = keeping.filter(|_| not_kept.is_none()).map(|keeping| keeping.id().to_string());
    reporters
}
