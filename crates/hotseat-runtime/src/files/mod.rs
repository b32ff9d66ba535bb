//! Agents that are written in files.
//!
//! An agent is a file, or a folder that holds `agent.yaml`. Tasks and workflows stand within it or in `tasks/` and
//! `workflows/` beside it, other agents in `agents/`; [`AGENT`], [`TASK`], [`WORKFLOW`] and [`CONNECTOR`] say what may
//! be written. Everything is read, and everything that is wrong is reported together with its places, before anything
//! runs.
//!
//! ```
//! use hotseat_runtime::files::{self, Options};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! std::fs::write(folder.path().join("agent.yaml"), "name: Greeter\nsystem: Be brief.\n").unwrap();
//! std::fs::write(folder.path().join("script.yaml"), "use: always\nrules: [{ reply: Hello. }]\n").unwrap();
//! let agent = files::load(folder.path(), &Options::default()).unwrap();
//! assert_eq!(agent.id.as_str(), "greeter");
//! ```

mod agent;
mod connectors;
mod expressions;
mod file;
mod loader;
mod schemas;
mod shape;
mod task;
mod workflow;

use hotseat_document::Map;

pub use connectors::{Connector, Connectors, Price};
pub use file::{AgentFile, Cast, Options, load};
pub use shape::{AGENT, CONNECTOR, TASK, WORKFLOW};

/// Looks variables of the environment up.
pub type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// A number of a shape that allows only what fits.
fn number(map: &Map<'_>, key: &str) -> Option<u32> {
    map.integer(key).and_then(|number| u32::try_from(number).ok())
}

/// A time of a shape that allows only what fits.
fn millis(map: &Map<'_>, key: &str) -> Option<u64> {
    map.integer(key).and_then(|number| u64::try_from(number).ok())
}
