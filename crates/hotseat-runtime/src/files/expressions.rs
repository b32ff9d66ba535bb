//! Expressions and result paths in files, with the positions of their errors.

use hotseat_document::{Diagnostic, NodeValue, NodeView, nearest_or};

use super::loader::AgentLoader;
use crate::expression::{Expression, FUNCTIONS};

/// Parses an expression that may use these names. Numbers and booleans are constants.
pub(super) fn parse(loader: &mut AgentLoader, view: NodeView<'_>, names: &[&str]) -> Option<Expression> {
    let text = match &view.node.value {
        NodeValue::String(text) => text,
        NodeValue::Number(_) | NodeValue::Bool(_) => return Some(Expression::constant(view.json())),
        NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => return None,
    };
    let expression = match Expression::parse(text) {
        Ok(expression) => expression,
        Err(error) => {
            let letter = text.get(error.at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
            let place = view.place().within(text, error.at..error.at + letter);
            loader.report_diagnostic(
                Diagnostic::new(format!("invalid expression: {}", error.problem)).at(place),
            );
            return None;
        }
    };
    report_unknown(loader, view, text, "name", expression.names(), names);
    report_unknown(loader, view, text, "function", expression.functions(), FUNCTIONS);
    Some(expression)
}

/// Reports unknown names or functions of an expression.
fn report_unknown(
    loader: &mut AgentLoader,
    view: NodeView<'_>,
    text: &str,
    what: &str,
    used: Vec<&str>,
    known: &[&str],
) {
    let mut reported: Vec<&str> = Vec::new();
    for name in used {
        if known.contains(&name) || reported.contains(&name) {
            continue;
        }
        reported.push(name);
        let place =
            find_word(text, name).map_or_else(|| view.place(), |part| view.place().within(text, part));
        let list = || format!("known are `{}`; put strings in quotes", known.join("`, `"));
        let help = nearest_or(name, known.iter().copied(), list);
        let message = format!("unknown {what} `{name}` in this expression");
        loader.diagnostics.push(Diagnostic::new(message).at(place).help(help));
    }
}

/// Returns the range of a whole word in a text.
fn find_word(text: &str, word: &str) -> Option<std::ops::Range<usize>> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$' | '.');
    text.match_indices(word).map(|(start, found)| start..start + found.len()).find(|part| {
        let before = text[..part.start].chars().next_back();
        let after = text[part.end..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(|letter| is_part(letter) && letter != '.')
    })
}

/// Decodes members or paths with expressions, in order.
pub(super) fn members(
    loader: &mut AgentLoader,
    view: NodeView<'_>,
    names: &[&str],
) -> Vec<(String, Expression)> {
    let mut found = Vec::new();
    for (member, _, value) in view.entries().into_iter().flatten() {
        found.extend(parse(loader, value, names).map(|expression| (member.to_owned(), expression)));
    }
    found
}

/// Decodes the members of an input. The whole input has its own syntax.
pub(super) fn inputs(
    loader: &mut AgentLoader,
    view: NodeView<'_>,
    names: &[&str],
) -> Vec<(String, Expression)> {
    if let Some((_, place, _)) = view.entries().into_iter().flatten().find(|(member, _, _)| *member == "*") {
        loader.report(place, "`*` is not a member: write `input: EXPRESSION` for the whole input");
    }
    members(loader, view, names)
}

/// Decodes paths with expressions. Each path must start with `output` or `state`.
pub(super) fn outputs(
    loader: &mut AgentLoader,
    view: NodeView<'_>,
    names: &[&str],
) -> Vec<(String, Expression)> {
    for (path, place, _) in view.entries().into_iter().flatten() {
        check_path(loader, path, place);
    }
    members(loader, view, names)
}

/// Reports a path at which a result would be lost.
pub(super) fn check_path(loader: &mut AgentLoader, path: &str, place: hotseat_document::SourceSpan) {
    let first = path.strip_prefix("$.").unwrap_or(path).split('.').next().unwrap_or_default();
    if !["output", "state"].contains(&first) {
        let help = format!("for example `output.{path}`");
        let message = format!("the path `{path}` must start with `output` or `state`");
        loader.report_diagnostic(Diagnostic::new(message).at(place).help(help));
    }
}
