//! The tool calls are these, in this order, and no others.

use serde_json::Value;

use super::{Mismatch, differs};
use crate::{InvocationMode, View};

/// One expected call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCallSpec {
    /// The tool.
    pub name: String,
    /// Whether it completed; otherwise it failed.
    pub completed: Option<bool>,
    /// Whether the turn went on before it had ended.
    pub is_async: Option<bool>,
    /// What is behind it: `task`, `workflow`, `agent`.
    pub target_type: Option<String>,
    /// How the agent behind it takes part.
    pub mode: Option<InvocationMode>,
    /// What it was given.
    pub input: Option<Value>,
    /// What it returned.
    pub output: Option<Value>,
    /// The code it failed with.
    pub error_code: Option<String>,
}

impl ToolCallSpec {
    /// A call of this tool, about which nothing else is expected.
    pub fn of(name: &str) -> Self {
        ToolCallSpec { name: name.to_string(), ..ToolCallSpec::default() }
    }
}

pub(super) fn find(view: &View<'_>, specs: &[ToolCallSpec]) -> Vec<Mismatch> {
    let calls = view.tools().calls();
    let names = |mut all: Vec<String>| {
        all.iter_mut().for_each(|name| name.insert(0, ' '));
        all.concat()
    };
    let expected = specs.iter().map(|spec| spec.name.clone()).collect();
    let actual = calls.iter().map(|call| call.invocation.tool_name.to_string()).collect();
    if let Some(mismatch) = differs("tool calls", names(expected), names(actual)) {
        return vec![mismatch];
    }
    let mut found = Vec::new();
    for (spec, call) in specs.iter().zip(&calls) {
        let what = |member: &str| format!("{member} of {} ({})", spec.name, call.invocation.tool_call_id);
        let completed = call.outcome.map(|_| call.error().is_none());
        let invoked = call.invocation.payload;
        let code = call.error().and_then(|error| error.code.clone());
        let mismatches = [
            spec.completed.and_then(|wanted| differs(&what("completion"), Some(wanted), completed)),
            spec.is_async.and_then(|wanted| differs(&what("async"), wanted, invoked.r#async)),
            spec.target_type
                .as_deref()
                .and_then(|w| differs(&what("target"), Some(w), invoked.target_type.as_deref())),
            spec.mode.and_then(|wanted| differs(&what("mode"), Some(wanted), invoked.invocation_mode)),
            spec.input
                .as_ref()
                .and_then(|wanted| differs(&what("input"), Some(wanted), invoked.input.as_ref())),
            spec.output.as_ref().and_then(|wanted| differs(&what("output"), Some(wanted), call.output())),
            spec.error_code
                .as_ref()
                .and_then(|wanted| differs(&what("error code"), Some(wanted), code.as_ref())),
        ];
        found.extend(mismatches.into_iter().flatten().map(|mismatch| mismatch.at(call.invocation.sequence)));
    }
    found
}
