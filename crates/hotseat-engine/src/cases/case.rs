//! Decoded test cases.

pub(super) mod reading;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::named;
use serde_json::{Map, Value, json};

use super::agent_name::AgentName;
use super::assertions::{AssertionBlock, CheckVocabulary};
use super::awaiting_markers::AwaitingMarkers;
use super::brief::SimulatorBrief;
use super::case_lines::{document_lines, test_lines};
use super::checkpoints::Checkpoint;
use super::decoding::{AgentsByName, InheritedSettings, ParseSource};
use super::hook::NamedHook;
use super::input_sources::{CaseSimulator, HumanInput, OnMissingInput};
use super::mcp::{McpSettings, hidden_calls};
use super::mcp_tools::{ListedTools, ToolReference, impossible_tool};
use super::models::ModelSettings;
use super::reliability::ReliabilitySetting;
use super::scenarios::CaseScenario;
use super::shared_settings::SharedSettings;
use super::topics::{CaseTopics, TopicSettings};
use super::variables::{node_mcp_references, uses_hook_variables};
use hotseat_checks::{Check, Pattern};
use hotseat_document::{Diagnostic, DocumentNode, SourceSpan, SourceText};
use hotseat_targets::message::{
    AttachmentError, ClientTool, ContentPart, ConversationMessage, InterruptAnswer, MediaAttachment,
    MediaSource, RequestIdentity, ToolAnswer, ToolFunction, media_parts,
};
use hotseat_targets::recorder::SecretRedactor;

/// A test case.
#[derive(Debug, Clone)]
pub struct TestCase {
    /// Short id that stays the same when the name changes.
    pub id: String,
    /// Display name.
    pub name: String,
    /// True if the name is set explicitly; otherwise it is the id.
    pub named: bool,
    /// Position of the name in the file.
    pub place: SourceSpan,
    /// Reason for skipping the case, if it is skipped.
    pub skip: Option<String>,
    /// What marks with `only` in its file say of the case.
    pub focus: TestFocus,
    /// True if a sweep of faults runs the case.
    pub is_swept: bool,
    /// Time limit for all turns.
    pub timeout: Option<Duration>,
    /// Number of retries on failure, if set.
    pub retries: Option<usize>,
    /// Declared reliability.
    pub reliability: ReliabilitySetting,
    /// Project hook that runs first.
    pub before: Option<NamedHook>,
    /// Project hook that runs last, regardless of the result.
    pub after: Option<NamedHook>,
    /// Number of hooks. Each one is decoded after the previous ones have run.
    pub hooks: usize,
    /// Tags for grouping.
    pub tags: Vec<String>,
    /// Additional data for reports.
    pub metadata: Option<Value>,
    /// The tested agent, if the case or its suite names one.
    pub agent: Option<AgentName>,
    /// Settings for the target.
    pub target: CaseTarget,
    /// MCP servers that the agent uses.
    pub mcp: Arc<McpSettings>,
    /// Language models that are served to the agent.
    pub models: Arc<ModelSettings>,
    /// Messages before the first turn.
    pub opening: ConversationOpening,
    /// Written turns. May be empty if another source provides the input.
    pub turns: Vec<CaseTurn>,
    /// Checkpoints.
    pub checkpoints: Vec<Checkpoint>,
    /// Settings of turns that are not written, whose input comes from a simulator or a human.
    pub turn_defaults: CaseTurn,
    /// Assertions of every turn, to which a turn that a program sends adds its own.
    pub turn_assertions: Arc<AssertionBlock>,
    /// The simulator, if there is one.
    pub simulator: Option<CaseSimulator>,
    /// Topics of the conversation, if it has a graph.
    pub topics: Option<Arc<CaseTopics>>,
    /// Settings for following topics, which also apply to topics declared by a program.
    pub topic_settings: TopicSettings,
    /// The scenario of the case, if there is one.
    pub scenario: Option<Arc<CaseScenario>>,
    /// Human input, if enabled.
    pub interactive: Option<HumanInput>,
    /// True if a simulator continues until all checkpoints are reached, whether or not the agent waits.
    pub is_dynamic: bool,
    /// Maximum number of turns, if set.
    pub max_turns: Option<usize>,
    /// Action when the agent waits for input that no source provides.
    pub on_missing_input: OnMissingInput,
    /// Action when the agent is done and another turn is written.
    pub on_complete: OnComplete,
    /// Markers that show that the agent waits, if it does not report this itself.
    pub signs: Arc<AwaitingMarkers>,
    /// True if the conversation continues after a turn with failed checks.
    pub continue_on_failure: bool,
    /// The program that drives the session, for cases without written turns.
    pub program: Option<CaseProgram>,
    /// Checks of the whole conversation, including inherited ones.
    pub checks: Vec<Check>,
    /// Checks under `final_assertions`.
    pub final_checks: Vec<Check>,
    /// Definitions for resolving assertions. The checks above are already resolved.
    pub vocabulary: Arc<CheckVocabulary>,
    document: Arc<CaseDocument>,
}

