//! Cases, roles, sessions, configuration and runs: what Hotseat does with a conversation.
//!
//! From the bottom up:
//!
//! - [`scripts`]: TypeScript functions that cases refer to;
//! - [`roles`]: simulators, judges, generators and report writers;
//! - [`cases`]: decodes documents into cases;
//! - [`session`]: drives one conversation and evaluates its checks;
//! - [`config`]: the project file, the target, suite discovery;
//! - [`typescript`]: tests in TypeScript;
//! - `import`, a part of the feature `command-line`: converts existing conversations to cases and recordings;
//! - [`run`]: executes cases concurrently and emits results as they complete.

pub mod cases;
pub mod config;
mod digest;
#[cfg(feature = "command-line")]
pub mod import;
pub mod roles;
pub mod run;
pub mod scripts;
pub mod session;
mod threads;
pub mod typescript;

pub use digest::short_digest;
