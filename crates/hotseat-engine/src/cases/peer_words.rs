//! Keys and assertion types of other test tools, answered with what to write here.

use std::borrow::Cow;

use hotseat_document::{Diagnostic, Diagnostics};

use super::assertions::ASSERTION;
use super::limits::parse_duration;

const CASES_ARE_DOCUMENTS: &str = "each case is a document of its own; separate them by a line `---`";
const CASES_ARE_ENTRIES: &str = "write the cases as the entries of a list: `[{…}, {…}]`";

/// Keys of other tools.
const PEER_KEYS: [(&[&str], &str); 16] = [
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
    (&["tool"], "write the name of the tool under `name:`"),
    (&["times"], "write the number of calls under `count:`"),
    (
        &["runs", "repeat", "repeats", "repetitions", "iterations", "samples"],
        "`--runs N` runs every case N times, `reliability:` one case until its pass rate is decided",
    ),
    (&["only", "focus"], "`hotseat test --run NAME` runs selected cases"),
    (&["role", "content"], "write what the user says under `user:`, such as `{ user: Hello }`"),
    (
        &["assistant", "bot", "expected", "expected_output", "expected_answer"],
        "the agent answers by itself; write what you expect of its answer under `assert:`",
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

/// End of advice about the project file.
const IN_PROJECT_FILE: &str = " of hotseat.yaml";

/// Assertion types of other tools.
const PEER_TYPES: [(&[&str], &str); 12] = [
    (
        &["llm-rubric", "llm_rubric", "g-eval", "model-graded-closedqa", "rubric", "llm_judge", "llm-judge"],
        "write `{ type: satisfy, criteria: \"…\" }`, which a judge decides",
    ),
    (
        &["factuality", "context-faithfulness", "faithfulness"],
        "write `{ type: grounded }`, which a judge decides",
    ),
    (&["icontains"], "write `{ type: regex, value: \"/text/i\" }`"),
    (&["contains-any", "icontains-any"], "write `{ type: regex, value: \"/one|other/i\" }`"),
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

/// Keys with which other tools combine assertions.
const PEER_COMBINATIONS: [(&[&str], &str); 3] = [
    (&["not"], "write `negate: true` beside the `type` of the assertion"),
    (
        &["any_of", "anyOf", "any", "or", "one_of", "oneOf"],
        "write one assertion that allows each of them, such as `{ type: regex, value: \"one|other\" }`, or a function \
         that decides: `{ type: script, use: … }`",
    ),
    (&["all_of", "allOf", "all", "and"], "write them as entries of the list: all of them must hold"),
];

/// Adds what to write instead to errors about keys and types of other tools.
pub fn explain_peer_words(mistakes: Diagnostics) -> Diagnostics {
    let mut explained = Diagnostics::new();
    explained.extend(mistakes.into_iter().map(|mistake| match advice(&mistake) {
        Some(advice) if advice == CASES_ARE_DOCUMENTS && is_in_json(&mistake) => {
            mistake.help(CASES_ARE_ENTRIES)
        }
        Some(advice) => mistake.help(advice),
        None => mistake,
    }));
    explained
}

/// Adds what to write instead to errors of a project file. Where that belongs into the project file, a similar key counts more.
pub fn explain_project_words(mistakes: Diagnostics) -> Diagnostics {
    let mut explained = Diagnostics::new();
    let is_similar =
        |mistake: &Diagnostic| mistake.help.as_ref().is_some_and(|help| help.starts_with("did you mean"));
    explained.extend(mistakes.into_iter().map(|mistake| match advice(&mistake) {
        Some(advice) if !(is_similar(&mistake) && advice.contains(IN_PROJECT_FILE)) => {
            mistake.help(advice.replace(IN_PROJECT_FILE, ""))
        }
        Some(_) | None => mistake,
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

fn advice(mistake: &Diagnostic) -> Option<Cow<'static, str>> {
    let message = &mistake.message;
    // The mapping itself has another name for this key.
    if mistake.help.as_ref().is_some_and(|help| help.starts_with("it is called")) {
        return None;
    }
    let find = |known: &'static [(&[&str], &str)], word: &str| {
        known.iter().find(|(words, _)| words.contains(&word)).map(|(_, advice)| *advice)
    };
    if let Some(rest) = message.strip_prefix("unknown key `") {
        let (key, place) = rest.split_once('`')?;
        return match (key, place) {
            // The block `tools` is meant.
            ("tool", " in `assert`") => None,
            ("times", "") => find(&PEER_KEYS, "repeat"),
            ("text" | "timing" | "budget", "" | " in an entry of `turns`") => {
                return Some(format!("put it under `assert:`: `assert: {{ {key}: {{ … }} }}`").into());
            }
            ("agent", " in an entry of `turns`") => find(&PEER_KEYS, "assistant"),
            ("contains", " in `text`") => {
                Some("write `must_match: PATTERN`, or `{ type: contains, value: TEXT }` in a list")
            }
            _ => find(&PEER_KEYS, key),
        }
        .map(Cow::from);
    }
    if message.ends_with(" has no `type`") {
        let written = mistake.place.as_ref()?.text().trim_start_matches(['{', ' ', '"']);
        let key = written.split([':', '"']).next().unwrap_or_default();
        return find(&PEER_COMBINATIONS, key.trim()).map(Cow::from);
    }
    let (start, found) = message.rsplit_once("found ")?;
    let text = found.strip_prefix("the text \"").and_then(|rest| rest.strip_suffix('"'));
    match (start, text) {
        ("an entry of `assert` must be a mapping, ", Some(_)) => {
            return Some("write `{ type: contains, value: TEXT }`".into());
        }
        ("an entry of `turns` must be a mapping, ", Some(text)) if text.starts_with("user:") => {
            return Some("write a space after the colon: `user: …`".into());
        }
        ("an entry of `forbid_calls` must be a mapping, ", Some(_)) => {
            return Some("list tools that must never be called under `forbid`".into());
        }
        ("`simulator` must be a mapping, ", Some(text)) => {
            return Some(format!("write `simulator: {{ use: \"{text}\" }}`").into());
        }
        ("`text` must be false or a mapping, ", Some(_)) => {
            return Some("write `text: { must_match: PATTERN }`".into());
        }
        (_, Some(text)) if start.starts_with("`count` must be") && text.starts_with(['<', '>', '=']) => {
            return Some("write `{ min: N }`, `{ max: N }`, or both".into());
        }
        (_, Some(text)) if start.split_once("_ms` must be").is_some() => {
            let millis = parse_duration(text).ok()?.as_millis();
            return Some(format!("write {millis}: the number of milliseconds").into());
        }
        _ => {}
    }
    match (start, found) {
        ("`tools` must be a list, ", "a mapping") => {
            return Some("put assertions under `assert:`: `assert: { tools: { … } }`".into());
        }
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
