//! Criteria: decodes definitions, and resolves the criterion names, judges and goals that assertions refer
//! to.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::block::AssertionBlock;
use super::criteria_shape::{CRITERION, CRITERION_OF_ITS_OWN, EDGE_CASE, EXAMPLE};
use crate::cases::judging::read_judging;
use hotseat_checks::{
    AllOf, Check, CheckKind, CriterionExample, CriterionRef, ExampleQuality, JudgeCriterion, JudgeSettings,
    JudgedCheck, ResponseCriterion, ScriptCheck, ScriptInputKind,
};
use hotseat_document::{Diagnostic, Diagnostics, MapView, NodeView, SourceSpan, nearest};

/// Prefix of a reference to a script function.
const SCRIPT: &str = "scripts:";

/// Definitions for resolving assertions: criteria by name, judge settings, and the goal. Project, suite and
/// case each contribute.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct CheckVocabulary {
    criteria: BTreeMap<Arc<str>, CriterionDefinition>,
    judging: JudgeSettings,
    goal: Option<String>,
}

#[derive(Debug, Clone)]
struct CriterionDefinition {
    /// `None` if the definition is invalid, which has been reported.
    kind: Option<CheckKind>,
    place: SourceSpan,
}

impl CheckVocabulary {
    /// Adds the criteria of a mapping, replacing inherited ones with the same name.
    pub fn with_criteria(
        &self,
        view: Option<NodeView<'_>>,
        diagnostics: &mut Diagnostics,
    ) -> CheckVocabulary {
        let mut vocabulary = self.clone();
        for (name, place, view) in view.and_then(NodeView::entries).into_iter().flatten() {
            if !is_criterion_name(name) {
                let wrong = Diagnostic::new(format!("invalid criterion name `{name}`")).at(place);
                diagnostics.push(wrong.help(
                    "a name consists of letters, digits and `_`, and may end with `?` or `!`; any other text is judged as a sentence",
                ));
                continue;
            }
            let name: Arc<str> = name.into();
            let kind = read_definition(view, Some(&name), diagnostics);
            vocabulary.criteria.insert(name, CriterionDefinition { kind, place });
        }
        vocabulary
    }

    /// Merges judge settings onto the inherited ones.
    pub fn with_judging(&self, judging: JudgeSettings) -> CheckVocabulary {
        CheckVocabulary { judging: judging.or_inherit(&self.judging), ..self.clone() }
    }

    /// Sets the goal of the case.
    pub fn with_goal(&self, goal: Option<String>) -> CheckVocabulary {
        CheckVocabulary { goal: goal.or_else(|| self.goal.clone()), ..self.clone() }
    }

    /// Judge settings, as far as they are set.
    pub fn judging(&self) -> &JudgeSettings {
        &self.judging
    }

    /// Replaces a criterion name by its definition, and fills in judge settings and goal. Fails if the
    /// reference is unknown.
    pub fn resolve(&self, check: &mut Check) -> Result<(), Diagnostic> {
        if let CheckKind::CriterionRef(CriterionRef { name, settings: judging }) = &check.kind {
            let Some(definition) = self.criteria.get(name) else {
                return Err(self.unknown_criterion(name, check.place.clone()));
            };
            let Some(kind) = definition.kind.clone() else { return Ok(()) };
            let own = judging.clone();
            check.kind = kind;
            if let CheckKind::Judged(judged) = &mut check.kind {
                judged.settings = own.or_inherit(&judged.settings);
            }
        }
        if let CheckKind::Judged(judged) = &mut check.kind {
            judged.settings = judged.settings.or_inherit(&self.judging);
            if let JudgeCriterion::Goal(goal) = &mut judged.criterion
                && goal.text.is_none()
            {
                goal.text.clone_from(&self.goal);
                if goal.text.is_none() {
                    let wrong = Diagnostic::new("no goal is set").at(check.place.clone());
                    return Err(wrong
                        .help("set the goal here with `goal: …`, or for the simulated user: `simulate: { goal: … }`"));
                }
            }
        }
        Ok(())
    }

    /// Checks that the criterion of a check exists. Fails if it does not.
    pub fn ensure_known(&self, check: &Check) -> Result<(), Diagnostic> {
        match &check.kind {
            CheckKind::CriterionRef(CriterionRef { name, .. }) if !self.criteria.contains_key(name) => {
                Err(self.unknown_criterion(name, check.place.clone()))
            }
            _ => Ok(()),
        }
    }

