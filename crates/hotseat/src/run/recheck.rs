//! Conversations that are kept are decided again, by what their cases assert now. Nobody is contacted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_trace::{FailureKind, Record, Status, Verdict};
use serde_json::{Map, Value};

use super::attempt::{Attempt, undefined};
use super::outside::{Keep, Outside};
use super::partners::{Naming, partners};
use super::plan::Selected;
use super::told::{CaseFacts, Told};
use crate::cases::{Case, Variables};
use crate::config::Project;
use crate::roles::Answers;
use crate::session::{
    CameTo, HOLD_ANEW, Kept, Partners, Recorder, Redactor, Timeouts, decide_again, not_kept,
};

/// The conversations of a run that are kept.
pub trait Conversations: Send + Sync {
    /// The run that held them, as far as people need its id.
    fn run(&self) -> &str;

    /// How many attempts are kept of a case, and which of the agents of the run it tested; by the name of its suite within
    /// the project, and by its id.
    fn known(&self, suite: &str, id: &str) -> Option<(usize, Option<usize>)>;

    /// One of these attempts, from 1.
    ///
    /// # Errors
    /// Why there is none, in words.
    fn attempt(&self, suite: &str, id: &str, number: usize) -> Result<Attempt, String>;
}

/// How conversations are decided again.
#[derive(Clone)]
pub struct Recheck {
    /// The conversations.
    pub conversations: Arc<dyn Conversations>,
    /// Whether judges are asked what they were not asked before.
    pub asks_judges: bool,
}

impl Recheck {
    /// A case with what is kept of it.
    pub(super) fn select(&self, selected: Selected, project: &Project) -> Selected {
        let known = self.conversations.known(&project.suite_name(&selected.suite.path), &selected.case.id);
        let (kept, agent) = known.unwrap_or_default();
        let told = Arc::new(Told { agent, ..(*selected.told).clone() });
        Selected { kept: Some(kept), told, ..selected }
    }
}

/// Decides an attempt again; `number` says which one, from 1.
pub(super) async fn attempt(
    selected: Selected,
    number: usize,
    outside: &Arc<Outside>,
    recheck: &Recheck,
) -> Attempt {
    let mut attempt = Attempt::not_made(selected.told.clone(), number, Verdict::passed());
    if let Some(reason) = &selected.case.skip {
        attempt.verdict = Verdict::skipped(reason.clone());
        return attempt;
    }
    let suite = outside.project.suite_name(&selected.suite.path);
    let kept = match recheck.conversations.attempt(&suite, &selected.case.id, number) {
        Ok(kept) => kept,
        Err(words) => {
            attempt.verdict = Verdict::failed(not_kept(words, ""));
            return attempt;
        }
    };
    (attempt.started_at, attempt.duration) = (kept.started_at, kept.duration);
    attempt.warnings.clone_from(&kept.warnings);
    attempt.given.clone_from(&kept.given);
    if selected.case.body.is_none() {
        // Nobody but hooks has said something.
        attempt.logs.clone_from(&kept.logs);
    }
    attempt.last_words.clone_from(&kept.last_words);
    let (before, now) = (&kept.selected.case, &selected.told.case);
    let changed = changed(before, now);
    let run = recheck.conversations.run();
    if !changed.is_empty() {
        let message = format!("the case asks something else than in run {run}: {}", changed.join(", "));
        attempt.verdict = Verdict::failed(not_kept(message, ""));
        return attempt;
    }
    if before.skip.is_some() {
        attempt.verdict = Verdict::failed(not_kept(format!("the case was left out of run {run}"), ""));
        return attempt;
    }
    if never_began(&selected.case, &kept) {
        (attempt.verdict, attempt.limit) = (kept.verdict, kept.limit);
        return attempt;
    }
    let came_to = CameTo { verdict: kept.verdict, limit: kept.limit, timeless: kept.timeless };
    match prepare(&selected, &kept.given, &kept.events, outside, recheck) {
        Err(found) => attempt.verdict = Verdict::failed(undefined(found)),
        Ok(Prepared { case, redactor, timeouts, partners }) => {
            attempt.warnings.extend(marks_of_no_secret(&kept.events, &redactor));
            let recorder = Recorder::new(redactor, outside.keep != Keep::Nothing);
            let mut conversation = Kept::of(kept.events, came_to);
            attempt.take(decide_again(&case, &mut conversation, timeouts, partners, recorder).await);
            attempt.add_last_words();
        }
    }
    attempt
}

/// Whether a conversation never came to its first turn, for a reason that is none of what is asserted.
fn never_began(case: &Case, kept: &Attempt) -> bool {
    let kind = kept.verdict.failure.as_ref().map(|failure| failure.kind);
    kept.events.is_empty()
        && match kind {
            Some(FailureKind::HookError | FailureKind::TestError) => true,
            // These end a session that was open.
            Some(FailureKind::SimulatorError | FailureKind::Timeout) => false,
            // What a program decides without a conversation it can decide again.
            _ => case.body.is_none() && kept.verdict.status != Status::Passed,
        }
}