/// Whether a test runs because of marks with `only`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TestFocus {
    /// No test of the file is marked.
    #[default]
    Unmarked,
    /// The test or its group is marked.
    Marked,
    /// Other tests of the file are marked, so this one is skipped.
    LeftOut,
}

/// Settings of a case for the target. Unset values are those of the target.
#[derive(Debug, Clone, Default)]
pub struct CaseTarget {
    /// Conversation id.
    pub thread_id: Option<String>,
    /// Initial shared state.
    pub state: Option<Value>,
    /// Context entries.
    pub context: Option<Value>,
    /// Forwarded properties.
    pub forwarded_props: Option<Value>,
    /// Client-side tools in addition to those of the target.
    pub tools: Vec<ClientTool>,
    /// Metadata for the agent, unredacted.
    pub metadata: Option<Value>,
    /// User set by the case.
    pub user: Option<String>,
    /// Team set by the case.
    pub team: Option<String>,
    /// User identity, once resolved.
    pub identity: RequestIdentity,
    /// Positions of the keys that the case sets.
    pub places: BTreeMap<&'static str, SourceSpan>,
}

/// Options sent to the agent with the user's input.
#[derive(Debug, Clone)]
pub struct CallOptions {
    /// All options.
    pub value: Value,
    /// Position in the file.
    pub place: SourceSpan,
    /// Position of the connector name.
    pub connector: Option<SourceSpan>,
}

/// Opening of a conversation.
#[derive(Debug, Clone, Default)]
pub struct ConversationOpening {
    /// Messages before the first turn.
    pub messages: Vec<ConversationMessage>,
    /// `input` as written, if the case has one.
    pub input: Option<Value>,
}

named! {
    /// Action when the agent does not wait for input and another turn is written.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum OnComplete {
        /// Send the turn.
        #[default]
        Continue = "continue",
        /// End the conversation.
        Stop = "stop",
        /// Fail the case.
        Fail = "fail",
    }
}

/// A user input and the checks of its turn.
#[derive(Debug, Clone)]
pub struct CaseTurn {
    /// Text and attachments of the user.
    pub content: Vec<ContentPart>,
    /// Options of the turn, merged onto the options of the case.
    pub options: Option<CallOptions>,
    /// Position in the file.
    pub place: SourceSpan,
    /// Checks of this turn, hard and informational.
    pub checks: Vec<Check>,
    /// Time limit.
    pub timeout: Option<Duration>,
    /// Error that the agent must end the turn with.
    pub expect_error: Option<ExpectedError>,
    /// Answers to interrupts.
    pub resume: Vec<InterruptAnswer>,
}

/// An expected error.
#[derive(Debug, Clone)]
pub struct ExpectedError {
    /// Position in the file.
    pub place: SourceSpan,
    /// Pattern for the message.
    pub message: Option<Pattern>,
    /// Pattern for the code.
    pub code: Option<Pattern>,
}

