//! What a simulated user is told of who it is and what it wants, as people write it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::block::{Block, pattern};
use super::partners::{Simulator, Style};
use super::topic_shape::{DURING_TOPIC, SIMULATE, USER};
use super::topics::{Topics, function, no_topic};
use super::variables::mistake;
use crate::checks::{Check, Pattern, Reference};
use hotseat_document::{Diagnostics, Map, Place, View};
use serde_json::Value;

/// How many inputs a simulated user gives at most where nobody says.
pub const MOST_INPUTS: usize = 15;
/// How often it may say the same again where nobody says.
pub const MOST_REPEATS: usize = 2;

/// Who a simulated user is, and how it behaves.
#[derive(Debug, Clone, Default)]
pub struct Character {
    /// Who it is.
    pub role: Option<String>,
    /// How it is.
    pub personality: Option<Notes>,
    /// What it knows.
    pub context: Option<Notes>,
    /// What it does.
    pub should: Vec<String>,
    /// What it does not do.
    pub should_not: Vec<String>,
    /// What it does not say, for it is not so.
    pub never_says: Vec<Pattern>,
}

/// One text, or several notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notes {
    /// A text: it replaces what is said above.
    Text(String),
    /// Notes: they are added to notes.
    Notes(Vec<String>),
}

/// What a simulated user is told.
#[derive(Debug, Clone, Default)]
pub struct Brief {
    /// Who it is, and how it behaves.
    pub character: Character,
    /// What it wants; of a case there is always one.
    pub goal: Option<String>,
    /// How many inputs it gives at most.
    pub max_turns: Option<usize>,
    /// What ends the conversation: all of these hold of what was said and done so far.
    pub stop_when: Vec<Check>,
    /// How often it may say the same again; 0 is as often as it likes.
    pub max_repeats: Option<usize>,
    /// What is different while the conversation is in a topic, with where that is written.
    pub during_topic: Vec<(String, Character, Place)>,
    /// A prompt of the case's own: the path, and, once it is read, the text.
    pub template: Option<Template>,
    /// Who simulates, if that is said.
    pub reference: Option<Reference>,
    /// What it is told beside.
    pub options: serde_json::Map<String, Value>,
}

/// A prompt of a case's own.
#[derive(Debug, Clone)]
pub struct Template {
    /// Where it lies.
    pub path: String,
    /// Where that is written.
    pub place: Place,
    /// What it says, once it is read.
    pub text: Option<String>,
}

impl Template {
    /// Reads it from the first of these folders that has it.
    ///
    /// # Errors
    /// When there is none, or it says nothing of what it is for.
    pub fn load(&mut self, folders: &[PathBuf]) -> Result<(), String> {
        let path = &self.path;
        let Some(file) = folders.iter().map(|folder| folder.join(path)).find(|file| file.is_file()) else {
            return Err(format!("there is no file `{path}` with a prompt"));
        };
        let text = fs::read_to_string(file).map_err(|error| format!("`{path}` cannot be read: {error}"))?;
        let known = |name: &str| TEMPLATE_VALUES.contains(&name);
        if let Some(name) = placeholders(&text).find(|name| !known(name)) {
            let known = TEMPLATE_VALUES.map(|name| format!("`{{{{{name}}}}}`")).join(", ");
            return Err(format!("`{path}` has a place for `{name}`, and there are only {known}"));
        }
        if !placeholders(&text).any(|name| name == "system") {
            return Err(format!("`{path}` has no `{{{{system}}}}`, so the user would not know who it is"));
        }
        self.text = Some(text);
        Ok(())
    }
}

/// The names between `{{` and `}}`.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split("{{").skip(1).filter_map(|rest| rest.split_once("}}")).map(|(name, _)| name.trim())
}

/// What a prompt of a case's own has places for.
pub const TEMPLATE_VALUES: [&str; 5] = ["system", "rules", "conversation", "turn", "max_turns"];

impl Character {
    /// What is said here on top of what is said above.
    #[must_use]
    pub fn over(&self, above: &Character) -> Character {
        let added = |above: &[String], own: &[String]| [above, own].concat();
        Character {
            role: self.role.clone().or_else(|| above.role.clone()),
            personality: Notes::over(self.personality.as_ref(), above.personality.as_ref()),
            context: Notes::over(self.context.as_ref(), above.context.as_ref()),
            should: added(&above.should, &self.should),
            should_not: added(&above.should_not, &self.should_not),
            never_says: [above.never_says.as_slice(), &self.never_says].concat(),
        }
    }

