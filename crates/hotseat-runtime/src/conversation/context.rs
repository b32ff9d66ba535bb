//! What hook workflows are given, and how their request becomes the one that is sent.

use hotseat_model::{Message as ModelMessage, Position, Request, ToolResult};
use hotseat_trace::{InvocationMode, ToolOutcome, Utterance};
use serde_json::{Map, Value, json};

use super::reply::DECLINE;
use super::state::{Answer, Operation, Work};
use super::{Caller, ModelAddress, Phase, Role, State, Turn};
use crate::definition::{Definitions, Persona, Target};
use crate::ids::TurnId;

/// A value as text that does not depend on the order of its members.
pub fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut names: Vec<_> = members.iter().collect();
            names.sort_by_key(|(name, _)| *name);
            let members: Vec<_> = names
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::from(&**name), canonical(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

/// Whether the next model call is the last the turn may make.
pub(super) fn is_last(turn: &Turn, persona: &Persona) -> bool {
    persona.max_moves_per_turn.is_some_and(|most| turn.moves.len() + 1 >= most as usize)
}

/// What has happened in the turn as the model sees it, with what it has not been told yet.
pub(super) fn transcript(turn: &Turn) -> Vec<ModelMessage> {
    let mut messages = turn.transcript.clone();
    messages.extend(untold(turn));
    messages
}

/// What the model must be told next: the answers to the calls of its last reply, then what else has happened.
pub(super) fn untold(turn: &Turn) -> Vec<ModelMessage> {
    let answers = turn.slots.iter().filter_map(|slot| {
        let (content, is_error) = match slot.answer.as_ref()? {
            Answer::Started => (json!({"status": "started", "operationId": slot.call}), false),
            Answer::Ended(outcome) => match &outcome.result {
                Ok(value) => (value.clone(), false),
                Err(error) => (json!({"code": error.code, "message": error.message}), true),
            },
        };
        let call_id = slot.call.to_string();
        Some(ModelMessage::Tool(ToolResult { call_id, name: slot.tool.clone(), content, is_error }))
    });
    let notices = turn.notices.iter().map(ModelMessage::notice);
    answers.chain(notices).collect()
}

/// What the model is told when a person has changed the input of a call.
pub(super) fn edited_notice(operation: &Operation, input: &Value) -> String {
    format!("Operation {} ({}) was approved with another input: {input}", operation.call, operation.tool)
}

/// What the model is told when an asynchronous operation has ended.
pub(super) fn ended_notice(operation: &Operation, result: &ToolOutcome) -> String {
    let Operation { call, tool, .. } = operation;
    match &result.result {
        Ok(value) => format!("Operation {call} ({tool}) has completed: {value}"),
        Err(error) => format!("Operation {call} ({tool}) has failed: {}", error.message),
    }
}

/// The request that is sent: the one that was built, with its place, the model's settings and no tools at the end.
pub(super) fn finished(
    state: &State,
    turn: &Turn,
    persona: &Persona,
    built: &Request,
    at: &ModelAddress,
    last: bool,
) -> Request {
    let mut request = built.clone();
    request.position = Position {
        conversation: state.conversation.to_string(),
        agent: turn.agent.to_string(),
        turn: turn.number,
        call: at.call,
        attempt: at.attempt,
    };
    request.temperature = request.temperature.or(persona.profile.temperature);
    request.max_tokens = request.max_tokens.or(persona.profile.max_tokens);
    if last {
        request.tools.clear();
    }
    request
}

/// What the workflow that builds requests is given.
pub(super) fn assembly_input(
    state: &State,
    definitions: &Definitions,
    turn: &Turn,
    persona: &Persona,
) -> Value {
    let recent = recent_turns(state, turn, persona);
    let history: Vec<Value> = state
        .messages
        .iter()
        .filter(|message| message.turn != turn.id && heard(state, turn, &recent, &message.turn))
        .map(|message| {
            json!({
                "turnId": message.turn,
                "messageId": message.id,
                "role": role_word(message.role),
                "agentId": message.agent,
                "content": message.content,
            })
        })
        .collect();
    let ended: Vec<Value> = recent
        .iter()
        .map(|earlier| {
            json!({
                "id": earlier.id,
                "input": earlier.input,
                "agentId": earlier.agent,
                "moves": earlier.moves,
                "completedAt": earlier.ended_at,
            })
        })
        .collect();
    let active: Vec<Value> = state
        .active_turns()
        .filter(|other| other.id != turn.id)
        .map(|other| {
            let pending: Vec<_> = other
                .open_operations()
                .map(|operation| json!({"operationId": operation.call, "toolName": operation.tool}))
                .collect();
            json!({"id": other.id, "input": other.input, "pendingOperations": pending})
        })
        .collect();
    let answered =
        turn.answers.as_ref().and_then(|id| state.messages.iter().find(|message| message.id == *id));
    let offered = offered_tools(state, definitions, turn, persona);
    let ids: Vec<_> = offered.iter().map(|tool| tool["name"].clone()).collect();
    json!({
        "conversationId": state.conversation,
        "turnId": turn.id,
        "agentId": turn.agent,
        "systemPrompt": persona.system_prompt,
        "userMessage": turn.user_text,
        "replyTo": answered.map(|message| json!({"messageId": message.id, "content": message.content})),
        "modelProfileId": persona.profile.id,
        "toolIds": ids,
        "toolDefinitions": offered,
        "recentTurns": ended,
        "activeTurns": active,
        "history": history,
        "participants": state.participants,
        "context": state.offer.context,
        "state": state.shared,
        "moves": turn.moves,
        "transcript": transcript(turn),
    })
}

/// What the workflow that keeps what a turn has brought is given.
pub(super) fn extraction_input(turn: &Turn) -> Value {
    let said: Vec<_> = turn
        .transcript
        .iter()
        .filter_map(|message| match message {
            ModelMessage::Assistant { text, .. } if !text.is_empty() => Some(text.clone()),
            _ => None,
        })
        .collect();
    json!({
        "agentId": turn.agent,
        "turnId": turn.id,
        "userMessage": turn.user_text,
        "agentMessages": said,
        "transcript": turn.moves,
    })
}

/// The ended turns that the agent is told of, oldest first.
fn recent_turns<'s>(state: &'s State, turn: &Turn, persona: &Persona) -> Vec<&'s Turn> {
    let ended: Vec<_> = state
        .turns
        .iter()
        .filter(|other| other.id != turn.id && matches!(other.phase, Phase::Ended(_)))
        .collect();
    let passed = ended.len().saturating_sub(persona.recent_turns_limit);
    ended.into_iter().skip(passed).collect()
}

