//! What went wrong at a provider, by its status and by what it says.

use reqwest::StatusCode;
use serde_json::Value;

use crate::{ErrorKind, ModelError};

/// How many characters of a body are shown.
const SHOWN: usize = 1000;

/// The failure that an answer with an error status tells of.
pub(super) fn of_status(url: &str, status: StatusCode, location: Option<&str>, body: &str) -> ModelError {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let said = Said::of(&json);
    let kind = kind_of_status(status.as_u16(), &said);
    let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let mut message = format!("{url} answered HTTP {}{reason}", status.as_u16());
    match (kind, location) {
        (ErrorKind::Auth, _) => message.push_str("; check the key of the connector and what it may do"),
        (_, Some(location)) if status.is_redirection() => {
            message.push_str(&format!("; redirects are not followed, it points to {location}"));
        }
        (_, _) if status == StatusCode::NOT_FOUND => {
            message.push_str("; check the base URL and the model of the connector");
        }
        _ => {}
    }
    let mut error = ModelError::new(kind, message);
    error.status = Some(status.as_u16());
    error.body = excerpt(body);
    error
}

/// The failure that an error within a stream or a reply tells of: `{"error": …}` or its inside.
pub(super) fn of_event(url: &str, error: &Value) -> ModelError {
    let said = Said::of(error);
    let status = said.code.parse::<u16>().ok().filter(|status| (400..600).contains(status));
    let kind = match status {
        Some(status) => kind_of_status(status, &said),
        // Whatever happens after a request was accepted is the provider's fault, unless it says otherwise.
        None => said.kind().unwrap_or(ErrorKind::Server),
    };
    let mut failure = ModelError::new(kind, format!("{url} broke its reply off with an error"));
    failure.status = status;
    failure.body = if error.is_null() { None } else { excerpt(&error.to_string()) };
    failure
}

/// The beginning of what a provider sent; none if it sent nothing.
pub(super) fn excerpt(body: &str) -> Option<String> {
    let body = body.trim();
    match body.char_indices().nth(SHOWN) {
        _ if body.is_empty() => None,
        Some((end, _)) => Some(format!("{}…", &body[..end])),
        None => Some(body.to_owned()),
    }
}

fn kind_of_status(status: u16, said: &Said) -> ErrorKind {
    match status {
        // A quota that is used up does not come back by waiting.
        429 if said.kind() == Some(ErrorKind::Auth) => ErrorKind::Auth,
        429 => ErrorKind::RateLimit,
        401..=403 => ErrorKind::Auth,
        408 => ErrorKind::Timeout,
        413 => ErrorKind::ContextTooLong,
        500.. => ErrorKind::Server,
        _ if said.kind() == Some(ErrorKind::ContextTooLong) => ErrorKind::ContextTooLong,
        _ => ErrorKind::BadRequest,
    }
}

/// What an error says of itself.
struct Said {
    /// `error.type`.
    class: String,
    /// `error.code`, a word or a number.
    code: String,
    message: String,
}

impl Said {
    fn of(json: &Value) -> Said {
        let error = json.get("error").filter(|error| error.is_object()).unwrap_or(json);
        let text = |key: &str| match error.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        Said { class: text("type"), code: text("code"), message: text("message") }
    }

    /// What the words of the providers mean, as far as they are known.
    fn kind(&self) -> Option<ErrorKind> {
        [&self.code, &self.class].into_iter().find_map(|word| match word.as_str() {
            "rate_limit_error" | "rate_limit_exceeded" | "too_many_requests" => Some(ErrorKind::RateLimit),
            "insufficient_quota"
            | "billing_error"
            | "authentication_error"
            | "invalid_api_key"
            | "permission_error" => Some(ErrorKind::Auth),
            "context_length_exceeded" | "request_too_large" => Some(ErrorKind::ContextTooLong),
            "overloaded_error"
            | "api_error"
            | "server_error"
            | "internal_server_error"
            | "service_unavailable" => Some(ErrorKind::Server),
            "timeout_error" => Some(ErrorKind::Timeout),
            // Some providers have no word of their own for it.
            "invalid_request_error" if self.is_about_length() => Some(ErrorKind::ContextTooLong),
            "invalid_request_error" | "not_found_error" => Some(ErrorKind::BadRequest),
            "" if self.is_about_length() => Some(ErrorKind::ContextTooLong),
            _ => None,
        })
    }

    fn is_about_length(&self) -> bool {
        let message = self.message.to_lowercase();
        ["prompt is too long", "maximum context length", "context length exceeded", "exceeds the context"]
            .iter()
            .any(|words| message.contains(words))
    }
}
