//! Small expressions over JSON: paths, literals, operators and a few functions. No loops, no assignment.
//!
//! `input.items[-1].price * 2`, `state.n > 3 && !output.done`, `{total: sum(result.prices), ...state.more}`.

mod evaluate;
mod parse;
mod place;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use evaluate::{EvaluateError, FUNCTIONS};
pub use parse::ParseError;
pub use place::put;

/// An expression that can be evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    text: String,
    term: Term,
}

/// What an expression is made of.
#[derive(Debug, Clone, PartialEq)]
enum Term {
    Constant(Value),
    /// A name of the scope: `input`, `state`, `output`, `result`.
    Name(String),
    Member(Box<Term>, String),
    Index(Box<Term>, Box<Term>),
    List(Vec<Entry>),
    Object(Vec<(Option<String>, Term)>),
    Call(String, Vec<Term>),
    Not(Box<Term>),
    Negative(Box<Term>),
    Binary(Operator, Box<Term>, Box<Term>),
    Choice(Box<Term>, Box<Term>, Box<Term>),
}

/// An entry of a list: one value, or the values of another list.
#[derive(Debug, Clone, PartialEq)]
enum Entry {
    One(Term),
    All(Term),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Equal,
    Different,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
    Plus,
    Minus,
    Times,
    Divided,
    Remainder,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// Says where it cannot be understood.
    pub fn parse(text: &str) -> Result<Expression, ParseError> {
        Ok(Expression { text: text.to_string(), term: parse::parse(text)? })
    }

    /// An expression that a program wrote.
    ///
    /// # Panics
    /// When it cannot be understood.
    pub(crate) fn written(text: &str) -> Expression {
        Expression::parse(text)
            .unwrap_or_else(|error| panic!("the expression `{text}` cannot be read: {error}"))
    }

    /// An expression that is always this value.
    pub fn constant(value: Value) -> Expression {
        Expression { text: value.to_string(), term: Term::Constant(value) }
    }

    /// What it comes to. A path that leads nowhere is null.
    ///
    /// # Errors
    /// When an operator or a function is given what it cannot take.
    pub fn evaluate(&self, scope: &Value) -> Result<Value, EvaluateError> {
        evaluate::evaluate(&self.term, scope)
    }

    /// Whether it holds: null, false, 0, the empty text and nothing else do not.
    ///
    /// # Errors
    /// When an operator or a function is given what it cannot take.
    pub fn holds(&self, scope: &Value) -> Result<bool, EvaluateError> {
        self.evaluate(scope).map(|value| evaluate::truthy(&value))
    }
}

impl Expression {
    /// The names of the scope that it uses, each as often as it does.
    pub fn names(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.term.walk(&mut |term| {
            if let Term::Name(name) = term {
                found.push(name.as_str());
            }
        });
        found
    }

    /// The functions that it calls, each as often as it does.
    pub fn functions(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.term.walk(&mut |term| {
            if let Term::Call(name, _) = term {
                found.push(name.as_str());
            }
        });
        found
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Term {
    /// Shows this term and all within it.
    fn walk<'t>(&'t self, see: &mut impl FnMut(&'t Term)) {
        see(self);
        match self {
            Term::Constant(_) | Term::Name(_) => {}
            Term::Member(of, _) | Term::Not(of) | Term::Negative(of) => of.walk(see),
            Term::Index(one, other) | Term::Binary(_, one, other) => {
                one.walk(see);
                other.walk(see);
            }
            Term::List(entries) => entries.iter().for_each(|entry| match entry {
                Entry::One(term) | Entry::All(term) => term.walk(see),
            }),
            Term::Object(members) => members.iter().for_each(|(_, term)| term.walk(see)),
            Term::Call(_, arguments) => arguments.iter().for_each(|term| term.walk(see)),
            Term::Choice(condition, then, otherwise) => {
                [condition, then, otherwise].into_iter().for_each(|term| term.walk(see));
            }
        }
    }
}

/// An expression is written as its text, a constant as the only member of an object: not every value is an expression.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Constant { constant: Value },
}

impl Serialize for Expression {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A constant that was written as an expression, such as `'tea'`, keeps its own text.
        let constant = match &self.term {
            Term::Constant(value) => {
                Some(value).filter(|value| Expression::constant((*value).clone()) == *self)
            }
            _ => None,
        };
        match constant {
            Some(value) => Written::Constant { constant: value.clone() },
            None => Written::Text(self.text.clone()),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Constant { constant } => Ok(Expression::constant(constant)),
            Written::Text(text) => Expression::parse(&text).map_err(|error| {
                serde::de::Error::custom(format!("the expression `{text}` cannot be read: {error}"))
            }),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
