//! What a run is carried out with, as reports tell it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::told::{CaseFacts, Told};
use super::{Modes, Options, Outside, Plan};
use crate::checks::Reference;
use crate::config::Agent;
use crate::session::Identity;

/// What a run is carried out with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setting {
    agents: Vec<Tested>,
    /// The suites, as they are shown to people.
    pub inputs: Vec<Arc<str>>,
    /// How many cases they hold.
    pub total: usize,
    /// How many of them are selected.
    pub selected: usize,
    /// For how many cases a reliability is declared, so that they are run until it is known.
    #[serde(default)]
    pub declared: usize,
    /// Which kinds of conversations there are.
    pub modes: Modes,
    /// Who simulates users where the case does not say.
    simulator: Option<Reference>,
    /// How long all turns of a case may take where the case does not say so.
    pub case_timeout: Option<Duration>,
    /// How long a turn may take where it does not say so; none where agents differ in it.
    pub turn_timeout: Option<Duration>,
    /// On whose behalf agents are spoken to where no case says otherwise.
    pub environment: Environment,
    /// What was chosen for this run.
    pub choices: Choices,
    /// The run that held the conversations, where they are decided again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rechecked: Option<Arc<str>>,
}

/// On whose behalf agents are spoken to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// The user.
    pub user: Arc<str>,
    /// The team of the user.
    pub team: Arc<str>,
    /// The language and region.
    pub locale: Arc<str>,
}

/// What was chosen for a run, on the command line or in the project file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Choices {
    /// How the run is carried out.
    pub options: Options,
    /// Whether somebody asked for so many conversations at once.
    pub parallel_asked: bool,
    /// The pattern that ids or names fit.
    pub run: Option<String>,
    /// The agent that is tested whatever the project file says.
    pub agent: Option<String>,
    /// The connector that goes before all others.
    pub connector: Option<String>,
    /// The report files, as they are shown to people.
    pub outputs: Vec<String>,
}

/// An agent that is tested, as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tested {
    /// Its name in the project, if it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// Its name in the project, its own id, or its address: the first of them that it has.
    pub id: String,
    /// Its address, command or file; none where it differs from case to case.
    pub path: Option<String>,
    /// The language model that it is said to speak with.
    pub connector: Option<String>,
    /// A few words for people.
    pub shown: String,
}

impl Setting {
    /// The setting of a run.
    pub fn new(plan: &Plan, outside: &Outside, choices: Choices) -> Self {
        let agents = plan.agents().map(|agent| Tested::of(agent, outside)).collect();
        let mut limits = plan.agents().map(|agent| agent.timeouts.turn);
        let first = limits.next();
        let clean = |text: &str| -> Arc<str> { outside.project.redactor().text(text).into() };
        let Identity { user, team, locale, .. } = outside.project.calling().identity();
        Setting {
            inputs: plan.suites().map(|suite| clean(&suite.shown)).collect(),
            total: plan.total,
            selected: plan.selected,
            declared: plan.declared(&choices.options),
            modes: plan.modes.clone(),
            simulator: outside.project.simulator.clone(),
            case_timeout: outside.case_timeout,
            turn_timeout: first.filter(|first| limits.all(|limit| limit == *first)),
            environment: Environment {
                user: clean(&user.text),
                team: clean(&team.text),
                locale: clean(&locale.text),
            },
            choices: Choices { run: choices.run.map(|run| clean(&run).to_string()), ..choices },
            agents,
            rechecked: None,
        }
    }

    /// The same of a run that decides conversations again which another one held: with the agents of that.
    #[must_use]
    pub fn of_kept(self, of: &str, kept: &Setting) -> Setting {
        Setting {
            agents: kept.agents.clone(),
            simulator: kept.simulator.clone(),
            case_timeout: kept.case_timeout,
            turn_timeout: kept.turn_timeout,
            environment: kept.environment.clone(),
            rechecked: Some(of.into()),
            ..self
        }
    }

    /// The agents that are tested, in the order of the suites.
    pub fn agents(&self) -> impl ExactSizeIterator<Item = &Tested> {
        self.agents.iter()
    }

    /// The agent that a case tests.
    pub fn tested(&self, told: &Told) -> Option<&Tested> {
        self.agents.get(told.agent?)
    }

    /// The simulated users, as they are shown to people.
    pub fn simulators(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.modes.simulators.iter().map(|reference| self.shown(reference.as_ref())).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The simulated user of a case, as it is shown to people.
    pub fn simulator_of(&self, case: &CaseFacts) -> Option<String> {
        case.simulator.as_ref().map(|simulator| self.shown(simulator.reference.as_ref()))
    }

    /// A helper: an agent by its name alone.
    fn shown(&self, reference: Option<&Reference>) -> String {
        match reference.or(self.simulator.as_ref()) {
            Some(Reference::Agent(id)) => id.clone(),
            Some(other) => other.to_string(),
            None => "simulator".to_string(),
        }
    }

    /// How many conversations are really held at once.
    pub fn at_once(&self) -> usize {
        match self.choices.parallel_asked {
            true => self.choices.options.parallel,
            // How many runs there will be is not known where reliabilities are declared.
            false if self.declared > 0 => self.choices.options.parallel,
            false => self.choices.options.parallel.min(self.selected * self.choices.options.runs),
        }
    }

    /// The connectors of the agents, each once; the one that goes before all of them where there is one.
    pub fn connectors(&self) -> Vec<&str> {
        if let Some(connector) = &self.choices.connector {
            return vec![connector];
        }
        let mut all: Vec<&str> = self.agents().filter_map(|agent| agent.connector.as_deref()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl Tested {
    fn of(agent: &Arc<Agent>, outside: &Outside) -> Tested {
        let bound = outside.shown(agent);
        let (own_id, path, connector, shown) = match bound {
            Some(bound) => (bound.id, Some(bound.path), bound.connector, bound.shown),
            None => (None, None, None, "a target for each case".to_string()),
        };
        let name = agent.name.as_deref().map(str::to_string);
        let shown = match (&name, &own_id) {
            // What it calls itself gives way to what the project calls it.
            (Some(name), Some(own_id)) => shown.replacen(own_id.as_str(), name, 1),
            (Some(name), None) => format!("{name} ({shown})"),
            (None, _) => shown,
        };
        let id = name.clone().or(own_id).or_else(|| path.clone()).unwrap_or_else(|| "target".to_string());
        Tested { name, id, path, connector, shown }
    }
}
