//! Checks and checkpoints of a conversation are decided: most by themselves, some by asking a judge.

use std::sync::Arc;

use hotseat_trace::{CheckVerdict, Failure, FailureKind, Scope};

use super::asking_script::{Asked, Told, ask};
use super::checkpoints::{self, Reached};
use super::{Checked, Held, Opinion, Partners, Recorder};
use crate::cases::Case;
use crate::checks::{Check, CheckKind, Judged, Scripted};
use crate::roles::{self, JudgeQuestion, Judgement, Seen, failure};

/// What of a conversation is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) enum Looked {
    /// One turn, by its place from 0.
    Turn(usize),
    /// All of it, under `final_assertions` or not.
    Whole { is_final: bool },
    /// Turns in a row, by the places of the first one and of the one behind the last.
    Turns { start: usize, end: usize },
}

/// Whoever decides over a conversation that goes on.
pub(super) struct Deciding<'a> {
    pub case: &'a Case,
    pub session_id: Arc<str>,
    pub partners: Partners,
}

/// A verdict, or why there is none.
struct Decision {
    verdict: CheckVerdict,
    error: Option<String>,
    said: Vec<String>,
    opinion: Option<Opinion>,
}

impl Deciding<'_> {
    /// Decides checks, in their order.
    pub async fn decide(&self, checks: &[Check], looked: Looked, recorder: &mut Recorder) -> Vec<Checked> {
        let mut decided = Vec::with_capacity(checks.len());
        for check in checks {
            decided.push(self.decide_one(check, looked, recorder).await);
        }
        decided
    }

    /// Decides a check.
    pub async fn decide_one(&self, check: &Check, looked: Looked, recorder: &mut Recorder) -> Checked {
        let Decision { verdict, error, said, opinion } = self.check(check, looked, recorder).await;
        let (turn, is_final) = match looked {
            Looked::Turn(place) => (Some(place + 1), false),
            Looked::Whole { is_final } => (None, is_final),
            Looked::Turns { .. } => (None, false),
        };
        Checked { check: check.clone(), turn, is_final, verdict, error, said, topic: None, opinion }
    }

    async fn check(&self, check: &Check, looked: Looked, recorder: &mut Recorder) -> Decision {
        if let Some(scripted) = check.scripted() {
            return self.ask_script(check, scripted, looked, recorder).await;
        }
        let Some(judged) = check.judged() else {
            let scope = looked.scope(recorder);
            if let Some((verdict, error)) = check.by_program(scope) {
                return Decision { error, ..Decision::of(verdict) };
            }
            let error = check.undecided(scope);
            return Decision { error, ..Decision::of(check.decide(scope)) };
        };
        self.judge(check, judged, looked, recorder).await
    }

    async fn judge(
        &self,
        check: &Check,
        judged: &Judged,
        looked: Looked,
        recorder: &mut Recorder,
    ) -> Decision {
        let judge = match self.partners.judge(&judged.judging) {
            Ok(judge) => judge,
            Err(words) => return Decision::none(check, words, Vec::new()),
        };
        let turns = looked.so_far(recorder);
        let Some(turn_id) = turns.last().map(|turn| turn.id.clone()) else {
            return Decision::of(check.decide(looked.scope(recorder)));
        };
        let seen = Seen {
            test_id: &self.case.id,
            session_id: &self.session_id,
            opening: &self.case.opening.messages,
            turns,
            first_judged: looked.scope(recorder).turns().first().map_or(1, |turn| turn.number),
        };
        let roles::Asked { outcome, exchanges, by } =
            judge.judge(JudgeQuestion { matter: &judged.matter, seen }).await;
        let suggestions = roles::suggestions(&exchanges);
        for exchange in exchanges {
            recorder.emit(exchange.of_turn(turn_id.clone()));
        }
        match outcome {
            Err(words) => {
                let opinion = Opinion { reasoning: None, score: None, suggestions, by };
                Decision { opinion: Some(opinion), ..Decision::none(check, words, Vec::new()) }
            }
            Ok(Judgement { passed, score, reasoning, words }) => {
                let passed = passed != check.negated;
                let verdict = CheckVerdict { passed, expected: check.describe(), actual: words };
                Decision {
                    opinion: Some(Opinion { reasoning, score, suggestions, by }),
                    ..Decision::of(verdict)
                }
            }
        }
    }

    async fn ask_script(
        &self,
        check: &Check,
        scripted: &Scripted,
        looked: Looked,
        recorder: &Recorder,
    ) -> Decision {
        let (so_far, looked_at) = (looked.so_far(recorder), looked.scope(recorder).turns());
        let of_program = self.partners.program.as_ref();
        if let Some(judged) = of_program.and_then(|own| own.judge(&scripted.function, so_far, looked_at)) {
            return match judged.await {
                Err(words) => Decision::none(check, words, Vec::new()),
                Ok(holds) => {
                    let (passed, actual) = (holds != check.negated, format!("it returned {holds}"));
                    let verdict = CheckVerdict { passed, expected: check.describe(), actual };
                    Decision::of(verdict)
                }
            };
        }
        let Some(function) = self.partners.function(&scripted.function) else {
            return Decision::none(check, format!("`{}` is not there", scripted.function), Vec::new());
        };
        let told = Told { test_id: &self.case.id, opening: &self.case.opening.messages, so_far, looked_at };
        let Asked { judgement, said } = ask(function, scripted, told).await;
        match judgement {
            Err(words) => Decision::none(check, format!("{}: {words}", scripted.function), said),
            Ok((passed, words)) => {
                let actual = words.unwrap_or_else(|| format!("it returned {passed}"));
                let passed = passed != check.negated;
                let verdict = CheckVerdict { passed, expected: check.describe(), actual };
                Decision { said, ..Decision::of(verdict) }
            }
        }
    }

    /// Looks for checkpoints that a turn has reached. In which order they are written does not matter.
    ///
    /// # Errors
    /// When one of them cannot be decided.
    pub async fn checkpoints(
        &self,
        all: &mut [Reached],
        place: usize,
        recorder: &mut Recorder,
    ) -> Result<(), Failure> {
        let mut looked_at = vec![false; all.len()];
        while let Some(next) = checkpoints::next(all, &looked_at) {
            looked_at[next] = true;
            let checks = all[next].checkpoint.checks.clone();
            let decided = self.decide(&checks, Looked::Turn(place), recorder).await;
            let undecided = decided.iter().find_map(|checked| Some((checked, checked.error.as_deref()?)));
            if let Some((checked, words)) = undecided {
                let (first, rest) = words.split_once('\n').unwrap_or((words, ""));
                let message = format!("checkpoint {} failed: {first}", all[next].checkpoint.id);
                return Err(Failure::new(asked_kind(&checked.check), message).with_detail(rest));
            }
            all[next].take(&decided, place + 1);
        }
        // Those that wait for others hold or do not hold all the same, which says what to look for.
        for place_of in 0..all.len() {
            if !looked_at[place_of] && all[place_of].at.is_none() {
                checkpoints::wait(all, place_of, place + 1, Looked::Turn(place).scope(recorder));
            }
        }
        Ok(())
    }
}

