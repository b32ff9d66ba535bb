//! What is stored of a thread, to compare a returned history with.

use std::collections::{HashMap, HashSet};

use hotseat_model::ModelMessage;
use hotseat_trace::{ErrorInfo, json_equal, plain_text};
use serde_json::Value;

use super::super::client::{ClientToolAnswer, arguments_text};
use super::history::has_failed;
use super::request::ThreadCall;
use crate::conversation::{
    ConversationState, OperationAddress, OperationStatus, OperationTarget, ToolOperation, TurnState,
};

/// The turns and calls of a thread.
pub struct StoredThread<'s> {
    turns: HashMap<&'s str, StoredTurn<'s>>,
    calls: HashMap<&'s str, StoredCall<'s>>,
}

/// Answer of the agent in a turn.
struct StoredTurn<'s> {
    has_failed: bool,
    texts: HashSet<&'s str>,
}

/// A call of the thread.
struct StoredCall<'s> {
    at: OperationAddress,
    /// True if the client must answer it.
    is_owed: bool,
    /// Its arguments: those of the model, and those of a human who changed them.
    inputs: Vec<&'s Value>,
    /// Its results: the one of the tool, and the one that the model got.
    results: Vec<StoredResult<'s>>,
}

enum StoredResult<'s> {
    Value(&'s Value),
    Error(&'s str),
}

/// How a message of the agent compares with the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownReply {
    /// A part of a turn that failed.
    Failed,
    /// An answer, or a message with calls.
    Answer,
}

/// What differs from the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyDifference {
    /// The thread has no such message.
    Message,
    /// The call with this index has other arguments.
    Arguments(usize),
}

impl<'s> StoredThread<'s> {
    pub fn new(state: &'s ConversationState) -> StoredThread<'s> {
        let mut stored = StoredThread { turns: HashMap::new(), calls: HashMap::new() };
        for turn in &state.turns {
            stored.add_calls(turn);
            let texts = turn.transcript.iter().filter_map(|message| match message {
                ModelMessage::Assistant { text, .. } => Some(text.trim()),
                ModelMessage::User { .. } | ModelMessage::Tool(_) | ModelMessage::Notice { .. } => None,
            });
            let answer = StoredTurn { has_failed: has_failed(turn), texts: texts.collect() };
            stored.turns.insert(turn.id.as_str(), answer);
        }
        stored
    }

    fn add_calls(&mut self, turn: &'s TurnState) {
        for operation in &turn.operations {
            let results = operation.outcome.iter().map(|outcome| StoredResult::new(&outcome.result));
            let call = StoredCall {
                at: turn.address(operation),
                is_owed: is_owed(turn, operation),
                inputs: vec![&operation.input],
                results: results.collect(),
            };
            self.calls.entry(operation.call.as_str()).or_insert(call);
        }
        // Refused calls are not operations.
        for made in turn.moves.iter().filter_map(|made| made.tool_call.as_ref()) {
            let id = &*made.tool_call_id;
            self.calls.entry(id).or_insert_with(|| StoredCall {
                at: OperationAddress { turn: turn.id.clone(), call: id.into(), attempt: 1 },
                is_owed: false,
                inputs: vec![&made.input],
                results: Vec::new(),
            });
        }
        for message in &turn.transcript {
            match message {
                ModelMessage::Assistant { tool_calls, .. } => {
                    for call in tool_calls {
                        if let Some(known) = self.calls.get_mut(call.id.as_str()) {
                            known.inputs.push(&call.arguments);
                        }
                    }
                }
                ModelMessage::Tool(result) => {
                    if let Some(known) = self.calls.get_mut(result.call_id.as_str()) {
                        let error = result.content["message"].as_str().filter(|_| result.is_error);
                        known
                            .results
                            .push(error.map_or(StoredResult::Value(&result.content), StoredResult::Error));
                    }
                }
                ModelMessage::User { .. } | ModelMessage::Notice { .. } => {}
            }
        }
    }

    /// Compares a message of the agent, which the client says in the turn `turn`, with the thread. Parts of a failed reply are
    /// known only by their id.
    ///
    /// # Errors
    /// If the thread has no such message.
    pub fn find_reply(
        &self,
        turn: &TurnState,
        id: &str,
        text: &str,
        calls: &[ThreadCall],
    ) -> Result<KnownReply, ReplyDifference> {
        let by_id = id.rsplit_once("-r").and_then(|(turn, _)| self.turns.get(turn));
        for (place, call) in calls.iter().enumerate() {
            let known = self.calls.get(call.id.as_str());
            match (known, &call.arguments) {
                (Some(known), Some(arguments)) if !known.has_arguments(arguments) => {
                    return Err(ReplyDifference::Arguments(place));
                }
                (None, _) if self.calling(&call.id).is_none() && by_id.is_none() => {
                    return Err(ReplyDifference::Message);
                }
                _ => {}
            }
        }
        let mut told = [by_id, self.turns.get(turn.id.as_str())].into_iter().flatten();
        let is_told = text.trim().is_empty() || told.any(|turn| turn.texts.contains(text.trim()));
        match by_id {
            Some(turn) if turn.has_failed => Ok(KnownReply::Failed),
            _ if is_told => Ok(KnownReply::Answer),
            _ => Err(ReplyDifference::Message),
        }
    }

    /// Returns the address of a call, and true if the client must answer it.
    pub fn address(&self, id: &str) -> Option<(&OperationAddress, bool)> {
        match self.calls.get(id) {
            Some(call) => Some((&call.at, call.is_owed)),
            None => self.calling(id).map(|call| (&call.at, false)),
        }
    }

    /// True if an answer can be that of a call: its result is unknown or the same.
    pub fn has_result(&self, id: &str, answer: &ClientToolAnswer) -> bool {
        let Some(call) = self.calls.get(id) else { return true };
        let (ClientToolAnswer::Result(said) | ClientToolAnswer::Error(said)) = answer;
        call.results.is_empty() || call.results.iter().any(|result| result.is_told_as(said))
    }

    /// Returns the call of the thread that a call of a called agent works for. Its id begins with the one of that call.
    fn calling(&self, id: &str) -> Option<&StoredCall<'s>> {
        let ends = id.match_indices('-').map(|(end, _)| end);
        ends.rev().find_map(|end| self.calls.get(&id[..end]))
    }
}

impl StoredCall<'_> {
    fn has_arguments(&self, said: &str) -> bool {
        let value: Option<Value> = serde_json::from_str(said).ok();
        self.inputs.iter().any(|input| {
            value.as_ref().is_some_and(|value| json_equal(input, value)) || arguments_text(input) == said
        })
    }
}

impl<'s> StoredResult<'s> {
    fn new(result: &'s Result<Value, ErrorInfo>) -> StoredResult<'s> {
        match result {
            Ok(value) => StoredResult::Value(value),
            Err(error) => StoredResult::Error(&error.message),
        }
    }

    fn is_told_as(&self, said: &str) -> bool {
        match self {
            StoredResult::Error(message) => *message == said,
            StoredResult::Value(value) => {
                plain_text(value) == said
                    || serde_json::from_str(said).is_ok_and(|said: Value| json_equal(value, &said))
            }
        }
    }
}

/// True if the client must answer an operation.
fn is_owed(turn: &TurnState, operation: &ToolOperation) -> bool {
    operation.work == OperationTarget::Client
        && operation.status.is_open()
        && operation.status != OperationStatus::AwaitingApproval
        && turn.is_active()
}
