//! MCP servers of cases: decoded, and turned into definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotseat_checks::ArgumentPatterns;
use hotseat_document::json::read_bytes;
use hotseat_document::{Diagnostic, Diagnostics, MapView, NodeView, SourceSpan, TaggedShapes};
use hotseat_mcp::{
    ArgumentsMatcher, DefinitionProblem, FaultKind, FaultRule, FaultTrigger, InputRounds, McpRecording,
    McpReplaySource, McpTool, McpToolResult, MockContent, ServerDefinition, ServerKind, TextCleaner,
    UnmatchedPolicy, Upstream, UpstreamCommand,
};
use hotseat_schema::{JsonSchema, JsonSchemaError};
use hotseat_targets::message::{ClientTool, ToolAnswer, ToolReply, ToolReplySource};
use hotseat_targets::recorder::{address_secrets, header_secrets, is_secret};
use serde_json::{Value, json};

use super::answer_shape::MCP_TOOL_ANSWER;
use super::headers::read_header_texts;
use super::limits::from_millis;
use super::mcp_shape::{
    CASE_FAULT, FAULT_ACTION, MCP_CHANGE, MCP_FAULT, MCP_MOCK, MCP_PROXY, MCP_SERVER, MCP_TOOL,
};
use super::patterns::read_argument_patterns;
use super::script::{read_answers, read_tool_answer};
use super::services::{Service, ServiceEntry, ServiceFile, Services, only_fault, read_trigger};

/// Maximum size of a file with tools.
const MAX_TOOLS_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum size of a recording.
const MAX_RECORDING_BYTES: u64 = 256 * 1024 * 1024;

/// MCP servers by name.
pub type McpSettings = Services<McpServer>;

/// An MCP server of the test.
#[derive(Debug, Clone)]
pub struct McpServer {
    /// Position of its definition.
    pub place: SourceSpan,
    source: McpSource,
    /// Faults, in order of precedence.
    pub faults: Vec<McpFault>,
    /// True if a call without a matching answer gets an error result instead of failing the case.
    pub answers_unmatched: bool,
}

impl McpServer {
    /// Returns the secrets in the headers and the address of a proxied server, or in the environment of its program, by name.
    pub fn secrets(&self) -> Vec<(String, String)> {
        let (url, headers) = match &self.source {
            McpSource::Proxy { upstream: Upstream::Url { url, headers }, .. } => (url, headers),
            McpSource::Proxy { upstream: Upstream::Command(command), .. } => {
                let secrets = command.environment.iter().filter(|(name, value)| is_secret(name, value));
                return secrets.map(|(name, value)| (name.clone(), value.clone())).collect();
            }
            _ => return Vec::new(),
        };
        let of = |(name, value): (&String, &String)| {
            header_secrets(name, value).into_iter().map(|secret| (name.clone(), secret)).collect::<Vec<_>>()
        };
        let of_address =
            address_secrets(url).into_iter().map(|(part, secret)| (format!("url {part}"), secret));
        headers.iter().flat_map(of).chain(of_address).collect()
    }
}

/// Source of the answers of a server.
#[derive(Debug, Clone)]
enum McpSource {
    Mock {
        tools: Vec<MockTool>,
        list: Option<Arc<ServiceFile<Vec<McpTool>>>>,
        instructions: Option<String>,
        page_size: Option<usize>,
    },
    Proxy {
        upstream: Upstream,
        /// File of the recording, relative to the project file.
        record: Option<PathBuf>,
    },
    Replay(Arc<ServiceFile<McpRecording>>),
}

/// A tool of a mock. What is not set is taken from the tool of the same name that it replaces.
#[derive(Debug, Clone)]
struct MockTool {
    name: String,
    description: Option<String>,
    input_schema: Option<Value>,
    output_schema: Option<Value>,
    annotations: Option<Value>,
    offered_after: Option<OfferedAfter>,
    answers: Vec<MockAnswer>,
}

/// The tool that must take effect before another one is offered.
#[derive(Debug, Clone)]
pub(super) struct OfferedAfter {
    pub(super) tool: String,
    pub(super) place: SourceSpan,
}

