//! Tool calls that served models decide on, for agents whose protocol shows none.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use hotseat_model::{ModelToolCall, ModelToolResult};
use hotseat_trace::{ErrorInfo, Origin, Payload, ToolCompleted, ToolFailed, ToolInvocation};

/// Turns the tool calls in replies of served models, and the results that the agent sends back, into events.
#[derive(Debug, Default)]
pub(super) struct ModelToolCalls {
    /// Calls without a result, by the model and its id of the call.
    open: HashMap<(Arc<str>, String), OpenToolCall>,
    /// Calls in replies that broke. Whether the agent carries them out is known once it sends their result.
    broken: HashMap<(Arc<str>, String), ModelToolCall>,
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
}

impl ModelToolCalls {
    /// Returns the event of a call that a model decided on.
    pub(super) fn invoke(&mut self, model: &Arc<str>, turn_id: &Arc<str>, call: ModelToolCall) -> Payload {
        let own: Arc<str> = call.id.as_str().into();
        let id = match own.is_empty() || self.ids.contains(&own) {
            true => format!("model-{}", self.ids.len() + 1).into(),
            false => own,
        };
        self.ids.insert(id.clone());
        self.replied.insert(call.id.clone());
        self.broken.remove(&(model.clone(), call.id.clone()));
        let open = OpenToolCall { turn_id: turn_id.clone(), id: id.clone() };
        self.open.insert((model.clone(), call.id), open);
        Payload::ToolInvoked(ToolInvocation {
            input: Some(call.arguments),
            origin: Origin::Model,
            ..ToolInvocation::new(turn_id.clone(), id, call.name)
        })
    }

    /// Remembers a call in a reply that broke.
    pub(super) fn add_broken(&mut self, model: &Arc<str>, call: ModelToolCall) {
        self.replied.insert(call.id.clone());
        self.broken.insert((model.clone(), call.id.clone()), call);
    }

    /// Returns the events of a result that the agent sent to a model: the call itself too, if its reply broke. None if the
    /// call had a result before: requests that are repeated contain their results again.
    pub(super) fn complete(
        &mut self,
        model: &Arc<str>,
        turn_id: &Arc<str>,
        result: ModelToolResult,
    ) -> impl Iterator<Item = Payload> + use<> {
        let key = (model.clone(), result.call_id.clone());
        let invoked = self.broken.remove(&key).map(|call| self.invoke(model, turn_id, call));
        let completed = self.open.remove(&key).map(|call| Self::completed(call, result));
        invoked.into_iter().chain(completed)
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
        let OpenToolCall { turn_id, id: tool_call_id } = call;
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
