//! Errors of requests and their HTTP representation.

use axum::Json;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use hotseat_trace::named;
use serde_json::json;

/// Error that a request is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestError {
    /// Kind of the error.
    pub reason: RequestErrorKind,
    /// Description of the problem and how to fix it.
    pub message: String,
    /// Invalid member of the request, for example `messages[3].content`.
    pub member: Option<String>,
    /// Error code of the failed agent; replaces the code of the kind.
    pub code: Option<String>,
}

named! {
    /// Kind of a request error.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RequestErrorKind {
        /// The request is malformed or asks for something unsupported.
        BadRequest = "invalid_request",
        /// Unknown agent, model or address.
        NotFound = "not_found",
        /// The address does not support the method.
        MethodNotAllowed = "method_not_allowed",
        /// The content type of the body is not JSON.
        MediaType = "unsupported_media_type",
        /// The origin or host of the request is not allowed.
        Forbidden = "forbidden",
        /// The conversation is busy, or its state differs from the request.
        Conflict = "conflict",
        /// The body is too long.
        TooLarge = "request_too_large",
        /// The request did not arrive in time.
        Timeout = "request_timeout",
        /// The server has no capacity at the moment.
        Overloaded = "server_full",
        /// The agent or the runtime failed.
        Failed = "agent_failed",
    }
}

impl RequestErrorKind {
    fn status(self) -> StatusCode {
        match self {
            RequestErrorKind::BadRequest => StatusCode::BAD_REQUEST,
            RequestErrorKind::NotFound => StatusCode::NOT_FOUND,
            RequestErrorKind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            RequestErrorKind::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            RequestErrorKind::Forbidden => StatusCode::FORBIDDEN,
            RequestErrorKind::Conflict => StatusCode::CONFLICT,
            RequestErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            RequestErrorKind::Timeout => StatusCode::REQUEST_TIMEOUT,
            RequestErrorKind::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            RequestErrorKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the error type that clients of chat completions know.
    fn error_type(self) -> &'static str {
        match self {
            RequestErrorKind::BadRequest
            | RequestErrorKind::NotFound
            | RequestErrorKind::MethodNotAllowed
            | RequestErrorKind::MediaType
            | RequestErrorKind::Forbidden
            | RequestErrorKind::Conflict
            | RequestErrorKind::TooLarge
            | RequestErrorKind::Timeout => "invalid_request_error",
            RequestErrorKind::Overloaded | RequestErrorKind::Failed => "server_error",
        }
    }
}

impl RequestError {
    /// Creates an error for a malformed or unsupported member.
    pub fn bad_request(member: impl Into<String>, message: impl Into<String>) -> Self {
        RequestError::new(RequestErrorKind::BadRequest, message).with_member(member)
    }

    /// Creates an error of a kind.
    pub fn new(reason: RequestErrorKind, message: impl Into<String>) -> Self {
        RequestError { reason, message: message.into(), member: None, code: None }
    }

    /// Creates an error for a conversation whose state differs from the request.
    pub fn conflict(message: impl Into<String>) -> Self {
        RequestError::new(RequestErrorKind::Conflict, message)
    }

    /// Sets the member of the request that the error is about.
    #[must_use]
    pub fn with_member(self, member: impl Into<String>) -> Self {
        RequestError { member: Some(member.into()), ..self }
    }

    /// Returns the body of the response, in the format of chat completions (also used for AG-UI).
    pub fn body(&self) -> serde_json::Value {
        json!({"error": {
            "message": self.message,
            "type": self.reason.error_type(),
            "param": self.member,
            "code": self.code.as_deref().unwrap_or(self.reason.name()),
        }})
    }
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        let mut response = (self.reason.status(), Json(self.body())).into_response();
        // Some clients retry these statuses automatically. A refused request would be refused again, and a
        // failed one may have had effects.
        response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
        response
    }
}
