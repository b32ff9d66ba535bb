//! One attempt at one case: hooks, then the conversation, then the verdict.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{Conversation, Event, Failure, FailureKind, Millis, Verdict};
use serde_json::Value;

use super::plan::Selected;
use crate::adapters::ag_ui;
use crate::adapters::http::{Http, without_credentials};
use crate::cases::{Case, Variables};
use crate::config::{BoundTarget, Project, is_secret, named_secrets, secret_text};
use crate::session::{
    Checked, Reached, Recorder, Redactor, Timeouts, TurnScript, hold, run_hook, wall_millis,
};
use hotseat_document::Diagnostics;

/// Everything outside a case that an attempt needs.
#[derive(Debug)]
pub struct Outside {
    /// The project.
    pub project: Arc<Project>,
    /// The clients of HTTP.
    pub http: Arc<Http>,
    /// How long agents may take.
    pub timeouts: Timeouts,
    /// Whether attempts keep their events.
    pub keep_events: bool,
    /// Whether events keep what the adapter received.
    pub keep_raw: bool,
    /// The target, where it is the same for every case.
    target: Option<(BoundTarget, Redactor)>,
}

/// An attempt and what it came to.
#[derive(Debug)]
pub struct Attempt {
    /// Which case.
    pub selected: Selected,
    /// What it came to.
    pub verdict: Verdict,
    /// Every check that was decided, in order.
    pub checks: Vec<Checked>,
    /// How far the checkpoints were reached.
    pub checkpoints: Vec<Reached>,
    /// The time limit that was exceeded, if the verdict is about one.
    pub limit: Option<Duration>,
    /// What was said and done.
    pub conversation: Conversation,
    /// The trace, where it was asked for.
    pub events: Vec<Event>,
    /// When it began.
    pub started_at: Millis,
    /// How long it took, hooks included.
    pub duration: Duration,
}

impl Outside {
    /// What attempts of this project need. A target that uses no variables of hooks is filled in here.
    ///
    /// # Errors
    /// What is wrong with the target.
    pub fn new(
        project: Arc<Project>,
        http: Arc<Http>,
        timeouts: Timeouts,
        keep_events: bool,
        keep_raw: bool,
    ) -> Result<Self, Diagnostics> {
        let mut outside = Outside { project, http, timeouts, keep_events, keep_raw, target: None };
        if !outside.project.target_varies() {
            outside.target = Some(outside.bind(&BTreeMap::new())?);
        }
        Ok(outside)
    }

    /// The address of the target as it may be shown; none where it differs from case to case.
    pub fn shown_endpoint(&self) -> Option<String> {
        let (target, redactor) = self.target.as_ref()?;
        Some(redactor.text(&without_credentials(&target.ag_ui.endpoint)).into_owned())
    }

    fn variables<'a>(&'a self, given: &'a BTreeMap<String, Value>) -> Variables<'a> {
        let (environment, redactor) = (&**self.project.environment(), self.project.redactor());
        Variables { environment, given, more_to_come: false, redactor }
    }

    /// The target with these variables, and what takes its secrets out.
    fn bind(&self, given: &BTreeMap<String, Value>) -> Result<(BoundTarget, Redactor), Diagnostics> {
        let mut target = self.project.bind_target(self.variables(given))?;
        target.ag_ui.keep_raw = self.keep_raw;
        let redactor = self.redactor(&target.secrets, given);
        Ok((target, redactor))
    }

    /// What takes out the secrets of the project, of a target, and of what hooks gave.
    fn redactor(&self, of_target: &[(String, String)], given: &BTreeMap<String, Value>) -> Redactor {
        let (environment, named) = (self.project.environment(), &self.project.secrets);
        let of_hooks = given.iter().filter_map(|(name, value)| Some((name.clone(), secret_text(value)?)));
        let of_hooks = of_hooks.filter(|(name, value)| named.contains(name) || is_secret(name, value));
        let of_target = of_target.iter().cloned();
        Redactor::new(
            of_target
                .chain(named_secrets(environment, named))
                .chain(self.project.header_secrets())
                .chain(of_hooks),
        )
    }
}

/// Makes an attempt.
pub async fn attempt(selected: Selected, outside: &Outside) -> Attempt {
    let started_at = wall_millis();
    let started = tokio::time::Instant::now();
    let mut attempt = Attempt::not_made(selected, Verdict::passed());
    match &attempt.selected.case.skip {
        Some(reason) => attempt.verdict = Verdict::skipped(reason.clone()),
        None => match prepare(&attempt.selected, outside).await {
            Err(failure) => attempt.verdict = Verdict::failed(failure),
            Ok((case, target, redactor)) => {
                let target = target.for_case(&case.target);
                let script = TurnScript::new(target.tools);
                let mut agent = ag_ui::Session::open(outside.http.clone(), target.ag_ui);
                let recorder = Recorder::new(redactor, outside.keep_events);
                let held = hold(&case, &mut agent, script, outside.timeouts, recorder).await;
                attempt.verdict = held.verdict;
                attempt.checks = held.checks;
                attempt.checkpoints = held.checkpoints;
                attempt.limit = held.limit;
                attempt.conversation = held.conversation;
                attempt.events = held.events;
            }
        },
    }
    Attempt { started_at, duration: started.elapsed(), ..attempt }
}

impl Attempt {
    /// An attempt that was never made.
    pub(super) fn not_made(selected: Selected, verdict: Verdict) -> Self {
        Attempt {
            selected,
            verdict,
            checks: Vec::new(),
            checkpoints: Vec::new(),
            limit: None,
            conversation: Conversation::default(),
            events: Vec::new(),
            started_at: wall_millis(),
            duration: Duration::ZERO,
        }
    }
}

/// Runs the hooks of a case and fills in their variables.
async fn prepare(
    selected: &Selected,
    outside: &Outside,
) -> Result<(Arc<Case>, BoundTarget, Redactor), Failure> {
    let case = &selected.case;
    let mut given = BTreeMap::new();
    let undefined = |found: Diagnostics| {
        let mut words = found.into_iter().map(|diagnostic| match diagnostic.place {
            Some(place) => format!("{} ({place})", diagnostic.message),
            None => diagnostic.message,
        });
        let message = words.next().unwrap_or_default();
        Failure::new(FailureKind::TestError, message).with_detail(words.collect::<Vec<_>>().join("\n"))
    };
    let folder = match &outside.project.file {
        Some(_) => &outside.project.root,
        None => &selected.suite.folder,
    };
    for index in 0..case.hooks {
        let variables = outside.variables(&given);
        let hook = case.hook(index, variables).map_err(undefined)?;
        let run = run_hook(&hook, folder, outside.project.environment()).await;
        let new = run.map_err(|failure| {
            let of_target = outside.target.as_ref().map_or(&[][..], |(target, _)| &target.secrets);
            outside.redactor(of_target, &given).failure(failure)
        })?;
        given.extend(new);
    }
    let (target, redactor) = match &outside.target {
        // What hooks give may hold secrets too.
        Some((target, _)) if !given.is_empty() => (target.clone(), outside.redactor(&target.secrets, &given)),
        Some((target, redactor)) => (target.clone(), redactor.clone()),
        None => outside.bind(&given).map_err(undefined)?,
    };
    let variables = Variables { redactor: &redactor, ..outside.variables(&given) };
    let case = case.bind(variables).map_err(undefined)?;
    let folders = [selected.suite.folder.as_path(), outside.project.root.as_path(), Path::new("")];
    let case =
        case.with_attachments(&folders).map_err(|words| Failure::new(FailureKind::TestError, words))?;
    Ok((case, target, redactor))
}
