//! JSON-RPC frames: parsed from bytes, and written.

use hotseat_document::json::{may_have_more_values, read_bytes};
use hotseat_trace::as_integer;
use serde_json::{Map, Number, Value, json};

use crate::revision::error_code;

/// Maximum number of JSON values in a message: values take far more memory than their text.
const MAX_JSON_VALUES: usize = 1_000_000;

/// One message of a peer.
///
/// Parameters are empty if the message has none.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the documentation of the variants names the members")]
pub enum Frame {
    /// A request that expects an answer. Its identifier is a text or a number.
    Request { id: Value, method: String, params: Map<String, Value> },
    /// A notification, without an answer.
    Notification { method: String, params: Map<String, Value> },
    /// The answer to a request of the other side. The identifier is null if it has none: the peer could not read the
    /// request, or answers a notification.
    Response { id: Value, outcome: Result<Value, RpcError> },
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    /// Number of the error, see [`error_code`].
    pub code: i64,
    /// Text for people.
    pub message: String,
    /// Details for programs.
    pub data: Option<Value>,
}

impl RpcError {
    /// Creates an error without data.
    pub fn new(code: i64, message: impl ToString) -> RpcError {
        RpcError { code, message: message.to_string(), data: None }
    }

    /// The same error with data.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> RpcError {
        self.data = Some(data);
        self
    }

    /// Returns the error as the member `error` of a response.
    pub fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }

    /// Reads the member `error` of a response; unknown forms become an internal error.
    pub fn from_json(error: &Value) -> RpcError {
        RpcError {
            code: error.get("code").and_then(Value::as_i64).unwrap_or(error_code::INTERNAL_ERROR),
            message: error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or("error without message")
                .to_string(),
            data: error.get("data").cloned(),
        }
    }
}

/// Error of a frame that cannot be read, with the identifier of its request if that is known.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameError {
    /// Identifier of the request, or null.
    pub id: Value,
    /// Error to answer with.
    pub error: RpcError,
}

impl Frame {
    /// Reads one frame. Values nested deeper than 128 levels are refused, and too many values; the caller
    /// bounds the length. Fails if the bytes are no JSON, an object has a key twice, or the value is no
    /// JSON-RPC 2.0 message.
    pub fn parse(bytes: &[u8]) -> Result<Frame, Box<FrameError>> {
        if may_have_more_values(bytes, MAX_JSON_VALUES) {
            let message = format!("the message has more than {MAX_JSON_VALUES} JSON values");
            let error = RpcError::new(error_code::INVALID_REQUEST, message);
            return Err(Box::new(FrameError { id: Value::Null, error }));
        }
        let value = read_bytes(bytes).map_err(|error| {
            let error = RpcError::new(error_code::PARSE_ERROR, format!("the message {error}"));
            Box::new(FrameError { id: Value::Null, error })
        })?;
        Frame::from_json(value)
    }

    /// Reads one frame from a JSON value. Fails if the value is no JSON-RPC 2.0 message.
    pub fn from_json(value: Value) -> Result<Frame, Box<FrameError>> {
        let invalid = |id: &Value, message: &str| {
            let error = RpcError::new(error_code::INVALID_REQUEST, message);
            Box::new(FrameError { id: id.clone(), error })
        };
        let mut frame = match value {
            Value::Object(frame) => frame,
            Value::Array(_) => return Err(invalid(&Value::Null, "batches are not supported")),
            _ => return Err(invalid(&Value::Null, "a message must be an object")),
        };
        let has_error = frame.get("error").is_some_and(|error| !error.is_null());
        let is_notification = method_of(&frame).is_some_and(|method| method.starts_with("notifications/"));
        let id = match frame.remove("id") {
            // Clients ignore answers without an id, and the id of a notification if it is null.
            None if has_error && !frame.contains_key("method") => Some(Value::Null),
            None => None,
            Some(id @ (Value::String(_) | Value::Number(_))) => Some(comparable_id(id)),
            Some(Value::Null) if !frame.contains_key("method") => Some(Value::Null),
            Some(Value::Null) if is_notification => None,
            Some(_) => return Err(invalid(&Value::Null, "`id` must be a text or a number")),
        };
        let shown = id.clone().unwrap_or(Value::Null);
        if frame.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid(&shown, "`jsonrpc` must be \"2.0\""));
        }
        if let Some(method) = frame.remove("method") {
            let Value::String(method) = method else {
                return Err(invalid(&shown, "`method` must be a text"));
            };
            let mut params = match frame.remove("params") {
                None | Some(Value::Null) => Map::new(),
                Some(Value::Object(params)) => params,
                Some(_) => return Err(invalid(&shown, "`params` must be an object")),
            };
            if method == "notifications/cancelled"
                && let Some(cancelled) = params.get_mut("requestId")
            {
                *cancelled = comparable_id(cancelled.take());
            }
            return Ok(match id {
                Some(id) => Frame::Request { id, method, params },
                None => Frame::Notification { method, params },
            });
        }
        let Some(id) = id else {
            return Err(invalid(&shown, "a message needs `method` or `id`"));
        };
        // Some servers write both members, one of them null.
        let error = frame.remove("error").filter(|error| !error.is_null());
        match (frame.remove("result"), error) {
            (Some(result), None) => Ok(Frame::Response { id, outcome: Ok(result) }),
            (None | Some(Value::Null), Some(error)) => {
                Ok(Frame::Response { id, outcome: Err(RpcError::from_json(&error)) })
            }
            (Some(_), Some(_)) => Err(invalid(&id, "a message has both `result` and `error`")),
            (None, None) => Err(invalid(&id, "a message needs `method`, `result` or `error`")),
        }
    }

    /// Writes the frame as a JSON-RPC 2.0 message.
    pub fn to_json(&self) -> Value {
        match self {
            Frame::Request { id, method, params } => request(id, method, params),
            Frame::Notification { method, params } => notification(method, params),
            Frame::Response { id, outcome } => response(id, outcome),
        }
    }
}

fn method_of(frame: &Map<String, Value>) -> Option<&str> {
    frame.get("method")?.as_str()
}

/// Returns an identifier in the form in which it is compared: 1.0 is 1.
fn comparable_id(id: Value) -> Value {
    let integer = id.as_number().and_then(as_integer).and_then(Number::from_i128);
    integer.map_or(id, Value::Number)
}

fn request(id: &Value, method: &str, params: &Map<String, Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn notification(method: &str, params: &Map<String, Value>) -> Value {
    match params.is_empty() {
        true => json!({"jsonrpc": "2.0", "method": method}),
        false => json!({"jsonrpc": "2.0", "method": method, "params": params}),
    }
}

fn response(id: &Value, outcome: &Result<Value, RpcError>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error.to_json()}),
    }
}
