//! The line between an example, which runs on a thread of its own, and the session that it drives.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotseat_trace as trace;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::matcher::Assertion;
use super::panics::CaseEnded;
use super::place::At;
use super::said::Said;
use super::simulator::{Brief, Simulated};
use super::topics::Graph;
use super::tree::Example;
use super::views::Evaluation;
use crate::checks::Strength;

/// What an example asks of its session.
pub(super) enum Order {
    /// The user says something.
    Say { said: Said, reply: Reply<()> },
    /// A simulated user speaks.
    Simulate { brief: Box<Brief>, at: At, reply: Reply<Simulated> },
    /// The conversation goes through these topics.
    Graph { graph: Graph, at: At, reply: std::sync::mpsc::Sender<Result<(), Over>> },
    /// Something is asserted.
    Check { asserted: Asserted, reply: Reply<bool> },
    /// The example is left out from here on.
    Skip(String),
    /// The test is wrong.
    Wrong { words: String, at: At },
    /// A line for whoever wants to know what the test said.
    Log(String),
}

impl Order {
    /// Where it is asked for, if somebody waits for what comes of it.
    pub(super) fn is_waited_for(&self) -> Option<At> {
        match self {
            Order::Say { said, .. } => Some(said.at),
            Order::Check { asserted, .. } => Some(asserted.at),
            Order::Simulate { at, .. } | Order::Graph { at, .. } => Some(*at),
            Order::Skip(_) | Order::Wrong { .. } | Order::Log(_) => None,
        }
    }
}

/// Where the answer to an order goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Over>>;

/// The case has ended; there is nothing more to ask of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Over;

/// Something that is asserted, and what of the conversation it is about.
pub(super) struct Asserted {
    pub assertion: Assertion,
    pub strength: Strength,
    pub message: Option<String>,
    pub at: At,
}

/// An example's end of the line.
#[derive(Clone)]
pub(super) struct Line {
    orders: mpsc::UnboundedSender<Order>,
    seen: Arc<Mutex<Seen>>,
    pub example: Arc<Example>,
}

/// What the agent was told beside what the user said, by the numbers of the turns.
pub(super) type OptionsOfTurns = Arc<BTreeMap<usize, Value>>;

/// What of the session an example can see.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub conversation: Arc<trace::Conversation>,
    pub evaluations: Arc<Vec<Evaluation>>,
    /// What the agent was told beside what the user said, turn by turn.
    pub options: OptionsOfTurns,
    /// Whether the case has ended.
    pub over: bool,
}

thread_local! {
    /// The example that this thread runs.
    static CURRENT: RefCell<Option<Line>> = const { RefCell::new(None) };
}

/// The lines of all examples that run.
static RUNNING: Mutex<Vec<Line>> = Mutex::new(Vec::new());

/// What was asserted when no example ran that could fail by it, in words.
static LOST: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// An example that a thread runs, until this is dropped.
pub(super) struct Entered(Arc<Mutex<Seen>>);

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.with(|current| *current.borrow_mut() = None);
        locked(&RUNNING).retain(|line| !Arc::ptr_eq(&line.seen, &self.0));
    }
}

/// What was asserted when no example ran that could fail by it, in words; they are given once.
pub(super) fn lost() -> Vec<String> {
    std::mem::take(&mut locked(&LOST))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Line({})", self.example.name)
    }
}

impl Line {
    pub(super) fn new(
        orders: mpsc::UnboundedSender<Order>,
        seen: Arc<Mutex<Seen>>,
        example: Arc<Example>,
    ) -> Line {
        Line { orders, seen, example }
    }

    /// This thread runs the example of this line until what is returned is dropped.
    pub(super) fn enter(&self) -> Entered {
        CURRENT.with(|current| *current.borrow_mut() = Some(self.clone()));
        locked(&RUNNING).push(self.clone());
        Entered(self.seen.clone())
    }

    /// The line of the example that asserts something here. On a thread of the test's own, that is the only example that
    /// runs. Where several do, nobody can tell which is meant, and none of them passes.
    pub(super) fn current(at: At) -> Line {
        if let Some(line) = CURRENT.with(|current| current.borrow().clone()) {
            return line;
        }
        let running = locked(&RUNNING).clone();
        match running.as_slice() {
            [line] => line.clone(),
            [] => {
                let words = format!("something was asserted on a thread when no example ran any more ({at})");
                locked(&LOST).push(words.clone());
                panic!("{words}");
            }
            several => {
                let words = "a value was asserted on another thread while several examples ran, and nobody can tell which one is meant; assert of `agent` or `conversation`, or in the example itself";
                for line in several {
                    line.tell(Order::Wrong { words: words.to_string(), at });
                }
                panic!("{words} ({at})");
            }
        }
    }

    fn is_current(&self) -> bool {
        let is_own = |own: &Line| Arc::ptr_eq(&own.seen, &self.seen);
        CURRENT.with(|current| current.borrow().as_ref().is_some_and(is_own))
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        locked(&self.seen)
    }

    /// Asks for something that nobody waits for.
    pub(super) fn tell(&self, order: Order) {
        // Where nobody listens any more, the case has ended.
        let _ = self.orders.send(order);
    }

    /// Asks the session for something, and ends the example where the case ends by it or has ended before.
    pub(super) async fn ask<T>(&self, order: impl FnOnce(Reply<T>) -> Order) -> T {
        let (reply, answer) = oneshot::channel();
        let order = order(reply);
        let at = order.is_waited_for();
        self.tell(order);
        match answer.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(Over)) => end(),
            Err(_) => {
                // On a thread of the test's own that may outlast it, nobody else would notice.
                if let Some(at) = at.filter(|_| !self.is_current()) {
                    let name = &self.example.name;
                    let words =
                        format!("`{name}` had ended before something was asserted on a thread ({at})");
                    locked(&LOST).push(words);
                }
                end()
            }
        }
    }

    /// The same for who cannot wait.
    pub(super) fn ask_now<T>(
        &self,
        order: impl FnOnce(std::sync::mpsc::Sender<Result<T, Over>>) -> Order,
    ) -> T {
        let (reply, answer) = std::sync::mpsc::channel();
        self.tell(order(reply));
        match answer.recv() {
            Ok(Ok(answer)) => answer,
            Ok(Err(Over)) | Err(_) => end(),
        }
    }

    /// The test is wrong: its case fails, and it ends here.
    pub(super) fn wrong(&self, words: impl Into<String>, at: At) -> ! {
        self.tell(Order::Wrong { words: words.into(), at });
        end()
    }
}

/// Leaves the example. What was recorded says what it came to; nobody who catches this can change that.
pub(super) fn end() -> ! {
    resume_unwind(Box::new(CaseEnded))
}
