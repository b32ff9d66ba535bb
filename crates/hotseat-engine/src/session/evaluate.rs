//! Evaluates checks and checkpoints of a conversation, directly or by asking a judge or a script.

use std::borrow::Cow;
use std::sync::Arc;

use hotseat_trace::{
    AgentToolCall, AttemptFailure, CheckVerdict, ConversationTurn, FailureKind, TracedConversation, TurnScope,
};
use serde_json::Value;

use super::checkpoints::{self, CheckpointResult};
use super::script_check::{ScriptInput, ScriptVerdict, run_script_check};
use crate::cases::TestCase;
use crate::roles::{self, JudgeEvidence, JudgeQuestion, Judgement, role_failure};
use crate::session::{CheckInfo, CheckResult, ConversationResult, JudgeOpinion, SessionRoles};
use crate::threads::compute_aside;
use hotseat_checks::{Check, CheckFunction, ForbiddenTexts, JudgedCheck, ScriptCheck, ScriptInputKind};
use hotseat_document::SourceText;
use hotseat_targets::recorder::{REDACTION_MARK, SecretRedactor, TraceRecorder};

/// Size of conversations whose checks may take long. A check reads some hundred megabytes a second.
const LONG_CONVERSATION_BYTES: u64 = 256 * 1024;

/// The part of the conversation a check is evaluated on.
#[derive(Debug, Clone, Copy)]
pub(super) enum CheckScope {
    /// One turn, by its index from 0.
    Turn(usize),
    /// The whole conversation; `is_final` for `final_assertions`.
    Whole { is_final: bool },
    /// Consecutive turns, by the index of the first one and the index after the last.
    Turns { start: usize, end: usize },
    /// Like `Turns`, for a check that decides how the conversation goes on.
    Condition { start: usize, end: usize },
}

/// Evaluates checks over a running conversation.
pub(super) struct CheckEvaluator<'a> {
    pub case: &'a TestCase,
    pub session_id: Arc<str>,
    pub roles: SessionRoles,
}

