//! What is told of a case and of what it came to: data, with nothing that could decide or be held once more. Reports
//! get the same of a run that goes on and of one that is kept, so it can all be written down and read back. A new member
//! has a default: what was kept before does not have it.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use hotseat_document::{Place, Source};
use hotseat_trace::CheckVerdict;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::mode::Mode;
use crate::cases::{Case, Parse, Scenario, Suite, parse_as, stable_id};
use crate::checks::{Check, CheckKind, Reference, Strength};
use crate::session::{Body, Checked, Opinion, Reached, Signs, TopicVisit};

/// Which case something is told of.
#[derive(Debug, Clone)]
pub struct Told {
    /// Its place in the run, from 0.
    pub index: usize,
    /// The case.
    pub case: CaseFacts,
    /// Its suite.
    pub suite: Arc<Suite>,
    /// The agent that it tests, by its place among those of the setting; none where the project does not say.
    pub agent: Option<usize>,
}

/// What is told of a case, however it was written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CaseFacts {
    /// A short name that stays the same when the name changes.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// Whether that is written; otherwise it is called by its id.
    pub named: bool,
    /// Where its name is written.
    #[serde(skip, default = "nowhere")]
    pub place: Place,
    /// Why it is left out of runs, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// Words by which it is grouped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Anything else that reports hold of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// `input` as it is written, where the case has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// How many turns are written.
    pub turns: usize,
    /// What kind of conversation it is.
    pub mode: Mode,
    /// Its simulated user, if it has one, by how it refers to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulator: Option<SimulatorFacts>,
    /// Whether it wants a person asked.
    #[serde(default)]
    pub interactive: bool,
    /// What shows that the agent waits where it does not say so itself.
    pub signs: Signs,
    /// The scenario that it is held with, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<Arc<Scenario>>,
    /// A digest of what judges it and is not written in it: what project and suite assert, what criteria mean, who judges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_from_around: Option<String>,
    /// How it is driven.
    #[serde(default)]
    pub driven: Driven,
    /// What it was read from.
    #[serde(skip, default = "Written::nothing")]
    pub written: Written,
}

/// How the conversation of a case is driven.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Driven {
    /// By what is written in the case.
    #[default]
    Written,
    /// By a program whose text has this digest.
    Program(String),
    /// By a program of which nothing is known but that it is one.
    Unknown,
}

/// What is told of the simulated user of a case.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SimulatorFacts {
    /// Who it is; none where the case leaves that to the project or the command line.
    pub reference: Option<Reference>,
}

/// What a case was read from.
#[derive(Debug, Clone)]
pub struct Written {
    /// The piece of the file that it stands in.
    pub source: Arc<Source>,
    parse: Parse,
}

/// What one check came to, and which check it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Finding {
    /// The check.
    pub check: CheckFacts,
    /// The turn it looked at, from 1; none for the whole conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    /// Whether it was written under `final_assertions`.
    #[serde(default)]
    pub is_final: bool,
    /// What it came to.
    pub verdict: CheckVerdict,
    /// Why it could not be decided, if it could not: then it does not hold, and the agent is not to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What a function that decided it said to `console`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// The visit of the topic that asserts it, where a topic does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<TopicVisit>,
    /// What the judge said who decided it, or was to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opinion: Option<Opinion>,
}

/// What is told of a check.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CheckFacts {
    /// Where it was written.
    #[serde(skip, default = "nowhere")]
    pub place: Place,
    /// Whether it must not hold.
    #[serde(default)]
    pub negated: bool,
    /// Whether it decides, or is only measured.
    pub strength: Strength,
    /// What people want to read when it does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The assertion as it was written, where it is one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Arc<Value>>,
    /// The criterion that it decides, where it decides one: its name, or what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criterion: Option<Arc<str>>,
}

/// A checkpoint, and in which turn it was reached.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReachedFacts {
    /// The checkpoint.
    pub checkpoint: CheckpointFacts,
    /// The turn, from 1.
    pub at: Option<usize>,
    /// Why it was not reached in the last turn that was looked at, in words.
    pub missing: Option<String>,
}

/// What is told of a checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CheckpointFacts {
    /// Its name.
    pub id: String,
    /// What it stands for.
    pub description: Option<String>,
    /// Whether the case fails if it is not reached.
    pub required: bool,
    /// The tool whose call it waits for, if it is one.
    pub tool: Option<String>,
    /// Where its name is written.
    #[serde(skip, default = "nowhere")]
    pub place: Place,
}

