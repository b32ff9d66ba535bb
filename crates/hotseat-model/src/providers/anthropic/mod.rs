//! Client for Anthropic's messages API.

mod body;
pub(super) mod parser;
#[cfg(feature = "serve")]
mod served_reply;
#[cfg(feature = "serve")]
mod served_request;

pub(super) use body::request_body;
#[cfg(feature = "serve")]
pub(super) use served_reply::{AnthropicReplyWriter, anthropic_error, anthropic_reply};
#[cfg(feature = "serve")]
pub(super) use served_request::read_anthropic_request;

use super::connection::{ConnectorConfig, Secret};

/// Returns the headers that identify the user.
pub(super) fn headers(connector: &ConnectorConfig) -> Vec<(String, Secret)> {
    let version = ("anthropic-version".to_owned(), "2023-06-01".into());
    let key = connector.key.as_ref().map(|key| ("x-api-key".to_owned(), key.clone()));
    std::iter::once(version).chain(key).collect()
}
