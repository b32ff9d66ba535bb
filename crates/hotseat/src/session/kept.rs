//! A conversation that was held before, and is decided again: what was said and done comes from its events, as it was and
//! when it was. Nobody is spoken to.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hotseat_trace::{
    ErrorInfo, Failure, FailureKind, InterruptAnswered, InterruptRaised, Millis, Offset, Payload, Record,
    RoleAnswered, UserMessage, Verdict,
};
use serde_json::Value;

use super::open::Ending;
use super::turn::{Given, TIMED_OUT};
use super::{AskedInterrupt, InterruptReply, Media, Recorder, Redactor, Session, TurnScript, media, words};
use crate::adapters::{AgentSession, Carries, TurnError};
use crate::cases::{Case, Turn};
use crate::checks::Check;
use crate::roles::{Exchange, SimulatorQuestion, UserAnswer};

/// What to do about a conversation that is not kept.
pub const HOLD_ANEW: &str = "hold it anew with `hotseat test`";

/// Whom a session speaks to.
pub(super) enum Counterpart<'a> {
    /// An agent.
    Agent(&'a mut dyn AgentSession),
    /// Nobody: the conversation was held before.
    Kept(&'a mut Kept),
}

/// A conversation that was held before.
#[derive(Debug)]
pub struct Kept {
    records: Vec<Record>,
    /// The events of each turn, from its first to its last one.
    turns: Vec<Range<usize>>,
    /// What the simulated user was asked and said, in order.
    simulated: Vec<RoleAnswered>,
    /// How much of that was said again.
    said: AtomicUsize,
    came_to: CameTo,
    id: Arc<str>,
}

/// What a conversation that was held before came to.
#[derive(Debug, Clone)]
pub struct CameTo {
    /// The verdict.
    pub verdict: Verdict,
    /// The time limit that was exceeded, if the verdict is about one.
    pub limit: Option<std::time::Duration>,
    /// Whether its times are not known: it was served from a recording without them.
    pub timeless: bool,
}

/// The failure of a case of which no conversation is kept.
pub fn not_kept(message: impl Into<String>, detail: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::NotKept, message).with_detail(format!("{detail}\n{HOLD_ANEW}").trim_start())
}

impl Counterpart<'_> {
    pub fn conversation_id(&self) -> Arc<str> {
        match self {
            Counterpart::Agent(agent) => agent.conversation_id(),
            Counterpart::Kept(kept) => kept.id.clone(),
        }
    }

    pub fn carries(&self) -> Carries {
        match self {
            Counterpart::Agent(agent) => agent.carries(),
            // Whatever the case gives, the agent was given.
            Counterpart::Kept(_) => Carries { history: true, attachments: true, options: true },
        }
    }

    pub fn keeps_time(&self) -> bool {
        match self {
            Counterpart::Agent(agent) => agent.keeps_time(),
            Counterpart::Kept(kept) => !kept.came_to.timeless,
        }
    }

    /// The conversation that was held before, where nobody is spoken to.
    pub fn kept(&self) -> Option<&Kept> {
        match self {
            Counterpart::Agent(_) => None,
            Counterpart::Kept(kept) => Some(kept),
        }
    }
}

