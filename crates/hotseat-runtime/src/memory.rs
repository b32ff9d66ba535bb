//! What agents remember, and how it is found again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::definition::Memory;
use crate::failure::{ErrorCode, Failure};
use crate::ids::{AgentId, MemoryId, RunId};
use crate::work::TokenId;

/// Something an agent remembers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryRecord {
    /// Its id.
    pub id: MemoryId,
    /// Whose it is.
    pub agent: AgentId,
    /// Its kind.
    pub kind: String,
    /// What it says.
    pub content: String,
    /// How much it matters, from 0 to 1.
    pub significance: f64,
    /// When it was written.
    pub created_at: u64,
}

/// One use of an agent's memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MemoryUse {
    /// Keeps something.
    Write {
        /// What it is called from now on. It follows from who writes, so that writing again changes nothing.
        id: MemoryId,
        /// Its kind.
        kind: String,
        /// What it says.
        content: String,
        /// How much it matters, from 0 to 1.
        significance: f64,
    },
    /// Returns a record.
    Read {
        /// Which.
        id: MemoryId,
    },
    /// Returns the best records for a query.
    Search {
        /// The query.
        query: String,
        /// How many at most.
        limit: usize,
    },
    /// Returns all records, oldest first.
    List {
        /// How many at most.
        limit: Option<usize>,
    },
    /// Deletes a record.
    Delete {
        /// Which.
        id: MemoryId,
    },
}

/// What came of one use of an agent's memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "members are named as in the use they answer")]
pub enum Recalled {
    /// It is kept.
    Written { id: MemoryId, kind: String, content: String },
    /// The record, if there is one.
    Read { id: MemoryId, record: Option<MemoryRecord> },
    /// Whether there was one.
    Deleted { id: MemoryId, deleted: bool },
    /// The records; an empty query where all were listed.
    Found { query: String, records: Vec<MemoryRecord> },
}

impl MemoryUse {
    /// How many records a search returns where nothing is said.
    const LIMIT: usize = 10;

    /// The use that an action with this input means; `run` and `token` say who asks.
    ///
    /// # Errors
    /// When the input lacks what the action needs.
    pub fn read(action: Memory, input: &Value, run: &RunId, token: TokenId) -> Result<MemoryUse, Failure> {
        let text = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_string);
        let needed = |name: &str| {
            text(name).ok_or_else(|| {
                Failure::business(ErrorCode::InvalidInput, format!("memory needs the text `{name}`"))
            })
        };
        let limit = input.get("limit").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        Ok(match action {
            Memory::Write => MemoryUse::Write {
                id: MemoryId(format!("{run}-w{}", token.0).into()),
                kind: text("kind").unwrap_or_else(|| "note".to_string()),
                content: needed("content")?,
                significance: input
                    .get("significance")
                    .and_then(Value::as_f64)
                    .unwrap_or(0.5)
                    .clamp(0.0, 1.0),
            },
            Memory::Read => MemoryUse::Read { id: needed("id")?.into() },
            Memory::Search => {
                MemoryUse::Search { query: needed("query")?, limit: limit.unwrap_or(Self::LIMIT) }
            }
            Memory::List => MemoryUse::List { limit },
            Memory::Delete => MemoryUse::Delete { id: needed("id")?.into() },
        })
    }
}

impl Recalled {
    /// What the action returns.
    pub fn output(&self) -> Value {
        match self {
            Recalled::Written { id, .. } => json!({"id": id}),
            Recalled::Read { record, .. } => json!({"record": record.as_ref().map(MemoryRecord::output)}),
            Recalled::Deleted { deleted, .. } => json!({"deleted": deleted}),
            Recalled::Found { records, .. } => {
                json!({"records": records.iter().map(MemoryRecord::output).collect::<Vec<_>>()})
            }
        }
    }
}

impl MemoryRecord {
    /// How many bytes of text it holds.
    fn size(&self) -> usize {
        self.id.as_str().len() + self.kind.len() + self.content.len()
    }

