//! One call of a served model: the fault that it gets, the model, its events, and the pieces of the answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::conversation::{ConversationState, ModelState};
use super::faults::FaultKind;
use super::{Dialect, ServedModelEventKind};
use crate::{
    Model, ModelError, ModelErrorKind, ModelReply, ModelRequest, ReplyAssembler, ReplyDelta, StopReason,
};

/// A piece of the answer to a call.
pub(super) enum CallPiece {
    /// A piece of the reply.
    Delta(ReplyDelta),
    /// The reply is complete.
    Reply(Box<ModelReply>),
    /// The call failed.
    Error(Box<ModelError>),
    /// The answer ends in its middle: with the pieces so far, or in the middle of this reply.
    Truncated(Box<ModelReply>),
    /// The answer is no JSON.
    Garbage,
    /// The connection is closed without an answer.
    Cut,
}

/// A call that was read.
pub(super) struct ServedCall {
    /// Number of the call in its conversation.
    pub(super) number: u64,
    pub(super) reply_id: String,
    pub(super) dialect: Dialect,
    pub(super) request: ModelRequest,
    pub(super) arrived: Instant,
    pub(super) conversation: Arc<ConversationState>,
    pub(super) model: Arc<ModelState>,
    pub(super) answering: Arc<dyn Model>,
}

/// Sends pieces, and remembers those of the reply.
struct PieceSender {
    pieces: mpsc::UnboundedSender<CallPiece>,
    sent: Mutex<ReplyAssembler>,
}

impl PieceSender {
    /// Sends a piece. If the client has disconnected, the call ends anyway.
    fn send(&self, piece: CallPiece) {
        if let CallPiece::Delta(delta) = &piece {
            self.sent.lock().unwrap_or_else(PoisonError::into_inner).add(delta);
        }
        let _ = self.pieces.send(piece);
    }

    /// Returns what was sent of the reply.
    fn sent(&self) -> ModelReply {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone().into_reply()
    }
}

impl ServedCall {
    /// Answers the call. Ends early if the client disconnects or the conversation is closed.
    pub(super) async fn run(self, pieces: mpsc::UnboundedSender<CallPiece>) {
        let mut closed = self.conversation.closed.subscribe();
        let pieces = PieceSender { pieces, sent: Mutex::default() };
        let gone = tokio::select! {
            () = self.answer(&pieces) => return,
            () = pieces.pieces.closed() => "the client disconnected",
            _ = closed.wait_for(|closed| *closed) => "the conversation has ended",
        };
        let sent = pieces.sent();
        if !sent.tool_calls.is_empty() {
            // A client that leaves after a call has read all that it needs.
            return self.report_reply(sent).await;
        }
        self.report_failure(ModelError::new(ModelErrorKind::Network, gone)).await;
    }

    async fn answer(&self, pieces: &PieceSender) {
        let fault = self.model.faults.select_for_request(&self.request);
        if let Some((rule, kind)) = &fault {
            self.report_fault(*rule, kind).await;
        }
        let fault = fault.map(|(_, kind)| kind);
        if let Some(error) = fault.as_ref().and_then(|kind| kind.error(self.dialect)) {
            self.report_failure(error.clone()).await;
            match fault {
                Some(FaultKind::Timeout) => return std::future::pending().await,
                Some(FaultKind::Disconnect) => pieces.send(CallPiece::Cut),
                _ => pieces.send(CallPiece::Error(Box::new(error))),
            }
            return;
        }
        if let Some(FaultKind::Delay(delay)) = fault {
            tokio::time::sleep(delay).await;
        }
        let needs_whole = fault.as_ref().is_some_and(FaultKind::needs_whole_reply);
        let streams = !needs_whole && !self.model.faults.change_replies();
        let outcome = self.call_model(pieces, streams).await;
        match outcome {
            Err(error) => {
                // The client did not get what was held back.
                let partial = error.partial.clone().filter(|_| streams);
                self.report_failure(ModelError { partial, ..error.clone() }).await;
                pieces.send(CallPiece::Error(Box::new(error)));
            }
            Ok(reply) if streams => self.complete(reply, pieces).await,
            Ok(reply) => self.deliver(reply, fault, pieces).await,
        }
    }

