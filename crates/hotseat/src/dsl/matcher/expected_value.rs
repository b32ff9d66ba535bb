//! Expected values of tool arguments.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::NotMatcher;
use super::value_matchers::{
    ComparisonMatcher, ContainsMatcher, EMPTY_CONTAINS, NOT_IN_JSON, OneOfMatcher, PatternMatcher, has_number,
};
use crate::dsl::panics;
use hotseat_checks::{ArgumentCondition, ArgumentFunction, Undecidable, contains_value};
use hotseat_engine::cases::parse_condition;

/// Expected value of a tool argument: a value, a comparison, a pattern or a function.
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
    message = "a tool argument cannot be compared with `{Self}`",
    label = "not an expected value",
    note = "use a value (a text, a number, `true`, a list, `json!(…)`), `ge`, `gt`, `le`, `lt`, `matches`, `contains`, `one_of`, `not` of one of these, or `that(|value| …)`"
)]
pub trait IntoExpectedValue {
    /// Converts to an expected value.
    fn into_expected(self) -> ExpectedValue;
}

/// Expected value of a tool argument.
#[derive(Clone)]
pub enum ExpectedValue {
    /// Equal to this JSON value.
    Value(Value),
    /// A condition, in the format of `where` in case files.
    Condition(Value),
    /// A predicate with its description.
    Predicate(String, Arc<dyn Fn(&Value) -> bool + Send + Sync>),
    /// An invalid expectation, with the message.
    Invalid(String),
}

impl ExpectedValue {
    /// Returns true if an argument meets the expectation; objects may have more members. A missing argument does not.
    /// Fails if the comparison is impossible.
    pub(in crate::dsl) fn is_met_by(&self, found: Option<&Value>) -> Result<bool, Undecidable> {
        match (self, found) {
            (_, None) => Ok(false),
            (ExpectedValue::Value(wanted), Some(found)) => Ok(contains_value(found, wanted)),
            (ExpectedValue::Condition(written), found) => {
                let condition = parse_condition(written).map_err(Undecidable::new)?;
                condition.is_met(found).map_err(Undecidable::new)
            }
            (ExpectedValue::Predicate(_, fits), Some(found)) => Ok(fits(found)),
            (ExpectedValue::Invalid(words), _) => Err(Undecidable::new(words.as_str())),
        }
    }

    /// Returns the equivalent condition; none for a predicate.
    pub(super) fn condition(&self) -> Option<Value> {
        match self {
            ExpectedValue::Value(value) => Some(containing(value)),
            ExpectedValue::Condition(written) => Some(written.clone()),
            ExpectedValue::Predicate(..) | ExpectedValue::Invalid(_) => None,
        }
    }

    /// Returns the condition of a predicate.
    pub(super) fn function(&self) -> Option<ArgumentCondition> {
        let ExpectedValue::Predicate(words, fits) = self else { return None };
        let fits = fits.clone();
        let decide = move |found: &Value| panics::catch(|| fits(found)).map_err(|panic| panic.to_string());
        Some(ArgumentCondition::Function(ArgumentFunction::new(words, decide)))
    }

    /// Returns the message if the expectation is invalid.
    pub(in crate::dsl) fn problem(&self) -> Option<String> {
        match self {
            ExpectedValue::Invalid(words) => Some(words.clone()),
            ExpectedValue::Condition(written) => Some(parse_condition(written).err()?.to_string()),
            ExpectedValue::Value(_) | ExpectedValue::Predicate(..) => None,
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            ExpectedValue::Value(value) => value.to_string(),
            ExpectedValue::Condition(written) => match parse_condition(written) {
                Ok(condition) => condition.describe(),
                Err(error) => error.to_string(),
            },
            ExpectedValue::Predicate(words, _) => words.clone(),
            ExpectedValue::Invalid(words) => words.clone(),
        }
    }
}

/// Returns the condition of a value that contains the expected one: objects may have more members.
fn containing(expected: &Value) -> Value {
    match expected {
        Value::Object(members) if !members.is_empty() => {
            let members = members.iter().map(|(name, value)| (name.clone(), containing(value)));
            json!({ "members": members.collect::<serde_json::Map<_, _>>() })
        }
        Value::Array(entries) if entries.iter().any(|entry| entry.is_object() || entry.is_array()) => {
            json!({ "entries": entries.iter().map(containing).collect::<Vec<_>>() })
        }
        value => json!({ "equals": value }),
    }
}

impl fmt::Debug for ExpectedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Creates an expectation from a predicate.
///
/// ```
/// use hotseat::dsl::{IntoExpectedValue, that};
///
/// let full_hour = that(|time| time.as_str().is_some_and(|time| time.ends_with(":00"))).into_expected();
/// assert_eq!(format!("{full_hour:?}"), "a value that the predicate accepts");
/// ```
pub fn that<F: Fn(&Value) -> bool + Send + Sync + 'static>(function: F) -> ValuePredicate<F> {
    ValuePredicate(function)
}