    fn output(&self) -> Value {
        json!({
            "id": self.id,
            "kind": self.kind,
            "content": self.content,
            "significance": self.significance,
        })
    }
}

/// How much all agents together may remember in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    /// How many records.
    pub records: usize,
    /// How many bytes of text in them.
    pub bytes: usize,
}

impl Default for MemoryLimits {
    /// 10,000 records and 64 MiB.
    fn default() -> Self {
        MemoryLimits { records: 10_000, bytes: 64 * 1024 * 1024 }
    }
}

/// The memories of all agents, kept in this process. Each agent sees its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryStore {
    records: BTreeMap<AgentId, Vec<MemoryRecord>>,
}

impl MemoryStore {
    /// Carries out one use, at `now` on whatever clock its driver has.
    pub fn carry_out(&mut self, agent: &AgentId, usage: &MemoryUse, now: u64) -> Recalled {
        match usage {
            MemoryUse::Write { id, kind, content, significance } => {
                self.write(MemoryRecord {
                    id: id.clone(),
                    agent: agent.clone(),
                    kind: kind.clone(),
                    content: content.clone(),
                    significance: *significance,
                    created_at: now,
                });
                Recalled::Written { id: id.clone(), kind: kind.clone(), content: content.clone() }
            }
            MemoryUse::Read { id } => {
                Recalled::Read { id: id.clone(), record: self.read(agent, id).cloned() }
            }
            MemoryUse::Search { query, limit } => {
                Recalled::Found { query: query.clone(), records: self.search(agent, query, *limit) }
            }
            MemoryUse::List { limit } => {
                let records = self.list(agent).iter().take(limit.unwrap_or(usize::MAX)).cloned().collect();
                Recalled::Found { query: String::new(), records }
            }
            MemoryUse::Delete { id } => Recalled::Deleted { id: id.clone(), deleted: self.delete(agent, id) },
        }
    }

    /// Keeps a record, in place of one with the same id.
    pub fn write(&mut self, record: MemoryRecord) {
        let records = self.records.entry(record.agent.clone()).or_default();
        match records.iter_mut().find(|known| known.id == record.id) {
            Some(known) => *known = record,
            None => records.push(record),
        }
    }

    /// Forgets the records that were written longest ago where there are more than the limits allow. An eighth of the room is
    /// free afterwards, so that this is rare.
    pub fn forget_beyond(&mut self, limits: MemoryLimits) {
        let all = || self.records.values().flatten();
        let (mut count, mut bytes) = (all().count(), all().map(MemoryRecord::size).sum::<usize>());
        if count <= limits.records && bytes <= limits.bytes {
            return;
        }
        let mut by_age: Vec<_> =
            all().map(|record| (record.created_at, record.size(), record.id.clone())).collect();
        by_age.sort();
        let kept = (limits.records - limits.records / 8, limits.bytes - limits.bytes / 8);
        let mut forgotten = BTreeSet::new();
        for (_, size, id) in by_age {
            if count <= kept.0 && bytes <= kept.1 {
                break;
            }
            (count, bytes) = (count - 1, bytes - size);
            forgotten.insert(id);
        }
        self.records
            .values_mut()
            .for_each(|records| records.retain(|record| !forgotten.contains(&record.id)));
        self.records.retain(|_, records| !records.is_empty());
    }

    /// A record of this agent.
    pub fn read(&self, agent: &AgentId, id: &MemoryId) -> Option<&MemoryRecord> {
        self.list(agent).iter().find(|record| record.id == *id)
    }

    /// All records of this agent, oldest first.
    pub fn list(&self, agent: &AgentId) -> &[MemoryRecord] {
        self.records.get(agent).map_or(&[], Vec::as_slice)
    }

    /// Removes a record of this agent; says whether there was one.
    pub fn delete(&mut self, agent: &AgentId, id: &MemoryId) -> bool {
        let Some(records) = self.records.get_mut(agent) else { return false };
        let before = records.len();
        records.retain(|record| record.id != *id);
        records.len() < before
    }

