//! Decodes the brief of a simulated user: persona, goal and limits.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::assertions::AssertionBlock;
use super::judging::role_reference;
use super::patterns::read_pattern;
use super::topic_shape::{DURING_TOPIC, SIMULATE, USER};
use super::topics::{CaseTopics, function_check, unknown_topic};
use hotseat_checks::{Check, Pattern, RoleReference};
use hotseat_document::{Diagnostic, Diagnostics, MapView, NodeView, SourceSpan};
use serde_json::Value;

/// Default maximum number of inputs of a simulated user.
pub const DEFAULT_MAX_INPUTS: usize = 15;
/// Default number of times that a simulated user may repeat a text.
const DEFAULT_MAX_REPEATS: usize = 2;

/// Persona and behaviour of a simulated user.
#[derive(Debug, Clone, Default)]
pub struct SimulatedPersona {
    /// Role.
    pub role: Option<String>,
    /// Personality.
    pub personality: Option<PersonaNotes>,
    /// Background knowledge.
    pub context: Option<PersonaNotes>,
    /// Desired behaviour.
    pub should: Vec<String>,
    /// Behaviour to avoid.
    pub should_not: Vec<String>,
    /// Patterns that its messages must not match, because they would be false.
    pub never_says: Vec<Pattern>,
}

/// One text, or several notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonaNotes {
    /// A text. Replaces the inherited value.
    Text(String),
    /// Notes. Appended to inherited notes.
    Notes(Vec<String>),
}

/// Brief of a simulated user.
#[derive(Debug, Clone, Default)]
pub struct SimulatorBrief {
    /// Persona and behaviour.
    pub persona: SimulatedPersona,
    /// Goal. Always set for a case.
    pub goal: Option<String>,
    /// Maximum number of inputs.
    pub max_turns: Option<usize>,
    /// Conditions that end the conversation when all of them pass on the conversation so far.
    pub stop_when: Vec<Check>,
    /// Number of times that a text may be repeated; 0 means unlimited.
    pub max_repeats: Option<usize>,
    /// Persona changes while the conversation is in a topic, with their positions.
    pub during_topic: Vec<(String, SimulatedPersona, SourceSpan)>,
    /// Custom prompt of the case.
    pub template: Option<PromptTemplate>,
    /// The simulator, if it is set.
    pub reference: Option<RoleReference>,
    /// Further options passed to the simulator.
    pub options: serde_json::Map<String, Value>,
}

/// Custom prompt of a case.
#[derive(Debug, Clone)]
pub struct PromptTemplate {
    /// Path of the file.
    pub path: String,
    /// Position of the path in the case.
    pub place: SourceSpan,
    /// Content of the file, once it is loaded.
    pub text: Option<String>,
}

/// A file with a custom prompt that cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum PromptFileError {
    #[error("prompt file `{0}` not found")]
    Missing(String),
    #[error("`{path}` cannot be read: {source}")]
    Unreadable { path: String, source: std::io::Error },
    #[error(
        "`{path}` has the unknown placeholder `{name}`; available: {}",
        TEMPLATE_PLACEHOLDERS.map(|name| format!("`{{{{{name}}}}}`")).join(", ")
    )]
    UnknownPlaceholder { path: String, name: String },
    #[error("`{0}` has no `{{{{system}}}}`, so the simulator would not receive its persona")]
    NoPersona(String),
}

impl PromptTemplate {
    /// Loads the file from the first of these folders that contains it. Fails if the file does not exist,
    /// cannot be read, has an unknown placeholder, or lacks `{{system}}`.
    pub fn load(&mut self, folders: &[PathBuf]) -> Result<(), PromptFileError> {
        let path = || self.path.clone();
        let mut files = folders.iter().map(|folder| folder.join(&self.path));
        let file = files.find(|file| file.is_file()).ok_or_else(|| PromptFileError::Missing(path()))?;
        let unreadable = |source| PromptFileError::Unreadable { path: path(), source };
        let text = fs::read_to_string(file).map_err(unreadable)?;
        let known = |name: &str| TEMPLATE_PLACEHOLDERS.contains(&name);
        if let Some(name) = template_placeholders(&text).find(|name| !known(name)) {
            return Err(PromptFileError::UnknownPlaceholder { path: path(), name: name.to_string() });
        }
        if !template_placeholders(&text).any(|name| name == "system") {
            return Err(PromptFileError::NoPersona(path()));
        }
        self.text = Some(text);
        Ok(())
    }
}

/// Iterates over the names between `{{` and `}}`.
fn template_placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split("{{").skip(1).filter_map(|rest| rest.split_once("}}")).map(|(name, _)| name.trim())
}

/// Placeholders of a custom prompt.
const TEMPLATE_PLACEHOLDERS: [&str; 5] = ["system", "rules", "conversation", "turn", "max_turns"];

