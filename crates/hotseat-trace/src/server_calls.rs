//! Calls that MCP servers of the test see, and how they are joined with the calls that the agent reports.
//!
//! An agent may report its calls in its own protocol (AG-UI, chat completions) while the server that it calls
//! belongs to the test. Both see the same call, which must count once.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::json::{canonical_text, json_equal};
use crate::{AgentToolCall, Millis, Origin, TimeOffset, ToolInvocation, ToolResult};

/// A tool call as an MCP server of the test saw it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerCall {
    /// Number of its first event in the trace.
    pub sequence: u64,
    /// Its id in the trace.
    pub id: Arc<str>,
    /// Name of the server.
    pub server: Arc<str>,
    /// Name of the tool at the server.
    pub tool: Arc<str>,
    /// Arguments; null if there are none.
    pub arguments: Value,
    /// Id under which the agent reports the call, if its client passed it.
    pub agent_call_id: Option<Arc<str>>,
    /// Arrival of the request.
    pub started: TimeOffset,
    /// When the answer was sent; `None` if none was sent.
    pub ended: Option<TimeOffset>,
    /// When the answer was sent, on the wall clock.
    pub completed_at: Option<Millis>,
    /// The answer, if one was sent.
    pub result: Option<ToolResult>,
    /// Set if the answer did not reach the agent: true if the tool succeeded or may have succeeded, false if it failed.
    pub lost_success: Option<bool>,
    /// Violations of the tool's input schema.
    pub argument_errors: Vec<String>,
    /// True if the schema was not known: the tools of a proxied server are, once the agent has listed them.
    pub arguments_unchecked: bool,
    /// Why the listed schema could not be used, if that is the reason.
    pub schema_problem: Option<Arc<str>>,
    /// Faults that the server injected.
    pub faults: Vec<InjectedFault>,
}

/// A fault that an MCP server of the test injected into a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InjectedFault {
    /// Kind, for instance `lost_answer`.
    pub kind: Arc<str>,
    /// Index among the faults of the server.
    pub rule: usize,
    /// True if the tool took effect although the client may not know it.
    pub effect: bool,
    /// When it was injected.
    pub at: TimeOffset,
}

impl ServerCall {
    /// Creates a call from its first event; `None` if no server saw it.
    pub(crate) fn new(invoked: &ToolInvocation, sequence: u64, at: TimeOffset) -> Option<ServerCall> {
        Some(ServerCall {
            sequence,
            id: invoked.tool_call_id.clone(),
            server: invoked.server.clone()?,
            tool: invoked.tool_name.clone(),
            arguments: invoked.input.clone().unwrap_or(Value::Null),
            agent_call_id: invoked.agent_call_id.clone(),
            started: invoked.started_us.unwrap_or(at),
            ..ServerCall::default()
        })
    }

    /// True if it is known that the tool took no effect: it failed, or a fault came before it.
    pub fn has_failed(&self) -> bool {
        let is_known = self.result.is_some() || self.lost_success.is_some() || !self.faults.is_empty();
        is_known && !self.has_effect()
    }

    /// True if the tool took effect, or may have: it ran and did not fail, whether or not its answer arrived.
    pub fn has_effect(&self) -> bool {
        let took_effect = match (self.lost_success, &self.result) {
            // The agent may have got an error in place of the answer.
            (Some(true), _) => true,
            (_, Some(result)) => !result.failed,
            (Some(false), None) => false,
            // A fault after the effect is still delaying the answer.
            (None, None) => !self.faults.is_empty(),
        };
        took_effect && self.faults.iter().all(|fault| fault.effect)
    }
}

/// What frameworks put between the name of a server and the name of its tool.
const NAME_SEPARATORS: [&str; 6] = ["__", "_", "-", ".", "/", ":"];

/// Returns a name as frameworks pass it to models, which allow only letters, digits, `_` and `-`.
fn model_name(name: &str) -> Cow<'_, str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.chars().all(is_allowed) {
        return Cow::Borrowed(name);
    }
    name.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect()
}

/// Returns true if agents may report a tool of a server under this name.
pub fn is_reported_tool_name(server: &str, tool: &str, name: &str) -> bool {
    is_qualified_name(server, tool, name) || is_qualified_name(&model_name(server), &model_name(tool), name)
}

/// Returns true if the name is that of the tool, with or without its server.
fn is_qualified_name(server: &str, tool: &str, name: &str) -> bool {
    let Some(prefix) = name.strip_suffix(tool) else { return false };
    let is_of_server = |between: &&str| match prefix.strip_suffix(*between) {
        None => false,
        Some(prefix) if prefix == server => true,
        Some(prefix) => {
            prefix.strip_prefix("mcp").and_then(|rest| rest.strip_suffix(server)) == Some(*between)
        }
    };
    prefix.is_empty() || NAME_SEPARATORS.iter().any(is_of_server)
}

