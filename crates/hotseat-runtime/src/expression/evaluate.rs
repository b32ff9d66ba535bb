//! Evaluates expressions.

use std::borrow::Cow;

use hotseat_trace::plain_text;
use serde_json::{Map, Value, json};

use super::ExpressionScope;
use super::term::{BinaryOperator, ExpressionTerm, ListItem};

/// Functions available in expressions.
pub const FUNCTIONS: &[&str] =
    &["length", "keys", "values", "sum", "text", "json", "lower", "upper", "contains", "join"];

/// Error of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvaluateError(pub String);

pub(super) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// Value of a path that does not exist.
static NULL: Value = Value::Null;

/// Evaluates a term. A path into the scope is borrowed, so a scope of any size costs nothing.
pub(super) fn evaluate<'a>(
    term: &'a ExpressionTerm,
    scope: &'a dyn ExpressionScope,
) -> Result<Cow<'a, Value>, EvaluateError> {
    Ok(Cow::Owned(match term {
        ExpressionTerm::Constant(value) => return Ok(Cow::Borrowed(value)),
        ExpressionTerm::Name(name) => return Ok(Cow::Borrowed(scope.value(name).unwrap_or(&NULL))),
        ExpressionTerm::Member(of, name) => match evaluate(of, scope)? {
            Cow::Borrowed(of) => return Ok(Cow::Borrowed(of.get(name).unwrap_or(&NULL))),
            Cow::Owned(mut of) => of.get_mut(name).map_or(Value::Null, Value::take),
        },
        ExpressionTerm::Index(of, index) => {
            let (of, index) = (evaluate(of, scope)?, evaluate(index, scope)?);
            match of {
                Cow::Borrowed(of) => return Ok(Cow::Borrowed(element_at(of, &index).unwrap_or(&NULL))),
                Cow::Owned(of) => element_at(&of, &index).cloned().unwrap_or(Value::Null),
            }
        }
        ExpressionTerm::List(entries) => Value::Array(list(entries, scope)?),
        ExpressionTerm::Object(members) => Value::Object(object(members, scope)?),
        ExpressionTerm::Call(name, arguments) => {
            let arguments: Vec<_> =
                arguments.iter().map(|term| evaluate(term, scope)).collect::<Result<_, _>>()?;
            call(name, &arguments.iter().map(|argument| &**argument).collect::<Vec<_>>())?
        }
        ExpressionTerm::Not(term) => Value::Bool(!truthy(&*evaluate(term, scope)?)),
        ExpressionTerm::Negative(term) => match &*evaluate(term, scope)? {
            Value::Number(number) => to_number(-number.as_f64().unwrap_or(f64::NAN))?,
            other => return Err(EvaluateError(format!("cannot negate {other}"))),
        },
        ExpressionTerm::Binary(BinaryOperator::Or, left, right) => {
            let left = evaluate(left, scope)?;
            return if truthy(&left) { Ok(left) } else { evaluate(right, scope) };
        }
        ExpressionTerm::Binary(BinaryOperator::And, left, right) => {
            let left = evaluate(left, scope)?;
            return if truthy(&left) { evaluate(right, scope) } else { Ok(left) };
        }
        ExpressionTerm::Binary(operator, left, right) => {
            binary(*operator, &*evaluate(left, scope)?, &*evaluate(right, scope)?)?
        }
        ExpressionTerm::Choice(condition, then, otherwise) => {
            let holds = truthy(&*evaluate(condition, scope)?);
            return evaluate(if holds { then } else { otherwise }, scope);
        }
    }))
}

fn element_at<'a>(of: &'a Value, index: &Value) -> Option<&'a Value> {
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

fn list(entries: &[ListItem], scope: &dyn ExpressionScope) -> Result<Vec<Value>, EvaluateError> {
    let mut values = Vec::new();
    for entry in entries {
        match entry {
            ListItem::Single(term) => values.push(evaluate(term, scope)?.into_owned()),
            ListItem::Spread(term) => match evaluate(term, scope)?.into_owned() {
                Value::Array(more) => values.extend(more),
                Value::Null => {}
                other => return Err(EvaluateError(format!("{other} is not a list"))),
            },
        }
    }
    Ok(values)
}

fn object(
    members: &[(Option<String>, ExpressionTerm)],
    scope: &dyn ExpressionScope,
) -> Result<Map<String, Value>, EvaluateError> {
    let mut values = Map::new();
    for (name, term) in members {
        match (name, evaluate(term, scope)?.into_owned()) {
            (Some(name), value) => drop(values.insert(name.clone(), value)),
            (None, Value::Object(more)) => values.extend(more),
            (None, Value::Null) => {}
            (None, other) => return Err(EvaluateError(format!("{other} is not an object"))),
        }
    }
    Ok(values)
}

fn to_number(number: f64) -> Result<Value, EvaluateError> {
    if !number.is_finite() {
        return Err(EvaluateError("the result is not a number".to_string()));
    }
    // Integers stay integers as long as they are exact.
    let whole = number.fract() == 0.0 && number.abs() < 9e15;
    Ok(if whole { json!(number as i64) } else { json!(number) })
}

