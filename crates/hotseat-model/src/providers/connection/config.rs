//! Configuration of a model and its provider.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

/// Configuration of a language model.
///
/// ```
/// use hotseat_model::{Model, ConnectorConfig, Provider, Secret};
///
/// # fn main() -> Result<(), hotseat_model::ModelError> {
/// let connector = ConnectorConfig {
///     base_url: Some("http://127.0.0.1:11434/v1".into()),
///     key: Some(Secret::new("secret")),
///     ..ConnectorConfig::new(Provider::OpenAi, "qwen3")
/// };
/// // Connects on the first call; certificates are only read for HTTPS.
/// let model = connector.open()?;
/// assert_eq!(model.name(), "qwen3");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectorConfig {
    /// Protocol of the provider.
    pub provider: Provider,
    /// Name of the model, as used by the provider.
    pub model: String,
    /// Base URL of the provider; its public address if None. `/chat/completions` or `/v1/messages` is
    /// appended.
    pub base_url: Option<String>,
    /// API key; no key header is sent if None.
    pub key: Option<Secret>,
    /// Additional headers. They replace the default headers of the client.
    pub headers: Vec<(String, Secret)>,
    /// Time limits of a call.
    pub limits: TimeLimits,
    /// True to stream replies. Otherwise the reply arrives in one piece.
    pub stream: bool,
    /// Default temperature for requests without one.
    pub temperature: Option<f64>,
    /// Default maximum length of a reply in tokens, for requests without one.
    pub max_tokens: Option<u32>,
    /// Additional members of the request body, for provider-specific options. They replace default members;
    /// `null` removes one.
    pub extra: Map<String, Value>,
}

/// A provider protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Chat completions, as defined by OpenAI and supported by many servers. The maximum length is sent as
    /// `max_completion_tokens` to api.openai.com and as `max_tokens` elsewhere.
    OpenAi,
    /// Anthropic's messages API.
    Anthropic,
}

/// Time limits of a call. If two limits expire, the error names the shorter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// Until the connection is established.
    pub connect: Duration,
    /// From sending the request to the first byte of the reply, including the connection. Not applied without
    /// streaming, since the first byte then arrives with the complete reply.
    pub first_byte: Duration,
    /// Between two pieces of the reply.
    pub idle: Duration,
    /// For the whole call.
    pub total: Duration,
}

impl Default for TimeLimits {
    /// 10 s to connect, 60 s to the first byte, 60 s between pieces, 120 s in total.
    fn default() -> Self {
        TimeLimits {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(120),
        }
    }
}

impl ConnectorConfig {
    /// Creates a configuration with the provider's public address and no key.
    pub fn new(provider: Provider, model: impl Into<String>) -> Self {
        ConnectorConfig {
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
}

/// A text that is sent but never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// Returns the text, for sending.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Secret(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}
