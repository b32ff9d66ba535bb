//! Suggestions for misspelt filters, from the labels of existing cases.

use std::collections::{BTreeMap, BTreeSet};

use hotseat_checks::Pattern;
use hotseat_document::{nearest, nearest_or};

use super::case_filter::{CaseFilter, CaseLabels, KeywordExpression};

/// Maximum number of cases whose labels are searched for a similar one.
const MAX_KNOWN_CASES: usize = 10_000;
/// Maximum number of tags in a suggestion.
const MAX_LISTED_TAGS: usize = 8;
/// Minimum number of letters of a word that is compared with parts of labels.
const MIN_PART_LETTERS: usize = 4;
/// Words of the paths of all suites.
const SUITE_WORDS: [&str; 6] = ["test", "yaml", "yml", "json", "jsonl", "ts"];

/// Labels of existing cases, to suggest the most similar one for a misspelt filter.
#[derive(Debug, Default)]
pub struct KnownLabels {
    cases: usize,
    names: BTreeSet<String>,
    tags: BTreeSet<String>,
}

impl KnownLabels {
    /// Adds the labels of a case. Ignores all but the first ten thousand cases.
    pub fn add(&mut self, labels: CaseLabels<'_>) {
        self.cases += 1;
        if self.cases <= MAX_KNOWN_CASES {
            self.names.extend([labels.id, labels.name, labels.suite].map(str::to_string));
            self.tags.extend(labels.tags.iter().cloned());
        }
    }

    /// Suggests a label for a filter that matches no case.
    pub fn suggest(&self, filter: &CaseFilter) -> Option<String> {
        let tag = filter.tags.iter().find(|tag| !self.tags.contains(*tag)).map(|tag| self.suggest_tag(tag));
        let words = filter.keywords.iter().flat_map(KeywordExpression::words);
        let mut unknown = words.filter(|word| !self.contain(word));
        let is_unknown = |pattern: &&Pattern| !self.all().any(|label| pattern.is_match(label));
        let mut patterns = filter.names.iter().chain(&filter.texts).filter(is_unknown);
        tag.or_else(|| unknown.find_map(|word| self.suggest_name(word)))
            .or_else(|| patterns.find_map(|pattern| self.suggest_name(pattern.source())))
    }

    /// Suggests a name, a word of a name or a tag. Also finds a word that is written only in part, and the misspelt
    /// word of several.
    pub fn suggest_name(&self, written: &str) -> Option<String> {
        let names = || self.names.iter().map(String::as_str);
        let words = || names().flat_map(split_words).filter(|word| !SUITE_WORDS.contains(word));
        let near = nearest(written, names())
            .or_else(|| nearest(written, words()))
            .or_else(|| nearest(written, self.tags.iter().map(String::as_str)))
            .or_else(|| nearest_start(written, words()))
            .or_else(|| {
                let long = split_words(written).filter(|word| word.chars().count() >= MIN_PART_LETTERS);
                let mut unknown = long.filter(|word| !self.contain(&word.to_lowercase()));
                unknown.find_map(|word| nearest(word, words()).or_else(|| nearest_start(word, words())))
            });
        near.map(|near| format!("did you mean `{near}`?"))
    }

    /// Suggests a tag, or lists the tags.
    pub fn suggest_tag(&self, written: &str) -> String {
        let tags = || self.tags.iter().map(String::as_str);
        nearest_or(written, tags(), || {
            let listed: Vec<&str> = tags().take(MAX_LISTED_TAGS).collect();
            let more = if self.tags.len() > MAX_LISTED_TAGS { ", …" } else { "" };
            match listed.is_empty() {
                true => "no case has a tag".to_string(),
                false => format!("the tags are {}{more}", listed.join(", ")),
            }
        })
    }

    /// True if a word in lower case occurs in a label.
    fn contain(&self, word: &str) -> bool {
        self.all().any(|label| label.to_lowercase().contains(word))
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.names.iter().chain(&self.tags)
    }
}

/// Splits a text into words of letters and digits.
fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Returns the word whose start is closest to a misspelt one.
fn nearest_start<'a>(written: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = written.chars().count();
    if length < MIN_PART_LETTERS {
        return None;
    }
    let start = |word: &'a str| word.char_indices().nth(length).map(|(end, _)| (&word[..end], word));
    let starts: BTreeMap<&str, &str> = words.filter_map(start).collect();
    nearest(written, starts.keys().copied()).and_then(|start| starts.get(start).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_find_parts_of_names() {
        let mut known = KnownLabels::default();
        let tags = ["smoke".to_string()];
        let (id, name) = ("row-1", "nothing is deleted against a person's will à la carte");
        known.add(CaseLabels { id, name, suite: "expense.test.yaml", tags: &tags });
        for (written, near) in [
            ("row-2", Some("row-1")),
            ("delte", Some("deleted")),
            ("agianst", Some("against")),
            ("deletde", Some("deleted")),
            ("nothing is deletde", Some("deleted")),
            ("smoek", Some("smoke")),
            ("perso", Some("person")),
            ("xyz", None),
            ("tests", None),
            ("refunded", None),
            // A letter of several bytes is a single letter.
            ("x", None),
        ] {
            let expected = near.map(|near| format!("did you mean `{near}`?"));
            assert_eq!(known.suggest_name(written), expected, "{written}");
        }
    }

    #[test]
    fn filters_that_match_separately_get_no_suggestion() {
        let mut known = KnownLabels::default();
        known.add(CaseLabels { id: "books", name: "books", suite: "a.test.yaml", tags: &[] });
        known.add(CaseLabels { id: "pays", name: "pays", suite: "a.test.yaml", tags: &[] });
        let filter = CaseFilter::compile(&["book".to_string()], Some("pays"), &[], &[], &[]);
        assert_eq!(known.suggest(&filter.expect("the filter is valid")), None);
    }
}
