//! Compares a trace with what was expected of it: nothing is looked at before [`Verifier::run`], and then everything.

mod agent_calls;
mod completed;
mod context;
mod extraction;
mod failed;
mod messages;
mod moves;
mod order;
mod tools;
mod turns;
mod workflow;

use std::fmt;

pub use agent_calls::AgentCall;
pub use failed::FailedSpec;
pub use messages::MessagesSpec;
pub use moves::MovesSpec;
pub use order::Moment;
pub use tools::ToolCallSpec;
pub use turns::TurnsSpec;
pub use workflow::{TokensSpec, WorkflowVerifier, verify_workflow};

use crate::show::{around, summary};
use crate::{Trace, View};

/// One expectation, with the name of the check.
struct Check<'t> {
    name: String,
    #[expect(clippy::type_complexity, reason = "it is a list of faults from a conversation")]
    find: Box<dyn Fn(&View<'t>) -> Vec<Mismatch> + 't>,
}

/// Something that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// What was expected, in words.
    pub expected: String,
    /// What was found, in words.
    pub actual: String,
    /// The event that shows it.
    pub sequence: Option<u64>,
}

/// What is expected of a trace.
pub struct Verifier<'t> {
    view: View<'t>,
    checks: Vec<Check<'t>>,
}

/// What is not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyError {
    /// The name of each check with what it found.
    pub mismatches: Vec<(String, Mismatch)>,
    /// The conversation, and the events around each fault.
    pub report: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.report)
    }
}

impl std::error::Error for VerifyError {}

/// Expectations of the conversation that a trace is of.
pub fn verify(trace: &Trace) -> Verifier<'_> {
    verify_view(trace.root())
}

/// Expectations of one conversation of a trace.
pub fn verify_view(view: View<'_>) -> Verifier<'_> {
    Verifier { view, checks: Vec::new() }
}

impl Mismatch {
    fn new(expected: impl fmt::Display, actual: impl fmt::Display) -> Self {
        Mismatch { expected: expected.to_string(), actual: actual.to_string(), sequence: None }
    }

    fn at(mut self, sequence: u64) -> Self {
        self.sequence = Some(sequence);
        self
    }
}

/// A mismatch where two things differ.
fn differs<T: PartialEq + fmt::Debug>(what: &str, expected: T, actual: T) -> Option<Mismatch> {
    (expected != actual).then(|| Mismatch::new(format!("{what}: {expected:?}"), format!("{actual:?}")))
}

impl<'t> Verifier<'t> {
    fn with(mut self, name: &str, find: impl Fn(&View<'t>) -> Vec<Mismatch> + 't) -> Self {
        self.checks.push(Check { name: name.to_string(), find: Box::new(find) });
        self
    }

    /// The conversation reached its end: every turn of a user completed.
    #[must_use]
    pub fn completed(self) -> Self {
        self.with("completed", completed::find)
    }

    /// At least one turn failed as described.
    #[must_use]
    pub fn failed(self, spec: FailedSpec) -> Self {
        self.with("failed", move |view| failed::find(view, &spec))
    }

    /// The turns are as described.
    #[must_use]
    pub fn with_turns(self, spec: TurnsSpec) -> Self {
        self.with("turns", move |view| turns::find(view, &spec))
    }

    /// The moves are as described.
    #[must_use]
    pub fn with_moves(self, spec: MovesSpec) -> Self {
        self.with("moves", move |view| moves::find(view, &spec))
    }

    /// The tool calls are these, in this order, and no others.
    #[must_use]
    pub fn with_tool_invocations(self, calls: impl IntoIterator<Item = ToolCallSpec>) -> Self {
        let calls: Vec<_> = calls.into_iter().collect();
        self.with("tool invocations", move |view| tools::find(view, &calls))
    }

    /// Context was assembled for every turn; with `per_llm_call` once for each call of a model.
    #[must_use]
    pub fn with_context_assembly(self, per_llm_call: bool) -> Self {
        self.with("context assembly", move |view| context::find(view, per_llm_call))
    }

    /// Memory was extracted from every completed turn, and from no other.
    #[must_use]
    pub fn with_memory_extraction(self) -> Self {
        self.with("memory extraction", extraction::find)
    }

    /// So much was said, and this was the last answer.
    #[must_use]
    pub fn with_messages(self, spec: MessagesSpec) -> Self {
        self.with("messages", move |view| messages::find(view, &spec))
    }

    /// The calls of agents are these, in this order, and no others.
    #[must_use]
    pub fn with_agent_calls(self, calls: impl IntoIterator<Item = AgentCall>) -> Self {
        let calls: Vec<_> = calls.into_iter().collect();
        self.with("agent calls", move |view| agent_calls::find(view, &calls))
    }

    /// These moments came one after the other, whatever else came between them.
    #[must_use]
    pub fn with_order(self, moments: impl IntoIterator<Item = Moment>) -> Self {
        let moments: Vec<_> = moments.into_iter().collect();
        self.with("order", move |view| order::find(view, &moments))
    }

    /// Whatever a function finds: it returns what is not as expected.
    #[must_use]
    pub fn with_custom(self, name: &str, check: impl Fn(&View<'t>) -> Result<(), String> + 't) -> Self {
        let wanted = name.to_string();
        self.with(name, move |view| {
            check(view).err().map(|found| Mismatch::new(&wanted, found)).into_iter().collect()
        })
    }

    /// What the conversation came to, turn by turn; it can be read without expecting anything.
    pub fn diagnostics(&self) -> String {
        summary(&self.view)
    }

    /// Looks at everything.
    ///
    /// # Errors
    /// When anything is not as expected; the error holds all of it.
    pub fn run(&self) -> Result<(), VerifyError> {
        let found = self.checks.iter().flat_map(|check| {
            (check.find)(&self.view).into_iter().map(|mismatch| (check.name.clone(), mismatch))
        });
        let mut mismatches: Vec<_> = found.collect();
        // Of nothing, nothing holds.
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
                "{name}\n  expected {}\n  found    {}\n",
                mismatch.expected, mismatch.actual
            ));
            if let Some(sequence) = mismatch.sequence {
                report.push_str(&around(self.view.trace(), sequence));
            }
        }
        report.push('\n');
        report.push_str(&self.diagnostics());
        Err(VerifyError { mismatches, report })
    }

    /// Looks at everything.
    ///
    /// # Panics
    /// When anything is not as expected.
    pub fn assert(&self) {
        if let Err(error) = self.run() {
            panic!("the trace is not as expected\n\n{error}");
        }
    }
}
