//! Invariants of every conversation of the runtime.

mod agent_calls_paired;
mod async_calls_completed;
mod calls_agree;
mod calls_settled;
mod context_assembled;
mod conversation_frame;
mod failed_extract_nothing;
mod hooks_paired;
mod ids_known;
mod interrupts_answered;
mod llm_calls_paired;
mod memory_extracted;
mod messages_belong;
mod moves_counted;
mod no_errors;
mod no_tool_failures;
mod not_empty;
mod nothing_after_end;
mod nothing_outstanding;
mod order;
mod ordered;
mod replies_agree;
mod sequences_contiguous;
mod sequences_positive;
mod sync_calls_answered;
mod turns_end;
mod violation;
mod waits_resumed;
mod work_runs;

pub use order::{EventSelector, OrderConstraint, OrderRule, order_violations};
pub use violation::{InvariantOptions, InvariantViolation};

use violation::ViolationCollector;

use crate::excerpt::excerpt_around;
use crate::{ConversationView, Trace};

type TraceInvariant = fn(&Trace, &mut ViolationCollector);
type ConversationInvariant = fn(&ConversationView<'_>, &mut ViolationCollector);

const TRACE_INVARIANTS: &[(&str, TraceInvariant)] = &[
    ("not_empty", not_empty::check),
    ("sequences_positive", sequences_positive::check),
    ("sequences_contiguous", sequences_contiguous::check),
];

const CONVERSATION_INVARIANTS: &[(&str, ConversationInvariant)] = &[
    ("turns_end", turns_end::check),
    ("sync_calls_answered", sync_calls_answered::check),
    ("async_calls_completed", async_calls_completed::check),
    ("context_assembled", context_assembled::check),
    ("memory_extracted", memory_extracted::check),
    ("no_errors", no_errors::check),
    ("no_tool_failures", no_tool_failures::check),
    ("llm_calls_paired", llm_calls_paired::check),
    ("hooks_paired", hooks_paired::check),
    ("waits_resumed", waits_resumed::check),
    ("interrupts_answered", interrupts_answered::check),
    ("calls_settled", calls_settled::check),
    ("agent_calls_paired", agent_calls_paired::check),
    ("messages_belong", messages_belong::check),
    ("moves_counted", moves_counted::check),
    ("nothing_after_end", nothing_after_end::check),
    ("nothing_outstanding", nothing_outstanding::check),
    ("ordered", ordered::check),
    ("ids_known", ids_known::check),
    ("failed_extract_nothing", failed_extract_nothing::check),
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