/// A tool of a mock that is never offered.
pub(super) struct UnofferedTool {
    pub(super) problem: DefinitionProblem,
    pub(super) after: OfferedAfter,
    /// Names of all tools of the mock.
    pub(super) names: Vec<String>,
}

/// An answer of a tool of a mock.
#[derive(Debug, Clone)]
struct MockAnswer {
    answer: ToolAnswer,
    place: SourceSpan,
    /// Questions that precede it.
    ask: InputRounds,
}

/// The answers of a mock.
#[derive(Debug, Default)]
pub struct MockAnswers {
    /// The tools with their answers.
    pub tools: Vec<ClientTool>,
    /// Questions that precede the answers of each tool, in their order.
    pub questions: BTreeMap<String, Vec<InputRounds>>,
}

/// Settings of a run that definitions of servers need.
pub struct DefinitionContext<'a> {
    /// Environment of programs.
    pub environment: &'a BTreeMap<String, String>,
    /// Folder of the project file.
    pub root: &'a Path,
    /// Key of the conversation in recordings.
    pub conversation: String,
    /// Removes secrets from requests before they are compared with a recording.
    pub cleaner: TextCleaner,
    /// What proxies do, regardless of their settings.
    pub proxies: Option<ProxyMode>,
}

/// What a tool says about calls that are repeated with the same arguments, in its `annotations`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepeatHint {
    /// It has no effect.
    ReadOnly,
    /// It has no further effect.
    Idempotent,
    /// Nothing.
    None,
}

/// What the proxies of a case do if the run has cassettes.
#[derive(Debug, Clone)]
pub enum ProxyMode {
    /// Record.
    Record,
    /// Answer from these recordings, by the name of the server.
    Replay(BTreeMap<String, Arc<McpRecording>>),
}

/// A fault in calls of a server.
#[derive(Debug, Clone)]
pub struct McpFault {
    /// Position in the file.
    pub place: SourceSpan,
    /// Position of the name of its tool, or else of the fault.
    pub(super) tool_place: SourceSpan,
    /// The rule.
    pub rule: FaultRule,
}

/// Patterns for the arguments of a call.
#[derive(Debug)]
struct ArgumentCondition(ArgumentPatterns);

impl ArgumentsMatcher for ArgumentCondition {
    fn matches(&self, arguments: &Value) -> bool {
        self.0.all_match(arguments)
    }
}

