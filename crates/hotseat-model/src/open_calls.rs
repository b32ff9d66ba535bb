//! Finds the calls to which tool results belong.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The calls that have no result, by number.
///
/// A result belongs to the first of the open calls with its id, since calls may share one. A result with an empty id belongs to
/// the only open call.
#[derive(Debug, Default)]
pub struct OpenCalls {
    /// Ids by number; empty if unknown.
    ids: BTreeMap<usize, String>,
    /// Numbers by id, also by the empty one.
    by_id: HashMap<String, BTreeSet<usize>>,
}

/// A result that belongs to no open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnmatchedResult {
    /// No open call has the id; if it is empty, no call is open.
    NoCall,
    /// The id is empty, and several calls are open.
    SeveralCalls,
}

impl OpenCalls {
    /// Adds a call, or the id of one that had none.
    pub fn add(&mut self, number: usize, id: &str) {
        let is_known = self.ids.get(&number).is_some_and(|known| id.is_empty() || !known.is_empty());
        if !is_known {
            self.remove(number);
            self.ids.insert(number, id.to_owned());
            self.by_id.entry(id.to_owned()).or_default().insert(number);
        }
    }

    /// Returns the numbers of the open calls.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        self.ids.keys().copied()
    }

    /// Removes the call to which a result with this id belongs, and returns its number.
    ///
    /// # Errors
    /// If the result belongs to none of the calls.
    pub fn take(&mut self, id: &str) -> Result<usize, UnmatchedResult> {
        let number = match id {
            "" => only(self.numbers()),
            id => self.by_id.get(id).and_then(BTreeSet::first).copied().ok_or(UnmatchedResult::NoCall),
        };
        number.inspect(|number| self.remove(*number))
    }

    /// Removes the only open call that has no id, and returns its number.
    ///
    /// # Errors
    /// If there is none, or several.
    pub fn take_unnamed(&mut self) -> Result<usize, UnmatchedResult> {
        let unnamed = self.by_id.get("").into_iter().flatten();
        only(unnamed.copied()).inspect(|number| self.remove(*number))
    }

    fn remove(&mut self, number: usize) {
        let Some(id) = self.ids.remove(&number) else { return };
        if let Some(others) = self.by_id.get_mut(&id) {
            others.remove(&number);
            if others.is_empty() {
                self.by_id.remove(&id);
            }
        }
    }
}

fn only(mut numbers: impl Iterator<Item = usize>) -> Result<usize, UnmatchedResult> {
    match (numbers.next(), numbers.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(UnmatchedResult::NoCall),
        (Some(_), Some(_)) => Err(UnmatchedResult::SeveralCalls),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_belong_to_the_first_open_call_with_their_id() {
        let mut open = OpenCalls::default();
        assert_eq!(open.take(""), Err(UnmatchedResult::NoCall));
        for (number, id) in [(0, ""), (1, "a"), (2, "a"), (3, "b"), (0, "a")] {
            open.add(number, id);
        }
        assert_eq!(open.take("c"), Err(UnmatchedResult::NoCall));
        assert_eq!(open.take(""), Err(UnmatchedResult::SeveralCalls));
        assert_eq!([open.take("a"), open.take("a"), open.take("b")], [Ok(0), Ok(1), Ok(3)]);
        assert_eq!(open.numbers().collect::<Vec<_>>(), [2]);
        open.add(4, "");
        assert_eq!([open.take_unnamed(), open.take_unnamed()], [Ok(4), Err(UnmatchedResult::NoCall)]);
        assert_eq!([open.take(""), open.take("a")], [Ok(2), Err(UnmatchedResult::NoCall)]);
    }
}