    fn read(map: &Map<'_>, mistakes: &mut Diagnostics) -> Character {
        let texts = |key: &str| -> Vec<String> {
            let texts = map.get(key).into_iter().flat_map(View::one_or_many).filter_map(View::text);
            texts.map(|text| text.trim().to_string()).collect()
        };
        let never_says = map.get("never_says").into_iter().flat_map(View::one_or_many);
        Character {
            role: map.text("role").map(|text| text.trim().to_string()),
            personality: map.get("personality").map(Notes::read),
            context: map.get("context").map(Notes::read),
            should: texts("should"),
            should_not: texts("should_not"),
            never_says: never_says.filter_map(|view| pattern(view, mistakes)).collect(),
        }
    }
}

impl Notes {
    fn read(view: View<'_>) -> Notes {
        match view.text() {
            Some(text) => Notes::Text(text.trim().to_string()),
            None => {
                let notes = view.one_or_many().filter_map(View::text);
                Notes::Notes(notes.map(|note| note.trim().to_string()).collect())
            }
        }
    }

    fn over(own: Option<&Notes>, above: Option<&Notes>) -> Option<Notes> {
        match (own, above) {
            (Some(Notes::Notes(own)), Some(Notes::Notes(above))) => {
                Some(Notes::Notes([above.as_slice(), own].concat()))
            }
            (Some(own), _) => Some(own.clone()),
            (None, above) => above.cloned(),
        }
    }

    /// As it is told: a text, or a list of texts.
    pub fn json(&self) -> Value {
        match self {
            Notes::Text(text) => Value::from(text.as_str()),
            Notes::Notes(notes) => Value::from(notes.clone()),
        }
    }

