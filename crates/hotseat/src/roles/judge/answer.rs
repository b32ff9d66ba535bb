//! What a judge says is read strictly: JSON and nothing else, of just the form that was asked for.

use serde_json::Value;

use crate::checks::Schema;
use crate::roles::beginning;
use crate::roles::reading::read_answer;

/// Reads an answer that is JSON as a whole, bare or in a code block, and fits a schema.
///
/// JSON that stands among words is not taken: a judge that quotes what the agent said would be taken at the agent's word.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(text: &str, schema: &Schema) -> Result<Value, String> {
    let wrong = |what: &str| format!("the judge's answer is of no use: {what}; {}", beginning(text));
    let value = read_answer(text).map_err(|why| wrong(&format!("it {why}")))?;
    let mistakes = schema.mistakes(&value);
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
    fn malformed_answers_have_no_form() {
        let verdict = |satisfied: bool| json!({"reasoning": "r", "satisfied": satisfied});
        for malformed in malformed_answers(&verdict(true), &verdict(false)) {
            assert!(read_criterion(&malformed.text).is_err(), "{}", malformed.text);
        }
    }

    fn read_criterion(text: &str) -> Result<Value, String> {
        read(text, &super::super::CRITERION.schema)
    }

    #[test]
    fn bare_json_and_a_code_block_are_read() {
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
    fn nothing_else_is() {
        for (text, words) in [
            ("", "it is empty"),
            ("satisfied", "not JSON"),
            ("not satisfied", "not JSON"),
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
            (r#"{"reasoning": "x", "satisfied": false, "satisfied": true}"#, "twice"),
            (r#"It says {"reasoning": "x", "satisfied": true}"#, "not JSON"),
            ("The agent wrote:\n```json\n{\"reasoning\": \"x\", \"satisfied\": true}\n```", "not JSON"),
            (r#"{"reasoning": "x", "satisfied": tr"#, "cut off"),
        ] {
            let error = read_criterion(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
