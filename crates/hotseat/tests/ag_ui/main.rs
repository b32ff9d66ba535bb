//! AG-UI from outside: an agent on a real port says exactly what a test wants, a conversation is held with it,
//! and what was recorded and sent is looked at.
//!
//! `A123` in a comment is the number of a row in the list of behaviours that the adapter was built from.

mod calls;
mod chunks;
mod client_tools;
mod errors;
mod events;
mod every_result;
mod history;
mod interrupts;
mod linear;
mod model;
mod request;
mod sequence;
mod snapshots;
mod state;
mod subagents;
mod talk;
mod transport;
mod versions;
