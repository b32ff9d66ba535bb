//! One request to a conversation: passes on the client's input and returns updates until the conversation
//! ends or waits for the client.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::FutureExt as _;
use hotseat_model::ModelTool;
use hotseat_trace::Payload;
use serde_json::Value;

use super::request_error::{RequestError, RequestErrorKind};
use super::translate::{ApprovalPrompt, ClientUpdate, TurnFailure, TurnTranslator, UsageByModel};
use crate::conversation::{
    ApprovalVerdict, ContextEntry, ConversationEffect, ConversationInput, ConversationState,
    OperationAddress, TurnCaller, TurnPhase, TurnState,
};
use crate::failure::{ErrorCode, WorkFailure};
use crate::ids::{CallId, TurnId};
use crate::live::{ConversationHandle, HostError, Signal, Watcher};
use crate::store::ConversationStoreError;

/// Answer of a tool that the client executes.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientToolAnswer {
    /// The result as text.
    Result(String),
    /// The message of an error.
    Error(String),
}

/// Input of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientInput {
    /// Tools that the client executes.
    pub tools: Vec<ModelTool>,
    /// Context that the client provides.
    pub context: Vec<ContextEntry>,
    /// The new shared state, if any.
    pub state: Option<Value>,
    /// Results of the client's tools.
    pub results: Vec<(OperationAddress, ClientToolAnswer)>,
    /// Decisions of a human about approvals.
    pub verdicts: Vec<(OperationAddress, ApprovalVerdict)>,
    /// Turns that wait for answers that will not arrive.
    pub abandoned_turns: Vec<TurnId>,
    /// User name and text of the user message.
    pub user: Option<(Arc<str>, String)>,
    /// The id that the client gave to the user message.
    pub message_id: Option<Arc<str>>,
}

/// One request to a conversation and its answer.
pub struct ClientExchange {
    handle: ConversationHandle,
    watcher: Watcher,
    translator: TurnTranslator,
    /// True if something may wait for the client.
    may_wait: bool,
    /// Approvals requested by agents in separate conversations, which the client cannot answer.
    unreachable_approvals: Vec<OperationAddress>,
    failure: Option<TurnFailure>,
}

/// Reason for declining an approval that an agent in a separate conversation requests.
const UNREACHABLE_APPROVAL_REASON: &str =
    "approvals are not available to agents that run in a separate conversation";

/// Next step of an exchange.
#[derive(Debug)]
pub enum ExchangeStep {
    Updates(Vec<ClientUpdate>),
    /// The exchange is over: every turn of the request has ended or waits for the client.
    Finished(ExchangeEnd),
}

/// Final state of an exchange.
#[derive(Debug, Clone, Default)]
pub struct ExchangeEnd {
    /// Failure of a turn, if one failed.
    pub failure: Option<TurnFailure>,
    /// Questions to a human.
    pub questions: Vec<ApprovalPrompt>,
    /// Addresses for the answers to all open questions, including those of joined agents.
    pub approval_addresses: Vec<OperationAddress>,
    /// Calls that wait for the client.
    pub calls: Vec<PendingClientCall>,
    /// Token usage by model.
    pub usage: UsageByModel,
    /// Stop reason of the last reply.
    pub stop_reason: Option<Arc<str>>,
}

impl ExchangeEnd {
    /// Returns why the answer ends, as chat completions name it.
    pub fn finish_reason(&self) -> &'static str {
        match (self.calls.is_empty(), self.stop_reason.as_deref()) {
            (false, _) => "tool_calls",
            (true, Some("max_tokens")) => "length",
            (true, Some("refusal")) => "content_filter",
            (true, _) => "stop",
        }
    }
}

/// Tool call that waits for the client.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingClientCall {
    /// Address of the call.
    pub at: OperationAddress,
    /// The name of the tool.
    pub tool: String,
    /// Input of the call.
    pub input: Value,
}

