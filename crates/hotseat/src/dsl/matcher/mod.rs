//! Matchers: assertions as values that describe themselves.

mod agent_matchers;
mod expected_value;
mod into_strings;
mod value_matchers;

use std::fmt::{Debug, Display};

use serde_json::Value;

use super::conversation::SharedView;
use hotseat_checks::{ArgumentCondition, Undecidable};
use hotseat_engine::session::CheckSubject;

// Matchers without methods of their own have no public names: tests need only the functions that create them.
pub(in crate::dsl) use agent_matchers::TurnFunction;
pub use agent_matchers::{
    ClaimMatcher, GroundedInMatcher, IntentMatcher, ToolCallMatcher, TurnMatcher, achieve_goal,
    achieve_stated_goal, call_tool, claim, grounded_in, have_tool_call, holds, in_topic, intent,
    reached_topic, satisfies, satisfy,
};
pub use expected_value::{ExpectedValue, IntoExpectedValue, that};
pub use into_strings::IntoStrings;
pub use value_matchers::{
    contains, contains_any, ends_with, eq, ge, gt, is_empty, le, len, lt, matches, matches_any, ne, one_of,
    starts_with,
};

/// An assertion about a subject: the agent, the conversation or a plain value.
///
/// Tests can define their own matchers: one function returns the expectation, the result and the actual
/// value. Negation, soft and hard evaluation, source locations and reports work as for built-in matchers.
///
/// ```
/// use hotseat::dsl::prelude::*;
///
/// struct Even;
///
/// impl Matcher<usize> for Even {
///     fn assertion(&self, number: &usize) -> Assertion {
///         Assertion::new("an even number", number % 2 == 0, number)
///     }
/// }
///
/// assert!(Even.assertion(&4).holds().unwrap());
/// assert!(not(Even).assertion(&3).holds().unwrap());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a matcher for `{S}`",
    label = "this matcher does not support the subject",
    note = "use `call_tool`, `satisfy`, `matches` … with `agent`, `have_tool_call` and `reached_topic` with `conversation`, and comparisons (`eq`, `ge`, `contains` …) with comparable values"
)]
pub trait Matcher<S: ?Sized> {
    /// Creates the assertion about a subject, evaluated if no session is needed.
    fn assertion(&self, subject: &S) -> Assertion;
}

/// An assertion about a subject.
#[derive(Debug, Clone)]
pub struct Assertion {
    pub(in crate::dsl) kind: AssertionKind,
    pub(in crate::dsl) negated: bool,
    /// Part of the conversation that the session evaluates.
    pub(in crate::dsl) subject: CheckSubject,
    /// View of the session of the subject, if it has one.
    pub(in crate::dsl) session: Option<SharedView>,
}

/// How an assertion is evaluated.
#[derive(Debug, Clone)]
pub(in crate::dsl) enum AssertionKind {
    /// The result is known, or known to be undecidable.
    Decided(ValueDecision),
    /// Result of a test function of the last turn, or its error.
    Predicate { name: String, found: Result<bool, Undecidable> },
    /// An assertion in the format of case files, evaluated by the session.
    CaseFile(Value),
    /// `tool_called` in the format of case files, with functions that decide about arguments.
    ToolCall { written: Value, functions: Vec<(String, ArgumentCondition)> },
    /// A test function that holds of each turn; negated, of none.
    EachTurn { name: String, function: TurnFunction },
    /// Criteria, by name or description. Their declarations determine which ones a judge evaluates.
    Criteria(Vec<String>),
    /// An invalid assertion, with the message.
    Invalid(String),
}

/// Result for a plain value.
#[derive(Debug, Clone)]
pub(in crate::dsl) struct ValueDecision {
    /// Source code of the value.
    pub expression: Option<&'static str>,
    /// Expectation, as words that follow the value.
    pub expected: String,
    /// The result; none if undecidable.
    pub holds: Option<bool>,
    /// True if it consists of several expectations that all have to be met.
    pub is_several: bool,
    /// Actual value, or the reason why it is undecidable.
    pub actual: String,
}

impl ValueDecision {
    /// Describes the expectation, with the expression of the value.
    pub(in crate::dsl) fn describe(&self) -> String {
        match self.expression {
            Some(of) => format!("`{of}` {}", self.expected),
            None => self.expected.clone(),
        }
    }
}

