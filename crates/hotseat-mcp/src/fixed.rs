//! Fixed answers of tools, prompts and resources.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::answer::McpToolResult;
use crate::frame::RpcError;
use crate::input_rounds::{InputRounds, InputRoundsError, UnansweredInput};

/// Members of a fixed answer that say how to answer, and are no part of the result.
const ANSWER_MEMBERS: [&str; 6] = ["progress", "logs", "changes", "ask", "error", "result"];

/// An answer that depends only on the arguments and on the input of the user.
#[derive(Debug, Clone, PartialEq)]
pub struct FixedAnswer {
    /// Reported progress, in percent.
    pub progress: Vec<f64>,
    /// Log messages: level and data.
    pub logs: Vec<(String, Value)>,
    /// Lists that the call changes: `tools`, `prompts`.
    pub changes: Vec<String>,
    /// Questions that precede the answer.
    pub ask: InputRounds,
    /// The result or the error. Texts may contain `${arguments.NAME}`, `${variables.NAME}` and `${inputs.NAME}`.
    pub outcome: Result<Value, RpcError>,
}

/// An invalid definition of an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum FixedAnswerError {
    #[error("an answer must be an object or a text")]
    NoAnswer,
    #[error("`{0}` of an answer must be a list")]
    NoList(&'static str),
    #[error("`{0}` of an answer has an invalid entry")]
    InvalidEntry(&'static str),
    #[error(transparent)]
    Ask(#[from] InputRoundsError),
}

impl FixedAnswer {
    /// Reads an answer: `result` or `error`, with `progress`, `logs`, `changes` and `ask`. Without `result`,
    /// all other members are the result. A text is a result with this text. Fails if a member has the wrong
    /// type.
    pub fn from_json(answer: &Value) -> Result<FixedAnswer, FixedAnswerError> {
        let members = match answer {
            Value::String(text) => {
                let result = McpToolResult::from_text(text.as_str());
                return Ok(FixedAnswer {
                    outcome: Ok(json!({"content": result.content})),
                    ..Self::default()
                });
            }
            Value::Object(members) => members,
            _ => return Err(FixedAnswerError::NoAnswer),
        };
        let list = |key: &'static str| match members.get(key) {
            None => Ok(&[][..]),
            Some(Value::Array(items)) => Ok(items.as_slice()),
            Some(_) => Err(FixedAnswerError::NoList(key)),
        };
        let wrong = FixedAnswerError::InvalidEntry;
        let progress = list("progress")?.iter().map(|step| step.as_f64().ok_or_else(|| wrong("progress")));
        let log =
            |entry: &Value| Some((entry.get("level")?.as_str()?.to_string(), entry.get("data")?.clone()));
        let logs = list("logs")?.iter().map(|entry| log(entry).ok_or_else(|| wrong("logs")));
        let changes = list("changes")?
            .iter()
            .map(|entry| entry.as_str().map(str::to_string).ok_or_else(|| wrong("changes")));
        let ask = members.get("ask").map(InputRounds::from_json).transpose()?;
        let outcome = match (members.get("error"), members.get("result")) {
            (Some(error), _) => Err(RpcError::from_json(error)),
            (None, Some(result)) => Ok(result.clone()),
            (None, None) => {
                let mut rest = members.clone();
                rest.retain(|key, _| !ANSWER_MEMBERS.contains(&key.as_str()));
                Ok(Value::Object(rest))
            }
        };
        Ok(FixedAnswer {
            progress: progress.collect::<Result<_, _>>()?,
            logs: logs.collect::<Result<_, _>>()?,
            changes: changes.collect::<Result<_, _>>()?,
            ask: ask.unwrap_or_default(),
            outcome,
        })
    }

    /// Returns the result, if all questions are answered. Fails if the answer is an error, and as
    /// [`InputRounds::collect`].
    pub(crate) fn complete(
        &self,
        values: &BTreeMap<&str, &Map<String, Value>>,
        state: Option<&Value>,
        responses: &Map<String, Value>,
        capabilities: &Map<String, Value>,
    ) -> Result<Value, Box<UnansweredInput>> {
        let inputs = self.ask.collect(state, responses, capabilities)?;
        let mut values = values.clone();
        values.insert("inputs", &inputs);
        match &self.outcome {
            Ok(result) => Ok(fill_in(result, &values)),
            Err(error) => Err(Box::new(UnansweredInput::Error(error.clone()))),
        }
    }
}

impl Default for FixedAnswer {
    fn default() -> Self {
        FixedAnswer {
            progress: Vec::new(),
            logs: Vec::new(),
            changes: Vec::new(),
            ask: InputRounds::default(),
            outcome: Ok(json!({"content": []})),
        }
    }
}

/// Replaces `${GROUP.NAME}` in all texts of a value. Unknown names become empty.
pub(crate) fn fill_in(value: &Value, values: &BTreeMap<&str, &Map<String, Value>>) -> Value {
    match value {
        Value::String(text) => Value::String(fill_in_text(text, values)),
        Value::Array(items) => items.iter().map(|item| fill_in(item, values)).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), fill_in(value, values))).collect()
        }
        value => value.clone(),
    }
}

fn fill_in_text(text: &str, values: &BTreeMap<&str, &Map<String, Value>>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        filled.push_str(before);
        let known = after.split_once('}').and_then(|(name, after)| {
            let (group, name) = name.split_once('.')?;
            Some((values.get(group)?.get(name), after))
        });
        match known {
            None => {
                filled.push_str("${");
                rest = after;
            }
            Some((value, after)) => {
                match value {
                    None => {}
                    Some(Value::String(text)) => filled.push_str(text),
                    Some(value) => filled.push_str(&value.to_string()),
                }
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}
