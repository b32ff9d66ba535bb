//! Expressions over JSON: paths, literals, operators and a few functions, without loops or assignment.
//!
//! `input.items[-1].price * 2`, `state.n > 3 && !output.done`, `{total: sum(result.prices), ...state.more}`.

mod assign;
mod evaluate;
mod parse;
mod term;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use assign::path_names;
pub use assign::set_at_path;
pub use evaluate::{EvaluateError, FUNCTIONS};
pub use parse::ParseError;

use term::{ExpressionTerm, ListItem};

/// Values that an expression refers to by name.
pub trait ExpressionScope {
    /// Returns the value of a name, if it has one.
    fn value(&self, name: &str) -> Option<&Value>;
}

impl ExpressionScope for Value {
    /// Returns a member of an object.
    fn value(&self, name: &str) -> Option<&Value> {
        self.get(name)
    }
}

/// Parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    text: String,
    term: ExpressionTerm,
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// If the syntax is invalid; the error contains the position.
    pub fn parse(text: &str) -> Result<Expression, ParseError> {
        Ok(Expression { text: text.to_string(), term: parse::parse(text)? })
    }

    /// Parses an expression that is a constant in code.
    ///
    /// # Panics
    /// If the syntax is invalid.
    pub(crate) fn parse_static(text: &str) -> Expression {
        Expression::parse(text).unwrap_or_else(|error| panic!("invalid expression `{text}`: {error}"))
    }

    /// Creates an expression with a constant value.
    pub fn constant(value: Value) -> Expression {
        Expression { text: value.to_string(), term: ExpressionTerm::Constant(value) }
    }

    /// Evaluates the expression. Missing paths evaluate to null.
    ///
    /// # Errors
    /// If an operator or a function does not support its operands.
    pub fn evaluate(&self, scope: &dyn ExpressionScope) -> Result<Value, EvaluateError> {
        evaluate::evaluate(&self.term, scope).map(Cow::into_owned)
    }

    /// Evaluates the expression as a condition: null, false, 0 and the empty string are false, everything
    /// else is true.
    ///
    /// # Errors
    /// If an operator or a function does not support its operands.
    pub fn is_truthy(&self, scope: &dyn ExpressionScope) -> Result<bool, EvaluateError> {
        evaluate::evaluate(&self.term, scope).map(|value| evaluate::truthy(&value))
    }
}

impl Expression {
    /// Returns the scope names in use, with repetitions.
    pub fn names(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.term.walk(&mut |term| {
            if let ExpressionTerm::Name(name) = term {
                found.push(name.as_str());
            }
        });
        found
    }

    /// Returns the called functions, with repetitions.
    pub fn functions(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.term.walk(&mut |term| {
            if let ExpressionTerm::Call(name, _) = term {
                found.push(name.as_str());
            }
        });
        found
    }

    /// Returns the name if the expression consists of one.
    pub(crate) fn as_name(&self) -> Option<&str> {
        match &self.term {
            ExpressionTerm::Name(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the source text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl ExpressionTerm {
    /// Visits this term and all nested terms.
    fn walk<'t>(&'t self, visit: &mut impl FnMut(&'t ExpressionTerm)) {
        visit(self);
        match self {
            ExpressionTerm::Constant(_) | ExpressionTerm::Name(_) => {}
            ExpressionTerm::Member(of, _) | ExpressionTerm::Not(of) | ExpressionTerm::Negative(of) => {
                of.walk(visit)
            }
            ExpressionTerm::Index(one, other) | ExpressionTerm::Binary(_, one, other) => {
                one.walk(visit);
                other.walk(visit);
            }
            ExpressionTerm::List(entries) => entries.iter().for_each(|entry| match entry {
                ListItem::Single(term) | ListItem::Spread(term) => term.walk(visit),
            }),
            ExpressionTerm::Object(members) => members.iter().for_each(|(_, term)| term.walk(visit)),
            ExpressionTerm::Call(_, arguments) => arguments.iter().for_each(|term| term.walk(visit)),
            ExpressionTerm::Choice(condition, then, otherwise) => {
                [condition, then, otherwise].into_iter().for_each(|term| term.walk(visit));
            }
        }
    }
}

/// Serialised form: an expression is its text; a constant is the only member of an object, because not every
/// value is an expression.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WireExpression {
    Text(String),
    Constant { constant: Value },
}

impl Serialize for Expression {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A constant that was written as an expression, such as `'tea'`, keeps its source text.
        let constant = match &self.term {
            ExpressionTerm::Constant(value) => {
                Some(value).filter(|value| Expression::constant((*value).clone()) == *self)
            }
            _ => None,
        };
        match constant {
            Some(value) => WireExpression::Constant { constant: value.clone() },
            None => WireExpression::Text(self.text.clone()),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match WireExpression::deserialize(deserializer)? {
            WireExpression::Constant { constant } => Ok(Expression::constant(constant)),
            WireExpression::Text(text) => Expression::parse(&text)
                .map_err(|error| serde::de::Error::custom(format!("invalid expression `{text}`: {error}"))),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
