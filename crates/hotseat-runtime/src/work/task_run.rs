//! One run of a task.

use std::sync::Arc;

use hotseat_trace::{
    ActionCompleted, ActionFailed, ActionStarted, Payload, TaskCompleted, TaskFailed, TaskStarted, TaskStep,
};
use serde_json::{Map, Value, json};

use super::{TokenId, WorkContext, WorkEffect};
use crate::conversation::built_in;
use crate::definition::{
    Action, Context, Memory, Mock, OnFailure, Step, StepBranch, Task, definitions, schema,
};
use crate::expression::{Expression, put};
use crate::failure::{ErrorCode, Failure, InfrastructureKind};
use crate::ids::{AgentId, ConversationId};
use crate::random::Random;

/// One run of a task.
#[derive(Debug, Clone)]
pub struct TaskRun {
    context: WorkContext,
    task: Arc<Task>,
    /// `input`, `state` and `output`.
    scope: Value,
    /// The step that is being run.
    index: usize,
    /// The attempt at the task as a whole, from 1.
    attempt: u32,
    /// What the run waits for.
    waiting: Waiting,
    /// How long it has waited, in milliseconds.
    elapsed: u64,
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq)]
enum Waiting {
    Nothing,
    /// Its mock takes a while; then this is its result.
    Mock(Result<Value, Failure>),
    /// The agent's memory.
    Memory,
    /// An agent, which answers in this conversation.
    Agent(ConversationId),
    /// The next attempt.
    Retry,
    /// The end of its time.
    Deadline,
}

/// What a task needs to go on.
#[derive(Debug, Clone, PartialEq)]
pub enum Need {
    /// Time, in milliseconds.
    Wait(u64),
    /// The agent's memory.
    Memory(Memory, Value),
    /// The answer of an agent to this, in this conversation.
    Agent(ConversationId, AgentId, Value),
    /// Nothing: it has ended.
    Done(Result<Value, Failure>),
}

impl Need {
    /// The same as asked by a token.
    pub(super) fn effect(self, token: TokenId) -> WorkEffect {
        match self {
            Need::Wait(millis) => WorkEffect::Wait { token, millis },
            Need::Memory(action, input) => WorkEffect::Memory { token, action, input },
            Need::Agent(conversation, agent, input) => {
                WorkEffect::Agent { token, conversation, agent, input }
            }
            Need::Done(result) => WorkEffect::Done(result),
        }
    }
}

impl TaskRun {
    /// A run that has not begun.
    pub fn new(context: WorkContext, task: Arc<Task>, input: Value) -> Self {
        let scope = json!({"input": input, "state": {}, "output": {}});
        TaskRun { context, task, scope, index: 0, attempt: 1, waiting: Waiting::Nothing, elapsed: 0 }
    }

    /// Begins.
    pub fn start(&mut self, out: &mut Vec<Payload>) -> Need {
        out.push(Payload::TaskStarted(TaskStarted {
            turn_id: self.turn(),
            task_id: crate::ids::slug(&self.task.name).into(),
            run_id: self.context.run.0.clone(),
            origin: self.context.origin,
            step_count: u32::try_from(self.task.steps.len()).unwrap_or(u32::MAX),
            input: self.scope["input"].clone(),
        }));
        if let Some(schema) = &self.task.input_schema {
            let violations = schema::violations(schema, &self.scope["input"]);
            if !violations.is_empty() {
                let failure = Failure::business(ErrorCode::InvalidInput, violations.join("; "));
                return self.end(Err(failure), out);
            }
        }
        self.run(out)
    }

    /// Goes on after the time it asked for.
    pub fn waited(&mut self, out: &mut Vec<Payload>) -> Need {
        match std::mem::replace(&mut self.waiting, Waiting::Nothing) {
            Waiting::Mock(result) => self.finish_action(result, out).unwrap_or_else(|| self.run(out)),
            Waiting::Retry => self.run(out),
            Waiting::Deadline => {
                let limit = self.task.timeout_ms.unwrap_or_default();
                let message = format!("the task did not end within {limit} ms");
                self.end(Err(Failure::infrastructure(InfrastructureKind::Timeout, message)), out)
            }
            Waiting::Memory | Waiting::Agent(_) | Waiting::Nothing => self.broken(out),
        }
    }

    /// Goes on with what it asked for.
    pub fn answered(&mut self, result: Result<Value, Failure>, out: &mut Vec<Payload>) -> Need {
        match std::mem::replace(&mut self.waiting, Waiting::Nothing) {
            Waiting::Memory | Waiting::Agent(_) => {
                self.finish_action(result, out).unwrap_or_else(|| self.run(out))
            }
            Waiting::Mock(_) | Waiting::Retry | Waiting::Deadline | Waiting::Nothing => self.broken(out),
        }
    }

