//! Definitions of servers.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hotseat_schema::JsonSchemaError;
use serde_json::{Map, Value, json};

use crate::fault::FaultRule;
use crate::fixed::FixedAnswer;
use crate::recording::McpReplaySource;

/// A server that conversations can reach.
#[derive(Debug, Clone)]
pub struct ServerDefinition {
    /// Name in the path of the URL: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Source of the answers.
    pub kind: ServerKind,
    /// Faults. The first rule that selects a call applies; rules after it count the call, too.
    pub faults: Vec<FaultRule>,
    /// Answer to calls without a fitting answer.
    pub unmatched: UnmatchedPolicy,
    /// Whether the exchanges of a proxied server are recorded, for
    /// [`McpConversation::recording`](crate::McpConversation::recording). [`McpOptions::record`] records those of all servers.
    pub record: bool,
}

impl ServerDefinition {
    /// A mock with these tools.
    pub fn mock(name: impl Into<String>, tools: Vec<McpTool>) -> ServerDefinition {
        let content = MockContent { tools, ..MockContent::default() };
        Self::new(name, ServerKind::Mock(Box::new(content)))
    }

    /// A server without faults.
    pub fn new(name: impl Into<String>, kind: ServerKind) -> ServerDefinition {
        ServerDefinition {
            name: name.into(),
            kind,
            faults: Vec::new(),
            unmatched: UnmatchedPolicy::default(),
            record: false,
        }
    }
}

/// Source of the answers of a server.
#[derive(Debug, Clone)]
pub enum ServerKind {
    /// The definition and the [`ToolAnswerer`](crate::ToolAnswerer) of the conversation.
    Mock(Box<MockContent>),
    /// A real server.
    Proxy(Upstream),
    /// A recording of a real server. Requests get the recorded answers to equal requests, in their order; all others are
    /// [unmatched](crate::McpEventKind::Unmatched).
    Replay(McpReplaySource),
}

/// The contents of a mock.
#[derive(Debug, Clone, Default)]
pub struct MockContent {
    /// Tools in the order of `tools/list`.
    pub tools: Vec<McpTool>,
    /// Resources and templates of resources in the order of their lists.
    pub resources: Vec<McpResource>,
    /// Prompts in the order of `prompts/list`.
    pub prompts: Vec<McpPrompt>,
    /// Instructions of the server for models.
    pub instructions: Option<String>,
    /// Maximum number of entries on one page of a list; `None` for lists without pages.
    pub page_size: Option<usize>,
}

impl MockContent {
    /// Checks that all tools are offered in the end. Fails if a tool is offered after one that does not
    /// exist, or after itself.
    pub fn check_offers(&self) -> Result<(), DefinitionProblem> {
        let indexes: HashMap<&str, usize> =
            self.tools.iter().enumerate().map(|(index, tool)| (tool.name.as_str(), index)).collect();
        // Number of the walk that visited a tool.
        let mut visited: Vec<Option<usize>> = vec![None; self.tools.len()];
        for walk in 0..self.tools.len() {
            let mut index = walk;
            while visited[index].is_none() {
                visited[index] = Some(walk);
                let tool = &self.tools[index];
                let Some(after) = &tool.offered_after else { break };
                let Some(next) = indexes.get(after.as_str()) else {
                    let (tool, after) = (tool.name.clone(), after.clone());
                    return Err(DefinitionProblem::OfferedAfterUnknown { tool, after });
                };
                if visited[*next] == Some(walk) {
                    return Err(DefinitionProblem::NeverOffered(tool.name.clone()));
                }
                index = *next;
            }
        }
        Ok(())
    }
}

/// A tool of a mock.
#[derive(Debug, Clone, PartialEq)]
pub struct McpTool {
    /// Name of the tool.
    pub name: String,
    /// Description for models.
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of `structuredContent`.
    pub output_schema: Option<Value>,
    /// All other members, such as `title` and `annotations`.
    pub extra: Map<String, Value>,
    /// Tool of the same mock that must take effect in a conversation before this one is offered.
    pub offered_after: Option<String>,
}

