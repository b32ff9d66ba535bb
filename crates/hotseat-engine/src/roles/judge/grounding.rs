//! Judgement of claims that must be grounded in tool results.

use serde_json::Value;

use super::{Judgement, RoleError, reasoning};
use hotseat_checks::GroundedClaims;

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

/// Fails if the verdict contradicts the listed claims.
pub(super) fn parse_judgement(answer: &Value) -> Result<Judgement, RoleError> {
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
