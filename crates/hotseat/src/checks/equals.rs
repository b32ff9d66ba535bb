//! `equals`: the whole answer is this.

use hotseat_trace::Scope;
use serde_json::Value;

use super::Decided;
use super::answer::{answer, json_in, shown, shown_json};
use super::equality::equal;

/// The answer is this text, to the letter; or it is JSON and equal to this value.
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
        match json_in(answer) {
            _ if answer.is_empty() => Decided::nothing(shown(answer)),
            Some(value) => Decided::of(equal(&value, &self.value), shown_json(&value)),
            None => Decided::of(false, format!("the answer is not JSON: {}", shown(answer))),
        }
    }
}
