//! Compares a workflow run with expectations.

use std::fmt;

use serde_json::Value;

use super::mismatch::{Mismatch, find_difference};
use super::{TraceVerifier, VerifyError, verify_view};
use crate::{
    ConversationView, TokenCreated, TokenStatus, Trace, TypedRecord, WorkflowCompleted, WorkflowFailed,
};

/// Expectations about a workflow run.
#[must_use]
pub struct WorkflowVerifier<'t> {
    run: String,
    checks: TraceVerifier<'t>,
}

/// Expectations about the tokens of a run. Fields that are not set are not checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokensSpec {
    /// First node of the run.
    pub root: Option<String>,
    /// Number of tokens.
    pub total: Option<usize>,
    /// Number of tokens at each node.
    pub tokens_at_node: Vec<(String, usize)>,
    /// Fan-outs in order: name of the branch group and number of branches.
    pub fan_outs: Option<Vec<(String, u32)>>,
    /// Number of branches that waited for their siblings.
    pub fan_in_arrivals: Option<usize>,
    /// Number of times that branches were joined.
    pub fan_in_continuations: Option<usize>,
    /// Number of cancelled tokens.
    pub cancelled: Option<usize>,
}

/// Starts expectations about a workflow run of any conversation.
pub fn verify_workflow<'t>(trace: &'t Trace, run_id: &str) -> WorkflowVerifier<'t> {
    let view = trace.execution(run_id).unwrap_or_else(|| trace.root());
    let checks = WorkflowVerifier { run: run_id.to_string(), checks: verify_view(view) };
    checks.add_check("run", |view, run| match describe_end(view, run).as_str() {
        nothing @ "there is no such run" => vec![Mismatch::new(format!("run {run}"), nothing)],
        _ => Vec::new(),
    })
}

impl<'t> WorkflowVerifier<'t> {
    fn add_check(self, name: &str, find: impl Fn(&ConversationView<'t>, &str) -> Vec<Mismatch> + 't) -> Self {
        let run = self.run.clone();
        let checks = self.checks.add_check(name, move |view| find(view, &run));
        WorkflowVerifier { checks, ..self }
    }

    /// Expects that the run completed.
    pub fn completed(self) -> Self {
        self.add_check("completed", |view, run| match (completion(view, run), failure(view, run)) {
            (Some(_), None) => Vec::new(),
            _ => vec![Mismatch::new(format!("run {run} completed"), describe_end(view, run))],
        })
    }

    /// Expects that the run failed with a message that contains this text.
    pub fn failed(self, message_contains: &str) -> Self {
        let part = message_contains.to_string();
        self.add_check("failed", move |view, run| match failure(view, run) {
            Some(end) if end.error.message.contains(&part) && completion(view, run).is_none() => Vec::new(),
            _ => vec![Mismatch::new(format!("run {run} failed with {part:?}"), describe_end(view, run))],
        })
    }

    /// Expects this output.
    pub fn with_output(self, output: Value) -> Self {
        self.add_check("output", move |view, run| match completion(view, run) {
            Some(end) => find_difference("output", &output, &end.output).into_iter().collect(),
            None => vec![Mismatch::new(format!("run {run} returned {output}"), describe_end(view, run))],
        })
    }

    /// Expects tokens as described.
    pub fn with_tokens(self, spec: TokensSpec) -> Self {
        self.add_check("tokens", move |view, run| tokens(view, run, &spec))
    }

    /// Adds a custom check, which returns a description of the actual value on failure.
    pub fn with_custom(
        self,
        name: &str,
        check: impl Fn(&ConversationView<'t>) -> Result<(), String> + 't,
    ) -> Self {
        WorkflowVerifier { checks: self.checks.with_custom(name, check), ..self }
    }

    /// Runs all checks.
    ///
    /// # Errors
    /// If any check fails; the error lists all mismatches.
    pub fn run(&self) -> Result<(), VerifyError> {
        self.checks.run()
    }

    /// Runs all checks.
    ///
    /// # Panics
    /// If any check fails.
    pub fn assert(&self) {
        self.checks.assert();
    }
}

fn completion<'t>(view: &ConversationView<'t>, run: &str) -> Option<TypedRecord<'t, WorkflowCompleted>> {
    view.workflows().completions().into_iter().find(|end| &*end.run_id == run)
}

fn failure<'t>(view: &ConversationView<'t>, run: &str) -> Option<TypedRecord<'t, WorkflowFailed>> {
    view.workflows().failures().into_iter().find(|end| &*end.run_id == run)
}

/// Describes the end of a run.
fn describe_end(view: &ConversationView<'_>, run: &str) -> String {
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

fn tokens(view: &ConversationView<'_>, run: &str, spec: &TokensSpec) -> Vec<Mismatch> {
    let workflows = view.workflows();
    let created = workflows.tokens(run);
    let became = |status: TokenStatus| {
        workflows.token_changes(run).iter().filter(|change| change.to == status).count()
    };
    let mut found = Vec::new();
    let mut compare = |what: &str, expected: Option<usize>, actual: usize| {
        found.extend(expected.and_then(|expected| find_difference(what, expected, actual)));
    };
    compare("tokens", spec.total, created.len());
    compare("waiting branches", spec.fan_in_arrivals, became(TokenStatus::WaitingForSiblings));
    compare("cancelled tokens", spec.cancelled, became(TokenStatus::Cancelled));
    // The path of a token after a join ends with the name of the branch group and the node.
    let goes_on = |token: &TypedRecord<'_, TokenCreated>| {
        token.path_id.rsplit('.').next().is_some_and(|last| last.ends_with(&format!(":{}", token.node_ref)))
    };
    let continuations = created.iter().filter(|token| goes_on(token)).count();
    compare("branch joins", spec.fan_in_continuations, continuations);
    for (node, expected) in &spec.tokens_at_node {
        let actual = created.iter().filter(|token| *token.node_ref == **node).count();
        compare(&format!("tokens at {node}"), Some(*expected), actual);
    }
    if let Some(root) = &spec.root {
        let first = created.first().map(|token| token.node_ref.to_string());
        found.extend(find_difference("first node", Some(root.clone()), first));
    }
    if let Some(expected) = &spec.fan_outs {
        found.extend(find_difference("branches", expected.clone(), fan_outs(&created)));
    }
    found
}

/// Returns the fan-outs of a run, in order: name of the branch group and number of branches.
fn fan_outs(created: &[TypedRecord<'_, TokenCreated>]) -> Vec<(String, u32)> {
    let mut partings: Vec<(&str, &str, u32)> = Vec::new();
    for token in created {
        let (Some(group), Some(parent)) = (&token.sibling_group, &token.parent_token_id) else { continue };
        let parting = (&**parent, &**group, token.branch_total);
        // A token within a branch keeps the path of the branch.
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
