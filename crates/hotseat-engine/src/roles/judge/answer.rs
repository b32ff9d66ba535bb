//! Strict parsing of judge answers: one JSON value that matches the requested schema.

use serde_json::Value;

use crate::roles::answer_json::read_answer;
use crate::roles::{RoleError, excerpt};
use hotseat_checks::CompiledSchema;

/// Parses an answer that is entirely JSON, bare or in a code block, and matches a schema.
///
/// JSON within other text is rejected: the judge may be quoting the agent.
///
/// # Errors
/// If the answer is invalid.
pub(super) fn parse_answer(text: &str, schema: &CompiledSchema) -> Result<Value, RoleError> {
    let wrong = |what: &str| {
        RoleError::InvalidAnswer(format!("the judge's answer is invalid: {what}; {}", excerpt(text)))
    };
    let value = read_answer(text).map_err(|why| wrong(&format!("it {why}")))?;
    let mistakes = schema.violations(&value);
    if !mistakes.is_empty() {
        return Err(wrong(&mistakes.join("; ")));
    }
    match value["reasoning"].as_str() {
        Some(reasoning) if reasoning.trim().is_empty() => Err(wrong("`reasoning` is empty")),
        _ => Ok(value),
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
