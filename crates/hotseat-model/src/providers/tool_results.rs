//! Assigns the tool results of a request to their calls, and refuses histories that providers refuse.

use std::collections::HashMap;

use super::Dialect;
use super::served::RequestProblem;
use crate::{ModelMessage, ModelToolCall};

/// Sets the names of tool results, which protocols only send with the calls.
///
/// # Errors
/// As providers require: if a result belongs to no call, if a call has several results, or if a call has none although the history
/// goes on. Calls of the last reply may be open.
pub fn name_results(dialect: Dialect, messages: &mut [ModelMessage]) -> Result<(), RequestProblem> {
    let mut history = CallHistory::new(dialect);
    let mut follows_reply = false;
    for message in messages {
        let is_reply = matches!(message, ModelMessage::Assistant { .. });
        let needs_results = match dialect {
            Dialect::ChatCompletions => !matches!(message, ModelMessage::Tool(_)),
            // Successive messages of one role are one message.
            Dialect::Messages => is_reply && !follows_reply,
            // Items may have any order.
            Dialect::Responses => false,
        };
        if needs_results {
            history.require_results(history.calls.len())?;
        }
        if is_reply && !follows_reply {
            history.last_reply = history.calls.len();
        }
        follows_reply = is_reply;
        match message {
            ModelMessage::Assistant { tool_calls, .. } => {
                tool_calls.iter().for_each(|call| history.add_call(call));
            }
            ModelMessage::Tool(result) => result.name = history.add_result(&result.call_id)?,
            ModelMessage::User { .. } | ModelMessage::Notice { .. } => {}
        }
    }
    history.require_results(if follows_reply { history.last_reply } else { history.calls.len() })
}

/// The calls of a history, in their order.
struct CallHistory {
    calls: Vec<PastCall>,
    /// Index of the latest call with an id.
    by_id: HashMap<String, usize>,
    /// All calls before this index have results.
    answered: usize,
    /// Index of the first call of the last reply.
    last_reply: usize,
    /// Member of requests that has the history.
    member: &'static str,
}

struct PastCall {
    id: String,
    name: String,
    /// Number of open calls that share the id: scripts may set ids.
    uses: usize,
    results: usize,
}

impl CallHistory {
    fn new(dialect: Dialect) -> Self {
        let member = match dialect {
            Dialect::Responses => "input",
            Dialect::ChatCompletions | Dialect::Messages => "messages",
        };
        CallHistory { calls: Vec::new(), by_id: HashMap::new(), answered: 0, last_reply: 0, member }
    }

    fn add_call(&mut self, call: &ModelToolCall) {
        let known = self.by_id.get(&call.id).map(|&index| &mut self.calls[index]);
        if let Some(open) = known.filter(|known| known.results == 0) {
            open.uses += 1;
            open.name.clone_from(&call.name);
            return;
        }
        self.by_id.insert(call.id.clone(), self.calls.len());
        self.calls.push(PastCall { id: call.id.clone(), name: call.name.clone(), uses: 1, results: 0 });
    }

    /// Adds a result. Returns the name of its tool.
    fn add_result(&mut self, id: &str) -> Result<String, RequestProblem> {
        let Some(call) = self.by_id.get(id).map(|&index| &mut self.calls[index]) else {
            let message = format!("a tool result belongs to the call {id:?}, which no earlier message has");
            return Err(RequestProblem::at(self.member, message));
        };
        if call.results == call.uses {
            let message = format!("the call {id:?} of `{}` has more than one result", call.name);
            return Err(RequestProblem::at(self.member, message));
        }
        call.results += 1;
        Ok(call.name.clone())
    }

    /// Checks that each call before the index `end` has a result.
    fn require_results(&mut self, end: usize) -> Result<(), RequestProblem> {
        while self.answered < end {
            let PastCall { id, name, results, .. } = &self.calls[self.answered];
            if *results == 0 {
                let message = format!(
                    "the call {id:?} of `{name}` has no result: the messages that follow a reply must have one for each of its calls"
                );
                return Err(RequestProblem::at(self.member, message));
            }
            self.answered += 1;
        }
        Ok(())
    }
}
