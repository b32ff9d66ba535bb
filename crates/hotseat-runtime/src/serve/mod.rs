//! Serves agents over HTTP (AG-UI and OpenAI chat completions) and over standard input and output.
//!
//! A [`AgentServer`] answers each request with a part of a conversation that a [`live`](crate::live) driver runs.
//! The driver owns agents, models and storage; this module handles only the protocols.

mod ag_ui;
mod client;
mod events;
mod http;
mod line_input;
mod lines;
mod openai;
mod options;

pub use client::ServedAgent;
pub use http::{AgentServer, ServeError};
pub use line_input::{InputLine, read_lines};
pub use lines::{MAX_LINE_BYTES, serve_lines};
pub use options::{OriginError, ServeOptions, parse_origin};
