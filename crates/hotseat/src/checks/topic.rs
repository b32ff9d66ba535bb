//! `topic`, `reached_topic` and `topic_history`: in which topics the conversation is and was.
//!
//! Topics are read from what was recorded. Where none was followed there is nothing to judge.

use hotseat_trace::{Scope, Visit};

use super::Decided;

/// The turn, or the conversation at its end, is in a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InTopic {
    /// The topics, of which one is enough.
    pub names: Vec<String>,
}

/// The conversation has been in a topic so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachedTopic {
    /// The topic.
    pub name: String,
}

/// The topics that the conversation has been in so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicHistory {
    /// The topics, in order.
    pub names: Vec<String>,
    /// How they are compared.
    pub order: HistoryOrder,
}

/// How topics are compared with those that were visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryOrder {
    /// Just these, in this order.
    Strict,
    /// All of these, in this order, perhaps others between them.
    InOrder,
}

impl InTopic {
    pub(super) fn describe(&self) -> String {
        format!("the topic is {}", quoted(&self.names).join(" or "))
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let Some(topic) = scope.so_far().last().and_then(|turn| turn.topic.as_deref()) else {
            return Decided::nothing(not_followed(scope));
        };
        Decided::of(self.names.iter().any(|name| name == topic), format!("it was in `{topic}`"))
    }
}

impl ReachedTopic {
    pub(super) fn describe(&self) -> String {
        format!("topic `{}` is reached", self.name)
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let Some(visited) = visited(scope) else { return Decided::nothing(not_followed(scope)) };
        let actual = format!("visited were {}", quoted(&visited).join(", "));
        Decided::of(visited.contains(&self.name), actual)
    }
}

impl TopicHistory {
    pub(super) fn describe(&self) -> String {
        let names = quoted(&self.names).join(", ");
        match self.order {
            HistoryOrder::Strict => format!("the topics are {names}"),
            HistoryOrder::InOrder => format!("the topics are {names}, in this order, perhaps with others"),
        }
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let Some(visited) = visited(scope) else { return Decided::nothing(not_followed(scope)) };
        let holds = match self.order {
            HistoryOrder::Strict => visited == self.names,
            HistoryOrder::InOrder => {
                let mut left = visited.iter();
                self.names.iter().all(|name| left.any(|visited| visited == name))
            }
        };
        Decided::of(holds, format!("visited were {}", quoted(&visited).join(", ")))
    }
}

/// The topics that were visited up to the end of a scope; none where topics are not followed.
pub(super) fn visited(scope: Scope<'_>) -> Option<Vec<String>> {
    let visits = Visit::all(scope.so_far());
    (!visits.is_empty()).then(|| visits.iter().map(|visit| visit.topic.to_string()).collect())
}

pub(super) fn not_followed(scope: Scope<'_>) -> String {
    match scope.so_far().is_empty() {
        true => "no topics were visited: nothing was said yet".to_string(),
        false => "topics are not followed: there is no `graph`".to_string(),
    }
}

fn quoted(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("`{name}`")).collect()
}
