//! Reads the keys of a mapping and reports those that are wrong.

use std::time::Duration;

use super::place::Mistakes;
use super::rule::Written;
use super::tree::{Content, Entry, Node, shorten};

/// The longest time that can be written: a day, in milliseconds.
const LONGEST_MS: u64 = 24 * 60 * 60 * 1000;

/// A mapping of which every key must be known.
pub(super) struct Fields<'n, 'm> {
    entries: &'n [Entry],
    pub(super) mistakes: &'m mut Mistakes,
}

impl<'n, 'm> Fields<'n, 'm> {
    /// The keys of a mapping; none, and mistakes, where it is no mapping or has unknown keys. `what` names it.
    pub(super) fn of(node: &'n Node, what: &str, known: &[&str], mistakes: &'m mut Mistakes) -> Self {
        Fields::of_form(node, what, "a mapping", known, mistakes)
    }

    /// The same for what could have been something else than a mapping: `form` says what it may be.
    pub(super) fn of_form(
        node: &'n Node,
        what: &str,
        form: &str,
        known: &[&str],
        mistakes: &'m mut Mistakes,
    ) -> Self {
        let Content::Map(entries) = &node.content else {
            mistakes.add(node.place.as_ref(), format!("{what} must be {form}, found {}", node.in_words()));
            return Fields { entries: &[], mistakes };
        };
        for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let advice = match nearest(&entry.key, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known keys are {}", listed(known)),
            };
            let key = shorten(&entry.key);
            mistakes.add(entry.key_place.as_ref(), format!("{what} has no key `{key}`; {advice}"));
        }
        Fields { entries, mistakes }
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    pub(super) fn text(&mut self, key: &str) -> Option<Written<String>> {
        let node = self.get(key)?;
        match &node.content {
            Content::Text(text) => Some(Written { value: text.clone(), place: node.place.clone() }),
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::List(_) | Content::Map(_) => {
                self.wrong(key, "a text", node)
            }
        }
    }

    /// A text that is not empty.
    pub(super) fn name(&mut self, key: &str) -> Option<Written<String>> {
        let text = self.text(key)?;
        if text.value.is_empty() {
            self.mistakes.add(text.place.as_ref(), format!("`{key}` must not be empty"));
            return None;
        }
        Some(text)
    }

    pub(super) fn bool(&mut self, key: &str) -> Option<bool> {
        let node = self.get(key)?;
        match node.content {
            Content::Bool(truth) => Some(truth),
            Content::Null | Content::Number(_) | Content::Text(_) | Content::List(_) | Content::Map(_) => {
                self.wrong(key, "true or false", node)
            }
        }
    }

    /// A whole number between two limits, both included.
    pub(super) fn integer(&mut self, key: &str, least: u64, most: u64) -> Option<u64> {
        let node = self.get(key)?;
        let number = match &node.content {
            Content::Number(number) => number.as_u64().filter(|number| (least..=most).contains(number)),
            Content::Null | Content::Bool(_) | Content::Text(_) | Content::List(_) | Content::Map(_) => None,
        };
        match number {
            Some(number) => Some(number),
            None if most == u64::MAX => self.wrong(key, &format!("a whole number, {least} or more"), node),
            None => self.wrong(key, &format!("a whole number from {least} to {most}"), node),
        }
    }

    /// A number of turns, calls or attempts, from 1.
    pub(super) fn ordinal(&mut self, key: &str) -> Option<u32> {
        self.integer(key, 1, u64::from(u32::MAX)).and_then(|number| u32::try_from(number).ok())
    }

    pub(super) fn millis(&mut self, key: &str) -> Option<Duration> {
        self.integer(key, 0, LONGEST_MS).map(Duration::from_millis)
    }

    /// One of some words.
    pub(super) fn choice<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> Option<T> {
        let node = self.get(key)?;
        let found = match &node.content {
            Content::Text(text) => choices.iter().find(|(word, _)| word == text).map(|(_, value)| *value),
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::List(_) | Content::Map(_) => {
                None
            }
        };
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        found.or_else(|| self.wrong(key, &format!("one of {}", listed(&words)), node))
    }

    fn wrong<T>(&mut self, key: &str, expected: &str, node: &Node) -> Option<T> {
        let found = node.in_words();
        self.mistakes.add(node.place.as_ref(), format!("`{key}` must be {expected}, found {found}"));
        None
    }
}

/// The known word that a misspelt one may have meant.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let distances = known.iter().map(|known| (strsim::damerau_levenshtein(word, known), *known));
    let (distance, near) = distances.min_by_key(|(distance, _)| *distance)?;
    let is_near = distance <= (near.len() / 3).max(1);
    let begins = || known.iter().copied().find(|known| word.len() > 2 && known.starts_with(word));
    if is_near { Some(near) } else { begins() }
}

/// `a`, `b` and `c`, each in backquotes.
pub(super) fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}