impl Session<'_> {
    /// Whether a program has said all that it said when the conversation was held.
    ///
    /// # Errors
    /// That it has not, though nothing has ended it.
    pub(super) fn has_said_all(&self) -> Result<(), Failure> {
        match self.counterpart.kept() {
            Some(kept) if self.goes_on().is_ok() && self.turns().len() < kept.turns.len() => {
                let message = format!(
                    "the kept conversation has {} turns, and now the test says nothing more after turn {}",
                    kept.turns.len(),
                    self.turns().len()
                );
                Err(not_kept(message, ""))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Kept {
    /// A conversation by its events and by what it came to.
    pub fn of(records: Vec<Record>, came_to: CameTo) -> Kept {
        let mut turns: Vec<Range<usize>> = Vec::new();
        let mut open: Option<(usize, &Arc<str>)> = None;
        let (mut id, mut simulated): (Option<Arc<str>>, _) = (None, Vec::new());
        for (place, record) in records.iter().enumerate().filter(|(_, record)| record.execution.is_none()) {
            match &record.payload {
                // The turn of an agent that was looped in is part of the one that called.
                Payload::TurnStarted(start) if start.caller_turn_id.is_none() => {
                    id.get_or_insert_with(|| start.conversation_id.clone());
                    open = Some((place, &start.turn_id));
                }
                Payload::TurnCompleted(end) if open.is_some_and(|(_, turn)| *turn == end.turn_id) => {
                    turns.extend(open.take().map(|(first, _)| first..place + 1));
                }
                Payload::TurnFailed(end) if open.is_some_and(|(_, turn)| *turn == end.turn_id) => {
                    turns.extend(open.take().map(|(first, _)| first..place + 1));
                }
                Payload::RoleAnswered(answered) if &*answered.role == "simulator" => {
                    simulated.push(answered.clone());
                }
                _ => {}
            }
        }
        let id = id.unwrap_or_else(|| "not-begun".into());
        Kept { records, turns, simulated, said: AtomicUsize::new(0), came_to, id }
    }

    /// When it began.
    pub(super) fn began(&self) -> Option<(Offset, Millis)> {
        self.records.first().map(|first| (first.offset, first.timestamp))
    }

    /// The time limit that was exceeded.
    pub(super) fn limit(&self) -> Option<std::time::Duration> {
        self.came_to.limit
    }

    /// The failure that the conversation came to, if it is of such a kind.
    fn failure_of(&self, kinds: &[FailureKind]) -> Option<&Failure> {
        self.came_to.verdict.failure.as_ref().filter(|failure| kinds.contains(&failure.kind))
    }

    /// The failure of a conversation that would go on, and did not.
    fn no_more(&self, place: usize) -> Failure {
        let message = match place {
            0 => "the kept conversation has no turn".to_string(),
            place => format!("the kept conversation ended after turn {place}, and now it would go on"),
        };
        let verdict = &self.came_to.verdict;
        let why = verdict.failure.as_ref().map(|failure| &failure.message).or(verdict.skip_reason.as_ref());
        not_kept(message, why.map_or_else(String::new, |why| format!("it ended with: {why}")))
    }

    /// A turn happens once more, if it is the same turn.
    pub(super) fn say(
        &self,
        place: usize,
        given: &Given,
        case: &Case,
        script: &mut TurnScript,
        recorder: &mut Recorder,
    ) -> Result<(), TurnError> {
        let Some(range) = self.turns.get(place) else { return Err(self.no_more(place).into()) };
        let events = &self.records[range.clone()];
        self.compare(place, given, events, recorder.redactor())?;
        for record in events {
            if let (Payload::InterruptAnswered(answered), None) = (&record.payload, &record.execution) {
                self.answer(place, answered, range.end, case, script, recorder)?;
            }
            recorder.emit_again(record.clone());
        }
        match events.last().map(|last| &last.payload) {
            Some(Payload::TurnFailed(failed)) => {
                Err(self.failed(place, &failed.error, &given.turn, case, recorder))
            }
            _ => Ok(()),
        }
    }

    /// Whether the user says what was said.
    fn compare(
        &self,
        place: usize,
        given: &Given,
        events: &[Record],
        redactor: &Redactor,
    ) -> Result<(), Failure> {
        let caller = events.iter().find_map(|record| match &record.payload {
            Payload::TurnStarted(start) => Some(&*start.caller_id),
            _ => None,
        });
        let said = events.iter().find_map(|record| match &record.payload {
            Payload::UserMessage(said) if record.execution.is_none() => Some(said),
            _ => None,
        });
        let (Some(caller), Some(said)) = (caller, said) else { return Err(self.no_more(place)) };
        let UserMessage { content, attachments, options, .. } = said;
        let clean = |text: &str| redactor.text(text).into_owned();
        let shown = |options: Option<&Value>| {
            options
                .map_or_else(|| "nothing".to_string(), |options| redactor.json(options.clone()).to_string())
        };
        let turn = &given.turn;
        let names = |names: Vec<String>| match names.is_empty() {
            true => "nothing".to_string(),
            false => names.iter().map(|name| clean(name)).collect::<Vec<_>>().join(", "),
        };
        let now_options = turn.options.as_ref().map(|options| &options.value);
        let compared = [
            ("somebody else speaks for the user", given.caller.to_string(), caller.to_string()),
            ("the user says something else", clean(&words(&turn.content)), clean(content)),
            (
                "something else is attached",
                names(media(&turn.content).map(Media::shown).collect()),
                names(attachments.clone()),
            ),
            (
                "the agent is told something else beside it (`options`)",
                shown(now_options),
                shown(options.as_ref()),
            ),
        ];
        match compared.into_iter().find(|(_, now, kept)| now != kept) {
            None => Ok(()),
            Some((what, now, kept)) => {
                let message = format!("turn {}: {what} than in the kept conversation", place + 1);
                Err(not_kept(message, format!("now: {now}\nkept: {kept}")))
            }
        }
    }

    /// The test answers an interrupt as it did. What a case file answers was compared as it is written.
    fn answer(
        &self,
        place: usize,
        answered: &InterruptAnswered,
        until: usize,
        case: &Case,
        script: &mut TurnScript,
        recorder: &Recorder,
    ) -> Result<(), Failure> {
        let raised = self.records[..until].iter().rev().find_map(|record| match &record.payload {
            Payload::InterruptRaised(raised) if raised.interrupt_id == answered.interrupt_id => Some(raised),
            _ => None,
        });
        let Some(raised) = raised else { return Ok(()) };
        let tool = tool_of(raised, recorder);
        let asked = AskedInterrupt {
            reason: raised.reason.as_deref(),
            message: raised.message.as_deref(),
            tool: tool.as_deref(),
        };
        let now = match script.interrupt_reply(&asked) {
            Some(InterruptReply::Resolved(payload)) => Some(Some(recorder.redactor().json(payload))),
            Some(InterruptReply::Cancelled) => Some(None),
            None => None,
        };
        let kept = match &*answered.status {
            "cancelled" => None,
            _ => Some(answered.payload.clone().unwrap_or_default()),
        };
        if case.body.is_none() || now.as_ref() == Some(&kept) {
            return Ok(());
        }
        let shown =
            |answer: &Option<Value>| answer.as_ref().map_or("it is cancelled".to_string(), Value::to_string);
        let now = now.as_ref().map_or("nothing".to_string(), shown);
        let message = format!(
            "turn {}: the test answers interrupt {} in another way than in the kept conversation",
            place + 1,
            answered.interrupt_id
        );
        Err(not_kept(message, format!("now: {now}\nkept: {}", shown(&kept))))
    }

    /// What a turn that could not be held to its end comes to: what it came to, unless it was given up because of a check
    /// and is asserted something else now.
    fn failed(
        &self,
        place: usize,
        error: &ErrorInfo,
        turn: &Turn,
        case: &Case,
        recorder: &Recorder,
    ) -> TurnError {
        let events = &self.records[self.turns[place].clone()];
        let said = events.iter().any(|record| match &record.payload {
            Payload::AgentRunFailed(failed) => failed.error == *error,
            _ => false,
        });
        if said {
            return TurnError::Run(error.clone());
        }
        let is_last = place + 1 == self.turns.len();
        let failure = self.came_to.verdict.failure.as_ref().filter(|_| is_last);
        let gave_up = error.code.as_deref() == Some(TIMED_OUT[0]) && error.message == TIMED_OUT[1];
        match failure {
            Some(failure) if gave_up && self.came_to.limit.is_some() => failure.clone().into(),
            _ if gave_up => self.given_up(place, turn, case, recorder),
            Some(failure) if error.code.as_deref() == Some(failure.kind.name()) => failure.clone().into(),
            _ => TurnError::Run(error.clone()),
        }
    }

    /// A turn was given up at the limit of a check.
    fn given_up(&self, place: usize, turn: &Turn, case: &Case, recorder: &Recorder) -> TurnError {
        let conversation = recorder.conversation();
        let took = conversation.turns.last().map(hotseat_trace::Turn::duration).unwrap_or_default();
        let whole = conversation.scope().duration();
        let of_turn = turn.checks.iter().filter_map(Check::time_limit).any(|limit| took > limit);
        let of_case = case.checks.iter().filter_map(Check::time_limit).any(|limit| whole > limit);
        if of_turn || of_case {
            return TurnError::Deadline;
        }
        let message = format!(
            "turn {} of the kept conversation was given up after {} ms, and may take longer now",
            place + 1,
            took.as_millis()
        );
        not_kept(message, "it had exceeded a limit of `max_duration_ms`").into()
    }

    /// What the simulated user said next, and the exchange with it.
    ///
    /// # Errors
    /// When it said nothing more, or would be asked something else.
    pub(super) fn simulated(
        &self,
        question: &SimulatorQuestion<'_>,
        redactor: &Redactor,
    ) -> Result<(Result<UserAnswer, String>, Exchange), Failure> {
        let place = question.turn_number - 1;
        let Some(answered) = self.simulated.get(self.said.fetch_add(1, Ordering::Relaxed)) else {
            // It could not be asked, and so it still is.
            let ended = self.failure_of(&[FailureKind::SimulatorError, FailureKind::Timeout]);
            return Err(ended.cloned().unwrap_or_else(|| self.no_more(place)));
        };
        if let Some(key) = question.differs(answered, redactor) {
            let message = format!(
                "turn {}: the simulated user is told something else than in the kept conversation (`{key}`)",
                place + 1
            );
            return Err(not_kept(message, ""));
        }
        Ok(question.answered_before(answered))
    }

    /// What the person typed next.
    ///
    /// # Errors
    /// How the conversation ended without it.
    pub(super) fn typed(&self, place: usize, unwritten: &Turn) -> Result<Given, Ending> {
        let turn = self.turns.get(place).map(|range| &self.records[range.clone()]).unwrap_or_default();
        let typed = turn.iter().any(|record| match &record.payload {
            Payload::TurnStarted(start) => &*start.caller_id == "person",
            _ => false,
        });
        let said = turn.iter().find_map(|record| match &record.payload {
            Payload::UserMessage(said) => Some(said.content.clone()),
            _ => None,
        });
        match (said.filter(|_| typed), &self.came_to.verdict.skip_reason) {
            (Some(text), _) => Ok(Given::said(text, unwritten, "person", None)),
            (None, Some(reason)) => Err(Ending::Skipped(reason.clone())),
            (None, None) => Err(match self.failure_of(&[FailureKind::NoInput]) {
                Some(failure) => Ending::Failed(failure.clone()),
                None => Ending::Over,
            }),
        }
    }
}

/// The tool whose call an interrupt holds up: that of the call, or as the agent says.
fn tool_of(raised: &InterruptRaised, recorder: &Recorder) -> Option<String> {
    let call = raised.tool_call_id.as_ref().and_then(|id| recorder.conversation().call(id));
    let said = raised.value.get("toolName").and_then(Value::as_str);
    call.map(|call| call.name.to_string()).or_else(|| said.map(str::to_string))
}