    fn unknown_criterion(&self, name: &str, place: SourceSpan) -> Diagnostic {
        let known = self.criteria.keys().map(|known| &**known);
        let help = match (nearest(name, known), self.criteria.is_empty()) {
            (Some(near), _) => {
                format!("did you mean `{near}`? A sentence is judged literally, a name has to be defined")
            }
            (None, true) => {
                "define it under `criteria` of the case, its suite or the project, or write a sentence"
                    .to_string()
            }
            (None, false) => {
                let known: Vec<String> = self.criteria.keys().map(|known| format!("`{known}`")).collect();
                format!("available criteria: {}; a sentence is judged literally", known.join(", "))
            }
        };
        let mut wrong = Diagnostic::new(format!("unknown criterion `{name}`")).at(place).help(help);
        if let Some(near) = nearest(name, self.criteria.keys().map(|known| &**known))
            && let Some(definition) = self.criteria.get(near)
        {
            wrong = wrong.with_related(definition.place.clone(), "defined here");
        }
        wrong
    }
}

/// Creates a check for a criterion given by a program. Text that looks like a name is resolved later; any
/// other text is judged literally. White space around it has no meaning: block texts of YAML end with a line break.
pub fn criterion_check(criterion: &str, judging: JudgeSettings, place: SourceSpan) -> Check {
    let criterion = criterion.trim();
    let kind = match is_criterion_name(criterion) {
        true => CheckKind::CriterionRef(CriterionRef { name: criterion.into(), settings: judging }),
        false => {
            let matter = JudgeCriterion::Criterion(ResponseCriterion::from_sentence(criterion));
            CheckKind::Judged(JudgedCheck { criterion: matter, settings: judging })
        }
    };
    Check { criterion: Some(criterion.into()), ..Check::new(kind, place) }
}

/// True if a text has the form of a criterion name.
fn is_criterion_name(text: &str) -> bool {
    let stem = text.strip_suffix(['?', '!']).unwrap_or(text);
    let mut characters = stem.chars();
    // Some keyboards write an accent as a character of its own. Scripts from Thai on write sentences without spaces.
    let is_accent = |c: char| ('\u{300}'..='\u{36F}').contains(&c);
    let is_spaced = stem.chars().all(|c| c < '\u{E00}');
    is_spaced
        && characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && characters.all(|c| c.is_alphanumeric() || c == '_' || is_accent(c))
}

/// Decodes a criterion used in `satisfy`: a name, a function, a sentence, or an inline definition. Names are
/// resolved later.
pub(super) fn read_criterion_use(
    view: NodeView<'_>,
    judging: &JudgeSettings,
    diagnostics: &mut Diagnostics,
) -> Option<Check> {
    let (kind, criterion): (CheckKind, Arc<str>) = match view.text().map(str::trim) {
        Some(text) if text.starts_with(SCRIPT) => {
            (script_check(text, ScriptInputKind::Turn, None), text.into())
        }
        Some(text) => return Some(criterion_check(text, judging.clone(), view.place())),
        None => {
            let map = view.map(&CRITERION_OF_ITS_OWN)?;
            let name: Option<Arc<str>> = map.text("name").map(Arc::from);
            let mut kind = read_definition(view, name.as_ref(), diagnostics)?;
            if let CheckKind::Judged(judged) = &mut kind {
                judged.settings = judging.or_inherit(&judged.settings);
            }
            let decider = map.text("description").or(map.text("function")).or(map.text("match_messages"));
            let criterion = name.unwrap_or_else(|| decider.unwrap_or("criterion").into());
            (kind, criterion)
        }
    };
    Some(Check { criterion: Some(criterion), ..Check::new(kind, view.place()) })
}

