//! Cases with what was typed and simulated as written turns, to be run again without anybody.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use serde_json::{Map, Value, json};

use super::{Reporter, RunEvent};
use crate::run::Attempt;

/// Writes a case a line: as it is written, with one turn for each that was held. Only conversations that somebody went
/// on with are saved.
pub struct SavedCases {
    out: BufWriter<File>,
}

impl SavedCases {
    /// To a file that is still empty.
    pub fn new(file: File) -> Self {
        SavedCases { out: BufWriter::new(file) }
    }
}

/// The case of an attempt in which somebody typed or was simulated; none where all was written.
fn saved(attempt: &Attempt) -> Option<Value> {
    let case = &attempt.selected.case;
    let held = &attempt.conversation.turns;
    if held.len() <= case.turns {
        return None;
    }
    let Value::Object(written) = case.to_json() else { return None };
    let mut turns = match written.get("turns") {
        Some(Value::Array(turns)) => turns.clone(),
        _ => case.input.iter().map(|input| json!({"input": input})).collect(),
    };
    let said = held.iter().skip(turns.len()).map(|turn| json!({"input": turn.user}));
    turns.extend(said);
    let mut members: Map<String, Value> = written
        .into_iter()
        .filter(|(key, _)| {
            !matches!(key.as_str(), "input" | "turns" | "interactive" | "simulator" | "max_turns")
        })
        .collect();
    members.insert("turns".to_string(), Value::Array(turns));
    Some(Value::Object(members))
}

impl Reporter for SavedCases {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        if let RunEvent::CaseEnded(outcome) = event
            && let Some(case) = saved(outcome.telling())
        {
            writeln!(self.out, "{case}")?;
            self.out.flush()?;
        }
        Ok(())
    }
}
