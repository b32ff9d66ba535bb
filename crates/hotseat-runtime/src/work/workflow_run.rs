//! One run of a workflow.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_trace::{
    Payload, TokenCreated, TokenStatus, TokenStatusChanged, WorkOrigin, WorkflowCompleted, WorkflowFailed,
    WorkflowStarted,
};
use serde_json::{Map, Value, json};

use super::{
    Branch, Need, TaskRun, Token, TokenId, WorkContext, WorkEffect, WorkInput, WorkStep, join, route,
};
use crate::definition::{Definitions, FanIn, Node, NodeWork, OnJoinTimeout, Workflow, definitions, schema};
use crate::expression::{Expression, put};
use crate::failure::{ErrorCode, Failure, InfrastructureKind};
use crate::ids::{ConversationId, RunId};

/// How many tokens a run may have before it takes itself for endless.
const MOST_TOKENS: usize = 10_000;

/// One run of a workflow.
#[derive(Debug, Clone)]
pub struct WorkflowRun {
    context: WorkContext,
    workflow: Arc<Workflow>,
    /// `input`, `state` and `output`.
    scope: Value,
    tokens: Vec<Token>,
    /// Where branches have come together already; those that arrive later find nobody.
    joined: BTreeSet<String>,
    /// Where branches are waited for, with what is to be done.
    joins: BTreeMap<String, (FanIn, String)>,
    ended: bool,
}

impl WorkflowRun {
    /// A run that has not begun.
    pub fn new(context: WorkContext, workflow: Arc<Workflow>, input: Value) -> Self {
        let scope = json!({"input": input, "state": {}, "output": {}});
        WorkflowRun {
            context,
            workflow,
            scope,
            tokens: Vec::new(),
            joined: BTreeSet::new(),
            joins: BTreeMap::new(),
            ended: false,
        }
    }

    /// The id of the run that a token starts.
    pub fn subrun(run: &RunId, token: TokenId) -> RunId {
        RunId(format!("{run}-w{}", token.0).into())
    }

    /// Takes what has happened.
    pub(super) fn handle(&mut self, definitions: &Definitions, input: &WorkInput, step: &mut WorkStep) {
        if self.ended {
            return;
        }
        let worked = match input {
            WorkInput::Start => self.start(definitions, step),
            WorkInput::Waited { token } => self.with_task(definitions, *token, step, TaskRun::waited),
            WorkInput::Answered { token, result } => match self.token(*token).map(|token| token.status) {
                Some(TokenStatus::WaitingForSubworkflow) => {
                    let result = result.clone().map_err(|failure| match failure {
                        Failure::Business { code, message } => {
                            Failure::business(code, format!("Subworkflow failed: {message}"))
                        }
                        Failure::Infrastructure { kind, message } => {
                            Failure::infrastructure(kind, format!("Subworkflow failed: {message}"))
                        }
                    });
                    self.node_done(definitions, *token, result, step)
                }
                Some(TokenStatus::WaitingForAgent) => {
                    self.node_done(definitions, *token, result.clone(), step)
                }
                Some(_) | None => {
                    self.with_task(definitions, *token, step, |task, out| task.answered(result.clone(), out))
                }
            },
            WorkInput::JoinLate { join } => self.join_late(definitions, join, step),
        };
        let worked = worked.and_then(|()| self.settle(definitions, step));
        if let Err(failure) = worked {
            self.fail(failure, step);
        }
    }

    fn start(&mut self, definitions: &Definitions, step: &mut WorkStep) -> Result<(), Failure> {
        step.events.push(Payload::WorkflowStarted(WorkflowStarted {
            turn_id: self.turn(),
            workflow_id: crate::ids::slug(&self.workflow.name).into(),
            run_id: self.context.run.0.clone(),
            origin: self.context.origin,
            input: self.scope["input"].clone(),
        }));
        if let Some(schema) = &self.workflow.input_schema {
            let violations = schema::violations(schema, &self.scope["input"]);
            if !violations.is_empty() {
                return Err(Failure::business(ErrorCode::InvalidInput, violations.join("; ")));
            }
        }
        let first = self
            .workflow
            .initial
            .clone()
            .or_else(|| self.workflow.nodes.first().map(|node| node.name.clone()));
        let Some(first) = first else { return Ok(()) };
        let token = self.create(first, None, "root".to_string(), None, BTreeMap::new(), step)?;
        self.enter(definitions, token, step)
    }

