//! Failures of requests that an agent makes to its client.

use hotseat_trace::{AttemptFailure, FailureKind};
use serde_json::Value;

use crate::message::{InterruptRequest, ScriptedAnswers};
use hotseat_document::{Diagnostic, excerpt};

/// Maximum number of requests of an agent that its client answers in one turn; stops endless loops.
pub(crate) const MAX_CLIENT_REQUESTS: usize = 25;

/// Returns the failure of an agent that makes too many requests to the client.
pub(crate) fn too_many_requests() -> AttemptFailure {
    let message = format!(
        "the agent made more than {MAX_CLIENT_REQUESTS} requests to the client in one turn, the maximum that Hotseat answers"
    );
    AttemptFailure::new(FailureKind::Limit, message)
}

/// Returns the failure of a turn without a scripted answer to an interrupt.
pub(crate) fn unanswered_interrupt(asked: &InterruptRequest<'_>, value: &Value) -> AttemptFailure {
    let mut words =
        "the agent paused for an answer that the turn does not define (add it to `resume`)".to_string();
    for (what, said) in [("reason", asked.reason), ("message", asked.message), ("tool", asked.tool)] {
        if let Some(said) = said {
            words.push_str(&format!("; {what}: {}", excerpt(said, 200)));
        }
    }
    AttemptFailure::new(FailureKind::TestError, words)
        .with_detail(serde_json::to_string_pretty(value).unwrap_or_default())
}

/// Checks a call that awaits a result and whose tool the test does not offer. A tool that asks the user
/// leaves the agent awaiting input; any other tool is an error.
pub(crate) fn check_unoffered_call(tool: &str, script: &ScriptedAnswers) -> Result<(), AttemptFailure> {
    if script.asks_user(tool) {
        return Ok(());
    }
    let message = format!(
        "the agent called tool {tool} and awaits its result, but the test does not offer this tool (add it to `tools`)"
    );
    Err(AttemptFailure::new(FailureKind::TestError, message))
}

/// Returns the failure of a turn without a scripted answer to a call of an offered tool.
pub(crate) fn unanswered_call(tool: &str, arguments: &Value, script: &ScriptedAnswers) -> AttemptFailure {
    let nearest = script.nearest_answer(tool, arguments);
    let nearest = nearest.unwrap_or_else(|| "the tool has no answers".to_string());
    let message = format!(
        "client tool {tool} was called with {arguments}, but no scripted answer matches; nearest: {nearest}"
    );
    let place =
        script.tools().iter().find(|offered| offered.name == tool).and_then(|tool| tool.place.clone());
    let defined = Diagnostic::new(format!("no answer of {tool} matches"))
        .at(place)
        .help("add an answer under `answers` of the tool; one without `args_match` matches every call");
    AttemptFailure::new(FailureKind::TestError, message).with_detail(defined.to_detail())
}
