//! Decodes cases.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use super::{
    CallOptions, CaseDocument, CaseTarget, CaseTurn, ConversationOpening, ExpectedError, OnComplete,
    TestCase, TestFocus,
};
use crate::cases::agent_name::AgentName;
use crate::cases::assertions::{AssertionBlock, CheckVocabulary, into_soft, refuse_universal};
use crate::cases::awaiting_markers::awaiting_markers;
use crate::cases::brief::SimulatorBrief;
use crate::cases::checkpoints::{read_checkpoints, refuse_idle_checkpoints, refuse_unreachable_checkpoints};
use crate::cases::content::{read_attachments, read_messages, read_parts};
use crate::cases::decoding::{DecodeContext, DecodeSettings, ParseSource};
use crate::cases::hook::{self, HookCommand};
use crate::cases::input_sources::{self, CaseSimulator, OnMissingInput};
use crate::cases::judging::read_judging;
use crate::cases::limits::read_timeout;
use crate::cases::mcp::McpSettings;
use crate::cases::models::ModelSettings;
use crate::cases::patterns::read_pattern;
use crate::cases::peer_words::explain_peer_words;
use crate::cases::reliability::read_reliability;
use crate::cases::scenarios::{
    CaseScenario, MAX_INLINE_SCENARIOS, PlacedScenario, has_inline_scenarios, read_scenarios,
    remove_scenarios, scenario_names,
};
use crate::cases::script::{read_client_tools, read_interrupt_answers};
use crate::cases::shape::{CASE, CHECKPOINT, EXPECTED_ERROR, MESSAGE, TURN};
use crate::cases::topics::{CaseTopics, TopicSettings, read_graph, read_topics};
use crate::cases::variables::{VariableScope, interpolate};
use hotseat_checks::{AnswerEquals, Check, CheckKind, CheckStrength, Pattern};
use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, Kind, MapView, NodeValue, NodeView, SourceSpan, SourceText, check,
    nearest_or,
};
use hotseat_targets::message::{ContentPart, MessageRole, RequestIdentity, merge_json};

impl TestCase {
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
        TestCase::decode(source, parse(source)?, parse, with, None).map(Arc::unwrap_or_clone)
    }

    /// Decodes a document into one case, or one per scenario. Each result is a case or its diagnostics.
    pub fn read_all(
        source: &Arc<SourceText>,
        parse: ParseSource,
        with: DecodeContext<'_>,
    ) -> Vec<Result<Arc<TestCase>, Diagnostics>> {
        let mut node = match parse(source) {
            Ok(node) => node,
            Err(diagnostics) => return vec![Err(diagnostics)],
        };
        match read_scenarios(&node, source, with.folders) {
            None => vec![TestCase::decode(source, node, parse, with, None)],
            Some(Err(diagnostics)) => vec![Err(diagnostics)],
            Some(Ok(all)) if all.len() > MAX_INLINE_SCENARIOS && has_inline_scenarios(&node) => {
                let place = node.get("scenarios").map(|written| written.place(source));
                let message =
                    format!("the case contains {} scenarios, more than {MAX_INLINE_SCENARIOS}", all.len());
                let help = "move them to a file: `scenarios: FILE.json`";
                vec![Err(Diagnostic::new(message).at(place).help(help).into())]
            }
            Some(Ok(all)) => {
                // A copy of all scenarios for each of them would take quadratic time.
                remove_scenarios(&mut node);
                let decode = |placed: PlacedScenario| {
                    let scenario = Some(placed.scenario.clone());
                    let decoded = TestCase::decode(source, node.clone(), parse, with, scenario);
                    decoded.map_err(|wrong| placed.explain(wrong, &node))
                };
                all.into_iter().map(decode).collect()
            }
        }
    }

    fn decode(
        source: &Arc<SourceText>,
        mut node: DocumentNode,
        parse: ParseSource,
        with: DecodeContext<'_>,
        scenario: Option<Arc<CaseScenario>>,
    ) -> Result<Arc<TestCase>, Diagnostics> {
        let DecodeSettings { inherited, agents, environment, redactor, default_simulator, .. } =
            with.decoding;
        let mut diagnostics = Diagnostics::new();
        let written_name = written_name(&node);
        if let Some(scenario) = &scenario {
            scenario.fill_checked(&mut node, source, redactor, &mut diagnostics);
        }
        let mut found = Diagnostics::new();
        check(&node, &Kind::Shape(&CASE), source, &mut found);
        // A value that is missing has no other mistake.
        let is_new = |wrong: &Diagnostic| diagnostics.iter().all(|known| known.place != wrong.place);
        let found: Vec<Diagnostic> = found.into_iter().filter(is_new).collect();
        diagnostics.extend(found);
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
            written_name,
            scenario,
        });
        let hooks = hook_nodes(&node, source).count();
        let is_given = hooks > 0 || node.get("before").is_some();
        let variables =
            VariableScope { allow_undefined: is_given, ..VariableScope::new(environment, redactor) };
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
        let Some(program) = &self.program else { return Ok(case) };
        let case = Arc::unwrap_or_clone(case).driven_by(program.clone(), self.place.clone());
        // Keeps settings that the program made outside the document.
        let (id, scenario, simulator) = (self.id.clone(), self.scenario.clone(), self.simulator.clone());
        Ok(Arc::new(TestCase { id, scenario, simulator, ..case }))
    }

    /// Decodes one of its hooks with variables resolved. Fails if a variable is undefined.
    pub fn hook(&self, index: usize, variables: VariableScope<'_>) -> Result<HookCommand, Diagnostics> {
        let (whole, source) = (self.document.node(), &self.document.source);
        let node = hook_nodes(&whole, source).nth(index).expect("the case has this hook");
        HookCommand::read(node, source, variables)
    }
}

