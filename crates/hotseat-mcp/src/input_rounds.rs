//! Questions of an answer to the client: asked in rounds before the answer is given.

use hotseat_schema::{JsonSchema, JsonSchemaError};
use serde_json::{Map, Value, json};

use crate::answer::{InputRequired, MAX_VIOLATIONS, McpAnswer, McpToolResult};
use crate::frame::RpcError;
use crate::revision::error_code;

/// Requests to the client that precede an answer. The next round begins when all requests of a round have responses.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InputRounds(Vec<Map<String, Value>>);

/// Why an answer is not given yet, or never.
#[derive(Debug, Clone, PartialEq)]
pub enum UnansweredInput {
    /// The client is asked, and calls again with the state.
    Asked(InputRequired),
    /// The user declined or cancelled a question. A tool reports it as its error.
    Refused(String),
    /// A response does not fit its question.
    Error(RpcError),
}

impl From<UnansweredInput> for McpAnswer {
    fn from(input: UnansweredInput) -> McpAnswer {
        match input {
            UnansweredInput::Asked(input) => McpAnswer::InputRequired(input),
            UnansweredInput::Refused(text) => McpAnswer::Result(McpToolResult::error(text)),
            UnansweredInput::Error(error) => McpAnswer::Error(error),
        }
    }
}

/// An invalid definition of questions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum InputRoundsError {
    #[error("`ask` must be an object from names to questions, or a list of such objects")]
    NoRounds,
    #[error("`ask` has two questions with the name `{0}`")]
    DuplicateName(String),
    #[error("the question `{0}` must have a `message`, and may have a `schema`")]
    NoQuestion(String),
    #[error("the `schema` of the question `{0}` must have `type: object`")]
    NoObject(String),
    #[error("the `schema` of the question `{name}` is invalid: {source}")]
    Schema { name: String, source: JsonSchemaError },
}

impl InputRounds {
    /// Reads questions by their names: `{message, schema}` for the user of the client, or a request with
    /// `method` and `params`. A list has one object for each round. Fails if a question has another form, or
    /// its schema is invalid.
    pub fn from_json(ask: &Value) -> Result<InputRounds, InputRoundsError> {
        let rounds = match ask {
            Value::Array(rounds) => rounds.as_slice(),
            round => std::slice::from_ref(round),
        };
        let mut read: Vec<Map<String, Value>> = Vec::new();
        for round in rounds {
            let mut requests = Map::new();
            for (name, question) in round.as_object().ok_or(InputRoundsError::NoRounds)? {
                if read.iter().any(|earlier| earlier.contains_key(name)) {
                    return Err(InputRoundsError::DuplicateName(name.clone()));
                }
                requests.insert(name.clone(), read_question(name, question)?);
            }
            read.push(requests);
        }
        Ok(InputRounds(read))
    }

    /// Returns the responses by the names of their requests, if no question is open. Fails if a question is
    /// open, or its response is no acceptance with valid content.
    pub fn collect(
        &self,
        state: Option<&Value>,
        responses: &Map<String, Value>,
        capabilities: &Map<String, Value>,
    ) -> Result<Map<String, Value>, Box<UnansweredInput>> {
        let mut round = state.and_then(|state| state["round"].as_u64()).unwrap_or(0) as usize;
        let mut inputs = state.and_then(|state| state["inputs"].as_object()).cloned().unwrap_or_default();
        // Responses to questions that were not asked are ignored.
        if let Some(requests) = self.asked(round, capabilities).filter(|_| state.is_some()) {
            for (name, request) in &requests {
                if let Some(response) = responses.get(name) {
                    check_response(name, request, response)?;
                    inputs.insert(name.clone(), response.clone());
                }
            }
            round += usize::from(requests.keys().all(|name| inputs.contains_key(name)));
        }
        match self.asked(round, capabilities) {
            None => Ok(inputs),
            Some(requests) => Err(Box::new(UnansweredInput::Asked(InputRequired {
                requests,
                state: Some(json!({"round": round, "inputs": inputs})),
            }))),
        }
    }

    /// Requests of a round without those that the client cannot serve, unless it can serve none.
    fn asked(&self, round: usize, capabilities: &Map<String, Value>) -> Option<Map<String, Value>> {
        let all = self.0.get(round)?;
        let is_supported = |request: &Value| {
            required_capability(request).is_none_or(|capability| capabilities.contains_key(capability))
        };
        let mut supported = all.clone();
        supported.retain(|_, request| is_supported(request));
        Some(if supported.is_empty() { all.clone() } else { supported })
    }
}

/// Returns the capability that a client needs for a request.
pub(crate) fn required_capability(request: &Value) -> Option<&'static str> {
    match request["method"].as_str() {
        Some("elicitation/create") => Some("elicitation"),
        Some("sampling/createMessage") => Some("sampling"),
        Some("roots/list") => Some("roots"),
        _ => None,
    }
}

fn read_question(name: &str, question: &Value) -> Result<Value, InputRoundsError> {
    let wrong = || InputRoundsError::NoQuestion(name.to_string());
    let members = question.as_object().ok_or_else(wrong)?;
    if members.contains_key("method") {
        return Ok(question.clone());
    }
    if members.keys().any(|key| !matches!(key.as_str(), "message" | "schema")) {
        return Err(wrong());
    }
    let message = members.get("message").and_then(Value::as_str).ok_or_else(wrong)?;
    let schema =
        members.get("schema").cloned().unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    if schema["type"] != "object" {
        return Err(InputRoundsError::NoObject(name.to_string()));
    }
    JsonSchema::compile(&schema)
        .map_err(|source| InputRoundsError::Schema { name: name.to_string(), source })?;
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    Ok(json!({"method": "elicitation/create", "params": params}))
}

/// Fails if the user refused the question, or the response does not have the form that its request demands.
fn check_response(name: &str, request: &Value, response: &Value) -> Result<(), Box<UnansweredInput>> {
    let refused =
        |how: &str| Err(Box::new(UnansweredInput::Refused(format!("The user {how} the question `{name}`"))));
    let problem = match response.get("action").and_then(Value::as_str) {
        Some("decline") => return refused("declined"),
        Some("cancel") => return refused("cancelled"),
        Some("accept") => {
            let content = response.get("content").cloned().unwrap_or_else(|| json!({}));
            let violations = schema_violations(&request["params"]["requestedSchema"], &content);
            (!violations.is_empty()).then(|| format!("does not fit its schema: {}", violations.join("; ")))
        }
        _ => {
            let is_valid = match request["method"].as_str() {
                Some("elicitation/create") => false,
                Some("sampling/createMessage") => response.get("content").is_some(),
                Some("roots/list") => response.get("roots").is_some_and(Value::is_array),
                _ => true,
            };
            (!is_valid).then(|| "does not have the form of an answer to its question".to_string())
        }
    };
    let Some(problem) = problem else { return Ok(()) };
    let message = format!("the response to `{name}` {problem}");
    Err(Box::new(UnansweredInput::Error(RpcError::new(error_code::INVALID_PARAMS, message))))
}

fn schema_violations(schema: &Value, content: &Value) -> Vec<String> {
    if !schema.is_object() {
        return Vec::new();
    }
    let found = JsonSchema::compile(schema).and_then(|schema| schema.violations(content, MAX_VIOLATIONS));
    found.unwrap_or_else(|error| vec![error.to_string()])
}
