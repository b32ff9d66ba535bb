//! Failures of a conversation that its MCP servers and served models show.

use hotseat_model::serve::FaultKind;
use hotseat_trace::{AttemptFailure, FailureKind, LlmFaultInjected, TracedConversation};

use crate::cases::TestCase;

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
            let why = match conversation.services.has_connected || !calls.is_empty() {
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
