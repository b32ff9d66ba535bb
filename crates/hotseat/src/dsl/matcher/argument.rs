//! What an argument of a tool call is compared with.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Not;
use super::value::{Compare, Contains, LOOKS_FOR_NOTHING, Matches, OneOf};
use crate::cases::condition_in;
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
    /// It meets a condition, as case files have them under `where`.
    Condition(Value),
    /// A function says whether it is right; with words for what that asks for.
    That(String, Arc<dyn Fn(&Value) -> bool + Send + Sync>),
    /// What is asked for makes no sense.
    Wrong(String),
}

impl Wanted {
    /// Whether an argument is what is wanted. One that is not there is not.
    ///
    /// # Errors
    /// When it cannot be compared so, in words.
    pub(in crate::dsl) fn fits(&self, found: Option<&Value>) -> Result<bool, String> {
        match (self, found) {
            (_, None) => Ok(false),
            (Wanted::Value(wanted), Some(found)) => Ok(equal(found, wanted)),
            (Wanted::Condition(written), found) => condition_in(written)?.is_met(found),
            (Wanted::That(_, fits), Some(found)) => Ok(fits(found)),
            (Wanted::Wrong(words), _) => Err(words.clone()),
        }
    }

    /// The condition that it is; none where a function decides.
    pub(super) fn condition(&self) -> Option<Value> {
        match self {
            Wanted::Value(value) => Some(json!({"equals": value})),
            Wanted::Condition(written) => Some(written.clone()),
            Wanted::That(..) | Wanted::Wrong(_) => None,
        }
    }

    /// What is wrong with it, if anything is.
    pub(in crate::dsl) fn mistake(&self) -> Option<String> {
        match self {
            Wanted::Wrong(words) => Some(words.clone()),
            Wanted::Condition(written) => condition_in(written).err(),
            Wanted::Value(_) | Wanted::That(..) => None,
        }
    }

    pub(super) fn words(&self) -> String {
        match self {
            Wanted::Value(value) => value.to_string(),
            Wanted::Condition(written) => match condition_in(written) {
                Ok(condition) => condition.describe(),
                Err(words) => words,
            },
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

values!(Value, &str, String, bool, i32, i64, u32, u64, usize);

impl Argument for f64 {
    fn wanted(self) -> Wanted {
        limit(self).map_or_else(Wanted::Wrong, Wanted::Value)
    }
}

/// A value as JSON. What is no number is nothing in JSON, and nothing is compared with it.
fn limit(value: impl Into<Value> + std::fmt::Debug) -> Result<Value, String> {
    let written = format!("{value:?}");
    match value.into() {
        Value::Null if written != "Null" => {
            Err(format!("{written} is nothing that an argument can be compared with"))
        }
        value => Ok(value),
    }
}

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

/// One value as it is written alone. A list alone would be taken for several.
fn one_or_many<V: Into<Value>>(values: Vec<V>) -> Value {
    let mut values: Vec<Value> = values.into_iter().map(Into::into).collect();
    match values.pop() {
        Some(one) if values.is_empty() && !one.is_array() => one,
        last => {
            values.extend(last);
            values.into()
        }
    }
}

impl<U: Into<Value> + fmt::Debug> Argument for Compare<U> {
    fn wanted(self) -> Wanted {
        match limit(self.than) {
            Err(words) => Wanted::Wrong(words),
            Ok(than) => Wanted::Condition(json!({ self.relation.name(): than })),
        }
    }
}

impl Argument for Matches {
    fn wanted(self) -> Wanted {
        match self.patterns {
            Err(words) => Wanted::Wrong(words),
            Ok(_) => {
                let key = if self.all { "regex" } else { "regex_any" };
                Wanted::Condition(json!({ key: one_or_many(self.written) }))
            }
        }
    }
}

impl<U: Into<Value>> Argument for Contains<U> {
    fn wanted(self) -> Wanted {
        let key = if self.all { "contains" } else { "contains_any" };
        let sought: Vec<Value> = self.sought.into_iter().map(Into::into).collect();
        match sought.is_empty() || sought.iter().any(|sought| sought == "") {
            true => Wanted::Wrong(LOOKS_FOR_NOTHING.to_string()),
            false if self.all => Wanted::Condition(json!({ key: one_or_many(sought) })),
            false => Wanted::Condition(json!({ key: sought })),
        }
    }
}

impl<U: Into<Value>> Argument for OneOf<U> {
    fn wanted(self) -> Wanted {
        match self.mistake() {
            Some(words) => Wanted::Wrong(words.to_string()),
            None => {
                let values: Vec<Value> = self.into_values().into_iter().map(Into::into).collect();
                Wanted::Condition(json!({ "one_of": values }))
            }
        }
    }
}

impl<A: Argument> Argument for Not<A> {
    fn wanted(self) -> Wanted {
        let wanted = self.0.wanted();
        match (wanted.condition(), wanted) {
            (Some(condition), _) => Wanted::Condition(json!({ "not": condition })),
            (None, Wanted::That(words, fits)) => {
                Wanted::That(format!("not {words}"), Arc::new(move |found| !fits(found)))
            }
            (None, wanted) => wanted,
        }
    }
}
