//! Targets: how the agents of the project file are reached.
//!
//! Each kind of target is one file with the shape of its settings and its implementation of [`AgentTarget`], and
//! one line of the list below.

mod ag_ui;
mod capabilities;
mod command;
mod common;
#[cfg_attr(not(feature = "agents"), path = "no_embedded.rs")]
mod embedded;
mod embedded_shape;
mod http;
mod in_code;
mod openai;
mod replay;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::cases::{CaseTarget, Environment, read_client_tools};
use hotseat_document::{Diagnostics, DocumentNode, MapView, Shape, TaggedShapes};
use hotseat_runtime::files::{ConnectorSet, ModelConnector};
use hotseat_targets::connection::http::HttpClient;
use hotseat_targets::message::{ClientTool, attempt_id};
use hotseat_targets::process::ProjectServers;
use hotseat_targets::recorder::{ModelPrices, SecretRedactor};
use hotseat_targets::replay::CaseName;
use hotseat_targets::{AgentSession, ProtocolCapabilities};

use self::capabilities::SupportedOptions;

pub(super) use self::capabilities::TargetCapabilities;
pub(super) use self::common::{HEADERS, read_headers};
pub(super) use self::replay::find as find_recordings;

/// Settings of one agent, and how to open conversations with it.
pub(super) trait AgentTarget: CloneTarget + Debug + Send + Sync {
    /// True if decoding the settings reads the files of an agent. It is then postponed until the agent is used.
    fn reads_files() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Determines the parts of a case that reach the agent, from its definition.
    fn capabilities(node: &DocumentNode) -> TargetCapabilities
    where
        Self: Sized;

    /// Decodes the settings. Returns `None` after reporting an error.
    fn read(input: &mut TargetInput<'_>) -> Option<Self>
    where
        Self: Sized;

    /// Opens a session with the agent. Nothing is sent or started yet.
    fn open(&self, env: &TargetEnv) -> Box<dyn AgentSession>;

    /// Describes what the target contacts.
    fn summary(&self) -> TargetSummary;

    /// Returns the paths that the definition of the agent names: its files, or the words of its command, of which some
    /// may be files of the program.
    fn named_paths(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Returns the reason why the program of the agent cannot be started, if it is missing.
    fn missing_program(&self, _: &Environment) -> Option<String> {
        None
    }

    /// Applies the settings of a case.
    fn apply_case(&mut self, _: &CaseTarget) {}

    /// Returns the conversation id if it is fixed, so that attempts can differ.
    fn fixed_conversation_id(&mut self) -> Option<&mut String> {
        None
    }

    /// Sets the name of the case under test.
    fn set_case_name(&mut self, _: CaseName) {}

    /// Sets the connectors for names used in options.
    fn set_connectors(&mut self, _: BTreeMap<String, ModelConnector>) {}

    /// Returns the connectors from the files of the agent, which replace those of the project.
    fn own_connectors(&self) -> Option<&ConnectorSet> {
        None
    }

    /// Describes the agent for generators.
    fn description(&self) -> Option<String> {
        None
    }

    /// Returns the files that define the agent, if it runs in this process.
    fn written_files(&self) -> Option<&str> {
        None
    }

    /// Returns why the agent never calls this tool of the test, if so.
    fn tool_error(&self, _: &ClientTool) -> Option<String> {
        None
    }

    /// Returns the tools of the agent itself, for generators.
    fn own_tools(&self) -> Vec<Value> {
        Vec::new()
    }
}

/// Returns the prices of connectors, by their names and those of their models.
pub(super) fn connector_prices(connectors: &ConnectorSet) -> ModelPrices {
    let mut prices = ModelPrices::default();
    for (name, model, price) in connectors.prices() {
        prices.add(name, price);
        model.iter().for_each(|model| prices.add(model, price));
    }
    prices
}

/// Clones a target behind a pointer.
pub(super) trait CloneTarget {
    fn clone_target(&self) -> Box<dyn AgentTarget>;
}

impl<T: AgentTarget + Clone + 'static> CloneTarget for T {
    fn clone_target(&self) -> Box<dyn AgentTarget> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn AgentTarget> {
    fn clone(&self) -> Self {
        (**self).clone_target()
    }
}

/// What a target is decoded from.
#[cfg_attr(not(feature = "agents"), expect(dead_code, reason = "embedded agents read all fields"))]
pub(super) struct TargetInput<'a> {
    /// Its entry in the project file.
    map: &'a MapView<'a>,
    /// Folder for relative paths.
    root: &'a Path,
    /// Language models of the project.
    connectors: &'a Arc<ConnectorSet>,
    /// Environment variables.
    environment: &'a BTreeMap<String, String>,
    /// Client-side tools offered to the agent.
    tools: &'a [ClientTool],
    capabilities: ProtocolCapabilities,
    /// Collects errors.
    mistakes: &'a mut Diagnostics,
    /// Collects secret values with their names.
    secrets: &'a mut Vec<(String, String)>,
}

#[derive(Clone, Copy)]
pub(super) struct TargetKind {
    reads_files: fn() -> bool,
    read: fn(&mut TargetInput<'_>) -> Option<Box<dyn AgentTarget>>,
    capabilities: fn(&DocumentNode) -> TargetCapabilities,
}

impl TargetKind {
    const fn new<T: AgentTarget + 'static>() -> TargetKind {
        TargetKind {
            reads_files: T::reads_files,
            read: |input| T::read(input).map(|target| Box::new(target) as Box<dyn AgentTarget>),
            capabilities: T::capabilities,
        }
    }

