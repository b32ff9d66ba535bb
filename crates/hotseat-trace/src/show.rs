//! A trace, or the part of it around a fault, for a person to read.

use std::fmt::Write as _;

use crate::{Record, Trace, TurnStatus, View};

/// How many records are shown before and after the one in question.
const NEAR: usize = 4;
/// How many characters of the members are shown.
const LONGEST: usize = 110;

/// The records around one sequence number, the one in question marked.
pub fn around(trace: &Trace, sequence: u64) -> String {
    let place = trace.all().partition_point(|record| record.sequence < sequence);
    let from = place.saturating_sub(NEAR);
    let to = (place + NEAR + 1).min(trace.all().len());
    let mut text = String::new();
    for record in &trace.all()[from..to] {
        let mark = if record.sequence == sequence { '>' } else { ' ' };
        let _ = writeln!(text, "{mark} {}", line(record));
    }
    text
}

/// What a conversation came to, turn by turn.
pub(crate) fn summary(view: &View<'_>) -> String {
    let mut text = String::new();
    for start in view.turns().starts() {
        let id = &*start.turn_id;
        let statuses: Vec<_> =
            view.turns().status_transitions(id).into_iter().map(TurnStatus::name).collect();
        let _ = writeln!(text, "turn {id}: {}", statuses.join(" → "));
        for said in view.messages().in_turn(id) {
            let who = said.record().payload.type_name().trim_start_matches("message.");
            let _ = writeln!(text, "  {who}: {}", short(said.content()));
        }
        for call in view.tools().for_turn(id) {
            let outcome = match view.tools().call(&call.tool_call_id) {
                Some(run) if run.output().is_some() => "completed".to_string(),
                Some(run) => {
                    run.error().map_or("no result".to_string(), |error| format!("failed: {}", error.message))
                }
                None => "no result".to_string(),
            };
            let kind = if call.r#async { "async call" } else { "call" };
            let _ =
                writeln!(text, "  {kind} {} ({}): {}", call.tool_name, call.tool_call_id, short(&outcome));
        }
        for entry in view.moves().for_turn(id) {
            let what = entry.tool_call.as_ref().map_or("text", |call| &call.tool_id);
            let _ = writeln!(text, "  move {}: {what}", entry.payload.sequence);
        }
    }
    for record in view.errors().all() {
        let _ = writeln!(text, "error {}", line(record));
    }
    text
}

/// One record in one line.
fn line(record: &Record) -> String {
    let execution = record.execution.as_ref().map_or("", |execution| &execution.id);
    let members =
        record.payload.to_json().map_or_else(|error| error.to_string(), |members| members.to_string());
    format!(
        "{:>4}  {}  {execution:<12}  {:<26}  {}",
        record.sequence,
        record.offset,
        record.payload.type_name(),
        short(&members)
    )
}

fn short(text: &str) -> String {
    let text = text.replace('\n', "⏎");
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
