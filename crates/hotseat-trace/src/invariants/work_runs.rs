//! Workflows, tokens, tasks, steps and actions start once, run in order and end once.

use std::collections::{BTreeMap, BTreeSet};

use super::violation::{EventViolation, ViolationCollector, require};
use crate::{
    ActionCompleted, ActionFailed, ActionStarted, ConversationView, ErrorInfo, Payload, TaskCompleted,
    TaskFailed, TaskStarted, TaskStep, TokenCreated, TokenStatus, TokenStatusChanged, WorkOrigin,
    WorkflowCompleted, WorkflowStarted,
};

/// Position within a task.
enum TaskPhase<'a> {
    /// Between two steps.
    Between,
    /// In a step whose action has not started.
    Step(&'a TaskStep),
    /// In an action.
    Action(&'a TaskStep, &'a ActionStarted),
    /// After an action that completed or failed.
    Settled { step: &'a TaskStep, failed: bool },
    /// The task has ended.
    Ended,
}

struct TaskProgress<'a> {
    start: &'a TaskStarted,
    phase: TaskPhase<'a>,
    steps: u32,
    used_memory: bool,
    sequence: u64,
}

struct WorkflowProgress<'a> {
    start: &'a WorkflowStarted,
    ended: bool,
    sequence: u64,
}

struct TokenProgress<'a> {
    run: &'a str,
    status: TokenStatus,
    sequence: u64,
}

#[derive(Default)]
struct WorkProgress<'a> {
    workflows: BTreeMap<&'a str, WorkflowProgress<'a>>,
    tokens: BTreeMap<&'a str, TokenProgress<'a>>,
    tasks: BTreeMap<&'a str, TaskProgress<'a>>,
    /// Workflows started by hooks, by run id, and whether the hook has ended.
    hooks: BTreeMap<&'a str, (&'a str, bool)>,
    /// Ids of stopped work; work started for it may have no end.
    stopped: BTreeSet<&'a str>,
}

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let mut seen = WorkProgress::default();
    for record in view.records() {
        if let Err(problem) = seen.apply(&record.payload, record.sequence) {
            found.add(problem.to_string(), [record.sequence]);
        }
    }
    let is_stopped = |id: &str| seen.stopped.iter().any(|stopped| id.starts_with(stopped));
    let open = seen.workflows.iter().filter(|(_, run)| !run.ended).map(|(id, run)| (*id, run.sequence));
    let tasks = seen.tasks.iter().filter(|(_, task)| !matches!(task.phase, TaskPhase::Ended));
    let tasks = tasks.map(|(id, task)| (*id, task.sequence));
    let tokens = seen.tokens.iter().filter(|(_, token)| !token.status.is_terminal());
    let tokens = tokens.map(|(id, token)| (*id, token.sequence));
    for (id, sequence) in open.chain(tasks).chain(tokens).filter(|(id, _)| !is_stopped(id)) {
        found.add(format!("{id} started and did not end"), [sequence]);
    }
}

