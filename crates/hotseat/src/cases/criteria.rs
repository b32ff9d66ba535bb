//! Criteria: what people write, what assertions mean by their names, and what else assertions take from the case
//! around them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::block::Block;
use super::judging::judging;
use super::shape::{CRITERION, CRITERION_OF_ITS_OWN};
use super::variables::mistake;
use crate::checks::{
    AllOf, Check, CheckKind, Criterion, Example, Given, Judged, Judging, Matter, Named, Quality, Scripted,
};
use hotseat_document::{Diagnostic, Diagnostics, Map, Place, View, nearest};

/// How a text begins that refers to a function of a script.
const SCRIPT: &str = "scripts:";

/// What assertions take from what is around them: what names of criteria mean, who judges, which goal is stated. A
/// project, a suite and a case each say some of it.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    criteria: BTreeMap<Arc<str>, Definition>,
    judging: Judging,
    goal: Option<String>,
}

/// What the name of a criterion means.
#[derive(Debug, Clone)]
struct Definition {
    kind: CheckKind,
    place: Place,
}

impl Vocabulary {
    /// What a mapping says under `criteria`, on top of what is said above.
    #[must_use]
    pub fn with_criteria(&self, view: Option<View<'_>>, mistakes: &mut Diagnostics) -> Vocabulary {
        let mut vocabulary = self.clone();
        for (name, place, view) in view.and_then(View::entries).into_iter().flatten() {
            if !is_name(name) {
                let wrong = mistake(Some(place), format!("`{name}` is no name for a criterion"));
                mistakes.push(wrong.help(
                    "a name has letters, digits and `_`, and may end in `?` or `!`; everything else is judged as a sentence",
                ));
                continue;
            }
            let name: Arc<str> = name.into();
            if let Some(kind) = definition(view, Some(&name), mistakes) {
                vocabulary.criteria.insert(name, Definition { kind, place });
            }
        }
        vocabulary
    }

    /// The same with a criterion that a program declares: what decides it, and where that is. The same name replaces.
    ///
    /// # Errors
    /// When it is no name, in words.
    pub fn with_criterion(&self, name: &str, kind: CheckKind, place: Place) -> Result<Vocabulary, String> {
        if !is_name(name) {
            return Err(format!("`{name}` is no name for a criterion"));
        }
        let mut vocabulary = self.clone();
        vocabulary.criteria.insert(name.into(), Definition { kind, place });
        Ok(vocabulary)
    }

    /// What is said about judges, on top of what is said above.
    #[must_use]
    pub fn with_judging(&self, judging: Judging) -> Vocabulary {
        Vocabulary { judging: judging.over(&self.judging), ..self.clone() }
    }

    /// The goal that the case states.
    #[must_use]
    pub fn with_goal(&self, goal: Option<String>) -> Vocabulary {
        Vocabulary { goal: goal.or_else(|| self.goal.clone()), ..self.clone() }
    }

    /// Who judges and how, as far as it is said here.
    pub fn judging(&self) -> &Judging {
        &self.judging
    }

    /// Puts what is meant in place of what a check takes from around it.
    ///
    /// # Errors
    /// When it refers to what is not there.
    pub fn fill_in(&self, check: &mut Check) -> Result<(), Diagnostic> {
        if let CheckKind::Named(Named { name, judging }) = &check.kind {
            let Some(definition) = self.criteria.get(name) else {
                return Err(self.unknown(name, check.place.clone()));
            };
            let own = judging.clone();
            check.kind = definition.kind.clone();
            if let CheckKind::Judged(judged) = &mut check.kind {
                judged.judging = own.over(&judged.judging);
            }
        }
        if let CheckKind::Judged(judged) = &mut check.kind {
            judged.judging = judged.judging.over(&self.judging);
            if let Matter::Goal(goal) = &mut judged.matter
                && goal.text.is_none()
            {
                goal.text.clone_from(&self.goal);
                if goal.text.is_none() {
                    let wrong = Diagnostic::new("no goal is stated").at(check.place.clone());
                    return Err(wrong
                        .help("write the goal here, as `goal: …`, or under `metadata` of the `simulator`"));
                }
            }
        }
        Ok(())
    }

