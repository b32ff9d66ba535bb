//! Which model is meant, and how it is reached.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::anthropic::Anthropic;
use super::http::Connection;
use super::openai::OpenAi;
use crate::{Model, ModelError};

/// A configured language model.
///
/// ```
/// use hotseat_model::{Connector, Model, Provider, Secret};
///
/// # fn main() -> Result<(), hotseat_model::ModelError> {
/// let connector = Connector {
///     base_url: Some("http://127.0.0.1:11434/v1".into()),
///     key: Some(Secret::new("secret")),
///     ..Connector::new(Provider::OpenAi, "qwen3")
/// };
/// // Nothing is sent before the first call, and certificates are read only for an encrypted connection.
/// let model = connector.open()?;
/// assert_eq!(model.name(), "qwen3");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Connector {
    /// Which protocol is spoken.
    pub provider: Provider,
    /// The model, in the provider's words.
    pub model: String,
    /// Where the provider is; its own address if there is none. `/chat/completions` or `/v1/messages` is added.
    pub base_url: Option<String>,
    /// The key; no header for it is sent if there is none.
    pub key: Option<Secret>,
    /// Further headers. They replace those that the client would send.
    pub headers: Vec<(String, Secret)>,
    /// How long a call may take.
    pub limits: TimeLimits,
    /// Whether replies are streamed. Without, the whole reply comes in one piece.
    pub stream: bool,
    /// The temperature of requests that name none.
    pub temperature: Option<f64>,
    /// The longest reply of requests that name none, in tokens.
    pub max_tokens: Option<u32>,
    /// Further members of the request's body, for what only some providers know. They replace those that the client
    /// would send, and `null` takes one away.
    pub extra: Map<String, Value>,
}

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Chat completions, as OpenAI defined them and many servers speak them. The longest reply is sent as
    /// `max_completion_tokens` to api.openai.com and as `max_tokens`, which others understand, elsewhere.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}

/// How long a call may take. Where two limits pass, the shorter one is named in the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// Until the connection is there.
    pub connect: Duration,
    /// From the sending of the request to the first byte of the reply, the connection included. It does not hold
    /// where replies are not streamed: their first byte comes when they are whole.
    pub first_byte: Duration,
    /// Between two pieces of the reply.
    pub idle: Duration,
    /// For the whole call.
    pub total: Duration,
}

impl Default for TimeLimits {
    /// 10 s to connect, 60 s to the first byte, 60 s between pieces, 120 s in all.
    fn default() -> Self {
        TimeLimits {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(120),
        }
    }
}

impl Connector {
    /// A model at its provider's own address, without a key.
    pub fn new(provider: Provider, model: impl Into<String>) -> Self {
        Connector {
            provider,
            model: model.into(),
            base_url: None,
            key: None,
            headers: Vec::new(),
            limits: TimeLimits::default(),
            stream: true,
            temperature: None,
            max_tokens: None,
            extra: Map::new(),
        }
    }

    /// The client. Nothing is sent and no certificates are read before its first call.
    ///
    /// # Errors
    /// When the address is none of HTTP, or a header cannot be sent.
    pub fn open(self) -> Result<Arc<dyn Model>, ModelError> {
        Ok(match self.provider {
            Provider::OpenAi => {
                let connection = Connection::new(
                    &self,
                    "https://api.openai.com/v1",
                    OpenAi::ROUTE,
                    OpenAi::headers(&self),
                )?;
                Arc::new(OpenAi::new(self, connection))
            }
            Provider::Anthropic => {
                let connection = Connection::new(
                    &self,
                    "https://api.anthropic.com",
                    Anthropic::ROUTE,
                    Anthropic::headers(&self),
                )?;
                Arc::new(Anthropic::new(self, connection))
            }
        })
    }
}

/// A text that is sent and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text itself, for the wire.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Secret(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Secret(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}