impl<'a> WorkProgress<'a> {
    fn apply(&mut self, payload: &'a Payload, sequence: u64) -> Result<(), EventViolation> {
        match payload {
            // Turns that fail on their own have no running work, or cancel it call by call.
            Payload::TurnFailed(p) => {
                let code = p.error.code.as_deref();
                if !matches!(code, Some("CONTEXT_ASSEMBLY_FAILED" | "LLM_FAILED")) {
                    self.stopped.insert(&p.turn_id);
                }
            }
            Payload::ContextAssemblyStarted(p) | Payload::MemoryExtractionStarted(p) => {
                let earlier = self.hooks.insert(&p.run_id, (&p.workflow_id, false));
                require(earlier.is_none(), || format!("run {} was started twice", p.run_id))?;
            }
            Payload::ContextAssemblyCompleted(p) => return self.check_hook_end(&p.run_id),
            Payload::MemoryExtractionCompleted(p) => return self.check_hook_end(&p.run_id),
            Payload::ContextAssemblyFailed(p) | Payload::MemoryExtractionFailed(p) => {
                if is_timeout(&p.error) {
                    self.stopped.insert(&p.run_id);
                }
                if let Some((_, is_over)) = self.hooks.get_mut(&*p.run_id) {
                    *is_over = true;
                }
            }
            Payload::ToolFailed(p) if is_timeout(&p.error) => drop(self.stopped.insert(&p.tool_call_id)),
            Payload::ToolRetry(p) if is_timeout(&p.error) => drop(self.stopped.insert(&p.tool_call_id)),
            Payload::AsyncCancelled(p) => drop(self.stopped.insert(&p.operation_id)),
            Payload::WorkflowStarted(p) => return self.start_workflow(p, sequence),
            Payload::WorkflowCompleted(p) => self.complete_workflow(p)?,
            Payload::WorkflowFailed(p) => {
                self.stopped.insert(&p.run_id);
                self.end_workflow(&p.run_id, &p.workflow_id, p.origin)?;
            }
            Payload::TokenCreated(p) => self.create_token(p, sequence)?,
            Payload::TokenStatusChanged(p) => self.change_token_status(p)?,
            Payload::TaskStarted(p) => self.start_task(p, sequence)?,
            Payload::TaskStepStarted(p) => self.start_step(p)?,
            Payload::ActionStarted(p) => self.start_action(p)?,
            Payload::MemoryWritten(_)
            | Payload::MemoryRead(_)
            | Payload::MemoryDeleted(_)
            | Payload::MemorySearched(_) => self.use_memory()?,
            Payload::ActionCompleted(p) => self.complete_action(p)?,
            Payload::ActionFailed(p) => self.fail_action(p)?,
            Payload::TaskStepCompleted(p) => self.complete_step(p)?,
            Payload::TaskCompleted(p) => self.complete_task(p)?,
            Payload::TaskFailed(p) => self.fail_task(p)?,
            _ => {}
        }
        Ok(())
    }

    fn complete_workflow(&mut self, p: &'a WorkflowCompleted) -> Result<(), EventViolation> {
        self.end_workflow(&p.run_id, &p.workflow_id, p.origin)?;
        let mut tokens = self.tokens.iter();
        let open = tokens.find(|(_, token)| *token.run == *p.run_id && !token.status.is_terminal());
        let id = open.map_or("", |(id, _)| *id);
        require(open.is_none(), || format!("run {} completed while token {id} was open", p.run_id))
    }

    fn create_token(&mut self, p: &'a TokenCreated, sequence: u64) -> Result<(), EventViolation> {
        self.require_open_workflow(&p.run_id)?;
        let parent = p.parent_token_id.as_deref();
        let is_known = |parent: &str| self.tokens.get(parent).is_some_and(|token| *token.run == *p.run_id);
        require(parent.is_none_or(is_known), || format!("the parent of token {} is unknown", p.token_id))?;
        require(p.branch_index < p.branch_total, || {
            format!("token {} exceeds the branch count {}", p.token_id, p.branch_total)
        })?;
        require(parent.is_some() || (p.branch_total, &*p.path_id) == (1, "root"), || {
            format!("token {} is a root token and a branch", p.token_id)
        })?;
        let count = self.tokens.values().filter(|token| *token.run == *p.run_id).count();
        require(*p.token_id == *format!("{}-n{count}", p.run_id), || {
            format!("token {} is not token {count} of {}", p.token_id, p.run_id)
        })?;
        let token = TokenProgress { run: &p.run_id, status: TokenStatus::Pending, sequence };
        self.tokens.insert(&p.token_id, token);
        Ok(())
    }

    fn change_token_status(&mut self, p: &'a TokenStatusChanged) -> Result<(), EventViolation> {
        self.require_open_workflow(&p.run_id)?;
        let working = self.tasks.get(&*p.token_id);
        let working = working.is_some_and(|task| !matches!(task.phase, TaskPhase::Ended));
        let token = self.tokens.get_mut(&*p.token_id).filter(|token| *token.run == *p.run_id);
        let token = token.ok_or_else(|| EventViolation(format!("token {} is unknown", p.token_id)))?;
        require(token.status == p.from && !token.status.is_terminal() && p.from != p.to, || {
            format!("token {} had status {:?}, not {:?}", p.token_id, token.status, p.from)
        })?;
        token.status = p.to;
        if matches!(p.to, TokenStatus::Cancelled | TokenStatus::TimedOut) {
            self.stopped.insert(&p.token_id);
        }
        let has_ended = matches!(p.to, TokenStatus::Completed | TokenStatus::Failed);
        require(!has_ended || !working, || format!("token {} ended before its task", p.token_id))
    }