/// Returns the names under which agents report a tool of a server: frameworks add the name of the server.
pub(crate) fn reported_tool_names(server: &str, tool: &str) -> Vec<String> {
    let mut names = qualified_names(server, tool);
    let (model_server, model_tool) = (model_name(server), model_name(tool));
    if (&*model_server, &*model_tool) != (server, tool) {
        names.extend(qualified_names(&model_server, &model_tool));
    }
    names
}

/// Returns the name of a tool at a server, if a reported name has that of the server.
pub(crate) fn tool_at<'n>(server: &str, name: &'n str) -> Option<&'n str> {
    let server = if name.contains(server) { Cow::Borrowed(server) } else { model_name(server) };
    NAME_SEPARATORS.iter().find_map(|between| {
        let marked = name.strip_prefix("mcp").and_then(|rest| rest.strip_prefix(between)).unwrap_or(name);
        let tool = marked.strip_prefix(&*server)?.strip_prefix(between)?;
        (!tool.is_empty()).then_some(tool)
    })
}

/// Returns the name of a tool without and with its server.
fn qualified_names(server: &str, tool: &str) -> Vec<String> {
    let qualified = NAME_SEPARATORS.iter().map(|between| format!("{server}{between}{tool}"));
    let marked = NAME_SEPARATORS.iter().map(|between| format!("mcp{between}{server}{between}{tool}"));
    std::iter::once(tool.to_string()).chain(qualified).chain(marked).collect()
}

/// Maximum number of reported calls whose arguments are compared with those of one call at a server.
const MAX_COMPARED_CALLS: usize = 64;

/// Positions of reported calls without a counterpart, by their tools and arguments.
type CallQueues = HashMap<String, HashMap<String, VecDeque<usize>>>;

/// Joins the calls of a turn that the agent reports with those that MCP servers saw. A pair has the same id if
/// the client passed it. Otherwise it has the same tool and arguments, and overlaps in time; a call that is
/// reported afterwards is paired with the first one left. Then calls are paired whose arguments the client extended or cut.
/// Calls without a counterpart stay calls of their own.
///
/// A server knows when a call began, a report only when the agent announced it. So the calls that servers saw are in the order in
/// which they arrived there; a call that only the agent reports stays at its place among the reported ones.
pub(crate) fn join_server_calls(
    mut reported: Vec<AgentToolCall>,
    mut seen: Vec<ServerCall>,
) -> Vec<AgentToolCall> {
    seen.sort_by_key(|call| call.started);
    let mut partners: Vec<Option<ServerCall>> = reported.iter().map(|_| None).collect();
    let mut unreported = pair_by_id(&mut seen, &reported, &mut partners);
    let mut queues = CallQueues::new();
    for (place, call) in reported.iter().enumerate() {
        if may_be_remote(call) && partners[place].is_none() {
            let of_tool = queues.entry(call.name.to_string()).or_default();
            of_tool.entry(canonical_arguments(&call.arguments)).or_default().push_back(place);
        }
    }
    let mut left = Vec::new();
    for overlapping in [true, false] {
        for call in std::mem::take(&mut seen) {
            match find_partner(&call, &reported, &mut queues, overlapping) {
                Some(place) => partners[place] = Some(call),
                None => left.push(call),
            }
        }
        std::mem::swap(&mut seen, &mut left);
    }
    unreported.extend(pair_by_members(seen, &reported, &mut partners));
    unreported.sort_by_key(|call| call.started);
    let mut unreported = unreported.into_iter().map(AgentToolCall::from_server_call).peekable();
    for (call, partner) in reported.iter_mut().zip(partners) {
        if let Some(partner) = partner {
            call.attach_server_call(partner);
        }
    }
    let reported = by_arrival(reported);
    // A call that only the agent reports may have begun long before, so it precedes no call that reached a server before the next.
    let mut limits: Vec<TimeOffset> = Vec::with_capacity(reported.len());
    let mut next_arrival = None;
    for call in reported.iter().rev() {
        next_arrival = call.server_call.as_ref().map(|call| call.started).or(next_arrival);
        limits.push(match (&call.server_call, next_arrival) {
            (Some(seen), _) => seen.started,
            (None, next) => next.map_or(call.started, |next| next.min(call.started)),
        });
    }
    let mut joined = Vec::with_capacity(reported.len() + unreported.len());
    for (call, limit) in reported.into_iter().zip(limits.into_iter().rev()) {
        while let Some(earlier) = unreported.next_if(|other| other.started < limit) {
            joined.push(earlier);
        }
        joined.push(call);
    }
    joined.extend(unreported);
    joined
}

