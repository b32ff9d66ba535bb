//! Tests in Rust: conversations with an agent as tests of `cargo test`.
//!
//! A test file is a program of its own: `[[test]] name = "agents"`, `harness = false` in `Cargo.toml`, and a `main` that
//! declares groups and examples. Agents, connectors and everything else that a project has are those of `hotseat.yaml`; the
//! runner, the reports and the checks are those of `hotseat test`.
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
//! `expect!` decides: where it does not hold, the example ends there and its case fails. `evaluate!` only measures. Both
//! record what they find, with their place; the verdict comes from what was recorded, so code that catches a failure cannot
//! turn a case green.

mod agents;
mod body;
mod criterion;
mod fixture;
mod handles;
mod harness;
mod hold;
mod line;
mod matcher;
mod orders;
mod panics;
mod place;
pub mod plain;
mod said;
mod scenario;
mod settings;
mod simulator;
mod test;
mod topics;
mod tree;
mod views;

pub use agents::{AgentChoice, AgentContext, IntoAnswer, Program, Responder, factory, replies};
pub use body::Outcome;
pub use criterion::Criterion;
pub use fixture::Fixture;
#[doc(hidden)]
pub use handles::assert_that;
pub use handles::{Agent, Conversation, Says, Simulate, User};
pub use harness::{Harness, Output, World, run};
pub use matcher::*;
pub use said::Attachment;
pub use scenario::{Scenario, Scenarios, load};
pub use settings::Judge;
pub use simulator::{Brief, Simulated};
pub use test::Test;
pub use topics::{
    ClassifyTopics, DecideTopics, Graph, Topic, Trigger, Wiring, after_turns_in, on_condition,
    on_response_match, on_tool_call, on_user_match,
};
pub use tree::{Group, It};
pub use views::{Evaluation, Message, Response, Role, ToolCall, TopicVisit, Turn};

pub use crate::adapters::in_code::{Answer, Call};
pub use crate::evaluate;
pub use crate::expect;
pub use crate::graph;

/// Everything that a test file needs: `use hotseat::dsl::prelude::*;`.
pub mod prelude {
    pub use super::{
        Agent, AgentContext, Answer, Assertion, Attachment, Brief, ClassifyTopics, Conversation,
        DecideTopics, Evaluation, Fixture, Graph, Group, It, Judge, Matcher, Message, Responder, Response,
        Role, Scenario, Simulated, Test, ToolCall, Topic, Turn, User, achieve_goal, achieve_stated_goal,
        after_turns_in, call_tool, claim, contains, contains_any, ends_with, eq, evaluate, expect, factory,
        ge, graph, grounded_in, gt, have_tool_call, holds, in_topic, intent, is_empty, le, len, load, lt,
        matches, matches_any, ne, not, on_condition, on_response_match, on_tool_call, on_user_match, one_of,
        reached_topic, replies, satisfies, satisfy, starts_with, that,
    };
}

/// Asserts something that decides: where it does not hold, the example ends here and its case fails.
///
/// The first argument is what is looked at: `agent` is its last turn, `conversation` the whole of it, and any other value
/// is just that. The second is a [`Matcher`](crate::dsl::Matcher). What follows is a message of one's own, as in `format!`.
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

/// Measures something: what it finds is recorded, and the example goes on. It tells whether it holds.
///
/// Its arguments are those of [`expect!`](crate::expect).
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