impl CheckEvaluator<'_> {
    /// Evaluates checks in order.
    pub async fn evaluate(
        &self,
        checks: &[Check],
        looked: CheckScope,
        recorder: &mut TraceRecorder,
    ) -> Vec<CheckResult> {
        let mut decided = Vec::with_capacity(checks.len());
        for check in checks {
            // A sweep decides which fault a conversation has, if any.
            let is_about_other = self.case.is_swept
                && check.needs_fault()
                && check.undecided_reason(looked.scope(recorder)).is_some();
            if !is_about_other {
                decided.push(self.evaluate_one(check, looked, recorder).await);
            }
        }
        decided
    }

    /// Evaluates a check.
    pub async fn evaluate_one(
        &self,
        check: &Check,
        looked: CheckScope,
        recorder: &mut TraceRecorder,
    ) -> CheckResult {
        let (turn, is_final) = match looked {
            CheckScope::Turn(place) => (Some(place + 1), false),
            CheckScope::Whole { is_final } => (None, is_final),
            CheckScope::Turns { .. } | CheckScope::Condition { .. } => (None, false),
        };
        CheckResult { turn, is_final, ..self.evaluate_check(check, looked, recorder).await }
    }

    async fn evaluate_check(
        &self,
        check: &Check,
        looked: CheckScope,
        recorder: &mut TraceRecorder,
    ) -> CheckResult {
        if let Some(scripted) = check.as_script() {
            return Box::pin(self.evaluate_script(check, scripted, looked, recorder)).await;
        }
        if let Some(judged) = check.as_judged() {
            return Box::pin(self.judge(check, judged, looked, recorder)).await;
        }
        let scope = looked.scope(recorder);
        let decide = |check: &Check, scope| decide(check, scope, recorder);
        if check.may_take_long() || recorder.traffic().conversation_bytes() >= LONG_CONVERSATION_BYTES {
            compute_aside(|| decide(check, scope))
        } else {
            decide(check, scope)
        }
    }

    async fn judge(
        &self,
        check: &Check,
        judged: &JudgedCheck,
        looked: CheckScope,
        recorder: &mut TraceRecorder,
    ) -> CheckResult {
        let judge = match self.roles.judge(&judged.settings, &check.place) {
            Ok(judge) => judge,
            Err(error) => return CheckResult::errored(check, error.to_string()),
        };
        let turns = looked.turns_so_far(recorder);
        let Some(turn_id) = turns.last().map(|turn| turn.id.clone()) else {
            return CheckResult::new(check, check.decide(looked.scope(recorder)));
        };
        let seen = JudgeEvidence {
            test_id: &self.case.id,
            session_id: &self.session_id,
            opening: &self.case.opening.messages,
            turns,
            first_judged: looked.scope(recorder).turns().first().map_or(1, |turn| turn.number),
        };
        let roles::JudgeResponse { outcome, exchanges, usage: by } =
            judge.judge(JudgeQuestion { criterion: &judged.criterion, evidence: seen }).await;
        let suggestions = roles::suggestions(&exchanges);
        for exchange in exchanges {
            recorder.emit(exchange.into_payload(turn_id.clone()));
        }
        match outcome {
            Err(error) => {
                let opinion = JudgeOpinion { reasoning: None, score: None, suggestions, by };
                CheckResult { opinion: Some(opinion), ..CheckResult::errored(check, error.to_string()) }
            }
            Ok(Judgement { passed, score, reasoning, words }) => CheckResult {
                opinion: Some(JudgeOpinion { reasoning, score, suggestions, by }),
                ..CheckResult::from_decision(check, passed, words)
            },
        }
    }

    async fn evaluate_script(
        &self,
        check: &Check,
        scripted: &ScriptCheck,
        looked: CheckScope,
        recorder: &TraceRecorder,
    ) -> CheckResult {
        let scope = looked.scope(recorder);
        if let (CheckFunction::Program { name, number }, Some(program)) =
            (&scripted.function, &self.roles.program_checks)
        {
            return match program.evaluate(*number, scope).await {
                Err(error) => CheckResult::errored(check, error.describe(name, &check.place)),
                Ok(holds) => {
                    CheckResult::from_decision(check, holds, format!("the function returned {holds}"))
                }
            };
        }
        let function = match self.roles.function(&scripted.function.to_string(), &check.place) {
            Ok(function) => function,
            Err(error) => return CheckResult::errored(check, error.to_string()),
        };
        let scopes = looked.scopes_of_function(scripted.input_kind, recorder);
        let has_several = scopes.len() > 1;
        let (mut said, mut judged) = (Vec::new(), Ok((true, String::new())));
        for scope in scopes {
            let input = ScriptInput { test_id: &self.case.id, opening: &self.case.opening.messages, scope };
            let ScriptVerdict { judgement, console_lines } =
                run_script_check(&function, scripted, input).await;
            said.extend(console_lines);
            judged = judgement.map(|(passed, words)| {
                let words = words.unwrap_or_else(|| format!("the function returned {passed}"));
                match scope.turns().last().filter(|_| has_several) {
                    Some(turn) => (passed, format!("turn {}: {words}", turn.number)),
                    None => (passed, words),
                }
            });
            if !matches!(judged, Ok((true, _))) {
                break;
            }
        }
        let result = match judged {
            Err(error) => CheckResult::errored(check, format!("{}: {error}", scripted.function)),
            Ok((holds, actual)) => CheckResult::from_decision(check, holds, actual),
        };
        CheckResult { said, ..result }
    }

    /// Looks for checkpoints that a turn has reached. Their order in the file does not matter. Fails if a
    /// judge or a function fails. A check that cannot be decided in one turn may pass in a later one.
    pub async fn evaluate_checkpoints(
        &self,
        results: &mut [CheckpointResult],
        place: usize,
        recorder: &mut TraceRecorder,
    ) -> Result<(), AttemptFailure> {
        let checkpoints = &self.case.checkpoints;
        let mut looked_at = vec![false; results.len()];
        while let Some(next) = checkpoints::next_to_evaluate(checkpoints, results, &looked_at) {
            looked_at[next] = true;
            let decided = self.evaluate(&checkpoints[next].checks, CheckScope::Turn(place), recorder).await;
            let mut broken = decided.iter().filter(|checked| !checked.is_undecided);
            if let Some((kind, words)) = broken.find_map(CheckResult::evaluation_error) {
                let (first, rest) = words.split_once('\n').unwrap_or((words, ""));
                let message = format!("checkpoint {} failed: {first}", checkpoints[next].id);
                return Err(AttemptFailure::new(kind, message).with_detail(rest));
            }
            results[next].record_results(&decided, place + 1);
        }
        // Checkpoints that wait for others are evaluated as well, so that the report can say if their checks
        // passed.
        let scope = CheckScope::Turn(place).scope(recorder);
        for (index, checkpoint) in checkpoints.iter().enumerate() {
            if !looked_at[index] && results[index].at.is_none() {
                checkpoints::record_blocked(checkpoint, results, index, place + 1, scope);
            }
        }
        Ok(())
    }
}