impl SimulatedPersona {
    /// Merges this persona onto the inherited one.
    #[must_use]
    pub fn merged_onto(&self, above: &SimulatedPersona) -> SimulatedPersona {
        let added = |above: &[String], own: &[String]| [above, own].concat();
        SimulatedPersona {
            role: self.role.clone().or_else(|| above.role.clone()),
            personality: PersonaNotes::merged_onto(self.personality.as_ref(), above.personality.as_ref()),
            context: PersonaNotes::merged_onto(self.context.as_ref(), above.context.as_ref()),
            should: added(&above.should, &self.should),
            should_not: added(&above.should_not, &self.should_not),
            never_says: [above.never_says.as_slice(), &self.never_says].concat(),
        }
    }

    fn read(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> SimulatedPersona {
        let texts = |key: &str| -> Vec<String> {
            let texts = map.one_or_many(key).filter_map(NodeView::text);
            texts.map(|text| text.trim().to_string()).collect()
        };
        let never_says = map.one_or_many("never_says");
        SimulatedPersona {
            role: map.text("role").map(|text| text.trim().to_string()),
            personality: map.get("personality").map(PersonaNotes::read),
            context: map.get("context").map(PersonaNotes::read),
            should: texts("should"),
            should_not: texts("should_not"),
            never_says: never_says.filter_map(|view| read_pattern(view, diagnostics)).collect(),
        }
    }
}

impl PersonaNotes {
    fn read(view: NodeView<'_>) -> PersonaNotes {
        match view.text() {
            Some(text) => PersonaNotes::Text(text.trim().to_string()),
            None => {
                let notes = view.one_or_many().filter_map(NodeView::text);
                PersonaNotes::Notes(notes.map(|note| note.trim().to_string()).collect())
            }
        }
    }

    fn merged_onto(own: Option<&PersonaNotes>, above: Option<&PersonaNotes>) -> Option<PersonaNotes> {
        match (own, above) {
            (Some(PersonaNotes::Notes(own)), Some(PersonaNotes::Notes(above))) => {
                Some(PersonaNotes::Notes([above.as_slice(), own].concat()))
            }
            (Some(own), _) => Some(own.clone()),
            (None, above) => above.cloned(),
        }
    }

    /// The notes as JSON: a text, or a list of texts.
    pub fn to_json(&self) -> Value {
        match self {
            PersonaNotes::Text(text) => Value::from(text.as_str()),
            PersonaNotes::Notes(notes) => Value::from(notes.clone()),
        }
    }

