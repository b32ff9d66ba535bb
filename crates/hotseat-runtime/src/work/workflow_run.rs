//! State machine of a workflow.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_trace::{
    Payload, TokenCreated, TokenStatus, TokenStatusChanged, WorkOrigin, WorkflowCompleted, WorkflowFailed,
    WorkflowStarted,
};
use serde_json::{Map, Value, json};

use super::scope::WorkScope;
use super::{
    TaskNeed, TaskRun, TokenId, WorkContext, WorkEffect, WorkInput, WorkStep, WorkflowBranch, WorkflowToken,
    join, route,
};
use crate::definition::{
    BranchJoin, NodeWork, OnJoinTimeout, WorkflowDefinition, WorkflowNode, definitions, schema,
};
use crate::expression::{Expression, ExpressionScope, set_at_path};
use crate::failure::{ErrorCode, InfrastructureKind, WorkFailure, WorkResult};
use crate::ids::{ConversationId, RunId, WorkflowId, numbered};

/// Maximum number of tokens of a run; more count as an endless loop.
const MAX_TOKENS: usize = 10_000;

/// Run of a workflow.
#[derive(Debug, Clone)]
pub struct WorkflowRun {
    context: WorkContext,
    workflow: Arc<WorkflowDefinition>,
    id: WorkflowId,
    scope: WorkScope,
    tokens: Vec<WorkflowToken>,
    /// Completed joins; branches that arrive later are cancelled.
    completed_joins: BTreeSet<String>,
    /// Open joins, by name, with their target nodes.
    open_joins: BTreeMap<String, (BranchJoin, String)>,
    ended: bool,
}

impl WorkflowRun {
    /// Creates a run that has not started.
    pub fn new(
        context: WorkContext,
        id: WorkflowId,
        workflow: Arc<WorkflowDefinition>,
        input: Arc<Value>,
    ) -> Self {
        let scope = WorkScope::with_input(input);
        WorkflowRun {
            context,
            workflow,
            id,
            scope,
            tokens: Vec::new(),
            completed_joins: BTreeSet::new(),
            open_joins: BTreeMap::new(),
            ended: false,
        }
    }

    /// Returns the id of the run that a token starts.
    pub fn subrun(run: &RunId, token: TokenId) -> RunId {
        RunId(numbered(run.as_str(), "w", token.0 as usize))
    }

    /// Handles one input.
    pub(super) fn handle(&mut self, input: &WorkInput, step: &mut WorkStep) {
        if self.ended {
            return;
        }
        let worked = match input {
            WorkInput::Start => self.start(step),
            WorkInput::Waited { token } => self.resume_task(*token, step, TaskRun::resume_after_wait),
            WorkInput::Answered { token, result } => match self.token(*token).map(|token| token.status) {
                Some(TokenStatus::WaitingForSubworkflow) => {
                    let result = result.clone().map_err(|failure| match failure {
                        WorkFailure::Business { code, message } => {
                            WorkFailure::business(code, format!("Subworkflow failed: {message}"))
                        }
                        WorkFailure::Infrastructure { kind, message } => {
                            WorkFailure::infrastructure(kind, format!("Subworkflow failed: {message}"))
                        }
                    });
                    self.finish_node(*token, result, step)
                }
                Some(TokenStatus::WaitingForAgent) => self.finish_node(*token, result.clone(), step),
                Some(_) | None => {
                    self.resume_task(*token, step, |task, out| task.resume_with_answer(result.clone(), out))
                }
            },
            WorkInput::JoinLate { join } => self.handle_join_timeout(join, step),
        };
        let worked = worked.and_then(|()| self.settle(step));
        if let Err(failure) = worked {
            self.fail(failure, step);
        }
    }

    fn start(&mut self, step: &mut WorkStep) -> Result<(), WorkFailure> {
        step.events.push(Payload::WorkflowStarted(WorkflowStarted {
            turn_id: self.turn(),
            workflow_id: self.id.0.clone(),
            run_id: self.context.run.0.clone(),
            origin: self.context.origin,
            input: self.scope.shared("input"),
        }));
        if let Some(schema) = &self.workflow.input_schema {
            let violations = schema::violations(schema, &self.scope.shared("input"));
            if !violations.is_empty() {
                return Err(WorkFailure::business(ErrorCode::InvalidInput, violations.join("; ")));
            }
        }
        let first = match &self.workflow.initial {
            Some(initial) => Some(initial.as_str().into()),
            None => self.workflow.nodes.first().map(|node| node.name.clone()),
        };
        let Some(first) = first else { return Ok(()) };
        let token = self.create_token(first, None, "root".into(), None, BTreeMap::new(), step)?;
        self.enter_nodes(vec![token], step)
    }