/// Whether what is said in a turn is heard in another: what is recent, and what goes on beside it.
fn heard(state: &State, turn: &Turn, recent: &[&Turn], other: &TurnId) -> bool {
    recent.iter().any(|earlier| earlier.id == *other)
        || state.active_turns().any(|active| active.id == *other && active.id != turn.id)
}

fn offered_tools(state: &State, definitions: &Definitions, turn: &Turn, persona: &Persona) -> Vec<Value> {
    if is_last(turn, persona) {
        return Vec::new();
    }
    let mut offered: Vec<_> = state
        .tools(definitions, &turn.agent)
        .map(|tool| {
            let target = match &tool.target {
                Some(Target::Task(_)) => "task",
                Some(Target::Workflow(_)) => "workflow",
                Some(Target::Agent(_)) => "agent",
                Some(Target::Client) => "client",
                None => "none",
            };
            json!({
                "id": tool.name,
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.input_schema,
                "targetType": target,
                "async": tool.is_async,
            })
        })
        .collect();
    if persona.may_decline && matches!(turn.caller, Caller::Agent { .. }) {
        offered.push(json!({
            "id": DECLINE,
            "name": DECLINE,
            "description": "Say that you will not do what you were asked, and why.",
            "inputSchema": {"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]},
            "targetType": "none",
            "async": false,
        }));
    }
    offered
}

/// What was said so far, for an agent that joins.
pub(super) fn utterances(state: &State) -> Vec<Utterance> {
    let said = |message: &super::Message| Utterance {
        role: role_word(message.role).into(),
        content: message.content.clone(),
        agent_id: message.agent.as_ref().map(|agent| agent.0.clone()),
    };
    state.messages.iter().map(said).collect()
}

pub(super) fn role_word(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Agent => "agent",
    }
}

