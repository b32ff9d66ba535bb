//! Output of the conversation of an attempt, with its result and warnings.

use std::fmt::Write as _;

use hotseat_trace::{TurnOutcome, Verdict, VerdictStatus};

use super::failure;
use super::label::verdict_word;
use super::options::{ConsoleOptions, TextStyle};
use super::tree::ConversationTree;
use super::turn::DetailLevel;
use crate::reporters::text::{columns, format_count, format_duration, one_line, wrap};
use hotseat_engine::run::{Attempt, CaseOutcome, ConversationMode};

pub(super) struct RenderedCase {
    pub text: String,
    /// True if it has several lines and needs empty lines around it.
    pub is_tree: bool,
}

/// Writes each distinct warning once. Returns true if there was any.
pub(super) fn write_warnings(look: &ConsoleOptions, outcome: &CaseOutcome, text: &mut String) -> bool {
    let mut said: Vec<String> = Vec::new();
    let warnings = outcome.attempts.iter().flat_map(|attempt| {
        let ended = attempt.conversation.turns.iter().filter_map(|turn| {
            let outcome = turn.run_outcome.as_ref()?;
            Some(format!("turn {}: the agent reported that its run ended as `{outcome}`", turn.number))
        });
        attempt.warnings.iter().cloned().chain(ended)
    });
    for warning in warnings {
        if !said.contains(&warning) {
            let words = one_line(&format!("warning: {warning}"), look.columns_left(2));
            let _ = writeln!(text, "  {}", look.paint(TextStyle::Skipped, &words));
            said.push(warning);
        }
    }
    !said.is_empty()
}

/// Writes a conversation as a tree with the result below: that of the attempt, or of its case.
pub(super) fn write_conversation(
    look: &ConsoleOptions,
    attempt: &Attempt,
    result: &Verdict,
    detail: DetailLevel,
    text: &mut String,
) {
    let (mode, verdict) = (attempt.mode(), &attempt.verdict);
    let skipped = verdict.status == VerdictStatus::Skipped;
    if !attempt.conversation.turns.is_empty() {
        match mode {
            ConversationMode::Standard => {
                ConversationTree::new(look, attempt, detail, true).single_turn(text);
                if verdict.failure.is_none() && !skipped {
                    let _ = writeln!(
                        text,
                        "{}",
                        look.paint(TextStyle::Quiet, &format!("  └─ {}", checks_passed_note(attempt)))
                    );
                }
            }
            ConversationMode::MultiTurn | ConversationMode::Dynamic => {
                let tree = ConversationTree::new(look, attempt, detail, skipped);
                match mode {
                    ConversationMode::Dynamic => tree.dynamic(text),
                    ConversationMode::Standard | ConversationMode::MultiTurn => tree.multi_turn(text),
                }
                if !skipped {
                    let (word, tone) = verdict_word(result);
                    let head = 2 + columns(word) + 1;
                    let lines =
                        wrap(&tree_footer(attempt, mode), look.columns_left(head), look.columns_left(4));
                    let lines: Vec<String> =
                        lines.iter().map(|line| look.paint(TextStyle::Quiet, line)).collect();
                    let _ = writeln!(text, "  {} {}", look.paint(tone, word), lines.join("\n    "));
                }
            }
        }
        if skipped {
            ConversationTree::new(look, attempt, DetailLevel::Brief, false).missing_input(text);
        }
    }
    if let Some(failure) = &verdict.failure {
        failure::write_failure(look, failure, attempt, text);
    }
}

/// Note for a passed case without hard checks, checkpoints and expected errors.
pub(super) const NOTHING_ASSERTED: &str = "nothing was asserted";

/// Returns true if an attempt passed without a hard check, a checkpoint or an expected error.
pub(super) fn asserts_nothing(attempt: &Attempt) -> bool {
    attempt.verdict.status == VerdictStatus::Passed
        && attempt.checkpoints.is_empty()
        && !attempt.checks.iter().any(|checked| checked.check.is_hard())
        && !failed_as_expected(attempt)
}

/// Returns true if an attempt passed although a turn failed: only an expected error does that.
fn failed_as_expected(attempt: &Attempt) -> bool {
    attempt.verdict.status == VerdictStatus::Passed
        && attempt.conversation.turns.iter().any(|turn| matches!(turn.outcome, TurnOutcome::Failed(_)))
}

/// Formats the text after the result below a tree.
fn tree_footer(attempt: &Attempt, mode: ConversationMode) -> String {
    let turns = format_count(attempt.conversation.turns.len(), "turn");
    let hard = attempt.checks.iter().filter(|checked| checked.check.is_hard()).count();
    let mut parts = vec![turns];
    parts.extend(checkpoint_count(attempt));
    if mode == ConversationMode::MultiTurn {
        parts.extend((hard > 0).then(|| format_count(hard, "check")));
    }
    parts.extend(asserts_nothing(attempt).then(|| NOTHING_ASSERTED.to_string()));
    format!("({}) - {}", format_duration(attempt.duration), parts.join(", "))
}

/// Formats `2/3 checkpoints`: reached and total.
pub(super) fn checkpoint_count(attempt: &Attempt) -> Option<String> {
    let reached = attempt.checkpoints.iter().filter(|reached| reached.at.is_some()).count();
    let all = attempt.checkpoints.len();
    (all > 0).then(|| format!("{reached}/{all} checkpoints"))
}

fn checks_passed_note(attempt: &Attempt) -> String {
    match attempt.checks.iter().filter(|checked| checked.check.is_hard()).count() {
        0 if failed_as_expected(attempt) => "failed as expected".to_string(),
        0 if attempt.checkpoints.is_empty() => NOTHING_ASSERTED.to_string(),
        0 => "all checkpoints reached".to_string(),
        1 => "1 check passed".to_string(),
        n => format!("{n} checks passed"),
    }
}