    fn create_token(
        &mut self,
        node: Arc<str>,
        parent: Option<TokenId>,
        path: Arc<str>,
        branch: Option<WorkflowBranch>,
        taken: BTreeMap<String, u32>,
        step: &mut WorkStep,
    ) -> Result<TokenId, WorkFailure> {
        if self.tokens.len() >= MAX_TOKENS {
            let message = format!("the workflow has created {MAX_TOKENS} tokens without ending");
            return Err(WorkFailure::execution(message));
        }
        let id = TokenId(u32::try_from(self.tokens.len()).unwrap_or(u32::MAX));
        let name = self.token_name(id);
        step.events.push(Payload::TokenCreated(TokenCreated {
            turn_id: self.turn(),
            run_id: self.context.run.0.clone(),
            token_id: name.clone(),
            node_ref: node.clone(),
            parent_token_id: parent.map(|parent| self.token_name(parent)),
            path_id: path.clone(),
            sibling_group: branch.as_ref().map(|branch| branch.group.as_str().into()),
            branch_index: branch.as_ref().map_or(0, |branch| branch.index),
            branch_total: branch.as_ref().map_or(1, |branch| branch.total),
        }));
        self.tokens.push(WorkflowToken {
            id,
            name,
            node,
            status: TokenStatus::Pending,
            parent,
            path,
            branch,
            taken,
            task: None,
        });
        Ok(id)
    }

    /// Starts the work of the nodes of tokens, one after the other. Nodes that are done at once are left for the nodes
    /// after them before the next token starts; a loop, not a recursion, because a cycle of such nodes is as long as
    /// the limit of tokens.
    fn enter_nodes(&mut self, tokens: Vec<TokenId>, step: &mut WorkStep) -> Result<(), WorkFailure> {
        let mut waiting: Vec<TokenId> = tokens.into_iter().rev().collect();
        while let Some(token) = waiting.pop() {
            if let Some(result) = self.enter_node(token, step)? {
                waiting.extend(self.leave_node(token, result, step)?.into_iter().rev());
            }
        }
        Ok(())
    }

    /// Starts the work of a token's node. Returns its result if it is done at once.
    fn enter_node(&mut self, id: TokenId, step: &mut WorkStep) -> Result<Option<WorkResult>, WorkFailure> {
        let workflow = self.workflow.clone();
        let Some(node) = self.token(id).and_then(|token| node_named(&workflow, &token.node)) else {
            return Ok(None);
        };
        self.set_status(id, TokenStatus::Dispatched, step);
        let scope = self.token_scope(id);
        let whole = node.input_mapping.iter().find(|(member, _)| member == "*");
        let input = if let Some((_, expression)) = whole {
            evaluate(expression, &scope, node)?
        } else if node.input_mapping.is_empty() {
            scope.shared("input")
        } else {
            let mut input = Map::new();
            for (member, expression) in &node.input_mapping {
                input.insert(member.clone(), Arc::unwrap_or_clone(evaluate(expression, &scope, node)?));
            }
            Arc::new(Value::Object(input))
        };
        match &node.work {
            NodeWork::Task(task) => {
                self.set_status(id, TokenStatus::Executing, step);
                let origin = match self.context.origin {
                    WorkOrigin::Tool | WorkOrigin::Workflow => WorkOrigin::Workflow,
                    hook @ (WorkOrigin::ContextAssembly | WorkOrigin::MemoryExtraction) => hook,
                };
                let run = RunId(self.tokens[id.0 as usize].name.clone());
                let context = WorkContext { run, origin, ..self.context.clone() };
                let mut task = TaskRun::new(context, task.clone(), input);
                let need = task.start(&mut step.events);
                self.tokens[id.0 as usize].task = Some(Box::new(task));
                Ok(handle_need(id, need, step))
            }
            NodeWork::Workflow(reference) => {
                self.set_status(id, TokenStatus::WaitingForSubworkflow, step);
                let workflow = definitions::workflow_id(reference);
                step.effects.push(WorkEffect::Subworkflow { token: id, workflow, input });
                Ok(None)
            }
            NodeWork::Agent(reference) => {
                self.set_status(id, TokenStatus::WaitingForAgent, step);
                let agent = definitions::agent_id(reference);
                let (conversation, input) = (self.conversation_id(id), Arc::unwrap_or_clone(input));
                step.effects.push(WorkEffect::Agent { token: id, conversation, agent, input });
                Ok(None)
            }
        }
    }

