//! Test support: scripted agents on real ports, and a folder to run binaries in.
//!
//! * [`FakeAgent`] sends the [`FakeReply`] that a test's function returns for each [`FakeRequest`].
//! * [`agui`] builds AG-UI replies and parses AG-UI requests; [`FakeAgent::with_run`] answers with them.
//! * [`completions`] builds chat completion replies.
//! * [`malformed`] generates answers that every parser must reject.
//! * [`checkout`] is an example agent; the binary `checkout-agent` serves it.
//! * [`McpClient`] lets a fake agent call tools of MCP servers, and [`ModelClient`] a language model.
//! * [`TestWorkspace`] is a temporary folder in which programs run with a clean environment (on Unix).
//!
//! ```
//! use hotseat_testkit::FakeAgent;
//! let agent = FakeAgent::with_text("Hello.");
//! assert!(agent.url().starts_with("http://127.0.0.1:"));
//! ```

pub mod agui;
pub mod checkout;
pub mod completions;
mod error;
mod fake_agent;
mod http;
pub mod interfaces;
pub mod malformed;
mod mcp_client;
mod model_client;
mod post;
mod redact;
mod reply;
mod request;
mod split_mix;
#[cfg(unix)]
mod terminal;
mod watched;
#[cfg(unix)]
mod workspace;

pub use error::TestkitError;
pub use fake_agent::{FakeAgent, ListenOptions};
pub use mcp_client::{McpClient, McpStream};
pub use model_client::ModelClient;
pub use post::{PostAnswer, post, post_within};
pub use redact::{REDACTIONS, redact};
pub use reply::{BodyFraming, FakeReply, ReplyStep};
pub use request::FakeRequest;
pub use split_mix::SplitMix64;
#[cfg(unix)]
pub use workspace::{ProgramInvocation, ProgramOutput, SpawnedProgram, TestWorkspace};
