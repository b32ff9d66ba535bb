//! One request's part of a conversation: what it brings is given to the conversation, and what follows is told until
//! the conversation has nothing more to do by itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::FutureExt as _;
use hotseat_model::Tool;
use hotseat_trace::Payload;
use serde_json::Value;

use super::refusal::{Reason, Refusal};
use super::translate::{Failed, Question, Spent, Told, Translator};
use crate::conversation::{
    ApprovalVerdict, Caller, ContextEntry, Effect, Input, OperationAddress, OperationStatus, Phase, ReplyTo,
    State, Turn, Work,
};
use crate::failure::{ErrorCode, Failure};
use crate::ids::{CallId, TurnId};
use crate::live::{Handle, HostError, Signal, Watcher};
use crate::store::StoreError;

/// What a request brings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Brought {
    /// The tools that the client carries out.
    pub tools: Vec<Tool>,
    /// What it knows of its situation.
    pub context: Vec<ContextEntry>,
    /// The new shared state, if there is one.
    pub state: Option<Value>,
    /// What tools of the client have answered.
    pub results: Vec<(OperationAddress, Result<String, String>)>,
    /// What a person has answered.
    pub verdicts: Vec<(OperationAddress, ApprovalVerdict)>,
    /// Turns that wait for answers which will not come.
    pub given_up: Vec<TurnId>,
    /// What the user says.
    pub user: Option<(Arc<str>, String)>,
}

/// A request's part of a conversation.
pub struct Talk {
    handle: Handle,
    watcher: Watcher,
    translator: Translator,
    /// Whether something may wait for the client.
    asks: bool,
    /// Questions of agents that work apart, which nobody can be asked.
    unheard: Vec<OperationAddress>,
    failure: Option<Failed>,
}

/// Why the call of an agent that works apart is declined where a person would have to be asked.
const APART: &str = "nobody can be asked for an agent that works apart";

/// What comes next.
#[derive(Debug)]
pub enum Next {
    /// The client is told this.
    Told(Vec<Told>),
    /// There is no more: every turn of the request has ended, or waits for the client.
    Over(Ending),
}

/// How a request's part of a conversation ends.
#[derive(Debug, Clone, Default)]
pub struct Ending {
    /// Why a turn could not be held to its end.
    pub failure: Option<Failed>,
    /// What a person is asked.
    pub questions: Vec<Question>,
    /// Where the answers to these questions go, in the same order.
    pub asked: Vec<OperationAddress>,
    /// The calls that wait for the client.
    pub calls: Vec<ClientCall>,
    /// What the models were asked and replied.
    pub spent: Spent,
    /// Why the last reply ends where it does.
    pub stop: Option<Arc<str>>,
}

/// A call that waits for the client.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientCall {
    /// Its id.
    pub call: Arc<str>,
    /// The tool.
    pub tool: String,
    /// What it is given.
    pub input: Value,
}

impl Talk {
    /// Gives what a request brings to the conversation, which stands as in `state`.
    ///
    /// # Errors
    /// When the conversation does not take it.
    pub async fn begin(handle: Handle, state: &State, brought: Brought) -> Result<Talk, Refusal> {
        let watcher = handle.watch();
        let Brought { tools, context, state: shared, results, verdicts, given_up, user } = brought;
        let answered: BTreeSet<CallId> = results.iter().map(|(at, _)| at.call.clone()).collect();
        let offer = Input::ClientOffer { tools, context, state: shared };
        send(&handle, offer).await?;
        let addressed = results.iter().map(|(at, _)| at).chain(verdicts.iter().map(|(at, _)| at));
        let mut own: BTreeSet<TurnId> =
            addressed.filter_map(|at| clients_turn(state, &at.turn)).cloned().collect();
        for turn in given_up {
            let reason = "the user went on without an answer".to_string();
            send(&handle, Input::CancelTurn { turn, reason }).await?;
        }
        for (at, result) in results {
            let result = match result {
                // JSON is told as what it is.
                Ok(text) => Ok(serde_json::from_str(&text).unwrap_or(Value::String(text))),
                Err(message) => Err(Failure::business(ErrorCode::ExecutionFailed, message)),
            };
            send(&handle, Input::OperationDone { at, result }).await?;
        }
        for (at, verdict) in verdicts {
            send(&handle, Input::Approval { at, verdict }).await?;
        }
        if let Some((user, content)) = user {
            own.extend(send(&handle, Input::UserMessage { user, content, reply_to: None }).await?);
        }
        let translator = Translator::new(state, &own, &answered);
        // What waits already may go on waiting.
        let asks = state.outstanding.values().any(is_question);
        Ok(Talk { handle, watcher, translator, asks, unheard: Vec::new(), failure: None })
    }

