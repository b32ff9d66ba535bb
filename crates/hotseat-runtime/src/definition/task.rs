//! Tasks: sequences of steps with one action each.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_model::setters;
use hotseat_trace::named;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::StepAction;
use crate::expression::Expression;

/// Work that runs to completion without user interaction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskDefinition {
    /// The name. The id is its lower-case form.
    pub name: String,
    /// JSON Schema of the input; `None` accepts anything.
    pub input_schema: Option<Value>,
    /// JSON Schema of the output; `None` accepts anything.
    pub output_schema: Option<Value>,
    /// The steps, in order.
    pub steps: Vec<StepDefinition>,
    /// Retries of the whole task.
    pub retry: TaskRetry,
    /// Time limit, in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// Retries of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRetry {
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// Growth of the delay.
    pub backoff: BackoffGrowth,
    /// First delay, in milliseconds.
    pub initial_delay_ms: u64,
    /// Maximum delay, in milliseconds.
    pub max_delay_ms: u64,
}

named! {
    /// Growth of the delay between attempts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum BackoffGrowth {
        /// Constant delay.
        None = "none",
        /// Grows by the first delay each time.
        Linear = "linear",
        /// Doubles each time.
        Exponential = "exponential",
    }
}

impl Default for TaskRetry {
    fn default() -> Self {
        TaskRetry {
            max_attempts: 1,
            backoff: BackoffGrowth::None,
            initial_delay_ms: 0,
            max_delay_ms: u64::MAX,
        }
    }
}

impl TaskRetry {
    /// Returns the delay after failed attempt `attempt` (from 1), in milliseconds, or `None` if it was the
    /// last one.
    pub fn delay(&self, attempt: u32) -> Option<u64> {
        if attempt >= self.max_attempts {
            return None;
        }
        let factor = match self.backoff {
            BackoffGrowth::None => 1,
            BackoffGrowth::Linear => u64::from(attempt),
            BackoffGrowth::Exponential => 1_u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX),
        };
        Some(self.initial_delay_ms.saturating_mul(factor).min(self.max_delay_ms))
    }
}

/// One step of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepDefinition {
    /// Name of the step, unique in the task.
    pub name: Arc<str>,
    /// The action.
    pub action: StepAction,
    /// Input of the action, by member; `*` is the whole input, empty means no input.
    pub input_mapping: BTreeMap<String, Expression>,
    /// Paths for the result of the action; empty means `state._lastOutput`.
    pub output_mapping: Vec<(String, Expression)>,
    /// Handling of a failed action.
    pub on_failure: StepFailurePolicy,
    /// Condition for running the step.
    pub condition: Option<StepCondition>,
}

named! {
    /// Handling of a failed action.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum StepFailurePolicy {
        /// The task fails.
        #[default]
        Abort = "abort",
        /// The task restarts from its first step, as often as its retries allow.
        Retry = "retry",
        /// The task continues; the failure is added to `state._errors`.
        Continue = "continue",
    }
}

/// Condition of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepCondition {
    /// The condition.
    pub condition: Expression,
    /// Branch if the condition is true.
    pub then: StepBranch,
    /// Branch if the condition is false.
    pub otherwise: StepBranch,
}

named! {
    /// Effect of a condition on its step.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum StepBranch {
        /// The step runs.
        Continue = "continue",
        /// The step is skipped.
        Skip = "skip",
        /// The task completes.
        Succeed = "succeed",
        /// The task fails.
        Fail = "fail",
    }
}

/// Creates a task without steps.
pub fn task(name: &str) -> TaskDefinition {
    TaskDefinition { name: name.to_string(), ..TaskDefinition::default() }
}

/// Creates a step. The task generates a name if it stays empty.
pub fn step(action: impl Into<StepAction>) -> StepDefinition {
    StepDefinition {
        name: "".into(),
        action: action.into(),
        input_mapping: BTreeMap::new(),
        output_mapping: Vec::new(),
        on_failure: StepFailurePolicy::default(),
        condition: None,
    }
}

impl TaskDefinition {
    /// Adds a step. A bare action becomes a step with the task's whole input, and its result becomes the
    /// output.
    #[must_use]
    pub fn step(mut self, step: impl Into<StepDefinition>) -> Self {
        let mut step = step.into();
        if step.name.is_empty() {
            step.name = format!("step-{}", self.steps.len()).into();
        }
        self.steps.push(step);
        self
    }

    setters! {
        /// Sets the JSON Schema of the input.
        input(self, schema: Value) => self.input_schema = Some(schema);
        /// Sets the JSON Schema of the output.
        output(self, schema: Value) => self.output_schema = Some(schema);
        /// Sets the retries.
        retry(self, retry: TaskRetry) => self.retry = retry;
        /// Sets the time limit, in milliseconds.
        timeout_ms(self, timeout_ms: u64) => self.timeout_ms = Some(timeout_ms);
    }
}

impl StepDefinition {
    setters! {
        /// Sets the name.
        named(self, name: &str) => self.name = name.into();
        /// Computes a member of the action's input with an expression.
        ///
        /// # Panics
        /// If the expression is invalid. Use [`Expression::parse`] for expressions that are not constants in
        /// code.
        input(self, member: &str, expression: &str) =>
            self.input_mapping.insert(member.to_string(), Expression::parse_static(expression));
        /// Stores the value of an expression at a path, which starts with `state` or `output`.
        ///
        /// # Panics
        /// If the expression is invalid. Use [`Expression::parse`] for expressions that are not constants in
        /// code.
        output(self, path: &str, expression: &str) =>
            self.output_mapping.push((path.to_string(), Expression::parse_static(expression)));
        /// Sets the handling of a failed action.
        on_failure(self, on_failure: StepFailurePolicy) => self.on_failure = on_failure;
    }

    /// Sets the condition of the step.
    ///
    /// # Panics
    /// If the condition is invalid. Use [`Expression::parse`] for expressions that are not constants in code.
    #[must_use]
    pub fn when(mut self, condition: &str, then: StepBranch, otherwise: StepBranch) -> Self {
        self.condition =
            Some(StepCondition { condition: Expression::parse_static(condition), then, otherwise });
        self
    }
}

impl<A: Into<StepAction>> From<A> for StepDefinition {
    fn from(action: A) -> StepDefinition {
        let mut whole = step(action);
        whole.input_mapping.insert("*".to_string(), Expression::parse_static("input"));
        whole.output_mapping.push(("output".to_string(), Expression::parse_static("result")));
        whole
    }
}