/// Problem of a definition.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum DefinitionProblem {
    #[error("a name consists of letters, digits, `-`, `_` and `.`")]
    ServerName,
    #[error("two servers have this name")]
    DuplicateServer,
    #[error("the command of the server is empty")]
    EmptyCommand,
    #[error("the URL of the server is invalid: {0}")]
    Url(String),
    #[error("the URL of the server must begin with http:// or https://")]
    UrlScheme,
    #[error("{0}")]
    Header(String),
    #[error("a tool must be an object")]
    NoTool,
    #[error("a tool needs a `name`")]
    NoToolName,
    #[error("`description` of the tool `{0}` must be a text")]
    Description(String),
    #[error("`inputSchema` of the tool `{0}` must be an object")]
    NoSchema(String),
    #[error("`inputSchema` of the tool `{tool}` is invalid{}: {source}", place_words(.source))]
    Schema { tool: String, source: JsonSchemaError },
    #[error("two tools have the name `{0}`")]
    DuplicateTool(String),
    #[error("the tool `{tool}` is offered after `{after}`, which the server does not have")]
    OfferedAfterUnknown { tool: String, after: String },
    #[error("the tool `{0}` is never offered: `offered_after` leads back to it")]
    NeverOffered(String),
}

/// Names the wrong part of a schema.
fn place_words(error: &JsonSchemaError) -> String {
    match error {
        JsonSchemaError::Invalid { pointer, .. } if !pointer.is_empty() => format!(" at {pointer}"),
        JsonSchemaError::Invalid { .. }
        | JsonSchemaError::TooManySteps(_)
        | JsonSchemaError::UnsupportedPattern { .. }
        | JsonSchemaError::NoValidator => String::new(),
    }
}

impl McpTool {
    /// A tool with this name and schema of its arguments.
    pub fn new(name: impl Into<String>, input_schema: Value) -> McpTool {
        McpTool {
            name: name.into(),
            description: None,
            input_schema,
            output_schema: None,
            extra: Map::new(),
            offered_after: None,
        }
    }

    /// Reads an entry of `tools/list`. Members that are null are absent. Fails if the name is missing, or a member has the wrong
    /// type.
    pub fn from_json(tool: &Value) -> Result<McpTool, DefinitionProblem> {
        let mut extra = tool.as_object().cloned().ok_or(DefinitionProblem::NoTool)?;
        extra.retain(|_, member| !member.is_null());
        let Some(Value::String(name)) = extra.shift_remove("name") else {
            return Err(DefinitionProblem::NoToolName);
        };
        let description = match extra.shift_remove("description") {
            None => None,
            Some(Value::String(text)) => Some(text),
            Some(_) => return Err(DefinitionProblem::Description(name)),
        };
        let input_schema = extra.shift_remove("inputSchema").unwrap_or_else(|| json!({"type": "object"}));
        if !input_schema.is_object() {
            return Err(DefinitionProblem::NoSchema(name));
        }
        let output_schema = extra.shift_remove("outputSchema");
        Ok(McpTool { name, description, input_schema, output_schema, extra, offered_after: None })
    }

    /// Writes an entry of `tools/list`.
    pub fn to_json(&self) -> Value {
        let mut tool = Map::new();
        tool.insert("name".to_string(), json!(self.name));
        if let Some(description) = &self.description {
            tool.insert("description".to_string(), json!(description));
        }
        tool.insert("inputSchema".to_string(), self.input_schema.clone());
        if let Some(schema) = &self.output_schema {
            tool.insert("outputSchema".to_string(), schema.clone());
        }
        tool.extend(self.extra.clone());
        Value::Object(tool)
    }
}

/// A resource of a mock, or a template of resources.
#[derive(Debug, Clone, PartialEq)]
pub struct McpResource {
    /// URI, or template of URIs with `{NAME}` for a part without `/`.
    pub id: String,
    /// Whether `id` is a template.
    pub is_template: bool,
    /// Entry of `resources/list` or `resources/templates/list`.
    pub entry: Value,
    /// Answer to `resources/read`.
    pub answer: FixedAnswer,
}