impl Assertion {
    /// Creates an evaluated assertion. Reports show `expected … to be {expected}, got {actual}`.
    ///
    /// ```
    /// use hotseat::dsl::Assertion;
    ///
    /// let polite = Assertion::new("a polite answer", "Please wait.".contains("Please"), "Please wait.");
    /// assert_eq!(polite.holds(), Some(true));
    /// ```
    pub fn new(expected: impl Display, holds: bool, actual: impl Display) -> Assertion {
        Assertion::decided_as(format!("to be {expected}"), holds, actual.to_string())
    }

    /// Creates an evaluated assertion; `expected` follows the value, as in `to contain "a"`.
    fn decided_as(expected: String, holds: bool, actual: String) -> Assertion {
        Assertion::from_kind(AssertionKind::Decided(ValueDecision {
            expression: None,
            expected,
            holds: Some(holds),
            is_several: false,
            actual,
        }))
    }

    /// Creates an assertion that cannot be evaluated, with the reason. The check is an error, negated or not.
    ///
    /// ```
    /// use hotseat::dsl::Assertion;
    ///
    /// let unknown = Assertion::undecided("an answer in English", "the agent said nothing");
    /// assert_eq!(unknown.holds(), None);
    /// ```
    pub fn undecided(expected: impl Display, why: impl Display) -> Assertion {
        Assertion::undecided_as(format!("to be {expected}"), why.to_string())
    }

    /// Like [`undecided`](Assertion::undecided), with words that follow the value.
    fn undecided_as(expected: String, actual: String) -> Assertion {
        Assertion::from_kind(AssertionKind::Decided(ValueDecision {
            expression: None,
            expected,
            holds: None,
            is_several: false,
            actual,
        }))
    }

    /// Returns the result; none if the session has to evaluate the assertion.
    pub fn holds(&self) -> Option<bool> {
        match &self.kind {
            AssertionKind::Decided(known) => known.holds.map(|holds| holds != self.negated),
            _ => None,
        }
    }

    /// Negates the assertion.
    #[must_use]
    pub fn negated(self) -> Assertion {
        match &self.kind {
            AssertionKind::Decided(known) if known.is_several => Assertion::invalid(AMBIGUOUS_NOT),
            _ => Assertion { negated: !self.negated, ..self },
        }
    }

    /// Marks several expectations that all have to be met, which `not` cannot negate together.
    fn of_several(mut self, count: usize) -> Assertion {
        if let AssertionKind::Decided(known) = &mut self.kind {
            known.is_several = count > 1;
        }
        self
    }

    pub(in crate::dsl) fn from_kind(form: AssertionKind) -> Assertion {
        Assertion { kind: form, negated: false, subject: CheckSubject::Value, session: None }
    }

    /// Sets the source code of the value, for reports.
    pub(in crate::dsl) fn with_expression(mut self, written: &'static str) -> Assertion {
        const MAX_EXPRESSION_BYTES: usize = 80;
        if let AssertionKind::Decided(known) = &mut self.kind {
            known.expression =
                (written.len() <= MAX_EXPRESSION_BYTES && !written.contains('\n')).then_some(written);
        }
        self
    }

    pub(in crate::dsl) fn invalid(words: impl Into<String>) -> Assertion {
        Assertion::from_kind(AssertionKind::Invalid(words.into()))
    }
}

/// Message if several assertions are negated together.
pub(in crate::dsl) const AMBIGUOUS_NOT: &str =
    "`not` of several assertions is ambiguous (none of them, or not all); negate each of them";

/// Negates a matcher. An assertion that cannot be evaluated remains an error.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("books nothing yet", async |t| {
///     t.user.says("Hi, I need a room").await;
///     expect!(t.agent, not(call_tool("book_room")));
///     expect!(t.agent.text(), not(contains("booked")));
/// });
/// # }
/// ```
pub fn not<M>(matcher: M) -> NotMatcher<M> {
    NotMatcher(matcher)
}

/// Negated matcher; see [`not`].
#[derive(Debug, Clone)]
pub struct NotMatcher<M>(pub(super) M);

impl<S: ?Sized, M: Matcher<S>> Matcher<S> for NotMatcher<M> {
    fn assertion(&self, subject: &S) -> Assertion {
        self.0.assertion(subject).negated()
    }
}

/// Formats a value for reports.
fn shown(value: &(impl Debug + ?Sized)) -> String {
    const MAX_SHOWN_CHARS: usize = 2_000;
    hotseat_document::excerpt(&format!("{value:?}"), MAX_SHOWN_CHARS).into_owned()
}
