//! An expression becomes a value.

use std::fmt;

use serde_json::{Map, Value, json};

use super::{Entry, Operator, Term};

/// The functions that expressions can call.
pub const FUNCTIONS: &[&str] =
    &["length", "keys", "values", "sum", "text", "json", "lower", "upper", "contains", "join"];

/// Why an expression comes to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluateError(pub String);

impl fmt::Display for EvaluateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EvaluateError {}

pub(super) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

pub(super) fn evaluate(term: &Term, scope: &Value) -> Result<Value, EvaluateError> {
    Ok(match term {
        Term::Constant(value) => value.clone(),
        Term::Name(name) => scope.get(name).cloned().unwrap_or(Value::Null),
        Term::Member(of, name) => evaluate(of, scope)?.get_mut(name).map_or(Value::Null, Value::take),
        Term::Index(of, index) => {
            let (of, index) = (evaluate(of, scope)?, evaluate(index, scope)?);
            pick(&of, &index).cloned().unwrap_or(Value::Null)
        }
        Term::List(entries) => Value::Array(list(entries, scope)?),
        Term::Object(members) => Value::Object(object(members, scope)?),
        Term::Call(name, arguments) => {
            let arguments: Vec<_> =
                arguments.iter().map(|term| evaluate(term, scope)).collect::<Result<_, _>>()?;
            call(name, &arguments)?
        }
        Term::Not(term) => Value::Bool(!truthy(&evaluate(term, scope)?)),
        Term::Negative(term) => match evaluate(term, scope)? {
            Value::Number(number) => number_of(-number.as_f64().unwrap_or(f64::NAN))?,
            other => return Err(EvaluateError(format!("{other} has no negative"))),
        },
        Term::Binary(Operator::Or, left, right) => {
            let left = evaluate(left, scope)?;
            if truthy(&left) { left } else { evaluate(right, scope)? }
        }
        Term::Binary(Operator::And, left, right) => {
            let left = evaluate(left, scope)?;
            if truthy(&left) { evaluate(right, scope)? } else { left }
        }
        Term::Binary(operator, left, right) => {
            binary(*operator, &evaluate(left, scope)?, &evaluate(right, scope)?)?
        }
        Term::Choice(condition, then, otherwise) => {
            evaluate(if truthy(&evaluate(condition, scope)?) { then } else { otherwise }, scope)?
        }
    })
}

fn pick<'a>(of: &'a Value, index: &Value) -> Option<&'a Value> {
    match (of, index) {
        (Value::Array(items), Value::Number(number)) => {
            let index = number.as_i64()?;
            let length = i64::try_from(items.len()).ok()?;
            items.get(usize::try_from(if index < 0 { length + index } else { index }).ok()?)
        }
        (Value::Object(members), Value::String(name)) => members.get(name),
        _ => None,
    }
}

fn list(entries: &[Entry], scope: &Value) -> Result<Vec<Value>, EvaluateError> {
    let mut values = Vec::new();
    for entry in entries {
        match entry {
            Entry::One(term) => values.push(evaluate(term, scope)?),
            Entry::All(term) => match evaluate(term, scope)? {
                Value::Array(more) => values.extend(more),
                Value::Null => {}
                other => return Err(EvaluateError(format!("{other} is no list"))),
            },
        }
    }
    Ok(values)
}

fn object(members: &[(Option<String>, Term)], scope: &Value) -> Result<Map<String, Value>, EvaluateError> {
    let mut values = Map::new();
    for (name, term) in members {
        match (name, evaluate(term, scope)?) {
            (Some(name), value) => drop(values.insert(name.clone(), value)),
            (None, Value::Object(more)) => values.extend(more),
            (None, Value::Null) => {}
            (None, other) => return Err(EvaluateError(format!("{other} is no object"))),
        }
    }
    Ok(values)
}

fn number_of(number: f64) -> Result<Value, EvaluateError> {
    if !number.is_finite() {
        return Err(EvaluateError("the result is no number".to_string()));
    }
    // Whole numbers stay whole, as far as they are exact.
    let whole = number.fract() == 0.0 && number.abs() < 9e15;
    Ok(if whole { json!(number as i64) } else { json!(number) })
}

