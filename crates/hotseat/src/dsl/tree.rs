//! Tree of the groups and examples that a test file declares.

use std::path::PathBuf;
use std::sync::Arc;

use super::caller_location::CallerLocation;
use super::criterion::{Criteria, Criterion};
use super::example_facts::ExampleFacts;
use super::fixture::{DeclaredFixture, Fixture};
use super::fixture_builder::declare_fixture;
use super::lost_assertions::LostAssertions;
use super::scenario::{Scenario, ScenarioSource};
use super::settings::{CaseSettings, settings_of};
use super::simulator::SimulatorSettings;
use super::test::Test;
use super::test_function::{AsyncTestFunction, ExampleResult, TestFunction};
use super::topics::Topic;

/// A group of examples with shared settings: criteria, topics, simulator, agent, hooks and tags. Nested
/// groups inherit them and override declarations of the same name.
///
/// ```no_run
/// use hotseat::dsl::prelude::*;
///
/// fn main() -> std::process::ExitCode {
///     hotseat::dsl::run(|s| {
///         s.describe("Room Booking Agent", |g| {
///             g.it("greets", async |t| {
///                 t.user.says("Hi").await;
///                 evaluate!(t.agent.text(), contains("Welcome"));
///             });
///         });
///     })
/// }
/// ```
#[derive(Default)]
pub struct Group {
    name: Option<String>,
    settings: CaseSettings,
    before: Vec<Arc<dyn TestFunction>>,
    after: Vec<Arc<dyn TestFunction>>,
    criteria: Vec<Criterion>,
    topics: Vec<Topic>,
    simulators: Vec<(SimulatorSettings, CallerLocation)>,
    scenario: Option<Scenario>,
    fixtures: Vec<DeclaredFixture>,
    /// Nesting depth.
    depth: usize,
    children: Vec<GroupChild>,
    /// Invalid declarations.
    problems: Vec<(String, CallerLocation)>,
    folder: PathBuf,
}

enum GroupChild {
    Group(Box<Group>),
    Example(Box<ExampleBuilder>),
}

/// A declared example, with methods to configure it; see [`Group::it`].
pub struct ExampleBuilder {
    name: String,
    at: CallerLocation,
    settings: CaseSettings,
    body: Arc<dyn TestFunction>,
}

/// An example with all settings that it inherits.
pub(super) struct ExampleSpec {
    pub facts: Arc<ExampleFacts>,
    pub settings: CaseSettings,
    /// In execution order.
    pub before: Vec<Arc<dyn TestFunction>>,
    pub after: Vec<Arc<dyn TestFunction>>,
    pub body: Arc<dyn TestFunction>,
}

impl Group {
    /// Adds a nested group.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(s: &mut Group) {
    /// s.describe("Room Booking Agent", |g| {
    ///     g.describe("in German", |g| {
    ///         g.agent("booking-de");
    ///     });
    /// });
    /// # }
    /// ```
    pub fn describe(&mut self, name: impl Into<String>, declare: impl FnOnce(&mut Group)) -> &mut Group {
        let mut group = Group { name: Some(name.into()), ..self.child_group() };
        declare(&mut group);
        self.add_group(group)
    }

    /// Adds a nested group for a situation; same as [`describe`](Group::describe).
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// g.context("when the room is taken", |g| {
    ///     g.it("offers another one", async |t| {
    ///         t.user.says("The Blue Room, please").await;
    ///     });
    /// });
    /// # }
    /// ```
    pub fn context(&mut self, name: impl Into<String>, declare: impl FnOnce(&mut Group)) -> &mut Group {
        self.describe(name, declare)
    }

    /// Adds a focused group: `describe(…).only()`.
    pub fn fdescribe(&mut self, name: impl Into<String>, declare: impl FnOnce(&mut Group)) -> &mut Group {
        self.describe(name, declare).only()
    }

    /// Creates an empty nested group.
    fn child_group(&self) -> Group {
        Group { folder: self.folder.clone(), depth: self.depth + 1, ..Group::default() }
    }

    /// Creates the root group. Relative paths start from `folder`.
    pub(super) fn root(folder: PathBuf) -> Group {
        Group { folder, ..Group::default() }
    }

