//! Decodes patterns.

use hotseat_checks::{ArgumentPattern, ArgumentPatterns, Pattern, PatternError};
use hotseat_document::{Diagnostic, Diagnostics, MapView, NodeView, SourceSpan};
use serde_json::Value;

/// Decodes one or several patterns with their positions.
pub(super) fn read_patterns(
    map: &MapView<'_>,
    key: &str,
    diagnostics: &mut Diagnostics,
) -> Vec<(Pattern, SourceSpan)> {
    let Some(view) = map.get(key) else { return Vec::new() };
    view.one_or_many().filter_map(|view| Some((read_pattern(view, diagnostics)?, view.place()))).collect()
}

/// Decodes patterns, numbers and booleans by argument path.
pub(super) fn read_argument_patterns(
    map: &MapView<'_>,
    key: &str,
    diagnostics: &mut Diagnostics,
) -> ArgumentPatterns {
    let Some(entries) = map.get(key).and_then(NodeView::entries) else { return ArgumentPatterns::default() };
    if entries.len() == 0 {
        diagnostics.report(map.place_of(key), format!("`{key}` names no argument"));
    }
    let read = |view: NodeView<'_>, diagnostics: &mut Diagnostics| match view.json() {
        value @ (Value::Number(_) | Value::Bool(_)) => Some(ArgumentPattern::Equals(value)),
        _ => read_pattern(view, diagnostics).map(ArgumentPattern::Matches),
    };
    let read_entry = |(path, place, view)| {
        refuse_json_path(path, place, diagnostics);
        Some((path.to_string(), read(view, diagnostics)?))
    };
    ArgumentPatterns(entries.filter_map(read_entry).collect())
}

/// Refuses a path of an argument in the notation of JSON paths. No argument has such a path, so a check that forbids a
/// value there would always pass.
pub(super) fn refuse_json_path(path: &str, place: SourceSpan, diagnostics: &mut Diagnostics) {
    // Nearly all paths are plain, and the rest copies them several times.
    if path == path.trim() && !path.contains(['[', '*', '$']) {
        return;
    }
    let dotted = path.trim().trim_start_matches("$.").replace("[*]", ".*").replace('[', ".").replace(']', "");
    let is_index =
        |inner: &str| inner == "*" || inner.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let has_index =
        path.split('[').skip(1).filter_map(|rest| rest.split_once(']')).any(|(inner, _)| is_index(inner));
    let has_wildcard = dotted.split('.').any(|segment| segment == "*");
    if path == path.trim() && !path.starts_with("$.") && !has_index && !has_wildcard {
        return;
    }
    let help = match has_wildcard {
        true => "a path names one value: write the index of the element, such as `items.0`".to_string(),
        false => format!("write `{dotted}`"),
    };
    diagnostics.push(Diagnostic::new(format!("no argument has the path `{path}`")).at(place).help(help));
}

/// Decodes one pattern.
pub(super) fn read_pattern(view: NodeView<'_>, diagnostics: &mut Diagnostics) -> Option<Pattern> {
    match Pattern::compile(view.text()?) {
        Ok(pattern) => Some(pattern),
        Err(PatternError::MatchesNothing) if is_escaped_variable(view) => {
            let message = "this pattern matches no text: `$${` is the text `${`, not a variable";
            let wrong = Diagnostic::new(message).at(view.place());
            diagnostics.push(wrong.help("for a dollar sign before a variable write `[$]${NAME}`"));
            None
        }
        Err(error) => {
            diagnostics.report(view.place(), format!("this pattern does not compile: {error}"));
            None
        }
    }
}

/// Returns true if a pattern is written with a backslash before `$${`, which then escapes nothing.
fn is_escaped_variable(view: NodeView<'_>) -> bool {
    view.source.text.get(view.node.span.clone()).is_some_and(|written| written.contains("\\$${"))
}
