//! Tool calls that served models decide on, for agents whose protocol shows none.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use hotseat_model::{ModelToolCall, ModelToolResult, OpenCalls, UnmatchedResult};
use hotseat_trace::{ErrorInfo, Origin, Payload, ToolCompleted, ToolFailed, ToolInvocation, format_first};

/// Maximum number of calls that a message lists.
const MAX_LISTED_CALLS: usize = 10;

/// Turns the tool calls in replies of served models, and the results that the agent sends back, into events.
#[derive(Debug, Default)]
pub(super) struct ModelToolCalls {
    /// Calls without a result, by number.
    open: BTreeMap<usize, OpenToolCall>,
    /// The same calls by model and its ids.
    open_ids: HashMap<Arc<str>, OpenCalls>,
    /// Calls in replies that broke, by the model and its id of the call. Whether the agent carries them out is known once it sends
    /// their result.
    broken: HashMap<(Arc<str>, String), VecDeque<ModelToolCall>>,
    /// Ids in the trace so far.
    ids: HashSet<Arc<str>>,
    /// Ids of the calls in all replies, whole or broken, as the models gave them.
    replied: HashSet<String>,
    /// Calls with a result in a request of the turn that no reply contained until then: tools by id.
    unrequested: BTreeMap<String, String>,
}

/// A call without a result.
#[derive(Debug)]
struct OpenToolCall {
    turn_id: Arc<str>,
    /// Id in the trace: that of the model, unless an earlier call has it.
    id: Arc<str>,
    name: String,
}

impl ModelToolCalls {
    /// Returns the event of a call that a model decided on.
    pub(super) fn invoke(&mut self, model: &Arc<str>, turn_id: &Arc<str>, call: ModelToolCall) -> Payload {
        self.broken.remove(&(model.clone(), call.id.clone()));
        self.add_call(model, turn_id, call)
    }

    fn add_call(&mut self, model: &Arc<str>, turn_id: &Arc<str>, call: ModelToolCall) -> Payload {
        let number = self.ids.len() + 1;
        let mut id: Arc<str> = call.id.as_str().into();
        if id.is_empty() || self.ids.contains(&id) {
            id = format!("model-{number}").into();
        }
        self.ids.insert(id.clone());
        self.open_ids.entry(model.clone()).or_default().add(number, &call.id);
        self.replied.insert(call.id);
        let open = OpenToolCall { turn_id: turn_id.clone(), id: id.clone(), name: call.name.clone() };
        self.open.insert(number, open);
        Payload::ToolInvoked(ToolInvocation {
            input: Some(call.arguments),
            origin: Origin::Model,
            ..ToolInvocation::new(turn_id.clone(), id, call.name)
        })
    }

    /// Remembers a call in a reply that broke.
    pub(super) fn add_broken(&mut self, model: &Arc<str>, call: ModelToolCall) {
        self.replied.insert(call.id.clone());
        self.broken.entry((model.clone(), call.id.clone())).or_default().push_back(call);
    }

    /// Returns the events of a result that the agent sent to a model: the call itself too, if its reply broke. None if the
    /// call had a result before: requests that are repeated contain their results again.
    ///
    /// # Errors
    /// If the result may belong to several calls; says which.
    pub(super) fn complete(
        &mut self,
        model: &Arc<str>,
        turn_id: &Arc<str>,
        result: ModelToolResult,
    ) -> Result<impl Iterator<Item = Payload> + use<>, String> {
        let broken = self.broken.get_mut(&(model.clone(), result.call_id.clone()));
        let broken = broken.and_then(VecDeque::pop_front);
        let invoked = broken.map(|call| self.add_call(model, turn_id, call));
        let open = self.open_ids.entry(model.clone()).or_default();
        let number = match open.take(&result.call_id) {
            // Agents give ids to calls without one.
            Err(UnmatchedResult::NoCall) if !self.replied.contains(&result.call_id) => open.take_unnamed(),
            number => number,
        };
        let completed = match number {
            Ok(number) => self.open.remove(&number),
            Err(UnmatchedResult::NoCall) => None,
            Err(UnmatchedResult::SeveralCalls) => {
                let name = |number| Some(self.open.get(&number)?.name.clone());
                let names: Vec<String> = open.numbers().filter_map(name).collect();
                let names = format_first(&names, MAX_LISTED_CALLS);
                return Err(format!(
                    "the agent sent the model `{model}` the result of a call without an id, and several calls have no result: {names}"
                ));
            }
        };
        if completed.is_some() {
            self.replied.insert(result.call_id.clone());
        }
        Ok(invoked.into_iter().chain(completed.map(|call| Self::completed(call, result))))
    }

    /// Remembers the calls with a result in a request that no reply contains.
    pub(super) fn add_answered(&mut self, answered: Vec<(String, String)>) {
        self.unrequested.extend(answered.into_iter().filter(|(id, _)| !self.replied.contains(id)));
    }

    /// Returns the ids and tools of the calls in requests of the turn that no reply contained, each once in a conversation. A reply may
    /// be reported after the request with its result.
    pub(super) fn take_unrequested(&mut self) -> Vec<(String, String)> {
        let calls = std::mem::take(&mut self.unrequested).into_iter();
        calls.filter(|(id, _)| self.replied.insert(id.clone())).collect()
    }

    fn completed(call: OpenToolCall, result: ModelToolResult) -> Payload {
        let OpenToolCall { turn_id, id: tool_call_id, .. } = call;
        let origin = Origin::Stream;
        match result.is_error {
            true => {
                let error = ErrorInfo { code: None, message: result.text().into_owned(), retriable: None };
                Payload::ToolFailed(ToolFailed { turn_id, tool_call_id, error, origin })
            }
            false => {
                let output = result.content;
                Payload::ToolCompleted(ToolCompleted { turn_id, tool_call_id, output, origin })
            }
        }
    }
}
