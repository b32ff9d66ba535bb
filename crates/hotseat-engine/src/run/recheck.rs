//! Re-evaluation of saved conversations with the current assertions of their cases. No agent is contacted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_trace::{CallVisibility, EventRecord, FailureKind, Verdict, VerdictStatus};
use serde_json::{Map, Value};

use super::attempt_result::Attempt;
use super::case_roles::{CaseScope, open_roles};
use super::context::{EventRetention, RunContext};
use super::plan::SelectedCase;
use super::recheck_source::RecheckSource;
use super::results::{CaseDriver, CaseInfo, CaseRef};
use crate::cases::{McpAddresses, TestCase, VariableScope};
use crate::roles::RecordedAnswers;
use crate::session::test_error;
use crate::session::{
    RERUN_HINT, RecordedConversation, RecordedOutcome, SessionRoles, SessionTimeouts, reevaluate,
    rerun_required,
};
use hotseat_targets::recorder::{SecretRedactor, TraceRecorder, redacted_names};

impl RecheckSource {
    /// Adds the number of saved attempts to a case.
    pub(super) fn attach_saved(&self, selected: SelectedCase) -> SelectedCase {
        let known = self.conversations.find_case(&selected.suite_name, &selected.case.id);
        let (kept, agent) = known.unwrap_or_default();
        let case_ref = Arc::new(CaseRef { agent, ..(*selected.case_ref).clone() });
        SelectedCase { saved_attempts: Some(kept), case_ref, ..selected }
    }
}

/// Re-evaluates attempt `number`, from 1.
pub(super) async fn recheck_attempt(
    selected: SelectedCase,
    number: usize,
    outside: &Arc<RunContext>,
    recheck: &RecheckSource,
) -> Attempt {
    let mut attempt = Attempt::not_started(selected.case_ref.clone(), number, Verdict::passed());
    if let Some(reason) = &selected.case.skip {
        attempt.result.verdict = Verdict::skipped(reason.clone());
        return attempt;
    }
    let suite = &selected.suite_name;
    let kept = match recheck.conversations.load_attempt(suite, &selected.case.id, number) {
        Ok(kept) => kept,
        Err(words) => {
            return attempt.failed(rerun_required(words, ""));
        }
    };
    (attempt.result.started_at, attempt.result.duration) = (kept.started_at, kept.duration);
    attempt.result.warnings.clone_from(&kept.warnings);
    attempt.result.hook_variables.clone_from(&kept.result.hook_variables);
    if selected.case.program.is_none() {
        // Without a body, only hooks have written to the console.
        attempt.result.logs.clone_from(&kept.logs);
    }
    attempt.result.agent_diagnostics.clone_from(&kept.agent_diagnostics);
    let (before, now) = (&kept.case_ref.case, &selected.case_ref.case);
    let judged = if has_other_judges(before, now) { &[] } else { &*kept.events };
    let prepared =
        prepare_recheck((&selected, number), &kept.result.hook_variables, judged, outside, recheck);
    // Saved cases are masked.
    let redactor =
        prepared.as_ref().map_or_else(|_| SecretRedactor::default(), |ready| ready.redactor.clone());
    let changed = changed_input(&before.masked([&redactor]), &now.masked([&redactor]));
    let run = recheck.conversations.run_id();
    if !changed.is_empty() {
        let message = format!("the input of the case has changed since run {run}: {}", changed.join(", "));
        return attempt.failed(rerun_required(message, ""));
    }
    if before.skip.is_some() {
        attempt.result.verdict =
            Verdict::failed(rerun_required(format!("the case was skipped in run {run}"), ""));
        return attempt;
    }
    if never_started(&selected.case, &kept) {
        (attempt.result.verdict, attempt.result.limit) = (kept.result.verdict, kept.result.limit);
        return attempt;
    }
    let agent = selected.agent.as_ref();
    let came_to = RecordedOutcome {
        verdict: kept.result.verdict,
        limit: kept.result.limit,
        calls: match agent {
            _ if kept.result.hides_calls => CallVisibility::Hidden,
            Some(agent) => agent.call_visibility(&selected.case),
            None => CallVisibility::Protocol,
        },
        is_untimed: kept.result.lacks_timestamps,
    };
    match prepared {
        Err(found) => attempt.result.verdict = Verdict::failed(test_error(found)),
        Ok(PreparedRecheck { case, mut redactor, timeouts, partners }) => {
            redactor.set_recorded(kept.redactor.recorded());
            attempt.result.warnings.extend(unknown_secret_warning(&kept.events, &redactor));
            attempt.result.warnings.extend(changed_judging(&kept.case_ref.case, now, run));
            let recorder = TraceRecorder::new(redactor, outside.retention != EventRetention::Nothing);
            let mut conversation = RecordedConversation::new(kept.events, came_to);
            attempt.apply_result(
                reevaluate(&case, selected.body.as_deref(), &mut conversation, timeouts, partners, recorder)
                    .await,
            );
            attempt.append_agent_diagnostics();
        }
    }
    attempt
}

