//! State machine of a task.

use std::sync::Arc;

use hotseat_trace::{
    ActionCompleted, ActionFailed, ActionStarted, Payload, TaskCompleted, TaskFailed, TaskStarted, TaskStep,
};
use serde_json::{Map, Value, json};

use super::scope::WorkScope;
use super::{TokenId, WorkContext, WorkEffect};
use crate::conversation::built_in_request;
use crate::definition::{
    ContextAction, MemoryAction, MockAction, StepAction, StepBranch, StepDefinition, StepFailurePolicy,
    TaskDefinition, definitions, schema,
};
use crate::expression::{Expression, set_at_path};
use crate::failure::{ErrorCode, InfrastructureKind, WorkFailure, WorkResult};
use crate::ids::{AgentId, ConversationId};
use crate::random::DeterministicRandom;

/// Run of a task.
#[derive(Debug, Clone)]
pub struct TaskRun {
    context: WorkContext,
    task: Arc<TaskDefinition>,
    /// The id of the task.
    id: Arc<str>,
    scope: WorkScope,
    /// Index of the current step.
    index: usize,
    /// Attempt at the whole task, from 1.
    attempt: u32,
    waiting: PendingOperation,
    /// Total requested waiting time, in milliseconds.
    elapsed: u64,
}

/// Operation that a run waits for.
#[derive(Debug, Clone, PartialEq)]
enum PendingOperation {
    Nothing,
    /// The duration of a mock, which then returns this result.
    Mock(WorkResult),
    /// The agent's memory.
    Memory,
    Agent(ConversationId),
    /// The delay before the next attempt.
    Retry,
    /// The time limit of the task.
    Deadline,
}

/// Requirement for continuing a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskNeed {
    /// A delay, in milliseconds.
    Wait(u64),
    /// Access to the agent's memory.
    Memory(MemoryAction, Value),
    /// The answer of an agent to an input, in this conversation.
    Agent(ConversationId, AgentId, Value),
    /// Nothing: the task has ended.
    Done(WorkResult),
}

impl TaskNeed {
    /// Converts the requirement into an effect of a token.
    pub(super) fn into_effect(self, token: TokenId) -> WorkEffect {
        match self {
            TaskNeed::Wait(millis) => WorkEffect::Wait { token, millis },
            TaskNeed::Memory(action, input) => WorkEffect::Memory { token, action, input },
            TaskNeed::Agent(conversation, agent, input) => {
                WorkEffect::Agent { token, conversation, agent, input }
            }
            TaskNeed::Done(result) => WorkEffect::Done(result),
        }
    }
}

impl TaskRun {
    /// Creates a run that has not started.
    pub fn new(context: WorkContext, task: Arc<TaskDefinition>, input: Arc<Value>) -> Self {
        let (id, scope) = (crate::ids::slug(&task.name).into(), WorkScope::with_input(input));
        let waiting = PendingOperation::Nothing;
        TaskRun { context, task, id, scope, index: 0, attempt: 1, waiting, elapsed: 0 }
    }

    /// Starts the run.
    pub fn start(&mut self, out: &mut Vec<Payload>) -> TaskNeed {
        out.push(Payload::TaskStarted(TaskStarted {
            turn_id: self.turn(),
            task_id: self.id.clone(),
            run_id: self.context.run.0.clone(),
            origin: self.context.origin,
            step_count: u32::try_from(self.task.steps.len()).unwrap_or(u32::MAX),
            input: self.scope.shared("input"),
        }));
        if let Some(schema) = &self.task.input_schema {
            let violations = schema::violations(schema, &self.scope.shared("input"));
            if !violations.is_empty() {
                let failure = WorkFailure::business(ErrorCode::InvalidInput, violations.join("; "));
                return self.end(Err(failure), out);
            }
        }
        self.run_steps(out)
    }