impl Decision {
    /// A check that could not be decided does not hold, negated or not.
    fn none(check: &Check, words: String, said: Vec<String>) -> Decision {
        let first = words.lines().next().unwrap_or_default().to_string();
        let verdict = CheckVerdict { passed: false, expected: check.describe(), actual: first };
        Decision { verdict, error: Some(words), said, opinion: None }
    }

    /// A check that decides itself, or that was decided.
    fn of(verdict: CheckVerdict) -> Decision {
        Decision { verdict, error: None, said: Vec::new(), opinion: None }
    }
}

/// The kind of failure when a check could not be decided.
pub(super) fn asked_kind(check: &Check) -> FailureKind {
    match &check.kind {
        CheckKind::Scripted(_) => FailureKind::ScriptError,
        CheckKind::Judged(_) => FailureKind::JudgeError,
        // Of assertions that ask nobody only budgets cannot be decided.
        CheckKind::Budget(_) | CheckKind::AllOf(_) => FailureKind::UsageError,
        _ if check.not_compared().is_some() => FailureKind::ScriptError,
        _ => FailureKind::TestError,
    }
}

impl Looked {
    /// The turns up to what is looked at.
    fn so_far(self, recorder: &Recorder) -> &[hotseat_trace::Turn] {
        let turns = &recorder.conversation().turns;
        match self {
            Looked::Turn(place) => &turns[..=place],
            Looked::Whole { .. } => turns,
            Looked::Turns { end, .. } => &turns[..end],
        }
    }

