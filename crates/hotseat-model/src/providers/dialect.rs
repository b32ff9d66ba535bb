//! The protocols of providers.

/// A protocol in which models are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's chat completions.
    ChatCompletions,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's messages API.
    Messages,
}
