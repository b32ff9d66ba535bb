//! Matchers of texts and tool calls of the agent, in the last turn, the whole conversation or a topic visit.

use std::fmt;
use std::sync::Arc;

use hotseat_trace::TurnScope;
use serde_json::{Map, Value, json};

use super::value_matchers::{ContainsMatcher, EMPTY_CONTAINS, PatternMatcher};
use super::{Assertion, AssertionKind, ExpectedValue, IntoExpectedValue, IntoStrings, Matcher, NotMatcher};
use crate::dsl::conversation::{Conversation, NO_TURN_TO_CHECK, turns_of};
use crate::dsl::handles::Agent;
use crate::dsl::panics;
use crate::dsl::views::Turn;
use hotseat_checks::{Undecidable, escape};
use hotseat_engine::session::CheckSubject;

/// A matcher of agent turns. It can also be an assertion of a topic, where it applies to all turns of a
/// visit.
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
    message = "`{Self}` cannot be used as an assertion of a topic",
    label = "this matcher does not support turns",
    note = "use one of `satisfy`, `satisfies`, `matches`, `contains`, `call_tool`, `grounded_in`, `claim`, `intent`, or `not` of one of these"
)]
pub trait TurnMatcher {
    /// Creates the assertion about the turns.
    fn turns_assertion(self) -> Assertion;
}

impl<M: TurnMatcher> TurnMatcher for NotMatcher<M> {
    fn turns_assertion(self) -> Assertion {
        self.0.turns_assertion().negated()
    }
}

impl Agent {
    /// Binds an assertion to the last turn.
    fn scope_assertion(&self, assertion: Assertion) -> Assertion {
        Assertion { subject: CheckSubject::LastTurn, session: Some(self.channel.session()), ..assertion }
    }
}

impl Conversation {
    /// Binds an assertion to all turns.
    fn scope_assertion(&self, assertion: Assertion) -> Assertion {
        Assertion { subject: CheckSubject::Conversation, session: self.session(), ..assertion }
    }
}

/// Implements matchers for the last turn, the conversation and topic visits.
macro_rules! asserted_of_turns {
    ($($matcher:ty),+) => {
        $(
            impl Matcher<Agent> for $matcher {
                fn assertion(&self, agent: &Agent) -> Assertion {
                    agent.scope_assertion(self.to_assertion())
                }
            }

            impl Matcher<Conversation> for $matcher {
                fn assertion(&self, conversation: &Conversation) -> Assertion {
                    conversation.scope_assertion(self.to_assertion())
                }
            }

            impl TurnMatcher for $matcher {
                fn turns_assertion(self) -> Assertion {
                    self.to_assertion()
                }
            }
        )+
    };
}

asserted_of_turns!(
    ToolCallMatcher,
    SatisfyMatcher,
    GroundedInMatcher,
    ClaimMatcher,
    IntentMatcher,
    CaseAssertionMatcher
);

/// Matches if the agent calls a tool: in its last turn, or in any turn if the subject is the conversation.
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
pub fn call_tool(name: impl Into<String>) -> ToolCallMatcher {
    ToolCallMatcher { name: name.into(), arguments: Vec::new(), count: Map::new() }
}

/// Same as [`call_tool`], worded for conversations.
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
pub fn have_tool_call(name: impl Into<String>) -> ToolCallMatcher {
    call_tool(name)
}

/// Tool call matcher; see [`call_tool`].
#[derive(Debug, Clone)]
#[must_use]
pub struct ToolCallMatcher {
    name: String,
    arguments: Vec<(String, ExpectedValue)>,
    count: Map<String, Value>,
}

impl ToolCallMatcher {
    /// Restricts an argument. One call has to match all restricted arguments; other arguments are ignored.
    pub fn with(mut self, argument: impl Into<String>, wanted: impl IntoExpectedValue) -> ToolCallMatcher {
        self.arguments.push((argument.into(), wanted.into_expected()));
        self
    }

