//! Tests in Rust: conversations with an agent as tests of `cargo test`.
//!
//! A test file is a separate program: it needs `[[test]] name = "agents"` and `harness = false` in
//! `Cargo.toml`, and a `main` that declares groups and examples. Agents, connectors and other settings come
//! from `hotseat.yaml`. Checks and reports are those of `hotseat test`.
//!
//! ```no_run
//! use hotseat::dsl::prelude::*;
//!
//! fn main() -> std::process::ExitCode {
//!     hotseat::dsl::run(|s| {
//!         s.describe("Room Booking Agent", |g| {
//!             g.it("books a room", async |Test { user, agent, conversation, .. }| {
//!                 user.says("The Blue Room for tomorrow at 2pm, 10 people").await;
//!                 expect!(agent, call_tool("check_availability").with("room", "Blue Room").with("capacity", 10));
//!
//!                 user.says("Yes, please book it").await;
//!                 expect!(agent, call_tool("book_room"));
//!                 evaluate!(agent, matches(r"(?i)booked|confirmed"));
//!                 expect!(conversation.turns().len(), eq(2));
//!             });
//!         });
//!     })
//! }
//! ```
//!
//! `expect!` is a hard check: if it fails, the example ends and its case fails. `evaluate!` is a soft check
//! and does not affect the verdict. Both record their result with the source location. The verdict is
//! computed from these records, so catching a failure in test code cannot make a case pass.

mod agents;
mod assertion_checks;
mod caller_location;
mod commands;
mod conversation;
mod criterion;
mod example_body;
mod example_facts;
mod fixture;
mod fixture_builder;
mod handles;
mod harness;
mod lost_assertions;
mod matcher;
mod panics;
pub mod plain;
mod scenario;
mod session_channel;
mod settings;
mod simulator;
mod test;
mod test_function;
mod topics;
mod tree;
mod user_turn;
mod views;

pub use agents::{AgentChoice, AgentContext, IntoAnswer, Responder, factory, replies};
pub use conversation::Conversation;
pub use criterion::Criterion;
pub use fixture::Fixture;
#[doc(hidden)]
pub use handles::assert_that;
pub use handles::{Agent, SayFuture, User};
pub use harness::{CapturedOutput, Harness, HarnessContext, HarnessOutput, run};
pub use matcher::{
    Assertion, ClaimMatcher, ExpectedValue, GroundedInMatcher, IntentMatcher, IntoExpectedValue, IntoStrings,
    Matcher, ToolCallMatcher, TurnMatcher, achieve_goal, achieve_stated_goal, call_tool, claim, contains,
    contains_any, ends_with, eq, ge, grounded_in, gt, have_tool_call, holds, in_topic, intent, is_empty, le,
    len, lt, matches, matches_any, ne, not, one_of, reached_topic, satisfies, satisfy, starts_with, that,
};
pub use scenario::{Scenario, ScenarioSource, load};
pub use settings::Judge;
pub use simulator::{SimulationResult, SimulatorSettings};
pub use test::Test;
pub use test_function::ExampleResult;
pub use topics::{
    ClassifyTopics, DecideTopics, Graph, Topic, TopicNode, Trigger, after_turns_in, on_condition,
    on_response_match, on_tool_call, on_user_match,
};
pub use tree::{ExampleBuilder, Group};
pub use user_turn::Attachment;
pub use views::{AgentResponse, Evaluation, Message, Role, ServerTool, ToolCall, TopicVisit, Turn};

pub use crate::{evaluate, expect, graph};
pub use hotseat_targets::code_agent::{CodeAgentAnswer, CodeAgentCall};
pub use hotseat_targets::message::ToolReply;

/// Imports for test files: `use hotseat::dsl::prelude::*;`.
pub mod prelude {
    pub use super::{
        Agent, AgentContext, AgentResponse, Assertion, Attachment, ClassifyTopics, CodeAgentAnswer,
        Conversation, DecideTopics, Evaluation, ExampleBuilder, Fixture, Graph, Group, Judge, Matcher,
        Message, Responder, Role, Scenario, SimulationResult, SimulatorSettings, Test, ToolCall, Topic, Turn,
        User, achieve_goal, achieve_stated_goal, after_turns_in, call_tool, claim, contains, contains_any,
        ends_with, eq, evaluate, expect, factory, ge, graph, grounded_in, gt, have_tool_call, holds,
        in_topic, intent, is_empty, le, len, load, lt, matches, matches_any, ne, not, on_condition,
        on_response_match, on_tool_call, on_user_match, one_of, reached_topic, replies, satisfies, satisfy,
        starts_with, that,
    };
}

/// Hard assertion: if it fails, the example ends here and its case fails.
///
/// The first argument is the subject: `agent` (its last turn), `conversation` (all turns) or any other value.
/// The second is a [`Matcher`]. Optional further arguments are a message, as for
/// `format!`.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("books a room", async |t| {
///     t.user.says("The Blue Room for tomorrow, please").await;
///     expect!(t.agent, call_tool("book_room").with("room", "Blue Room"));
///     expect!(t.conversation.turns().len(), le(3), "{} takes too long", t.name());
/// });
/// # }
/// ```
#[macro_export]
macro_rules! expect {
    ($subject:expr, $matcher:expr $(,)?) => {
        {
            $crate::dsl::assert_that(true, ::std::stringify!($subject), &$subject, $matcher, ::std::option::Option::None).await;
        }
    };
    ($subject:expr, $matcher:expr, $($message:tt)+) => {
        {
            let message = ::std::option::Option::Some(::std::format!($($message)+));
            $crate::dsl::assert_that(true, ::std::stringify!($subject), &$subject, $matcher, message).await;
        }
    };
}

/// Soft assertion: records the result and continues. Returns true if the assertion passes.
///
/// Takes the same arguments as [`expect!`](crate::expect).
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("is brief", async |t| {
///     t.user.says("Hi").await;
///     let brief = evaluate!(t.agent.response().len(), le(300));
///     if !brief {
///         t.log("a long greeting");
///     }
/// });
/// # }
/// ```
#[macro_export]
macro_rules! evaluate {
    ($subject:expr, $matcher:expr $(,)?) => {
        $crate::dsl::assert_that(false, ::std::stringify!($subject), &$subject, $matcher, ::std::option::Option::None).await
    };
    ($subject:expr, $matcher:expr, $($message:tt)+) => {{
        let message = ::std::option::Option::Some(::std::format!($($message)+));
        $crate::dsl::assert_that(false, ::std::stringify!($subject), &$subject, $matcher, message).await
    }};
}
