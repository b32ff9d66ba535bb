//! Order of the texts and calls of the agent, which may show the message of a call.

use std::collections::HashSet;
use std::sync::Arc;

/// Texts and calls of one reply of the model: until all of its calls have results.
#[derive(Debug, Default)]
pub struct ReplyOrder {
    /// True if a text of the agent began in the reply, or continues in it.
    has_text: bool,
    /// Ids of the calls without a result.
    waiting: HashSet<Arc<str>>,
    /// Calls whose message is unknown.
    unknown: Vec<ReplyCall>,
}

/// A call of a reply.
#[derive(Debug)]
pub struct ReplyCall {
    /// Id on the wire. A later call may use the same one.
    pub id: Arc<str>,
    /// Its id in the trace.
    pub trace_id: Arc<str>,
}

/// A call with the message that the order shows.
#[derive(Debug)]
pub struct CallingMessage {
    pub call: ReplyCall,
    /// Id of the message.
    pub message: Arc<str>,
}

impl ReplyOrder {
    /// Notes that a text of the agent begins.
    pub fn begin_text(&mut self) {
        self.has_text = true;
    }

    /// Notes that a call begins.
    pub fn begin_call(&mut self, id: &Arc<str>) {
        self.waiting.insert(id.clone());
    }

    /// Adds a call whose message is unknown.
    pub fn add_unknown(&mut self, call: ReplyCall) {
        self.unknown.push(call);
    }

    /// Notes a result. Returns true if it is the last missing one, so that the reply ends.
    pub fn add_result(&mut self, id: &str) -> bool {
        self.waiting.remove(id) && self.waiting.is_empty()
    }

    /// Ends the reply. Returns its calls if it has no text: they have messages of their own. `has_text` is true if a text continues
    /// in the next reply.
    pub fn end(&mut self, has_text: bool) -> impl Iterator<Item = CallingMessage> + use<> {
        self.waiting.clear();
        let calls = std::mem::take(&mut self.unknown);
        let is_shown = !std::mem::replace(&mut self.has_text, has_text);
        let shown = calls.into_iter().filter(move |_| is_shown);
        shown.map(|call| CallingMessage { message: call.id.clone(), call })
    }
}
