//! Workflows, their tokens, tasks, steps and actions begin once, go on in their order, and end once.

use std::collections::{BTreeMap, BTreeSet};

use super::{Found, InvariantOptions};
use crate::{
    ActionStarted, ErrorInfo, Payload, TaskStarted, TaskStep, TokenStatus, View, WorkOrigin, WorkflowStarted,
};

/// Where a task stands.
enum TaskPlace<'a> {
    /// Between two steps.
    Between,
    /// In a step whose action has not begun.
    Step(&'a TaskStep),
    /// In an action.
    Action(&'a TaskStep, &'a ActionStarted),
    /// Behind an action that completed or failed.
    Settled { step: &'a TaskStep, failed: bool },
    /// It has ended.
    Ended,
}

struct TaskSeen<'a> {
    start: &'a TaskStarted,
    place: TaskPlace<'a>,
    steps: u32,
    remembered: bool,
    sequence: u64,
}

struct WorkflowSeen<'a> {
    start: &'a WorkflowStarted,
    ended: bool,
    sequence: u64,
}

struct TokenSeen<'a> {
    run: &'a str,
    status: TokenStatus,
    sequence: u64,
}

#[derive(Default)]
struct Seen<'a> {
    workflows: BTreeMap<&'a str, WorkflowSeen<'a>>,
    tokens: BTreeMap<&'a str, TokenSeen<'a>>,
    tasks: BTreeMap<&'a str, TaskSeen<'a>>,
    /// The workflows that hooks have started, by their runs, and whether the hook is over.
    hooks: BTreeMap<&'a str, (&'a str, bool)>,
    /// What was stopped; whatever began for it may have no end.
    stopped: BTreeSet<&'a str>,
}

pub(super) fn check(view: &View<'_>, _options: &InvariantOptions, found: &mut Found) {
    let mut seen = Seen::default();
    for record in view.records() {
        if let Err(problem) = seen.take(&record.payload, record.sequence) {
            found.add(problem, [record.sequence]);
        }
    }
    let is_stopped = |id: &str| seen.stopped.iter().any(|stopped| id.starts_with(stopped));
    let open = seen.workflows.iter().filter(|(_, run)| !run.ended).map(|(id, run)| (*id, run.sequence));
    let tasks = seen.tasks.iter().filter(|(_, task)| !matches!(task.place, TaskPlace::Ended));
    let tasks = tasks.map(|(id, task)| (*id, task.sequence));
    let tokens = seen.tokens.iter().filter(|(_, token)| !token.status.is_terminal());
    let tokens = tokens.map(|(id, token)| (*id, token.sequence));
    for (id, sequence) in open.chain(tasks).chain(tokens).filter(|(id, _)| !is_stopped(id)) {
        found.add(format!("{id} has begun and not ended"), [sequence]);
    }
}

