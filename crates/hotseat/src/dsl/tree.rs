//! The tree of groups and examples that a test file declares.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::body::{Bodied, Outcome, Run};
use super::criterion::Criterion;
use super::fixture::{Build, Fixture, KnownFixture};
use super::place::At;
use super::scenario::{Scenario, Scenarios};
use super::settings::{Settings, settings_of};
use super::simulator::Brief;
use super::test::Test;
use super::topics::Topic;

/// A group of examples, and what holds for all of them: criteria, topics, the simulated user, the agent, what runs
/// before and after, tags. A group within a group inherits all that; what it declares itself under a name that is there already goes
/// before, in it and below.
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
    settings: Settings,
    before: Vec<Arc<dyn Run>>,
    after: Vec<Arc<dyn Run>>,
    criteria: Vec<Criterion>,
    topics: Vec<Topic>,
    simulators: Vec<(Brief, At)>,
    scenario: Option<Scenario>,
    fixtures: Vec<KnownFixture>,
    /// How many groups are around it.
    depth: usize,
    children: Vec<Child>,
    /// What was declared in a way that makes no sense.
    mistakes: Vec<(String, At)>,
    folder: PathBuf,
}

enum Child {
    Group(Box<Group>),
    Example(Box<It>),
}

/// An example as it is declared; see [`Group::it`].
pub struct It {
    name: String,
    at: At,
    settings: Settings,
    body: Arc<dyn Run>,
}

/// An example with everything that holds for it.
pub(super) struct Example {
    /// The names of its groups and its own, joined by `::`.
    pub name: String,
    pub at: At,
    pub settings: Settings,
    /// In the order in which they run.
    pub before: Vec<Arc<dyn Run>>,
    pub after: Vec<Arc<dyn Run>>,
    pub criteria: BTreeMap<String, Criterion>,
    pub topics: Vec<Topic>,
    /// From the outermost group to the innermost.
    pub simulators: Vec<Brief>,
    pub scenario: Option<Scenario>,
    pub fixtures: Vec<KnownFixture>,
    /// Where its files are looked for.
    pub folder: PathBuf,
    pub body: Arc<dyn Run>,
}

