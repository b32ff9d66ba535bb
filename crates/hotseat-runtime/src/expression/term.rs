//! The syntax tree of an expression.

use serde_json::Value;

/// Node of an expression's syntax tree.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ExpressionTerm {
    Constant(Value),
    /// A name in the scope: `input`, `state`, `output`, `result`.
    Name(String),
    Member(Box<ExpressionTerm>, String),
    Index(Box<ExpressionTerm>, Box<ExpressionTerm>),
    List(Vec<ListItem>),
    Object(Vec<(Option<String>, ExpressionTerm)>),
    Call(String, Vec<ExpressionTerm>),
    Not(Box<ExpressionTerm>),
    Negative(Box<ExpressionTerm>),
    Binary(BinaryOperator, Box<ExpressionTerm>, Box<ExpressionTerm>),
    Choice(Box<ExpressionTerm>, Box<ExpressionTerm>, Box<ExpressionTerm>),
}

/// Item of a list literal: one value, or the spread items of another list.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ListItem {
    Single(ExpressionTerm),
    Spread(ExpressionTerm),
}

/// Operator with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BinaryOperator {
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
