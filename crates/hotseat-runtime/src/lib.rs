//! The reference agent.
//!
//! A [`ConversationMachine`](conversation::ConversationMachine) is a state machine without I/O: it takes inputs and returns
//! decisions, events and effects. Tasks and workflows ([`work`]) are state machines of the same kind. A
//! [`ConversationWorld`](world::ConversationWorld) connects them, and a driver connects the world to its environment: [`sim`] with
//! deterministic virtual time, [`live`] on tokio.

#[cfg(feature = "agent")]
pub mod conversation;
#[cfg(feature = "agent")]
pub mod definition;
#[cfg(feature = "agent")]
pub mod expression;
#[cfg(feature = "agent")]
pub mod failure;
pub mod files;
#[cfg(feature = "agent")]
pub mod ids;
#[cfg(feature = "agent")]
pub mod live;
#[cfg(feature = "agent")]
pub mod memory;
#[cfg(feature = "agent")]
pub mod random;
#[cfg(feature = "serve")]
pub mod serve;
#[cfg(feature = "agent")]
pub mod sim;
#[cfg(feature = "agent")]
pub mod store;
#[cfg(feature = "agent")]
pub mod work;
#[cfg(feature = "agent")]
pub mod world;