impl McpSettings {
    /// Adds the faults of a case.
    pub(super) fn with_case_faults(
        self: Arc<Self>,
        case: &MapView<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Arc<McpSettings> {
        let Some(entries) = case.list("faults") else { return self };
        let mut settings = (*self).clone();
        for entry in entries {
            let Some(map) = entry.map(&CASE_FAULT) else { continue };
            let only = settings.by_name.keys().next().filter(|_| settings.by_name.len() == 1).cloned();
            let Some(name) = map.text("server").map(str::to_string).or(only) else {
                let message = "this fault needs a `server`: the case has none, or several, under `mcp`";
                diagnostics.report(map.place(), message);
                continue;
            };
            let place = map.place_near("server");
            match settings.by_name.get_mut(&name) {
                Some(server) => server.faults.extend(McpFault::read(&map, diagnostics)),
                None => diagnostics.push(settings.unknown(&name).at(place)),
            }
        }
        Arc::new(settings)
    }

    /// Names of the tools of a server, if the test defines them all.
    pub(super) fn defined_tools(&self, name: &str) -> Option<Vec<String>> {
        match &self.by_name.get(name)?.source {
            McpSource::Mock { tools, list, .. } => {
                let recorded = match list {
                    // A file that cannot be read has a diagnostic of its own.
                    Some(file) => file.content()?.as_slice(),
                    None => &[],
                };
                let recorded = recorded.iter().map(|tool| tool.name.clone());
                Some(recorded.chain(tools.iter().map(|tool| tool.name.clone())).collect())
            }
            McpSource::Replay(file) => {
                let tools = file.content()?.entries("tools/list", "tools");
                let names = tools.iter().filter_map(|tool| Some(tool.get("name")?.as_str()?.to_string()));
                // A recording without a list does not say which tools there are.
                Some(names.collect()).filter(|names: &Vec<String>| !names.is_empty())
            }
            McpSource::Proxy { .. } => None,
        }
    }

    /// Returns what a tool says about calls that are repeated.
    pub fn repeat_hint(&self, server: &str, tool: &str) -> RepeatHint {
        let annotations = self.by_name.get(server).and_then(|server| match &server.source {
            McpSource::Replay(file) => {
                let tools = file.content()?.entries("tools/list", "tools");
                tools.iter().find(|entry| entry["name"] == tool)?.get("annotations").cloned()
            }
            _ => server.tools().into_iter().find(|known| known.name == tool)?.annotations,
        });
        let annotations = annotations.unwrap_or_default();
        match (&annotations["readOnlyHint"], &annotations["idempotentHint"]) {
            (Value::Bool(true), _) => RepeatHint::ReadOnly,
            (_, Value::Bool(true)) => RepeatHint::Idempotent,
            _ => RepeatHint::None,
        }
    }

    /// Names of the proxied servers.
    pub fn proxies(&self) -> impl Iterator<Item = &str> {
        let proxied =
            self.by_name.iter().filter(|(_, server)| matches!(server.source, McpSource::Proxy { .. }));
        proxied.map(|(name, _)| name.as_str())
    }

    /// Servers whose exchanges are recorded, with their files, relative to the project file.
    pub fn recorded(&self) -> BTreeMap<String, PathBuf> {
        let recorded = self.by_name.iter().filter_map(|(name, server)| match &server.source {
            McpSource::Proxy { record: Some(path), .. } => Some((name.clone(), path.clone())),
            _ => None,
        });
        recorded.collect()
    }

    /// Definitions of the servers.
    pub fn definitions(&self, context: &DefinitionContext<'_>) -> Vec<ServerDefinition> {
        self.by_name.iter().map(|(name, server)| server.definition(name, context)).collect()
    }

    /// The answers that the test contains, of all mocks.
    pub(super) fn written_answers(&self) -> impl Iterator<Item = &ToolAnswer> {
        let tools = self.by_name.values().flat_map(|server| match &server.source {
            McpSource::Mock { tools, .. } => tools.as_slice(),
            McpSource::Proxy { .. } | McpSource::Replay(_) => &[],
        });
        tools.flat_map(|tool| &tool.answers).map(|answer| &answer.answer)
    }

    /// The answers of the mocks by the name of the server.
    pub fn answers(&self) -> BTreeMap<String, MockAnswers> {
        self.by_name.iter().map(|(name, server)| (name.clone(), server.answers())).collect()
    }
}

impl Service for McpServer {
    const KEY: &'static str = "mcp";
    const LABEL: &'static str = "server";
    const NOUN: &'static str = "MCP server";
    const SHAPES: &'static TaggedShapes = &MCP_SERVER;
    const IS_AVAILABLE: bool = cfg!(feature = "mcp");

    fn read(entry: ServiceEntry<'_>, above: &McpSettings, diagnostics: &mut Diagnostics) -> Option<Self> {
        let ServiceEntry { name, place, map, .. } = entry;
        let server = match (std::ptr::eq(map.shape(), &MCP_CHANGE), above.by_name.get(name)) {
            (true, Some(server)) => server.clone().changed(name, &map, diagnostics),
            (true, None) => {
                let wrong = above.unknown(name).at(place);
                diagnostics.push(wrong.help("define it with `type: mock`, `type: proxy` or `type: replay`"));
                return None;
            }
            (false, _) => McpServer::defined(&map, place.clone(), diagnostics)?,
        };
        let definition = server.definition(name, &DefinitionContext::for_validation());
        if let Err(error) = definition.validate() {
            diagnostics.report(place, error.to_string());
        }
        Some(server)
    }

    fn load_file(&self, folders: &[PathBuf], diagnostics: &mut Diagnostics) {
        match &self.source {
            McpSource::Mock { list: Some(file), .. } => file.load(folders, diagnostics, load_tools),
            McpSource::Replay(file) => file.load(folders, diagnostics, load_recording),
            McpSource::Mock { list: None, .. } | McpSource::Proxy { .. } => {}
        }
    }

