//! Everything outside a case that an attempt needs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::pace::Pace;
use super::recheck::Recheck;
use crate::adapters::http::Http;
use crate::cases::{Case, Hook, Interactive, Variables};
use crate::config::{Agent, BoundTarget, Means, Project, Shown, is_secret, named_secrets, secret_text};
use crate::session::{Asked, Identity, OnMissingInput, Person, Prices, Redactor, RunTraffic};
use hotseat_document::Diagnostics;

/// Everything outside a case that an attempt needs.
pub struct Outside {
    /// The project.
    pub project: Arc<Project>,
    /// How long all turns of a case may take where it does not say so.
    pub case_timeout: Option<Duration>,
    /// What attempts keep of their events.
    pub keep: Keep,
    /// What models cost.
    pub(super) prices: Prices,
    /// What all agents may send and do, and have.
    pub(super) traffic: Arc<RunTraffic>,
    /// What the command line says of all cases.
    pub overrides: Overrides,
    /// Where conversations are decided again that are kept: these.
    pub recheck: Option<Recheck>,
    /// The person who can be asked, where one is there.
    pub person: Option<Arc<dyn Person>>,
    /// How far those who are told of the run lag behind it.
    pub pace: Arc<Pace>,
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
        let means = Means::of(&project, http, keep == Keep::Raw);
        let mut outside = Outside {
            prices: project.prices(),
            traffic: Arc::new(RunTraffic::new(project.limits)),
            project,
            case_timeout,
            keep,
            overrides: Overrides::default(),
            recheck: None,
            person: None,
            pace: Arc::default(),
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

    pub(super) fn variables<'a>(&'a self, given: &'a BTreeMap<String, Value>) -> Variables<'a> {
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

/// Hooks act on behalf of whom the agent is spoken to for.
pub(super) fn on_behalf_of(identity: &Identity, hook: &mut Hook) {
    for (name, word) in [("USER", &identity.user), ("TEAM", &identity.team), ("LOCALE", &identity.locale)] {
        hook.env.entry(format!("HOTSEAT_{name}")).or_insert_with(|| word.text.to_string());
    }
}

impl Overrides {
    /// A case as the command line wants it.
    pub(super) fn over(self, case: Arc<Case>) -> Arc<Case> {
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