    /// Requires an exact number of calls.
    pub fn times(mut self, times: u64) -> ToolCallMatcher {
        self.count.insert("exact".to_string(), times.into());
        self
    }

    /// Requires a minimum number of calls.
    pub fn at_least(mut self, times: u64) -> ToolCallMatcher {
        self.count.insert("min".to_string(), times.into());
        self
    }

    /// Allows a maximum number of calls; zero calls pass unless `at_least` is set.
    pub fn at_most(mut self, times: u64) -> ToolCallMatcher {
        self.count.insert("max".to_string(), times.into());
        self
    }

    fn to_assertion(&self) -> Assertion {
        let wrong = |(name, wanted): &(String, ExpectedValue)| {
            Some(format!("argument `{name}`: {}", wanted.problem()?))
        };
        if let Some(wrong) = self.arguments.iter().find_map(wrong) {
            return Assertion::invalid(wrong);
        }
        let (mut values, mut conditions, mut functions) = (Map::new(), Map::new(), Vec::new());
        for (name, wanted) in &self.arguments {
            match (wanted, wanted.condition()) {
                (ExpectedValue::Value(value), _) if !values.contains_key(name) => {
                    values.insert(name.clone(), value.clone());
                }
                (_, Some(condition)) => {
                    let condition = match conditions.shift_remove(name) {
                        Some(before) => json!({"all": [before, condition]}),
                        None => condition,
                    };
                    conditions.insert(name.clone(), condition);
                }
                (_, None) => functions.extend(wanted.function().map(|function| (name.clone(), function))),
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
        Assertion::from_kind(match functions.is_empty() {
            true => AssertionKind::CaseFile(written.into()),
            false => AssertionKind::ToolCall { written: written.into(), functions },
        })
    }
}

/// Implements a text matcher for the last turn, all turns of the conversation, and topic visits.
macro_rules! asserted_of_words {
    ($matcher:ident $(<$generic:ident: $bound:path>)?) => {
        impl$(<$generic: $bound>)? Matcher<Agent> for $matcher$(<$generic>)? {
            fn assertion(&self, agent: &Agent) -> Assertion {
                agent.scope_assertion(self.to_assertion(None))
            }
        }

        impl$(<$generic: $bound>)? Matcher<Conversation> for $matcher$(<$generic>)? {
            fn assertion(&self, conversation: &Conversation) -> Assertion {
                conversation.scope_assertion(self.to_assertion(Some("all")))
            }
        }

        impl$(<$generic: $bound>)? TurnMatcher for $matcher$(<$generic>)? {
            fn turns_assertion(self) -> Assertion {
                self.to_assertion(None)
            }
        }
    };
}

/// Creates a `regex` assertion in the format of case files.
fn regex_assertion(patterns: &[String], all: bool, turns: Option<&str>) -> Value {
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

impl PatternMatcher {
    fn to_assertion(&self, turns: Option<&str>) -> Assertion {
        match &self.patterns {
            Err(words) => Assertion::invalid(words.clone()),
            Ok(_) => {
                Assertion::from_kind(AssertionKind::CaseFile(regex_assertion(&self.sources, self.all, turns)))
            }
        }
    }
}

asserted_of_words!(PatternMatcher);

impl<U: AsRef<str>> ContainsMatcher<U> {
    fn to_assertion(&self, turns: Option<&str>) -> Assertion {
        let texts = || self.sought.iter().map(AsRef::as_ref);
        if self.sought.is_empty() || texts().any(str::is_empty) {
            return Assertion::invalid(EMPTY_CONTAINS);
        }
        let contains = |text: &str| {
            let mut written = json!({"type": "contains", "value": text});
            if let Some(turns) = turns {
                written["turns"] = turns.into();
            }
            written
        };
        Assertion::from_kind(AssertionKind::CaseFile(match (self.sought.as_slice(), self.all) {
            ([text], _) => contains(text.as_ref()),
            (_, true) => texts().map(contains).collect(),
            (_, false) => regex_assertion(&texts().map(escape).collect::<Vec<_>>(), false, turns),
        }))
    }
}

asserted_of_words!(ContainsMatcher<U: AsRef<str>>);

/// Matches if the judge finds that the agent satisfies the criteria. Each criterion is judged and reported
/// separately.
///
/// A text that looks like a name (`friendly`, `showed_form?`) refers to a criterion declared with
/// [`Group::criterion`](crate::dsl::Group::criterion); any other text is itself the criterion.
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
pub fn satisfy(criteria: impl IntoStrings) -> SatisfyMatcher {
    SatisfyMatcher { criteria: criteria.into_strings() }
}

/// Criteria matcher; see [`satisfy`].
#[derive(Debug, Clone)]
pub struct SatisfyMatcher {
    criteria: Vec<String>,
}

impl SatisfyMatcher {
    fn to_assertion(&self) -> Assertion {
        match self.criteria.is_empty() {
            true => Assertion::invalid("`satisfy` has no criterion: add at least one"),
            false if self.criteria.iter().any(|name| name.trim().is_empty()) => {
                Assertion::invalid("`satisfy` has an empty criterion: add a name or a description")
            }
            false => Assertion::from_kind(AssertionKind::Criteria(self.criteria.clone())),
        }
    }
}

/// Matches if a function returns true for the turn, without a judge. In a topic it applies to each turn.
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
pub fn satisfies<F: Fn(&Turn) -> bool>(name: impl Into<String>, function: F) -> PredicateMatcher<F> {
    PredicateMatcher { name: name.into(), function }
}

/// Predicate matcher; see [`satisfies`].
#[derive(Debug, Clone)]
pub struct PredicateMatcher<F> {
    name: String,
    function: F,
}

impl<F: Fn(&Turn) -> bool> Matcher<Agent> for PredicateMatcher<F> {
    fn assertion(&self, agent: &Agent) -> Assertion {
        let found = match agent.last_turn() {
            None => Err(Undecidable::new(NO_TURN_TO_CHECK)),
            Some(turn) => panics::catch(|| (self.function)(&turn)).map_err(Undecidable::from),
        };
        agent.scope_assertion(Assertion::from_kind(AssertionKind::Predicate {
            name: self.name.clone(),
            found,
        }))
    }
}

impl<F: Fn(&Turn) -> bool + Send + Sync + 'static> TurnMatcher for PredicateMatcher<F> {
    fn turns_assertion(self) -> Assertion {
        let function = TurnFunction(Arc::new(self.function));
        Assertion::from_kind(AssertionKind::EachTurn { name: self.name, function })
    }
}

/// Test function of a turn.
#[derive(Clone)]
pub(in crate::dsl) struct TurnFunction(Arc<dyn Fn(&Turn) -> bool + Send + Sync>);

impl TurnFunction {
    /// Returns true if the function holds of each turn, or of none if `negated`; and what was found.
    pub(in crate::dsl) fn holds_of_each(
        &self,
        scope: TurnScope<'_>,
        negated: bool,
    ) -> Result<(bool, String), Undecidable> {
        let turns = turns_of(scope);
        let broken = panics::catch(|| turns.iter().find(|turn| (self.0)(turn) == negated))?;
        Ok(match broken {
            None if negated => (true, "it holds of no turn".to_string()),
            None => (true, format!("it holds of {} turns", turns.len())),
            Some(turn) => (false, format!("turn {}: {}", turn.number(), turn.text())),
        })
    }
}

impl fmt::Debug for TurnFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TurnFunction")
    }
}

