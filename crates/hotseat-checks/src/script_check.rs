//! `script`: a script function decides.
//!
//! Such a check is data like all other checks, but it cannot decide itself: the session calls the function
//! and uses its return value as the verdict. Without a return value the check neither passes nor fails.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use super::{CheckBehavior, CheckDecision};

/// Check that a script function decides.
#[derive(Debug, Clone)]
pub struct ScriptCheck {
    /// The function.
    pub function: CheckFunction,
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

/// Function that decides a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckFunction {
    /// Function of a script, by its reference as written in the test.
    Script(String),
    /// Function of the program that drives the conversation.
    Program {
        /// Name in messages.
        name: String,
        /// Number by which the program knows it.
        number: usize,
    },
}

impl From<&str> for CheckFunction {
    /// Reads a reference as case files have it, or as the library of TypeScript writes it: `NAME (function NUMBER of the test)`.
    fn from(written: &str) -> Self {
        let of_program = || {
            let (name, number) = written.strip_suffix(" of the test)")?.rsplit_once(" (function ")?;
            Some(CheckFunction::Program { name: name.to_string(), number: number.parse().ok()? })
        };
        of_program().unwrap_or_else(|| CheckFunction::Script(written.to_string()))
    }
}

/// The reference, or the name of a function of the program.
impl fmt::Display for CheckFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckFunction::Script(name) | CheckFunction::Program { name, .. } => f.write_str(name),
        }
    }
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
            None => format!("{} to pass", self.function),
        }
    }

    fn decide(&self, _: hotseat_trace::TurnScope<'_>) -> CheckDecision {
        CheckDecision::not_applicable("no script function was called".to_string())
    }

    fn needs_answer(&self) -> bool {
        true
    }
}
