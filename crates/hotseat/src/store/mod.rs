//! Runs that are kept: one file of SQLite beside the project, in which each run is a stream of events that can be told
//! again to any reporter.
//!
//! [`Keeping`] writes a run while it goes on. It knows nothing but its events; what comes to it together goes into one
//! transaction, and only what is kept is told to anybody else, so whatever a person has seen of a run is there after
//! the process was killed. [`Store`] reads: which runs there are, what happened in one, what one case came to.
//!
//! The file is written ahead (WAL): several processes can keep runs in it at once, and after a loss of power the last
//! moments may be missing.

mod changes;
mod error;
mod git;
mod head;
mod keeping;
mod kept;
mod life;
mod merging;
mod pack;
mod place;
mod prune;
mod reading;
mod recheck;
mod seal;
mod tables;

pub use changes::{Change, Reached, Stamp};
pub use error::StoreError;
pub use git::Commit;
pub use head::{About, Counts, Origin, RunHead, RunRecord, State};
pub use keeping::Keeping;
pub use merging::{export, merge};
pub use place::{FOLDER, store_of};
pub use prune::{Limits, Pruned};
pub use reading::{Outcomes, Store};
pub use recheck::KeptRun;
