//! An agent as the project file describes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::shape::TARGET;
use super::start::Start;
use super::target::{BoundTarget, Hears, Kind, Target};
use crate::adapters::in_code::InCode;
use crate::cases::{Block, Inherited, Variables, interpolate, literal, millis, references, signs};
use crate::session::{Redactor, Signs, Timeouts};
use hotseat_document::{self as document, Diagnostic, Diagnostics, Map, Node, Source, Value};
use hotseat_runtime::files::Connectors;

/// How long a turn may take where nobody says.
const TURN: Duration = Duration::from_secs(120);
/// How long nothing at all may be received where nobody says.
const IDLE: Duration = Duration::from_secs(60);

/// What an agent is read with.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    /// The folder that its paths start from.
    pub(super) root: &'a Path,
    /// The language models of the project.
    pub(super) connectors: &'a Arc<Connectors>,
    /// The environment.
    pub(super) environment: &'a BTreeMap<String, String>,
}

/// An agent: the one under `target`, or one of `agents`.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Its name; none for the one that is written out under `target`.
    pub name: Option<Arc<str>>,
    /// What it is for, where the project file says so.
    pub description: Option<String>,
    /// Suites below this folder test it.
    pub folder: Option<PathBuf>,
    /// What is asserted of every case and turn with it.
    pub inherited: Inherited,
    /// How it is started, if Hotseat is to start it.
    pub start: Option<Start>,
    /// How long it may take.
    pub timeouts: Timeouts,
    /// Whether its settings use variables that hooks give, so that it differs from case to case.
    pub varies: bool,
    /// What keeps it from being used, although nothing is wrong with the file: variables that are not set.
    unset: Vec<Diagnostic>,
    /// What of a case it is told.
    hears: Hears,
    /// The language models that its turns can name; none where its own files are not known yet.
    known: Option<Arc<Connectors>>,
    root: PathBuf,
    connectors: Arc<Connectors>,
    source: Arc<Source>,
    node: Node,
    /// What it is where it is a part of this program: then nothing of it is written in a project file.
    in_code: Option<Arc<dyn InCode>>,
}

impl Agent {
    /// Reads an agent whose shape was checked.
    pub(super) fn read(
        name: Option<&str>,
        node: &Node,
        source: &Arc<Source>,
        around: Surroundings<'_>,
        mistakes: &mut Diagnostics,
    ) -> Agent {
        let Surroundings { root, connectors, environment } = around;
        // Variables of the environment are filled in now; those of hooks when a case has them. One that is not set
        // matters only where the agent is used.
        let mut filled = node.clone();
        let (given, none) = (BTreeMap::new(), Redactor::default());
        let variables = Variables { environment, given: &given, more_to_come: true, redactor: &none };
        let mut unset = Diagnostics::new();
        interpolate(&mut filled, &document::Kind::Tagged(&TARGET), variables, source, &mut unset);
        let unset: Vec<Diagnostic> = unset.into_iter().collect();

        let shape = TARGET.shape_of(node).expect("the shape was checked");
        let map = Map::of(&filled, source, shape).expect("the shape was checked");
        let inherited = Inherited {
            case: Block::read(map.get("assert"), mistakes),
            turn: Block::read(map.get("turn_assert"), mistakes),
            signs: signs(&map, &Signs::default()),
        };
        let has_start = shape.field("start").is_some() && unset.is_empty();
        let start = if has_start { Start::read(&map, root, mistakes) } else { None };
        if let (None, Some(place)) = (name, map.key_place("folder")) {
            mistakes.push(Diagnostic::new("`folder` goes with one of `agents`").at(place));
        }
        // What variables of hooks will be filled in to is looked at then.
        let bound = match unset.is_empty() && !says_variable(&filled) {
            true => BoundTarget::read(&map, around, mistakes),
            false => None,
        };
        let kind = Kind::of(shape);
        let known = match bound.map(|bound| bound.target) {
            Some(Target::Embedded(target)) => Some(Arc::new(target.agent.known.clone())),
            _ => (kind != Kind::Embedded).then(|| connectors.clone()),
        };
        let limit = |key: &str, default: Duration| {
            let given = shape.field(key).and_then(|_| map.integer(key));
            given.map_or(default, millis)
        };
        Agent {
            name: name.map(Arc::from),
            description: map.text("description").map(str::to_string),
            folder: map.text("folder").map(|folder| root.join(folder)),
            inherited,
            start,
            timeouts: Timeouts {
                turn: limit("timeout_ms", TURN),
                idle: limit("idle_timeout_ms", IDLE),
                case: None,
            },
            varies: varies(node),
            unset,
            hears: Hears::of(kind, node),
            known,
            root: root.to_path_buf(),
            connectors: connectors.clone(),
            source: source.clone(),
            node: node.clone(),
            in_code: None,
        }
    }

