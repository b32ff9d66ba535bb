//! Tests of fake agents and workspaces.

mod checkout;
mod common;
mod fake_agent;
mod workspace;
