//! What the HTTP servers of Hotseat share: the loop that accepts connections, access from this machine only, the selection of
//! calls that get a fault, and the removal of secrets from recordings.

mod accept;
mod access;
mod connections;
mod fault;
mod loopback;
mod text_cleaner;

pub use accept::{AcceptLimits, accept};
pub use access::{AccessError, check_access, is_local};
pub use fault::{FaultCounters, FaultTrigger, GARBAGE};
pub use hyper_util::service::TowerToHyperService;
pub use loopback::LoopbackServer;
pub use text_cleaner::TextCleaner;
