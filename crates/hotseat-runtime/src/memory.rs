//! What agents remember, and how it is found again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, MemoryId};

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

/// The memories of all agents. Each agent sees its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryStore {
    records: BTreeMap<AgentId, Vec<MemoryRecord>>,
    written: u64,
}

impl MemoryStore {
    /// Adds a record and says which it is.
    pub fn write(
        &mut self,
        agent: &AgentId,
        kind: &str,
        content: &str,
        significance: f64,
        now: u64,
    ) -> MemoryId {
        self.written += 1;
        let id = MemoryId(format!("memory-{}", self.written).into());
        let record = MemoryRecord {
            id: id.clone(),
            agent: agent.clone(),
            kind: kind.to_string(),
            content: content.to_string(),
            significance: significance.clamp(0.0, 1.0),
            created_at: now,
        };
        self.records.entry(agent.clone()).or_default().push(record);
        id
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

    /// The records of this agent that share words with the query, best first. What matters much stands before what
    /// fits slightly better.
    pub fn search(&self, agent: &AgentId, query: &str, limit: usize) -> Vec<&MemoryRecord> {
        let wanted = words(query);
        let mut found: Vec<(f64, &MemoryRecord)> = self
            .list(agent)
            .iter()
            .filter_map(|record| {
                let shared = wanted.intersection(&words(&record.content)).count();
                let fit = shared as f64 / wanted.len().max(1) as f64;
                (shared > 0).then_some((fit + record.significance / 2.0, record))
            })
            .collect();
        found.sort_by(|(a, first), (b, second)| {
            b.total_cmp(a).then_with(|| first.created_at.cmp(&second.created_at))
        });
        found.into_iter().take(limit).map(|(_, record)| record).collect()
    }
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_stands_before_what_fits_slightly_better() {
        let mut store = MemoryStore::default();
        let ann: AgentId = "ann".into();
        store.write(&ann, "fact", "Alice likes green tea", 0.0, 1);
        let tea = store.write(&ann, "fact", "tea makes Alice ill", 1.0, 2);
        store.write(&ann, "fact", "Bob likes coffee", 1.0, 3);
        let found = store.search(&ann, "Alice green tea", 10);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].id, tea);
        assert!(store.search(&"bob".into(), "tea", 10).is_empty());
    }

    #[test]
    fn a_long_record_comes_back_whole_and_a_deleted_one_does_not() {
        let mut store = MemoryStore::default();
        let ann: AgentId = "ann".into();
        let long = "x".repeat(10_000);
        let id = store.write(&ann, "note", &long, 0.5, 1);
        assert_eq!(store.read(&ann, &id).map(|record| record.content.len()), Some(10_000));
        assert!(!store.delete(&"bob".into(), &id));
        assert!(store.delete(&ann, &id));
        assert!(store.list(&ann).is_empty());
    }
}