/// Decides a check that needs neither a judge nor a script. The marks of secrets are not what the agent sent, so a check is decided on
/// the conversation with the secrets, as far as they are known. The report shows the recorded text.
fn decide(check: &Check, scope: TurnScope<'_>, recorder: &TraceRecorder) -> CheckResult {
    let recorded = decide_recorded(check, scope);
    let forbidden = check.forbidden_texts();
    let is_forbidding = forbidden != ForbiddenTexts::default();
    // Within a text, the mark of a number is what the check names, without the quotes that it has in the recorded JSON.
    let forbids_text = is_forbidding && !forbidden.json;
    let is_redacted = |text: &str| text.contains(REDACTION_MARK);
    if (forbids_text && !recorded.verdict.passed)
        || !(is_forbidding || (recorder.has_redacted() && check.reads_conversation()))
        || !any_text(scope, ForbiddenTexts::EVERYWHERE, &is_redacted)
    {
        return recorded;
    }
    // A secret that the check names is compared by its mark.
    let named = format!("{:?}", check.kind);
    let is_unnamed = |mark: &str| !named.contains(mark) && !named.contains(&hotseat_checks::escape(mark));
    let original = match named.contains(REDACTION_MARK)
        || any_text(scope.of_copy(recorder.original_conversation()), ForbiddenTexts::EVERYWHERE, &is_redacted)
    {
        true => Cow::Owned(reveal_secrets(scope, recorder, is_unnamed, forbids_text)),
        false => Cow::Borrowed(recorder.original_conversation()),
    };
    let original = scope.of_copy(&original);
    let revealed = decide_recorded(check, original);
    let is_unknown = |text: &str| redaction_marks(text).any(is_unnamed);
    let verdict = match (recorded.verdict.passed, revealed.verdict.passed) {
        (_, true) if any_text(original, forbidden, &is_unknown) => {
            return CheckResult::errored(
                check,
                "a secret is redacted in the text (`[redacted:NAME]`), and its value is unknown here: what is forbidden may be a part of it".to_string(),
            );
        }
        (false, true) => CheckVerdict { passed: true, comparison: None, ..recorded.verdict },
        (true, false) => {
            let actual = check.describe_secret(recorded.verdict.actual.clone(), scope, original);
            CheckVerdict { passed: false, actual, ..recorded.verdict }
        }
        (true, true) | (false, false) => recorded.verdict,
    };
    CheckResult { verdict, ..revealed }
}

/// Returns the conversation with the marks of the secrets that a check names, and with the other secrets, as far as they are known.
/// Texts that were redacted when they arrived, such as those of a saved run, contain marks.
fn reveal_secrets(
    scope: TurnScope<'_>,
    recorder: &TraceRecorder,
    is_unnamed: impl Fn(&str) -> bool,
    reads_plain_text: bool,
) -> TracedConversation {
    let redactor = recorder.redactor();
    let of_named = redactor.restricted_to(|mark| !is_unnamed(mark));
    let with_marks = |text: &str| match reads_plain_text {
        true => of_named.replace_secrets(text, |mark, _, to| to.push_str(mark)).into_owned(),
        false => of_named.text(text).into_owned(),
    };
    scope.of_copy(recorder.original_conversation()).with_texts(
        |text| redactor.reveal(&with_marks(text), &is_unnamed),
        |number| of_named.number(number).map(str::to_string),
    )
}

/// Returns true if one of the selected texts of the scope meets a condition.
fn any_text(scope: TurnScope<'_>, selected: ForbiddenTexts, is_met: &impl Fn(&str) -> bool) -> bool {
    let in_message = |turn: &ConversationTurn| turn.messages.iter().any(|message| is_met(&message.content));
    let in_call = |call: &AgentToolCall| {
        (selected.calls && any_json_text(&call.arguments, is_met))
            || call.result.as_ref().is_some_and(|result| any_json_text(&result.value, is_met))
    };
    let in_result =
        |turn: &ConversationTurn| turn.result.as_ref().is_some_and(|result| any_json_text(result, is_met));
    ((selected.messages || selected.json) && scope.turns().iter().any(in_message))
        || ((selected.calls || selected.json) && scope.calls().any(|(_, call)| in_call(call)))
        || (selected.json && scope.turns().iter().any(in_result))
        || (selected.json && scope.state().is_some_and(|state| any_json_text(state, is_met)))
}

