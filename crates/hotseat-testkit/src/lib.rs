//! What the project's own tests are made of: agents that say exactly what a test wants, on a real
//! port, and a folder to run a binary in.
//!
//! * [`FakeAgent`] plays the [`Reply`] that a test's function gives for each [`Request`].
//! * [`agui`] writes AG-UI runs as replies and reads AG-UI requests.
//! * [`completions`] writes chat completions as replies.
//! * [`malformed`] makes answers that no reader may take for an answer.
//! * [`checkout`] is an example agent under test; the binary `checkout-agent` serves it.
//! * [`Workspace`] is a temporary folder in which a program runs with a clean environment (on Unix).
//!
//! ```
//! use hotseat_testkit::{FakeAgent, agui::Run};
//! let agent = FakeAgent::start(|request| Run::of(request).started().text("Hello.").finished());
//! assert!(agent.url().starts_with("http://127.0.0.1:"));
//! ```

pub mod agui;
pub mod checkout;
pub mod completions;
pub mod doors;
mod fake_agent;
mod http;
pub mod malformed;
mod redact;
mod reply;
mod request;
#[cfg(unix)]
mod terminal;
mod watched;
#[cfg(unix)]
mod workspace;

pub use fake_agent::{FakeAgent, Listen};
pub use redact::{REDACTIONS, redact};
pub use reply::{Framing, Reply, Step};
pub use request::Request;
#[cfg(unix)]
pub use workspace::{Invocation, Output, Running, Workspace};
