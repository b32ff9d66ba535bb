//! What the HTTP servers of Hotseat share: the loop that accepts connections, access from this machine only, and the selection of
//! calls that get a fault.

mod accept;
mod access;
mod connections;
mod fault;
mod loopback;

pub use accept::{AcceptLimits, accept};
pub use access::{AccessError, check_access, is_local};
pub use fault::{FaultCounters, FaultTrigger, GARBAGE};
pub use hyper_util::service::TowerToHyperService;
pub use loopback::LoopbackServer;
