//! The reference agent.
//!
//! A [`Conversation`](conversation::Conversation) is a state machine without I/O: it takes inputs and answers with
//! decisions, events and effects. Tasks and workflows ([`work`]) are machines of the same kind. What connects them
//! with each other is a [`World`](world::World), and what connects that with everything outside is a driver: [`sim`]
//! with virtual time, in which everything can happen again in exactly the same way, and [`live`] on tokio.

pub mod conversation;
pub mod definition;
pub mod expression;
pub mod failure;
pub mod files;
pub mod ids;
pub mod live;
pub mod memory;
pub mod random;
pub mod serve;
pub mod sim;
pub mod store;
pub mod work;
pub mod world;
