//! Cases whose typed and simulated inputs are saved as written turns, for automatic repetition.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use serde_json::{Map, Value, json};

use super::{CommandGuard, Reporter, RunEvent};
use hotseat_engine::run::Attempt;

/// Reporter that writes one case per line: the original case with one turn for each executed turn. Only
/// conversations with typed or simulated inputs are saved.
pub struct SavedCasesReporter {
    out: BufWriter<CommandGuard<File>>,
}

impl SavedCasesReporter {
    /// Creates a reporter that writes to an empty file.
    pub fn new(file: File) -> Self {
        SavedCasesReporter { out: BufWriter::new(CommandGuard::json(file)) }
    }
}

/// Converts an attempt with typed or simulated inputs to a case. Returns `None` if all inputs were written.
fn saved_case(attempt: &Attempt) -> Option<Value> {
    let case = &attempt.case_ref.case;
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

impl Reporter for SavedCasesReporter {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        if let RunEvent::CaseEnded(outcome) = event
            && let Some(case) = saved_case(outcome.representative())
        {
            writeln!(self.out, "{case}")?;
            self.out.flush()?;
        }
        Ok(())
    }
}
