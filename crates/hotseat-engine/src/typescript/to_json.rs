//! Converts conversations and check results to JSON for scripts.

use hotseat_trace::{AgentToolCall, ConversationTurn, TopicGraph, TracedConversation, TurnOutcome};
use serde_json::{Map, Value, json};

use crate::session::CheckResult;

/// Returns the turns from an index on.
pub fn turns_from(turns: &[ConversationTurn], from: usize) -> Vec<Value> {
    turns.iter().skip(from).map(turn).collect()
}

/// Returns the state of the topics of a graph.
pub fn topic_state(graph: &TopicGraph, conversation: &TracedConversation) -> Value {
    let visits = conversation.topic_visits();
    json!({
        "names": graph.names().collect::<Vec<_>>(),
        "current": conversation.current_topic,
        "history": visits.iter().map(|visit| &visit.topic).collect::<Vec<_>>(),
        "visits": visits.iter().map(|visit| json!({
            "topic": visit.topic,
            "visit": visit.number,
            "turns": visit.turns.clone().map(|place| place + 1).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        // A turn may be assigned to a topic after the script received it.
        "ofTurns": conversation.turns.iter().map(|turn| turn.topic.as_deref()).collect::<Vec<_>>(),
    })
}

fn turn(turn: &ConversationTurn) -> Value {
    let error = match &turn.outcome {
        TurnOutcome::Failed(error) => Some(error.message.as_str()),
        TurnOutcome::Open | TurnOutcome::Completed => None,
    };
    let duration = turn.ended.map(|ended| (ended - turn.started).as_micros() / 1000);
    json!({
        "number": turn.number,
        "user": turn.user.as_deref().unwrap_or_default(),
        "spoken": turn.user.is_some(),
        "text": text(turn),
        "calls": turn.tool_calls.iter().map(call).collect::<Vec<_>>(),
        "topic": turn.topic.as_deref(),
        "caller": turn.caller,
        "startedAt": turn.started_at,
        "endedAt": turn.ended_at,
        "durationMs": duration.and_then(|ms| u64::try_from(ms).ok()),
        "metadata": {
            "usage": turn.reported_usage,
            "finishReason": turn.finish_reason.as_deref(),
            "result": turn.result,
            "state": turn.state.as_deref(),
            "messages": turn.messages.iter().map(|message| &message.content).collect::<Vec<_>>(),
            "error": error,
        },
    })
}

/// Returns all messages of the agent in a turn.
fn text(turn: &ConversationTurn) -> String {
    let said: Vec<&str> = turn.messages.iter().map(|message| &*message.content).collect();
    said.join("\n")
}

fn call(call: &AgentToolCall) -> Value {
    let mut members = Map::new();
    members.insert("id".to_string(), json!(call.id));
    members.insert("name".to_string(), json!(call.name));
    members.insert("arguments".to_string(), call.arguments.clone());
    if let Some(received) = &call.server_call {
        members.insert("server".to_string(), json!(received.server));
        members.insert("serverTool".to_string(), json!(received.tool));
    }
    let names = call.other_names();
    if !names.is_empty() {
        members.insert("names".to_string(), json!(names));
    }
    if let Some(result) = &call.result {
        let key = if result.failed { "error" } else { "result" };
        members.insert(key.to_string(), result.value.clone());
    }
    Value::Object(members)
}

/// Returns the results of checks.
pub fn check_results(checks: &[CheckResult]) -> Vec<Value> {
    let result = |checked: &CheckResult| {
        json!({
            "mode": if checked.check.is_hard() { "hard" } else { "soft" },
            "type": checked.check.written.as_ref().and_then(|written| written.get("type")),
            "description": checked.verdict.expected,
            "passed": checked.verdict.passed,
            "error": checked.error,
            "actual": checked.verdict.actual,
            "message": checked.check.message,
            "turn": checked.turn,
            "criterion": checked.check.criterion,
            "reasoning": checked.opinion.as_ref().and_then(|opinion| opinion.reasoning.as_ref()),
            "topic": checked.topic.as_ref().map(|visit| &visit.topic),
            "visit": checked.topic.as_ref().map(|visit| visit.visit),
        })
    };
    checks.iter().map(result).collect()
}