    fn from_shape(shape: &'static Shape) -> TargetKind {
        let known = KINDS.iter().find(|(known, _)| std::ptr::eq(*known, shape));
        known.expect("every shape of a target has a kind").1
    }
}

/// Lists the kinds of targets: the type of their settings, and their shape.
macro_rules! target_kinds {
    ($($target:ty: $shape:path,)*) => {
        static KINDS: &[(&Shape, TargetKind)] = &[$((&$shape, TargetKind::new::<$target>())),*];

        /// Shapes of targets by type.
        pub static TARGET: TaggedShapes =
            TaggedShapes { key: "type", shapes: &[$(&$shape),*], untagged: None };
    };
}

target_kinds! {
    hotseat_targets::ag_ui::AgUiTarget: ag_ui::SHAPE,
    hotseat_targets::openai::ChatTarget: openai::SHAPE,
    hotseat_targets::http_agent::HttpTarget: http::SHAPE,
    hotseat_targets::command::CommandTarget: command::SHAPE,
    embedded::EmbeddedTarget: embedded_shape::SHAPE,
    hotseat_targets::replay::ReplayTarget: replay::SHAPE,
}

/// Context for decoding an agent.
#[derive(Clone, Copy)]
pub(super) struct AgentReadContext<'a> {
    /// Folder for relative paths.
    pub(super) root: &'a Path,
    /// Language models of the project.
    pub(super) connectors: &'a Arc<ConnectorSet>,
    /// Environment variables.
    pub(super) environment: &'a Environment,
    /// Redactor for the assertions of the agent.
    pub(super) redactor: &'a SecretRedactor,
}

/// A target with its variables resolved.
#[derive(Debug, Clone)]
#[must_use]
pub struct BoundTarget {
    target: Box<dyn AgentTarget>,
    /// Client-side tools offered to the agent.
    pub tools: Vec<ClientTool>,
    /// Secret values with their names.
    pub secrets: Vec<(String, String)>,
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

impl TargetSummary {
    /// Describes a target by its address, command or file.
    fn at(path: String) -> TargetSummary {
        TargetSummary { id: None, connector: None, label: path.clone(), path }
    }
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
    /// True if events keep the raw data received from the agent.
    pub keep_raw: bool,
}

impl TargetCapabilities {
    /// Determines the capabilities of an agent with this shape from its definition.
    pub(super) fn from_node(shape: &'static Shape, node: &DocumentNode) -> TargetCapabilities {
        (TargetKind::from_shape(shape).capabilities)(node)
    }
}

impl BoundTarget {
    /// True if decoding the settings of an agent with this shape reads its files.
    pub(super) fn reads_files(shape: &'static Shape) -> bool {
        (TargetKind::from_shape(shape).reads_files)()
    }

    /// Decodes the tools of the test. They are part of the project file, also where the files of the agent are not read.
    pub(super) fn read_tools(map: &MapView<'_>, mistakes: &mut Diagnostics) -> Vec<ClientTool> {
        let has_tools = map.shape().field("tools").is_some();
        if has_tools { read_client_tools(map, "tools", mistakes) } else { Vec::new() }
    }