    /// Continues after a requested delay.
    pub fn resume_after_wait(&mut self, out: &mut Vec<Payload>) -> TaskNeed {
        match std::mem::replace(&mut self.waiting, PendingOperation::Nothing) {
            PendingOperation::Mock(result) => {
                self.finish_action(result, out).unwrap_or_else(|| self.run_steps(out))
            }
            PendingOperation::Retry => self.run_steps(out),
            PendingOperation::Deadline => {
                let limit = self.task.timeout_ms.unwrap_or_default();
                let message = format!("the task exceeded its time limit of {limit} ms");
                self.end(Err(WorkFailure::infrastructure(InfrastructureKind::Timeout, message)), out)
            }
            PendingOperation::Memory | PendingOperation::Agent(_) | PendingOperation::Nothing => {
                self.fail_unexpected(out)
            }
        }
    }

    /// Continues with a requested answer.
    pub fn resume_with_answer(&mut self, result: WorkResult, out: &mut Vec<Payload>) -> TaskNeed {
        match std::mem::replace(&mut self.waiting, PendingOperation::Nothing) {
            PendingOperation::Memory | PendingOperation::Agent(_) => {
                self.finish_action(result, out).unwrap_or_else(|| self.run_steps(out))
            }
            PendingOperation::Mock(_)
            | PendingOperation::Retry
            | PendingOperation::Deadline
            | PendingOperation::Nothing => self.fail_unexpected(out),
        }
    }

    /// Returns the conversation in which the run waits for an agent.
    pub(super) fn agent_conversation(&self) -> Option<&ConversationId> {
        match &self.waiting {
            PendingOperation::Agent(conversation) => Some(conversation),
            PendingOperation::Nothing
            | PendingOperation::Mock(_)
            | PendingOperation::Memory
            | PendingOperation::Retry
            | PendingOperation::Deadline => None,
        }
    }

    fn fail_unexpected(&mut self, out: &mut Vec<Payload>) -> TaskNeed {
        self.end(
            Err(WorkFailure::business(
                ErrorCode::InternalError,
                "the task received an answer that it did not request",
            )),
            out,
        )
    }

    /// Runs steps until one needs an answer or a delay.
    fn run_steps(&mut self, out: &mut Vec<Payload>) -> TaskNeed {
        let task = self.task.clone();
        while let Some(step) = task.steps.get(self.index) {
            let branch = match &step.condition {
                None => StepBranch::Continue,
                Some(condition) => match condition.condition.is_truthy(&self.scope) {
                    Ok(true) => condition.then,
                    Ok(false) => condition.otherwise,
                    Err(error) => {
                        return self.fail(format!("condition of step {}: {error}", step.name), out);
                    }
                },
            };
            match branch {
                StepBranch::Continue => {}
                StepBranch::Skip => {
                    self.index += 1;
                    continue;
                }
                StepBranch::Succeed => break,
                StepBranch::Fail => {
                    return self.fail(format!("the condition of step {} failed the task", step.name), out);
                }
            }
            if let Some(need) = self.begin_action(step, out) {
                return need;
            }
        }
        let output = self.scope.shared("output");
        if let Some(schema) = &task.output_schema {
            let violations = schema::violations(schema, &output);
            if !violations.is_empty() {
                let message =
                    format!("the output of the task does not match its schema: {}", violations.join("; "));
                return self.fail(message, out);
            }
        }
        self.end(Ok(output), out)
    }

    /// Starts the action of a step. Returns its requirement unless the action ends immediately and the task
    /// continues.
    fn begin_action(&mut self, step: &StepDefinition, out: &mut Vec<Payload>) -> Option<TaskNeed> {
        out.push(Payload::TaskStepStarted(self.step_event(step)));
        let input = match self.action_input(step) {
            Ok(input) => input,
            Err(failure) => return self.finish_action(Err(failure), out),
        };
        out.push(Payload::ActionStarted(ActionStarted {
            turn_id: self.turn(),
            run_id: self.context.run.0.clone(),
            origin: self.context.origin,
            step_ref: step.name.clone(),
            kind: step.action.name().into(),
            input: input.clone(),
        }));
        let result = match &step.action {
            StepAction::Mock(mock) => {
                let mut random = self.random(mock, step);
                let result = self.mock_result(mock, &input, &mut random);
                let (from, to) = mock.delay_ms;
                if to > 0 {
                    let millis = random.between(from, to);
                    self.waiting = PendingOperation::Mock(result);
                    return Some(self.wait(millis));
                }
                result
            }
            StepAction::Echo => Ok(input),
            StepAction::Fail(fail) => Err(fail.failure.clone()),
            StepAction::Context(context) => Ok(merge_members(context, input)),
            StepAction::Assemble(assemble) => {
                Ok(Arc::new(built_in_request(&input, assemble.append_system.as_deref())))
            }
            StepAction::Memory(action) => {
                self.waiting = PendingOperation::Memory;
                return Some(TaskNeed::Memory(*action, Arc::unwrap_or_clone(input)));
            }
            StepAction::Agent(reference) => {
                let conversation = self.conversation_id();
                self.waiting = PendingOperation::Agent(conversation.clone());
                let input = Arc::unwrap_or_clone(input);
                return Some(TaskNeed::Agent(conversation, definitions::agent_id(reference), input));
            }
            StepAction::Custom(custom) => (custom.function)(&input).map(Arc::new),
        };
        self.finish_action(result, out)
    }

