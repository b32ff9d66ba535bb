//! One attempt at one case: hooks, then the conversation, then the verdict.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{Conversation, Failure, FailureKind, Millis, Record, Verdict};
use serde_json::Value;

use super::hooks::Before;
use super::partners::partners;
use super::plan::Selected;
use crate::adapters::AgentSession;
use crate::adapters::http::Http;
use crate::cases::{Case, Hook, Interactive, Variables};
use crate::config::{Agent, BoundTarget, Means, Project, Shown, is_secret, named_secrets, secret_text};
use crate::session::{
    Asked, Checked, Held, Identity, OnMissingInput, Partners, Person, Reached, Recorder, Redactor, Timeouts,
    TurnScript, hold, run_hook, wall_millis,
};
use hotseat_document::Diagnostics;

/// Everything outside a case that an attempt needs.
pub struct Outside {
    /// The project.
    pub project: Arc<Project>,
    /// How long all turns of a case may take where it does not say so.
    pub case_timeout: Option<Duration>,
    /// What attempts keep of their events.
    pub keep: Keep,
    /// What the command line says of all cases.
    pub overrides: Overrides,
    /// The person who can be asked, where one is there.
    pub person: Option<Arc<dyn Person>>,
    /// What agents are reached with.
    pub(super) means: Means,
    /// The agents that are the same for every case, with what takes their secrets out.
    bound: Vec<(Arc<Agent>, BoundTarget, Redactor)>,
}

/// What attempts keep of the events of their conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Nothing but what they amount to.
    Nothing,
    /// The events.
    Events,
    /// The events, and what was received as it was received.
    Raw,
}

/// What the command line says of all cases, whatever these say themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Overrides {
    /// What is done when the agent waits and nobody can answer it.
    pub on_missing_input: Option<OnMissingInput>,
    /// When a person is asked, if not as cases say.
    pub person: Option<AskPerson>,
}

/// When a person is asked, whatever cases say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskPerson {
    /// Never.
    Never,
    /// In every case, as is said.
    In(Asked),
}

/// An attempt and what it came to.
#[derive(Debug)]
pub struct Attempt {
    /// Which case.
    pub selected: Selected,
    /// Which of the attempts at it, from 1.
    pub number: usize,
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
    pub events: Vec<Record>,
    /// What went wrong beside it and changes no verdict: hooks that ran afterwards.
    pub warnings: Vec<String>,
    /// When it began.
    pub started_at: Millis,
    /// How long it took, hooks included.
    pub duration: Duration,
}