/// Expected value with a predicate; see [`that`].
#[derive(Debug, Clone)]
pub struct ValuePredicate<F>(F);

impl<F: Fn(&Value) -> bool + Send + Sync + 'static> IntoExpectedValue for ValuePredicate<F> {
    fn into_expected(self) -> ExpectedValue {
        ExpectedValue::Predicate("a value that the predicate accepts".to_string(), Arc::new(self.0))
    }
}

macro_rules! values {
    ($($value:ty),*) => {
        $(impl IntoExpectedValue for $value {
            fn into_expected(self) -> ExpectedValue {
                ExpectedValue::Value(self.into())
            }
        })*
    };
}

values!(Value, &str, String, bool, i32, i64, u32, u64, usize);

impl IntoExpectedValue for f64 {
    fn into_expected(self) -> ExpectedValue {
        expect_json(vec![self], |values| ExpectedValue::Value(only(values)))
    }
}

/// Expects something of values. NaN and infinity have no JSON representation and are invalid.
fn expect_json<T: Into<Value> + fmt::Debug>(
    values: Vec<T>,
    expect: impl FnOnce(Vec<Value>) -> ExpectedValue,
) -> ExpectedValue {
    match values.iter().find(|value| has_number(value, NOT_IN_JSON)) {
        Some(value) => ExpectedValue::Invalid(format!("an argument cannot be compared with {value:?}")),
        None => expect(values.into_iter().map(Into::into).collect()),
    }
}

/// Returns the value of a list of one.
fn only(mut values: Vec<Value>) -> Value {
    values.pop().unwrap_or_default()
}

impl IntoExpectedValue for () {
    fn into_expected(self) -> ExpectedValue {
        ExpectedValue::Value(Value::Null)
    }
}

impl<T: Into<Value> + fmt::Debug> IntoExpectedValue for Vec<T> {
    fn into_expected(self) -> ExpectedValue {
        expect_json(self, |values| ExpectedValue::Value(values.into()))
    }
}

impl<T: Into<Value> + fmt::Debug, const N: usize> IntoExpectedValue for [T; N] {
    fn into_expected(self) -> ExpectedValue {
        Vec::from(self).into_expected()
    }
}

/// Returns a single value as itself, since a one-element list means several. A single list is wrapped.
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

impl<U: Into<Value> + fmt::Debug> IntoExpectedValue for ComparisonMatcher<U> {
    fn into_expected(self) -> ExpectedValue {
        let key = self.relation.name();
        expect_json(vec![self.limit], |than| ExpectedValue::Condition(json!({ key: only(than) })))
    }
}

impl IntoExpectedValue for PatternMatcher {
    fn into_expected(self) -> ExpectedValue {
        match self.patterns {
            Err(words) => ExpectedValue::Invalid(words),
            Ok(_) => {
                let key = if self.all { "regex" } else { "regex_any" };
                ExpectedValue::Condition(json!({ key: one_or_many(self.sources) }))
            }
        }
    }
}

impl<U: Into<Value> + fmt::Debug> IntoExpectedValue for ContainsMatcher<U> {
    fn into_expected(self) -> ExpectedValue {
        let key = if self.all { "contains" } else { "contains_any" };
        let is_all = self.all;
        expect_json(self.sought, |sought| {
            match sought.is_empty() || sought.iter().any(|sought| sought == "") {
                true => ExpectedValue::Invalid(EMPTY_CONTAINS.to_string()),
                false if is_all => ExpectedValue::Condition(json!({ key: one_or_many(sought) })),
                false => ExpectedValue::Condition(json!({ key: sought })),
            }
        })
    }
}

impl<U: Into<Value> + fmt::Debug> IntoExpectedValue for OneOfMatcher<U> {
    fn into_expected(self) -> ExpectedValue {
        match self.problem() {
            Some(words) => ExpectedValue::Invalid(words.to_string()),
            None => expect_json(self.into_values(), |values| {
                ExpectedValue::Condition(json!({ "one_of": values }))
            }),
        }
    }
}

impl<A: IntoExpectedValue> IntoExpectedValue for NotMatcher<A> {
    fn into_expected(self) -> ExpectedValue {
        let wanted = self.0.into_expected();
        match (wanted.condition(), wanted) {
            (Some(condition), _) => ExpectedValue::Condition(json!({ "not": condition })),
            (None, ExpectedValue::Predicate(words, fits)) => {
                ExpectedValue::Predicate(format!("not {words}"), Arc::new(move |found| !fits(found)))
            }
            (None, wanted) => wanted,
        }
    }
}
