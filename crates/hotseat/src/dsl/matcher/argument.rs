//! What an argument of a tool call is compared with.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::Not;
use super::value::{Compare, Contains, Matches, OneOf};
use crate::checks::equal;

/// What an argument of a tool call may be compared with: a value, a comparison, a pattern, or a function.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("searches", async |t| {
///     t.user.says("A place for 50 people in Stuttgart").await;
///     expect!(
///         t.agent,
///         call_tool("search_venues")
///             .with("location", "Stuttgart")
///             .with("capacity", ge(50))
///             .with("date", matches(r"^\d{4}-\d\d-\d\d$"))
///             .with("tags", that(|tags| tags.is_array()))
///     );
/// });
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that an argument of a tool call can be compared with",
    label = "no argument is compared with this",
    note = "an argument is compared with a value (a text, a number, `true`, a list, `json!(…)`), with `ge`, `gt`, `le`, `lt`, `matches`, `contains`, `one_of`, `not` of one of these, or by `that(|value| …)`"
)]
pub trait Argument {
    /// What is wanted of the argument.
    fn wanted(self) -> Wanted;
}

/// What is wanted of an argument.
#[derive(Clone)]
pub enum Wanted {
    /// It is this value, as JSON.
    Value(Value),
    /// A function says whether it is right; with words for what that asks for.
    That(String, Arc<dyn Fn(&Value) -> bool + Send + Sync>),
    /// What is asked for makes no sense.
    Wrong(String),
}

impl Wanted {
    /// Whether an argument is what is wanted. One that is not there is not.
    pub(in crate::dsl) fn fits(&self, found: Option<&Value>) -> bool {
        match (self, found) {
            (Wanted::Value(wanted), Some(found)) => equal(found, wanted),
            (Wanted::That(_, fits), Some(found)) => fits(found),
            (Wanted::Wrong(_), _) | (_, None) => false,
        }
    }

    pub(super) fn words(&self) -> String {
        match self {
            Wanted::Value(value) => value.to_string(),
            Wanted::That(words, _) => words.clone(),
            Wanted::Wrong(words) => words.clone(),
        }
    }
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words())
    }
}

/// An argument of which a function says whether it is right.
///
/// ```
/// use hotseat::dsl::{Argument, that};
///
/// let full_hour = that(|time| time.as_str().is_some_and(|time| time.ends_with(":00"))).wanted();
/// assert_eq!(format!("{full_hour:?}"), "what a function of the test says");
/// ```
pub fn that<F: Fn(&Value) -> bool + Send + Sync + 'static>(function: F) -> That<F> {
    That(function)
}

/// See [`that`].
#[derive(Debug, Clone)]
pub struct That<F>(F);

impl<F: Fn(&Value) -> bool + Send + Sync + 'static> Argument for That<F> {
    fn wanted(self) -> Wanted {
        Wanted::That("what a function of the test says".to_string(), Arc::new(self.0))
    }
}

macro_rules! values {
    ($($value:ty),*) => {
        $(impl Argument for $value {
            fn wanted(self) -> Wanted {
                Wanted::Value(self.into())
            }
        })*
    };
}

values!(Value, &str, String, bool, i32, i64, u32, u64, usize, f64);

impl Argument for () {
    fn wanted(self) -> Wanted {
        Wanted::Value(Value::Null)
    }
}

impl<T: Into<Value>> Argument for Vec<T> {
    fn wanted(self) -> Wanted {
        Wanted::Value(self.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>, const N: usize> Argument for [T; N] {
    fn wanted(self) -> Wanted {
        Wanted::Value(self.into_iter().map(Into::into).collect())
    }
}

impl<U: Into<Value>> Argument for Compare<U> {
    fn wanted(self) -> Wanted {
        let (relation, than) = (self.relation, self.than.into());
        let words = format!("{} {than}", relation.words());
        Wanted::That(
            words,
            Arc::new(move |found| match (found.as_f64(), than.as_f64(), found.as_str(), than.as_str()) {
                (Some(found), Some(than), ..) => relation.holds(&found, &than),
                (.., Some(found), Some(than)) => relation.holds(&found, &than),
                _ => false,
            }),
        )
    }
}

impl Argument for Matches {
    fn wanted(self) -> Wanted {
        match self.patterns {
            Err(words) => Wanted::Wrong(words),
            Ok(patterns) => {
                let all = self.all;
                let words = Matches::expected(&patterns, all);
                Wanted::That(
                    words,
                    Arc::new(move |found| match found {
                        Value::String(text) => Matches::fits(&patterns, all, text),
                        other => Matches::fits(&patterns, all, &other.to_string()),
                    }),
                )
            }
        }
    }
}

impl<U: Into<Value>> Argument for Contains<U> {
    fn wanted(self) -> Wanted {
        if self.sought.is_empty() {
            return Wanted::Wrong("`contains` looks for nothing: name what is to be there".to_string());
        }
        let sought: Vec<Value> = self.sought.into_iter().map(Into::into).collect();
        let sought = Contains { sought, all: self.all };
        let words = format!(
            "something with {}",
            sought.sought.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
        );
        Wanted::That(
            words,
            Arc::new(move |found| {
                sought.fits(|sought| match (found, sought) {
                    (Value::String(text), Value::String(sought)) => text.contains(sought),
                    (Value::Array(entries), sought) => entries.iter().any(|entry| equal(entry, sought)),
                    _ => false,
                })
            }),
        )
    }
}

impl<U: Into<Value>> Argument for OneOf<U> {
    fn wanted(self) -> Wanted {
        let values: Vec<Value> = self.into_values().into_iter().map(Into::into).collect();
        let words = format!("one of {}", Value::from(values.clone()));
        Wanted::That(words, Arc::new(move |found| values.iter().any(|value| equal(found, value))))
    }
}

impl<A: Argument> Argument for Not<A> {
    fn wanted(self) -> Wanted {
        match self.0.wanted() {
            Wanted::Wrong(words) => Wanted::Wrong(words),
            wanted => Wanted::That(
                format!("not {}", wanted.words()),
                Arc::new(move |found| !wanted.fits(Some(found))),
            ),
        }
    }
}