impl<'a> Seen<'a> {
    fn take(&mut self, payload: &'a Payload, sequence: u64) -> Result<(), String> {
        match payload {
            // Turns that fail of themselves have nothing under way, or give it up call by call.
            Payload::TurnFailed(p) => {
                let code = p.error.code.as_deref();
                if !matches!(code, Some("CONTEXT_ASSEMBLY_FAILED" | "LLM_FAILED")) {
                    self.stopped.insert(&p.turn_id);
                }
            }
            Payload::ContextAssemblyStarted(p) | Payload::MemoryExtractionStarted(p)
                if self.hooks.insert(&p.run_id, (&p.workflow_id, false)).is_some() =>
            {
                return Err(format!("run {} is started twice", p.run_id));
            }
            Payload::ContextAssemblyCompleted(p) => return self.end_hook(&p.run_id),
            Payload::MemoryExtractionCompleted(p) => return self.end_hook(&p.run_id),
            Payload::ContextAssemblyFailed(p) | Payload::MemoryExtractionFailed(p) => {
                if is_late(&p.error) {
                    self.stopped.insert(&p.run_id);
                }
                if let Some((_, is_over)) = self.hooks.get_mut(&*p.run_id) {
                    *is_over = true;
                }
            }
            Payload::ToolFailed(p) if is_late(&p.error) => drop(self.stopped.insert(&p.tool_call_id)),
            Payload::ToolRetry(p) if is_late(&p.error) => drop(self.stopped.insert(&p.tool_call_id)),
            Payload::AsyncCancelled(p) => drop(self.stopped.insert(&p.operation_id)),
            Payload::WorkflowStarted(p) => return self.begin_workflow(p, sequence),
            Payload::WorkflowCompleted(p) => {
                self.end_workflow(&p.run_id, &p.workflow_id, p.origin)?;
                let open = self
                    .tokens
                    .iter()
                    .find(|(_, token)| *token.run == *p.run_id && !token.status.is_terminal());
                if let Some((token, _)) = open {
                    return Err(format!("run {} completed while token {token} was open", p.run_id));
                }
            }
            Payload::WorkflowFailed(p) => {
                self.stopped.insert(&p.run_id);
                self.end_workflow(&p.run_id, &p.workflow_id, p.origin)?;
            }
            Payload::TokenCreated(p) => {
                self.open_workflow(&p.run_id)?;
                let parent = p.parent_token_id.as_deref();
                let is_known =
                    |parent: &str| self.tokens.get(parent).is_some_and(|token| *token.run == *p.run_id);
                if !parent.is_none_or(is_known) {
                    return Err(format!("the parent of token {} is not known", p.token_id));
                }
                if p.branch_index >= p.branch_total {
                    return Err(format!("token {} is no branch of {}", p.token_id, p.branch_total));
                }
                if parent.is_none() && (p.branch_total, &*p.path_id) != (1, "root") {
                    return Err(format!("token {} is the first and a branch", p.token_id));
                }
                let count = self.tokens.values().filter(|token| *token.run == *p.run_id).count();
                if *p.token_id != format!("{}-n{count}", p.run_id) {
                    return Err(format!("token {} is not token {count} of {}", p.token_id, p.run_id));
                }
                let token = TokenSeen { run: &p.run_id, status: TokenStatus::Pending, sequence };
                self.tokens.insert(&p.token_id, token);
            }
            Payload::TokenStatusChanged(p) => {
                self.open_workflow(&p.run_id)?;
                let working = self.tasks.get(&*p.token_id);
                let working = working.is_some_and(|task| !matches!(task.place, TaskPlace::Ended));
                let token = self.tokens.get_mut(&*p.token_id).filter(|token| *token.run == *p.run_id);
                let Some(token) = token else { return Err(format!("token {} is not known", p.token_id)) };
                if token.status != p.from || token.status.is_terminal() || p.from == p.to {
                    return Err(format!("token {} was {:?} and not {:?}", p.token_id, token.status, p.from));
                }
                token.status = p.to;
                if matches!(p.to, TokenStatus::Cancelled | TokenStatus::TimedOut) {
                    self.stopped.insert(&p.token_id);
                } else if matches!(p.to, TokenStatus::Completed | TokenStatus::Failed) && working {
                    return Err(format!("token {} ended before its task", p.token_id));
                }
            }
            Payload::TaskStarted(p) => {
                let again = self.tasks.get(&*p.run_id).is_some_and(|task| {
                    !matches!(task.place, TaskPlace::Ended) || self.tokens.contains_key(&*p.run_id)
                });
                if again {
                    return Err(format!("task run {} has begun already", p.run_id));
                }
                if let Some(token) = self.tokens.get(&*p.run_id) {
                    let run = self.workflows.get(token.run).map(|run| run.start.origin);
                    let origin = match run {
                        Some(WorkOrigin::Tool) => Some(WorkOrigin::Workflow),
                        other => other,
                    };
                    if token.status != TokenStatus::Executing || origin != Some(p.origin) {
                        return Err(format!("task run {} begins out of place", p.run_id));
                    }
                }
                let place = TaskPlace::Between;
                let task = TaskSeen { start: p, place, steps: 0, remembered: false, sequence };
                self.tasks.insert(&p.run_id, task);
            }
            Payload::TaskStepStarted(p) => {
                let task = self.task(&p.run_id, p.origin)?;
                match task.place {
                    TaskPlace::Between if p.ordinal >= task.steps => {}
                    // It begins again with its first step.
                    TaskPlace::Settled { failed: true, .. } if p.ordinal == 0 => {}
                    _ => return Err(format!("step {} of {} begins out of place", p.step_ref, p.run_id)),
                }
                if p.ordinal >= task.start.step_count {
                    return Err(format!("task run {} has no step {}", p.run_id, p.ordinal));
                }
                task.place = TaskPlace::Step(p);
            }
            Payload::ActionStarted(p) => {
                let task = self.task(&p.run_id, p.origin)?;
                match task.place {
                    TaskPlace::Step(step) if step.step_ref == p.step_ref => {
                        task.place = TaskPlace::Action(step, p);
                        task.remembered = false;
                    }
                    _ => return Err(format!("an action of {} begins out of place", p.run_id)),
                }
            }
            Payload::MemoryWritten(_)
            | Payload::MemoryRead(_)
            | Payload::MemoryDeleted(_)
            | Payload::MemorySearched(_) => {
                let mut using = self.tasks.values_mut().filter(|task| {
                    let uses = |kind: &str| kind.starts_with("memory");
                    !task.remembered && matches!(task.place, TaskPlace::Action(_, p) if uses(&p.kind))
                });
                match using.next() {
                    Some(task) => task.remembered = true,
                    None => return Err("no action uses the memory".to_string()),
                }
            }
            Payload::ActionCompleted(p) => {
                let task = self.task(&p.run_id, p.origin)?;
                match task.place {
                    TaskPlace::Action(step, action) if step.step_ref == p.step_ref => {
                        if action.kind.starts_with("memory") && !task.remembered {
                            return Err(format!("an action of {} left no mark in the memory", p.run_id));
                        }
                        task.place = TaskPlace::Settled { step, failed: false };
                    }
                    _ => return Err(format!("an action of {} ended out of place", p.run_id)),
                }
            }
            Payload::ActionFailed(p) => {
                let task = self.task(&p.run_id, p.origin)?;
                let step = match task.place {
                    TaskPlace::Action(step, _) => Some(step),
                    // What it was to be given could not be computed.
                    TaskPlace::Step(step) if p.error.message.starts_with("the input of step ") => Some(step),
                    // What it returned could not be taken.
                    TaskPlace::Settled { step, failed: false } => Some(step),
                    _ => None,
                };
                let Some(step) = step.filter(|step| step.step_ref == p.step_ref) else {
                    return Err(format!("an action of {} failed out of place", p.run_id));
                };
                task.place = TaskPlace::Settled { step, failed: true };
            }
            Payload::TaskStepCompleted(p) => {
                let task = self.task(&p.run_id, p.origin)?;
                match task.place {
                    TaskPlace::Settled { step, .. }
                        if (&step.step_ref, step.ordinal) == (&p.step_ref, p.ordinal) =>
                    {
                        task.steps = p.ordinal + 1;
                        task.place = TaskPlace::Between;
                    }
                    _ => return Err(format!("step {} of {} ended out of place", p.step_ref, p.run_id)),
                }
            }
            Payload::TaskCompleted(p) => {
                let task = self.task(&p.run_id, p.origin)?;
                if !matches!(task.place, TaskPlace::Between) || task.start.task_id != p.task_id {
                    return Err(format!("task run {} completed out of place", p.run_id));
                }
                task.place = TaskPlace::Ended;
            }
            Payload::TaskFailed(p) => {
                let task = self.task(&p.run_id, p.origin)?;
                let is_broken_off = matches!(task.place, TaskPlace::Step(_) | TaskPlace::Action(..));
                if task.start.task_id != p.task_id || (is_broken_off && !is_late(&p.error)) {
                    return Err(format!("task run {} failed out of place", p.run_id));
                }
                task.place = TaskPlace::Ended;
            }
            _ => {}
        }
        Ok(())
    }

