//! Invariants of every conversation of the runtime.

mod calls;
mod calls_agree;
mod conversation_frame;
mod ids_known;
mod order;
mod replies_agree;
mod sequences;
mod turns;
mod violation;
mod work_runs;

pub use order::{EventSelector, OrderConstraint, OrderRule, order_violations};
pub use violation::{InvariantOptions, InvariantViolation};

use violation::ViolationCollector;

use crate::excerpt::excerpt_around;
use crate::{ConversationView, Trace};

type TraceInvariant = fn(&Trace, &mut ViolationCollector);
type ConversationInvariant = fn(&ConversationView<'_>, &mut ViolationCollector);

const TRACE_INVARIANTS: &[(&str, TraceInvariant)] = &[
    ("not_empty", sequences::not_empty),
    ("sequences_positive", sequences::sequences_positive),
    ("sequences_contiguous", sequences::sequences_contiguous),
];

const CONVERSATION_INVARIANTS: &[(&str, ConversationInvariant)] = &[
    ("turns_end", turns::turns_end),
    ("sync_calls_answered", calls::sync_calls_answered),
    ("async_calls_completed", calls::async_calls_completed),
    ("context_assembled", turns::context_assembled),
    ("memory_extracted", turns::memory_extracted),
    ("no_errors", turns::no_errors),
    ("no_tool_failures", turns::no_tool_failures),
    ("llm_calls_paired", calls::llm_calls_paired),
    ("hooks_paired", calls::hooks_paired),
    ("waits_resumed", calls::waits_resumed),
    ("interrupts_answered", calls::interrupts_answered),
    ("calls_settled", calls::calls_settled),
    ("agent_calls_paired", calls::agent_calls_paired),
    ("messages_belong", turns::messages_belong),
    ("moves_counted", turns::moves_counted),
    ("nothing_after_end", turns::nothing_after_end),
    ("nothing_outstanding", calls::nothing_outstanding),
    ("ordered", order::ordered),
    ("ids_known", ids_known::check),
    ("failed_extract_nothing", turns::failed_extract_nothing),
    ("conversation_frame", conversation_frame::check),
    ("replies_agree", replies_agree::check),
    ("calls_agree", calls_agree::check),
    ("work_runs", work_runs::check),
];

/// Returns all violations in all conversations of a trace.
pub fn check_invariants(trace: &Trace, options: InvariantOptions) -> Vec<InvariantViolation> {
    let mut found = ViolationCollector { options, ..ViolationCollector::default() };
    for (name, check) in TRACE_INVARIANTS {
        found.invariant = name;
        check(trace, &mut found);
    }
    for view in trace.all_conversations() {
        for (name, check) in CONVERSATION_INVARIANTS {
            found.invariant = name;
            check(&view, &mut found);
        }
    }
    found.violations
}

/// Panics with the violations and trace excerpts if an invariant is violated.
///
/// # Panics
/// If [`check_invariants`] finds a violation.
pub fn assert_conversation_invariants(trace: &Trace, options: InvariantOptions) {
    let violations = check_invariants(trace, options);
    if violations.is_empty() {
        return;
    }
    let mut text = format!("{} invariants of the conversation are violated\n", violations.len());
    for violation in &violations {
        text.push_str(&format!("\n{violation}\n"));
        if let Some(sequence) = violation.sequences.last() {
            text.push_str(&excerpt_around(trace, *sequence));
        }
    }
    panic!("{text}");
}
