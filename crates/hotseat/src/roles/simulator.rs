//! A simulated user: what it is told, and what it says.

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{Dialogue, Exchange, Question, Role, Said, Unanswered, beginning, options};
use crate::checks::{json_in, whole_json};

const PROMPT: &str = include_str!("prompts/simulator.v1.md");

/// What a simulated user is told.
#[derive(Debug, Clone, Copy)]
pub struct SimulatorQuestion<'a> {
    /// What the case tells it: `metadata` with `persona` and `goal`, `connector`, …
    pub options: &'a Map<String, Value>,
    /// The case.
    pub test_id: &'a str,
    /// The conversation with the agent.
    pub session_id: &'a str,
    /// What was said so far.
    pub dialogue: Dialogue<'a>,
    /// Whether it is told of that as messages.
    pub as_messages: bool,
    /// The turn that it begins, from 1.
    pub turn_number: usize,
    /// How many turns there may be.
    pub max_turns: usize,
    /// The checkpoints that are reached, and those that are not.
    pub checkpoints: (&'a [&'a str], &'a [&'a str]),
    /// When the answer is given up.
    pub until: Option<Instant>,
}

/// What a simulated user does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserMove {
    /// It says something.
    Says(String),
    /// It has what it wants. What it would have said is not sent.
    GoalAchieved,
}

impl Role {
    /// Asks a simulated user what it says next, with what the exchange leaves in the trace.
    ///
    /// # Errors
    /// When the time of the conversation is over.
    pub async fn simulate(
        &self,
        question: SimulatorQuestion<'_>,
    ) -> Result<(Result<UserMove, String>, Exchange), Unanswered> {
        let (message, metadata) = question.told();
        let dialogue = question.dialogue;
        let asked = Question {
            message: message.clone(),
            options: options(question.options, metadata),
            history: if question.as_messages { dialogue.messages() } else { Vec::new() },
            turn: question.turn_number,
            prompt: PROMPT,
            until: question.until,
        };
        let (said, next, finding) = match self.ask(asked).await {
            Err(Unanswered::Deadline) => return Err(Unanswered::Deadline),
            Err(Unanswered::Failed(words)) => (Said::default(), Err(words), None),
            Ok(said) => match read(&said.text) {
                Ok((next, finding)) => (said, Ok(next), Some(finding)),
                Err(words) => (said, Err(words), None),
            },
        };
        let error = next.as_ref().err().cloned();
        let agent = self.shown().clone();
        Ok((next, Exchange { role: "simulator", agent, question: message, said, finding, error }))
    }
}

impl SimulatorQuestion<'_> {
    /// The message, and what of it is metadata of the call too.
    fn told(&self) -> (Value, Map<String, Value>) {
        let mut metadata = Map::new();
        metadata.insert("test_mode".to_string(), json!("simulator"));
        metadata.insert("test_id".to_string(), json!(self.test_id));
        metadata.insert("session_id".to_string(), json!(self.session_id));
        metadata.insert("turn_number".to_string(), json!(self.turn_number));
        metadata.insert("max_turns".to_string(), json!(self.max_turns));
        metadata.insert("tool_results".to_string(), Value::Object(self.dialogue.tool_results()));
        let (reached, pending) = self.checkpoints;
        if !reached.is_empty() || !pending.is_empty() {
            metadata.insert("checkpoints_reached".to_string(), json!(reached));
            metadata.insert("checkpoints_pending".to_string(), json!(pending));
        }
        let mut message = match self.options.get("metadata") {
            Some(Value::Object(written)) => written.clone(),
            _ => Map::new(),
        };
        message.extend(metadata.clone());
        message.insert("last_response".to_string(), json!(self.dialogue.last_response()));
        if !self.as_messages {
            message.insert("conversation".to_string(), Value::Array(self.dialogue.json()));
        }
        (Value::Object(message), metadata)
    }
}

/// Reads what a simulated user said: JSON with `input` or `message` and `goal_achieved`, or plain words, which are
/// what the user says.
fn read(text: &str) -> Result<(UserMove, Value), String> {
    let is_answer =
        |value: &Value| ["input", "message", "goal_achieved"].iter().any(|key| value.get(key).is_some());
    let found = json_in(text).filter(is_answer);
    let Some(answer) = found else {
        // Words are what the user says; a mapping that says nothing of use is none.
        return match whole_json(text) {
            Some(Value::Object(_) | Value::Array(_)) => {
                Err(format!("the answer has neither `input` nor `goal_achieved`; {}", beginning(text)))
            }
            _ if text.trim().is_empty() => Err("the answer is empty".to_string()),
            _ => {
                let said = text.trim().to_string();
                let finding = json!({"input": said, "goal_achieved": false});
                Ok((UserMove::Says(said), finding))
            }
        };
    };
    let achieved = match answer.get("goal_achieved") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(achieved)) => *achieved,
        Some(other) => return Err(format!("`goal_achieved` is {other}, and has to be true or false")),
    };
    if achieved {
        return Ok((UserMove::GoalAchieved, answer));
    }
    match answer.get("input").or_else(|| answer.get("message")) {
        Some(Value::String(said)) if !said.trim().is_empty() => {
            Ok((UserMove::Says(said.clone()), answer.clone()))
        }
        None | Some(Value::String(_) | Value::Null) => {
            Err("the answer says nothing, and not that the goal is achieved".to_string())
        }
        Some(other) => Err(format!("`input` is {other}, and has to be a text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_in_every_form_that_is_documented() {
        let says = |text: &str| Ok(UserMove::Says(text.to_string()));
        for (text, expected) in [
            (r#"{"input": "The amount is $500", "goal_achieved": false}"#, says("The amount is $500")),
            (r#"{"message": "Yes"}"#, says("Yes")),
            ("Sure:\n```json\n{\"input\": \"Yes\", \"goal_achieved\": false}\n```", says("Yes")),
            ("I answer {\"input\": \"Yes\"} here", says("Yes")),
            ("Note: my order is 7", says("Note: my order is 7")),
            ("I paid {\"amount\": 3} for it", says("I paid {\"amount\": 3} for it")),
            ("42", says("42")),
            (r#"{"input": "", "goal_achieved": true}"#, Ok(UserMove::GoalAchieved)),
            (r#"{"goal_achieved": true}"#, Ok(UserMove::GoalAchieved)),
            (r#"{"input": "Thanks", "goal_achieved": true}"#, Ok(UserMove::GoalAchieved)),
        ] {
            assert_eq!(read(text).map(|(next, _)| next), expected, "{text}");
        }
        for text in [
            "",
            "  ",
            r#"{"input": "", "goal_achieved": false}"#,
            r#"{"goal_achieved": false}"#,
            r#"{"input": 3}"#,
            r#"{"input": "x", "goal_achieved": "yes"}"#,
            r#"{"answer": "x"}"#,
            "[]",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
