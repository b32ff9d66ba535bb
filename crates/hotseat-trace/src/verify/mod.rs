//! Compares a trace with expectations. All checks run together in [`TraceVerifier::run`].

mod agent_calls;
mod completed;
mod context;
mod extraction;
mod failed;
mod messages;
mod mismatch;
mod moves;
mod order;
mod tools;
mod turns;
mod workflow;

pub use agent_calls::AgentCallSpec;
pub use failed::FailureSpec;
pub use messages::MessagesSpec;
pub use mismatch::Mismatch;
pub use moves::MovesSpec;
pub use order::TraceMoment;
pub use tools::ToolCallSpec;
pub use turns::TurnsSpec;
pub use workflow::{TokensSpec, WorkflowVerifier, verify_workflow};

use crate::excerpt::{excerpt_around, summary};
use crate::{ConversationView, Trace};

/// An expectation with its name.
struct TraceExpectation<'t> {
    name: String,
    #[expect(clippy::type_complexity, reason = "it is a list of faults from a conversation")]
    evaluate: Box<dyn Fn(&ConversationView<'t>) -> Vec<Mismatch> + 't>,
}

/// Expectations about a trace.
#[must_use]
pub struct TraceVerifier<'t> {
    view: ConversationView<'t>,
    checks: Vec<TraceExpectation<'t>>,
}

/// Failed expectations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{report}")]
pub struct VerifyError {
    /// Name of each failed check with its mismatch.
    pub mismatches: Vec<(String, Mismatch)>,
    /// Report with the conversation and an excerpt of the trace around each mismatch.
    pub report: String,
}

/// Starts expectations about the root conversation of a trace.
pub fn verify(trace: &Trace) -> TraceVerifier<'_> {
    verify_view(trace.root())
}

/// Starts expectations about one conversation of a trace.
pub fn verify_view(view: ConversationView<'_>) -> TraceVerifier<'_> {
    TraceVerifier { view, checks: Vec::new() }
}

impl<'t> TraceVerifier<'t> {
    fn add_check(mut self, name: &str, find: impl Fn(&ConversationView<'t>) -> Vec<Mismatch> + 't) -> Self {
        self.checks.push(TraceExpectation { name: name.to_string(), evaluate: Box::new(find) });
        self
    }

    /// Expects that every user turn completed.
    pub fn completed(self) -> Self {
        self.add_check("completed", completed::find)
    }

    /// Expects that at least one turn failed as described.
    pub fn failed(self, spec: FailureSpec) -> Self {
        self.add_check("failed", move |view| failed::find(view, &spec))
    }

    /// Expects turns as described.
    pub fn with_turns(self, spec: TurnsSpec) -> Self {
        self.add_check("turns", move |view| turns::find(view, &spec))
    }

    /// Expects moves as described.
    pub fn with_moves(self, spec: MovesSpec) -> Self {
        self.add_check("moves", move |view| moves::find(view, &spec))
    }

    /// Expects exactly these tool calls, in this order.
    pub fn with_tool_invocations(self, calls: impl IntoIterator<Item = ToolCallSpec>) -> Self {
        let calls: Vec<_> = calls.into_iter().collect();
        self.add_check("tool invocations", move |view| tools::find(view, &calls))
    }

    /// Expects context assembly for every turn; with `per_llm_call`, once per model call.
    pub fn with_context_assembly(self, per_llm_call: bool) -> Self {
        self.add_check("context assembly", move |view| context::find(view, per_llm_call))
    }

    /// Expects memory extraction for every completed turn, and for no other.
    pub fn with_memory_extraction(self) -> Self {
        self.add_check("memory extraction", extraction::find)
    }

    /// Expects message counts and a last answer as described.
    pub fn with_messages(self, spec: MessagesSpec) -> Self {
        self.add_check("messages", move |view| messages::find(view, &spec))
    }

    /// Expects exactly these agent calls, in this order.
    pub fn with_agent_calls(self, calls: impl IntoIterator<Item = AgentCallSpec>) -> Self {
        let calls: Vec<_> = calls.into_iter().collect();
        self.add_check("agent calls", move |view| agent_calls::find(view, &calls))
    }

    /// Expects these moments in this order; other events may occur between them.
    pub fn with_order(self, moments: impl IntoIterator<Item = TraceMoment>) -> Self {
        let moments: Vec<_> = moments.into_iter().collect();
        self.add_check("order", move |view| order::find(view, &moments))
    }

    /// Adds a custom check, which returns a description of the actual value on failure.
    pub fn with_custom(
        self,
        name: &str,
        check: impl Fn(&ConversationView<'t>) -> Result<(), String> + 't,
    ) -> Self {
        let wanted = name.to_string();
        self.add_check(name, move |view| {
            check(view).err().map(|found| Mismatch::new(&wanted, found)).into_iter().collect()
        })
    }

    /// Returns a summary of the conversation, turn by turn, without checking anything.
    pub fn diagnostics(&self) -> String {
        summary(&self.view)
    }

    /// Runs all checks.
    ///
    /// # Errors
    /// If any check fails; the error lists all mismatches.
    pub fn run(&self) -> Result<(), VerifyError> {
        let found = self.checks.iter().flat_map(|check| {
            (check.evaluate)(&self.view).into_iter().map(|mismatch| (check.name.clone(), mismatch))
        });
        let mut mismatches: Vec<_> = found.collect();
        // Without a turn, most checks would pass trivially.
        if !self.view.has("turn.started") {
            let none = Mismatch::new("a conversation with a turn", "none");
            mismatches.push(("not empty".to_string(), none));
        }
        if mismatches.is_empty() {
            return Ok(());
        }
        let mut report = String::new();
        for (name, mismatch) in &mismatches {
            report.push_str(&format!(
                "{name}\n  expected {}\n  got      {}\n",
                mismatch.expected, mismatch.actual
            ));
            if let Some(sequence) = mismatch.sequence {
                report.push_str(&excerpt_around(self.view.trace(), sequence));
            }
        }
        report.push('\n');
        report.push_str(&self.diagnostics());
        Err(VerifyError { mismatches, report })
    }

    /// Runs all checks.
    ///
    /// # Panics
    /// If any check fails.
    pub fn assert(&self) {
        if let Err(error) = self.run() {
            panic!("the trace does not meet the expectations\n\n{error}");
        }
    }
}
