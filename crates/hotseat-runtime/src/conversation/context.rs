//! Inputs of hook workflows, and the final model request.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use hotseat_model::{CallPosition, ModelMessage, ModelRequest};
use hotseat_trace::{InvocationMode, ToolOutcome, Utterance};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::state::{OperationTarget, ToolOperation};
use super::{ConversationState, SpeakerRole, TurnCaller, TurnPhase, TurnState};
use crate::definition::{Definitions, Persona, ToolTarget};
use crate::ids::{AgentId, TurnId};

/// Name of the built-in tool with which a called agent declines.
pub(super) const DECLINE_TOOL: &str = "decline";

/// Creates an object. Unlike `json!`, it copies no value, and it computes the hashes of the names only once.
macro_rules! object {
    ($($name:literal: $value:expr),+ $(,)?) => {{
        static NAMES: LazyLock<Map<String, Value>> =
            LazyLock::new(|| [$($name),+].map(|name| (name.to_string(), Value::Null)).into_iter().collect());
        let mut object = NAMES.clone();
        let values = [$(Value::from($value)),+];
        object.values_mut().zip(values).for_each(|(place, value)| *place = value);
        Value::Object(object)
    }};
}

/// Serialises a value with sorted keys, so that the text does not depend on member order.
pub fn canonical_json(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut names: Vec<_> = members.iter().collect();
            names.sort_by_key(|(name, _)| *name);
            let members: Vec<_> = names
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::from(&**name), canonical_json(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical_json).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// Returns true if the next model call is the last one allowed in the turn.
pub(super) fn is_last(turn: &TurnState, persona: &Persona) -> bool {
    persona.max_moves_per_turn.is_some_and(|most| turn.moves.len() + 1 >= most as usize)
}

/// Returns the transcript of the turn including messages that the model has not received yet.
pub(super) fn transcript(turn: &TurnState) -> Vec<ModelMessage> {
    let mut messages = turn.transcript.clone();
    messages.extend(turn.pending_messages());
    messages
}

/// Creates a list of serialised items.
fn list<T: Serialize>(items: impl IntoIterator<Item = T>) -> Value {
    items.into_iter().map(|item| serde_json::to_value(item).unwrap_or_default()).collect()
}

/// Returns the notice for the model after a human changed the input of a call.
pub(super) fn edited_notice(operation: &ToolOperation, input: &Value) -> String {
    format!("Operation {} ({}) was approved with a changed input: {input}", operation.call, operation.tool)
}

/// Returns the notice for the model after an asynchronous operation ended.
pub(super) fn ended_notice(operation: &ToolOperation, result: &ToolOutcome) -> String {
    let ToolOperation { call, tool, .. } = operation;
    match &result.result {
        Ok(value) => format!("Operation {call} ({tool}) has completed: {value}"),
        Err(error) => format!("Operation {call} ({tool}) has failed: {}", error.message),
    }
}

/// Completes a built request for the next model call: adds its position and the model settings, and removes
/// the tools for the last call.
pub(super) fn final_request(
    state: &ConversationState,
    turn: &TurnState,
    persona: &Persona,
    mut request: ModelRequest,
) -> ModelRequest {
    request.position = CallPosition {
        conversation: state.conversation.as_str().to_string(),
        agent: turn.agent.as_str().to_string(),
        turn: turn.number,
        call: turn.calls + 1,
        attempt: 1,
    };
    request.temperature = request.temperature.or(persona.profile.temperature);
    request.max_tokens = request.max_tokens.or(persona.profile.max_tokens);
    if is_last(turn, persona) {
        request.tools.clear();
    }
    request
}

/// Returns the input of the workflow that builds requests.
pub(super) fn assembly_input(
    state: &ConversationState,
    definitions: &Definitions,
    turn: &TurnState,
    persona: &Persona,
) -> Arc<Value> {
    let recent = recent_turns(state, turn, persona);
    // Recent and concurrent turns are visible.
    let visible: HashSet<&TurnId> =
        recent.iter().copied().chain(state.active_turns()).map(|other| &other.id).collect();
    let history: Vec<Value> = state
        .messages
        .iter()
        .filter(|message| message.turn != turn.id && visible.contains(&message.turn))
        .map(|message| {
            object! {
                "turnId": message.turn.as_str(),
                "messageId": message.id.as_str(),
                "role": role_name(message.role),
                "agentId": message.agent.as_ref().map(AgentId::as_str),
                "content": message.content.as_str(),
            }
        })
        .collect();
    let ended: Vec<Value> = recent
        .iter()
        .map(|earlier| {
            object! {
                "id": earlier.id.as_str(),
                "input": earlier.input.clone(),
                "agentId": earlier.agent.as_str(),
                "moves": list(&earlier.moves),
                "completedAt": earlier.ended_at,
            }
        })
        .collect();
    let active: Vec<Value> = state
        .active_turns()
        .filter(|other| other.id != turn.id)
        .map(|other| {
            let pending: Value = other
                .open_operations()
                .map(|operation| json!({"operationId": operation.call, "toolName": operation.tool}))
                .collect();
            object! {
                "id": other.id.as_str(),
                "input": other.input.clone(),
                "pendingOperations": pending,
            }
        })
        .collect();
    let answered =
        turn.answers.as_ref().and_then(|id| state.messages.iter().find(|message| message.id == *id));
    let offered = offered_tools(state, definitions, turn, persona);
    let ids: Value = offered.iter().map(|tool| tool["name"].clone()).collect();
    Arc::new(object! {
        "conversationId": state.conversation.as_str(),
        "turnId": turn.id.as_str(),
        "agentId": turn.agent.as_str(),
        "systemPrompt": persona.system_prompt.as_str(),
        "userMessage": turn.user_text.as_str(),
        "replyTo": answered.map(|message| json!({"messageId": message.id, "content": message.content})),
        "modelProfileId": &*persona.profile.id,
        "toolIds": ids,
        "toolDefinitions": offered,
        "recentTurns": ended,
        "activeTurns": active,
        "history": history,
        "participants": list(&state.participants),
        "context": list(&state.offer.context),
        "state": state.shared.clone(),
        "moves": list(&turn.moves),
        "transcript": list(turn.transcript.iter().chain(&turn.pending_messages())),
    })
}

/// Returns the input of the workflow that extracts memories.
pub(super) fn extraction_input(turn: &TurnState) -> Arc<Value> {
    let said = turn.transcript.iter().filter_map(|message| match message {
        ModelMessage::Assistant { text, .. } if !text.is_empty() => Some(text.as_str()),
        _ => None,
    });
    Arc::new(object! {
        "agentId": turn.agent.as_str(),
        "turnId": turn.id.as_str(),
        "userMessage": turn.user_text.as_str(),
        "agentMessages": said.collect::<Value>(),
        "transcript": list(&turn.moves),
    })
}

/// Returns the ended turns that are included in the agent's context, oldest first.
fn recent_turns<'s>(state: &'s ConversationState, turn: &TurnState, persona: &Persona) -> Vec<&'s TurnState> {
    let ended = state.turns.iter().map(|other| &**other);
    let ended = ended.filter(|other| other.id != turn.id && matches!(other.phase, TurnPhase::Ended(_)));
    let mut recent: Vec<&TurnState> = ended.rev().take(persona.recent_turns_limit).collect();
    recent.reverse();
    recent
}

