//! The stored thread as its client receives it: messages of the agent, calls and results.
//!
//! A client that fetches the thread gets these messages, and a returned history is compared with them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Unbounded};

use hotseat_model::{ModelMessage, ModelToolCall};
use hotseat_trace::{ErrorInfo, MoveRecorded, json_equal, plain_text};
use serde_json::{Value, json};

use super::super::client::{ClientToolAnswer, arguments_text, is_within_call, message_id, result_id};
use super::request::ThreadCall;
use crate::conversation::{
    ConversationState, OperationAddress, OperationStatus, OperationTarget, ReplyTo, ToolOperation,
    TurnCaller, TurnEnd, TurnPhase, TurnState,
};

/// The turns, replies and calls of a thread.
pub struct StoredThread<'s> {
    /// All turns, in order of start, with those of agents that joined the conversation.
    pub turns: Vec<StoredTurn<'s>>,
    turn_indexes: HashMap<&'s str, usize>,
    replies: HashMap<String, ReplyIndex>,
    /// Calls by id. The order finds the call that another id begins with.
    calls: BTreeMap<&'s str, StoredCall<'s>>,
    /// Turns of joined agents, by the call that invited the agent.
    joined: HashMap<&'s str, Vec<usize>>,
}

/// Position of a reply in the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReplyIndex {
    /// Index of the turn.
    pub turn: usize,
    /// Index of the reply in the turn.
    pub reply: usize,
}

/// A turn with the replies of its agent.
pub struct StoredTurn<'s> {
    /// The turn.
    pub turn: &'s TurnState,
    /// The replies, in order.
    pub replies: Vec<StoredReply<'s>>,
}

/// A reply of the model: one message of the agent.
pub struct StoredReply<'s> {
    /// The id of the message.
    pub id: String,
    /// Text of the message.
    pub text: &'s str,
    /// The ids of its calls, in order.
    pub calls: Vec<&'s str>,
}

/// A call that the client has received.
pub struct StoredCall<'s> {
    /// Address of the call.
    pub at: OperationAddress,
    /// The reply that contains the call, if it is stored.
    pub reply: Option<ReplyIndex>,
    /// Result of the call, if it has one.
    pub result: Option<Result<&'s Value, &'s ErrorInfo>>,
    /// Who is to answer the call.
    pub answered_by: CallAnswerer,
    tool: &'s str,
    /// The arguments; those of a human who changed them.
    input: &'s Value,
    /// The arguments that the model wrote.
    written: Option<&'s Value>,
    /// Result as the model has received it, which may be that an asynchronous call has started.
    told: Option<&'s Value>,
}

/// Who is to answer a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallAnswerer {
    /// The server.
    Server,
    /// The client, which need not answer it any more.
    Client,
    /// The client, which has not answered it.
    WaitingClient,
    /// A human, who must approve the call first.
    Approver,
}

/// Difference between a call in a message and the stored one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallDifference {
    /// The tool has another name.
    Tool,
    /// The arguments are others.
    Arguments,
}

impl<'s> StoredThread<'s> {
    /// Collects the messages of a thread.
    pub fn new(state: &'s ConversationState) -> StoredThread<'s> {
        let mut stored = StoredThread {
            turns: Vec::new(),
            turn_indexes: HashMap::new(),
            replies: HashMap::new(),
            calls: BTreeMap::new(),
            joined: HashMap::new(),
        };
        for turn in &state.turns {
            if let Some(ReplyTo::Call { conversation, at }) = &turn.reply_to
                && *conversation == state.conversation
            {
                stored.joined.entry(at.call.as_str()).or_default().push(stored.turns.len());
            }
            stored.add_turn(turn);
        }
        stored
    }

    fn add_turn(&mut self, turn: &'s TurnState) {
        for operation in &turn.operations {
            self.calls.insert(operation.call.as_str(), StoredCall::from_operation(turn, operation));
        }
        // Calls that were refused are no operations.
        for refused in &turn.moves {
            if let Some((id, call)) = StoredCall::from_refusal(turn, refused) {
                self.calls.entry(id).or_insert(call);
            }
        }
        let index = self.turns.len();
        let mut replies: Vec<StoredReply<'s>> = Vec::new();
        for message in &turn.transcript {
            match message {
                ModelMessage::Assistant { text, tool_calls, .. } => {
                    let place = ReplyIndex { turn: index, reply: replies.len() };
                    let made = tool_calls.iter().filter(|call| self.add_written_call(call, place));
                    let calls = made.map(|call| call.id.as_str()).collect();
                    let number = u32::try_from(replies.len() + 1).unwrap_or(u32::MAX);
                    let id = message_id(turn.id.as_str(), number);
                    self.replies.insert(id.clone(), place);
                    replies.push(StoredReply { id, text, calls });
                }
                ModelMessage::Tool(result) => {
                    if let Some(call) = self.calls.get_mut(result.call_id.as_str()) {
                        call.told = Some(&result.content);
                    }
                }
                ModelMessage::User { .. } | ModelMessage::Notice { .. } => {}
            }
        }
        // The model does not see its last calls of a turn that has reached its number of moves, but the client does.
        for refused in &turn.moves {
            let Some(made) = &refused.tool_call else { continue };
            let reply = refused.iteration as usize;
            if let (Some(call), Some(message)) =
                (self.calls.get_mut(&*made.tool_call_id), replies.get_mut(reply))
                && call.reply.is_none()
            {
                call.reply = Some(ReplyIndex { turn: index, reply });
                message.calls.push(&made.tool_call_id);
            }
        }
        self.turn_indexes.insert(turn.id.as_str(), index);
        self.turns.push(StoredTurn { turn, replies });
    }

    /// Sets the position and the first arguments of a call. Returns false if the call was never made.
    fn add_written_call(&mut self, written: &'s ModelToolCall, place: ReplyIndex) -> bool {
        let Some(call) = self.calls.get_mut(written.id.as_str()) else { return false };
        call.reply = Some(place);
        call.written = Some(&written.arguments);
        true
    }

    /// Returns the position of the message with an id.
    pub fn place_of(&self, id: &str) -> Option<ReplyIndex> {
        self.replies.get(id).copied()
    }

    /// Returns the reply at a position.
    pub fn reply(&self, place: ReplyIndex) -> Option<&StoredReply<'s>> {
        self.turns.get(place.turn)?.replies.get(place.reply)
    }

