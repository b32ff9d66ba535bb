//! Report records of topics, simulated users and the completion of a conversation.

use hotseat_trace::{
    DeclaredTopic, FailureKind, SimulationSpan, TracedConversation, Verdict, VerdictStatus, Visit,
    optional_members,
};
use serde::Serialize;

use super::turn::AssertionRecord;
use hotseat_engine::run::{Attempt, CaseInfo};
use serde_json::Value;

optional_members! {
    /// Completion of a case; only hard checks count.
    #[derive(Debug, Serialize)]
    pub struct CompletionRecord<'a> {
        /// `pass` or `fail`.
        pub state: &'static str,
        /// `assertion`, `error`, `timeout` or `max_turns`.
        pub failure_type?: Option<&'static str>,
        pub failure_message?: Option<&'a str>,
        /// Topic of the last turn; null if topics are not followed.
        pub final_topic: Option<&'a str>,
        pub turn_count: usize,
        /// Reason why the simulation of the user ended.
        pub termination?: Option<&'static str>,
    }

    /// Topics of a conversation.
    #[derive(Debug, Serialize)]
    pub struct TopicsRecord<'a> {
        pub topic_graph: Vec<DeclaredTopic>,
        pub topic_history: Vec<String>,
        pub topic_visits: Vec<VisitRecord<'a>>,
        pub final_topic: Option<&'a str>,
    }

    /// Consecutive turns in one topic.
    #[derive(Debug, Serialize)]
    pub struct VisitRecord<'a> {
        pub topic: String,
        /// Number of the visit of this topic, from 1.
        pub visit: usize,
        /// Numbers of the turns, from 1.
        pub turns: Vec<usize>,
        /// Checks of the topic for these turns.
        pub assertions?: Vec<AssertionRecord<'a>>,
    }

    /// Part of a conversation with a simulated user.
    #[derive(Debug, Serialize)]
    pub struct SimulationRecord<'a> {
        pub goal?: Option<&'a str>,
        pub max_turns: usize,
        /// Number of the first turn, from 1.
        pub first_turn: usize,
        /// Number of inputs from the simulated user.
        pub turns?: Option<usize>,
        pub termination?: Option<&'static str>,
        pub goal_progress?: Option<&'a str>,
        pub detail?: Option<&'a str>,
    }
}

/// Scenario of a case.
#[derive(Debug, Serialize)]
pub struct ScenarioRecord<'a> {
    pub set: &'a str,
    pub id: &'a str,
    pub fingerprint: &'a str,
    pub name: &'a str,
    pub data: &'a Value,
}

impl<'a> CompletionRecord<'a> {
    /// Returns `None` for a skipped case.
    pub fn from_verdict(verdict: &'a Verdict, conversation: &'a TracedConversation) -> Option<Self> {
        let state = match verdict.status {
            VerdictStatus::Passed => "pass",
            VerdictStatus::Failed => "fail",
            VerdictStatus::Skipped => return None,
        };
        let failure = verdict.failure.as_ref();
        let ended = conversation.simulations.last().and_then(|simulation| simulation.ended.as_ref());
        Some(CompletionRecord {
            state,
            failure_type: failure.map(|failure| failure_type(failure.kind)),
            failure_message: failure.map(|failure| failure.message.as_str()),
            final_topic: final_topic(conversation),
            turn_count: conversation.turns.len(),
            termination: ended.map(|ended| ended.reason.name()),
        })
    }
}

fn failure_type(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Assertion | FailureKind::MissingCheckpoints => "assertion",
        FailureKind::Timeout => "timeout",
        FailureKind::MaxTurns => "max_turns",
        FailureKind::AgentError
        | FailureKind::ProtocolError
        | FailureKind::Unreachable
        | FailureKind::Limit
        | FailureKind::HookError
        | FailureKind::TestError
        | FailureKind::NoInput
        | FailureKind::SimulatorError
        | FailureKind::JudgeError
        | FailureKind::ScriptError
        | FailureKind::UsageError
        | FailureKind::Inconclusive
        | FailureKind::NotKept
        | FailureKind::Cancelled => "error",
    }
}

fn final_topic(conversation: &TracedConversation) -> Option<&str> {
    conversation.turns.last().and_then(|turn| turn.topic.as_deref())
}

impl<'a> TopicsRecord<'a> {
    /// Returns `None` if topics were not followed.
    pub fn from_attempt(attempt: &'a Attempt) -> Option<Self> {
        let conversation = &attempt.conversation;
        let graph = conversation.topics.as_ref()?;
        Some(TopicsRecord {
            topic_graph: graph.to_declared(),
            topic_history: conversation.topic_history().iter().map(ToString::to_string).collect(),
            topic_visits: conversation.topic_visits().iter().map(|v| VisitRecord::new(v, attempt)).collect(),
            final_topic: final_topic(conversation),
        })
    }
}

impl<'a> VisitRecord<'a> {
    fn new(visit: &Visit, attempt: &'a Attempt) -> Self {
        let checks = attempt.checks.iter().filter(|finding| {
            let of = finding.topic.as_ref();
            of.is_some_and(|of| of.topic == visit.topic && of.visit == visit.number)
        });
        VisitRecord {
            topic: visit.topic.to_string(),
            visit: visit.number,
            turns: visit.turns.clone().map(|place| place + 1).collect(),
            assertions: checks.map(AssertionRecord::new).collect(),
        }
    }
}

impl<'a> SimulationRecord<'a> {
    pub fn new(simulation: &'a SimulationSpan) -> Self {
        let ended = simulation.ended.as_ref();
        SimulationRecord {
            goal: simulation.goal.as_deref(),
            max_turns: simulation.max_turns,
            first_turn: simulation.first_turn,
            turns: ended.map(|ended| ended.turns),
            termination: ended.map(|ended| ended.reason.name()),
            goal_progress: ended.and_then(|ended| ended.goal_progress.as_deref()),
            detail: ended.and_then(|ended| ended.detail.as_deref()),
        }
    }
}

impl<'a> ScenarioRecord<'a> {
    /// Returns `None` if the case has no scenario.
    pub fn from_case(case: &'a CaseInfo) -> Option<Self> {
        let scenario = case.scenario.as_deref()?;
        Some(ScenarioRecord {
            set: &scenario.set,
            id: &scenario.id,
            fingerprint: &scenario.fingerprint,
            name: &scenario.name,
            data: &scenario.data,
        })
    }
}
