//! `equals`: the whole answer is this.

use hotseat_trace::Scope;
use serde_json::Value;

use super::Decided;
use super::answer::{answer, shown, shown_json};
use super::equality::equal;
use super::json_answer::{AnswerContent, find_json, read_json};

/// The answer is this text, to the letter; or it is JSON as a whole and equal to this value.
#[derive(Debug, Clone)]
pub struct Equals {
    /// The value.
    pub value: Value,
}

impl Equals {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        format!("the answer is {}", shown_json(&self.value))
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let answer = answer(scope);
        if let Value::String(text) = &self.value {
            return Decided::of(answer == text, shown(answer));
        }
        match read_json(answer) {
            _ if answer.is_empty() => Decided::nothing(shown(answer)),
            Ok(value) => Decided::of(equal(&value, &self.value), shown_json(&value)),
            // Words are unlike every other value; of what has JSON in it nobody knows what it was to be.
            Err(_) if find_json(answer) == AnswerContent::Text && !answer.contains(['{', '}']) => {
                Decided::of(false, format!("the answer is not JSON: {}", shown(answer)))
            }
            Err(why) => Decided::nothing(format!("the answer is not JSON: it {why}: {}", shown(answer))),
        }
    }
}
