//! Tests of the servers from outside, with raw HTTP clients.

mod common;
mod stateless;
mod with_sessions;
