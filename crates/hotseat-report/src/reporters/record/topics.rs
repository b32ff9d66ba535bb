//! Report records of topics, simulated users and the completion of a conversation.

use hotseat_trace::{
    DeclaredTopic, FailureKind, SimulationSpan, TopicGraph, TracedConversation, Verdict, VerdictStatus, Visit,
};

use super::declare::records;
use super::turn::AssertionRecord;
use hotseat_engine::cases::CaseScenario;
use hotseat_engine::run::Attempt;
use serde_json::Value;

records! {
    /// Completion of a case; only hard checks count.
    pub struct CompletionRecord<'a>(verdict: &'a Verdict, conversation: &'a TracedConversation) {
        let failure = verdict.failure.as_ref();
        let ended = conversation.simulations.last().and_then(|simulation| simulation.ended.as_ref());
    } => {
        /// `pass` or `fail`.
        state: &'static str = if verdict.status == VerdictStatus::Passed { "pass" } else { "fail" },
        /// `assertion`, `error`, `timeout` or `max_turns`.
        failure_type?: Option<&'static str> = failure.map(|failure| failure_type(failure.kind)),
        failure_message?: Option<&'a str> = failure.map(|failure| failure.message.as_str()),
        /// Topic of the last turn; null if topics are not followed.
        final_topic: Option<&'a str> = final_topic(conversation),
        turn_count: usize = conversation.turns.len(),
        /// Reason why the simulation of the user ended.
        termination?: Option<&'static str> = ended.map(|ended| ended.reason.name()),
    }

    /// Topics of a conversation.
    pub struct TopicsRecord<'a>(graph: &TopicGraph, attempt: &'a Attempt) {
        let conversation = &attempt.conversation;
    } => {
        topic_graph: Vec<DeclaredTopic> = graph.to_declared(),
        topic_history: Vec<String> = conversation.topic_history().iter().map(ToString::to_string).collect(),
        topic_visits: Vec<VisitRecord<'a>> =
            conversation.topic_visits().iter().map(|v| VisitRecord::new(v, attempt)).collect(),
        final_topic: Option<&'a str> = final_topic(conversation),
    }

    /// Consecutive turns in one topic.
    pub struct VisitRecord<'a>(visit: &Visit, attempt: &'a Attempt) {
        let checks = attempt.checks.iter().filter(|finding| {
            let of = finding.topic.as_ref();
            of.is_some_and(|of| of.topic == visit.topic && of.visit == visit.number)
        });
    } => {
        topic: String = visit.topic.to_string(),
        /// Number of the visit of this topic, from 1.
        visit: usize = visit.number,
        /// Numbers of the turns, from 1.
        turns: Vec<usize> = visit.turns.clone().map(|place| place + 1).collect(),
        /// Checks of the topic for these turns.
        assertions?: Vec<AssertionRecord<'a>> = checks.map(AssertionRecord::new).collect(),
    }

    /// Part of a conversation with a simulated user.
    pub struct SimulationRecord<'a>(simulation: &'a SimulationSpan) {
        let ended = simulation.ended.as_ref();
    } => {
        goal?: Option<&'a str> = simulation.goal.as_deref(),
        max_turns: usize = simulation.max_turns,
        /// Number of the first turn, from 1.
        first_turn: usize = simulation.first_turn,
        /// Number of inputs from the simulated user.
        turns?: Option<usize> = ended.map(|ended| ended.turns),
        termination?: Option<&'static str> = ended.map(|ended| ended.reason.name()),
        goal_progress?: Option<&'a str> = ended.and_then(|ended| ended.goal_progress.as_deref()),
        detail?: Option<&'a str> = ended.and_then(|ended| ended.detail.as_deref()),
    }

    /// Scenario of a case.
    pub struct ScenarioRecord<'a>(scenario: &'a CaseScenario) => {
        set: &'a str = &scenario.set,
        id: &'a str = &scenario.id,
        fingerprint: &'a str = &scenario.fingerprint,
        name: &'a str = &scenario.name,
        data: &'a Value = &scenario.data,
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
