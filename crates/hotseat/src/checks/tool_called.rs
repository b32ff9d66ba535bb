//! `tool_called`: a tool is called, perhaps with certain arguments.

use hotseat_trace::{Scope, ToolCall};
use serde_json::Value;

use super::answer::shown_json;
use super::calls;
use super::count::Count;
use super::equality::{equal, holds};
use super::{Decided, listed};

/// How arguments are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentMatch {
    /// They are equal.
    Exact,
    /// What is expected is there and equal; there may be more.
    Subset,
    /// Not at all.
    Ignored,
}

impl ArgumentMatch {
    /// Whether the arguments of a call are what is expected.
    pub(super) fn fits(self, call: &ToolCall, expected: &Value) -> bool {
        match self {
            ArgumentMatch::Ignored => true,
            // What could not be read equals nothing.
            ArgumentMatch::Exact | ArgumentMatch::Subset if call.arguments_broken => false,
            ArgumentMatch::Exact => equal(&call.arguments, expected),
            ArgumentMatch::Subset => holds(&call.arguments, expected),
        }
    }
}

/// One of these tools is called, so often, with these arguments.
#[derive(Debug, Clone)]
pub struct ToolCalled {
    /// The tools; names are compared exactly.
    pub names: Vec<String>,
    /// The arguments, if they matter, and how they are compared.
    pub arguments: Option<(Value, ArgumentMatch)>,
    /// How often.
    pub count: Count,
}

impl ToolCalled {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        let with = match &self.arguments {
            Some((arguments, ArgumentMatch::Exact)) => format!(" with exactly {}", shown_json(arguments)),
            Some((arguments, ArgumentMatch::Subset)) => format!(" with {}", shown_json(arguments)),
            Some((_, ArgumentMatch::Ignored)) | None => String::new(),
        };
        format!("{}{with} is {}", self.names.join(" or "), self.count.describe())
    }

    fn is_named(&self, call: &ToolCall) -> bool {
        self.names.iter().any(|name| *name == *call.name)
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let fits = |call: &ToolCall| {
            self.is_named(call)
                && self.arguments.as_ref().is_none_or(|(arguments, how)| how.fits(call, arguments))
        };
        let counted = scope.calls().filter(|(_, call)| fits(call)).count() as u64;
        let named: Vec<String> = scope
            .calls()
            .filter(|(_, call)| self.is_named(call))
            .map(|(turn, call)| calls::shown(turn, call))
            .collect();
        let actual = match named.is_empty() {
            true => match calls::names(scope).as_slice() {
                [] => "no tool was called".to_string(),
                names => format!("not called; called were {}", names.join(", ")),
            },
            false => listed(&named),
        };
        Decided::of(self.count.allows(counted), actual)
    }
}
