//! Decoded test cases.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::named;
use serde_json::Value;

use super::agent_name::AgentName;
use super::assertions::{AssertionBlock, CheckVocabulary, refuse_universal};
use super::awaiting_markers::{AwaitingMarkers, awaiting_markers};
use super::brief::SimulatorBrief;
use super::case_lines::{document_lines, test_lines};
use super::checkpoints::{Checkpoint, read_checkpoints};
use super::content::{read_attachments, read_messages, read_parts};
use super::decoding::{AgentsByName, DecodeContext, DecodeSettings, InheritedSettings, ParseSource};
use super::hook::{self, HookCommand, NamedHook};
use super::input_sources::{self, CaseSimulator, HumanInput, OnMissingInput};
use super::judging::read_judging;
use super::limits::read_timeout;
use super::mcp::{McpSettings, hidden_calls};
use super::mcp_tools::{ListedTools, ToolReference, impossible_tool};
use super::models::ModelSettings;
use super::patterns::read_pattern;
use super::peer_words::explain_peer_words;
use super::reliability::{ReliabilitySetting, read_reliability};
use super::scenarios::{
    CaseScenario, MAX_INLINE_SCENARIOS, has_inline_scenarios, read_scenarios, scenario_names,
};
use super::script::{read_client_tools, read_interrupt_answers};
use super::shape::{CASE, CHECKPOINT, EXPECTED_ERROR, MESSAGE, TURN};
use super::shared_settings::SharedSettings;
use super::topics::{CaseTopics, TopicSettings, read_graph, read_topics};
use super::variables::{McpAddresses, VariableScope, interpolate, node_mcp_references, uses_hook_variables};
use hotseat_checks::{AnswerEquals, Check, CheckKind, CheckStrength, Pattern};
use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, Kind, MapView, NodeView, SourceSpan, SourceText, check, nearest,
};
use hotseat_targets::message::{
    AttachmentError, ClientTool, ContentPart, ConversationMessage, InterruptAnswer, MessageRole,
    RequestIdentity, ToolAnswer, ToolFunction, media_parts, merge_json,
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

    /// Resolves references in all checks; a check shared by several turns is reported once.
    fn resolve_references(&mut self, diagnostics: &mut Diagnostics) {
        let vocabulary = self.vocabulary.clone();
        let mut said: Vec<SourceSpan> = Vec::new();
        for check in self.every_check_mut() {
            if let Err(wrong) = vocabulary.resolve(check)
                && !said.contains(&check.place)
            {
                said.push(check.place.clone());
                diagnostics.push(wrong);
            }
        }
    }

    /// Decodes a document with a single case and no files. Variables set by hooks stay unresolved.
    ///
    /// # Errors
    /// All diagnostics of the document.
    pub fn read(
        source: &Arc<SourceText>,
        parse: ParseSource,
        decoding: DecodeSettings<'_>,
    ) -> Result<TestCase, Diagnostics> {
        let folders = Arc::from([decoding.root.to_path_buf(), PathBuf::new()]);
        let with = DecodeContext { decoding, shared: decoding.shared, folders: &folders };
        TestCase::decode(source, parse(source)?, parse, with, None)
    }

    /// Decodes a document into one case, or one per scenario. Each result is a case or its diagnostics.
    pub fn read_all(
        source: &Arc<SourceText>,
        parse: ParseSource,
        with: DecodeContext<'_>,
    ) -> Vec<Result<Arc<TestCase>, Diagnostics>> {
        let node = match parse(source) {
            Ok(node) => node,
            Err(diagnostics) => return vec![Err(diagnostics)],
        };
        match read_scenarios(&node, source, with.folders) {
            None => vec![TestCase::decode(source, node, parse, with, None).map(Arc::new)],
            Some(Err(diagnostics)) => vec![Err(diagnostics)],
            Some(Ok(all)) if all.len() > MAX_INLINE_SCENARIOS && has_inline_scenarios(&node) => {
                let place = node.get("scenarios").map(|written| written.place(source));
                let message =
                    format!("the case contains {} scenarios, more than {MAX_INLINE_SCENARIOS}", all.len());
                let help = "move them to a file: `scenarios: FILE.json`";
                vec![Err(Diagnostic::new(message).at(place).help(help).into())]
            }
            Some(Ok(all)) => all
                .into_iter()
                .map(|scenario| {
                    TestCase::decode(source, node.clone(), parse, with, Some(scenario)).map(Arc::new)
                })
                .collect(),
        }
    }

    fn decode(
        source: &Arc<SourceText>,
        mut node: DocumentNode,
        parse: ParseSource,
        with: DecodeContext<'_>,
        scenario: Option<Arc<CaseScenario>>,
    ) -> Result<TestCase, Diagnostics> {
        let DecodeSettings { inherited, agents, environment, redactor, default_simulator, .. } =
            with.decoding;
        let mut diagnostics = Diagnostics::new();
        if let Some(scenario) = &scenario {
            scenario.fill_checked(&mut node, source, redactor, &mut diagnostics);
        }
        check(&node, &Kind::Shape(&CASE), source, &mut diagnostics);
        if let Some(head) = node.get("suite") {
            let message = "`suite` is not a key of a case: move it to a separate first document";
            diagnostics.report(head.place(source), message);
        }
        if let Some(mistake) = missing_name(&node, source) {
            diagnostics.push(mistake);
        }
        if !diagnostics.is_empty() {
            return Err(explain_peer_words(diagnostics));
        }
        let document = Arc::new(CaseDocument {
            default_simulator,
            source: source.clone(),
            parse,
            inherited: inherited.clone(),
            agents: agents.clone(),
            shared: with.shared.clone(),
            folders: with.folders.clone(),
            scenario,
        });
        let hooks = hook_nodes(&node, source).count();
        let is_given = hooks > 0 || node.get("before").is_some();
        let hook_variables = BTreeMap::new();
        let variables = VariableScope {
            environment,
            hook_variables: &hook_variables,
            mcp: McpAddresses::Unknown,
            allow_undefined: is_given,
            redactor,
        };
        let case = decode_case(&document, &node, variables)?;
        if let Some(agent) = case.agent.as_ref().filter(|agent| agent.has_variable()) {
            let message = "`agent` cannot use a variable set by a hook";
            let help = "the tested agent must be known before hooks run: use its name, or `${ENV.NAME}`";
            return Err(Diagnostic::new(message).at(agent.place.clone()).help(help).into());
        }
        // A hook can use variables of earlier hooks; the first hook can use none.
        for index in 0..hooks {
            let variables =
                VariableScope { allow_undefined: index > 0 || case.before.is_some(), ..variables };
            case.hook(index, variables)?;
        }
        Ok(case)
    }

    /// Returns the case with all variables resolved. Fails if a variable is undefined, or a resolved value is
    /// invalid.
    pub fn bind(self: &Arc<Self>, variables: VariableScope<'_>) -> Result<Arc<TestCase>, Diagnostics> {
        if !self.has_hooks() && !self.uses_mcp_addresses() {
            return Ok(self.clone());
        }
        let case = decode_case(&self.document, &self.document.node(), variables)?;
        Ok(Arc::new(match &self.program {
            Some(program) => {
                // Keeps settings that the program made outside the document.
                let (id, scenario, simulator) =
                    (self.id.clone(), self.scenario.clone(), self.simulator.clone());
                TestCase { id, scenario, simulator, ..case.driven_by(program.clone(), self.place.clone()) }
            }
            None => case,
        }))
    }

    /// Lines of its file that belong to the case. Scenarios of one case share them.
    pub fn lines(&self) -> RangeInclusive<u32> {
        match self.program {
            Some(_) => test_lines(&self.place),
            None => document_lines(&self.document.source),
        }
    }

    /// Returns the case run by a program at this position.
    #[must_use]
    pub fn driven_by(self, program: CaseProgram, place: SourceSpan) -> TestCase {
        let unwritten = CaseTurn { place: place.clone(), ..self.turn_defaults };
        let written = self.document.source.clone();
        let mut case = TestCase { program: Some(program), place, turn_defaults: unwritten, ..self };
        let at = case.place.clone();
        // The document of a program was generated, so its checks are placed at the body.
        for check in case.every_check_mut().filter(|check| Arc::ptr_eq(&check.place.source, &written)) {
            check.place = at.clone();
        }
        case
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

    /// Returns the case with attachments loaded from the first of these folders that contains them. Fails if
    /// a file is missing or cannot be read: the first one, with its place in the case.
    pub fn with_attachments(
        self: &Arc<Self>,
        folders: &[&Path],
    ) -> Result<Arc<TestCase>, CaseAttachmentError> {
        let turns = self.turns.iter().flat_map(|turn| media_parts(&turn.content));
        let messages = self.opening.messages.iter().flat_map(|message| media_parts(&message.content));
        if turns.chain(messages).next().is_none() {
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

    /// Source text of the case and its parser.
    pub fn source(&self) -> (&Arc<SourceText>, ParseSource) {
        (&self.document.source, self.document.parse)
    }

    /// Decodes one of its hooks with variables resolved. Fails if a variable is undefined.
    pub fn hook(&self, index: usize, variables: VariableScope<'_>) -> Result<HookCommand, Diagnostics> {
        let (whole, source) = (self.document.node(), &self.document.source);
        let node = hook_nodes(&whole, source).nth(index).expect("the case has this hook");
        HookCommand::read(node, source, variables)
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

    /// The name as written, with variables unresolved.
    fn written_name(&self) -> String {
        let node = (self.parse)(&self.source).ok();
        let name = ["name", "id"].iter().find_map(|key| node.as_ref()?.get(key).map(DocumentNode::to_json));
        name.and_then(|name| name.as_str().map(str::to_string)).unwrap_or_default()
    }
}

fn hook_nodes<'a>(
    node: &'a DocumentNode,
    source: &'a Arc<SourceText>,
) -> impl Iterator<Item = &'a DocumentNode> {
    let hooks = node.get("hooks").map(|hooks| NodeView::new(hooks, source));
    hooks.and_then(NodeView::list).into_iter().flatten().map(|view| view.node)
}

fn decode_case(
    document: &Arc<CaseDocument>,
    whole: &DocumentNode,
    variables: VariableScope<'_>,
) -> Result<TestCase, Diagnostics> {
    let source = &document.source;
    let mut diagnostics = Diagnostics::new();
    // Hooks resolve their own variables; everything else is resolved at once.
    let is_changed = source.text.contains("${")
        || document.scenario.is_some()
        || matches!(variables.redactor.text(&source.text), Cow::Owned(_));
    let filled = is_changed.then(|| {
        let mut node = whole.clone();
        if let hotseat_document::NodeValue::Map(entries) = &mut node.value {
            for entry in entries.iter_mut().filter(|entry| entry.key.text != "hooks") {
                if let Some(field) = CASE.field(&entry.key.text) {
                    interpolate(&mut entry.value, &field.kind, variables, source, &mut diagnostics);
                }
            }
        }
        node
    });
    let node = filled.as_ref().unwrap_or(whole);
    let map = MapView::from_node(node, source, &CASE).expect("the shape was checked");
    let mut found = Diagnostics::new();
    let case = read_case(document, &map, variables, &mut found);
    if found.is_empty() {
        found.extend(CaseTopics::unknown_topics(case.topics.as_deref(), case.every_check()));
        found.extend(case.brief().iter().flat_map(|brief| brief.unknown_topics(case.topics.as_deref())));
    }
    // Texts with unresolved variables are validated after they are resolved.
    let is_open =
        |mistake: &Diagnostic| mistake.place.as_ref().is_some_and(|place| place.text().contains("${"));
    diagnostics.extend(found.into_iter().filter(|mistake| !variables.allow_undefined || !is_open(mistake)));
    if diagnostics.is_empty() { Ok(case) } else { Err(sort_by_position(diagnostics)) }
}

/// Decodes a case whose variables are resolved.
fn read_case(
    document: &Arc<CaseDocument>,
    map: &MapView<'_>,
    variables: VariableScope<'_>,
    diagnostics: &mut Diagnostics,
) -> TestCase {
    let agent = map.get("agent").and_then(AgentName::read).or_else(|| document.shared.agent.clone());
    let of_agent = agent.as_ref().map(|agent| agent.inherited(&document.agents));
    let inherited = of_agent.unwrap_or(Ok(&document.inherited)).unwrap_or_else(|wrong| {
        diagnostics.push(wrong);
        &document.inherited
    });
    let inherited = inherited.filled(variables, diagnostics);
    let every_turn = AssertionBlock::read_of_turn(map.get("turn_assert"), diagnostics)
        .merged_onto((*inherited.turn).clone());
    // Names are shown in reports; hook variables are not available here.
    let shown = |text: &str| variables.redactor.text(text).into_owned();
    let (id, name) = (map.text("id"), map.text("name"));
    let called = document.scenario.as_ref().map(|scenario| {
        let written = document.written_name();
        scenario_names(name.or(id).unwrap_or_default(), id, &written, scenario)
    });
    let (id, name) = match &called {
        Some((name, id)) => (Some(id.as_str()), Some(name.as_str())),
        None => (id, name),
    };
    let options = read_options(map, None, diagnostics);
    let (mut opening, turns) = read_inputs(map, &every_turn, options.as_ref(), diagnostics);
    // Used in reports only.
    opening.input = opening.input.map(|input| variables.redactor.json(input));
    let (simulator, told_max) = input_sources::read_simulator(map, diagnostics);
    let topics = case_topics(document, map, diagnostics);
    let simulator = simulated_user(document, map, diagnostics).or(simulator);
    let interactive = input_sources::read_human_input(map, diagnostics);
    let max_turns = map.size("max_turns").or(told_max);
    check_turn_counts(map, turns.len(), max_turns, diagnostics);
    let expects_more =
        map.text("type") == Some("multi_turn") || simulator.is_some() || map.has("interactive");
    let mut checks = AssertionBlock::read(map.get("assert"), diagnostics)
        .merged_onto((*inherited.case).clone())
        .into_checks();
    checks.extend(AssertionBlock::read(map.get("evaluate"), diagnostics).into_soft_checks());
    checks.extend(expected_check(map));
    let is_single_turn = map.text("type") == Some("single_turn");
    let simulator = simulator.or_else(|| {
        (document.default_simulator && !is_single_turn).then(|| CaseSimulator::unnamed(map.place()))
    });
    let vocabulary = case_vocabulary(map, simulator.as_ref(), &document.shared.vocabulary, diagnostics);
    let mut case = TestCase {
        id: shown(id.or(name).unwrap_or_default()),
        place: map.place_of("name").or_else(|| map.place_of("id")).unwrap_or_else(|| map.place()),
        name: shown(name.or(id).unwrap_or_default()),
        named: name.is_some(),
        skip: read_skip(map, diagnostics).map(shown),
        focus: TestFocus::Unmarked,
        is_swept: false,
        timeout: read_timeout(map, diagnostics),
        retries: map.size("retries"),
        reliability: read_reliability(map, diagnostics),
        before: hook::read_named_hook(map, "before"),
        after: hook::read_named_hook(map, "after"),
        hooks: map.items("hooks").count(),
        tags: map.texts("tags").map(shown).collect(),
        metadata: map.json("metadata").map(|metadata| variables.redactor.json(metadata)),
        agent,
        target: read_target(map, diagnostics),
        mcp: case_mcp(document, map, diagnostics),
        models: case_models(document, map, diagnostics),
        opening,
        turns,
        checkpoints: read_checkpoints(map, diagnostics),
        turn_defaults: CaseTurn::with_inherited_checks(Vec::new(), options, map.place(), &every_turn),
        is_dynamic: simulator.is_some() && map.has("checkpoints"),
        simulator,
        topics,
        topic_settings: TopicSettings::read(map),
        scenario: document.scenario.as_ref().map(|scenario| scenario.redacted(variables.redactor)),
        interactive,
        max_turns,
        on_complete: map.text("on_complete").and_then(OnComplete::from_name).unwrap_or_default(),
        signs: awaiting_markers(map, &inherited.signs),
        continue_on_failure: map.bool("continue_on_failure") == Some(true),
        on_missing_input: read_missing_input(map, expects_more),
        program: None,
        checks,
        final_checks: AssertionBlock::read(map.get("final_assertions"), diagnostics).into_checks(),
        vocabulary,
        document: document.clone(),
    };
    case.resolve_references(diagnostics);
    diagnostics.extend(check_unused_topics(map, &case));
    diagnostics.extend(case.unknown_names(case.every_check()));
    case
}

/// Checks the number of turns that the case declares.
fn check_turn_counts(
    map: &MapView<'_>,
    turns: usize,
    max_turns: Option<usize>,
    diagnostics: &mut Diagnostics,
) {
    if let Some(max) = max_turns.filter(|max| turns > *max) {
        let message = format!("there are {turns} turns, but `max_turns` is {max}");
        diagnostics.report(map.place_of("max_turns").or_else(|| map.key_place("simulator")), message);
    }
    if map.text("type") == Some("single_turn") && turns > 1 {
        let message = format!("there are {turns} turns, but `type` allows only one");
        diagnostics.report(map.place_of("type"), message);
    }
}

/// Reads what the target receives with the case.
fn read_target(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> CaseTarget {
    let keys = ["threadId", "state", "context", "forwardedProps", "tools", "messages", "user", "team"];
    CaseTarget {
        places: keys.into_iter().filter_map(|key| Some((key, map.key_place(key)?))).collect(),
        thread_id: map.text("threadId").map(str::to_string),
        state: map.json("state"),
        context: map.json("context"),
        forwarded_props: map.json("forwardedProps"),
        tools: read_client_tools(map, "tools", diagnostics),
        metadata: map.json("metadata"),
        user: map.text("user").map(str::to_string),
        team: map.text("team").map(str::to_string),
        identity: RequestIdentity::default(),
    }
}

/// Reads the reason why the case is skipped. A word for false is no reason: older versions of YAML read `no` as false.
fn read_skip<'a>(map: &MapView<'a>, diagnostics: &mut Diagnostics) -> Option<&'a str> {
    let reason = map.text("skip");
    // A variable can be empty.
    let is_false =
        |text: &&str| ["", "0", "no", "n", "off", "false"].contains(&text.trim().to_lowercase().as_str());
    if let Some(word) = reason.filter(is_false) {
        let message = format!("`skip` with the text \"{word}\" would skip the case");
        let help = "write `skip: false`, or a reason of several words";
        diagnostics.push(Diagnostic::new(message).at(map.place_of("skip")).help(help));
    }
    reason.or_else(|| (map.bool("skip") == Some(true)).then_some("`skip: true`"))
}

fn read_missing_input(map: &MapView<'_>, expects_more: bool) -> OnMissingInput {
    match map.text("on_missing_input") {
        Some("skip") => OnMissingInput::Skip,
        Some("fail") => OnMissingInput::Fail,
        Some(_) => OnMissingInput::End,
        None if expects_more => OnMissingInput::Skip,
        None => OnMissingInput::End,
    }
}

/// MCP servers of a case: those of the suite and the project, with the changes of the case.
fn case_mcp(document: &CaseDocument, map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Arc<McpSettings> {
    let settings = McpSettings::read(map.get("mcp"), &document.shared.mcp, diagnostics);
    let settings = settings.with_case_faults(map, diagnostics);
    settings.load_files(&document.folders, diagnostics);
    diagnostics.extend(settings.unknown_tools(&settings.fault_tools()));
    diagnostics.extend(settings.unoffered_tools());
    diagnostics.extend(settings.iter().flat_map(|(_, server)| server.refused_answers()));
    settings
}

/// Served models of a case: those of the suite and the project, with the changes of the case.
fn case_models(
    document: &CaseDocument,
    map: &MapView<'_>,
    diagnostics: &mut Diagnostics,
) -> Arc<ModelSettings> {
    let settings = ModelSettings::read(map.get("models"), &document.shared.models, diagnostics);
    settings.load_files(&document.folders, diagnostics);
    settings
}

/// Definitions for resolving assertions, including those of the case.
fn case_vocabulary(
    map: &MapView<'_>,
    simulator: Option<&CaseSimulator>,
    above: &Arc<CheckVocabulary>,
    diagnostics: &mut Diagnostics,
) -> Arc<CheckVocabulary> {
    let stated_goal = |simulator: &CaseSimulator| {
        Some(simulator.options.get("metadata")?.get("goal")?.as_str()?.to_string())
    };
    let briefed = |simulator: &CaseSimulator| simulator.brief.as_ref()?.goal.clone();
    let goal = simulator.and_then(|simulator| briefed(simulator).or_else(|| stated_goal(simulator)));
    if goal.is_none() && !map.has("criteria") && !map.has("judge") {
        return above.clone();
    }
    let vocabulary = above.with_criteria(map.get("criteria"), diagnostics);
    let vocabulary = vocabulary.with_judging(read_judging(map.get("judge"), diagnostics));
    Arc::new(vocabulary.with_goal(goal))
}

/// The topics of a case and its graph, if there is one.
fn case_topics(
    document: &CaseDocument,
    map: &MapView<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Arc<CaseTopics>> {
    let shared = &document.shared;
    let known = read_topics(map.get("topics"), &shared.topics, diagnostics);
    let Some(view) = map.get("graph").or_else(|| shared.graph()) else {
        if let Some(place) = map.key_place("topics") {
            let wrong = Diagnostic::new("these topics are not used: there is no `graph`").at(place);
            diagnostics.push(wrong.help("add a `graph` that defines the transitions between topics"));
        }
        return None;
    };
    let topics = read_graph(view, &known, diagnostics)?;
    Some(Arc::new(CaseTopics { settings: TopicSettings::read(map), ..topics }))
}

/// Diagnostics of topics declared by the case that its graph does not use: no turn is in them, so their assertions
/// would be lost.
fn check_unused_topics(map: &MapView<'_>, case: &TestCase) -> Diagnostics {
    let graph = case.topics.as_ref().map(|own| &own.graph);
    let mut diagnostics = Diagnostics::new();
    for topic in read_topics(map.get("topics"), &[], &mut Diagnostics::new()) {
        let Some(graph) = graph.filter(|graph| graph.index_of(&topic.name).is_none()) else { continue };
        let wrong = Diagnostic::new(format!("no topic of the graph is named `{}`", topic.name));
        diagnostics.push(wrong.at(topic.place.clone()).help(match nearest(&topic.name, graph.names()) {
            Some(known) => format!("did you mean `{known}`?"),
            None => "add it to the `graph` of the case, or remove it".to_string(),
        }));
        diagnostics.extend(topic.unknown_criteria(&case.vocabulary));
    }
    diagnostics
}

/// Decodes the simulated user under `simulate`.
fn simulated_user(
    document: &CaseDocument,
    map: &MapView<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<CaseSimulator> {
    let view = map.get("simulate")?;
    let place = map.key_place("simulate").unwrap_or_else(|| view.place());
    if map.has("simulator") {
        let wrong = Diagnostic::new("`simulate` and `simulator` both define the simulated user")
            .at(map.key_place("simulator"));
        diagnostics.push(wrong.help("remove one of them; `simulate` also supports `use`"));
    }
    let mut brief = SimulatorBrief::read_own(view, &document.shared.simulate, diagnostics)?;
    brief.max_turns = brief.max_turns.or_else(|| map.size("max_turns"));
    if let Some(template) = &mut brief.template
        && let Err(words) = template.load(&document.folders)
    {
        diagnostics.report(template.place.clone(), words);
    }
    Some(CaseSimulator::from_brief(brief, place))
}

/// Decodes `expected`. It is a hard check only if there is no other assertion.
fn expected_check(map: &MapView<'_>) -> Option<Check> {
    let value = map.json("expected")?;
    let has_assertions =
        |map: &MapView<'_>, key| map.json(key).is_some_and(|written| asserts_something(&written));
    let mut checkpoints = map.maps("checkpoints", &CHECKPOINT);
    let asserts = ["assert", "final_assertions"].iter().any(|key| has_assertions(map, key))
        || map.maps("turns", &TURN).any(|turn| has_assertions(&turn, "assert"))
        || checkpoints.any(|checkpoint| checkpoint.bool("required") != Some(false));
    let written = serde_json::json!({"type": "equals", "value": value});
    let place = map.place_near("expected");
    Some(Check {
        strength: if asserts { CheckStrength::Soft } else { CheckStrength::Hard },
        definition: Some(Arc::new(written)),
        ..Check::new(CheckKind::AnswerEquals(AnswerEquals { value }), place)
    })
}

/// True if a block of assertions has any. An empty one, or `false` in place of inherited ones, has none.
fn asserts_something(written: &serde_json::Value) -> bool {
    match written {
        serde_json::Value::Null | serde_json::Value::Bool(false) => false,
        serde_json::Value::Array(items) => !items.is_empty(),
        serde_json::Value::Object(members) => members.values().any(asserts_something),
        serde_json::Value::Bool(true) | serde_json::Value::Number(_) | serde_json::Value::String(_) => true,
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

/// Diagnostic for a case without a name. Omitted if a key is misspelt, which is reported instead.
fn missing_name(node: &DocumentNode, source: &Arc<SourceText>) -> Option<Diagnostic> {
    let hotseat_document::NodeValue::Map(entries) = &node.value else { return None };
    let names = |key: &str| matches!(key, "name" | "id");
    if entries.iter().any(|entry| names(&entry.key.text) || CASE.field(&entry.key.text).is_none()) {
        return None;
    }
    let mistake = Diagnostic::new("this case has neither `name` nor `id`").at(node.place(source));
    Some(
        mistake.help(
            "`name` is the display name in reports; `id` is a short name that stays the same when the display name changes",
        ),
    )
}

/// Decodes the messages before the first turn, and the turns.
fn read_inputs(
    map: &MapView<'_>,
    every_turn: &AssertionBlock,
    case_options: Option<&CallOptions>,
    diagnostics: &mut Diagnostics,
) -> (ConversationOpening, Vec<CaseTurn>) {
    let mut before = read_messages(map.items("messages"), diagnostics);
    let Some(input) = map.get("input") else {
        let written = map.maps("turns", &TURN);
        let turns = written.map(|map| read_turn(&map, every_turn, case_options, diagnostics)).collect();
        return (ConversationOpening { messages: before, input: None }, turns);
    };
    if let Some(place) = map.key_place("turns") {
        let wrong = Diagnostic::new("`input` and `turns` both define the first user input").at(place);
        diagnostics.push(
            wrong.help("move `input` to the first entry of `turns`, and earlier messages to `messages`"),
        );
    }
    let content = match input.text() {
        Some(text) => vec![ContentPart::Text(text.to_string())],
        None => {
            let mut said = read_messages(input.one_or_many(), diagnostics);
            let last = said.pop();
            before.extend(said);
            match last {
                Some(last) if last.role == MessageRole::User => last.content,
                _ => {
                    let place = input.one_or_many().last().map(NodeView::place);
                    let wrong =
                        Diagnostic::new("the last message of `input` must have the role `user`").at(place);
                    diagnostics.push(wrong.help("put earlier messages before it, or under `messages`"));
                    Vec::new()
                }
            }
        }
    };
    // Assertions of the case apply to the conversation, which is this single turn, in addition to the turn
    // checks.
    let turn = CaseTurn::with_inherited_checks(content, case_options.cloned(), input.place(), every_turn);
    (ConversationOpening { messages: before, input: Some(input.json()) }, vec![turn])
}

/// Sorts diagnostics by position in the file.
fn sort_by_position(diagnostics: Diagnostics) -> Diagnostics {
    let mut all: Vec<Diagnostic> = diagnostics.into_iter().collect();
    all.sort_by_key(|diagnostic| diagnostic.place.as_ref().map(|place| place.span.start));
    let mut ordered = Diagnostics::new();
    ordered.extend(all);
    ordered
}

/// Reads the pattern of an expected error. One that every text matches expects nothing.
fn read_error_pattern(view: NodeView<'_>, diagnostics: &mut Diagnostics) -> Option<Pattern> {
    let pattern = read_pattern(view, diagnostics)?;
    refuse_universal(&pattern, &view.place(), diagnostics);
    Some(pattern)
}

pub(super) fn read_turn(
    map: &MapView<'_>,
    inherited: &AssertionBlock,
    case_options: Option<&CallOptions>,
    diagnostics: &mut Diagnostics,
) -> CaseTurn {
    let expect_error = map.get("expect_error").map(|view| match view.map(&EXPECTED_ERROR) {
        None => ExpectedError { message: read_error_pattern(view, diagnostics), code: None },
        Some(error) => {
            if error.is_empty() {
                diagnostics.report(view.place(), "`expect_error` needs `message` or `code`");
            }
            ExpectedError {
                message: error.get("message").and_then(|view| read_error_pattern(view, diagnostics)),
                code: error.get("code").and_then(|view| read_error_pattern(view, diagnostics)),
            }
        }
    });
    let mut content = map.get("user").map(|said| read_user_content(said, diagnostics)).unwrap_or_default();
    content.extend(read_attachments(map, diagnostics));
    let mut checks = AssertionBlock::read_of_turn(map.get("assert"), diagnostics)
        .merged_onto(inherited.clone())
        .into_checks();
    checks.extend(AssertionBlock::read_of_turn(map.get("evaluate"), diagnostics).into_soft_checks());
    CaseTurn {
        content,
        options: read_options(map, case_options, diagnostics),
        place: map.place_near("user"),
        checks,
        timeout: read_timeout(map, diagnostics),
        expect_error,
        resume: read_interrupt_answers(map, diagnostics),
    }
}

/// Decodes the options of a case or a turn and merges them onto `below`.
fn read_options(
    map: &MapView<'_>,
    below: Option<&CallOptions>,
    diagnostics: &mut Diagnostics,
) -> Option<CallOptions> {
    let Some(view) = map.get("options") else { return below.cloned() };
    let mut connector = None;
    for (key, _, view) in view.entries().into_iter().flatten() {
        match key {
            "connector" if view.text().is_none_or(str::is_empty) => {
                let wrong = Diagnostic::new("`connector` must be a name").at(view.place());
                diagnostics.push(wrong);
            }
            "connector" => connector = Some(view.place()),
            "metadata" if view.entries().is_none() => {
                diagnostics.report(view.place(), "`metadata` must be a mapping");
            }
            _ => {}
        }
    }
    Some(match below {
        Some(below) => CallOptions {
            value: merge_json(&below.value, &view.json()),
            place: view.place(),
            connector: connector.or_else(|| below.connector.clone()),
        },
        None => CallOptions { value: view.json(), place: view.place(), connector },
    })
}

/// Decodes the user input of a turn: text, parts, or a user message.
fn read_user_content(view: NodeView<'_>, diagnostics: &mut Diagnostics) -> Vec<ContentPart> {
    let Some(map) = view.map(&MESSAGE) else { return read_parts(view, diagnostics) };
    let said = read_messages(std::iter::once(view), diagnostics).pop();
    match said {
        Some(said) if said.role == MessageRole::User => said.content,
        _ => {
            diagnostics.report(map.place_of("role"), "the message of a turn must have the role `user`");
            Vec::new()
        }
    }
}