/// Puts the calls that servers saw into the order of their arrival, at the places of these calls. Calls that arrived at the same time
/// keep their order.
fn by_arrival(reported: Vec<AgentToolCall>) -> Vec<AgentToolCall> {
    let places: Vec<bool> = reported.iter().map(|call| call.server_call.is_some()).collect();
    let (mut seen, unseen): (Vec<_>, Vec<_>) =
        reported.into_iter().partition(|call| call.server_call.is_some());
    seen.sort_by_key(|call| call.server_call.as_ref().map(|call| call.started));
    let (mut seen, mut unseen) = (seen.into_iter(), unseen.into_iter());
    places.into_iter().filter_map(|is_seen| if is_seen { seen.next() } else { unseen.next() }).collect()
}

/// Pairs calls whose client passed the id of a reported call of the same tool, and removes them from `seen`. Of several calls
/// under one id, the first that overlaps in time is preferred. Returns further calls with such an id, which the client repeated.
fn pair_by_id(
    seen: &mut Vec<ServerCall>,
    reported: &[AgentToolCall],
    partners: &mut [Option<ServerCall>],
) -> Vec<ServerCall> {
    if seen.iter().all(|call| call.agent_call_id.is_none()) {
        return Vec::new();
    }
    let mut queues: Vec<Vec<usize>> = Vec::new();
    let mut queue_of: HashMap<(&str, &str), usize> = HashMap::new();
    for (place, call) in reported.iter().enumerate() {
        for id in [Some(&*call.id), numbered_id(&call.id)].into_iter().flatten() {
            let queue = *queue_of.entry((id, &*call.name)).or_insert_with(|| {
                queues.push(Vec::new());
                queues.len() - 1
            });
            if may_be_remote(call) {
                queues[queue].push(place);
            }
        }
    }
    let mut named = Vec::new();
    for call in std::mem::take(seen) {
        let queue = call.agent_call_id.as_deref().and_then(|id| {
            let names = reported_tool_names(&call.server, &call.tool);
            names.iter().find_map(|name| queue_of.get(&(id, name.as_str())).copied())
        });
        match queue {
            Some(queue) => named.push((queue, call)),
            None => seen.push(call),
        }
    }
    for overlapping in [true, false] {
        let mut passed = vec![0; queues.len()];
        for (number, call) in std::mem::take(&mut named) {
            let (queue, passed) = (&queues[number], &mut passed[number]);
            let is_passed = |place: &usize| {
                partners[*place].is_some() || (overlapping && is_over(&reported[*place], call.started))
            };
            while queue.get(*passed).is_some_and(is_passed) {
                *passed += 1;
            }
            match queue.get(*passed) {
                Some(place) if !overlapping || starts_in_time(&reported[*place], &call) => {
                    partners[*place] = Some(call);
                }
                _ => named.push((number, call)),
            }
        }
    }
    named.into_iter().map(|(_, call)| call).collect()
}

/// Returns the id that the agent uses, if the one in the trace has a number after it: agents that restart their ids use them again.
fn numbered_id(id: &str) -> Option<&str> {
    let (own, number) = id.rsplit_once('#')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(own)
}

/// Removes the reported call that a server call belongs to from its queue, and returns its position.
fn find_partner(
    call: &ServerCall,
    reported: &[AgentToolCall],
    queues: &mut CallQueues,
    overlapping: bool,
) -> Option<usize> {
    let mut names = reported_tool_names(&call.server, &call.tool);
    names.retain(|name| queues.contains_key(name));
    if names.is_empty() {
        return None;
    }
    let arguments = canonical_arguments(&call.arguments);
    for name in names {
        let Some(queue) = queues.get_mut(&name).and_then(|of_tool| of_tool.get_mut(&arguments)) else {
            continue;
        };
        // A call that ended before this one began is another one; so it is for all later ones.
        while queue.front().is_some_and(|place| is_over(&reported[*place], call.started)) {
            queue.pop_front();
        }
        if queue.front().is_some_and(|place| !overlapping || starts_in_time(&reported[*place], call)) {
            return queue.pop_front();
        }
    }
    None
}

