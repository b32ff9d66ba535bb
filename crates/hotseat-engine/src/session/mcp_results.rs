//! Failures of a conversation that its MCP servers and served models show.

use hotseat_document::excerpt;
use hotseat_model::serve::FaultKind;
use hotseat_targets::message::{LateAnswer, ScriptedAnswers};
use hotseat_trace::{
    AttemptFailure, ConversationTurn, FailureKind, LlmFaultInjected, ServerCall, TracedConversation,
    plain_text,
};
use serde_json::Value;

use crate::cases::TestCase;

/// Maximum number of calls without an answer that a failure names.
const MAX_LATE_ANSWERS: usize = 10;
/// Maximum number of notes about results in one turn.
const MAX_DIFFERING_RESULTS: usize = 10;
/// Maximum number of characters of a result in a note.
const MAX_SHOWN_CHARS: usize = 100;

/// Returns the failure of an agent that called a tool after the end of its turn: no assertion about the turn
/// could see the call.
pub(super) fn late_call(conversation: &TracedConversation) -> Option<AttemptFailure> {
    conversation.turns.iter().find_map(|turn| {
        let ended = turn.ended?;
        let seen = turn.tool_calls.iter().filter_map(|call| call.server_call.as_ref());
        let late = seen.into_iter().find(|call| call.started > ended)?;
        let message = format!(
            "the agent called {} of MCP server `{}` after turn {} had ended, so no assertion about the turn could see it",
            late.tool, late.server, turn.number
        );
        Some(AttemptFailure::new(FailureKind::AgentError, message))
    })
}

/// Describes the calls that services and functions of the test had not answered when the last turn was stopped, without those
/// that a fault broke or that wait for the user.
pub(super) fn late_answers(conversation: &TracedConversation, script: &ScriptedAnswers) -> Vec<String> {
    let turn = conversation.turns.last();
    let of_servers =
        turn.into_iter().filter_map(|turn| Some((turn, turn.ended?))).flat_map(|(turn, ended)| {
            let asks = |call: &ServerCall| {
                let questions = turn.interrupts.iter().filter(|interrupt| interrupt.server.is_some());
                let mut open = questions.filter(|interrupt| interrupt.answer.is_none());
                open.any(|interrupt| interrupt.tool_call_id.as_ref() == Some(&call.id))
            };
            // A client may cancel its call as the turn is stopped.
            let is_open = move |call: &&ServerCall| {
                call.started < ended && call.ended.is_none_or(|at| at >= ended) && call.faults.is_empty()
            };
            let calls = turn.tool_calls.iter().filter_map(|call| call.server_call.as_ref());
            calls.filter(is_open).filter(move |call| !asks(call)).take(MAX_LATE_ANSWERS).map(move |call| {
                let waited = (ended - call.started).as_millis();
                format!(
                    "MCP server `{}` had not answered its call of {} for {waited} ms",
                    call.server, call.tool
                )
            })
        });
    let own = script.late_answer().map(|LateAnswer { tool, waited }| {
        format!("the test had not answered the call of its tool {tool} for {} ms", waited.as_millis())
    });
    of_servers.chain(own).collect()
}

/// Says which calls of a turn have a result, as the agent reports them, that differs from the answer of the MCP server.
pub(super) fn differing_results(turn: &ConversationTurn) -> Vec<String> {
    let differing = turn.tool_calls.iter().filter_map(|call| {
        let (server_call, claimed) = (call.server_call.as_ref()?, call.result.as_ref()?);
        let answered = server_call.result.as_ref().filter(|_| server_call.faults.is_empty())?;
        (!agrees(&claimed.value, &answered.value)).then(|| {
            format!(
                "the agent reports another result of {} than MCP server `{}` answered; that of the agent counts: {}, not {}",
                call.name,
                server_call.server,
                shown(&claimed.value),
                shown(&answered.value),
            )
        })
    });
    differing.take(MAX_DIFFERING_RESULTS).collect()
}

/// Returns a result as a note shows it: JSON, or a text in quotes.
fn shown(result: &Value) -> String {
    let text = plain_text(result);
    let text = excerpt(&text, MAX_SHOWN_CHARS);
    if result.is_string() { format!("\"{text}\"") } else { text.into_owned() }
}

/// Returns true if a claimed result may be the answer. Agents wrap it, write it as text in their own way, cut it, or report only its
/// structured content or its blocks.
fn agrees(claimed: &Value, answered: &Value) -> bool {
    if claimed == answered {
        return true;
    }
    let is_json = |value: &Value| value.is_object() || value.is_array();
    let is_text = !is_json(claimed);
    let claimed = letters(claimed);
    let agrees_with = |part: &Value| {
        let part = letters(part);
        claimed.contains(&part) || part.starts_with(&claimed)
    };
    // Each line may be a block of its own.
    let has_lines = |text: &str| contains_in_order(&claimed, text.lines());
    let parts = match answered {
        Value::String(text) => return agrees_with(answered) || has_lines(text),
        Value::Object(members) if members.contains_key("content") => {
            let mut structured = members.clone();
            let content = structured.shift_remove("content").unwrap_or_default();
            let only = structured.shift_remove("structuredContent").filter(|_| structured.is_empty());
            vec![content, only.unwrap_or(Value::Object(structured))]
        }
        // Servers wrap a value that is no object.
        Value::Object(members) if members.len() == 1 => members.get("result").cloned().into_iter().collect(),
        _ => Vec::new(),
    };
    // Frameworks write blocks that are no text in their own form.
    let has_texts = |part: &Value| {
        let blocks = part.as_array().filter(|blocks| blocks.iter().all(|block| block["type"].is_string()));
        let has_all = |blocks: &Vec<Value>| {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            contains_in_order(&claimed, texts.flat_map(str::lines))
        };
        blocks.is_some_and(has_all)
    };
    // A text may be that of a structured value, in a notation of its own.
    let has_values = |part: &Value| {
        is_text && is_json(part) && contains_in_order(&claimed, leaves(part).iter().map(String::as_str))
    };
    let mut parts = parts.iter().chain([answered]);
    parts.any(|part| agrees_with(part) || has_texts(part) || has_values(part))
}

