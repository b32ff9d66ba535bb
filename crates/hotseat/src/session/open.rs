//! A session: a conversation that is being held, whoever drives it.

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{Conversation, Failure, FailureKind, Turn as Turned, Verdict};
use tokio::time::Instant;

use super::checkpoints::{self, Reached};
use super::deciding::{Deciding, Looked, failure_of};
use super::filling_in::{mistaken, without_times};
use super::kept::{Counterpart, Kept};
use super::topics::Followed;
use super::turn::{Given, GivenUp, judge_end, say};
use super::{Checked, Held, Judges, Partners, Recorder, Timeouts, TurnScript, media};
use crate::adapters::{AgentSession, Carries, Limits, TurnError};
use crate::cases::{Case, Topics, Turn, Vocabulary};
use crate::checks::Check;
use crate::scripts::Powers;
use hotseat_document::Diagnostic;

/// How long a conversation may take as a whole where nobody says, if it has no end of its own: the user is simulated, or a
/// program drives it.
const WHOLE: Duration = Duration::from_secs(300);

/// How a conversation ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// In order.
    Over,
    /// It is left out, for this reason.
    Skipped(String),
    /// It cannot go on, or a hard check does not hold.
    Failed(Failure),
}

/// How many checks the program of a case may have decided.
pub const MAX_CHECKS: usize = 10_000;

/// A case has ended: whatever was asked for was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Why, in words.
    pub why: String,
    /// Whether it ended by what was asked for just now, and not earlier.
    pub just_now: bool,
}

/// What a check looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The last turn.
    LastTurn,
    /// The whole conversation, as far as it has come.
    Conversation,
    /// A value that the test has at hand, whatever it was made of. It is told of with the turn that was held just before.
    Value,
}

/// A conversation that is being held.
///
/// Whoever drives it says what the user says and has checks decided; what that comes to is kept here, so that the
/// verdict does not depend on what the driver makes of it. A hard check that does not hold ends the case, unless the case
/// goes on after failures; a soft one is only recorded.
pub struct Session<'a> {
    pub(super) case: &'a Case,
    pub(super) counterpart: Counterpart<'a>,
    pub(super) deciding: Deciding<'a>,
    timeouts: Timeouts,
    script: TurnScript,
    pub(super) recorder: Recorder,
    started: Instant,
    /// How long judges and people took: no time limit of the conversation counts that.
    pub(super) paused: Duration,
    pub(super) checks: Vec<Checked>,
    pub(super) checkpoints: Vec<Reached>,
    pub(super) limit: Option<Duration>,
    logs: Vec<String>,
    /// The first turn that failed, where the conversation goes on all the same.
    failed: Option<Failure>,
    /// How it ended, once it has.
    ending: Option<Ending>,
    /// The topics that are followed.
    pub(super) followed: Option<Followed>,
    /// What assertions of a program take from around them: what the case says, and the goal that was stated last.
    pub(super) vocabulary: Arc<Vocabulary>,
}

/// Whether the agent can be told all that the case says.
fn can_be_told(case: &Case, agent: &mut dyn AgentSession) -> Result<(), Failure> {
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
    times_are_known(agent.keeps_time(), case)
}

/// Whether what is asserted of times can be judged.
fn times_are_known(known: bool, case: &Case) -> Result<(), Failure> {
    match case.every_check().find(|check| check.is_about_time()) {
        Some(check) if !known => Err(mistaken(without_times(&check.place).into())),
        _ => Ok(()),
    }
}

