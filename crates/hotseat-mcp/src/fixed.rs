//! Fixed answers of tools, prompts and resources.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::answer::{InputRequired, McpToolResult};
use crate::frame::RpcError;

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
    /// Requests for input, by round and name. The next round begins when all requests of a round have valid answers.
    pub rounds: Vec<Map<String, Value>>,
    /// The result or the error. Texts may contain `${arguments.NAME}`, `${variables.NAME}` and `${inputs.NAME}`.
    pub outcome: Result<Value, RpcError>,
}

/// Next step of an answer with rounds of input.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FixedStep {
    Ask(InputRequired),
    Done(Result<Value, RpcError>),
}

/// An invalid definition of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum FixedAnswerError {
    #[error("an answer must be an object or a text")]
    NoAnswer,
    #[error("`{0}` of an answer must be a list")]
    NoList(&'static str),
    #[error("`{0}` of an answer has an invalid entry")]
    InvalidEntry(&'static str),
}

impl FixedAnswer {
    /// Reads an answer: `result` or `error`, with `progress`, `logs`, `changes` and `ask`. Without `result`, all other members
    /// are the result. A text is a result with this text.
    ///
    /// # Errors
    /// If a member has the wrong type.
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
        let rounds = list("ask")?.iter().map(|round| round.as_object().cloned().ok_or_else(|| wrong("ask")));
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
            rounds: rounds.collect::<Result<_, _>>()?,
            outcome,
        })
    }

    /// Returns the next step, from the state of the previous one and the answers of the client.
    pub(crate) fn step(
        &self,
        values: &BTreeMap<&str, &Map<String, Value>>,
        state: Option<&Value>,
        responses: &Map<String, Value>,
    ) -> FixedStep {
        let mut round = state.and_then(|state| state["round"].as_u64()).unwrap_or(0) as usize;
        let mut inputs = state.and_then(|state| state["inputs"].as_object()).cloned().unwrap_or_default();
        if let Some(requests) = self.rounds.get(round) {
            for (name, request) in requests {
                if let Some(response) = responses.get(name).filter(|response| is_valid(request, response)) {
                    inputs.insert(name.clone(), response.clone());
                }
            }
            // A client without a capability is not asked for it, so one answer of the round is enough to continue.
            if requests.keys().all(|name| inputs.contains_key(name))
                || (!responses.is_empty() && responses.keys().all(|name| inputs.contains_key(name)))
            {
                round += 1;
            }
        }
        match self.rounds.get(round) {
            Some(requests) => FixedStep::Ask(InputRequired {
                requests: requests.clone(),
                state: Some(json!({"round": round, "inputs": inputs})),
            }),
            None => {
                let mut values = values.clone();
                values.insert("inputs", &inputs);
                FixedStep::Done(
                    self.outcome.as_ref().map(|result| fill_in(result, &values)).map_err(Clone::clone),
                )
            }
        }
    }
}

impl Default for FixedAnswer {
    fn default() -> Self {
        FixedAnswer {
            progress: Vec::new(),
            logs: Vec::new(),
            changes: Vec::new(),
            rounds: Vec::new(),
            outcome: Ok(json!({"content": []})),
        }
    }
}

/// Whether a response has the form that its request demands.
fn is_valid(request: &Value, response: &Value) -> bool {
    let Some(response) = response.as_object() else { return false };
    match request["method"].as_str() {
        Some("elicitation/create") => match response.get("action").and_then(Value::as_str) {
            Some("accept") => {
                let content = response.get("content").cloned().unwrap_or_else(|| json!({}));
                let schema = &request["params"]["requestedSchema"];
                !schema.is_object() || jsonschema::is_valid(schema, &content)
            }
            Some("decline" | "cancel") => true,
            _ => false,
        },
        Some("sampling/createMessage") => response.contains_key("content"),
        Some("roots/list") => response.get("roots").is_some_and(Value::is_array),
        _ => true,
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
