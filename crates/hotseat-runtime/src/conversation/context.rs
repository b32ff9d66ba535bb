//! Inputs of hook workflows, and the final model request.

use std::sync::Arc;

use hotseat_model::{CallPosition, ModelMessage, ModelRequest};
use hotseat_trace::{InvocationMode, ToolOutcome, Utterance};
use serde_json::{Map, Value, json};

use super::state::{OperationTarget, ToolOperation};
use super::{ConversationState, ModelAddress, SpeakerRole, TurnCaller, TurnPhase, TurnState};
use crate::definition::{Definitions, Persona, ToolTarget};
use crate::ids::TurnId;

/// Name of the built-in tool with which a called agent declines.
pub(super) const DECLINE_TOOL: &str = "decline";

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

/// Completes a built request: adds its position and the model settings, and removes the tools for the last
/// call.
pub(super) fn final_request(
    state: &ConversationState,
    turn: &TurnState,
    persona: &Persona,
    mut request: ModelRequest,
    at: &ModelAddress,
    last: bool,
) -> Arc<ModelRequest> {
    request.position = CallPosition {
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
    Arc::new(request)
}

/// Returns the input of the workflow that builds requests.
pub(super) fn assembly_input(
    state: &ConversationState,
    definitions: &Definitions,
    turn: &TurnState,
    persona: &Persona,
) -> Arc<Value> {
    let recent = recent_turns(state, turn, persona);
    let history: Vec<Value> = state
        .messages
        .iter()
        .filter(|message| message.turn != turn.id && is_visible(state, turn, &recent, &message.turn))
        .map(|message| {
            json!({
                "turnId": message.turn,
                "messageId": message.id,
                "role": role_name(message.role),
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
    Arc::new(json!({
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
    }))
}

/// Returns the input of the workflow that extracts memories.
pub(super) fn extraction_input(turn: &TurnState) -> Arc<Value> {
    let said: Vec<_> = turn
        .transcript
        .iter()
        .filter_map(|message| match message {
            ModelMessage::Assistant { text, .. } if !text.is_empty() => Some(text.clone()),
            _ => None,
        })
        .collect();
    Arc::new(json!({
        "agentId": turn.agent,
        "turnId": turn.id,
        "userMessage": turn.user_text,
        "agentMessages": said,
        "transcript": turn.moves,
    }))
}

/// Returns the ended turns that are included in the agent's context, oldest first.
fn recent_turns<'s>(state: &'s ConversationState, turn: &TurnState, persona: &Persona) -> Vec<&'s TurnState> {
    let ended: Vec<_> = state
        .turns
        .iter()
        .filter(|other| other.id != turn.id && matches!(other.phase, TurnPhase::Ended(_)))
        .collect();
    let passed = ended.len().saturating_sub(persona.recent_turns_limit);
    ended.into_iter().skip(passed).collect()
}

/// Returns true if messages of `other` are visible in `turn`: recent turns and concurrent ones are.
fn is_visible(state: &ConversationState, turn: &TurnState, recent: &[&TurnState], other: &TurnId) -> bool {
    recent.iter().any(|earlier| earlier.id == *other)
        || state.active_turns().any(|active| active.id == *other && active.id != turn.id)
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
            (Some("agent"), _) => {
                ModelMessage::Assistant { text: content.to_string(), tool_calls: Vec::new() }
            }
            _ => ModelMessage::user(content),
        };
    serde_json::to_value(message).unwrap_or(Value::Null)
}
