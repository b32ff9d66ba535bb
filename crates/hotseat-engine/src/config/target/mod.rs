//! Targets: the agents of the project file, by the adapter that reaches them.

mod ag_ui;
mod capabilities;
mod command;
mod common;
mod embedded;
mod http;
mod openai;
mod replay;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::cases::{CaseTarget, read_client_tools};
use hotseat_document::{Diagnostics, MapView, Shape, is_secret_name};
use hotseat_runtime::files::ModelConnector;
use hotseat_targets::AgentSession;
use hotseat_targets::code_agent::CodeAgent;
use hotseat_targets::connection::http::{HttpClient, without_credentials};
use hotseat_targets::message::ClientTool;
use hotseat_targets::process::ProjectServers;
use hotseat_targets::replay::CaseName;

pub(super) use self::capabilities::TargetCapabilities;
use super::agent::AgentReadContext;
use super::project::Project;
use super::shape::{
    AG_UI_TARGET, COMMAND_TARGET, EMBEDDED_TARGET, HTTP_TARGET, OPENAI_TARGET, REPLAY_TARGET,
};

pub(super) use common::read_headers;
pub(super) use replay::find as find_recordings;

/// A target with its variables resolved.
#[derive(Debug, Clone)]
pub struct BoundTarget {
    /// Adapter settings.
    pub target: AgentTarget,
    /// Client-side tools offered to the agent.
    pub tools: Vec<ClientTool>,
    /// Secret values with their names.
    pub secrets: Vec<(String, String)>,
}

/// Adapter settings of an agent.
#[derive(Debug, Clone)]
pub enum AgentTarget {
    /// AG-UI.
    AgUi(hotseat_targets::ag_ui::AgUiTarget),
    /// Chat completions.
    OpenAi(hotseat_targets::openai::ChatTarget),
    /// Custom HTTP interface.
    Http(hotseat_targets::http_agent::HttpTarget),
    /// Program.
    Command(hotseat_targets::command::CommandTarget),
    /// Embedded agent in this process.
    Embedded(hotseat_targets::embedded::EmbeddedTarget),
    /// Recordings.
    Replay(hotseat_targets::replay::ReplayTarget),
    /// Agent implemented by the test program.
    InCode(Arc<dyn CodeAgent>),
}

/// Displayable description of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetSummary {
    /// Own id of the agent.
    pub id: Option<String>,
    /// Address, command or file.
    pub path: String,
    /// Connector of the language model.
    pub connector: Option<String>,
    /// Short description.
    pub label: String,
}

/// Kinds of targets, one per shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetKind {
    AgUi,
    OpenAi,
    Http,
    Command,
    Embedded,
    Replay,
    InCode,
}

/// Resources for opening targets.
#[derive(Debug, Clone)]
pub struct TargetEnv {
    /// HTTP clients.
    pub http: Arc<HttpClient>,
    /// Environment variables of programs.
    pub environment: Arc<BTreeMap<String, String>>,
    /// The project whose processes programs are.
    pub servers: ProjectServers,
    /// True if events keep the raw data received by the adapter.
    pub keep_raw: bool,
}

impl TargetEnv {
    /// What agents of a project are reached with.
    pub fn new(project: &Project, http: Arc<HttpClient>, keep_raw: bool) -> TargetEnv {
        let environment = project.environment().clone();
        TargetEnv { http, environment, servers: ProjectServers::new(&project.root), keep_raw }
    }
}

impl TargetKind {
    pub(super) fn from_shape(shape: &'static Shape) -> TargetKind {
        let kinds = [
            (&AG_UI_TARGET, TargetKind::AgUi),
            (&OPENAI_TARGET, TargetKind::OpenAi),
            (&HTTP_TARGET, TargetKind::Http),
            (&COMMAND_TARGET, TargetKind::Command),
            (&EMBEDDED_TARGET, TargetKind::Embedded),
            (&REPLAY_TARGET, TargetKind::Replay),
        ];
        let known = kinds.into_iter().find(|(known, _)| std::ptr::eq(*known, shape));
        known.map_or(TargetKind::AgUi, |(_, kind)| kind)
    }
}