    fn add_group(&mut self, group: Group) -> &mut Group {
        self.children.push(GroupChild::Group(Box::new(group)));
        match self.children.last_mut() {
            Some(GroupChild::Group(group)) => group,
            _ => unreachable!("it was just added"),
        }
    }

    /// Adds an example: one conversation with the agent, with assertions.
    ///
    /// The body is an async closure that takes the [`Test`]. It returns `()`, or a `Result` whose error fails
    /// the case. It may run several times (`--runs`, retries); each run has a new conversation, agent and
    /// fixtures, and its own thread.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// g.it("books a room", async |Test { user, agent, conversation, .. }| {
    ///     user.says("The Blue Room for tomorrow at 2pm, 10 people").await;
    ///     expect!(agent, call_tool("check_availability").with("capacity", 10));
    ///     user.says("Yes, please book it").await;
    ///     expect!(agent, call_tool("book_room"));
    ///     expect!(conversation.turns().len(), eq(2));
    /// })
    /// .tag("booking");
    /// # }
    /// ```
    #[track_caller]
    pub fn it<F, O>(&mut self, name: impl Into<String>, body: F) -> &mut ExampleBuilder
    where
        F: AsyncFn(Test) -> O + Send + Sync + 'static,
        O: ExampleResult + 'static,
    {
        let body = Arc::new(AsyncTestFunction::new(body, CallerLocation::here()));
        let example = ExampleBuilder {
            name: name.into(),
            at: CallerLocation::here(),
            settings: CaseSettings::default(),
            body,
        };
        self.children.push(GroupChild::Example(Box::new(example)));
        match self.children.last_mut() {
            Some(GroupChild::Example(it)) => it,
            _ => unreachable!("it was just added"),
        }
    }

    /// Adds a focused example: `it(…).only()`.
    #[track_caller]
    pub fn fit<F, O>(&mut self, name: impl Into<String>, body: F) -> &mut ExampleBuilder
    where
        F: AsyncFn(Test) -> O + Send + Sync + 'static,
        O: ExampleResult + 'static,
    {
        self.it(name, body).only()
    }

    /// Adds a skipped example: `it(…).skip("left out by `xit`")`.
    #[track_caller]
    pub fn xit<F, O>(&mut self, name: impl Into<String>, body: F) -> &mut ExampleBuilder
    where
        F: AsyncFn(Test) -> O + Send + Sync + 'static,
        O: ExampleResult + 'static,
    {
        self.it(name, body).skip("skipped by `xit`")
    }

    /// Adds a hook that runs before each example of this group and its nested groups. Hooks of outer groups
    /// run first. A failed hook fails the example.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// g.before(async |t| {
    ///     t.log(format!("{} begins", t.name()));
    /// });
    /// # }
    /// ```
    #[track_caller]
    pub fn before<F, O>(&mut self, hook: F) -> &mut Group
    where
        F: AsyncFn(Test) -> O + Send + Sync + 'static,
        O: ExampleResult + 'static,
    {
        self.before.push(Arc::new(AsyncTestFunction::new(hook, CallerLocation::here())));
        self
    }

    /// Adds a hook that runs after each example, even if it failed. Hooks of inner groups run first.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// g.after(async |t| {
    ///     t.log(format!("{} turns", t.conversation.turn_count()));
    /// });
    /// # }
    /// ```
    #[track_caller]
    pub fn after<F, O>(&mut self, hook: F) -> &mut Group
    where
        F: AsyncFn(Test) -> O + Send + Sync + 'static,
        O: ExampleResult + 'static,
    {
        self.after.push(Arc::new(AsyncTestFunction::new(hook, CallerLocation::here())));
        self
    }

