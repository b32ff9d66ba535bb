//! Evaluates checks by script functions: their arguments and their results.

use std::time::Duration;

use hotseat_trace::{AgentToolCall, ConversationTurn, TurnScope, UnseenCalls, Visit};
use serde_json::{Map, Value, json};

use super::resolve_references::unseen_calls_reason;
use crate::roles::Dialogue;
use crate::scripts::{BoundFunction, ScriptOutput};
use hotseat_checks::{AnswerContent, ScriptCheck, ScriptInputKind, ScriptJudgementError, find_json};
use hotseat_script::ScriptError;
use hotseat_targets::message::{ConversationMessage, MessageRole, joined_text};

/// Default time limit of a function that checks or answers.
pub(super) const DEFAULT_FUNCTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Input of a check function.
pub(super) struct ScriptInput<'a> {
    pub test_id: &'a str,
    pub opening: &'a [ConversationMessage],
    /// The evaluated turns.
    pub scope: TurnScope<'a>,
}

/// Result of a check function.
pub(super) struct ScriptVerdict {
    /// True if it passed, with its message; or the error.
    pub judgement: Result<(bool, Option<String>), ScriptCheckError>,
    /// Lines that the function wrote to `console`.
    pub console_lines: Vec<String>,
}

/// Why a check function did not judge.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScriptCheckError {
    #[error(transparent)]
    Judgement(#[from] ScriptJudgementError),
    /// Shown with its place in the script.
    #[error("{error}\n{shown}", error = .0, shown = .0.diagnostic().to_detail())]
    Script(#[from] ScriptError),
    /// Why there are no lists of calls comes after the error.
    #[error("{error}\n{shown}\n`tool_calls` is null: {reason}", error = .0, shown = .0.diagnostic().to_detail(), reason = .1)]
    ScriptWithoutCalls(#[source] Box<ScriptError>, String),
}

/// Calls a check function.
pub(super) async fn run_script_check(
    function: &BoundFunction,
    scripted: &ScriptCheck,
    input: ScriptInput<'_>,
) -> ScriptVerdict {
    let ScriptOutput { result, console: console_lines } =
        function.call(arguments(scripted, &input), scripted.timeout, DEFAULT_FUNCTION_TIMEOUT).await;
    let parsed = result.map(|returned| ScriptCheck::parse_judgement(&returned));
    let judgement = parsed.map_err(|error| match input.scope.unseen_calls() {
        // A function that reads calls that are not visible reads null.
        Some(unseen) => ScriptCheckError::ScriptWithoutCalls(Box::new(error), unseen_calls_reason(unseen)),
        None => error.into(),
    });
    let judgement = judgement.and_then(|parsed| parsed.map_err(Into::into));
    ScriptVerdict { judgement, console_lines }
}

/// Returns the tool calls of turns as JSON; null if calls are not visible.
fn calls_json(turns: &[ConversationTurn], unseen: Option<UnseenCalls<'_>>) -> Value {
    if unseen.is_some() {
        return Value::Null;
    }
    let calls = turns.iter().flat_map(|turn| turn.tool_calls.iter().map(|call| call_json(turn, call)));
    calls.collect()
}

fn call_json(turn: &ConversationTurn, call: &AgentToolCall) -> Value {
    let mut members = Map::new();
    members.insert("id".to_string(), json!(call.id));
    members.insert("name".to_string(), json!(call.name));
    members.insert("args".to_string(), call.arguments.clone());
    members.insert("turn".to_string(), json!(turn.number));
    if let Some(received) = &call.server_call {
        members.insert("server".to_string(), json!(received.server));
        members.insert("server_tool".to_string(), json!(received.tool));
    }
    if let Some(result) = &call.result {
        let key = if result.failed { "error" } else { "result" };
        members.insert(key.to_string(), result.value.clone());
    }
    Value::Object(members)
}

/// Returns the arguments: `(output, input, expected, context)`, or `(subject, context)`.
fn arguments(scripted: &ScriptCheck, input: &ScriptInput<'_>) -> Vec<Value> {
    let (turns, unseen) = (input.scope.turns_up_to_end(), input.scope.unseen_calls());
    let last = input.scope.turns().last();
    let output = last.and_then(|turn| turn.answer()).unwrap_or_default();
    let response = response_json(input.scope);
    let context = json!({
        "test_id": input.test_id,
        "metadata": scripted.options.get("metadata").cloned().unwrap_or_else(|| json!({})),
        "tool_calls": response["tool_calls"],
        "response": response,
        "topic": turns.last().and_then(|turn| turn.topic.as_ref()),
        "topic_history": Visit::from_turns(turns).into_iter().map(|visit| visit.topic).collect::<Vec<_>>(),
        "conversation": Dialogue { opening: input.opening, turns }.to_json(),
    });
    let subject = match scripted.input_kind {
        ScriptInputKind::Answer => {
            let user = json!(last.and_then(|turn| turn.user.as_ref()));
            return vec![json!(output), user, json!(scripted.expected), context];
        }
        ScriptInputKind::Turn => last.map_or(Value::Null, |turn| turn_json(turn, unseen)),
        ScriptInputKind::Conversation => json!({
            "messages": messages_json(input),
            "turns": turns.iter().map(|turn| turn_json(turn, unseen)).collect::<Vec<_>>(),
            "tool_calls": calls_json(turns, unseen),
        }),
        ScriptInputKind::Messages => Value::Array(messages_json(input)),
    };
    vec![subject, context]
}

/// Returns the agent's response in the turns of a scope, as passed to script functions.
pub fn response_json(scope: TurnScope<'_>) -> Value {
    let last = scope.turns().last();
    let output = last.and_then(|turn| turn.answer()).unwrap_or_default();
    let json = match find_json(output) {
        AnswerContent::Json(value, _) => Some(value),
        AnswerContent::Text | AnswerContent::Malformed(_) => None,
    };
    json!({
        "content": output,
        "json": json,
        "messages": last.map(|turn| turn.messages.iter().map(|message| &message.content).collect::<Vec<_>>()),
        "tool_calls": calls_json(scope.turns(), scope.unseen_calls()),
        "result": last.and_then(|turn| turn.result.as_ref()),
        "state": scope.state(),
        "finish_reason": last.and_then(|turn| turn.finish_reason.as_ref()),
    })
}

/// Returns a turn as passed to script functions.
fn turn_json(turn: &ConversationTurn, unseen: Option<UnseenCalls<'_>>) -> Value {
    json!({
        "number": turn.number,
        "user": turn.user,
        "text": turn.messages.iter().map(|message| &*message.content).collect::<Vec<_>>().join("\n"),
        "messages": turn.messages.iter().map(|message| &message.content).collect::<Vec<_>>(),
        "tool_calls": calls_json(std::slice::from_ref(turn), unseen),
    })
}

/// Returns the messages with their role, `user` or `agent`.
fn messages_json(input: &ScriptInput<'_>) -> Vec<Value> {
    let before = input.opening.iter().map(|message| {
        let role = if message.role == MessageRole::Assistant { "agent" } else { message.role.name() };
        json!({"role": role, "content": joined_text(&message.content), "turn": 0})
    });
    let unseen = input.scope.unseen_calls();
    let messages = input.scope.turns_up_to_end().iter().flat_map(|turn| {
        let user = turn.user.iter().map(|text| json!({"role": "user", "content": text, "turn": turn.number}));
        let mut contents: Vec<&str> = turn.messages.iter().map(|message| &*message.content).collect();
        if contents.is_empty() && !turn.tool_calls.is_empty() {
            contents.push("");
        }
        let last = contents.len().saturating_sub(1);
        let agent = contents.into_iter().enumerate().map(move |(place, content)| {
            // Calls belong to the turn: the message that made them is not always known.
            let own = if place == last { std::slice::from_ref(turn) } else { &[] };
            let calls = calls_json(own, unseen);
            json!({"role": "agent", "content": content, "turn": turn.number, "tool_calls": calls})
        });
        user.chain(agent).collect::<Vec<_>>()
    });
    before.chain(messages).collect()
}
