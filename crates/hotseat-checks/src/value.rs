//! `value`: compares a number or a list of the conversation with an expected value.

use hotseat_trace::TurnScope;

use super::topic::{missing_topics_reason, visited_topics};
use super::{CheckBehavior, CheckDecision, CheckOutcome};

/// Value of the conversation so far, and its comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationValue {
    /// Number of turns.
    TurnCount(NumberComparison),
    /// Names of the called tools, one entry per call.
    ToolNames(ListComparison),
    /// Visited topics.
    TopicHistory(ListComparison),
}

/// Comparison of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberComparison {
    /// Equal to this number.
    Equal(u64),
    /// At least this number.
    AtLeast(u64),
    /// At most this number.
    AtMost(u64),
}

/// Comparison of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListComparison {
    /// Exactly these entries, in this order.
    Equal(Vec<String>),
    /// Contains all of these entries.
    Containing(Vec<String>),
}

impl ConversationValue {
    /// Names of the values in test files.
    pub const NAMES: &'static [&'static str] = &["turn_count", "tool_names", "topic_history"];
}

impl CheckBehavior for ConversationValue {
    fn describe(&self) -> String {
        match self {
            ConversationValue::TurnCount(number) => format!("`turn_count` {}", number.describe()),
            ConversationValue::ToolNames(list) => format!("`tool_names` {}", list.describe()),
            ConversationValue::TopicHistory(list) => format!("`topic_history` {}", list.describe()),
        }
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        match self {
            ConversationValue::TurnCount(NumberComparison::AtMost(_)) => Some(CheckOutcome::Violated),
            ConversationValue::TurnCount(NumberComparison::AtLeast(_))
            | ConversationValue::ToolNames(ListComparison::Containing(_))
            | ConversationValue::TopicHistory(ListComparison::Containing(_)) => Some(CheckOutcome::Satisfied),
            ConversationValue::TurnCount(NumberComparison::Equal(_))
            | ConversationValue::ToolNames(ListComparison::Equal(_))
            | ConversationValue::TopicHistory(ListComparison::Equal(_)) => None,
        }
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let turns = scope.turns_up_to_end();
        match self {
            ConversationValue::TurnCount(number) => {
                CheckDecision::new(number.matches(turns.len() as u64), turns.len().to_string())
            }
            ConversationValue::ToolNames(list) => {
                let calls = turns.iter().flat_map(|turn| &turn.tool_calls);
                list.decide(&calls.map(|call| call.name.to_string()).collect::<Vec<_>>())
            }
            ConversationValue::TopicHistory(list) => match visited_topics(scope) {
                Some(visited) => list.decide(&visited),
                None => CheckDecision::not_applicable(missing_topics_reason(scope)),
            },
        }
    }

    fn reads_calls(&self) -> bool {
        matches!(self, ConversationValue::ToolNames(_))
    }

    fn topics(&self) -> Option<&[String]> {
        match self {
            ConversationValue::TopicHistory(
                ListComparison::Equal(names) | ListComparison::Containing(names),
            ) => Some(names),
            ConversationValue::TurnCount(_) | ConversationValue::ToolNames(_) => None,
        }
    }
}

impl NumberComparison {
    fn describe(self) -> String {
        match self {
            NumberComparison::Equal(number) => format!("to be {number}"),
            NumberComparison::AtLeast(number) => format!("to be at least {number}"),
            NumberComparison::AtMost(number) => format!("to be at most {number}"),
        }
    }

    fn matches(self, found: u64) -> bool {
        match self {
            NumberComparison::Equal(number) => found == number,
            NumberComparison::AtLeast(number) => found >= number,
            NumberComparison::AtMost(number) => found <= number,
        }
    }
}

impl ListComparison {
    fn describe(&self) -> String {
        match self {
            ListComparison::Equal(names) => format!("to be [{}]", quoted(names)),
            ListComparison::Containing(names) => format!("to contain {}", quoted(names)),
        }
    }

    fn decide(&self, found: &[String]) -> CheckDecision {
        let holds = match self {
            ListComparison::Equal(names) => found == names,
            ListComparison::Containing(names) => names.iter().all(|name| found.contains(name)),
        };
        CheckDecision::new(holds, format!("[{}]", quoted(found)))
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}
