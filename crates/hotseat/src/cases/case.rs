//! A case, decoded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::block::{Block, pattern};
use super::brief::Brief;
use super::checkpoints::{Checkpoint, checkpoints};
use super::content::{attachments, messages, parts};
use super::criteria::Vocabulary;
use super::hook::{self, Hook, NamedHook};
use super::judging::judging;
use super::limits::timeout;
use super::partners::{self, Interactive, Simulator};
use super::reliability::{Declared, reliability};
use super::scenarios::{Scenario, names, scenarios};
use super::script::{client_tools, interrupt_answers};
use super::shape::{AWAITING, CASE, EXPECTED_ERROR, MESSAGE, TURN};
use super::shared::Shared;
use super::suite::{Decoding, With};
use super::tested::{AgentName, AgentsByName};
use super::topics::{Following, Topics, graph, topics};
use super::variables::{Variables, interpolate, mistake};
use crate::checks::{Check, CheckKind, Equals, Pattern, Strength};
use crate::session::{
    Body, ClientTool, Identity, InterruptAnswer, Message, OnMissingInput, Part, Redactor, Role, Signs, media,
    merged,
};
use hotseat_document::{Diagnostic, Diagnostics, Kind, Map, Node, Place, Source, View, check};

/// One test.
#[derive(Debug, Clone)]
pub struct Case {
    /// A short name that stays the same when the name changes.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// Whether that is written; otherwise it is called by its id.
    pub named: bool,
    /// Where its name is written.
    pub place: Place,
    /// Why it is left out of runs, if it is.
    pub skip: Option<String>,
    /// Whether it is marked so that the other tests of its file are left out.
    pub only: bool,
    /// How long all turns together may take.
    pub timeout: Option<Duration>,
    /// How often it is tried again when it fails, if it says so.
    pub retries: Option<usize>,
    /// How reliable the agent has to be in it.
    pub reliability: Declared,
    /// The hook of the project that runs before everything else.
    pub before: Option<NamedHook>,
    /// The hook of the project that runs when all is over, whatever it came to.
    pub after: Option<NamedHook>,
    /// How many hooks it has; each is decoded when the ones before it have run.
    pub hooks: usize,
    /// Words by which it is grouped.
    pub tags: Vec<String>,
    /// Anything else that reports hold of it.
    pub metadata: Option<Value>,
    /// The agent that it tests, where it or the head of its suite names one.
    pub agent: Option<AgentName>,
    /// What it says about the target.
    pub target: CaseTarget,
    /// What is said before the first turn, and how that was written.
    pub opening: Opening,
    /// What the user says, turn by turn; empty where somebody else has to begin.
    pub turns: Vec<Turn>,
    /// What has to be reached in some turn.
    pub checkpoints: Vec<Checkpoint>,
    /// What holds of turns that are not written: said by a simulated user or a person.
    pub unwritten: Turn,
    /// Its simulated user, if it has one.
    pub simulator: Option<Simulator>,
    /// The topics of its conversation, where they are followed.
    pub topics: Option<Arc<Topics>>,
    /// How topics are followed, also those that a program declares.
    pub following: Following,
    /// The scenario that it is held with, where there is one.
    pub scenario: Option<Arc<Scenario>>,
    /// The person who is asked, if one is.
    pub interactive: Option<Interactive>,
    /// Whether a simulated user goes on until its checkpoints are reached, whether the agent waits or not.
    pub is_dynamic: bool,
    /// How many turns there may be; none where the case does not say.
    pub max_turns: Option<usize>,
    /// What is done when the agent waits and nobody can answer it.
    pub on_missing_input: OnMissingInput,
    /// What is done when the agent is done and another turn is written.
    pub on_complete: OnComplete,
    /// What shows that the agent waits where it does not say so itself.
    pub signs: Signs,
    /// Whether the conversation goes on after a turn whose checks do not hold.
    pub continue_on_failure: bool,
    /// What drives its session, where it is a program and has no turns.
    pub body: Option<Arc<dyn Body>>,
    /// What is asserted of the whole conversation, with what the target asserts.
    pub checks: Vec<Check>,
    /// What is asserted under `final_assertions`.
    pub final_checks: Vec<Check>,
    /// What assertions take from around them; those above have taken it.
    pub vocabulary: Arc<Vocabulary>,
    document: Arc<Document>,
}

