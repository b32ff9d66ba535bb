//! Saved runs: one SQLite file in the project, which stores each run as a stream of events that can be
//! replayed to any reporter.
//!
//! [`RunWriter`] writes a run while it is executed. It uses only the events of the run and writes pending
//! events in one transaction. Reporters receive only events that are saved, so everything that was displayed
//! survives a kill. [`RunStore`] reads: the list of runs, the events of a run, the outcome of a case.
//!
//! The file uses write-ahead logging (WAL): several processes can write runs at once, and a power loss may
//! cost the last moments.

mod changes;
mod columns;
mod compression;
mod error;
mod file_identity;
mod git;
mod live;
mod merge_runs;
mod paths;
mod prune;
mod run_dictionary;
mod run_lock;
mod run_store;
mod run_writer;
mod saved_conversations;
mod seal;
mod stored_run;
mod tables;

pub use changes::{CaseChange, ChangeCursor, StoreStamp};
pub use error::RunStoreError;
pub use git::GitCommit;
pub use live::{LiveConversation, LiveRun};
pub use merge_runs::{export, merge};
pub use paths::store_path;
pub use prune::{PruneResult, StoreLimits};
pub use run_store::{OutcomeIter, RunStore};
pub use run_writer::RunWriter;
pub use saved_conversations::SavedRunConversations;
pub use stored_run::{CaseCounts, RunMetadata, RunOrigin, RunState, StoredRun, StoredRunRecord};
