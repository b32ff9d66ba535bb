//! Tracks topics: assigns each turn to a topic and evaluates the checks of a topic when the conversation
//! leaves it.

use std::sync::Arc;

use hotseat_trace::{
    AttemptFailure, CallVisibility, FailureKind, Payload, TerminationReason, TopicReason, TopicStep,
    TopicsDeclared, UNREADABLE_ARGUMENTS, Visit,
};
use tokio::time::Instant;

use super::conversation_ending::ConversationEnding;
use super::evaluate::{CheckScope, failure_from_checks};
use super::topic_tracker::TopicTracker;
use crate::cases::{CaseTopics, TopicCheckPolicy, TopicTrigger, hidden_calls};
use crate::roles::{
    JudgeEvidence, JudgeResponse, TopicCandidate, TopicClassification, TopicQuestion, role_failure,
};
use crate::session::{CheckResult, EndedCaseError, Session, TopicVisitRef};
use hotseat_checks::Check;

/// The topic of a turn and the reason for it.
struct TopicMatch {
    place: usize,
    why: TopicReason,
    trigger: Option<String>,
    confidence: Option<Arc<str>>,
    reasoning: Option<String>,
}

impl Session<'_> {
    /// Starts topic tracking; existing turns are assigned to topics as well. Fails if the case has ended, the
    /// topics are invalid, or a hard check of a topic fails for the existing turns.
    pub async fn declare_topics(&mut self, mut topics: Arc<CaseTopics>) -> Result<(), EndedCaseError> {
        self.ensure_open()?;
        if self.topic_tracker.is_some() {
            let message = "the topics of this conversation are already declared";
            return Err(self.fail(AttemptFailure::new(FailureKind::TestError, message)));
        }
        let mut diagnostics = self.resolve_references(Arc::make_mut(&mut topics).checks_mut());
        diagnostics.extend(CaseTopics::unknown_topics(Some(&topics), topics.every_check()));
        diagnostics.extend(match self.capabilities().calls {
            CallVisibility::Protocol => Vec::new(),
            CallVisibility::Services => self.case.unseen_triggers(&topics, &self.listed_tools()),
            CallVisibility::Hidden => topics.call_triggers().map(|(_, place)| hidden_calls(place)).collect(),
        });
        self.fail_on(diagnostics)?;
        if topics.may_ask_judge() {
            let judging = self.case.vocabulary.judging().clone();
            self.add_judge(&judging, &topics.place);
        }
        self.start_topics(topics);
        let before = self.checks.len();
        for place in 0..self.turns().len() {
            if let Err(failure) = self.update_topic(place).await {
                return Err(self.fail(failure));
            }
        }
        self.evaluate_left_topics().await;
        match failure_from_checks(&self.checks[before..]) {
            Some(failure) if !self.case.continue_on_failure => {
                Err(self.end_with(ConversationEnding::Failed(failure)))
            }
            _ => Ok(()),
        }
    }

    /// Starts tracking in the first topic.
    pub(super) fn start_topics(&mut self, topics: Arc<CaseTopics>) {
        self.recorder.emit(TopicsDeclared { topics: topics.graph.to_declared() });
        let first = TopicMatch::new(0, TopicReason::Initial);
        self.emit_step(&topics, None, &first, None);
        self.topic_tracker = Some(TopicTracker { topics, current: 0, evaluated_turns: 0 });
    }

    /// Assigns a turn to a topic. Fails if the topic cannot be determined, or the topic has more turns than
    /// allowed.
    pub(super) async fn update_topic(&mut self, place: usize) -> Result<(), AttemptFailure> {
        let Some((topics, current)) = self.topic_tracker.as_ref().map(|f| (f.topics.clone(), f.current))
        else {
            return Ok(());
        };
        let begun = Instant::now();
        // The future is large, and few cases have topics.
        let found = Box::pin(self.find_topic(&topics, current, place)).await;
        self.paused += begun.elapsed();
        let found = found?;
        if let Some(found) = &found {
            self.emit_step(&topics, Some(current), found, Some(place));
        }
        let now = found.map_or(current, |found| found.place);
        if let Some(followed) = &mut self.topic_tracker {
            followed.current = now;
        }
        let node = &topics.graph.nodes()[now];
        let turns = self.turns()[..=place].iter().filter(|turn| turn.topic.as_deref() == Some(&*node.name));
        match (node.max_turns, turns.count()) {
            (Some(most), turns) if turns > most => {
                let message = format!("max turns of topic `{}` ({most}) exceeded", node.name);
                Err(AttemptFailure::new(FailureKind::MaxTurns, message))
            }
            _ => Ok(()),
        }
    }

    /// Returns the topic of a turn, unless the conversation stays in the current topic.
    async fn find_topic(
        &mut self,
        topics: &CaseTopics,
        current: usize,
        place: usize,
    ) -> Result<Option<TopicMatch>, AttemptFailure> {
        let mut order = topics.graph.trigger_order(current);
        for candidate in order.by_ref() {
            for trigger in &topics.topics[candidate].triggers {
                if self.fires(trigger, place).await? {
                    let fired = TopicMatch {
                        trigger: Some(trigger.describe()),
                        ..TopicMatch::new(candidate, TopicReason::Trigger)
                    };
                    return Ok(Some(fired));
                }
            }
        }
        match order.candidates().filter(|_| topics.settings.asks_judge) {
            Some(choice) => self.ask_judge_for_topic(topics, current, choice, place).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns true if a trigger fires on a turn. No trigger fires on a turn without messages and tool calls.
    async fn fires(&mut self, trigger: &TopicTrigger, place: usize) -> Result<bool, AttemptFailure> {
        let turn = &self.turns()[place];
        if turn.messages.is_empty() && turn.tool_calls.is_empty() {
            return Ok(false);
        }
        Ok(match trigger {
            TopicTrigger::ToolCall(name, arguments, _) => {
                let calls = || turn.tool_calls.iter().filter(|call| call.is_named(name));
                let fits = |arguments: &hotseat_checks::ExpectedResult| {
                    calls().any(|call| !call.arguments_broken && arguments.matches(&call.arguments))
                };
                let fires = match arguments {
                    Some(arguments) => fits(arguments),
                    None => calls().next().is_some(),
                };
                if !fires && calls().any(|call| call.arguments_broken) {
                    let message = format!(
                        "the topic of turn {} is unknown: the arguments of the call of {name} are {UNREADABLE_ARGUMENTS}",
                        place + 1
                    );
                    return Err(AttemptFailure::new(FailureKind::Assertion, message));
                }
                fires
            }
            TopicTrigger::Response(pattern) => {
                let scope = self.conversation().turn_scope(place);
                scope.is_some_and(|scope| pattern.is_match(&scope.text()))
            }
            TopicTrigger::User(pattern) => turn.user.as_ref().is_some_and(|text| pattern.is_match(text)),
            TopicTrigger::TurnsIn(topic, count) => {
                let turns = &self.turns()[..=place];
                turns.iter().filter(|turn| turn.topic.as_deref() == Some(topic)).count() >= *count
            }
            TopicTrigger::Condition(check, _) => {
                let looked = CheckScope::Condition { start: place, end: place + 1 };
                let checked = self.evaluator.evaluate_one(check, looked, &mut self.recorder).await;
                self.logs.extend(checked.said.iter().cloned());
                if let Some((kind, words)) = checked.evaluation_error() {
                    return Err(role_failure(kind, words));
                }
                checked.verdict.passed
            }
        })
    }

    /// Asks a judge which of the topics in `choice` a turn belongs to.
    async fn ask_judge_for_topic(
        &mut self,
        topics: &CaseTopics,
        current: usize,
        choice: &[usize],
        place: usize,
    ) -> Result<TopicMatch, AttemptFailure> {
        let failed = |words: &str| role_failure(FailureKind::JudgeError, words);
        let judge = self.evaluator.roles.judge(self.case.vocabulary.judging(), &topics.place);
        let judge =
            judge.map_err(|words| failed(&format!("the topic of turn {} is unknown: {words}", place + 1)))?;
        let candidates: Vec<TopicCandidate<'_>> = choice
            .iter()
            .map(|&place| {
                let topic = &topics.topics[place];
                TopicCandidate {
                    name: &topic.name,
                    characteristic: topic.characteristic.as_deref(),
                    intent: topic.agent_intent.as_deref(),
                }
            })
            .collect();
        let turns = &self.recorder.conversation().turns[..=place];
        let seen = JudgeEvidence {
            test_id: &self.case.id,
            session_id: &self.evaluator.session_id,
            opening: &self.case.opening.messages,
            turns,
            first_judged: place + 1,
        };
        let question =
            TopicQuestion { candidates: &candidates, current: &topics.topics[current].name, evidence: seen };
        let turn_id = turns[place].id.clone();
        let JudgeResponse { outcome, exchanges, .. } = judge.classify(question).await;
        for exchange in exchanges {
            self.recorder.emit(exchange.into_payload(turn_id.clone()));
        }
        let TopicClassification { topic, confidence, reasoning, is_fallback } = outcome
            .map_err(|words| failed(&format!("the topic of turn {} is unknown: {words}", place + 1)))?;
        let why = if is_fallback { TopicReason::Fallback } else { TopicReason::Judge };
        let found = topics.graph.index_of(&topic).unwrap_or(current);
        Ok(TopicMatch {
            confidence: Some(confidence.name().into()),
            reasoning: Some(reasoning),
            ..TopicMatch::new(found, why)
        })
    }

    fn emit_step(
        &mut self,
        topics: &CaseTopics,
        from: Option<usize>,
        found: &TopicMatch,
        place: Option<usize>,
    ) {
        let name = |place: usize| topics.topics[place].name.clone();
        let step = TopicStep {
            turn_id: place.map(|place| self.turns()[place].id.clone()),
            from: from.map(name),
            to: name(found.place),
            turn: place.map(|place| place + 1),
            why: found.why,
            trigger: found.trigger.clone(),
            confidence: found.confidence.clone(),
            reasoning: found.reasoning.clone(),
        };
        self.recorder.emit(match from == Some(found.place) {
            true => Payload::TopicKept(step),
            false => Payload::TopicChanged(step),
        });
    }

    /// Evaluates the checks of topics that the conversation has left.
    pub(super) async fn evaluate_left_topics(&mut self) {
        let visits = self.conversation().topic_visits();
        let left = visits.len().saturating_sub(1);
        self.evaluate_visits(&visits[..left]).await;
    }

    /// Evaluates the checks of all topics not evaluated yet, at the end of the conversation or of a
    /// simulation. A topic that continues later is evaluated again.
    pub async fn evaluate_all_topics(&mut self) {
        let visits = self.conversation().topic_visits();
        self.evaluate_visits(&visits).await;
    }

    /// Evaluates visits with turns added since the last evaluation.
    async fn evaluate_visits(&mut self, visits: &[Visit]) {
        if !self.evaluates_topics() {
            return;
        }
        let Some(followed) = &mut self.topic_tracker else { return };
        let topics = followed.topics.clone();
        let before = followed.evaluated_turns;
        followed.evaluated_turns = visits.last().map_or(before, |visit| visit.turns.end.max(before));
        for visit in visits.iter().filter(|visit| visit.turns.end > before) {
            self.evaluate_visit(&topics, visit, before).await;
        }
    }

    /// Returns true if checks of topics are evaluated in this conversation: always, or only with a simulated
    /// user. A program may start a simulation at any time, so its topics are evaluated by default.
    fn evaluates_topics(&self) -> bool {
        let Some(followed) = &self.topic_tracker else { return false };
        let is_program = self.case.program.is_some();
        match followed.topics.settings.check_policy {
            TopicCheckPolicy::Always => true,
            TopicCheckPolicy::Unsaid if is_program => true,
            TopicCheckPolicy::Unsaid | TopicCheckPolicy::Simulated => {
                let is_simulated = self.turns().iter().any(|turn| &*turn.caller == "simulator");
                is_simulated || (!is_program && self.case.simulator.is_some())
            }
        }
    }

    /// Evaluates the checks of a topic on a visit, and its turn checks on each turn from index `before`.
    /// Checks that need a judge come last.
    async fn evaluate_visit(&mut self, topics: &CaseTopics, visit: &Visit, before: usize) {
        let Some(topic) = topics.graph.index_of(&visit.topic).map(|place| &topics.topics[place]) else {
            return;
        };
        let mut checks: Vec<(Check, CheckScope)> = Vec::new();
        let (start, end) = (visit.turns.start, visit.turns.end);
        checks.extend(
            topic.checks.iter().map(|check| (check.for_topic_visit(), CheckScope::Turns { start, end })),
        );
        for place in start.max(before)..end {
            checks.extend(topic.turn_checks.iter().map(|check| (check.clone(), CheckScope::Turn(place))));
        }
        checks.sort_by_key(|(check, _)| check.as_judged().is_some());
        let begun = Instant::now();
        for (check, looked) in checks {
            let mut checked = match self.undecidable_calls(&check) {
                Some(problem) => CheckResult::errored(&check, problem.message().to_string()),
                None => self.evaluator.evaluate_one(&check, looked, &mut self.recorder).await,
            };
            checked.topic = Some(TopicVisitRef { topic: visit.topic.clone(), visit: visit.number });
            self.checks.push(checked);
        }
        self.paused += begun.elapsed();
    }

    /// Turns a failure into `MaxTurns` if the last simulated user ran out of inputs: more turns might have
    /// met the assertion.
    pub(super) fn attribute_to_max_turns(&self, failure: AttemptFailure) -> AttemptFailure {
        let ended = self.conversation().simulations.last().and_then(|simulation| {
            let ended = simulation.ended.as_ref()?;
            (ended.reason == TerminationReason::MaxTurns).then_some(simulation.max_turns)
        });
        match (failure.kind, ended) {
            (FailureKind::Assertion | FailureKind::MissingCheckpoints, Some(most)) => {
                let message = format!("max turns ({most}) reached; {}", failure.message);
                let detail = failure.detail.unwrap_or_default();
                AttemptFailure::new(FailureKind::MaxTurns, message).with_detail(detail)
            }
            _ => failure,
        }
    }
}

impl TopicMatch {
    fn new(place: usize, why: TopicReason) -> TopicMatch {
        TopicMatch { place, why, trigger: None, confidence: None, reasoning: None }
    }
}
