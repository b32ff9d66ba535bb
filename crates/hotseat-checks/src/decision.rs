//! Decisions of checks, before negation.

use hotseat_trace::{AgentToolCall, CallComparison, UNREADABLE_ARGUMENTS};

use super::call_text::format_calls;
use super::undecidable::Undecidable;

/// Decision of a check before negation.
pub(super) struct CheckDecision {
    pub(super) outcome: CheckOutcome,
    pub(super) actual: String,
    /// Expected and actual calls, if the assertion is violated because of calls.
    pub(super) comparison: Option<Box<CallComparison>>,
}

/// Truth of an assertion, before negation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckOutcome {
    Satisfied,
    Violated,
    /// Neither the assertion nor its negation can be decided, because its subject is missing.
    NotApplicable,
}

impl CheckDecision {
    pub(super) fn new(satisfied: bool, actual: String) -> Self {
        CheckDecision {
            outcome: if satisfied { CheckOutcome::Satisfied } else { CheckOutcome::Violated },
            actual,
            comparison: None,
        }
    }

    /// Decision of an assertion that is violated by the calls of the agent.
    pub(super) fn violated(comparison: CallComparison) -> Self {
        let actual = comparison.to_string();
        CheckDecision { comparison: Some(Box::new(comparison)), ..CheckDecision::new(false, actual) }
    }

    pub(super) fn not_applicable(actual: String) -> Self {
        CheckDecision { outcome: CheckOutcome::NotApplicable, actual, comparison: None }
    }

    /// Decision for calls, with their turns, whose missing result or invalid arguments would decide the check.
    pub(super) fn undecided_calls(calls: &[(usize, &AgentToolCall)]) -> Self {
        let broken = calls.iter().filter(|(_, call)| call.arguments_broken).count();
        let unknown = match broken {
            0 => "no result of the agent".to_string(),
            _ if broken == calls.len() => format!("arguments that are {UNREADABLE_ARGUMENTS}"),
            _ => format!("missing results and arguments that are {UNREADABLE_ARGUMENTS}"),
        };
        let calls = format_calls(calls.iter().copied());
        CheckDecision::not_applicable(format!("{unknown}: {}", format_list(&calls)))
    }

    /// Decision of a check that no call meets for certain, but that `unknown` calls with invalid arguments might meet.
    pub(super) fn unmet(mut comparison: CallComparison, unknown: usize) -> Self {
        comparison.summary +=
            &format!(", undecided for {unknown} whose arguments are {UNREADABLE_ARGUMENTS}");
        CheckDecision { outcome: CheckOutcome::NotApplicable, ..CheckDecision::violated(comparison) }
    }

    /// Decision from the result of a function, or from the reason why it could not decide.
    pub(super) fn from_result(found: Result<(bool, String), Undecidable>) -> Self {
        match found {
            Ok((holds, actual)) => CheckDecision::new(holds, actual),
            Err(why) => CheckDecision::not_applicable(why.to_string()),
        }
    }
}

/// Formats a list. Several entries are written on one line each.
pub(super) fn format_list(entries: &[String]) -> String {
    match entries {
        [] => "none".to_string(),
        [one] => one.clone(),
        several => several.iter().map(|entry| format!("\n- {entry}")).collect(),
    }
}
