//! What can be asserted, as values that say for themselves what they ask for.

mod argument;
mod says;
mod value;

use std::fmt::{Debug, Display};

use serde_json::Value;

use crate::checks::Native;
use crate::session::Subject;

pub use argument::{Argument, That, Wanted, that};
pub use says::{
    AboutTurns, CallTool, Claim, Goal, GroundedIn, HaveIntent, InTopic, Names, ReachedTopic, Satisfies,
    Satisfy, achieve_goal, achieve_stated_goal, call_tool, claim, grounded_in, have_tool_call, in_topic,
    intent, reached_topic, satisfies, satisfy,
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
}

/// How it is found out whether an assertion holds.
#[derive(Debug, Clone)]
pub(in crate::dsl) enum Form {
    /// It is known.
    Known { expected: String, holds: bool, actual: String },
    /// It cannot be said.
    Unknown { expected: String, why: String },
    /// The session decides: assertions as case files have them.
    Written(Value),
    /// Criteria, by their names or in words; which of them a judge decides is known where they are declared.
    Satisfy(Vec<String>),
    /// The session decides, by a function of the test.
    Native(Native),
    /// The test asks for something that makes no sense.
    Wrong(String),
}

impl Assertion {
    /// An assertion that has been decided: what is asked for, whether it holds, what was found. The first two words of a
    /// report are `expected` and `found`, so both texts are fragments.
    ///
    /// ```
    /// use hotseat::dsl::Assertion;
    ///
    /// let polite = Assertion::new("a polite answer", "Please wait.".contains("Please"), "Please wait.");
    /// assert_eq!(polite.holds(), Some(true));
    /// ```
    pub fn new(expected: impl Display, holds: bool, actual: impl Display) -> Assertion {
        let (expected, actual) = (expected.to_string(), actual.to_string());
        Assertion::of(Form::Known { expected, holds, actual })
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
        let (expected, why) = (expected.to_string(), why.to_string());
        Assertion::of(Form::Unknown { expected, why })
    }

    /// Whether it holds, as far as that is known without the session.
    pub fn holds(&self) -> Option<bool> {
        match self.form {
            Form::Known { holds, .. } => Some(holds != self.negated),
            _ => None,
        }
    }

    /// The contrary.
    #[must_use]
    pub fn negated(self) -> Assertion {
        Assertion { negated: !self.negated, ..self }
    }

    pub(in crate::dsl) fn of(form: Form) -> Assertion {
        Assertion { form, negated: false, subject: Subject::Conversation }
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
