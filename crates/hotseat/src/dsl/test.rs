//! A running example.

use std::cell::RefCell;
use std::rc::Rc;

use super::caller_location::CallerLocation;
use super::conversation::Conversation;
use super::fixture::FixtureValues;
use super::handles::{Agent, User};
use super::scenario::Scenario;
use super::session_channel::{SessionChannel, SessionCommand, leave_example};
use super::topics::Graph;

/// A running example, with its user, agent and conversation. Cheap to clone.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("is held by its parts", async |Test { user, agent, .. }| {
///     user.says("Hi").await;
///     expect!(agent.text(), not(is_empty()));
/// });
///
/// g.it("or as a whole", async |t| {
///     t.user.says("Hi").await;
///     expect!(t.agent.text(), not(is_empty()));
/// });
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Test {
    /// The user.
    pub user: User,
    /// The agent.
    pub agent: Agent,
    /// The conversation.
    pub conversation: Conversation,
    pub(super) channel: SessionChannel,
    pub(super) fixture_values: Rc<RefCell<FixtureValues>>,
    /// Fixtures for whose builders this is the test, outermost first.
    pub(super) fixtures_in_progress: Vec<usize>,
}

impl Test {
    pub(super) fn new(line: SessionChannel) -> Test {
        Test {
            user: User { channel: line.clone() },
            agent: Agent { channel: line.clone() },
            conversation: Conversation::of_session(line.session()),
            channel: line,
            fixture_values: Rc::default(),
            fixtures_in_progress: Vec::new(),
        }
    }

    /// Returns the name of the example with those of its groups, joined by `::`.
    pub fn name(&self) -> &str {
        &self.channel.example.name
    }

    /// Returns the source file of the example.
    pub fn file(&self) -> &'static str {
        self.channel.example.at.0.file()
    }

    /// Returns the source line of the example, from 1.
    pub fn line(&self) -> u32 {
        self.channel.example.at.0.line()
    }

    /// Returns the tags of the example and its groups.
    pub fn tags(&self) -> &[String] {
        &self.channel.example.tags
    }

    /// Returns the scenario of the example, if any.
    pub fn scenario(&self) -> Option<&Scenario> {
        self.channel.example.scenario.as_ref()
    }

    /// Declares the topic graph of the conversation; the first topic is the initial one. Turns so far are
    /// assigned to topics, too. An invalid graph fails the example.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// # g.topic("greeting").characteristic("Initial contact");
    /// # g.topic("gathering_details").characteristic("Collecting requirements");
    /// # g.topic("confirming").characteristic("Confirming the booking");
    /// g.it("progresses", async |t| {
    ///     t.expect_conversation_to(graph! {
    ///         greeting => gathering_details,
    ///         gathering_details => [confirming, greeting],
    ///         confirming,
    ///     });
    ///     t.user.says("Hello!").await;
    ///     expect!(t.agent, in_topic("greeting"));
    /// });
    /// # }
    /// ```
    #[track_caller]
    pub fn expect_conversation_to(&self, graph: impl Into<Graph>) {
        let (graph, at) = (graph.into(), CallerLocation::here());
        self.channel.request_blocking(|reply| SessionCommand::DeclareGraph { graph, at, reply });
    }

    /// Skips the rest of the example, with a reason.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// g.it("speaks German", async |t| {
    ///     if !std::path::Path::new("dictionary.de.txt").exists() {
    ///         t.skip("there is no dictionary");
    ///     }
    /// });
    /// # }
    /// ```
    pub fn skip(&self, reason: impl Into<String>) -> ! {
        self.channel.send(SessionCommand::Skip(reason.into()));
        leave_example()
    }

    /// Adds a log line to the case, shown with `-v`.
    pub fn log(&self, line: impl Into<String>) {
        self.channel.send(SessionCommand::Log(line.into()));
    }
}