/// What a case says about the target; what it does not say holds as the target says it.
#[derive(Debug, Clone, Default)]
pub struct CaseTarget {
    /// Id of the conversation.
    pub thread_id: Option<String>,
    /// The shared state before the first turn.
    pub state: Option<Value>,
    /// Context entries.
    pub context: Option<Value>,
    /// What is forwarded to the agent.
    pub forwarded_props: Option<Value>,
    /// Client-side tools beside those of the target.
    pub tools: Vec<ClientTool>,
    /// What the agent is told of the case where it is told metadata of calls; as it is, with secrets.
    pub metadata: Option<Value>,
    /// The user that the case says.
    pub user: Option<String>,
    /// The team that the case says.
    pub team: Option<String>,
    /// On whose behalf the agent is spoken to, once that is known.
    pub identity: Identity,
}

/// What the agent is told beside what the user says.
#[derive(Debug, Clone)]
pub struct Options {
    /// All of it.
    pub value: Value,
    /// Where it is written.
    pub place: Place,
    /// Where its connector is named.
    pub connector: Option<Place>,
}

/// How a conversation begins.
#[derive(Debug, Clone, Default)]
pub struct Opening {
    /// What was said before the first turn.
    pub messages: Vec<Message>,
    /// `input` as it is written, where the case has one.
    pub input: Option<Value>,
}

/// What is done when the agent does not wait for an input and another turn is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnComplete {
    /// The turn is sent.
    #[default]
    Continue,
    /// The conversation is over.
    Stop,
    /// The case fails.
    Fail,
}

/// One user input and what is asserted of its turn.
#[derive(Debug, Clone)]
pub struct Turn {
    /// What the user says, and what is attached to it.
    pub content: Vec<Part>,
    /// What the agent is told beside it, on top of the options of the case.
    pub options: Option<Options>,
    /// Where it is written.
    pub place: Place,
    /// What is asserted of this turn, and what is measured.
    pub checks: Vec<Check>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// The error that the agent must end it with.
    pub expect_error: Option<ExpectedError>,
    /// Answers to interrupts.
    pub resume: Vec<InterruptAnswer>,
}

/// An error that is expected.
#[derive(Debug, Clone)]
pub struct ExpectedError {
    /// What its message fits.
    pub message: Option<Pattern>,
    /// What its code fits.
    pub code: Option<Pattern>,
}

/// What a case was decoded from, kept to decode it again with more variables. Its tree is not kept: few cases need it
/// once more, and it is many times as large as its text.
#[derive(Debug)]
struct Document {
    source: Arc<Source>,
    parse: Parse,
    inherited: Inherited,
    agents: Arc<AgentsByName>,
    shared: Arc<Shared>,
    folders: Arc<[PathBuf]>,
    scenario: Option<Arc<Scenario>>,
    /// Whether a simulated user answers in cases that name none.
    default_simulator: bool,
}

/// How a document becomes a tree.
pub type Parse = fn(&Arc<Source>) -> Result<Node, Diagnostics>;

/// What every case gets from the target.
#[derive(Debug, Clone, Default)]
pub struct Inherited {
    /// What is asserted of each conversation.
    pub case: Block,
    /// What is asserted of each turn.
    pub turn: Block,
    /// What shows that it waits where it does not say so itself.
    pub signs: Signs,
}

impl Case {
    /// Everything that is asserted and measured in it.
    pub fn every_check(&self) -> impl Iterator<Item = &Check> {
        let of_turns = self.turns.iter().flat_map(|turn| &turn.checks);
        let of_checkpoints = self.checkpoints.iter().flat_map(|checkpoint| &checkpoint.checks);
        let of_topics = self.topics.iter().flat_map(|topics| topics.every_check());
        let of_brief = self.brief().into_iter().flat_map(|brief| &brief.stop_when);
        let of_turns = of_turns.chain(&self.unwritten.checks);
        let of_case = self.checks.iter().chain(&self.final_checks);
        of_case.chain(of_turns).chain(of_checkpoints).chain(of_topics).chain(of_brief)
    }

    /// What it has in common with other cases.
    pub fn shared(&self) -> &Shared {
        &self.document.shared
    }

    /// What it asserts and measures of the whole conversation itself, and has not from above: it stands in its file.
    pub fn own_checks(&self) -> impl Iterator<Item = &Check> {
        let is_own = |check: &&Check| check.place.file() == self.place.file();
        self.checks.iter().chain(&self.final_checks).filter(is_own)
    }

    /// What its simulated user is told, where it goes on until there is nothing more to say.
    pub fn brief(&self) -> Option<&Arc<Brief>> {
        self.simulator.as_ref().and_then(|simulator| simulator.brief.as_ref())
    }

