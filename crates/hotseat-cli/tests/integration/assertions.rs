//! Typed assertions, one table for each type: passing, failing and undecidable cases. Each table runs in JSON
//! and in YAML, and every passing assertion must fail when negated.
use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::completions::ChatCompletion;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::Project;

/// Expected result of an assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedCheck {
    /// Passes; fails when negated.
    Passes,
    /// Fails; passes when negated.
    Fails,
    /// Cannot be decided: fails both plain and negated.
    Undecidable,
}
use ExpectedCheck::{Fails, Passes, Undecidable};

/// Runs each assertion, plain and negated, on a conversation of one turn.
#[track_caller]
fn assert_table<R: Into<FakeReply>>(
    agent: impl Fn(&FakeRequest) -> R + Send + Sync + 'static,
    rows: &[(Value, ExpectedCheck)],
) {
    let agent = FakeAgent::start(agent);
    let mut cases = Vec::new();
    for (number, (assertion, _)) in rows.iter().enumerate() {
        for negate in [false, true] {
            let mut assertion = assertion.clone();
            if negate {
                assertion["negate"] = json!(true);
            }
            cases.push(json!({"id": format!("{number}-{negate}"), "input": "go", "assertions": [assertion]}));
        }
    }
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    let files = [("a.test.jsonl", lines.join("\n")), ("a.test.yaml", lines.join("\n---\n"))];
    for (name, text) in files {
        let tested = Project::with_agent(&agent).file(name, &text).test(&[]);
        for (number, (assertion, expected)) in rows.iter().enumerate() {
            let passed = |negate: bool| tested.case(&format!("{number}-{negate}"))["status"] == "passed";
            let found = match (passed(false), passed(true)) {
                (true, false) => Passes,
                (false, true) => Fails,
                (false, false) => Undecidable,
                (true, true) => panic!("{assertion} holds, and so does its negation"),
            };
            let case = tested.case(&format!("{number}-false"));
            assert_eq!(found, *expected, "{name}: {assertion}: {:#}", case["assertions"]);
            // The failure names this assertion as it was written.
            let reported = &case["assertions"][0];
            assert_eq!(reported["type"], assertion["type"]);
            assert_eq!(reported["passed"], found == Passes);
            assert!(reported["line"].as_u64().is_some() && reported["expected"].is_string());
        }
        assert_eq!(tested.output.code, 1, "{}", tested.output);
    }
}

/// An agent that answers with this text.
fn agent_saying(text: &'static str) -> impl Fn(&FakeRequest) -> FakeRun + Send + Sync {
    move |request| FakeRun::for_request(request).started().text(text).finished()
}

/// Asserts that the case is rejected before any agent is contacted, with this message at this line and
/// column.
#[track_caller]
fn assert_rejected(case: &Value, place: &str, words: &str) {
    assert_rejected_text(&case.to_string(), place, words);
}

#[track_caller]
fn assert_rejected_text(text: &str, place: &str, words: &str) {
    let project =
        Project::with_config("target:\n  endpoint: http://127.0.0.1:9/\n").file("a.test.jsonl", text);
    let output = project.hotseat(&["test"]);
    assert_eq!(output.code, 2, "{output}");
    let stderr = output.stderr.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ");
    assert!(stderr.contains(words), "{words:?} is not in {output}");
    assert!(stderr.contains(&format!("a.test.jsonl:{place}")), "{place:?} is not in {output}");
}

/// Like `assert_rejected`, for one assertion of a case on one line.
#[track_caller]
fn assert_rejected_assertion(assertion: &str, words: &str) {
    let text = format!("{{\"id\": \"a\", \"input\": \"go\",\n \"assertions\": [{assertion}]}}");
    assert_rejected_text(&text, "2:", words);
    // Negation makes no difference.
    let negated = assertion.replacen('{', "{\"negate\": true, ", 1);
    assert_rejected_text(
        &format!("{{\"id\": \"a\", \"input\": \"go\",\n \"assertions\": [{negated}]}}"),
        "2:",
        words,
    );
}

/// A list is several texts, not their JSON: no answer contains that, so a prohibition would always hold.
#[test]
fn contains_and_not_contains_several_texts() {
    let agent = FakeAgent::start(agent_saying("hello error"));
    let cases = [
        ("both", json!({"type": "contains", "value": ["hello", "error"]}), "passed"),
        ("one", json!({"type": "contains", "value": ["hello", "password"]}), "failed"),
        ("none", json!({"type": "not_contains", "value": ["password", "bye"]}), "passed"),
        ("first", json!({"type": "not_contains", "value": ["error", "password"]}), "failed"),
        ("last", json!({"type": "not_contains", "value": ["password", "error"]}), "failed"),
    ];
    let case = |(id, assertion, _): &(&str, Value, &str)| {
        json!({"id": id, "input": "go", "assertions": [assertion]}).to_string()
    };
    let lines: Vec<String> = cases.iter().map(case).collect();
    let tested = Project::with_agent(&agent).file("a.test.jsonl", &lines.join("\n")).test(&[]);
    for (id, _, status) in &cases {
        assert_eq!(tested.case(id)["status"], *status, "{id}: {}", tested.output);
    }
    // Each text is an assertion of its own.
    let reported = tested.case("one")["assertions"].as_array().expect("a list").len();
    assert_eq!(reported, 2);
    for (assertion, words) in [
        (
            json!({"type": "contains", "value": ["a", "b"], "negate": true}),
            "`negate` of several is ambiguous",
        ),
        (json!({"type": "not_contains", "value": []}), "this list is empty"),
        (json!({"type": "contains", "value": ["a", ""]}), "an empty text is contained in every answer"),
    ] {
        assert_rejected(&json!({"id": "a", "input": "go", "assertions": [assertion]}), "1:", words);
    }
}

/// What is no name of a tool is never called.
#[test]
fn rejects_names_that_no_tool_can_have() {
    for name in ["ref*", "^refund$", "refund()", "refund, pay", "refund ", "a|b", "/refund/"] {
        let words = format!("`{name}` cannot be the name of a tool");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_rejected(
            &json!({"id": "a", "input": "go", "assert": {"tools": {"forbid": [name]}}}),
            "1:",
            &words,
        );
        let called = json!({"type": "tool_called", "name": name, "negate": true});
        assert_rejected(&json!({"id": "a", "input": "go", "assertions": [called]}), "1:", &words);
    }
    for key in ["forbid", "require", "forbid_calls"] {
        let case =
            json!({"id": "a", "input": "go", "assert": {"tools": {key: []}, "text": {"must_match": "x"}}});
        assert_rejected(&case, "1:", "found an empty list");
    }
}

/// In double quotes of YAML and JSON `\b` is a character that no answer contains.
#[test]
fn rejects_backspace_in_patterns() {
    let case = json!({"id": "a", "input": "go", "assert": {"text": {"must_not_match": "\u{8}error\u{8}"}}});
    assert_rejected(&case, "1:", "it contains a backspace character");
}

/// A prohibition of a pattern that matches nothing would always hold.
#[test]
fn rejects_patterns_that_match_nothing() {
    for pattern in ["$50", "/$50/m", "(?m)$50", "/2^8/m", "(?mR)$50", "(?m)(a|\\n)$(b|\\r)"] {
        let case = json!({"id": "a", "input": "go", "assert": {"text": {"must_not_match": pattern}}});
        assert_rejected(&case, "1:", "it matches no text");
    }
    let escaped = json!({"id": "a", "input": "go", "assert": {"text": {"must_match": "costs \\$${PRICE}"}}});
    assert_rejected(&escaped, "1:", "this pattern matches no text: `$${` is the text `${`, not a variable");
    assert_rejected(&escaped, "1:", "write `[$]${NAME}`");
    assert_table(
        agent_saying("It costs $50.\nThat is 2^8."),
        &[
            (json!({"type": "regex", "pattern": "(?m)50\\.$\\nThat"}), Passes),
            (json!({"type": "regex", "pattern": "(?m)50\\.$\\s*That"}), Passes),
            (json!({"type": "regex", "pattern": "/^That/m"}), Passes),
            (json!({"type": "regex", "pattern": "(?m)\\n^That"}), Passes),
        ],
    );
}

