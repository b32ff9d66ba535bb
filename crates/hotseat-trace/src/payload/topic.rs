//! Members of the events of topics and of simulated users.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::members::members;

/// A topic of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredTopic {
    /// Its name.
    pub name: Arc<str>,
    /// The topics that may follow it, in the order in which they were declared.
    pub next: Vec<Arc<str>>,
    /// Whether it may follow every other topic.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_any: bool,
    /// How many turns there may be in it, all visits together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<usize>,
}

/// Why a turn belongs to a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TopicWhy {
    /// Conversations begin in this topic.
    Initial,
    /// A trigger of the topic fired.
    Trigger,
    /// A judge said so.
    Judge,
    /// A judge was asked, and what it said names no topic that could follow.
    Fallback,
}

impl TopicWhy {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            TopicWhy::Initial => "initial",
            TopicWhy::Trigger => "trigger",
            TopicWhy::Judge => "judge",
            TopicWhy::Fallback => "fallback",
        }
    }
}

/// Why no user is simulated any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// What was to stop it holds.
    StopCondition,
    /// The user has said as much as it may.
    MaxTurns,
    /// The user has what it wants.
    GoalReached,
    /// The user has given up: it says that it will not get what it wants.
    GaveUp,
    /// The conversation could not go on, or a check has ended it.
    Error,
}

impl Termination {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Termination::StopCondition => "stop_condition",
            Termination::MaxTurns => "max_turns",
            Termination::GoalReached => "goal_reached",
            Termination::GaveUp => "gave_up",
            Termination::Error => "error",
        }
    }
}

members! {
    free {
        /// `topics.declared`
        TopicsDeclared {
            /// The topics in order; conversations begin in the first one.
            topics: Vec<DeclaredTopic>,
        }
        /// `simulation.started`
        SimulationStarted {
            /// The number of the turn that it begins with, from 1.
            turn: usize,
            /// What the user wants.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            goal: Option<String>,
            /// How many inputs it may give.
            max_turns: usize,
        }
        /// `simulation.ended`
        SimulationEnded {
            /// Why.
            reason: Termination,
            /// How many inputs it has given.
            turns: usize,
            /// How far the goal was reached, in the words of the simulated user: `none`, `partial`, `achieved`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            goal_progress: Option<Arc<str>>,
            /// What else there is to say of it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            detail: Option<String>,
        }
    }
}

members! {
    loose {
        /// `topic.changed`, `topic.kept`
        TopicStep {
            /// The topic before the turn; absent where topics are followed from here on.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            from: Option<Arc<str>>,
            /// The topic of the turn.
            to: Arc<str>,
            /// The number of the turn, from 1; absent before the first one.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            turn: Option<usize>,
            /// Why.
            why: TopicWhy,
            /// What fired, in words.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            trigger: Option<String>,
            /// How sure the judge is: `high`, `medium`, `low`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            confidence: Option<Arc<str>>,
            /// Why the judge says so.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            reasoning: Option<String>,
        }
    }
}
