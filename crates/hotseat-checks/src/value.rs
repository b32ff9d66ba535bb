//! `value`: compares a number or a list of the conversation with an expected value.

use hotseat_trace::TurnScope;

use super::topic::{missing_topics_reason, visited_topics};
use super::{CheckBehavior, CheckDecision, CheckOutcome, NamedTools};

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
                let calls: Vec<_> = turns.iter().flat_map(|turn| &turn.tool_calls).collect();
                let names: Vec<String> = calls.iter().map(|call| call.name.to_string()).collect();
                list.decide(&names, |place, name| calls[place].is_named(name))
            }
            ConversationValue::TopicHistory(list) => match visited_topics(scope) {
                Some(visited) => list.decide(&visited, |place, name| visited[place] == name),
                None => CheckDecision::not_applicable(missing_topics_reason(scope)),
            },
        }
    }

    fn reads_calls(&self) -> bool {
        matches!(self, ConversationValue::ToolNames(_))
    }

    fn named_tools(&self) -> Vec<NamedTools<'_>> {
        match self {
            ConversationValue::ToolNames(
                ListComparison::Equal(names) | ListComparison::Containing(names),
            ) => {
                vec![NamedTools { server: None, tools: names.iter().map(String::as_str).collect() }]
            }
            ConversationValue::TurnCount(_) | ConversationValue::TopicHistory(_) => Vec::new(),
        }
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

    /// Compares the found names. `is_same` compares the one at a place with an expected name.
    fn decide(&self, found: &[String], is_same: impl Fn(usize, &str) -> bool) -> CheckDecision {
        let holds = match self {
            ListComparison::Equal(names) => {
                found.len() == names.len() && (0..).zip(names).all(|(place, name)| is_same(place, name))
            }
            ListComparison::Containing(names) => {
                names.iter().all(|name| (0..found.len()).any(|place| is_same(place, name)))
            }
        };
        CheckDecision::new(holds, format!("[{}]", quoted(found)))
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}
