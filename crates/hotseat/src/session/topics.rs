//! Topics are followed: it is found out to which of them a turn belongs, and what they assert is decided when they are left.

use std::sync::Arc;

use hotseat_trace::{Failure, FailureKind, Payload, Termination, TopicStep, TopicWhy, TopicsDeclared, Visit};
use tokio::time::Instant;

use super::deciding::{Looked, failure_of};
use super::open::Ending;
use super::{Ended, Session, TopicVisit};
use crate::cases::{Topics, TopicsDecided, Trigger};
use crate::checks::Check;
use crate::roles::{Asked, Candidate, Classified, Seen, TopicQuestion, failure};

/// Topics that are followed.
pub(super) struct Followed {
    pub topics: Arc<Topics>,
    /// The topic that the conversation is in, by its place in the graph.
    current: usize,
    /// How many turns were there when visits were decided last: those before belong to visits that were, whether these
    /// assert anything or not.
    decided: usize,
}

/// Which topic a turn belongs to, and why that is known.
struct Found {
    place: usize,
    why: TopicWhy,
    trigger: Option<String>,
    confidence: Option<Arc<str>>,
    reasoning: Option<String>,
}

impl Session<'_> {
    /// Follows topics from now on; the turns that were held already belong to them too.
    ///
    /// # Errors
    /// When the case has ended, or ends by what is wrong with the topics, or by what they assert of those turns.
    pub async fn declare_topics(&mut self, mut topics: Arc<Topics>) -> Result<(), Ended> {
        self.goes_on()?;
        if self.followed.is_some() {
            let message = "the topics of this conversation were declared before";
            return Err(self.fail(Failure::new(FailureKind::TestError, message)));
        }
        let mut mistakes = self.fill_in(Arc::make_mut(&mut topics).asserted_mut());
        mistakes.extend(Topics::unknown(Some(&topics), topics.every_check()));
        self.without(mistakes)?;
        if topics.may_ask_judge() {
            let judging = self.case.vocabulary.judging().clone();
            self.find_judge_as(&judging, &topics.place);
        }
        self.begin_topics(topics);
        let before = self.checks.len();
        for place in 0..self.turns().len() {
            if let Err(failure) = self.follow_topics(place).await {
                return Err(self.fail(failure));
            }
        }
        self.decide_left_topics().await;
        match failure_of(&self.checks[before..]) {
            Some(failure) if !self.case.continue_on_failure => Err(self.ends(Ending::Failed(failure))),
            _ => Ok(()),
        }
    }

    /// The conversation begins in the first topic.
    pub(super) fn begin_topics(&mut self, topics: Arc<Topics>) {
        self.recorder.emit(TopicsDeclared { topics: topics.graph.declared() });
        let first = Found::of(0, TopicWhy::Initial);
        self.emit_step(&topics, None, &first, None);
        self.followed = Some(Followed { topics, current: 0, decided: 0 });
    }

    /// Finds out to which topic a turn belongs.
    ///
    /// # Errors
    /// When whoever has to say so does not, and when there are more turns in a topic than there may be.
    pub(super) async fn follow_topics(&mut self, place: usize) -> Result<(), Failure> {
        let Some((topics, current)) = self.followed.as_ref().map(|f| (f.topics.clone(), f.current)) else {
            return Ok(());
        };
        let begun = Instant::now();
        let found = self.find_topic(&topics, current, place).await;
        self.paused += begun.elapsed();
        let found = found?;
        if let Some(found) = &found {
            self.emit_step(&topics, Some(current), found, Some(place));
        }
        let now = found.map_or(current, |found| found.place);
        if let Some(followed) = &mut self.followed {
            followed.current = now;
        }
        let node = &topics.graph.nodes()[now];
        let turns = self.turns()[..=place].iter().filter(|turn| turn.topic.as_deref() == Some(&*node.name));
        match (node.max_turns, turns.count()) {
            (Some(most), turns) if turns > most => {
                let message = format!("max turns of topic `{}` ({most}) exceeded", node.name);
                Err(Failure::new(FailureKind::MaxTurns, message))
            }
            _ => Ok(()),
        }
    }

    /// The topic of a turn, if anything but the topic before says which it is.
    async fn find_topic(
        &mut self,
        topics: &Topics,
        current: usize,
        place: usize,
    ) -> Result<Option<Found>, Failure> {
        let mut asked = topics.graph.precedence(current);
        for candidate in asked.by_ref() {
            for trigger in &topics.topics[candidate].triggers {
                if self.fires(trigger, place).await? {
                    let fired = Found {
                        trigger: Some(trigger.describe()),
                        ..Found::of(candidate, TopicWhy::Trigger)
                    };
                    return Ok(Some(fired));
                }
            }
        }
        match asked.choice().filter(|_| topics.following.asks_judge) {
            Some(choice) => self.ask_for_topic(topics, current, choice, place).await.map(Some),
            None => Ok(None),
        }
    }

    /// Whether a trigger fires on a turn. On one in which the agent has done nothing at all none does.
    async fn fires(&mut self, trigger: &Trigger, place: usize) -> Result<bool, Failure> {
        let turn = &self.turns()[place];
        if turn.messages.is_empty() && turn.tool_calls.is_empty() {
            return Ok(false);
        }
        Ok(match trigger {
            Trigger::ToolCall(name, arguments) => turn.tool_calls.iter().any(|call| {
                let fits = |arguments: &crate::checks::Expected| {
                    !call.arguments_broken && arguments.fits(&call.arguments)
                };
                *call.name == **name && arguments.as_ref().is_none_or(fits)
            }),
            Trigger::Response(pattern) => {
                let scope = self.conversation().turn_scope(place);
                scope.is_some_and(|scope| pattern.fits(&scope.text()))
            }
            Trigger::User(pattern) => turn.user.as_ref().is_some_and(|said| pattern.fits(said)),
            Trigger::TurnsIn(topic, count) => {
                let turns = &self.turns()[..=place];
                turns.iter().filter(|turn| turn.topic.as_deref() == Some(topic)).count() >= *count
            }
            Trigger::Condition(check) => {
                let checked = self.deciding.decide_one(check, Looked::Turn(place), &mut self.recorder).await;
                if let Some(words) = &checked.error {
                    return Err(failure(super::deciding::asked_kind(check), words));
                }
                checked.verdict.passed
            }
        })
    }

    /// A judge says to which of these topics a turn belongs.
    async fn ask_for_topic(
        &mut self,
        topics: &Topics,
        current: usize,
        choice: &[usize],
        place: usize,
    ) -> Result<Found, Failure> {
        let failed = |words: &str| failure(FailureKind::JudgeError, words);
        let judge = self.deciding.partners.judge(self.case.vocabulary.judging());
        let judge =
            judge.map_err(|words| failed(&format!("which topic turn {} belongs to: {words}", place + 1)))?;
        let candidates: Vec<Candidate<'_>> = choice
            .iter()
            .map(|&place| {
                let topic = &topics.topics[place];
                Candidate {
                    name: &topic.name,
                    characteristic: topic.characteristic.as_deref(),
                    intent: topic.agent_intent.as_deref(),
                }
            })
            .collect();
        let turns = &self.recorder.conversation().turns[..=place];
        let seen = Seen {
            test_id: &self.case.id,
            session_id: &self.deciding.session_id,
            opening: &self.case.opening.messages,
            turns,
            first_judged: place + 1,
        };
        let question = TopicQuestion { candidates: &candidates, current: &topics.topics[current].name, seen };
        let turn_id = turns[place].id.clone();
        let Asked { outcome, exchanges, .. } = judge.classify(question).await;
        for exchange in exchanges {
            self.recorder.emit(exchange.of_turn(turn_id.clone()));
        }
        let Classified { topic, confidence, reasoning, is_fallback } = outcome
            .map_err(|words| failed(&format!("which topic turn {} belongs to: {words}", place + 1)))?;
        let why = if is_fallback { TopicWhy::Fallback } else { TopicWhy::Judge };
        let found = topics.graph.place(&topic).unwrap_or(current);
        Ok(Found {
            confidence: Some(confidence.name().into()),
            reasoning: Some(reasoning),
            ..Found::of(found, why)
        })
    }

    fn emit_step(&mut self, topics: &Topics, from: Option<usize>, found: &Found, place: Option<usize>) {
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

    /// Decides what is asserted of the topics that the conversation has left.
    pub(super) async fn decide_left_topics(&mut self) {
        let visits = self.conversation().topic_visits();
        let left = visits.len().saturating_sub(1);
        self.decide_visits(&visits[..left]).await;
    }

    /// Decides what is asserted of the topics of a conversation that goes no further for now, if it was not yet. If one of
    /// them goes on after all, it is decided again.
    pub async fn decide_all_topics(&mut self) {
        let visits = self.conversation().topic_visits();
        self.decide_visits(&visits).await;
    }

    /// Decides visits of which some turns were not there when visits were decided last.
    async fn decide_visits(&mut self, visits: &[Visit]) {
        if !self.decides_topics() {
            return;
        }
        let Some(followed) = &mut self.followed else { return };
        let topics = followed.topics.clone();
        let before = followed.decided;
        followed.decided = visits.last().map_or(before, |visit| visit.turns.end.max(before));
        for visit in visits.iter().filter(|visit| visit.turns.end > before) {
            self.decide_visit(&topics, visit, before).await;
        }
    }

    /// Whether what topics assert is decided in this conversation: in one with a simulated user, or in all. In a program
    /// nobody knows beforehand whether a user will be simulated, so unless it says otherwise it is decided there, too.
    fn decides_topics(&self) -> bool {
        let Some(followed) = &self.followed else { return false };
        let is_program = self.case.body.is_some();
        match followed.topics.following.decided {
            TopicsDecided::Always => true,
            TopicsDecided::Unsaid if is_program => true,
            TopicsDecided::Unsaid | TopicsDecided::Simulated => {
                let is_simulated = self.turns().iter().any(|turn| &*turn.caller == "simulator");
                is_simulated || (!is_program && self.case.simulator.is_some())
            }
        }
    }

    /// Decides what a topic asserts of the turns of a visit, and of each of them that was not decided `before`: first what
    /// needs nobody, then what a judge says.
    async fn decide_visit(&mut self, topics: &Topics, visit: &Visit, before: usize) {
        let Some(topic) = topics.graph.place(&visit.topic).map(|place| &topics.topics[place]) else { return };
        let mut asked: Vec<(Check, Looked)> = Vec::new();
        let (start, end) = (visit.turns.start, visit.turns.end);
        asked.extend(topic.checks.iter().map(|check| (check.of_visit(), Looked::Turns { start, end })));
        for place in start.max(before)..end {
            asked.extend(topic.turn_checks.iter().map(|check| (check.clone(), Looked::Turn(place))));
        }
        asked.sort_by_key(|(check, _)| check.judged().is_some());
        let begun = Instant::now();
        for (check, looked) in asked {
            let mut checked = self.deciding.decide_one(&check, looked, &mut self.recorder).await;
            checked.topic = Some(TopicVisit { topic: visit.topic.clone(), visit: visit.number });
            self.checks.push(checked);
        }
        self.paused += begun.elapsed();
    }

    /// A failure as what it is where the last simulated user has used up its inputs: the conversation might have come
    /// to what is missing if it had gone on.
    pub(super) fn blamed(&self, failure: Failure) -> Failure {
        let ended = self.conversation().simulations.last().and_then(|simulation| {
            let ended = simulation.ended.as_ref()?;
            (ended.reason == Termination::MaxTurns).then_some(simulation.max_turns)
        });
        match (failure.kind, ended) {
            (FailureKind::Assertion | FailureKind::MissingCheckpoints, Some(most)) => {
                let message = format!("max turns ({most}) reached; {}", failure.message);
                let detail = failure.detail.unwrap_or_default();
                Failure::new(FailureKind::MaxTurns, message).with_detail(detail)
            }
            _ => failure,
        }
    }
}

impl Found {
    fn of(place: usize, why: TopicWhy) -> Found {
        Found { place, why, trigger: None, confidence: None, reasoning: None }
    }
}
