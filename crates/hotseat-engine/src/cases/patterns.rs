//! Decodes patterns.

use hotseat_checks::{ArgumentPattern, ArgumentPatterns, Pattern};
use hotseat_document::{Diagnostics, MapView, NodeView, SourceSpan};
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
    let mut read = |view: NodeView<'_>| match view.json() {
        value @ (Value::Number(_) | Value::Bool(_)) => Some(ArgumentPattern::Equals(value)),
        _ => read_pattern(view, diagnostics).map(ArgumentPattern::Matches),
    };
    ArgumentPatterns(entries.filter_map(|(path, _, view)| Some((path.to_string(), read(view)?))).collect())
}

/// Decodes one pattern.
pub(super) fn read_pattern(view: NodeView<'_>, diagnostics: &mut Diagnostics) -> Option<Pattern> {
    match Pattern::compile(view.text()?) {
        Ok(pattern) => Some(pattern),
        Err(words) => {
            diagnostics.report(view.place(), format!("this pattern does not compile: {words}"));
            None
        }
    }
}
