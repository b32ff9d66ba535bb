//! `tool_called`: a tool is called, perhaps with certain arguments.

use hotseat_trace::{Scope, ToolCall};
use serde_json::Value;

use super::answer::shown_json;
use super::calls;
use super::condition::Condition;
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
    /// Conditions by the name of an argument.
    pub conditions: Vec<(String, Condition)>,
    /// How often.
    pub count: Count,
}

impl ToolCalled {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        let mut with = match &self.arguments {
            Some((arguments, ArgumentMatch::Exact)) => format!(" with exactly {}", shown_json(arguments)),
            Some((arguments, ArgumentMatch::Subset)) => format!(" with {}", shown_json(arguments)),
            Some((_, ArgumentMatch::Ignored)) | None => String::new(),
        };
        let conditions =
            self.conditions.iter().map(|(name, condition)| format!("{name}: {}", condition.describe()));
        let conditions = conditions.collect::<Vec<_>>().join(", ");
        if !conditions.is_empty() {
            with.push_str(if with.is_empty() { " with " } else { " and " });
            with.push_str(&conditions);
        }
        format!("{}{with} is {}", self.names.join(" or "), self.count.describe())
    }

    fn is_named(&self, call: &ToolCall) -> bool {
        self.names.iter().any(|name| *name == *call.name)
    }

    /// Whether a call is meant.
    ///
    /// # Errors
    /// When one of its arguments is of a type that cannot be compared as its condition asks, in words.
    fn fits(&self, call: &ToolCall) -> Result<bool, String> {
        let has_arguments = self.arguments.as_ref().is_none_or(|(arguments, how)| how.fits(call, arguments));
        if !self.is_named(call) || !has_arguments || (call.arguments_broken && !self.conditions.is_empty()) {
            return Ok(false);
        }
        let mut unlike = None;
        for (name, condition) in &self.conditions {
            match condition.is_met(call.arguments.get(name)) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(words) => drop(unlike.get_or_insert(format!("the argument `{name}` is {words}"))),
            }
        }
        unlike.map_or(Ok(true), Err)
    }

    /// How many calls are meant at least and at most, and why that is not the same.
    fn counted(&self, scope: Scope<'_>) -> (u64, u64, Option<String>) {
        let (mut least, mut most, mut why) = (0, 0, None);
        for (_, call) in scope.calls() {
            match self.fits(call) {
                Ok(fits) => (least, most) = (least + u64::from(fits), most + u64::from(fits)),
                Err(words) => {
                    most += 1;
                    why.get_or_insert(words);
                }
            }
        }
        (least, most, why)
    }

    /// Why it cannot be decided, if it cannot.
    pub(super) fn undecided(&self, scope: Scope<'_>) -> Option<String> {
        let (least, most, why) = self.counted(scope);
        let allowed = self.count.allows(least);
        (least..=most).any(|counted| self.count.allows(counted) != allowed).then_some(why).flatten()
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        if let Some(words) = self.undecided(scope) {
            return Decided::nothing(words);
        }
        let (counted, ..) = self.counted(scope);
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
