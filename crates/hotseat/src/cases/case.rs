//! A case, decoded.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::block::{Block, pattern};
use super::limits::millis;
use super::script::{client_tools, interrupt_answers};
use super::shape::{CASE, EXPECTED_ERROR, HOOK, TURN};
use super::suite::Decoding;
use super::variables::{Variables, interpolate, mistake};
use crate::checks::{Check, Pattern};
use crate::session::{ClientTool, InterruptAnswer};
use hotseat_document::{Diagnostic, Diagnostics, Kind, Map, Node, Place, Source, View, check};

/// One test.
#[derive(Debug, Clone)]
pub struct Case {
    /// A short name that stays the same when the name changes.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// Where its name is written.
    pub place: Place,
    /// Why it is left out of runs, if it is.
    pub skip: Option<String>,
    /// How long all turns together may take.
    pub timeout: Option<Duration>,
    /// How many hooks it has; each is decoded when the ones before it have run.
    pub hooks: usize,
    /// What it says about the target.
    pub target: CaseTarget,
    /// What the user says, turn by turn.
    pub turns: Vec<Turn>,
    /// What is asserted of the whole conversation, with what the target asserts.
    pub checks: Vec<Check>,
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
}

/// One user input and what is asserted of its turn.
#[derive(Debug, Clone)]
pub struct Turn {
    /// What the user says.
    pub user: String,
    /// Where it is written.
    pub place: Place,
    /// What is asserted of this turn.
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

/// A command that runs before the first turn.
#[derive(Debug, Clone)]
pub struct Hook {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long it may run.
    pub timeout: Duration,
    /// Environment variables added for it.
    pub env: BTreeMap<String, String>,
    /// Its working folder, relative to the default one.
    pub cwd: Option<PathBuf>,
}

/// What a case was decoded from, kept to decode it again with more variables.
#[derive(Debug)]
struct Document {
    source: Arc<Source>,
    node: Node,
    inherited: Inherited,
}

/// What every case gets from the target.
#[derive(Debug, Clone, Default)]
pub struct Inherited {
    /// What is asserted of each conversation.
    pub case: Block,
    /// What is asserted of each turn.
    pub turn: Block,
}

impl Case {
    /// Decodes a case from a document. Variables that only its hooks can give stay as they are written.
    ///
    /// # Errors
    /// Every mistake of the document.
    pub fn read(source: &Arc<Source>, node: Node, decoding: Decoding<'_>) -> Result<Case, Diagnostics> {
        let Decoding { inherited, environment, redactor } = decoding;
        let mut mistakes = Diagnostics::new();
        check(&node, &Kind::Shape(&CASE), source, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let document = Arc::new(Document { source: source.clone(), node, inherited: inherited.clone() });
        let hooks = document.hooks().count();
        let given = BTreeMap::new();
        let variables = Variables { environment, given: &given, more_to_come: hooks > 0, redactor };
        let case = decode(&document, variables)?;
        // A hook can use what the ones before it have given; the first can use nothing.
        for index in 0..hooks {
            let variables = Variables { more_to_come: index > 0, ..variables };
            case.hook(index, variables)?;
        }
        Ok(case)
    }

    /// The case with all its variables filled in.
    ///
    /// # Errors
    /// Every variable that is not defined, and whatever is wrong with what they were filled in to.
    pub fn bind(self: &Arc<Self>, variables: Variables<'_>) -> Result<Arc<Case>, Diagnostics> {
        if self.hooks == 0 { Ok(self.clone()) } else { decode(&self.document, variables).map(Arc::new) }
    }

    /// One of its hooks with its variables filled in.
    ///
    /// # Errors
    /// Every variable that is not defined.
    pub fn hook(&self, index: usize, variables: Variables<'_>) -> Result<Hook, Diagnostics> {
        let source = &self.document.source;
        let mut mistakes = Diagnostics::new();
        let mut node = self.document.hooks().nth(index).cloned().expect("the case has this hook");
        interpolate(&mut node, &Kind::Shape(&HOOK), variables, source, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let map = Map::of(&node, source, &HOOK).expect("the shape was checked");
        let texts = map.list("cmd").into_iter().flatten().filter_map(View::text);
        let env = map.get("env").and_then(View::entries).into_iter().flatten();
        Ok(Hook {
            command: texts.map(str::to_string).collect(),
            timeout: map.integer("timeout_ms").map_or(Duration::from_secs(30), millis),
            env: env
                .filter_map(|(key, _, value)| Some((key.to_string(), value.text()?.to_string())))
                .collect(),
            cwd: map.text("cwd").map(PathBuf::from),
        })
    }
}

impl Document {
    fn hooks(&self) -> impl Iterator<Item = &Node> {
        let hooks = self.node.get("hooks").map(|hooks| View::new(hooks, &self.source));
        hooks.and_then(View::list).into_iter().flatten().map(|view| view.node)
    }
}

fn decode(document: &Arc<Document>, variables: Variables<'_>) -> Result<Case, Diagnostics> {
    let source = &document.source;
    let mut mistakes = Diagnostics::new();
    // Hooks have variables of their own; everything else is filled in at once.
    let filled = source.text.contains("${").then(|| {
        let mut node = document.node.clone();
        if let hotseat_document::Value::Map(entries) = &mut node.value {
            for entry in entries.iter_mut().filter(|entry| entry.key.text != "hooks") {
                if let Some(field) = CASE.field(&entry.key.text) {
                    interpolate(&mut entry.value, &field.kind, variables, source, &mut mistakes);
                }
            }
        }
        node
    });
    let node = filled.as_ref().unwrap_or(&document.node);
    let map = Map::of(node, source, &CASE).expect("the shape was checked");
    let inherited = &document.inherited;
    let every_turn = Block::read(map.get("turn_assert"), &mut mistakes).over(&inherited.turn);
    // These are shown wherever the case is; what hooks give is not in them yet.
    let shown = |text: &str| variables.redactor.text(text).into_owned();
    let name = shown(map.text("name").unwrap_or_default());
    let turns = map.list("turns").into_iter().flatten().filter_map(|view| view.map(&TURN));
    let case = Case {
        id: map.text("id").map_or_else(|| name.clone(), shown),
        place: map.place_of("name").unwrap_or_else(|| map.place()),
        name,
        skip: match (map.bool("skip"), map.text("skip")) {
            (_, Some(reason)) => Some(shown(reason)),
            (Some(true), None) => Some("`skip: true`".to_string()),
            (Some(false) | None, None) => None,
        },
        timeout: map.integer("timeout_ms").map(millis),
        hooks: document.hooks().count(),
        target: CaseTarget {
            thread_id: map.text("threadId").map(str::to_string),
            state: map.json("state"),
            context: map.json("context"),
            forwarded_props: map.json("forwardedProps"),
            tools: client_tools(&map, "tools", &mut mistakes),
        },
        turns: turns.map(|map| turn(&map, &every_turn, &mut mistakes)).collect(),
        checks: Block::read(map.get("assert"), &mut mistakes).over(&inherited.case).checks(),
        document: document.clone(),
    };
    if mistakes.is_empty() { Ok(case) } else { Err(in_order(mistakes)) }
}

/// Mistakes in the order of the file, whichever step has found them.
fn in_order(mistakes: Diagnostics) -> Diagnostics {
    let mut all: Vec<Diagnostic> = mistakes.into_iter().collect();
    all.sort_by_key(|diagnostic| diagnostic.place.as_ref().map(|place| place.span.start));
    let mut ordered = Diagnostics::new();
    ordered.extend(all);
    ordered
}

fn turn(map: &Map<'_>, inherited: &Block, mistakes: &mut Diagnostics) -> Turn {
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
    Turn {
        user: map.text("user").unwrap_or_default().to_string(),
        place: map.place_of("user").unwrap_or_else(|| map.place()),
        checks: Block::read(map.get("assert"), mistakes).over(inherited).checks(),
        timeout: map.integer("timeout_ms").map(millis),
        expect_error,
        resume: interrupt_answers(map, mistakes),
    }
}