    fn scope<'a>(self, recorder: &'a Recorder) -> Scope<'a> {
        let conversation = recorder.conversation();
        match self {
            Looked::Turn(place) => conversation.turn_scope(place).unwrap_or_else(|| conversation.scope()),
            Looked::Whole { .. } => conversation.scope(),
            Looked::Turns { start, end } => {
                conversation.turns_scope(start..end).unwrap_or_else(|| conversation.scope())
            }
        }
    }
}

/// Where a check stands, and where the test calls what has asserted it.
fn shown_place(check: &Check) -> String {
    match &check.called_at {
        Some(called_at) => format!("{} (called at {called_at})", check.place),
        None => check.place.to_string(),
    }
}

/// The failure of an attempt in which checks do not hold, or could not be decided; none when all hold.
pub(super) fn failure_of(checks: &[Checked]) -> Option<Failure> {
    let all: Vec<&Checked> = checks.iter().filter(|checked| checked.fails()).collect();
    // Who could not be asked has said nothing about the agent; a check that does not hold has.
    let (undecided, failed): (Vec<&Checked>, Vec<&Checked>) =
        all.iter().partition(|checked| checked.error.is_some());
    let first = failed.first().or(undecided.first())?;
    if let Some(words) = &first.error {
        let detail = undecided
            .iter()
            .map(|checked| format!("{}: {}", shown_place(&checked.check), checked.verdict.expected));
        let detail = detail.collect::<Vec<_>>().join("\n");
        let failure = failure(asked_kind(&first.check), words);
        // What the engine shows of a script stands before where it was asked.
        let detail = failure.detail.iter().cloned().chain([detail]).collect::<Vec<_>>().join("\n");
        return Some(failure.with_detail(detail));
    }
    let mut message = match (failed.len(), &first.check.message) {
        (1, Some(own)) => own.clone(),
        (1, None) => format!("does not hold: {}", first.verdict.expected),
        (n, own) => {
            format!("{n} checks do not hold; the first: {}", own.as_ref().unwrap_or(&first.verdict.expected))
        }
    };
    if !undecided.is_empty() {
        message.push_str(&format!("; {} could not be decided", undecided.len()));
    }
    let detail = all.iter().map(|checked| {
        format!(
            "{}: expected {}; found {}",
            shown_place(&checked.check),
            checked.verdict.expected,
            checked.verdict.actual
        )
    });
    Some(Failure::new(FailureKind::Assertion, message).with_detail(detail.collect::<Vec<_>>().join("\n")))
}

impl Held {
    /// Takes secrets out of what the test says itself; what was recorded has none any more.
    pub(super) fn redact(&mut self, recorder: &Recorder) {
        let redactor = recorder.redactor();
        for checked in &mut self.checks {
            checked.verdict.expected = redactor.text(&checked.verdict.expected).into_owned();
            let check = &mut checked.check;
            check.message = check.message.take().map(|message| redactor.text(&message).into_owned());
            check.written = check.written.take().map(|written| Arc::new(redactor.json((*written).clone())));
            checked.verdict.actual = redactor.text(&checked.verdict.actual).into_owned();
            checked.said.iter_mut().for_each(|line| *line = redactor.text(line).into_owned());
            checked.error = checked.error.take().map(|words| redactor.text(&words).into_owned());
            check.criterion = check.criterion.take().map(|words| redactor.text(&words).into());
            if let Some(Opinion { reasoning, suggestions, .. }) = &mut checked.opinion {
                for suggestion in suggestions {
                    *suggestion = redactor.text(suggestion).into_owned();
                }
                *reasoning = reasoning.take().map(|words| redactor.text(&words).into_owned());
            }
        }
        self.logs.iter_mut().for_each(|line| *line = redactor.text(line).into_owned());
        for reached in &mut self.checkpoints {
            reached.missing = reached.missing.take().map(|words| redactor.text(&words).into_owned());
        }
        self.verdict.failure = self.verdict.failure.take().map(|failure| redactor.failure(failure));
        self.verdict.skip_reason =
            self.verdict.skip_reason.take().map(|reason| redactor.text(&reason).into_owned());
    }
}
