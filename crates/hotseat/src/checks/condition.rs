//! Conditions on an argument of a tool call.

use std::cmp::Ordering;

use serde_json::Value;

use super::equality::equal;
use super::pattern::Pattern;
use super::regex::Fitting;

/// What an argument of a call has to be.
#[derive(Debug, Clone)]
pub enum Condition {
    /// This value.
    Equals(Value),
    /// One of these values.
    OneOf(Vec<Value>),
    /// In this relation to a number, or to a text.
    Compared(Relation, Value),
    /// Something that patterns fit; what is no text is matched as compact JSON.
    Fits(Vec<Pattern>, Fitting),
    /// A text with these parts, or a list with these entries.
    Contains(Vec<Value>, Fitting),
    /// Anything but null.
    Given,
    /// An object whose members meet conditions; it may have more.
    Members(Vec<(String, Condition)>),
    /// A list of just so many entries that meet conditions.
    Entries(Vec<Condition>),
    /// All of these.
    All(Vec<Condition>),
    /// There, and not this.
    Not(Box<Condition>),
}

/// A relation between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// More than the other one.
    MoreThan,
    /// The same or more.
    AtLeast,
    /// Less than the other one.
    LessThan,
    /// The same or less.
    AtMost,
}

impl Relation {
    /// All of them, by the keys that stand for them.
    pub const NAMED: &'static [(&'static str, Relation)] = &[
        ("more_than", Relation::MoreThan),
        ("at_least", Relation::AtLeast),
        ("less_than", Relation::LessThan),
        ("at_most", Relation::AtMost),
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Relation::MoreThan => "more than",
            Relation::AtLeast => "at least",
            Relation::LessThan => "less than",
            Relation::AtMost => "at most",
        }
    }

    /// The key that stands for it.
    pub fn name(self) -> &'static str {
        match self {
            Relation::MoreThan => "more_than",
            Relation::AtLeast => "at_least",
            Relation::LessThan => "less_than",
            Relation::AtMost => "at_most",
        }
    }

    /// Whether a value that compares so with another one is in this relation to it.
    pub fn allows(self, ordering: Ordering) -> bool {
        match self {
            Relation::MoreThan => ordering.is_gt(),
            Relation::AtLeast => ordering.is_ge(),
            Relation::LessThan => ordering.is_lt(),
            Relation::AtMost => ordering.is_le(),
        }
    }
}