/// The program that runs the conversation of a case in place of written turns.
#[derive(Debug, Clone, Default)]
pub struct CaseProgram {
    /// Its source code, if known.
    pub source: Option<Arc<str>>,
    /// Its last line in the file of its place, if known.
    pub last_line: Option<u32>,
}

/// Source of a case, kept to decode it again with more variables. The parsed tree is not kept, since few
/// cases need it and it is much larger than the text.
#[derive(Debug)]
struct CaseDocument {
    source: Arc<SourceText>,
    parse: ParseSource,
    inherited: InheritedSettings,
    agents: Arc<AgentsByName>,
    shared: Arc<SharedSettings>,
    folders: Arc<[PathBuf]>,
    /// The name as written, with variables unresolved.
    written_name: String,
    scenario: Option<Arc<CaseScenario>>,
    /// True if cases without a simulator of their own get the default one.
    default_simulator: bool,
}

impl TestCase {
    /// Iterates over all checks of the case.
    pub fn every_check(&self) -> impl Iterator<Item = &Check> {
        let of_turns = self.turns.iter().flat_map(|turn| &turn.checks);
        let of_checkpoints = self.checkpoints.iter().flat_map(|checkpoint| &checkpoint.checks);
        let of_topics = self.topics.iter().flat_map(|topics| topics.every_check());
        let of_brief = self.brief().into_iter().flat_map(|brief| &brief.stop_when);
        let of_turns = of_turns.chain(&self.turn_defaults.checks);
        let of_case = self.checks.iter().chain(&self.final_checks);
        of_case.chain(of_turns).chain(of_checkpoints).chain(of_topics).chain(of_brief)
    }

    /// Mutable iterator over all checks, including those of unwritten turns.
    fn every_check_mut(&mut self) -> impl Iterator<Item = &mut Check> {
        let turns = self.turns.iter_mut().chain([&mut self.turn_defaults]);
        let of_turns = turns.flat_map(|turn| &mut turn.checks);
        let of_checkpoints = self.checkpoints.iter_mut().flat_map(|checkpoint| &mut checkpoint.checks);
        let of_topics = self.topics.iter_mut().flat_map(|topics| Arc::make_mut(topics).checks_mut());
        let brief = self.simulator.as_mut().and_then(|simulator| simulator.brief.as_mut());
        let of_brief = brief.into_iter().flat_map(|brief| &mut Arc::make_mut(brief).stop_when);
        let of_case = self.checks.iter_mut().chain(&mut self.final_checks);
        of_case.chain(of_turns).chain(of_checkpoints).chain(of_topics).chain(of_brief)
    }

    /// Diagnostic of the first assertion about tool calls, or trigger that fires at them, for an agent whose calls nothing shows.
    pub fn hidden_calls(&self) -> Option<Diagnostic> {
        let check =
            self.every_check().find(|check| check.reads_calls()).map(|check| hidden_calls(&check.place));
        let trigger = || self.topics.iter().find_map(|topics| topics.call_triggers().next());
        check.or_else(|| Some(hidden_calls(trigger()?.1)))
    }

    /// Diagnostic of an assertion about faults, if the case injects none.
    pub fn faultless_check(&self) -> Option<Diagnostic> {
        if self.mcp.iter().any(|(_, server)| !server.faults.is_empty()) {
            return None;
        }
        let check = self.every_check().find(|check| check.is_hard() && check.needs_fault())?;
        let message = "this asserts what the agent does after a fault, but the case injects none";
        let help = "add `faults` to the case or to a server, or run it with `--faults sweep`";
        Some(Diagnostic::new(message).at(check.place.clone()).help(help))
    }

    /// Attachments of its turns, and of the messages before the first turn.
    fn attachments(&self) -> impl Iterator<Item = &MediaAttachment> {
        let turns = self.turns.iter().map(|turn| &turn.content);
        let messages = self.opening.messages.iter().map(|message| &message.content);
        turns.chain(messages).flat_map(|content| media_parts(content))
    }