/// Warnings about script functions and judges that have changed since the run.
fn changed_judging(before: &CaseInfo, now: &CaseInfo, run: &str) -> impl Iterator<Item = String> {
    let functions = differ(&before.function_digest, &now.function_digest)
        .then(|| format!("script functions that judge this case have changed since run {run}"));
    let judges = has_other_judges(before, now).then(|| {
        format!(
            "settings of judges have changed since run {run}: their saved verdicts are not reused; `--judge` asks them again"
        )
    });
    functions.into_iter().chain(judges)
}

/// True if the settings of the judges of a case have changed. Runs of early versions do not contain them.
fn has_other_judges(before: &CaseInfo, now: &CaseInfo) -> bool {
    differ(&before.judge_digest, &now.judge_digest)
}

fn differ(before: &Option<String>, now: &Option<String>) -> bool {
    before.is_some() && now.is_some() && before != now
}

/// True if the conversation failed before its first turn for a reason unrelated to assertions.
fn never_started(case: &TestCase, kept: &Attempt) -> bool {
    let kind = kept.verdict.failure.as_ref().map(|failure| failure.kind);
    kept.events.is_empty()
        && match kind {
            Some(FailureKind::HookError | FailureKind::TestError) => true,
            // These failures end a session that was already open.
            Some(FailureKind::SimulatorError | FailureKind::Timeout) => false,
            // A program can evaluate its checks again without a conversation.
            _ => case.program.is_none() && kept.verdict.status != VerdictStatus::Passed,
        }
}

/// A case that is ready to be re-evaluated.
struct PreparedRecheck {
    case: Arc<TestCase>,
    redactor: SecretRedactor,
    timeouts: SessionTimeouts,
    partners: SessionRoles,
}

/// Resolves the variables of a case, with hook variables from the saved attempt.
fn prepare_recheck(
    (selected, number): (&SelectedCase, usize),
    hook_variables: &BTreeMap<String, Value>,
    judged: &[EventRecord],
    outside: &Arc<RunContext>,
    recheck: &RecheckSource,
) -> Result<PreparedRecheck, hotseat_document::Diagnostics> {
    let (case, agent) = (&selected.case, selected.agent.as_ref());
    // An agent that can no longer be resolved has no secrets to redact.
    let bound = agent.and_then(|agent| outside.bind_agent(agent, hook_variables, McpAddresses::Example).ok());
    let of_target = bound.map_or_else(Vec::new, |(target, _)| target.secrets);
    let redactor = outside.redactor(&of_target, hook_variables);
    let answers = Arc::new(RecordedAnswers::from_events(judged, redactor.clone(), recheck.asks_judges));
    let named = CaseScope { case, suite: &selected.suite, agent, attempt: number };
    let (partners, _) = open_roles(outside, named, hook_variables, Some(answers), None)?;
    let case = case.bind(VariableScope { redactor: &redactor, ..outside.case_variables(hook_variables) })?;
    let redactor = outside.redactor(&[of_target, case.server_secrets()].concat(), hook_variables);
    let hears = agent.is_some_and(|agent| agent.supports("metadata"));
    let case =
        outside.overrides.apply_to(outside.project.call_settings().apply_to_case(&case, number, hears));
    let turn = agent.map_or(std::time::Duration::MAX, |agent| agent.timeouts.turn);
    let timeouts = SessionTimeouts { turn, idle: turn, case: outside.case_timeout };
    Ok(PreparedRecheck { case, redactor, timeouts, partners })
}

