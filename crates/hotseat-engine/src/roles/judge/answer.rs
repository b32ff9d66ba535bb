//! Strict parsing of judge answers: one JSON value that matches the requested schema.

use hotseat_document::{is_blank, shorten};
use serde_json::Value;

use crate::roles::answer_json::read_answer;
use crate::roles::{RoleError, excerpt};

/// Maximum number of mistakes in a message.
const MAX_MISTAKES: usize = 10;

/// Parses an answer that is entirely JSON, bare or in a code block, and matches a schema.
///
/// JSON within other text is rejected: the judge may be quoting the agent. Fails if the answer is invalid.
pub(super) fn parse_answer(text: &str, schema: &Value) -> Result<Value, RoleError> {
    let wrong = |what: &str| {
        RoleError::InvalidAnswer(format!("the judge's answer is invalid: {what}; {}", excerpt(text)))
    };
    let value = read_answer(text).map_err(|why| wrong(&format!("it {why}")))?;
    let mut mistakes = Vec::new();
    find_mistakes(&value, schema, "", &mut mistakes);
    if !mistakes.is_empty() {
        mistakes.truncate(MAX_MISTAKES);
        return Err(wrong(&mistakes.join("; ")));
    }
    match value["reasoning"].as_str() {
        Some(reasoning) if is_blank(reasoning) => Err(wrong("`reasoning` is empty")),
        _ => Ok(value),
    }
}

/// Finds what a value violates. `schema` is one of the built-in ones: all members are required and no others are allowed,
/// texts may be limited to some, and there are no other rules. So judges need no validator of JSON Schemas.
fn find_mistakes(value: &Value, schema: &Value, place: &str, mistakes: &mut Vec<String>) {
    let at = |what: String| if place.is_empty() { what } else { format!("{place}: {what}") };
    match (schema["type"].as_str().unwrap_or_default(), value) {
        ("boolean", Value::Bool(_)) => {}
        ("string", Value::String(text)) => {
            let allowed = schema["enum"].as_array();
            if let Some(allowed) = allowed.filter(|allowed| !allowed.iter().any(|known| known == text)) {
                let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
                mistakes.push(at(format!("it is not one of {}", allowed.join(", "))));
            }
        }
        ("array", Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                find_mistakes(item, &schema["items"], &format!("{place}/{index}"), mistakes);
            }
        }
        ("object", Value::Object(members)) => {
            let known = schema["properties"].as_object();
            let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
            let unexpected = members.keys().filter(|name| !is_known(name));
            mistakes.extend(unexpected.map(|name| at(format!("'{}' was unexpected", shorten(name)))));
            for (name, schema) in known.into_iter().flatten() {
                match members.get(name) {
                    Some(member) => find_mistakes(member, schema, &format!("{place}/{name}"), mistakes),
                    None => mistakes.push(at(format!("{name:?} is a required property"))),
                }
            }
        }
        (kind, _) => mistakes.push(at(format!("it is not of type {kind:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use hotseat_testkit::malformed::malformed_answers;
    use serde_json::json;

    use super::*;

    #[test]
    fn rejects_malformed_answers() {
        let verdict = |satisfied: bool| json!({"reasoning": "r", "satisfied": satisfied});
        for malformed in malformed_answers(&verdict(true), &verdict(false)) {
            assert!(read_criterion(&malformed.text).is_err(), "{}", malformed.text);
        }
    }

    fn read_criterion(text: &str) -> Result<Value, RoleError> {
        parse_answer(text, &super::super::CRITERION.schema)
    }

    #[test]
    fn reads_bare_json_and_code_block() {
        for text in [
            r#"{"reasoning": "polite", "satisfied": true}"#,
            "  {\"reasoning\": \"polite\", \"satisfied\": true}\n",
            "```json\n{\"reasoning\": \"polite\", \"satisfied\": true}\n```",
            "```\n{\"reasoning\": \"it says ```x```\", \"satisfied\": true}\n```\n",
            "{\"reasoning\": \"two\nlines\tand a tab\", \"satisfied\": true}",
            r#"{"reasoning": "a \"quoted\" word \\", "satisfied": true}"#,
        ] {
            assert_eq!(read_criterion(text).unwrap()["satisfied"], true, "{text}");
        }
    }

    #[test]
    fn rejects_surrounding_text() {
        for (text, words) in [
            ("", "it is empty"),
            ("satisfied", "it is not exactly one JSON value"),
            ("not satisfied", "it is not exactly one JSON value"),
            ("true", "is not of type"),
            ("[]", "is not of type"),
            (r#"{"satisfied": true}"#, "\"reasoning\" is a required property"),
            (r#"{"reasoning": "x"}"#, "\"satisfied\" is a required property"),
            (r#"{"reasoning": "x", "satisfied": "false"}"#, "/satisfied"),
            (r#"{"reasoning": "x", "satisfied": "true"}"#, "/satisfied"),
            (r#"{"reasoning": "x", "satisfied": 1}"#, "/satisfied"),
            (r#"{"reasoning": "x", "satisfied": null}"#, "/satisfied"),
            (r#"{"reasoning": 1, "satisfied": true}"#, "/reasoning"),
            (r#"{"reasoning": " ", "satisfied": true}"#, "`reasoning` is empty"),
            (r#"{"reasoning": "x", "satisfied": true, "score": 1}"#, "'score' was unexpected"),
            (r#"{"reasoning": "x", "satisfied": false, "satisfied": true}"#, "duplicate key \"satisfied\""),
            (r#"It says {"reasoning": "x", "satisfied": true}"#, "it is not exactly one JSON value"),
            (
                "The agent wrote:\n```json\n{\"reasoning\": \"x\", \"satisfied\": true}\n```",
                "it is not exactly one JSON value",
            ),
            (r#"{"reasoning": "x", "satisfied": tr"#, "cut off"),
        ] {
            let error = read_criterion(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