impl ClientExchange {
    /// Passes the input of a request to the conversation, which is in `state`.
    ///
    /// # Errors
    /// If the conversation rejects the input.
    pub async fn start(
        handle: ConversationHandle,
        state: &ConversationState,
        brought: ClientInput,
    ) -> Result<ClientExchange, RequestError> {
        let watcher = handle.watch();
        let ClientInput {
            tools,
            context,
            state: shared,
            results,
            verdicts,
            abandoned_turns: given_up,
            user,
            message_id,
        } = brought;
        let answered: BTreeSet<CallId> = results.iter().map(|(at, _)| at.call.clone()).collect();
        // Clients repeat their offer in each request; stored again, it could exceed the conversation.
        let shared = shared.filter(|shared| *shared != state.shared);
        if shared.is_some() || !state.offer.contains_exactly(&tools, &context) {
            send(&handle, ConversationInput::ClientOffer { tools, context, state: shared }).await?;
        }
        let addressed = results.iter().map(|(at, _)| at).chain(verdicts.iter().map(|(at, _)| at));
        let mut own: BTreeSet<TurnId> =
            addressed.filter_map(|at| user_turn(state, &at.turn)).cloned().collect();
        for turn in given_up {
            let reason = "the user continued without answering".to_string();
            send(&handle, ConversationInput::CancelTurn { turn, reason }).await?;
        }
        for (at, result) in results {
            let result = match result {
                // JSON text becomes a JSON value.
                ClientToolAnswer::Result(text) => {
                    Ok(Arc::new(serde_json::from_str(&text).unwrap_or(Value::String(text))))
                }
                ClientToolAnswer::Error(message) => Err(WorkFailure::execution(message)),
            };
            send(&handle, ConversationInput::OperationDone { at, result }).await?;
        }
        for (at, verdict) in verdicts {
            send(&handle, ConversationInput::Approval { at, verdict }).await?;
        }
        if let Some((user, content)) = user {
            let said =
                ConversationInput::UserMessage { user, content, reply_to: None, client_id: message_id };
            own.extend(send(&handle, said).await?);
        }
        let translator = TurnTranslator::new(state, &own, &answered);
        // Something may already be waiting.
        let asks = open_approvals(state).next().is_some() || client_calls(state).next().is_some();
        Ok(ClientExchange {
            handle,
            watcher,
            translator,
            may_wait: asks,
            unreachable_approvals: Vec::new(),
            failure: None,
        })
    }

    /// Waits for the next step.
    ///
    /// # Errors
    /// If the conversation cannot continue.
    pub async fn next(&mut self) -> Result<ExchangeStep, RequestError> {
        loop {
            if let Some(told) = self.ready_updates() {
                return Ok(ExchangeStep::Updates(told));
            }
            while let Some(at) = self.unreachable_approvals.last() {
                self.decline(at.clone(), UNREACHABLE_APPROVAL_REASON).await?;
                self.unreachable_approvals.pop();
            }
            if !self.translator.is_open() {
                return Ok(ExchangeStep::Finished(self.end_state(None)));
            }
            if self.may_wait {
                let state = self.handle.state().await.map_err(host_error)?;
                // All signals up to this state have been sent by now.
                if let Some(told) = self.ready_updates() {
                    return Ok(ExchangeStep::Updates(told));
                }
                if self.translator.open_turns().all(|turn| state.is_waiting_for_client(&turn)) {
                    return Ok(ExchangeStep::Finished(self.end_state(Some(&state))));
                }
            }
            let Some(signal) = self.watcher.next().await else {
                let message = "the conversation was closed before its turn ended";
                return Err(RequestError::new(RequestErrorKind::Failed, message));
            };
            let told = self.handle_signal(&signal);
            if !told.is_empty() {
                return Ok(ExchangeStep::Updates(told));
            }
        }
    }

    /// Returns the present state of the conversation.
    ///
    /// # Errors
    /// If the conversation is closed.
    pub async fn state(&self) -> Result<ConversationState, RequestError> {
        self.handle.state().await.map_err(host_error)
    }

    /// Returns true for turns whose updates the exchange passes on.
    pub fn follows(&self, turn: &TurnId) -> bool {
        self.translator.follows(turn)
    }

