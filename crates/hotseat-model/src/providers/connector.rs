//! The client of a provider.

use std::sync::Arc;

use super::anthropic::{self, parser::AnthropicParser};
use super::connection::{CallIds, ConnectorConfig, Provider, ProviderConnection, call};
use super::openai::{self, parser::OpenAiParser};
use crate::{Model, ModelError, ModelRequest, ReplyFuture, ReplySink};

/// A model behind the API of a provider.
struct ProviderModel {
    connector: ConnectorConfig,
    connection: ProviderConnection,
}

impl ConnectorConfig {
    /// Creates the client. It connects and reads certificates on its first call.
    ///
    /// # Errors
    /// If the base URL is not an HTTP URL or a header is invalid.
    pub fn open(self) -> Result<Arc<dyn Model>, ModelError> {
        let (address, route, headers): (_, &[&str], _) = match self.provider {
            Provider::OpenAi => {
                ("https://api.openai.com/v1", &["chat", "completions"], openai::headers(&self))
            }
            Provider::Anthropic => {
                ("https://api.anthropic.com", &["v1", "messages"], anthropic::headers(&self))
            }
        };
        let connection = ProviderConnection::new(&self, address, route, headers)?;
        Ok(Arc::new(ProviderModel { connector: self, connection }))
    }
}

impl Model for ProviderModel {
    fn name(&self) -> &str {
        &self.connector.model
    }

    fn call<'a>(&'a self, request: &'a ModelRequest, sink: &'a mut dyn ReplySink) -> ReplyFuture<'a> {
        let ProviderModel { connector, connection } = self;
        Box::pin(async move {
            let (url, ids) = (connection.display_url(), CallIds::Unique(request));
            match connector.provider {
                Provider::OpenAi => {
                    let knows_new_limit = connection.host() == Some("api.openai.com");
                    let body = openai::request_body(connector, request, knows_new_limit);
                    call(connection, &body, request, OpenAiParser::new(url, ids), sink).await
                }
                Provider::Anthropic => {
                    let body = anthropic::request_body(connector, request);
                    call(connection, &body, request, AnthropicParser::new(url, ids), sink).await
                }
            }
        })
    }
}
