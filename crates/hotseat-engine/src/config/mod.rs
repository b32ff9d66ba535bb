//! Project configuration: the project file, agents, roles and hooks, and suite discovery.

mod agent;
mod agent_targets;
mod context;
#[cfg(feature = "command-line")]
mod discover;
mod env_file;
mod hooks;
mod limits;
mod paths;
mod project;
mod project_files;
mod role_lookup;
mod script_lookup;
mod script_settings;
mod script_tests;
pub mod shape;
mod start;
mod store_settings;

pub use agent::{AgentIdentity, ProjectAgent};
pub use agent_targets::{BoundTarget, TargetEnv, TargetSummary};
pub use context::{CONTEXT_FILE, CallSettings, ContextFile};
#[cfg(feature = "command-line")]
pub use discover::{DiscoveredSuites, discover_suites, missing_path, nearest_suite};
pub use env_file::{ENV_FILE, EnvFile};
pub use hooks::ScriptScope;
pub use paths::{SuitePart, display_path, is_case_word, split_part};
pub use project::{Project, named_secrets, redact_diagnostic};
pub use project_files::{STORE_FOLDER, is_project_file};
pub use role_lookup::{ResolvedRole, RoleKind, RoleQuery};
pub use script_lookup::{ProcessTarget, ResolvedHook};
pub use start::{StartCommand, StartedAgent};
pub use store_settings::{StoreSettings, parse_bytes, parse_seconds};
