//! Message snapshots: calls and texts only found there are added to the trace; repeated ones count once.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use hotseat_trace::{AssistantMessage, Origin, TimeOffset};
use serde_json::Value;

use super::super::thread::{KnownArguments, MAX_SEARCHED_BYTES, ResultSource, TooManySnapshots};
use super::super::wire::{self, MessageObject};
use super::run::{CallSighting, PayloadSink, RunFold, TurnSnapshot};

/// Maximum number of earlier snapshots kept with messages that later ones omit.
const MAX_EARLIER_SNAPSHOTS: usize = 64;

impl RunFold<'_> {
    pub(super) fn messages_snapshot(
        &mut self,
        messages: Vec<MessageObject>,
        seen: TimeOffset,
    ) -> Result<(), TooManySnapshots> {
        let messages: Vec<Arc<MessageObject>> = messages.into_iter().map(Arc::new).collect();
        self.thread.replace_history(&messages)?;
        // Actions of the agent stay even if a later snapshot omits them.
        if let Some(earlier) = self.snapshots.pop() {
            let TurnSnapshot { messages: mut left_out, turn_start: begins, received_at: seen } = earlier;
            left_out.drain(..begins);
            let again = LaterMessages::new(&messages);
            left_out = left_out
                .into_iter()
                .filter_map(|message| again.missing_part(message, &mut self.searched_bytes))
                .collect();
            let is_full = self.snapshots.len() >= MAX_EARLIER_SNAPSHOTS;
            match self.snapshots.last_mut() {
                _ if left_out.is_empty() => {}
                // Each snapshot is compared with all calls of the turn.
                Some(last) if is_full => last.messages.extend(left_out),
                _ => {
                    self.snapshots.push(TurnSnapshot { messages: left_out, turn_start: 0, received_at: seen })
                }
            }
        }
        let begins = self.thread.turn_start(&messages);
        self.snapshots.push(TurnSnapshot { messages, turn_start: begins, received_at: seen });
        Ok(())
    }

    /// Compares snapshots with the events and adds missing data. Calls and texts are added in order; of
    /// several results the latest is used.
    pub(super) fn reconcile(&mut self, snapshots: &[TurnSnapshot], out: PayloadSink<'_>) {
        for snapshot in snapshots {
            self.reconcile_calls(snapshot, out);
        }
        for snapshot in snapshots.iter().rev() {
            self.reconcile_results(snapshot, out);
        }
        for snapshot in snapshots {
            let messages = &snapshot.messages[snapshot.turn_start..];
            for message in messages.iter().filter(|message| wire::role(message) == "assistant") {
                self.reconcile_text(message, snapshot.received_at, out);
            }
        }
    }

    fn reconcile_calls(&mut self, snapshot: &TurnSnapshot, out: PayloadSink<'_>) {
        let (earlier, ours) = snapshot.messages.split_at(snapshot.turn_start);
        let earlier_ids: HashSet<&str> =
            earlier.iter().flat_map(|message| wire::calls(message)).map(|call| call.id).collect();
        let earlier_ids = &earlier_ids;
        for call in earlier.iter().flat_map(|message| wire::calls(message)) {
            let id = self.thread.known_id(call.id.into());
            // Another call of the history may have the same id.
            let arguments = KnownArguments::parse(&call.arguments);
            if self
                .thread
                .call_of_turn(&id)
                .is_some_and(|known| known.has_unique_id(&id) && !known.arguments.contradicts(&arguments))
            {
                self.complete_arguments(&id, arguments, out);
            }
        }
        let occurrences = occurrences(ours);
        let listed: Vec<Arc<str>> =
            occurrences.iter().map(|found| self.thread.known_id(found.call.id.into())).collect();
        let mut unlisted = UnlistedCalls::new(self, &listed);
        let mut made: HashMap<Arc<str>, usize> = HashMap::new();
        for id in &self.thread.turn.calls {
            *made.entry(id.clone()).or_default() += 1;
        }
        for (repeat, id) in occurrences.into_iter().zip(&listed) {
            let CallOccurrence { message, call, nth, is_last, result } = repeat;
            if nth > 1 || !is_last {
                let known = made.get(id).copied().unwrap_or(0);
                if nth <= known {
                    // Only the last call with an id can be looked up by it.
                    if is_last && nth == known {
                        self.compare_arguments(snapshot, message, &call, id, out);
                    }
                    continue;
                }
                if nth > 1 {
                    if !self.is_distinct_call(id, &call, result) {
                        continue;
                    }
                    if let Some(result) = result {
                        self.record_snapshot_result(result, id, out);
                    }
                    *made.entry(id.clone()).or_default() += 1;
                    self.note(out, format!("tool call id {id} is used for two calls; both are counted"));
                    self.record_snapshot_call(snapshot, message, &call, id, out);
                    continue;
                }
                *made.entry(id.clone()).or_default() += 1;
            }
            let known = self.thread.call_of_turn(id);
            if known.is_some_and(|known| *known.name == *call.name || !known.has_unique_id(id)) {
                self.compare_arguments(snapshot, message, &call, id, out);
                continue;
            }
            let arguments = KnownArguments::parse(&call.arguments);
            // A call of an earlier turn is listed again, unless it cannot be that call.
            let earlier = self.thread.calls.get(id);
            let told_again = earlier
                .is_some_and(|known| *known.name == *call.name && !known.arguments.contradicts(&arguments));
            if told_again && !self.is_in_turn(message, id, earlier_ids) {
                continue;
            }
            // A producer may use other ids in snapshots: such calls are matched by tool and arguments.
            if let Some(twin) = unlisted.take(call.name, &arguments) {
                self.complete_arguments(&twin, arguments, out);
                self.thread.add_alias(call.id.into(), twin);
                continue;
            }
            self.record_snapshot_call(snapshot, message, &call, id, out);
        }
    }

    /// Records a call found only in a snapshot.
    fn record_snapshot_call(
        &mut self,
        snapshot: &TurnSnapshot,
        message: &MessageObject,
        call: &wire::CallInMessage<'_>,
        id: &Arc<str>,
        out: PayloadSink<'_>,
    ) {
        let message_id = wire::id(message).map(Arc::from);
        let (origin, started_us) = (Origin::Snapshot, Some(snapshot.received_at));
        self.record_new_call(
            id,
            &call.name.into(),
            CallSighting { origin, started_us, subagent: None, message_id },
            out,
        );
        self.set_arguments(id, KnownArguments::parse(&call.arguments), None, out);
        self.add_to_run(id);
    }

    /// Returns true if a message makes its call in this turn although an earlier turn has a call with the
    /// same id: the earlier call is listed before the turn, or the message is new.
    fn is_in_turn(&self, message: &MessageObject, id: &str, earlier_ids: &HashSet<&str>) -> bool {
        let before = self.thread.turn.earlier.as_ref();
        let is_new = wire::id(message).is_some_and(|id| before.is_none_or(|before| !before.ids.contains(id)));
        is_new || earlier_ids.contains(id)
    }

    /// Returns true if a call is distinct from an earlier call of the turn with the same id: the earlier one
    /// already had a result, or tool or arguments differ. Some servers restart call ids in every message.
    fn is_distinct_call(
        &self,
        id: &Arc<str>,
        call: &wire::CallInMessage<'_>,
        result: Option<&MessageObject>,
    ) -> bool {
        let Some(known) = self.thread.call_of_turn(id) else { return true };
        let arguments = KnownArguments::parse(&call.arguments);
        result.is_some() || *known.name != *call.name || known.arguments.contradicts(&arguments)
    }

    /// Records the result of a call from its message, unless it is known.
    fn record_snapshot_result(&mut self, message: &MessageObject, id: &Arc<str>, out: PayloadSink<'_>) {
        let Some(call) = self.thread.calls.get(id) else { return };
        let error = message.get("error").and_then(Value::as_str).filter(|error| !error.is_empty());
        let result = wire::ToolResult {
            tool_call_id: id.clone(),
            content: message.get("content").cloned().unwrap_or(Value::Null),
            error: error.map(str::to_string),
            ..Default::default()
        };
        match call.result_source {
            None => self.tool_result(result, Origin::Snapshot, out),
            // The event of a result has no member for an error: only its message tells it.
            Some(ResultSource::Agent { request })
                if error.is_some() && !call.has_failed && request == self.request.number =>
            {
                self.record_result(id, result, Origin::Snapshot, out);
            }
            Some(ResultSource::Agent { .. } | ResultSource::Client) => {}
        }
    }

    /// Completes the arguments of a known call, or records a second call with its id if the complete arguments
    /// differ: replacing them would hide what the first one did.
    fn compare_arguments(
        &mut self,
        snapshot: &TurnSnapshot,
        message: &MessageObject,
        call: &wire::CallInMessage<'_>,
        id: &Arc<str>,
        out: PayloadSink<'_>,
    ) {
        let arguments = KnownArguments::parse(&call.arguments);
        let Some(known) = self.thread.call_of_turn(id) else { return };
        if known.arguments.contradicts(&arguments) {
            let repeated = self.thread.turn.repeated.get(id);
            if repeated.is_some_and(|repeated| repeated.contains(&arguments.canonical_text())) {
                return;
            }
            // A human may have edited a call of an earlier run that had no result before this one.
            let this_request = ResultSource::Agent { request: self.request.number };
            let was_answered = known.result_source.is_some_and(|source| source != this_request);
            if was_answered || self.calls_in_run.contains_key(id) {
                self.note(out, format!("tool call id {id} is used for two calls; both are counted"));
                self.record_snapshot_call(snapshot, message, call, id, out);
                return;
            }
        }
        self.complete_arguments(id, arguments, out);
    }

    /// Completes the arguments of a call from a snapshot; parts of a stream may have been lost.
    fn complete_arguments(&mut self, id: &Arc<str>, arguments: KnownArguments, out: PayloadSink<'_>) {
        let Some(call) = self.thread.calls.get(id) else { return };
        if call.arguments == arguments || matches!(arguments, KnownArguments::Invalid(_)) {
            return;
        }
        // An empty object in a snapshot may be older than the streamed arguments.
        if arguments.is_empty() && matches!(call.arguments, KnownArguments::Json(_)) {
            return;
        }
        self.note(
            out,
            format!(
                "the arguments of tool call {id} differ between stream and snapshot; the snapshot is used"
            ),
        );
        self.set_arguments(id, arguments, None, out);
    }

    fn reconcile_results(&mut self, snapshot: &TurnSnapshot, out: PayloadSink<'_>) {
        // If several calls share an id, a result belongs to the call before it; only results of the last call
        // are used here.
        let mut callers: HashMap<&str, usize> = HashMap::new();
        for (place, message) in snapshot.messages.iter().enumerate() {
            callers.extend(wire::calls(message).map(|call| (call.id, place)));
        }
        for (place, message) in snapshot.messages.iter().enumerate() {
            if wire::role(message) != "tool" {
                continue;
            }
            let Some(wire_id) = message.get("toolCallId").and_then(Value::as_str) else {
                if place >= snapshot.turn_start {
                    self.note(
                        out,
                        "a tool message of a snapshot has no `toolCallId`, so it is the result of no call"
                            .to_string(),
                    );
                }
                continue;
            };
            if callers.get(wire_id).is_some_and(|caller| *caller > place) {
                continue;
            }
            let id = self.thread.known_id(wire_id.into());
            let Some(call) = self.thread.calls.get(&id) else {
                if place >= snapshot.turn_start {
                    self.unannounced_result.get_or_insert(id);
                }
                continue;
            };
            // A result before the turn may belong to another call with the same id.
            let meant = place >= snapshot.turn_start || call.has_unique_id(&id);
            if meant {
                self.record_snapshot_result(message, &id, out);
            }
        }
    }

    fn reconcile_text(&mut self, message: &MessageObject, seen: TimeOffset, out: PayloadSink<'_>) {
        let content: Arc<str> = wire::text(message.get("content")).into();
        let id = wire::id(message).unwrap_or("");
        let (known, searched) = (&self.thread.turn.recorded_texts, &mut self.searched_bytes);
        if content.trim().is_empty() || known.contains(id, &content, searched) {
            return;
        }
        let message_id: Arc<str> = id.into();
        self.thread.turn.recorded_texts.add(&message_id, &content);
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

/// A call in the messages of a turn, among those with the same id.
struct CallOccurrence<'m> {
    message: &'m MessageObject,
    call: wire::CallInMessage<'m>,
    /// Number among them, from 1.
    nth: usize,
    is_last: bool,
    /// Last result between the previous call and this one.
    result: Option<&'m MessageObject>,
}

