//! What a function of a script is told of a conversation, and what it made of it.

use std::time::Duration;

use hotseat_trace::{Turn, Visit};
use serde_json::{Map, Value, json};

use super::{Message, Role, words};
use crate::checks::{AnswerContent, Given, Scripted, find_json};
use crate::roles::Dialogue;
use crate::scripts::{Callable, Called};

/// How long a function may take to judge where nobody says so.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is told of a conversation.
pub(super) struct Told<'a> {
    pub test_id: &'a str,
    pub opening: &'a [Message],
    /// The turns up to the one that is looked at.
    pub so_far: &'a [Turn],
    /// The turns that are looked at.
    pub looked_at: &'a [Turn],
}

/// What a function made of a conversation.
pub(super) struct Asked {
    /// Whether it holds, and its words; or why that is not known.
    pub judgement: Result<(bool, Option<String>), String>,
    /// What it said to `console`.
    pub said: Vec<String>,
}

/// Has a function judge.
pub(super) async fn ask(function: &Callable, scripted: &Scripted, told: Told<'_>) -> Asked {
    let Called { result, said } = function.call(arguments(scripted, &told), scripted.timeout, PATIENCE).await;
    let judgement = match result {
        Ok(returned) => Scripted::judgement(&returned),
        Err(error) => {
            let shown = error.diagnostic().render(false, 100);
            Err(format!("{error}\n{shown}"))
        }
    };
    Asked { judgement, said }
}

/// The calls of a turn.
fn calls_of(turn: &Turn) -> Vec<Value> {
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

/// `(output, input, expected, context)`, or `(what it is given, context)`.
fn arguments(scripted: &Scripted, told: &Told<'_>) -> Vec<Value> {
    let last = told.looked_at.last();
    let output = last.and_then(|turn| turn.answer()).unwrap_or_default();
    let response = response(told.looked_at);
    let context = json!({
        "test_id": told.test_id,
        "metadata": scripted.options.get("metadata").cloned().unwrap_or_else(|| json!({})),
        "tool_calls": response["tool_calls"],
        "response": response,
        "topic": told.so_far.last().and_then(|turn| turn.topic.as_ref()),
        "topic_history": Visit::all(told.so_far).into_iter().map(|visit| visit.topic).collect::<Vec<_>>(),
        "conversation": Dialogue { opening: told.opening, turns: told.so_far }.json(),
    });
    let given = match scripted.given {
        Given::Answer => {
            let said = json!(last.and_then(|turn| turn.user.as_ref()));
            return vec![json!(output), said, json!(scripted.expected), context];
        }
        Given::Turn => last.map_or(Value::Null, turn),
        Given::Conversation => json!({
            "messages": messages(told),
            "turns": told.so_far.iter().map(turn).collect::<Vec<_>>(),
            "tool_calls": told.so_far.iter().flat_map(calls_of).collect::<Vec<_>>(),
        }),
        Given::Messages => Value::Array(messages(told)),
    };
    vec![given, context]
}

/// What an agent said and did in some turns, as functions of scripts are told.
pub fn response(turns: &[Turn]) -> Value {
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
        "tool_calls": turns.iter().flat_map(calls_of).collect::<Vec<_>>(),
        "result": last.and_then(|turn| turn.result.as_ref()),
        "state": last.and_then(|turn| turn.state.as_deref()),
        "finish_reason": last.and_then(|turn| turn.finish_reason.as_ref()),
    })
}

/// A turn, as functions are given it.
fn turn(turn: &Turn) -> Value {
    json!({
        "number": turn.number,
        "user": turn.user,
        "text": turn.messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n"),
        "messages": turn.messages.iter().map(|message| &message.content).collect::<Vec<_>>(),
        "tool_calls": calls_of(turn),
    })
}

/// What was said, by whom: `user` or `agent`.
fn messages(told: &Told<'_>) -> Vec<Value> {
    let before = told.opening.iter().map(|message| {
        let role = if message.role == Role::Assistant { "agent" } else { message.role.name() };
        json!({"role": role, "content": words(&message.content), "turn": 0})
    });
    let said = told.so_far.iter().flat_map(|turn| {
        let user = turn.user.iter().map(|said| json!({"role": "user", "content": said, "turn": turn.number}));
        let mut contents: Vec<&str> = turn.messages.iter().map(|message| message.content.as_str()).collect();
        if contents.is_empty() && !turn.tool_calls.is_empty() {
            contents.push("");
        }
        let last = contents.len().saturating_sub(1);
        let agent = contents.into_iter().enumerate().map(move |(place, content)| {
            // Calls are those of the turn: which message has made them is not always known.
            let calls = if place == last { calls_of(turn) } else { Vec::new() };
            json!({"role": "agent", "content": content, "turn": turn.number, "tool_calls": calls})
        });
        user.chain(agent).collect::<Vec<_>>()
    });
    before.chain(said).collect()
}
