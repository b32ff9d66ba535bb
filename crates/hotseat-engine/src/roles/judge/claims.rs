//! Judgement of forbidden claims.

use serde_json::Value;

use super::{Judgement, RoleError, reasoning};
use hotseat_checks::ForbiddenClaims;

pub(super) fn instructions(claims: &ForbiddenClaims) -> String {
    let how = match claims.absolute {
        true => "Absolutely: a claim of these kinds is a violation even if it is grounded.",
        false => "Not absolutely: only a claim of these kinds that is not grounded is a violation.",
    };
    format!("# Forbidden kinds of claims\n{}\n{how}", claims.forbid.join(", "))
}

/// Fails if the verdict contradicts the listed claims.
pub(super) fn parse_judgement(claims: &ForbiddenClaims, answer: &Value) -> Result<Judgement, RoleError> {
    let violated = answer["violated"] == true;
    let found = answer["claims_found"].as_array().map(Vec::as_slice).unwrap_or_default();
    let counts = |claim: &&Value| claims.absolute || claim["grounded"] == false;
    let violations: Vec<&Value> = found.iter().filter(counts).collect();
    if violated == violations.is_empty() {
        return Err(RoleError::InvalidAnswer(format!(
            "the judge's answer contradicts itself: `violated` is {violated}, with {} violating claims",
            violations.len()
        )));
    }
    let reasoning = reasoning(answer);
    let words = match (violated, found.len()) {
        (false, 0) => format!("no such claim: {reasoning}"),
        (false, n) => format!("{n} such claims, all grounded: {reasoning}"),
        (true, _) => format!("the agent claims {}", quote_claims(&violations)),
    };
    Ok(Judgement { passed: !violated, score: None, reasoning: Some(reasoning), words })
}

/// Lists claims as text: `"The room is free" (availability)`.
pub(super) fn quote_claims(claims: &[&Value]) -> String {
    let text = |claim: &Value, key: &str| claim[key].as_str().unwrap_or_default().to_string();
    let words = claims.iter().map(|claim| format!("{:?} ({})", text(claim, "claim"), text(claim, "type")));
    words.collect::<Vec<_>>().join("; ")
}
