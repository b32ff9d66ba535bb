//! Maps failures of providers to model errors, by status and error body.

use hotseat_http::ClientError;
use http::StatusCode;
use serde_json::Value;

use crate::{ModelError, ModelErrorKind};

/// Maximum number of characters of a body in an error.
const MAX_EXCERPT_CHARS: usize = 1000;

impl From<ClientError> for ModelError {
    fn from(error: ClientError) -> Self {
        ModelError::new(ModelErrorKind::Configuration, error.to_string())
    }
}

/// Creates the error for a response with an error status.
pub(in crate::providers) fn from_status(
    url: &str,
    status: StatusCode,
    location: Option<&str>,
    body: &str,
) -> ModelError {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let said = ProviderErrorBody::from_json(&json);
    let kind = kind_from_status(status.as_u16(), &said);
    let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let mut message = format!("{url} answered HTTP {}{reason}", status.as_u16());
    match (kind, location) {
        (ModelErrorKind::Auth, _) => message.push_str("; check the connector's key and its permissions"),
        (_, Some(location)) if status.is_redirection() => {
            message.push_str(&format!("; redirects are not followed; it redirects to {location}"));
        }
        (_, _) if status == StatusCode::NOT_FOUND => {
            message.push_str("; check the connector's base URL and model");
        }
        _ => {}
    }
    let mut error = ModelError::new(kind, message);
    error.status = Some(status.as_u16());
    error.body = excerpt(body);
    error
}

/// Creates the error for an error event in a stream or reply: `{"error": …}` or the inner object.
pub(in crate::providers) fn from_error_event(url: &str, error: &Value) -> ModelError {
    let said = ProviderErrorBody::from_json(error);
    let status = said.code.parse::<u16>().ok().filter(|status| (400..600).contains(status));
    let kind = match status {
        Some(status) => kind_from_status(status, &said),
        // After a request was accepted, failures are the provider's unless it reports otherwise.
        None => said.kind().unwrap_or(ModelErrorKind::Server),
    };
    let mut failure = ModelError::new(kind, format!("{url} ended its reply with an error"));
    failure.status = status;
    failure.body = if error.is_null() { None } else { excerpt(&error.to_string()) };
    failure
}

/// Returns the start of a response body; None if it is blank.
pub(in crate::providers) fn excerpt(body: &str) -> Option<String> {
    let body = body.trim();
    (!body.is_empty()).then(|| hotseat_document::excerpt(body, MAX_EXCERPT_CHARS).into_owned())
}

fn kind_from_status(status: u16, said: &ProviderErrorBody) -> ModelErrorKind {
    match status {
        // An exhausted quota does not recover by waiting.
        429 if said.kind() == Some(ModelErrorKind::Auth) => ModelErrorKind::Auth,
        429 => ModelErrorKind::RateLimit,
        401..=403 => ModelErrorKind::Auth,
        408 => ModelErrorKind::Timeout,
        413 => ModelErrorKind::ContextTooLong,
        500.. => ModelErrorKind::Server,
        _ if said.kind() == Some(ModelErrorKind::ContextTooLong) => ModelErrorKind::ContextTooLong,
        _ => ModelErrorKind::BadRequest,
    }
}

/// Fields of an error body.
struct ProviderErrorBody {
    /// The field `error.type`.
    error_type: String,
    /// The field `error.code`, a string or a number.
    code: String,
    message: String,
}

impl ProviderErrorBody {
    fn from_json(json: &Value) -> ProviderErrorBody {
        let error = json.get("error").filter(|error| error.is_object()).unwrap_or(json);
        let text = |key: &str| match error.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        ProviderErrorBody { error_type: text("type"), code: text("code"), message: text("message") }
    }

    /// Returns the kind of error for known error codes and types of providers.
    fn kind(&self) -> Option<ModelErrorKind> {
        [&self.code, &self.error_type].into_iter().find_map(|word| match word.as_str() {
            "rate_limit_error" | "rate_limit_exceeded" | "too_many_requests" => {
                Some(ModelErrorKind::RateLimit)
            }
            "insufficient_quota"
            | "billing_error"
            | "authentication_error"
            | "invalid_api_key"
            | "permission_error" => Some(ModelErrorKind::Auth),
            "context_length_exceeded" | "request_too_large" => Some(ModelErrorKind::ContextTooLong),
            "overloaded_error"
            | "api_error"
            | "server_error"
            | "internal_server_error"
            | "service_unavailable" => Some(ModelErrorKind::Server),
            "timeout_error" => Some(ModelErrorKind::Timeout),
            // Some providers have no specific code for an exceeded context length.
            "invalid_request_error" if self.is_about_length() => Some(ModelErrorKind::ContextTooLong),
            "invalid_request_error" | "not_found_error" => Some(ModelErrorKind::BadRequest),
            "" if self.is_about_length() => Some(ModelErrorKind::ContextTooLong),
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
