//! Snapshots of the messages: what only they tell joins the trace, and what they tell again counts once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use hotseat_trace::{AssistantMessage, Offset, Origin};
use serde_json::Value;

use super::super::thread::Arguments;
use super::super::wire::{self, Message};
use super::calls::Seen;
use super::{Run, Sink};

/// How many snapshots are kept apart of which later ones left something out.
const MOST_LEFT_OUT: usize = 64;
/// How many bytes are searched for texts that are told again as parts of others, in one run.
const MOST_SEARCHED: usize = 64 * 1024 * 1024;

/// A snapshot, or what a later one left out of it.
#[derive(Debug)]
pub(super) struct Snapshot {
    messages: Vec<Message>,
    /// Where the messages of the current turn begin.
    begins: usize,
    seen: Offset,
}

impl Run<'_> {
    pub(super) fn messages_snapshot(&mut self, messages: Vec<Message>, seen: Offset) -> Result<(), String> {
        self.thread.take_over(&messages)?;
        // What the agent did is not undone by a later snapshot that no longer shows it.
        if let Some(earlier) = self.snapshots.pop() {
            let Snapshot { messages: mut left_out, begins, seen } = earlier;
            left_out.drain(..begins);
            let again = ToldAgain::of(&messages);
            left_out.retain(|message| !again.holds(message, &mut self.searched));
            let is_full = self.snapshots.len() >= MOST_LEFT_OUT;
            match self.snapshots.last_mut() {
                _ if left_out.is_empty() => {}
                // Each is compared with all calls of the turn.
                Some(last) if is_full => last.messages.extend(left_out),
                _ => self.snapshots.push(Snapshot { messages: left_out, begins: 0, seen }),
            }
        }
        let begins = self.thread.turn_begins(&messages);
        self.snapshots.push(Snapshot { messages, begins, seen });
        Ok(())
    }

    /// Compares snapshots with what was seen as events and adds what is missing. For calls and texts the older
    /// ones come first, as they happened; of results the latest counts.
    pub(super) fn reconcile(&mut self, snapshots: &[Snapshot], out: Sink<'_>) {
        for snapshot in snapshots {
            self.calls_of(snapshot, out);
        }
        for snapshot in snapshots.iter().rev() {
            self.results_of(snapshot, out);
        }
        for snapshot in snapshots {
            let messages = &snapshot.messages[snapshot.begins..];
            for message in messages.iter().filter(|message| wire::role(message) == "assistant") {
                self.text_of(message, snapshot.seen, out);
            }
        }
    }

    fn calls_of(&mut self, snapshot: &Snapshot, out: Sink<'_>) {
        let (earlier, ours) = snapshot.messages.split_at(snapshot.begins);
        for call in earlier.iter().flat_map(wire::calls) {
            let id = self.thread.known_id(call.id.into());
            if self.thread.call_of_turn(&id).is_some_and(|known| known.has_id_of_its_own(&id)) {
                self.complete_arguments(&id, &call.arguments, out);
            }
        }
        let listed: Vec<Arc<str>> =
            ours.iter().flat_map(wire::calls).map(|call| self.thread.known_id(call.id.into())).collect();
        let mut unlisted = Twins::of(self, &listed);
        let calls = ours.iter().flat_map(|message| wire::calls(message).map(move |call| (message, call)));
        for ((message, call), id) in calls.zip(&listed) {
            let known = self.thread.call_of_turn(id);
            if known.is_some_and(|known| *known.name == *call.name || !known.has_id_of_its_own(id)) {
                self.complete_arguments(id, &call.arguments, out);
                continue;
            }
            let arguments = Arguments::parse(&call.arguments);
            // A call of an earlier turn that stands here is told again, unless it cannot be that one.
            let earlier = self.thread.calls.get(id);
            if earlier
                .is_some_and(|known| *known.name == *call.name && !known.arguments.contradict(&arguments))
            {
                continue;
            }
            // A producer may give its calls other ids in a snapshot: those are found by tool and arguments.
            if let Some(twin) = unlisted.take(call.name, &arguments) {
                self.complete_arguments(&twin, &call.arguments, out);
                self.thread.add_alias(call.id.into(), twin);
                continue;
            }
            let seen = Seen {
                origin: Origin::Snapshot,
                started_us: Some(snapshot.seen),
                subagent: None,
                message_id: wire::id(message).map(Arc::from),
            };
            self.new_call(id, &call.name.into(), seen, out);
            self.set_arguments(id, arguments, None, out);
            self.is_of_run(id);
        }
    }

    /// A snapshot knows the arguments of a call whole, a stream may have lost part of them.
    fn complete_arguments(&mut self, id: &Arc<str>, text: &str, out: Sink<'_>) {
        let Some(call) = self.thread.calls.get(id) else { return };
        let arguments = Arguments::parse(text);
        if call.arguments == arguments || matches!(arguments, Arguments::Broken(_)) {
            return;
        }
        // An empty object in a snapshot may be older than the arguments that were streamed.
        if arguments.is_empty() && matches!(call.arguments, Arguments::Json(_)) {
            return;
        }
        self.note(
            out,
            format!(
                "the arguments of tool call {id} differ between stream and snapshot; the snapshot counts"
            ),
        );
        self.set_arguments(id, arguments, None, out);
    }

    fn results_of(&mut self, snapshot: &Snapshot, out: Sink<'_>) {
        for (place, message) in snapshot.messages.iter().enumerate() {
            if wire::role(message) != "tool" {
                continue;
            }
            let Some(id) = message.get("toolCallId").and_then(Value::as_str) else { continue };
            let id = self.thread.known_id(id.into());
            let Some(call) = self.thread.calls.get(&id) else { continue };
            // What stands before the turn may be the result of another call with the same id.
            let meant = place >= snapshot.begins || call.has_id_of_its_own(&id);
            if !meant || call.answered.is_some() {
                continue;
            }
            let result = wire::ToolResult {
                tool_call_id: id,
                content: message.get("content").cloned().unwrap_or(Value::Null),
                error: message.get("error").and_then(Value::as_str).map(str::to_string),
                ..Default::default()
            };
            self.tool_result(result, Origin::Snapshot, out);
        }
    }

    fn text_of(&mut self, message: &Message, seen: Offset, out: Sink<'_>) {
        let content = wire::text(message.get("content"));
        let id = wire::id(message).unwrap_or("");
        if content.trim().is_empty() || self.thread.turn.texts.knows(id, &content) {
            return;
        }
        let message_id: Arc<str> = id.into();
        self.thread.turn.texts.add(&message_id, &content);
        out(AssistantMessage {
            turn_id: self.turn_id(),
            message_id,
            content,
            has_tool_use: Some(wire::calls(message).next().is_some()),
            started_us: Some(seen),
            origin: Origin::Snapshot,
            subagent: None,
        }
        .into());
    }
}

