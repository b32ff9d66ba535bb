//! `equals`: the whole answer is this.

use hotseat_trace::Scope;
use serde_json::Value;

use super::Decided;
use super::answer::{answer, shown, shown_json};
use super::equality::equal;
use super::json_answer::read_json;

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
            Err(why) => Decided::nothing(format!("the answer is not JSON: it {why}: {}", shown(answer))),
        }
    }
}
