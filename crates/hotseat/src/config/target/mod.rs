//! The target: the agent under test, as the project file describes it. One file a kind.

mod ag_ui;
mod command;
mod embedded;
mod hears;
mod http;
mod openai;
mod parts;
mod replay;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::adapters::http::{Http, without_credentials};
use crate::adapters::in_code::InCode;
use crate::adapters::replay::CaseName;
use crate::adapters::{self, AgentSession};
use crate::cases::{CaseTarget, client_tools};
use crate::process::ProjectServers;
use crate::session::ClientTool;
use hotseat_document::{Diagnostics, Map, Shape, is_secret_name};
use hotseat_runtime::files::Connector;

pub(super) use self::hears::Hears;
use super::agent::Surroundings;
use super::project::Project;
use super::shape::{
    AG_UI_TARGET, COMMAND_TARGET, EMBEDDED_TARGET, HTTP_TARGET, OPENAI_TARGET, REPLAY_TARGET,
};

pub(super) use parts::headers;
pub(super) use replay::find as find_recordings;

/// A target with its variables filled in.
#[derive(Debug, Clone)]
pub struct BoundTarget {
    /// How the agent is reached.
    pub target: Target,
    /// Client-side tools that are offered to the agent.
    pub tools: Vec<ClientTool>,
    /// Values that must not appear anywhere, with their names.
    pub secrets: Vec<(String, String)>,
}

/// How an agent is reached: what its adapter is told.
#[derive(Debug, Clone)]
pub enum Target {
    /// By AG-UI.
    AgUi(adapters::ag_ui::Target),
    /// By chat completions.
    OpenAi(adapters::openai::Target),
    /// By an HTTP interface of its own.
    Http(adapters::http_agent::Target),
    /// As a program.
    Command(adapters::command::Target),
    /// In this process.
    Embedded(adapters::embedded::Target),
    /// By what it once did.
    Replay(adapters::replay::Target),
    /// As a part of the program that tests it.
    InCode(Arc<dyn InCode>),
}

/// A target as it may be shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// What the agent calls itself.
    pub id: Option<String>,
    /// Its address, command or file.
    pub path: String,
    /// The language model that it is told to use.
    pub connector: Option<String>,
    /// All of that in a few words.
    pub shown: String,
}

/// The kinds of targets, as the shapes tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    AgUi,
    OpenAi,
    Http,
    Command,
    Embedded,
    Replay,
    InCode,
}

/// What adapters reach agents with.
#[derive(Debug, Clone)]
pub struct Means {
    /// The clients of HTTP.
    pub http: Arc<Http>,
    /// The environment of programs.
    pub environment: Arc<BTreeMap<String, String>>,
    /// The project whose processes programs are.
    pub servers: ProjectServers,
    /// Whether events keep what the adapter received.
    pub keep_raw: bool,
}

impl Means {
    /// What agents of a project are reached with.
    pub fn of(project: &Project, http: Arc<Http>, keep_raw: bool) -> Means {
        let environment = project.environment().clone();
        Means { http, environment, servers: ProjectServers::of(&project.root), keep_raw }
    }
}

impl Kind {
    pub(super) fn of(shape: &'static Shape) -> Kind {
        let kinds = [
            (&AG_UI_TARGET, Kind::AgUi),
            (&OPENAI_TARGET, Kind::OpenAi),
            (&HTTP_TARGET, Kind::Http),
            (&COMMAND_TARGET, Kind::Command),
            (&EMBEDDED_TARGET, Kind::Embedded),
            (&REPLAY_TARGET, Kind::Replay),
        ];
        let known = kinds.into_iter().find(|(known, _)| std::ptr::eq(*known, shape));
        known.map_or(Kind::AgUi, |(_, kind)| kind)
    }
}

