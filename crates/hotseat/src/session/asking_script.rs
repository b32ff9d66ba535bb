//! What a function of a script is told of a conversation, and what it made of it.

use std::time::Duration;

use hotseat_trace::Turn;
use serde_json::{Map, Value, json};

use super::Message;
use crate::checks::{Scripted, json_in};
use crate::roles::Dialogue;
use crate::scripts::{Called, Function};

/// How long a function may take to judge.
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
pub(super) async fn ask(function: &Function, scripted: &Scripted, told: Told<'_>) -> Asked {
    let Called { result, said } = function.call(arguments(scripted, &told), PATIENCE).await;
    let judgement = match result {
        Ok(returned) => Scripted::judgement(&returned),
        Err(error) => {
            let shown = error.diagnostic().render(false, 100);
            Err(format!("{error}\n{shown}"))
        }
    };
    Asked { judgement, said }
}

/// `(output, input, expected, context)`
fn arguments(scripted: &Scripted, told: &Told<'_>) -> Vec<Value> {
    let last = told.looked_at.last();
    let output = last.and_then(|turn| turn.answer()).unwrap_or_default();
    let calls: Vec<Value> = told
        .looked_at
        .iter()
        .flat_map(|turn| turn.tool_calls.iter().map(|call| (turn.number, call)))
        .map(|(turn, call)| {
            let mut members = Map::new();
            members.insert("id".to_string(), json!(call.id));
            members.insert("name".to_string(), json!(call.name));
            members.insert("args".to_string(), call.arguments.clone());
            members.insert("turn".to_string(), json!(turn));
            if let Some(result) = &call.result {
                let key = if result.failed { "error" } else { "result" };
                members.insert(key.to_string(), result.value.clone());
            }
            Value::Object(members)
        })
        .collect();
    let response = json!({
        "content": output,
        "json": json_in(output),
        "messages": last.map(|turn| turn.messages.iter().map(|message| &message.content).collect::<Vec<_>>()),
        "tool_calls": calls,
        "result": last.and_then(|turn| turn.result.as_ref()),
        "state": last.and_then(|turn| turn.state.as_deref()),
        "finish_reason": last.and_then(|turn| turn.finish_reason.as_ref()),
    });
    let context = json!({
        "test_id": told.test_id,
        "metadata": scripted.options.get("metadata").cloned().unwrap_or_else(|| json!({})),
        "response": response,
        "tool_calls": calls,
        "conversation": Dialogue { opening: told.opening, turns: told.so_far }.json(),
    });
    vec![json!(output), json!(last.and_then(|turn| turn.user.as_ref())), json!(scripted.expected), context]
}
