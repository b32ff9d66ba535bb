//! A conversation from its first input to its verdict.

use std::time::Duration;

use hotseat_trace::{Failure, FailureKind, Turn as Turned, Verdict};
use tokio::time::Instant;

use super::checkpoints::{self, Reached};
use super::deciding::{Deciding, Looked, failure_of};
use super::turn::{Given, GivenUp, judge_end, say};
use super::{
    Asked, AskedPerson, Checked, Held, Next, OnMissingInput, Partners, Recorder, Sources, Timeouts,
    TurnScript, Typed, Waiting, media,
};
use crate::adapters::{AgentSession, Limits, TurnError};
use crate::cases::{Case, Style, Turn};
use crate::checks::Check;
use crate::roles::{self, Dialogue, Exchange, SimulatorQuestion, Unanswered, UserMove};

/// How many turns a simulated user may make a conversation where the case does not say.
const MOST_TURNS: usize = 20;
/// How long a conversation with a simulated user may take as a whole where nobody says.
const WHOLE: Duration = Duration::from_secs(300);
/// Why a conversation cannot go on.
pub const NO_NEXT_TURN: &str = "Agent awaiting input, no next turn defined";
/// What to do about it.
pub const MORE_INPUT: &str = "Add more turns, use --interactive, or configure simulator; `on_missing_input: end` says that the conversation ends here";

/// How a conversation ended.
enum Ending {
    /// In order.
    Over,
    /// The agent waits, and nobody answers it.
    Skipped(String),
    Failed(Failure),
}

/// A conversation that is being held.
struct Talk<'a> {
    case: &'a Case,
    deciding: Deciding<'a>,
    partners: &'a Partners,
    timeouts: Timeouts,
    script: TurnScript,
    recorder: Recorder,
    started: Instant,
    /// How long judges and people took: no time limit of the conversation counts that.
    paused: Duration,
    checks: Vec<Checked>,
    checkpoints: Vec<Reached>,
    limit: Option<Duration>,
    /// The first turn that failed, where the conversation goes on all the same.
    failed: Option<Failure>,
}

/// Holds a whole conversation and decides. `script` holds the answers of client-side tools.
pub async fn hold(
    case: &Case,
    agent: &mut dyn AgentSession,
    script: TurnScript,
    timeouts: Timeouts,
    partners: &Partners,
    recorder: Recorder,
) -> Held {
    let mut talk = Talk {
        case,
        deciding: Deciding { case, session_id: agent.conversation_id(), partners },
        partners,
        timeouts,
        script,
        recorder,
        started: Instant::now(),
        paused: Duration::ZERO,
        checks: Vec::new(),
        checkpoints: checkpoints::begin(&case.checkpoints),
        limit: None,
        failed: None,
    };
    let ending = match begin(case, agent) {
        Ok(()) => talk.go_on(agent).await,
        Err(failure) => Ending::Failed(failure),
    };
    talk.end(ending).await
}

/// What comes before the first turn: whether there is one, and whether the agent can be told all that the case says.
fn begin(case: &Case, agent: &mut dyn AgentSession) -> Result<(), Failure> {
    if case.turns.is_empty() && case.simulator.is_none() && case.interactive.is_none() {
        let help = "a case has an `input` or `turns`";
        return Err(Failure::new(FailureKind::NoInput, "no initial input").with_detail(help));
    }
    let carries = agent.carries();
    let cannot = |what: &str| {
        let message = format!("{what} cannot be sent to an agent of this kind");
        Err(Failure::new(FailureKind::TestError, message))
    };
    let attached = case.turns.iter().any(|turn| media(&turn.content).next().is_some());
    let attached =
        attached || case.opening.messages.iter().any(|message| media(&message.content).next().is_some());
    if !case.opening.messages.is_empty() && !carries.history {
        return cannot("messages before the first turn");
    }
    if attached && !carries.attachments {
        return cannot("attachments");
    }
    let options = case.turns.iter().chain([&case.unwritten]).any(|turn| turn.options.is_some());
    if options && !carries.options {
        return cannot("`options`");
    }
    agent.remember(&case.opening.messages)?;
    if !agent.keeps_time() && case.every_check().any(Check::is_about_time) {
        let message =
            "the times of this conversation are not known, so nothing that asserts time can be judged";
        let help = "leave `timing` out, or record the agent itself with `hotseat test --record`";
        return Err(Failure::new(FailureKind::TestError, message).with_detail(help));
    }
    Ok(())
}