fn offered_tools(
    state: &ConversationState,
    definitions: &Definitions,
    turn: &TurnState,
    persona: &Persona,
) -> Vec<Value> {
    if is_last(turn, persona) {
        return Vec::new();
    }
    let mut offered: Vec<_> = state
        .tools(definitions, &turn.agent)
        .map(|tool| {
            let target = match &tool.target {
                Some(ToolTarget::Task(_)) => "task",
                Some(ToolTarget::Workflow(_)) => "workflow",
                Some(ToolTarget::Agent(_)) => "agent",
                Some(ToolTarget::Client) => "client",
                None => "none",
            };
            object! {
                "id": tool.name.as_str(),
                "name": tool.name.as_str(),
                "description": tool.description.as_str(),
                "inputSchema": tool.input_schema.clone(),
                "targetType": target,
                "async": tool.is_async,
            }
        })
        .collect();
    if persona.may_decline && matches!(turn.caller, TurnCaller::Agent { .. }) {
        offered.push(json!({
            "id": DECLINE_TOOL,
            "name": DECLINE_TOOL,
            "description": "Decline the request and give a reason.",
            "inputSchema": {"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]},
            "targetType": "none",
            "async": false,
        }));
    }
    offered
}

/// Returns the messages so far, for an agent that joins.
pub(super) fn utterances(state: &ConversationState) -> Vec<Utterance> {
    let said = |message: &super::TurnMessage| Utterance {
        role: role_name(message.role).into(),
        content: message.content.clone(),
        agent_id: message.agent.as_ref().map(|agent| agent.0.clone()),
    };
    state.messages.iter().map(said).collect()
}

pub(super) fn role_name(role: SpeakerRole) -> &'static str {
    match role {
        SpeakerRole::User => "user",
        SpeakerRole::Agent => "agent",
    }
}