    /// Returns true if an id is that of a message that the client has received in part and that is not stored, because its model
    /// call is running or failed.
    pub fn is_unfinished_reply(&self, id: &str) -> bool {
        let Some((turn, number)) = id.rsplit_once("-r") else { return false };
        let turn = self.turn_indexes.get(turn).map(|index| &self.turns[*index]);
        turn.zip(number.parse().ok()).is_some_and(|(turn, number)| turn.is_unfinished(number))
    }

    /// Returns a call by id, with the id.
    pub fn call(&self, id: &str) -> Option<(&'s str, &StoredCall<'s>)> {
        self.calls.get_key_value(id).map(|(id, call)| (*id, call))
    }

    /// Returns true if a call was made by an agent that works for a call of this thread. Its id begins with the one of that
    /// call, so that one is the last before it in order.
    pub fn is_nested_call(&self, id: &str) -> bool {
        let caller = self.calls.range::<str, _>((Unbounded, Excluded(id))).next_back();
        caller.is_some_and(|(caller, _)| is_within_call(id, caller))
    }

    /// Returns the messages of a user's turn: the one of the user, and those of the agents with calls and results.
    pub fn messages_of_turn(&self, turn: usize) -> Vec<Value> {
        let mut messages = Vec::new();
        if let Some(stored) = self.turns.get(turn) {
            let id = format!("{}-user", stored.turn.id);
            messages.push(json!({"id": id, "role": "user", "content": stored.turn.user_text}));
            self.add_replies(stored, None, &mut messages);
        }
        messages
    }

    /// Adds the messages of an agent. `inviting_call` is the call that invited it, if it joined the conversation.
    fn add_replies(&self, stored: &StoredTurn<'s>, inviting_call: Option<&str>, messages: &mut Vec<Value>) {
        let with_agent = |mut message: Value| {
            if let Some(call) = inviting_call {
                message["subagentRunId"] = json!(call);
            }
            message
        };
        for reply in &stored.replies {
            let calls = reply.calls.iter().filter_map(|id| self.call(id));
            let written: Vec<Value> = calls.clone().map(|(id, call)| call.to_json(id)).collect();
            let mut entry = json!({"id": reply.id, "role": "assistant"});
            if !reply.text.is_empty() {
                entry["content"] = json!(reply.text);
            }
            if !written.is_empty() {
                entry["toolCalls"] = written.into();
            } else if reply.text.is_empty() {
                continue;
            }
            messages.push(with_agent(entry));
            for (id, call) in calls {
                for joined in self.joined.get(id).into_iter().flatten() {
                    self.add_replies(&self.turns[*joined], Some(id), messages);
                }
                messages.extend(call.result_json(id).map(with_agent));
            }
        }
    }
}

