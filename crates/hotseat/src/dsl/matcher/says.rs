//! Matchers of what an agent says and does: in its last turn, in the whole conversation, or while a topic lasts.

use std::sync::Arc;

use hotseat_trace::Scope;
use serde_json::{Map, Value, json};

use super::super::orders::options_so_far;
use super::value::LOOKS_FOR_NOTHING;
use super::{Argument, Assertion, Contains, Form, Matcher, Matches, Not, Wanted};
use crate::checks::{CallFilter, Native, escape};
use crate::dsl::handles::{Agent, Conversation};
use crate::dsl::panics;
use crate::dsl::views::Turn;

/// A matcher that asks something of turns of the agent, and so can be asserted of a topic too: there it looks at all
/// turns of a visit.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.topic("presenting_results")
///     .characteristic("Presenting venue options")
///     .evaluate(satisfy("helpful"))
///     .expect(call_tool("search_suppliers"))
///     .expect(not(matches("(?i)error|sorry")));
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be asserted of a topic",
    label = "this says nothing of turns",
    note = "of a topic may be asserted what the agent says and does: `satisfy`, `satisfies`, `matches`, `contains`, `call_tool`, `grounded_in`, `claim`, `intent`, and `not` of these"
)]
pub trait AboutTurns {
    /// What is asserted of the turns.
    fn of_turns(self) -> Assertion;
}

impl<M: AboutTurns> AboutTurns for Not<M> {
    fn of_turns(self) -> Assertion {
        self.0.of_turns().negated()
    }
}

/// What stands where one text may stand, or several.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither one text nor several",
    label = "a name, or a list of names, stands here",
    note = "write `\"friendly\"`, or `[\"friendly\", \"helpful\"]`"
)]
pub trait Names {
    /// All of them.
    fn names(self) -> Vec<String>;
}

impl Names for &str {
    fn names(self) -> Vec<String> {
        vec![self.to_string()]
    }
}

impl Names for String {
    fn names(self) -> Vec<String> {
        vec![self]
    }
}