/// Keys of cases that do not change the input of a conversation: assertions, flow control, and settings of
/// reports and runs.
const NON_INPUT_KEYS: [&str; 32] = [
    "id",
    "name",
    "version",
    "description",
    "skip",
    "tags",
    "timeout",
    "timeout_ms",
    "retries",
    "reliability",
    "after",
    "assert",
    "assertions",
    "turn_assert",
    "final_assertions",
    "expected",
    "evaluate",
    "checkpoints",
    "topics",
    "graph",
    "classify_topics",
    "decide_topics",
    "criteria",
    "judge",
    "max_turns",
    "awaiting",
    "on_missing_input",
    "on_complete",
    "continue_on_failure",
    "scenarios",
    "expect_error",
    "suite",
];

/// Lists the input keys of a case that have changed.
fn changed_input(before: &CaseInfo, now: &CaseInfo) -> Vec<String> {
    let ((before, before_turns), (now, now_turns)) = (case_input(before), case_input(now));
    let mut changed = differing_keys(&before, &now);
    let turns = before_turns.len().max(now_turns.len());
    for place in 0..turns {
        let number = place + 1;
        match (before_turns.get(place), now_turns.get(place)) {
            (Some(before), Some(now)) => {
                changed.extend(
                    differing_keys(before, now).into_iter().map(|key| format!("{key} of turn {number}")),
                );
            }
            (None, _) => changed.push(format!("turn {number} is new")),
            (_, None) => changed.push(format!("turn {number} was removed")),
        }
    }
    changed
}

/// Returns the input of a case without its turns, and its turns.
fn case_input(case: &CaseInfo) -> (Map<String, Value>, Vec<Map<String, Value>>) {
    let Value::Object(mut written) = case.to_filled_json() else {
        // Masked numbers may be no JSON.
        let text = (case.driven == CaseDriver::Written).then(|| case.source_text.source.text.clone().into());
        return (text.map(|text| ("text".to_string(), text)).into_iter().collect(), Vec::new());
    };
    let turns = match written.remove("turns") {
        Some(Value::Array(turns)) => turns,
        Some(one) => vec![one],
        None => Vec::new(),
    };
    let turns = turns.into_iter().map(|turn| match turn {
        Value::Object(members) => {
            members.into_iter().map(|(key, value)| (canonical_key(key), value)).collect()
        }
        text => Map::from_iter([("user".to_string(), text)]),
    });
    (input_keys_only(written), turns.map(input_keys_only).collect())
}

fn canonical_key(key: String) -> String {
    if key == "input" { "user".to_string() } else { key }
}

fn input_keys_only(written: Map<String, Value>) -> Map<String, Value> {
    written.into_iter().filter(|(key, _)| !NON_INPUT_KEYS.contains(&&**key)).collect()
}

fn differing_keys(before: &Map<String, Value>, now: &Map<String, Value>) -> Vec<String> {
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let differing = keys.into_iter().filter(|key| before.get(*key) != now.get(*key));
    differing.map(|key| format!("`{key}`")).collect()
}

/// Warning about redaction marks whose secret is no longer known, or has another value now. Checks see the mark
/// instead of the value, so their results may differ.
fn unknown_secret_warning(events: &[EventRecord], redactor: &SecretRedactor) -> Option<String> {
    let describe = |name: &str| match redactor.has_secret(name) {
        false => Some(name.to_string()),
        true => redactor.has_changed(name).then(|| format!("{name} has another value now")),
    };
    let mut names = BTreeSet::new();
    for record in events {
        let Ok(text) = serde_json::to_string(record) else { continue };
        names.extend(redacted_names(&text).filter_map(describe));
    }
    let names: Vec<String> = names.into_iter().collect();
    (!names.is_empty()).then(|| {
        format!(
            "this conversation contains a redacted secret that is no longer known ({}): checks see `[redacted:…]` instead; {RERUN_HINT}",
            names.join(", ")
        )
    })
}
