//! `topic`, `reached_topic` and `topic_history`: the current and the visited topics of a conversation.
//!
//! Topics are read from recorded events. Without recorded topics these checks are not applicable.

use hotseat_trace::{TurnScope, Visit};

use super::{CheckBehavior, CheckDecision, CheckOutcome};

/// The turn, or the conversation at its end, is in a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentTopic {
    /// Accepted topics.
    pub names: Vec<String>,
}

/// The conversation has visited a topic so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicReached {
    /// The topic.
    pub name: String,
}

/// Sequence of the topics that the conversation has visited so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicHistory {
    /// Expected topics, in order.
    pub names: Vec<String>,
    /// Comparison with the visited topics.
    pub order: HistoryOrder,
}

/// Comparison of the expected with the visited topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryOrder {
    /// Exactly the expected topics, in this order.
    Strict,
    /// All expected topics in this order, with other topics allowed between them.
    InOrder,
}

impl CheckBehavior for CurrentTopic {
    fn describe(&self) -> String {
        format!("the topic to be {}", quoted(&self.names).join(" or "))
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let Some(topic) = scope.turns_up_to_end().last().and_then(|turn| turn.topic.as_deref()) else {
            return CheckDecision::not_applicable(missing_topics_reason(scope));
        };
        CheckDecision::new(self.names.iter().any(|name| name == topic), format!("topic `{topic}`"))
    }

    fn topics(&self) -> Option<&[String]> {
        Some(&self.names)
    }
}

impl CheckBehavior for TopicReached {
    fn describe(&self) -> String {
        format!("topic `{}` to be reached", self.name)
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        Some(CheckOutcome::Satisfied)
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let Some(visited) = visited_topics(scope) else {
            return CheckDecision::not_applicable(missing_topics_reason(scope));
        };
        let actual = format!("visited topics {}", quoted(&visited).join(", "));
        CheckDecision::new(visited.contains(&self.name), actual)
    }

    fn topics(&self) -> Option<&[String]> {
        Some(std::slice::from_ref(&self.name))
    }
}

impl CheckBehavior for TopicHistory {
    fn describe(&self) -> String {
        let names = quoted(&self.names).join(", ");
        match self.order {
            HistoryOrder::Strict => format!("the topics to be {names}"),
            HistoryOrder::InOrder => format!("the topics to include {names}, in this order"),
        }
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        (self.order == HistoryOrder::InOrder).then_some(CheckOutcome::Satisfied)
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let Some(visited) = visited_topics(scope) else {
            return CheckDecision::not_applicable(missing_topics_reason(scope));
        };
        let holds = match self.order {
            HistoryOrder::Strict => visited == self.names,
            HistoryOrder::InOrder => {
                let mut left = visited.iter();
                self.names.iter().all(|name| left.any(|visited| visited == name))
            }
        };
        CheckDecision::new(holds, format!("visited topics {}", quoted(&visited).join(", ")))
    }

    fn topics(&self) -> Option<&[String]> {
        Some(&self.names)
    }
}

/// Returns the topics visited up to the end of a scope, or `None` if topics are not recorded.
pub(super) fn visited_topics(scope: TurnScope<'_>) -> Option<Vec<String>> {
    let visits = Visit::from_turns(scope.turns_up_to_end());
    (!visits.is_empty()).then(|| visits.iter().map(|visit| visit.topic.to_string()).collect())
}

pub(super) fn missing_topics_reason(scope: TurnScope<'_>) -> String {
    match scope.turns_up_to_end().is_empty() {
        true => "no topics were visited: nothing was said yet".to_string(),
        false => "topics are not followed: there is no `graph`".to_string(),
    }
}

fn quoted(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("`{name}`")).collect()
}