    /// Returns all updates that are available without waiting, or `None`.
    fn ready_updates(&mut self) -> Option<Vec<ClientUpdate>> {
        let mut told = Vec::new();
        while let Some(Some(signal)) = self.watcher.next().now_or_never() {
            told.extend(self.handle_signal(&signal));
        }
        (!told.is_empty()).then_some(told)
    }

    fn handle_signal(&mut self, signal: &Signal) -> Vec<ClientUpdate> {
        if let Signal::Event(record) = signal {
            match &record.payload {
                Payload::InterruptRaised(asked) if !self.translator.is_own_event(record) => {
                    let turn = TurnId(asked.turn_id.clone());
                    let call = CallId(asked.interrupt_id.clone());
                    self.unreachable_approvals.push(OperationAddress { turn, call, attempt: 1 });
                }
                Payload::InterruptRaised(_) => self.may_wait = true,
                Payload::ToolInvoked(call) if call.target_type.as_deref() == Some("client") => {
                    self.may_wait = true;
                }
                _ => {}
            }
        }
        let told = self.translator.translate(signal);
        for told in &told {
            if let ClientUpdate::TurnEnded { failure: Some(failure) } = told {
                self.failure.get_or_insert_with(|| failure.clone());
            }
        }
        told
    }

    fn end_state(&self, state: Option<&ConversationState>) -> ExchangeEnd {
        let of_the_request = |effect: &&ConversationEffect| match effect {
            ConversationEffect::AskApproval { at, .. } | ConversationEffect::AskClient { at, .. } => {
                self.translator.follows(&at.turn)
            }
            _ => false,
        };
        let open = || state.into_iter().flat_map(|state| state.outstanding.values()).filter(of_the_request);
        let call = |effect: &ConversationEffect| match effect {
            ConversationEffect::AskClient { at, tool, input } => {
                Some(PendingClientCall { at: at.clone(), tool: tool.clone(), input: input.clone() })
            }
            _ => None,
        };
        ExchangeEnd {
            failure: self.failure.clone(),
            questions: open().filter_map(approval_prompt).collect(),
            approval_addresses: state
                .into_iter()
                .flat_map(open_approvals)
                .filter(|at| self.translator.follows(&at.turn))
                .cloned()
                .collect(),
            calls: open().filter_map(call).collect(),
            usage: self.translator.usage().clone(),
            stop_reason: self.translator.stop_reason().cloned(),
        }
    }

    /// Cancels the open turns of the request.
    pub async fn cancel_turns(&self, reason: &str) {
        for turn in self.translator.open_turns() {
            let reason = reason.to_string();
            // A closed conversation has no turns to cancel.
            let _ = self.handle.send(ConversationInput::CancelTurn { turn, reason }).await;
        }
    }

    /// Handles the disconnect of the client. Turns that have answered and wait for asynchronous tools
    /// continue; their results can be fetched later. Otherwise all turns are cancelled, and this returns when
    /// they have ended.
    pub async fn detach(self) {
        let Ok(state) = self.handle.state().await else { return };
        let keeps_running = |turn: &TurnId| {
            let turn = state.turn(turn).filter(|turn| turn.phase == TurnPhase::Idle);
            turn.is_some_and(TurnState::has_async_operations)
        };
        if !self.translator.open_turns().all(|turn| keeps_running(&turn)) {
            self.cancel().await;
        }
    }

    /// Returns true if every open turn of the request waits only for asynchronous tools.
    pub async fn is_asynchronous(&self) -> Result<bool, RequestError> {
        let state = self.handle.state().await.map_err(host_error)?;
        let mut open = self.translator.open_turns();
        Ok(open.all(|turn| state.turn(&turn).is_some_and(TurnState::has_async_operations)))
    }

    /// Cancels the turns of the request after the client disconnected; returns when they have ended.
    pub async fn cancel(mut self) {
        self.cancel_turns("the client disconnected").await;
        while self.translator.is_open() {
            let Some(signal) = self.watcher.next().await else { return };
            self.handle_signal(&signal);
        }
    }