impl StoredTurn<'_> {
    /// Returns true if a user started the turn.
    pub fn is_user_turn(&self) -> bool {
        matches!(self.turn.caller, TurnCaller::User { .. })
    }

    /// Returns true if the turn has no whole answer: it failed or was cancelled.
    pub fn has_failed(&self) -> bool {
        self.turn.phase == TurnPhase::Ended(TurnEnd::Failed)
    }

    /// Returns true if a client may have received only a part of the turn: it failed, or it continued without its client, because
    /// it waited for asynchronous tools or a tool of the client did not answer in time.
    pub fn may_be_received_in_part(&self) -> bool {
        let continues = |operation: &ToolOperation| {
            let has_failed = operation.outcome.as_ref().is_some_and(|outcome| !outcome.is_success());
            operation.is_async || operation.work == OperationTarget::Client && has_failed
        };
        self.has_failed() || self.turn.operations.iter().any(continues)
    }

    /// Returns true if the reply with this number, from 1, has begun and is not stored.
    fn is_unfinished(&self, number: usize) -> bool {
        let is_begun = number > self.replies.len() && number <= self.turn.calls as usize;
        is_begun && (self.has_failed() || self.turn.is_active())
    }
}

impl<'s> StoredCall<'s> {
    fn from_operation(turn: &'s TurnState, operation: &'s ToolOperation) -> StoredCall<'s> {
        let is_open = operation.status.is_open() && turn.is_active();
        let answered_by = match (operation.status, &operation.work) {
            (OperationStatus::AwaitingApproval, _) if is_open => CallAnswerer::Approver,
            (_, OperationTarget::Client) if is_open => CallAnswerer::WaitingClient,
            (_, OperationTarget::Client) => CallAnswerer::Client,
            _ => CallAnswerer::Server,
        };
        StoredCall {
            at: turn.address(operation),
            reply: None,
            result: operation.outcome.as_ref().map(|outcome| outcome.result.as_ref()),
            answered_by,
            tool: &operation.tool,
            input: &operation.input,
            written: None,
            told: None,
        }
    }

    /// Returns the call that a move shows as refused, with its id.
    fn from_refusal(turn: &TurnState, refused: &'s MoveRecorded) -> Option<(&'s str, StoredCall<'s>)> {
        let (made, outcome) = (refused.tool_call.as_ref()?, refused.tool_result.as_ref()?);
        let id = &*made.tool_call_id;
        let call = StoredCall {
            at: OperationAddress { turn: turn.id.clone(), call: id.into(), attempt: 1 },
            reply: None,
            result: Some(outcome.result.as_ref()),
            answered_by: CallAnswerer::Server,
            tool: &made.tool_id,
            input: &made.input,
            written: None,
            told: None,
        };
        Some((id, call))
    }

    /// Compares the call of a message with this one; members that the client leaves out are not compared.
    pub fn difference(&self, said: &ThreadCall) -> Option<CallDifference> {
        if said.tool.as_ref().is_some_and(|tool| tool != self.tool) {
            return Some(CallDifference::Tool);
        }
        let arguments = said.arguments.as_ref()?;
        let mut known = [Some(self.input), self.written].into_iter().flatten();
        let is_known = known.any(|input| is_written_as(input, arguments));
        (!is_known).then_some(CallDifference::Arguments)
    }

    /// Returns true if the client says this result. Events have the message of an error as content.
    pub fn has_result(&self, said: &ClientToolAnswer) -> bool {
        let (ClientToolAnswer::Result(text) | ClientToolAnswer::Error(text)) = said;
        match self.result {
            Some(Ok(_)) if matches!(said, ClientToolAnswer::Error(_)) => false,
            Some(Err(error)) if error.message == *text => true,
            // The call failed without the client, for example because its answer came too late.
            Some(Err(_)) if self.answered_by == CallAnswerer::Client => true,
            Some(Ok(value)) if is_written_as(value, text) => true,
            _ => self.told.is_some_and(|told| is_written_as(told, text)),
        }
    }

    fn to_json(&self, id: &str) -> Value {
        let arguments = arguments_text(self.input);
        json!({"id": id, "type": "function", "function": {"name": self.tool, "arguments": arguments}})
    }

    /// Returns the message with the result, as the event of the result has it.
    fn result_json(&self, id: &str) -> Option<Value> {
        let (content, failed) = match self.result? {
            Ok(value) => (plain_text(value), false),
            // The model reads the code of an error, too.
            Err(error) => (error.message.clone(), true),
        };
        let mut entry = json!({"id": result_id(id), "role": "tool", "toolCallId": id, "content": content});
        if failed {
            entry["error"] = json!(content);
        }
        Some(entry)
    }
}

/// Returns true if a text is this value: the same text, or JSON of an equal value. It does not write the value, which may be long,
/// for each text.
fn is_written_as(value: &Value, text: &str) -> bool {
    value.as_str() == Some(text)
        || serde_json::from_str(text).is_ok_and(|written: Value| json_equal(value, &written))
}
