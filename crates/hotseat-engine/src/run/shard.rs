//! Division of the cases of a run into shards that can run on different machines.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::results::JudgingDigests;
use crate::cases::TestCase;

/// One of several shards. The shard of a case depends on its suite and id only, so adding or removing other
/// cases does not move it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Number of the shard, from 1.
    pub number: usize,
    /// Number of shards.
    pub of: usize,
}

/// A text that is no shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a shard such as 2/5 for the second of five")]
pub struct ShardError;

impl Shard {
    /// Parses `2/5`. Fails if the text is not a valid shard.
    pub fn parse(text: &str) -> Result<Shard, ShardError> {
        let (number, of) = text.split_once('/').ok_or(ShardError)?;
        let (number, of) = (number.parse().map_err(|_| ShardError)?, of.parse().map_err(|_| ShardError)?);
        if number == 0 || number > of { Err(ShardError) } else { Ok(Shard { number, of }) }
    }

    /// True if a case, given by suite name and id, belongs to this shard.
    pub fn contains(self, suite: &str, id: &str) -> bool {
        let named = Sha256::digest(format!("{suite}\0{id}"));
        let first = named.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        first % self.of as u64 == self.number as u64 - 1
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// Digest of the cases of a run, made from the digests of its suites, so that each case is hashed once.
#[derive(Default)]
pub(super) struct PlanDigest {
    suites: Sha256,
    suite: Sha256,
    /// Inherited settings of the last case of the suite: most cases of a suite inherit the same. `None` before the first.
    inherited: Option<String>,
}

impl PlanDigest {
    /// Starts the next suite. Suites without a case change nothing.
    pub fn begin_suite(&mut self) {
        let last = std::mem::take(&mut self.suite);
        if self.inherited.take().is_some() {
            add_part(&mut self.suites, &in_hexadecimal(last));
        }
    }

    /// Adds a case as written, together with its inherited settings.
    pub fn add_case(&mut self, suite: &str, case: &TestCase, judging: &JudgingDigests) {
        let (source, _) = case.source();
        let program = case.program.as_ref().and_then(|program| program.source.as_deref()).unwrap_or_default();
        let inherited = case.inherited_settings();
        let is_same = self.inherited.as_ref() == Some(&inherited);
        for part in [suite, &case.id, &source.text, if is_same { "" } else { &inherited }, program] {
            self.add_part(part);
        }
        self.inherited = Some(inherited);
        for part in [&judging.functions, &judging.judges].into_iter().flatten() {
            self.add_part(part);
        }
    }

    /// Adds a text that applies to all cases of the suite.
    pub fn add_part(&mut self, text: &str) {
        add_part(&mut self.suite, text);
    }

    /// Returns the digest of the suite so far.
    pub fn of_suite(&self) -> String {
        in_hexadecimal(self.suite.clone())
    }

    /// Returns the digest of all suites.
    pub fn finish(mut self) -> String {
        self.begin_suite();
        in_hexadecimal(self.suites)
    }
}

fn add_part(digest: &mut Sha256, text: &str) {
    digest.update((text.len() as u64).to_be_bytes());
    digest.update(text.as_bytes());
}

fn in_hexadecimal(digest: Sha256) -> String {
    digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for PlanDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlanDigest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_belongs_to_one_stable_shard() {
        let parts = |of| {
            move |id: &str| (1..=of).filter(|&number| Shard { number, of }.contains("a.yaml", id)).count()
        };
        let ids: Vec<String> = (0..1_000).map(|n| format!("case-{n}")).collect();
        for of in [1, 2, 5, 16] {
            assert!(ids.iter().all(|id| parts(of)(id) == 1), "{of}");
        }
        let in_first = ids.iter().filter(|id| Shard { number: 1, of: 5 }.contains("a.yaml", id)).count();
        assert!((150..250).contains(&in_first), "{in_first} of 1000 in a fifth");
        // Fixed values: machines of one run may use different versions.
        let of_five = |id| (1..=5).find(|&number| Shard { number, of: 5 }.contains("tests/a.test.yaml", id));
        assert_eq!(["greets", "books", "refuses"].map(of_five), [Some(1), Some(4), Some(4)]);
    }

    #[test]
    fn parses_shards() {
        assert_eq!(Shard::parse("2/5"), Ok(Shard { number: 2, of: 5 }));
        for text in ["", "2", "0/5", "6/5", "a/b", "1/0", "-1/5", "2/5/7"] {
            assert!(Shard::parse(text).is_err(), "{text}");
        }
    }
}
