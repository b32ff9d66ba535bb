//! Tests of the servers from outside, with raw HTTP clients.

mod bridge;
mod common;
mod faults;
mod hostile;
mod mocks;
mod offers;
mod proxies;
mod questions;
mod recordings;
mod stateless;
mod with_sessions;
