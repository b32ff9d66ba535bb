//! Members that the requests of several protocols contain.

use hotseat_document::json::{may_have_more_values, read_bytes};
use hotseat_model::ModelTool;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::Value;

use super::request_error::RequestError;

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
        return Err(RequestError::bad_request(what, message));
    }
    read_bytes(text).map_err(|error| RequestError::bad_request(what, format!("the {what} {error}")))
}

/// Parses the body of a request, which is an object.
pub fn parse_body(body: &[u8]) -> Result<Value, RequestError> {
    match parse_json("body", body)? {
        members @ Value::Object(_) => Ok(members),
        _ => Err(RequestError::bad_request("body", "the body must be a JSON object")),
    }
}

/// Deserialises a part of a request. Errors name its position.
pub fn parse_member<T: DeserializeOwned>(at: &str, value: Value) -> Result<T, RequestError> {
    serde_json::from_value(value).map_err(|error| RequestError::bad_request(at, format!("{at}: {error}")))
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

/// Builds a tool that a client offers.
pub fn client_tool(
    at: &str,
    name: String,
    description: String,
    parameters: Value,
) -> Result<ModelTool, RequestError> {
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
