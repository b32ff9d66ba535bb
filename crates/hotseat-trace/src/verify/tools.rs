//! The tool calls match the expected ones, in order.

use serde_json::Value;

use super::mismatch::{Mismatch, find_difference};
use crate::{ConversationView, InvocationMode};

/// An expected tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCallSpec {
    /// Name of the tool.
    pub name: String,
    /// True if the call completed, false if it failed.
    pub completed: Option<bool>,
    /// True for an asynchronous call.
    pub is_async: Option<bool>,
    /// Kind of the target: `task`, `workflow`, `agent`.
    pub target_type: Option<String>,
    /// How a called agent participates.
    pub mode: Option<InvocationMode>,
    /// Input of the call.
    pub input: Option<Value>,
    /// Result of the call.
    pub output: Option<Value>,
    /// Error code of the call.
    pub error_code: Option<String>,
}

impl ToolCallSpec {
    /// Expects a call of this tool, with any input and outcome.
    pub fn new(name: &str) -> Self {
        ToolCallSpec { name: name.to_string(), ..ToolCallSpec::default() }
    }
}

pub(super) fn find(view: &ConversationView<'_>, specs: &[ToolCallSpec]) -> Vec<Mismatch> {
    let calls = view.tools().calls();
    let names = |mut all: Vec<String>| {
        all.iter_mut().for_each(|name| name.insert(0, ' '));
        all.concat()
    };
    let expected = specs.iter().map(|spec| spec.name.clone()).collect();
    let actual = calls.iter().map(|call| call.invocation.tool_name.to_string()).collect();
    if let Some(mismatch) = find_difference("tool calls", names(expected), names(actual)) {
        return vec![mismatch];
    }
    let mut found = Vec::new();
    for (spec, call) in specs.iter().zip(&calls) {
        let what = |member: &str| format!("{member} of {} ({})", spec.name, call.invocation.tool_call_id);
        let completed = call.outcome.map(|_| call.error().is_none());
        let invoked = call.invocation.payload;
        let code = call.error().and_then(|error| error.code.clone());
        let mismatches = [
            spec.completed.and_then(|wanted| find_difference(&what("completion"), Some(wanted), completed)),
            spec.is_async.and_then(|wanted| find_difference(&what("async"), wanted, invoked.r#async)),
            spec.target_type
                .as_deref()
                .and_then(|w| find_difference(&what("target"), Some(w), invoked.target_type.as_deref())),
            spec.mode
                .and_then(|wanted| find_difference(&what("mode"), Some(wanted), invoked.invocation_mode)),
            spec.input
                .as_ref()
                .and_then(|wanted| find_difference(&what("input"), Some(wanted), invoked.input.as_ref())),
            spec.output
                .as_ref()
                .and_then(|wanted| find_difference(&what("output"), Some(wanted), call.output())),
            spec.error_code
                .as_ref()
                .and_then(|wanted| find_difference(&what("error code"), Some(wanted), code.as_ref())),
        ];
        found.extend(mismatches.into_iter().flatten().map(|mismatch| mismatch.at(call.invocation.sequence)));
    }
    found
}
