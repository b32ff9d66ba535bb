//! The reference agent.
//!
//! A [`ConversationMachine`](conversation::ConversationMachine) is a state machine without I/O: it takes inputs and returns
//! decisions, events and effects. Tasks and workflows ([`work`]) are state machines of the same kind. A
//! [`ConversationWorld`](world::ConversationWorld) connects them, and a driver connects the world to its environment: [`sim`] with
//! deterministic virtual time, [`live`] on tokio.

pub mod conversation;
pub mod definition;
pub mod expression;
pub mod failure;
pub mod files;
pub mod ids;
pub mod live;
pub mod memory;
pub mod random;
#[cfg(feature = "serve")]
pub mod serve;
pub mod sim;
pub mod store;
pub mod work;
pub mod world;
