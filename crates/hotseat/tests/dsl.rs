//! Tests in Rust: outcomes, reports, and requests to the agent.

mod dsl {
    pub mod examples;
    pub mod execution;
    pub mod harness;
    pub mod judging;
    pub mod matchers;
    pub mod selection;
    pub mod standalone;
}
