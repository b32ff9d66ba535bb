//! A judge: what it is told, and what it says. The documents call it a validator.

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{Dialogue, Exchange, Question, Role, Said, Unanswered, beginning, options};
use crate::checks::{Judged, json_in};

const PROMPT: &str = include_str!("prompts/judge.v1.md");

/// What a judge is told.
#[derive(Debug, Clone, Copy)]
pub struct JudgeQuestion<'a> {
    /// What is to be judged by.
    pub judged: &'a Judged,
    /// The case.
    pub test_id: &'a str,
    /// The conversation with the agent.
    pub session_id: &'a str,
    /// What was said and done up to the end of what is judged.
    pub dialogue: Dialogue<'a>,
    /// When the answer is given up.
    pub until: Option<Instant>,
}

/// What a judge has found.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Whether what was asked is so.
    pub passed: bool,
    /// How far it is so, where the judge says that.
    pub score: Option<f64>,
    /// Why.
    pub reason: Option<String>,
}

impl Role {
    /// Asks a judge, with what the exchange leaves in the trace.
    ///
    /// # Errors
    /// When the time of the conversation is over.
    pub async fn judge(
        &self,
        question: JudgeQuestion<'_>,
    ) -> Result<(Result<Judgement, String>, Exchange), Unanswered> {
        let (message, metadata) = question.told();
        let asked = Question {
            message: message.clone(),
            options: options(&question.judged.options, metadata),
            history: Vec::new(),
            turn: question.dialogue.turns.len(),
            prompt: PROMPT,
            until: question.until,
        };
        let (said, judgement, finding) = match self.ask(asked).await {
            Err(Unanswered::Deadline) => return Err(Unanswered::Deadline),
            Err(Unanswered::Failed(words)) => (Said::default(), Err(words), None),
            Ok(said) => match read(&said.text) {
                Ok((judgement, finding)) => (said, Ok(judgement), Some(finding)),
                Err(words) => (said, Err(words), None),
            },
        };
        let error = judgement.as_ref().err().cloned();
        let agent = self.shown().clone();
        Ok((judgement, Exchange { role: "judge", agent, question: message, said, finding, error }))
    }
}

impl JudgeQuestion<'_> {
    /// The message, and what of it is metadata of the call too.
    fn told(&self) -> (Value, Map<String, Value>) {
        let mut metadata = Map::new();
        metadata.insert("test_mode".to_string(), json!("validator"));
        metadata.insert("test_id".to_string(), json!(self.test_id));
        metadata.insert("session_id".to_string(), json!(self.session_id));
        if let Some(criteria) = &self.judged.criteria {
            metadata.insert("criteria".to_string(), criteria.clone());
        }
        let mut message = match self.judged.options.get("metadata") {
            Some(Value::Object(written)) => written.clone(),
            _ => Map::new(),
        };
        message.extend(metadata.clone());
        let last = self.dialogue.turns.last();
        let input = last.and_then(|turn| turn.user.as_deref()).unwrap_or_default();
        let calls = last.into_iter().flat_map(|turn| &turn.tool_calls).map(|call| {
            let result = call.result.as_ref();
            json!({
                "name": call.name,
                "arguments": call.arguments,
                "result": result.filter(|result| !result.failed).map(|result| &result.value),
                "error": result.filter(|result| result.failed).map(|result| &result.value),
            })
        });
        message.insert("input".to_string(), json!(input));
        message.insert("output".to_string(), json!(self.dialogue.last_response()));
        message.insert("tool_calls".to_string(), calls.collect());
        // What the test itself says of the conversation is not overwritten.
        message.entry("conversation").or_insert_with(|| Value::Array(self.dialogue.json()));
        (Value::Object(message), metadata)
    }
}

/// Reads a judgement. It has to say whether it `passed`.
fn read(text: &str) -> Result<(Judgement, Value), String> {
    let Some(answer @ Value::Object(_)) = json_in(text) else {
        return Err(format!("invalid response format: it is no JSON object; {}", beginning(text)));
    };
    let passed = match answer.get("passed") {
        Some(Value::Bool(passed)) => *passed,
        None => return Err(format!("validator response missing 'passed' field; {}", beginning(text))),
        Some(other) => {
            return Err(format!(
                "validator response missing 'passed' field: {other} is neither true nor false"
            ));
        }
    };
    let score = match answer.get("score") {
        None | Some(Value::Null) => None,
        Some(Value::Number(score)) => score.as_f64(),
        Some(other) => return Err(format!("invalid response format: `score` is {other}, and no number")),
    };
    let reason = match answer.get("reason") {
        None | Some(Value::Null) => None,
        Some(Value::String(reason)) => Some(reason.clone()),
        Some(other) => return Err(format!("invalid response format: `reason` is {other}, and no text")),
    };
    Ok((Judgement { passed, score, reason }, answer))
}

impl Judgement {
    /// In words.
    pub fn words(&self) -> String {
        let passed = if self.passed { "the judge agrees" } else { "the judge does not agree" };
        let score = self.score.map(|score| format!(" (score {score})")).unwrap_or_default();
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{passed}{score}{reason}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judgement_says_whether_it_passed() {
        for (text, passed) in [
            (r#"{"passed": true, "score": 0.95, "reason": "helpful", "suggestions": []}"#, true),
            ("```json\n{\"passed\": false}\n```", false),
            ("I think {\"passed\": true} fits.", true),
        ] {
            assert_eq!(read(text).unwrap().0.passed, passed, "{text}");
        }
        for (text, words) in [
            ("It is fine.", "invalid response format"),
            ("", "invalid response format"),
            ("true", "invalid response format"),
            (r#"{"score": 1}"#, "validator response missing 'passed' field"),
            (r#"{"passed": "yes"}"#, "validator response missing 'passed' field"),
            (r#"{"passed": true, "score": "high"}"#, "`score`"),
            (r#"{"passed": true, "reason": 3}"#, "`reason`"),
        ] {
            assert!(read(text).unwrap_err().contains(words), "{text}");
        }
    }
}
