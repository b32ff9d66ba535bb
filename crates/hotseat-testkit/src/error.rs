//! Errors of fake agents and their clients.

use std::io;

use serde_json::Value;

/// Why a fake agent did not get what it asked for, or cannot answer.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum TestkitError {
    #[error("no answer: {0}")]
    Connection(#[from] io::Error),
    #[error("no answer: the connection closed")]
    Closed,
    #[error("no answer to {0}")]
    NoAnswer(String),
    #[error("status {status} without a session: {body}")]
    NoSession { status: u16, body: String },
    #[error("status {0} without a message")]
    NoMessage(u16),
    #[error("the subscription is not acknowledged: {0:?}")]
    NotAcknowledged(Option<Value>),
    /// Message of a tool or of its server.
    #[error("{0}")]
    Reported(String),
    #[error("the body is not JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    #[error("`{0}` is not a string: {1}")]
    NotText(String, Value),
    #[error("`{0}` is missing")]
    Missing(String),
    #[error("`messages` is not a list")]
    NoMessages,
    #[error("unknown fault `{0}`, expected none, double-charge, no-confirm or wrong-total")]
    UnknownFault(String),
    #[error("no interrupt `{0}` is open")]
    NotOpen(String),
    #[error("interrupt `{0}` was answered before")]
    AnsweredBefore(String),
    #[error("the answer to interrupt `{0}` has no boolean `approved`")]
    NotDecided(String),
    #[error("the answer to interrupt `{0}` has no known status")]
    UnknownStatus(String),
    #[error("arguments of `{call}`: {source}")]
    Arguments { call: String, source: serde_json::Error },
}