    /// What comes next.
    ///
    /// # Errors
    /// When the conversation cannot go on.
    pub async fn next(&mut self) -> Result<Next, Refusal> {
        loop {
            if let Some(told) = self.ready() {
                return Ok(Next::Told(told));
            }
            while let Some(at) = self.unheard.last() {
                self.decline(at.clone(), APART).await?;
                self.unheard.pop();
            }
            if !self.translator.is_open() {
                return Ok(Next::Over(self.ending(None)));
            }
            if self.asks {
                let state = self.handle.state().await.map_err(broken)?;
                // All that led to this state has been signalled by now.
                if let Some(told) = self.ready() {
                    return Ok(Next::Told(told));
                }
                if self.translator.open_turns().all(|turn| waits(&state, &turn)) {
                    return Ok(Next::Over(self.ending(Some(&state))));
                }
            }
            let Some(signal) = self.watcher.next().await else {
                let message = "the conversation was closed before its turn had ended";
                return Err(Refusal::of(Reason::Failed, message));
            };
            let told = self.take(&signal);
            if !told.is_empty() {
                return Ok(Next::Told(told));
            }
        }
    }

    /// Everything that can be told at once; none if that is nothing.
    fn ready(&mut self) -> Option<Vec<Told>> {
        let mut told = Vec::new();
        while let Some(Some(signal)) = self.watcher.next().now_or_never() {
            told.extend(self.take(&signal));
        }
        (!told.is_empty()).then_some(told)
    }

    fn take(&mut self, signal: &Signal) -> Vec<Told> {
        if let Signal::Event(record) = signal {
            match &record.payload {
                Payload::InterruptRaised(asked) if !self.translator.is_here(record) => {
                    let turn = TurnId(asked.turn_id.clone());
                    let call = CallId(asked.interrupt_id.clone());
                    self.unheard.push(OperationAddress { turn, call, attempt: 1 });
                }
                Payload::InterruptRaised(_) => self.asks = true,
                Payload::ToolInvoked(call) if call.target_type.as_deref() == Some("client") => {
                    self.asks = true;
                }
                _ => {}
            }
        }
        let told = self.translator.take(signal);
        for told in &told {
            if let Told::TurnEnded { failure: Some(failure) } = told {
                self.failure.get_or_insert_with(|| failure.clone());
            }
        }
        told
    }

    fn ending(&self, state: Option<&State>) -> Ending {
        let of_the_request = |effect: &&Effect| match effect {
            Effect::AskApproval { at, .. } | Effect::AskClient { at, .. } => {
                self.translator.follows(&at.turn)
            }
            _ => false,
        };
        let open = || state.into_iter().flat_map(|state| state.outstanding.values()).filter(of_the_request);
        let question = |effect: &Effect| match effect {
            Effect::AskApproval { at, tool, input, message } => Some(Question {
                id: at.call.0.clone(),
                message: Some(message.clone()),
                call: Some(at.call.0.clone()),
                value: serde_json::json!({"toolName": tool, "input": input}),
            }),
            _ => None,
        };
        let call = |effect: &Effect| match effect {
            Effect::AskClient { at, tool, input } => {
                Some(ClientCall { call: at.call.0.clone(), tool: tool.clone(), input: input.clone() })
            }
            _ => None,
        };
        Ending {
            failure: self.failure.clone(),
            questions: open().filter_map(question).collect(),
            asked: state
                .into_iter()
                .flat_map(questions)
                .filter(|at| self.translator.follows(&at.turn))
                .cloned()
                .collect(),
            calls: open().filter_map(call).collect(),
            spent: self.translator.spent().clone(),
            stop: self.translator.stop().cloned(),
        }
    }

    /// Gives up the turns of the request.
    pub async fn give_up(&self, reason: &str) {
        for turn in self.translator.open_turns() {
            let reason = reason.to_string();
            // A conversation that takes nothing any more has no turn to give up.
            let _ = self.handle.send(Input::CancelTurn { turn, reason }).await;
        }
    }

    /// Nobody listens any more. Turns in which the agent has answered and waits for asynchronous tools go on; what they
    /// come to can be fetched later. Others are given up; returns when they have ended.
    pub async fn leave(self) {
        let Ok(state) = self.handle.state().await else { return };
        let goes_on = |turn: &TurnId| {
            let turn = state.turn(turn).filter(|turn| turn.phase == Phase::Idle);
            turn.is_some_and(Turn::is_asynchronous)
        };
        if !self.translator.open_turns().all(|turn| goes_on(&turn)) {
            self.cancel().await;
        }
    }

