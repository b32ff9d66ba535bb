//! Agents of the project file.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::agent_targets::{AgentReadContext, BoundTarget, TARGET, TargetCapabilities};
use super::start::StartCommand;
use crate::cases::{
    Environment, InheritedSettings, MODEL_PREFIX, McpAddresses, TestCase, VariableScope, escape, from_millis,
    interpolate, node_mcp_references, uses_hook_variables,
};
use crate::digest::short_digest;
use crate::session::SessionTimeouts;
use hotseat_document::{
    self as document, Diagnostic, Diagnostics, DocumentNode, MapView, NodeValue, SourceText,
};
use hotseat_runtime::files::ConnectorSet;
use hotseat_targets::code_agent::CodeAgent;
use hotseat_targets::message::ClientTool;
use hotseat_targets::recorder::SecretRedactor;
use hotseat_trace::CallVisibility;

/// Default time limit of a turn.
const DEFAULT_TURN_TIMEOUT: Duration = Duration::from_secs(120);
/// Default limit on the time without any received data.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Tells agents of several runs apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentIdentity {
    /// Name in the project, if it has one.
    pub name: Option<String>,
    /// Digest of the recordings or the address that the command line gives in its place.
    pub replaced_by: Option<String>,
}

/// An agent of the project file: `target` or an entry of `agents`.
#[derive(Debug, Clone)]
pub struct ProjectAgent {
    /// Name. `None` for an agent defined under `target`.
    pub name: Option<Arc<str>>,
    /// Purpose of the agent, if the project file describes it.
    pub description: Option<String>,
    /// Suites below this folder test the agent.
    pub folder: Option<PathBuf>,
    /// Settings inherited by every case and turn.
    pub inherited: InheritedSettings,
    /// Start command, if Hotseat starts the agent.
    pub start: Option<StartCommand>,
    /// Time limits.
    pub timeouts: SessionTimeouts,
    /// True if its settings use variables set by hooks, so that they differ between cases.
    pub uses_hook_variables: bool,
    /// MCP servers whose addresses its settings contain, so that they differ between conversations.
    pub mcp_references: Vec<String>,
    /// MCP servers whose addresses its start command contains: all conversations of the process share them.
    pub start_mcp_references: Vec<String>,
    /// Undefined environment variables that make the agent unusable although the file is valid.
    missing_variables: Vec<Diagnostic>,
    /// Parts of a case that reach the agent.
    capabilities: TargetCapabilities,
    root: PathBuf,
    /// Language models of the project.
    connectors: Arc<ConnectorSet>,
    environment: Environment,
    redactor: SecretRedactor,
    source: Arc<SourceText>,
    node: DocumentNode,
    /// True if its settings contain variables of hooks, or undefined ones.
    has_open_variables: bool,
    /// The target, or its diagnostics. A target with files is decoded when the agent is used.
    bound: OnceLock<Result<Box<BoundTarget>, Vec<Diagnostic>>>,
    /// Digest of the recordings or the address that the command line gives in its place.
    replaced_by: Option<String>,
    /// Implementation of an agent in this program, which has no entry in a project file.
    in_code: Option<Arc<dyn CodeAgent>>,
}

