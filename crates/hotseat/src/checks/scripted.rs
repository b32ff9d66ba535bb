//! `script`: a function of a script judges.
//!
//! Such a check is data like all others, but it does not decide by itself: a session calls the function and takes what
//! it returns for the verdict. What no function has judged holds neither way.

use std::time::Duration;

use serde_json::{Map, Value};

use super::Decided;

/// What a function is asked.
#[derive(Debug, Clone)]
pub struct Scripted {
    /// The function, as it is written.
    pub function: String,
    /// What it is told to expect.
    pub expected: Option<Value>,
    /// What else it is told: `metadata`.
    pub options: Map<String, Value>,
    /// How long it may take, if the assertion says so.
    pub timeout: Option<Duration>,
    /// What it is given to judge.
    pub given: Given,
    /// What is asserted, in words, where it is more than that the function holds.
    pub text: Option<String>,
}

/// What a function is given to judge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Given {
    /// The answer, what the user said, what is expected, and everything else.
    #[default]
    Answer,
    /// The turn, and everything else.
    Turn,
    /// The conversation, and everything else.
    Conversation,
    /// The messages of the conversation, and everything else.
    Messages,
}

impl Scripted {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        match &self.text {
            Some(text) => text.clone(),
            None => format!("{} holds", self.function),
        }
    }

    /// What a returned value says: whether it holds, and words of the function itself.
    ///
    /// # Errors
    /// When it says nothing of the kind.
    pub fn judgement(returned: &Value) -> Result<(bool, Option<String>), String> {
        let wrong = || {
            format!(
                "it returned {}, and not true, false, or an object with `pass` (or `passed`) and perhaps `message` (or `reason`)",
                super::calls::cut(&returned.to_string())
            )
        };
        match returned {
            Value::Bool(passed) => Ok((*passed, None)),
            Value::Object(members) => {
                let passed = match (members.get("pass"), members.get("passed")) {
                    (Some(Value::Bool(passed)), None) | (None, Some(Value::Bool(passed))) => *passed,
                    // Said twice, it has to be the same.
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

    pub(super) fn decide() -> Decided {
        Decided::nothing("no function was asked".to_string())
    }
}