/// Returns the calls in messages, in order.
fn occurrences(messages: &[Arc<MessageObject>]) -> Vec<CallOccurrence<'_>> {
    let mut so_far: HashMap<&str, (usize, Option<&MessageObject>)> = HashMap::new();
    let mut found = Vec::new();
    for message in messages {
        let message: &MessageObject = message;
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
            found.push(CallOccurrence { message, call, nth, is_last: false, result });
        }
    }
    for found in &mut found {
        found.is_last = so_far.get(found.call.id).is_some_and(|(times, _)| *times == found.nth);
    }
    found
}

/// Calls of the turn that a snapshot does not list by id, indexed by tool and arguments.
struct UnlistedCalls {
    /// Calls with invalid arguments by tool, and by their index in the turn.
    invalid: HashMap<Arc<str>, BTreeMap<usize, Arc<str>>>,
    /// Other calls by tool and arguments.
    valid: HashMap<(Arc<str>, String), BTreeMap<usize, Arc<str>>>,
}

impl UnlistedCalls {
    fn new(run: &RunFold<'_>, listed: &[Arc<str>]) -> UnlistedCalls {
        let listed: HashSet<&Arc<str>> = listed.iter().collect();
        let mut twins = UnlistedCalls { invalid: HashMap::new(), valid: HashMap::new() };
        let unlisted = run.thread.turn.calls.iter().enumerate().filter(|(_, id)| !listed.contains(id));
        for (place, id) in unlisted {
            let Some(call) = run.thread.calls.get(id) else { continue };
            let places = match &call.arguments {
                KnownArguments::Invalid(_) => twins.invalid.entry(call.name.clone()).or_default(),
                arguments => twins.valid.entry((call.name.clone(), arguments.canonical_text())).or_default(),
            };
            places.insert(place, id.clone());
        }
        twins
    }

