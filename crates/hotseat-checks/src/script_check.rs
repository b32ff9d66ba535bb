//! `script`: a script function decides.
//!
//! Such a check is data like all other checks, but it cannot decide itself: the session calls the function
//! and uses its return value as the verdict. Without a return value the check neither passes nor fails.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{CheckBehavior, CheckDecision};

/// Check that a script function decides.
#[derive(Debug, Clone)]
pub struct ScriptCheck {
    /// Reference to the function, as written in the test.
    pub function: String,
    /// Expected value, passed to the function.
    pub expected: Option<Value>,
    /// Other values that are passed to the function: `metadata`.
    pub options: Map<String, Value>,
    /// Time limit of the call, if the assertion sets one.
    pub timeout: Option<Duration>,
    /// Input of the function.
    pub input_kind: ScriptInputKind,
    /// Description of the expectation, if it differs from the default.
    pub text: Option<String>,
}

/// Input of a script function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScriptInputKind {
    /// The answer, the user input, the expected value, and the context.
    #[default]
    Answer,
    /// The turn and the context.
    Turn,
    /// The conversation and the context.
    Conversation,
    /// The messages of the conversation and the context.
    Messages,
}

/// A function returned something else than a judgement. Contains the start of the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "it returned {0}; expected true, false, or an object with `pass` (or `passed`) and optionally `message` (or `reason`)"
)]
pub struct ScriptJudgementError(String);

impl ScriptCheck {
    /// Name of the function in messages: its reference, without the number that the functions of a test have.
    pub fn name(&self) -> &str {
        self.function.split_once(" (function ").map_or(&self.function, |(name, _)| name)
    }

    /// Parses the return value of a function into its verdict and its message.
    ///
    /// # Errors
    /// If the value has another form.
    pub fn parse_judgement(returned: &Value) -> Result<(bool, Option<String>), ScriptJudgementError> {
        let wrong = || ScriptJudgementError(super::call_text::truncate(&returned.to_string()));
        match returned {
            Value::Bool(passed) => Ok((*passed, None)),
            Value::Object(members) => {
                let passed = match (members.get("pass"), members.get("passed")) {
                    (Some(Value::Bool(passed)), None) | (None, Some(Value::Bool(passed))) => *passed,
                    // If both keys are present, they must agree.
                    (Some(Value::Bool(one)), Some(Value::Bool(other))) if one == other => *one,
                    _ => return Err(wrong()),
                };
                let words = members.get("message").or_else(|| members.get("reason"));
                match words {
                    None | Some(Value::Null) => Ok((passed, None)),
                    Some(Value::String(words)) => Ok((passed, Some(words.clone()))),
                    Some(_) => Err(wrong()),
                }
            }
            _ => Err(wrong()),
        }
    }
}

impl CheckBehavior for ScriptCheck {
    fn describe(&self) -> String {
        match &self.text {
            Some(text) => text.clone(),
            None => format!("{} to pass", self.name()),
        }
    }

    fn decide(&self, _: hotseat_trace::TurnScope<'_>) -> CheckDecision {
        CheckDecision::not_applicable("no script function was called".to_string())
    }

    fn needs_answer(&self) -> bool {
        true
    }
}