impl Group {
    /// A group within this one.
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
        let mut group = Group { name: Some(name.into()), ..self.within() };
        declare(&mut group);
        self.add_group(group)
    }

    /// The same as [`describe`](Group::describe), for groups that are a situation.
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

    /// A group of which only this one runs, with others that are focused: while one is being worked on.
    pub fn fdescribe(&mut self, name: impl Into<String>, declare: impl FnOnce(&mut Group)) -> &mut Group {
        self.describe(name, declare).only()
    }

    /// A group that knows in which folder it is.
    fn within(&self) -> Group {
        Group { folder: self.folder.clone(), depth: self.depth + 1, ..Group::default() }
    }

    /// The group that holds everything that a program declares, whose files lie in this folder.
    pub(super) fn root(folder: PathBuf) -> Group {
        Group { folder, ..Group::default() }
    }

    fn add_group(&mut self, group: Group) -> &mut Group {
        self.children.push(Child::Group(Box::new(group)));
        match self.children.last_mut() {
            Some(Child::Group(group)) => group,
            _ => unreachable!("it was just added"),
        }
    }

    /// An example: one conversation with the agent, and what is asserted of it.
    ///
    /// The body is an async closure that gets the [`Test`]: its user, agent and conversation. It returns nothing, or a
    /// `Result` so that `?` works; an error fails the case. It may run several times (`--runs`, retries), each time with
    /// a conversation, an agent and fixtures of its own, on a thread of its own.
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
    pub fn it<F, O>(&mut self, name: impl Into<String>, body: F) -> &mut It
    where
        F: AsyncFn(Test) -> O + Send + Sync + 'static,
        O: Outcome + 'static,
    {
        let body = Arc::new(Bodied::new(body, At::here()));
        let example = It { name: name.into(), at: At::here(), settings: Settings::default(), body };
        self.children.push(Child::Example(Box::new(example)));
        match self.children.last_mut() {
            Some(Child::Example(it)) => it,
            _ => unreachable!("it was just added"),
        }
    }

    /// An example of which only this one runs, with others that are focused: `it(…).only()`.
    #[track_caller]
    pub fn fit<F, O>(&mut self, name: impl Into<String>, body: F) -> &mut It
    where
        F: AsyncFn(Test) -> O + Send + Sync + 'static,
        O: Outcome + 'static,
    {
        self.it(name, body).only()
    }

    /// An example that is left out: `it(…).skip("left out by `xit`")`.
    #[track_caller]
    pub fn xit<F, O>(&mut self, name: impl Into<String>, body: F) -> &mut It
    where
        F: AsyncFn(Test) -> O + Send + Sync + 'static,
        O: Outcome + 'static,
    {
        self.it(name, body).skip("left out by `xit`")
    }

    /// Runs before each example of this group and below; those of outer groups come first. One that fails fails the
    /// example.
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
        O: Outcome + 'static,
    {
        self.before.push(Arc::new(Bodied::new(hook, At::here())));
        self
    }

    /// Runs after each example of this group and below, whatever it came to; those of inner groups come first.
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
        O: Outcome + 'static,
    {
        self.after.push(Arc::new(Bodied::new(hook, At::here())));
        self
    }

    /// A value that each example makes anew, when it asks for it first, with [`Test::get`].
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
        let fixture = Fixture::new(Build::by(build));
        self.fixtures.push(fixture.known(self.depth));
        fixture
    }

    /// A criterion that a judge, or code, decides; `satisfy` names it.
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
        self.criteria.push(Criterion::new(name.into(), text.into(), At::here()));
        let last = self.criteria.len() - 1;
        &mut self.criteria[last]
    }

    /// A topic: a phase of conversations. [`Test::expect_conversation_to`] says which of them a conversation goes through.
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
        self.topics.push(Topic::new(name.into(), At::here()));
        let last = self.topics.len() - 1;
        &mut self.topics[last]
    }

    /// What holds of simulated users in this group. Asked for several times, one adds to the other.
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
    pub fn simulator(&mut self) -> &mut Brief {
        self.simulators.push((Brief::default(), At::here()));
        let last = self.simulators.len() - 1;
        &mut self.simulators[last].0
    }

    /// One group for each scenario, in their order. Its examples know theirs, by [`Test::scenario`] and the argument.
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
        scenarios: impl Into<Scenarios>,
        mut declare: impl FnMut(&mut Group, Scenario),
    ) -> &mut Group {
        let (name, at) = (name.into(), At::here());
        match scenarios.into().read(&name, &self.folder) {
            Ok(scenarios) => {
                for scenario in scenarios {
                    let mut group = self.within();
                    group.scenario = Some(scenario.clone());
                    declare(&mut group, scenario);
                    self.add_group(group);
                }
            }
            Err(wrong) => self.mistakes.extend(wrong.into_iter().map(|words| (words, at))),
        }
        self
    }

    settings_of!("the examples of this group and below");

    /// All examples, in the order in which they were declared, and what was declared in a way that makes no sense.
    pub(super) fn flatten(self) -> (Vec<Example>, Vec<(String, At)>) {
        let (mut examples, mut mistakes) = (Vec::new(), Vec::new());
        Held::default().add(self, &mut examples, &mut mistakes);
        (examples, mistakes)
    }

    /// What makes no sense in this group itself.
    fn mistaken(&self) -> Vec<(String, At)> {
        let mut found = self.mistakes.clone();
        found.extend(self.criteria.iter().filter_map(|own| Some((own.mistake()?, own.at))));
        let briefs = self.simulators.iter();
        found.extend(briefs.filter_map(|(brief, at)| Some((brief.mistake_of_group()?, *at))));
        let mut twice = |kind: &str, all: &[(&str, At)]| {
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

impl It {
    settings_of!("this example");
}

/// What holds in a group, with what it inherits.
#[derive(Clone, Default)]
struct Held {
    names: Vec<String>,
    settings: Settings,
    before: Vec<Arc<dyn Run>>,
    after: Vec<Arc<dyn Run>>,
    criteria: BTreeMap<String, Criterion>,
    topics: Vec<Topic>,
    simulators: Vec<Brief>,
    scenario: Option<Scenario>,
    fixtures: Vec<KnownFixture>,
    folder: PathBuf,
}

impl Held {
    /// The examples of a group in what holds here.
    fn add(&self, group: Group, examples: &mut Vec<Example>, mistakes: &mut Vec<(String, At)>) {
        mistakes.extend(group.mistaken());
        let mut held = self.clone();
        held.names.extend(group.name.map(|name| cleaned(&name)));
        held.settings = group.settings.over(&held.settings);
        held.before.extend(group.before);
        // What was set up last is taken down first.
        held.after.splice(0..0, group.after.into_iter().rev());
        held.criteria.extend(group.criteria.into_iter().map(|own| (own.name.clone(), own)));
        for topic in group.topics {
            match held.topics.iter_mut().find(|known| known.name == topic.name) {
                Some(known) => *known = topic,
                None => held.topics.push(topic),
            }
        }
        held.simulators.extend(group.simulators.into_iter().map(|(brief, _)| brief));
        held.scenario = group.scenario.or(held.scenario);
        held.fixtures.extend(group.fixtures);
        held.folder = group.folder;
        for child in group.children {
            match child {
                Child::Group(group) => held.add(*group, examples, mistakes),
                Child::Example(it) => examples.push(held.example(*it)),
            }
        }
    }

    fn example(&self, it: It) -> Example {
        let held = self.clone();
        let mut names = held.names;
        names.push(cleaned(&it.name));
        Example {
            name: names.join("::"),
            at: it.at,
            settings: it.settings.over(&held.settings),
            before: held.before,
            after: held.after,
            criteria: held.criteria,
            topics: held.topics,
            simulators: held.simulators,
            scenario: held.scenario,
            fixtures: held.fixtures,
            folder: held.folder,
            body: it.body,
        }
    }
}

/// A name as it stands in one line: white space is one blank, and nothing is called `(anonymous)`.
fn cleaned(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    match words.is_empty() {
        true => "(anonymous)".to_string(),
        false => words.join(" "),
    }
}