    /// Looks whether the criterion is there that a check names.
    ///
    /// # Errors
    /// When it is not.
    pub fn find(&self, check: &Check) -> Result<(), Diagnostic> {
        match &check.kind {
            CheckKind::Named(Named { name, .. }) if !self.criteria.contains_key(name) => {
                Err(self.unknown(name, check.place.clone()))
            }
            _ => Ok(()),
        }
    }

    fn unknown(&self, name: &str, place: Place) -> Diagnostic {
        let known = self.criteria.keys().map(|known| &**known);
        let help = match (nearest(name, known), self.criteria.is_empty()) {
            (Some(near), _) => {
                format!("did you mean `{near}`? A sentence is judged as it is, a name has to be defined")
            }
            (None, true) => {
                "define it under `criteria` of the case, its suite or the project, or write a sentence"
                    .to_string()
            }
            (None, false) => {
                let known: Vec<String> = self.criteria.keys().map(|known| format!("`{known}`")).collect();
                format!("there are {}; a sentence is judged as it is", known.join(", "))
            }
        };
        let mut wrong = Diagnostic::new(format!("no criterion is called `{name}`")).at(place).help(help);
        if let Some(near) = nearest(name, self.criteria.keys().map(|known| &**known))
            && let Some(definition) = self.criteria.get(near)
        {
            wrong = wrong.also(definition.place.clone(), "this one is");
        }
        wrong
    }
}

/// A check of a criterion as a program names it: a text that looks like a name is one, and has a meaning by the time it is
/// decided; every other text is judged as it is.
pub fn satisfies(criterion: &str, judging: Judging, place: Place) -> Check {
    let kind = match is_name(criterion) {
        true => CheckKind::Named(Named { name: criterion.into(), judging }),
        false => {
            let matter = Matter::Criterion(Criterion::sentence(criterion));
            CheckKind::Judged(Judged { matter, judging })
        }
    };
    Check { criterion: Some(criterion.into()), ..Check::new(kind, place) }
}

