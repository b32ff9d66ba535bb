//! Clients for models that are reached over HTTP.
//!
//! A [`Connector`] says which model it is and how it is reached; [`Connector::open`] makes the client. There are
//! two: for chat completions as OpenAI defined them and many servers speak them, and for Anthropic's messages.
//! Both stream, and both build their replies from the pieces that a watcher sees.
//!
//! # Why these clients are written here
//! A test runner must not lose, double or change what a model said, and it must be able to say why a call failed.
//! The crates that speak to many providers were read and tried against fake servers. The most complete one lost
//! tool calls that came without an index, doubled the first call where the indices began at 1, merged two calls that
//! came with the same index, handed on no arguments as an empty text, and ended a stream that was cut as if it were
//! whole; it has no limit for the time to the first byte and none for the whole call. It also brings fifty crates
//! and more than a minute of build time. What is needed of two providers is a few hundred lines.
//!
//! # What a stream must be
//! A reply counts as whole only if its provider said that it ended. A stream that ends before that, an event that
//! cannot be read, a tool call without a name and a reply without anything are errors, whatever has arrived. What
//! had arrived is in [`ModelError::partial`](crate::ModelError::partial).

mod anthropic;
mod call;
mod connector;
#[cfg(test)]
mod cuts;
mod failure;
mod http;
mod openai;
mod retry_after;

pub use connector::{Connector, Provider, Secret, TimeLimits};