    /// Handles the result of the current action. Returns a requirement unless the task continues.
    fn finish_action(&mut self, result: WorkResult, out: &mut Vec<Payload>) -> Option<TaskNeed> {
        let task = self.task.clone();
        let Some(step) = task.steps.get(self.index) else { return Some(self.fail_unexpected(out)) };
        let taken = result.and_then(|output| {
            out.push(Payload::ActionCompleted(ActionCompleted {
                turn_id: self.turn(),
                run_id: self.context.run.0.clone(),
                origin: self.context.origin,
                step_ref: step.name.clone(),
                output: output.clone(),
            }));
            self.apply_output(step, output)
        });
        match taken {
            Ok(()) => {}
            Err(failure) => {
                out.push(Payload::ActionFailed(ActionFailed {
                    turn_id: self.turn(),
                    run_id: self.context.run.0.clone(),
                    origin: self.context.origin,
                    step_ref: step.name.clone(),
                    error: failure.info(),
                }));
                let again = match step.on_failure {
                    StepFailurePolicy::Continue => None,
                    StepFailurePolicy::Retry => Some(task.retry.delay(self.attempt)),
                    StepFailurePolicy::Abort if failure.can_retry() => Some(task.retry.delay(self.attempt)),
                    StepFailurePolicy::Abort => Some(None),
                };
                match again {
                    None => self.record_error(&failure),
                    Some(None) => return Some(self.end(Err(failure), out)),
                    Some(Some(delay)) => return Some(self.restart(delay)),
                }
            }
        }
        out.push(Payload::TaskStepCompleted(self.step_event(step)));
        self.index += 1;
        None
    }

    fn restart(&mut self, delay: u64) -> TaskNeed {
        self.attempt += 1;
        self.index = 0;
        self.scope = WorkScope::with_input(self.scope.shared("input"));
        self.waiting = PendingOperation::Retry;
        self.wait(delay)
    }

    /// Requests a delay, limited by the remaining time of the task.
    fn wait(&mut self, millis: u64) -> TaskNeed {
        let left = self.task.timeout_ms.map(|limit| limit.saturating_sub(self.elapsed));
        if let Some(left) = left.filter(|left| millis > *left) {
            self.waiting = PendingOperation::Deadline;
            return TaskNeed::Wait(left);
        }
        self.elapsed += millis;
        TaskNeed::Wait(millis)
    }

    /// Ends the task with a failure that another attempt cannot avoid.
    fn fail(&mut self, message: String, out: &mut Vec<Payload>) -> TaskNeed {
        self.end(Err(WorkFailure::execution(message)), out)
    }

    fn end(&mut self, result: WorkResult, out: &mut Vec<Payload>) -> TaskNeed {
        let task_id = self.id.clone();
        let (turn_id, run_id, origin) = (self.turn(), self.context.run.0.clone(), self.context.origin);
        out.push(match &result {
            Ok(output) => Payload::TaskCompleted(TaskCompleted {
                turn_id,
                task_id,
                run_id,
                origin,
                output: output.clone(),
            }),
            Err(failure) => {
                Payload::TaskFailed(TaskFailed { turn_id, task_id, run_id, origin, error: failure.info() })
            }
        });
        TaskNeed::Done(result)
    }