    /// Whether every turn of the request waits for nothing but asynchronous tools, or has ended.
    pub async fn is_asynchronous(&self) -> Result<bool, Refusal> {
        let state = self.handle.state().await.map_err(broken)?;
        let mut open = self.translator.open_turns();
        Ok(open.all(|turn| state.turn(&turn).is_some_and(Turn::is_asynchronous)))
    }

    /// Gives up the turns of the request, for nobody listens any more; returns when they have ended.
    pub async fn cancel(mut self) {
        self.give_up("the client went away").await;
        while self.translator.is_open() {
            let Some(signal) = self.watcher.next().await else { return };
            self.take(&signal);
        }
    }

    /// Answers a question in place of a person.
    ///
    /// # Errors
    /// When the conversation does not take it.
    pub async fn decline(&self, at: OperationAddress, reason: &str) -> Result<(), Refusal> {
        let verdict = ApprovalVerdict::Declined { reason: reason.to_string() };
        // That the question is no longer open is as good as an answer.
        self.handle.send(Input::Approval { at, verdict }).await.map(drop).map_err(broken)
    }
}

/// The questions to a person that are open.
pub fn questions(state: &State) -> impl Iterator<Item = &OperationAddress> {
    state.outstanding.values().filter_map(|effect| match effect {
        Effect::AskApproval { at, .. } => Some(at),
        _ => None,
    })
}

/// The calls that wait for the client.
pub fn client_calls(state: &State) -> impl Iterator<Item = (&OperationAddress, &str)> {
    state.outstanding.values().filter_map(|effect| match effect {
        Effect::AskClient { at, tool, .. } => Some((at, tool.as_str())),
        _ => None,
    })
}

/// The turn of the user that a turn works for.
fn clients_turn<'s>(state: &'s State, turn: &'s TurnId) -> Option<&'s TurnId> {
    let turn = state.turn(turn)?;
    match &turn.caller {
        Caller::User { .. } => Some(&turn.id),
        // A turn is called by one that began before it.
        Caller::Agent { turn_id, .. } if *turn_id != turn.id => clients_turn(state, turn_id),
        Caller::Agent { .. } | Caller::Workflow { .. } => None,
    }
}

/// Whether a turn was begun by a message of the user.
pub fn is_the_clients(turn: &Turn) -> bool {
    matches!(turn.caller, Caller::User { .. })
}

/// Whether a turn has ended or waits for nobody but the client.
pub fn waits(state: &State, turn: &TurnId) -> bool {
    let Some(turn) = state.turn(turn).filter(|turn| turn.is_active()) else { return true };
    let at_rest = matches!(turn.phase, Phase::Waiting { .. } | Phase::Idle);
    let mut open = turn.open_operations().peekable();
    at_rest
        && open.peek().is_some()
        && open.all(|operation| match &operation.work {
            Work::Client => true,
            _ if operation.status == OperationStatus::AwaitingApproval => true,
            Work::Agent(..) => {
                // An agent that has joined waits in a turn of this conversation.
                let mut called = state.active_turns().filter(|called| {
                    matches!(&called.reply_to, Some(ReplyTo::Call { conversation, at })
                        if *conversation == state.conversation && at.call == operation.call)
                });
                called.next().is_some_and(|called| waits(state, &called.id))
            }
            Work::Task(_) | Work::Workflow(_) => false,
        })
}

fn is_question(effect: &Effect) -> bool {
    matches!(effect, Effect::AskApproval { .. } | Effect::AskClient { .. })
}

/// Gives an input to the conversation. The turn it began, if any.
async fn send(handle: &Handle, input: Input) -> Result<Option<TurnId>, Refusal> {
    let is_offer = matches!(input, Input::ClientOffer { .. });
    let sent = handle.send(input).await.map_err(broken)?;
    match sent.ignored {
        // Of an offer it is a part that is left out, which was looked at before.
        Some(reason) if !is_offer => Err(Refusal::conflict(reason)),
        _ => Ok(sent.turn),
    }
}

/// What a client is told of a conversation that cannot go on.
pub fn broken(error: HostError) -> Refusal {
    let reason = match error {
        HostError::OtherAgent { .. } => Reason::Conflict,
        HostError::UnknownConversation(_) => Reason::NotFound,
        HostError::Full(_) | HostError::Store(StoreError { is_full: true, .. }) => Reason::Full,
        HostError::UnknownAgent(_) | HostError::Store(_) | HostError::Gone => Reason::Failed,
    };
    Refusal::of(reason, error.to_string())
}