impl Condition {
    /// Whether an argument meets it. One that is not there meets no condition.
    ///
    /// # Errors
    /// When the argument is of a type that cannot be compared so, in words. It meets neither the condition nor its contrary.
    pub fn is_met(&self, found: Option<&Value>) -> Result<bool, String> {
        let Some(found) = found else { return Ok(false) };
        let all = |mut met: Box<dyn Iterator<Item = Result<bool, String>> + '_>| -> Result<bool, String> {
            // What is plainly not met decides before what cannot be compared.
            let met: Vec<Result<bool, String>> = met.by_ref().collect();
            match met.contains(&Ok(false)) {
                true => Ok(false),
                false => met.into_iter().collect::<Result<Vec<_>, _>>().map(|_| true),
            }
        };
        match self {
            Condition::Equals(value) => Ok(equal(found, value)),
            Condition::OneOf(values) => Ok(values.iter().any(|value| equal(found, value))),
            Condition::Compared(relation, limit) => {
                let ordering = ordering(found, limit)
                    .ok_or_else(|| format!("{found}, {}, cannot be compared with {limit}", kind(found)))?;
                Ok(relation.allows(ordering))
            }
            Condition::Fits(patterns, fitting) => Ok(match found {
                Value::String(text) => fitting.fits(patterns, text),
                other => fitting.fits(patterns, &other.to_string()),
            }),
            Condition::Contains(parts, fitting) => {
                let has = |part: &Value| match (found, part) {
                    (Value::String(text), Value::String(part)) => Ok(text.contains(part)),
                    (Value::Array(entries), part) => Ok(entries.iter().any(|entry| equal(entry, part))),
                    _ => Err(format!("{found}, {}, cannot contain {part}", kind(found))),
                };
                let has = parts.iter().map(has).collect::<Result<Vec<bool>, String>>()?;
                Ok(match fitting {
                    Fitting::All => has.into_iter().all(|has| has),
                    Fitting::Any => has.into_iter().any(|has| has),
                })
            }
            Condition::Given => Ok(!found.is_null()),
            Condition::Members(members) => match found {
                Value::Object(object) => {
                    all(Box::new(members.iter().map(|(key, inner)| inner.is_met(object.get(key)))))
                }
                _ => Ok(false),
            },
            Condition::Entries(entries) => match found {
                Value::Array(list) if list.len() == entries.len() => {
                    all(Box::new(entries.iter().zip(list).map(|(inner, entry)| inner.is_met(Some(entry)))))
                }
                _ => Ok(false),
            },
            Condition::All(conditions) => {
                all(Box::new(conditions.iter().map(|inner| inner.is_met(Some(found)))))
            }
            Condition::Not(inner) => inner.is_met(Some(found)).map(|met| !met),
        }
    }

    /// What it asks for, in words that follow the name of an argument.
    pub fn describe(&self) -> String {
        let listed = |values: &[Value], between: &str| {
            values.iter().map(Value::to_string).collect::<Vec<_>>().join(between)
        };
        match self {
            Condition::Equals(value) => value.to_string(),
            Condition::OneOf(values) => format!("one of {}", listed(values, ", ")),
            Condition::Compared(relation, limit) => format!("{} {limit}", relation.words()),
            Condition::Fits(patterns, fitting) => format!("fits {}", fitting.describe(patterns)),
            Condition::Contains(parts, Fitting::All) => format!("with {}", listed(parts, " and ")),
            Condition::Contains(parts, Fitting::Any) => format!("with {}", listed(parts, " or ")),
            Condition::Given => "not null".to_string(),
            Condition::Members(members) => {
                let words = members.iter().map(|(key, inner)| format!("{key}: {}", inner.describe()));
                format!("{{{}}}", words.collect::<Vec<_>>().join(", "))
            }
            Condition::Entries(entries) => {
                format!("[{}]", entries.iter().map(Condition::describe).collect::<Vec<_>>().join(", "))
            }
            Condition::All(conditions) => {
                conditions.iter().map(Condition::describe).collect::<Vec<_>>().join(" and ")
            }
            Condition::Not(inner) => format!("not {}", inner.describe()),
        }
    }
}

/// How two numbers or two texts compare; none where they are neither.
fn ordering(found: &Value, limit: &Value) -> Option<Ordering> {
    match (found, limit) {
        (Value::Number(_), Value::Number(_)) if equal(found, limit) => Some(Ordering::Equal),
        (Value::Number(a), Value::Number(b)) => match (whole(a), whole(b)) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn whole(number: &serde_json::Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "which is nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_alike_is_compared() {
        let values =
            [json!(null), json!(true), json!(5), json!(5.5), json!("5"), json!([5]), json!({"a": 5})];
        for limit in &values {
            for found in &values {
                let alike =
                    (limit.is_number() && found.is_number()) || (limit.is_string() && found.is_string());
                for (_, relation) in Relation::NAMED {
                    let condition = Condition::Compared(*relation, limit.clone());
                    let contrary = Condition::Not(Box::new(condition.clone()));
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
    fn numbers_are_compared_by_what_they_are_worth() {
        let more = |found: Value, limit: Value| {
            Condition::Compared(Relation::MoreThan, limit).is_met(Some(&found)).unwrap()
        };
        assert!(more(json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992_i64)));
        assert!(more(json!(u64::MAX), json!(-1)));
        assert!(!more(json!(1), json!(1.0)));
        assert!(more(json!(1.5), json!(1)));
    }
}