/// Pairs calls of the same tool if the arguments of one have all members of the other: clients add keys and defaults, or
/// remove what the server does not know. Unknown arguments of a reported call may be any. Returns the calls without a
/// counterpart.
fn pair_by_members(
    mut seen: Vec<ServerCall>,
    reported: &[AgentToolCall],
    partners: &mut [Option<ServerCall>],
) -> Vec<ServerCall> {
    let mut queues: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (place, call) in reported.iter().enumerate().filter(|_| !seen.is_empty()) {
        if may_be_remote(call) && partners[place].is_none() {
            queues.entry(&*call.name).or_default().push_back(place);
        }
    }
    for overlapping in [true, false] {
        let mut left = Vec::new();
        for call in std::mem::take(&mut seen) {
            let fits = |place: &usize| {
                let candidate = &reported[*place];
                !is_over(candidate, call.started)
                    && (!overlapping || starts_in_time(candidate, &call))
                    && (candidate.arguments_broken || is_part_of_other(&candidate.arguments, &call.arguments))
            };
            let found = reported_tool_names(&call.server, &call.tool).iter().find_map(|name| {
                let queue = queues.get_mut(name.as_str())?;
                while queue.front().is_some_and(|place| is_over(&reported[*place], call.started)) {
                    queue.pop_front();
                }
                queue.remove(queue.iter().take(MAX_COMPARED_CALLS).position(fits)?)
            });
            match found {
                Some(place) => partners[place] = Some(call),
                None => left.push(call),
            }
        }
        seen = left;
    }
    seen
}

/// True if one of two objects has all members of the other, at every level, or contains the other as its only member. Absent
/// arguments are an empty object.
fn is_part_of_other(one: &Value, other: &Value) -> bool {
    let are_alike = |one: &Value, other: &Value| is_part_of(one, other) || is_part_of(other, one);
    match (one, other) {
        (Value::Object(members), Value::Object(others)) => {
            are_alike(one, other)
                || only_member(members).is_some_and(|inner| are_alike(inner, other))
                || only_member(others).is_some_and(|inner| are_alike(inner, one))
        }
        (Value::Null, Value::Null | Value::Object(_)) | (Value::Object(_), Value::Null) => true,
        _ => false,
    }
}

/// Returns the object that is the only member of another one: clients wrap arguments, or remove the wrapping.
fn only_member(members: &Map<String, Value>) -> Option<&Value> {
    members.values().next().filter(|inner| members.len() == 1 && inner.is_object())
}

/// True if `whole` differs from `part` only by additional members of objects, also within lists of the same length. A value and its
/// JSON text are equal: servers and frameworks convert arguments to the types of the schema.
fn is_part_of(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| is_part_of(part, whole)))
        }
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(part, whole)| is_part_of(part, whole))
        }
        (Value::String(part), Value::String(whole)) => part == whole,
        (Value::String(text), whole) => json_text(text).is_some_and(|part| is_part_of(&part, whole)),
        (part, Value::String(text)) => json_text(text).is_some_and(|whole| is_part_of(part, &whole)),
        _ => json_equal(part, whole),
    }
}

