//! Keys and assertion types of other test tools, answered with what to write here.

use std::borrow::Cow;

use hotseat_document::{Diagnostic, Diagnostics};

use super::assertions::ASSERTION;

const CASES_ARE_DOCUMENTS: &str = "each case is a document of its own; separate them by a line `---`";
const CASES_ARE_ENTRIES: &str = "write the cases as the entries of a list: `[{…}, {…}]`";

/// Keys of other tools.
const PEER_KEYS: [(&[&str], &str); 10] = [
    (&["test", "title", "case", "test_name"], "a case has its name under `name:`"),
    (
        &["prompt", "prompts", "query", "question", "messages", "conversation", "steps"],
        "write what the user says under `turns:`, such as `turns: [{ user: Hello }]`",
    ),
    (&["cases", "tests", "testCases", "test_cases", "scenarios_list"], CASES_ARE_DOCUMENTS),
    (
        &["vars", "variables", "parameters"],
        "write the values into the turns; `scenarios:` runs a case once for each of several sets of values",
    ),
    (
        &["providers", "provider", "targets", "target", "agents", "endpoint"],
        "agents are under `target:` or `agents:` of hotseat.yaml; a case selects one with `agent: NAME`",
    ),
    (
        &["args", "arguments", "with_args", "expected_args"],
        "write `args_match: { NAME: PATTERN }` in a block `tools:`, or `arguments: { NAME: VALUE }` in \
         `{ type: tool_called, … }`",
    ),
    (
        &["require", "required", "forbid", "tools", "called", "calls", "must_call", "expected_tools"],
        "write `assert: { tools: { require: [NAME], forbid: [NAME] } }`",
    ),
    (&["model", "models"], "models are under `connectors:` of hotseat.yaml; the agent chooses its own"),
    (
        &["defaultTest", "default_test", "defaults"],
        "settings of all cases are under `suite:` in a first document, or in hotseat.yaml",
    ),
    (
        &["evaluators", "scorers", "metrics", "expect", "expects", "expectations", "assertions_list"],
        "write `assert:`, or `evaluate:` for checks that do not decide",
    ),
];

/// Assertion types of other tools.
const PEER_TYPES: [(&[&str], &str); 11] = [
    (
        &["llm-rubric", "llm_rubric", "g-eval", "model-graded-closedqa", "rubric", "llm_judge", "llm-judge"],
        "write `{ type: satisfy, criteria: \"…\" }`, which a judge decides",
    ),
    (
        &["factuality", "context-faithfulness", "faithfulness"],
        "write `{ type: grounded }`, which a judge decides",
    ),
    (&["icontains", "contains-any", "icontains-any"], "write `{ type: regex, value: \"/one|other/i\" }`"),
    (&["contains-all", "icontains-all"], "write one `contains` for each text"),
    (&["not-contains", "not-icontains"], "write `{ type: not_contains, value: … }`"),
    (
        &["is-json", "contains-json", "is-valid-json"],
        "write `{ type: schema, … }` or `{ type: json_path, … }`",
    ),
    (&["starts-with"], "write `{ type: regex, value: \"^…\" }`"),
    (&["javascript", "python", "webhook"], "write `{ type: script, … }` with a function of a script"),
    (
        &["tool-call", "tool_call", "is-valid-openai-tools-call", "is-valid-function-call", "tool-call-f1"],
        "write `{ type: tool_called, … }` or `{ type: tool_sequence, … }`",
    ),
    (&["latency"], "write `timing: { max_duration_ms: … }`"),
    (&["cost"], "write `{ type: max_cost, value: … }`"),
];

/// Adds what to write instead to errors about keys and types of other tools.
pub fn explain_peer_words(mistakes: Diagnostics) -> Diagnostics {
    let mut explained = Diagnostics::new();
    explained.extend(mistakes.into_iter().map(|mistake| match advice(&mistake.message) {
        Some(advice) if advice == CASES_ARE_DOCUMENTS && is_in_json(&mistake) => {
            mistake.help(CASES_ARE_ENTRIES)
        }
        Some(advice) => mistake.help(advice),
        None => mistake,
    }));
    explained
}

fn is_in_json(mistake: &Diagnostic) -> bool {
    mistake.place.as_ref().is_some_and(|place| is_json_name(place.file()))
}

/// Returns true for the name of a file with JSON, which has no documents.
pub(super) fn is_json_name(name: &str) -> bool {
    name.ends_with(".json") || name.ends_with(".jsonl")
}

fn advice(message: &str) -> Option<Cow<'static, str>> {
    let find = |known: &'static [(&[&str], &str)], word: &str| {
        known.iter().find(|(words, _)| words.contains(&word)).map(|(_, advice)| *advice)
    };
    if let Some(rest) = message.strip_prefix("unknown key `") {
        return find(&PEER_KEYS, rest.split_once('`')?.0).map(Cow::from);
    }
    let (start, found) = message.rsplit_once("found ")?;
    match (start, found) {
        ("this document must be a mapping, ", "a list") => return Some(CASES_ARE_DOCUMENTS.into()),
        ("an entry of `turns` must be a mapping, ", _) => {
            return Some("write what the user says under `user`: `{ user: Hello }`".into());
        }
        _ => {}
    }
    if !start.starts_with("`type` must be one of") {
        return None;
    }
    let word = found.split(['"', '`']).nth(1).unwrap_or(found);
    find(&PEER_TYPES, word).map(Cow::from).or_else(|| negation_advice(word).map(Cow::from))
}

/// Returns how to write the negation of a type, such as `tool_not_called`.
fn negation_advice(word: &str) -> Option<String> {
    let is_negation = |part: &&str| ["not", "no", "never"].contains(part);
    let (negations, parts): (Vec<&str>, Vec<&str>) = word.split(['_', '-']).partition(is_negation);
    let [_] = negations.as_slice() else { return None };
    let parts = parts.join("_");
    let mut types = ASSERTION.shapes.iter().flat_map(|shape| ASSERTION.words(shape));
    types.find(|known| **known == parts).map(|known| format!("write `{{ type: {known}, negate: true, … }}`"))
}
