//! Client for chat completions.

mod body;
pub(super) mod parser;
#[cfg(feature = "serve")]
mod served_reply;
#[cfg(feature = "serve")]
mod served_request;

#[cfg(feature = "serve")]
pub(super) use served_reply::{ChatReplyWriter, chat_reply};
#[cfg(feature = "serve")]
pub(super) use served_request::read_chat_request;

use super::connection::{ConnectorConfig, ProviderConnection, Secret, call};
use crate::{Model, ModelRequest, ReplyFuture, ReplySink};

/// A model behind chat completions.
pub(super) struct OpenAiModel {
    connector: ConnectorConfig,
    connection: ProviderConnection,
}

impl OpenAiModel {
    pub(super) const ROUTE: &[&str] = &["chat", "completions"];

    pub(super) fn headers(connector: &ConnectorConfig) -> Vec<(String, Secret)> {
        let key = connector.key.as_ref();
        key.map(|key| ("authorization".to_owned(), format!("Bearer {}", key.reveal()).into()))
            .into_iter()
            .collect()
    }

    pub(super) fn new(connector: ConnectorConfig, connection: ProviderConnection) -> Self {
        OpenAiModel { connector, connection }
    }
}

impl Model for OpenAiModel {
    fn name(&self) -> &str {
        &self.connector.model
    }

    fn call<'a>(&'a self, request: &'a ModelRequest, sink: &'a mut dyn ReplySink) -> ReplyFuture<'a> {
        Box::pin(async move {
            let knows_new_limit = self.connection.host() == Some("api.openai.com");
            let body = body::request_body(&self.connector, request, knows_new_limit);
            let reading = parser::OpenAiParser::new(self.connection.display_url(), request);
            call(&self.connection, &body, request, reading, sink).await
        })
    }
}
