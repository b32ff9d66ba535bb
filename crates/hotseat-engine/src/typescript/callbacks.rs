//! Runs judging functions of a test while its session is busy: the waiting test receives a call, answers it,
//! and continues to wait.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hotseat_script::Scripts;
use hotseat_script::thread::StopSignal;
use hotseat_trace::{ConversationTurn, TurnScope};
use serde_json::{Value, json};
use tokio::sync::{Mutex as Waiting, mpsc, oneshot};

use super::to_json;
use crate::session::{ProgramCheckError, ProgramChecks, unseen_calls_reason};
use hotseat_targets::BoxFuture;

/// A command of a test, and the channel for its reply.
pub type TestCommand = (Value, oneshot::Sender<Value>);

/// Reply channel of the waiting test, and the number of turns it knows.
type WaitingReply = (oneshot::Sender<Value>, usize);

/// Sequence of commands of a test.
#[derive(Clone)]
pub struct TestChannel {
    commands: Arc<Waiting<mpsc::Receiver<TestCommand>>>,
    waiting: Arc<Mutex<Option<WaitingReply>>>,
    /// Signal that a running test checks.
    stop: StopSignal,
    /// Time after which a function that does not check its limits is given up.
    longest_hang: Duration,
    /// The files of the test.
    scripts: Scripts,
}

impl TestChannel {
    pub fn new(
        asked: mpsc::Receiver<TestCommand>,
        stop: StopSignal,
        longest_hang: Duration,
        scripts: Scripts,
    ) -> TestChannel {
        let commands = Arc::new(Waiting::new(asked));
        TestChannel { commands, waiting: Arc::default(), stop, longest_hang, scripts }
    }

    /// Returns the next command, or `None` when the test sends no more.
    pub async fn next(&self) -> Option<Value> {
        let (command, reply) = self.commands.lock().await.recv().await?;
        let known = command["known"].as_u64().and_then(|known| usize::try_from(known).ok()).unwrap_or(0);
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some((reply, known));
        Some(command)
    }

    /// Returns the number of turns that the waiting test knows.
    pub fn known_turns(&self) -> usize {
        let waits = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waits.as_ref().map_or(0, |(_, known)| *known)
    }

    /// Sends a reply to the test.
    pub fn reply(&self, told: Value) {
        let waits = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((reply, _)) = waits {
            // The test may have ended.
            let _ = reply.send(told);
        }
    }

    /// Calls a function of the test on the turns of a scope.
    async fn call(&self, function: usize, scope: TurnScope<'_>) -> Result<bool, ProgramCheckError> {
        let number = |turn: Option<&ConversationTurn>| turn.map(|turn| turn.number);
        self.reply(json!({
            "call": function,
            "condition": scope.is_condition(),
            "first": number(scope.turns().first()),
            "turn": number(scope.turns().last()),
            "turns": to_json::turns_from(scope.turns_up_to_end(), self.known_turns()),
            "unseen": scope.unseen_calls().map(unseen_calls_reason),
        }));
        let answer = loop {
            match tokio::time::timeout(self.longest_hang, self.next()).await {
                Err(_) if self.stop.take_checked() => {}
                answer => break answer,
            }
        };
        match answer {
            Err(_) => Err(ProgramCheckError::Timeout(self.longest_hang)),
            Ok(None) => Err(ProgramCheckError::Ended),
            Ok(Some(answer)) => match (answer["error"].as_str(), answer["value"].as_bool()) {
                (Some(words), _) => {
                    let frames = self.scripts.frames(answer["at"].as_str().unwrap_or_default());
                    let place = frames.into_iter().next().map(|frame| frame.place);
                    Err(ProgramCheckError::Thrown { message: words.to_string(), place })
                }
                (None, Some(holds)) => Ok(holds),
                (None, None) => Err(ProgramCheckError::NoBoolean),
            },
        }
    }
}

impl ProgramChecks for TestChannel {
    fn evaluate<'a>(
        &'a self,
        function: usize,
        scope: TurnScope<'a>,
    ) -> BoxFuture<'a, Result<bool, ProgramCheckError>> {
        Box::pin(self.call(function, scope))
    }
}