    fn file(&self) -> Option<(&str, &Path)> {
        match &self.source {
            McpSource::Mock { list, .. } => list.as_ref()?.found(),
            McpSource::Replay(file) => file.found(),
            McpSource::Proxy { .. } => None,
        }
    }
}

impl McpServer {
    /// True if it passes calls on to another server.
    pub fn is_proxy(&self) -> bool {
        matches!(self.source, McpSource::Proxy { .. })
    }

    fn defined(map: &MapView<'_>, place: SourceSpan, diagnostics: &mut Diagnostics) -> Option<McpServer> {
        let source = match map.shape() {
            shape if std::ptr::eq(shape, &MCP_MOCK) => read_mock(map, diagnostics),
            shape if std::ptr::eq(shape, &MCP_PROXY) => McpSource::Proxy {
                upstream: read_upstream(map, diagnostics)?,
                record: map.text("record").map(PathBuf::from),
            },
            _ => McpSource::Replay(ServiceFile::read(map, "from")?),
        };
        Some(McpServer {
            place,
            source,
            faults: read_faults(map, diagnostics),
            answers_unmatched: map.shape().field("unmatched").is_some()
                && map.text("unmatched") == Some("error_result"),
        })
    }

    /// Returns an inherited server with changes.
    fn changed(mut self, name: &str, map: &MapView<'_>, diagnostics: &mut Diagnostics) -> McpServer {
        let written = read_tools(map, diagnostics);
        match &mut self.source {
            McpSource::Mock { tools, .. } => written.into_iter().for_each(|tool| tool.add_to(tools)),
            McpSource::Proxy { .. } | McpSource::Replay(_) if !written.is_empty() => {
                let message = format!("the server `{name}` is no mock, so its tools cannot be replaced");
                diagnostics.report(map.key_place("tools"), message);
            }
            McpSource::Proxy { .. } | McpSource::Replay(_) => {}
        }
        self.faults.extend(read_faults(map, diagnostics));
        self.answers_unmatched =
            map.text("unmatched").map_or(self.answers_unmatched, |policy| policy == "error_result");
        self
    }

    /// Tools of a mock: the recorded ones, then the written ones.
    fn tools(&self) -> Vec<MockTool> {
        let McpSource::Mock { tools: written, list, .. } = &self.source else { return Vec::new() };
        let recorded = list.as_ref().and_then(|file| file.content());
        let mut tools: Vec<MockTool> =
            recorded.into_iter().flat_map(|tools| tools.iter()).map(MockTool::from_recorded).collect();
        written.iter().cloned().for_each(|tool| tool.add_to(&mut tools));
        tools
    }

    /// Returns a tool that waits for an unknown tool, or for itself.
    pub(super) fn unoffered_tool(&self, server: &str) -> Option<UnofferedTool> {
        let McpSource::Mock { tools, list, .. } = &self.source else { return None };
        // A file that cannot be read has a diagnostic of its own.
        let is_read = list.as_ref().is_none_or(|file| file.content().is_some());
        if !is_read || tools.iter().all(|tool| tool.offered_after.is_none()) {
            return None;
        }
        let ServerKind::Mock(content) = self.definition(server, &DefinitionContext::for_validation()).kind
        else {
            return None;
        };
        let problem = content.check_offers().err()?;
        let (DefinitionProblem::OfferedAfterUnknown { tool, .. } | DefinitionProblem::NeverOffered(tool)) =
            &problem
        else {
            return None;
        };
        let after = tools.iter().find(|known| known.name == *tool)?.offered_after.clone()?;
        let names = content.tools.into_iter().map(|tool| tool.name).collect();
        Some(UnofferedTool { problem, after, names })
    }

    /// Diagnostics of answers that clients would refuse, because they violate the output schema of their tool.
    pub(super) fn refused_answers(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for tool in self.tools() {
            // The validator of a build may be missing.
            let schema = tool.output_schema.as_ref().and_then(|schema| JsonSchema::compile(schema).ok());
            let Some(schema) = schema else { continue };
            for answer in &tool.answers {
                let violations = answer.violations(&schema);
                if !violations.is_empty() {
                    let (name, violations) = (&tool.name, violations.join("; "));
                    let message = format!(
                        "clients would refuse this answer because of the `outputSchema` of `{name}`: {violations}"
                    );
                    let help = "write an object as `content` that the schema allows, or remove the schema";
                    found.push(Diagnostic::new(message).at(answer.place.clone()).help(help));
                }
            }
        }
        found
    }