    /// Declares a value that each example builds on first use, with [`Test::get`].
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// struct Shop { id: u32 }
    ///
    /// # fn a(g: &mut Group) {
    /// let shop = g.fixture(async |_| Shop { id: 7 });
    ///
    /// g.it("knows its shop", async move |t| {
    ///     let shop = t.get(shop).await;
    ///     t.user.says(format!("What does shop {} sell?", shop.id)).await;
    /// });
    /// # }
    /// ```
    pub fn fixture<F, V>(&mut self, build: F) -> Fixture<V>
    where
        F: AsyncFn(Test) -> V + Send + Sync + 'static,
        V: 'static,
    {
        let fixture = declare_fixture(build);
        self.fixtures.push(fixture.declared(self.depth));
        fixture
    }

    /// Declares a criterion, evaluated by a judge or a function. Refer to it by name with `satisfy`.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// g.criterion("friendly", "The agent's response should be friendly");
    ///
    /// g.criterion("grounded_pricing", "Prices must come from tool results")
    ///     .good_example("The venue costs 500 EUR per day.", "Cites the result")
    ///     .bad_example("It is around 400-600 EUR.", "A vague range that no tool returned");
    ///
    /// g.criterion("searched", "A search was made")
    ///     .matches(|conversation| conversation.called_tool("search") > 0);
    /// # }
    /// ```
    #[track_caller]
    pub fn criterion(&mut self, name: impl Into<String>, text: impl Into<String>) -> &mut Criterion {
        self.criteria.push(Criterion::new(name.into(), text.into(), CallerLocation::here()));
        let last = self.criteria.len() - 1;
        &mut self.criteria[last]
    }

    /// Declares a topic: a phase of conversations. [`Test::expect_conversation_to`] declares the transitions
    /// between topics.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// g.topic("gathering_details")
    ///     .characteristic("Collecting event requirements")
    ///     .agent_intent("Collect sufficient information for venue search")
    ///     .evaluate(satisfy("friendly"))
    ///     .forbid_claims(["venues"]);
    /// # }
    /// ```
    #[track_caller]
    pub fn topic(&mut self, name: impl Into<String>) -> &mut Topic {
        self.topics.push(Topic::new(name.into(), CallerLocation::here()));
        let last = self.topics.len() - 1;
        &mut self.topics[last]
    }

    /// Returns the settings of simulated users in this group. Further calls add to them.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// g.simulator()
    ///     .role("Corporate event planner")
    ///     .max_turns(15)
    ///     .stop_when(|_, conversation| conversation.has_tool_call("book_venue"));
    /// # }
    /// ```
    #[track_caller]
    pub fn simulator(&mut self) -> &mut SimulatorSettings {
        self.simulators.push((SimulatorSettings::default(), CallerLocation::here()));
        let last = self.simulators.len() - 1;
        &mut self.simulators[last].0
    }

    /// Adds one nested group for each scenario. Its examples get the scenario as argument and with
    /// [`Test::scenario`].
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// g.scenario_set("venues", load("scenarios/venues.json"), |g, scenario| {
    ///     g.it(format!("handles {}", scenario.str("name")), async move |t| {
    ///         t.user.simulate(|s| {
    ///             s.goal(scenario.str("goal"));
    ///         }).await;
    ///     });
    /// });
    /// # }
    /// ```
    #[track_caller]
    pub fn scenario_set(
        &mut self,
        name: impl Into<String>,
        scenarios: impl Into<ScenarioSource>,
        mut declare: impl FnMut(&mut Group, Scenario),
    ) -> &mut Group {
        let (name, at) = (name.into(), CallerLocation::here());
        match scenarios.into().read(&name, &self.folder) {
            Ok(scenarios) => {
                for scenario in scenarios {
                    let mut group = self.child_group();
                    group.scenario = Some(scenario.clone());
                    declare(&mut group, scenario);
                    self.add_group(group);
                }
            }
            Err(wrong) => self.problems.extend(wrong.into_iter().map(|words| (words, at))),
        }
        self
    }

    settings_of!("the examples of this group and below");

    /// Returns all examples in declaration order, and all invalid declarations.
    pub(super) fn flatten(self) -> (Vec<ExampleSpec>, Vec<(String, CallerLocation)>) {
        let (mut examples, mut mistakes) = (Vec::new(), Vec::new());
        GroupScope::default().collect(self, &mut examples, &mut mistakes);
        (examples, mistakes)
    }