    /// In lines.
    pub fn lines(&self) -> String {
        match self {
            Notes::Text(text) => text.clone(),
            Notes::Notes(notes) => {
                notes.iter().map(|note| format!("- {note}")).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

impl Brief {
    /// Who it is while the conversation is in a topic.
    pub fn character_in(&self, topic: Option<&str>) -> Character {
        let during = self.during_topic.iter().find(|(name, ..)| Some(name.as_str()) == topic);
        match during {
            Some((_, different, _)) => different.over(&self.character),
            None => self.character.clone(),
        }
    }

    /// How many inputs it gives at most.
    pub fn most_inputs(&self) -> usize {
        self.max_turns.unwrap_or(MOST_INPUTS)
    }

    /// How often it may say the same again, if there is a limit.
    pub fn most_repeats(&self) -> Option<usize> {
        Some(self.max_repeats.unwrap_or(MOST_REPEATS)).filter(|most| *most > 0)
    }

    /// What is said here on top of what is said above.
    #[must_use]
    pub fn over(self, above: &Brief) -> Brief {
        let own: Vec<&String> = self.during_topic.iter().map(|(name, ..)| name).collect();
        let kept = above.during_topic.iter().filter(|(name, ..)| !own.contains(&name)).cloned();
        let during_topic = kept.chain(self.during_topic.iter().cloned()).collect();
        let mut options = above.options.clone();
        options.extend(self.options);
        Brief {
            character: self.character.over(&above.character),
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

    /// Reads what the simulated users of several cases have in common, on top of what is said above.
    pub fn read_shared(view: Option<View<'_>>, above: &Brief, mistakes: &mut Diagnostics) -> Brief {
        match view.and_then(|view| view.map(&USER)) {
            Some(map) => Brief::read(&map, mistakes).over(above),
            None => above.clone(),
        }
    }

    /// Reads the simulated user of a case, on top of what is said above.
    pub fn read_own(view: View<'_>, above: &Brief, mistakes: &mut Diagnostics) -> Option<Brief> {
        let map = view.map(&SIMULATE)?;
        let template = map.text("template").map(|path| Template {
            path: path.to_string(),
            place: map.place_of("template").unwrap_or_else(|| map.place()),
            text: None,
        });
        let goal = map.text("goal").map(|goal| goal.trim().to_string());
        Some(Brief { goal, template, ..Brief::read(&map, mistakes) }.over(above))
    }

    fn read(map: &Map<'_>, mistakes: &mut Diagnostics) -> Brief {
        let whole = |key: &str| map.integer(key).and_then(|n| usize::try_from(n).ok());
        let during = map.get("during_topic").and_then(View::entries).into_iter().flatten();
        let during_topic = during
            .filter_map(|(name, place, view)| {
                let character = Character::read(&view.map(&DURING_TOPIC)?, mistakes);
                Some((name.to_string(), character, place))
            })
            .collect();
        let stop_when = match map.get("stop_when") {
            None => Vec::new(),
            Some(view) => match view.text() {
                Some(name) => vec![function(name, view.place())],
                None => Block::read(Some(view), mistakes).checks(),
            },
        };
        if let Some(place) = map.place_of("stop_when").filter(|_| stop_when.is_empty() && mistakes.is_empty())
        {
            mistakes.push(mistake(Some(place), "`stop_when` asserts nothing, so it never stops"));
        }
        let options = match map.json("options") {
            Some(Value::Object(options)) => options,
            _ => serde_json::Map::new(),
        };
        Brief {
            character: Character::read(map, mistakes),
            goal: None,
            max_turns: whole("max_turns"),
            stop_when,
            max_repeats: whole("max_repeats"),
            during_topic,
            template: None,
            reference: map.get("use").and_then(|view| super::assertion::reference(view, mistakes)),
            options,
        }
    }

    /// What is wrong with the topics that it names.
    pub fn unknown_topics(&self, topics: Option<&Topics>) -> Diagnostics {
        let mut mistakes = Diagnostics::new();
        for (name, _, place) in &self.during_topic {
            match topics {
                None => {
                    let wrong =
                        mistake(Some(place.clone()), "no topics are followed here: there is no `graph`");
                    mistakes.push(wrong.help("write a `graph` that says which topics may follow which"));
                }
                Some(topics) if topics.graph.place(name).is_none() => {
                    mistakes.push(no_topic(name, &topics.graph, place.clone()));
                }
                Some(_) => {}
            }
        }
        mistakes
    }

    /// The simulated user that it describes.
    pub fn simulator(self, place: Place) -> Simulator {
        Simulator {
            reference: self.reference.clone(),
            options: self.options.clone(),
            style: Style::Message,
            place,
            brief: Some(std::sync::Arc::new(self)),
        }
    }

    /// What it is told of itself while the conversation is in a topic: the names of the members are those of case files.
    pub fn told(&self, topic: Option<&str>) -> BTreeMap<&'static str, Value> {
        let character = self.character_in(topic);
        let mut told = BTreeMap::new();
        let mut tell = |key: &'static str, value: Option<Value>| {
            if let Some(value) = value {
                told.insert(key, value);
            }
        };
        let list = |texts: &Vec<String>| (!texts.is_empty()).then(|| Value::from(texts.clone()));
        tell("goal", self.goal.as_deref().map(Value::from));
        tell("role", character.role.as_deref().map(Value::from));
        tell("personality", character.personality.as_ref().map(Notes::json));
        tell("context", character.context.as_ref().map(Notes::json));
        tell("should", list(&character.should));
        tell("should_not", list(&character.should_not));
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<Notes> {
        Some(Notes::Text(text.to_string()))
    }

    fn notes(notes: &[&str]) -> Option<Notes> {
        Some(Notes::Notes(notes.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn a_text_replaces_and_notes_are_added_to_notes() {
        for (above, own, both) in [
            (None, text("own"), text("own")),
            (text("above"), None, text("above")),
            (text("above"), text("own"), text("own")),
            (notes(&["above"]), text("own"), text("own")),
            (text("above"), notes(&["own"]), notes(&["own"])),
            (notes(&["above"]), notes(&["own"]), notes(&["above", "own"])),
            (None, None, None),
        ] {
            assert_eq!(Notes::over(own.as_ref(), above.as_ref()), both, "{own:?} over {above:?}");
        }
    }

    #[test]
    fn rules_are_added_limits_replaced_and_topics_by_topic() {
        let during = |topic: &str, role: &str| {
            let character = Character { role: Some(role.to_string()), ..Character::default() };
            (topic.to_string(), character, Place::new(&hotseat_document::Source::new("", "", 1), 0..0))
        };
        let above = Brief {
            character: Character {
                role: Some("above".to_string()),
                should: vec!["a".to_string()],
                ..Character::default()
            },
            goal: Some("never inherited".to_string()),
            max_turns: Some(15),
            during_topic: vec![during("x", "above"), during("y", "above")],
            ..Brief::default()
        };
        let own = Brief {
            character: Character { should: vec!["b".to_string()], ..Character::default() },
            max_turns: Some(8),
            during_topic: vec![during("y", "own")],
            ..Brief::default()
        };
        let both = own.over(&above);
        assert_eq!(both.character.role.as_deref(), Some("above"));
        assert_eq!(both.character.should, ["a", "b"]);
        assert_eq!((both.max_turns, both.goal.clone()), (Some(8), None));
        let role = |topic| both.character_in(topic).role;
        assert_eq!(role(Some("x")).as_deref(), Some("above"));
        assert_eq!(role(Some("y")).as_deref(), Some("own"));
        assert_eq!(role(Some("z")).as_deref(), Some("above"));
    }
}