impl ProjectAgent {
    /// Decodes an agent whose shape is valid.
    pub(super) fn read(
        name: Option<&str>,
        node: &DocumentNode,
        source: &Arc<SourceText>,
        around: AgentReadContext<'_>,
        mistakes: &mut Diagnostics,
    ) -> ProjectAgent {
        let AgentReadContext { root, connectors, environment, redactor } = around;
        // Environment variables are resolved now, hook variables per case. An undefined variable matters only
        // if the agent is used.
        let mut filled = node.clone();
        let variables = VariableScope { allow_undefined: true, ..VariableScope::new(environment, redactor) };
        let mut unset = Diagnostics::new();
        interpolate(&mut filled, &document::Kind::Tagged(&TARGET), variables, source, &mut unset);
        let unset: Vec<Diagnostic> = unset.into_iter().collect();

        let shape = TARGET.shape_of(node).expect("the shape was checked");
        let map = MapView::from_node(&filled, source, shape).expect("the shape was checked");
        let inherited = InheritedSettings::read(&map, node, shape, source, mistakes);
        let has_start = shape.field("start").is_some() && unset.is_empty();
        let start = if has_start { StartCommand::read(&map, root, mistakes) } else { None };
        if let (None, Some(place)) = (name, map.key_place("folder")) {
            mistakes.report(place, "`folder` is supported only for entries of `agents`");
        }
        // Values with hook variables are validated when they are resolved.
        let has_open_variables = !unset.is_empty() || any_text(&filled, &|text| text.contains("${"));
        let bound = match BoundTarget::reads_files(shape) {
            _ if has_open_variables => OnceLock::new(),
            true => {
                BoundTarget::read_tools(&map, mistakes);
                OnceLock::new()
            }
            false => BoundTarget::read(&map, around, mistakes)
                .map_or_else(OnceLock::new, |bound| OnceLock::from(Ok(Box::new(bound)))),
        };
        let capabilities = TargetCapabilities::from_node(shape, node);
        let limit = |key: &str, default: Duration| {
            let given = shape.field(key).and_then(|_| map.integer(key));
            given.map_or(default, from_millis)
        };
        ProjectAgent {
            name: name.map(Arc::from),
            description: map.text("description").map(str::to_string),
            folder: map.text("folder").map(|folder| root.join(folder)),
            inherited,
            start,
            timeouts: SessionTimeouts {
                turn: limit("timeout_ms", DEFAULT_TURN_TIMEOUT),
                idle: limit("idle_timeout_ms", DEFAULT_IDLE_TIMEOUT),
                case: None,
            },
            uses_hook_variables: uses_hook_variables(node),
            mcp_references: mcp_references(node, |key| key != "start"),
            start_mcp_references: mcp_references(node, |key| key == "start"),
            missing_variables: unset,
            capabilities,
            root: root.to_path_buf(),
            connectors: connectors.clone(),
            environment: environment.clone(),
            redactor: redactor.clone(),
            source: source.clone(),
            node: node.clone(),
            has_open_variables,
            bound,
            replaced_by: None,
            in_code: None,
        }
    }

    /// Diagnostics of tools of the test that the agent never calls.
    pub(super) fn tool_errors(&self, tools: &[ClientTool]) -> Vec<Diagnostic> {
        self.bound_target().into_iter().flat_map(|bound| bound.tool_errors(tools)).collect()
    }

    /// Returns the target or its diagnostics. `None` if its settings are not complete.
    fn bound(&self) -> Option<&Result<Box<BoundTarget>, Vec<Diagnostic>>> {
        (!self.has_open_variables).then(|| {
            self.bound.get_or_init(|| {
                let variables = VariableScope::new(&self.environment, &self.redactor);
                // Patterns of inherited assertions may contain variables of hooks.
                let bound = self.bind(VariableScope { allow_undefined: true, ..variables });
                bound.map(Box::new).map_err(Vec::from_iter)
            })
        })
    }

    fn bound_target(&self) -> Option<&BoundTarget> {
        self.bound()?.as_ref().ok().map(|bound| &**bound)
    }

    /// Returns the settings as written, as JSON, without those of its start and its time limits, and the files that define
    /// an embedded agent.
    pub fn written_settings(&self) -> String {
        let mut written = self.node.to_json();
        if let Some(members) = written.as_object_mut() {
            members.retain(|key, _| {
                !["start", "description", "folder", "timeout_ms", "idle_timeout_ms"].contains(&&**key)
            });
        }
        let files = self.bound_target().and_then(BoundTarget::written_files);
        format!("{written}{}", files.unwrap_or_default())
    }

    /// Names the agent in a sentence.
    pub(crate) fn words(&self) -> String {
        match (&self.name, &self.in_code) {
            (Some(name), _) => format!("agent `{name}`"),
            (None, Some(_)) => "an agent in the test program".to_string(),
            (None, None) => "the target".to_string(),
        }
    }

    /// Creates an agent implemented in this program.
    pub fn in_code(agent: Arc<dyn CodeAgent>) -> ProjectAgent {
        let node: DocumentNode = serde_json::Value::Null.into();
        ProjectAgent {
            name: None,
            description: None,
            folder: None,
            inherited: InheritedSettings::default(),
            start: None,
            timeouts: SessionTimeouts { turn: DEFAULT_TURN_TIMEOUT, idle: DEFAULT_IDLE_TIMEOUT, case: None },
            uses_hook_variables: false,
            mcp_references: Vec::new(),
            start_mcp_references: Vec::new(),
            missing_variables: Vec::new(),
            capabilities: TargetCapabilities::in_code(),
            root: PathBuf::new(),
            connectors: Arc::default(),
            environment: Arc::default(),
            redactor: SecretRedactor::default(),
            source: SourceText::new("", "", 1),
            node,
            has_open_variables: false,
            bound: OnceLock::new(),
            replaced_by: None,
            in_code: Some(agent),
        }
    }

