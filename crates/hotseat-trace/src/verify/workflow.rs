//! Compares one run of a workflow with what was expected of it.

use std::fmt;

use serde_json::Value;

use super::{Mismatch, Verifier, VerifyError, differs, verify_view};
use crate::{TokenCreated, TokenStatus, Trace, Typed, View, WorkflowCompleted, WorkflowFailed};

/// What is expected of a run of a workflow.
pub struct WorkflowVerifier<'t> {
    run: String,
    checks: Verifier<'t>,
}

/// How the tokens of a run are; what is not given is not looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokensSpec {
    /// The node at which it began.
    pub root: Option<String>,
    /// How many tokens there were.
    pub total: Option<usize>,
    /// How many came to these nodes.
    pub at: Vec<(String, usize)>,
    /// Where the run parted into branches, in order: what they are called together and how many they are.
    pub fan_outs: Option<Vec<(String, u32)>>,
    /// How many branches waited for the others.
    pub fan_in_arrivals: Option<usize>,
    /// How often branches came together.
    pub fan_in_continuations: Option<usize>,
    /// How many were given up.
    pub cancelled: Option<usize>,
}

/// Expectations of one run of a workflow, whichever conversation it worked for.
pub fn verify_workflow<'t>(trace: &'t Trace, run_id: &str) -> WorkflowVerifier<'t> {
    let view = trace.execution(run_id).unwrap_or_else(|| trace.root());
    let checks = WorkflowVerifier { run: run_id.to_string(), checks: verify_view(view) };
    checks.with("run", |view, run| match ending(view, run).as_str() {
        nothing @ "there is no such run" => vec![Mismatch::new(format!("run {run}"), nothing)],
        _ => Vec::new(),
    })
}

impl<'t> WorkflowVerifier<'t> {
    fn with(self, name: &str, find: impl Fn(&View<'t>, &str) -> Vec<Mismatch> + 't) -> Self {
        let run = self.run.clone();
        let checks = self.checks.with(name, move |view| find(view, &run));
        WorkflowVerifier { checks, ..self }
    }

    /// It ended in order.
    #[must_use]
    pub fn completed(self) -> Self {
        self.with("completed", |view, run| match (completion(view, run), failure(view, run)) {
            (Some(_), None) => Vec::new(),
            _ => vec![Mismatch::new(format!("run {run} completed"), ending(view, run))],
        })
    }

    /// It failed, with this in its message.
    #[must_use]
    pub fn failed(self, message_contains: &str) -> Self {
        let part = message_contains.to_string();
        self.with("failed", move |view, run| match failure(view, run) {
            Some(end) if end.error.message.contains(&part) && completion(view, run).is_none() => Vec::new(),
            _ => vec![Mismatch::new(format!("run {run} failed with {part:?}"), ending(view, run))],
        })
    }

    /// It returned this.
    #[must_use]
    pub fn with_output(self, output: Value) -> Self {
        self.with("output", move |view, run| match completion(view, run) {
            Some(end) => differs("output", &output, &end.output).into_iter().collect(),
            None => vec![Mismatch::new(format!("run {run} returned {output}"), ending(view, run))],
        })
    }

    /// Its tokens are as described.
    #[must_use]
    pub fn with_tokens(self, spec: TokensSpec) -> Self {
        self.with("tokens", move |view, run| tokens(view, run, &spec))
    }

    /// Whatever a function finds: it returns what is not as expected.
    #[must_use]
    pub fn with_custom(self, name: &str, check: impl Fn(&View<'t>) -> Result<(), String> + 't) -> Self {
        WorkflowVerifier { checks: self.checks.with_custom(name, check), ..self }
    }

    /// Looks at everything.
    ///
    /// # Errors
    /// When anything is not as expected; the error holds all of it.
    pub fn run(&self) -> Result<(), VerifyError> {
        self.checks.run()
    }

    /// Looks at everything.
    ///
    /// # Panics
    /// When anything is not as expected.
    pub fn assert(&self) {
        self.checks.assert();
    }
}

fn completion<'t>(view: &View<'t>, run: &str) -> Option<Typed<'t, WorkflowCompleted>> {
    view.workflows().completions().into_iter().find(|end| &*end.run_id == run)
}

fn failure<'t>(view: &View<'t>, run: &str) -> Option<Typed<'t, WorkflowFailed>> {
    view.workflows().failures().into_iter().find(|end| &*end.run_id == run)
}

/// What became of a run, in words.
fn ending(view: &View<'_>, run: &str) -> String {
    if let (Some(_), failed) = (completion(view, run), failure(view, run)) {
        return if failed.is_some() { "it completed and failed" } else { "it completed" }.to_string();
    }
    if let Some(end) = failure(view, run) {
        return format!("it failed: {}", end.error.message);
    }
    match view.workflows().starts().iter().any(|start| &*start.run_id == run) {
        true => "it has not ended".to_string(),
        false => "there is no such run".to_string(),
    }
}

fn tokens(view: &View<'_>, run: &str, spec: &TokensSpec) -> Vec<Mismatch> {
    let workflows = view.workflows();
    let created = workflows.tokens(run);
    let became = |status: TokenStatus| {
        workflows.token_changes(run).iter().filter(|change| change.to == status).count()
    };
    let mut found = Vec::new();
    let mut compare = |what: &str, expected: Option<usize>, actual: usize| {
        found.extend(expected.and_then(|expected| differs(what, expected, actual)));
    };
    compare("tokens", spec.total, created.len());
    compare("branches that waited", spec.fan_in_arrivals, became(TokenStatus::WaitingForSiblings));
    compare("tokens given up", spec.cancelled, became(TokenStatus::Cancelled));
    // The path of a token that goes on after branches ends with their name and its node.
    let goes_on = |token: &Typed<'_, TokenCreated>| {
        token.path_id.rsplit('.').next().is_some_and(|last| last.ends_with(&format!(":{}", token.node_ref)))
    };
    let continuations = created.iter().filter(|token| goes_on(token)).count();
    compare("times branches came together", spec.fan_in_continuations, continuations);
    for (node, expected) in &spec.at {
        let actual = created.iter().filter(|token| *token.node_ref == **node).count();
        compare(&format!("tokens at {node}"), Some(*expected), actual);
    }
    if let Some(root) = &spec.root {
        let first = created.first().map(|token| token.node_ref.to_string());
        found.extend(differs("the first node", Some(root.clone()), first));
    }
    if let Some(expected) = &spec.fan_outs {
        found.extend(differs("branches", expected.clone(), fan_outs(&created)));
    }
    found
}

/// Where a run parted: the name of the branches and their number, in order.
fn fan_outs(created: &[Typed<'_, TokenCreated>]) -> Vec<(String, u32)> {
    let mut partings: Vec<(&str, &str, u32)> = Vec::new();
    for token in created {
        let (Some(group), Some(parent)) = (&token.sibling_group, &token.parent_token_id) else { continue };
        let parting = (&**parent, &**group, token.branch_total);
        // A token within a branch carries its branch on without parting.
        let parted = token.path_id.ends_with(&format!(".{}", token.branch_index));
        let is_child =
            created.iter().any(|other| other.token_id == *parent && other.path_id != token.path_id);
        if parted && is_child && !partings.contains(&parting) {
            partings.push(parting);
        }
    }
    partings.into_iter().map(|(_, group, total)| (group.to_string(), total)).collect()
}

impl fmt::Debug for WorkflowVerifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkflowVerifier").field("run", &self.run).finish_non_exhaustive()
    }
}
