//! Which tool calls a check looks at, and how they are shown.

use hotseat_trace::{Scope, ToolCall};
use serde_json::Value;

use super::pattern::Pattern;

/// The longest text of arguments or of a result that is shown; reports hold them whole.
const SHOWN: usize = 160;

/// Calls of one tool, narrowed by their arguments and results.
#[derive(Debug, Clone)]
pub struct CallFilter {
    /// Name of the tool, compared exactly.
    pub name: String,
    /// Patterns for arguments; all must fit.
    pub arguments: ArgumentPatterns,
    /// Patterns for the result; all must fit, so a call without a result is left out where there are any.
    pub result: Vec<Pattern>,
}

impl CallFilter {
    /// Every call of a tool.
    pub fn named(name: impl Into<String>) -> Self {
        CallFilter { name: name.into(), arguments: ArgumentPatterns::default(), result: Vec::new() }
    }

    /// Whether a call is meant.
    pub fn fits(&self, call: &ToolCall) -> bool {
        *call.name == *self.name && self.arguments.all_fit(&call.arguments) && self.result_fits(call)
    }

    /// Whether nobody can know if a call is meant: its result decides that, and none came.
    pub fn is_unknown(&self, call: &ToolCall) -> bool {
        !self.result.is_empty()
            && call.result.is_none()
            && *call.name == *self.name
            && self.arguments.all_fit(&call.arguments)
    }

    /// The calls of which nobody can know whether they are meant.
    pub fn unknown_calls(&self, scope: Scope<'_>) -> Vec<String> {
        let unknown = scope.calls().filter(|(_, call)| self.is_unknown(call));
        unknown.map(|(turn, call)| shown(turn, call)).collect()
    }

    fn result_fits(&self, call: &ToolCall) -> bool {
        if self.result.is_empty() {
            return true;
        }
        let Some(result) = &call.result else { return false };
        let text = result.text();
        self.result.iter().all(|pattern| pattern.fits(&text))
    }

    /// Which calls are meant, in words: the name of the tool and what narrows it.
    pub fn describe(&self) -> String {
        let mut words = self.name.clone();
        if !self.arguments.0.is_empty() {
            words.push_str(&format!(" with {}", self.arguments.describe()));
        }
        if !self.result.is_empty() {
            words.push_str(&format!(" with a result that fits {}", patterns(&self.result)));
        }
        words
    }

    /// What a scope holds of the tool, for whoever looks at a failed check.
    pub fn shown_calls(&self, scope: Scope<'_>) -> Vec<String> {
        scope
            .calls()
            .filter(|(_, call)| *call.name == *self.name)
            .map(|(turn, call)| shown(turn, call))
            .collect()
    }
}

/// Patterns for arguments by the path of the argument.
#[derive(Debug, Clone, Default)]
pub struct ArgumentPatterns(pub Vec<(String, Pattern)>);

impl ArgumentPatterns {
    /// Whether every argument is there and fits its pattern.
    pub fn all_fit(&self, arguments: &Value) -> bool {
        self.0.iter().all(|(path, pattern)| fits_at(arguments, path, pattern))
    }

    /// The first path whose argument is there and fits its pattern.
    pub fn any_fits(&self, arguments: &Value) -> Option<&str> {
        self.0.iter().find(|(path, pattern)| fits_at(arguments, path, pattern)).map(|(path, _)| path.as_str())
    }

    /// The patterns in words.
    pub fn describe(&self) -> String {
        let parts: Vec<String> = self.0.iter().map(|(path, pattern)| format!("{path} {pattern}")).collect();
        parts.join(", ")
    }
}

fn fits_at(arguments: &Value, path: &str, pattern: &Pattern) -> bool {
    match at_path(arguments, path) {
        Some(Value::String(text)) => pattern.fits(text),
        Some(other) => pattern.fits(&other.to_string()),
        None => false,
    }
}

/// The value at a dotted path. A key that holds dots itself wins over the path it could also be; a number names
/// a place in a list.
fn at_path<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(value);
    }
    match value {
        Value::Object(members) => {
            if let Some(found) = members.get(path) {
                return Some(found);
            }
            // The longest key that the path begins with is tried first.
            let dots = path.rmatch_indices('.').map(|(at, _)| at);
            dots.filter_map(|at| at_path(members.get(&path[..at])?, &path[at + 1..])).next()
        }
        Value::Array(items) => {
            let (head, rest) = path.split_once('.').unwrap_or((path, ""));
            at_path(items.get(head.parse::<usize>().ok()?)?, rest)
        }
        _ => None,
    }
}

/// A call on one line: turn, tool, arguments, result.
pub fn shown(turn: usize, call: &ToolCall) -> String {
    let result = match &call.result {
        Some(result) if result.failed => format!("failed: {}", cut(&result.text())),
        Some(result) => cut(&result.text()),
        None => "no result".to_string(),
    };
    format!("turn {turn}: {}({}) → {result}", call.name, cut(&call.arguments.to_string()))
}

/// The names of the tools that were called, each once.
pub fn names(scope: Scope<'_>) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (_, call) in scope.calls() {
        if !names.contains(&&*call.name) {
            names.push(&call.name);
        }
    }
    names
}

/// Patterns in words.
pub fn patterns(patterns: &[Pattern]) -> String {
    patterns.iter().map(Pattern::to_string).collect::<Vec<_>>().join(" and ")
}

/// A text short enough to be shown, cut between characters.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_into_objects_and_lists() {
        let value = json!({"cart": {"items": [{"sku": "A"}, {"sku": "B"}]}, "a.b": 1, "a": {"b": 2, "c.d": {"e": 3}}, "n": null});
        for (path, expected) in [
            ("cart.items.1.sku", Some(json!("B"))),
            ("cart.items.2.sku", None),
            ("cart.items", Some(json!([{"sku": "A"}, {"sku": "B"}]))),
            ("a.b", Some(json!(1))),
            ("a.c.d.e", Some(json!(3))),
            ("n", Some(json!(null))),
            ("n.x", None),
            ("missing", None),
        ] {
            assert_eq!(at_path(&value, path).cloned(), expected, "{path}");
        }
    }
}
