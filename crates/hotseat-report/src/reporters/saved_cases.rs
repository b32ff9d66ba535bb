//! Cases whose typed and simulated inputs are saved as written turns, for automatic repetition.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use serde_json::{Value, json};

use super::{CommandGuard, Reporter};
use hotseat_engine::cases::{Suite, escape_variables};
use hotseat_engine::run::{Attempt, CaseOutcome};

/// Reporter that writes one case per line: the original case with one turn for each executed turn. Only
/// conversations with typed or simulated inputs are saved.
pub struct SavedCasesReporter {
    out: BufWriter<CommandGuard<File>>,
    /// The head of the file, once it has a case.
    head: Option<Option<Value>>,
}

impl SavedCasesReporter {
    /// Creates a reporter that writes to an empty file.
    pub fn new(file: File) -> Self {
        SavedCasesReporter { out: BufWriter::new(CommandGuard::json(file)), head: None }
    }

    /// Writes the head of a suite before its first case. Fails if the file has another one.
    fn write_head(&mut self, suite: &Suite) -> io::Result<()> {
        let head = suite.written_head();
        match &self.head {
            Some(before) if *before == head => Ok(()),
            Some(_) => Err(io::Error::other(
                "cases of suites with different shared settings (`suite`) cannot be in one file",
            )),
            None => {
                if let Some(head) = &head {
                    writeln!(self.out, "{head}")?;
                }
                self.head = Some(head);
                Ok(())
            }
        }
    }
}

/// Converts an attempt with typed or simulated inputs to a case. Returns `None` if all inputs were written.
fn saved_case(attempt: &Attempt) -> Option<Value> {
    let case = &attempt.case_ref.case;
    let held = &attempt.conversation.turns;
    if held.len() <= case.turns {
        return None;
    }
    let Value::Object(mut written) = case.to_single_json() else { return None };
    let mut turns = match written.get("turns") {
        Some(Value::Array(turns)) => turns.clone(),
        _ => case.input.iter().map(|input| json!({"input": input})).collect(),
    };
    // Variables in a text that somebody said are text.
    let said = held.iter().skip(turns.len()).map(|turn| escape_variables(json!({"input": turn.user})));
    turns.extend(said);
    let simulation = ["simulate", "simulator"].map(|key| written.remove(key));
    for key in ["input", "interactive", "max_turns"] {
        written.remove(key);
    }
    written.insert("turns".to_string(), Value::Array(turns));
    if simulation.iter().any(Option::is_some) {
        let own = simulation.iter().flatten();
        let mut goals = own.flat_map(|one| [&one["goal"], &one["options"]["metadata"]["goal"]]);
        if let Some(goal) = goals.find_map(Value::as_str) {
            written.values_mut().for_each(|value| name_goal(value, goal));
        }
        if written.contains_key("topics") || written.contains_key("graph") {
            // Without it, topics of cases without a simulated user decide nothing.
            written.entry("decide_topics").or_insert_with(|| json!("always"));
        }
    }
    Some(Value::Object(written))
}

/// Adds the goal of the simulated user to assertions that refer to it.
fn name_goal(value: &mut Value, goal: &str) {
    match value {
        Value::Object(members)
            if members.get("type").is_some_and(|kind| kind == "goal") && !members.contains_key("value") =>
        {
            members.entry("goal").or_insert_with(|| json!(goal));
        }
        Value::Object(members) => members.values_mut().for_each(|value| name_goal(value, goal)),
        Value::Array(entries) => entries.iter_mut().for_each(|value| name_goal(value, goal)),
        _ => {}
    }
}

impl Reporter for SavedCasesReporter {
    fn report_case(&mut self, outcome: &CaseOutcome) -> io::Result<()> {
        if let Some(case) = saved_case(outcome.representative()) {
            self.write_head(&outcome.case_ref.suite)?;
            writeln!(self.out, "{case}")?;
            self.out.flush()?;
        }
        Ok(())
    }
}
