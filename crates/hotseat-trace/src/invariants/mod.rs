//! What holds in every conversation of the runtime, whatever was said in it.

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

use crate::show::around;
use crate::{Trace, View};

/// What may be different in a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InvariantOptions {
    /// Turns may fail.
    pub allow_failed_turns: bool,
    /// No tool may fail. Usually one may, for the agent is told and can go on.
    pub deny_tool_failures: bool,
}

/// Something that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The name of the invariant.
    pub invariant: &'static str,
    /// What is wrong.
    pub message: String,
    /// The events that show it.
    pub sequences: Vec<u64>,
}

impl fmt::Display for Violation {
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

/// The violations of the invariant that is looked at, and what several of them ask.
struct Found {
    name: &'static str,
    all: Vec<Violation>,
}

impl Found {
    fn add<const N: usize>(&mut self, message: String, sequences: [u64; N]) {
        self.all.push(Violation { invariant: self.name, message, sequences: sequences.to_vec() });
    }

    fn answered(&self, view: &View<'_>, call: &str) -> bool {
        view.tools().call(call).is_some_and(|run| run.outcome.is_some())
    }

    fn cancelled(&self, view: &View<'_>, call: &str) -> bool {
        view.turns().cancellations().iter().any(|end| &*end.operation_id == call)
    }
}

type OfTrace = fn(&Trace, &mut Found);
type OfView = fn(&View<'_>, &InvariantOptions, &mut Found);

const OF_TRACE: &[(&str, OfTrace)] = &[
    ("not_empty", not_empty::check),
    ("sequences_positive", sequences_positive::check),
    ("sequences_contiguous", sequences_contiguous::check),
];

const OF_VIEW: &[(&str, OfView)] = &[
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

/// Everything in a trace that cannot be, in all of its conversations.
pub fn check_invariants(trace: &Trace, options: InvariantOptions) -> Vec<Violation> {
    let mut found = Found { name: "", all: Vec::new() };
    for (name, check) in OF_TRACE {
        found.name = name;
        check(trace, &mut found);
    }
    for view in trace.conversations_all() {
        for (name, check) in OF_VIEW {
            found.name = name;
            check(&view, &options, &mut found);
        }
    }
    found.all
}

/// Panics when something in the trace cannot be, with the trace around each fault.
///
/// # Panics
/// When [`check_invariants`] finds anything.
pub fn assert_conversation_invariants(trace: &Trace, options: InvariantOptions) {
    let violations = check_invariants(trace, options);
    if violations.is_empty() {
        return;
    }
    let mut text = format!("{} invariants of the conversation do not hold\n", violations.len());
    for violation in &violations {
        text.push_str(&format!("\n{violation}\n"));
        if let Some(sequence) = violation.sequences.last() {
            text.push_str(&around(trace, *sequence));
        }
    }
    panic!("{text}");
}