    /// An agent that is a part of this program.
    pub fn in_code(agent: Arc<dyn InCode>) -> Agent {
        let connectors = Arc::<Connectors>::default();
        let node: Node = serde_json::Value::Null.into();
        Agent {
            name: None,
            description: None,
            folder: None,
            inherited: Inherited::default(),
            start: None,
            timeouts: Timeouts { turn: TURN, idle: IDLE, case: None },
            varies: false,
            unset: Vec::new(),
            hears: Hears::of(Kind::InCode, &node),
            known: Some(connectors.clone()),
            root: PathBuf::new(),
            connectors,
            source: Source::new("", "", 1),
            node,
            in_code: Some(agent),
        }
    }

    /// This agent with what is asserted of it and the tools that it is offered, but served from recordings, whose path
    /// starts from the root of `around`.
    pub(super) fn replayed(&self, from: &str, around: Surroundings<'_>, mistakes: &mut Diagnostics) -> Agent {
        let mut node = replay_node(from);
        if let (Value::Map(entries), Value::Map(own)) = (&mut node.value, &self.node.value) {
            entries.extend(own.iter().filter(|entry| KEPT_IN_REPLAY.contains(&&*entry.key.text)).cloned());
        }
        let agent = Agent::read(self.name.as_deref(), &node, &self.source, around, mistakes);
        Agent { folder: self.folder.clone(), ..agent }
    }

    /// An agent that serves recordings, and of which nothing is asserted.
    pub(super) fn of_recordings(from: &str, around: Surroundings<'_>, mistakes: &mut Diagnostics) -> Agent {
        Agent::read(None, &replay_node(from), &Source::new("-n", "", 1), around, mistakes)
    }

    /// What keeps it from being used.
    pub fn unset(&self) -> impl Iterator<Item = &Diagnostic> {
        self.unset.iter()
    }

    /// The agent with its variables filled in.
    ///
    /// # Errors
    /// Variables that are not defined, and whatever is wrong with what they were filled in to.
    pub fn bind(&self, variables: Variables<'_>) -> Result<BoundTarget, Diagnostics> {
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
        let map = Map::of(&node, &self.source, shape).expect("the shape was checked");
        let around = Surroundings {
            root: &self.root,
            connectors: &self.connectors,
            environment: variables.environment,
        };
        let bound = BoundTarget::read(&map, around, &mut mistakes);
        match (bound, mistakes.is_empty()) {
            (Some(target), true) => Ok(target),
            _ => Err(mistakes),
        }
    }

    /// Whether it is told what is given under a key of cases, or `metadata` of calls.
    pub fn hears(&self, key: &str) -> bool {
        self.hears.hears(key)
    }

    /// What cannot be said to it, of a case or of the command line, with notes for people.
    pub(super) fn ears(&self) -> &Hears {
        &self.hears
    }

    /// The language models that turns with it can name; none where that differs from case to case.
    pub(super) fn connectors(&self) -> Option<&Connectors> {
        self.known.as_deref()
    }
}

/// The settings of an agent that hold for its recordings too.
const KEPT_IN_REPLAY: [&str; 6] = ["description", "tools", "timeout_ms", "assert", "turn_assert", "awaiting"];

/// What would be written for an agent that serves recordings.
fn replay_node(from: &str) -> Node {
    // A path may hold what looks like a variable.
    serde_json::json!({"type": "replay", "from": literal(from)}).into()
}

/// Whether texts below a node have variables that are still to be filled in.
fn says_variable(node: &Node) -> bool {
    any_text(node, &|text| text.contains("${"))
}

/// Whether texts below a node use variables that hooks give.
fn varies(node: &Node) -> bool {
    any_text(node, &|text| !references(text).iter().all(|(_, environment)| *environment))
}

fn any_text(node: &Node, fits: &impl Fn(&str) -> bool) -> bool {
    match &node.value {
        Value::String(text) => fits(text),
        Value::List(nodes) => nodes.iter().any(|node| any_text(node, fits)),
        Value::Map(entries) => entries.iter().any(|entry| any_text(&entry.value, fits)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
