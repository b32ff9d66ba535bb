//! Script functions: found by reference, called on separate threads with the permissions of the project file.

mod capabilities;
mod fetch;
mod files;
mod grants;
mod library;
mod local_functions;

pub use capabilities::{
    BoundFunction, HostRequester, HostRequests, ProcessFuture, ProcessRunner, ScriptCapabilities,
    ScriptOutput,
};
pub use grants::{HostPattern, HostPatternError, ScriptGrants};
pub use library::{FunctionError, ScriptFunction, ScriptLibrary, ScriptSearchPath};
