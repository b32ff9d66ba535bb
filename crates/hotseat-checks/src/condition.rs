//! Conditions on an argument of a tool call.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use hotseat_trace::{DifferenceReason, as_integer, json_equal, named};
use serde_json::Value;

use super::differences::{DifferenceList, ExtraMembers, join_path, json_type, lookalike_note, with_type};
use super::pattern::Pattern;
use super::regex::MatchMode;

/// Condition on one argument of a call.
#[derive(Debug, Clone)]
pub enum ArgumentCondition {
    /// Equal to this value.
    Equals(Value),
    /// Equal to one of these values.
    OneOf(Vec<Value>),
    /// In this relation to a number or a text.
    Compared(ValueRelation, Value),
    /// Matches patterns; a value that is not text is matched as compact JSON.
    Matches(Vec<Pattern>, MatchMode),
    /// A text with these parts, or a list with these entries.
    Contains(Vec<Value>, MatchMode),
    /// Any value except null.
    NotNull,
    /// An object whose members meet these conditions; other members are allowed.
    Members(Vec<(String, ArgumentCondition)>),
    /// A list whose entries meet these conditions, one by one.
    Entries(Vec<ArgumentCondition>),
    /// Meets all of these conditions.
    All(Vec<ArgumentCondition>),
    /// Exists and does not meet this condition.
    Not(Box<ArgumentCondition>),
    /// Accepted by a function of the test program.
    Function(ArgumentFunction),
}

/// Function of the test program that decides about an argument.
#[derive(Clone)]
pub struct ArgumentFunction {
    /// Description of what it accepts.
    description: Arc<str>,
    decide: Arc<ArgumentDecideFn>,
}

/// Returns whether an argument is accepted, or why the function failed.
type ArgumentDecideFn = dyn Fn(&Value) -> Result<bool, String> + Send + Sync;

impl ArgumentFunction {
    /// Creates a function from the description of what it accepts.
    pub fn new(
        description: &str,
        decide: impl Fn(&Value) -> Result<bool, String> + Send + Sync + 'static,
    ) -> ArgumentFunction {
        ArgumentFunction { description: description.into(), decide: Arc::new(decide) }
    }
}

impl fmt::Debug for ArgumentFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArgumentFunction({})", self.description)
    }
}

named! {
    /// Order relation between two values.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ValueRelation {
        /// Greater than the other value.
        MoreThan = "more_than",
        /// Greater than or equal to the other value.
        AtLeast = "at_least",
        /// Less than the other value.
        LessThan = "less_than",
        /// Less than or equal to the other value.
        AtMost = "at_most",
    }
}

impl ValueRelation {
    /// Describes the relation.
    pub fn describe(self) -> &'static str {
        match self {
            ValueRelation::MoreThan => "more than",
            ValueRelation::AtLeast => "at least",
            ValueRelation::LessThan => "less than",
            ValueRelation::AtMost => "at most",
        }
    }

    /// Returns true if two values that compare with this ordering are in this relation.
    pub fn allows(self, ordering: Ordering) -> bool {
        match self {
            ValueRelation::MoreThan => ordering.is_gt(),
            ValueRelation::AtLeast => ordering.is_ge(),
            ValueRelation::LessThan => ordering.is_lt(),
            ValueRelation::AtMost => ordering.is_le(),
        }
    }
}

/// A condition that does not apply to the type of an argument.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum ConditionError {
    #[error("{}, which cannot be compared with {limit}", with_type(.found))]
    Incomparable { found: Box<Value>, limit: Box<Value> },
    #[error("{}, which cannot contain {part}", with_type(.found))]
    NoContainer { found: Box<Value>, part: Box<Value> },
    #[error("{found}, for which the function of the test fails: {why}")]
    FailedFunction { found: Box<Value>, why: String },
}

impl ArgumentCondition {
    /// Returns true if the condition, or a part of it, is met by values that do not meet another one.
    pub(super) fn has_negation(&self) -> bool {
        match self {
            ArgumentCondition::Not(_) => true,
            ArgumentCondition::Members(members) => members.iter().any(|(_, member)| member.has_negation()),
            ArgumentCondition::Entries(parts) | ArgumentCondition::All(parts) => {
                parts.iter().any(ArgumentCondition::has_negation)
            }
            ArgumentCondition::Equals(_)
            | ArgumentCondition::OneOf(_)
            | ArgumentCondition::Compared(..)
            | ArgumentCondition::Matches(..)
            | ArgumentCondition::Contains(..)
            | ArgumentCondition::NotNull
            | ArgumentCondition::Function(_) => false,
        }
    }