    /// Every check, to be changed: also those of turns that are not written.
    fn every_check_mut(&mut self) -> impl Iterator<Item = &mut Check> {
        let turns = self.turns.iter_mut().chain([&mut self.unwritten]);
        let of_turns = turns.flat_map(|turn| &mut turn.checks);
        let of_checkpoints = self.checkpoints.iter_mut().flat_map(|checkpoint| &mut checkpoint.checks);
        let of_topics = self.topics.iter_mut().flat_map(|topics| Arc::make_mut(topics).asserted_mut());
        let brief = self.simulator.as_mut().and_then(|simulator| simulator.brief.as_mut());
        let of_brief = brief.into_iter().flat_map(|brief| &mut Arc::make_mut(brief).stop_when);
        let of_case = self.checks.iter_mut().chain(&mut self.final_checks);
        of_case.chain(of_turns).chain(of_checkpoints).chain(of_topics).chain(of_brief)
    }

    /// Has every check take from around it what it refers to. What is wrong with one that stands for several turns is
    /// said once.
    fn fill_in(&mut self, mistakes: &mut Diagnostics) {
        let vocabulary = self.vocabulary.clone();
        let mut said: Vec<Place> = Vec::new();
        for check in self.every_check_mut() {
            if let Err(wrong) = vocabulary.fill_in(check)
                && !said.contains(&check.place)
            {
                said.push(check.place.clone());
                mistakes.push(wrong);
            }
        }
    }

    /// Decodes a document of one case that names no file. Variables that only hooks can give stay as they are written.
    ///
    /// # Errors
    /// Every mistake of the document.
    pub fn read(source: &Arc<Source>, parse: Parse, decoding: Decoding<'_>) -> Result<Case, Diagnostics> {
        let with = With { decoding, shared: decoding.shared, folders: &Arc::from([]) };
        Case::decode(source, parse(source)?, parse, with, None)
    }

    /// Decodes a document: a case, or one for each of its scenarios; or every mistake.
    pub fn read_all(source: &Arc<Source>, parse: Parse, with: With<'_>) -> Vec<Result<Case, Diagnostics>> {
        let node = match parse(source) {
            Ok(node) => node,
            Err(mistakes) => return vec![Err(mistakes)],
        };
        match scenarios(&node, source, with.folders) {
            None => vec![Case::decode(source, node, parse, with, None)],
            Some(Err(mistakes)) => vec![Err(mistakes)],
            Some(Ok(all)) => all
                .into_iter()
                .map(|scenario| Case::decode(source, node.clone(), parse, with, Some(scenario)))
                .collect(),
        }
    }

