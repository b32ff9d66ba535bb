//! Maps from ids of an agent to values.

use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of entries that are searched one after the other.
const MAX_SEARCHED_ENTRIES: usize = 8;

/// A map by id. Most turns have few ids, and comparing those is faster than hashing; with more entries all of them are
/// hashed, so the cost of a lookup has a bound.
#[derive(Debug)]
pub(super) struct IdMap<V> {
    /// All entries, until there are too many.
    few: Vec<(Arc<str>, V)>,
    /// All entries, once there were too many.
    many: HashMap<Arc<str>, V>,
}

impl<V> Default for IdMap<V> {
    fn default() -> Self {
        IdMap { few: Vec::new(), many: HashMap::new() }
    }
}

impl<V> IdMap<V> {
    fn position(&self, id: &str) -> Option<usize> {
        self.few.iter().position(|(known, _)| **known == *id)
    }

    /// Returns the value of an id.
    pub(super) fn get(&self, id: &str) -> Option<&V> {
        if self.many.is_empty() {
            return self.position(id).map(|place| &self.few[place].1);
        }
        self.many.get(id)
    }

    /// Returns the value of an id for modification.
    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut V> {
        if self.many.is_empty() {
            return self.position(id).map(|place| &mut self.few[place].1);
        }
        self.many.get_mut(id)
    }

    /// Returns true if the map has a value of this id.
    pub(super) fn contains_key(&self, id: &str) -> bool {
        self.get(id).is_some()
    }

    /// Sets the value of an id and returns the earlier one.
    pub(super) fn insert(&mut self, id: Arc<str>, value: V) -> Option<V> {
        if let Some(known) = self.get_mut(&id) {
            return Some(std::mem::replace(known, value));
        }
        self.add(id, value);
        None
    }

    /// Returns the value of an id, and sets it before if there is none.
    pub(super) fn get_or_insert_with(&mut self, id: &Arc<str>, value: impl FnOnce() -> V) -> &mut V {
        if self.many.is_empty() {
            if let Some(place) = self.position(id) {
                return &mut self.few[place].1;
            }
            if self.few.len() < MAX_SEARCHED_ENTRIES {
                self.few.push((id.clone(), value()));
                let last = self.few.len() - 1;
                return &mut self.few[last].1;
            }
            self.many.extend(self.few.drain(..));
        }
        self.many.entry(id.clone()).or_insert_with(value)
    }

    /// Adds an entry that the map does not have.
    fn add(&mut self, id: Arc<str>, value: V) {
        if self.many.is_empty() && self.few.len() < MAX_SEARCHED_ENTRIES {
            return self.few.push((id, value));
        }
        self.many.extend(self.few.drain(..));
        self.many.insert(id, value);
    }

    /// Removes an id and returns its value.
    pub(super) fn remove(&mut self, id: &str) -> Option<V> {
        if self.many.is_empty() {
            return self.position(id).map(|place| self.few.swap_remove(place).1);
        }
        self.many.remove(id)
    }

    /// Returns the entries in any order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &V)> {
        self.few.iter().map(|(id, value)| (id, value)).chain(&self.many)
    }

    /// Returns the ids in any order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.iter().map(|(id, _)| id)
    }

    /// Returns true if the map has no entry.
    pub(super) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_empty()
    }

    /// Removes all entries.
    pub(super) fn clear(&mut self) {
        self.few.clear();
        self.many.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn does_what_a_hash_map_does(steps in prop::collection::vec((0..4_u8, 0..24_u8, any::<u8>()), 0..80)) {
            let (mut map, mut expected) = (IdMap::default(), HashMap::new());
            for (step, id, value) in steps {
                let id: Arc<str> = format!("id-{id}").into();
                match step {
                    0 => prop_assert_eq!(map.remove(&id), expected.remove(&id)),
                    1 => {
                        let known = *expected.entry(id.clone()).or_insert(value);
                        prop_assert_eq!(*map.get_or_insert_with(&id, || value), known);
                    }
                    _ => prop_assert_eq!(map.insert(id.clone(), value), expected.insert(id.clone(), value)),
                }
                prop_assert_eq!(map.get(&id), expected.get(&id));
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort();
                let mut known: Vec<_> = expected.iter().collect();
                known.sort();
                prop_assert_eq!(entries, known);
                prop_assert_eq!(map.is_empty(), expected.is_empty());
            }
        }
    }
}
