//! Requests that are not answered, and what their clients are told.

use axum::Json;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of reason it is.
    pub reason: Reason,
    /// The reason in words, with what to do next.
    pub message: String,
    /// The member of the request that is at fault, for instance `messages[3].content`.
    pub member: Option<String>,
    /// What the agent that failed calls it, in place of the name of the reason.
    pub code: Option<String>,
}

/// The kinds of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The request cannot be understood, or asks for something that is not done here.
    BadRequest,
    /// There is no such agent, model or address.
    NotFound,
    /// The address takes other methods.
    Method,
    /// The body is no JSON, as its header says.
    MediaType,
    /// It comes from a page or for a host that this server does not serve.
    Forbidden,
    /// The conversation is not as the request takes it to be, or is busy.
    Conflict,
    /// The body is too long.
    TooLarge,
    /// The request came too slowly.
    Slow,
    /// The server has no room for it now.
    Full,
    /// The agent failed, or the runtime did.
    Failed,
}

impl Reason {
    fn status(self) -> StatusCode {
        match self {
            Reason::BadRequest => StatusCode::BAD_REQUEST,
            Reason::NotFound => StatusCode::NOT_FOUND,
            Reason::Method => StatusCode::METHOD_NOT_ALLOWED,
            Reason::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Reason::Forbidden => StatusCode::FORBIDDEN,
            Reason::Conflict => StatusCode::CONFLICT,
            Reason::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Reason::Slow => StatusCode::REQUEST_TIMEOUT,
            Reason::Full => StatusCode::SERVICE_UNAVAILABLE,
            Reason::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The name that clients of chat completions know such errors by.
    fn kind(self) -> &'static str {
        match self {
            Reason::BadRequest
            | Reason::NotFound
            | Reason::Method
            | Reason::MediaType
            | Reason::Forbidden
            | Reason::Conflict
            | Reason::TooLarge
            | Reason::Slow => "invalid_request_error",
            Reason::Full | Reason::Failed => "server_error",
        }
    }

    fn code(self) -> &'static str {
        match self {
            Reason::BadRequest => "invalid_request",
            Reason::NotFound => "not_found",
            Reason::Method => "method_not_allowed",
            Reason::MediaType => "unsupported_media_type",
            Reason::Forbidden => "forbidden",
            Reason::Conflict => "conflict",
            Reason::TooLarge => "request_too_large",
            Reason::Slow => "request_timeout",
            Reason::Full => "server_full",
            Reason::Failed => "agent_failed",
        }
    }
}

impl Refusal {
    /// Something that cannot be understood, or is not done here.
    pub fn bad(member: impl Into<String>, message: impl Into<String>) -> Self {
        Refusal {
            reason: Reason::BadRequest,
            message: message.into(),
            member: Some(member.into()),
            code: None,
        }
    }

    /// A refusal for another reason.
    pub fn of(reason: Reason, message: impl Into<String>) -> Self {
        Refusal { reason, message: message.into(), member: None, code: None }
    }

    /// The conversation is not as the request takes it to be.
    pub fn conflict(message: impl Into<String>) -> Self {
        Refusal::of(Reason::Conflict, message)
    }

    /// The body of the answer: the shape that clients of chat completions read, for AG-UI too.
    pub fn body(&self) -> serde_json::Value {
        json!({"error": {
            "message": self.message,
            "type": self.reason.kind(),
            "param": self.member,
            "code": self.code.as_deref().unwrap_or(self.reason.code()),
        }})
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.reason.status(), Json(self.body())).into_response();
        // What was refused is refused again, and what has failed may have had effects: nobody should repeat it
        // without thinking, which some clients do for these statuses.
        response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
        response
    }
}
