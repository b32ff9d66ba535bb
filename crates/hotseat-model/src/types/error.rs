//! Errors of model calls.

use std::time::Duration;

use hotseat_trace::{named, optional_members};
use serde::{Deserialize, Serialize};

use super::ModelReply;

optional_members! {
    /// A failed model call.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
    #[error("{message}{}", .body.as_ref().map_or_else(String::new, |body| format!(": {body}")))]
    pub struct ModelError {
        /// Kind of failure. It alone decides whether a retry makes sense.
        pub kind: ModelErrorKind,
        /// Message for humans, with the address and limits concerned, never with a key.
        pub message: String,
        /// HTTP status, if the provider sent one.
        pub status?: Option<u16>,
        /// Delay requested by the provider. Serialised in milliseconds.
        #[serde(rename = "retry_after_ms", default, skip_serializing_if = "Option::is_none", with = "millis")]
        pub retry_after: Option<Duration>,
        /// Start of the response body, if informative.
        pub body?: Option<String>,
        /// The part of the reply that arrived before the failure, if any. Watchers have seen it.
        pub partial?: Option<Box<ModelReply>>,
    }
}

named! {
    /// Kinds of failures.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ModelErrorKind {
        /// The provider could not be reached, or the connection broke before the reply was whole.
        Network = "network",
        /// A time limit passed.
        Timeout = "timeout",
        /// The provider rejects further requests for now (HTTP 429).
        RateLimit = "rate_limit",
        /// The provider failed (HTTP 5xx, or an error event in the stream).
        Server = "server",
        /// The key is missing, invalid, not authorised or out of credit (HTTP 401, 402, 403).
        Auth = "auth",
        /// The provider rejected the request (other HTTP 4xx).
        BadRequest = "bad_request",
        /// The request exceeds the context length of the model.
        ContextTooLong = "context_too_long",
        /// The response of the provider is invalid.
        Decode = "decode",
        /// The model is misconfigured; nothing was sent.
        Configuration = "configuration",
        /// A script has no rule for the request, or a recording no reply: a fault of the test, not of a model.
        Unanswered = "unanswered",
    }
}

impl ModelErrorKind {
    /// Returns true if a retry of the same request may succeed.
    pub fn can_retry(self) -> bool {
        match self {
            ModelErrorKind::Network
            | ModelErrorKind::Timeout
            | ModelErrorKind::RateLimit
            | ModelErrorKind::Server => true,
            ModelErrorKind::Auth
            | ModelErrorKind::BadRequest
            | ModelErrorKind::ContextTooLong
            | ModelErrorKind::Decode
            | ModelErrorKind::Configuration
            | ModelErrorKind::Unanswered => false,
        }
    }
}

impl ModelError {
    /// Creates an error with a kind and a message only.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        ModelError {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
            body: None,
            partial: None,
        }
    }

    /// Returns true if a retry of the same request may succeed. The caller decides whether to retry after
    /// parts of a reply were streamed.
    pub fn can_retry(&self) -> bool {
        self.kind.can_retry()
    }
}

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