    fn create(
        &mut self,
        node: String,
        parent: Option<TokenId>,
        path: String,
        branch: Option<Branch>,
        taken: BTreeMap<String, u32>,
        step: &mut WorkStep,
    ) -> Result<TokenId, Failure> {
        if self.tokens.len() >= MOST_TOKENS {
            let message = format!("the workflow has made {MOST_TOKENS} tokens and does not end");
            return Err(Failure::business(ErrorCode::ExecutionFailed, message));
        }
        let id = TokenId(u32::try_from(self.tokens.len()).unwrap_or(u32::MAX));
        step.events.push(Payload::TokenCreated(TokenCreated {
            turn_id: self.turn(),
            run_id: self.context.run.0.clone(),
            token_id: self.token_name(id),
            node_ref: node.as_str().into(),
            parent_token_id: parent.map(|parent| self.token_name(parent)),
            path_id: path.as_str().into(),
            sibling_group: branch.as_ref().map(|branch| branch.group.as_str().into()),
            branch_index: branch.as_ref().map_or(0, |branch| branch.index),
            branch_total: branch.as_ref().map_or(1, |branch| branch.total),
        }));
        self.tokens.push(Token {
            id,
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

    /// Begins the work of the node that a token stands at.
    fn enter(&mut self, definitions: &Definitions, id: TokenId, step: &mut WorkStep) -> Result<(), Failure> {
        let Some(node) = self.token(id).and_then(|token| self.node(&token.node)).cloned() else {
            return Ok(());
        };
        self.change(id, TokenStatus::Dispatched, step);
        let scope = self.scope_of(id);
        let whole = node.input_mapping.iter().find(|(member, _)| member == "*");
        let input = if let Some((_, expression)) = whole {
            computed(expression, &scope, &node)?
        } else if node.input_mapping.is_empty() {
            scope["input"].clone()
        } else {
            let mut input = Map::new();
            for (member, expression) in &node.input_mapping {
                input.insert(member.clone(), computed(expression, &scope, &node)?);
            }
            Value::Object(input)
        };
        match &node.work {
            NodeWork::Task(task) => {
                self.change(id, TokenStatus::Executing, step);
                let origin = match self.context.origin {
                    WorkOrigin::Tool | WorkOrigin::Workflow => WorkOrigin::Workflow,
                    hook @ (WorkOrigin::ContextAssembly | WorkOrigin::MemoryExtraction) => hook,
                };
                let run = RunId(self.token_name(id));
                let context = WorkContext { run, origin, ..self.context.clone() };
                let mut task = TaskRun::new(context, task.clone(), input);
                let need = task.start(&mut step.events);
                self.tokens[id.0 as usize].task = Some(Box::new(task));
                self.take_need(definitions, id, need, step)
            }
            NodeWork::Workflow(reference) => {
                self.change(id, TokenStatus::WaitingForSubworkflow, step);
                let workflow = definitions::workflow_id(reference);
                step.effects.push(WorkEffect::Subworkflow { token: id, workflow, input });
                Ok(())
            }
            NodeWork::Agent(reference) => {
                self.change(id, TokenStatus::WaitingForAgent, step);
                let agent = definitions::agent_id(reference);
                let conversation = self.asking(id);
                step.effects.push(WorkEffect::Agent { token: id, conversation, agent, input });
                Ok(())
            }
        }
    }

    fn with_task(
        &mut self,
        definitions: &Definitions,
        id: TokenId,
        step: &mut WorkStep,
        go_on: impl FnOnce(&mut TaskRun, &mut Vec<Payload>) -> Need,
    ) -> Result<(), Failure> {
        // A token that was cancelled has no use for what it waited for.
        let Some(token) = self.tokens.get_mut(id.0 as usize).filter(|token| !token.status.is_terminal())
        else {
            return Ok(());
        };
        let Some(task) = &mut token.task else { return Ok(()) };
        let need = go_on(task, &mut step.events);
        self.take_need(definitions, id, need, step)
    }

    fn take_need(
        &mut self,
        definitions: &Definitions,
        id: TokenId,
        need: Need,
        step: &mut WorkStep,
    ) -> Result<(), Failure> {
        match need {
            Need::Done(result) => self.node_done(definitions, id, result, step),
            other => {
                step.effects.push(other.effect(id));
                Ok(())
            }
        }
    }

    /// Takes what a node came to, and goes on from it.
    fn node_done(
        &mut self,
        definitions: &Definitions,
        id: TokenId,
        result: Result<Value, Failure>,
        step: &mut WorkStep,
    ) -> Result<(), Failure> {
        let Some(node) = self.token(id).and_then(|token| self.node(&token.node)).cloned() else {
            return Ok(());
        };
        let output = match result {
            Ok(output) => output,
            Err(failure) => {
                self.change(id, TokenStatus::Failed, step);
                return Err(failure);
            }
        };
        self.take_output(id, &node, output)?;
        let scope = self.scope_of(id);
        let taken = self.tokens[id.0 as usize].taken.clone();
        let often = |name: &str| taken.get(name).copied().unwrap_or_default();
        let ways = route::route(&self.workflow, &node.name, &scope, often).map_err(|error| {
            Failure::business(ErrorCode::ExecutionFailed, format!("after node {}: {error}", node.name))
        })?;
        if let Some(fan_in) = ways.iter().find_map(|way| self.arrives(id, way)) {
            return self.arrive(id, fan_in, step);
        }
        self.change(id, TokenStatus::Completed, step);
        let mut new = Vec::new();
        for way in &ways {
            new.extend(self.follow(id, way, &ways, step)?);
        }
        new.into_iter().try_for_each(|token| self.enter(definitions, token, step))
    }

    /// The place where branches come together, if the token is one of those branches.
    fn arrives(&self, id: TokenId, way: &route::Taken) -> Option<(FanIn, String)> {
        let fan_in = way.transition.fan_in.clone()?;
        let group = &self.token(id)?.branch.as_ref()?.group;
        (*group == fan_in.sibling_group).then(|| (fan_in, way.transition.to.clone()))
    }

    /// Makes the tokens of one transition.
    fn follow(
        &mut self,
        id: TokenId,
        way: &route::Taken,
        ways: &[route::Taken],
        step: &mut WorkStep,
    ) -> Result<Vec<TokenId>, Failure> {
        let from = self.tokens[id.0 as usize].clone();
        let mut counted = from.taken.clone();
        *counted.entry(way.transition.name.clone()).or_default() += 1;
        let Some(group) = &way.transition.sibling_group else {
            let mut new = Vec::new();
            for _ in 0..way.count {
                let (path, branch) = (from.path.clone(), from.branch.clone());
                new.push(self.create(
                    way.transition.to.clone(),
                    Some(id),
                    path,
                    branch,
                    counted.clone(),
                    step,
                )?);
            }
            return Ok(new);
        };
        let of_group = |other: &&route::Taken| other.transition.sibling_group.as_ref() == Some(group);
        let total = ways.iter().filter(of_group).map(|other| other.count).sum();
        let place = ways.iter().position(|other| other == way).unwrap_or_default();
        let before: u32 = ways[..place].iter().filter(of_group).map(|other| other.count).sum();
        let name = way.transition.for_each.as_ref().map(|each| each.item.clone());
        let mut new = Vec::new();
        for offset in 0..way.count {
            let index = before + offset;
            let item = way.items.as_ref().and_then(|items| items.get(offset as usize)).cloned();
            let branch = Branch {
                group: group.clone(),
                origin: id,
                path: from.path.clone(),
                taken: from.taken.clone(),
                index,
                total,
                item: name.clone().zip(item),
                output: json!({}),
                outer: from.branch.clone().map(Box::new),
            };
            let path = format!("{}.{}.{index}", from.path, from.node);
            let to = way.transition.to.clone();
            new.push(self.create(to, Some(id), path, Some(branch), counted.clone(), step)?);
        }
        Ok(new)
    }

    /// A branch has come to where it waits for its siblings.
    fn arrive(
        &mut self,
        id: TokenId,
        (fan_in, to): (FanIn, String),
        step: &mut WorkStep,
    ) -> Result<(), Failure> {
        let Some(branch) = self.token(id).and_then(|token| token.branch.clone()) else { return Ok(()) };
        let join = join_name(&branch, &to);
        if self.joined.contains(&join) {
            self.change(id, TokenStatus::Cancelled, step);
            return Ok(());
        }
        self.change(id, TokenStatus::WaitingForSiblings, step);
        if let Entry::Vacant(place) = self.joins.entry(join) {
            if let Some((millis, _)) = fan_in.timeout {
                step.effects.push(WorkEffect::JoinTimer { join: place.key().clone(), millis });
            }
            place.insert((fan_in, to));
        }
        Ok(())
    }

    fn join_late(
        &mut self,
        definitions: &Definitions,
        join: &str,
        step: &mut WorkStep,
    ) -> Result<(), Failure> {
        let Some((fan_in, to)) = self.joins.get(join).cloned() else { return Ok(()) };
        match fan_in.timeout {
            Some((millis, OnJoinTimeout::Fail)) => {
                for id in self.arrived(join, &to) {
                    self.change(id, TokenStatus::TimedOut, step);
                }
                let message =
                    format!("branches of {} did not come together within {millis} ms", fan_in.sibling_group);
                Err(Failure::infrastructure(InfrastructureKind::Timeout, message))
            }
            Some((_, OnJoinTimeout::Proceed)) | None => self.activate(definitions, join, &fan_in, &to, step),
        }
    }

    /// Brings together what can be, and ends the run when nothing is left to do.
    fn settle(&mut self, definitions: &Definitions, step: &mut WorkStep) -> Result<(), Failure> {
        while let Some((join, fan_in, to)) = self.complete_join() {
            self.activate(definitions, &join, &fan_in, &to, step)?;
        }
        if self.ended || self.tokens.iter().any(|token| !token.status.is_terminal()) {
            return Ok(());
        }
        self.complete(step)
    }

    fn complete_join(&self) -> Option<(String, FanIn, String)> {
        self.joins.iter().find_map(|(join, (fan_in, to))| {
            let arrived = self.arrived(join, to);
            let first = self.token(*arrived.first()?)?.branch.as_ref()?;
            let running =
                self.siblings(first).filter(|token| token.status != TokenStatus::WaitingForSiblings).count();
            join::is_complete(fan_in.join, arrived.len(), running)
                .then(|| (join.clone(), fan_in.clone(), to.clone()))
        })
    }

    /// The tokens that wait at a place where branches come together.
    fn arrived(&self, join: &str, to: &str) -> Vec<TokenId> {
        let waits = |token: &&Token| {
            token.status == TokenStatus::WaitingForSiblings
                && token.branch.as_ref().is_some_and(|branch| join_name(branch, to) == join)
        };
        self.tokens.iter().filter(waits).map(|token| token.id).collect()
    }

    /// The tokens of a parting that have not ended, those of partings within it included.
    fn siblings<'s>(&'s self, branch: &'s Branch) -> impl Iterator<Item = &'s Token> {
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

    fn activate(
        &mut self,
        definitions: &Definitions,
        join: &str,
        fan_in: &FanIn,
        to: &str,
        step: &mut WorkStep,
    ) -> Result<(), Failure> {
        self.joins.remove(join);
        self.joined.insert(join.to_string());
        let arrived = self.arrived(join, to);
        let branches: Vec<Branch> = arrived.iter().filter_map(|id| self.token(*id)?.branch.clone()).collect();
        let Some(branch) = branches.first().cloned() else { return Ok(()) };
        for id in &arrived {
            self.change(*id, TokenStatus::Completed, step);
        }
        let late: Vec<TokenId> = self.siblings(&branch).map(|token| token.id).collect();
        for id in late {
            self.cancel(id, step);
        }
        let outer = branch.outer.as_deref().cloned();
        let mut scope = match &outer {
            // Within another branch, what comes together stays within it.
            Some(outer) => {
                json!({"input": self.scope["input"], "state": self.scope["state"], "output": outer.output})
            }
            None => self.scope.clone(),
        };
        join::merge(&mut scope, fan_in.merge.as_ref(), branches);
        self.scope["state"] = scope["state"].take();
        let outer = match outer {
            Some(mut outer) => {
                outer.output = scope["output"].take();
                Some(outer)
            }
            None => {
                self.scope["output"] = scope["output"].take();
                None
            }
        };
        let path = format!("{}.{}:{to}", branch.path, branch.group);
        let next = self.create(to.to_string(), Some(branch.origin), path, outer, branch.taken, step)?;
        self.enter(definitions, next, step)
    }

    fn complete(&mut self, step: &mut WorkStep) -> Result<(), Failure> {
        let output = if self.workflow.output_mapping.is_empty() {
            self.scope["output"].clone()
        } else {
            let mut output = json!({});
            for (path, expression) in &self.workflow.output_mapping {
                let value = expression.evaluate(&self.scope).map_err(|error| {
                    Failure::business(
                        ErrorCode::ExecutionFailed,
                        format!("the output of the workflow: {error}"),
                    )
                })?;
                put(&mut output, path.strip_prefix("output.").unwrap_or(path), value);
            }
            output
        };
        if let Some(schema) = &self.workflow.output_schema {
            let violations = schema::violations(schema, &output);
            if !violations.is_empty() {
                let message = format!("what the workflow returned does not fit: {}", violations.join("; "));
                return Err(Failure::business(ErrorCode::ExecutionFailed, message));
            }
        }
        self.ended = true;
        step.events.push(Payload::WorkflowCompleted(WorkflowCompleted {
            turn_id: self.turn(),
            workflow_id: crate::ids::slug(&self.workflow.name).into(),
            run_id: self.context.run.0.clone(),
            origin: self.context.origin,
            output: output.clone(),
        }));
        step.effects.push(WorkEffect::Done(Ok(output)));
        Ok(())
    }

    /// The run fails: what else goes on is given up.
    fn fail(&mut self, failure: Failure, step: &mut WorkStep) {
        let running: Vec<_> =
            self.tokens.iter().filter(|token| !token.status.is_terminal()).map(|token| token.id).collect();
        for id in running {
            self.cancel(id, step);
        }
        self.ended = true;
        step.events.push(Payload::WorkflowFailed(WorkflowFailed {
            turn_id: self.turn(),
            workflow_id: crate::ids::slug(&self.workflow.name).into(),
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
        if let Some(conversation) = self.asks_in(id) {
            step.effects.push(WorkEffect::CancelAgent { conversation });
        }
        self.change(id, TokenStatus::Cancelled, step);
    }

    fn change(&mut self, id: TokenId, to: TokenStatus, step: &mut WorkStep) {
        let (turn_id, run_id, token_id) = (self.turn(), self.context.run.0.clone(), self.token_name(id));
        let Some(token) = self.tokens.get_mut(id.0 as usize) else { return };
        let from = std::mem::replace(&mut token.status, to);
        step.events.push(Payload::TokenStatusChanged(TokenStatusChanged {
            turn_id,
            run_id,
            token_id,
            from,
            to,
        }));
    }

    fn take_output(&mut self, id: TokenId, node: &Node, output: Value) -> Result<(), Failure> {
        let mut scope = self.scope_of(id);
        put(&mut scope, "result", output.clone());
        if node.output_mapping.is_empty() {
            put(&mut scope, "output", output);
        }
        for (path, expression) in &node.output_mapping {
            let value = computed(expression, &scope, node)?;
            put(&mut scope, path, value);
        }
        // What a branch puts out is its own until branches come together; the state is everybody's.
        self.scope["state"] = scope["state"].take();
        match &mut self.tokens[id.0 as usize].branch {
            Some(branch) => branch.output = scope["output"].take(),
            None => self.scope["output"] = scope["output"].take(),
        }
        Ok(())
    }

    /// What expressions of a token see.
    fn scope_of(&self, id: TokenId) -> Value {
        let mut scope = self.scope.clone();
        let branch = self.token(id).and_then(|token| token.branch.as_ref());
        if let Some(branch) = branch {
            scope["output"] = branch.output.clone();
            scope["branch"] = json!({"index": branch.index, "total": branch.total});
            let mut around = Some(branch);
            while let Some(inner) = around {
                if let Some((name, item)) = &inner.item
                    && scope.get(name).is_none()
                {
                    scope[name] = item.clone();
                }
                around = inner.outer.as_deref();
            }
        }
        scope
    }

    /// The conversation that a token which stands at an agent opens.
    fn asking(&self, id: TokenId) -> ConversationId {
        ConversationId(self.token_name(id))
    }

    /// The conversation in which a token waits for an agent.
    fn asks_in(&self, id: TokenId) -> Option<ConversationId> {
        let token = self.token(id)?;
        match token.status {
            TokenStatus::WaitingForAgent => Some(self.asking(id)),
            TokenStatus::Executing => token.task.as_ref()?.asks_in().cloned(),
            _ => None,
        }
    }

    fn token(&self, id: TokenId) -> Option<&Token> {
        self.tokens.get(id.0 as usize)
    }

    fn node(&self, name: &str) -> Option<&Node> {
        self.workflow.nodes.iter().find(|node| node.name == name)
    }

    fn token_name(&self, id: TokenId) -> Arc<str> {
        format!("{}-n{}", self.context.run, id.0).into()
    }

    fn turn(&self) -> Option<Arc<str>> {
        self.context.turn.as_ref().map(|turn| turn.0.clone())
    }
}

fn join_name(branch: &Branch, to: &str) -> String {
    format!("{} {} {to}", branch.origin.0, branch.group)
}

fn computed(expression: &Expression, scope: &Value, node: &Node) -> Result<Value, Failure> {
    let wrong = |error| Failure::business(ErrorCode::ExecutionFailed, format!("node {}: {error}", node.name));
    expression.evaluate(scope).map_err(wrong)
}