/// Returns type, id and invocation mode of an operation's target, for events.
pub(super) fn target_info(
    work: &OperationTarget,
    tool: &str,
) -> (&'static str, Arc<str>, Option<InvocationMode>) {
    match work {
        OperationTarget::Task(task) => ("task", task.0.clone(), None),
        OperationTarget::Workflow(workflow) => ("workflow", workflow.0.clone(), None),
        OperationTarget::Agent(agent, mode) => ("agent", agent.0.clone(), Some(*mode)),
        // The client identifies it by the tool name.
        OperationTarget::Client => ("client", tool.into(), None),
    }
}

/// Builds the built-in request: system prompt, earlier messages and the transcript of the turn.
///
/// `input` is the input of context assembly.
pub fn built_in_request(input: &Value, append_system: Option<&str>) -> Value {
    let own = input.get("agentId").and_then(Value::as_str).unwrap_or_default();
    let (situation, shared) = (client_context(input), shared_state(input));
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
    let mut messages: Vec<Value> = history.map(|said| history_message(said, own)).collect();
    messages.extend(input.get("transcript").and_then(Value::as_array).into_iter().flatten().cloned());
    let tools: Vec<Value> = input
        .get("toolDefinitions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|tool| {
            object! {
                "name": tool["name"].clone(),
                "description": tool["description"].clone(),
                "input_schema": tool["inputSchema"].clone(),
            }
        })
        .collect();
    let mut request = Map::new();
    if !system.is_empty() {
        request.insert("system".to_string(), Value::String(system.join("\n\n")));
    }
    request.insert("messages".to_string(), Value::Array(messages));
    request.insert("tools".to_string(), Value::Array(tools));
    object! { "llmRequest": request }
}

/// Returns the client's context for the system prompt.
fn client_context(input: &Value) -> Option<String> {
    let entries = input.get("context").and_then(Value::as_array).filter(|entries| !entries.is_empty())?;
    let line = |entry: &Value| {
        let text = |member: &str| entry.get(member).and_then(Value::as_str).unwrap_or_default().to_string();
        format!("- {}: {}", text("description"), text("value"))
    };
    let lines: Vec<String> = entries.iter().map(line).collect();
    Some(format!("Context from the client:\n{}", lines.join("\n")))
}

/// Returns the state shared with the client, for the system prompt.
fn shared_state(input: &Value) -> Option<String> {
    let state = input.get("state").filter(|state| !state.is_null())?;
    Some(format!("State shared with the client:\n{}", canonical_json(state)))
}

/// Converts an earlier message. Text of other agents is prefixed with their name, because this model did not
/// write it.
fn history_message(said: &Value, own: &str) -> Value {
    let content = said.get("content").and_then(Value::as_str).unwrap_or_default();
    let message =
        match (said.get("role").and_then(Value::as_str), said.get("agentId").and_then(Value::as_str)) {
            (Some("agent"), Some(agent)) if agent != own => ModelMessage::user(format!("{agent}: {content}")),
            (Some("agent"), _) => ModelMessage::Assistant {
                text: content.to_string(),
                tool_calls: Vec::new(),
                provider_parts: None,
            },
            _ => ModelMessage::user(content),
        };
    serde_json::to_value(message).unwrap_or(Value::Null)
}
