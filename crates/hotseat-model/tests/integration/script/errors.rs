//! Every error of a script with its message. Review the snapshot.

use std::fmt::Write as _;

use hotseat_model::ModelErrorKind;
use hotseat_model::script::{ModelScript, Rule};
use serde_json::json;

/// Title and text of each script.
const SCRIPTS: &[(&str, &str)] = &[
    ("no rules", "name: empty\n"),
    ("an empty file", ""),
    ("rules that are no list", "rules: one\n"),
    ("an empty list of rules", "rules: []\n"),
    ("a list instead of a script", "- reply: hi\n"),
    ("not YAML", "rules:\n  - reply: [hi\n"),
    ("two documents", "rules:\n  - reply: hi\n---\nrules:\n  - reply: ho\n"),
    ("a key of a script that nobody knows", "rules:\n  - reply: hi\nversion: 1\n"),
    ("a misspelt key of a rule", "rules:\n  - replly: hi\n"),
    ("a key that is written twice", "rules:\n  - reply: hi\n    reply: ho\n"),
    ("a key that is no text", "rules:\n  - reply: hi\n    1: ho\n"),
    ("a tag", "rules:\n  - reply: !shout hi\n"),
    ("a number that JSON does not know", "rules:\n  - reply: { json: { n: .nan } }\n"),
    ("a rule that answers nothing", "rules:\n  - when: { turn: 1 }\n"),
    ("a rule that answers twice", "rules:\n  - reply: hi\n    error: server\n"),
    ("a rule that is no mapping", "rules:\n  - hi\n"),
    ("a reply that says nothing", "rules:\n  - reply: {}\n"),
    ("a reply of a wrong type", "rules:\n  - reply: 7\n"),
    ("text and json", "rules:\n  - reply: { text: hi, json: { a: 1 } }\n"),
    ("a wrong use", "use: twice\nrules:\n  - reply: hi\n    use: sometimes\n"),
    ("a negative delay", "rules:\n  - reply: hi\n    delay_ms: -1\n"),
    ("a delay of more than a day", "rules:\n  - reply: hi\n    delay_ms: 86400001\n"),
    (
        "a name that is used twice",
        "rules:\n  - { name: a, when: { turn: 1 }, reply: hi }\n  - { name: a, reply: ho }\n",
    ),
    ("an empty name", "name: ''\nrules:\n  - { name: '', reply: hi }\n"),
    ("a misspelt condition", "rules:\n  - when: { trun: 1 }\n    reply: hi\n"),
    ("a condition that nobody knows", "rules:\n  - when: { weather: nice }\n    reply: hi\n"),
    ("turn 0", "rules:\n  - when: { turn: 0, call: first, attempt: 1.5 }\n    reply: hi\n"),
    ("a number for a name", "rules:\n  - when: { agent: 7 }\n    reply: hi\n"),
    ("an empty pattern", "rules:\n  - when: { user: '' }\n    reply: hi\n"),
    (
        "patterns that do not compile",
        "rules:\n  - when:\n      user: 'a('\n      system: '[z-a]'\n      notice: '*'\n      tool_result: '(?<x>'\n    reply: hi\n",
    ),
    ("a pattern that is too large", "rules:\n  - when: { user: '\\w{5000}' }\n    reply: hi\n"),
    ("look-around", "rules:\n  - when: { user: 'a(?=b)' }\n    reply: hi\n"),
    (
        "a wrong tool_result",
        "rules:\n  - when: { tool_result: { tool: '', match: x, failed: maybe } }\n    reply: hi\n",
    ),
    ("a wrong offered", "rules:\n  - when: { offered: [search, 7] }\n    reply: hi\n"),
    ("a group that templates cannot name", "rules:\n  - when: { user: '(?<user>.+)' }\n    reply: hi\n"),
    ("two groups of one name", "rules:\n  - when: { user: '(?<a>.+)', system: '(?<a>.+)' }\n    reply: hi\n"),
    ("tool calls that are no list", "rules:\n  - reply: { tool_calls: search }\n"),
    (
        "wrong tool calls",
        "rules:\n  - reply:\n      tool_calls:\n        - arguments: {}\n        - { name: 7 }\n        - { name: a, arguments: [1] }\n        - { name: a, argument: {} }\n        - ''\n",
    ),
    ("a wrong stop", "rules:\n  - reply: { text: hi, stop: bored }\n"),
    ("a wrong usage", "rules:\n  - reply: { text: hi, usage: { input: 3, output_tokens: -3 } }\n"),
    ("an error of no kind", "rules:\n  - error: { status: 500 }\n"),
    ("an error of an unknown kind", "rules:\n  - error: overloaded\n  - error: { kind: overloaded }\n"),
    ("a wrong error", "rules:\n  - error: { kind: server, status: 99, retry_after_ms: soon, code: 1 }\n"),
    ("a template that cannot be read", "rules:\n  - reply: 'Hello {{ user'\n"),
    (
        "an argument that cannot be read",
        "rules:\n  - reply: { tool_calls: [{ name: a, arguments: { x: '{{ 1 + }}' } }] }\n",
    ),
    (
        "a variable that nothing defines",
        "rules:\n  - when: { user: '(?<order>\\d+)' }\n    reply: 'Order {{ ordr }}'\n",
    ),
    (
        "a variable that nothing defines, within a value",
        "rules:\n  - reply:\n      json:\n        - { id: '{{ weather.today }}' }\n",
    ),
    (
        "a rule that can never answer",
        "rules:\n  - { reply: hi, use: always }\n  - { when: { turn: 2 }, reply: ho }\n",
    ),
    ("an alias of itself", "rules: &a\n  - reply: { json: *a }\n"),
    (
        "several mistakes at once",
        "usage: 1\nrules:\n  - when: { turn: x, user: '(' }\n    reply: { txt: hi }\n  - delay_ms: long\n  - reply: '{{ nobody }}'\n",
    ),
    ("JSON", "{\n  \"rules\": [\n    {\"reply\": \"\\ud83d\\ude00\", \"delay\": 3}\n  ]\n}\n"),
];