    /// Paths that the case looks for in the folder of its suite first, as written.
    pub fn named_files(&self) -> impl Iterator<Item = &str> {
        let attached = self.attachments().filter_map(|media| match &media.source {
            MediaSource::File(path) => Some(path.as_str()),
            MediaSource::Url(_) | MediaSource::Data(_) => None,
        });
        let template = self.brief().and_then(|brief| brief.template.as_ref());
        let of_services = self.mcp.files().chain(self.models.files()).map(|(path, _)| path);
        attached.chain(template.map(|template| template.path.as_str())).chain(of_services)
    }

    /// The file with the prompt of its simulated user, if it has one.
    fn prompt_file(&self) -> Option<PathBuf> {
        let path = &self.brief()?.template.as_ref()?.path;
        self.document.folders.iter().map(|folder| folder.join(path)).find(|file| file.is_file())
    }

    /// Functions that answer client-side tools and tools of MCP servers.
    pub fn tool_functions(&self) -> impl Iterator<Item = &ToolFunction> {
        let of_client = self.target.tools.iter().flat_map(|tool| &tool.answers);
        self.mcp.written_answers().chain(of_client).filter_map(ToolAnswer::function)
    }

    /// Diagnostics of checks that name unknown MCP servers, tools that a server does not have, or what no tool is called.
    pub fn unknown_names<'c>(&self, checks: impl Iterator<Item = &'c Check>) -> Vec<Diagnostic> {
        let unknown = |check: &'c Check| {
            let tools = check.named_tools().into_iter().flat_map(|named| named.tools);
            if let Some(impossible) = tools.into_iter().find_map(impossible_tool) {
                return vec![impossible.at(check.place.clone())];
            }
            let servers = check.named_tools().into_iter().filter_map(|named| named.server);
            match servers.into_iter().find(|name| !self.mcp.contains(name)) {
                Some(name) => vec![self.mcp.unknown(name).at(check.place.clone())],
                None => self.mcp.unknown_tools(&McpSettings::check_tools(check)),
            }
        };
        checks.flat_map(unknown).collect()
    }

    /// Diagnostics of tools that a check names, but no MCP server of the case has, if nothing else shows the calls of the agent.
    /// Without a diagnostic, such calls would count as not made.
    pub fn unseen_tools(&self, check: &Check, listed: &ListedTools) -> Vec<Diagnostic> {
        if self.models.is_empty() { self.mcp.unseen_tools(check, listed) } else { Vec::new() }
    }

    /// Diagnostics of triggers at calls of tools that no MCP server of the case has, if nothing else shows the calls of the agent:
    /// they could never fire.
    pub fn unseen_triggers(&self, topics: &CaseTopics, listed: &ListedTools) -> Vec<Diagnostic> {
        if !self.models.is_empty() {
            return Vec::new();
        }
        topics
            .call_triggers()
            .flat_map(|(tool, place)| self.mcp.unknown_to_all(vec![tool], place, listed))
            .collect()
    }

    /// Tools of MCP servers that faults and assertions name.
    pub fn tool_references(&self) -> Vec<ToolReference> {
        let of_checks = self.every_check().flat_map(McpSettings::check_tools);
        self.mcp.fault_tools().into_iter().chain(of_checks).collect()
    }

    /// Names of the MCP servers whose addresses the case uses, in its hooks and elsewhere, with the place of the first
    /// use.
    pub fn mcp_references(&self) -> BTreeMap<String, SourceSpan> {
        if !self.uses_mcp_addresses() {
            return BTreeMap::new();
        }
        let node = self.document.node();
        let references = node_mcp_references(&node).into_iter();
        references.map(|(name, text)| (name, text.place(&self.document.source))).collect()
    }

    fn uses_mcp_addresses(&self) -> bool {
        ["${MCP.", "${MODELS."].iter().any(|start| self.document.source.text.contains(start))
    }

    /// True if the user is simulated, or a program writes its texts.
    fn has_user(&self) -> bool {
        self.simulator.is_some() || self.program.is_some()
    }

    /// Returns the topics, if they have checks that are not evaluated in this case, without an explicit setting.
    pub fn topics_with_ignored_checks(&self) -> Option<&CaseTopics> {
        self.topics.as_deref().filter(|topics| topics.has_ignored_checks(self.has_user()))
    }

    /// True if a hard check of a topic is evaluated in this case.
    pub fn topics_affect_verdict(&self) -> bool {
        self.topics.as_ref().is_some_and(|topics| topics.affect_verdict(self.has_user()))
    }

    /// Settings shared with other cases.
    pub fn shared(&self) -> &SharedSettings {
        &self.document.shared
    }

    /// Checks of the whole conversation that are written in the case's own file, without inherited ones.
    pub fn own_checks(&self) -> impl Iterator<Item = &Check> {
        let is_own = |check: &&Check| check.place.file() == self.place.file();
        self.checks.iter().chain(&self.final_checks).filter(is_own)
    }

    /// Brief of the simulated user, if it has one.
    pub fn brief(&self) -> Option<&Arc<SimulatorBrief>> {
        self.simulator.as_ref().and_then(|simulator| simulator.brief.as_ref())
    }

    /// Lines of its file that belong to the case. Scenarios of one case share them.
    pub fn lines(&self) -> RangeInclusive<u32> {
        match &self.program {
            Some(program) => test_lines(&self.place, program.last_line),
            None => document_lines(&self.document.source),
        }
    }

    /// Returns the case run by a program at this position.
    #[must_use]
    pub fn driven_by(self, program: CaseProgram, place: SourceSpan) -> TestCase {
        let unwritten = CaseTurn { place: place.clone(), ..self.turn_defaults };
        TestCase { program: Some(program), place, turn_defaults: unwritten, ..self }
    }

    /// Returns the case of a program with the simulator set by the program.
    #[must_use]
    pub fn with_simulator(self, simulator: Option<CaseSimulator>) -> TestCase {
        TestCase { simulator, ..self }
    }

    /// Returns the case of a program with a scenario declared by the program.
    #[must_use]
    pub fn with_scenario(self, scenario: CaseScenario, redactor: &SecretRedactor) -> TestCase {
        let id = format!("{}@{}", self.id, redactor.text(&scenario.id));
        TestCase { id, scenario: Some(Arc::new(scenario).redacted(redactor)), ..self }
    }

    /// Returns the files that the case reads, each with what it is. Attachments are searched in these folders.
    pub fn files(&self, folders: &[&Path]) -> Vec<(PathBuf, &'static str)> {
        let services = self.mcp.files().chain(self.models.files()).map(|(_, file)| file.to_path_buf());
        let scenario = self.document.scenario.as_deref().or(self.scenario.as_deref());
        let scenario = scenario.and_then(|scenario| Some(scenario.file.as_deref()?.to_path_buf()));
        let attachments = self.attachments().filter_map(|media| media.file_in(folders));
        let services = services.map(|file| (file, "a file of an MCP server or a served model"));
        let scenario = scenario.into_iter().map(|file| (file, "a file of scenarios"));
        let prompt = self.prompt_file().map(|file| (file, "a prompt of a simulated user"));
        let attachments = attachments.map(|file| (file, "an attachment"));
        services.chain(scenario).chain(prompt).chain(attachments).collect()
    }

    /// Returns the case with attachments loaded from the first of these folders that contains them. Fails if
    /// a file is missing or cannot be read: the first one, with its place in the case.
    pub fn with_attachments(
        self: &Arc<Self>,
        folders: &[&Path],
    ) -> Result<Arc<TestCase>, CaseAttachmentError> {
        if self.attachments().next().is_none() {
            return Ok(self.clone());
        }
        let mut case = (**self).clone();
        let turns = case.turns.iter_mut().map(|turn| &mut turn.content);
        let messages = case.opening.messages.iter_mut().map(|message| &mut message.content);
        for part in turns.chain(messages).flatten() {
            if let ContentPart::Media(media) = part {
                let place = media.place.clone();
                media.load(folders).map_err(|source| CaseAttachmentError { place, source })?;
            }
        }
        Ok(Arc::new(case))
    }

    /// The case as written, with variables unresolved.
    pub fn to_json(&self) -> Value {
        self.document.node().to_json()
    }

    /// Returns the case as hooks receive it: as written, with the id and the name of its results, and with its scenario.
    pub fn to_hook_json(&self) -> Value {
        let mut members = match self.to_json() {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        members.insert("id".to_string(), json!(self.id));
        members.insert("name".to_string(), json!(self.name));
        let scenario = self.document.scenario.as_deref().or(self.scenario.as_deref());
        if let Some(CaseScenario { id, name, data, .. }) = scenario {
            members.insert("scenario".to_string(), json!({"id": id, "name": name, "data": data}));
        }
        Value::Object(members)
    }

    /// The id and the name of a case without its scenario, and the name as written. Empty without a scenario.
    pub fn names_without_scenario(&self) -> Vec<String> {
        let Some(scenario) = &self.scenario else { return Vec::new() };
        let id = self.id.strip_suffix(&format!("@{}", scenario.id));
        let name = self.name.strip_suffix(&format!(": {}", scenario.name));
        let mut names: Vec<String> = [id, name].into_iter().flatten().map(str::to_string).collect();
        names.extend(Some(self.document.written_name.clone()).filter(|written| !written.is_empty()));
        names
    }

    /// Source text of the case and its parser.
    pub fn source(&self) -> (&Arc<SourceText>, ParseSource) {
        (&self.document.source, self.document.parse)
    }

    /// Secrets of the servers behind the MCP proxies of the case.
    pub fn server_secrets(&self) -> Vec<(String, String)> {
        self.mcp.iter().flat_map(|(_, server)| server.secrets()).collect()
    }

    /// True if hooks run before the case that may set variables.
    pub fn has_hooks(&self) -> bool {
        self.hooks > 0 || self.before.is_some()
    }

    /// True if it contains variables of hooks. Assertions with such variables may be decoded only when these are known.
    pub fn uses_hook_variables(&self) -> bool {
        self.has_hooks() && uses_hook_variables(&self.document.node())
    }
}

