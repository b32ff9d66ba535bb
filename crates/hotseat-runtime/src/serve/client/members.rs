//! Members that the requests of several protocols contain.

use hotseat_document::json::{may_have_more_values, read_bytes};
use hotseat_model::ModelTool;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::Value;

use super::request_error::{RequestError, RequestErrorKind};

/// Maximum number of JSON values of a request: values take far more memory than their text.
const MAX_JSON_VALUES: usize = 200_000;

/// Maximum length of a thread or run id, in bytes.
const MAX_ID_BYTES: usize = 256;

/// Deserialises a member that may be absent or `null` as its default.
pub fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(input: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

/// Parses JSON of a client. Errors call it `what`.
pub fn parse_json(what: &str, text: &[u8]) -> Result<Value, RequestError> {
    if may_have_more_values(text, MAX_JSON_VALUES) {
        let message = format!("the {what} has more than {MAX_JSON_VALUES} JSON values");
        return Err(RequestError::new(RequestErrorKind::BadRequest, message));
    }
    read_bytes(text)
        .map_err(|error| RequestError::new(RequestErrorKind::BadRequest, format!("the {what} {error}")))
}

/// Parses the body of a request, which is an object.
pub fn parse_body(body: &[u8]) -> Result<Value, RequestError> {
    if body.trim_ascii().is_empty() {
        let message = "the body is empty; it must be a JSON object";
        return Err(RequestError::new(RequestErrorKind::BadRequest, message));
    }
    match parse_json("body", body)? {
        members @ Value::Object(_) => Ok(members),
        _ => Err(RequestError::new(RequestErrorKind::BadRequest, "the body must be a JSON object")),
    }
}

/// Deserialises a part of a request. `at` is its position, empty for the whole request. Errors name the member that is wrong.
pub fn parse_member<T: DeserializeOwned>(at: &str, value: Value) -> Result<T, RequestError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let at = match error.path().to_string() {
            path if path == "." => at.to_string(),
            path => member_path(at, &path),
        };
        let problem = describe_problem(&error.into_inner().to_string());
        let missing = problem.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
        let member = missing.map_or_else(|| at.clone(), |name| member_path(&at, name));
        let message = if at.is_empty() { problem.clone() } else { format!("{at}: {problem}") };
        match member.is_empty() {
            true => RequestError::new(RequestErrorKind::BadRequest, message),
            false => RequestError::bad_request(member, message),
        }
    })
}

/// Joins a position and the path of a member below it.
fn member_path(at: &str, path: &str) -> String {
    let dot = if at.is_empty() || path.starts_with('[') { "" } else { "." };
    format!("{at}{dot}{path}")
}

/// Replaces the names of Rust types in a problem by those of JSON.
pub fn describe_problem(problem: &str) -> String {
    let Some((found, expected)) = problem.rsplit_once(", expected ") else { return problem.to_string() };
    let found = match found {
        "invalid type: map" => "invalid type: object",
        "invalid type: sequence" => "invalid type: list",
        found => found,
    };
    let expected = match expected {
        "a sequence" => "a list",
        "a map" => "an object",
        "u32" | "u64" | "usize" => "a whole number",
        "f32" | "f64" => "a number",
        expected => expected,
    };
    format!("{found}, expected {expected}")
}

/// Checks an id that the client chose.
pub fn check_id(member: &str, id: &str) -> Result<(), RequestError> {
    if id.is_empty() || id.len() > MAX_ID_BYTES || id.chars().any(char::is_control) {
        let message =
            format!("`{member}` must be a string of 1 to {MAX_ID_BYTES} bytes without control characters");
        return Err(RequestError::bad_request(member, message));
    }
    Ok(())
}

/// Returns the text of a content, which is a string or a list of text parts.
pub fn content_string(at: &str, content: &Value) -> Result<String, RequestError> {
    let parts = match content {
        Value::Null => return Ok(String::new()),
        Value::String(text) => return Ok(text.clone()),
        Value::Array(parts) => parts,
        _ => {
            return Err(RequestError::bad_request(
                format!("{at}.content"),
                "content must be a string or a list of parts",
            ));
        }
    };
    let mut whole = String::new();
    for (index, part) in parts.iter().enumerate() {
        match (part.get("type").and_then(Value::as_str), part.get("text").and_then(Value::as_str)) {
            (Some("text"), Some(text)) => whole.push_str(text),
            (kind, _) => {
                let kind = kind.unwrap_or("without a type");
                let message = format!("the agent supports only parts of type `text`, got {kind}");
                return Err(RequestError::bad_request(format!("{at}.content[{index}]"), message));
            }
        }
    }
    Ok(whole)
}

/// Checks that a new message of the user, which is this member of a request, has text.
pub fn check_user_text(member: &str, text: &str) -> Result<(), RequestError> {
    match text.trim().is_empty() {
        true => {
            let problem = format!("{member}: the message of the user has no text");
            Err(RequestError::bad_request(member, problem))
        }
        false => Ok(()),
    }
}

/// Says that a message has a second result of a call, which differs from the first one.
pub fn repeated_result(at: &str, call: &str) -> String {
    format!(
        "{at}: tool call {call:?} is answered twice, with different results; send one message for each call"
    )
}

/// A tool of the client.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireTool {
    name: String,
    #[serde(default, deserialize_with = "nullable")]
    description: String,
    #[serde(default)]
    parameters: Value,
}

/// Reads the tools of the client from the member `tools`.
pub fn client_tools(tools: impl IntoIterator<Item = Value>) -> Result<Vec<ModelTool>, RequestError> {
    let numbered = tools.into_iter().enumerate();
    numbered.map(|(index, tool)| client_tool(&format!("tools[{index}]"), tool)).collect()
}

/// Builds a tool that a client offers.
pub fn client_tool(at: &str, tool: Value) -> Result<ModelTool, RequestError> {
    let WireTool { name, description, parameters } = parse_member(at, tool)?;
    if name.is_empty() {
        return Err(RequestError::bad_request(format!("{at}.name"), "a tool needs a name"));
    }
    let input_schema = match parameters {
        Value::Null => serde_json::json!({"type": "object"}),
        schema @ Value::Object(_) => schema,
        _ => {
            return Err(RequestError::bad_request(
                format!("{at}.parameters"),
                "parameters must be a JSON Schema object",
            ));
        }
    };
    Ok(ModelTool { name, description, input_schema })
}