    /// Removes and returns the first call of a tool with these or with invalid arguments.
    fn take(&mut self, name: &str, arguments: &KnownArguments) -> Option<Arc<str>> {
        if self.invalid.is_empty() && self.valid.is_empty() {
            return None;
        }
        let first = |places: Option<&BTreeMap<usize, Arc<str>>>| Some(*places?.first_key_value()?.0);
        let key = (Arc::from(name), arguments.canonical_text());
        let (broken, whole) = (first(self.invalid.get(name)), first(self.valid.get(&key)));
        let is_broken = match (broken, whole) {
            (None, None) => return None,
            (broken, whole) => whole.is_none() || broken.is_some_and(|broken| Some(broken) < whole),
        };
        let places = if is_broken { self.invalid.get_mut(name) } else { self.valid.get_mut(&key) };
        places?.pop_first().map(|(_, id)| id)
    }
}

/// Messages of a later snapshot, indexed to look up those of an earlier one.
struct LaterMessages<'a> {
    ids: HashSet<&'a str>,
    /// Calls with their arguments as written.
    calls: HashSet<(&'a str, Cow<'a, str>)>,
    /// Arguments of the last call with an id.
    last_arguments: HashMap<&'a str, KnownArguments>,
    texts: Vec<String>,
    trimmed: HashSet<String>,
}