    /// Returns true if the argument meets the condition. A missing argument meets no condition.
    ///
    /// # Errors
    /// If the type of the argument does not allow the comparison. In this case neither the condition nor its
    /// negation is met.
    pub fn is_met(&self, found: Option<&Value>) -> Result<bool, ConditionError> {
        let Some(found) = found else { return Ok(false) };
        type AllMet<'a> = Box<dyn Iterator<Item = Result<bool, ConditionError>> + 'a>;
        let all = |met: AllMet<'_>| -> Result<bool, ConditionError> {
            // An unmet condition takes precedence over one that cannot be evaluated.
            let met: Vec<_> = met.collect();
            match met.contains(&Ok(false)) {
                true => Ok(false),
                false => met.into_iter().collect::<Result<Vec<_>, _>>().map(|_| true),
            }
        };
        match self {
            ArgumentCondition::Equals(value) => Ok(json_equal(found, value)),
            ArgumentCondition::OneOf(values) => Ok(values.iter().any(|value| json_equal(found, value))),
            ArgumentCondition::Compared(relation, limit) => {
                let ordering = compare(found, limit).ok_or_else(|| ConditionError::Incomparable {
                    found: Box::new(found.clone()),
                    limit: Box::new(limit.clone()),
                })?;
                Ok(relation.allows(ordering))
            }
            ArgumentCondition::Matches(patterns, fitting) => Ok(fitting.matches_value(patterns, found)),
            ArgumentCondition::Contains(parts, fitting) => {
                let has = |part: &Value| match (found, part) {
                    (Value::String(text), Value::String(part)) => Ok(text.contains(part)),
                    (Value::Array(entries), part) => Ok(entries.iter().any(|entry| json_equal(entry, part))),
                    _ => Err(ConditionError::NoContainer {
                        found: Box::new(found.clone()),
                        part: Box::new(part.clone()),
                    }),
                };
                let has = parts.iter().map(has).collect::<Result<Vec<bool>, _>>()?;
                Ok(match fitting {
                    MatchMode::All => has.into_iter().all(|has| has),
                    MatchMode::Any => has.into_iter().any(|has| has),
                })
            }
            ArgumentCondition::NotNull => Ok(!found.is_null()),
            ArgumentCondition::Members(members) => match found {
                Value::Object(object) => {
                    all(Box::new(members.iter().map(|(key, inner)| inner.is_met(object.get(key)))))
                }
                _ => Ok(false),
            },
            ArgumentCondition::Entries(entries) => match found {
                Value::Array(list) if list.len() == entries.len() => {
                    all(Box::new(entries.iter().zip(list).map(|(inner, entry)| inner.is_met(Some(entry)))))
                }
                _ => Ok(false),
            },
            ArgumentCondition::All(conditions) => {
                all(Box::new(conditions.iter().map(|inner| inner.is_met(Some(found)))))
            }
            ArgumentCondition::Not(inner) => inner.is_met(Some(found)).map(|met| !met),
            ArgumentCondition::Function(function) => (function.decide)(found)
                .map_err(|why| ConditionError::FailedFunction { found: Box::new(found.clone()), why }),
        }
    }

    /// Adds the reasons why a value does not meet the condition; nothing if it does.
    pub(super) fn add_differences(&self, path: &str, found: Option<&Value>, list: &mut DifferenceList) {
        let met = self.is_met(found);
        if met == Ok(true) {
            return;
        }
        let Some(found) = found else {
            return list.push(path, DifferenceReason::Missing, Some(self.describe()), None, None);
        };
        let type_note = |expected: &str| Some(format!("expected {expected}, got {}", json_type(found)));
        let (reason, note) = match (self, found, met) {
            (ArgumentCondition::Equals(value), ..) => {
                return list.compare(path, value, Some(found), ExtraMembers::Forbidden);
            }
            (ArgumentCondition::All(conditions), ..) => {
                return conditions.iter().for_each(|inner| inner.add_differences(path, Some(found), list));
            }
            (ArgumentCondition::Members(members), Value::Object(object), _) => {
                return members.iter().for_each(|(key, inner)| {
                    inner.add_differences(&join_path(path, key), object.get(key), list)
                });
            }
            (ArgumentCondition::Entries(entries), Value::Array(items), _) if entries.len() == items.len() => {
                return entries.iter().zip(items).enumerate().for_each(|(index, (inner, item))| {
                    inner.add_differences(&join_path(path, &index.to_string()), Some(item), list);
                });
            }
            (ArgumentCondition::Members(_), ..) => (DifferenceReason::Type, type_note("an object")),
            (ArgumentCondition::Entries(entries), Value::Array(items), _) => {
                let note = format!("expected {} entries, got {}", entries.len(), items.len());
                (DifferenceReason::Condition, Some(note))
            }
            (ArgumentCondition::Entries(_), ..) => (DifferenceReason::Type, type_note("a list")),
            (_, _, Err(error)) => (DifferenceReason::Incomparable, Some(error.to_string())),
            (ArgumentCondition::Matches(..), ..) => (DifferenceReason::Pattern, None),
            (ArgumentCondition::OneOf(values), ..) => {
                let note = values.iter().find_map(|value| lookalike_note(value, found));
                (DifferenceReason::Condition, note)
            }
            (
                ArgumentCondition::Compared(..)
                | ArgumentCondition::Contains(..)
                | ArgumentCondition::NotNull
                | ArgumentCondition::Not(_)
                | ArgumentCondition::Function(_),
                ..,
            ) => (DifferenceReason::Condition, None),
        };
        list.push(path, reason, Some(self.describe()), Some(found), note);
    }

    /// Describes the condition, to follow the name of an argument.
    pub fn describe(&self) -> String {
        let listed = |values: &[Value], between: &str| {
            values.iter().map(Value::to_string).collect::<Vec<_>>().join(between)
        };
        match self {
            ArgumentCondition::Equals(value) => value.to_string(),
            ArgumentCondition::OneOf(values) => format!("one of {}", listed(values, ", ")),
            ArgumentCondition::Compared(relation, limit) => format!("{} {limit}", relation.describe()),
            ArgumentCondition::Matches(patterns, fitting) => {
                format!("matching {}", fitting.describe(patterns))
            }
            ArgumentCondition::Contains(parts, MatchMode::All) => {
                format!("containing {}", listed(parts, " and "))
            }
            ArgumentCondition::Contains(parts, MatchMode::Any) => {
                format!("containing {}", listed(parts, " or "))
            }
            ArgumentCondition::NotNull => "not null".to_string(),
            ArgumentCondition::Members(members) => {
                let words = members.iter().map(|(key, inner)| format!("{key}: {}", inner.describe()));
                format!("{{{}}}", words.collect::<Vec<_>>().join(", "))
            }
            ArgumentCondition::Entries(entries) => {
                format!(
                    "[{}]",
                    entries.iter().map(ArgumentCondition::describe).collect::<Vec<_>>().join(", ")
                )
            }
            ArgumentCondition::All(conditions) => {
                conditions.iter().map(ArgumentCondition::describe).collect::<Vec<_>>().join(" and ")
            }
            ArgumentCondition::Not(inner) => format!("not {}", inner.describe()),
            ArgumentCondition::Function(function) => function.description.to_string(),
        }
    }
}