/// Returns true if a string or a name of a member in a JSON value meets a condition.
fn any_json_text(value: &Value, is_met: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_met(text),
        Value::Array(entries) => entries.iter().any(|entry| any_json_text(entry, is_met)),
        Value::Object(members) => {
            members.iter().any(|(name, member)| is_met(name) || any_json_text(member, is_met))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the marks of redacted secrets in a text, the last of them perhaps without its end.
fn redaction_marks(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(REDACTION_MARK).map(|(start, _)| {
        let rest = &text[start..];
        rest.find(']').map_or(rest, |end| &rest[..=end])
    })
}

/// Decides a check on the recorded conversation.
fn decide_recorded(check: &Check, scope: TurnScope<'_>) -> CheckResult {
    let in_program = check.decide_in_program(scope);
    let is_plain = in_program.is_none();
    let (verdict, error) = in_program.map_or_else(
        || (check.decide(scope), check.undecided_part(scope)),
        |(verdict, error)| (verdict, error.map(|why| (check, why.to_string()))),
    );
    let is_undecided = is_plain && error.is_some();
    let is_failed_for_good = !verdict.passed && check.is_failed_for_good(scope);
    CheckResult { is_undecided, is_failed_for_good, ..CheckResult::new(check, verdict).with_error(error) }
}

impl CheckScope {
    /// Returns the turns up to the end of the scope.
    fn turns_so_far(self, recorder: &TraceRecorder) -> &[ConversationTurn] {
        let turns = &recorder.conversation().turns;
        match self {
            CheckScope::Turn(place) => &turns[..=place],
            CheckScope::Whole { .. } => turns,
            CheckScope::Turns { end, .. } | CheckScope::Condition { end, .. } => &turns[..end],
        }
    }

    /// Returns the scopes for which a function is called. A function of one turn must hold for each turn; a condition is about
    /// the last one.
    fn scopes_of_function(self, input_kind: ScriptInputKind, recorder: &TraceRecorder) -> Vec<TurnScope<'_>> {
        let turns = match self {
            CheckScope::Whole { .. } => 0..recorder.conversation().turns.len(),
            CheckScope::Turns { start, end } => start..end,
            CheckScope::Turn(_) | CheckScope::Condition { .. } => 0..0,
        };
        if input_kind != ScriptInputKind::Turn || turns.is_empty() {
            return vec![self.scope(recorder)];
        }
        turns.map(|place| CheckScope::Turn(place).scope(recorder)).collect()
    }

    pub(super) fn scope<'a>(self, recorder: &'a TraceRecorder) -> TurnScope<'a> {
        let conversation = recorder.conversation();
        match self {
            CheckScope::Turn(place) => conversation.turn_scope(place).unwrap_or_else(|| conversation.scope()),
            CheckScope::Whole { .. } => conversation.scope(),
            CheckScope::Turns { start, end } => {
                conversation.turns_scope(start..end).unwrap_or_else(|| conversation.scope())
            }
            CheckScope::Condition { start, end } => {
                CheckScope::Turns { start, end }.scope(recorder).for_condition()
            }
        }
    }
}

/// Returns the position of a check, and the position of the call that made it.
fn describe_place(check: &CheckInfo) -> String {
    match &check.call_site {
        Some(called_at) => format!("{} (called at {called_at})", check.place),
        None => check.place.to_string(),
    }
}