    fn start_task(&mut self, p: &'a TaskStarted, sequence: u64) -> Result<(), EventViolation> {
        let again = self.tasks.get(&*p.run_id).is_some_and(|task| {
            !matches!(task.phase, TaskPhase::Ended) || self.tokens.contains_key(&*p.run_id)
        });
        require(!again, || format!("task run {} has already started", p.run_id))?;
        if let Some(token) = self.tokens.get(&*p.run_id) {
            let run = self.workflows.get(token.run).map(|run| run.start.origin);
            let origin = match run {
                Some(WorkOrigin::Tool) => Some(WorkOrigin::Workflow),
                other => other,
            };
            require(token.status == TokenStatus::Executing && origin == Some(p.origin), || {
                format!("task run {} starts at the wrong point", p.run_id)
            })?;
        }
        let place = TaskPhase::Between;
        let task = TaskProgress { start: p, phase: place, steps: 0, used_memory: false, sequence };
        self.tasks.insert(&p.run_id, task);
        Ok(())
    }

    fn start_step(&mut self, p: &'a TaskStep) -> Result<(), EventViolation> {
        let task = self.running_task(&p.run_id, p.origin)?;
        let may_start = match task.phase {
            TaskPhase::Between => p.ordinal >= task.steps,
            // A retried task starts again at its first step.
            TaskPhase::Settled { failed, .. } => failed && p.ordinal == 0,
            _ => false,
        };
        require(may_start, || format!("step {} of {} starts at the wrong point", p.step_ref, p.run_id))?;
        let is_known = p.ordinal < task.start.step_count;
        require(is_known, || format!("task run {} has no step {}", p.run_id, p.ordinal))?;
        task.phase = TaskPhase::Step(p);
        Ok(())
    }

    fn start_action(&mut self, p: &'a ActionStarted) -> Result<(), EventViolation> {
        let task = self.running_task(&p.run_id, p.origin)?;
        match task.phase {
            TaskPhase::Step(step) if step.step_ref == p.step_ref => {
                task.phase = TaskPhase::Action(step, p);
                task.used_memory = false;
                Ok(())
            }
            _ => Err(EventViolation(format!("an action of {} starts at the wrong point", p.run_id))),
        }
    }

    /// Assigns a memory event to the action that runs.
    fn use_memory(&mut self) -> Result<(), EventViolation> {
        let mut using = self.tasks.values_mut().filter(|task| {
            let uses = |kind: &str| kind.starts_with("memory");
            !task.used_memory && matches!(task.phase, TaskPhase::Action(_, p) if uses(&p.kind))
        });
        let is_used = using.next().map(|task| task.used_memory = true);
        require(is_used.is_some(), || "a memory event belongs to no action")
    }

    fn complete_action(&mut self, p: &'a ActionCompleted) -> Result<(), EventViolation> {
        let task = self.running_task(&p.run_id, p.origin)?;
        match task.phase {
            TaskPhase::Action(step, action) if step.step_ref == p.step_ref => {
                let needs_memory = action.kind.starts_with("memory");
                require(!needs_memory || task.used_memory, || {
                    format!("an action of {} has no memory event", p.run_id)
                })?;
                task.phase = TaskPhase::Settled { step, failed: false };
                Ok(())
            }
            _ => Err(EventViolation(format!("an action of {} ended at the wrong point", p.run_id))),
        }
    }

    fn fail_action(&mut self, p: &'a ActionFailed) -> Result<(), EventViolation> {
        let task = self.running_task(&p.run_id, p.origin)?;
        let step = match task.phase {
            TaskPhase::Action(step, _) => Some(step),
            // The input of the action could not be evaluated.
            TaskPhase::Step(step) if p.error.message.starts_with("the input of step ") => Some(step),
            // The output of the action was not accepted.
            TaskPhase::Settled { step, failed: false } => Some(step),
            _ => None,
        };
        let Some(step) = step.filter(|step| step.step_ref == p.step_ref) else {
            return Err(EventViolation(format!("an action of {} failed at the wrong point", p.run_id)));
        };
        task.phase = TaskPhase::Settled { step, failed: true };
        Ok(())
    }

