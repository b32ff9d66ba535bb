//! Text rendering of a trace, or of an excerpt around one event.

use std::fmt::Write as _;

use crate::{ConversationView, EventRecord, Trace, TurnStatus};

/// Number of records shown before and after the selected record.
const CONTEXT_RECORDS: usize = 4;
/// Maximum number of characters shown of a payload.
const MAX_PAYLOAD_CHARS: usize = 110;

/// Renders the records around a sequence number and marks the selected one.
pub fn excerpt_around(trace: &Trace, sequence: u64) -> String {
    let place = trace.all().partition_point(|record| record.sequence < sequence);
    let from = place.saturating_sub(CONTEXT_RECORDS);
    let to = (place + CONTEXT_RECORDS + 1).min(trace.all().len());
    let mut text = String::new();
    for record in &trace.all()[from..to] {
        let mark = if record.sequence == sequence { '>' } else { ' ' };
        let _ = writeln!(text, "{mark} {}", record_line(record));
    }
    text
}

/// Renders a summary of a conversation, turn by turn.
pub(crate) fn summary(view: &ConversationView<'_>) -> String {
    let mut text = String::new();
    for start in view.turns().starts() {
        let id = &*start.turn_id;
        let statuses: Vec<_> =
            view.turns().status_transitions(id).into_iter().map(TurnStatus::name).collect();
        let _ = writeln!(text, "turn {id}: {}", statuses.join(" → "));
        for said in view.messages().for_turn(id) {
            let who = said.record().payload.type_name().trim_start_matches("message.");
            let _ = writeln!(text, "  {who}: {}", truncate_line(said.content()));
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
            let _ = writeln!(
                text,
                "  {kind} {} ({}): {}",
                call.tool_name,
                call.tool_call_id,
                truncate_line(&outcome)
            );
        }
        for entry in view.moves().for_turn(id) {
            let what = entry.tool_call.as_ref().map_or("text", |call| &call.tool_id);
            let _ = writeln!(text, "  move {}: {what}", entry.payload.sequence);
        }
    }
    for record in view.errors().all() {
        let _ = writeln!(text, "error {}", record_line(record));
    }
    text
}

/// Renders one record as one line.
fn record_line(record: &EventRecord) -> String {
    let execution = record.execution.as_ref().map_or("", |execution| &execution.id);
    let members =
        record.payload.to_json().map_or_else(|error| error.to_string(), |members| members.to_string());
    format!(
        "{:>4}  {}  {execution:<12}  {:<26}  {}",
        record.sequence,
        record.offset,
        record.payload.type_name(),
        truncate_line(&members)
    )
}

fn truncate_line(text: &str) -> String {
    truncate(&text.replace('\n', "⏎"), MAX_PAYLOAD_CHARS)
}

/// Returns the first characters of a text, with an ellipsis if it is longer.
pub(crate) fn truncate(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
