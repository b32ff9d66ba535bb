//! Tests in Rust: outcomes, reports, and requests to the agent.

mod examples;
mod execution;
mod harness;
mod judging;
mod matchers;
mod selection;
mod standalone;
