//! Serialisable results of cases and checks, shared by live reports and the run store. New fields need a
//! default, since saved runs do not have them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::digest::short_digest;
use hotseat_document::{SourceSpan, SourceText};
use hotseat_trace::optional_members;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::mode::ConversationMode;
use crate::cases::{
    AwaitingMarkers, CaseScenario, ParseSource, Suite, TestCase, TestFocus, parser_for, stable_id,
};
use hotseat_checks::RoleReference;
use hotseat_targets::recorder::SecretRedactor;

/// Reference to a case of a run.
#[derive(Debug, Clone)]
pub struct CaseRef {
    /// Index in the run, from 0.
    pub index: usize,
    /// The case.
    pub case: CaseInfo,
    /// Its suite.
    pub suite: Arc<Suite>,
    /// Index of the tested agent in the run settings. `None` if the project does not set one.
    pub agent: Option<usize>,
}

/// Digests of what judges a case beside its assertions. Equal digests mean equal functions and judges, as far as their files
/// and the project file show them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JudgingDigests {
    /// Digest of the script functions that checks and conditions call, with the files that they import.
    pub functions: Option<String>,
    /// Digest of the settings of the judges, as written.
    pub judges: Option<String>,
}

optional_members! {
    /// Serialisable description of a case.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub struct CaseInfo {
        /// Short id that stays the same when the name changes.
        pub id: String,
        /// Display name.
        pub name: String,
        /// True if the name is set explicitly; otherwise it is the id.
        pub named: bool,
        /// Position of the name in the file.
        #[serde(skip)]
        pub place: SourceSpan,
        /// Reason for skipping the case, if it is skipped.
        pub skip?: Option<String>,
        /// True if the case is skipped because other tests of its file are marked `only`.
        pub left_out?: bool,
        /// Tags for grouping.
        pub tags?: Vec<String>,
        /// Additional data for reports.
        pub metadata?: Option<Value>,
        /// `input` as written, if the case has one.
        pub input?: Option<Value>,
        /// Number of written turns.
        pub turns: usize,
        /// Conversation mode.
        pub mode: ConversationMode,
        /// Its simulator, if it has one.
        pub simulator?: Option<SimulatorInfo>,
        /// True if the case asks a human.
        #[serde(default)]
        pub interactive: bool,
        /// Markers that show that the agent waits, if it does not report this itself.
        pub signs: Arc<AwaitingMarkers>,
        /// The scenario of the case, if it has one.
        pub scenario?: Option<Arc<CaseScenario>>,
        /// Digest of the inherited settings that judge the case: assertions of project and suite, criteria,
        /// judges.
        pub judged_from_around?: Option<String>,
        /// Digest of the script functions that judge the case, with the files that they import.
        pub function_digest?: Option<String>,
        /// Digest of the settings of its judges.
        pub judge_digest?: Option<String>,
        /// Driver of the conversation.
        #[serde(default)]
        pub driven: CaseDriver,
        /// Source text of the case.
        #[serde(skip, default = "CaseSource::empty")]
        pub source_text: CaseSource,
    }
}

/// Driver of the conversation of a case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseDriver {
    /// The turns written in the case.
    #[default]
    Written,
    /// A program, with the digest of its source.
    Program(String),
    /// A program without available source.
    Unknown,
}

/// Serialisable description of a simulator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SimulatorInfo {
    /// The simulator. `None` for the default of the project or the command line.
    pub reference: Option<RoleReference>,
}

/// Source text of a case with its parser.
#[derive(Debug, Clone)]
pub struct CaseSource {
    /// The piece of the file that contains the case.
    pub source: Arc<SourceText>,
    parse: ParseSource,
}

