//! Why a model did not reply.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Reply;

/// A call that brought no reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelError {
    /// What kind of failure it is; it alone decides whether another attempt makes sense.
    pub kind: ErrorKind,
    /// What happened, in words for a person; the address and the limits that matter are in it, never a key.
    pub message: String,
    /// The HTTP status, where the provider answered with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the provider asks to be left alone. In recordings as milliseconds.
    #[serde(rename = "retry_after_ms", default, skip_serializing_if = "Option::is_none", with = "millis")]
    pub retry_after: Option<Duration>,
    /// The beginning of what the provider sent, where that says more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// What had arrived of the reply before the failure, where anything had. Whoever watched has seen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Box<Reply>>,
}

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The provider could not be reached, or the connection broke before the reply was whole.
    Network,
    /// A time limit passed.
    Timeout,
    /// The provider takes no more requests for now (HTTP 429).
    RateLimit,
    /// The provider failed (HTTP 5xx, or an error in its stream that says so).
    Server,
    /// The key is missing, wrong, not allowed to do this, or out of credit (HTTP 401, 402, 403).
    Auth,
    /// The provider does not accept the request (other HTTP 4xx).
    BadRequest,
    /// The request is longer than the model can read.
    ContextTooLong,
    /// The provider answered something that cannot be understood.
    Decode,
    /// The model is set up in a way that cannot work; nothing was sent.
    Configuration,
    /// A script has no rule for the request, or a recording no reply: a fault of the test, not of a model.
    Unanswered,
}

impl ErrorKind {
    /// Whether the same request may be answered at another attempt.
    pub fn can_retry(self) -> bool {
        match self {
            ErrorKind::Network | ErrorKind::Timeout | ErrorKind::RateLimit | ErrorKind::Server => true,
            ErrorKind::Auth
            | ErrorKind::BadRequest
            | ErrorKind::ContextTooLong
            | ErrorKind::Decode
            | ErrorKind::Configuration
            | ErrorKind::Unanswered => false,
        }
    }

    /// The name in recordings, scripts and traces.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Network => "network",
            ErrorKind::Timeout => "timeout",
            ErrorKind::RateLimit => "rate_limit",
            ErrorKind::Server => "server",
            ErrorKind::Auth => "auth",
            ErrorKind::BadRequest => "bad_request",
            ErrorKind::ContextTooLong => "context_too_long",
            ErrorKind::Decode => "decode",
            ErrorKind::Configuration => "configuration",
            ErrorKind::Unanswered => "unanswered",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl ModelError {
    /// A failure of which no more is known than its kind and a message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        ModelError {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
            body: None,
            partial: None,
        }
    }

    /// Whether the same request may be answered at another attempt. Whether there should be one when part of a reply
    /// had been seen already is for the caller to say.
    pub fn can_retry(&self) -> bool {
        self.kind.can_retry()
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.body {
            Some(body) => write!(f, ": {body}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ModelError {}

mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(duration: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
        let millis = duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        millis.serialize(out)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(input)?.map(Duration::from_millis))
    }
}