impl<T: Into<String>> Names for Vec<T> {
    fn names(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<T: Into<String>, const N: usize> Names for [T; N] {
    fn names(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

/// Gives a matcher its subjects.
macro_rules! asserted_of {
    ($matcher:ty: $($subject:ty),+) => {
        $(impl Matcher<$subject> for $matcher {
            fn assertion(&self, subject: &$subject) -> Assertion {
                subject.asserted(self.said())
            }
        })+
    };
}

macro_rules! about_turns {
    ($($matcher:ty),+) => {
        $(impl AboutTurns for $matcher {
            fn of_turns(self) -> Assertion {
                self.said()
            }
        })+
    };
}

/// The agent calls a tool: in its last turn, or anywhere where it is asserted of the conversation.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("looks before it books", async |t| {
///     t.user.says("The Blue Room for 10 people").await;
///     expect!(t.agent, call_tool("check_availability").with("room", "Blue Room").with("capacity", ge(10)));
///     expect!(t.agent, call_tool("check_availability").times(1));
/// });
/// # }
/// ```
pub fn call_tool(name: impl Into<String>) -> CallTool {
    CallTool { name: name.into(), arguments: Vec::new(), count: Map::new() }
}

/// A tool was called in the conversation; as [`call_tool`], in the words that fit a conversation.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("adds catering", async |t| {
///     t.user.says("We need lunch for all").await;
///     t.user.says("Yes").await;
///     expect!(t.conversation, have_tool_call("add_service").with("service_type", "catering"));
/// });
/// # }
/// ```
pub fn have_tool_call(name: impl Into<String>) -> CallTool {
    call_tool(name)
}

/// See [`call_tool`].
#[derive(Debug, Clone)]
pub struct CallTool {
    name: String,
    arguments: Vec<(String, Wanted)>,
    count: Map<String, Value>,
}

impl CallTool {
    /// One of its arguments is this. Those that are not named may be anything; one call has to fit them all.
    #[must_use]
    pub fn with(mut self, argument: impl Into<String>, wanted: impl Argument) -> CallTool {
        self.arguments.push((argument.into(), wanted.wanted()));
        self
    }

    /// So many times, neither more nor less.
    #[must_use]
    pub fn times(mut self, times: u64) -> CallTool {
        self.count = Map::from_iter([("exact".to_string(), times.into())]);
        self
    }

    /// At least so many times.
    #[must_use]
    pub fn at_least(mut self, times: u64) -> CallTool {
        self.count.insert("min".to_string(), times.into());
        self
    }

    /// At most so many times; none at all is allowed then, unless `at_least` says otherwise.
    #[must_use]
    pub fn at_most(mut self, times: u64) -> CallTool {
        self.count.insert("max".to_string(), times.into());
        self
    }

    fn said(&self) -> Assertion {
        let wrong =
            |(name, wanted): &(String, Wanted)| Some(format!("argument `{name}`: {}", wanted.mistake()?));
        if let Some(wrong) = self.arguments.iter().find_map(wrong) {
            return Assertion::wrong(wrong);
        }
        let (mut values, mut conditions) = (Map::new(), Map::new());
        for (name, wanted) in &self.arguments {
            match (wanted, wanted.condition()) {
                (Wanted::Value(value), _) if !values.contains_key(name) => {
                    values.insert(name.clone(), value.clone());
                }
                (_, Some(condition)) => {
                    let condition = match conditions.shift_remove(name) {
                        Some(before) => json!({"all": [before, condition]}),
                        None => condition,
                    };
                    conditions.insert(name.clone(), condition);
                }
                (_, None) => return Assertion::of(Form::Native(self.by_function())),
            }
        }
        let mut written = Map::new();
        written.insert("type".to_string(), "tool_called".into());
        written.insert("name".to_string(), self.name.clone().into());
        for (key, members) in [("arguments", values), ("where", conditions), ("count", self.count.clone())] {
            if !members.is_empty() {
                written.insert(key.to_string(), members.into());
            }
        }
        Assertion::of(Form::Written(written.into()))
    }

    fn by_function(&self) -> Native {
        let call = self.clone();
        let given: Vec<String> =
            self.arguments.iter().map(|(name, wanted)| format!("{name}: {}", wanted.words())).collect();
        let number = |key: &str| self.count.get(key).and_then(Value::as_u64);
        let (min, max) = match (number("exact"), number("min"), number("max")) {
            (Some(exact), ..) => (exact, Some(exact)),
            (None, None, None) => (1, None),
            (None, min, max) => (min.unwrap_or(0), max),
        };
        let often = match (min, max) {
            (1, None) => "called".to_string(),
            (min, None) => format!("called at least {min} times"),
            (min, Some(max)) if min == max => format!("called exactly {min} times"),
            (min, Some(max)) => format!("called {min} to {max} times"),
        };
        let words = format!("{} with {} is {often}", self.name, given.join(", "));
        Native::new(words, move |scope: Scope<'_>| {
            let fits = |arguments: &Value| {
                let mut wanted = call.arguments.iter();
                wanted.try_fold(true, |fits, (name, wanted)| Ok(fits && wanted.fits(arguments.get(name))?))
            };
            let calls = scope.calls().filter(|(_, made)| *made.name == *call.name);
            let fitting: Result<Vec<bool>, String> =
                panics::caught(|| calls.map(|(_, made)| fits(&made.arguments)).collect())?;
            let counted = fitting?.into_iter().filter(|fits| *fits).count() as u64;
            let holds = counted >= min && max.is_none_or(|max| counted <= max);
            Ok((holds, called(&call.name, scope)))
        })
    }
}

/// The calls of a tool, or what was called instead.
fn called(name: &str, scope: Scope<'_>) -> String {
    let own = CallFilter::named(name).shown_calls(scope);
    if !own.is_empty() {
        return own.join("\n- ");
    }
    let mut names: Vec<&str> = Vec::new();
    for (_, call) in scope.calls() {
        if !names.contains(&&*call.name) {
            names.push(&call.name);
        }
    }
    match names.as_slice() {
        [] => "no tool was called".to_string(),
        names => format!("not called; called were {}", names.join(", ")),
    }
}

asserted_of!(CallTool: Agent, Conversation);
about_turns!(CallTool);

/// What an agent says is asserted of its last turn, of the turns of a topic, or of all turns of the conversation.
macro_rules! asserted_of_words {
    ($matcher:ident $(<$generic:ident: $bound:path>)?) => {
        impl$(<$generic: $bound>)? Matcher<Agent> for $matcher$(<$generic>)? {
            fn assertion(&self, agent: &Agent) -> Assertion {
                agent.asserted(self.said(None))
            }
        }

        impl$(<$generic: $bound>)? Matcher<Conversation> for $matcher$(<$generic>)? {
            fn assertion(&self, conversation: &Conversation) -> Assertion {
                conversation.asserted(self.said(Some("all")))
            }
        }

        impl$(<$generic: $bound>)? AboutTurns for $matcher$(<$generic>)? {
            fn of_turns(self) -> Assertion {
                self.said(None)
            }
        }
    };
}

/// Patterns that what the agent says fits, as case files say it.
fn regex(patterns: &[String], all: bool, turns: Option<&str>) -> Value {
    let mut written = match patterns {
        [pattern] => json!({"type": "regex", "pattern": pattern}),
        patterns => {
            json!({"type": "regex", "pattern": patterns, "match": if all { "all" } else { "any" }})
        }
    };
    if let Some(turns) = turns {
        written["turns"] = turns.into();
    }
    written
}

impl Matches {
    fn said(&self, turns: Option<&str>) -> Assertion {
        match &self.patterns {
            Err(words) => Assertion::wrong(words.clone()),
            Ok(_) => Assertion::of(Form::Written(regex(&self.written, self.all, turns))),
        }
    }
}

asserted_of_words!(Matches);

impl<U: AsRef<str>> Contains<U> {
    fn said(&self, turns: Option<&str>) -> Assertion {
        let texts = || self.sought.iter().map(AsRef::as_ref);
        if self.sought.is_empty() || texts().any(str::is_empty) {
            return Assertion::wrong(LOOKS_FOR_NOTHING);
        }
        let contains = |text: &str| {
            let mut written = json!({"type": "contains", "value": text});
            if let Some(turns) = turns {
                written["turns"] = turns.into();
            }
            written
        };
        Assertion::of(Form::Written(match (self.sought.as_slice(), self.all) {
            ([text], _) => contains(text.as_ref()),
            (_, true) => texts().map(contains).collect(),
            (_, false) => regex(&texts().map(literally).collect::<Vec<_>>(), false, turns),
        }))
    }
}

/// The pattern that a text fits to the letter. Between slashes it would be read as an expression with flags.
fn literally(text: &str) -> String {
    escape(text).replace('/', "\\/")
}

asserted_of_words!(Contains<U: AsRef<str>>);

/// The judge finds that the agent satisfies criteria; each of them is judged and reported for itself.
///
/// A text that looks like a name (`friendly`, `showed_form?`) is one, and must be declared with
/// [`Group::criterion`](crate::dsl::Group::criterion); every other text is a criterion itself.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.criterion("friendly", "The agent's response should be friendly");
///
/// g.it("greets", async |t| {
///     t.user.says("Hi").await;
///     evaluate!(t.agent, satisfy("friendly"));
///     expect!(t.agent, satisfy("Der Agent fragt nach Details"));
///     evaluate!(t.agent, satisfy(["friendly", "It asks one question at a time"]));
/// });
/// # }
/// ```
pub fn satisfy(criteria: impl Names) -> Satisfy {
    Satisfy { criteria: criteria.names() }
}

/// See [`satisfy`].
#[derive(Debug, Clone)]
pub struct Satisfy {
    criteria: Vec<String>,
}

impl Satisfy {
    fn said(&self) -> Assertion {
        match self.criteria.is_empty() {
            true => Assertion::wrong("`satisfy` names no criterion, and asserts nothing"),
            false if self.criteria.iter().any(|name| name.trim().is_empty()) => {
                Assertion::wrong("`satisfy` names a criterion that is empty, and asserts nothing")
            }
            false => Assertion::of(Form::Satisfy(self.criteria.clone())),
        }
    }
}

asserted_of!(Satisfy: Agent, Conversation);
about_turns!(Satisfy);

/// A function says whether a turn is as it should be; nobody is asked. Of a topic it is asserted of each turn.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("is brief", async |t| {
///     t.user.says("Which rooms are there?").await;
///     evaluate!(t.agent, satisfies("concise", |turn| turn.text().len() <= 300));
/// });
/// # }
/// ```
pub fn satisfies<F: Fn(&Turn) -> bool>(name: impl Into<String>, function: F) -> Satisfies<F> {
    Satisfies { name: name.into(), function }
}

/// See [`satisfies`].
#[derive(Debug, Clone)]
pub struct Satisfies<F> {
    name: String,
    function: F,
}

impl<F: Fn(&Turn) -> bool> Matcher<Agent> for Satisfies<F> {
    fn assertion(&self, agent: &Agent) -> Assertion {
        let found = match agent.last_turn() {
            None => Err("there is no turn to look at: nothing was said yet".to_string()),
            Some(turn) => panics::caught(|| (self.function)(&turn)),
        };
        agent.asserted(Assertion::of(Form::Judged { name: self.name.clone(), found }))
    }
}

impl<F: Fn(&Turn) -> bool + Send + Sync + 'static> AboutTurns for Satisfies<F> {
    fn of_turns(self) -> Assertion {
        let function = self.function;
        Assertion::of(Form::Native(Native::new(self.name, move |scope: Scope<'_>| {
            let options = options_so_far();
            let turns: Vec<Turn> =
                scope.turns().iter().map(|turn| Turn::new(Arc::new(turn.clone()), &options)).collect();
            let broken = panics::caught(|| turns.iter().find(|turn| !function(turn)))?;
            Ok(match broken {
                None => (true, format!("it holds of {} turns", turns.len())),
                Some(turn) => (false, format!("turn {}: {}", turn.number(), turn.text())),
            })
        })))
    }
}

/// The judge finds that what the agent claims of these kinds is supported by what its tools returned, in this turn or an
/// earlier one.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("invents no venues", async |t| {
///     t.user.says("What is there in Stuttgart?").await;
///     evaluate!(t.agent, grounded_in(["venues", "pricing"]).from_tools(["search_suppliers"]));
/// });
/// # }
/// ```
pub fn grounded_in(kinds: impl Names) -> GroundedIn {
    GroundedIn { kinds: kinds.names(), tools: Vec::new() }
}

/// See [`grounded_in`].
#[derive(Debug, Clone)]
pub struct GroundedIn {
    kinds: Vec<String>,
    tools: Vec<String>,
}

impl GroundedIn {
    /// Only what these tools returned counts.
    #[must_use]
    pub fn from_tools(mut self, tools: impl Names) -> GroundedIn {
        self.tools.extend(tools.names());
        self
    }

