//! `value`: a number or a list of the conversation is compared with what is written, as programs compare values.

use hotseat_trace::Scope;

use super::Decided;
use super::topic::{not_followed, visited};

/// What of the conversation so far is compared, and with what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueOf {
    /// How many turns there are.
    TurnCount(NumberIs),
    /// The names of the tools that were called, as often as they were called.
    ToolNames(ListIs),
    /// The topics that were visited.
    TopicHistory(ListIs),
}

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberIs {
    /// Just this.
    Equal(u64),
    /// This or more.
    AtLeast(u64),
    /// This or less.
    AtMost(u64),
}

/// What a list is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListIs {
    /// Just these, in this order.
    Equal(Vec<String>),
    /// All of these are in it.
    Containing(Vec<String>),
}

impl ValueOf {
    /// What can be compared, as it is written.
    pub const NAMES: &'static [&'static str] = &["turn_count", "tool_names", "topic_history"];

    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        match self {
            ValueOf::TurnCount(number) => format!("`turn_count` {}", number.describe()),
            ValueOf::ToolNames(list) => format!("`tool_names` {}", list.describe()),
            ValueOf::TopicHistory(list) => format!("`topic_history` {}", list.describe()),
        }
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let turns = scope.so_far();
        match self {
            ValueOf::TurnCount(number) => Decided::of(number.is(turns.len() as u64), turns.len().to_string()),
            ValueOf::ToolNames(list) => {
                let calls = turns.iter().flat_map(|turn| &turn.tool_calls);
                list.decide(&calls.map(|call| call.name.to_string()).collect::<Vec<_>>())
            }
            ValueOf::TopicHistory(list) => match visited(scope) {
                Some(visited) => list.decide(&visited),
                None => Decided::nothing(not_followed(scope)),
            },
        }
    }

    /// The topics that it names.
    pub(super) fn topics(&self) -> Option<&[String]> {
        match self {
            ValueOf::TopicHistory(ListIs::Equal(names) | ListIs::Containing(names)) => Some(names),
            ValueOf::TurnCount(_) | ValueOf::ToolNames(_) => None,
        }
    }
}

impl NumberIs {
    fn describe(self) -> String {
        match self {
            NumberIs::Equal(number) => format!("to be {number}"),
            NumberIs::AtLeast(number) => format!("to be at least {number}"),
            NumberIs::AtMost(number) => format!("to be at most {number}"),
        }
    }

    fn is(self, found: u64) -> bool {
        match self {
            NumberIs::Equal(number) => found == number,
            NumberIs::AtLeast(number) => found >= number,
            NumberIs::AtMost(number) => found <= number,
        }
    }
}

impl ListIs {
    fn describe(&self) -> String {
        match self {
            ListIs::Equal(names) => format!("to be [{}]", quoted(names)),
            ListIs::Containing(names) => format!("to contain {}", quoted(names)),
        }
    }

    fn decide(&self, found: &[String]) -> Decided {
        let holds = match self {
            ListIs::Equal(names) => found == names,
            ListIs::Containing(names) => names.iter().all(|name| found.contains(name)),
        };
        Decided::of(holds, format!("[{}]", quoted(found)))
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}
