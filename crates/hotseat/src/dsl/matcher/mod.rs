//! What can be asserted, as values that say for themselves what they ask for.

mod argument;
mod says;
mod value;

use std::fmt::{Debug, Display};

use serde_json::Value;

use super::line::Line;
use crate::checks::Native;
use crate::session::Subject;

pub use argument::{Argument, That, Wanted, that};
pub use says::{
    AboutTurns, CallTool, Claim, Goal, GroundedIn, HaveIntent, Holds, InTopic, Names, ReachedTopic,
    Satisfies, Satisfy, achieve_goal, achieve_stated_goal, call_tool, claim, grounded_in, have_tool_call,
    holds, in_topic, intent, reached_topic, satisfies, satisfy,
};
pub use value::{
    Compare, Contains, Empty, Equal, Len, Matches, OneOf, Patterns, Sought, StartsOrEnds, contains,
    contains_any, ends_with, eq, ge, gt, is_empty, le, len, lt, matches, matches_any, ne, one_of,
    starts_with,
};

/// Something that can be asserted of a subject: of the agent, of the conversation, of a plain value.
///
/// Tests may have matchers of their own: one function says what is asked for, what was found, and whether that holds.
/// Negation, soft and hard, the place and the report come with it.
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
    message = "`{Self}` asserts nothing of `{S}`",
    label = "this says nothing of such a subject",
    note = "what an agent does (`call_tool`, `satisfy`, `matches` …) is asserted of `agent`, `have_tool_call` and `reached_topic` of `conversation`, comparisons (`eq`, `ge`, `contains` …) of values that can be compared"
)]
pub trait Matcher<S: ?Sized> {
    /// What is asserted of this subject, and what it comes to as far as that is known here.
    fn assertion(&self, subject: &S) -> Assertion;
}

/// What a matcher asserts of a subject.
#[derive(Debug, Clone)]
pub struct Assertion {
    pub(in crate::dsl) form: Form,
    pub(in crate::dsl) negated: bool,
    /// What of the conversation the session looks at, where the session decides.
    pub(in crate::dsl) subject: Subject,
    /// The line to the session of what it is asserted of, where that has one.
    pub(in crate::dsl) line: Option<Line>,
}

/// How it is found out whether an assertion holds.
#[derive(Debug, Clone)]
pub(in crate::dsl) enum Form {
    /// It is known, or known that it cannot be said.
    Known(Known),
    /// A function of the test was asked about the agent: whether it says so, or why it has said nothing.
    Judged { name: String, found: Result<bool, String> },
    /// The session decides: assertions as case files have them.
    Written(Value),
    /// Criteria, by their names or in words; which of them a judge decides is known where they are declared.
    Satisfy(Vec<String>),
    /// The session decides, by a function of the test.
    Native(Native),
    /// The test asks for something that makes no sense.
    Wrong(String),
}

/// What is known of a value.
#[derive(Debug, Clone)]
pub(in crate::dsl) struct Known {
    /// The value, as it is written in the test.
    pub of: Option<&'static str>,
    /// What it is asked to be: words that follow the value.
    pub expected: String,
    /// Whether it holds; none where nobody can say.
    pub holds: Option<bool>,
    /// What was found, or why nobody can say.
    pub actual: String,
}

impl Known {
    /// What is asked for, of which value.
    pub(in crate::dsl) fn describe(&self) -> String {
        match self.of {
            Some(of) => format!("`{of}` {}", self.expected),
            None => self.expected.clone(),
        }
    }
}

impl Assertion {
    /// An assertion that has been decided: what is asked for, whether it holds, what was found. Reports say that it was
    /// `expected … to be` the first text, and `found` the last one, so both are fragments.
    ///
    /// ```
    /// use hotseat::dsl::Assertion;
    ///
    /// let polite = Assertion::new("a polite answer", "Please wait.".contains("Please"), "Please wait.");
    /// assert_eq!(polite.holds(), Some(true));
    /// ```
    pub fn new(expected: impl Display, holds: bool, actual: impl Display) -> Assertion {
        Assertion::known(format!("to be {expected}"), holds, actual.to_string())
    }

    /// An assertion that has been decided, in words that follow the value: `to contain "a"`.
    fn known(expected: String, holds: bool, actual: String) -> Assertion {
        Assertion::of(Form::Known(Known { of: None, expected, holds: Some(holds), actual }))
    }

    /// An assertion that nobody can decide, with the reason. It holds neither way, negated or not.
    ///
    /// ```
    /// use hotseat::dsl::Assertion;
    ///
    /// let unknown = Assertion::undecided("an answer in English", "the agent said nothing");
    /// assert_eq!(unknown.holds(), None);
    /// ```
    pub fn undecided(expected: impl Display, why: impl Display) -> Assertion {
        Assertion::unknown(format!("to be {expected}"), why.to_string())
    }

    /// The same in words that follow the value.
    fn unknown(expected: String, actual: String) -> Assertion {
        Assertion::of(Form::Known(Known { of: None, expected, holds: None, actual }))
    }

    /// Whether it holds, as far as that is known without the session.
    pub fn holds(&self) -> Option<bool> {
        match &self.form {
            Form::Known(known) => known.holds.map(|holds| holds != self.negated),
            _ => None,
        }
    }

    /// The contrary.
    #[must_use]
    pub fn negated(self) -> Assertion {
        Assertion { negated: !self.negated, ..self }
    }

    pub(in crate::dsl) fn of(form: Form) -> Assertion {
        Assertion { form, negated: false, subject: Subject::Value, line: None }
    }

    /// The same of a value that is written so in the test.
    pub(in crate::dsl) fn of_value(mut self, written: &'static str) -> Assertion {
        const LONGEST: usize = 80;
        if let Form::Known(known) = &mut self.form {
            known.of = (written.len() <= LONGEST && !written.contains('\n')).then_some(written);
        }
        self
    }

    pub(in crate::dsl) fn wrong(words: impl Into<String>) -> Assertion {
        Assertion::of(Form::Wrong(words.into()))
    }
}

/// What is asserted must not hold. What cannot be decided holds neither way.
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
pub fn not<M>(matcher: M) -> Not<M> {
    Not(matcher)
}

/// The contrary of a matcher; see [`not`].
#[derive(Debug, Clone)]
pub struct Not<M>(pub(super) M);

impl<S: ?Sized, M: Matcher<S>> Matcher<S> for Not<M> {
    fn assertion(&self, subject: &S) -> Assertion {
        self.0.assertion(subject).negated()
    }
}

/// A value as it is shown in reports.
fn shown(value: &(impl Debug + ?Sized)) -> String {
    const LONGEST: usize = 2_000;
    let text = format!("{value:?}");
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
