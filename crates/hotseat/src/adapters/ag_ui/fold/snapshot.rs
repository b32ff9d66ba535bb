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
        let earlier_ids: HashSet<&str> = earlier.iter().flat_map(wire::calls).map(|call| call.id).collect();
        let earlier_ids = &earlier_ids;
        for call in earlier.iter().flat_map(wire::calls) {
            let id = self.thread.known_id(call.id.into());
            if self.thread.call_of_turn(&id).is_some_and(|known| known.has_id_of_its_own(&id)) {
                self.complete_arguments(&id, &call.arguments, out);
            }
        }
        let listed: Vec<Arc<str>> =
            ours.iter().flat_map(wire::calls).map(|call| self.thread.known_id(call.id.into())).collect();
        let mut unlisted = Twins::of(self, &listed);
        let mut made: HashMap<Arc<str>, usize> = HashMap::new();
        for id in &self.thread.turn.calls {
            *made.entry(id.clone()).or_default() += 1;
        }
        for (repeat, id) in repeats(ours).into_iter().zip(&listed) {
            let Repeat { message, call, nth, is_last, result } = repeat;
            if nth > 1 || !is_last {
                let known = made.get(id).copied().unwrap_or(0);
                if nth <= known {
                    // Only the last call of an id can still be looked up by it.
                    if is_last && nth == known {
                        self.complete_arguments(id, &call.arguments, out);
                    }
                    continue;
                }
                if nth > 1 {
                    if !self.is_another(id, &call, result) {
                        continue;
                    }
                    if let Some(result) = result {
                        self.result_in(result, id, out);
                    }
                    *made.entry(id.clone()).or_default() += 1;
                    self.note(out, format!("tool call id {id} is used for two calls; both count"));
                    self.call_in(snapshot, message, &call, id, out);
                    continue;
                }
                *made.entry(id.clone()).or_default() += 1;
            }
            let known = self.thread.call_of_turn(id);
            if known.is_some_and(|known| *known.name == *call.name || !known.has_id_of_its_own(id)) {
                self.complete_arguments(id, &call.arguments, out);
                continue;
            }
            let arguments = Arguments::parse(&call.arguments);
            // A call of an earlier turn that stands here is told again, unless it cannot be that one.
            let earlier = self.thread.calls.get(id);
            let told_again = earlier
                .is_some_and(|known| *known.name == *call.name && !known.arguments.contradict(&arguments));
            if told_again && !self.is_of_turn(message, id, earlier_ids) {
                continue;
            }
            // A producer may give its calls other ids in a snapshot: those are found by tool and arguments.
            if let Some(twin) = unlisted.take(call.name, &arguments) {
                self.complete_arguments(&twin, &call.arguments, out);
                self.thread.add_alias(call.id.into(), twin);
                continue;
            }
            self.call_in(snapshot, message, &call, id, out);
        }
    }

    /// A call that only a snapshot tells.
    fn call_in(
        &mut self,
        snapshot: &Snapshot,
        message: &Message,
        call: &wire::CallInMessage<'_>,
        id: &Arc<str>,
        out: Sink<'_>,
    ) {
        let message_id = wire::id(message).map(Arc::from);
        let (origin, started_us) = (Origin::Snapshot, Some(snapshot.seen));
        self.new_call(id, &call.name.into(), Seen { origin, started_us, subagent: None, message_id }, out);
        self.set_arguments(id, Arguments::parse(&call.arguments), None, out);
        self.is_of_run(id);
    }

    /// Whether a message makes its call in this turn, although an earlier turn has made one with the same id: that one
    /// stands before the turn in the same snapshot, or the message is one that did not exist then.
    fn is_of_turn(&self, message: &Message, id: &str, earlier_ids: &HashSet<&str>) -> bool {
        let before = self.thread.turn.before.as_ref();
        let is_new = wire::id(message).is_some_and(|id| before.is_none_or(|before| !before.ids.contains(id)));
        is_new || earlier_ids.contains(id)
    }

    /// Whether a call whose id an earlier message of the turn has, too, is another call: that one had its result when this
    /// one was made, or they plainly differ. Some servers count their calls from one in every message.
    fn is_another(&self, id: &Arc<str>, call: &wire::CallInMessage<'_>, result: Option<&Message>) -> bool {
        let Some(known) = self.thread.call_of_turn(id) else { return true };
        let arguments = Arguments::parse(&call.arguments);
        result.is_some() || *known.name != *call.name || known.arguments.contradict(&arguments)
    }

    /// Takes the result of a call from its message, unless it is known.
    fn result_in(&mut self, message: &Message, id: &Arc<str>, out: Sink<'_>) {
        if self.thread.calls.get(id).is_none_or(|call| call.answered.is_some()) {
            return;
        }
        let result = wire::ToolResult {
            tool_call_id: id.clone(),
            content: message.get("content").cloned().unwrap_or(Value::Null),
            error: message.get("error").and_then(Value::as_str).map(str::to_string),
            ..Default::default()
        };
        self.tool_result(result, Origin::Snapshot, out);
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
        // Of an id that several calls have, a result belongs to the call before it; here only the last call is looked for.
        let mut callers: HashMap<&str, usize> = HashMap::new();
        for (place, message) in snapshot.messages.iter().enumerate() {
            callers.extend(wire::calls(message).map(|call| (call.id, place)));
        }
        for (place, message) in snapshot.messages.iter().enumerate() {
            if wire::role(message) != "tool" {
                continue;
            }
            let Some(wire_id) = message.get("toolCallId").and_then(Value::as_str) else { continue };
            if callers.get(wire_id).is_some_and(|caller| *caller > place) {
                continue;
            }
            let id = self.thread.known_id(wire_id.into());
            let Some(call) = self.thread.calls.get(&id) else { continue };
            // What stands before the turn may be the result of another call with the same id.
            let meant = place >= snapshot.begins || call.has_id_of_its_own(&id);
            if !meant || call.answered.is_some() {
                continue;
            }
            self.result_in(message, &id, out);
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

/// A call in the messages of a turn, among those that have the same id.
struct Repeat<'m> {
    message: &'m Message,
    call: wire::CallInMessage<'m>,
    /// Its place among them, from 1.
    nth: usize,
    is_last: bool,
    /// The last result between the call before it and this one.
    result: Option<&'m Message>,
}

/// The calls in messages, in their order.
fn repeats(messages: &[Message]) -> Vec<Repeat<'_>> {
    let mut total: HashMap<&str, usize> = HashMap::new();
    for call in messages.iter().flat_map(wire::calls) {
        *total.entry(call.id).or_default() += 1;
    }
    let mut so_far: HashMap<&str, (usize, Option<&Message>)> = HashMap::new();
    let mut found = Vec::new();
    for message in messages {
        if wire::role(message) == "tool"
            && let Some(id) = message.get("toolCallId").and_then(Value::as_str)
            && let Some((_, result)) = so_far.get_mut(id)
        {
            *result = Some(message);
        }
        for call in wire::calls(message) {
            let (times, result) = so_far.entry(call.id).or_default();
            *times += 1;
            let (nth, result) = (*times, result.take());
            let is_last = total.get(call.id) == Some(&nth);
            found.push(Repeat { message, call, nth, is_last, result });
        }
    }
    found
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
