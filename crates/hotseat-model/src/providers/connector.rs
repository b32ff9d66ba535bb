//! Opens the client that a configuration describes.

use std::sync::Arc;

use super::anthropic::AnthropicModel;
use super::connection::{ConnectorConfig, Provider, ProviderConnection};
use super::openai::OpenAiModel;
use crate::{Model, ModelError};

impl ConnectorConfig {
    /// Creates the client. It connects and reads certificates on its first call.
    ///
    /// # Errors
    /// If the base URL is not an HTTP URL or a header is invalid.
    pub fn open(self) -> Result<Arc<dyn Model>, ModelError> {
        Ok(match self.provider {
            Provider::OpenAi => {
                let connection = ProviderConnection::new(
                    &self,
                    "https://api.openai.com/v1",
                    OpenAiModel::ROUTE,
                    OpenAiModel::headers(&self),
                )?;
                Arc::new(OpenAiModel::new(self, connection))
            }
            Provider::Anthropic => {
                let connection = ProviderConnection::new(
                    &self,
                    "https://api.anthropic.com",
                    AnthropicModel::ROUTE,
                    AnthropicModel::headers(&self),
                )?;
                Arc::new(AnthropicModel::new(self, connection))
            }
        })
    }
}