/// Whether a text looks like a name, so that it has to be one.
fn is_name(text: &str) -> bool {
    let stem = text.strip_suffix(['?', '!']).unwrap_or(text);
    let mut characters = stem.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A criterion as `satisfy` uses it: a name, a function, a sentence, or one that is written out. Names are looked up
/// later.
pub(super) fn used(view: View<'_>, judging: &Judging, mistakes: &mut Diagnostics) -> Option<Check> {
    let (kind, criterion): (CheckKind, Arc<str>) = match view.text() {
        Some(text) if text.starts_with(SCRIPT) => (scripted(text, Given::Turn, None), text.into()),
        Some(text) => return Some(satisfies(text, judging.clone(), view.place())),
        None => {
            let map = view.map(&CRITERION_OF_ITS_OWN)?;
            let name: Option<Arc<str>> = map.text("name").map(Arc::from);
            let mut kind = definition(view, name.as_ref(), mistakes)?;
            if let CheckKind::Judged(judged) = &mut kind {
                judged.judging = judging.over(&judged.judging);
            }
            let said = map.text("description").or(map.text("function")).or(map.text("match_messages"));
            let criterion = name.unwrap_or_else(|| said.unwrap_or("criterion").into());
            (kind, criterion)
        }
    };
    Some(Check { criterion: Some(criterion), ..Check::new(kind, view.place()) })
}

/// What a criterion means: a text, or a mapping.
fn definition(view: View<'_>, name: Option<&Arc<str>>, mistakes: &mut Diagnostics) -> Option<CheckKind> {
    let judged = |text: &str, examples: Vec<Example>, judging: Judging| {
        let criterion = Criterion { name: name.cloned(), text: text.trim().to_string(), examples };
        CheckKind::Judged(Judged { matter: Matter::Criterion(criterion), judging })
    };
    if let Some(text) = view.text() {
        return Some(judged(text, Vec::new(), Judging::default()));
    }
    let shape =
        if name.is_some() && view.node.get("name").is_none() { &CRITERION } else { &CRITERION_OF_ITS_OWN };
    let map = view.map(shape)?;
    let known = mistakes.len();
    let deciders: Vec<&str> =
        ["match", "match_messages", "function"].into_iter().filter(|key| map.has(key)).collect();
    if let [_, second, ..] = deciders.as_slice() {
        let message = format!("`{}` and `{second}` both decide", deciders[0]);
        mistakes.push(mistake(map.key_place(second), message).help("leave one of them out"));
        return None;
    }
    let description = map.text("description");
    let own = judging(map.get("judge"), mistakes);
    let Some(decider) = deciders.first() else {
        let Some(text) = description else {
            let wrong = mistake(Some(view.place()), "nothing says what this criterion is");
            mistakes.push(
                wrong.help("write a `description` for a judge, or `match`, `match_messages` or `function`"),
            );
            return None;
        };
        return (mistakes.len() == known).then(|| judged(text, examples(&map), own));
    };
    for key in ["good_examples", "bad_examples", "edge_cases", "judge"] {
        if let Some(place) = map.key_place(key) {
            let message = format!("`{key}` is for a judge, and `{decider}` decides");
            mistakes.push(mistake(Some(place), message).help("leave one of them out"));
        }
    }
    let text = match (name, description) {
        (Some(name), Some(description)) => Some(format!("satisfies {name}: {description}")),
        (Some(name), None) => Some(format!("satisfies {name}")),
        (None, description) => description.map(|text| format!("satisfies: {text}")),
    };
    let function = |key: &str, given: Given| {
        let function = map.text(key)?;
        Some((function, scripted(function, given, text.clone())))
    };
    let kind = match *decider {
        "match" => match function("match", Given::Conversation) {
            Some((function, kind)) => refers_to_script(function, map.get("match")?, mistakes).then_some(kind),
            None => all_of(&map, text.clone(), mistakes),
        },
        "match_messages" => function("match_messages", Given::Messages).map(|(_, kind)| kind),
        _ => function("function", Given::Turn).map(|(_, kind)| kind),
    };
    kind.filter(|_| mistakes.len() == known)
}

/// `match` that is a text refers to a function.
fn refers_to_script(text: &str, view: View<'_>, mistakes: &mut Diagnostics) -> bool {
    let refers = text.starts_with(SCRIPT);
    if !refers {
        let wrong = mistake(Some(view.place()), "`match` is assertions, or a function of a script");
        mistakes.push(wrong.help(
            "refer to a function as `scripts:path.function`; a pattern is `{type: regex, pattern: …}`",
        ));
    }
    refers
}

fn scripted(function: &str, given: Given, text: Option<String>) -> CheckKind {
    let (function, options) = (function.to_string(), serde_json::Map::new());
    CheckKind::Scripted(Scripted { function, expected: None, options, timeout: None, given, text })
}

/// Assertions that decide a criterion.
fn all_of(map: &Map<'_>, text: Option<String>, mistakes: &mut Diagnostics) -> Option<CheckKind> {
    let checks = Block::read(map.get("match"), mistakes).checks();
    for check in checks.iter().filter(|check| check.asks()) {
        let wrong =
            mistake(Some(check.place.clone()), "a criterion is decided by assertions that ask nobody");
        mistakes
            .push(wrong.help("have a judge decide by a `description`, or a function by `match: scripts:…`"));
    }
    if checks.is_empty() {
        mistakes.push(mistake(map.place_of("match"), "this asserts nothing"));
        return None;
    }
    let words = || checks.iter().map(Check::describe).collect::<Vec<_>>().join(", and ");
    Some(CheckKind::AllOf(AllOf { text: text.unwrap_or_else(words), checks }))
}

fn examples(map: &Map<'_>) -> Vec<Example> {
    let mut all = Vec::new();
    for (key, shape, quality) in [
        ("good_examples", &super::shape::EXAMPLE, Some(Quality::Good)),
        ("bad_examples", &super::shape::EXAMPLE, Some(Quality::Bad)),
        ("edge_cases", &super::shape::EDGE_CASE, None),
    ] {
        for example in map.list(key).into_iter().flatten().filter_map(|view| view.map(shape)) {
            let text = |key: &str| example.text(key).unwrap_or_default().to_string();
            let satisfied = || example.bool("verdict") == Some(true);
            all.push(Example {
                text: text("text"),
                quality: quality.unwrap_or_else(|| Quality::Edge { satisfied: satisfied() }),
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
    fn names_and_sentences_are_told_apart_by_their_form() {
        for name in ["friendly", "_x", "activated_workflow?", "done!", "A1"] {
            assert!(is_name(name), "{name}");
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
            "höflich",
        ] {
            assert!(!is_name(text), "{text}");
        }
    }
}
