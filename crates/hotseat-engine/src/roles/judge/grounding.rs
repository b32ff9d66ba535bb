//! Judgement of claims that must be grounded in tool results.

use std::collections::HashSet;

use serde_json::Value;

use super::evidence::is_included;
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
    let tools = tools_with_results(grounded, seen);
    for claim in claims.iter().filter(|claim| claim["grounded"] == true) {
        let source = claim["source"].as_str().unwrap_or_default();
        if let Some(why) = refute_source(grounded, seen, &tools, source) {
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

/// Returns why nothing grounds a claim. What a source quotes is not compared: judges quote results in words of their own.
fn refute_source(
    grounded: &GroundedClaims,
    seen: JudgeEvidence<'_>,
    tools: &HashSet<String>,
    source: &str,
) -> Option<String> {
    if !source.contains(char::is_alphanumeric) {
        return Some("its `source` names no tool result".to_string());
    }
    if tools.is_empty() {
        let of_tools = match grounded.from_tools.as_slice() {
            [] => String::new(),
            tools => format!(" of {}", tools.join(", ")),
        };
        return Some(format!("the evidence has no tool result{of_tools}"));
    }
    let (turn, rest) = named_turn(source)?;
    let last = seen.turns.last().map_or(0, |turn| turn.number);
    // Messages before the conversation are shown as turn 0.
    let first = usize::from(seen.opening.is_empty());
    if turn.starts_with('-') || turn.parse().is_ok_and(|turn: usize| turn < first) {
        return Some(format!("its `source` names turn {turn}, and the first turn is {first}"));
    }
    if turn.parse().map_or(true, |turn: usize| turn > last) {
        return Some(format!("its `source` names turn {turn}, and the last turn is {last}"));
    }
    let word = rest.strip_prefix(',')?.split_whitespace().next()?;
    let tool = word.strip_suffix(':')?.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
    // A result before the conversation may name no tool.
    (!tools.contains("") && !tools.contains(&tool.to_lowercase()))
        .then(|| format!("its `source` names {tool:?}, and the evidence has no result of this tool"))
}

/// The names, in lower case, of the tools that count and have a result in the evidence.
fn tools_with_results(grounded: &GroundedClaims, seen: JudgeEvidence<'_>) -> HashSet<String> {
    let counting = &grounded.from_tools;
    let calls = seen.turns.iter().flat_map(|turn| &turn.tool_calls);
    let calls =
        calls.filter(|call| call.result.is_some() && is_included(counting, |tool| call.is_named(tool)));
    let names = calls.flat_map(|call| call.other_names().into_iter().chain([call.name.to_string()]));
    let results = with_tools(seen.opening).filter(|(message, _)| message.role == MessageRole::Tool);
    let results = results.filter(|(_, name)| is_included(counting, |tool| tool == *name));
    names.chain(results.map(|(_, name)| name.to_string())).map(|name| name.to_lowercase()).collect()
}

/// The number of the turn that a source starts with, such as `turn N, TOOL: …` or `Turn #N - …`, and the text after it. A number
/// of another kind, such as `turn 2.5 degrees`, is none of a turn.
fn named_turn(source: &str) -> Option<(&str, &str)> {
    let source = source.trim_start_matches(|c: char| !c.is_alphanumeric());
    let (word, rest) = source.split_at_checked("turn".len())?;
    let rest = word.eq_ignore_ascii_case("turn").then_some(rest)?;
    let rest = rest.strip_prefix(['-', '_']).unwrap_or(rest).trim_start();
    let rest = rest.strip_prefix('#').unwrap_or(rest).trim_start();
    let digits = rest.strip_prefix('-').unwrap_or(rest).trim_start_matches(|c: char| c.is_ascii_digit());
    let (number, after) = rest.split_at(rest.len() - digits.len());
    let is_decimal =
        after.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_whole = number.ends_with(|c: char| c.is_ascii_digit()) && !is_decimal;
    (is_whole && !after.starts_with(char::is_alphabetic)).then_some((number, after.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_turn_in_any_wording() {
        for (source, number) in [
            ("turn 9, find_order: 12", Some("9")),
            ("turn 9 (find_order): 12", Some("9")),
            ("Turn 9 - find_order", Some("9")),
            ("**TURN 9** find_order 12", Some("9")),
            ("turn 9", Some("9")),
            ("turn 9.", Some("9")),
            ("turn #9, find_order: 12", Some("9")),
            ("turn-9: 12", Some("9")),
            ("turn -1: 12", Some("-1")),
            ("turn 99999999999999999999, x: 1", Some("99999999999999999999")),
            ("turn 2.5 degrees", None),
            ("turn 2nd left", None),
            ("turns 1 and 9", None),
            ("turn left", None),
            ("turn - 12", None),
            ("the result of turn 9", None),
            ("tür 9", None),
        ] {
            assert_eq!(named_turn(source).map(|(number, _)| number), number, "{source}");
        }
    }
}