/// Matches if the judge finds that claims of these kinds are supported by tool results, of this turn or an
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
pub fn grounded_in(kinds: impl IntoStrings) -> GroundedInMatcher {
    GroundedInMatcher { kinds: kinds.into_strings(), tools: Vec::new() }
}

/// Groundedness matcher; see [`grounded_in`].
#[derive(Debug, Clone)]
pub struct GroundedInMatcher {
    kinds: Vec<String>,
    tools: Vec<String>,
}

impl GroundedInMatcher {
    /// Restricts the evidence to results of these tools.
    #[must_use]
    pub fn from_tools(mut self, tools: impl IntoStrings) -> GroundedInMatcher {
        self.tools.extend(tools.into_strings());
        self
    }

    fn to_assertion(&self) -> Assertion {
        let mut written = json!({"type": "grounded", "types": self.kinds});
        if !self.tools.is_empty() {
            written["from_tools"] = json!(self.tools);
        }
        Assertion::from_kind(AssertionKind::CaseFile(written))
    }
}

/// Matches if the agent makes claims of these kinds that no tool result supports. Used with
/// [`not`](super::not).
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
pub fn claim(kinds: impl IntoStrings) -> ClaimMatcher {
    ClaimMatcher { assertion: json!({"type": "claims", "forbid": kinds.into_strings()}) }
}

