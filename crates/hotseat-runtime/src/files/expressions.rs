//! Expressions and the paths that results are put at, with the places of what is wrong in them.

use hotseat_document::{Diagnostic, Value, View, nearest};

use super::loader::Loader;
use crate::expression::{Expression, FUNCTIONS};

/// Reads an expression that may use these names. A number or truth value stands for itself.
pub(super) fn read(loader: &mut Loader, view: View<'_>, names: &[&str]) -> Option<Expression> {
    let text = match &view.node.value {
        Value::String(text) => text,
        Value::Number(_) | Value::Bool(_) => return Some(Expression::constant(view.json())),
        Value::Null | Value::List(_) | Value::Map(_) => return None,
    };
    let expression = match Expression::parse(text) {
        Ok(expression) => expression,
        Err(error) => {
            let letter = text.get(error.at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
            let place = view.place().within(text, error.at..error.at + letter);
            loader.wrong(Diagnostic::new(format!("this is no expression: {}", error.problem)).at(place));
            return None;
        }
    };
    unknown(loader, view, text, "name", expression.names(), names);
    unknown(loader, view, text, "function", expression.functions(), FUNCTIONS);
    Some(expression)
}

/// Reports what an expression uses that is not known.
fn unknown(loader: &mut Loader, view: View<'_>, text: &str, what: &str, used: Vec<&str>, known: &[&str]) {
    let mut told: Vec<&str> = Vec::new();
    for name in used {
        if known.contains(&name) || told.contains(&name) {
            continue;
        }
        told.push(name);
        let place = word(text, name).map_or_else(|| view.place(), |part| view.place().within(text, part));
        let help = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are `{}`; a text is written in quotes of its own", known.join("`, `")),
        };
        let message = format!("the {what} `{name}` is not known in this expression");
        loader.mistakes.push(Diagnostic::new(message).at(place).help(help));
    }
}

/// Where a word stands in a text, as a word of its own.
fn word(text: &str, word: &str) -> Option<std::ops::Range<usize>> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$' | '.');
    text.match_indices(word).map(|(start, found)| start..start + found.len()).find(|part| {
        let before = text[..part.start].chars().next_back();
        let after = text[part.end..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(|letter| is_part(letter) && letter != '.')
    })
}

/// Reads members or paths with expressions, in their order.
pub(super) fn members(loader: &mut Loader, view: View<'_>, names: &[&str]) -> Vec<(String, Expression)> {
    let mut found = Vec::new();
    for (member, _, value) in view.entries().into_iter().flatten() {
        found.extend(read(loader, value, names).map(|expression| (member.to_owned(), expression)));
    }
    found
}

/// Reads members of an input with expressions. The whole input is written otherwise.
pub(super) fn inputs(loader: &mut Loader, view: View<'_>, names: &[&str]) -> Vec<(String, Expression)> {
    if let Some((_, place, _)) = view.entries().into_iter().flatten().find(|(member, _, _)| *member == "*") {
        loader.mistake(place, "`*` is no member: the whole input is written `input: EXPRESSION`");
    }
    members(loader, view, names)
}

/// Reads paths with expressions, where each path must begin with `output` or `state`.
pub(super) fn outputs(loader: &mut Loader, view: View<'_>, names: &[&str]) -> Vec<(String, Expression)> {
    for (path, place, _) in view.entries().into_iter().flatten() {
        check_path(loader, path, place);
    }
    members(loader, view, names)
}

/// Refuses a path at which a result would be lost.
pub(super) fn check_path(loader: &mut Loader, path: &str, place: hotseat_document::Place) {
    let first = path.strip_prefix("$.").unwrap_or(path).split('.').next().unwrap_or_default();
    if !["output", "state"].contains(&first) {
        let help = format!("for instance `output.{path}`");
        let message = format!("the path `{path}` does not begin with `output` or `state`");
        loader.wrong(Diagnostic::new(message).at(place).help(help));
    }
}
