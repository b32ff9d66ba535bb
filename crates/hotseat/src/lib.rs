//! Hotseat puts an AI agent in the hot seat: it runs conversations with the agent, records every event in one
//! trace, and evaluates hard, tools-first checks on that trace.
//!
//! A run passes through these modules:
//!
//! - [`document`]: parses case files into trees with source positions (a separate crate);
//! - [`config`]: the project file, the target, suite discovery;
//! - [`cases`]: decodes documents into cases;
//! - [`run`]: executes cases concurrently and emits results as they complete;
//! - [`session`]: drives one conversation; [`targets`] connect to agents; [`roles`] implement simulators and
//!   judges;
//! - [`scripts`]: TypeScript functions that cases refer to; [`typescript`]: tests in TypeScript;
//! - [`recording`]: files that record the behaviour of an agent and can be replayed;
//! - [`import`]: converts existing conversations to cases and recordings;
//! - [`checks`]: assertions as data, evaluated on the recorded trace;
//! - [`statistics`]: pass rates, confidence intervals and significance tests;
//! - [`dsl`]: tests in Rust, compiled to cases with a body that drives the session;
//! - [`compare`]: compares two runs;
//! - [`store`]: saves runs and replays their events;
//! - [`report`]: console, JSON, JSON lines, JUnit and GitHub reports;
//! - [`view`]: shows runs in a browser, also while they are running.

pub mod cases;
pub mod checks;
pub mod compare;
pub mod config;
pub mod import;
pub mod targets;
pub use hotseat_document as document;
pub use hotseat_model as model;
pub use hotseat_runtime as runtime;
pub mod dsl;
mod process;
pub mod recording;
pub mod report;
pub mod roles;
pub mod run;
pub mod scripts;
pub mod session;
pub mod statistics;
pub mod store;
pub mod typescript;
pub mod view;

/// Compiles the code examples of the documentation pages on Rust tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
#[doc = include_str!("../../../docs/front-ends.md")]
struct Pages;
