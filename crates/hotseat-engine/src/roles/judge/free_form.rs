//! Free-form judges, which receive the criteria of the test unchanged.

use serde_json::{Map, Value, json};

use super::evidence::{EvidenceBudget, EvidenceTooLong};
use super::{JudgeEvidence, Judgement, PreparedQuestion};
use crate::roles::answer_json::read_answer;
use crate::roles::{Dialogue, RoleError, excerpt, role_options};
use hotseat_checks::FreeFormCriterion;
use hotseat_document::shorten;

const PROMPT: &str = include_str!("../prompts/judge.v1.md");

/// Prepares a question. The message contains the conversation and the criteria, and the metadata of the call
/// everything except the conversation. Fails if the conversation exceeds the evidence limit.
pub(super) fn prepare_question(
    open: &FreeFormCriterion,
    seen: JudgeEvidence<'_>,
    budget: EvidenceBudget,
) -> Result<PreparedQuestion, EvidenceTooLong> {
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
    // A `conversation` set by the test is not overwritten.
    message.entry("conversation").or_insert_with(|| Value::Array(dialogue.to_json()));
    let left_out = budget.fit_message(&mut message)?;
    Ok(PreparedQuestion {
        prompt: None,
        system: PROMPT,
        message: Value::Object(message),
        options: role_options(&open.options, metadata),
        turn: seen.turns.len(),
        omissions: left_out,
    })
}

/// Parses a judgement: one JSON object with `passed`. Fails if the answer is something else. `judge` names the judge in errors.
pub(super) fn parse_judgement(judge: &str, text: &str) -> Result<(Judgement, Value), RoleError> {
    let invalid = |words: String| Err(RoleError::InvalidAnswer(format!("invalid response format: {words}")));
    let answer = match read_answer(text) {
        Ok(answer @ Value::Object(_)) => answer,
        Ok(_) => return invalid(format!("it is not a JSON object; {}", excerpt(text))),
        Err(why) => return invalid(format!("it {why}; {}", excerpt(text))),
    };
    let passed = match answer.get("passed") {
        Some(Value::Bool(passed)) => *passed,
        None => {
            return Err(RoleError::InvalidAnswer(format!(
                "validator response missing 'passed' field: {}; the judge `{judge}` must answer with one JSON object that has \
                 `passed`: true or false",
                excerpt(text)
            )));
        }
        Some(other) => {
            let value = other.to_string();
            let value = shorten(&value);
            return invalid(format!("the judge's `passed` is {value}, but must be true or false"));
        }
    };
    match answer.get("pass") {
        None => {}
        Some(Value::Bool(other)) if *other == passed => {}
        Some(other) => {
            return invalid(format!(
                "the answer contradicts itself: `passed` is {passed}, and `pass` is {other}"
            ));
        }
    }
    let score = match answer.get("score") {
        None | Some(Value::Null) => None,
        Some(Value::Number(score)) => score.as_f64(),
        Some(other) => return invalid(format!("`score` is {other}, not a number")),
    };
    let reasoning = match answer.get("reason") {
        None | Some(Value::Null) => None,
        Some(Value::String(reason)) => Some(reason.clone()),
        Some(other) => return invalid(format!("`reason` is {other}, not a string")),
    };
    let words = describe_judgement(passed, score, reasoning.as_deref());
    Ok((Judgement { passed, score, reasoning, words }, answer))
}

fn describe_judgement(passed: bool, score: Option<f64>, reason: Option<&str>) -> String {
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
    fn rejects_malformed_answers() {
        for passed in [true, false] {
            let judgement = |passed: bool| json!({"passed": passed, "reason": "r"});
            for malformed in malformed_answers(&judgement(passed), &judgement(!passed)) {
                let is_read = malformed.kind == MalformedKind::Unescaped;
                assert_eq!(parse_judgement("j", &malformed.text).is_ok(), is_read, "{}", malformed.text);
            }
        }
    }

    #[test]
    fn reads_passed_score_and_reason() {
        for (text, passed) in [
            (r#"{"passed": true, "score": 0.95, "reason": "helpful", "suggestions": []}"#, true),
            ("```json\n{\"passed\": false}\n```", false),
        ] {
            assert_eq!(parse_judgement("j", text).unwrap().0.passed, passed, "{text}");
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
            (
                r#"{"passed": "yes"}"#,
                "invalid response format: the judge's `passed` is \"yes\", but must be true or false",
            ),
            (r#"{"passed": true, "pass": false}"#, "`passed` is true, and `pass` is false"),
            (r#"{"passed": true, "score": "high"}"#, "`score`"),
            (r#"{"passed": true, "reason": 3}"#, "`reason`"),
        ] {
            assert!(parse_judgement("j", text).unwrap_err().to_string().contains(words), "{text}");
        }
    }
}