    /// Returns the invalid declarations of this group, without those of nested groups.
    fn own_problems(&self) -> Vec<(String, CallerLocation)> {
        let mut found = [self.problems.as_slice(), &self.settings.problems].concat();
        found.extend(self.criteria.iter().filter_map(|own| Some((own.problem()?, own.at))));
        let briefs = self.simulators.iter();
        found.extend(briefs.filter_map(|(brief, at)| Some((brief.group_problem()?, *at))));
        let mut twice = |kind: &str, all: &[(&str, CallerLocation)]| {
            for (number, (name, at)) in all.iter().enumerate() {
                if all[..number].iter().any(|(known, _)| known == name) {
                    found.push((format!("{kind} `{name}` is declared twice in this group"), *at));
                }
            }
        };
        let criteria: Vec<_> = self.criteria.iter().map(|own| (own.name.as_str(), own.at)).collect();
        let topics: Vec<_> = self.topics.iter().map(|own| (own.name.as_str(), own.at)).collect();
        twice("criterion", &criteria);
        twice("topic", &topics);
        found
    }
}

impl ExampleBuilder {
    settings_of!("this example");
}

/// Settings of a group, including inherited ones.
#[derive(Clone, Default)]
struct GroupScope {
    names: Vec<String>,
    settings: CaseSettings,
    before: Vec<Arc<dyn TestFunction>>,
    after: Vec<Arc<dyn TestFunction>>,
    criteria: Criteria,
    topics: Vec<Topic>,
    simulators: Vec<SimulatorSettings>,
    scenario: Option<Scenario>,
    fixtures: Vec<DeclaredFixture>,
    lost: Arc<LostAssertions>,
    folder: PathBuf,
}

impl GroupScope {
    /// Appends the examples of `group`, merged with these settings.
    fn collect(
        &self,
        group: Group,
        examples: &mut Vec<ExampleSpec>,
        mistakes: &mut Vec<(String, CallerLocation)>,
    ) {
        mistakes.extend(group.own_problems());
        let mut scope = self.clone();
        scope.names.extend(group.name.map(|name| normalize_name(&name)));
        scope.settings = group.settings.layered_over(&scope.settings);
        scope.before.extend(group.before);
        // `after` hooks run in reverse order of declaration.
        scope.after.splice(0..0, group.after.into_iter().rev());
        scope.criteria.extend(group.criteria.into_iter().map(|own| (own.name.clone(), own)));
        for topic in group.topics {
            match scope.topics.iter_mut().find(|known| known.name == topic.name) {
                Some(known) => *known = topic,
                None => scope.topics.push(topic),
            }
        }
        scope.simulators.extend(group.simulators.into_iter().map(|(brief, _)| brief));
        scope.scenario = group.scenario.or(scope.scenario);
        scope.fixtures.extend(group.fixtures);
        scope.folder = group.folder;
        for child in group.children {
            match child {
                GroupChild::Group(group) => scope.collect(*group, examples, mistakes),
                GroupChild::Example(it) => {
                    mistakes.extend(it.settings.problems.iter().cloned());
                    examples.push(scope.build_example(*it));
                }
            }
        }
    }

    fn build_example(&self, it: ExampleBuilder) -> ExampleSpec {
        let scope = self.clone();
        let mut names = scope.names;
        names.push(normalize_name(&it.name));
        let settings = it.settings.layered_over(&scope.settings);
        let facts = ExampleFacts {
            name: names.join("::"),
            at: it.at,
            tags: settings.tags.clone(),
            criteria: scope.criteria,
            topics: scope.topics,
            simulators: scope.simulators,
            scenario: scope.scenario,
            fixtures: scope.fixtures,
            lost: scope.lost,
            folder: scope.folder,
        };
        let (before, after) = (scope.before, scope.after);
        ExampleSpec { facts: Arc::new(facts), settings, before, after, body: it.body }
    }
}

/// Normalises white space to single spaces, so that the name fits on one line. Replaces an empty name by
/// `(anonymous)`.
fn normalize_name(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    match words.is_empty() {
        true => "(anonymous)".to_string(),
        false => words.join(" "),
    }
}