    fn action_input(&self, step: &StepDefinition) -> WorkResult {
        let compute = |expression: &Expression| {
            let wrong = |error| WorkFailure::execution(format!("input of step {}: {error}", step.name));
            self.scope.evaluate(expression).map_err(wrong)
        };
        // `*` is the whole input, not a member.
        if let Some(whole) = step.input_mapping.get("*") {
            return compute(whole);
        }
        let mut input = Map::new();
        for (member, expression) in &step.input_mapping {
            input.insert(member.clone(), Arc::unwrap_or_clone(compute(expression)?));
        }
        Ok(Arc::new(Value::Object(input)))
    }

    fn apply_output(&mut self, step: &StepDefinition, output: Arc<Value>) -> Result<(), WorkFailure> {
        if step.output_mapping.is_empty() {
            self.scope.set_at_path("state._lastOutput", output);
            return Ok(());
        }
        // All expressions see the scope as it was, with the result.
        let mut scope = self.scope.clone();
        scope.set("result", output);
        let wrong = |error| WorkFailure::execution(format!("output of step {}: {error}", step.name));
        let values = step.output_mapping.iter();
        let values = values.map(|(_, expression)| scope.evaluate(expression).map_err(wrong));
        let values: Vec<Arc<Value>> = values.collect::<Result<_, WorkFailure>>()?;
        drop(scope);
        for ((path, _), value) in step.output_mapping.iter().zip(values) {
            self.scope.set_at_path(path, value);
        }
        Ok(())
    }

    /// Returns the id of the conversation that the current step opens with an agent, in the current attempt.
    fn conversation_id(&self) -> ConversationId {
        let (run, index) = (&self.context.run, self.index);
        ConversationId(match self.attempt {
            0 | 1 => format!("{run}-s{index}").into(),
            later => format!("{run}-s{index}-a{later}").into(),
        })
    }

    fn record_error(&mut self, failure: &WorkFailure) {
        let error = json!({"step": self.task.steps[self.index].name, "message": failure.message()});
        match &mut self.scope.value_mut("state")["_errors"] {
            Value::Array(errors) => errors.push(error),
            other => *other = json!([error]),
        }
    }

    fn random(&self, mock: &MockAction, step: &StepDefinition) -> DeterministicRandom {
        DeterministicRandom::from_seed_and_text(mock.seed, &format!("{} {}", self.context.run, step.name))
    }

    fn mock_result(
        &self,
        mock: &MockAction,
        input: &Arc<Value>,
        random: &mut DeterministicRandom,
    ) -> WorkResult {
        let attempt = self.context.attempt.max(self.attempt);
        if let Some(failure) = &mock.failure
            && mock.failing_attempts.is_none_or(|failing| attempt <= failing)
        {
            return Err(failure.clone());
        }
        let value = match (&mock.returns, &mock.schema) {
            (Some(expression), _) => WorkScope::with_only_input(input.clone())
                .evaluate(expression)
                .map_err(|error| WorkFailure::execution(error.to_string()))?,
            (None, Some(schema)) => Arc::new(schema::generate(schema, random)),
            (None, None) => {
                let message = "the mock has neither a schema nor a result";
                return Err(WorkFailure::business(ErrorCode::InvalidInput, message));
            }
        };
        Ok(if value.is_object() { value } else { Arc::new(json!({"value": *value})) })
    }

    fn step_event(&self, step: &StepDefinition) -> TaskStep {
        TaskStep {
            turn_id: self.turn(),
            run_id: self.context.run.0.clone(),
            origin: self.context.origin,
            step_ref: step.name.clone(),
            ordinal: u32::try_from(self.index).unwrap_or(u32::MAX),
        }
    }

    fn turn(&self) -> Option<Arc<str>> {
        self.context.turn.as_ref().map(|turn| turn.0.clone())
    }
}

fn merge_members(context: &ContextAction, input: Arc<Value>) -> Arc<Value> {
    let Some(merge) = &context.merge else { return input };
    let mut input = Arc::unwrap_or_clone(input);
    let mut list = Vec::new();
    for source in &merge.sources {
        match input.get(source) {
            Some(Value::Array(items)) if merge.flatten => list.extend(items.iter().cloned()),
            Some(value) => list.push(value.clone()),
            None => {}
        }
    }
    set_at_path(&mut input, &merge.target, Value::Array(list));
    Arc::new(input)
}
