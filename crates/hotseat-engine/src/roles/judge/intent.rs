//! Judgement of the agent's intent.

use serde_json::Value;

use super::{Judgement, RoleError, reasoning};
use hotseat_checks::AgentIntent;

pub(super) fn instructions(intent: &AgentIntent) -> String {
    format!("# The intent that is asked for\n{}", intent.text)
}

/// Fails if the observed intent is empty.
pub(super) fn parse_judgement(answer: &Value) -> Result<Judgement, RoleError> {
    let observed = answer["observed_intent"].as_str().unwrap_or_default().trim();
    if observed.is_empty() {
        let words = "the judge's answer is invalid: `observed_intent` is empty";
        return Err(RoleError::InvalidAnswer(words.to_string()));
    }
    let reasoning = reasoning(answer);
    let words = format!("observed: {observed}: {reasoning}");
    Ok(Judgement { passed: answer["matches"] == true, score: None, reasoning: Some(reasoning), words })
}
