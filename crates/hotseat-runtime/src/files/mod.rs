//! Agents defined in files.
//!
//! An agent is a file, or a folder that contains `agent.yaml`. Tasks and workflows are embedded in it or are
//! files in `tasks/` and `workflows/` beside it; other agents are in `agents/`. [`AGENT`], [`TASK`],
//! [`WORKFLOW`] and [`CONNECTOR`] describe the file formats. All files are read and all problems are reported
//! together, with their positions, before anything runs.
//!
//! ```
//! use hotseat_runtime::files::{self, LoadOptions};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! std::fs::write(folder.path().join("agent.yaml"), "name: Greeter\nsystem: Be brief.\n").unwrap();
//! std::fs::write(folder.path().join("script.yaml"), "use: always\nrules: [{ reply: Hello. }]\n").unwrap();
//! let agent = files::load(folder.path(), &LoadOptions::default()).unwrap();
//! assert_eq!(agent.id.as_str(), "greeter");
//! ```

#[cfg(feature = "agent")]
mod agent;
mod connectors;
#[cfg(feature = "agent")]
mod expressions;
#[cfg(feature = "agent")]
mod file;
#[cfg(feature = "agent")]
mod loader;
#[cfg(feature = "agent")]
mod schemas;
mod shape;
#[cfg(feature = "agent")]
mod task;
#[cfg(feature = "agent")]
mod workflow;

use hotseat_document::MapView;

pub use connectors::{ConnectorSet, ModelConnector, TokenPrice};
#[cfg(feature = "agent")]
pub use file::{CombinedModel, LoadOptions, LoadedAgent, load};
pub use shape::{AGENT, CONNECTOR, TASK, WORKFLOW};

/// Function that looks up environment variables.
pub type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// Returns an integer that the shape restricts to the range of `u32`.
fn number(map: &MapView<'_>, key: &str) -> Option<u32> {
    map.integer(key).and_then(|number| u32::try_from(number).ok())
}

/// Returns a duration in milliseconds that the shape restricts to non-negative values.
fn millis(map: &MapView<'_>, key: &str) -> Option<u64> {
    map.integer(key).and_then(|number| u64::try_from(number).ok())
}