#[test]
fn contains_and_not_contains() {
    assert_table(
        agent_saying("Hi there, {\"n\": 42} a & b"),
        &[
            (json!({"type": "contains", "value": "Hi"}), Passes),
            (json!({"type": "contains", "value": "hi"}), Fails),
            (json!({"type": "contains", "value": "a & b"}), Passes),
            (json!({"type": "contains", "value": 42}), Passes),
            (json!({"type": "contains", "value": 43}), Fails),
            (json!({"type": "not_contains", "value": {"n": 42}}), Passes),
            (json!({"type": "contains", "value": "H.*i"}), Fails),
            (json!({"type": "not_contains", "value": "hi"}), Passes),
            (json!({"type": "not_contains", "value": "Hi"}), Fails),
        ],
    );
    assert_rejected_assertion(
        r#"{"type": "contains", "value": ""}"#,
        "an empty text is contained in every answer",
    );
    for value in ["null", r#"["a", null]"#] {
        let null = format!(r#"{{"type": "not_contains", "value": {value}}}"#);
        assert_rejected_assertion(&null, "null is not a text");
    }
    for (value, searched) in
        [("42.50", "42.5"), (r#"{"n": 42}"#, r#"{\"n\":42}"#), (r#"["a", 1.0e1]"#, "10.0")]
    {
        let rewritten = format!(r#"{{"type": "not_contains", "value": {value}}}"#);
        assert_rejected_assertion(&rewritten, &format!("this searches for \"{searched}\""));
    }
    assert_rejected_assertion(r#"{"type": "contains"}"#, "has no `value`");
    assert_rejected_assertion(r#"{"type": "contains", "pattern": "x"}"#, "unknown key `pattern`");
}

#[test]
fn assertions_that_cannot_fail_are_refused() {
    for pattern in [".*", "z*", "^", "(?m)^a?", "(a|b*)", "a*$", "(?m)$", r"\b|\B"] {
        let typed = json!({"type": "regex", "pattern": ["refund", pattern], "match": "any"});
        assert_rejected_assertion(&typed.to_string(), "so nothing is asserted");
        let block = json!({"id": "a", "input": "go", "assert": {"text": {"must_match": pattern}}});
        assert_rejected(&block, "1:", "so nothing is asserted");
    }
    let any_number = "`min: 0` allows any number of calls";
    assert_rejected_assertion(r#"{"type": "tool_called", "name": "pay", "count": {"min": 0}}"#, any_number);
    let no_argument = r#"{"type": "tool_called", "name": "pay", "where": {}, "count": {"max": 1}}"#;
    assert_rejected_assertion(no_argument, "`where` names no argument");
    let any_turns = r#"{"type": "value", "of": "turn_count", "at_least": 0}"#;
    assert_rejected_assertion(any_turns, "every number is at least 0, so nothing is asserted");
    let require = json!({"tools": {"require": [{"name": "pay", "count": {"min": 0}}]}});
    assert_rejected(&json!({"id": "a", "input": "go", "assert": require}), "1:", any_number);
    assert_table(
        agent_saying("Hi"),
        &[
            (json!({"type": "regex", "pattern": "^$|^Hi"}), Passes),
            (json!({"type": "tool_called", "name": "pay", "count": {"min": 0, "max": 1}}), Passes),
        ],
    );
}

#[test]
fn equals() {
    assert_table(
        agent_saying("{\"b\": [1, 2.0], \"a\": {\"x\": 1, \"y\": null}}"),
        &[
            (json!({"type": "equals", "value": {"a": {"y": null, "x": 1.0}, "b": [1.0, 2]}}), Passes),
            (json!({"type": "equals", "value": {"a": {"x": 1}, "b": [1, 2]}}), Fails),
            (json!({"type": "equals", "value": {"a": {"y": null, "x": 1}, "b": [2, 1]}}), Fails),
            (json!({"type": "equals", "value": {"a": {"y": null, "x": "1"}, "b": [1, 2]}}), Fails),
            (json!({"type": "equals", "value": null}), Fails),
        ],
    );
    assert_table(
        agent_saying("OK"),
        &[
            (json!({"type": "equals", "value": "OK"}), Passes),
            (json!({"type": "equals", "value": "ok"}), Fails),
            (json!({"type": "equals", "value": "O"}), Fails),
            (json!({"type": "equals", "value": true}), Fails),
        ],
    );
    for (placeholder, expected) in
        [("Dear {name}", Fails), ("Hi {{user.name}}!", Fails), ("Dear {name: 1}", Undecidable)]
    {
        assert_table(agent_saying(placeholder), &[(json!({"type": "equals", "value": {"a": 1}}), expected)]);
    }
    // An empty answer neither equals nor differs from any value.
    let silent = |request: &FakeRequest| FakeRun::for_request(request).started().finished();
    assert_table(
        silent,
        &[
            (json!({"type": "equals", "value": {}}), Undecidable),
            (json!({"type": "equals", "value": null}), Undecidable),
            (json!({"type": "equals", "value": "OK"}), Undecidable),
            (json!({"type": "equals", "value": ""}), Passes),
        ],
    );
}

#[test]
fn regex() {
    assert_table(
        agent_saying("Your ORDER-17 is on its way.\nBye."),
        &[
            (json!({"type": "regex", "pattern": "order-\\d+"}), Fails),
            (json!({"type": "regex", "pattern": "(?i)order-\\d+"}), Passes),
            (json!({"type": "regex", "pattern": "/order-\\d+/i"}), Passes),
            (json!({"type": "regex", "value": "ORDER"}), Passes),
            (json!({"type": "regex", "pattern": "^ORDER"}), Fails),
        ],
    );
    assert_rejected_assertion(r#"{"type": "regex", "pattern": "(unclosed"}"#, "does not compile");
    assert_rejected_assertion(r#"{"type": "regex", "pattern": ""}"#, "must be a regular expression");
    assert_rejected_assertion(r#"{"type": "regex"}"#, "has no `pattern`");
    assert_rejected_assertion(
        r#"{"type": "regex", "pattern": "a", "value": "b"}"#,
        "two spellings of one key",
    );
}

/// A call of `pay` whose arguments are cut.
fn cut_arguments(request: &FakeRequest) -> FakeRun {
    FakeRun::for_request(request)
        .started()
        .raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "pay"}))
        .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"amount\": 35"}))
        .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c"}))
        .raw_event(json!({"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c", "content": "ok"}))
        .text("Paid.")
        .finished()
}

/// Agents that encode arguments twice, and models of embedded agents that write invalid JSON, send a text.
#[test]
fn arguments_that_are_a_text_decide_nothing() {
    let twice = FakeAgent::with_run(|run, _| {
        let arguments = json!(json!({"amount": 35}).to_string()).to_string();
        run.raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "pay"}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": arguments}))
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c"}))
            .raw_event(
                json!({"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c", "content": "ok"}),
            )
            .text("Paid.")
            .finished()
    });
    let script = "use: always\nrules:\n  - when: { tool_result: { tool: pay, failed: true } }\n    reply: Not paid.\n  - reply: { tool_calls: [{ name: pay, arguments: '{\"amount\": 35' }] }\n";
    let clerk =
        "name: Clerk\ntools: [{ name: pay, task: { steps: [{ mock: { returns: { ok: true } } }] } }]\n";
    for assertion in [
        "{ tools: { require: [{ name: pay, args_match: { amount: '35' } }] } }",
        "{ tools: { require: [{ name: pay, args_not_match: { amount: '36' } }] } }",
        "{ tools: { forbid_calls: [{ name: pay, args_match: { amount: '35' } }] } }",
        "[{ type: tool_called, name: pay, arguments: { amount: 35 }, negate: true }]",
        "[{ type: tool_sequence, calls: [{ name: pay, arguments: { amount: 35 } }], negate: true }]",
    ] {
        let suite = format!("name: a\nturns: [{{ user: go, assert: {assertion} }}]\n");
        let embedded = Project::with_config("target: { type: embedded, agent: . }\n")
            .file("agent.yaml", clerk)
            .file("script.yaml", script);
        for project in [Project::with_agent(&twice), embedded] {
            let tested = project.suite("a", &suite).test(&[]);
            assert_eq!(tested.case("a")["status"], "failed", "{assertion}: {}", tested.output);
            assert_eq!(tested.failure("a")["fault"], "agent", "{assertion}");
        }
    }
}

/// The arguments of such a call are unknown: neither their presence nor their absence passes.
#[test]
fn arguments_that_are_not_json_decide_nothing() {
    let pay = |extra: Value| {
        let mut assertion = json!({"type": "tool_called", "name": "pay"});
        assertion.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        assertion
    };
    assert_table(
        cut_arguments,
        &[
            (pay(json!({})), Passes),
            (pay(json!({"arguments": {"amount": 35}})), Undecidable),
            (pay(json!({"arguments": {"amount": 35}, "count": {"max": 0}})), Undecidable),
            (pay(json!({"arguments": {"amount": 35}, "count": {"max": 1}})), Passes),
            (pay(json!({"count": 1})), Passes),
            (pay(json!({"count": 2})), Fails),
            (pay(json!({"count": 0})), Fails),
            (pay(json!({"where": {"amount": {"less_than": 100}}})), Undecidable),
            (json!({"type": "tool_called", "name": "ship", "arguments": {"amount": 35}}), Fails),
            (json!({"type": "tool_sequence", "calls": ["pay"]}), Passes),
            (
                json!({"type": "tool_sequence", "calls": [{"name": "pay", "arguments": {"amount": 35}}]}),
                Undecidable,
            ),
        ],
    );
    for assertion in [
        "{ type: tool_called, name: pay, arguments: { amount: 35 }, negate: true }",
        "{ type: tool_sequence, calls: [{ name: pay, arguments: { amount: 35 } }], negate: true }",
    ] {
        let suite = format!("name: a\nturns: [{{ user: go, assert: {assertion} }}]\n");
        let agent = FakeAgent::start(cut_arguments);
        let output = Project::with_agent(&agent).suite("a", &suite).hotseat(&["test"]);
        let words = "undecided for 1 whose arguments are";
        assert!(output.code == 1 && output.stdout.contains(words), "{assertion}: {output}");
    }
    let agent = FakeAgent::start(cut_arguments);
    for (block, passes) in [
        ("require: [{ name: pay, count: { exact: 1 }, result_match: ok }]", true),
        ("require: [{ name: pay, count: 1, result_match: ok }]", true),
        ("require: [{ name: pay, args_match: { amount: 35 } }]", false),
        ("require: [{ name: pay, args_match: { amount: 35 }, count: { max: 0 } }]", false),
        ("require: [{ name: pay, args_not_match: { amount: '35' } }]", false),
        (
            "require: [{ name: pay, args_match: { amount: 35 }, result_not_match: ok, count: { min: 0 } }]",
            false,
        ),
        (
            "require: [{ name: pay, args_match: { amount: 35 }, result_not_match: no, count: { min: 0 } }]",
            true,
        ),
        ("forbid_calls: [{ name: pay, args_match: { amount: '35' } }]", false),
        ("forbid_calls: [{ name: pay, args_match: { amount: '35' }, result_match: no }]", true),
        ("forbid_calls: [{ name: ship, args_match: { amount: '35' } }]", true),
    ] {
        let suite = format!("name: a\nturns: [{{ user: go, assert: {{ tools: {{ {block} }} }} }}]\n");
        let tested = Project::with_agent(&agent).suite("a", &suite).test(&[]);
        let status = if passes { "passed" } else { "failed" };
        assert_eq!(tested.case("a")["status"], status, "{block}: {}", tested.output);
        if !passes {
            assert_eq!(tested.failure("a")["fault"], "agent", "{block}");
            assert!(tested.output.stdout.contains("no JSON object"), "{block}: {}", tested.output);
        }
    }
    let script = "it('a', () => {
      user.says('go');
      evaluate(agent).toCallTool('pay', { amount: (n) => n === 35 });
      expect(agent).not.toCallTool('pay', { amount: (n) => n === 35 });
    });";
    let tested = crate::common::typescript::project(&agent, script).test(&["a_test.ts"]);
    assert_eq!(tested.failure("a")["kind"], "assertion", "{}", tested.output);
    assert_eq!(tested.failure("a")["fault"], "agent", "{}", tested.output);
    assert!(
        tested.output.stdout.contains("arguments that are unknown or no JSON object"),
        "{}",
        tested.output
    );
}

#[test]
fn a_missing_type_is_suggested_by_the_keys() {
    for (assertion, words) in [
        (r#"{"value": "abc"}"#, "with these keys, `type` is one of `contains`, `not_contains`, `equals`,"),
        (r#"{"path": "$.a", "value": 1}"#, "with these keys, `type` is `json_path`"),
        (r#"{"contains": "abc"}"#, "write `{ type: contains, value: … }`"),
        (r#"{"nonsense": 1}"#, "a mapping without it has `tools`"),
        (r#"{"typ": "contains", "value": "abc"}"#, "did you mean `type`?"),
        (r#"{"type": "contians", "value": "abc"}"#, "did you mean `contains`?"),
    ] {
        assert_rejected_assertion(assertion, words);
    }
}

#[test]
fn json_path() {
    let rows = [
        (json!({"type": "json_path", "path": "$.status", "value": "ok"}), Passes),
        (json!({"type": "json_path", "path": "status", "value": "ok"}), Passes),
        (json!({"type": "json_path", "path": "$.status", "value": "bad"}), Fails),
        (json!({"type": "json_path", "path": "$.status", "value": ["ok", "done"]}), Passes),
        (json!({"type": "json_path", "path": "$.status", "value": ["bad"]}), Fails),
        (json!({"type": "json_path", "path": "$.n", "value": 3.0}), Passes),
        (json!({"type": "json_path", "path": "$.n", "value": "3"}), Fails),
        (json!({"type": "json_path", "path": "$.none", "value": null}), Passes),
        (json!({"type": "json_path", "path": "$.none"}), Passes),
        (json!({"type": "json_path", "path": "$.tags", "value": ["db", "web"]}), Passes),
        (json!({"type": "json_path", "path": "$.tags", "value": ["web", "db"]}), Fails),
        (json!({"type": "json_path", "path": "$.tags", "value": [["web"], ["db", "web"]]}), Passes),
        (json!({"type": "json_path", "path": "tags[0]", "value": "db"}), Passes),
        (json!({"type": "json_path", "path": "$.tags[-1]", "value": "web"}), Passes),
        (json!({"type": "json_path", "path": "$['a b']", "value": true}), Passes),
        (json!({"type": "json_path", "path": "$.items[*].id", "value": [1, 2]}), Passes),
        (json!({"type": "json_path", "path": "$.items[*].id", "value": [1]}), Fails),
        // One value of several expected ones: the others are missing.
        (json!({"type": "json_path", "path": "$.items[?@.id == 2].name", "value": ["A", "B"]}), Fails),
        (json!({"type": "json_path", "path": "$.items[?@.id == 2].name", "value": ["B"]}), Passes),
        (
            json!({"type": "json_path", "path": "$.items[?@.id == 2]['name', 'id']", "value": ["B", 2]}),
            Passes,
        ),
        (json!({"type": "json_path", "path": "$['tags', 'lost']", "value": ["db", "web"]}), Passes),
        (json!({"type": "json_path", "path": "$.items[*].id", "value": 1}), Undecidable),
        (json!({"type": "json_path", "path": "$.items[?@.id == 2].name", "value": "B"}), Passes),
        // A missing value is neither null nor different from anything; its absence can be asserted.
        (json!({"type": "json_path", "path": "$.missing", "value": null}), Undecidable),
        (json!({"type": "json_path", "path": "$.missing", "value": "ok"}), Undecidable),
        (json!({"type": "json_path", "path": "$.missing"}), Fails),
    ];
    let json = "{\"status\": \"ok\", \"n\": 3, \"none\": null, \"tags\": [\"db\", \"web\"], \"a b\": true, \"items\": [{\"id\": 1, \"name\": \"A\"}, {\"id\": 2, \"name\": \"B\"}]}";
    assert_table(agent_saying(json), &rows);
    let fenced: &'static str = Box::leak(format!("Result:\n```json\n{json}\n```\nDone.").into_boxed_str());
    assert_table(agent_saying(fenced), &rows);
    let prose: &'static str = Box::leak(format!("Here: {json} as you asked").into_boxed_str());
    assert_table(agent_saying(prose), &rows);
    // Prose is neither JSON nor YAML.
    assert_table(
        agent_saying("status: ok"),
        &[
            (json!({"type": "json_path", "path": "$.status", "value": "ok"}), Undecidable),
            (json!({"type": "json_path", "path": "$.status"}), Undecidable),
        ],
    );
    let deep: &'static str = Box::leak(("[".repeat(200) + &"]".repeat(200)).into_boxed_str());
    let agent = FakeAgent::start(agent_saying(deep));
    let case = json!({"id": "deep", "input": "go", "assertions": [{"type": "json_path", "path": "$[0]"}]});
    let tested = Project::with_agent(&agent).file("a.test.jsonl", &case.to_string()).test(&[]);
    let actual = tested.case("deep")["assertions"][0]["actual"].to_string();
    let words = "the answer cannot be read as JSON: it has JSON that is nested deeper than 127 levels";
    assert!(actual.contains(words), "{actual}");
    for path in ["$.a[", "$..", "a..b..", "$[?@.a ~ 1]", "$."] {
        assert_rejected_assertion(
            &format!("{{\"type\": \"json_path\", \"path\": \"{path}\"}}"),
            "error: invalid JSON path: ",
        );
    }
    assert_rejected_assertion(
        r#"{"type": "json_path", "path": ""}"#,
        "`path` must be a text that is not empty",
    );
    assert_rejected_assertion(r#"{"type": "json_path", "value": 1}"#, "has no `path`");
}

#[test]
fn json_path_reads_state_and_tool_results() {
    let agent = |request: &FakeRequest| {
        FakeRun::for_request(request)
            .started()
            .state(json!({"cart": {"total": 12}, "status": "of the state"}))
            .tool("c1", "create_expense", &json!({}), Some(json!({"expense": {"status": "draft"}})))
            .tool(
                "c2",
                "create_expense",
                &json!({}),
                Some(json!({"expense": {"status": "submitted"}, "status": "of a tool"})),
            )
            .text("Submitted.")
            .finished()
    };
    assert_table(
        agent,
        &[
            (json!({"type": "json_path", "path": "$.expense.status", "value": "submitted"}), Passes),
            (json!({"type": "json_path", "path": "$.expense.status", "value": "draft"}), Fails),
            (json!({"type": "json_path", "path": "$.cart.total", "value": 12}), Passes),
            (json!({"type": "json_path", "path": "$.status", "value": "of the state"}), Passes),
            (json!({"type": "json_path", "path": "$.status", "value": "of a tool"}), Fails),
            (json!({"type": "json_path", "path": "$.nowhere", "value": 1}), Undecidable),
        ],
    );
}

#[test]
fn value_type() {
    assert_table(
        agent_saying(
            "{\"count\": 3, \"part\": 0.5, \"name\": \"x\", \"list\": [], \"none\": null, \"yes\": true}",
        ),
        &[
            (json!({"type": "type", "value": "object"}), Passes),
            (json!({"type": "type", "value": "string"}), Fails),
            (json!({"type": "type", "path": "$.count", "value": "number"}), Passes),
            (json!({"type": "type", "path": "$.count", "value": "integer"}), Passes),
            (json!({"type": "type", "path": "$.part", "value": "integer"}), Fails),
            (json!({"type": "type", "path": "$.count", "value": "string"}), Fails),
            (json!({"type": "type", "path": "$.name", "value": "string"}), Passes),
            (json!({"type": "type", "path": "$.list", "value": "array"}), Passes),
            (json!({"type": "type", "path": "$.list", "value": "object"}), Fails),
            (json!({"type": "type", "path": "$.none", "value": "null"}), Passes),
            (json!({"type": "type", "path": "$.yes", "value": "boolean"}), Passes),
            (json!({"type": "type", "path": "$.missing", "value": "null"}), Undecidable),
        ],
    );
    assert_table(
        agent_saying("Three of them."),
        &[
            (json!({"type": "type", "value": "string"}), Passes),
            (json!({"type": "type", "value": "number"}), Fails),
            (json!({"type": "type", "path": "$.count", "value": "number"}), Undecidable),
        ],
    );
    assert_rejected_assertion(r#"{"type": "type", "value": "text"}"#, "`value` must be `string`, `number`");
    assert_rejected_assertion(
        r#"{"type": "type", "value": "string", "path": "$["}"#,
        "error: invalid JSON path: ",
    );
}

#[test]
fn schema() {
    let person = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}}});
    assert_table(
        agent_saying("{\"name\": \"Ann\", \"age\": 3}"),
        &[
            (json!({"type": "schema", "schema": person}), Passes),
            (json!({"type": "schema", "value": person}), Passes),
            (json!({"type": "schema", "schema": {"required": ["email"]}}), Fails),
            (json!({"type": "schema", "schema": {"properties": {"age": {"maximum": 2}}}}), Fails),
            (json!({"type": "schema", "schema": {"type": "integer"}, "path": "$.age"}), Passes),
            (json!({"type": "schema", "schema": {"pattern": "^B"}, "path": "$.name"}), Fails),
            (json!({"type": "schema", "schema": {"type": "integer"}, "path": "$.missing"}), Undecidable),
            // Names of properties are no keywords, and a schema may refer to itself.
            (
                json!({"type": "schema", "schema": {"properties": {"requried": {"type": "string"}, "age": {"type": "integer"}}}}),
                Passes,
            ),
            (
                json!({"type": "schema", "schema": {"$defs": {"x": {"properties": {"x": {"$ref": "#/$defs/x"}}, "type": "object"}}, "$ref": "#/$defs/x"}}),
                Passes,
            ),
            // Only older drafts check `format`.
            (
                json!({"type": "schema", "schema": {"type": "string", "format": "email"}, "path": "$.name"}),
                Passes,
            ),
            (
                json!({"type": "schema", "schema": {"$schema": "http://json-schema.org/draft-07/schema#", "format": "email"}, "path": "$.name"}),
                Fails,
            ),
        ],
    );
    assert_table(agent_saying("no JSON here"), &[(json!({"type": "schema", "schema": person}), Undecidable)]);
    for (schema, words) in [
        (r#"{"type": "strng"}"#, "this is not a JSON Schema"),
        (r#"{"required": "name"}"#, "this is not a JSON Schema"),
        (r#"{"pattern": "("}"#, "this is not a JSON Schema"),
        (r#"{"$ref": "http://127.0.0.1:9/schema"}"#, "this is not a JSON Schema"),
        (r#"{"$ref": "file:///etc/passwd"}"#, "this is not a JSON Schema"),
        ("{}", "this schema accepts every value"),
        ("true", "this schema accepts every value"),
        (r#"{"tpye": "object"}"#, "this schema accepts every value"),
        (r#"{"properties": {"zz": {}}}"#, "this schema accepts every value"),
        (r#"{"required": []}"#, "this schema accepts every value"),
        (r#"{"not": {"not": {}}}"#, "this schema accepts every value"),
        (r##"{"$ref": "#/$defs/x", "$defs": {"x": {}}}"##, "this schema accepts every value"),
        (
            r##"{"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/y"}, "y": true}}"##,
            "this schema accepts every value",
        ),
        (r#"{"format": "email"}"#, "this schema accepts every value"),
        (r#"{"type": "object", "requried": ["id"]}"#, "did you mean `required`?"),
        (
            r#"{"properties": {"a": {"type": "string", "maxLenght": 3}}}"#,
            "at /properties/a; did you mean `maxLength`?",
        ),
        ("7", "`schema` must be true or false or a mapping"),
    ] {
        assert_rejected_assertion(&format!("{{\"type\": \"schema\", \"schema\": {schema}}}"), words);
    }
}

/// An agent that books twice and searches once.
fn booking_agent(request: &FakeRequest) -> FakeRun {
    FakeRun::for_request(request)
        .started()
        .tool(
            "c1",
            "book",
            &json!({"to": "Rome", "seats": 2, "who": {"name": "Ann", "age": 30}}),
            Some(json!({"ok": true, "message": "Booked it", "n": 1})),
        )
        .tool("c2", "agents__lookup", &json!({}), Some(json!("plain text")))
        .tool(
            "c3",
            "book",
            &json!({"to": "Oslo"}),
            Some(json!({"ok": false, "message": "Setup complete", "list": [1, 2]})),
        )
        .tool("c4", "forgotten", &json!({}), None)
        .text("Done.")
        .finished()
}

#[test]
fn tool_called() {
    assert_table(
        booking_agent,
        &[
            (json!({"type": "tool_called", "name": "book"}), Passes),
            (json!({"type": "tool_called", "value": "book"}), Passes),
            (json!({"type": "tool_called", "name": "cancel"}), Fails),
            // Names must match exactly.
            (json!({"type": "tool_called", "name": "boo"}), Fails),
            (json!({"type": "tool_called", "name": "lookup"}), Fails),
            (json!({"type": "tool_called", "name": "agents__lookup"}), Passes),
            (json!({"type": "tool_called", "value": ["cancel", "book"]}), Passes),
            (json!({"type": "tool_called", "value": ["cancel", "pay"]}), Fails),
            (json!({"type": "tool_called", "name": "book", "arguments": {"to": "Rome"}}), Passes),
            (json!({"type": "tool_called", "name": "book", "args": {"seats": 2.0}}), Passes),
            (json!({"type": "tool_called", "name": "book", "args": {"seats": "2"}}), Fails),
            (json!({"type": "tool_called", "name": "book", "args": {"who": {"age": 30}}}), Passes),
            (json!({"type": "tool_called", "name": "book", "args": {"to": "Oslo", "seats": 2}}), Fails),
            (
                json!({"type": "tool_called", "name": "book", "args": {"to": "Oslo"}, "match": "exact"}),
                Passes,
            ),
            (json!({"type": "tool_called", "name": "book", "args": {"to": "Rome"}, "match": "exact"}), Fails),
            (json!({"type": "tool_called", "value": {"name": "book", "arguments": {"to": "Oslo"}}}), Passes),
            (json!({"type": "tool_called", "name": "book", "count": {"exact": 2}}), Passes),
            (json!({"type": "tool_called", "name": "book", "count": {"max": 1}}), Fails),
            (json!({"type": "tool_called", "name": "forgotten"}), Passes),
        ],
    );
    assert_rejected_assertion(r#"{"type": "tool_called"}"#, "needs the `name` of a tool");
    assert_rejected_assertion(
        r#"{"type": "tool_called", "name": "a", "value": "b"}"#,
        "both `name` and `value` name the tool",
    );
    assert_rejected_assertion(r#"{"type": "tool_called", "value": []}"#, "found an empty list");
    assert_rejected_assertion(r#"{"type": "tool_called", "name": ""}"#, "must be a text that is not empty");
    assert_rejected_assertion(r#"{"type": "tool_called", "name": "a", "match": "exact"}"#, "there are none");
    assert_rejected_assertion(
        r#"{"type": "tool_called", "name": "a", "count": {}}"#,
        "needs `exact`, `min` or `max`",
    );
}

/// Their negation would pass whatever the agent does.
#[test]
fn limits_without_a_value_between_them_are_rejected() {
    let limited =
        |condition: &str| format!(r#"{{"type": "tool_called", "name": "a", "where": {{"n": {condition}}}}}"#);
    for (condition, words) in [
        (r#"{"at_least": 5, "at_most": 1}"#, "no value is at least 5 and at most 1"),
        (r#"{"more_than": 5, "at_most": 5}"#, "no value is more than 5 and at most 5"),
        (r#"{"at_least": 5, "less_than": 5.0}"#, "no value is at least 5 and less than 5.0"),
        (r#"{"not": {"more_than": "b", "less_than": "a"}}"#, "the smaller limit comes first"),
        (r#"{"at_least": 5, "at_most": "9"}"#, "no value is at least 5 and at most \"9\""),
    ] {
        assert_rejected_assertion(&limited(condition), words);
    }
    let agent = |request: &FakeRequest| {
        FakeRun::for_request(request).started().tool("c", "a", &json!({"n": 5}), Some(json!("ok"))).finished()
    };
    let row = |condition: &str| serde_json::from_str(&limited(condition)).expect("JSON");
    assert_table(
        agent,
        &[
            (row(r#"{"at_least": 5, "at_most": 5}"#), Passes),
            (row(r#"{"more_than": 4, "less_than": 6, "at_most": 5}"#), Passes),
            (row(r#"{"more_than": 5, "less_than": 6}"#), Fails),
        ],
    );
}

#[test]
fn non_json_arguments_match_no_expected_ones() {
    let agent = |request: &FakeRequest| {
        FakeRun::for_request(request)
            .started()
            .raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "book"}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"to\": "}))
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c"}))
            .finished()
    };
    assert_table(
        agent,
        &[
            (json!({"type": "tool_called", "name": "book"}), Passes),
            (json!({"type": "tool_called", "name": "book", "args": {}}), Undecidable),
            (
                json!({"type": "tool_sequence", "calls": [{"name": "book", "args": {}}], "arguments": "subset"}),
                Undecidable,
            ),
            (json!({"type": "tool_sequence", "calls": ["book"]}), Passes),
        ],
    );
}

/// As an argument such a text is compared as it is, so a negation would pass whatever the agent does.
#[test]
fn patterns_of_results_are_rejected_as_arguments() {
    for assertion in [
        r#"{"type": "tool_called", "name": "a", "arguments": {"to": "regex:^R"}}"#,
        r#"{"type": "tool_called", "value": {"name": "a", "args": {"list": [{"to": "regex:^R"}]}}}"#,
    ] {
        assert_rejected_assertion(assertion, "`regex:` marks a pattern in results only");
    }
    let agent = |request: &FakeRequest| {
        let arguments = json!({"q": "regex:^R"});
        FakeRun::for_request(request).started().tool("c", "a", &arguments, Some(json!("ok"))).finished()
    };
    let text = json!({"type": "tool_called", "name": "a", "where": {"q": {"equals": "regex:^R"}}});
    assert_table(agent, &[(text, Passes)]);
}

#[test]
fn tool_result() {
    assert_table(
        booking_agent,
        &[
            (json!({"type": "tool_result", "tool": "book"}), Passes),
            (json!({"type": "tool_result", "value": {"tool": "book", "result": {"ok": true}}}), Passes),
            (json!({"type": "tool_result", "tool": "book", "result": {"ok": true, "n": 1.0}}), Passes),
            // Any call may match, but a single call must meet all conditions.
            (json!({"type": "tool_result", "tool": "book", "result": {"ok": false}}), Passes),
            (json!({"type": "tool_result", "tool": "book", "result": {"ok": false, "n": 1}}), Fails),
            (json!({"type": "tool_result", "tool": "book", "result": {"ok": "true"}}), Fails),
            (
                json!({"type": "tool_result", "tool": "book", "result": {"message": "regex:(?i)setup.*complete"}}),
                Passes,
            ),
            (json!({"type": "tool_result", "tool": "book", "result": {"message": "setup.*complete"}}), Fails),
            (json!({"type": "tool_result", "tool": "book", "result": {"list": [1, 2]}}), Passes),
            (json!({"type": "tool_result", "tool": "book", "result": {"list": [1]}}), Fails),
            (json!({"type": "tool_result", "tool": "agents__lookup", "result": "plain text"}), Passes),
            (json!({"type": "tool_result", "tool": "agents__lookup", "result": "plain"}), Fails),
            (json!({"type": "tool_result", "tool": "agents__lookup", "result": {"ok": true}}), Fails),
            // A tool that was not called, or whose call has no result, cannot have a different result.
            (json!({"type": "tool_result", "tool": "cancel", "result": {"ok": true}}), Undecidable),
            (json!({"type": "tool_result", "tool": "cancel"}), Undecidable),
            (json!({"type": "tool_result", "tool": "forgotten"}), Undecidable),
        ],
    );
    // AG-UI passes on every result as text.
    let number = |request: &FakeRequest| {
        let run = FakeRun::for_request(request).started();
        let run = run.tool("c1", "count", &json!({}), Some(json!(100)));
        run.tool("c2", "name", &json!({}), Some(json!("007"))).text("done").finished()
    };
    let result = |tool: &str, result: Value| json!({"type": "tool_result", "tool": tool, "result": result});
    assert_table(
        number,
        &[
            (result("count", json!(100)), Passes),
            (result("count", json!(1e2)), Passes),
            (result("count", json!("100")), Passes),
            (result("count", json!("1e2")), Fails),
            (result("count", json!(101)), Fails),
            (result("name", json!(7)), Fails),
            (result("name", json!("007")), Passes),
        ],
    );
    assert_rejected_assertion(r#"{"type": "tool_result"}"#, "needs the name of a `tool`");
    assert_rejected_assertion(r#"{"type": "tool_result", "value": {"result": 1}}"#, "has no `tool`");
    assert_rejected_assertion(
        r#"{"type": "tool_result", "tool": "a", "result": "regex:("}"#,
        "does not compile",
    );
    assert_rejected_assertion(
        r#"{"type": "tool_result", "tool": "a", "result": {"x": ["regex:"]}}"#,
        "`regex:` needs a pattern",
    );
    assert_rejected_assertion(
        r#"{"type": "tool_result", "tool": "a", "value": {"tool": "a"}}"#,
        "`value` replaces `tool` and `result`; use one or the other",
    );
}

#[test]
fn value() {
    let of = |of: &str, how: &str, what: Value| json!({"type": "value", "of": of, how: what});
    assert_table(
        booking_agent,
        &[
            (of("turn_count", "equals", json!(1)), Passes),
            (of("turn_count", "equals", json!(2)), Fails),
            (of("turn_count", "at_least", json!(1)), Passes),
            (of("turn_count", "at_least", json!(2)), Fails),
            (of("turn_count", "at_most", json!(1)), Passes),
            (of("turn_count", "at_most", json!(0)), Fails),
            (of("tool_names", "equals", json!(["book", "agents__lookup", "book", "forgotten"])), Passes),
            (of("tool_names", "equals", json!(["book", "agents__lookup", "forgotten"])), Fails),
            (of("tool_names", "contains", json!("book")), Passes),
            (of("tool_names", "contains", json!(["pay"])), Fails),
        ],
    );
    // The negation of several entries is ambiguous.
    let case = |id: &str, names: Value| json!({"id": id, "input": "go", "assertions": [of("tool_names", "contains", names)]});
    let cases = [case("all", json!(["forgotten", "book"])), case("one", json!(["book", "pay"]))];
    let agent = FakeAgent::start(booking_agent);
    let tested = Project::with_agent(&agent).cases(&cases).test(&[]);
    assert_eq!(["all", "one"].map(|id| tested.case(id)["status"].clone()), ["passed", "failed"]);
    let negated = json!({"type": "value", "of": "tool_names", "contains": ["a", "b"], "negate": true});
    let negated = json!({"id": "a", "input": "go", "assertions": [negated]});
    assert_rejected(&negated, "1:", "`negate` with several entries is ambiguous");
    for (assertion, words) in [
        (
            r#"{"type": "value", "of": "turns", "equals": 1}"#,
            "`of` must be `turn_count`, `tool_names` or `topic_history`",
        ),
        (r#"{"type": "value", "of": "turn_count"}"#, "`value` needs exactly one comparison"),
        (
            r#"{"type": "value", "of": "turn_count", "at_least": 1, "at_most": 2}"#,
            "needs exactly one comparison",
        ),
        (r#"{"type": "value", "of": "turn_count", "contains": "a"}"#, "`turn_count` supports `equals`"),
        (r#"{"type": "value", "of": "turn_count", "equals": ["a"]}"#, "`turn_count` supports `equals`"),
        (r#"{"type": "value", "of": "tool_names", "at_least": 1}"#, "`tool_names` supports `equals`"),
        (r#"{"type": "value", "of": "tool_names", "equals": 1}"#, "`tool_names` supports `equals`"),
        (
            r#"{"type": "value", "of": "topic_history", "contains": "greeting"}"#,
            "topics need a `graph`, but none is defined",
        ),
    ] {
        assert_rejected_assertion(assertion, words);
    }
}

#[test]
fn tool_sequence() {
    let made = json!([
        {"name": "book", "arguments": {"to": "Rome", "seats": 2, "who": {"name": "Ann", "age": 30}}},
        "agents__lookup",
        {"name": "book", "arguments": {"to": "Oslo"}},
        "forgotten",
    ]);
    let with = |calls: Value, order: &str, arguments: &str| json!({"type": "tool_sequence", "calls": calls, "order": order, "arguments": arguments});
    let only = |tools: &[&str], calls: Value, order: &str| json!({"type": "tool_sequence", "calls": calls, "order": order, "only": tools});
    let swapped = json!(["agents__lookup", {"name": "book", "args": {"to": "Oslo"}}, "forgotten", {"name": "book", "args": {"to": "Rome"}}]);
    assert_table(
        booking_agent,
        &[
            (json!({"type": "tool_sequence", "calls": made}), Passes),
            (with(json!(["book", "agents__lookup", "book", "forgotten"]), "strict", "exact"), Passes),
            (with(json!(["book", "book", "agents__lookup", "forgotten"]), "strict", "exact"), Fails),
            (with(json!(["book", "agents__lookup", "book"]), "strict", "exact"), Fails),
            (with(json!([]), "strict", "exact"), Fails),
            (with(swapped.clone(), "strict", "subset"), Fails),
            (with(swapped.clone(), "unordered", "subset"), Passes),
            (with(swapped.clone(), "unordered", "exact"), Fails),
            (with(swapped.clone(), "unordered", "ignored"), Passes),
            (with(json!(["book", "book", "agents__lookup"]), "unordered", "exact"), Fails),
            (
                with(json!(["book", "book", "agents__lookup", "forgotten", "pay"]), "unordered", "exact"),
                Fails,
            ),
            (with(json!(["book", "book", "agents__lookup", "forgotten", "pay"]), "subset", "exact"), Passes),
            (with(json!(["book", "agents__lookup", "forgotten"]), "subset", "exact"), Fails),
            (with(json!([]), "subset", "exact"), Fails),
            (with(json!(["book"]), "superset", "exact"), Passes),
            (with(json!(["book", "book", "book"]), "superset", "exact"), Fails),
            (
                with(json!([{"name": "book", "args": {"to": "Oslo"}}, "forgotten"]), "superset", "exact"),
                Passes,
            ),
            (with(json!([{"name": "book", "args": {"to": "Paris"}}]), "superset", "subset"), Fails),
            (with(json!([{"name": "book", "args": {"to": "Paris"}}]), "superset", "ignored"), Passes),
            (with(json!(["book", "book", "forgotten"]), "in_order", "exact"), Passes),
            (with(made.clone(), "in_order", "exact"), Passes),
            (with(json!(["book", "book", "agents__lookup"]), "in_order", "exact"), Fails),
            (with(json!(["book", "book", "book"]), "in_order", "exact"), Fails),
            (with(json!([{"name": "book", "args": {"to": "Oslo"}}, "book"]), "in_order", "exact"), Fails),
            (only(&["forgotten"], json!(["forgotten"]), "strict"), Passes),
            (only(&["forgotten"], json!([]), "strict"), Fails),
            (only(&["pay", "cancel"], json!([]), "strict"), Passes),
            (only(&["book", "pay"], json!(["book", "book"]), "unordered"), Passes),
            (only(&["book", "pay"], json!(["book", "book", "pay"]), "unordered"), Fails),
            // The first call matches both patterns; only the other assignment satisfies both.
            (
                with(
                    json!([{"name": "book", "args": {}}, {"name": "book", "args": {"to": "Rome"}}]),
                    "superset",
                    "subset",
                ),
                Passes,
            ),
        ],
    );
    assert_table(
        agent_saying("nothing to do"),
        &[
            (with(json!([]), "strict", "exact"), Passes),
            (with(json!(["book"]), "subset", "exact"), Passes),
            (with(json!(["book"]), "superset", "exact"), Fails),
        ],
    );
    assert_rejected_assertion(r#"{"type": "tool_sequence"}"#, "has no `calls`");
    assert_rejected_assertion(
        r#"{"type": "tool_sequence", "calls": ["a"], "order": "any"}"#,
        "`order` must be `strict`",
    );
    assert_rejected_assertion(
        r#"{"type": "tool_sequence", "calls": [{"nme": "a"}]}"#,
        "did you mean `name`?",
    );
    for order in ["superset", "in_order"] {
        let nothing = format!(r#"{{"type": "tool_sequence", "calls": [], "order": "{order}"}}"#);
        assert_rejected_assertion(&nothing, "asserts nothing");
    }
    assert_rejected_assertion(
        r#"{"type": "tool_sequence", "calls": ["a", {"name": "b"}], "only": ["b"]}"#,
        "`a` is expected, but `only` excludes its calls",
    );
    assert_rejected_assertion(r#"{"type": "tool_sequence", "calls": ["a"], "only": []}"#, "not empty");
}

#[test]
fn rejects_invalid_assertions() {
    assert_rejected_assertion(r#"{"type": "contain", "value": "x"}"#, "did you mean `contains`?");
    assert_rejected_assertion(r#"{"typ": "contains", "value": "x"}"#, "did you mean `type`?");
    assert_rejected_assertion(r#"{"value": "x"}"#, "has no `type`");
    assert_rejected_assertion(r#"{"type": 3, "value": "x"}"#, "`type` must be one of `contains`");
    assert_rejected_assertion(
        r#"{"type": "agent", "use": "agents:judge", "value": "be polite"}"#,
        "unknown agent `judge`",
    );
    assert_rejected_assertion(
        r#"{"type": "script", "use": "scripts:tests.validate"}"#,
        "no script found for `scripts:tests.validate`",
    );
    assert_rejected_assertion(
        r#"{"type": "contains", "value": "x", "massage": "y"}"#,
        "did you mean `message`?",
    );
    assert_rejected(
        &json!({"id": "a", "input": "go", "assertions": "contains"}),
        "1:",
        "must be false, a mapping or a list",
    );
    assert_rejected(&json!({"id": "a", "input": "go", "assertions": []}), "1:", "found an empty list");
    assert_rejected(&json!({"id": "a", "input": "go", "assertions": [{}]}), "1:", "this asserts nothing");
    assert_rejected(
        &json!({"id": "a", "turns": [{"user": "go", "assert": {}}]}),
        "1:",
        "this asserts nothing",
    );
    assert_rejected(
        &json!({"id": "a", "input": "go", "assertions": ["contains"]}),
        "1:",
        "must be a mapping",
    );
    assert_rejected(
        &json!({"id": "a", "input": "go", "asserts": [{"type": "contains", "value": "x"}]}),
        "1:",
        "unknown key `asserts`",
    );
    let both = json!({"id": "a", "input": "go", "assert": [{"type": "contains", "value": "x"}], "assertions": [{"type": "contains", "value": "y"}]});
    assert_rejected(&both, "1:", "`assert` and `assertions` are two spellings of one key");
}

#[test]
fn block_and_list_forms_are_equivalent() {
    let agent = FakeAgent::start(booking_agent);
    let cases = [
        json!({"id": "block", "input": "go", "assert": {"tools": {"require": [{"name": "book", "count": {"exact": 2}}]}, "text": {"must_match": "Done"}}}),
        json!({"id": "one", "input": "go", "assert": {"type": "tool_called", "name": "book"}}),
        json!({"id": "mixed", "input": "go", "assertions": [{"type": "contains", "value": "Done"}, {"tools": {"forbid": ["cancel"]}}, {"timing": {"max_duration_ms": 60000}}]}),
        json!({"id": "mixed fails", "input": "go", "assertions": [{"type": "contains", "value": "Done"}, {"tools": {"forbid": ["book"]}}]}),
    ];
    let tested = Project::with_agent(&agent).cases(&cases).test(&[]);
    for (name, status) in
        [("block", "passed"), ("one", "passed"), ("mixed", "passed"), ("mixed fails", "failed")]
    {
        assert_eq!(tested.case(name)["status"], status, "{name}\n{}", tested.output);
    }
    assert_eq!(tested.case("mixed")["assertions"].as_array().map(Vec::len), Some(3));
}

#[test]
fn reports_every_failed_assertion() {
    let agent = FakeAgent::start(agent_saying("Hello."));
    let case = json!({"id": "a", "input": "go", "assertions": [
        {"type": "contains", "value": "Hello"},
        {"type": "contains", "value": "Bye", "message": "it says goodbye"},
        {"type": "regex", "pattern": "^x"},
    ]});
    let tested = Project::with_agent(&agent).file("a.test.json", &json!([case]).to_string()).test(&[]);
    let failed = tested.case("a");
    assert_eq!(
        failed["assertion_errors"],
        json!(["it says goodbye", "expected the agent's text to match /^x/, got \"Hello.\""])
    );
    let written = &failed["assertions"][1];
    assert_eq!(
        (&written["value"], &written["message"], &written["passed"]),
        (&json!("Bye"), &json!("it says goodbye"), &json!(false))
    );
    assert!(tested.output.stdout.contains("✗ it says goodbye"), "{}", tested.output);
}

#[test]
fn informational_checks_do_not_affect_verdict() {
    let agent = FakeAgent::start(agent_saying("Hello."));
    let cases = [
        json!({"id": "soft", "input": "go", "assertions": [{"type": "contains", "value": "Hello"}], "evaluate": [{"type": "contains", "value": "Bye"}, {"type": "contains", "value": "Hell"}]}),
        json!({"id": "soft block", "turns": [{"input": "go", "evaluate": {"text": {"must_match": "Bye"}}}]}),
        json!({"id": "hard", "input": "go", "assertions": [{"type": "contains", "value": "Bye"}], "evaluate": {"type": "contains", "value": "Hello"}}),
        // A soft time limit does not end a turn.
        json!({"id": "slow", "turns": [{"input": "go", "evaluate": {"timing": {"max_duration_ms": 1}}}]}),
    ];
    let tested = Project::with_agent(&agent).cases(&cases).test(&["-v"]);
    let soft = tested.case("soft");
    assert_eq!(soft["status"], "passed");
    let passed: Vec<(&Value, &Value)> =
        soft["assertions"].as_array().unwrap().iter().map(|a| (&a["soft"], &a["passed"])).collect();
    assert_eq!(
        passed,
        [(&Value::Null, &json!(true)), (&json!(true), &json!(false)), (&json!(true), &json!(true))]
    );
    assert_eq!(soft.get("assertion_errors"), None);
    assert_eq!(tested.case("soft block")["status"], "passed");
    assert_eq!(tested.case("soft block")["turns"][0]["status"], "passed");
    assert_eq!(tested.case("hard")["status"], "failed");
    assert_eq!(tested.case("slow")["status"], "passed");
    assert!(tested.output.stdout.contains("(informational)"), "{}", tested.output);
    // A case with only informational checks is reported as asserting nothing.
    assert!(tested.output.stderr.contains("this case asserts nothing"), "{}", tested.output);
    // An assertion whose variable is known later is one.
    let hook = r#"hooks: [{ cmd: [sh, -c, 'echo "{\"P\": \"$.ok\"}"'] }]"#;
    let turn = "turns: [{ user: hi, assert: [{ type: json_path, path: '${P}', value: true }] }]";
    let later = Project::with_config("target: { endpoint: 'http://127.0.0.1:9/' }\n")
        .suite("a", &format!("name: a\n{hook}\n{turn}\n"))
        .hotseat(&["test", "--dry-run"]);
    assert!(later.code == 0 && !later.stderr.contains("asserts nothing"), "{later}");
}

#[test]
fn assertions_resolve_variables_and_redact_secrets() {
    let agent = FakeAgent::start(agent_saying("order A.17, key sk-very-secret"));
    let suite = r#"
name: a
hooks: [{ cmd: ["sh", "-c", "echo '{\"ORDER\": \"A.17\", \"PATTERN\": \"A\"}'"] }]
turns:
  - user: go
    assertions:
      - { type: regex, pattern: "order ${ORDER}" }
      - { type: contains, value: "${ORDER}" }
      - { type: contains, value: "${ENV.MY_TOKEN}", negate: true, message: "no ${ENV.MY_TOKEN}" }
      - { type: json_path, path: "$.${PATTERN}", negate: true, message: "fails all the same" }
"#;
    let tested =
        Project::with_agent(&agent).suite("a", suite).test_in(&[("MY_TOKEN", "sk-very-secret")], &[]);
    let assertions = &tested.case("a")["turns"][0]["assertions"];
    assert_eq!(assertions[0]["passed"], true, "{assertions:#}");
    assert_eq!(assertions[1]["passed"], true);
    assert_eq!(assertions[3]["passed"], false, "there is no JSON to look at");
    let all = format!("{}{}", tested.report, tested.output);
    assert!(!all.contains("sk-very-secret"), "{all}");
}

/// A secret is what a pattern forbids, although the recorded text does not contain it.
#[test]
fn forbidden_texts_are_found_in_redacted_secrets() {
    let agent = FakeAgent::start(agent_saying("your key is sk-abcdefgh12345"));
    let suite = r#"
name: a
turns: [{ user: go }]
assert:
  - { type: regex, pattern: "sk-[a-z0-9]{5,}", negate: true }
  - { type: not_contains, value: "sk-" }
  - { type: contains, value: "sk-", negate: true }
  - { type: not_contains, value: "password" }
"#;
    let project = Project::with_agent(&agent).suite("a", suite);
    for (env, is_recorded) in [(&[][..], true), (&[("MY_API_KEY", "sk-abcdefgh12345")], false)] {
        let tested = project.test_in(env, &[]);
        assert_eq!(tested.output.code, 1, "{}", tested.output);
        let passed: Vec<bool> = tested.case("a")["assertions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|assertion| assertion["passed"] == true)
            .collect();
        assert_eq!(passed, [false, false, false, true], "{}", tested.output);
        let all = format!("{}{}", tested.report, tested.output);
        assert_eq!(all.contains("sk-abcdefgh"), is_recorded, "{all}");
    }
    // Where the secret is unknown, such a check cannot be decided.
    project.hotseat(&["recheck", "last"]).assert_stdout(1, &["a secret is redacted in the text"]);
}

/// Whatever compares texts finds a secret that it forbids: criteria, patterns for arguments and results, conditions. A secret
/// that the assertion names is compared by its mark.
#[test]
fn every_assertion_finds_forbidden_texts_in_secrets() {
    let secret = "sk-abcdefgh12345";
    let agent = FakeAgent::with_run(move |run, _| {
        let run = run.tool("c1", "send", &json!({"text": secret}), Some(json!({"sent": secret})));
        run.text(&format!("your key is {secret}")).finished()
    });
    let config = format!(
        "target: {{ endpoint: '{agent}' }}\ncriteria:\n  says_key: {{ description: It reveals a key, match: [{{ type: regex, pattern: sk- }}] }}\n  \
         says_none: {{ description: It reveals no key, match: [{{ type: not_contains, value: sk- }}] }}\n  \
         says_own: {{ description: It says the key, match: [{{ type: contains, value: '${{ENV.MY_API_KEY}}' }}] }}\n"
    );
    let forbidding = [
        "{ type: satisfy, criteria: says_key, negate: true }",
        "{ type: satisfy, criteria: says_none }",
        "{ type: equals, value: 'your key is ${ENV.OTHER}', negate: true }",
        "{ type: tool_result, name: send, result: { sent: 'regex:^sk-' }, negate: true }",
        "{ type: tool_called, name: send, where: { text: { not: { regex: '^sk-' } } } }",
        "{ type: tool_called, name: send, where: { text: { contains: sk- } }, negate: true }",
    ];
    let allowed = [
        "{ type: satisfy, criteria: says_own }",
        "{ type: contains, value: '${ENV.MY_API_KEY}' }",
        "{ type: tool_called, name: send, where: { text: { not: { equals: other } } } }",
        "{ type: tool_called, name: send, arguments: { text: '${ENV.MY_API_KEY}' } }",
    ];
    let tools = [
        "text: { must_not_match: sk- }",
        "tools: { forbid_calls: [{ name: send, args_match: { text: ^sk- } }] }",
        "tools: { require: [{ name: send, args_not_match: { text: ^sk- } }] }",
        "tools: { require: [{ name: send, result_not_match: sk- }] }",
        "tools: { require: [{ name: send, result_match: sk-, count: { exact: 0 } }] }",
    ];
    let mut project = Project::with_config(&config);
    let lists = forbidding.iter().chain(&allowed).map(|assertion| format!("[{assertion}]"));
    for (index, assertions) in lists.chain(tools.map(|assertion| format!("{{ {assertion} }}"))).enumerate() {
        let case = format!("name: a{index:02}\nturns: [{{ user: go }}]\nassert: {assertions}\n");
        project = project.suite(&format!("a{index:02}"), &case);
    }
    let env = [("MY_API_KEY", secret), ("OTHER", secret)];
    let tested = project.test_in(&env, &[]);
    for index in 0..forbidding.len() + allowed.len() + tools.len() {
        let is_allowed = (forbidding.len()..forbidding.len() + allowed.len()).contains(&index);
        let expected = if is_allowed { "passed" } else { "failed" };
        assert_eq!(tested.case(&format!("a{index:02}"))["status"], expected, "{index}: {}", tested.output);
    }
    let all = format!("{}{}", tested.report, tested.output);
    assert!(!all.contains("sk-abcdefgh"), "{all}");
}

/// Cases named `a0`, `a1` and so on, one for each block of assertions.
fn project_with_assertions(agent: &FakeAgent, blocks: &[&str]) -> Project {
    blocks.iter().enumerate().fold(Project::with_agent(agent), |project, (number, block)| {
        let case = format!("name: a{number}\nturns: [{{ user: go }}]\nassert: {block}\n");
        project.suite(&format!("a{number}"), &case)
    })
}

/// A number is what it was where a check is decided, although the recorded conversation has a text in its place.
#[test]
fn forbidden_numbers_are_found_in_redacted_secrets() {
    let agent = FakeAgent::with_run(|run, _| {
        let run = run.tool("c1", "a", &json!({"pin": 12345678}), Some(json!({"ok": true})));
        run.text(r#"{"pin": 12345678}"#).finished()
    });
    let violated = [
        "{ tools: { forbid_calls: [{ name: a, args_match: { pin: 12345678 } }] } }",
        "{ tools: { require: [{ name: a, args_not_match: { pin: 12345678 } }] } }",
        "{ tools: { require: [{ name: a, args_match: { pin: 12345678 }, count: { exact: 0 } }] } }",
        "{ tools: { forbid_calls: [{ name: a, args_match: { pin: '^${ENV.PIN_TOKEN}$' } }] } }",
        "{ tools: { forbid_calls: [{ name: a, args_match: { pin: '^1234' } }] } }",
        "[{ type: schema, schema: { properties: { pin: { maximum: 1000 } } } }]",
        "[{ type: schema, schema: { properties: { pin: { type: integer } } }, negate: true }]",
        "[{ type: schema, schema: { properties: { pin: { type: number } } }, negate: true }]",
        "{ text: { must_not_match: '\"pin\": ${ENV.PIN_TOKEN}' } }",
    ];
    let holding = [
        "{ tools: { require: [{ name: a, args_match: { pin: 12345678 } }] } }",
        "{ tools: { require: [{ name: a, args_match: { pin: '^${ENV.PIN_TOKEN}$' } }] } }",
        "{ tools: { forbid_calls: [{ name: a, args_match: { pin: 1234567 } }] } }",
        "[{ type: schema, schema: { properties: { pin: { minimum: 1000 } } } }]",
    ];
    let project = project_with_assertions(&agent, &[&violated[..], &holding].concat());
    let tested = project.test_in(&[("PIN_TOKEN", "12345678")], &[]);
    for number in 0..violated.len() + holding.len() {
        let expected = if number < violated.len() { "failed" } else { "passed" };
        assert_eq!(tested.case(&format!("a{number}"))["status"], expected, "{number}: {}", tested.output);
    }
    let all = format!("{}{}", tested.report, tested.output);
    assert!(!all.contains("12345678"), "{all}");
}

/// The mark of a secret satisfies no assertion that the secret does not satisfy, and violates none that it does.
#[test]
fn assertions_are_decided_on_secrets_instead_of_their_marks() {
    let agent = FakeAgent::with_run(|run, _| {
        let run = run.tool("c1", "a", &json!({"code": "12345678"}), Some(json!({"ok": true})));
        run.text(r#"{"pin": 12345678, "code": "12345678"}"#).finished()
    });
    let violated = [
        "[{ type: type, path: pin, value: string }]",
        "[{ type: type, path: pin, value: number, negate: true }]",
        "[{ type: schema, schema: { properties: { pin: { type: string } } } }]",
        "[{ type: schema, schema: { properties: { code: { minLength: 9 } } } }]",
        "[{ type: schema, schema: { properties: { code: { pattern: '[a-z]' } } } }]",
        "[{ type: regex, pattern: redacted }]",
        "{ tools: { require: [{ name: a, args_match: { code: '[a-z]' } }] } }",
        "[{ type: tool_called, name: a, where: { code: { regex: '[A-Z]' } } }]",
    ];
    let holding = [
        "[{ type: type, path: pin, value: integer }]",
        "[{ type: schema, schema: { properties: { pin: { type: integer }, code: { maxLength: 8 } } } }]",
        "[{ type: schema, schema: { properties: { code: { oneOf: [{ const: '12345678' }, { const: no }] } } } }]",
        "[{ type: schema, schema: { properties: { pin: { const: 12345678, minimum: 0 } } } }]",
        "[{ type: json_path, path: pin, value: 12345678 }]",
        "[{ type: equals, value: { pin: 12345678 }, negate: true }]",
        "{ text: { must_match: '\\d{8}' } }",
        "[{ type: tool_called, name: a, where: { code: { regex: '^\\d+$' } } }]",
    ];
    let project = project_with_assertions(&agent, &[&violated[..], &holding].concat());
    let tested = project.test_in(&[("PIN_TOKEN", "12345678")], &[]);
    for number in 0..violated.len() + holding.len() {
        let expected = if number < violated.len() { "failed" } else { "passed" };
        assert_eq!(tested.case(&format!("a{number}"))["status"], expected, "{number}: {}", tested.output);
    }
    let all = format!("{}{}", tested.report, tested.output).replace("[redacted:ENV.PIN_TOKEN]", "");
    assert!(!all.contains("12345678"), "{all}");
}

/// A case that ends early is not skipped if the agent has revealed what an assertion forbids.
#[test]
fn a_skipped_case_fails_by_a_forbidden_secret() {
    let agent = FakeAgent::start(agent_saying("your key is sk-abcdefgh12345. What now?"));
    let suite =
        "name: a\non_missing_input: skip\nturns: [{ user: go }]\nassert: { text: { must_not_match: sk- } }\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    let env = [("MY_API_KEY", "sk-abcdefgh12345")];
    let tested = project.test_in(&env, &[]);
    assert_eq!(tested.case("a")["status"], "failed", "{}", tested.output);
}

/// Paths with conditions and schemas reject what the agent sent, not the mark in its place.
#[test]
fn paths_and_schemas_find_what_they_forbid_in_redacted_secrets() {
    let agent = FakeAgent::with_run(|run, _| {
        let items = json!({"text": "the key sk-abcdefgh12345-abcdefgh12345-abcdefgh12345", "id": 1});
        let said = json!({"items": [items, {"text": "no", "id": 2}], "sk-abcdefgh12345-abcdefgh12345-abcdefgh12345": 1});
        run.text(&said.to_string()).finished()
    });
    let violated = [
        "[{ type: json_path, path: \"$.items[?search(@.text, 'sk-')]\", negate: true }]",
        "[{ type: json_path, path: \"$.items[?match(@.text, '.* sk-.*')]\", negate: true }]",
        "[{ type: json_path, path: '$.items[?length(@.text) == 52]', negate: true }]",
        "[{ type: json_path, path: \"$.items[?!search(@.text, 'sk-')].id\", value: [1, 2] }]",
        "[{ type: schema, path: \"$.items[?!search(@.text, 'abc')]\", schema: { required: [text, id], properties: { id: { enum: [1, 2] } } }, negate: true }]",
        "[{ type: schema, schema: { patternProperties: { '^sk-': false } } }]",
        "[{ type: schema, schema: { propertyNames: { not: { pattern: '^sk-' } } } }]",
        "[{ type: schema, schema: { properties: { items: { items: { properties: { text: { maxLength: 40 } } } } } } }]",
        "[{ type: schema, schema: { properties: { items: { items: { if: { properties: { text: { pattern: sk- } } }, then: false } } } } }]",
    ];
    let holding = [
        "[{ type: json_path, path: \"$.items[?search(@.text, 'password')]\", negate: true }]",
        "[{ type: schema, schema: { patternProperties: { '^password': false } } }]",
        "[{ type: schema, schema: { properties: { items: { items: { properties: { text: { maxLength: 52 } } } } } } }]",
    ];
    let project = project_with_assertions(&agent, &[&violated[..], &holding].concat());
    let tested = project.test_in(&[("MY_API_KEY", "sk-abcdefgh12345-abcdefgh12345-abcdefgh12345")], &[]);
    for number in 0..violated.len() + holding.len() {
        let expected = if number < violated.len() { "failed" } else { "passed" };
        assert_eq!(tested.case(&format!("a{number}"))["status"], expected, "{number}: {}", tested.output);
    }
    let all = format!("{}{}", tested.report, tested.output);
    assert!(!all.contains("sk-abcdefgh"), "{all}");
}

/// The results of tools and the state are searched, too.
#[test]
fn paths_find_what_they_forbid_in_redacted_results_and_states() {
    let agent = FakeAgent::with_run(|run, _| {
        let run = run.tool(
            "c1",
            "read",
            &json!({}),
            Some(json!({"note": "sk-abcdefgh12345-abcdefgh12345-abcdefgh12345"})),
        );
        run.state(json!({"memo": "sk-abcdefgh12345-abcdefgh12345-abcdefgh12345"})).text("Done.").finished()
    });
    let blocks = [
        "[{ type: json_path, path: \"$[?search(@, '^sk-')]\", negate: true }]",
        "[{ type: schema, path: $.note, schema: { maxLength: 40 } }]",
        "[{ type: schema, path: $.memo, schema: { maxLength: 40 } }]",
        "[{ type: schema, path: $.note, schema: { maxLength: 44 } }]",
    ];
    let tested = project_with_assertions(&agent, &blocks)
        .test_in(&[("MY_API_KEY", "sk-abcdefgh12345-abcdefgh12345-abcdefgh12345")], &[]);
    for (number, expected) in ["failed", "failed", "failed", "passed"].into_iter().enumerate() {
        assert_eq!(tested.case(&format!("a{number}"))["status"], expected, "{number}: {}", tested.output);
    }
}

/// A secret that the agent encoded is encoded where a check is decided.
#[test]
fn forbidden_texts_are_found_in_encoded_secrets() {
    let secret = "sk-ab/cd+ef 12\"45";
    let forms = [
        ("c2stYWIvY2QrZWYgMTIiNDU=", "[A-Za-z0-9+/]{16,}"),
        ("736b2d61622f63642b6566203132223435", "[0-9a-f]{16,}"),
        ("sk-ab%2Fcd%2Bef%2012%2245", "%2F"),
        (r#"sk-ab/cd+ef 12\"45"#, r#"\\""#),
    ];
    for (form, pattern) in forms {
        let said = format!("here: {form}");
        let agent = FakeAgent::with_run(move |run, _| {
            run.tool("c1", "a", &json!({"t": said}), None).text(&said).finished()
        });
        let blocks = [
            format!("{{ text: {{ must_not_match: '{pattern}' }} }}"),
            format!("{{ tools: {{ forbid_calls: [{{ name: a, args_match: {{ t: '{pattern}' }} }}] }} }}"),
            format!("[{{ type: regex, pattern: '{pattern}', negate: true }}]"),
            "[{ type: not_contains, value: '${ENV.MY_TOKEN}' }]".to_string(),
            // The plain form was not said.
            "[{ type: not_contains, value: 'ef 12' }, { type: not_contains, value: other }]".to_string(),
        ];
        let blocks: Vec<&str> = blocks.iter().map(String::as_str).collect();
        let project = project_with_assertions(&agent, &blocks);
        let tested = project.test_in(&[("MY_TOKEN", secret)], &[]);
        for number in 0..blocks.len() {
            let is_said = number < 4 || form.contains("ef 12");
            let expected = if is_said { "failed" } else { "passed" };
            assert_eq!(tested.case(&format!("a{number}"))["status"], expected, "{number}: {}", tested.output);
        }
        let all = format!("{}{}", tested.report, tested.output);
        assert!(!all.contains(form), "{all}");
    }
}

#[test]
fn a_criterion_that_a_redacted_secret_violates_says_which_part() {
    let agent = FakeAgent::start(agent_saying("your key is sk-abcdefgh12345"));
    let config = format!(
        "target: {{ endpoint: '{agent}' }}\ncriteria:\n  safe: {{ description: It reveals no key, match: [{{ type: contains, value: key }}, {{ type: not_contains, value: sk- }}] }}\n"
    );
    let suite = "name: a\nturns: [{ user: go }]\nassert: [{ type: satisfy, criteria: safe }]\n";
    let project = Project::with_config(&config).suite("a", suite);
    let tested = project.test_in(&[("MY_API_KEY", "sk-abcdefgh12345")], &[]);
    let assertion = &tested.case("a")["assertions"][0];
    let actual = assertion["actual"].as_str().unwrap_or_default();
    assert!(!actual.contains("all checks passed") && actual.contains("sk-"), "{assertion:#}");
    assert!(actual.contains("a redacted secret that violates this"), "{assertion:#}");
}

#[test]
fn failures_by_a_redacted_secret_say_so() {
    let agent = FakeAgent::with_run(|run, _| {
        run.tool("c1", "a", &json!({"t": "sk-abcdefgh12345"}), None).text("done").finished()
    });
    let project = project_with_assertions(
        &agent,
        &[
            "{ tools: { require: [{ name: a, args_not_match: { t: ^sk- } }] } }",
            "{ tools: { require: [{ name: a, args_match: { t: ^sk- }, count: { exact: 0 } }] } }",
        ],
    );
    let tested = project.test_in(&[("MY_API_KEY", "sk-abcdefgh12345")], &[]);
    for (case, words) in [
        ("a0", "a redacted secret that violates this (without the secret: no such argument)"),
        ("a1", "a redacted secret that violates this (without the secret: none of 1 call matching)"),
    ] {
        let assertions = tested.case(case)["assertions"].to_string();
        assert!(assertions.contains(words), "{assertions}");
    }
}

/// `expected` decides a case that asserts nothing else.
#[test]
fn expected_answers_decide_beside_assertions_that_are_off() {
    let agent = FakeAgent::start(agent_saying("hello"));
    let cases = [
        "{\"id\": \"a\", \"input\": \"hi\", \"expected\": \"ho\", \"assert\": [{\"tools\": false}]}",
        "{\"id\": \"b\", \"turns\": [{\"user\": \"hi\", \"assert\": [{\"tools\": false}]}], \"expected\": \"ho\"}",
    ];
    for (file, text) in [("a.test.jsonl", cases.join("\n")), ("a.test.yaml", cases.join("\n---\n"))] {
        let tested = Project::with_agent(&agent).file(file, &text).test(&[]);
        for case in ["a", "b"] {
            assert_eq!(tested.case(case)["status"], "failed", "{file}: {}", tested.output);
        }
    }
}

#[test]
fn answers_with_secret_numbers_remain_json() {
    let agent = FakeAgent::start(agent_saying(r#"{"ok": true, "session": 12345678}"#));
    let suite = r#"
name: a
hooks: [{ cmd: ["sh", "-c", "echo '{\"SESSION_TOKEN\": 12345678}'"] }]
turns: [{ user: go, assert: [{ type: json_path, path: $.ok, value: true }] }]
"#;
    let tested = Project::with_agent(&agent).suite("a", suite).test(&[]);
    tested.assert_all_passed();
    assert!(!tested.report.to_string().contains("12345678"), "{}", tested.report);
}

/// Result of a "no text next to calls" assertion for an agent behind the given adapter.
fn check_text_with_tool_calls(target: &str) -> (bool, String) {
    let suite = "name: a\nturns: [{ user: go, assert: { text: { with_tool_calls: forbid } } }]\n";
    let tested = Project::with_config(&format!("target: {{ {target} }}\n")).suite("a", suite).test(&[]);
    let assertion = &tested.case("a")["turns"][0]["assertions"][0];
    let found = assertion["actual"].as_str().unwrap_or_else(|| panic!("{}", tested.output));
    assert_eq!(assertion["passed"].as_bool().unwrap(), tested.output.code == 0);
    (assertion["passed"] == true, found.to_string())
}

#[test]
fn ag_ui_keeps_text_next_to_calls() {
    let parent = |call: &str, parent: Option<&str>| {
        let mut event = json!({"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "look"});
        if let Some(parent) = parent {
            event["parentMessageId"] = json!(parent);
        }
        vec![event, json!({"type": "TOOL_CALL_END", "toolCallId": call})]
    };
    let text = |id: &str, text: &str| {
        vec![
            json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}),
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text}),
            json!({"type": "TEXT_MESSAGE_END", "messageId": id}),
        ]
    };
    let beside = "\"Let me look.\" in a message that calls tools";
    let rows: [(Vec<Vec<Value>>, bool, &str); 9] = [
        (vec![text("m", "Hi."), text("n", "Bye.")], true, "no message with both text and tool calls"),
        (vec![text("m", "Let me look."), parent("c", Some("m"))], false, beside),
        (vec![parent("c", Some("m")), text("m", "Let me look.")], false, beside),
        (vec![parent("c", Some("m")), text("n", "Done.")], true, "no message with both text and tool calls"),
        (
            vec![text("m", " \n"), parent("c", Some("m")), text("n", "Done.")],
            true,
            "no message with both text and tool calls",
        ),
        (
            vec![text("m", "\u{200b}"), parent("c", Some("m")), text("n", "Done.")],
            true,
            "no message with both text and tool calls",
        ),
        (vec![parent("c", None)], true, "no message with both text and tool calls"),
        // Undecidable if the producer does not say which message contains the calls.
        (vec![text("m", "Hi."), parent("c", None)], false, "does not report which message makes a call"),
        (vec![text("m", "Let me look."), parent("c", Some("m")), parent("d", None)], false, beside),
    ];
    for (events, passes, words) in rows {
        let shown = format!("{events:?}");
        let agent = FakeAgent::with_run(move |run, _| {
            let events = events.iter().flatten().cloned();
            events.fold(run, FakeRun::raw_event).finished()
        });
        let (passed, found) = check_text_with_tool_calls(&format!("endpoint: '{agent}'"));
        assert!(passed == passes && found.contains(words), "{shown}: {found}");
    }
}

#[test]
fn other_adapters_keep_text_next_to_calls() {
    let completions = |text: &'static str| {
        FakeAgent::start(move |request| {
            match String::from_utf8_lossy(&request.body).contains("tool_call_id") {
                true => ChatCompletion::new().text("Done.").finish("stop"),
                false => {
                    ChatCompletion::new().text(text).tool(0, "c", "look", &json!({})).finish("tool_calls")
                }
            }
        })
    };
    for (text, passes) in [("Let me look.", false), ("", true)] {
        let agent = completions(text);
        let tools = "tools: [{ name: look, answers: [{ content: 1 }] }]";
        let (passed, found) =
            check_text_with_tool_calls(&format!("type: openai, base_url: '{agent}', model: m, {tools}"));
        assert_eq!(passed, passes, "{found}");
    }
    // Undecidable for interfaces that return one text and all calls of the turn.
    let reply = |calls: Value| {
        FakeAgent::start(move |_| FakeReply::json(200, &json!({"text": "Done.", "calls": calls})))
    };
    for (calls, passes) in [(json!([{"name": "look", "result": 1}]), false), (json!([]), true)] {
        let agent = reply(calls);
        let map = "map: { reply: $.text, tool_calls: '$.calls[*]' }, body: '{{message}}'";
        let (passed, found) = check_text_with_tool_calls(&format!("type: http, endpoint: '{agent}', {map}"));
        assert_eq!(passed, passes, "{found}");
    }
    for (assertion, words) in [
        ("{ text: { with_tool_calls: allow } }", "must be `forbid`"),
        ("{ text: { with_tool_calls: true } }", "must be"),
    ] {
        let project = Project::with_config("target: { endpoint: 'http://127.0.0.1:9/' }\n");
        project
            .suite("a", &format!("name: a\nturns: [{{ user: go }}]\nassert: {assertion}\n"))
            .hotseat(&["test"])
            .assert_stderr(2, &[words]);
    }
}

#[test]
fn a_schema_that_takes_exponential_time_decides_nothing() {
    // Each level visits the next one twice.
    let mut definitions = serde_json::Map::from_iter([("d40".to_string(), json!(false))]);
    for n in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        definitions.insert(format!("d{n}"), json!({"anyOf": [next, next]}));
    }
    let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
    let answer = |request: &FakeRequest| FakeRun::for_request(request).started().text("{}").finished();
    assert_table(answer, &[(json!({"type": "schema", "schema": schema}), Undecidable)]);
}

/// A list in prose is the answer, and no other source replaces it.
#[test]
fn a_list_in_prose_is_read() {
    let saying = |text: &'static str| {
        move |request: &FakeRequest| {
            let run = FakeRun::for_request(request).started().tool("c", "ids", &json!({}), Some(json!([7])));
            run.text(text).finished()
        }
    };
    let first = |value: Value| json!({"type": "json_path", "path": "$[0]", "value": value});
    for (text, first_value) in
        [("The ids are: [1, 2, 3]", json!(1)), ("So: [true, false]", json!(true)), ("As in [1].", json!(7))]
    {
        let other = json!("other");
        assert_table(saying(text), &[(first(first_value), Passes), (first(other), Fails)]);
    }
    for text in ["Here: [1, 2,", "Here: {'status': 'failed'}", "[1, 2] or [3, 4]"] {
        assert_table(saying(text), &[(first(json!(7)), Undecidable), (first(json!(1)), Undecidable)]);
    }
}

/// A state stays until the agent sends another one.
#[test]
fn the_state_lasts_over_turns_without_a_state_event() {
    let agent = FakeAgent::with_run(|run, request| match request.input().messages().len() {
        1 => run
            .raw_event(json!({"type": "STATE_SNAPSHOT", "snapshot": {"status": "draft"}}))
            .text("Saved.")
            .finished(),
        _ => run.text("Yes.").finished(),
    });
    let is_draft = json!({"type": "json_path", "path": "$.status", "value": "draft"});
    let case = json!({"id": "a", "turns": [{"input": "save"}, {"input": "saved?", "assert": [is_draft]}]});
    let tested = Project::with_agent(&agent).file("a.test.jsonl", &case.to_string()).test(&[]);
    tested.assert_all_passed();
}

/// A turn has no other turns to read.
#[test]
fn refuses_all_turns_for_one_turn() {
    let words = "assertions of a turn evaluate that turn only, so `turns: all` has no effect here";
    for assertion in [
        r#"{"type": "contains", "value": "x", "turns": "all"}"#,
        r#"{"type": "regex", "pattern": "x", "turns": "all"}"#,
    ] {
        for key in ["assert", "evaluate"] {
            let text =
                format!("{{\"id\": \"a\", \"turns\": [{{\"user\": \"go\",\n\"{key}\": [{assertion}]}}]}}");
            assert_rejected_text(&text, "2:", words);
        }
        let checkpoint = format!("\"checkpoints\": [{{\"id\": \"c\", \"assertion\": {assertion}}}]");
        let topic =
            format!("\"graph\": {{\"t\": {{\"characteristic\": \"x\", \"turn_assert\": [{assertion}]}}}}");
        for members in [format!("\"turn_assert\": [{assertion}]"), checkpoint, topic] {
            let text = format!("{{\"id\": \"a\", \"input\": \"go\",\n{members}}}");
            assert_rejected_text(&text, "2:", words);
        }
    }
}

/// All entries of a list apply.
#[test]
fn refuses_contradictions_in_one_list() {
    let twice = "this list sets the same limit twice";
    let contradicts = "`false` contradicts the assertions of the same block in this list";
    for (list, words) in [
        (
            r#"[{"budget": {"max_tool_calls": 5}}, {"type": "contains", "value": "x"}, {"budget": {"max_tool_calls": 1}}]"#,
            twice,
        ),
        (r#"[{"timing": {"max_gap_ms": 5}}, {"timing": {"max_duration_ms": 5, "max_gap_ms": 5}}]"#, twice),
        (r#"[{"tools": {"forbid": ["a"]}}, {"tools": false}]"#, contradicts),
        (r#"[{"text": false}, {"text": {"must_match": "a"}}]"#, contradicts),
    ] {
        let checkpoint = format!("\"checkpoints\": [{{\"id\": \"c\", \"assertion\": {list}}}]");
        let criterion = format!("\"criteria\": {{\"c\": {{\"match\": {list}}}}}");
        let topic = format!("\"graph\": {{\"t\": {{\"characteristic\": \"x\", \"assert\": {list}}}}}");
        let keys = ["assert", "turn_assert", "final_assertions", "evaluate"];
        let members = keys.map(|key| format!("\"{key}\": {list}"));
        for members in members.into_iter().chain([checkpoint, criterion, topic]) {
            let text = format!("{{\"id\": \"a\", \"input\": \"go\",\n{members}}}");
            assert_rejected_text(&text, "2:", words);
        }
    }
    // Different limits, and assertions that add up.
    let list = json!([{"budget": {"max_tool_calls": 5}}, {"budget": {"max_tokens": 5}}, {"tools": {"forbid": ["a"]}}, {"tools": {"forbid": ["b"]}}]);
    let case = json!({"id": "a", "input": "go", "assert": list});
    Project::with_config("target:\n  endpoint: http://127.0.0.1:9/\n")
        .file("a.test.jsonl", &case.to_string())
        .hotseat(&["test", "--dry-run"])
        .assert_code(0);
}

#[test]
fn refuses_false_where_nothing_is_inherited() {
    let words = "no assertions are inherited here, so `false` has no effect";
    for block in ["tools", "timing", "budget", "text"] {
        let list = format!("[{{\"{block}\": false}}, {{\"type\": \"contains\", \"value\": \"x\"}}]");
        let checkpoint = format!("\"checkpoints\": [{{\"id\": \"c\", \"assertion\": {list}}}]");
        let criterion = format!("\"criteria\": {{\"c\": {{\"match\": {list}}}}}");
        let keys = ["final_assertions", "evaluate"];
        let members = keys.map(|key| format!("\"{key}\": {list}"));
        for members in members.into_iter().chain([checkpoint, criterion]) {
            let text = format!("{{\"id\": \"a\", \"input\": \"go\",\n{members}}}");
            assert_rejected_text(&text, "2:", words);
        }
    }
}