fn binary(operator: Operator, left: &Value, right: &Value) -> Result<Value, EvaluateError> {
    let numbers = left.as_f64().zip(right.as_f64());
    let wrong = |word: &str| EvaluateError(format!("{left} {word} {right} cannot be computed"));
    let compared = || match (left, right, numbers) {
        (_, _, Some((left, right))) => left.partial_cmp(&right),
        (Value::String(left), Value::String(right), _) => Some(left.cmp(right)),
        _ => None,
    };
    match operator {
        // These two look at their left side first and never come here.
        Operator::Or | Operator::And => Err(wrong("and")),
        Operator::Equal => Ok(Value::Bool(numbers.map_or(left == right, |(left, right)| left == right))),
        Operator::Different => Ok(Value::Bool(numbers.map_or(left != right, |(left, right)| left != right))),
        Operator::Less => Ok(Value::Bool(compared().ok_or_else(|| wrong("<"))?.is_lt())),
        Operator::LessOrEqual => Ok(Value::Bool(compared().ok_or_else(|| wrong("<="))?.is_le())),
        Operator::More => Ok(Value::Bool(compared().ok_or_else(|| wrong(">"))?.is_gt())),
        Operator::MoreOrEqual => Ok(Value::Bool(compared().ok_or_else(|| wrong(">="))?.is_ge())),
        Operator::Plus => match (left, right, numbers) {
            (_, _, Some((left, right))) => number_of(left + right),
            (Value::String(text), other, _) => Ok(Value::String(format!("{text}{}", text_of(other)))),
            (other, Value::String(text), _) => Ok(Value::String(format!("{}{text}", text_of(other)))),
            _ => Err(wrong("+")),
        },
        Operator::Minus => numbers.map(|(l, r)| number_of(l - r)).unwrap_or_else(|| Err(wrong("-"))),
        Operator::Times => numbers.map(|(l, r)| number_of(l * r)).unwrap_or_else(|| Err(wrong("*"))),
        Operator::Divided => numbers.map(|(l, r)| number_of(l / r)).unwrap_or_else(|| Err(wrong("/"))),
        Operator::Remainder => numbers.map(|(l, r)| number_of(l % r)).unwrap_or_else(|| Err(wrong("%"))),
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn call(name: &str, arguments: &[Value]) -> Result<Value, EvaluateError> {
    let wrong = || EvaluateError(format!("{name} cannot take {}", Value::Array(arguments.to_vec())));
    match (name, arguments) {
        ("length", [Value::Array(items)]) => Ok(json!(items.len())),
        ("length", [Value::String(text)]) => Ok(json!(text.chars().count())),
        ("length", [Value::Object(members)]) => Ok(json!(members.len())),
        ("length", [Value::Null]) => Ok(json!(0)),
        ("keys", [Value::Object(members)]) => Ok(members.keys().cloned().map(Value::String).collect()),
        ("values", [Value::Object(members)]) => Ok(members.values().cloned().collect()),
        ("sum", [Value::Array(items)]) => {
            let numbers: Option<Vec<f64>> = items.iter().map(Value::as_f64).collect();
            number_of(numbers.ok_or_else(wrong)?.iter().sum())
        }
        ("text", [value]) => Ok(Value::String(text_of(value))),
        ("json", [value]) => Ok(Value::String(value.to_string())),
        ("lower", [Value::String(text)]) => Ok(Value::String(text.to_lowercase())),
        ("upper", [Value::String(text)]) => Ok(Value::String(text.to_uppercase())),
        ("contains", [Value::String(text), Value::String(part)]) => {
            Ok(Value::Bool(text.contains(part.as_str())))
        }
        ("contains", [Value::Array(items), item]) => Ok(Value::Bool(items.contains(item))),
        ("join", [Value::Array(items), Value::String(between)]) => {
            Ok(Value::String(items.iter().map(text_of).collect::<Vec<_>>().join(between)))
        }
        (name, _) if FUNCTIONS.contains(&name) => Err(wrong()),
        _ => Err(EvaluateError(format!("there is no function {name}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Expression;
    use super::*;

    fn value(text: &str) -> Value {
        let scope = json!({"input": {"n": 3, "items": [1, 2, {"a": "x"}], "name": "Ann"}, "state": {}});
        Expression::parse(text).unwrap().evaluate(&scope).unwrap_or_else(|error| json!({"error": error.0}))
    }

    #[test]
    fn every_form_comes_to_what_it_says() {
        let table = [
            ("input.n", json!(3)),
            ("$.input.n", json!(3)),
            ("input.items[-1].a", json!("x")),
            ("input.items.0", json!(1)),
            ("input.none.at.all", json!(null)),
            ("'it''s'[0]", json!({"error": "unread"})),
            ("1 + 2 * 3 - 4 / 2", json!(5)),
            ("7 % 4 === 3", json!(true)),
            ("'n' + input.n", json!("n3")),
            ("input.n > 2 && input.name == \"Ann\"", json!(true)),
            ("!state.done ? 'no' : 'yes'", json!("no")),
            ("[...input.items, -1]", json!([1, 2, {"a": "x"}, -1])),
            ("{a: 1, ...input.items[2], 'b c': null}", json!({"a": "x", "b c": null})),
            ("length(input.items) + sum([1, 2.5])", json!(6.5)),
            ("join(['a', 1], '-')", json!("a-1")),
            ("null || 'other'", json!("other")),
        ];
        for (text, expected) in table {
            if expected == json!({"error": "unread"}) {
                assert!(Expression::parse(text).is_err(), "{text}");
                continue;
            }
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_computed_says_so() {
        assert_eq!(value("1 / 0"), json!({"error": "the result is no number"}));
        assert_eq!(value("input.items + 1"), json!({"error": "[1,2,{\"a\":\"x\"}] + 1 cannot be computed"}));
        assert_eq!(value("shout(1)"), json!({"error": "there is no function shout"}));
    }

    #[test]
    fn depth_and_length_have_limits() {
        assert!(Expression::parse(&"(".repeat(5000)).is_err());
        assert!(Expression::parse(&"!".repeat(5000)).is_err());
        assert!(Expression::parse(&"1+".repeat(6000)).is_err());
    }
}