    /// The conversation in which it waits for an agent.
    pub(super) fn asks_in(&self) -> Option<&ConversationId> {
        match &self.waiting {
            Waiting::Agent(conversation) => Some(conversation),
            Waiting::Nothing | Waiting::Mock(_) | Waiting::Memory | Waiting::Retry | Waiting::Deadline => {
                None
            }
        }
    }

    fn broken(&mut self, out: &mut Vec<Payload>) -> Need {
        self.end(
            Err(Failure::business(ErrorCode::InternalError, "the task was given what it did not ask for")),
            out,
        )
    }

    /// Runs steps until something is needed.
    fn run(&mut self, out: &mut Vec<Payload>) -> Need {
        let task = self.task.clone();
        while let Some(step) = task.steps.get(self.index) {
            let branch = match &step.condition {
                None => StepBranch::Continue,
                Some(condition) => match condition.condition.holds(&self.scope) {
                    Ok(true) => condition.then,
                    Ok(false) => condition.otherwise,
                    Err(error) => {
                        let message = format!("the condition of step {}: {error}", step.name);
                        return self.end(Err(Failure::business(ErrorCode::ExecutionFailed, message)), out);
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
                    let message = format!("the condition of step {} says that the task fails", step.name);
                    return self.end(Err(Failure::business(ErrorCode::ExecutionFailed, message)), out);
                }
            }
            if let Some(need) = self.begin_action(step, out) {
                return need;
            }
        }
        let output = self.scope["output"].clone();
        if let Some(schema) = &task.output_schema {
            let violations = schema::violations(schema, &output);
            if !violations.is_empty() {
                let message = format!("what the task returned does not fit: {}", violations.join("; "));
                return self.end(Err(Failure::business(ErrorCode::ExecutionFailed, message)), out);
            }
        }
        self.end(Ok(output), out)
    }

    /// Begins the action of a step; what it needs, if it does not end at once with the task going on.
    fn begin_action(&mut self, step: &Step, out: &mut Vec<Payload>) -> Option<Need> {
        out.push(Payload::TaskStepStarted(self.step_members(step)));
        let input = match self.action_input(step) {
            Ok(input) => input,
            Err(failure) => return self.finish_action(Err(failure), out),
        };
        out.push(Payload::ActionStarted(ActionStarted {
            turn_id: self.turn(),
            run_id: self.context.run.0.clone(),
            origin: self.context.origin,
            step_ref: step.name.as_str().into(),
            kind: step.action.kind().into(),
            input: input.clone(),
        }));
        let result = match &step.action {
            Action::Mock(mock) => {
                let mut random = self.random(mock, step);
                let result = self.mock_result(mock, &input, &mut random);
                let (from, to) = mock.delay_ms;
                if to > 0 {
                    let millis = random.between(from, to);
                    self.waiting = Waiting::Mock(result);
                    return Some(self.wait(millis));
                }
                result
            }
            Action::Echo => Ok(input),
            Action::Fail(fail) => Err(fail.failure.clone()),
            Action::Context(context) => Ok(merged(context, input)),
            Action::Assemble(assemble) => Ok(built_in(&input, assemble.append_system.as_deref())),
            Action::Memory(action) => {
                self.waiting = Waiting::Memory;
                return Some(Need::Memory(*action, input));
            }
            Action::Agent(reference) => {
                let conversation = self.asking();
                self.waiting = Waiting::Agent(conversation.clone());
                return Some(Need::Agent(conversation, definitions::agent_id(reference), input));
            }
            Action::Custom(custom) => (custom.function)(&input),
        };
        self.finish_action(result, out)
    }

    /// Takes what the action of the current step came to; what is needed then, if the task does not just go on.
    fn finish_action(&mut self, result: Result<Value, Failure>, out: &mut Vec<Payload>) -> Option<Need> {
        let task = self.task.clone();
        let Some(step) = task.steps.get(self.index) else { return Some(self.broken(out)) };
        let taken = result.and_then(|output| {
            out.push(Payload::ActionCompleted(ActionCompleted {
                turn_id: self.turn(),
                run_id: self.context.run.0.clone(),
                origin: self.context.origin,
                step_ref: step.name.as_str().into(),
                output: output.clone(),
            }));
            self.take_output(step, output)
        });
        match taken {
            Ok(()) => {}
            Err(failure) => {
                out.push(Payload::ActionFailed(ActionFailed {
                    turn_id: self.turn(),
                    run_id: self.context.run.0.clone(),
                    origin: self.context.origin,
                    step_ref: step.name.as_str().into(),
                    error: failure.info(),
                }));
                let again = match step.on_failure {
                    OnFailure::Continue => None,
                    OnFailure::Retry => Some(task.retry.delay(self.attempt)),
                    OnFailure::Abort if failure.can_retry() => Some(task.retry.delay(self.attempt)),
                    OnFailure::Abort => Some(None),
                };
                match again {
                    None => self.note_error(&failure),
                    Some(None) => return Some(self.end(Err(failure), out)),
                    Some(Some(delay)) => return Some(self.start_over(delay)),
                }
            }
        }
        out.push(Payload::TaskStepCompleted(self.step_members(step)));
        self.index += 1;
        None
    }

    fn start_over(&mut self, delay: u64) -> Need {
        self.attempt += 1;
        self.index = 0;
        let input = self.scope["input"].take();
        self.scope = json!({"input": input, "state": {}, "output": {}});
        self.waiting = Waiting::Retry;
        self.wait(delay)
    }

    /// Asks for time, and for no more than the task has left.
    fn wait(&mut self, millis: u64) -> Need {
        let left = self.task.timeout_ms.map(|limit| limit.saturating_sub(self.elapsed));
        if let Some(left) = left.filter(|left| millis > *left) {
            self.waiting = Waiting::Deadline;
            return Need::Wait(left);
        }
        self.elapsed += millis;
        Need::Wait(millis)
    }

    fn end(&mut self, result: Result<Value, Failure>, out: &mut Vec<Payload>) -> Need {
        let task_id = crate::ids::slug(&self.task.name).into();
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
        Need::Done(result)
    }

    fn action_input(&self, step: &Step) -> Result<Value, Failure> {
        let compute = |expression: &Expression| {
            let wrong = |error| {
                let message = format!("the input of step {}: {error}", step.name);
                Failure::business(ErrorCode::ExecutionFailed, message)
            };
            expression.evaluate(&self.scope).map_err(wrong)
        };
        // `*` is the whole input and not a member of it.
        if let Some(whole) = step.input_mapping.get("*") {
            return compute(whole);
        }
        let mut input = Map::new();
        for (member, expression) in &step.input_mapping {
            input.insert(member.clone(), compute(expression)?);
        }
        Ok(Value::Object(input))
    }

    fn take_output(&mut self, step: &Step, output: Value) -> Result<(), Failure> {
        if step.output_mapping.is_empty() {
            put(&mut self.scope, "state._lastOutput", output);
            return Ok(());
        }
        let mut scope = self.scope.clone();
        put(&mut scope, "result", output);
        for (path, expression) in &step.output_mapping {
            let value = expression.evaluate(&scope).map_err(|error| {
                let message = format!("the output of step {}: {error}", step.name);
                Failure::business(ErrorCode::ExecutionFailed, message)
            })?;
            put(&mut self.scope, path, value);
        }
        Ok(())
    }

    /// The conversation that the current step opens with an agent, in the current attempt.
    fn asking(&self) -> ConversationId {
        let (run, index) = (&self.context.run, self.index);
        ConversationId(match self.attempt {
            0 | 1 => format!("{run}-s{index}").into(),
            later => format!("{run}-s{index}-a{later}").into(),
        })
    }

    fn note_error(&mut self, failure: &Failure) {
        let error = json!({"step": self.task.steps[self.index].name, "message": failure.message()});
        match &mut self.scope["state"]["_errors"] {
            Value::Array(errors) => errors.push(error),
            other => *other = json!([error]),
        }
    }

    fn random(&self, mock: &Mock, step: &Step) -> Random {
        Random::of(mock.seed, &format!("{} {}", self.context.run, step.name))
    }

    fn mock_result(&self, mock: &Mock, input: &Value, random: &mut Random) -> Result<Value, Failure> {
        let attempt = self.context.attempt.max(self.attempt);
        if let Some(failure) = &mock.failure
            && mock.failing_attempts.is_none_or(|failing| attempt <= failing)
        {
            return Err(failure.clone());
        }
        let value = match (&mock.returns, &mock.schema) {
            (Some(expression), _) => expression
                .evaluate(&json!({"input": input}))
                .map_err(|error| Failure::business(ErrorCode::ExecutionFailed, error.to_string()))?,
            (None, Some(schema)) => schema::made_up(schema, random),
            (None, None) => {
                let message = "the mock has neither a schema nor a value to return";
                return Err(Failure::business(ErrorCode::InvalidInput, message));
            }
        };
        Ok(if value.is_object() { value } else { json!({"value": value}) })
    }

    fn step_members(&self, step: &Step) -> TaskStep {
        TaskStep {
            turn_id: self.turn(),
            run_id: self.context.run.0.clone(),
            origin: self.context.origin,
            step_ref: step.name.as_str().into(),
            ordinal: u32::try_from(self.index).unwrap_or(u32::MAX),
        }
    }

    fn turn(&self) -> Option<Arc<str>> {
        self.context.turn.as_ref().map(|turn| turn.0.clone())
    }
}

fn merged(context: &Context, mut input: Value) -> Value {
    let Some(merge) = &context.merge else { return input };
    let mut list = Vec::new();
    for source in &merge.sources {
        match input.get(source) {
            Some(Value::Array(items)) if merge.flatten => list.extend(items.iter().cloned()),
            Some(value) => list.push(value.clone()),
            None => {}
        }
    }
    put(&mut input, &merge.target, Value::Array(list));
    input
}
