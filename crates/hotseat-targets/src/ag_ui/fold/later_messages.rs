//! What a later message snapshot leaves out of an earlier one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::super::known_call::KnownArguments;
use super::super::recorded_texts::MAX_SEARCHED_BYTES;
use super::super::wire::{self, MessageObject};

/// Messages of a later snapshot, indexed to look up those of an earlier one.
pub(super) struct LaterMessages<'a> {
    ids: HashSet<&'a str>,
    /// Arguments of the calls by id and tool, as written.
    calls: HashMap<(&'a str, &'a str), HashSet<String>>,
    /// Arguments of the last call with an id and tool.
    last_arguments: HashMap<(&'a str, &'a str), KnownArguments>,
    /// Texts of the agent, without the white space around them.
    texts: HashSet<String>,
    /// The same texts by the id of their message.
    texts_by_id: HashMap<&'a str, Vec<String>>,
}

impl<'a> LaterMessages<'a> {
    pub(super) fn new(later: &'a [Arc<MessageObject>]) -> Self {
        let mut found = LaterMessages {
            ids: later.iter().filter_map(|message| wire::id(message)).collect(),
            calls: HashMap::new(),
            last_arguments: HashMap::new(),
            texts: HashSet::new(),
            texts_by_id: HashMap::new(),
        };
        for message in later.iter().filter(|message| wire::role(message) == "assistant") {
            for call in wire::calls(message) {
                let key = (call.id, call.name);
                found.last_arguments.insert(key, KnownArguments::parse(&call.arguments));
                found.calls.entry(key).or_default().insert(call.arguments.into_owned());
            }
            let text = wire::text(message.get("content")).trim().to_string();
            if let Some(id) = wire::id(message) {
                found.texts_by_id.entry(id).or_default().push(text.clone());
            }
            found.texts.insert(text);
        }
        found
    }

    /// Returns the part of a message that the later snapshot omits: a server may keep the id of a message and
    /// take a call out of it, or replace its text.
    pub(super) fn missing_part(
        &self,
        message: Arc<MessageObject>,
        searched: &mut usize,
    ) -> Option<Arc<MessageObject>> {
        let id = wire::id(&message).filter(|id| self.ids.contains(id));
        match wire::role(&message) {
            "assistant" => {
                // Ids of calls may repeat in messages with other ids.
                let is_missing = |call: wire::CallInMessage<'_>| id.is_none() || !self.has_call(&call);
                let lacks_calls = wire::calls(&message).any(is_missing);
                let text = wire::text(message.get("content"));
                let lacks_text = !self.contains_text(id, text.trim(), searched);
                if lacks_calls && (id.is_none() || lacks_text) {
                    return Some(message);
                }
                let omitted = match (lacks_calls, lacks_text) {
                    (true, _) => "content",
                    (false, true) => "toolCalls",
                    (false, false) => return None,
                };
                let mut part = Arc::unwrap_or_clone(message);
                part.shift_remove(omitted);
                Some(Arc::new(part))
            }
            "tool" if id.is_none() => Some(message),
            // Messages of other roles are no actions of the agent.
            _ => None,
        }
    }

    /// Returns true if a call is in the later snapshot. With another tool it is another call, and so it is with other arguments,
    /// unless the earlier ones were incomplete.
    fn has_call(&self, call: &wire::CallInMessage<'_>) -> bool {
        let key = (call.id, call.name);
        let completes = |last: &KnownArguments| {
            let earlier = KnownArguments::parse(&call.arguments);
            !earlier.is_whole() || *last == earlier
        };
        self.calls.get(&key).is_some_and(|known| known.contains(&*call.arguments))
            || self.last_arguments.get(&key).is_some_and(completes)
    }

    /// Returns true if the agent says a text in the later snapshot, as a message or within the message with this id. `searched`
    /// counts the searched bytes: beyond the limit a text is found only as a whole.
    fn contains_text(&self, id: Option<&str>, text: &str, searched: &mut usize) -> bool {
        if text.is_empty() || self.texts.contains(text) {
            return true;
        }
        let mut of_message =
            id.and_then(|id| self.texts_by_id.get(id)).into_iter().flatten().take_while(|later| {
                *searched += later.len() + 64;
                *searched < MAX_SEARCHED_BYTES
            });
        of_message.any(|later| later.contains(text))
    }
}