/// Returns the values in a value as texts, in order.
fn leaves(value: &Value) -> Vec<String> {
    match value {
        // Languages write it differently.
        Value::Null => Vec::new(),
        Value::Array(entries) => entries.iter().flat_map(leaves).collect(),
        Value::Object(members) => members.values().flat_map(leaves).collect(),
        scalar => vec![plain_text(scalar)],
    }
}

/// Returns true if a text contains the letters of all lines, one after the other. Takes time linear in the length of both.
fn contains_in_order<'l>(text: &str, lines: impl Iterator<Item = &'l str>) -> bool {
    let mut rest = text;
    for line in lines {
        let line = letters(&Value::from(line));
        let Some(at) = rest.find(&line) else { return false };
        rest = &rest[at + line.len()..];
    }
    true
}

/// Returns the letters of a value that no way of writing it changes.
fn letters(value: &Value) -> String {
    let text = plain_text(value);
    let is_kept = |letter: &char| !letter.is_whitespace() && !matches!(letter, '\\' | '"' | '\'');
    text.chars().filter(is_kept).flat_map(char::to_lowercase).collect()
}

/// Says how often a tool was called although its fault was not reached. Each call says whether another fault broke it.
fn describe_unselected(calls: impl Iterator<Item = bool>) -> String {
    let (mut made, mut broken) = (0, 0);
    calls.for_each(|is_broken| (made, broken) = (made + 1, broken + usize::from(is_broken)));
    let times = |number: usize| match number {
        1 => "once".to_string(),
        number => format!("{number} times"),
    };
    match (made, broken) {
        (0, _) => "it was not called".to_string(),
        (_, 0) => format!("it was called {}, and the fault selects none of these calls", times(made)),
        _ => format!("it was called {}, and another fault came first {}", times(made), times(broken)),
    }
}

/// Returns the failure of a test whose faults were not all reached.
pub(super) fn unreached_faults(case: &TestCase, conversation: &TracedConversation) -> Option<AttemptFailure> {
    let calls = conversation.turns.iter().flat_map(|turn| &turn.tool_calls);
    let calls: Vec<_> = calls.filter_map(|call| call.server_call.as_ref()).collect();
    let mut unreached = Vec::new();
    for (name, server) in case.mcp.iter() {
        for (index, fault) in server.faults.iter().enumerate() {
            let is_reached = |call: &&hotseat_trace::ServerCall| {
                *call.server == *name && call.faults.iter().any(|injected| injected.rule == index)
            };
            if calls.iter().any(is_reached) {
                continue;
            }
            let rule = &fault.rule;
            let tool = rule.tool.as_deref().unwrap_or("any tool");
            let is_of_tool = |call: &&&hotseat_trace::ServerCall| {
                *call.server == *name && rule.tool.as_deref().is_none_or(|tool| *call.tool == *tool)
            };
            let why = match !conversation.services.connected.is_empty() || !calls.is_empty() {
                true => {
                    describe_unselected(calls.iter().filter(is_of_tool).map(|call| !call.faults.is_empty()))
                }
                false => format!(
                    "the agent connected to no MCP server of the test; `${{MCP.{name}.url}}` is the address"
                ),
            };
            unreached.push(format!(
                "fault `{}` on {tool} of MCP server `{name}` was not reached: {why} ({})",
                rule.kind, fault.place
            ));
        }
    }
    for (model, rule, fault) in case.models.faults() {
        let is_injected = |injected: &LlmFaultInjected| *injected.model == *model && injected.rule == rule;
        if !conversation.turns.iter().flat_map(|turn| &turn.model_faults).any(is_injected) {
            let (kind, place) = (&fault.fault.kind, &fault.place);
            let calls = match kind {
                FaultKind::MalformedArguments => "no selected reply called a tool",
                _ => "no call was selected",
            };
            unreached.push(format!(
                "fault `{kind}` of the served model `{model}` was not reached: {calls} ({place})"
            ));
        }
    }
    let mut unreached = unreached.into_iter();
    let first = unreached.next()?;
    let rest: Vec<String> = unreached.collect();
    Some(AttemptFailure::new(FailureKind::TestError, first).with_detail(rest.join("\n")))
}

/// Adds the faults that were not reached to the failure of a check.
pub(super) fn with_unreached_faults(
    failure: AttemptFailure,
    unreached: Option<AttemptFailure>,
) -> AttemptFailure {
    let Some(unreached) = unreached else { return failure };
    let lines = [failure.detail.as_deref(), Some(&*unreached.message), unreached.detail.as_deref()];
    let detail = lines.into_iter().flatten().collect::<Vec<_>>().join("\n");
    failure.with_detail(detail)
}
