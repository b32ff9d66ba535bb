//! Tests of conversational, tool-using agents in Rust: a test runs a conversation with an agent, every event is
//! recorded in one trace, and checks are evaluated on that trace.
//!
//! [`dsl`] contains everything that a test uses.

pub use hotseat_document as document;
pub use hotseat_model as model;
pub use hotseat_runtime as runtime;
pub mod dsl;

/// Compiles the code examples of the documentation pages on Rust tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
#[doc = include_str!("../../../docs/front-ends.md")]
struct Pages;
