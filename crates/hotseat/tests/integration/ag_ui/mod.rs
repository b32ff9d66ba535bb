//! AG-UI adapter tests: an agent on a real port sends exactly the given events, and the tests inspect the
//! recorded trace and the requests.
//!
//! `A123` in a comment is the row number in the list of behaviours that the adapter implements.

mod calling_messages;
mod calls;
mod chunks;
mod client_tools;
mod complexity;
mod errors;
mod events;
mod fixture;
mod generated;
mod history;
mod interrupts;
mod replaced;
mod request;
mod results;
mod sequence;
mod snapshot_order;
mod snapshots;
mod state;
mod subagents;
mod transport;
mod versions;
