//! HTTP clients for language models.
//!
//! A [`ConnectorConfig`] holds the configuration; [`ConnectorConfig::open`] creates the client. There are two clients:
//! one for chat completions, as defined by OpenAI and supported by many servers, and one for Anthropic's
//! messages API. Both stream, and both assemble their replies from the pieces that watchers see.
//!
//! # Why not an existing crate
//! A test runner must not lose, duplicate or change model output, and must report why a call failed. Existing
//! multi-provider crates were reviewed and tested against fake servers. The most complete one lost tool calls
//! without an index, duplicated the first call if indices started at 1, merged two calls with the same index,
//! passed missing arguments as an empty string, and treated a truncated stream as complete. It has no limit
//! for the time to the first byte and none for the whole call. It also adds fifty crates and more than a
//! minute of build time. The two required protocols take a few hundred lines.
//!
//! # Complete streams
//! A reply is complete only if the provider sent a finish reason. A stream that ends earlier, an unreadable
//! event, a tool call without a name and a reply without content are errors. The pieces received so far are
//! in [`ModelError::partial`](crate::ModelError::partial).

mod anthropic;
mod connection;
mod connector;
mod dialect;
mod openai;
mod optional_member;
#[cfg(feature = "serve")]
mod paths;
#[cfg(feature = "serve")]
mod relayed_reply;
#[cfg(feature = "serve")]
mod responses;
#[cfg(feature = "serve")]
pub(crate) mod served;
#[cfg(test)]
mod stream_tests;
#[cfg(feature = "serve")]
pub(crate) mod tool_results;

pub use connection::{ConnectorConfig, Provider, Secret, TimeLimits};
pub use dialect::Dialect;
#[cfg(feature = "serve")]
pub(crate) use paths::may_answer_with_calls;
#[cfg(feature = "serve")]
pub(crate) use relayed_reply::{has_content, is_document, read_relayed_reply};