impl<'a> Session<'a> {
    /// Opens a session. `script` holds the answers of client-side tools. What keeps the conversation from beginning has
    /// ended it before anything was sent.
    pub fn open(
        case: &'a Case,
        agent: &'a mut dyn AgentSession,
        script: TurnScript,
        timeouts: Timeouts,
        partners: Partners,
        recorder: Recorder,
    ) -> Session<'a> {
        let told = can_be_told(case, agent);
        Session::with(case, Counterpart::Agent(agent), told, script, timeouts, partners, recorder)
    }

    /// Opens a session that decides a conversation again that was held before: nobody is spoken to.
    pub fn again(
        case: &'a Case,
        kept: &'a mut Kept,
        script: TurnScript,
        timeouts: Timeouts,
        partners: Partners,
        mut recorder: Recorder,
    ) -> Session<'a> {
        if let Some((offset, wall)) = kept.began() {
            recorder.stand_at(offset, wall);
        }
        let counterpart = Counterpart::Kept(kept);
        let told = times_are_known(counterpart.keeps_time(), case);
        Session::with(case, counterpart, told, script, timeouts, partners, recorder)
    }

    fn with(
        case: &'a Case,
        counterpart: Counterpart<'a>,
        told: Result<(), Failure>,
        script: TurnScript,
        timeouts: Timeouts,
        partners: Partners,
        recorder: Recorder,
    ) -> Session<'a> {
        let mut session = Session {
            case,
            deciding: Deciding { case, session_id: counterpart.conversation_id(), partners },
            counterpart,
            timeouts,
            script: script.with_asking(case.signs.tools.clone()),
            recorder,
            started: Instant::now(),
            paused: Duration::ZERO,
            checks: Vec::new(),
            checkpoints: checkpoints::begin(&case.checkpoints),
            limit: None,
            logs: Vec::new(),
            failed: None,
            ending: told.err().map(Ending::Failed),
            followed: None,
            vocabulary: case.vocabulary.clone(),
        };
        if let Some(topics) = case.topics.clone().filter(|_| session.ending.is_none()) {
            session.begin_topics(topics);
        }
        session
    }

    /// The case.
    pub fn case(&self) -> &Case {
        self.case
    }

    /// Id of the conversation at the agent.
    pub fn id(&self) -> Arc<str> {
        self.deciding.session_id.clone()
    }

    /// What the agent can be told beside the words of the user.
    pub fn carries(&self) -> Carries {
        self.counterpart.carries()
    }

    /// When the case is given up, and the limit on its time; none where there is no such limit.
    pub fn limit(&self) -> Option<(Instant, Duration)> {
        self.whole_limit()
    }

    /// What was said and done so far.
    pub fn conversation(&self) -> &Conversation {
        self.recorder.conversation()
    }

    /// How long all of it may take, where that is said.
    pub fn time_limit(&self) -> Option<Duration> {
        self.case.timeout.or(self.timeouts.case)
    }

    /// Every check that was decided so far, in order.
    pub fn checks(&self) -> &[Checked] {
        &self.checks
    }

    /// Whether the case goes on.
    ///
    /// # Errors
    /// Why it does not.
    pub fn goes_on(&self) -> Result<(), Ended> {
        let why = match &self.ending {
            None => return Ok(()),
            Some(Ending::Over) => "the conversation is over".to_string(),
            Some(Ending::Skipped(reason)) => format!("skipped: {reason}"),
            Some(Ending::Failed(failure)) => failure.message.clone(),
        };
        Err(Ended { why: format!("the case has ended: {why}"), just_now: false })
    }

    /// The user says something, and the agent answers.
    ///
    /// # Errors
    /// When the case has ended, or ends with this turn.
    pub async fn say(&mut self, turn: Turn) -> Result<(), Ended> {
        self.goes_on()?;
        if let Some(most) = self.case.max_turns.filter(|most| self.turns().len() >= *most) {
            let message = format!("max turns ({most}) reached: the user goes on all the same");
            return Err(self.fail(Failure::new(FailureKind::MaxTurns, message)));
        }
        let mut turn = turn;
        let mut mistakes = self.unheard(&turn);
        mistakes.extend(self.fill_in(turn.checks.iter_mut()));
        mistakes.extend(self.unknown_topics(turn.checks.iter()));
        self.without(mistakes)?;
        let said = self.turn(Given::written(&turn)).await;
        said.map_err(|failure| self.ends(Ending::Failed(failure)))
    }

    /// Has a check decided, and records what it comes to.
    ///
    /// # Errors
    /// When the case has ended, or the check is hard and does not hold.
    pub async fn decide(&mut self, check: Check, subject: Subject) -> Result<&Checked, Ended> {
        self.decide_all(vec![check], subject).await.map(|decided| &decided[0])
    }

    /// The turn that was held last; none behind a simulated user, whose turns belong together.
    fn held_just_before(&self) -> Option<usize> {
        self.turns().last().filter(|turn| &*turn.caller != "simulator").map(|turn| turn.number)
    }

    /// Has checks decided that are asserted at once: whatever one of them comes to, so are the others.
    ///
    /// # Errors
    /// When the case has ended, or some of the checks are hard and do not hold.
    pub async fn decide_all(
        &mut self,
        mut checks: Vec<Check>,
        subject: Subject,
    ) -> Result<&[Checked], Ended> {
        self.goes_on()?;
        self.has_room_for(checks.len())?;
        let first = self.checks.len();
        let mut mistakes = self.fill_in(checks.iter_mut());
        mistakes.extend(self.unknown_topics(checks.iter()));
        if let Some(wrong) = mistakes.first() {
            let undecided = checks.into_iter().map(|check| Checked::undecided(check, wrong.message()));
            self.checks.extend(undecided);
            return Err(self.fail(mistaken(mistakes)));
        }
        for check in checks {
            let looked = match (subject, self.turns().len()) {
                // Values are compared whether anything was said or not.
                (Subject::Value, _) => Looked::Whole { is_final: false },
                (_, 0) => {
                    self.without_turn(check)?;
                    continue;
                }
                (Subject::Conversation, _) => Looked::Whole { is_final: false },
                (Subject::LastTurn, n) => Looked::Turn(n - 1),
            };
            let begun = Instant::now();
            let checked = match check.not_compared().map(str::to_string) {
                Some(words) => Checked::undecided(check, &words),
                None => self.deciding.decide_one(&check, looked, &mut self.recorder).await,
            };
            self.paused += begun.elapsed();
            let turn = match subject {
                Subject::Value => self.held_just_before(),
                Subject::LastTurn | Subject::Conversation => checked.turn,
            };
            self.checks.push(Checked { turn, ..checked });
        }
        self.unless_failed(first)?;
        Ok(&self.checks[first..])
    }

    /// Whether a program may assert so much more.
    ///
    /// # Errors
    /// When it may not, which ends the case.
    pub(super) fn has_room_for(&mut self, more: usize) -> Result<(), Ended> {
        if self.checks.len() + more <= MAX_CHECKS {
            return Ok(());
        }
        let message = format!("the test asserts more than {MAX_CHECKS} times");
        let help = "is there a loop that does not end? What belongs together can be compared at once";
        Err(self.fail(Failure::new(FailureKind::TestError, message).with_detail(help)))
    }

    /// Records a check of what was said where nothing was said yet. A hard one ends the case, for the test is wrong.
    fn without_turn(&mut self, check: Check) -> Result<(), Ended> {
        let wrong = Diagnostic::new("there is no turn to look at: nothing was said yet");
        let (wrong, is_hard) = (wrong.at(check.place.clone()), check.is_hard());
        self.checks.push(Checked::undecided(check, wrong.message()));
        if is_hard { Err(self.fail(mistaken(wrong.into()))) } else { Ok(()) }
    }

    /// Goes on unless a hard check does not hold that was decided since then, which ends the case.
    ///
    /// # Errors
    /// When there is such a check, and the case does not go on after failures.
    pub(super) fn unless_failed(&mut self, since: usize) -> Result<(), Ended> {
        match failure_of(&self.checks[since..]).filter(|_| !self.case.continue_on_failure) {
            Some(failure) => Err(self.fail(failure)),
            None => Ok(()),
        }
    }

    /// The functions of the program that drives it judge from now on.
    pub fn judged_by(&mut self, program: Arc<dyn Judges>) {
        self.deciding.partners.program = Some(program);
    }

    /// The topics that are followed.
    pub fn topics(&self) -> Option<&Topics> {
        self.followed.as_ref().map(|followed| &*followed.topics)
    }

    /// What a program may do that drives it.
    pub fn powers(&self) -> Option<&Powers> {
        self.deciding.partners.powers.as_ref()
    }

    /// Ends the case as failed, whatever its checks come to.
    pub fn fail(&mut self, failure: Failure) -> Ended {
        self.ends(Ending::Failed(failure))
    }

    /// Ends the case as one that is left out; if a hard check has failed before, it has failed all the same.
    pub fn skip(&mut self, reason: impl Into<String>) -> Ended {
        self.ends(Ending::Skipped(reason.into()))
    }

    /// Keeps a line for whoever wants to know what the test itself said.
    pub fn log(&mut self, line: impl Into<String>) {
        self.logs.push(line.into());
    }

    /// A case ends once: what comes later does not change why.
    pub(super) fn ends(&mut self, ending: Ending) -> Ended {
        let first = self.ending.is_none();
        let ending = self.ending.get_or_insert(ending);
        let why = match ending {
            Ending::Over => "the conversation is over".to_string(),
            Ending::Skipped(reason) => reason.clone(),
            Ending::Failed(failure) => failure.message.clone(),
        };
        Ended { why, just_now: first }
    }

    pub(super) fn turns(&self) -> &[Turned] {
        &self.recorder.conversation().turns
    }

    /// Sends an input and judges its turn.
    ///
    /// # Errors
    /// When the conversation cannot go on after it.
    pub(super) async fn turn(&mut self, mut given: Given) -> Result<(), Failure> {
        let place = self.turns().len();
        self.script.begin_turn(&given.turn.resume);
        let (deadline, cause) = self.deadline(&given.turn);
        let traffic = self.recorder.traffic().clone();
        let (script, recorder) = (&mut self.script, &mut self.recorder);
        let (said, cause) = match &mut self.counterpart {
            Counterpart::Agent(agent) => {
                let limits = Limits::within(deadline, self.timeouts.idle).counting(&traffic);
                let said = say(place, &mut given, *agent, script, limits, recorder).await;
                self.limit = cause.limit().filter(|_| matches!(said, Err(TurnError::Deadline)));
                (said, cause)
            }
            Counterpart::Kept(kept) => {
                let said = kept.say(place, &given, self.case, script, recorder);
                let gave_up = |error: &TurnError| matches!(error, TurnError::Failed(failure) if failure.kind == FailureKind::Timeout);
                self.limit = kept.limit().filter(|_| said.as_ref().is_err_and(gave_up));
                (said, GivenUp::Check)
            }
        };
        let ended = judge_end(&given.turn, said, cause, &self.script);

        // A turn that was given up because of a check is still judged, and fails by it.
        let judged = ended.is_ok() || ended.as_ref().is_err_and(Option::is_none);
        if judged {
            self.follow_topics(place).await?;
            let begun = Instant::now();
            let (checks, recorder) = (&given.turn.checks, &mut self.recorder);
            let decided = self.deciding.decide(checks, Looked::Turn(place), recorder).await;
            self.checks.extend(decided);
            let looked = self.deciding.checkpoints(&mut self.checkpoints, place, recorder).await;
            self.paused += begun.elapsed();
            looked?;
            self.decide_left_topics().await;
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

    /// What the conversation came to, by what was recorded.
    pub async fn finish(mut self) -> Held {
        let case = self.case;
        // A test that has held no conversation has asserted something of it all the same; what is asserted of every
        // test says nothing of it.
        if self.turns().is_empty() && case.body.is_some() && self.goes_on().is_ok() {
            for check in case.own_checks() {
                // The first one has ended the case; the others are recorded.
                let _ = self.without_turn(check.clone());
            }
        }
        if let None | Some(Ending::Over) = self.ending
            && let Counterpart::Agent(agent) = &mut self.counterpart
            && let Err(failure) = agent.settle().await
        {
            self.ending = Some(Ending::Failed(failure));
        }
        let ending = match self.ending.take() {
            None | Some(Ending::Over) => {
                if !self.turns().is_empty() || case.body.is_none() {
                    self.decide_all_topics().await;
                    self.decide_whole(&case.checks, &case.final_checks).await;
                }
                let failure = missing_checkpoints(&self.checkpoints).or_else(|| failure_of(&self.checks));
                failure.map_or(Ending::Over, Ending::Failed)
            }
            Some(ending) => ending,
        };
        // A turn that failed decides, however the conversation went on; and so does a check.
        let failed = self.failed.take().or_else(|| failure_of(&self.checks));
        let verdict = match (ending, failed) {
            (Ending::Failed(failure), _) | (Ending::Over | Ending::Skipped(_), Some(failure)) => {
                Verdict::failed(self.blamed(failure))
            }
            (Ending::Skipped(reason), None) => Verdict::skipped(reason),
            (Ending::Over, None) => Verdict::passed(),
        };
        let mut held = Held {
            verdict,
            checks: self.checks,
            checkpoints: self.checkpoints,
            limit: self.limit,
            logs: self.logs,
            conversation: Conversation::default(),
            events: Vec::new(),
            duration: Duration::ZERO,
            timeless: !self.counterpart.keeps_time(),
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
    pub(super) fn whole_limit(&self) -> Option<(Instant, Duration)> {
        let is_open = self.case.simulator.is_some() || self.case.body.is_some();
        let unless_said = is_open.then_some(WHOLE);
        let limit = self.time_limit().or(unless_said)?;
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
pub(super) fn missing_checkpoints(all: &[Reached]) -> Option<Failure> {
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