impl BoundTarget {
    /// Decodes a target whose variables are resolved.
    pub(super) fn read(
        map: &MapView<'_>,
        around: AgentReadContext<'_>,
        mistakes: &mut Diagnostics,
    ) -> Option<Self> {
        let mut secrets = common::header_secrets(map);
        let kind = TargetKind::from_shape(map.shape());
        let carries = TargetCapabilities::from_node(kind, map.as_node()).adapter_capabilities();
        let (target, tools) = match kind {
            TargetKind::AgUi => (
                ag_ui::read_target(map, mistakes).map(AgentTarget::AgUi),
                read_client_tools(map, "tools", mistakes),
            ),
            TargetKind::OpenAi => (
                openai::read_target(map, mistakes).map(AgentTarget::OpenAi),
                read_client_tools(map, "tools", mistakes),
            ),
            TargetKind::Http => {
                (http::read_target(map, carries, mistakes).map(AgentTarget::Http), Vec::new())
            }
            TargetKind::Command => {
                let tools = read_client_tools(map, "tools", mistakes);
                (
                    command::read_target(map, around.root, &tools, carries, mistakes)
                        .map(AgentTarget::Command),
                    tools,
                )
            }
            TargetKind::Embedded => {
                let found = embedded::read_target(map, around, mistakes);
                let target = found.map(|(target, own)| {
                    secrets.extend(own);
                    AgentTarget::Embedded(target)
                });
                (target, read_client_tools(map, "tools", mistakes))
            }
            TargetKind::Replay => (
                replay::read_target(map, around.root, mistakes).map(AgentTarget::Replay),
                read_client_tools(map, "tools", mistakes),
            ),
            // Such an agent has no entry in a project file.
            TargetKind::InCode => return None,
        };
        let target = target?;
        secrets.extend(target.password().map(|password| ("endpoint password".to_string(), password)));
        Some(BoundTarget { target, tools, secrets })
    }

    /// Creates the target of an agent implemented by this program.
    pub(super) fn in_code(agent: Arc<dyn CodeAgent>) -> Self {
        BoundTarget { target: AgentTarget::InCode(agent), tools: Vec::new(), secrets: Vec::new() }
    }

    /// Applies the settings of a case.
    #[must_use]
    pub fn for_case(mut self, case: &CaseTarget) -> Self {
        match &mut self.target {
            AgentTarget::AgUi(target) => ag_ui::apply_case(target, case),
            AgentTarget::OpenAi(target) => openai::apply_case(target, case),
            AgentTarget::Http(target) => target.given = common::case_inputs(case),
            AgentTarget::Command(target) => target.given = common::case_inputs(case),
            AgentTarget::Embedded(target) => embedded::apply_case(target, case),
            AgentTarget::Replay(target) => target.conversation_id.clone_from(&case.thread_id),
            AgentTarget::InCode(_) => {}
        }
        self.tools.retain(|tool| !case.tools.iter().any(|own| own.name == tool.name));
        self.tools.extend(case.tools.iter().cloned());
        self
    }

    /// Applies the number of an attempt, from 1. A fixed conversation id gets the number as a suffix, since
    /// the server would otherwise continue the previous conversation.
    #[must_use]
    pub fn for_attempt(mut self, number: usize) -> Self {
        let id = match &mut self.target {
            AgentTarget::AgUi(target) => &mut target.thread_id,
            AgentTarget::OpenAi(target) => &mut target.given.conversation_id,
            AgentTarget::Http(target) => &mut target.given.conversation_id,
            AgentTarget::Command(target) => &mut target.given.conversation_id,
            AgentTarget::Embedded(target) => &mut target.conversation_id,
            // Recordings are replayed unchanged, and agents in this program get a new id per conversation.
            AgentTarget::Replay(_) | AgentTarget::InCode(_) => return self,
        };
        if let Some(id) = id.as_mut().filter(|_| number > 1) {
            id.push_str(&format!("-{number}"));
        }
        self
    }

    /// Sets the name of the case, which selects the recording to replay.
    #[must_use]
    pub fn with_case_name(mut self, suite: String, id: &str) -> Self {
        if let AgentTarget::Replay(target) = &mut self.target {
            target.case = Some(CaseName { suite, id: id.to_string() });
        }
        self
    }

    /// Description and tools of the agent, as far as it provides them, for generators.
    pub fn describe(&self) -> (Option<String>, Vec<Value>) {
        let offered = self.tools.iter().map(|tool| (&tool.name, &tool.description, &tool.parameters));
        match &self.target {
            AgentTarget::Embedded(target) => embedded::describe(target, offered),
            AgentTarget::AgUi(_)
            | AgentTarget::OpenAi(_)
            | AgentTarget::Http(_)
            | AgentTarget::Command(_)
            | AgentTarget::Replay(_)
            | AgentTarget::InCode(_) => (None, offered.map(embedded::tool_json).collect()),
        }
    }

