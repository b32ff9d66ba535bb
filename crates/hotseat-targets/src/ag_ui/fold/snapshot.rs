//! Message snapshots: calls and texts only found there are added to the trace; repeated ones count once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use hotseat_trace::{AssistantMessage, Origin, TimeOffset};
use serde_json::Value;

use super::super::known_call::{KnownArguments, ResultSource};
use super::super::thread::TooManySnapshots;
use super::super::wire::{self, MessageObject};
use super::later_messages::LaterMessages;
use super::run::{CallSighting, RunFold, TurnSnapshot};
use super::snapshot_times::{MessageTimes, snapshot_times};
use crate::message::shown_id;

/// Maximum number of earlier snapshots kept with messages that later ones omit.
const MAX_EARLIER_SNAPSHOTS: usize = 64;

impl RunFold<'_> {
    pub(super) fn messages_snapshot(&mut self, messages: Vec<MessageObject>) -> Result<(), TooManySnapshots> {
        let received_at = self.start_time();
        let messages: Vec<Arc<MessageObject>> = messages.into_iter().map(Arc::new).collect();
        self.thread.replace_history(&messages)?;
        // Actions of the agent stay even if a later snapshot omits them.
        if let Some(earlier) = self.snapshots.pop() {
            let TurnSnapshot { messages: mut left_out, turn_start: begins, received_at } = earlier;
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
                _ => self.snapshots.push(TurnSnapshot { messages: left_out, turn_start: 0, received_at }),
            }
        }
        let begins = self.thread.turn_start(&messages);
        self.snapshots.push(TurnSnapshot { messages, turn_start: begins, received_at });
        Ok(())
    }

    /// Compares snapshots with the events and adds missing data. Calls and texts are added in order; of
    /// several results the latest is used.
    pub(super) fn reconcile(&mut self, snapshots: &[TurnSnapshot]) {
        for snapshot in snapshots {
            let times = snapshot_times(self.thread, snapshot);
            let first = times.first().map_or(snapshot.received_at, |first| first.text);
            self.read_earlier_turns(&snapshot.messages[..snapshot.turn_start], first);
            self.reconcile_messages(snapshot, &times);
        }
        for snapshot in snapshots.iter().rev() {
            self.reconcile_results(snapshot);
        }
    }

    /// Compares the messages of the turn with the events, in their order.
    fn reconcile_messages(&mut self, snapshot: &TurnSnapshot, times: &[MessageTimes]) {
        let (earlier, ours) = snapshot.messages.split_at(snapshot.turn_start);
        let occurrences = occurrences(ours);
        let listed: Vec<Arc<str>> =
            occurrences.iter().map(|found| self.thread.known_id(found.call.id.into())).collect();
        let mut context = CallContext {
            earlier: earlier.iter().flat_map(|message| wire::calls(message)).map(|call| call.id).collect(),
            unlisted: UnlistedCalls::new(self, &listed),
            made: HashMap::new(),
        };
        for found in &occurrences {
            self.thread.note_listed_call(found.call.id);
        }
        for id in &self.thread.turn.calls {
            *context.made.entry(id.clone()).or_default() += 1;
        }
        let mut occurrences = occurrences.into_iter().zip(&listed).peekable();
        for (place, message) in ours.iter().enumerate() {
            if wire::role(message) == "assistant" {
                self.reconcile_text(message, times[place].text);
            }
            while let Some((found, id)) = occurrences.next_if(|(found, _)| found.place == place) {
                self.reconcile_call(found, id, &mut context, times[place].calls);
            }
        }
    }

    fn reconcile_call(
        &mut self,
        found: CallOccurrence<'_>,
        id: &Arc<str>,
        context: &mut CallContext<'_>,
        started: TimeOffset,
    ) {
        let CallOccurrence { message, call, nth, is_last, result, .. } = found;
        if nth > 1 || !is_last {
            let known = context.made.get(id).copied().unwrap_or(0);
            if nth <= known {
                // Only the last call with an id can be looked up by it.
                if is_last && nth == known {
                    self.compare_arguments(message, &call, id, started);
                }
                return;
            }
            if nth > 1 {
                if !self.is_distinct_call(id, &call, result) {
                    return;
                }
                if let Some(result) = result {
                    self.record_snapshot_result(result, id);
                }
                *context.made.entry(id.clone()).or_default() += 1;
                self.note_second_call(id);
                return self.record_snapshot_call(message, &call, id, started);
            }
            *context.made.entry(id.clone()).or_default() += 1;
        }
        if self.thread.call_of_turn(id).is_some_and(|known| *known.name == *call.name) {
            return self.compare_arguments(message, &call, id, started);
        }
        if self.thread.is_replaced_call(id, &call) {
            return;
        }
        let arguments = KnownArguments::parse(&call.arguments);
        // A call of an earlier turn is listed again, unless it cannot be that call.
        let earlier = self.thread.calls.get(id);
        let told_again = earlier
            .is_some_and(|known| *known.name == *call.name && !known.arguments.contradicts(&arguments));
        if told_again && !self.is_in_turn(message, id, &context.earlier) {
            return;
        }
        // A producer may use other ids in snapshots: such calls are matched by tool and arguments.
        if let Some(twin) = context.unlisted.take(call.name, &arguments) {
            self.complete_arguments(&twin, arguments);
            self.tell_message_of_snapshot(&twin, message);
            self.thread.add_alias(call.id.into(), twin);
            return;
        }
        self.record_snapshot_call(message, &call, id, started);
    }

    /// Records a call found only in a snapshot.
    pub(super) fn record_snapshot_call(
        &mut self,
        message: &MessageObject,
        call: &wire::CallInMessage<'_>,
        id: &Arc<str>,
        started: TimeOffset,
    ) {
        let message_id = wire::id(message).map(Arc::from);
        let (origin, started_us) = (Origin::Snapshot, Some(started));
        self.record_new_call(
            id,
            &call.name.into(),
            CallSighting { origin, started_us, subagent: None, message_id },
        );
        self.set_arguments(id, KnownArguments::parse(&call.arguments), None);
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
    /// already had a result, tool or arguments differ, or the id is empty. Some servers restart call ids in every message.
    fn is_distinct_call(
        &self,
        id: &Arc<str>,
        call: &wire::CallInMessage<'_>,
        result: Option<&MessageObject>,
    ) -> bool {
        let Some(known) = self.thread.call_of_turn(id) else { return true };
        let arguments = KnownArguments::parse(&call.arguments);
        id.is_empty()
            || result.is_some()
            || *known.name != *call.name
            || known.arguments.contradicts(&arguments)
    }

    /// Records the result of a call from its message, unless it is known.
    fn record_snapshot_result(&mut self, message: &MessageObject, id: &Arc<str>) {
        let Some(call) = self.thread.calls.get(id) else { return };
        let error = message.get("error").and_then(wire::error_text);
        let result = wire::ToolResult {
            tool_call_id: id.clone(),
            content: message.get("content").cloned().unwrap_or(Value::Null),
            error,
            ..Default::default()
        };
        match call.result_source {
            None => self.tool_result(result, Origin::Snapshot),
            // The event of a result has no member for an error: only its message tells it.
            Some(ResultSource::Agent { request })
                if result.error.is_some() && call.error.is_none() && request == self.request.number =>
            {
                self.record_result(id, result, Origin::Snapshot);
            }
            Some(ResultSource::Agent { .. } | ResultSource::Client) => {}
        }
    }

    /// Completes the arguments of a known call, or records a second call with its id if the complete arguments
    /// differ: replacing them would hide what the first one did.
    fn compare_arguments(
        &mut self,
        message: &MessageObject,
        call: &wire::CallInMessage<'_>,
        id: &Arc<str>,
        started: TimeOffset,
    ) {
        let arguments = KnownArguments::parse(&call.arguments);
        let Some(known) = self.thread.call_of_turn(id) else { return };
        if known.arguments.contradicts(&arguments) {
            if self.thread.is_replaced_call(id, call) {
                return;
            }
            // A human may have edited a call of an earlier run that had no result before this one.
            let was_answered = known.result_source.is_some_and(|source| source != self.answering());
            if was_answered || self.calls_in_run.contains_key(id) {
                self.note_second_call(id);
                self.record_snapshot_call(message, call, id, started);
                return;
            }
        }
        self.complete_arguments(id, arguments);
        self.tell_message_of_snapshot(id, message);
    }

    /// Completes the arguments of a call from a snapshot; parts of a stream may have been lost.
    pub(super) fn complete_arguments(&mut self, id: &Arc<str>, arguments: KnownArguments) {
        let Some(call) = self.thread.calls.get(id) else { return };
        if call.arguments == arguments || matches!(arguments, KnownArguments::Invalid(_)) {
            return;
        }
        // An empty object in a snapshot may be older than the streamed arguments.
        if arguments.is_empty() && matches!(call.arguments, KnownArguments::Json(_)) {
            return;
        }
        self.note(format!(
            "the arguments of tool call {} differ between stream and snapshot; the snapshot is used",
            shown_id(id)
        ));
        self.set_arguments(id, arguments, None);
    }

    fn reconcile_results(&mut self, snapshot: &TurnSnapshot) {
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
                self.record_snapshot_result(message, &id);
            }
        }
    }

    pub(super) fn reconcile_text(&mut self, message: &MessageObject, started: TimeOffset) {
        let content: Arc<str> = wire::text(message.get("content")).into();
        let id = wire::id(message).unwrap_or("");
        let (known, searched) = (&self.thread.turn.recorded_texts, &mut self.searched_bytes);
        if content.trim().is_empty() || known.contains(id, &content, searched) {
            return;
        }
        let message_id: Arc<str> = id.into();
        self.thread.turn.recorded_texts.add(&message_id, &content, started);
        self.emit(AssistantMessage {
            turn_id: self.turn_id(),
            message_id,
            content,
            has_tool_use: Some(wire::calls(message).next().is_some()),
            started_us: Some(started),
            origin: Origin::Snapshot,
            subagent: None,
        });
    }
}

/// What the calls of a snapshot are compared with.
struct CallContext<'s> {
    /// Ids of the calls that it lists before the turn.
    earlier: HashSet<&'s str>,
    unlisted: UnlistedCalls,
    /// Number of calls of the turn by id.
    made: HashMap<Arc<str>, usize>,
}

/// A call in the messages of a turn, among those with the same id.
struct CallOccurrence<'m> {
    /// Index of the message in the turn.
    place: usize,
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
    for (place, message) in messages.iter().enumerate() {
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
            found.push(CallOccurrence { place, message, call, nth, is_last: false, result });
        }
    }
    for found in &mut found {
        found.is_last = so_far.get(found.call.id).is_some_and(|(times, _)| *times == found.nth);
    }
    found
}

/// Calls of the turn that no snapshot lists by the id of their events, indexed by tool and arguments.
struct UnlistedCalls {
    /// Calls with invalid or cut arguments by tool, and by their index in the turn.
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
            let Some(call) = run.thread.calls.get(id).filter(|call| !call.is_listed) else { continue };
            let places = match &call.arguments {
                KnownArguments::Invalid(_) | KnownArguments::Cut => {
                    twins.invalid.entry(call.name.clone()).or_default()
                }
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
