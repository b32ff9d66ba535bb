//! One attempt at one case: hooks, then the conversation, then the verdict.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{Conversation, Failure, FailureKind, Millis, Record, Verdict};
use serde_json::Value;

use super::cancellation::Cancellation;
use super::hooks::Before;
use super::outside::{Keep, Outside, on_behalf_of};
use super::partners::{Naming, partners};
use super::plan::Selected;
use super::recheck;
use super::told::{Finding, ReachedFacts, Told};
use crate::cases::{Case, Variables};
use crate::config::BoundTarget;
use crate::session::{
    Held, Partners, Recorder, Redactor, Timeouts, TrafficMeter, TurnScript, hold, run_hook, wall_millis,
};
use hotseat_document::Diagnostics;

/// An attempt and what it came to.
#[derive(Debug)]
pub struct Attempt {
    /// Which case.
    pub selected: Arc<Told>,
    /// Which of the attempts at it, from 1.
    pub number: usize,
    /// What it came to.
    pub verdict: Verdict,
    /// Every check that was decided, in order.
    pub checks: Vec<Finding>,
    /// How far the checkpoints were reached.
    pub checkpoints: Vec<ReachedFacts>,
    /// The time limit that was exceeded, if the verdict is about one.
    pub limit: Option<Duration>,
    /// What was said and done.
    pub conversation: Conversation,
    /// The trace, where it was asked for.
    pub events: Vec<Record>,
    /// What went wrong beside it and changes no verdict: hooks that ran afterwards.
    pub warnings: Vec<String>,
    /// What functions of scripts that ran around it said to `console`.
    pub logs: Vec<String>,
    /// When it began.
    pub started_at: Millis,
    /// How long it took, hooks included.
    pub duration: Duration,
    /// What hooks gave, without secrets.
    pub given: BTreeMap<String, Value>,
    /// Whether times of its conversation are not known: it was served from a recording without them.
    pub timeless: bool,
    /// What the agent has left that helps to understand a failure, without secrets.
    pub last_words: Option<String>,
}

/// Makes an attempt; `number` says which one, from 1. When the run is cancelled its conversation ends at once, and the hook
/// behind it has a little time.
pub(super) async fn attempt(
    selected: Selected,
    number: usize,
    outside: &Arc<Outside>,
    cancellation: &Cancellation,
) -> Attempt {
    let attempt = Attempt::not_made(selected.told.clone(), number, cancelled());
    if let Some(kept) = &outside.recheck {
        let decided = cancellation.or_cancelled(recheck::attempt(selected, number, outside, kept)).await;
        return decided.unwrap_or(attempt);
    }
    if let Some(reason) = &selected.case.skip {
        return Attempt { verdict: Verdict::skipped(reason.clone()), ..attempt };
    }
    let mut attempt = attempt;
    let started = tokio::time::Instant::now();
    let before = match cancellation.or_cancelled(outside.before(&selected)).await {
        Some(Ok(before)) => before,
        Some(Err(failure)) => {
            let verdict = Verdict::failed(failure);
            return Attempt { verdict, duration: started.elapsed(), ..attempt };
        }
        None => return Attempt { duration: started.elapsed(), ..attempt },
    };
    attempt.logs.extend(before.said.iter().cloned());
    // Whatever was begun of the verdict goes with a conversation that is cancelled.
    if cancellation.or_cancelled(hold_case(&mut attempt, &selected, &before, outside)).await.is_none() {
        attempt.verdict = cancelled();
    }
    attempt.duration = started.elapsed();
    let after = outside.after(&attempt, &selected, &before);
    match cancellation.clean_up(after).await {
        Ok(Ok(said)) => attempt.logs.extend(said),
        Ok(Err(words)) | Err(words) => attempt.warnings.push(format!("after script failed: {words}")),
    }
    attempt
}

/// The verdict of an attempt that did not come to its end.
fn cancelled() -> Verdict {
    Verdict::failed(Failure::new(FailureKind::Cancelled, "cancelled before it ended"))
}

/// Holds the conversation of an attempt.
async fn hold_case(attempt: &mut Attempt, selected: &Selected, before: &Before, outside: &Arc<Outside>) {
    match prepare(selected, before, outside).await {
        Err(failure) => attempt.verdict = Verdict::failed(failure),
        Ok(Prepared { case, target, redactor, timeouts, partners, given }) => {
            let suite = outside.project.suite_name(&selected.suite.path);
            let target = target.for_case(&case.target).for_attempt(attempt.number);
            let target = target.named(suite, &selected.case.id);
            let speaks = outside.project.calling().connector.clone().or_else(|| target.shown().connector);
            let script = TurnScript::new(target.tools);
            let mut agent = target.target.open(&outside.means);
            let prices = outside.prices.speaking_with(speaks);
            let traffic = TrafficMeter::new(outside.traffic.clone());
            let recorder = Recorder::new(redactor.clone(), outside.keep != Keep::Nothing);
            let recorder = recorder.with_prices(prices).with_traffic(traffic);
            let held = hold(&case, &mut *agent, script, timeouts, partners, recorder).await;
            agent.close().await;
            attempt.take(held);
            attempt.given = given;
            attempt.last_words = agent.last_words().map(|words| redactor.text(&words).into_owned());
            attempt.add_last_words();
        }
    }
}