/// The calls of the turn that a snapshot does not list under their own ids, by tool and arguments.
struct Twins {
    /// By tool: the calls whose arguments were broken, by their places in the turn.
    broken: HashMap<Arc<str>, BTreeMap<usize, Arc<str>>>,
    /// By tool and arguments: the other ones.
    whole: HashMap<(Arc<str>, String), BTreeMap<usize, Arc<str>>>,
}

impl Twins {
    fn of(run: &Run<'_>, listed: &[Arc<str>]) -> Twins {
        let listed: HashSet<&Arc<str>> = listed.iter().collect();
        let mut twins = Twins { broken: HashMap::new(), whole: HashMap::new() };
        let unlisted = run.thread.turn.calls.iter().enumerate().filter(|(_, id)| !listed.contains(id));
        for (place, id) in unlisted {
            let Some(call) = run.thread.calls.get(id) else { continue };
            let places = match &call.arguments {
                Arguments::Broken(_) => twins.broken.entry(call.name.clone()).or_default(),
                arguments => twins.whole.entry((call.name.clone(), arguments.sorted())).or_default(),
            };
            places.insert(place, id.clone());
        }
        twins
    }

    /// Takes the first call of a tool with these arguments, or with broken ones.
    fn take(&mut self, name: &str, arguments: &Arguments) -> Option<Arc<str>> {
        if self.broken.is_empty() && self.whole.is_empty() {
            return None;
        }
        let first = |places: Option<&BTreeMap<usize, Arc<str>>>| Some(*places?.first_key_value()?.0);
        let key = (Arc::from(name), arguments.sorted());
        let (broken, whole) = (first(self.broken.get(name)), first(self.whole.get(&key)));
        let is_broken = match (broken, whole) {
            (None, None) => return None,
            (broken, whole) => whole.is_none() || broken.is_some_and(|broken| Some(broken) < whole),
        };
        let places = if is_broken { self.broken.get_mut(name) } else { self.whole.get_mut(&key) };
        places?.pop_first().map(|(_, id)| id)
    }
}

/// What a later snapshot tells, as it is asked for by what an earlier one told.
struct ToldAgain<'a> {
    ids: HashSet<&'a str>,
    texts: Vec<String>,
    trimmed: HashSet<String>,
}

impl<'a> ToldAgain<'a> {
    fn of(later: &'a [Message]) -> Self {
        let texts: Vec<String> = later.iter().map(|message| wire::text(message.get("content"))).collect();
        ToldAgain {
            ids: later.iter().filter_map(wire::id).collect(),
            trimmed: texts.iter().map(|text| text.trim().to_string()).collect(),
            texts,
        }
    }

    /// Whether it still holds what a message says. `searched` is how many bytes were searched so far: a text that is part
    /// of another is found as long as there is not far too much of them, and the same text always.
    fn holds(&self, message: &Message, searched: &mut usize) -> bool {
        match wire::role(message) {
            "assistant" | "tool" if wire::id(message).is_some_and(|id| self.ids.contains(id)) => true,
            "assistant" if wire::calls(message).next().is_none() => {
                let text = wire::text(message.get("content"));
                let text = text.trim();
                self.trimmed.contains(text)
                    || self
                        .texts
                        .iter()
                        .take_while(|later| {
                            *searched += later.len() + 64;
                            *searched < MOST_SEARCHED
                        })
                        .any(|later| later.contains(text))
            }
            "assistant" | "tool" => false,
            // Nothing that others say is an action of the agent.
            _ => true,
        }
    }
}