    /// The notes as text, one per line.
    pub fn to_text(&self) -> String {
        match self {
            PersonaNotes::Text(text) => text.clone(),
            PersonaNotes::Notes(notes) => {
                notes.iter().map(|note| format!("- {note}")).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

impl SimulatorBrief {
    /// Persona while the conversation is in a topic.
    pub fn persona_in(&self, topic: Option<&str>) -> SimulatedPersona {
        let during = self.during_topic.iter().find(|(name, ..)| Some(name.as_str()) == topic);
        match during {
            Some((_, different, _)) => different.merged_onto(&self.persona),
            None => self.persona.clone(),
        }
    }

    /// Maximum number of repetitions of a text. `None` means unlimited.
    pub fn repeat_limit(&self) -> Option<usize> {
        Some(self.max_repeats.unwrap_or(DEFAULT_MAX_REPEATS)).filter(|most| *most > 0)
    }

    /// Merges this brief onto the inherited one.
    #[must_use]
    pub fn merged_onto(self, above: &SimulatorBrief) -> SimulatorBrief {
        let own: Vec<&String> = self.during_topic.iter().map(|(name, ..)| name).collect();
        let kept = above.during_topic.iter().filter(|(name, ..)| !own.contains(&name)).cloned();
        let during_topic = kept.chain(self.during_topic.iter().cloned()).collect();
        let mut options = above.options.clone();
        options.extend(self.options);
        SimulatorBrief {
            persona: self.persona.merged_onto(&above.persona),
            goal: self.goal,
            max_turns: self.max_turns.or(above.max_turns),
            stop_when: if self.stop_when.is_empty() { above.stop_when.clone() } else { self.stop_when },
            max_repeats: self.max_repeats.or(above.max_repeats),
            during_topic,
            template: self.template,
            reference: self.reference.or_else(|| above.reference.clone()),
            options,
        }
    }

    /// Decodes the settings shared by the simulated users of several cases and merges them onto the inherited
    /// ones.
    pub fn read_shared(
        view: Option<NodeView<'_>>,
        above: &SimulatorBrief,
        diagnostics: &mut Diagnostics,
    ) -> SimulatorBrief {
        match view.and_then(|view| view.map(&USER)) {
            Some(map) => SimulatorBrief::read(&map, diagnostics).merged_onto(above),
            None => above.clone(),
        }
    }

    /// Decodes the simulated user of a case and merges it onto the inherited settings.
    pub fn read_own(
        view: NodeView<'_>,
        above: &SimulatorBrief,
        diagnostics: &mut Diagnostics,
    ) -> Option<SimulatorBrief> {
        let map = view.map(&SIMULATE)?;
        let template = map.text("template").map(|path| PromptTemplate {
            path: path.to_string(),
            place: map.place_near("template"),
            text: None,
        });
        let goal = map.text("goal").map(|goal| goal.trim().to_string());
        Some(SimulatorBrief { goal, template, ..SimulatorBrief::read(&map, diagnostics) }.merged_onto(above))
    }

    fn read(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> SimulatorBrief {
        let during_topic = map
            .entries("during_topic")
            .filter_map(|(name, place, view)| {
                let character = SimulatedPersona::read(&view.map(&DURING_TOPIC)?, diagnostics);
                Some((name.to_string(), character, place))
            })
            .collect();
        let stop_when = match map.get("stop_when") {
            None => Vec::new(),
            Some(view) => match view.text() {
                Some(name) => vec![function_check(name, view.place())],
                None => AssertionBlock::read_checks(Some(view), diagnostics),
            },
        };
        if let Some(place) =
            map.place_of("stop_when").filter(|_| stop_when.is_empty() && diagnostics.is_empty())
        {
            diagnostics.report(place, "`stop_when` has no assertions, so it would never stop");
        }
        SimulatorBrief {
            persona: SimulatedPersona::read(map, diagnostics),
            goal: None,
            max_turns: map.size("max_turns"),
            stop_when,
            max_repeats: map.size("max_repeats"),
            during_topic,
            template: None,
            reference: map.get("use").and_then(|view| role_reference(view, diagnostics)),
            options: map.members("options"),
        }
    }

    /// Returns diagnostics for topics that the brief names and the graph does not contain.
    pub fn unknown_topics(&self, topics: Option<&CaseTopics>) -> Diagnostics {
        let mut diagnostics = Diagnostics::new();
        for (name, _, place) in &self.during_topic {
            match topics {
                None => {
                    let wrong =
                        Diagnostic::new("topics need a `graph`, but none is defined").at(place.clone());
                    diagnostics.push(wrong.help("add a `graph` that defines the transitions between topics"));
                }
                Some(topics) if topics.graph.index_of(name).is_none() => {
                    diagnostics.push(unknown_topic(name, &topics.graph, place.clone()));
                }
                Some(_) => {}
            }
        }
        diagnostics
    }

    /// Values passed to a custom simulator while the conversation is in a topic. The keys are those of case
    /// files.
    pub fn prompt_values(&self, topic: Option<&str>) -> BTreeMap<&'static str, Value> {
        let character = self.persona_in(topic);
        let mut values = BTreeMap::new();
        let mut tell = |key: &'static str, value: Option<Value>| {
            if let Some(value) = value {
                values.insert(key, value);
            }
        };
        let list = |texts: &Vec<String>| (!texts.is_empty()).then(|| Value::from(texts.clone()));
        tell("goal", self.goal.as_deref().map(Value::from));
        tell("role", character.role.as_deref().map(Value::from));
        tell("personality", character.personality.as_ref().map(PersonaNotes::to_json));
        tell("context", character.context.as_ref().map(PersonaNotes::to_json));
        tell("should", list(&character.should));
        tell("should_not", list(&character.should_not));
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<PersonaNotes> {
        Some(PersonaNotes::Text(text.to_string()))
    }

    fn notes(notes: &[&str]) -> Option<PersonaNotes> {
        Some(PersonaNotes::Notes(notes.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn text_replaces_and_notes_append() {
        for (above, own, both) in [
            (None, text("own"), text("own")),
            (text("above"), None, text("above")),
            (text("above"), text("own"), text("own")),
            (notes(&["above"]), text("own"), text("own")),
            (text("above"), notes(&["own"]), notes(&["own"])),
            (notes(&["above"]), notes(&["own"]), notes(&["above", "own"])),
            (None, None, None),
        ] {
            assert_eq!(
                PersonaNotes::merged_onto(own.as_ref(), above.as_ref()),
                both,
                "{own:?} over {above:?}"
            );
        }
    }

    #[test]
    fn rules_append_and_limits_replace() {
        let during = |topic: &str, role: &str| {
            let character = SimulatedPersona { role: Some(role.to_string()), ..SimulatedPersona::default() };
            (
                topic.to_string(),
                character,
                SourceSpan::new(&hotseat_document::SourceText::new("", "", 1), 0..0),
            )
        };
        let above = SimulatorBrief {
            persona: SimulatedPersona {
                role: Some("above".to_string()),
                should: vec!["a".to_string()],
                ..SimulatedPersona::default()
            },
            goal: Some("never inherited".to_string()),
            max_turns: Some(15),
            during_topic: vec![during("x", "above"), during("y", "above")],
            ..SimulatorBrief::default()
        };
        let own = SimulatorBrief {
            persona: SimulatedPersona { should: vec!["b".to_string()], ..SimulatedPersona::default() },
            max_turns: Some(8),
            during_topic: vec![during("y", "own")],
            ..SimulatorBrief::default()
        };
        let both = own.merged_onto(&above);
        assert_eq!(both.persona.role.as_deref(), Some("above"));
        assert_eq!(both.persona.should, ["a", "b"]);
        assert_eq!((both.max_turns, both.goal.clone()), (Some(8), None));
        let role = |topic| both.persona_in(topic).role;
        assert_eq!(role(Some("x")).as_deref(), Some("above"));
        assert_eq!(role(Some("y")).as_deref(), Some("own"));
        assert_eq!(role(Some("z")).as_deref(), Some("above"));
    }
}