    fn decode(
        source: &Arc<Source>,
        mut node: Node,
        parse: Parse,
        with: With<'_>,
        scenario: Option<Arc<Scenario>>,
    ) -> Result<Case, Diagnostics> {
        let Decoding { inherited, agents, environment, redactor, default_simulator, .. } = with.decoding;
        let mut mistakes = Diagnostics::new();
        if let Some(scenario) = &scenario {
            scenario.fill(&mut node, source, redactor, &mut mistakes);
        }
        check(&node, &Kind::Shape(&CASE), source, &mut mistakes);
        if let Some(head) = node.get("suite") {
            let message =
                "`suite` is no key of a case: it is the head of a suite, a first document of its own";
            mistakes.push(Diagnostic::new(message).at(head.place(source)));
        }
        if let Some(mistake) = without_name(&node, source) {
            mistakes.push(mistake);
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let document = Arc::new(Document {
            default_simulator,
            source: source.clone(),
            parse,
            inherited: inherited.clone(),
            agents: agents.clone(),
            shared: with.shared.clone(),
            folders: with.folders.clone(),
            scenario,
        });
        let hooks = hooks(&node, source).count();
        let is_given = hooks > 0 || node.get("before").is_some();
        let given = BTreeMap::new();
        let variables = Variables { environment, given: &given, more_to_come: is_given, redactor };
        let case = decode(&document, &node, variables)?;
        if let Some(agent) = case.agent.as_ref().filter(|agent| agent.is_open()) {
            let message = "`agent` cannot be named by a variable of a hook";
            let help =
                "which agent is tested is known before anything runs: write its name, or `${ENV.NAME}`";
            return Err(Diagnostic::new(message).at(agent.place.clone()).help(help).into());
        }
        // A hook can use what the ones before it have given; the first can use nothing.
        for index in 0..hooks {
            let variables = Variables { more_to_come: index > 0 || case.before.is_some(), ..variables };
            case.hook(index, variables)?;
        }
        Ok(case)
    }

    /// The case with all its variables filled in.
    ///
    /// # Errors
    /// Every variable that is not defined, and whatever is wrong with what they were filled in to.
    pub fn bind(self: &Arc<Self>, variables: Variables<'_>) -> Result<Arc<Case>, Diagnostics> {
        if !self.has_hooks() {
            return Ok(self.clone());
        }
        let case = decode(&self.document, &self.document.node(), variables)?;
        Ok(Arc::new(match &self.body {
            Some(body) => {
                // What a program says beside its document stays said.
                let (id, scenario, simulator) =
                    (self.id.clone(), self.scenario.clone(), self.simulator.clone());
                Case { id, scenario, simulator, ..case.driven_by(body.clone(), self.place.clone()) }
            }
            None => case,
        }))
    }

    /// The case with a body that stands at this place.
    #[must_use]
    pub fn driven_by(self, body: Arc<dyn Body>, place: Place) -> Case {
        let unwritten = Turn { place: place.clone(), ..self.unwritten };
        let written = self.document.source.clone();
        let mut case = Case { body: Some(body), place, unwritten, ..self };
        let at = case.place.clone();
        // The document of a program is nobody's: what it says stands where the body does.
        for check in case.every_check_mut().filter(|check| Arc::ptr_eq(&check.place.source, &written)) {
            check.place = at.clone();
        }
        case
    }

    /// The case of a program, whose users are simulated as the program says.
    #[must_use]
    pub fn with_simulator(self, simulator: Option<Simulator>) -> Case {
        Case { simulator, ..self }
    }

    /// The case of a program, held with a scenario that the program has declared.
    #[must_use]
    pub fn held_with(self, scenario: Scenario, redactor: &Redactor) -> Case {
        let id = format!("{}@{}", self.id, redactor.text(&scenario.id));
        Case { id, scenario: Some(Arc::new(scenario).shown(redactor)), ..self }
    }

    /// The case with the files that are attached read; from the first of these folders that has them.
    ///
    /// # Errors
    /// The first file that is missing or cannot be read, in words.
    pub fn with_attachments(self: &Arc<Self>, folders: &[&Path]) -> Result<Arc<Case>, String> {
        let turns = self.turns.iter().flat_map(|turn| media(&turn.content));
        let messages = self.opening.messages.iter().flat_map(|message| media(&message.content));
        if turns.chain(messages).next().is_none() {
            return Ok(self.clone());
        }
        let mut case = (**self).clone();
        let turns = case.turns.iter_mut().map(|turn| &mut turn.content);
        let messages = case.opening.messages.iter_mut().map(|message| &mut message.content);
        for part in turns.chain(messages).flatten() {
            if let Part::Media(media) = part {
                media.load(folders).map_err(|words| format!("{words} ({})", media.place))?;
            }
        }
        Ok(Arc::new(case))
    }

    /// The case as it is written, with its variables unfilled.
    pub fn to_json(&self) -> Value {
        self.document.node().to_json()
    }

    /// What it was read from, and how.
    pub fn written(&self) -> (&Arc<Source>, Parse) {
        (&self.document.source, self.document.parse)
    }

    /// One of its hooks with its variables filled in.
    ///
    /// # Errors
    /// Every variable that is not defined.
    pub fn hook(&self, index: usize, variables: Variables<'_>) -> Result<Hook, Diagnostics> {
        let (whole, source) = (self.document.node(), &self.document.source);
        let node = hooks(&whole, source).nth(index).expect("the case has this hook");
        Hook::read(node, source, variables)
    }

    /// Whether commands run before it that may give it variables.
    pub fn has_hooks(&self) -> bool {
        self.hooks > 0 || self.before.is_some()
    }
}

impl Document {
    fn node(&self) -> Node {
        let mut node = (self.parse)(&self.source).expect("the same text was parsed before");
        if let Some(scenario) = &self.scenario {
            scenario.fill_in(&mut node, &self.source);
        }
        node
    }