/// The name as written, with variables unresolved.
fn written_name(node: &DocumentNode) -> String {
    let name = ["name", "id"].iter().find_map(|key| node.get(key));
    match name.map(|name| &name.value) {
        Some(NodeValue::String(name)) => name.to_string(),
        _ => String::new(),
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
) -> Result<Arc<TestCase>, Diagnostics> {
    let source = &document.source;
    let mut diagnostics = Diagnostics::new();
    // Hooks resolve their own variables; everything else is resolved at once.
    let is_changed = source.text.contains("${")
        || document.scenario.is_some()
        || matches!(variables.redactor.text(&source.text), Cow::Owned(_));
    let filled = is_changed.then(|| {
        let mut node = whole.clone();
        if let NodeValue::Map(entries) = &mut node.value {
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

/// Decodes a case whose variables are resolved. A case has about two kilobytes, so callers pass it on as a pointer.
fn read_case(
    document: &Arc<CaseDocument>,
    map: &MapView<'_>,
    variables: VariableScope<'_>,
    diagnostics: &mut Diagnostics,
) -> Arc<TestCase> {
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
        scenario_names(name.or(id).unwrap_or_default(), id, &document.written_name, scenario)
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
    refuse_further_turns(map, interactive.is_some(), diagnostics);
    let expects_more =
        map.text("type") == Some("multi_turn") || simulator.is_some() || map.has("interactive");
    let mut checks = AssertionBlock::read(map.get("assert"), diagnostics)
        .merged_onto((*inherited.case).clone())
        .into_checks();
    checks.extend(into_soft(AssertionBlock::read_checks(map.get("evaluate"), diagnostics)));
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
        turn_assertions: Arc::new(every_turn),
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
        final_checks: AssertionBlock::read_checks(map.get("final_assertions"), diagnostics),
        vocabulary,
        document: document.clone(),
    };
    case.resolve_references(diagnostics);
    refuse_idle_checkpoints(map, &case.checkpoints, diagnostics);
    let written_turns = (!expects_more && case.simulator.is_none()).then_some(case.turns.len());
    let max_turns = max_turns.into_iter().chain(written_turns).min();
    refuse_unreachable_checkpoints(&case.checkpoints, max_turns, diagnostics);
    diagnostics.extend(check_unused_topics(map, &case));
    diagnostics.extend(case.unknown_names(case.every_check()));
    Arc::new(case)
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

/// Refuses sources of further turns in a case that has only one.
fn refuse_further_turns(map: &MapView<'_>, asks_human: bool, diagnostics: &mut Diagnostics) {
    if map.text("type") != Some("single_turn") {
        return;
    }
    let sources = ["simulator", "simulate", "interactive"].into_iter();
    for key in sources.filter(|key| map.has(key) && (*key != "interactive" || asks_human)) {
        let message = format!("`{key}` adds turns, but `type` allows only one");
        let help = format!("remove `type: single_turn`, or `{key}`");
        diagnostics.push(Diagnostic::new(message).at(map.key_place(key)).help(help));
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
        let add = || "add it to the `graph` of the case, or remove it".to_string();
        diagnostics.push(wrong.at(topic.place.clone()).help(nearest_or(&topic.name, graph.names(), add)));
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
        serde_json::Value::Array(items) => items.iter().any(asserts_something),
        serde_json::Value::Object(members) => members.values().any(asserts_something),
        serde_json::Value::Bool(true) | serde_json::Value::Number(_) | serde_json::Value::String(_) => true,
    }
}

/// Diagnostic for a case without a name. Omitted if a key is misspelt, which is reported instead.
fn missing_name(node: &DocumentNode, source: &Arc<SourceText>) -> Option<Diagnostic> {
    let NodeValue::Map(entries) = &node.value else { return None };
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

pub(in crate::cases) fn read_turn(
    map: &MapView<'_>,
    inherited: &AssertionBlock,
    case_options: Option<&CallOptions>,
    diagnostics: &mut Diagnostics,
) -> CaseTurn {
    let expect_error = map.get("expect_error").map(|view| match view.map(&EXPECTED_ERROR) {
        None => {
            ExpectedError { place: view.place(), message: read_error_pattern(view, diagnostics), code: None }
        }
        Some(error) => {
            if error.is_empty() {
                diagnostics.report(view.place(), "`expect_error` needs `message` or `code`");
            }
            ExpectedError {
                place: view.place(),
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
    checks.extend(into_soft(AssertionBlock::read_turn_checks(map.get("evaluate"), diagnostics)));
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

/// Reads the pattern of an expected error. One that every text matches expects nothing.
fn read_error_pattern(view: NodeView<'_>, diagnostics: &mut Diagnostics) -> Option<Pattern> {
    let pattern = read_pattern(view, diagnostics)?;
    refuse_universal(&pattern, &view.place(), diagnostics);
    Some(pattern)
}