impl Outside {
    /// What attempts need that talk to these agents. Those that use no variables of hooks are filled in here.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new<'a>(
        project: Arc<Project>,
        agents: impl Iterator<Item = &'a Arc<Agent>>,
        http: Arc<Http>,
        case_timeout: Option<Duration>,
        keep: Keep,
    ) -> Result<Self, Diagnostics> {
        let environment = project.environment().clone();
        let means = Means { http, environment, keep_raw: keep == Keep::Raw };
        let mut outside = Outside {
            project,
            case_timeout,
            keep,
            overrides: Overrides::default(),
            person: None,
            means,
            bound: Vec::new(),
        };
        for agent in agents.filter(|agent| !agent.varies) {
            let (target, redactor) = outside.bind(agent, &BTreeMap::new())?;
            outside.bound.push((agent.clone(), target, redactor));
        }
        Ok(outside)
    }

    /// How an agent is reached, as it may be shown; none where that differs from case to case.
    pub fn shown(&self, agent: &Arc<Agent>) -> Option<Shown> {
        let (target, redactor) = self.bound(agent)?;
        let harmless = |text: String| redactor.text(&text).into_owned();
        let Shown { id, path, connector, shown } = target.shown();
        Some(Shown {
            id: id.map(harmless),
            path: harmless(path),
            connector: connector.map(harmless),
            shown: harmless(shown),
        })
    }

    pub(super) fn bound(&self, agent: &Arc<Agent>) -> Option<(&BoundTarget, &Redactor)> {
        let bound = self.bound.iter().find(|(known, ..)| Arc::ptr_eq(known, agent));
        bound.map(|(_, target, redactor)| (target, redactor))
    }

    fn variables<'a>(&'a self, given: &'a BTreeMap<String, Value>) -> Variables<'a> {
        let (environment, redactor) = (&**self.project.environment(), self.project.redactor());
        Variables { environment, given, more_to_come: false, redactor }
    }

    /// An agent with these variables, and what takes its secrets out.
    pub(super) fn bind(
        &self,
        agent: &Agent,
        given: &BTreeMap<String, Value>,
    ) -> Result<(BoundTarget, Redactor), Diagnostics> {
        let target = agent.bind(self.variables(given))?;
        let redactor = self.redactor(&target.secrets, given);
        Ok((target, redactor))
    }

    /// What takes out the secrets of the project, of a target, and of what hooks gave.
    pub(super) fn redactor(
        &self,
        of_target: &[(String, String)],
        given: &BTreeMap<String, Value>,
    ) -> Redactor {
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

/// Makes an attempt; `number` says which one, from 1.
pub async fn attempt(selected: Selected, number: usize, outside: &Outside) -> Attempt {
    let started = tokio::time::Instant::now();
    let mut attempt = Attempt::not_made(selected, number, Verdict::passed());
    if let Some(reason) = &attempt.selected.case.skip {
        attempt.verdict = Verdict::skipped(reason.clone());
        return attempt;
    }
    let before = match outside.before(&attempt.selected.case).await {
        Ok(before) => before,
        Err(failure) => {
            let verdict = Verdict::failed(failure);
            return Attempt { verdict, duration: started.elapsed(), ..attempt };
        }
    };
    hold_case(&mut attempt, &before, outside).await;
    attempt.duration = started.elapsed();
    outside.after(&mut attempt, &before).await;
    attempt
}

/// Holds the conversation of an attempt.
async fn hold_case(attempt: &mut Attempt, before: &Before, outside: &Outside) {
    match prepare(&attempt.selected, before, outside).await {
        Err(failure) => attempt.verdict = Verdict::failed(failure),
        Ok(Prepared { case, target, redactor, timeouts, partners }) => {
            let suite = outside.project.suite_name(&attempt.selected.suite.path);
            let target = target.for_case(&case.target).for_attempt(attempt.number);
            let target = target.named(suite, &attempt.selected.case.id);
            let script = TurnScript::new(target.tools);
            let mut agent = target.target.open(&outside.means);
            let recorder = Recorder::new(redactor.clone(), outside.keep != Keep::Nothing);
            let mut held = hold(&case, &mut *agent, script, timeouts, &partners, recorder).await;
            agent.close().await;
            add_last_words(&mut held, &*agent, &redactor);
            attempt.verdict = held.verdict;
            attempt.checks = held.checks;
            attempt.checkpoints = held.checkpoints;
            attempt.limit = held.limit;
            attempt.conversation = held.conversation;
            attempt.events = held.events;
        }
    }
}

/// What an agent has left helps to understand why its conversation failed, however it failed.
fn add_last_words(held: &mut Held, agent: &dyn AgentSession, redactor: &Redactor) {
    let Some(failure) = &mut held.verdict.failure else { return };
    let Some(words) = agent.last_words() else { return };
    let detail = failure.detail.take().map_or_else(String::new, |detail| detail + "\n");
    failure.detail = Some(detail + &redactor.text(&words));
}

impl Attempt {
    /// An attempt that was never made.
    pub(super) fn not_made(selected: Selected, number: usize, verdict: Verdict) -> Self {
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
            started_at: wall_millis(),
            duration: Duration::ZERO,
        }
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
}

/// Runs the hooks of a case and fills in their variables.
async fn prepare(selected: &Selected, before: &Before, outside: &Outside) -> Result<Prepared, Failure> {
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
        let run = run_hook(&hook, folder, outside.project.environment(), None).await;
        let new = run.map_err(|failure| {
            let of_target = bound.map_or(&[][..], |(target, _)| &target.secrets);
            outside.redactor(of_target, &given).failure(failure)
        })?;
        given.extend(new);
    }
    let (partners, of_helpers) = partners(outside, case, &given).map_err(undefined)?;
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
    Ok(Prepared { case, target, redactor, timeouts, partners })
}

/// Hooks act on behalf of whom the agent is spoken to for.
pub(super) fn on_behalf_of(identity: &Identity, hook: &mut Hook) {
    for (name, word) in [("USER", &identity.user), ("TEAM", &identity.team), ("LOCALE", &identity.locale)] {
        hook.env.entry(format!("HOTSEAT_{name}")).or_insert_with(|| word.text.to_string());
    }
}

impl Overrides {
    /// A case as the command line wants it.
    fn over(self, case: Arc<Case>) -> Arc<Case> {
        let Overrides { on_missing_input, person } = self;
        let on_missing_input = on_missing_input.unwrap_or(case.on_missing_input);
        let interactive = match (person, &case.interactive) {
            (None, own) => own.clone(),
            (Some(AskPerson::Never), _) => None,
            (Some(AskPerson::In(asked)), Some(own)) => Some(Interactive { asked, ..own.clone() }),
            (Some(AskPerson::In(asked)), None) => Some(Interactive::asked(asked, case.place.clone())),
        };
        let mut case = case;
        let own = Arc::make_mut(&mut case);
        (own.on_missing_input, own.interactive) = (on_missing_input, interactive);
        case
    }
}
