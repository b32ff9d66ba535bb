//! Hotseat puts an AI agent in the hot seat: it holds conversations with it, records everything that happens as
//! one trace, and decides with hard, tools-first checks whether the agent behaved.
//!
//! A run goes through these parts, each behind the one before:
//!
//! - [`document`]: what people write, as a tree that knows its places (a crate of its own);
//! - [`config`]: the project file, the target, which suites are meant;
//! - [`cases`]: documents become cases;
//! - [`run`]: conversations are held side by side, results come out one by one;
//! - [`session`]: one conversation; [`adapters`]: how the agent is reached; [`roles`]: helpers that are asked;
//! - [`scripts`]: functions in TypeScript that cases name; [`typescript`]: tests in TypeScript;
//! - [`recording`]: what an agent did, in a file that can be served again;
//! - [`import`]: conversations that others held become cases and recordings;
//! - [`checks`]: assertions as data, deciding over the recorded trace;
//! - [`statistics`]: what numbers of attempts say, and how likely they are to be wrong;
//! - [`dsl`]: tests in Rust, which are cases whose bodies drive their sessions;
//! - [`compare`]: two runs beside each other;
//! - [`store`]: runs are kept, and told again;
//! - [`report`]: console, JSON, JSON lines, JUnit, GitHub;
//! - [`view`]: runs in a browser while they go on.

pub mod adapters;
pub mod cases;
pub mod checks;
pub mod compare;
pub mod config;
pub mod import;
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

/// The pages about tests in Rust: what they show compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
#[doc = include_str!("../../../docs/front-ends.md")]
struct Pages;