    fn resume_task(
        &mut self,
        id: TokenId,
        step: &mut WorkStep,
        resume: impl FnOnce(&mut TaskRun, &mut Vec<Payload>) -> TaskNeed,
    ) -> Result<(), WorkFailure> {
        // Answers to cancelled tokens are ignored.
        let Some(token) = self.tokens.get_mut(id.0 as usize).filter(|token| !token.status.is_terminal())
        else {
            return Ok(());
        };
        let Some(task) = &mut token.task else { return Ok(()) };
        let need = resume(task, &mut step.events);
        match handle_need(id, need, step) {
            Some(result) => self.finish_node(id, result, step),
            None => Ok(()),
        }
    }

    /// Handles the result of a node and follows its transitions.
    fn finish_node(
        &mut self,
        id: TokenId,
        result: WorkResult,
        step: &mut WorkStep,
    ) -> Result<(), WorkFailure> {
        let next = self.leave_node(id, result, step)?;
        self.enter_nodes(next, step)
    }

    /// Handles the result of a node. Returns the tokens of the nodes after it.
    fn leave_node(
        &mut self,
        id: TokenId,
        result: WorkResult,
        step: &mut WorkStep,
    ) -> Result<Vec<TokenId>, WorkFailure> {
        let workflow = self.workflow.clone();
        let Some(node) = self.token(id).and_then(|token| node_named(&workflow, &token.node)) else {
            return Ok(Vec::new());
        };
        let output = match result {
            Ok(output) => output,
            Err(failure) => {
                self.set_status(id, TokenStatus::Failed, step);
                return Err(failure);
            }
        };
        self.apply_output(id, node, output)?;
        let scope = self.token_scope(id);
        let taken = self.tokens[id.0 as usize].taken.clone();
        let often = |name: &str| taken.get(name).copied().unwrap_or_default();
        let transitions = route::select_transitions(&self.workflow, &node.name, &scope, often)
            .map_err(|error| WorkFailure::execution(format!("transitions of node {}: {error}", node.name)))?;
        if let Some(fan_in) = transitions.iter().find_map(|way| self.join_of(id, way)) {
            self.wait_for_siblings(id, fan_in, step);
            return Ok(Vec::new());
        }
        self.set_status(id, TokenStatus::Completed, step);
        let mut new = Vec::new();
        for way in &transitions {
            new.extend(self.create_tokens(id, way, &transitions, step)?);
        }
        Ok(new)
    }

    /// Returns the join and its target if the token belongs to a joined branch.
    fn join_of(&self, id: TokenId, way: &route::TakenTransition) -> Option<(BranchJoin, String)> {
        let fan_in = way.transition.fan_in.clone()?;
        let group = &self.token(id)?.branch.as_ref()?.group;
        (*group == fan_in.sibling_group).then(|| (fan_in, way.transition.to.clone()))
    }

