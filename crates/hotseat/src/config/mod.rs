//! The project file, and which suites it means.

mod agent;
mod discover;
mod project;
pub mod shape;
mod start;
mod target;

pub use agent::Agent;
pub use discover::{Discovered, discover, shown};
pub use project::{FILE_NAMES, Project, named_secrets};
pub use start::{Start, StartedAgent};
pub use target::{BoundTarget, Means, Shown, Target, is_secret, secret_text};