/// A few digits that stand for a text.
pub(crate) fn short_digest(text: &str) -> String {
    let whole = digest(&SHA256, text.as_bytes());
    whole.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The place of what is not yet known to be written anywhere.
pub(crate) fn nowhere() -> Place {
    static NOTHING: LazyLock<Arc<Source>> = LazyLock::new(|| Source::new("", "", 1));
    Place::new(&NOTHING, 0..0)
}

impl CaseFacts {
    /// What is told of a case.
    pub fn of(case: &Case) -> Self {
        let simulator = case.simulator.as_ref();
        let (source, parse) = case.written();
        CaseFacts {
            id: case.id.clone(),
            name: case.name.clone(),
            named: case.named,
            place: case.place.clone(),
            skip: case.skip.clone(),
            tags: case.tags.clone(),
            metadata: case.metadata.clone(),
            input: case.opening.input.clone(),
            turns: case.turns.len(),
            mode: Mode::of(case),
            simulator: simulator.map(|simulator| SimulatorFacts { reference: simulator.reference.clone() }),
            interactive: case.interactive.is_some(),
            signs: case.signs.clone(),
            scenario: case.scenario.clone(),
            judged_from_around: Some(case.judged_from_around())
                .filter(|all| !all.is_empty())
                .map(|all| short_digest(&all)),
            driven: match case.body.as_deref().map(Body::source) {
                None => Driven::Written,
                Some(Some(source)) => Driven::Program(short_digest(source)),
                Some(None) => Driven::Unknown,
            },
            written: Written { source: source.clone(), parse },
        }
    }

    /// A name by which it is found again in other runs, wherever it stands.
    pub fn stable_id(&self) -> String {
        match &self.scenario {
            Some(scenario) => {
                // What has an id of its own stays the same when it gets another name.
                let has_id = scenario.id != scenario.fingerprint;
                let name = if has_id { without(&self.name, &scenario.name) } else { self.name.clone() };
                stable_id(&format!("{name}@{}", scenario.id))
            }
            None => stable_id(&self.name),
        }
    }

    /// The case as it is written, with its variables unfilled.
    pub fn to_json(&self) -> Value {
        let Written { source, parse } = &self.written;
        parse(source).map_or(Value::Null, |node| node.to_json())
    }

    /// The same with what its scenario says in place of the fields that it names.
    pub fn filled(&self) -> Value {
        let Written { source, parse } = &self.written;
        let Ok(mut node) = parse(source) else { return Value::Null };
        if let Some(scenario) = &self.scenario {
            scenario.fill_in(&mut node, source);
        }
        node.to_json()
    }
}

/// A text without this part, where the part is no piece of a longer word.
fn without(text: &str, part: &str) -> String {
    let is_edge = |beside: Option<char>| beside.is_none_or(|beside| !beside.is_alphanumeric());
    let found = text.match_indices(part).filter(|(at, _)| {
        is_edge(text[..*at].chars().next_back()) && is_edge(text[at + part.len()..].chars().next())
    });
    let (mut rest, mut from) = (String::new(), 0);
    for (at, _) in found {
        rest.push_str(&text[from..at]);
        from = at + part.len();
    }
    rest + &text[from..]
}

impl Written {
    /// What stands in a piece of a suite.
    pub(crate) fn in_suite(source: Arc<Source>, suite: &Suite) -> Self {
        Written { source, parse: parse_as(&suite.path) }
    }

    fn nothing() -> Self {
        Written { source: nowhere().source, parse: parse_as(&PathBuf::new()) }
    }
}

impl Finding {
    /// What is told of a check that was decided.
    pub fn of(checked: Checked) -> Self {
        let Checked { check, turn, is_final, verdict, error, said, topic, opinion } = checked;
        Finding { check: CheckFacts::of(check), turn, is_final, verdict, error, said, topic, opinion }
    }

    /// Whether it decides that the case fails.
    pub fn fails(&self) -> bool {
        self.check.is_hard() && !self.verdict.passed
    }

    /// What it came to: what could not be decided has neither passed nor failed.
    pub fn state(&self) -> State {
        match (&self.error, self.verdict.passed) {
            (Some(_), _) => State::Errored,
            (None, true) => State::Passed,
            (None, false) => State::Failed,
        }
    }
}

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It holds.
    Passed,
    /// It does not hold.
    Failed,
    /// It could not be decided.
    Errored,
}

impl CheckFacts {
    fn of(check: Check) -> Self {
        let Check { kind: _, place, called_at: _, negated, strength, message, written, criterion } = check;
        CheckFacts { place, negated, strength, message, written, criterion }
    }

    /// Whether it decides.
    pub fn is_hard(&self) -> bool {
        self.strength == Strength::Hard
    }
}

impl ReachedFacts {
    /// What is told of a checkpoint.
    pub fn of(reached: Reached) -> Self {
        let Reached { checkpoint, at, missing } = reached;
        let tool = checkpoint.checks.iter().find_map(tool).map(str::to_string);
        let checkpoint = CheckpointFacts {
            id: checkpoint.id,
            description: checkpoint.description,
            required: checkpoint.required,
            tool,
            place: checkpoint.place,
        };
        ReachedFacts { checkpoint, at, missing }
    }

    /// Whether the case fails because of it.
    pub fn is_missing(&self) -> bool {
        self.checkpoint.required && self.at.is_none()
    }
}

/// The tool whose call a check asks for.
fn tool(check: &Check) -> Option<&str> {
    match &check.kind {
        CheckKind::ToolCalled(called) if !check.negated => called.names.first().map(String::as_str),
        CheckKind::ToolCount(count) if !check.negated && count.count.min > 0 => Some(&count.calls.name),
        CheckKind::ToolResult(result) if !check.negated => Some(&result.name),
        _ => None,
    }
}