impl Talk<'_> {
    /// Turn after turn until there is no more.
    async fn go_on(&mut self, agent: &mut dyn AgentSession) -> Ending {
        loop {
            let given = match self.next_input().await {
                Ok(given) => given,
                Err(ending) => return ending,
            };
            if let Err(failure) = self.turn(given, agent).await {
                return Ending::Failed(failure);
            }
        }
    }

    fn turns(&self) -> &[Turned] {
        &self.recorder.conversation().turns
    }

    /// The next input, or how the conversation ends without one.
    async fn next_input(&mut self) -> Result<Given, Ending> {
        let case = self.case;
        let place = self.turns().len();
        let last = self.turns().last();
        let sources = Sources {
            turn_written: place < case.turns.len(),
            awaiting: last.is_none_or(|turn| Waiting::of(turn, &case.signs).is_awaiting()),
            simulator: case.simulator.as_ref().map(|_| match case.is_dynamic {
                true => Asked::Always,
                false => Asked::WhenAwaited,
            }),
            person: case.interactive.as_ref().map(|person| person.asked),
            on_missing: case.on_missing_input,
            on_complete: case.on_complete,
        };
        match sources.next() {
            Next::Written => Ok(Given::written(&case.turns[place])),
            Next::Simulator if case.is_dynamic && checkpoints::all_reached(&self.checkpoints) => {
                Err(Ending::Over)
            }
            Next::Simulator => self.simulated(place).await,
            Next::Person => self.typed(place).await,
            Next::Over => Err(Ending::Over),
            Next::Skip | Next::Fail => Err(self.without_input(NO_NEXT_TURN)),
            Next::DoneTooSoon => {
                let message = format!(
                    "the agent was done after turn {place}, and `on_complete: fail` wants it to wait for turn {}",
                    place + 1
                );
                Err(Ending::Failed(Failure::new(FailureKind::Assertion, message)))
            }
        }
    }

    /// The agent waits, and nobody answers it.
    fn without_input(&self, reason: &str) -> Ending {
        match self.case.on_missing_input {
            OnMissingInput::Skip => Ending::Skipped(reason.to_string()),
            OnMissingInput::End => Ending::Over,
            OnMissingInput::Fail => {
                let asked = self.turns().last().and_then(|turn| turn.answer()).unwrap_or_default();
                let detail = format!("agent asked: {asked:?}\n{MORE_INPUT}");
                Ending::Failed(Failure::new(FailureKind::NoInput, reason).with_detail(detail))
            }
        }
    }

    /// A simulated user says what comes next.
    async fn simulated(&mut self, place: usize) -> Result<Given, Ending> {
        let most = self.case.max_turns.unwrap_or(MOST_TURNS);
        if place >= most {
            return Err(Ending::Failed(self.too_many_turns(most)));
        }
        let (Some(simulator), Some(role)) = (&self.case.simulator, &self.partners.simulator) else {
            return Err(self.simulator_failed("there is no simulated user to ask"));
        };
        let ids = |is_reached: bool| -> Vec<&str> {
            let some = self.checkpoints.iter().filter(|reached| reached.at.is_some() == is_reached);
            some.map(|reached| reached.checkpoint.id.as_str()).collect()
        };
        let limit = self.whole_limit();
        let question = SimulatorQuestion {
            options: &simulator.options,
            test_id: &self.case.id,
            session_id: &self.deciding.session_id,
            dialogue: Dialogue::of(&self.case.opening.messages, self.recorder.conversation()),
            as_messages: simulator.style == Style::Transcript,
            turn_number: place + 1,
            max_turns: most,
            checkpoints: (&ids(true), &ids(false)),
            until: limit.map(|(at, _)| at),
        };
        let (next, exchange) = match role.simulate(question).await {
            Ok(answered) => answered,
            Err(Unanswered::Failed(words)) => return Err(self.simulator_failed(&words)),
            Err(Unanswered::Deadline) => {
                self.limit = limit.map(|(_, limit)| limit);
                let limit = self.limit.unwrap_or_default();
                let message = format!("the case timed out after {} ms", limit.as_millis());
                return Err(Ending::Failed(Failure::new(FailureKind::Timeout, message)));
            }
        };
        match next {
            Ok(UserMove::Says(text)) => {
                Ok(Given::said(text, &self.case.unwritten, "simulator", Some(exchange)))
            }
            Ok(UserMove::GoalAchieved) if place == 0 => {
                Err(self.simulator_failed("it says that its goal is achieved before it has said anything"))
            }
            Ok(UserMove::GoalAchieved) => {
                self.keep(exchange);
                Err(Ending::Over)
            }
            Err(words) => {
                self.keep(exchange);
                Err(self.simulator_failed(&words))
            }
        }
    }

    /// Keeps an exchange that begins no turn with the last one.
    fn keep(&mut self, exchange: Exchange) {
        if let Some(turn_id) = self.turns().last().map(|turn| turn.id.clone()) {
            self.recorder.emit(exchange.of_turn(turn_id));
        }
    }

    /// Without its simulated user a conversation with checkpoints fails; any other is one without input.
    fn simulator_failed(&self, words: &str) -> Ending {
        let failure = roles::failure(FailureKind::SimulatorError, words);
        match self.case.on_missing_input {
            _ if self.case.is_dynamic => Ending::Failed(failure),
            OnMissingInput::Fail => Ending::Failed(failure),
            OnMissingInput::Skip => Ending::Skipped(failure.message),
            OnMissingInput::End => Ending::Over,
        }
    }

    fn too_many_turns(&self, most: usize) -> Failure {
        let mut message = format!("max turns ({most}) exceeded");
        let missing = missing_checkpoints(&self.checkpoints);
        if let Some(missing) = &missing {
            message = format!("{message}; {}", missing.message);
        }
        let detail = missing.and_then(|missing| missing.detail).unwrap_or_default();
        Failure::new(FailureKind::MaxTurns, message).with_detail(detail)
    }

    /// A person says what comes next.
    async fn typed(&mut self, place: usize) -> Result<Given, Ending> {
        if let Some(most) = self.case.max_turns.filter(|most| place >= *most) {
            return Err(Ending::Failed(self.too_many_turns(most)));
        }
        let (Some(person), Some(interactive)) = (&self.partners.person, &self.case.interactive) else {
            return Err(self.nobody(place, NO_NEXT_TURN));
        };
        let last = self.turns().last();
        let asked = AskedPerson {
            case: &self.case.name,
            session: &self.deciding.session_id,
            dialogue: Dialogue::of(&self.case.opening.messages, self.recorder.conversation()),
            hint: last.and_then(|turn| turn.awaiting.as_ref()?.hint.as_deref()),
            turn: place + 1,
            patience: interactive.patience,
        };
        let begun = Instant::now();
        let typed = person.ask(asked).await;
        self.paused += begun.elapsed();
        match typed {
            Typed::Said(text) => Ok(Given::said(text, &self.case.unwritten, "person", None)),
            Typed::End if place > 0 => Err(Ending::Over),
            Typed::End => Err(self.nobody(place, "nothing was typed")),
            Typed::Skip => Err(Ending::Skipped("skipped by the person who was asked".to_string())),
            Typed::Nothing(why) => Err(self.nobody(place, &format!("{NO_NEXT_TURN} ({why})"))),
        }
    }

    /// Nobody answers the agent, or nobody has begun.
    fn nobody(&self, place: usize, reason: &str) -> Ending {
        match place {
            0 => {
                let failure = Failure::new(FailureKind::NoInput, "no initial input");
                Ending::Failed(failure.with_detail(reason))
            }
            _ => self.without_input(reason),
        }
    }

    /// Sends an input and judges its turn.
    ///
    /// # Errors
    /// When the conversation cannot go on after it.
    async fn turn(&mut self, mut given: Given, agent: &mut dyn AgentSession) -> Result<(), Failure> {
        let place = self.turns().len();
        self.script.begin_turn(&given.turn.resume);
        let (deadline, cause) = self.deadline(&given.turn);
        let limits = Limits { deadline, idle: self.timeouts.idle };
        let said = say(place, &mut given, agent, &mut self.script, limits, &mut self.recorder).await;
        self.limit = cause.limit().filter(|_| matches!(said, Err(TurnError::Deadline)));
        let ended = judge_end(&given.turn, said, cause, &self.script);

        // A turn that was given up because of a check is still judged, and fails by it.
        let judged = ended.is_ok() || ended.as_ref().is_err_and(Option::is_none);
        if judged {
            let begun = Instant::now();
            let (checks, recorder) = (&given.turn.checks, &mut self.recorder);
            let decided = self.deciding.decide(checks, Looked::Turn(place), recorder).await;
            self.checks.extend(decided);
            let looked = self.deciding.checkpoints(&mut self.checkpoints, place, recorder).await;
            self.paused += begun.elapsed();
            looked?;
        }
        let failure = match ended {
            Ok(()) => failure_of(&self.checks),
            Err(Some(failure)) => return Err(failure),
            Err(None) => {
                // The limit may be one of the whole conversation; its other checks wait for turns that never come.
                let limits = |check: &&Check| check.time_limit().is_some();
                let (own, last): (Vec<Check>, Vec<Check>) = (
                    self.case.checks.iter().filter(limits).cloned().collect(),
                    self.case.final_checks.iter().filter(limits).cloned().collect(),
                );
                self.decide_whole(&own, &last).await;
                return Err(failure_of(&self.checks).unwrap_or_else(|| {
                    let message = "the turn was given up at the limit of `max_duration_ms`";
                    Failure::new(FailureKind::Timeout, message)
                }));
            }
        };
        match failure {
            Some(failure) if self.case.continue_on_failure => {
                self.failed.get_or_insert(failure);
                Ok(())
            }
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    async fn decide_whole(&mut self, checks: &[Check], final_checks: &[Check]) {
        for (checks, is_final) in [(checks, false), (final_checks, true)] {
            let looked = Looked::Whole { is_final };
            let decided = self.deciding.decide(checks, looked, &mut self.recorder).await;
            self.checks.extend(decided);
        }
    }

    /// What the conversation came to.
    async fn end(mut self, ending: Ending) -> Held {
        let ending = match ending {
            Ending::Over => {
                let case = self.case;
                self.decide_whole(&case.checks, &case.final_checks).await;
                let failure = missing_checkpoints(&self.checkpoints).or_else(|| failure_of(&self.checks));
                failure.map_or(Ending::Over, Ending::Failed)
            }
            ending => ending,
        };
        // A turn that failed decides, however the conversation went on.
        let verdict = match (ending, self.failed) {
            (Ending::Failed(failure), _) | (Ending::Over | Ending::Skipped(_), Some(failure)) => {
                Verdict::failed(failure)
            }
            (Ending::Skipped(reason), None) => Verdict::skipped(reason),
            (Ending::Over, None) => Verdict::passed(),
        };
        let mut held = Held {
            verdict,
            checks: self.checks,
            checkpoints: self.checkpoints,
            limit: self.limit,
            conversation: hotseat_trace::Conversation::default(),
            events: Vec::new(),
            duration: Duration::ZERO,
        };
        held.redact(&self.recorder);
        (held.conversation, held.events) = self.recorder.finish();
        held.duration = held.conversation.scope().duration();
        held
    }

    /// When a limit on the whole conversation is over: time that nobody has waited for has passed as well.
    fn end_of(&self, limit: Duration) -> Instant {
        self.started + limit.saturating_sub(self.recorder.skipped())
    }

    /// When the conversation as a whole is given up, and that limit.
    fn whole_limit(&self) -> Option<(Instant, Duration)> {
        let unless_said = self.case.simulator.as_ref().map(|_| WHOLE);
        let limit = self.case.timeout.or(self.timeouts.case).or(unless_said)?;
        Some((self.end_of(limit) + self.paused, limit))
    }

    /// When a turn is given up, and on whose account: the nearest of all limits that concern it.
    fn deadline(&self, turn: &Turn) -> (Instant, GivenUp) {
        let now = Instant::now();
        let limit = turn.timeout.unwrap_or(self.timeouts.turn);
        let mut nearest = (now + limit, GivenUp::Turn(limit));
        let mut consider = |at: Instant, cause: GivenUp| {
            if at < nearest.0 {
                nearest = (at, cause);
            }
        };
        if let Some((at, limit)) = self.whole_limit() {
            consider(at, GivenUp::Case(limit));
        }
        // One millisecond more, so that the time that was taken is really more than the limit.
        let over = |limit: Duration| limit + Duration::from_millis(1);
        for limit in turn.checks.iter().filter_map(Check::time_limit) {
            consider(now + over(limit), GivenUp::Check);
        }
        for limit in self.case.checks.iter().filter_map(Check::time_limit) {
            consider(self.end_of(over(limit)), GivenUp::Check);
        }
        nearest
    }
}

/// The failure of a conversation that is over with checkpoints that were not reached.
fn missing_checkpoints(all: &[Reached]) -> Option<Failure> {
    let missing: Vec<&Reached> = checkpoints::missing(all).collect();
    if missing.is_empty() {
        return None;
    }
    let ids: Vec<&str> = missing.iter().map(|reached| reached.checkpoint.id.as_str()).collect();
    let detail = missing.iter().map(|reached| {
        let why = reached.missing.as_deref().unwrap_or("no turn was looked at");
        format!("{} ({}): {why}", reached.checkpoint.id, reached.checkpoint.place)
    });
    let failure =
        Failure::new(FailureKind::MissingCheckpoints, format!("missing checkpoints: {}", ids.join(", ")));
    Some(failure.with_detail(detail.collect::<Vec<_>>().join("\n")))
}
