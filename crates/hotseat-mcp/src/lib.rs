//! The Model Context Protocol served, proxied, broken and replayed.
//!
//! * [`McpServers`]: the servers of a run, behind one listener on the loopback interface. [`McpConversation`] has an address of its own
//!   for each server, so that parallel conversations do not mix, and receives the [`McpEvent`]s.
//! * [`ServerDefinition`]: a mock, a proxy of a real server, or the replay of a [`McpRecording`], with [`FaultRule`]s.
//! * [`ToolAnswerer`]: answers the calls of mocked tools.
//! * [`run_bridge`]: connects clients on standard input and output.
//! * [`ProtocolRevision`]: clients choose among stateless requests (2026-07-28) and sessions (2025-11-25 and earlier); servers speak both
//!   at once.
//!
//! The servers are the feature `serve`. Without it, [`McpServers::start`] names the feature that is missing.
//!
//! ```
//! use std::sync::Arc;
//!
//! use hotseat_mcp::{
//!     AnswerFuture, McpAnswer, McpCall, McpOptions, McpServers, McpTool, McpToolResult, ServerDefinition, ToolAnswerer,
//! };
//! use serde_json::json;
//!
//! struct Greeter;
//!
//! impl ToolAnswerer for Greeter {
//!     fn answer<'a>(&'a self, call: &'a McpCall) -> AnswerFuture<'a> {
//!         let text = format!("Hello {}", call.arguments["name"]);
//!         Box::pin(async { McpAnswer::Result(McpToolResult::from_text(text)) })
//!     }
//! }
//!
//! let greet = McpTool::new("greet", json!({"type": "object", "required": ["name"]}));
//! let servers = McpServers::start(vec![ServerDefinition::mock("crm", vec![greet])], McpOptions::default())?;
//! let conversation = servers.open_conversation("case 1", Arc::new(Greeter), Vec::new())?;
//! assert!(conversation.url("crm").unwrap().starts_with("http://127.0.0.1:"));
//! # Ok::<(), hotseat_mcp::McpError>(())
//! ```

// Only servers use parts of the definitions.
#![cfg_attr(not(feature = "serve"), allow(dead_code))]

mod answer;
#[cfg(feature = "serve")]
mod bridge;
mod definition;
#[cfg(feature = "serve")]
mod definition_file;
mod event;
mod fault;
mod fixed;
mod frame;
mod input_rounds;
#[cfg(feature = "serve")]
mod listing;
mod recording;
mod revision;
#[cfg_attr(not(feature = "serve"), path = "no_server.rs")]
mod server;
#[cfg(feature = "serve")]
mod sse;

pub use answer::{
    AnswerFuture, CallNotifier, InputRequired, InvalidResult, McpAnswer, McpCall, McpToolResult, ToolAnswerer,
};
#[cfg(feature = "serve")]
pub use bridge::{BridgeError, bridge_lines, run_bridge};
pub use definition::{
    DefinitionProblem, LaunchedUpstream, McpLimits, McpOptions, McpPrompt, McpResource, McpTool, MockContent,
    ServerDefinition, ServerKind, UnmatchedPolicy, Upstream, UpstreamCommand, UpstreamLauncher,
};
#[cfg(feature = "serve")]
pub use definition_file::{FixedAnswerer, MockFileError, MockFileErrors, MockFileMistake, read_mock};
pub use event::{AwaitedRequest, LateCall, McpEvent, McpEventKind};
pub use fault::{ArgumentsMatcher, FaultKind, FaultRule};
pub use fixed::{FixedAnswer, FixedAnswerError};
pub use frame::{Frame, FrameError, RpcError};
pub use hotseat_serve::{FaultTrigger, TextCleaner};
pub use input_rounds::{InputRounds, InputRoundsError, UnansweredInput};
#[cfg(feature = "serve")]
pub use listing::{ListingError, list_contents};
pub use recording::{
    McpExchange, McpRecording, McpReplaySource, RecordedQuestion, RecordingLineError, RecordingProblem,
};
pub use revision::{ProtocolRevision, error_code};
pub use server::{McpConversation, McpError, McpServers};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Environment variable with the address of the servers for `hotseat mcp NAME`.
pub const BRIDGE_VARIABLE: &str = "HOTSEAT_MCP";

/// Locks a mutex; a panic of another holder leaves the data usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
