//! Tests in TypeScript: files whose tests drive their session themselves.
//!
//! A file is run once when the plan is made, to see which tests it declares; each of them becomes a case whose body runs
//! the file once more, in an engine of its own, and then exactly that test. What scripts see is the module `hotseat`
//! (`js/`), described for editors by `hotseat.d.ts`. Whatever a test says, it asks of its session by commands.

mod callbacks;
mod commands;
mod declared;
mod engine;
mod keys;
mod program;
mod told;

pub use declared::{cases, sources};

/// What editors know of the module `hotseat`.
pub const TYPES: &str = include_str!("hotseat.d.ts");