impl BoundTarget {
    /// Reads a target whose variables are filled in.
    pub(super) fn read(map: &Map<'_>, around: Surroundings<'_>, mistakes: &mut Diagnostics) -> Option<Self> {
        let mut secrets = parts::header_secrets(map);
        let kind = Kind::of(map.shape());
        let carries = Hears::of(kind, map.as_node()).carries();
        let (target, tools) = match kind {
            Kind::AgUi => {
                (ag_ui::read(map, mistakes).map(Target::AgUi), client_tools(map, "tools", mistakes))
            }
            Kind::OpenAi => {
                (openai::read(map, mistakes).map(Target::OpenAi), client_tools(map, "tools", mistakes))
            }
            Kind::Http => (http::read(map, carries, mistakes).map(Target::Http), Vec::new()),
            Kind::Command => {
                let tools = client_tools(map, "tools", mistakes);
                (command::read(map, around.root, &tools, carries, mistakes).map(Target::Command), tools)
            }
            Kind::Embedded => {
                let found = embedded::read(map, around, mistakes);
                let target = found.map(|(target, own)| {
                    secrets.extend(own);
                    Target::Embedded(target)
                });
                (target, client_tools(map, "tools", mistakes))
            }
            Kind::Replay => (
                replay::read(map, around.root, mistakes).map(Target::Replay),
                client_tools(map, "tools", mistakes),
            ),
            // Nothing of such an agent is written.
            Kind::InCode => return None,
        };
        let target = target?;
        secrets.extend(target.password().map(|password| ("endpoint password".to_string(), password)));
        Some(BoundTarget { target, tools, secrets })
    }

    /// An agent that is a part of this program.
    pub(super) fn in_code(agent: Arc<dyn InCode>) -> Self {
        BoundTarget { target: Target::InCode(agent), tools: Vec::new(), secrets: Vec::new() }
    }

    /// The target as a case wants it.
    #[must_use]
    pub fn for_case(mut self, case: &CaseTarget) -> Self {
        match &mut self.target {
            Target::AgUi(target) => ag_ui::for_case(target, case),
            Target::OpenAi(target) => openai::for_case(target, case),
            Target::Http(target) => target.given = parts::given(case),
            Target::Command(target) => target.given = parts::given(case),
            Target::Embedded(target) => embedded::for_case(target, case),
            Target::Replay(target) => target.conversation_id.clone_from(&case.thread_id),
            Target::InCode(_) => {}
        }
        self.tools.retain(|tool| !case.tools.iter().any(|own| own.name == tool.name));
        self.tools.extend(case.tools.iter().cloned());
        self
    }

    /// The target as an attempt at a case wants it; they are numbered from 1. A conversation whose id is written would
    /// go on in the next attempt, so there the number is added to it.
    #[must_use]
    pub fn for_attempt(mut self, number: usize) -> Self {
        let id = match &mut self.target {
            Target::AgUi(target) => &mut target.thread_id,
            Target::OpenAi(target) => &mut target.given.conversation_id,
            Target::Http(target) => &mut target.given.conversation_id,
            Target::Command(target) => &mut target.given.conversation_id,
            Target::Embedded(target) => &mut target.conversation_id,
            // A recording is served as it is, and each conversation in this program has a fresh id.
            Target::Replay(_) | Target::InCode(_) => return self,
        };
        if let Some(id) = id.as_mut().filter(|_| number > 1) {
            id.push_str(&format!("-{number}"));
        }
        self
    }

    /// The target as it is for a case of this name: what serves recordings has to know which one is meant.
    #[must_use]
    pub fn named(mut self, suite: String, id: &str) -> Self {
        if let Target::Replay(target) = &mut self.target {
            target.case = Some(CaseName { suite, id: id.to_string() });
        }
        self
    }

    /// What the agent is for and which tools it has, where it says so itself: what whoever makes cases up is told.
    pub fn described(&self) -> (Option<String>, Vec<Value>) {
        let offered = self.tools.iter().map(|tool| (&tool.name, &tool.description, &tool.parameters));
        match &self.target {
            Target::Embedded(target) => embedded::described(target, offered),
            Target::AgUi(_)
            | Target::OpenAi(_)
            | Target::Http(_)
            | Target::Command(_)
            | Target::Replay(_)
            | Target::InCode(_) => (None, offered.map(embedded::tool).collect()),
        }
    }

