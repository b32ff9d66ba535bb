//! The reference agent.
//!
//! A [`Conversation`](conversation::Conversation) is a state machine without I/O: it takes inputs and answers with
//! decisions, events and effects. Tasks and workflows ([`work`]) are machines of the same kind. What connects them
//! with the world is a driver; [`sim`] is one with virtual time, in which everything can happen again in exactly
//! the same way.

pub mod conversation;
pub mod definition;
pub mod expression;
pub mod failure;
pub mod files;
pub mod ids;
pub mod memory;
pub mod random;
pub mod sim;
pub mod work;
