//! Short labels of cases, verdicts and checks. Failures are described in more detail below the tree.

use hotseat_engine::cases::assertion_label;
use hotseat_engine::session::{CheckResult, CheckpointResult};
use hotseat_trace::{ResultLabel, Verdict};

use super::options::TextStyle;

/// Returns the label of a check: its form in the test file if it has an entry of its own, otherwise what it
/// expects.
pub(super) fn check_label(checked: &CheckResult) -> String {
    let criterion = checked.check.criterion.as_deref().map(|criterion| format!("satisfies {criterion}"));
    let typed = criterion.or_else(|| checked.check.written.as_deref().and_then(assertion_label));
    match typed {
        Some(label) if checked.check.negated => format!("not: {label}"),
        Some(label) => label,
        None => format!("expected {}", checked.verdict.expected),
    }
}

/// Formats a checkpoint with the tool that it expects.
pub(super) fn checkpoint_label(reached: &CheckpointResult) -> String {
    let checkpoint = &reached.checkpoint;
    match &checkpoint.tool {
        Some(tool) => format!("checkpoint: {} (tool: {tool})", checkpoint.id),
        None => format!("checkpoint: {}", checkpoint.id),
    }
}

/// Formats the label of a case, `[id] name`, from the parts that the test file sets.
pub(super) fn case_label(id: &str, name: &str, named: bool) -> String {
    match named {
        true if id == name => name.to_string(),
        true => format!("[{id}] {name}"),
        false => format!("[{id}]"),
    }
}

pub(super) fn verdict_word(verdict: &Verdict) -> (&'static str, TextStyle) {
    let label = ResultLabel::from_verdict(verdict);
    (label.capitals(), TextStyle::Result(label.color()))
}