    /// Calls the model. Tool calls get ids that are unique in the conversation.
    async fn call_model(&self, pieces: &PieceSender, streams: bool) -> Result<ModelReply, ModelError> {
        let mut ids: Vec<String> = Vec::new();
        let mut sink = |mut delta: ReplyDelta| {
            if let ReplyDelta::ToolCallStarted { id, .. } = &mut delta {
                *id = self.conversation.unique_call_id(id);
                ids.push(id.clone());
            }
            if streams {
                pieces.send(CallPiece::Delta(delta));
            }
        };
        let mut outcome = self.answering.call(&self.request, &mut sink).await;
        let whole = match &mut outcome {
            Ok(reply) => Some(reply),
            Err(error) => error.partial.as_deref_mut(),
        };
        for (index, call) in whole.into_iter().flat_map(|reply| &mut reply.tool_calls).enumerate() {
            match ids.get(index) {
                Some(id) => call.id.clone_from(id),
                None => call.id = self.conversation.unique_call_id(&call.id),
            }
        }
        outcome
    }

    /// Delivers a reply that was held back for a fault.
    async fn deliver(&self, mut reply: ModelReply, fault: Option<FaultKind>, pieces: &PieceSender) {
        let broken = match self.model.faults.select_for_reply(&self.request, &reply) {
            Some((rule, kind)) if !fault.as_ref().is_some_and(FaultKind::needs_whole_reply) => {
                self.report_fault(rule, &kind).await;
                Some(kind)
            }
            _ => fault,
        };
        let lost = |what: &str| {
            let message = format!("the test injected a fault: {what}");
            ModelError::new(ModelErrorKind::Network, message)
        };
        match broken {
            Some(FaultKind::LostAnswer) => {
                self.report_failure(lost("the answer was lost")).await;
                return pieces.send(CallPiece::Cut);
            }
            Some(FaultKind::Garbage) => {
                self.report_failure(lost("the answer was no JSON")).await;
                return pieces.send(CallPiece::Garbage);
            }
            Some(FaultKind::Truncate) => {
                let deltas = reply.deltas();
                let half = deltas.len().div_ceil(2);
                deltas.into_iter().take(half).for_each(|delta| pieces.send(CallPiece::Delta(delta)));
                let partial = Some(Box::new(pieces.sent()));
                self.report_failure(ModelError { partial, ..lost("the answer ended in its middle") }).await;
                return pieces.send(CallPiece::Truncated(Box::new(reply)));
            }
            Some(FaultKind::Empty) => {
                let usage = reply.usage;
                reply = ModelReply { usage, stop: StopReason::EndTurn, ..ModelReply::default() };
            }
            Some(FaultKind::MalformedArguments) => {
                if let Some(call) = reply.tool_calls.first_mut() {
                    call.arguments = cut_in_half(&call.arguments_text()).into();
                }
            }
            _ => {}
        }
        reply.deltas().into_iter().for_each(|delta| pieces.send(CallPiece::Delta(delta)));
        self.complete(reply, pieces).await;
    }

    /// Reports a reply, and sends its end. The event precedes the end, so a trace has the call before what follows from it.
    async fn complete(&self, reply: ModelReply, pieces: &PieceSender) {
        if self.dialect == Dialect::Responses {
            self.conversation.store_response(&self.reply_id, &self.request, &reply);
        }
        self.report_reply(reply.clone()).await;
        pieces.send(CallPiece::Reply(Box::new(reply)));
    }

    async fn report_reply(&self, reply: ModelReply) {
        for call in reply.tool_calls.iter().filter(|call| self.request.tool(&call.name).is_none()) {
            let offered = self.request.tools.iter().map(|tool| tool.name.clone()).collect();
            let kind = ServedModelEventKind::UnofferedTool { tool: call.name.clone(), offered };
            self.conversation.report(&self.model.name, kind).await;
        }
        let (reply, duration) = (Box::new(reply), self.duration());
        let kind = ServedModelEventKind::CallAnswered { call: self.number, reply, duration };
        self.conversation.report(&self.model.name, kind).await;
    }

    async fn report_fault(&self, rule: usize, fault: &FaultKind) {
        let kind = ServedModelEventKind::FaultInjected { call: self.number, rule, fault: fault.clone() };
        self.conversation.report(&self.model.name, kind).await;
    }

    async fn report_failure(&self, error: ModelError) {
        let kind = ServedModelEventKind::CallFailed { call: self.number, error, may_be_accepted: false };
        self.conversation.report(&self.model.name, kind).await;
    }

    fn duration(&self) -> Duration {
        self.arrived.elapsed()
    }
}

/// Returns the first half of a text, which is no JSON.
fn cut_in_half(text: &str) -> String {
    let half = text.chars().count() / 2;
    text.chars().take(half.max(1)).collect()
}