/// Compares two numbers or two texts. Returns `None` for other types.
fn compare(found: &Value, limit: &Value) -> Option<Ordering> {
    match (found, limit) {
        (Value::Number(_), Value::Number(_)) if json_equal(found, limit) => Some(Ordering::Equal),
        (Value::Number(a), Value::Number(b)) => match (as_integer(a), as_integer(b)) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn compares_only_values_of_the_same_type() {
        let values =
            [json!(null), json!(true), json!(5), json!(5.5), json!("5"), json!([5]), json!({"a": 5})];
        for limit in &values {
            for found in &values {
                let alike =
                    (limit.is_number() && found.is_number()) || (limit.is_string() && found.is_string());
                for relation in ValueRelation::ALL {
                    let condition = ArgumentCondition::Compared(*relation, limit.clone());
                    let contrary = ArgumentCondition::Not(Box::new(condition.clone()));
                    let (met, not_met) = (condition.is_met(Some(found)), contrary.is_met(Some(found)));
                    assert_eq!(met.is_ok(), alike, "{found} {relation:?} {limit}");
                    assert_eq!(met.map(|met| !met), not_met, "{found} {relation:?} {limit}");
                    assert_eq!(condition.is_met(None), Ok(false));
                    assert_eq!(contrary.is_met(None), Ok(false));
                }
            }
        }
    }

    #[test]
    fn compares_large_and_mixed_numbers_by_value() {
        let more = |found: Value, limit: Value| {
            ArgumentCondition::Compared(ValueRelation::MoreThan, limit).is_met(Some(&found)).unwrap()
        };
        assert!(more(json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992_i64)));
        assert!(more(json!(u64::MAX), json!(-1)));
        assert!(!more(json!(1), json!(1.0)));
        assert!(more(json!(1.5), json!(1)));
    }
}
