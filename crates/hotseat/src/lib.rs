//! Tests of conversational, tool-using agents in Rust.
//!
//! A test talks to an agent: one that a project file describes, or one in the test program. Everything that happens
//! is recorded in one trace, and the verdict is computed from that trace.
//!
//! ```no_run
//! // tests/agents.rs; Cargo.toml needs [[test]] name = "agents", harness = false
//! use hotseat::dsl::prelude::*;
//! use serde_json::json;
//!
//! fn main() -> std::process::ExitCode {
//!     hotseat::dsl::run(|s| {
//!         s.describe("room booking", |g| {
//!             g.agent(replies(async |messages: Vec<Message>| match messages.len() {
//!                 1 => CodeAgentAnswer::text("Which room?"),
//!                 _ => CodeAgentAnswer::text("Booked.").calling("book_room", json!({"room": "Blue"}), json!("ok")),
//!             }));
//!             g.it("asks before it books", async |Test { user, agent, .. }| {
//!                 user.says("A room for tomorrow, please").await;
//!                 expect!(agent, not(call_tool("book_room")));
//!                 user.says("The Blue Room").await;
//!                 expect!(agent, call_tool("book_room").with("room", "Blue"));
//!             });
//!         });
//!     })
//! }
//! ```
//!
//! [`dsl`] contains everything that a test uses.
//!
//! # Features
//!
//! None is on by default, so a test program compiles no C code, no server and no encryption. A test or a project file
//! that needs one of them is refused with the name of the feature.
//!
//! - `agents`: agents in definition files, which run in the test program (`type: embedded`).
//! - `https`: agents, judges and other services at addresses with `https://`.
//! - `json-schema`: the assertion `schema`, and interrupts of agents with a `responseSchema`.
//! - `mcp`: MCP servers of the test; includes `json-schema`.
//! - `models`: models that the test serves, and templates in replies of scripted models.
//! - `scripts`: hooks, checks and other functions in TypeScript that a project file names.
//! - `store`: runs are saved in the project, for `--last-failed` and for `hotseat show` and `hotseat view`.
//! - `full`: all of them.

pub mod dsl;

/// Compiles the code examples of the documentation pages on Rust tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
#[doc = include_str!("../../../docs/front-ends.md")]
#[doc = include_str!("../../hotseat-attributes/README.md")]
struct Pages;