    /// Declines an approval because no human can be asked.
    ///
    /// # Errors
    /// If the conversation rejects the input.
    pub async fn decline(&self, at: OperationAddress, reason: &str) -> Result<(), RequestError> {
        let verdict = ApprovalVerdict::Unavailable { reason: reason.to_string() };
        // A question that is no longer open counts as answered.
        self.handle.send(ConversationInput::Approval { at, verdict }).await.map(drop).map_err(host_error)
    }

    /// Declines a call because the client does not run its tool.
    ///
    /// # Errors
    /// If the conversation rejects the input.
    pub async fn decline_call(&self, at: OperationAddress, reason: &str) -> Result<(), RequestError> {
        let result = Err(WorkFailure::business(ErrorCode::PermissionDenied, reason));
        // A call that is no longer open has ended otherwise.
        self.handle.send(ConversationInput::OperationDone { at, result }).await.map(drop).map_err(host_error)
    }
}

/// Returns the question of an effect that asks for an approval.
fn approval_prompt(effect: &ConversationEffect) -> Option<ApprovalPrompt> {
    match effect {
        ConversationEffect::AskApproval { at, tool, input, message } => Some(ApprovalPrompt {
            id: at.call.0.clone(),
            message: Some(message.clone()),
            call: Some(at.call.0.clone()),
            value: serde_json::json!({"toolName": tool, "input": input}),
        }),
        _ => None,
    }
}

/// Returns the questions of the open approvals.
pub fn open_questions(state: &ConversationState) -> impl Iterator<Item = ApprovalPrompt> {
    state.outstanding.values().filter_map(approval_prompt)
}

/// Returns the addresses of the open approvals.
pub fn open_approvals(state: &ConversationState) -> impl Iterator<Item = &OperationAddress> {
    state.outstanding.values().filter_map(|effect| match effect {
        ConversationEffect::AskApproval { at, .. } => Some(at),
        _ => None,
    })
}

/// Returns the addresses and tool names of the calls that wait for the client.
pub fn client_calls(state: &ConversationState) -> impl Iterator<Item = (&OperationAddress, &str)> {
    state.outstanding.values().filter_map(|effect| match effect {
        ConversationEffect::AskClient { at, tool, .. } => Some((at, tool.as_str())),
        _ => None,
    })
}

/// Returns the user's turn that a turn works for.
fn user_turn<'s>(state: &'s ConversationState, turn: &'s TurnId) -> Option<&'s TurnId> {
    let turn = state.turn(turn)?;
    match &turn.caller {
        TurnCaller::User { .. } => Some(&turn.id),
        // A calling turn always starts before the turn it calls.
        TurnCaller::Agent { turn_id, .. } if *turn_id != turn.id => user_turn(state, turn_id),
        TurnCaller::Agent { .. } | TurnCaller::Workflow { .. } => None,
    }
}

/// Returns true if a turn was started by a user message.
pub fn is_user_turn(turn: &TurnState) -> bool {
    matches!(turn.caller, TurnCaller::User { .. })
}

/// Sends an input to the conversation. Returns the turn that it started, if any.
async fn send(handle: &ConversationHandle, input: ConversationInput) -> Result<Option<TurnId>, RequestError> {
    let is_offer = matches!(input, ConversationInput::ClientOffer { .. });
    let sent = handle.send(input).await.map_err(host_error)?;
    match sent.ignored {
        // An offer is ignored only in part, and that part was checked before.
        Some(reason) if !is_offer => Err(RequestError::conflict(reason)),
        _ => Ok(sent.turn),
    }
}

/// Converts an error of the conversation's host.
pub fn host_error(error: HostError) -> RequestError {
    let reason = match error {
        HostError::OtherAgent { .. } => RequestErrorKind::Conflict,
        HostError::UnknownConversation(_) => RequestErrorKind::NotFound,
        HostError::Full(_) | HostError::Store(ConversationStoreError { is_full: true, .. }) => {
            RequestErrorKind::Overloaded
        }
        HostError::UnknownAgent(_) | HostError::Store(_) | HostError::Closed => RequestErrorKind::Failed,
    };
    RequestError::new(reason, error.to_string())
}