    /// Creates an agent that replays recordings but keeps the assertions and tools of this one. `from` is
    /// relative to the root of `around`.
    pub(super) fn to_replay_agent(
        &self,
        from: &str,
        around: AgentReadContext<'_>,
        mistakes: &mut Diagnostics,
    ) -> ProjectAgent {
        let mut node = replay_node(from);
        if let (NodeValue::Map(entries), NodeValue::Map(own)) = (&mut node.value, &self.node.value) {
            entries
                .extend(own.iter().filter(|entry| KEYS_KEPT_IN_REPLAY.contains(&&*entry.key.text)).cloned());
        }
        let agent = ProjectAgent::read(self.name.as_deref(), &node, &self.source, around, mistakes);
        ProjectAgent { folder: self.folder.clone(), replaced_by: Some(short_digest(from, 8)), ..agent }
    }

    /// Creates an agent that replays recordings, without assertions.
    pub(super) fn from_recordings(
        from: &str,
        around: AgentReadContext<'_>,
        mistakes: &mut Diagnostics,
    ) -> ProjectAgent {
        let source = SourceText::new("-n", "", 1);
        let agent = ProjectAgent::read(None, &replay_node(from), &source, around, mistakes);
        ProjectAgent { replaced_by: Some(short_digest(from, 8)), ..agent }
    }

    /// Creates an AG-UI agent at an address of the command line.
    pub(super) fn ag_ui(
        endpoint: &str,
        around: AgentReadContext<'_>,
        mistakes: &mut Diagnostics,
    ) -> ProjectAgent {
        let node: DocumentNode = serde_json::json!({"endpoint": escape(endpoint)}).into();
        let agent = ProjectAgent::read(None, &node, &SourceText::new("--endpoint", "", 1), around, mistakes);
        ProjectAgent { replaced_by: Some(endpoint_digest(endpoint, around)), ..agent }
    }

    /// Returns this agent at another address, which is not started. `None` after reporting that it has none.
    pub(super) fn at_endpoint(
        &self,
        endpoint: &str,
        around: AgentReadContext<'_>,
        mistakes: &mut Diagnostics,
    ) -> Option<ProjectAgent> {
        let shape = TARGET.shape_of(&self.node).expect("the shape was checked");
        let key = ["endpoint", "base_url"].into_iter().find(|key| shape.field(key).is_some());
        let mut node = self.node.clone();
        let (Some(key), NodeValue::Map(entries)) = (key, &mut node.value) else {
            let message =
                format!("--endpoint: {} has no address, since Hotseat runs it itself", self.words());
            mistakes.push(Diagnostic::new(message).help("select another agent with `-n`"));
            return None;
        };
        entries.retain(|entry| &*entry.key.text != "start");
        let is_own =
            |node: &DocumentNode| matches!(&node.value, NodeValue::String(own) if **own == *endpoint);
        let moves = !self.node.get(key).is_some_and(is_own);
        let replaced_by = moves.then(|| endpoint_digest(endpoint, around));
        let written: DocumentNode = serde_json::Value::from(escape(endpoint)).into();
        match entries.iter_mut().find(|entry| &*entry.key.text == key) {
            Some(entry) => entry.value = DocumentNode { span: entry.value.span.clone(), ..written },
            None => {
                let NodeValue::Map(added) =
                    DocumentNode::from(serde_json::json!({key: escape(endpoint)})).value
                else {
                    return None;
                };
                entries.extend(added);
            }
        }
        let agent = ProjectAgent::read(self.name.as_deref(), &node, &self.source, around, mistakes);
        Some(ProjectAgent { folder: self.folder.clone(), replaced_by, ..agent })
    }

    /// Its identity in other runs.
    pub fn identity(&self) -> AgentIdentity {
        AgentIdentity {
            name: self.name.as_deref().map(str::to_string),
            replaced_by: self.replaced_by.clone(),
        }
    }

    /// The protocol of the agent: its `type`, or `ag_ui`.
    pub fn protocol(&self) -> &str {
        match self.node.get("type").map(|node| &node.value) {
            Some(NodeValue::String(kind)) => kind,
            _ => "ag_ui",
        }
    }

    /// Diagnostics of undefined environment variables.
    pub fn missing_variables(&self) -> impl Iterator<Item = &Diagnostic> {
        self.missing_variables.iter()
    }

    /// Diagnostics that make the agent unusable: undefined environment variables, and mistakes in its files.
    pub fn usage_errors(&self) -> impl Iterator<Item = &Diagnostic> {
        let of_files = self.bound().and_then(|bound| bound.as_ref().err());
        self.missing_variables.iter().chain(of_files.into_iter().flatten())
    }