impl CaseDocument {
    fn node(&self) -> DocumentNode {
        let mut node = (self.parse)(&self.source).expect("the same text was parsed before");
        if let Some(scenario) = &self.scenario {
            scenario.fill_variables(&mut node, &self.source);
        }
        node
    }
}

/// An attachment that cannot be loaded, with its place in the case.
#[derive(Debug, thiserror::Error)]
#[error("{source} ({place})")]
pub struct CaseAttachmentError {
    place: SourceSpan,
    source: AttachmentError,
}

impl CaseTurn {
    /// Loads the attachments of the turn from the first of these folders that contains them. Fails if a file
    /// is missing or cannot be read.
    pub fn load_attachments(&mut self, folders: &[&Path]) -> Result<(), AttachmentError> {
        self.content.iter_mut().try_for_each(|part| match part {
            ContentPart::Media(media) => media.load(folders),
            ContentPart::Text(_) => Ok(()),
        })
    }

    /// Creates a turn with only the inherited checks.
    fn with_inherited_checks(
        content: Vec<ContentPart>,
        options: Option<CallOptions>,
        place: SourceSpan,
        every_turn: &AssertionBlock,
    ) -> CaseTurn {
        CaseTurn {
            content,
            options,
            place,
            checks: every_turn.clone().into_checks(),
            timeout: None,
            expect_error: None,
            resume: Vec::new(),
        }
    }
}
