//! An example that runs.

use std::cell::RefCell;
use std::rc::Rc;

use super::fixture::{Fixture, Values};
use super::handles::{Agent, Conversation, Source, User};
use super::line::{Line, Order, end};
use super::place::At;
use super::scenario::Scenario;
use super::topics::Graph;

/// An example that runs: who takes part in its conversation, and what is known of it. Cheap to clone.
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
    pub(super) line: Line,
    pub(super) values: Rc<RefCell<Values>>,
}

impl Test {
    pub(super) fn new(line: Line) -> Test {
        Test {
            user: User { line: line.clone() },
            agent: Agent { line: line.clone() },
            conversation: Conversation { of: Source::Line(line.clone()) },
            line,
            values: Rc::default(),
        }
    }

    /// The name of the example with those of its groups, joined by `::`.
    pub fn name(&self) -> &str {
        &self.line.example.name
    }

    /// The file in which it is written.
    pub fn file(&self) -> &'static str {
        self.line.example.at.0.file()
    }

    /// The line in which it is written, from 1.
    pub fn line(&self) -> u32 {
        self.line.example.at.0.line()
    }

    /// Its tags and those of its groups.
    pub fn tags(&self) -> &[String] {
        &self.line.example.settings.tags
    }

    /// Its scenario, where it belongs to one.
    pub fn scenario(&self) -> Option<&Scenario> {
        self.line.example.scenario.as_ref()
    }

    /// A value of this example, made when it is asked for first.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// let today = g.fixture(async |_| "2026-01-31".to_string());
    ///
    /// g.it("knows the day", async move |t| {
    ///     let today = t.get(today).await;
    ///     t.user.says(format!("Today is {today}. A room for tomorrow, please.")).await;
    /// });
    /// # }
    /// ```
    pub async fn get<V: 'static>(&self, fixture: Fixture<V>) -> Rc<V> {
        fixture.of(self).await
    }

    /// The conversation goes through topics in this way. The first one is where it begins. What is wrong with the graph
    /// fails the example before anything is said. Turns that were held before are looked at, too.
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
        let (graph, at) = (graph.into(), At::here());
        self.line.ask_now(|reply| Order::Graph { graph, at, reply });
    }

    /// Ends the example here, as one that is left out for this reason.
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
        self.line.tell(Order::Skip(reason.into()));
        end()
    }

    /// Keeps a line with the case, for whoever looks at it with `-v`.
    pub fn log(&self, line: impl Into<String>) {
        self.line.tell(Order::Log(line.into()));
    }
}