    /// Creates the tokens of one transition.
    fn create_tokens(
        &mut self,
        id: TokenId,
        way: &route::TakenTransition,
        ways: &[route::TakenTransition],
        step: &mut WorkStep,
    ) -> Result<Vec<TokenId>, WorkFailure> {
        let from = self.tokens[id.0 as usize].clone();
        let mut counted = from.taken.clone();
        *counted.entry(way.transition.name.clone()).or_default() += 1;
        let Some(group) = &way.transition.sibling_group else {
            let mut new = Vec::new();
            for _ in 0..way.count {
                let (path, branch) = (from.path.clone(), from.branch.clone());
                new.push(self.create_token(
                    way.transition.to.as_str().into(),
                    Some(id),
                    path,
                    branch,
                    counted.clone(),
                    step,
                )?);
            }
            return Ok(new);
        };
        let of_group =
            |other: &&route::TakenTransition| other.transition.sibling_group.as_ref() == Some(group);
        let total = ways.iter().filter(of_group).map(|other| other.count).sum();
        let place = ways.iter().position(|other| other == way).unwrap_or_default();
        let before: u32 = ways[..place].iter().filter(of_group).map(|other| other.count).sum();
        let name = way.transition.for_each.as_ref().map(|each| each.item.clone());
        let outer = from.branch.clone().map(Arc::new);
        let mut new = Vec::new();
        for offset in 0..way.count {
            let index = before + offset;
            let item = way.items.as_ref().and_then(|items| items.get(offset as usize)).cloned();
            let branch = WorkflowBranch {
                group: group.clone(),
                origin: id,
                path: from.path.clone(),
                taken: from.taken.clone(),
                index,
                total,
                item: name.clone().zip(item),
                output: Arc::new(json!({})),
                outer: outer.clone(),
            };
            let path = format!("{}.{}.{index}", from.path, from.node).into();
            let to = way.transition.to.as_str().into();
            new.push(self.create_token(to, Some(id), path, Some(branch), counted.clone(), step)?);
        }
        Ok(new)
    }

    /// Lets a branch wait for its siblings, or cancels it if the join is already complete.
    fn wait_for_siblings(&mut self, id: TokenId, (fan_in, to): (BranchJoin, String), step: &mut WorkStep) {
        let Some(branch) = self.token(id).and_then(|token| token.branch.clone()) else { return };
        let join = join_name(&branch, &to);
        if self.completed_joins.contains(&join) {
            return self.set_status(id, TokenStatus::Cancelled, step);
        }
        self.set_status(id, TokenStatus::WaitingForSiblings, step);
        if let Entry::Vacant(place) = self.open_joins.entry(join) {
            if let Some((millis, _)) = fan_in.timeout {
                step.effects.push(WorkEffect::JoinTimer { join: place.key().clone(), millis });
            }
            place.insert((fan_in, to));
        }
    }

    fn handle_join_timeout(&mut self, join: &str, step: &mut WorkStep) -> Result<(), WorkFailure> {
        let Some((fan_in, to)) = self.open_joins.get(join).cloned() else { return Ok(()) };
        match fan_in.timeout {
            Some((millis, OnJoinTimeout::Fail)) => {
                for id in self.arrived(join, &to) {
                    self.set_status(id, TokenStatus::TimedOut, step);
                }
                let message =
                    format!("the branches of {} were not joined within {millis} ms", fan_in.sibling_group);
                Err(WorkFailure::infrastructure(InfrastructureKind::Timeout, message))
            }
            Some((_, OnJoinTimeout::Proceed)) | None => self.complete_join_at(join, &fan_in, &to, step),
        }
    }

    /// Completes all joins that are ready, and the run if no token is active.
    fn settle(&mut self, step: &mut WorkStep) -> Result<(), WorkFailure> {
        while let Some((join, fan_in, to)) = self.complete_join() {
            self.complete_join_at(&join, &fan_in, &to, step)?;
        }
        if self.ended || self.tokens.iter().any(|token| !token.status.is_terminal()) {
            return Ok(());
        }
        self.complete(step)
    }

    fn complete_join(&self) -> Option<(String, BranchJoin, String)> {
        self.open_joins.iter().find_map(|(join, (fan_in, to))| {
            let arrived = self.arrived(join, to);
            let first = self.token(*arrived.first()?)?.branch.as_ref()?;
            let running =
                self.siblings(first).filter(|token| token.status != TokenStatus::WaitingForSiblings).count();
            join::is_complete(fan_in.join, arrived.len(), running)
                .then(|| (join.clone(), fan_in.clone(), to.clone()))
        })
    }

    /// Returns the tokens that wait at a join.
    fn arrived(&self, join: &str, to: &str) -> Vec<TokenId> {
        let waits = |token: &&WorkflowToken| {
            token.status == TokenStatus::WaitingForSiblings
                && token.branch.as_ref().is_some_and(|branch| join_name(branch, to) == join)
        };
        self.tokens.iter().filter(waits).map(|token| token.id).collect()
    }

