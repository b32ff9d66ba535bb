//! Targets: one folder per protocol by which agents are reached, and the recorder that all of them write to.
//!
//! - [`message`]: content of messages, scripted answers of the client;
//! - [`recorder`]: events become a trace: redacted, numbered, stamped and counted;
//! - [`connection`]: HTTP, streams, and the thread that reads them;
//! - [`target`]: the traits that a protocol implements, and what protocols share;
//! - [`ag_ui`], [`openai`], [`http_agent`], [`command`], `embedded` (a feature), [`code_agent`], [`replay`]: the protocols;
//! - [`recording`]: files that record the behaviour of an agent and can be replayed;
//! - [`process`]: child processes in groups of their own.

pub mod ag_ui;
pub mod code_agent;
pub mod command;
pub mod connection;
#[cfg(feature = "embedded")]
pub mod embedded;
pub mod http_agent;
pub mod message;
pub mod openai;
pub mod process;
pub mod recorder;
pub mod recording;
pub mod replay;
pub mod target;

pub use connection::{TurnError, TurnLimits};
pub use target::{AgentInput, AgentSession, BoxFuture, HistoryMode, ProtocolCapabilities, TurnFuture};
