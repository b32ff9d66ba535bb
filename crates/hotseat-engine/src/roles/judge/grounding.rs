//! Judgement of claims that must be grounded in tool results.

use serde_json::Value;

use super::{JudgeEvidence, Judgement, RoleError, reasoning, with_tools};
use hotseat_checks::GroundedClaims;
use hotseat_targets::message::MessageRole;

pub(super) fn instructions(grounded: &GroundedClaims) -> String {
    let mut told = format!("# Kinds of claims\n{}", grounded.types.join(", "));
    if !grounded.from_tools.is_empty() {
        told.push_str(&format!(
            "\n\n# Only results of these tools count\n{}",
            grounded.from_tools.join(", ")
        ));
    }
    told
}

/// Fails if the verdict contradicts the listed claims, or the evidence shows nothing that grounds one.
pub(super) fn parse_judgement(
    grounded: &GroundedClaims,
    seen: JudgeEvidence<'_>,
    answer: &Value,
) -> Result<Judgement, RoleError> {
    let passed = answer["grounded"] == true;
    let claims = answer["claims_found"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = |key: &str| -> Vec<String> {
        let list = answer[key].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_string).collect()
    };
    let groundless: Vec<&Value> = claims.iter().filter(|claim| claim["grounded"] == false).collect();
    let violations = texts("violations");
    if passed != (groundless.is_empty() && violations.is_empty()) {
        return Err(RoleError::InvalidAnswer(format!(
            "the judge's answer contradicts itself: `grounded` is {passed}, with {} ungrounded claims and {} violations",
            groundless.len(),
            violations.len()
        )));
    }
    let has_result = has_result(grounded, seen);
    for claim in claims.iter().filter(|claim| claim["grounded"] == true) {
        let source = claim["source"].as_str().unwrap_or_default();
        if let Some(why) = refute_source(grounded, seen, has_result, source) {
            let claim = claim["claim"].as_str().unwrap_or_default();
            return Err(RoleError::InvalidAnswer(format!(
                "the judge's answer is invalid: the claim {claim:?} is said to be grounded, but {why}"
            )));
        }
    }
    let reasoning = reasoning(answer);
    let words = match (passed, claims.len()) {
        (true, 0) => format!("no such claim is made: {reasoning}"),
        (true, n) => format!("all {n} claims are grounded: {reasoning}"),
        (false, _) if violations.is_empty() => {
            format!("not grounded: {}", super::claims::quote_claims(&groundless))
        }
        (false, _) => format!("not grounded: {}", violations.join("; ")),
    };
    Ok(Judgement { passed, score: None, reasoning: Some(reasoning), words })
}

/// Returns why nothing grounds a claim. Sources are not read further: judges quote results in words of their own.
fn refute_source(
    grounded: &GroundedClaims,
    seen: JudgeEvidence<'_>,
    has_result: bool,
    source: &str,
) -> Option<String> {
    if !source.contains(char::is_alphanumeric) {
        return Some("its `source` names no tool result".to_string());
    }
    if !has_result {
        let of_tools = match grounded.from_tools.as_slice() {
            [] => String::new(),
            tools => format!(" of {}", tools.join(", ")),
        };
        return Some(format!("the evidence has no tool result{of_tools}"));
    }
    let last = seen.turns.last().map_or(0, |turn| turn.number);
    let turn = named_turn(source).filter(|turn| *turn > last)?;
    Some(format!("its `source` names turn {turn}, and the last turn is {last}"))
}

/// True if the evidence has a result of a tool that counts.
fn has_result(grounded: &GroundedClaims, seen: JudgeEvidence<'_>) -> bool {
    let counts = |is_named: &dyn Fn(&str) -> bool| {
        grounded.from_tools.is_empty() || grounded.from_tools.iter().any(|tool| is_named(tool))
    };
    let mut calls = seen.turns.iter().flat_map(|turn| &turn.tool_calls);
    let mut opening = with_tools(seen.opening);
    calls.any(|call| call.result.is_some() && counts(&|tool| call.is_named(tool)))
        || opening.any(|(message, name)| message.role == MessageRole::Tool && counts(&|tool| tool == name))
}

/// The turn that a source of the form `turn N, TOOL: …` names.
fn named_turn(source: &str) -> Option<usize> {
    let source = source.trim().to_lowercase();
    let rest = source.strip_prefix("turn ")?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, rest) = rest.split_at(end);
    rest.trim_start().starts_with([',', ':']).then(|| number.parse().ok())?
}