impl Attempt {
    /// An attempt that was never made.
    pub(super) fn not_made(selected: Arc<Told>, number: usize, verdict: Verdict) -> Self {
        Attempt {
            selected,
            number,
            verdict,
            checks: Vec::new(),
            checkpoints: Vec::new(),
            limit: None,
            conversation: Conversation::default(),
            events: Vec::new(),
            warnings: Vec::new(),
            logs: Vec::new(),
            started_at: wall_millis(),
            duration: Duration::ZERO,
            given: BTreeMap::new(),
            timeless: false,
            last_words: None,
        }
    }

    /// What an agent has left helps to understand why its conversation failed, however it failed. It is said once.
    pub(super) fn add_last_words(&mut self) {
        let (Some(failure), Some(words)) = (&mut self.verdict.failure, &self.last_words) else { return };
        if failure.detail.as_ref().is_some_and(|detail| detail.ends_with(words)) {
            return;
        }
        let detail = failure.detail.take().map_or_else(String::new, |detail| detail + "\n");
        failure.detail = Some(detail + words);
    }

    /// What was held comes to this.
    pub(super) fn take(&mut self, held: Held) {
        self.verdict = held.verdict;
        self.checks = held.checks.into_iter().map(Finding::of).collect();
        self.checkpoints = held.checkpoints.into_iter().map(ReachedFacts::of).collect();
        self.limit = held.limit;
        self.logs.extend(held.logs);
        self.conversation = held.conversation;
        self.events = held.events;
        self.timeless = held.timeless;
    }
}

/// What keeps a conversation from beginning.
pub(super) fn undefined(found: Diagnostics) -> Failure {
    let mut words = found.into_iter().map(|diagnostic| match diagnostic.place {
        Some(place) => format!("{} ({place})", diagnostic.message),
        None => diagnostic.message,
    });
    let message = words.next().unwrap_or_default();
    Failure::new(FailureKind::TestError, message).with_detail(words.collect::<Vec<_>>().join("\n"))
}

/// A case that is ready to be held.
struct Prepared {
    case: Arc<Case>,
    target: BoundTarget,
    redactor: Redactor,
    timeouts: Timeouts,
    partners: Partners,
    given: BTreeMap<String, Value>,
}

/// Runs the hooks of a case and fills in their variables.
async fn prepare(selected: &Selected, before: &Before, outside: &Arc<Outside>) -> Result<Prepared, Failure> {
    let case = &selected.case;
    let Some(agent) = &selected.agent else {
        let message = outside.project.no_target().message;
        return Err(Failure::new(FailureKind::TestError, message));
    };
    let bound = outside.bound(agent);
    let mut given = before.given.clone();
    let folder = match &outside.project.file {
        Some(_) => &outside.project.root,
        None => &selected.suite.folder,
    };
    let identity = outside.project.calling().identity_before_hooks(case);
    for index in 0..case.hooks {
        let variables = outside.variables(&given);
        let mut hook = case.hook(index, variables).map_err(undefined)?;
        on_behalf_of(&identity, &mut hook);
        let (environment, servers) = (outside.project.environment(), outside.means.servers);
        let run = run_hook(&hook, folder, environment, servers, None).await;
        let new = run.map_err(|failure| {
            let of_target = bound.map_or(&[][..], |(target, _)| &target.secrets);
            outside.redactor(of_target, &given).failure(failure)
        })?;
        given.extend(new);
    }
    let named = Naming { case, suite: &selected.suite, agent: Some(agent) };
    let (partners, of_helpers) = partners(outside, named, &given, None).map_err(undefined)?;
    let (target, redactor) = match bound {
        // What hooks give and helpers use may hold secrets too.
        Some((target, _)) if !given.is_empty() || !of_helpers.is_empty() => {
            let secrets = [target.secrets.as_slice(), &of_helpers].concat();
            (target.clone(), outside.redactor(&secrets, &given))
        }
        Some((target, redactor)) => (target.clone(), redactor.clone()),
        None => outside.bind(agent, &given).map_err(undefined)?,
    };
    let variables = Variables { redactor: &redactor, ..outside.variables(&given) };
    let case = case.bind(variables).map_err(undefined)?;
    let folders = [selected.suite.folder.as_path(), outside.project.root.as_path(), Path::new("")];
    let case =
        case.with_attachments(&folders).map_err(|words| Failure::new(FailureKind::TestError, words))?;
    let (case, target) = outside.project.address(agent, &case, target).map_err(undefined)?;
    let timeouts = Timeouts { case: outside.case_timeout, ..agent.timeouts };
    let case = outside.overrides.over(case);
    let given = given.into_iter().map(|(name, value)| (name, redactor.json(value))).collect();
    Ok(Prepared { case, target, redactor, timeouts, partners, given })
}
