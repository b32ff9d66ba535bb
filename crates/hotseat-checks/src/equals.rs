//! `equals`: the whole answer equals a value.

use hotseat_trace::{TurnScope, json_equal};
use serde_json::Value;

use super::answer::{answer, format_json, format_text};
use super::json_answer::{AnswerContent, find_json, has_no_object, read_json};
use super::{CheckBehavior, CheckDecision, ForbiddenTexts};

/// The answer is exactly this text; or the whole answer is JSON that equals this value.
#[derive(Debug, Clone)]
pub struct AnswerEquals {
    /// The expected value.
    pub value: Value,
}

impl CheckBehavior for AnswerEquals {
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        match &self.value {
            Value::String(_) => ForbiddenTexts::in_messages(negated),
            _ => ForbiddenTexts::in_json(negated),
        }
    }

    fn describe(&self) -> String {
        format!("the answer to be {}", format_json(&self.value))
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let answer = answer(scope);
        if let Value::String(text) = &self.value {
            return match answer.is_empty() && !text.is_empty() {
                true => CheckDecision::not_applicable(format_text(answer)),
                false => CheckDecision::new(answer == text, format_text(answer)),
            };
        }
        match read_json(answer) {
            _ if answer.is_empty() => CheckDecision::not_applicable(format_text(answer)),
            Ok(value) => CheckDecision::new(json_equal(&value, &self.value), format_json(&value)),
            // Plain text never equals another value; an answer with broken JSON cannot be decided.
            Err(_) if find_json(answer) == AnswerContent::Text && has_no_object(answer) => {
                CheckDecision::new(false, format!("the answer is not JSON: {}", format_text(answer)))
            }
            Err(why) => CheckDecision::not_applicable(format!(
                "the answer cannot be read as JSON: it {why}: {}",
                format_text(answer)
            )),
        }
    }
}
