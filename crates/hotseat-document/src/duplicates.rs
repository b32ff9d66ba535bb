//! Keys that are written twice in one mapping.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::sync::Arc;

use super::diagnostic::Diagnostic;
use super::node::{Entry, Key, shorten};
use super::place::Source;

/// The mistake of a key that stands in one mapping twice.
pub(super) fn written_twice(first: &Key, second: &Key, source: &Arc<Source>) -> Diagnostic {
    Diagnostic::new(format!("the key `{}` is written twice", shorten(&first.text)))
        .at(second.place(source))
        .label("again")
        .also(first.place(source), "first")
}

/// The positions of keys that occurred before, each with the position of the first.
pub(super) fn duplicates(entries: &[Entry]) -> Vec<[usize; 2]> {
    // Nearly all mappings are so small that looking at each pair costs less than hashing.
    const SMALL: usize = 16;
    let mut found = Vec::new();
    if entries.len() <= SMALL {
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
