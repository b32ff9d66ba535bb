//! Keys and assertion types of other test tools, answered with what to write here.

use hotseat_document::Diagnostics;

/// Keys of other tools.
const PEER_KEYS: [(&[&str], &str); 9] = [
    (
        &["prompt", "prompts", "query", "question", "messages", "conversation", "steps"],
        "write what the user says under `turns:`, such as `turns: [{ user: Hello }]`",
    ),
    (
        &["cases", "tests", "testCases", "test_cases", "scenarios_list"],
        "each case is a document of its own; separate them by a line `---`",
    ),
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
    (&["require", "forbid", "tools"], "write `assert: { tools: { require: [NAME], forbid: [NAME] } }`"),
    (&["model", "models"], "models are under `connectors:` of hotseat.yaml; the agent chooses its own"),
    (
        &["defaultTest", "default_test", "defaults"],
        "settings of all cases are under `suite:` in a first document, or in hotseat.yaml",
    ),
    (
        &["evaluators", "scorers", "metrics", "expectations", "assertions_list"],
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
        Some(advice) => mistake.help(advice),
        None => mistake,
    }));
    explained
}

fn advice(message: &str) -> Option<&'static str> {
    let find = |known: &'static [(&[&str], &str)], word: &str| {
        known.iter().find(|(words, _)| words.contains(&word)).map(|(_, advice)| *advice)
    };
    if let Some(rest) = message.strip_prefix("unknown key `") {
        return find(&PEER_KEYS, rest.split_once('`')?.0);
    }
    let (start, found) = message.rsplit_once("found ")?;
    let is_type = start.starts_with("`type` must be one of");
    is_type.then(|| find(&PEER_TYPES, found.split(['"', '`']).nth(1).unwrap_or(found)))?
}
