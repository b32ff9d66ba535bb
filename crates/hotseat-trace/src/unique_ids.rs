//! Ids that differ from each other.

use std::collections::HashMap;

/// Ids so far, each with the last number that was put behind it. Many equal ids cost the same each.
#[derive(Debug, Default)]
pub struct UniqueIds(HashMap<String, usize>);

impl UniqueIds {
    /// Returns the wanted id if it is new, otherwise with the first number behind `separator` that makes it new: `c1#2`.
    pub fn assign(&mut self, wanted: &str, separator: &str) -> String {
        let mut id = wanted.to_owned();
        while self.0.contains_key(&id) {
            let number = self.0.entry(wanted.to_owned()).or_insert(1);
            *number += 1;
            id = format!("{wanted}{separator}{number}");
        }
        self.0.insert(id.clone(), 1);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_ids_that_were_wanted_themselves_are_passed_over() {
        let mut ids = UniqueIds::default();
        let assigned = ["c", "c#2", "c", "c#2", "c", ""].map(|wanted| ids.assign(wanted, "#"));
        assert_eq!(assigned, ["c", "c#2", "c#3", "c#2#2", "c#4", ""]);
    }

    /// If each id tried all numbers before its own, this would take hours.
    #[test]
    fn many_equal_ids_are_assigned_quickly() {
        let mut ids = UniqueIds::default();
        let last = (0..100_000).map(|_| ids.assign("c", "#")).last();
        assert_eq!(last.as_deref(), Some("c#100000"));
    }
}