    /// Resolves the variables of the agent. Fails if a variable is undefined or a resolved value is invalid.
    pub fn bind(&self, variables: VariableScope<'_>) -> Result<BoundTarget, Diagnostics> {
        if let Some(agent) = &self.in_code {
            return Ok(BoundTarget::in_code(agent.clone()));
        }
        let mut node = self.node.clone();
        let mut mistakes = Diagnostics::new();
        interpolate(&mut node, &document::Kind::Tagged(&TARGET), variables, &self.source, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let shape = TARGET.shape_of(&node).expect("the shape was checked");
        let map = MapView::from_node(&node, &self.source, shape).expect("the shape was checked");
        let around = AgentReadContext {
            root: &self.root,
            connectors: &self.connectors,
            environment: &self.environment,
            redactor: variables.redactor,
        };
        let bound = BoundTarget::read(&map, around, &mut mistakes);
        match (bound, mistakes.is_empty()) {
            (Some(target), true) => Ok(target),
            _ => Err(mistakes),
        }
    }

    /// True if recordings answer in place of the agent.
    pub fn is_replayed(&self) -> bool {
        self.has_type("replay")
    }

    /// True if its server may execute tools without showing their calls.
    pub(crate) fn may_hide_calls(&self) -> bool {
        self.has_type("openai")
    }

    fn has_type(&self, name: &str) -> bool {
        matches!(self.node.get("type").map(|kind| &kind.value), Some(NodeValue::String(kind)) if kind == name)
    }

    /// Replaces example addresses of MCP servers and served models by their variables.
    pub(crate) fn hide_example_addresses(&self, text: &str) -> String {
        self.mcp_references.iter().fold(text.to_string(), |text, name| {
            let variable = match name.strip_prefix(MODEL_PREFIX) {
                Some(model) => format!("${{MODELS.{model}.url}}"),
                None => format!("${{MCP.{name}.url}}"),
            };
            text.replace(&McpAddresses::example(name), &variable)
        })
    }

    /// True if its start command contains addresses of MCP servers.
    pub fn starts_with_mcp(&self) -> bool {
        self.start_mcp_references.iter().any(|name| !name.starts_with(MODEL_PREFIX))
    }

    /// True if its start command contains addresses of served models.
    pub fn starts_with_models(&self) -> bool {
        self.start_mcp_references.iter().any(|name| name.starts_with(MODEL_PREFIX))
    }

    /// True if its settings are the same in all conversations.
    pub fn is_same_for_all(&self) -> bool {
        !self.uses_hook_variables && self.mcp_references.is_empty()
    }

    /// True if the agent receives the value of this case key, or the `metadata` of calls.
    pub fn supports(&self, key: &str) -> bool {
        self.capabilities.supports(key)
    }

    /// What shows the tool calls of the agent in a case.
    pub fn call_visibility(&self, case: &TestCase) -> CallVisibility {
        self.capabilities.call_visibility(case)
    }

    /// Parts of a case and options that reach the agent.
    pub(super) fn capabilities(&self) -> &TargetCapabilities {
        &self.capabilities
    }

    /// Connectors that turns may select. `None` if they differ between cases, or its files are invalid.
    pub(super) fn connectors(&self) -> Option<&ConnectorSet> {
        match self.capabilities.own_connectors {
            true => self.bound_target()?.own_connectors(),
            false => Some(&self.connectors),
        }
    }
}

/// Keys of an agent that also apply to its recordings.
const KEYS_KEPT_IN_REPLAY: [&str; 6] =
    ["description", "tools", "timeout_ms", "assert", "turn_assert", "awaiting"];

/// Digest of an address of the command line, without its secrets.
fn endpoint_digest(endpoint: &str, around: AgentReadContext<'_>) -> String {
    short_digest(&around.redactor.text(endpoint), 8)
}

/// Builds the project file entry of an agent that replays recordings.
fn replay_node(from: &str) -> DocumentNode {
    // Escapes paths that look like variables.
    serde_json::json!({"type": "replay", "from": escape(from)}).into()
}

/// MCP servers whose addresses the values of some keys contain.
fn mcp_references(node: &DocumentNode, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    let NodeValue::Map(entries) = &node.value else { return Vec::new() };
    let meant = entries.iter().filter(|entry| is_meant(&entry.key.text));
    meant.flat_map(|entry| node_mcp_references(&entry.value).into_keys()).collect()
}

fn any_text(node: &DocumentNode, fits: &impl Fn(&str) -> bool) -> bool {
    match &node.value {
        NodeValue::String(text) => fits(text),
        NodeValue::List(nodes) => nodes.iter().any(|node| any_text(node, fits)),
        NodeValue::Map(entries) => entries.iter().any(|entry| any_text(&entry.value, fits)),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => false,
    }
}