    /// Decodes a target whose variables are resolved.
    pub(super) fn read(
        map: &MapView<'_>,
        around: AgentReadContext<'_>,
        mistakes: &mut Diagnostics,
    ) -> Option<Self> {
        let AgentReadContext { root, connectors, environment, .. } = around;
        let mut secrets = common::target_secrets(map);
        let tools = BoundTarget::read_tools(map, mistakes);
        let target = (TargetKind::from_shape(map.shape()).read)(&mut TargetInput {
            map,
            root,
            connectors,
            environment,
            tools: &tools,
            capabilities: TargetCapabilities::from_node(map.shape(), map.as_node()).protocol(),
            mistakes,
            secrets: &mut secrets,
        })?;
        let bound = BoundTarget { target, tools, secrets };
        mistakes.extend(bound.tool_errors(&bound.tools));
        Some(bound)
    }

    /// Diagnostics of tools of the test that the agent never calls.
    pub(super) fn tool_errors<'a>(
        &'a self,
        tools: &'a [ClientTool],
    ) -> impl Iterator<Item = hotseat_document::Diagnostic> + 'a {
        let error = |tool: &ClientTool| {
            let message = self.target.tool_error(tool)?;
            Some(hotseat_document::Diagnostic {
                place: tool.place.clone(),
                ..hotseat_document::Diagnostic::new(message)
            })
        };
        tools.iter().filter_map(error)
    }

    /// Opens a session with the agent. Nothing is sent or started yet.
    pub fn open(&self, env: &TargetEnv) -> Box<dyn AgentSession> {
        self.target.open(env)
    }

    /// Applies the settings of a case.
    pub fn for_case(mut self, case: &CaseTarget) -> Self {
        self.target.apply_case(case);
        self.tools.retain(|tool| !case.tools.iter().any(|own| own.name == tool.name));
        self.tools.extend(case.tools.iter().cloned());
        self
    }

    /// Applies the number of an attempt, from 1. A fixed conversation id gets the number as a suffix, since
    /// the server would otherwise continue the previous conversation.
    pub fn for_attempt(mut self, number: usize) -> Self {
        if let Some(id) = self.target.fixed_conversation_id() {
            *id = attempt_id(id, number);
        }
        self
    }

    /// Sets the name of the case, which selects the recording to replay.
    pub fn with_case_name(mut self, suite: &str, id: &str) -> Self {
        self.target.set_case_name(CaseName { suite: suite.to_string(), id: id.to_string() });
        self
    }

    /// Description and tools of the agent, as far as it provides them, for generators.
    pub fn describe(&self) -> (Option<String>, Vec<Value>) {
        let mut tools = self.target.own_tools();
        let offered = self.tools.iter();
        tools.extend(offered.map(|tool| tool_json(&tool.name, &tool.description, &tool.parameters)));
        (self.target.description(), tools)
    }

    /// Returns the files that define the agent, if it runs in this process.
    pub(super) fn written_files(&self) -> Option<&str> {
        self.target.written_files()
    }

    /// Returns the connectors from the files of the agent, which replace those of the project.
    pub(super) fn own_connectors(&self) -> Option<&ConnectorSet> {
        self.target.own_connectors()
    }

    /// Returns the prices of its own connectors, and those of the project for all others.
    pub fn prices(&self, of_project: &ModelPrices) -> ModelPrices {
        self.own_connectors().map(connector_prices).unwrap_or_default().with_others(of_project)
    }

    /// Sets the connectors for names used in options.
    pub fn with_connectors(mut self, connectors: BTreeMap<String, ModelConnector>) -> Self {
        self.target.set_connectors(connectors);
        self
    }

    /// Displayable description of the target.
    pub fn summary(&self) -> TargetSummary {
        self.target.summary()
    }

    /// Returns the reason why the program of the agent cannot be started, if it is missing.
    pub fn missing_program(&self, environment: &Environment) -> Option<String> {
        self.target.missing_program(environment)
    }

    /// Returns the paths that the definition of the agent names: its files, or the words of its command, of which some
    /// may be files of the program.
    pub fn named_paths(&self) -> Vec<PathBuf> {
        self.target.named_paths()
    }
}

/// Description of a tool for roles.
fn tool_json(name: &str, description: &str, parameters: &Value) -> Value {
    serde_json::json!({"name": name, "description": description, "parameters": parameters})
}
