//! Duplicate keys of a mapping.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::sync::Arc;

use super::diagnostic::Diagnostic;
use super::excerpt::shorten;
use super::node::{MapEntry, MapKey};
use super::place::SourceText;

/// Error for a key that occurs twice in a mapping.
pub(super) fn duplicate_key_error(first: &MapKey, second: &MapKey, source: &Arc<SourceText>) -> Diagnostic {
    Diagnostic::new(format!("the key `{}` is written twice", shorten(&first.text)))
        .at(second.place(source))
        .with_label("again")
        .with_related(first.place(source), "first")
}

/// Returns the positions of repeated keys, each with the position of the first occurrence.
pub(super) fn find_duplicates(entries: &[MapEntry]) -> Vec<[usize; 2]> {
    // Nearly all mappings are so small that comparing all pairs costs less than hashing.
    const MAX_PAIRWISE_ENTRIES: usize = 16;
    let mut found = Vec::new();
    if entries.len() <= MAX_PAIRWISE_ENTRIES {
        for (second, entry) in entries.iter().enumerate() {
            if let Some(first) = entries[..second].iter().position(|other| other.key.text == entry.key.text) {
                found.push([first, second]);
            }
        }
        return found;
    }
    let mut known = HashMap::with_capacity(entries.len());
    for (second, entry) in entries.iter().enumerate() {
        match known.entry(entry.key.text.as_str()) {
            Occupied(first) => found.push([*first.get(), second]),
            Vacant(vacant) => {
                vacant.insert(second);
            }
        }
    }
    found
}
