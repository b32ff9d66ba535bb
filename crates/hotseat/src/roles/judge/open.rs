//! A judge that is told the words of the test as they are.

use serde_json::{Map, Value, json};

use super::evidence::Budget;
use super::{Judgement, Put, Seen};
use crate::checks::Open;
use crate::roles::reading::read_answer;
use crate::roles::{Dialogue, beginning, options};

const PROMPT: &str = include_str!("../prompts/judge.v1.md");

/// The message is what is to be judged, and metadata of the call is what of it does not stand in the conversation.
///
/// # Errors
/// When that is longer than the judge may be shown.
pub(super) fn put(open: &Open, seen: Seen<'_>, budget: Budget) -> Result<Put, String> {
    let mut metadata = Map::new();
    metadata.insert("test_mode".to_string(), json!("validator"));
    metadata.insert("test_id".to_string(), json!(seen.test_id));
    metadata.insert("session_id".to_string(), json!(seen.session_id));
    if let Some(criteria) = &open.criteria {
        metadata.insert("criteria".to_string(), criteria.clone());
    }
    let mut message = match open.options.get("metadata") {
        Some(Value::Object(written)) => written.clone(),
        _ => Map::new(),
    };
    message.extend(metadata.clone());
    let last = seen.turns.last();
    let dialogue = Dialogue { opening: seen.opening, turns: seen.turns };
    let input = last.and_then(|turn| turn.user.as_deref()).unwrap_or_default();
    let calls = last.into_iter().flat_map(|turn| &turn.tool_calls).map(|call| {
        let result = call.result.as_ref();
        json!({
            "name": call.name,
            "arguments": call.arguments,
            "result": result.filter(|result| !result.failed).map(|result| &result.value),
            "error": result.filter(|result| result.failed).map(|result| &result.value),
        })
    });
    message.insert("input".to_string(), json!(input));
    message.insert("output".to_string(), json!(dialogue.last_response()));
    message.insert("tool_calls".to_string(), calls.collect());
    // What the test itself says of the conversation is not overwritten.
    message.entry("conversation").or_insert_with(|| Value::Array(dialogue.json()));
    let left_out = budget.fit(&mut message)?;
    Ok(Put {
        prompt: None,
        system: PROMPT,
        message: Value::Object(message),
        options: options(&open.options, metadata),
        turn: seen.turns.len(),
        left_out,
    })
}

/// Reads a judgement: one JSON object that says whether it `passed`.
pub(super) fn read(text: &str) -> Result<(Judgement, Value), String> {
    let wrong = |why: &str| format!("invalid response format: it {why}; {}", beginning(text));
    let answer = read_answer(text).map_err(|why| wrong(&why))?;
    if !answer.is_object() {
        return Err(wrong("is not a JSON object"));
    }
    let passed = match answer.get("passed") {
        Some(Value::Bool(passed)) => *passed,
        None => return Err(format!("validator response missing 'passed' field; {}", beginning(text))),
        Some(other) => {
            return Err(format!(
                "validator response missing 'passed' field: {other} is neither true nor false"
            ));
        }
    };
    let score = match answer.get("score") {
        None | Some(Value::Null) => None,
        Some(Value::Number(score)) => score.as_f64(),
        Some(other) => return Err(format!("invalid response format: `score` is {other}, and no number")),
    };
    let reasoning = match answer.get("reason") {
        None | Some(Value::Null) => None,
        Some(Value::String(reason)) => Some(reason.clone()),
        Some(other) => return Err(format!("invalid response format: `reason` is {other}, and no text")),
    };
    let words = words(passed, score, reasoning.as_deref());
    Ok((Judgement { passed, score, reasoning, words }, answer))
}

fn words(passed: bool, score: Option<f64>, reason: Option<&str>) -> String {
    let passed = if passed { "the judge agrees" } else { "the judge does not agree" };
    let score = score.map(|score| format!(" (score {score})")).unwrap_or_default();
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{passed}{score}{reason}")
}

#[cfg(test)]
mod tests {
    use hotseat_testkit::malformed::{MalformedKind, malformed_answers};

    use super::*;

    #[test]
    fn no_judgement_is_read_out_of_malformed_answers() {
        for passed in [true, false] {
            let judgement = |passed: bool| json!({"passed": passed, "reason": "r"});
            for malformed in malformed_answers(&judgement(passed), &judgement(!passed)) {
                let is_read = malformed.kind == MalformedKind::Unescaped;
                assert_eq!(read(&malformed.text).is_ok(), is_read, "{}", malformed.text);
            }
        }
    }

    #[test]
    fn a_judgement_says_whether_it_passed() {
        for (text, passed) in [
            (r#"{"passed": true, "score": 0.95, "reason": "helpful", "suggestions": []}"#, true),
            ("```json\n{\"passed\": false}\n```", false),
        ] {
            assert_eq!(read(text).unwrap().0.passed, passed, "{text}");
        }
        for (text, words) in [
            ("It is fine.", "invalid response format"),
            ("", "invalid response format"),
            ("true", "invalid response format"),
            ("I think {\"passed\": true} fits.", "invalid response format"),
            (r#"<think>{"passed": true}?</think>{"passed": false}"#, "invalid response format"),
            (r#"{"passed": true} No: {"passed": false}"#, "invalid response format"),
            (r#"{"passed": false, "passed": true}"#, "invalid response format"),
            (r#"{"score": 1}"#, "validator response missing 'passed' field"),
            (r#"{"passed": "yes"}"#, "validator response missing 'passed' field"),
            (r#"{"passed": true, "score": "high"}"#, "`score`"),
            (r#"{"passed": true, "reason": 3}"#, "`reason`"),
        ] {
            assert!(read(text).unwrap_err().contains(words), "{text}");
        }
    }
}