    /// Sets the connectors for names used in options.
    #[must_use]
    pub fn with_connectors(mut self, connectors: BTreeMap<String, ModelConnector>) -> Self {
        match &mut self.target {
            AgentTarget::OpenAi(target) => openai::with_connectors(target, connectors),
            AgentTarget::Embedded(target) => target.connectors = connectors,
            // These targets receive the name only.
            AgentTarget::AgUi(_)
            | AgentTarget::Http(_)
            | AgentTarget::Command(_)
            | AgentTarget::Replay(_)
            | AgentTarget::InCode(_) => {}
        }
        self
    }

    /// Displayable description of the target.
    pub fn summary(&self) -> TargetSummary {
        let at = |path: String| TargetSummary { id: None, connector: None, label: path.clone(), path };
        match &self.target {
            AgentTarget::AgUi(target) => at(without_credentials(&target.endpoint)),
            AgentTarget::OpenAi(target) => {
                let connector = Some(target.model.clone());
                TargetSummary { connector, ..at(without_credentials(&target.endpoint)) }
            }
            AgentTarget::Http(target) => match reqwest::Url::parse(&target.endpoint) {
                Ok(url) if url.password().is_some() => at(without_credentials(&url)),
                Ok(_) | Err(_) => at(target.endpoint.clone()),
            },
            AgentTarget::Command(target) => at(format!("`{}`", target.command.join(" "))),
            AgentTarget::Replay(target) => at(format!("recordings in {}", target.display_path)),
            AgentTarget::InCode(agent) => at(format!("in the test, {}", agent.location())),
            AgentTarget::Embedded(target) => {
                let definition = target.agent.definitions.agent(&target.agent.id);
                TargetSummary {
                    id: Some(target.agent.id.to_string()),
                    path: target.path.display().to_string(),
                    connector: definition.map(|agent| agent.persona.profile.id.to_string()),
                    label: format!("{} (embedded)", target.agent.id),
                }
            }
        }
    }
}

impl AgentTarget {
    /// Opens a session with the agent. Nothing is sent or started yet.
    pub fn open(self, means: &TargetEnv) -> Box<dyn AgentSession> {
        let TargetEnv { http, environment, servers, keep_raw } = means.clone();
        match self {
            AgentTarget::AgUi(target) => {
                let target = hotseat_targets::ag_ui::AgUiTarget { keep_raw, ..target };
                Box::new(hotseat_targets::ag_ui::AgUiSession::open(http, target))
            }
            AgentTarget::OpenAi(target) => {
                let target = hotseat_targets::openai::ChatTarget { keep_raw, ..target };
                Box::new(hotseat_targets::openai::ChatSession::open(http, target))
            }
            AgentTarget::Http(target) => {
                let target = hotseat_targets::http_agent::HttpTarget { keep_raw, ..target };
                Box::new(hotseat_targets::http_agent::HttpSession::open(http, target))
            }
            AgentTarget::Command(target) => {
                let target = hotseat_targets::command::CommandTarget { keep_raw, ..target };
                Box::new(hotseat_targets::command::CommandSession::open(environment, servers, http, target))
            }
            AgentTarget::Embedded(target) => {
                Box::new(hotseat_targets::embedded::EmbeddedSession::open(http, target))
            }
            AgentTarget::Replay(target) => Box::new(hotseat_targets::replay::ReplaySession::open(target)),
            AgentTarget::InCode(agent) => {
                Box::new(hotseat_targets::code_agent::CodeAgentSession::open(&*agent))
            }
        }
    }

    /// Password in the URL of the target.
    fn password(&self) -> Option<String> {
        let url = match self {
            AgentTarget::AgUi(target) => Some(target.endpoint.clone()),
            AgentTarget::OpenAi(target) => Some(target.endpoint.clone()),
            AgentTarget::Http(target) => reqwest::Url::parse(&target.endpoint).ok(),
            AgentTarget::Command(_)
            | AgentTarget::Embedded(_)
            | AgentTarget::Replay(_)
            | AgentTarget::InCode(_) => None,
        };
        url.and_then(|url| url.password().map(str::to_string))
    }
}

/// True if a variable has the name of a secret. Short values such as `true` are not secrets.
pub fn is_secret(name: &str, value: &str) -> bool {
    const MIN_VALUE_BYTES: usize = 8;
    value.len() >= MIN_VALUE_BYTES && is_secret_name(name)
}

/// Text of a JSON value, if it is a text or a number.
pub fn secret_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
