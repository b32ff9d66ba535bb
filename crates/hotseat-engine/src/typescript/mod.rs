//! Tests in TypeScript: files whose tests drive their session.
//!
//! A file runs once when the plan is made, to collect its tests. Each test becomes a case whose body runs the
//! file again in its own engine, without the other tests where possible (`excerpts`), and then that test. Scripts use the module `hotseat` (`js/`), described for
//! editors by `hotseat.d.ts`. Tests control their session through commands.

mod callbacks;
mod commands;
mod declared;
mod engine;
mod excerpts;
mod keys;
mod program;
mod to_json;

pub use declared::{cases, sources};

/// Type definitions of the module `hotseat`, for editors.
pub const TYPE_DEFINITIONS: &str = include_str!("hotseat.d.ts");