fn binary(operator: BinaryOperator, left: &Value, right: &Value) -> Result<Value, EvaluateError> {
    let numbers = left.as_f64().zip(right.as_f64());
    let wrong = |word: &str| EvaluateError(format!("cannot compute {left} {word} {right}"));
    let compared = || match (left, right, numbers) {
        (_, _, Some((left, right))) => left.partial_cmp(&right),
        (Value::String(left), Value::String(right), _) => Some(left.cmp(right)),
        _ => None,
    };
    match operator {
        // `evaluate` handles these two with short-circuiting.
        BinaryOperator::Or | BinaryOperator::And => Err(wrong("and")),
        BinaryOperator::Equal => {
            Ok(Value::Bool(numbers.map_or(left == right, |(left, right)| left == right)))
        }
        BinaryOperator::Different => {
            Ok(Value::Bool(numbers.map_or(left != right, |(left, right)| left != right)))
        }
        BinaryOperator::Less => Ok(Value::Bool(compared().ok_or_else(|| wrong("<"))?.is_lt())),
        BinaryOperator::LessOrEqual => Ok(Value::Bool(compared().ok_or_else(|| wrong("<="))?.is_le())),
        BinaryOperator::More => Ok(Value::Bool(compared().ok_or_else(|| wrong(">"))?.is_gt())),
        BinaryOperator::MoreOrEqual => Ok(Value::Bool(compared().ok_or_else(|| wrong(">="))?.is_ge())),
        BinaryOperator::Plus => match (left, right, numbers) {
            (_, _, Some((left, right))) => to_number(left + right),
            (Value::String(text), other, _) => Ok(Value::String(format!("{text}{}", plain_text(other)))),
            (other, Value::String(text), _) => Ok(Value::String(format!("{}{text}", plain_text(other)))),
            _ => Err(wrong("+")),
        },
        BinaryOperator::Minus => numbers.map(|(l, r)| to_number(l - r)).unwrap_or_else(|| Err(wrong("-"))),
        BinaryOperator::Times => numbers.map(|(l, r)| to_number(l * r)).unwrap_or_else(|| Err(wrong("*"))),
        BinaryOperator::Divided => numbers.map(|(l, r)| to_number(l / r)).unwrap_or_else(|| Err(wrong("/"))),
        BinaryOperator::Remainder => {
            numbers.map(|(l, r)| to_number(l % r)).unwrap_or_else(|| Err(wrong("%")))
        }
    }
}

fn call(name: &str, arguments: &[&Value]) -> Result<Value, EvaluateError> {
    let wrong = || {
        let arguments = arguments.iter().map(|argument| (*argument).clone()).collect();
        EvaluateError(format!("{name} does not accept {}", Value::Array(arguments)))
    };
    match (name, arguments) {
        ("length", [Value::Array(items)]) => Ok(json!(items.len())),
        ("length", [Value::String(text)]) => Ok(json!(text.chars().count())),
        ("length", [Value::Object(members)]) => Ok(json!(members.len())),
        ("length", [Value::Null]) => Ok(json!(0)),
        ("keys", [Value::Object(members)]) => Ok(members.keys().cloned().map(Value::String).collect()),
        ("values", [Value::Object(members)]) => Ok(members.values().cloned().collect()),
        ("sum", [Value::Array(items)]) => {
            let numbers: Option<Vec<f64>> = items.iter().map(Value::as_f64).collect();
            to_number(numbers.ok_or_else(wrong)?.iter().sum())
        }
        ("text", [value]) => Ok(Value::String(plain_text(value))),
        ("json", [value]) => Ok(Value::String(value.to_string())),
        ("lower", [Value::String(text)]) => Ok(Value::String(text.to_lowercase())),
        ("upper", [Value::String(text)]) => Ok(Value::String(text.to_uppercase())),
        ("contains", [Value::String(text), Value::String(part)]) => {
            Ok(Value::Bool(text.contains(part.as_str())))
        }
        ("contains", [Value::Array(items), item]) => Ok(Value::Bool(items.contains(item))),
        ("join", [Value::Array(items), Value::String(between)]) => {
            Ok(Value::String(items.iter().map(plain_text).collect::<Vec<_>>().join(between)))
        }
        (name, _) if FUNCTIONS.contains(&name) => Err(wrong()),
        _ => Err(EvaluateError(format!("unknown function {name}"))),
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
    fn evaluates_every_form() {
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
    fn reports_evaluation_errors() {
        assert_eq!(value("1 / 0"), json!({"error": "the result is not a number"}));
        assert_eq!(value("input.items + 1"), json!({"error": "cannot compute [1,2,{\"a\":\"x\"}] + 1"}));
        assert_eq!(value("shout(1)"), json!({"error": "unknown function shout"}));
    }

    #[test]
    fn depth_and_length_have_limits() {
        assert!(Expression::parse(&"(".repeat(5000)).is_err());
        assert!(Expression::parse(&"!".repeat(5000)).is_err());
        assert!(Expression::parse(&"1+".repeat(6000)).is_err());
    }
}
