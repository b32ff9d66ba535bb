//! One result as a page in Markdown.

use std::fmt::Write as _;
use std::time::Duration;

use hotseat_trace::plain_text;
use serde::Deserialize;
use serde_json::Value;

use crate::reporters::format_duration;
use crate::reporters::markdown::{escape_inline, fence, format_code};

/// The shown members of a result. Other versions of the format may lack some.
#[derive(Default, Deserialize)]
#[serde(default, expecting = "an object")]
pub(super) struct ExtractedResult {
    id: String,
    name: String,
    file: String,
    line: u32,
    agent: Option<String>,
    status: String,
    label: Option<String>,
    error: Option<String>,
    failure: Option<ExtractedFailure>,
    skip_reason: Option<String>,
    duration_ms: f64,
    /// Numbers of runs, if the case was repeated.
    runs: Option<usize>,
    passed: Option<usize>,
    input: Option<Value>,
    output: Option<String>,
    turns: Vec<ExtractedTurn>,
    turns_not_run: Option<ExtractedRange>,
    assertions: Vec<ExtractedCheck>,
    final_assertions: Vec<ExtractedCheck>,
    checkpoints: Vec<ExtractedCheckpoint>,
    warnings: Vec<String>,
    logs: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, expecting = "an object")]
struct ExtractedFailure {
    detail: Option<String>,
    stack_trace: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, expecting = "an object")]
struct ExtractedTurn {
    turn: usize,
    status: String,
    skip_reason: Option<String>,
    input: Option<String>,
    messages: Vec<String>,
    tool_calls: Vec<ExtractedCall>,
    error: Option<String>,
    assertions: Vec<ExtractedCheck>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct ExtractedRange {
    first: usize,
    last: usize,
}

#[derive(Default, Deserialize)]
#[serde(default, expecting = "an object")]
struct ExtractedCall {
    name: String,
    args: Value,
    result: Option<Value>,
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, expecting = "an object")]
struct ExtractedCheck {
    passed: bool,
    soft: bool,
    expected: String,
    actual: String,
    error: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, expecting = "an object")]
struct ExtractedCheckpoint {
    id: String,
    passed: bool,
    reached_at_turn: Option<usize>,
    message: Option<String>,
}

/// Formats a result: its status, duration and error, then input, output, turns and checks. Texts of agents stay text.
pub(super) fn result_page(result: &ExtractedResult) -> String {
    let name = if result.name.is_empty() { &result.id } else { &result.name };
    let status = result.label.as_ref().unwrap_or(&result.status);
    let duration = Duration::from_secs_f64((result.duration_ms / 1000.0).clamp(0.0, 1e9));
    let mut out = format!("# {}\n\n", escape_inline(name));
    let mut row = |key: &str, value: &str| {
        let _ = writeln!(out, "- {key}: {value}");
    };
    row("Status", &format!("**{}**", escape_inline(status)));
    row("Duration", &format_duration(duration));
    if let (Some(runs), Some(passed)) = (result.runs, result.passed) {
        row("Runs", &format!("{passed} of {runs} passed; this is the one that shows the result best"));
    }
    row("Case", &format_code(&result.id));
    row("Defined at", &format_code(&format!("{}:{}", result.file, result.line)));
    if let Some(agent) = &result.agent {
        row("Agent", &escape_inline(agent));
    }
    if let Some(reason) = &result.skip_reason {
        row("Skipped", &escape_inline(reason));
    }
    if let Some(error) = &result.error {
        row("Error", &escape_inline(error));
    }
    let failure = result.failure.iter();
    for detail in failure.clone().filter_map(|failure| failure.detail.as_ref()) {
        block(&mut out, "Details", detail);
    }
    for failure in failure.filter(|failure| !failure.stack_trace.is_empty()) {
        block(&mut out, "Stack trace", &failure.stack_trace.join("\n"));
    }
    if let Some(input) = &result.input {
        block(&mut out, "Input", &plain_text(input));
    }
    if let Some(output) = &result.output {
        block(&mut out, "Output", output);
    }
    result.turns.iter().for_each(|turn| write_turn(&mut out, turn));
    match &result.turns_not_run {
        Some(ExtractedRange { first, last }) if first == last => {
            let _ = write!(out, "\nTurn {last}: not run\n");
        }
        Some(ExtractedRange { first, last }) => {
            let _ = write!(out, "\nTurns {first}-{last}: not run\n");
        }
        None => {}
    }
    let whole: Vec<&ExtractedCheck> = result.assertions.iter().chain(&result.final_assertions).collect();
    if !whole.is_empty() {
        out.push_str("\n## Checks of the whole conversation\n\n");
        whole.into_iter().for_each(|check| write_check(&mut out, check));
    }
    if !result.checkpoints.is_empty() {
        out.push_str("\n## Checkpoints\n\n");
    }
    for checkpoint in &result.checkpoints {
        let id = escape_inline(&checkpoint.id);
        let note = match (checkpoint.reached_at_turn, &checkpoint.message) {
            (Some(turn), _) => format!("reached in turn {turn}"),
            (None, Some(message)) => escape_inline(message),
            (None, None) => "not reached".to_string(),
        };
        let _ = writeln!(out, "- {} {id}: {note}", if checkpoint.passed { "✓" } else { "✗" });
    }
    for (title, lines) in [("Warnings", &result.warnings), ("Console of scripts", &result.logs)] {
        if !lines.is_empty() {
            block(&mut out, title, &lines.join("\n"));
        }
    }
    out
}

fn write_turn(out: &mut String, turn: &ExtractedTurn) {
    let _ = write!(out, "\n## Turn {}: {}\n", turn.turn, escape_inline(&turn.status));
    for reason in turn.skip_reason.iter().chain(&turn.error) {
        let _ = write!(out, "\n{}\n", escape_inline(reason));
    }
    if let Some(input) = &turn.input {
        named_block(out, "User", input);
    }
    for call in &turn.tool_calls {
        let result = match (&call.result, &call.error) {
            (_, Some(error)) => format!("failed: {}", plain_text(error)),
            (Some(result), None) => plain_text(result),
            (None, None) => "no result".to_string(),
        };
        named_block(out, "Tool", &format!("{}({})\n→ {result}", call.name, call.args));
    }
    turn.messages.iter().for_each(|message| named_block(out, "Agent", message));
    if !turn.assertions.is_empty() {
        out.push('\n');
    }
    turn.assertions.iter().for_each(|check| write_check(out, check));
}

fn write_check(out: &mut String, check: &ExtractedCheck) {
    let mark = if check.passed { "✓" } else { "✗" };
    let soft = if check.soft { " (informational)" } else { "" };
    let _ = write!(out, "- {mark} expected {}{soft}", escape_inline(&check.expected));
    if !check.passed {
        let (label, found) = match &check.error {
            Some(error) => ("error:", error),
            None => ("got", &check.actual),
        };
        let _ = write!(out, "<br>{label} {}", escape_inline(found));
    }
    out.push('\n');
}

fn block(out: &mut String, title: &str, text: &str) {
    let _ = write!(out, "\n## {title}\n\n{}", fence(&safe_text(text)));
}

fn named_block(out: &mut String, name: &str, text: &str) {
    let _ = write!(out, "\n{name}:\n\n{}", fence(&safe_text(text)));
}

fn safe_text(text: &str) -> String {
    crate::reporters::safe_lines(text).collect::<Vec<_>>().join("\n")
}
