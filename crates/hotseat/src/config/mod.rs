//! The project file, and which suites it means.

mod agent;
mod context;
mod discover;
mod granted;
mod helpers;
mod hooks;
mod limits;
mod project;
mod script_tests;
pub mod shape;
mod start;
mod storing;
mod target;

pub use agent::Agent;
pub use context::{CONTEXT_FILE, Calling, ContextFile};
pub use discover::{Discovered, discover, shown};
pub use granted::Process;
pub use helpers::{Helper, Part, Wanted};
pub use hooks::{NamedBy, Whose};
pub use project::{FILE_NAMES, Project, named_secrets};
pub use start::{Start, StartedAgent, end_orphans};
pub use storing::{Storing, bytes, seconds};
pub use target::{BoundTarget, Means, Shown, Target, is_secret, secret_text};
