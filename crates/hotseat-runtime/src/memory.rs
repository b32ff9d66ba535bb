//! Memory of agents and its search.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::definition::MemoryAction;
use crate::failure::{ErrorCode, WorkFailure};
use crate::ids::{AgentId, MemoryId, RunId, TokenId, numbered};

/// One memory of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryRecord {
    /// The id of the record.
    pub id: MemoryId,
    /// The agent that owns the record.
    pub agent: AgentId,
    /// Kind of the memory.
    pub kind: String,
    /// Text of the memory.
    pub content: String,
    /// Significance, from 0 to 1.
    pub significance: f64,
    /// Creation time.
    pub created_at: u64,
}

/// Access to an agent's memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the documentation of the variants names the members")]
pub enum MemoryUse {
    /// Stores a record. Its id is derived from the writer, so that repeated writes are idempotent. The significance is from 0 to 1.
    Write { id: MemoryId, kind: String, content: String, significance: f64 },
    /// Returns a record.
    Read { id: MemoryId },
    /// Returns the best records for a query, at most `limit`.
    Search { query: String, limit: usize },
    /// Returns all records, oldest first, at most `limit`.
    List { limit: Option<usize> },
    /// Deletes a record.
    Delete { id: MemoryId },
}

/// Result of a memory access.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "members are named as in the use they answer")]
pub enum MemoryResult {
    /// The record was stored.
    Written { id: MemoryId, kind: String, content: String },
    /// The record, if it exists.
    Read { id: MemoryId, record: Option<MemoryRecord> },
    /// True if the record existed.
    Deleted { id: MemoryId, deleted: bool },
    /// Matching records; the query is empty for a list.
    Found { query: String, records: Vec<MemoryRecord> },
}

impl MemoryUse {
    /// Default number of search results.
    const DEFAULT_SEARCH_LIMIT: usize = 10;

    /// Decodes a memory access from the input of an action. `run` and `token` identify the writer.
    ///
    /// # Errors
    /// If a required member is missing.
    pub fn from_input(
        action: MemoryAction,
        input: &Value,
        run: &RunId,
        token: TokenId,
    ) -> Result<MemoryUse, WorkFailure> {
        let text = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_string);
        let needed = |name: &str| {
            text(name).ok_or_else(|| {
                WorkFailure::business(
                    ErrorCode::InvalidInput,
                    format!("the memory action requires the string `{name}`"),
                )
            })
        };
        let limit = input.get("limit").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        Ok(match action {
            MemoryAction::Write => MemoryUse::Write {
                id: MemoryId(numbered(run.as_str(), "w", token.0 as usize)),
                kind: text("kind").unwrap_or_else(|| "note".to_string()),
                content: needed("content")?,
                significance: input
                    .get("significance")
                    .and_then(Value::as_f64)
                    .unwrap_or(0.5)
                    .clamp(0.0, 1.0),
            },
            MemoryAction::Read => MemoryUse::Read { id: needed("id")?.into() },
            MemoryAction::Search => MemoryUse::Search {
                query: needed("query")?,
                limit: limit.unwrap_or(Self::DEFAULT_SEARCH_LIMIT),
            },
            MemoryAction::List => MemoryUse::List { limit },
            MemoryAction::Delete => MemoryUse::Delete { id: needed("id")?.into() },
        })
    }
}

impl MemoryResult {
    /// Returns the result of the action.
    pub fn output(&self) -> Value {
        match self {
            MemoryResult::Written { id, .. } => json!({"id": id}),
            MemoryResult::Read { record, .. } => json!({"record": record.as_ref().map(MemoryRecord::output)}),
            MemoryResult::Deleted { deleted, .. } => json!({"deleted": deleted}),
            MemoryResult::Found { records, .. } => {
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

/// Memories of all agents, in this process. Agents cannot see each other's records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryStore {
    records: BTreeMap<AgentId, Vec<MemoryRecord>>,
}

impl MemoryStore {
    /// Executes one access at `now`, in the driver's time.
    pub fn execute(&mut self, agent: &AgentId, usage: &MemoryUse, now: u64) -> MemoryResult {
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
                MemoryResult::Written { id: id.clone(), kind: kind.clone(), content: content.clone() }
            }
            MemoryUse::Read { id } => {
                MemoryResult::Read { id: id.clone(), record: self.read(agent, id).cloned() }
            }
            MemoryUse::Search { query, limit } => {
                MemoryResult::Found { query: query.clone(), records: self.search(agent, query, *limit) }
            }
            MemoryUse::List { limit } => {
                let records = self.list(agent).iter().take(limit.unwrap_or(usize::MAX)).cloned().collect();
                MemoryResult::Found { query: String::new(), records }
            }
            MemoryUse::Delete { id } => {
                MemoryResult::Deleted { id: id.clone(), deleted: self.delete(agent, id) }
            }
        }
    }

    /// Stores a record, replacing one with the same id.
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

    /// Returns a record of this agent.
    pub fn read(&self, agent: &AgentId, id: &MemoryId) -> Option<&MemoryRecord> {
        self.list(agent).iter().find(|record| record.id == *id)
    }

    /// Returns all records of this agent, oldest first.
    pub fn list(&self, agent: &AgentId) -> &[MemoryRecord] {
        self.records.get(agent).map_or(&[], Vec::as_slice)
    }

    /// Deletes a record of this agent. Returns true if it existed.
    pub fn delete(&mut self, agent: &AgentId, id: &MemoryId) -> bool {
        let Some(records) = self.records.get_mut(agent) else { return false };
        let before = records.len();
        records.retain(|record| record.id != *id);
        records.len() < before
    }

    /// Returns the records of this agent that share words with the query, best first.
    pub fn search(&self, agent: &AgentId, query: &str, limit: usize) -> Vec<MemoryRecord> {
        let mut found = self.list(agent).to_vec();
        rank(&mut found, query);
        found.truncate(limit);
        found
    }
}

/// Removes records that share no word with the query and sorts the rest, best first. High significance may
/// outweigh a slightly better match.
pub(crate) fn rank(records: &mut Vec<MemoryRecord>, query: &str) {
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

/// Returns the words of a text in lower case.
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
    fn significance_outweighs_a_slightly_better_match() {
        let mut store = MemoryStore::default();
        store.write(record("ann", "1", "Alice likes green tea", 0.0));
        store.write(record("ann", "2", "tea makes Alice ill", 1.0));
        store.write(record("ann", "3", "Bob likes coffee", 1.0));
        let found = store.search(&"ann".into(), "Alice green tea", 10);
        assert_eq!(found.iter().map(|found| found.id.as_str()).collect::<Vec<_>>(), ["2", "1"]);
        assert!(store.search(&"bob".into(), "tea", 10).is_empty());
    }

    #[test]
    fn stores_long_records_and_deletes_records() {
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
    fn writing_the_same_id_replaces_the_record() {
        let mut store = MemoryStore::default();
        store.write(record("ann", "1", "tea", 0.5));
        store.write(record("ann", "1", "tea", 0.5));
        assert_eq!(store.list(&"ann".into()).len(), 1);
    }
}