    /// The target with what the connectors of these names stand for, wherever its options name one of them.
    #[must_use]
    pub fn with_connectors(mut self, connectors: BTreeMap<String, Connector>) -> Self {
        match &mut self.target {
            Target::OpenAi(target) => openai::with_connectors(target, connectors),
            Target::Embedded(target) => target.connectors = connectors,
            // They are told the name.
            Target::AgUi(_)
            | Target::Http(_)
            | Target::Command(_)
            | Target::Replay(_)
            | Target::InCode(_) => {}
        }
        self
    }

    /// The target as it may be shown to people.
    pub fn shown(&self) -> Shown {
        let at = |path: String| Shown { id: None, connector: None, shown: path.clone(), path };
        match &self.target {
            Target::AgUi(target) => at(without_credentials(&target.endpoint)),
            Target::OpenAi(target) => {
                let connector = Some(target.model.clone());
                Shown { connector, ..at(without_credentials(&target.endpoint)) }
            }
            Target::Http(target) => match reqwest::Url::parse(&target.endpoint) {
                Ok(url) if url.password().is_some() => at(without_credentials(&url)),
                Ok(_) | Err(_) => at(target.endpoint.clone()),
            },
            Target::Command(target) => at(format!("`{}`", target.command.join(" "))),
            Target::Replay(target) => at(format!("recordings in {}", target.shown)),
            Target::InCode(agent) => at(format!("in the test, {}", agent.place())),
            Target::Embedded(target) => {
                let definition = target.agent.definitions.agent(&target.agent.id);
                Shown {
                    id: Some(target.agent.id.to_string()),
                    path: target.path.display().to_string(),
                    connector: definition.map(|agent| agent.persona.profile.id.to_string()),
                    shown: format!("{} (embedded)", target.agent.id),
                }
            }
        }
    }
}

impl Target {
    /// Opens a conversation with the agent. Nothing is sent and nothing is started yet.
    pub fn open(self, means: &Means) -> Box<dyn AgentSession> {
        let Means { http, environment, servers, keep_raw } = means.clone();
        match self {
            Target::AgUi(target) => {
                let target = adapters::ag_ui::Target { keep_raw, ..target };
                Box::new(adapters::ag_ui::Session::open(http, target))
            }
            Target::OpenAi(target) => {
                let target = adapters::openai::Target { keep_raw, ..target };
                Box::new(adapters::openai::Session::open(http, target))
            }
            Target::Http(target) => {
                let target = adapters::http_agent::Target { keep_raw, ..target };
                Box::new(adapters::http_agent::Session::open(http, target))
            }
            Target::Command(target) => {
                let target = adapters::command::Target { keep_raw, ..target };
                Box::new(adapters::command::Session::open(environment, servers, http, target))
            }
            Target::Embedded(target) => Box::new(adapters::embedded::Session::open(http, target)),
            Target::Replay(target) => Box::new(adapters::replay::Session::open(target)),
            Target::InCode(agent) => Box::new(adapters::in_code::Session::open(&*agent)),
        }
    }

    /// The password that its address carries.
    fn password(&self) -> Option<String> {
        let url = match self {
            Target::AgUi(target) => Some(target.endpoint.clone()),
            Target::OpenAi(target) => Some(target.endpoint.clone()),
            Target::Http(target) => reqwest::Url::parse(&target.endpoint).ok(),
            Target::Command(_) | Target::Embedded(_) | Target::Replay(_) | Target::InCode(_) => None,
        };
        url.and_then(|url| url.password().map(str::to_string))
    }
}

/// Whether a variable is a secret by its name. Short values are not: `true` is none.
pub fn is_secret(name: &str, value: &str) -> bool {
    const MIN_VALUE_BYTES: usize = 8;
    value.len() >= MIN_VALUE_BYTES && is_secret_name(name)
}

/// The JSON value of a variable as text, where it has one.
pub fn secret_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
