//! Tasks: steps that run one after the other, each with one action.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Action;
use crate::expression::Expression;

/// Work that runs to its end without asking anybody.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its name; its id is the lower-case form.
    pub name: String,
    /// The JSON Schema of what it is given; anything if there is none.
    pub input_schema: Option<Value>,
    /// The JSON Schema of what it returns; anything if there is none.
    pub output_schema: Option<Value>,
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// Whether and how it is tried again as a whole.
    pub retry: TaskRetry,
    /// How long it may take, in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// How often a task is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRetry {
    /// Attempts in all.
    pub max_attempts: u32,
    /// How the wait grows.
    pub backoff: Backoff,
    /// The first wait, in milliseconds.
    pub initial_delay_ms: u64,
    /// The longest wait, in milliseconds.
    pub max_delay_ms: u64,
}

/// How the wait between attempts grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// Not at all.
    None,
    /// By the first wait each time.
    Linear,
    /// It doubles.
    Exponential,
}

impl Default for TaskRetry {
    fn default() -> Self {
        TaskRetry { max_attempts: 1, backoff: Backoff::None, initial_delay_ms: 0, max_delay_ms: u64::MAX }
    }
}

impl TaskRetry {
    /// The wait after attempt `attempt` (from 1) failed, in milliseconds; none when it was the last.
    pub fn delay(&self, attempt: u32) -> Option<u64> {
        if attempt >= self.max_attempts {
            return None;
        }
        let factor = match self.backoff {
            Backoff::None => 1,
            Backoff::Linear => u64::from(attempt),
            Backoff::Exponential => 1_u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX),
        };
        Some(self.initial_delay_ms.saturating_mul(factor).min(self.max_delay_ms))
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Its name in the task.
    pub name: String,
    /// What it does.
    pub action: Action,
    /// What the action is given, member by member; nothing if it is empty.
    pub input_mapping: BTreeMap<String, Expression>,
    /// Where what it returns goes, path by path; to `state._lastOutput` if it is empty.
    pub output_mapping: Vec<(String, Expression)>,
    /// What becomes of the task when the action fails.
    pub on_failure: OnFailure,
    /// Whether the step runs at all.
    pub condition: Option<StepCondition>,
}

/// What becomes of a task when an action fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It fails.
    #[default]
    Abort,
    /// It starts again from its first step, as often as its retry allows.
    Retry,
    /// It goes on; the failure is added to `state._errors`.
    Continue,
}

/// What a step does depending on a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepCondition {
    /// The condition.
    pub condition: Expression,
    /// When it holds.
    pub then: StepBranch,
    /// When it does not hold.
    pub otherwise: StepBranch,
}

/// What becomes of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepBranch {
    /// It runs.
    Continue,
    /// It is passed over.
    Skip,
    /// The task ends here, in order.
    Succeed,
    /// The task fails.
    Fail,
}

/// A task without steps.
pub fn task(name: &str) -> Task {
    Task {
        name: name.to_string(),
        input_schema: None,
        output_schema: None,
        steps: Vec::new(),
        retry: TaskRetry::default(),
        timeout_ms: None,
    }
}

/// A step of this action. Its name is filled in by the task if it stays empty.
pub fn step(action: impl Into<Action>) -> Step {
    Step {
        name: String::new(),
        action: action.into(),
        input_mapping: BTreeMap::new(),
        output_mapping: Vec::new(),
        on_failure: OnFailure::default(),
        condition: None,
    }
}

impl Task {
    /// With one more step; an action alone is a step that is given the task's whole input and whose result is the
    /// task's output.
    #[must_use]
    pub fn step(mut self, step: impl Into<Step>) -> Self {
        let mut step = step.into();
        if step.name.is_empty() {
            step.name = format!("step-{}", self.steps.len());
        }
        self.steps.push(step);
        self
    }

    /// With this JSON Schema for its input.
    #[must_use]
    pub fn input(mut self, schema: Value) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// With this JSON Schema for its output.
    #[must_use]
    pub fn output(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// Tried this often.
    #[must_use]
    pub fn retry(mut self, retry: TaskRetry) -> Self {
        self.retry = retry;
        self
    }

    /// With this time limit, in milliseconds.
    #[must_use]
    pub fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.timeout_ms = Some(timeout_ms);
        self
    }
}

impl Step {
    /// With this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_string();
        self
    }

    /// With a member of the action's input computed by this expression.
    ///
    /// # Panics
    /// When the expression cannot be read; definitions that are not written in code use [`Expression::parse`].
    #[must_use]
    pub fn input(mut self, member: &str, expression: &str) -> Self {
        self.input_mapping.insert(member.to_string(), Expression::written(expression));
        self
    }

    /// With what this expression computes put at this path, which begins with `state` or `output`.
    ///
    /// # Panics
    /// When the expression cannot be read; definitions that are not written in code use [`Expression::parse`].
    #[must_use]
    pub fn output(mut self, path: &str, expression: &str) -> Self {
        self.output_mapping.push((path.to_string(), Expression::written(expression)));
        self
    }

    /// With this outcome when the action fails.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// Run depending on a condition.
    ///
    /// # Panics
    /// When the condition cannot be read; definitions that are not written in code use [`Expression::parse`].
    #[must_use]
    pub fn when(mut self, condition: &str, then: StepBranch, otherwise: StepBranch) -> Self {
        self.condition = Some(StepCondition { condition: Expression::written(condition), then, otherwise });
        self
    }
}

impl<A: Into<Action>> From<A> for Step {
    fn from(action: A) -> Step {
        let mut whole = step(action);
        whole.input_mapping.insert("*".to_string(), Expression::written("input"));
        whole.output_mapping.push(("output".to_string(), Expression::written("result")));
        whole
    }
}