/// Decodes the definition of a criterion: a text, or a mapping.
fn read_definition(
    view: NodeView<'_>,
    name: Option<&Arc<str>>,
    diagnostics: &mut Diagnostics,
) -> Option<CheckKind> {
    let judged = |text: &str, examples: Vec<CriterionExample>, judging: JudgeSettings| {
        let criterion = ResponseCriterion { name: name.cloned(), text: text.trim().to_string(), examples };
        CheckKind::Judged(JudgedCheck { criterion: JudgeCriterion::Criterion(criterion), settings: judging })
    };
    if let Some(text) = view.text() {
        return Some(judged(text, Vec::new(), JudgeSettings::default()));
    }
    let shape =
        if name.is_some() && view.node.get("name").is_none() { &CRITERION } else { &CRITERION_OF_ITS_OWN };
    let map = view.map(shape)?;
    let known = diagnostics.len();
    let deciders: Vec<&str> =
        ["match", "match_messages", "function"].into_iter().filter(|key| map.has(key)).collect();
    if let [_, second, ..] = deciders.as_slice() {
        let message = format!("`{}` and `{second}` cannot be combined", deciders[0]);
        diagnostics.push(Diagnostic::new(message).at(map.key_place(second)).help("remove one of them"));
        return None;
    }
    let description = map.text("description");
    let own = read_judging(map.get("judge"), diagnostics);
    let Some(decider) = deciders.first() else {
        let Some(text) = description else {
            let wrong = Diagnostic::new("this criterion has no definition").at(view.place());
            diagnostics.push(
                wrong.help("add a `description` for a judge, or `match`, `match_messages` or `function`"),
            );
            return None;
        };
        return (diagnostics.len() == known).then(|| judged(text, read_examples(&map), own));
    };
    for key in ["good_examples", "bad_examples", "edge_cases", "judge"] {
        if let Some(place) = map.key_place(key) {
            let message = format!("`{key}` applies to judges, but `{decider}` decides this criterion");
            diagnostics.push(Diagnostic::new(message).at(place).help("remove one of them"));
        }
    }
    let text = match (name, description) {
        (Some(name), Some(description)) => Some(format!("the agent to satisfy {name}: {description}")),
        (Some(name), None) => Some(format!("the agent to satisfy {name}")),
        (None, description) => description.map(|text| format!("the agent to satisfy: {text}")),
    };
    let function = |key: &str, input_kind: ScriptInputKind| {
        let function = map.text(key)?;
        Some((function, script_check(function, input_kind, text.clone())))
    };
    let kind = match *decider {
        "match" => match function("match", ScriptInputKind::Conversation) {
            Some((function, kind)) => {
                check_script_reference(function, map.get("match")?, diagnostics).then_some(kind)
            }
            None => all_of_check(&map, text.clone(), diagnostics),
        },
        "match_messages" => function("match_messages", ScriptInputKind::Messages).map(|(_, kind)| kind),
        _ => function("function", ScriptInputKind::Turn).map(|(_, kind)| kind),
    };
    kind.filter(|_| diagnostics.len() == known)
}

/// Reports a textual `match` that is not a function reference.
fn check_script_reference(text: &str, view: NodeView<'_>, diagnostics: &mut Diagnostics) -> bool {
    let refers = text.starts_with(SCRIPT);
    if !refers {
        let wrong = Diagnostic::new("`match` must contain assertions, or refer to a script function")
            .at(view.place());
        diagnostics.push(wrong.help(
            "write a function reference as `scripts:path.function`, and a pattern as `{type: regex, pattern: …}`",
        ));
    }
    refers
}

fn script_check(function: &str, input_kind: ScriptInputKind, text: Option<String>) -> CheckKind {
    let (function, options) = (function.into(), serde_json::Map::new());
    CheckKind::Script(ScriptCheck { function, expected: None, options, timeout: None, input_kind, text })
}

/// Decodes the assertions that decide a criterion.
fn all_of_check(map: &MapView<'_>, text: Option<String>, diagnostics: &mut Diagnostics) -> Option<CheckKind> {
    let checks = AssertionBlock::read_checks(map.get("match"), diagnostics);
    for check in checks.iter().filter(|check| check.needs_answer()) {
        let wrong = Diagnostic::new("`match` cannot contain assertions that need a judge or a script")
            .at(check.place.clone());
        diagnostics.push(wrong.help("use a `description` for a judge, or `match: scripts:…` for a function"));
    }
    if checks.is_empty() {
        diagnostics.report(map.place_of("match"), "this asserts nothing");
        return None;
    }
    let words = || checks.iter().map(Check::describe).collect::<Vec<_>>().join(", and ");
    Some(CheckKind::AllOf(AllOf { text: text.unwrap_or_else(words), checks }))
}

fn read_examples(map: &MapView<'_>) -> Vec<CriterionExample> {
    let mut all = Vec::new();
    for (key, shape, quality) in [
        ("good_examples", &EXAMPLE, Some(ExampleQuality::Good)),
        ("bad_examples", &EXAMPLE, Some(ExampleQuality::Bad)),
        ("edge_cases", &EDGE_CASE, None),
    ] {
        for example in map.items(key).filter_map(|view| view.map(shape)) {
            let text = |key: &str| example.text(key).unwrap_or_default().to_string();
            let satisfied = || example.bool("verdict") == Some(true);
            all.push(CriterionExample {
                text: text("text"),
                quality: quality.unwrap_or_else(|| ExampleQuality::Edge { satisfied: satisfied() }),
                explanation: text("explanation"),
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_names_from_sentences() {
        for name in
            ["friendly", "_x", "activated_workflow?", "done!", "A1", "höflich", "ho\u{308}flich", "вежливо"]
        {
            assert!(is_criterion_name(name), "{name}");
        }
        for text in [
            "",
            "Is friendly",
            "friendly.",
            "1st",
            "grounded-pricing",
            "a?b",
            "??",
            "Freundlich und höflich",
            "höflich.",
            "语气友好",
        ] {
            assert!(!is_criterion_name(text), "{text}");
        }
    }
}