/// Returns the value of a JSON text.
fn json_text(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// True if a call was reported before it ended at its server.
fn starts_in_time(reported: &AgentToolCall, call: &ServerCall) -> bool {
    call.ended.is_none_or(|ended| reported.started <= ended)
}

/// True if a reported call may be a call of an MCP server: the test does not answer it itself.
fn may_be_remote(call: &AgentToolCall) -> bool {
    call.server_call.is_none() && call.result.as_ref().is_none_or(|result| result.origin != Origin::Client)
}

/// True if the agent got the result of a call before `time`.
fn is_over(call: &AgentToolCall, time: TimeOffset) -> bool {
    call.result.is_some() && call.ended < time && call.started < call.ended
}

/// Returns arguments as a text. Equal arguments have equal texts; absent and empty ones are equal.
pub fn canonical_arguments(arguments: &Value) -> String {
    match arguments {
        Value::Null => "{}".to_string(),
        other => canonical_text(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        ErrorInfo, Event, McpAnswerLost, McpFaultInjected, Payload, ToolArguments, ToolCompleted, ToolFailed,
        TracedConversation, TurnCompletion, TurnStart,
    };

    /// Builds a conversation of one turn from events at given times.
    #[derive(Default)]
    struct Events(Vec<Event>);

    impl Events {
        fn new() -> Events {
            Events::default().at(0, TurnStart::by_user("t".into(), "c".into(), "hotseat"))
        }

        fn at(mut self, time: u64, payload: impl Into<Payload>) -> Events {
            let sequence = self.0.len() as u64 + 1;
            self.0.push(Event { sequence, offset: TimeOffset(time), timestamp: 0, payload: payload.into() });
            self
        }

        fn reported(self, time: u64, id: &str, tool: &str, arguments: Option<Value>) -> Events {
            let invocation = ToolInvocation::new("t".into(), id.into(), tool);
            self.at(time, Payload::ToolInvoked(ToolInvocation { input: arguments, ..invocation }))
        }

        fn seen(self, time: u64, id: &str, tool: &str, arguments: Value) -> Events {
            self.seen_as(time, id, tool, arguments, None)
        }

        /// A call whose client passes the id of the agent.
        fn seen_as(
            self,
            time: u64,
            id: &str,
            tool: &str,
            arguments: Value,
            agent_call_id: Option<&str>,
        ) -> Events {
            self.at(
                time,
                Payload::ToolInvoked(ToolInvocation {
                    input: Some(arguments),
                    server: Some("bank".into()),
                    agent_call_id: agent_call_id.map(Arc::from),
                    ..ToolInvocation::new("t".into(), id.into(), tool)
                }),
            )
        }

        fn result(self, time: u64, id: &str, output: Value) -> Events {
            let done = ToolCompleted {
                turn_id: "t".into(),
                tool_call_id: id.into(),
                output,
                origin: Origin::Stream,
            };
            self.at(time, done)
        }

        fn failed(self, time: u64, id: &str) -> Events {
            let failed = ToolFailed {
                turn_id: "t".into(),
                tool_call_id: id.into(),
                error: ErrorInfo { code: None, message: "failed".into(), retriable: None },
                origin: Origin::Stream,
            };
            self.at(time, failed)
        }

        /// A fault in a call that takes effect.
        fn fault(self, time: u64, id: &str, fault: &str) -> Events {
            let injected = McpFaultInjected {
                turn_id: "t".into(),
                tool_call_id: id.into(),
                server: "bank".into(),
                tool: "pay".into(),
                fault: fault.into(),
                rule: 0,
                effect: true,
            };
            self.at(time, injected)
        }

        fn lost(self, time: u64, id: &str, success: bool) -> Events {
            self.at(time, McpAnswerLost { turn_id: "t".into(), tool_call_id: id.into(), success })
        }

        fn end(self) -> TracedConversation {
            let all = self.at(1000, TurnCompletion { turn_id: "t".into(), issues: None });
            TracedConversation::from_events(&all.0)
        }
    }

    /// Name, sources and server id of each call.
    fn calls(conversation: &TracedConversation) -> Vec<String> {
        let calls = conversation.turns[0].tool_calls.iter();
        calls
            .map(|call| {
                let server = call.server_call.as_ref().map_or("-", |call| &call.id);
                format!("{} {} {server}", call.id, call.sources().join("+"))
            })
            .collect()
    }

    #[test]
    fn one_call_seen_twice_is_one_call() {
        let seen_while_open = Events::new()
            .reported(1, "a", "pay", None)
            .at(
                2,
                ToolArguments {
                    turn_id: "t".into(),
                    tool_call_id: "a".into(),
                    input: Some(json!({"n": 1, "m": 2})),
                    text: None,
                    ended_us: None,
                    message_id: None,
                },
            )
            .seen(3, "s1", "pay", json!({"m": 2, "n": 1.0}))
            .result(4, "s1", json!("ok"))
            .result(5, "a", json!("told"))
            .end();
        assert_eq!(calls(&seen_while_open), ["a agent+mcp s1"]);
        let call = &seen_while_open.turns[0].tool_calls[0];
        assert_eq!(call.result.as_ref().unwrap().value, json!("told"));
        assert_eq!(call.server_call.as_ref().unwrap().result.as_ref().unwrap().value, json!("ok"));
        assert_eq!(call.server(), Some("bank"));
        // The agent reports the call after it, under a qualified name and without a result.
        let told_later = Events::new()
            .seen(1, "s1", "pay", json!({}))
            .result(2, "s1", json!("ok"))
            .reported(3, "a", "mcp__bank__pay", None)
            .end();
        assert_eq!(calls(&told_later), ["a agent+mcp s1"]);
        let call = &told_later.turns[0].tool_calls[0];
        assert_eq!(call.result.as_ref().unwrap().value, json!("ok"));
        assert!(call.is_named("pay") && call.is_named("mcp__bank__pay") && !call.is_named("bank"));
    }

    #[test]
    fn a_tool_has_the_names_under_which_agents_report_it() {
        let conversation = Events::new().seen(1, "s1", "pay", json!({})).end();
        let call = conversation.call("s1").unwrap();
        for name in reported_tool_names("bank", "pay") {
            assert!(call.is_named(&name), "{name}");
        }
        for name in ["prepay", "mcp__bank_pay", "mcp_pay", "other__pay", "bank", "_pay", "mcp__bank__", ""] {
            assert!(!call.is_named(name), "{name}");
        }
    }

    /// Models accept fewer characters in names of tools than MCP.
    #[test]
    fn a_tool_has_the_names_that_frameworks_make_of_it() {
        let conversation = Events::new()
            .reported(1, "a", "mcp__bank__refund_create", Some(json!({"n": 1})))
            .seen(2, "s1", "refund.create", json!({"n": 1}))
            .result(3, "a", json!("ok"))
            .end();
        assert_eq!(calls(&conversation), ["a agent+mcp s1"]);
        let call = conversation.call("a").unwrap();
        for name in ["refund.create", "refund_create", "bank_refund_create", "mcp__bank__refund.create"] {
            assert!(call.is_named(name), "{name}");
        }
        assert!(!call.is_named("refund-create"));
    }

    #[test]
    fn calls_that_differ_stay_two() {
        let conversation = Events::new()
            .reported(1, "a", "pay", Some(json!({"n": 1})))
            .result(2, "a", json!("ok"))
            // Same call, after the first one had ended: the agent does not report the retry.
            .seen(3, "s1", "pay", json!({"n": 1}))
            .seen(4, "s2", "pay", json!({"n": 2}))
            .seen(5, "s3", "refund", json!({"n": 1}))
            .end();
        assert_eq!(calls(&conversation), ["a agent -", "s1 mcp s1", "s2 mcp s2", "s3 mcp s3"]);
    }

    #[test]
    fn a_retry_of_the_client_is_a_call_of_its_own() {
        let conversation = Events::new()
            .reported(1, "a", "pay", Some(json!({})))
            .seen(2, "s1", "pay", json!({}))
            .fault(3, "s1", "lost_answer")
            .lost(3, "s1", true)
            .seen(4, "s2", "pay", json!({}))
            .result(5, "s2", json!("ok"))
            .result(6, "a", json!("ok"))
            .end();
        assert_eq!(calls(&conversation), ["a agent+mcp s1", "s2 mcp s2"]);
        let effects = conversation.turns[0]
            .tool_calls
            .iter()
            .map(|call| call.server_call.as_ref().unwrap().has_effect());
        assert_eq!(effects.collect::<Vec<_>>(), [true, true]);
    }

    #[test]
    fn a_call_whose_fault_met_a_question_takes_effect_with_its_result() {
        let begun = || Events::new().seen(1, "s1", "pay", json!({})).fault(2, "s1", "delay");
        let cases = [
            (begun(), true),
            (begun().lost(3, "s1", false), false),
            (begun().lost(3, "s1", false).result(4, "s1", json!("ok")), true),
            (begun().lost(3, "s1", true).failed(4, "s1"), true),
        ];
        for (place, (events, expected)) in cases.into_iter().enumerate() {
            let conversation = events.end();
            let call = conversation.call("s1").unwrap();
            assert_eq!(call.server_call.as_ref().unwrap().has_effect(), expected, "case {place}");
        }
    }

    /// AG-UI has no mark of failure: the agent reports the error as a result.
    #[test]
    fn a_call_that_failed_at_its_server_has_failed() {
        let reported = |events: Events| {
            let conversation = events.result(5, "r1", json!("card declined")).end();
            let call = &conversation.turns[0].tool_calls[0];
            (conversation.turns[0].tool_calls.len(), call.result.clone().unwrap().failed)
        };
        let begun = || {
            Events::new().reported(1, "r1", "pay", Some(json!({"n": 1}))).seen(
                2,
                "s1",
                "pay",
                json!({"n": 1}),
            )
        };
        assert_eq!(reported(begun().failed(4, "s1")), (1, true));
        assert_eq!(reported(begun().lost(4, "s1", false)), (1, true));
        assert_eq!(reported(begun().lost(4, "s1", true)), (1, false));
        assert_eq!(reported(begun().result(4, "s1", json!("ok"))), (1, false));
        assert_eq!(reported(begun()), (1, false));
    }

    #[test]
    fn parallel_calls_are_paired_in_order() {
        let conversation = Events::new()
            .reported(1, "a", "pay", Some(json!({})))
            .reported(1, "b", "pay", Some(json!({})))
            .seen(2, "s1", "pay", json!({}))
            .seen(2, "s2", "pay", json!({}))
            .failed(3, "s2")
            .end();
        assert_eq!(calls(&conversation), ["a agent+mcp s1", "b agent+mcp s2"]);
        assert!(conversation.call("s2").unwrap().result.as_ref().unwrap().failed);
        assert!(conversation.call("a").unwrap().result.is_none());
    }

    #[test]
    fn calls_with_the_id_of_the_agent_are_paired_in_any_order() {
        let conversation = Events::new()
            .reported(1, "a", "pay", Some(json!({"n": 1})))
            .reported(1, "b", "pay", Some(json!({"n": 1})))
            .reported(1, "c", "pay", Some(json!({"n": 1})))
            .seen_as(2, "s1", "pay", json!({"n": 1}), Some("c"))
            .seen_as(3, "s2", "pay", json!({"n": 1}), Some("a"))
            // No such id: the arguments decide.
            .seen_as(4, "s3", "pay", json!({"n": 1}), Some("d"))
            .result(5, "s1", json!("for c"))
            .result(6, "s2", json!("for a"))
            .end();
        assert_eq!(calls(&conversation), ["c agent+mcp s1", "a agent+mcp s2", "b agent+mcp s3"]);
        let results = ["a", "c"].map(|id| conversation.call(id).unwrap().result.clone().unwrap().value);
        assert_eq!(results, [json!("for a"), json!("for c")]);
    }

    /// What only the agent reports keeps its place between the calls that servers saw.
    #[test]
    fn calls_at_servers_are_in_the_order_of_their_arrival() {
        let conversation = Events::new()
            .seen(1, "s1", "pay", json!({}))
            .seen(2, "s2", "audit", json!({}))
            .seen(3, "s3", "check", json!({}))
            .reported(9, "a", "check", Some(json!({})))
            .reported(9, "b", "local", Some(json!({})))
            .reported(9, "c", "pay", Some(json!({})))
            .end();
        assert_eq!(calls(&conversation), ["c agent+mcp s1", "s2 mcp s2", "b agent -", "a agent+mcp s3"]);
        assert_eq!(conversation.call("a").unwrap().id, "a".into());
    }

    #[test]
    fn a_call_that_the_client_repeats_with_its_id_takes_no_other_call() {
        let conversation = Events::new()
            .reported(1, "a", "pay", Some(json!({})))
            .reported(1, "b", "pay", Some(json!({})))
            .seen_as(2, "s1", "pay", json!({}), Some("a"))
            .seen_as(3, "s2", "pay", json!({}), Some("a"))
            .end();
        assert_eq!(calls(&conversation), ["a agent+mcp s1", "b agent -", "s2 mcp s2"]);
    }

    #[test]
    fn a_passed_id_that_the_agent_uses_again_is_that_of_its_calls() {
        let conversation = Events::new()
            .reported(1, "c", "pay", Some(json!({"n": 1})))
            .seen_as(2, "s1", "pay", json!({"n": 1}), Some("c"))
            .lost(2, "s1", true)
            // The client repeats the call, which the agent does not report.
            .seen_as(3, "s2", "pay", json!({"n": 1}), Some("c"))
            .result(4, "s2", json!("ok"))
            .result(4, "c", json!("ok"))
            .reported(5, "c#2", "pay", Some(json!({"n": 2})))
            .seen_as(6, "s3", "pay", json!({"n": 2}), Some("c"))
            .result(7, "c#2", json!("ok"))
            .reported(8, "c#3", "refund", Some(json!({"n": 2})))
            .seen_as(9, "s4", "refund", json!({"n": 2}), Some("c"))
            .end();
        assert_eq!(
            calls(&conversation),
            ["c agent+mcp s1", "s2 mcp s2", "c#2 agent+mcp s3", "c#3 agent+mcp s4"]
        );
        let reported_at_the_end = Events::new()
            .seen_as(1, "s1", "pay", json!({"n": 1}), Some("c"))
            .result(2, "s1", json!("ok"))
            .seen_as(3, "s2", "pay", json!({"n": 2}), Some("c"))
            .result(4, "s2", json!("ok"))
            .reported(5, "c", "pay", Some(json!({"n": 1})))
            .reported(5, "c#2", "pay", Some(json!({"n": 2})))
            .end();
        assert_eq!(calls(&reported_at_the_end), ["c agent+mcp s1", "c#2 agent+mcp s2"]);
    }

    #[test]
    fn an_agent_may_use_the_id_of_a_call_at_a_server() {
        let server_result = |events: Events, time, id: &str, output| {
            let (turn_id, tool_call_id) = ("t".into(), id.into());
            events.at(time, ToolCompleted { turn_id, tool_call_id, output, origin: Origin::Server })
        };
        let seen = Events::new().seen(1, "s1", "pay", json!({}));
        let conversation = server_result(seen, 2, "s1", json!("charged"))
            .reported(3, "s1", "lookup", Some(json!({})))
            .result(4, "s1", json!("refused"))
            .seen(5, "s2", "pay", json!({}))
            .at(6, TurnCompletion { turn_id: "t".into(), issues: None })
            .reported(7, "s2", "lookup", None)
            .result(8, "s2", json!("late"));
        let conversation = server_result(conversation, 9, "s2", json!("charged later")).end();
        let results = conversation.turns[0].tool_calls.iter().map(|call| {
            let result = call.result.as_ref().expect("a result");
            (&*call.name, result.value.as_str().unwrap_or_default())
        });
        let expected =
            [("pay", "charged"), ("lookup", "refused"), ("pay", "charged later"), ("lookup", "late")];
        assert_eq!(results.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn arguments_that_the_client_adds_are_those_of_the_call() {
        let conversation = Events::new()
            .reported(1, "a", "pay", Some(json!({"n": 1})))
            .seen_as(2, "s1", "pay", json!({"n": 1, "key": "k"}), Some("a"))
            // The id of a call of another tool.
            .seen_as(3, "s2", "refund", json!({}), Some("a"))
            .end();
        assert_eq!(calls(&conversation), ["a agent+mcp s1", "s2 mcp s2"]);
        assert_eq!(conversation.call("a").unwrap().arguments, json!({"n": 1, "key": "k"}));
    }

    #[test]
    fn arguments_that_the_client_extends_or_cuts_belong_to_one_call() {
        let conversation = Events::new()
            .reported(1, "a", "pay", Some(json!({"n": 1})))
            .reported(1, "b", "pay", Some(json!({"n": 2, "note": "x"})))
            // Parallel calls in another order: one with a member more, and one with a member less.
            .seen(2, "s1", "pay", json!({"n": 2}))
            .seen(3, "s2", "pay", json!({"n": 1.0, "key": "k"}))
            // The client repeats its call, which the agent does not report.
            .seen(4, "s3", "pay", json!({"n": 1, "key": "k"}))
            .seen(5, "s4", "pay", json!({"n": 3}))
            .end();
        assert_eq!(calls(&conversation), ["b agent+mcp s1", "a agent+mcp s2", "s3 mcp s3", "s4 mcp s4"]);
        let arguments = ["a", "b"].map(|id| conversation.call(id).unwrap().arguments.clone());
        assert_eq!(arguments, [json!({"n": 1.0, "key": "k"}), json!({"n": 2})]);
    }

    #[test]
    fn defaults_within_arguments_belong_to_one_call() {
        let reported = json!({"guest": {"name": "a"}, "items": [{"sku": 1}, {"sku": 2}]});
        let joins = |received: Value| {
            let conversation = Events::new()
                .reported(1, "a", "pay", Some(reported.clone()))
                .seen(2, "s1", "pay", received)
                .end();
            conversation.turns[0].tool_calls.len() == 1
        };
        let items = json!([{"sku": 1.0, "count": null}, {"sku": 2}]);
        assert!(joins(json!({"guest": {"name": "a", "age": null}, "items": items, "note": ""})));
        // Parts that both have differ.
        assert!(!joins(json!({"guest": {"name": "b", "age": null}, "items": items})));
        assert!(!joins(json!({"guest": {"name": "a", "age": null}, "items": [{"sku": 1, "count": null}]})));
        assert!(!joins(json!({"guest": {"name": "a", "age": null}, "items": [{"sku": 1}, {"sku": "3"}]})));
        assert!(!joins(json!({"guest": "a", "items": items})));
    }

    #[test]
    fn converted_and_wrapped_arguments_belong_to_one_call() {
        let joins = |reported: Value, received: Value| {
            let conversation =
                Events::new().reported(1, "a", "pay", Some(reported)).seen(2, "s1", "pay", received).end();
            conversation.turns[0].tool_calls.len() == 1
        };
        let cases = [
            (json!({"n": "5"}), json!({"n": 5}), true),
            (json!({"n": 5.5, "is_new": true}), json!({"n": "5.50", "is_new": "true"}), true),
            (json!({"items": "[{\"sku\": 1}]"}), json!({"items": [{"sku": 1.0, "count": null}]}), true),
            (json!({"input": {"n": 5}}), json!({"n": 5}), true),
            (json!({"n": 5}), json!({"request": {"n": "5", "note": null}}), true),
            (json!({"n": "5"}), json!({"n": 6}), false),
            (json!({"n": "05"}), json!({"n": 5}), false),
            (json!({"n": "5"}), json!({"n": "5.0"}), false),
            (json!({"input": {"n": 5}}), json!({"n": 6}), false),
            (json!({"input": {"n": 5}, "m": 1}), json!({"n": 5}), false),
        ];
        for (reported, received, expected) in cases {
            assert_eq!(joins(reported.clone(), received.clone()), expected, "{reported} {received}");
        }
    }

    #[test]
    fn events_after_the_end_of_a_turn_reach_their_call() {
        let late = Events::new()
            .seen(1, "s1", "pay", json!({}))
            .at(2, TurnCompletion { turn_id: "t".into(), issues: None });
        let late = late.result(3, "s1", json!("late")).seen(4, "s2", "pay", json!({})).end();
        assert_eq!(calls(&late), ["s1 mcp s1", "s2 mcp s2"]);
        assert_eq!(late.call("s1").unwrap().result.as_ref().unwrap().value, json!("late"));
    }

    #[test]
    fn a_trace_without_an_end_keeps_its_calls() {
        let all = Events::new().seen(1, "s1", "pay", json!({}));
        assert_eq!(calls(&TracedConversation::from_events(&all.0)), ["s1 mcp s1"]);
    }
}