    fn answers(&self) -> MockAnswers {
        let mut answers = MockAnswers::default();
        for tool in self.tools() {
            let questions = tool.answers.iter().map(|answer| answer.ask.clone()).collect();
            answers.questions.insert(tool.name.clone(), questions);
            answers.tools.push(ClientTool {
                name: tool.name,
                description: tool.description.unwrap_or_default(),
                parameters: tool.input_schema.unwrap_or(Value::Null),
                answers: tool.answers.into_iter().map(|answer| answer.answer).collect(),
                url: None,
                place: None,
            });
        }
        answers
    }

    fn definition(&self, name: &str, context: &DefinitionContext<'_>) -> ServerDefinition {
        let replay = |recording: Arc<McpRecording>| {
            ServerKind::Replay(McpReplaySource {
                recording,
                cleaner: context.cleaner.clone(),
                conversation: Some(context.conversation.clone()),
            })
        };
        let kind = match &self.source {
            McpSource::Proxy { .. } if let Some(ProxyMode::Replay(recordings)) = &context.proxies => {
                replay(recordings.get(name).cloned().unwrap_or_default())
            }
            McpSource::Mock { list, instructions, page_size, .. } => {
                let recorded = list.as_ref().and_then(|file| file.content());
                let tools = self.tools().into_iter().map(|tool| {
                    let known = recorded.and_then(|all| all.iter().find(|known| known.name == tool.name));
                    tool.definition(known)
                });
                ServerKind::Mock(Box::new(MockContent {
                    tools: tools.collect(),
                    instructions: instructions.clone(),
                    page_size: *page_size,
                    ..MockContent::default()
                }))
            }
            McpSource::Proxy { upstream: Upstream::Command(command), .. } => {
                let mut environment = context.environment.clone();
                environment.extend(command.environment.clone());
                let folder = Some(context.root.join(command.folder.clone().unwrap_or_default()));
                let command = UpstreamCommand { argv: command.argv.clone(), environment, folder };
                ServerKind::Proxy(Upstream::Command(command))
            }
            McpSource::Proxy { upstream, .. } => ServerKind::Proxy(upstream.clone()),
            McpSource::Replay(file) => replay(file.content().cloned().unwrap_or_default()),
        };
        ServerDefinition {
            faults: self.faults.iter().map(|fault| fault.rule.clone()).collect(),
            unmatched: match self.answers_unmatched {
                true => UnmatchedPolicy::ErrorResult,
                false => UnmatchedPolicy::RpcError,
            },
            record: match &self.source {
                McpSource::Proxy { record, .. } => {
                    record.is_some() || matches!(context.proxies, Some(ProxyMode::Record))
                }
                _ => false,
            },
            ..ServerDefinition::new(name, kind)
        }
    }
}

impl MockAnswer {
    fn read(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<MockAnswer> {
        let ask = match map.json("ask").as_ref().map(InputRounds::from_json) {
            None => InputRounds::default(),
            Some(Ok(ask)) => ask,
            Some(Err(problem)) => {
                diagnostics.report(map.place_of("ask"), problem.to_string());
                return None;
            }
        };
        let place = map.place_near("content");
        Some(MockAnswer { answer: read_tool_answer(map, diagnostics)?, place, ask })
    }

    /// Returns what a written answer violates of the output schema of its tool. Variables may be filled in later.
    fn violations(&self, schema: &JsonSchema) -> Vec<String> {
        match &self.answer.reply {
            ToolReplySource::Written(ToolReply::Content(content)) if !content.to_string().contains("${") => {
                McpToolResult::from_value(content.clone()).output_violations(schema)
            }
            _ => Vec::new(),
        }
    }
}

impl MockTool {
    fn from_recorded(tool: &McpTool) -> MockTool {
        MockTool {
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema: Some(tool.input_schema.clone()),
            output_schema: tool.output_schema.clone(),
            annotations: tool.extra.get("annotations").cloned(),
            offered_after: None,
            answers: Vec::new(),
        }
    }

