//! The cases of a run are divided into parts, which may run on different machines.

use std::fmt;

use ring::digest::{Context, SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::cases::Case;
use crate::session::Body;

/// One of several parts into which cases are divided. Which part a case belongs to follows from its suite and its id
/// alone: others that come or go do not move it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl Shard {
    /// Reads `2/5`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Shard, String> {
        let wrong = || "a part of several is needed, for instance 2/5 for the second of five".to_string();
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let (number, of) = (number.parse().map_err(|_| wrong())?, of.parse().map_err(|_| wrong())?);
        if number == 0 || number > of { Err(wrong()) } else { Ok(Shard { number, of }) }
    }

    /// Whether a case of a suite, by its name within the project, belongs to it.
    pub fn has(self, suite: &str, id: &str) -> bool {
        let named = digest(&SHA256, format!("{suite}\0{id}").as_bytes());
        let first = named.as_ref().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        first % self.of as u64 == self.number as u64 - 1
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// What the cases of a run are, in one number.
pub(super) struct Digest(Context);

impl Digest {
    pub fn new() -> Self {
        Digest(Context::new(&SHA256))
    }

    /// Another case, as it is written, and with what it takes from around it.
    pub fn add(&mut self, suite: &str, case: &Case) {
        let (source, _) = case.written();
        let body = case.body.as_deref().and_then(Body::source).unwrap_or_default();
        for part in [suite, &case.id, &source.text, &case.around(), body] {
            self.part(part);
        }
    }

    /// Something else that belongs to all of them.
    pub fn part(&mut self, text: &str) {
        self.0.update(&(text.len() as u64).to_be_bytes());
        self.0.update(text.as_bytes());
    }

    /// The number, in hexadecimal digits.
    pub fn finish(self) -> String {
        self.0.finish().as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_belongs_to_one_part_and_stays_there() {
        let parts =
            |of| move |id: &str| (1..=of).filter(|&number| Shard { number, of }.has("a.yaml", id)).count();
        let ids: Vec<String> = (0..1_000).map(|n| format!("case-{n}")).collect();
        for of in [1, 2, 5, 16] {
            assert!(ids.iter().all(|id| parts(of)(id) == 1), "{of}");
        }
        let in_first = ids.iter().filter(|id| Shard { number: 1, of: 5 }.has("a.yaml", id)).count();
        assert!((150..250).contains(&in_first), "{in_first} of 1000 in a fifth");
        // These are a promise: the machines of one run may have different versions.
        let of_five = |id| (1..=5).find(|&number| Shard { number, of: 5 }.has("tests/a.test.yaml", id));
        assert_eq!(["greets", "books", "refuses"].map(of_five), [Some(1), Some(4), Some(4)]);
    }

    #[test]
    fn parts_are_read() {
        assert_eq!(Shard::parse("2/5"), Ok(Shard { number: 2, of: 5 }));
        for text in ["", "2", "0/5", "6/5", "a/b", "1/0", "-1/5", "2/5/7"] {
            assert!(Shard::parse(text).is_err(), "{text}");
        }
    }
}
