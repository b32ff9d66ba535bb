//! What the HTTP servers of Hotseat share: the loop that accepts connections, access from this machine only, the selection of
//! calls that get a fault, and the removal of secrets from recordings. The servers themselves are the feature `http`.

#[cfg(feature = "http")]
mod accept;
#[cfg(feature = "http")]
mod access;
#[cfg(feature = "http")]
mod body;
#[cfg(feature = "http")]
mod connections;
mod fault;
mod limits;
#[cfg(feature = "http")]
mod loopback;
mod text_cleaner;

#[cfg(feature = "http")]
pub use accept::accept;
#[cfg(feature = "http")]
pub use access::{AccessError, RequestSource, check_access, is_local};
#[cfg(feature = "http")]
pub use body::{BodyError, read_body};
pub use fault::{FaultCounters, FaultTrigger, GARBAGE};
#[cfg(feature = "http")]
pub use hyper_util::service::TowerToHyperService;
pub use limits::AcceptLimits;
#[cfg(feature = "http")]
pub use loopback::LoopbackServer;
pub use text_cleaner::TextCleaner;