    fn said(&self) -> Assertion {
        let mut written = json!({"type": "grounded", "types": self.kinds});
        if !self.tools.is_empty() {
            written["from_tools"] = json!(self.tools);
        }
        Assertion::of(Form::Written(written))
    }
}

asserted_of!(GroundedIn: Agent, Conversation);
about_turns!(GroundedIn);

/// The agent claims something of these kinds that no result of a tool supports. Used with [`not`](super::not).
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("promises nothing", async |t| {
///     t.user.says("Is the Blue Room free?").await;
///     expect!(t.agent, not(claim("availability")));
/// });
/// # }
/// ```
pub fn claim(kinds: impl Names) -> Claim {
    Claim { kinds: kinds.names(), absolute: false }
}

/// See [`claim`].
#[derive(Debug, Clone)]
pub struct Claim {
    kinds: Vec<String>,
    absolute: bool,
}

impl Claim {
    /// Also what results of tools support counts as claimed.
    #[must_use]
    pub fn absolute(self) -> Claim {
        Claim { absolute: true, ..self }
    }

    fn said(&self) -> Assertion {
        let mut written = json!({"type": "claims", "forbid": self.kinds});
        if self.absolute {
            written["absolute"] = json!(true);
        }
        // Case files say what must not be claimed; this says that something is.
        Assertion::of(Form::Written(written)).negated()
    }
}

asserted_of!(Claim: Agent, Conversation);
about_turns!(Claim);

/// The judge finds that the agent pursues an intent in its last turn. A name is read with its underscores as blanks.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("asks first", async |t| {
///     t.user.says("I need a room").await;
///     evaluate!(t.agent, intent("gather_requirements"));
///     evaluate!(t.agent, intent("narrow_down").described_as("Ask about group size and date"));
///     expect!(t.agent, not(intent("upsell")));
/// });
/// # }
/// ```
pub fn intent(name: impl Into<String>) -> HaveIntent {
    HaveIntent { name: name.into(), described_as: None }
}

/// See [`intent`].
#[derive(Debug, Clone)]
pub struct HaveIntent {
    name: String,
    described_as: Option<String>,
}

impl HaveIntent {
    /// What the intent is, in words.
    #[must_use]
    pub fn described_as(self, words: impl Into<String>) -> HaveIntent {
        HaveIntent { described_as: Some(words.into()), ..self }
    }

    fn said(&self) -> Assertion {
        let mut written = json!({"type": "intent", "intent": self.name});
        if let Some(words) = &self.described_as {
            written["described_as"] = json!(words);
        }
        Assertion::of(Form::Written(written))
    }
}

asserted_of!(HaveIntent: Agent, Conversation);
about_turns!(HaveIntent);

/// The conversation is in a topic now.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// # g.topic("greeting").characteristic("Initial contact");
/// g.it("begins with a greeting", async |t| {
///     t.expect_conversation_to(graph! { greeting });
///     t.user.says("Hello!").await;
///     expect!(t.agent, in_topic("greeting"));
/// });
/// # }
/// ```
pub fn in_topic(name: impl Into<String>) -> InTopic {
    InTopic { name: name.into() }
}

/// See [`in_topic`].
#[derive(Debug, Clone)]
pub struct InTopic {
    name: String,
}

impl InTopic {
    fn said(&self) -> Assertion {
        Assertion::of(Form::Written(json!({"type": "topic", "name": self.name})))
    }
}

asserted_of!(InTopic: Agent, Conversation);
about_turns!(InTopic);

/// The conversation has been in a topic, now or earlier.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// # g.topic("greeting").characteristic("Initial contact");
/// # g.topic("booking").characteristic("Booking");
/// g.it("comes to the point", async |t| {
///     t.expect_conversation_to(graph! { greeting => booking, booking });
///     t.user.says("A room for tomorrow, please").await;
///     expect!(t.conversation, reached_topic("booking"));
/// });
/// # }
/// ```
pub fn reached_topic(name: impl Into<String>) -> ReachedTopic {
    ReachedTopic { name: name.into() }
}

/// See [`reached_topic`].
#[derive(Debug, Clone)]
pub struct ReachedTopic {
    name: String,
}

impl ReachedTopic {
    fn said(&self) -> Assertion {
        Assertion::of(Form::Written(json!({"type": "reached_topic", "name": self.name})))
    }
}

asserted_of!(ReachedTopic: Agent, Conversation);
about_turns!(ReachedTopic);

/// An assertion as case files have them, or a list of them: what data says, scenarios for instance.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # use serde_json::json;
/// # fn a(g: &mut Group) {
/// g.scenario_set("venues", load("venues.json"), |g, scenario| {
///     g.it(format!("handles {}", scenario.str("name")), async move |t| {
///         t.user.says(scenario.str("goal")).await;
///         expect!(t.conversation, holds(scenario.get("verification.assert")));
///         evaluate!(t.agent, holds(json!({"type": "contains", "value": "venue"})));
///     });
/// });
/// # }
/// ```
pub fn holds(assertion: impl Into<Value>) -> Holds {
    Holds { assertion: assertion.into() }
}

/// See [`holds`].
#[derive(Debug, Clone)]
pub struct Holds {
    assertion: Value,
}

impl Holds {
    fn said(&self) -> Assertion {
        match &self.assertion {
            Value::Null => Assertion::wrong("`holds` is given nothing, and asserts nothing"),
            assertion => Assertion::of(Form::Written(assertion.clone())),
        }
    }
}

asserted_of!(Holds: Agent, Conversation);
about_turns!(Holds);

/// The judge finds that the goal that the simulated user was given has been achieved.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("finds a venue", async |t| {
///     t.user.simulate(|s| {
///         s.goal("Find a venue for 50 people");
///     }).await;
///     evaluate!(t.conversation, achieve_stated_goal());
/// });
/// # }
/// ```
pub fn achieve_stated_goal() -> Goal {
    Goal { text: None }
}

/// The judge finds that a goal has been achieved.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("books", async |t| {
///     t.user.says("Book the Blue Room for tomorrow").await;
///     evaluate!(t.conversation, achieve_goal("A room is booked for tomorrow"));
/// });
/// # }
/// ```
pub fn achieve_goal(text: impl Into<String>) -> Goal {
    Goal { text: Some(text.into()) }
}

/// See [`achieve_goal`] and [`achieve_stated_goal`].
#[derive(Debug, Clone)]
pub struct Goal {
    text: Option<String>,
}

impl Goal {
    fn said(&self) -> Assertion {
        let mut written = json!({"type": "goal"});
        if let Some(text) = &self.text {
            written["goal"] = json!(text);
        }
        Assertion::of(Form::Written(written))
    }
}

asserted_of!(Goal: Agent, Conversation);
about_turns!(Goal);