/// Returns the failure caused by failed or errored hard checks; `None` if there are none.
pub(super) fn failure_from_checks(checks: &[CheckResult]) -> Option<AttemptFailure> {
    let all: Vec<&CheckResult> = checks.iter().filter(|checked| checked.fails()).collect();
    // A failed check is about the agent; an errored one is not, so failed checks take precedence.
    let (undecided, failed): (Vec<&CheckResult>, Vec<&CheckResult>) =
        all.iter().partition(|checked| checked.error.is_some());
    let first = failed.first().or(undecided.first())?;
    if let Some((kind, words)) = first.evaluation_error() {
        let detail = undecided
            .iter()
            .map(|checked| format!("{}: {}", describe_place(&checked.check), checked.verdict.expected));
        let detail = detail.collect::<Vec<_>>().join("\n");
        let failure = role_failure(kind, words);
        // The script error comes before the positions of the checks.
        let detail = failure.detail.iter().cloned().chain([detail]).collect::<Vec<_>>().join("\n");
        return Some(failure.with_detail(detail));
    }
    let mut message = match (failed.len(), &first.check.message) {
        (1, Some(own)) => own.clone(),
        (1, None) => first.verdict.describe_in_one_line(false),
        (n, Some(own)) => format!("{n} checks failed; first: {own}"),
        (n, None) => format!("{n} checks failed; first: {}", first.verdict.describe_in_one_line(false)),
    };
    if !undecided.is_empty() {
        message.push_str(&format!("; {} errored", undecided.len()));
    }
    let detail = all.iter().map(|checked| {
        let words = checked.verdict.describe(checked.error.is_some());
        format!("{}: {words}", describe_place(&checked.check))
    });
    Some(
        AttemptFailure::new(FailureKind::Assertion, message)
            .with_detail(detail.collect::<Vec<_>>().join("\n")),
    )
}

impl ConversationResult {
    /// Masks secrets in the sources of which reports show lines. Locations stay the same.
    fn mask_excerpts(&mut self, redactor: &SecretRedactor) {
        let failed = self.checks.iter_mut().filter(|checked| !checked.verdict.passed);
        let failed =
            failed.flat_map(|checked| [Some(&mut checked.check.place), checked.check.call_site.as_mut()]);
        let missing = self.checkpoints.iter_mut().filter(|reached| reached.is_missing());
        let missing = missing.map(|reached| Some(&mut reached.checkpoint.place));
        let mut masked: Vec<(Arc<SourceText>, Arc<SourceText>)> = Vec::new();
        for place in failed.chain(missing).flatten() {
            let known = masked.iter().find(|(source, _)| Arc::ptr_eq(source, &place.source));
            let source = known.map_or_else(
                || place.source.map_text(|text| redactor.mask(text)),
                |(_, masked)| masked.clone(),
            );
            masked.push((std::mem::replace(&mut place.source, source.clone()), source));
        }
    }

    /// Redacts the texts of the test itself; recorded events are already redacted.
    pub(super) fn redact(&mut self, recorder: &TraceRecorder) {
        let redactor = recorder.redactor();
        for checked in &mut self.checks {
            checked.verdict.expected = redactor.text(&checked.verdict.expected).into_owned();
            let check = &mut checked.check;
            check.message = check.message.take().map(|message| redactor.text(&message).into_owned());
            check.written = check.written.take().map(|written| Arc::new(redactor.json((*written).clone())));
            checked.verdict.actual = redactor.message(&checked.verdict.actual).into_owned();
            if let Some(comparison) = &mut checked.verdict.comparison {
                comparison.map_texts(|text| redactor.text(text).into_owned());
            }
            checked.said.iter_mut().for_each(|line| *line = redactor.message(line).into_owned());
            checked.error = checked.error.take().map(|words| redactor.message(&words).into_owned());
            check.criterion = check.criterion.take().map(|words| redactor.message(&words).into());
            if let Some(JudgeOpinion { reasoning, suggestions, .. }) = &mut checked.opinion {
                for suggestion in suggestions {
                    *suggestion = redactor.message(suggestion).into_owned();
                }
                *reasoning = reasoning.take().map(|words| redactor.message(&words).into_owned());
            }
        }
        self.logs.iter_mut().for_each(|line| *line = redactor.message(line).into_owned());
        for reached in &mut self.checkpoints {
            reached.missing = reached.missing.take().map(|words| redactor.message(&words).into_owned());
            let checkpoint = &mut reached.checkpoint;
            checkpoint.id = redactor.text(&checkpoint.id).into_owned();
            checkpoint.description =
                checkpoint.description.take().map(|words| redactor.text(&words).into_owned());
        }
        self.mask_excerpts(redactor);
        self.verdict.failure = self.verdict.failure.take().map(|failure| redactor.failure(failure));
        self.verdict.skip_reason =
            self.verdict.skip_reason.take().map(|reason| redactor.message(&reason).into_owned());
    }
}