    fn begin_workflow(&mut self, start: &'a WorkflowStarted, sequence: u64) -> Result<(), String> {
        let is_hook = matches!(start.origin, WorkOrigin::ContextAssembly | WorkOrigin::MemoryExtraction);
        let is_part = self.workflows.keys().any(|run| start.run_id.starts_with(*run));
        let expected = self.hooks.get(&*start.run_id).map(|(workflow, _)| *workflow);
        if is_hook && !is_part && expected != Some(&*start.workflow_id) {
            return Err(format!("no hook has started run {}", start.run_id));
        }
        let seen = WorkflowSeen { start, ended: false, sequence };
        match self.workflows.insert(&start.run_id, seen) {
            None => Ok(()),
            Some(_) => Err(format!("run {} has begun already", start.run_id)),
        }
    }

    fn open_workflow(&self, run: &str) -> Result<(), String> {
        match self.workflows.get(run).is_some_and(|run| !run.ended) {
            true => Ok(()),
            false => Err(format!("run {run} does not go on")),
        }
    }

    /// A hook is over when its workflow is.
    fn end_hook(&self, run: &str) -> Result<(), String> {
        match self.workflows.get(run).is_some_and(|run| run.ended) {
            true => Ok(()),
            false => Err(format!("the hook of run {run} is over before it")),
        }
    }

    fn end_workflow(&mut self, run: &str, workflow: &str, origin: WorkOrigin) -> Result<(), String> {
        self.open_workflow(run)?;
        let Some(seen) = self.workflows.get_mut(run) else { return Ok(()) };
        seen.ended = true;
        if self.hooks.get(run).is_some_and(|(_, is_over)| *is_over) {
            return Err(format!("the hook of run {run} was over before it"));
        }
        match (&*seen.start.workflow_id, seen.start.origin) == (workflow, origin) {
            true => Ok(()),
            false => Err(format!("run {run} is one of {}", seen.start.workflow_id)),
        }
    }

    /// A task that goes on.
    fn task(&mut self, run: &str, origin: WorkOrigin) -> Result<&mut TaskSeen<'a>, String> {
        let task = self.tasks.get_mut(run).filter(|task| !matches!(task.place, TaskPlace::Ended));
        task.filter(|task| task.start.origin == origin)
            .ok_or_else(|| format!("task run {run} does not go on"))
    }
}

/// Whether something failed because its time was over, so that what ran for it was stopped.
fn is_late(error: &ErrorInfo) -> bool {
    error.code.as_deref() == Some("TIMEOUT")
}