    /// Returns the active tokens of the branches that started together with `branch`, including nested
    /// branches.
    fn siblings<'s>(&'s self, branch: &'s WorkflowBranch) -> impl Iterator<Item = &'s WorkflowToken> {
        self.tokens.iter().filter(move |token| {
            let mut own = token.branch.as_ref();
            let mut found = false;
            while let Some(other) = own {
                found |= other.is_sibling(branch);
                own = other.outer.as_deref();
            }
            found && !token.status.is_terminal()
        })
    }

    fn complete_join_at(
        &mut self,
        join: &str,
        fan_in: &BranchJoin,
        to: &str,
        step: &mut WorkStep,
    ) -> Result<(), WorkFailure> {
        self.open_joins.remove(join);
        self.completed_joins.insert(join.to_string());
        let arrived = self.arrived(join, to);
        let branches: Vec<WorkflowBranch> =
            arrived.iter().filter_map(|id| self.token(*id)?.branch.clone()).collect();
        let Some(branch) = branches.first().cloned() else { return Ok(()) };
        for id in &arrived {
            self.set_status(*id, TokenStatus::Completed, step);
        }
        let late: Vec<TokenId> = self.siblings(&branch).map(|token| token.id).collect();
        for id in late {
            self.cancel(id, step);
        }
        let outer = branch.outer.as_deref().cloned();
        let mut scope = match &outer {
            // Inside another branch, the combined output belongs to that branch.
            Some(outer) => {
                let mut scope = self.scope.clone();
                scope.set("output", outer.output.clone());
                scope
            }
            None => self.scope.clone(),
        };
        join::merge(&mut scope, fan_in.merge.as_ref(), branches);
        self.scope.set("state", scope.shared("state"));
        let outer = match outer {
            Some(mut outer) => {
                outer.output = scope.shared("output");
                Some(outer)
            }
            None => {
                self.scope.set("output", scope.shared("output"));
                None
            }
        };
        let path = format!("{}.{}:{to}", branch.path, branch.group).into();
        let next = self.create_token(to.into(), Some(branch.origin), path, outer, branch.taken, step)?;
        self.enter_nodes(vec![next], step)
    }

    fn complete(&mut self, step: &mut WorkStep) -> Result<(), WorkFailure> {
        let output = if self.workflow.output_mapping.is_empty() {
            self.scope.shared("output")
        } else {
            let mut output = json!({});
            for (path, expression) in &self.workflow.output_mapping {
                let wrong = |error| WorkFailure::execution(format!("output of the workflow: {error}"));
                let value = expression.evaluate(&self.scope).map_err(wrong)?;
                set_at_path(&mut output, path.strip_prefix("output.").unwrap_or(path), value);
            }
            Arc::new(output)
        };
        if let Some(schema) = &self.workflow.output_schema {
            let violations = schema::violations(schema, &output);
            if !violations.is_empty() {
                let message = format!(
                    "the output of the workflow does not match its schema: {}",
                    violations.join("; ")
                );
                return Err(WorkFailure::execution(message));
            }
        }
        self.ended = true;
        step.events.push(Payload::WorkflowCompleted(WorkflowCompleted {
            turn_id: self.turn(),
            workflow_id: self.id.0.clone(),
            run_id: self.context.run.0.clone(),
            origin: self.context.origin,
            output: output.clone(),
        }));
        step.effects.push(WorkEffect::Done(Ok(output)));
        Ok(())
    }

    /// Fails the run and cancels its active tokens.
    fn fail(&mut self, failure: WorkFailure, step: &mut WorkStep) {
        let running: Vec<_> =
            self.tokens.iter().filter(|token| !token.status.is_terminal()).map(|token| token.id).collect();
        for id in running {
            self.cancel(id, step);
        }
        self.ended = true;
        step.events.push(Payload::WorkflowFailed(WorkflowFailed {
            turn_id: self.turn(),
            workflow_id: self.id.0.clone(),
            run_id: self.context.run.0.clone(),
            origin: self.context.origin,
            error: failure.info(),
        }));
        step.effects.push(WorkEffect::Done(Err(failure)));
    }