impl<'a> LaterMessages<'a> {
    fn new(later: &'a [Arc<MessageObject>]) -> Self {
        let texts: Vec<String> = later.iter().map(|message| wire::text(message.get("content"))).collect();
        let calls = || later.iter().flat_map(|message| wire::calls(message));
        LaterMessages {
            ids: later.iter().filter_map(|message| wire::id(message)).collect(),
            last_arguments: calls().map(|call| (call.id, KnownArguments::parse(&call.arguments))).collect(),
            calls: calls().map(|call| (call.id, call.arguments)).collect(),
            trimmed: texts.iter().map(|text| text.trim().to_string()).collect(),
            texts,
        }
    }

    /// Returns the part of a message that the later snapshot omits: a server may keep the id of a message and
    /// take a call out of it, or replace its text.
    fn missing_part(&self, message: Arc<MessageObject>, searched: &mut usize) -> Option<Arc<MessageObject>> {
        let has_id = wire::id(&message).is_some_and(|id| self.ids.contains(id));
        match wire::role(&message) {
            "assistant" => {
                // Ids of calls may repeat in messages with other ids.
                let is_missing = |call: wire::CallInMessage<'_>| !has_id || !self.has_call(&call);
                let lacks_calls = wire::calls(&message).any(is_missing);
                let text = wire::text(message.get("content"));
                let lacks_text = !self.contains_text(text.trim(), searched);
                if lacks_calls && (!has_id || lacks_text) {
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
            "tool" if !has_id => Some(message),
            // Messages of other roles are no actions of the agent.
            _ => None,
        }
    }

    /// Returns true if a call is in the later snapshot. With other complete arguments it is another call.
    fn has_call(&self, call: &wire::CallInMessage<'_>) -> bool {
        let known = |last: &KnownArguments| !last.contradicts(&KnownArguments::parse(&call.arguments));
        self.calls.contains(&(call.id, Cow::Borrowed(&*call.arguments)))
            || self.last_arguments.get(call.id).is_some_and(known)
    }

    /// Returns true if a text is in the later snapshot. `searched` counts the searched bytes: up to the limit a
    /// text is also found inside other texts, beyond it only as a whole.
    fn contains_text(&self, text: &str, searched: &mut usize) -> bool {
        text.is_empty()
            || self.trimmed.contains(text)
            || self
                .texts
                .iter()
                .take_while(|later| {
                    *searched += later.len() + 64;
                    *searched < MAX_SEARCHED_BYTES
                })
                .any(|later| later.contains(text))
    }
}