    /// What the case is called, as it is written.
    fn written_name(&self) -> String {
        let node = (self.parse)(&self.source).ok();
        let name = ["name", "id"].iter().find_map(|key| node.as_ref()?.get(key).map(Node::to_json));
        name.and_then(|name| name.as_str().map(str::to_string)).unwrap_or_default()
    }
}

fn hooks<'a>(node: &'a Node, source: &'a Arc<Source>) -> impl Iterator<Item = &'a Node> {
    let hooks = node.get("hooks").map(|hooks| View::new(hooks, source));
    hooks.and_then(View::list).into_iter().flatten().map(|view| view.node)
}

fn decode(document: &Arc<Document>, whole: &Node, variables: Variables<'_>) -> Result<Case, Diagnostics> {
    let source = &document.source;
    let mut mistakes = Diagnostics::new();
    // Hooks have variables of their own; everything else is filled in at once.
    let filled = (source.text.contains("${") || document.scenario.is_some()).then(|| {
        let mut node = whole.clone();
        if let hotseat_document::Value::Map(entries) = &mut node.value {
            for entry in entries.iter_mut().filter(|entry| entry.key.text != "hooks") {
                if let Some(field) = CASE.field(&entry.key.text) {
                    interpolate(&mut entry.value, &field.kind, variables, source, &mut mistakes);
                }
            }
        }
        node
    });
    let node = filled.as_ref().unwrap_or(whole);
    let map = Map::of(node, source, &CASE).expect("the shape was checked");
    let mut found = Diagnostics::new();
    let case = read(document, &map, variables, &mut found);
    if found.is_empty() {
        found.extend(Topics::unknown(case.topics.as_deref(), case.every_check()));
        found.extend(case.brief().iter().flat_map(|brief| brief.unknown_topics(case.topics.as_deref())));
    }
    // What is wrong with a text that holds a variable is judged when the variable is known.
    let is_open =
        |mistake: &Diagnostic| mistake.place.as_ref().is_some_and(|place| place.text().contains("${"));
    mistakes.extend(found.into_iter().filter(|mistake| !variables.more_to_come || !is_open(mistake)));
    if mistakes.is_empty() { Ok(case) } else { Err(in_order(mistakes)) }
}

/// Reads a case whose variables are filled in.
fn read(
    document: &Arc<Document>,
    map: &Map<'_>,
    variables: Variables<'_>,
    mistakes: &mut Diagnostics,
) -> Case {
    let agent = map.get("agent").and_then(AgentName::read).or_else(|| document.shared.agent.clone());
    let of_agent = agent.as_ref().map(|agent| agent.inherited(&document.agents));
    let inherited = of_agent.unwrap_or(Ok(&document.inherited)).unwrap_or_else(|wrong| {
        mistakes.push(wrong);
        &document.inherited
    });
    let every_turn = Block::read(map.get("turn_assert"), mistakes).over(&inherited.turn);
    // These are shown wherever the case is; what hooks give is not in them yet.
    let shown = |text: &str| variables.redactor.text(text).into_owned();
    let (id, name) = (map.text("id"), map.text("name"));
    let called = document.scenario.as_ref().map(|scenario| {
        let written = document.written_name();
        names(name.or(id).unwrap_or_default(), id, &written, scenario)
    });
    let (id, name) = match &called {
        Some((name, id)) => (Some(id.as_str()), Some(name.as_str())),
        None => (id, name),
    };
    let options = options(map, None, mistakes);
    let (mut opening, turns) = inputs(map, &every_turn, options.as_ref(), mistakes);
    // As it is written it stands in reports only.
    opening.input = opening.input.map(|input| variables.redactor.json(input));
    let (simulator, told_max) = partners::simulator(map, mistakes);
    let topics = followed(document, map, mistakes);
    let simulator = briefed(document, map, mistakes).or(simulator);
    let interactive = partners::interactive(map, mistakes);
    let max_turns = map.integer("max_turns").and_then(|n| usize::try_from(n).ok()).or(told_max);
    if let Some(max) = max_turns.filter(|max| turns.len() > *max) {
        let message = format!("there are {} turns, and `max_turns` is {max}", turns.len());
        let place = map.place_of("max_turns").or_else(|| map.key_place("simulator"));
        mistakes.push(mistake(place, message));
    }
    if map.text("type") == Some("single_turn") && turns.len() > 1 {
        let message = format!("there are {} turns, and `type` says that there is one", turns.len());
        mistakes.push(mistake(map.place_of("type"), message));
    }
    let expects_more =
        map.text("type") == Some("multi_turn") || simulator.is_some() || map.has("interactive");
    let mut checks = Block::read(map.get("assert"), mistakes).over(&inherited.case).checks();
    checks.extend(Block::read(map.get("evaluate"), mistakes).soft_checks());
    checks.extend(expected(map));
    let is_single_turn = map.text("type") == Some("single_turn");
    let simulator = simulator
        .or_else(|| (document.default_simulator && !is_single_turn).then(|| Simulator::unnamed(map.place())));
    let vocabulary = vocabulary(map, simulator.as_ref(), &document.shared.vocabulary, mistakes);
    let mut case = Case {
        id: shown(id.or(name).unwrap_or_default()),
        place: map.place_of("name").or_else(|| map.place_of("id")).unwrap_or_else(|| map.place()),
        name: shown(name.or(id).unwrap_or_default()),
        named: name.is_some(),
        skip: match (map.bool("skip"), map.text("skip")) {
            (_, Some(reason)) => Some(shown(reason)),
            (Some(true), None) => Some("`skip: true`".to_string()),
            (Some(false) | None, None) => None,
        },
        only: false,
        timeout: timeout(map, mistakes),
        retries: map.integer("retries").and_then(|n| usize::try_from(n).ok()),
        reliability: reliability(map, mistakes),
        before: hook::named(map, "before"),
        after: hook::named(map, "after"),
        hooks: map.list("hooks").into_iter().flatten().count(),
        tags: map.list("tags").into_iter().flatten().filter_map(View::text).map(shown).collect(),
        metadata: map.json("metadata").map(|metadata| variables.redactor.json(metadata)),
        agent,
        target: CaseTarget {
            thread_id: map.text("threadId").map(str::to_string),
            state: map.json("state"),
            context: map.json("context"),
            forwarded_props: map.json("forwardedProps"),
            tools: client_tools(map, "tools", mistakes),
            metadata: map.json("metadata"),
            user: map.text("user").map(str::to_string),
            team: map.text("team").map(str::to_string),
            identity: Identity::default(),
        },
        opening,
        turns,
        checkpoints: checkpoints(map, mistakes),
        unwritten: Turn::saying(Vec::new(), options, map.place(), &every_turn),
        is_dynamic: simulator.is_some() && map.has("checkpoints"),
        simulator,
        topics,
        following: Following::read(map),
        scenario: document.scenario.as_ref().map(|scenario| scenario.shown(variables.redactor)),
        interactive,
        max_turns,
        on_complete: match map.text("on_complete") {
            Some("stop") => OnComplete::Stop,
            Some("fail") => OnComplete::Fail,
            _ => OnComplete::Continue,
        },
        signs: signs(map, &inherited.signs),
        continue_on_failure: map.bool("continue_on_failure") == Some(true),
        on_missing_input: match map.text("on_missing_input") {
            Some("skip") => OnMissingInput::Skip,
            Some("fail") => OnMissingInput::Fail,
            Some(_) => OnMissingInput::End,
            None if expects_more => OnMissingInput::Skip,
            None => OnMissingInput::End,
        },
        body: None,
        checks,
        final_checks: Block::read(map.get("final_assertions"), mistakes).checks(),
        vocabulary,
        document: document.clone(),
    };
    case.fill_in(mistakes);
    mistakes.extend(unfollowed(map, &case));
    case
}

/// What assertions take from around them, with what the case says of it.
fn vocabulary(
    map: &Map<'_>,
    simulator: Option<&Simulator>,
    above: &Arc<Vocabulary>,
    mistakes: &mut Diagnostics,
) -> Arc<Vocabulary> {
    let told =
        |simulator: &Simulator| Some(simulator.options.get("metadata")?.get("goal")?.as_str()?.to_string());
    let briefed = |simulator: &Simulator| simulator.brief.as_ref()?.goal.clone();
    let goal = simulator.and_then(|simulator| briefed(simulator).or_else(|| told(simulator)));
    if goal.is_none() && !map.has("criteria") && !map.has("judge") {
        return above.clone();
    }
    let vocabulary = above.with_criteria(map.get("criteria"), mistakes);
    let vocabulary = vocabulary.with_judging(judging(map.get("judge"), mistakes));
    Arc::new(vocabulary.with_goal(goal))
}

/// The topics of a case and its graph, where it has one.
fn followed(document: &Document, map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<Arc<Topics>> {
    let shared = &document.shared;
    let known = topics(map.get("topics"), &shared.topics, mistakes);
    let Some(view) = map.get("graph").or_else(|| shared.graph()) else {
        if let Some(place) = map.key_place("topics") {
            let wrong = mistake(Some(place), "these topics are followed by nobody: there is no `graph`");
            mistakes.push(wrong.help("write a `graph` that says which topics may follow which"));
        }
        return None;
    };
    let topics = graph(view, &known, mistakes)?;
    Some(Arc::new(Topics { following: Following::read(map), ..topics }))
}

/// What is wrong with topics of the case that its graph does not have.
fn unfollowed(map: &Map<'_>, case: &Case) -> Diagnostics {
    let is_followed = |name: &str| case.topics.as_ref().is_some_and(|own| own.graph.place(name).is_some());
    let own = topics(map.get("topics"), &[], &mut Diagnostics::new());
    let unfollowed = own.iter().filter(|topic| !is_followed(&topic.name));
    let mut mistakes = Diagnostics::new();
    unfollowed.for_each(|topic| mistakes.extend(topic.unknown_criteria(&case.vocabulary)));
    mistakes
}

/// The simulated user that goes on until there is nothing more to say.
fn briefed(document: &Document, map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<Simulator> {
    let view = map.get("simulate")?;
    let place = map.key_place("simulate").unwrap_or_else(|| view.place());
    if map.has("simulator") {
        let wrong =
            mistake(map.key_place("simulator"), "`simulate` and `simulator` both say who the user is");
        mistakes.push(wrong.help("leave one of them out: `simulate` has `use`, too"));
    }
    let mut brief = Brief::read_own(view, &document.shared.simulate, mistakes)?;
    brief.max_turns =
        brief.max_turns.or_else(|| map.integer("max_turns").and_then(|n| usize::try_from(n).ok()));
    if let Some(template) = &mut brief.template
        && let Err(words) = template.load(&document.folders)
    {
        mistakes.push(mistake(Some(template.place.clone()), words));
    }
    Some(brief.simulator(place))
}

/// What shows that the agent waits; what is not written holds as it is above.
pub fn signs(map: &Map<'_>, above: &Signs) -> Signs {
    let Some(written) = map.get("awaiting").and_then(|view| view.map(&AWAITING)) else {
        return above.clone();
    };
    let tools =
        written.list("tools").map(|tools| tools.into_iter().filter_map(View::text).map(str::to_string));
    Signs {
        tools: tools.map_or_else(|| above.tools.clone(), Iterator::collect),
        questions: written.bool("questions").unwrap_or(above.questions),
    }
}

/// `expected`: it decides where nothing else is asserted.
fn expected(map: &Map<'_>) -> Option<Check> {
    let value = map.json("expected")?;
    let asserts = ["assert", "final_assertions", "checkpoints"].iter().any(|key| map.has(key))
        || map
            .list("turns")
            .into_iter()
            .flatten()
            .any(|turn| turn.map(&TURN).is_some_and(|turn| turn.has("assert")));
    let written = serde_json::json!({"type": "equals", "value": value});
    let place = map.place_of("expected").unwrap_or_else(|| map.place());
    Some(Check {
        strength: if asserts { Strength::Soft } else { Strength::Hard },
        written: Some(Arc::new(written)),
        ..Check::new(CheckKind::Equals(Equals { value }), place)
    })
}

impl Turn {
    /// Reads the files that are attached to it; from the first of these folders that has them.
    ///
    /// # Errors
    /// The first file that is missing or cannot be read, in words.
    pub fn load_attachments(&mut self, folders: &[&Path]) -> Result<(), String> {
        for part in &mut self.content {
            if let Part::Media(media) = part {
                media.load(folders)?;
            }
        }
        Ok(())
    }

    /// A turn of which only that is asserted which holds of every turn.
    fn saying(content: Vec<Part>, options: Option<Options>, place: Place, every_turn: &Block) -> Turn {
        Turn {
            content,
            options,
            place,
            checks: every_turn.checks(),
            timeout: None,
            expect_error: None,
            resume: Vec::new(),
        }
    }
}

/// A case that is called nothing. One of whose keys is misspelt is complained about once, for that.
fn without_name(node: &Node, source: &Arc<Source>) -> Option<Diagnostic> {
    let hotseat_document::Value::Map(entries) = &node.value else { return None };
    let names = |key: &str| matches!(key, "name" | "id");
    if entries.iter().any(|entry| names(&entry.key.text) || CASE.field(&entry.key.text).is_none()) {
        return None;
    }
    let mistake = Diagnostic::new("this case has neither `name` nor `id`").at(node.place(source));
    Some(
        mistake.help(
            "`name`: what the case is called in reports; `id`: a short name that stays when that changes",
        ),
    )
}

/// What is said before the first turn, and the turns.
fn inputs(
    map: &Map<'_>,
    every_turn: &Block,
    case_options: Option<&Options>,
    mistakes: &mut Diagnostics,
) -> (Opening, Vec<Turn>) {
    let mut before = messages(map.list("messages").into_iter().flatten(), mistakes);
    let Some(input) = map.get("input") else {
        let written = map.list("turns").into_iter().flatten().filter_map(|view| view.map(&TURN));
        let turns = written.map(|map| turn(&map, every_turn, case_options, mistakes)).collect();
        return (Opening { messages: before, input: None }, turns);
    };
    if let Some(place) = map.key_place("turns") {
        let wrong = mistake(Some(place), "`input` and `turns` both say what the user says first");
        mistakes.push(
            wrong.help("make `input` the first of the `turns`; what was said before stands under `messages`"),
        );
    }
    let content = match input.text() {
        Some(text) => vec![Part::Text(text.to_string())],
        None => {
            let mut said = messages(input.one_or_many(), mistakes);
            let last = said.pop();
            before.extend(said);
            match last {
                Some(last) if last.role == Role::User => last.content,
                _ => {
                    let place = input.one_or_many().last().map(View::place);
                    let wrong = mistake(
                        place,
                        "the last message of `input` is what the agent answers, so it is the user's",
                    );
                    mistakes.push(wrong.help("what was said before stands before it, or under `messages`"));
                    Vec::new()
                }
            }
        }
    };
    // What the case asserts is asserted of the conversation, which is this one turn; what every turn must hold, too.
    let turn = Turn::saying(content, case_options.cloned(), input.place(), every_turn);
    (Opening { messages: before, input: Some(input.json()) }, vec![turn])
}

/// Mistakes in the order of the file, whichever step has found them.
fn in_order(mistakes: Diagnostics) -> Diagnostics {
    let mut all: Vec<Diagnostic> = mistakes.into_iter().collect();
    all.sort_by_key(|diagnostic| diagnostic.place.as_ref().map(|place| place.span.start));
    let mut ordered = Diagnostics::new();
    ordered.extend(all);
    ordered
}

pub(super) fn turn(
    map: &Map<'_>,
    inherited: &Block,
    case_options: Option<&Options>,
    mistakes: &mut Diagnostics,
) -> Turn {
    let expect_error = map.get("expect_error").map(|view| match view.map(&EXPECTED_ERROR) {
        None => ExpectedError { message: pattern(view, mistakes), code: None },
        Some(error) => {
            if error.is_empty() {
                mistakes.push(mistake(Some(view.place()), "`expect_error` needs `message` or `code`"));
            }
            ExpectedError {
                message: error.get("message").and_then(|view| pattern(view, mistakes)),
                code: error.get("code").and_then(|view| pattern(view, mistakes)),
            }
        }
    });
    let mut content = map.get("user").map(|said| said_in_turn(said, mistakes)).unwrap_or_default();
    content.extend(attachments(map, mistakes));
    let mut checks = Block::read(map.get("assert"), mistakes).over(inherited).checks();
    checks.extend(Block::read(map.get("evaluate"), mistakes).soft_checks());
    Turn {
        content,
        options: options(map, case_options, mistakes),
        place: map.place_of("user").unwrap_or_else(|| map.place()),
        checks,
        timeout: timeout(map, mistakes),
        expect_error,
        resume: interrupt_answers(map, mistakes),
    }
}

/// The options of a case or a turn, on top of `below`.
fn options(map: &Map<'_>, below: Option<&Options>, mistakes: &mut Diagnostics) -> Option<Options> {
    let Some(view) = map.get("options") else { return below.cloned() };
    let mut connector = None;
    for (key, _, view) in view.entries().into_iter().flatten() {
        match key {
            "connector" if view.text().is_none_or(str::is_empty) => {
                let wrong = mistake(Some(view.place()), "`connector` must be a name");
                mistakes.push(wrong);
            }
            "connector" => connector = Some(view.place()),
            "metadata" if view.entries().is_none() => {
                mistakes.push(mistake(Some(view.place()), "`metadata` must be a mapping"));
            }
            _ => {}
        }
    }
    Some(match below {
        Some(below) => Options {
            value: merged(&below.value, &view.json()),
            place: view.place(),
            connector: connector.or_else(|| below.connector.clone()),
        },
        None => Options { value: view.json(), place: view.place(), connector },
    })
}

/// What the user says in a turn: text, parts, or a message of the user's.
fn said_in_turn(view: View<'_>, mistakes: &mut Diagnostics) -> Vec<Part> {
    let Some(map) = view.map(&MESSAGE) else { return parts(view, mistakes) };
    let said = messages(std::iter::once(view), mistakes).pop();
    match said {
        Some(said) if said.role == Role::User => said.content,
        _ => {
            mistakes.push(mistake(map.place_of("role"), "in a turn it is the user who speaks"));
            Vec::new()
        }
    }
}