    /// Adds the tool, or replaces what it sets of the tool with its name.
    fn add_to(self, tools: &mut Vec<MockTool>) {
        let Some(known) = tools.iter_mut().find(|known| known.name == self.name) else {
            tools.push(self);
            return;
        };
        *known = MockTool {
            description: self.description.or(known.description.take()),
            input_schema: self.input_schema.or(known.input_schema.take()),
            output_schema: self.output_schema.or(known.output_schema.take()),
            annotations: self.annotations.or(known.annotations.take()),
            offered_after: self.offered_after.or(known.offered_after.take()),
            answers: if self.answers.is_empty() { std::mem::take(&mut known.answers) } else { self.answers },
            name: self.name,
        };
    }

    fn definition(self, recorded: Option<&McpTool>) -> McpTool {
        let mut extra = recorded.map(|tool| tool.extra.clone()).unwrap_or_default();
        extra.extend(self.annotations.map(|annotations| ("annotations".to_string(), annotations)));
        McpTool {
            name: self.name,
            description: self.description,
            input_schema: self.input_schema.unwrap_or_else(|| json!({"type": "object"})),
            output_schema: self.output_schema,
            extra,
            offered_after: self.offered_after.map(|after| after.tool),
        }
    }
}

impl DefinitionContext<'_> {
    /// Context for definitions that are only validated.
    fn for_validation() -> DefinitionContext<'static> {
        static NO_ENVIRONMENT: BTreeMap<String, String> = BTreeMap::new();
        DefinitionContext {
            environment: &NO_ENVIRONMENT,
            root: Path::new(""),
            conversation: String::new(),
            cleaner: TextCleaner::default(),
            proxies: None,
        }
    }
}

/// Decodes the tools in the answer of a real server to `tools/list`.
fn load_tools(file: &ServiceFile<Vec<McpTool>>, path: &Path) -> Result<Vec<McpTool>, Diagnostics> {
    let text = file.text(path, MAX_TOOLS_FILE_BYTES)?;
    let value = read_bytes(text.as_bytes()).map_err(|error| file.wrong(&error.to_string()))?;
    let entries = [&value["result"]["tools"], &value["tools"], &value].into_iter().find_map(Value::as_array);
    let entries = entries.ok_or_else(|| file.wrong("has no list `tools`"))?;
    let tools = entries.iter().map(McpTool::from_json).collect::<Result<Vec<_>, _>>();
    let tools = tools.map_err(|error| file.wrong(&format!("is invalid: {error}")))?;
    let definition = ServerDefinition::mock("tools", tools.clone());
    definition.validate().map_err(|error| file.wrong(&format!("is invalid: {error}")))?;
    Ok(tools)
}

fn load_recording(file: &ServiceFile<McpRecording>, path: &Path) -> Result<McpRecording, Diagnostics> {
    let text = file.text(path, MAX_RECORDING_BYTES)?;
    McpRecording::read(&text).map_err(|error| file.wrong(&format!("is invalid: {error}")))
}