/// A case that is ready to be decided again.
struct Prepared {
    case: Arc<Case>,
    redactor: Redactor,
    timeouts: Timeouts,
    partners: Partners,
}

/// Fills in the variables of a case: those of hooks with what these gave then.
fn prepare(
    selected: &Selected,
    given: &BTreeMap<String, Value>,
    events: &[Record],
    outside: &Arc<Outside>,
    recheck: &Recheck,
) -> Result<Prepared, hotseat_document::Diagnostics> {
    let (case, agent) = (&selected.case, selected.agent.as_ref());
    // An agent that cannot be reached any more has no secrets that could be told.
    let bound = agent.and_then(|agent| outside.bind(agent, given).ok());
    let redactor = bound.map_or_else(|| outside.redactor(&[], given), |(_, redactor)| redactor);
    let answers = Arc::new(Answers::of(events, redactor.clone(), recheck.asks_judges));
    let named = Naming { case, suite: &selected.suite, agent };
    let (partners, _) = partners(outside, named, given, Some(answers))?;
    let case = case.bind(Variables { redactor: &redactor, ..outside.variables(given) })?;
    let hears = agent.is_some_and(|agent| agent.hears("metadata"));
    let case = outside.overrides.over(outside.project.calling().addressed(&case, hears));
    let turn = agent.map_or(std::time::Duration::MAX, |agent| agent.timeouts.turn);
    let timeouts = Timeouts { turn, idle: turn, case: outside.case_timeout };
    Ok(Prepared { case, redactor, timeouts, partners })
}

/// Keys of cases that are no input: they assert something, say what becomes of the conversation as it goes on, or are for
/// reports and runs alone.
const NO_INPUT: [&str; 32] = [
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

/// What of the input of a case is not what it was, by the keys.
fn changed(before: &CaseFacts, now: &CaseFacts) -> Vec<String> {
    let ((before, before_turns), (now, now_turns)) = (input(before), input(now));
    let mut changed = differing(&before, &now);
    let turns = before_turns.len().max(now_turns.len());
    for place in 0..turns {
        let number = place + 1;
        match (before_turns.get(place), now_turns.get(place)) {
            (Some(before), Some(now)) => {
                changed
                    .extend(differing(before, now).into_iter().map(|key| format!("{key} of turn {number}")));
            }
            (None, _) => changed.push(format!("turn {number} is new")),
            (_, None) => changed.push(format!("turn {number} is gone")),
        }
    }
    changed
}

/// The input of a case, without and with its turns.
fn input(case: &CaseFacts) -> (Map<String, Value>, Vec<Map<String, Value>>) {
    let Value::Object(mut written) = case.filled() else { return Default::default() };
    let turns = match written.remove("turns") {
        Some(Value::Array(turns)) => turns,
        Some(one) => vec![one],
        None => Vec::new(),
    };
    let turns = turns.into_iter().map(|turn| match turn {
        Value::Object(members) => {
            members.into_iter().map(|(key, value)| (one_spelling(key), value)).collect()
        }
        text => Map::from_iter([("user".to_string(), text)]),
    });
    (without_rest(written), turns.map(without_rest).collect())
}

fn one_spelling(key: String) -> String {
    if key == "input" { "user".to_string() } else { key }
}

fn without_rest(written: Map<String, Value>) -> Map<String, Value> {
    written.into_iter().filter(|(key, _)| !NO_INPUT.contains(&&**key)).collect()
}

fn differing(before: &Map<String, Value>, now: &Map<String, Value>) -> Vec<String> {
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let differing = keys.into_iter().filter(|key| before.get(*key) != now.get(*key));
    differing.map(|key| format!("`{key}`")).collect()
}

/// What stands for a secret in a conversation, and is none any more: checks see the mark, and may well hold or not hold
/// for that reason alone.
fn marks_of_no_secret(events: &[Record], redactor: &Redactor) -> Option<String> {
    let mut names = BTreeSet::new();
    for record in events {
        let Ok(text) = serde_json::to_string(record) else { continue };
        let marks = text.split("[redacted:").skip(1).filter_map(|rest| rest.split_once(']'));
        names.extend(marks.map(|(name, _)| name.to_string()).filter(|name| !redactor.knows(name)));
    }
    let names: Vec<String> = names.into_iter().collect();
    (!names.is_empty()).then(|| {
        format!(
            "a secret was taken out of this conversation that is not known now ({}): checks see `[redacted:…]` in its place; {HOLD_ANEW}",
            names.join(", ")
        )
    })
}
