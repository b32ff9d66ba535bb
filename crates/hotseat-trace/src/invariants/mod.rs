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
mod ordered;
mod replies_agree;
mod sequences_contiguous;
mod sequences_positive;
mod sync_calls_answered;
mod turns_end;
mod waits_resumed;
mod work_runs;

use std::fmt;

use crate::excerpt::excerpt_around;
use crate::{ConversationView, Trace};

/// Options for checking invariants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InvariantOptions {
    /// Turns may fail.
    pub allow_failed_turns: bool,
    /// Tools may not fail. By default they may, because the agent gets the error and continues.
    pub deny_tool_failures: bool,
}

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvariantViolation {
    /// The name of the invariant.
    pub invariant: &'static str,
    /// Description of the violation.
    pub message: String,
    /// Sequence numbers of the events involved.
    pub sequences: Vec<u64>,
}

impl fmt::Display for InvariantViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.message)?;
        match &self.sequences[..] {
            [] => Ok(()),
            [one] => write!(f, " [event {one}]"),
            several => {
                write!(f, " [events {}]", several.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Collects the violations of the invariant being checked, with helpers shared by several invariants.
struct ViolationCollector {
    invariant: &'static str,
    violations: Vec<InvariantViolation>,
}

impl ViolationCollector {
    fn add<const N: usize>(&mut self, message: String, sequences: [u64; N]) {
        self.violations.push(InvariantViolation {
            invariant: self.invariant,
            message,
            sequences: sequences.to_vec(),
        });
    }

    fn has_outcome(&self, view: &ConversationView<'_>, call: &str) -> bool {
        view.tools().call(call).is_some_and(|run| run.outcome.is_some())
    }

    fn is_cancelled(&self, view: &ConversationView<'_>, call: &str) -> bool {
        view.turns().cancellations().iter().any(|end| &*end.operation_id == call)
    }
}

type TraceInvariant = fn(&Trace, &mut ViolationCollector);
type ConversationInvariant = fn(&ConversationView<'_>, &InvariantOptions, &mut ViolationCollector);

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
    let mut found = ViolationCollector { invariant: "", violations: Vec::new() };
    for (name, check) in TRACE_INVARIANTS {
        found.invariant = name;
        check(trace, &mut found);
    }
    for view in trace.all_conversations() {
        for (name, check) in CONVERSATION_INVARIANTS {
            found.invariant = name;
            check(&view, &options, &mut found);
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
