//! What each kind of checks provides.

use std::time::Duration;

use hotseat_trace::TurnScope;

use super::calls::NamedTools;
use super::decision::{CheckDecision, CheckOutcome};

/// What a kind of checks provides. The defaults suit a check that reads only the trace.
pub(super) trait CheckBehavior {
    /// Describes the expectation.
    fn describe(&self) -> String;

    /// Decides the check, before negation.
    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision;

    /// Returns the reason if the check cannot be decided. `decide` is not called then.
    fn undecided_reason(&self, _: TurnScope<'_>) -> Option<String> {
        None
    }

    /// Returns true if a judge or a script function has to decide.
    fn needs_answer(&self) -> bool {
        false
    }

    /// Returns which texts of the agent could violate the check, or satisfy it if it is negated.
    fn forbidden_texts(&self, _negated: bool) -> ForbiddenTexts {
        ForbiddenTexts::default()
    }

    /// Returns true if the check measures time.
    fn is_timing(&self) -> bool {
        false
    }

    /// Returns the outcome that no further turn can change once it is decided, if there is one: a call that was
    /// made stays made.
    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        None
    }

    /// Returns true if the check may take long even in a short conversation.
    fn may_take_long(&self) -> bool {
        false
    }

    /// Returns the longest time that the turn or case may take.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// Returns the topics that the check names.
    fn topics(&self) -> Option<&[String]> {
        None
    }

    /// Returns the tool that must be called.
    fn expected_tool(&self) -> Option<&str> {
        None
    }

    /// Returns true if the check reads tool calls: if it names tools.
    fn reads_calls(&self) -> bool {
        !self.named_tools().is_empty()
    }

    /// Returns the MCP servers that the check names, with the tools that it names of each.
    fn named_tools(&self) -> Vec<NamedTools<'_>> {
        Vec::new()
    }

    /// Reads all turns of the scope, unless the check selects turns itself.
    fn read_all_turns(&mut self) {}
}

/// Texts of an agent that a check forbids something in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForbiddenTexts {
    /// Its messages.
    pub messages: bool,
    /// Arguments and results of its tool calls.
    pub calls: bool,
    /// JSON in its answer, its return value, its shared state and the results of its tool calls.
    pub json: bool,
}

impl ForbiddenTexts {
    /// All texts.
    pub const EVERYWHERE: ForbiddenTexts = ForbiddenTexts { messages: true, calls: true, json: true };

    pub(super) fn in_messages(is_forbidden: bool) -> Self {
        ForbiddenTexts { messages: is_forbidden, ..Self::default() }
    }

    pub(super) fn in_calls(is_forbidden: bool) -> Self {
        ForbiddenTexts { calls: is_forbidden, ..Self::default() }
    }

    pub(super) fn in_json(is_forbidden: bool) -> Self {
        ForbiddenTexts { json: is_forbidden, ..Self::default() }
    }

    pub(super) fn or(self, other: Self) -> Self {
        ForbiddenTexts {
            messages: self.messages || other.messages,
            calls: self.calls || other.calls,
            json: self.json || other.json,
        }
    }
}

/// Defines `CheckKind` from one line per kind.
macro_rules! check_kinds {
    ($($(#[$doc:meta])* $variant:ident($check:ident),)*) => {
        /// All kinds of checks.
        #[derive(Debug, Clone)]
        pub enum CheckKind {
            $($(#[$doc])* $variant($check),)*
        }

        impl CheckKind {
            fn behavior(&self) -> &dyn CheckBehavior {
                match self {
                    $(CheckKind::$variant(check) => check,)*
                }
            }

            fn behavior_mut(&mut self) -> &mut dyn CheckBehavior {
                match self {
                    $(CheckKind::$variant(check) => check,)*
                }
            }
        }
    };
}
pub(super) use check_kinds;
