//! A run is kept, and everybody who reports is told of it, by a thread of its own.
//!
//! What happened is kept first: whatever a person or a program was told of a run is there after the process was killed.
//! A run does not wait for files and terminals unless they are slower than it by many events.

use std::panic;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use hotseat::run::RunEvent;
use hotseat::store::Keeping;

use super::reporters::Reporters;

/// How many events may wait to be told.
const WAITING: usize = 256;

/// The thread that tells.
pub struct Telling {
    /// None once there is nothing more to tell.
    send: Option<SyncSender<Message>>,
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
    Settle(SyncSender<()>),
}

impl Telling {
    /// Begins to tell. Where somebody types while the run goes on, each event is told `at_once`: a question must not
    /// overtake what was said before it.
    pub fn begin(reporters: Reporters, keeping: Option<Keeping>, at_once: bool) -> std::io::Result<Telling> {
        let (send, waiting) = sync_channel(WAITING);
        let tells = thread::Builder::new().name("reports".to_string());
        let thread = tells.spawn(move || tell(&waiting, reporters, keeping))?;
        let (logs, warnings, errors) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Telling { send: Some(send), thread, at_once, logs, warnings, errors })
    }

    /// Tells of an event.
    pub fn report(&self, event: RunEvent) {
        self.send(Message::Event(Box::new(event)));
        if self.at_once {
            self.settle();
        }
    }

    /// Waits until everything is told.
    pub fn settle(&self) {
        let (told, wait) = sync_channel(1);
        self.send(Message::Settle(told));
        let _ = wait.recv();
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

fn tell(waiting: &Receiver<Message>, mut reporters: Reporters, mut keeping: Option<Keeping>) -> Reporters {
    while let Ok(first) = waiting.recv() {
        let mut events = Vec::new();
        let mut settled = Vec::new();
        for message in std::iter::once(first).chain(waiting.try_iter().take(WAITING)) {
            match message {
                Message::Event(event) => events.push(*event),
                Message::Settle(told) => settled.push(told),
            }
        }
        if let Some(Err(error)) = keeping.as_mut().map(|keeping| keeping.keep(&events)) {
            reporters.warnings.push(format!("this run is not kept: {error}"));
            keeping = None;
        }
        events.iter().for_each(|event| reporters.report(event));
        for told in settled {
            let _ = told.send(());
        }
    }
    reporters.kept = keeping.map(|keeping| keeping.id().to_string());
    reporters
}