/// What kind of target an operation has, and which, for events.
pub(super) fn target_words(
    work: &Work,
    tool: &str,
) -> (&'static str, std::sync::Arc<str>, Option<InvocationMode>) {
    match work {
        Work::Task(task) => ("task", task.0.clone(), None),
        Work::Workflow(workflow) => ("workflow", workflow.0.clone(), None),
        Work::Agent(agent, mode) => ("agent", agent.0.clone(), Some(*mode)),
        // The client knows it by the name of the tool.
        Work::Client => ("client", tool.into(), None),
    }
}

/// The built-in request: what the agent is told about itself, what was said before, what has happened in the turn.
///
/// `input` is that of context assembly.
pub fn built_in(input: &Value, append_system: Option<&str>) -> Value {
    let own = input.get("agentId").and_then(Value::as_str).unwrap_or_default();
    let (situation, shared) = (situation(input), shared_state(input));
    let system: Vec<&str> = [
        input.get("systemPrompt").and_then(Value::as_str),
        append_system,
        situation.as_deref(),
        shared.as_deref(),
    ]
    .into_iter()
    .flatten()
    .filter(|text| !text.is_empty())
    .collect();
    let history = input.get("history").and_then(Value::as_array).into_iter().flatten();
    let mut messages: Vec<Value> = history.map(|said| remembered(said, own)).collect();
    messages.extend(input.get("transcript").and_then(Value::as_array).into_iter().flatten().cloned());
    let tools: Vec<Value> = input
        .get("toolDefinitions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|tool| {
            json!({"name": tool["name"], "description": tool["description"], "input_schema": tool["inputSchema"]})
        })
        .collect();
    let mut request = Map::new();
    if !system.is_empty() {
        request.insert("system".to_string(), Value::String(system.join("\n\n")));
    }
    request.insert("messages".to_string(), Value::Array(messages));
    request.insert("tools".to_string(), Value::Array(tools));
    json!({"llmRequest": request})
}

/// What the client knows of its situation, for the system prompt.
fn situation(input: &Value) -> Option<String> {
    let entries = input.get("context").and_then(Value::as_array).filter(|entries| !entries.is_empty())?;
    let line = |entry: &Value| {
        let text = |member: &str| entry.get(member).and_then(Value::as_str).unwrap_or_default().to_string();
        format!("- {}: {}", text("description"), text("value"))
    };
    let lines: Vec<String> = entries.iter().map(line).collect();
    Some(format!("Context given by the client:\n{}", lines.join("\n")))
}

/// What the agent and the client share, for the system prompt.
fn shared_state(input: &Value) -> Option<String> {
    let state = input.get("state").filter(|state| !state.is_null())?;
    Some(format!("State shared with the client:\n{}", canonical(state)))
}

/// An earlier message. What other agents said is told as what it is, for the model did not say it.
fn remembered(said: &Value, own: &str) -> Value {
    let content = said.get("content").and_then(Value::as_str).unwrap_or_default();
    let message =
        match (said.get("role").and_then(Value::as_str), said.get("agentId").and_then(Value::as_str)) {
            (Some("agent"), Some(agent)) if agent != own => ModelMessage::user(format!("{agent}: {content}")),
            (Some("agent"), _) => {
                ModelMessage::Assistant { text: content.to_string(), tool_calls: Vec::new() }
            }
            _ => ModelMessage::user(content),
        };
    serde_json::to_value(message).unwrap_or(Value::Null)
}
