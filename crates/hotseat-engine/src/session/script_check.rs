//! Evaluates checks by script functions: their arguments and their results.

use std::time::Duration;

use hotseat_trace::{ConversationTurn, Visit};
use serde_json::{Map, Value, json};

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
    /// The turns up to the evaluated one.
    pub turns: &'a [ConversationTurn],
    /// The evaluated turns.
    pub evaluated: &'a [ConversationTurn],
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
    #[error("{error}\n{shown}", error = .0, shown = .0.diagnostic().render(false, 100))]
    Script(#[from] ScriptError),
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
    let judgement = parsed.map_err(Into::into).and_then(|parsed| parsed.map_err(Into::into));
    ScriptVerdict { judgement, console_lines }
}

/// Returns the tool calls of a turn as JSON.
fn calls_json(turn: &ConversationTurn) -> Vec<Value> {
    let calls = turn.tool_calls.iter().map(|call| {
        let mut members = Map::new();
        members.insert("id".to_string(), json!(call.id));
        members.insert("name".to_string(), json!(call.name));
        members.insert("args".to_string(), call.arguments.clone());
        members.insert("turn".to_string(), json!(turn.number));
        if let Some(result) = &call.result {
            let key = if result.failed { "error" } else { "result" };
            members.insert(key.to_string(), result.value.clone());
        }
        Value::Object(members)
    });
    calls.collect()
}

/// Returns the arguments: `(output, input, expected, context)`, or `(subject, context)`.
fn arguments(scripted: &ScriptCheck, input: &ScriptInput<'_>) -> Vec<Value> {
    let last = input.evaluated.last();
    let output = last.and_then(|turn| turn.answer()).unwrap_or_default();
    let response = response_json(input.evaluated);
    let context = json!({
        "test_id": input.test_id,
        "metadata": scripted.options.get("metadata").cloned().unwrap_or_else(|| json!({})),
        "tool_calls": response["tool_calls"],
        "response": response,
        "topic": input.turns.last().and_then(|turn| turn.topic.as_ref()),
        "topic_history": Visit::from_turns(input.turns).into_iter().map(|visit| visit.topic).collect::<Vec<_>>(),
        "conversation": Dialogue { opening: input.opening, turns: input.turns }.to_json(),
    });
    let subject = match scripted.input_kind {
        ScriptInputKind::Answer => {
            let user = json!(last.and_then(|turn| turn.user.as_ref()));
            return vec![json!(output), user, json!(scripted.expected), context];
        }
        ScriptInputKind::Turn => last.map_or(Value::Null, turn_json),
        ScriptInputKind::Conversation => json!({
            "messages": messages_json(input),
            "turns": input.turns.iter().map(turn_json).collect::<Vec<_>>(),
            "tool_calls": input.turns.iter().flat_map(calls_json).collect::<Vec<_>>(),
        }),
        ScriptInputKind::Messages => Value::Array(messages_json(input)),
    };
    vec![subject, context]
}

/// Returns the agent's response in some turns, as passed to script functions.
pub fn response_json(turns: &[ConversationTurn]) -> Value {
    let last = turns.last();
    let output = last.and_then(|turn| turn.answer()).unwrap_or_default();
    let json = match find_json(output) {
        AnswerContent::Json(value, _) => Some(value),
        AnswerContent::Text | AnswerContent::Malformed(_) => None,
    };
    json!({
        "content": output,
        "json": json,
        "messages": last.map(|turn| turn.messages.iter().map(|message| &message.content).collect::<Vec<_>>()),
        "tool_calls": turns.iter().flat_map(calls_json).collect::<Vec<_>>(),
        "result": last.and_then(|turn| turn.result.as_ref()),
        "state": last.and_then(|turn| turn.state.as_deref()),
        "finish_reason": last.and_then(|turn| turn.finish_reason.as_ref()),
    })
}

/// Returns a turn as passed to script functions.
fn turn_json(turn: &ConversationTurn) -> Value {
    json!({
        "number": turn.number,
        "user": turn.user,
        "text": turn.messages.iter().map(|message| &*message.content).collect::<Vec<_>>().join("\n"),
        "messages": turn.messages.iter().map(|message| &message.content).collect::<Vec<_>>(),
        "tool_calls": calls_json(turn),
    })
}

/// Returns the messages with their role, `user` or `agent`.
fn messages_json(input: &ScriptInput<'_>) -> Vec<Value> {
    let before = input.opening.iter().map(|message| {
        let role = if message.role == MessageRole::Assistant { "agent" } else { message.role.name() };
        json!({"role": role, "content": joined_text(&message.content), "turn": 0})
    });
    let messages = input.turns.iter().flat_map(|turn| {
        let user = turn.user.iter().map(|text| json!({"role": "user", "content": text, "turn": turn.number}));
        let mut contents: Vec<&str> = turn.messages.iter().map(|message| &*message.content).collect();
        if contents.is_empty() && !turn.tool_calls.is_empty() {
            contents.push("");
        }
        let last = contents.len().saturating_sub(1);
        let agent = contents.into_iter().enumerate().map(move |(place, content)| {
            // Calls belong to the turn: the message that made them is not always known.
            let calls = if place == last { calls_json(turn) } else { Vec::new() };
            json!({"role": "agent", "content": content, "turn": turn.number, "tool_calls": calls})
        });
        user.chain(agent).collect::<Vec<_>>()
    });
    before.chain(messages).collect()
}