/// Claim matcher; see [`claim`].
#[derive(Debug, Clone)]
pub struct ClaimMatcher {
    assertion: Value,
}

impl ClaimMatcher {
    /// Also counts claims that tool results support.
    #[must_use]
    pub fn absolute(mut self) -> ClaimMatcher {
        self.assertion["absolute"] = json!(true);
        self
    }

    fn to_assertion(&self) -> Assertion {
        // The assertion in case files forbids claims, so it is negated here.
        Assertion::from_kind(AssertionKind::CaseFile(self.assertion.clone())).negated()
    }
}

/// Matches if the judge finds that the agent pursues an intent in its last turn. Underscores in the name are
/// read as spaces.
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
pub fn intent(name: impl Into<String>) -> IntentMatcher {
    let name: String = name.into();
    IntentMatcher { assertion: json!({"type": "intent", "intent": name}) }
}

/// Intent matcher; see [`intent`].
#[derive(Debug, Clone)]
pub struct IntentMatcher {
    assertion: Value,
}

impl IntentMatcher {
    /// Sets the description of the intent.
    #[must_use]
    pub fn described_as(mut self, words: impl Into<String>) -> IntentMatcher {
        self.assertion["described_as"] = words.into().into();
        self
    }

    fn to_assertion(&self) -> Assertion {
        Assertion::from_kind(AssertionKind::CaseFile(self.assertion.clone()))
    }
}

/// Matches if the conversation is in a topic.
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
pub fn in_topic(name: impl Into<String>) -> CaseAssertionMatcher {
    let name: String = name.into();
    holds(json!({"type": "topic", "name": name}))
}

/// Matches if the conversation is or has been in a topic.
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
pub fn reached_topic(name: impl Into<String>) -> CaseAssertionMatcher {
    let name: String = name.into();
    holds(json!({"type": "reached_topic", "name": name}))
}

/// Evaluates an assertion in the format of case files, or a list of them, for instance from a scenario.
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
pub fn holds(assertion: impl Into<Value>) -> CaseAssertionMatcher {
    CaseAssertionMatcher { assertion: assertion.into() }
}

/// Matcher with an assertion in the format of case files.
#[derive(Debug, Clone)]
pub struct CaseAssertionMatcher {
    assertion: Value,
}

impl CaseAssertionMatcher {
    fn to_assertion(&self) -> Assertion {
        match &self.assertion {
            Value::Null => Assertion::invalid("`holds` has no assertion: the value is null"),
            assertion => Assertion::from_kind(AssertionKind::CaseFile(assertion.clone())),
        }
    }
}

/// Matches if the judge finds that the goal of the simulated user was achieved.
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
pub fn achieve_stated_goal() -> CaseAssertionMatcher {
    holds(json!({"type": "goal"}))
}

/// Matches if the judge finds that a goal was achieved.
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
pub fn achieve_goal(text: impl Into<String>) -> CaseAssertionMatcher {
    let text: String = text.into();
    holds(json!({"type": "goal", "goal": text}))
}
