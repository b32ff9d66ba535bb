//! What an agent answered, as text and as JSON.
//!
//! Its answer is the last message of the last turn that a check looks at. What it said is everything it said in
//! that turn.

use hotseat_trace::Scope;
use serde_json::{Deserializer, Value};

use super::calls::cut;

/// How many brackets in a text are tried as the beginning of JSON.
const MOST_TRIED: usize = 64;

/// The answer; empty where the agent said nothing.
pub fn answer(scope: Scope<'_>) -> &str {
    scope.turns().last().and_then(|turn| turn.answer()).unwrap_or_default()
}

/// A text as it is shown to whoever looks at a failed check.
pub fn shown(text: &str) -> String {
    match text {
        "" => "it says nothing".to_string(),
        text => format!("{:?}", cut(text)),
    }
}

/// A value on one line, short enough to be shown.
pub fn shown_json(value: &Value) -> String {
    cut(&value.to_string())
}

/// The value that a text is: all of it, or what its one code block holds.
pub fn whole_json(text: &str) -> Option<Value> {
    let text = text.trim();
    serde_json::from_str(text).ok().or_else(|| {
        let (before, inner, behind) = code_block(text)?;
        (before.is_empty() && behind.is_empty()).then(|| serde_json::from_str(inner).ok()).flatten()
    })
}

/// The value that a text is or holds: all of it, its first code block that is JSON, or the first object or list in
/// its prose. Words are never taken for values.
pub fn json_in(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text.trim()) {
        return Some(value);
    }
    let mut rest = text;
    while let Some((_, inner, behind)) = code_block(rest) {
        if let Ok(value) = serde_json::from_str(inner) {
            return Some(value);
        }
        rest = behind;
    }
    let brackets = text.match_indices(['{', '[']).map(|(at, _)| at);
    brackets.take(MOST_TRIED).find_map(|at| {
        let value = Deserializer::from_str(&text[at..]).into_iter::<Value>().next()?.ok()?;
        // `[1]` in prose is a footnote, and `{}` says nothing.
        let is_telling = match &value {
            Value::Object(members) => !members.is_empty(),
            Value::Array(items) => items.iter().any(|item| item.is_object() || item.is_array()),
            _ => false,
        };
        is_telling.then_some(value)
    })
}

/// The first code block between three backticks: what stands before it, in it, and behind it.
fn code_block(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("```")?;
    let (_language, rest) = rest.split_once('\n')?;
    let (inner, behind) = rest.split_once("```")?;
    Some((before, inner, behind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_found_where_people_and_models_put_it() {
        for (text, expected) in [
            ("{\"a\": 1}", Some(json!({"a": 1}))),
            (" 42\n", Some(json!(42))),
            ("Result:\n```json\n{\"a\": 1}\n```\nDone.", Some(json!({"a": 1}))),
            ("```\nnot json\n```\n```json\n[1]\n```", Some(json!([1]))),
            ("Here: {\"a\": {\"b\": 2}} as asked", Some(json!({"a": {"b": 2}}))),
            ("{oops} {\"a\": 1}", Some(json!({"a": 1}))),
            ("As shown [1] and {}: nothing", None),
            ("Note: x", None),
            ("status: ok\ncount: 3", None),
            ("", None),
            ("{\"a\": ", None),
        ] {
            assert_eq!(json_in(text), expected, "{text}");
        }
        assert_eq!(whole_json("```json\n{\"a\": 1}\n```"), Some(json!({"a": 1})));
        assert_eq!(whole_json("Here: {\"a\": 1}"), None);
    }

    #[test]
    fn a_text_full_of_brackets_takes_no_time() {
        assert_eq!(json_in(&"[{".repeat(1_000_000)), None);
    }
}