impl McpFault {
    fn read(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<McpFault> {
        let action = map.get("do")?;
        let arguments = read_argument_patterns(map, "args_match", diagnostics);
        let arguments = (!arguments.0.is_empty())
            .then(|| Arc::new(ArgumentCondition(arguments)) as Arc<dyn ArgumentsMatcher>);
        let mut trigger = read_trigger(map, diagnostics)?;
        let kind = read_fault_kind(action, diagnostics)?;
        if let (FaultKind::Stale, FaultTrigger::Nth(1)) = (&kind, trigger) {
            if map.get("nth").is_some() {
                let message =
                    "the first call has no previous answer, so it never gets `stale`: begin with `nth: 2`";
                diagnostics.report(map.place_of("nth"), message);
                return None;
            }
            trigger = FaultTrigger::Nth(2);
        }
        let tool = map.text("tool").map(str::to_string);
        let tool_place = map.place_near("tool");
        Some(McpFault { place: map.place(), tool_place, rule: FaultRule { tool, arguments, trigger, kind } })
    }
}

fn read_fault_kind(view: NodeView<'_>, diagnostics: &mut Diagnostics) -> Option<FaultKind> {
    let rpc_error = |code: i64| FaultKind::RpcError { code, message: "injected fault".to_string() };
    if let Some(word) = view.text() {
        return FaultKind::with_defaults(word);
    }
    let map = view.map(&FAULT_ACTION)?;
    let time = |key: &str| map.integer(key).map(from_millis);
    let kinds = [
        time("delay_ms").map(FaultKind::Delay),
        time("slow_stream_ms").map(|time: Duration| FaultKind::SlowStream(time)),
        map.integer("http").and_then(|status| u16::try_from(status).ok()).map(FaultKind::Http),
        map.integer("rpc_error").map(rpc_error),
        map.text("is_error").map(|text| FaultKind::IsError { text: text.to_string() }),
        map.size("huge_bytes").map(|bytes| FaultKind::Huge { bytes }),
    ];
    only_fault(kinds, &map, diagnostics)
}

fn read_faults(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Vec<McpFault> {
    map.maps("faults", &MCP_FAULT).filter_map(|entry| McpFault::read(&entry, diagnostics)).collect()
}

fn read_mock(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> McpSource {
    let list = ServiceFile::read(map, "tools_from");
    let tools = read_tools(map, diagnostics);
    if list.is_none() && tools.is_empty() {
        diagnostics.report(map.place(), "a mock needs `tools` or `tools_from`");
    }
    McpSource::Mock {
        tools,
        list,
        instructions: map.text("instructions").map(str::to_string),
        page_size: map.size("page_size"),
    }
}

fn read_tools(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Vec<MockTool> {
    if map.shape().field("tools").is_none() {
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    let mut tools = Vec::new();
    for entry in map.maps("tools", &MCP_TOOL) {
        let name = entry.text("name").unwrap_or_default().to_string();
        if !names.insert(name.clone()) {
            diagnostics.report(entry.place_of("name"), format!("tool `{name}` is defined twice"));
        }
        tools.push(MockTool {
            name,
            description: entry.text("description").map(str::to_string),
            input_schema: entry.json("inputSchema"),
            output_schema: read_output_schema(&entry, diagnostics),
            annotations: entry.json("annotations"),
            offered_after: entry.text("offered_after").map(|tool| OfferedAfter {
                tool: tool.to_string(),
                place: entry.place_near("offered_after"),
            }),
            answers: read_answers(&entry, "answers", &MCP_TOOL_ANSWER, diagnostics, MockAnswer::read),
        });
    }
    tools
}

/// Reads the schema of the results of a tool. One that is no JSON Schema would check nothing.
fn read_output_schema(tool: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Value> {
    let schema = tool.json("outputSchema")?;
    if let Err(JsonSchemaError::Invalid { message, .. }) = JsonSchema::compile(&schema) {
        diagnostics.report(tool.place_of("outputSchema"), format!("this is not a JSON Schema: {message}"));
    }
    Some(schema)
}

fn read_upstream(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Upstream> {
    let command: Vec<String> = map.texts("command").map(str::to_string).collect();
    match (command.is_empty(), map.text("url")) {
        (false, None) => Some(Upstream::Command(UpstreamCommand {
            argv: command,
            environment: map.text_entries("env").collect(),
            folder: Some(PathBuf::from(map.text("cwd").unwrap_or("."))),
        })),
        (true, Some(url)) => Some(Upstream::Url {
            url: url.to_string(),
            headers: read_header_texts(map, diagnostics)
                .into_iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
        }),
        _ => {
            diagnostics.report(map.place(), "a proxy needs either a `command` or a `url`");
            None
        }
    }
}

/// Advice for agents whose tool calls nothing shows.
pub const SHOW_CALLS: &str = "map them in the project file (`map: tool_calls` of an HTTP agent), or let the agent use servers under `mcp` or models under `models`";

/// Diagnostic of an assertion or a trigger about tool calls that nothing shows.
pub fn hidden_calls(place: &SourceSpan) -> Diagnostic {
    let message = "this depends on tool calls, but the agent's calls are not visible";
    Diagnostic::new(message).at(place.clone()).help(SHOW_CALLS)
}