impl CaseInfo {
    /// Describes a case with what judges it.
    pub(super) fn new(case: &TestCase, judging: JudgingDigests) -> Self {
        let simulator = case.simulator.as_ref();
        let (source, parse) = case.source();
        CaseInfo {
            id: case.id.clone(),
            name: case.name.clone(),
            named: case.named,
            place: case.place.clone(),
            skip: case.skip.clone(),
            left_out: case.focus == TestFocus::LeftOut,
            tags: case.tags.clone(),
            metadata: case.metadata.clone(),
            input: case.opening.input.clone(),
            turns: case.turns.len(),
            mode: ConversationMode::from_case(case),
            simulator: simulator.map(|simulator| SimulatorInfo { reference: simulator.reference.clone() }),
            interactive: case.interactive.is_some(),
            signs: case.signs.clone(),
            scenario: case.scenario.clone(),
            judged_from_around: Some(case.inherited_checks_digest())
                .filter(|all| !all.is_empty())
                .map(|all| short_digest(&all, 8)),
            function_digest: judging.functions,
            judge_digest: judging.judges,
            driven: match case.program.as_ref().map(|program| program.source.as_deref()) {
                None => CaseDriver::Written,
                Some(Some(source)) => CaseDriver::Program(short_digest(source, 8)),
                Some(None) => CaseDriver::Unknown,
            },
            source_text: CaseSource { source: source.clone(), parse },
        }
    }

    /// Id that identifies the case across runs, regardless of its position.
    pub fn stable_id(&self) -> String {
        match &self.scenario {
            Some(scenario) => {
                // A scenario with an explicit id stays the same when it is renamed.
                let has_id = scenario.id != scenario.fingerprint;
                let name = if has_id { remove_words(&self.name, &scenario.name) } else { self.name.clone() };
                stable_id(&format!("{name}@{}", scenario.id))
            }
            None => stable_id(&self.name),
        }
    }

    /// The case as saved runs contain it: with the secrets masked that are known to `redactors`.
    pub fn masked<'r>(&self, redactors: impl IntoIterator<Item = &'r SecretRedactor>) -> CaseInfo {
        let mut case = self.clone();
        case.source_text.source = case.source_text.masked(redactors);
        case
    }

    /// The case as written, with variables unresolved.
    pub fn to_json(&self) -> Value {
        let CaseSource { source, parse } = &self.source_text;
        parse(source).map_or(Value::Null, |node| node.to_json())
    }

    /// Like [`CaseInfo::to_json`], as a case of its own: with its scenario only, within the case.
    pub fn to_single_json(&self) -> Value {
        let mut written = self.to_json();
        if let (Some(scenario), Some(members)) = (&self.scenario, written.as_object_mut()) {
            let set = json!({"name": scenario.set, "scenarios": [scenario.data]});
            members.insert("scenarios".to_string(), set);
        }
        written
    }

    /// Like [`CaseInfo::to_json`], with the fields of its scenario filled in.
    pub fn to_filled_json(&self) -> Value {
        let CaseSource { source, parse } = &self.source_text;
        let Ok(mut node) = parse(source) else { return Value::Null };
        if let Some(scenario) = &self.scenario {
            scenario.fill_variables(&mut node, source);
        }
        node.to_json()
    }
}

/// Removes the occurrences of a part that are not within a longer word.
fn remove_words(text: &str, part: &str) -> String {
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

impl CaseSource {
    /// Source of a case within a suite.
    pub fn in_suite(source: Arc<SourceText>, suite: &Suite) -> Self {
        CaseSource { source, parse: parser_for(&suite.path) }
    }

    /// Returns the text with the secrets masked that are known to `redactors`.
    pub fn masked<'r>(&self, redactors: impl IntoIterator<Item = &'r SecretRedactor>) -> Arc<SourceText> {
        let mask =
            |source: Arc<SourceText>, redactor: &SecretRedactor| source.map_text(|text| redactor.mask(text));
        redactors.into_iter().fold(self.source.clone(), mask)
    }

    fn empty() -> Self {
        CaseSource { source: SourceSpan::default().source, parse: parser_for(&PathBuf::new()) }
    }
}