    fn cancel(&mut self, id: TokenId, step: &mut WorkStep) {
        if self.token(id).is_some_and(|token| token.status == TokenStatus::WaitingForSubworkflow) {
            step.effects.push(WorkEffect::CancelSubworkflow { token: id });
        }
        if let Some(conversation) = self.agent_conversation(id) {
            step.effects.push(WorkEffect::CancelAgent { conversation });
        }
        self.set_status(id, TokenStatus::Cancelled, step);
    }

    fn set_status(&mut self, id: TokenId, to: TokenStatus, step: &mut WorkStep) {
        let (turn_id, run_id) = (self.turn(), self.context.run.0.clone());
        let Some(token) = self.tokens.get_mut(id.0 as usize) else { return };
        let token_id = token.name.clone();
        let from = std::mem::replace(&mut token.status, to);
        step.events.push(Payload::TokenStatusChanged(TokenStatusChanged {
            turn_id,
            run_id,
            token_id,
            from,
            to,
        }));
    }

    fn apply_output(
        &mut self,
        id: TokenId,
        node: &WorkflowNode,
        output: Arc<Value>,
    ) -> Result<(), WorkFailure> {
        let mut scope = self.token_scope(id);
        scope.set("result", output.clone());
        if node.output_mapping.is_empty() {
            scope.set("output", output);
        }
        for (path, expression) in &node.output_mapping {
            let value = evaluate(expression, &scope, node)?;
            scope.set_at_path(path, value);
        }
        // The output of a branch is private until branches are joined; the state is shared.
        self.scope.set("state", scope.shared("state"));
        match &mut self.tokens[id.0 as usize].branch {
            Some(branch) => branch.output = scope.shared("output"),
            None => self.scope.set("output", scope.shared("output")),
        }
        Ok(())
    }

    /// Returns the scope of expressions at a token.
    fn token_scope(&self, id: TokenId) -> WorkScope {
        let mut scope = self.scope.clone();
        let branch = self.token(id).and_then(|token| token.branch.as_ref());
        if let Some(branch) = branch {
            scope.set("output", branch.output.clone());
            scope.set("branch", Arc::new(json!({"index": branch.index, "total": branch.total})));
            let mut around = Some(branch);
            while let Some(inner) = around {
                if let Some((name, item)) = &inner.item
                    && scope.value(name).is_none()
                {
                    scope.set(name, item.clone());
                }
                around = inner.outer.as_deref();
            }
        }
        scope
    }

    /// Returns the id of the conversation that a token opens with an agent.
    fn conversation_id(&self, id: TokenId) -> ConversationId {
        ConversationId(self.token_name(id))
    }

    /// Returns the conversation in which a token waits for an agent.
    fn agent_conversation(&self, id: TokenId) -> Option<ConversationId> {
        let token = self.token(id)?;
        match token.status {
            TokenStatus::WaitingForAgent => Some(self.conversation_id(id)),
            TokenStatus::Executing => token.task.as_ref()?.agent_conversation().cloned(),
            _ => None,
        }
    }

    fn token(&self, id: TokenId) -> Option<&WorkflowToken> {
        self.tokens.get(id.0 as usize)
    }

    fn token_name(&self, id: TokenId) -> Arc<str> {
        numbered(self.context.run.as_str(), "n", id.0 as usize)
    }

    fn turn(&self) -> Option<Arc<str>> {
        self.context.turn.as_ref().map(|turn| turn.0.clone())
    }
}

/// Passes on what a task needs. Returns its result if it is done.
fn handle_need(id: TokenId, need: TaskNeed, step: &mut WorkStep) -> Option<WorkResult> {
    match need {
        TaskNeed::Done(result) => Some(result),
        other => {
            step.effects.push(other.into_effect(id));
            None
        }
    }
}

fn join_name(branch: &WorkflowBranch, to: &str) -> String {
    format!("{} {} {to}", branch.origin.0, branch.group)
}

fn node_named<'a>(workflow: &'a WorkflowDefinition, name: &str) -> Option<&'a WorkflowNode> {
    workflow.nodes.iter().find(|node| &*node.name == name)
}

fn evaluate(expression: &Expression, scope: &WorkScope, node: &WorkflowNode) -> WorkResult {
    let wrong = |error| WorkFailure::execution(format!("node {}: {error}", node.name));
    scope.evaluate(expression).map_err(wrong)
}
