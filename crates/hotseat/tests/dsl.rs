//! Tests in Rust as their writers meet them: what a run comes to, what its report says, what the agent was told.

mod dsl {
    pub mod child;
    pub mod examples;
    pub mod harness;
    pub mod judging;
    pub mod matchers;
    pub mod running;
    pub mod selecting;
}