/// A prompt of a mock.
#[derive(Debug, Clone, PartialEq)]
pub struct McpPrompt {
    /// Name of the prompt.
    pub name: String,
    /// Entry of `prompts/list`.
    pub entry: Value,
    /// Answer to `prompts/get`.
    pub answer: FixedAnswer,
}

/// A real server behind a proxy.
#[derive(Debug, Clone)]
pub enum Upstream {
    /// A server that speaks streamable HTTP.
    Url {
        /// Address of the MCP endpoint.
        url: String,
        /// Headers added to each request, for example with credentials.
        headers: BTreeMap<String, String>,
    },
    /// A program that speaks on standard input and output. Each conversation starts its own.
    Command(UpstreamCommand),
}

/// A program that is an MCP server.
#[derive(Debug, Clone, Default)]
pub struct UpstreamCommand {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The complete environment of the program.
    pub environment: BTreeMap<String, String>,
    /// Working directory; `None` is the current one.
    pub folder: Option<PathBuf>,
}

/// Answer to a call that no answer fits. It is reported in both cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnmatchedPolicy {
    /// A JSON-RPC error.
    #[default]
    RpcError,
    /// A result with `isError`, which most agents hand to their model.
    ErrorResult,
}

/// Limits of servers and conversations.
#[derive(Debug, Clone)]
pub struct McpLimits {
    /// Maximum size of the body of a request, and of a line on standard input and output.
    pub max_message_bytes: usize,
    /// Maximum size of an answer of a proxied server.
    pub max_answer_bytes: usize,
    /// Maximum number of calls in one conversation.
    pub max_calls: u64,
    /// Maximum number of requests of one conversation that are open at the same time.
    pub max_open_requests: usize,
    /// Maximum number of sessions of one conversation.
    pub max_sessions: usize,
    /// Maximum number of open connections of all conversations.
    pub max_connections: usize,
    /// Maximum number of events that wait for the receiver. Then calls wait.
    pub max_waiting_events: usize,
    /// Maximum size of the recorded exchanges of one server in one conversation. Later exchanges are not recorded.
    pub max_recorded_bytes: usize,
    /// Time until an open request without an answer is closed.
    pub max_open_time: Duration,
}

impl Default for McpLimits {
    fn default() -> Self {
        McpLimits {
            max_message_bytes: 16 * 1024 * 1024,
            max_answer_bytes: 64 * 1024 * 1024,
            max_calls: 10_000,
            max_open_requests: 256,
            max_sessions: 64,
            max_connections: 1024,
            max_waiting_events: 1024,
            max_recorded_bytes: 64 * 1024 * 1024,
            max_open_time: Duration::from_secs(600),
        }
    }
}

/// Options of all servers of a run.
#[derive(Clone, Default)]
pub struct McpOptions {
    /// Port on the loopback interface; 0 selects a free one.
    pub port: u16,
    /// Limits.
    pub limits: McpLimits,
    /// Whether the exchanges of proxied servers are recorded, for [`McpConversation::recording`](crate::McpConversation::recording).
    pub record: bool,
    /// Starts the programs of proxies; `None` starts them as plain child processes.
    pub launcher: Option<Arc<dyn UpstreamLauncher>>,
}

/// Starts the programs of proxies, for example in process groups.
pub trait UpstreamLauncher: Send + Sync {
    /// Starts a program with piped standard input and output. The program must end when the returned value is
    /// dropped. Fails if the system cannot start it.
    fn launch(&self, command: &UpstreamCommand) -> std::io::Result<LaunchedUpstream>;
}

/// A running program of a proxy.
pub struct LaunchedUpstream {
    /// The process, with piped standard input and output.
    pub child: tokio::process::Child,
    /// Dropped with the process, for example the guard of its process group.
    pub guard: Box<dyn std::any::Any + Send>,
}