    fn complete_step(&mut self, p: &'a TaskStep) -> Result<(), EventViolation> {
        let task = self.running_task(&p.run_id, p.origin)?;
        match task.phase {
            TaskPhase::Settled { step, .. } if (&step.step_ref, step.ordinal) == (&p.step_ref, p.ordinal) => {
                task.steps = p.ordinal + 1;
                task.phase = TaskPhase::Between;
                Ok(())
            }
            _ => Err(EventViolation(format!("step {} of {} ended at the wrong point", p.step_ref, p.run_id))),
        }
    }

    fn complete_task(&mut self, p: &'a TaskCompleted) -> Result<(), EventViolation> {
        let task = self.running_task(&p.run_id, p.origin)?;
        require(matches!(task.phase, TaskPhase::Between) && task.start.task_id == p.task_id, || {
            format!("task run {} completed at the wrong point", p.run_id)
        })?;
        task.phase = TaskPhase::Ended;
        Ok(())
    }

    fn fail_task(&mut self, p: &'a TaskFailed) -> Result<(), EventViolation> {
        let task = self.running_task(&p.run_id, p.origin)?;
        let is_broken_off = matches!(task.phase, TaskPhase::Step(_) | TaskPhase::Action(..));
        let may_fail = task.start.task_id == p.task_id && (!is_broken_off || is_timeout(&p.error));
        require(may_fail, || format!("task run {} failed at the wrong point", p.run_id))?;
        task.phase = TaskPhase::Ended;
        Ok(())
    }

    fn start_workflow(&mut self, start: &'a WorkflowStarted, sequence: u64) -> Result<(), EventViolation> {
        let is_hook = matches!(start.origin, WorkOrigin::ContextAssembly | WorkOrigin::MemoryExtraction);
        let is_part = self.workflows.keys().any(|run| start.run_id.starts_with(*run));
        let expected = self.hooks.get(&*start.run_id).map(|(workflow, _)| *workflow);
        require(!is_hook || is_part || expected == Some(&*start.workflow_id), || {
            format!("run {} was not started by a hook", start.run_id)
        })?;
        let earlier =
            self.workflows.insert(&start.run_id, WorkflowProgress { start, ended: false, sequence });
        require(earlier.is_none(), || format!("run {} has already started", start.run_id))
    }

    fn require_open_workflow(&self, run: &str) -> Result<(), EventViolation> {
        let is_open = self.workflows.get(run).is_some_and(|run| !run.ended);
        require(is_open, || format!("run {run} is not running"))
    }

    /// Checks that the workflow of a hook has ended before the hook.
    fn check_hook_end(&self, run: &str) -> Result<(), EventViolation> {
        let has_ended = self.workflows.get(run).is_some_and(|run| run.ended);
        require(has_ended, || format!("the hook of run {run} ended before the run"))
    }

    fn end_workflow(&mut self, run: &str, workflow: &str, origin: WorkOrigin) -> Result<(), EventViolation> {
        self.require_open_workflow(run)?;
        let Some(seen) = self.workflows.get_mut(run) else { return Ok(()) };
        seen.ended = true;
        let is_hook_over = self.hooks.get(run).is_some_and(|(_, is_over)| *is_over);
        require(!is_hook_over, || format!("the hook of run {run} ended before the run"))?;
        require((&*seen.start.workflow_id, seen.start.origin) == (workflow, origin), || {
            format!("run {run} belongs to workflow {} or has another origin", seen.start.workflow_id)
        })
    }

    /// Returns a running task.
    fn running_task(
        &mut self,
        run: &str,
        origin: WorkOrigin,
    ) -> Result<&mut TaskProgress<'a>, EventViolation> {
        let task = self.tasks.get_mut(run).filter(|task| !matches!(task.phase, TaskPhase::Ended));
        task.filter(|task| task.start.origin == origin)
            .ok_or_else(|| EventViolation(format!("task run {run} is not running")))
    }
}

/// Returns true if the error is a timeout, in which case running work was stopped.
fn is_timeout(error: &ErrorInfo) -> bool {
    error.code.as_deref() == Some("TIMEOUT")
}
