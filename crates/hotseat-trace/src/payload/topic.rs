//! Payloads of topic and simulation events.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::members::members;

/// A declared topic of a graph.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredTopic {
    /// Name of the topic.
    pub name: Arc<str>,
    /// Topics that may follow, in declaration order.
    pub next: Vec<Arc<str>>,
    /// True if the topic may follow every other topic.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_any: bool,
    /// Maximum number of turns in the topic, over all visits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<usize>,
}

named! {
    /// Reason why a turn belongs to a topic.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TopicReason {
        /// The topic is the initial one.
        Initial = "initial",
        /// A trigger of the topic fired.
        Trigger = "trigger",
        /// A judge chose the topic.
        Judge = "judge",
        /// A judge was asked and named no possible topic.
        Fallback = "fallback",
    }
}

named! {
    /// Reason why a simulation ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TerminationReason {
        /// The stop condition was met.
        StopCondition = "stop_condition",
        /// The simulated user reached its maximum number of turns.
        MaxTurns = "max_turns",
        /// The simulated user reached its goal.
        GoalReached = "goal_reached",
        /// The simulated user gave up on its goal.
        GaveUp = "gave_up",
        /// The conversation failed, or a check ended it.
        Error = "error",
    }
}

members! {
    free {
        /// `topics.declared`
        TopicsDeclared {
            /// Topics in declaration order; the first one is initial.
            topics: Vec<DeclaredTopic>,
        }
        /// `simulation.started`
        SimulationStarted {
            /// Number of the first simulated turn, from 1.
            turn: usize,
            /// Goal of the simulated user.
            goal?: Option<String>,
            /// Maximum number of inputs.
            max_turns: usize,
        }
        /// `simulation.ended`
        SimulationEnded {
            /// Reason for the end.
            reason: TerminationReason,
            /// Number of inputs given.
            turns: usize,
            /// Progress towards the goal, as reported by the simulated user: `none`, `partial`, `achieved`.
            goal_progress?: Option<Arc<str>>,
            /// Further details.
            detail?: Option<String>,
        }
    }
}

members! {
    loose {
        /// `topic.changed`, `topic.kept`
        TopicStep {
            /// Topic before the turn; absent if topic tracking starts here.
            from?: Option<Arc<str>>,
            /// Topic of the turn.
            to: Arc<str>,
            /// Number of the turn, from 1; absent before the first turn.
            turn?: Option<usize>,
            /// Reason for the topic.
            why: TopicReason,
            /// Description of the trigger that fired.
            trigger?: Option<String>,
            /// Confidence of the judge: `high`, `medium`, `low`.
            confidence?: Option<Arc<str>>,
            /// Reasoning of the judge.
            reasoning?: Option<String>,
        }
    }
}
