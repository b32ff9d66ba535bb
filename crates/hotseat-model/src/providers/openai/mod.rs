//! Client for chat completions.

mod body;
pub(super) mod parser;
#[cfg(feature = "serve")]
mod served_reply;
#[cfg(feature = "serve")]
mod served_request;

pub(super) use body::request_body;
#[cfg(feature = "serve")]
pub(super) use served_reply::{ChatReplyWriter, chat_reply};
#[cfg(feature = "serve")]
pub(super) use served_request::read_chat_request;

use super::connection::{ConnectorConfig, Secret};

/// Returns the headers that identify the user.
pub(super) fn headers(connector: &ConnectorConfig) -> Vec<(String, Secret)> {
    let key = connector.key.as_ref();
    key.map(|key| ("authorization".to_owned(), format!("Bearer {}", key.reveal()).into()))
        .into_iter()
        .collect()
}