    /// The records of this agent that share words with the query, best first.
    pub fn search(&self, agent: &AgentId, query: &str, limit: usize) -> Vec<MemoryRecord> {
        let mut found = self.list(agent).to_vec();
        best_first(&mut found, query);
        found.truncate(limit);
        found
    }
}

/// Keeps the records that share words with the query, best first. What matters much stands before what fits
/// slightly better.
pub(crate) fn best_first(records: &mut Vec<MemoryRecord>, query: &str) {
    let wanted = words(query);
    let fit = |record: &MemoryRecord| {
        let shared = wanted.intersection(&words(&record.content)).count();
        let fit = shared as f64 / wanted.len().max(1) as f64;
        (shared > 0).then_some(fit + record.significance / 2.0)
    };
    let mut found: Vec<_> =
        records.drain(..).filter_map(|record| fit(&record).map(|fit| (fit, record))).collect();
    found.sort_by(|(a, first), (b, second)| {
        b.total_cmp(a)
            .then_with(|| first.created_at.cmp(&second.created_at))
            .then_with(|| first.id.cmp(&second.id))
    });
    records.extend(found.into_iter().map(|(_, record)| record));
}

/// The words of a text, in lower case.
pub(crate) fn words(text: &str) -> BTreeSet<String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(agent: &str, id: &str, content: &str, significance: f64) -> MemoryRecord {
        let (kind, content) = ("fact".to_string(), content.to_string());
        MemoryRecord { id: id.into(), agent: agent.into(), kind, content, significance, created_at: 1 }
    }

    #[test]
    fn what_matters_stands_before_what_fits_slightly_better() {
        let mut store = MemoryStore::default();
        store.write(record("ann", "1", "Alice likes green tea", 0.0));
        store.write(record("ann", "2", "tea makes Alice ill", 1.0));
        store.write(record("ann", "3", "Bob likes coffee", 1.0));
        let found = store.search(&"ann".into(), "Alice green tea", 10);
        assert_eq!(found.iter().map(|found| found.id.as_str()).collect::<Vec<_>>(), ["2", "1"]);
        assert!(store.search(&"bob".into(), "tea", 10).is_empty());
    }

    #[test]
    fn a_long_record_comes_back_whole_and_a_deleted_one_does_not() {
        let mut store = MemoryStore::default();
        let (ann, id) = ("ann".into(), "1".into());
        store.write(record("ann", "1", &"x".repeat(10_000), 0.5));
        assert_eq!(store.read(&ann, &id).map(|record| record.content.len()), Some(10_000));
        assert!(!store.delete(&"bob".into(), &id));
        assert!(store.delete(&ann, &id));
        assert!(store.list(&ann).is_empty());
    }

    #[test]
    fn the_records_that_were_written_longest_ago_are_forgotten_where_there_are_too_many() {
        let mut store = MemoryStore::default();
        let limits = MemoryLimits { records: 16, bytes: 1000 };
        for number in 0..100 {
            let agent = if number % 2 == 0 { "ann" } else { "bob" };
            let record = record(agent, &format!("{number}"), "tea", 0.5);
            store.write(MemoryRecord { created_at: number, ..record });
            store.forget_beyond(limits);
            let kept = store.list(&"ann".into()).len() + store.list(&"bob".into()).len();
            assert!((14..=16).contains(&kept) || number < 14, "{kept} after {number}");
        }
        assert!(store.read(&"bob".into(), &"99".into()).is_some());
        assert!(store.read(&"ann".into(), &"80".into()).is_none());
        // One that is larger than all the room is not kept either.
        store.write(MemoryRecord { created_at: 100, ..record("ann", "100", &"x".repeat(2000), 0.5) });
        store.forget_beyond(limits);
        assert!(store.list(&"ann".into()).is_empty() && store.list(&"bob".into()).is_empty());
    }

    #[test]
    fn writing_again_under_the_same_id_changes_nothing_else() {
        let mut store = MemoryStore::default();
        store.write(record("ann", "1", "tea", 0.5));
        store.write(record("ann", "1", "tea", 0.5));
        assert_eq!(store.list(&"ann".into()).len(), 1);
    }
}