#[test]
fn every_error_has_a_message() {
    let mut shown = String::new();
    for (title, source) in SCRIPTS {
        let error = ModelScript::parse("s.yaml", source).expect_err(title);
        writeln!(shown, "## {title}\n{}\n", error.render(false, 120)).unwrap();
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn alias_expansion_is_bounded() {
    let mut source =
        String::from("rules:\n  - reply:\n      json:\n        a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..8 {
        let copies = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(source, "        a{level}: &a{level} [{copies}]").unwrap();
    }
    let error = ModelScript::parse("s.yaml", &source).unwrap_err().to_string();
    assert!(error.contains("the aliases of this document expand to too much text"), "{error}");
}

#[test]
fn rejects_deep_nesting_early() {
    for depth in [120, 5000, 100_000] {
        let source = format!("rules:\n  - reply: {{ json: {}{} }}\n", "[".repeat(depth), "]".repeat(depth));
        let error = ModelScript::parse("s.yaml", &source).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains("this is nested too deeply"), "{error}");
    }
}

#[test]
fn rules_built_in_code_are_validated() {
    let error = ModelScript::builder("code")
        .rule(Rule::new().user("(").say("{{ nobody }}"))
        .rule(Rule::new().turn(2))
        .rule(Rule::new().say("a").fail(ModelErrorKind::Server))
        .rule(Rule::new().call_tool("", json!({"a": ["{{ 1 + }}"]})))
        .build()
        .unwrap_err();
    insta::assert_snapshot!(error);
}

#[test]
fn rejects_script_without_rules() {
    assert_eq!(
        ModelScript::builder("code").build().unwrap_err().to_string(),
        "a script needs at least one rule"
    );
}

#[test]
fn missing_file_is_named() {
    let error = ModelScript::load(std::path::Path::new("/nowhere/script.yaml")).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/script.yaml cannot be read: "), "{error}");
}
