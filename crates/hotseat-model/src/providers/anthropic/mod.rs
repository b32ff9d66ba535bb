//! Client for Anthropic's messages API.

mod body;
pub(super) mod parser;
#[cfg(feature = "serve")]
mod served_reply;
#[cfg(feature = "serve")]
mod served_request;

#[cfg(feature = "serve")]
pub(super) use served_reply::{AnthropicReplyWriter, anthropic_error, anthropic_reply};
#[cfg(feature = "serve")]
pub(super) use served_request::read_anthropic_request;

use super::connection::{ConnectorConfig, ProviderConnection, Secret, call};
use crate::{Model, ModelRequest, ReplyFuture, ReplySink};

/// A model behind Anthropic's messages API.
pub(super) struct AnthropicModel {
    connector: ConnectorConfig,
    connection: ProviderConnection,
}

impl AnthropicModel {
    pub(super) const ROUTE: &[&str] = &["v1", "messages"];

    pub(super) fn headers(connector: &ConnectorConfig) -> Vec<(String, Secret)> {
        let version = ("anthropic-version".to_owned(), "2023-06-01".into());
        let key = connector.key.as_ref().map(|key| ("x-api-key".to_owned(), key.clone()));
        std::iter::once(version).chain(key).collect()
    }

    pub(super) fn new(connector: ConnectorConfig, connection: ProviderConnection) -> Self {
        AnthropicModel { connector, connection }
    }
}

impl Model for AnthropicModel {
    fn name(&self) -> &str {
        &self.connector.model
    }

    fn call<'a>(&'a self, request: &'a ModelRequest, sink: &'a mut dyn ReplySink) -> ReplyFuture<'a> {
        Box::pin(async move {
            let body = body::request_body(&self.connector, request);
            let reading = parser::AnthropicParser::new(self.connection.display_url(), request);
            call(&self.connection, &body, request, reading, sink).await
        })
    }
}
