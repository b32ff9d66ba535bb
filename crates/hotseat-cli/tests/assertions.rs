//! Typed assertions, one table for each type: what passes, what fails, and what cannot pass by accident. Each table is
//! run against an agent, in JSON and in YAML, and each assertion that holds is made to fail by its negation.
#![cfg(unix)]

mod common;

use hotseat_testkit::agui::Run;
use hotseat_testkit::completions::Completion;
use hotseat_testkit::{FakeAgent, Reply, Request};
use serde_json::{Value, json};

use common::Project;

/// What an assertion comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    /// It holds; negated it does not.
    Held,
    /// It does not hold; negated it does.
    Failed,
    /// There is nothing to judge: it holds neither as it is nor negated.
    Nothing,
}
use Is::{Failed, Held, Nothing};

/// Runs each assertion on its own, plain and negated, on a conversation of one turn.
#[track_caller]
fn table<R: Into<Reply>>(agent: impl Fn(&Request) -> R + Send + Sync + 'static, rows: &[(Value, Is)]) {
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
        let tested = Project::of(&agent).file(name, &text).test(&[]);
        for (number, (assertion, expected)) in rows.iter().enumerate() {
            let passed = |negate: bool| tested.case(&format!("{number}-{negate}"))["status"] == "passed";
            let found = match (passed(false), passed(true)) {
                (true, false) => Held,
                (false, true) => Failed,
                (false, false) => Nothing,
                (true, true) => panic!("{assertion} holds, and so does its negation"),
            };
            let case = tested.case(&format!("{number}-false"));
            assert_eq!(found, *expected, "{name}: {assertion}: {:#}", case["assertions"]);
            // What fails, fails by this assertion, which stands in the report as it was written.
            let reported = &case["assertions"][0];
            assert_eq!(reported["type"], assertion["type"]);
            assert_eq!(reported["passed"], found == Held);
            assert!(reported["line"].as_u64().is_some() && reported["expected"].is_string());
        }
        assert_eq!(tested.output.code, 1, "{}", tested.output);
    }
}

/// An agent that says this.
fn says(text: &'static str) -> impl Fn(&Request) -> Run + Send + Sync {
    move |request| Run::of(request).started().text(text).finished()
}

/// Refused before anything is contacted, with these words, at this line and column.
#[track_caller]
fn refused(case: &Value, place: &str, words: &str) {
    refused_text(&case.to_string(), place, words);
}

#[track_caller]
fn refused_text(text: &str, place: &str, words: &str) {
    let project = Project::with("target:\n  endpoint: http://127.0.0.1:9/\n").file("a.test.jsonl", text);
    let output = project.hotseat(&["test"]);
    assert_eq!(output.code, 2, "{output}");
    let stderr = output.stderr.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ");
    assert!(stderr.contains(words), "{words:?} is not in {output}");
    assert!(stderr.contains(&format!("a.test.jsonl:{place}")), "{place:?} is not in {output}");
}

/// The same for one assertion of a case on one line.
#[track_caller]
fn refused_assertion(assertion: &str, words: &str) {
    let text = format!("{{\"id\": \"a\", \"input\": \"go\",\n \"assertions\": [{assertion}]}}");
    refused_text(&text, "2:", words);
    // Negation changes nothing.
    let negated = assertion.replacen('{', "{\"negate\": true, ", 1);
    refused_text(
        &format!("{{\"id\": \"a\", \"input\": \"go\",\n \"assertions\": [{negated}]}}"),
        "2:",
        words,
    );
}

#[test]
fn contains_and_not_contains() {
    table(
        says("Hi there, {\"n\": 42} a & b"),
        &[
            (json!({"type": "contains", "value": "Hi"}), Held),
            (json!({"type": "contains", "value": "hi"}), Failed),
            (json!({"type": "contains", "value": "a & b"}), Held),
            (json!({"type": "contains", "value": 42}), Held),
            (json!({"type": "contains", "value": 43}), Failed),
            (json!({"type": "contains", "value": "H.*i"}), Failed),
            (json!({"type": "not_contains", "value": "hi"}), Held),
            (json!({"type": "not_contains", "value": "Hi"}), Failed),
        ],
    );
    refused_assertion(r#"{"type": "contains", "value": ""}"#, "an empty text is contained in every answer");
    refused_assertion(r#"{"type": "contains"}"#, "has no `value`");
    refused_assertion(r#"{"type": "contains", "pattern": "x"}"#, "unknown key `pattern`");
}

#[test]
fn equals() {
    table(
        says("{\"b\": [1, 2.0], \"a\": {\"x\": 1, \"y\": null}}"),
        &[
            (json!({"type": "equals", "value": {"a": {"y": null, "x": 1.0}, "b": [1.0, 2]}}), Held),
            (json!({"type": "equals", "value": {"a": {"x": 1}, "b": [1, 2]}}), Failed),
            (json!({"type": "equals", "value": {"a": {"y": null, "x": 1}, "b": [2, 1]}}), Failed),
            (json!({"type": "equals", "value": {"a": {"y": null, "x": "1"}, "b": [1, 2]}}), Failed),
            (json!({"type": "equals", "value": null}), Failed),
        ],
    );
    table(
        says("OK"),
        &[
            (json!({"type": "equals", "value": "OK"}), Held),
            (json!({"type": "equals", "value": "ok"}), Failed),
            (json!({"type": "equals", "value": "O"}), Failed),
            (json!({"type": "equals", "value": true}), Failed),
        ],
    );
    // An agent that says nothing equals no value, and is unlike none.
    let silent = |request: &Request| Run::of(request).started().finished();
    table(
        silent,
        &[
            (json!({"type": "equals", "value": {}}), Nothing),
            (json!({"type": "equals", "value": null}), Nothing),
            (json!({"type": "equals", "value": "OK"}), Failed),
        ],
    );
}

#[test]
fn regex() {
    table(
        says("Your ORDER-17 is on its way.\nBye."),
        &[
            (json!({"type": "regex", "pattern": "order-\\d+"}), Failed),
            (json!({"type": "regex", "pattern": "(?i)order-\\d+"}), Held),
            (json!({"type": "regex", "pattern": "/order-\\d+/i"}), Held),
            (json!({"type": "regex", "value": "ORDER"}), Held),
            (json!({"type": "regex", "pattern": "^ORDER"}), Failed),
        ],
    );
    refused_assertion(r#"{"type": "regex", "pattern": "(unclosed"}"#, "does not compile");
    refused_assertion(r#"{"type": "regex", "pattern": ""}"#, "must be a regular expression");
    refused_assertion(r#"{"type": "regex"}"#, "has no `pattern`");
    refused_assertion(r#"{"type": "regex", "pattern": "a", "value": "b"}"#, "two spellings of one key");
}

#[test]
fn json_path() {
    let rows = [
        (json!({"type": "json_path", "path": "$.status", "value": "ok"}), Held),
        (json!({"type": "json_path", "path": "status", "value": "ok"}), Held),
        (json!({"type": "json_path", "path": "$.status", "value": "bad"}), Failed),
        (json!({"type": "json_path", "path": "$.status", "value": ["ok", "done"]}), Held),
        (json!({"type": "json_path", "path": "$.status", "value": ["bad"]}), Failed),
        (json!({"type": "json_path", "path": "$.n", "value": 3.0}), Held),
        (json!({"type": "json_path", "path": "$.n", "value": "3"}), Failed),
        (json!({"type": "json_path", "path": "$.none", "value": null}), Held),
        (json!({"type": "json_path", "path": "$.none"}), Held),
        (json!({"type": "json_path", "path": "$.tags", "value": ["db", "web"]}), Held),
        (json!({"type": "json_path", "path": "$.tags", "value": ["web", "db"]}), Failed),
        (json!({"type": "json_path", "path": "tags[0]", "value": "db"}), Held),
        (json!({"type": "json_path", "path": "$.tags[-1]", "value": "web"}), Held),
        (json!({"type": "json_path", "path": "$['a b']", "value": true}), Held),
        (json!({"type": "json_path", "path": "$.items[*].id", "value": [1, 2]}), Held),
        (json!({"type": "json_path", "path": "$.items[*].id", "value": [1]}), Failed),
        (json!({"type": "json_path", "path": "$.items[?@.id == 2].name", "value": "B"}), Held),
        // A value that is not there is neither null, nor unlike anything; but that it is not there can be asserted.
        (json!({"type": "json_path", "path": "$.missing", "value": null}), Nothing),
        (json!({"type": "json_path", "path": "$.missing", "value": "ok"}), Nothing),
        (json!({"type": "json_path", "path": "$.missing"}), Failed),
    ];
    let json = "{\"status\": \"ok\", \"n\": 3, \"none\": null, \"tags\": [\"db\", \"web\"], \"a b\": true, \"items\": [{\"id\": 1, \"name\": \"A\"}, {\"id\": 2, \"name\": \"B\"}]}";
    table(says(json), &rows);
    let fenced: &'static str = Box::leak(format!("Result:\n```json\n{json}\n```\nDone.").into_boxed_str());
    table(says(fenced), &rows);
    let prose: &'static str = Box::leak(format!("Here: {json} as you asked").into_boxed_str());
    table(says(prose), &rows);
    // Prose is no JSON, and never YAML.
    table(
        says("status: ok"),
        &[
            (json!({"type": "json_path", "path": "$.status", "value": "ok"}), Nothing),
            (json!({"type": "json_path", "path": "$.status"}), Nothing),
        ],
    );
    for path in ["$.a[", "$..", "a..b..", "$[?@.a ~ 1]", "$."] {
        refused_assertion(
            &format!("{{\"type\": \"json_path\", \"path\": \"{path}\"}}"),
            "this is not a JSON path",
        );
    }
    refused_assertion(r#"{"type": "json_path", "path": ""}"#, "`path` must be a text that is not empty");
    refused_assertion(r#"{"type": "json_path", "value": 1}"#, "has no `path`");
}

#[test]
fn json_path_looks_at_state_and_tool_results_behind_the_answer() {
    let agent = |request: &Request| {
        Run::of(request)
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
    table(
        agent,
        &[
            (json!({"type": "json_path", "path": "$.expense.status", "value": "submitted"}), Held),
            (json!({"type": "json_path", "path": "$.expense.status", "value": "draft"}), Failed),
            (json!({"type": "json_path", "path": "$.cart.total", "value": 12}), Held),
            (json!({"type": "json_path", "path": "$.status", "value": "of the state"}), Held),
            (json!({"type": "json_path", "path": "$.status", "value": "of a tool"}), Failed),
            (json!({"type": "json_path", "path": "$.nowhere", "value": 1}), Nothing),
        ],
    );
}

#[test]
fn value_type() {
    table(
        says("{\"count\": 3, \"part\": 0.5, \"name\": \"x\", \"list\": [], \"none\": null, \"yes\": true}"),
        &[
            (json!({"type": "type", "value": "object"}), Held),
            (json!({"type": "type", "value": "string"}), Failed),
            (json!({"type": "type", "path": "$.count", "value": "number"}), Held),
            (json!({"type": "type", "path": "$.count", "value": "integer"}), Held),
            (json!({"type": "type", "path": "$.part", "value": "integer"}), Failed),
            (json!({"type": "type", "path": "$.count", "value": "string"}), Failed),
            (json!({"type": "type", "path": "$.name", "value": "string"}), Held),
            (json!({"type": "type", "path": "$.list", "value": "array"}), Held),
            (json!({"type": "type", "path": "$.list", "value": "object"}), Failed),
            (json!({"type": "type", "path": "$.none", "value": "null"}), Held),
            (json!({"type": "type", "path": "$.yes", "value": "boolean"}), Held),
            (json!({"type": "type", "path": "$.missing", "value": "null"}), Nothing),
        ],
    );
    table(
        says("Three of them."),
        &[
            (json!({"type": "type", "value": "string"}), Held),
            (json!({"type": "type", "value": "number"}), Failed),
            (json!({"type": "type", "path": "$.count", "value": "number"}), Nothing),
        ],
    );
    refused_assertion(r#"{"type": "type", "value": "text"}"#, "`value` must be `string`, `number`");
    refused_assertion(r#"{"type": "type", "value": "string", "path": "$["}"#, "this is not a JSON path");
}

#[test]
fn schema() {
    let person = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}}});
    table(
        says("{\"name\": \"Ann\", \"age\": 3}"),
        &[
            (json!({"type": "schema", "schema": person}), Held),
            (json!({"type": "schema", "value": person}), Held),
            (json!({"type": "schema", "schema": {"required": ["email"]}}), Failed),
            (json!({"type": "schema", "schema": {"properties": {"age": {"maximum": 2}}}}), Failed),
            (json!({"type": "schema", "schema": {"type": "integer"}, "path": "$.age"}), Held),
            (json!({"type": "schema", "schema": {"pattern": "^B"}, "path": "$.name"}), Failed),
            (json!({"type": "schema", "schema": {"type": "integer"}, "path": "$.missing"}), Nothing),
        ],
    );
    table(says("no JSON here"), &[(json!({"type": "schema", "schema": person}), Nothing)]);
    for (schema, words) in [
        (r#"{"type": "strng"}"#, "this is not a JSON Schema"),
        (r#"{"required": "name"}"#, "this is not a JSON Schema"),
        (r#"{"pattern": "("}"#, "this is not a JSON Schema"),
        (r#"{"$ref": "http://127.0.0.1:9/schema"}"#, "this is not a JSON Schema"),
        (r#"{"$ref": "file:///etc/passwd"}"#, "this is not a JSON Schema"),
        ("{}", "this schema fits everything"),
        ("true", "this schema fits everything"),
        (r#"{"tpye": "object"}"#, "this schema fits everything"),
        ("7", "`schema` must be true or false or a mapping"),
    ] {
        refused_assertion(&format!("{{\"type\": \"schema\", \"schema\": {schema}}}"), words);
    }
}

/// An agent that books twice and looks something up.
fn books(request: &Request) -> Run {
    Run::of(request)
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
    table(
        books,
        &[
            (json!({"type": "tool_called", "name": "book"}), Held),
            (json!({"type": "tool_called", "value": "book"}), Held),
            (json!({"type": "tool_called", "name": "cancel"}), Failed),
            // Names are compared exactly.
            (json!({"type": "tool_called", "name": "boo"}), Failed),
            (json!({"type": "tool_called", "name": "lookup"}), Failed),
            (json!({"type": "tool_called", "name": "agents__lookup"}), Held),
            (json!({"type": "tool_called", "value": ["cancel", "book"]}), Held),
            (json!({"type": "tool_called", "value": ["cancel", "pay"]}), Failed),
            (json!({"type": "tool_called", "name": "book", "arguments": {"to": "Rome"}}), Held),
            (json!({"type": "tool_called", "name": "book", "args": {"seats": 2.0}}), Held),
            (json!({"type": "tool_called", "name": "book", "args": {"seats": "2"}}), Failed),
            (json!({"type": "tool_called", "name": "book", "args": {"who": {"age": 30}}}), Held),
            (json!({"type": "tool_called", "name": "book", "args": {"to": "Oslo", "seats": 2}}), Failed),
            (json!({"type": "tool_called", "name": "book", "args": {"to": "Oslo"}, "match": "exact"}), Held),
            (
                json!({"type": "tool_called", "name": "book", "args": {"to": "Rome"}, "match": "exact"}),
                Failed,
            ),
            (json!({"type": "tool_called", "value": {"name": "book", "arguments": {"to": "Oslo"}}}), Held),
            (json!({"type": "tool_called", "name": "book", "count": {"exact": 2}}), Held),
            (json!({"type": "tool_called", "name": "book", "count": {"max": 1}}), Failed),
            (json!({"type": "tool_called", "name": "forgotten"}), Held),
        ],
    );
    refused_assertion(r#"{"type": "tool_called"}"#, "needs the `name` of a tool");
    refused_assertion(r#"{"type": "tool_called", "name": "a", "value": "b"}"#, "both name the tool");
    refused_assertion(r#"{"type": "tool_called", "value": []}"#, "found an empty list");
    refused_assertion(r#"{"type": "tool_called", "name": ""}"#, "must be a text that is not empty");
    refused_assertion(r#"{"type": "tool_called", "name": "a", "match": "exact"}"#, "there are none");
    refused_assertion(
        r#"{"type": "tool_called", "name": "a", "count": {}}"#,
        "needs `exact`, `min` or `max`",
    );
}

#[test]
fn arguments_that_are_no_json_equal_nothing() {
    let agent = |request: &Request| {
        Run::of(request)
            .started()
            .raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "book"}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"to\": "}))
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c"}))
            .finished()
    };
    table(
        agent,
        &[
            (json!({"type": "tool_called", "name": "book"}), Held),
            (json!({"type": "tool_called", "name": "book", "args": {}}), Failed),
            (
                json!({"type": "tool_sequence", "calls": [{"name": "book", "args": {}}], "arguments": "subset"}),
                Failed,
            ),
            (json!({"type": "tool_sequence", "calls": ["book"]}), Held),
        ],
    );
}

#[test]
fn tool_result() {
    table(
        books,
        &[
            (json!({"type": "tool_result", "tool": "book"}), Held),
            (json!({"type": "tool_result", "value": {"tool": "book", "result": {"ok": true}}}), Held),
            (json!({"type": "tool_result", "tool": "book", "result": {"ok": true, "n": 1.0}}), Held),
            // Any call counts, but all that is expected holds of one and the same.
            (json!({"type": "tool_result", "tool": "book", "result": {"ok": false}}), Held),
            (json!({"type": "tool_result", "tool": "book", "result": {"ok": false, "n": 1}}), Failed),
            (json!({"type": "tool_result", "tool": "book", "result": {"ok": "true"}}), Failed),
            (
                json!({"type": "tool_result", "tool": "book", "result": {"message": "regex:(?i)setup.*complete"}}),
                Held,
            ),
            (
                json!({"type": "tool_result", "tool": "book", "result": {"message": "setup.*complete"}}),
                Failed,
            ),
            (json!({"type": "tool_result", "tool": "book", "result": {"list": [1, 2]}}), Held),
            (json!({"type": "tool_result", "tool": "book", "result": {"list": [1]}}), Failed),
            (json!({"type": "tool_result", "tool": "agents__lookup", "result": "plain text"}), Held),
            (json!({"type": "tool_result", "tool": "agents__lookup", "result": "plain"}), Failed),
            (json!({"type": "tool_result", "tool": "agents__lookup", "result": {"ok": true}}), Failed),
            // What was not called, or not answered, has no result that could be unlike anything.
            (json!({"type": "tool_result", "tool": "cancel", "result": {"ok": true}}), Nothing),
            (json!({"type": "tool_result", "tool": "cancel"}), Nothing),
            (json!({"type": "tool_result", "tool": "forgotten"}), Nothing),
        ],
    );
    refused_assertion(r#"{"type": "tool_result"}"#, "needs the name of a `tool`");
    refused_assertion(r#"{"type": "tool_result", "value": {"result": 1}}"#, "has no `tool`");
    refused_assertion(r#"{"type": "tool_result", "tool": "a", "result": "regex:("}"#, "does not compile");
    refused_assertion(
        r#"{"type": "tool_result", "tool": "a", "result": {"x": ["regex:"]}}"#,
        "fits everything",
    );
    refused_assertion(
        r#"{"type": "tool_result", "tool": "a", "value": {"tool": "a"}}"#,
        "write one or the other",
    );
}

#[test]
fn value() {
    let of = |of: &str, how: &str, what: Value| json!({"type": "value", "of": of, how: what});
    table(
        books,
        &[
            (of("turn_count", "equals", json!(1)), Held),
            (of("turn_count", "equals", json!(2)), Failed),
            (of("turn_count", "at_least", json!(1)), Held),
            (of("turn_count", "at_least", json!(2)), Failed),
            (of("turn_count", "at_most", json!(1)), Held),
            (of("turn_count", "at_most", json!(0)), Failed),
            (of("tool_names", "equals", json!(["book", "agents__lookup", "book", "forgotten"])), Held),
            (of("tool_names", "equals", json!(["book", "agents__lookup", "forgotten"])), Failed),
            (of("tool_names", "contains", json!(["forgotten", "book"])), Held),
            (of("tool_names", "contains", json!("book")), Held),
            (of("tool_names", "contains", json!(["book", "pay"])), Failed),
        ],
    );
    for (assertion, words) in [
        (
            r#"{"type": "value", "of": "turns", "equals": 1}"#,
            "`of` must be `turn_count`, `tool_names` or `topic_history`",
        ),
        (r#"{"type": "value", "of": "turn_count"}"#, "`value` needs one comparison"),
        (r#"{"type": "value", "of": "turn_count", "at_least": 1, "at_most": 2}"#, "needs one comparison"),
        (r#"{"type": "value", "of": "turn_count", "contains": "a"}"#, "`turn_count` is compared by `equals`"),
        (r#"{"type": "value", "of": "turn_count", "equals": ["a"]}"#, "`turn_count` is compared by `equals`"),
        (r#"{"type": "value", "of": "tool_names", "at_least": 1}"#, "`tool_names` is compared by `equals`"),
        (r#"{"type": "value", "of": "tool_names", "equals": 1}"#, "`tool_names` is compared by `equals`"),
        (
            r#"{"type": "value", "of": "topic_history", "contains": "greeting"}"#,
            "no topics are followed here",
        ),
    ] {
        refused_assertion(assertion, words);
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
    table(
        books,
        &[
            (json!({"type": "tool_sequence", "calls": made}), Held),
            (with(json!(["book", "agents__lookup", "book", "forgotten"]), "strict", "exact"), Held),
            (with(json!(["book", "book", "agents__lookup", "forgotten"]), "strict", "exact"), Failed),
            (with(json!(["book", "agents__lookup", "book"]), "strict", "exact"), Failed),
            (with(json!([]), "strict", "exact"), Failed),
            (with(swapped.clone(), "strict", "subset"), Failed),
            (with(swapped.clone(), "unordered", "subset"), Held),
            (with(swapped.clone(), "unordered", "exact"), Failed),
            (with(swapped.clone(), "unordered", "ignored"), Held),
            (with(json!(["book", "book", "agents__lookup"]), "unordered", "exact"), Failed),
            (
                with(json!(["book", "book", "agents__lookup", "forgotten", "pay"]), "unordered", "exact"),
                Failed,
            ),
            (with(json!(["book", "book", "agents__lookup", "forgotten", "pay"]), "subset", "exact"), Held),
            (with(json!(["book", "agents__lookup", "forgotten"]), "subset", "exact"), Failed),
            (with(json!([]), "subset", "exact"), Failed),
            (with(json!(["book"]), "superset", "exact"), Held),
            (with(json!(["book", "book", "book"]), "superset", "exact"), Failed),
            (with(json!([{"name": "book", "args": {"to": "Oslo"}}, "forgotten"]), "superset", "exact"), Held),
            (with(json!([{"name": "book", "args": {"to": "Paris"}}]), "superset", "subset"), Failed),
            (with(json!([{"name": "book", "args": {"to": "Paris"}}]), "superset", "ignored"), Held),
            (with(json!(["book", "book", "forgotten"]), "in_order", "exact"), Held),
            (with(made.clone(), "in_order", "exact"), Held),
            (with(json!(["book", "book", "agents__lookup"]), "in_order", "exact"), Failed),
            (with(json!(["book", "book", "book"]), "in_order", "exact"), Failed),
            (with(json!([{"name": "book", "args": {"to": "Oslo"}}, "book"]), "in_order", "exact"), Failed),
            (only(&["forgotten"], json!(["forgotten"]), "strict"), Held),
            (only(&["forgotten"], json!([]), "strict"), Failed),
            (only(&["pay", "cancel"], json!([]), "strict"), Held),
            (only(&["book", "pay"], json!(["book", "book"]), "unordered"), Held),
            (only(&["book", "pay"], json!(["book", "book", "pay"]), "unordered"), Failed),
            // The first call fits both; only the other choice fulfils both.
            (
                with(
                    json!([{"name": "book", "args": {}}, {"name": "book", "args": {"to": "Rome"}}]),
                    "superset",
                    "subset",
                ),
                Held,
            ),
        ],
    );
    table(
        says("nothing to do"),
        &[
            (with(json!([]), "strict", "exact"), Held),
            (with(json!(["book"]), "subset", "exact"), Held),
            (with(json!(["book"]), "superset", "exact"), Failed),
        ],
    );
    refused_assertion(r#"{"type": "tool_sequence"}"#, "has no `calls`");
    refused_assertion(
        r#"{"type": "tool_sequence", "calls": ["a"], "order": "any"}"#,
        "`order` must be `strict`",
    );
    refused_assertion(r#"{"type": "tool_sequence", "calls": [{"nme": "a"}]}"#, "did you mean `name`?");
    for order in ["superset", "in_order"] {
        let nothing = format!(r#"{{"type": "tool_sequence", "calls": [], "order": "{order}"}}"#);
        refused_assertion(&nothing, "asserts nothing");
    }
    refused_assertion(
        r#"{"type": "tool_sequence", "calls": ["a", {"name": "b"}], "only": ["b"]}"#,
        "`a` is expected, and `only` leaves its calls out",
    );
    refused_assertion(r#"{"type": "tool_sequence", "calls": ["a"], "only": []}"#, "not empty");
}

#[test]
fn what_is_no_assertion_is_refused() {
    refused_assertion(r#"{"type": "contain", "value": "x"}"#, "did you mean `contains`?");
    refused_assertion(r#"{"typ": "contains", "value": "x"}"#, "did you mean `type`?");
    refused_assertion(r#"{"value": "x"}"#, "has no `type`");
    refused_assertion(r#"{"type": 3, "value": "x"}"#, "`type` must be one of `contains`");
    refused_assertion(
        r#"{"type": "agent", "use": "agents:judge", "value": "be polite"}"#,
        "no agent is called `judge`",
    );
    refused_assertion(
        r#"{"type": "script", "use": "scripts:tests.validate"}"#,
        "there is no script for `scripts:tests.validate`",
    );
    refused_assertion(r#"{"type": "contains", "value": "x", "massage": "y"}"#, "did you mean `message`?");
    refused(
        &json!({"id": "a", "input": "go", "assertions": "contains"}),
        "1:",
        "must be false, a mapping or a list",
    );
    refused(&json!({"id": "a", "input": "go", "assertions": []}), "1:", "found an empty list");
    refused(&json!({"id": "a", "input": "go", "assertions": [{}]}), "1:", "this asserts nothing");
    refused(&json!({"id": "a", "input": "go", "assertions": ["contains"]}), "1:", "must be a mapping");
    refused(
        &json!({"id": "a", "input": "go", "asserts": [{"type": "contains", "value": "x"}]}),
        "1:",
        "unknown key `asserts`",
    );
    let both = json!({"id": "a", "input": "go", "assert": [{"type": "contains", "value": "x"}], "assertions": [{"type": "contains", "value": "y"}]});
    refused(&both, "1:", "`assert` and `assertions` are two spellings of one key");
}

#[test]
fn a_block_and_a_list_are_two_spellings() {
    let agent = FakeAgent::start(books);
    let cases = [
        json!({"id": "block", "input": "go", "assert": {"tools": {"require": [{"name": "book", "count": {"exact": 2}}]}, "text": {"must_match": "Done"}}}),
        json!({"id": "one", "input": "go", "assert": {"type": "tool_called", "name": "book"}}),
        json!({"id": "mixed", "input": "go", "assertions": [{"type": "contains", "value": "Done"}, {"tools": {"forbid": ["cancel"]}}, {"timing": {"max_duration_ms": 60000}}]}),
        json!({"id": "mixed fails", "input": "go", "assertions": [{"type": "contains", "value": "Done"}, {"tools": {"forbid": ["book"]}}]}),
    ];
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    let tested = Project::of(&agent).file("a.test.jsonl", &lines.join("\n")).test(&[]);
    for (name, status) in
        [("block", "passed"), ("one", "passed"), ("mixed", "passed"), ("mixed fails", "failed")]
    {
        assert_eq!(tested.case(name)["status"], status, "{name}\n{}", tested.output);
    }
    assert_eq!(tested.case("mixed")["assertions"].as_array().map(Vec::len), Some(3));
}

#[test]
fn all_that_fails_is_said_each_in_its_own_words() {
    let agent = FakeAgent::start(says("Hello."));
    let case = json!({"id": "a", "input": "go", "assertions": [
        {"type": "contains", "value": "Hello"},
        {"type": "contains", "value": "Bye", "message": "it says goodbye"},
        {"type": "regex", "pattern": "^x"},
    ]});
    let tested = Project::of(&agent).file("a.test.json", &json!([case]).to_string()).test(&[]);
    let failed = tested.case("a");
    assert_eq!(
        failed["assertion_errors"],
        json!(["it says goodbye", "expected what the agent says fits /^x/; found \"Hello.\""])
    );
    let written = &failed["assertions"][1];
    assert_eq!(
        (&written["value"], &written["message"], &written["passed"]),
        (&json!("Bye"), &json!("it says goodbye"), &json!(false))
    );
    assert!(tested.output.stdout.contains("✗ it says goodbye"), "{}", tested.output);
}

#[test]
fn what_is_evaluated_decides_nothing() {
    let agent = FakeAgent::start(says("Hello."));
    let cases = [
        json!({"id": "soft", "input": "go", "assertions": [{"type": "contains", "value": "Hello"}], "evaluate": [{"type": "contains", "value": "Bye"}, {"type": "contains", "value": "Hell"}]}),
        json!({"id": "soft block", "turns": [{"input": "go", "evaluate": {"text": {"must_match": "Bye"}}}]}),
        json!({"id": "hard", "input": "go", "assertions": [{"type": "contains", "value": "Bye"}], "evaluate": {"type": "contains", "value": "Hello"}}),
        // A soft limit on time does not end a turn.
        json!({"id": "slow", "turns": [{"input": "go", "evaluate": {"timing": {"max_duration_ms": 1}}}]}),
    ];
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    let tested = Project::of(&agent).file("a.test.jsonl", &lines.join("\n")).test(&["-v"]);
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
    assert!(tested.output.stdout.contains("(measured only)"), "{}", tested.output);
    // A case that only measures is said to assert nothing.
    assert!(tested.output.stderr.contains("this case asserts nothing"), "{}", tested.output);
}

#[test]
fn variables_are_filled_in_and_secrets_taken_out() {
    let agent = FakeAgent::start(says("order A.17, key sk-very-secret"));
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
    let tested = Project::of(&agent).suite("a", suite).test_in(&[("MY_TOKEN", "sk-very-secret")], &[]);
    let assertions = &tested.case("a")["turns"][0]["assertions"];
    assert_eq!(assertions[0]["passed"], true, "{assertions:#}");
    assert_eq!(assertions[1]["passed"], true);
    assert_eq!(assertions[3]["passed"], false, "there is no JSON to look at");
    let all = format!("{}{}", tested.report, tested.output);
    assert!(!all.contains("sk-very-secret"), "{all}");
}

/// What an assertion that the agent says nothing beside calls comes to, for an agent that is reached in this way.
fn beside_calls(target: &str) -> (bool, String) {
    let suite = "name: a\nturns: [{ user: go, assert: { text: { beside_calls: forbid } } }]\n";
    let tested = Project::with(&format!("target: {{ {target} }}\n")).suite("a", suite).test(&[]);
    let assertion = &tested.case("a")["turns"][0]["assertions"][0];
    let found = assertion["actual"].as_str().unwrap_or_else(|| panic!("{}", tested.output));
    assert_eq!(assertion["passed"].as_bool().unwrap(), tested.output.code == 0);
    (assertion["passed"] == true, found.to_string())
}

#[test]
fn text_beside_calls_over_ag_ui() {
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
    let rows: [(Vec<Vec<Value>>, bool, &str); 8] = [
        (vec![text("m", "Hi."), text("n", "Bye.")], true, "no message both"),
        (vec![text("m", "Let me look."), parent("c", Some("m"))], false, beside),
        (vec![parent("c", Some("m")), text("m", "Let me look.")], false, beside),
        (vec![parent("c", Some("m")), text("n", "Done.")], true, "no message both"),
        (vec![text("m", " \n"), parent("c", Some("m")), text("n", "Done.")], true, "no message both"),
        (vec![parent("c", None)], true, "no message both"),
        // A producer that does not say which message calls leaves it open.
        (vec![text("m", "Hi."), parent("c", None)], false, "does not tell which message makes a call"),
        (vec![text("m", "Let me look."), parent("c", Some("m")), parent("d", None)], false, beside),
    ];
    for (events, passes, words) in rows {
        let shown = format!("{events:?}");
        let agent = FakeAgent::start(move |request| {
            let events = events.iter().flatten().cloned();
            events.fold(Run::of(request).started(), Run::raw_event).finished()
        });
        let (passed, found) = beside_calls(&format!("endpoint: '{}'", agent.url()));
        assert!(passed == passes && found.contains(words), "{shown}: {found}");
    }
}

#[test]
fn text_beside_calls_of_other_agents() {
    let completions = |text: &'static str| {
        FakeAgent::start(move |request| {
            match String::from_utf8_lossy(&request.body).contains("tool_call_id") {
                true => Completion::new().text("Done.").finish("stop"),
                false => Completion::new().text(text).tool(0, "c", "look", &json!({})).finish("tool_calls"),
            }
        })
    };
    for (text, passes) in [("Let me look.", false), ("", true)] {
        let agent = completions(text);
        let tools = "tools: [{ name: look, answers: [{ content: 1 }] }]";
        let (passed, found) =
            beside_calls(&format!("type: openai, base_url: '{}', model: m, {tools}", agent.url()));
        assert_eq!(passed, passes, "{found}");
    }
    // An interface that gives one text and the calls of a whole turn says nothing of it.
    let reply =
        |calls: Value| FakeAgent::start(move |_| Reply::json(200, &json!({"text": "Done.", "calls": calls})));
    for (calls, passes) in [(json!([{"name": "look", "result": 1}]), false), (json!([]), true)] {
        let agent = reply(calls);
        let map = "map: { reply: $.text, tool_calls: '$.calls[*]' }, body: '{{message}}'";
        let (passed, found) = beside_calls(&format!("type: http, endpoint: '{}', {map}", agent.url()));
        assert_eq!(passed, passes, "{found}");
    }
    for (assertion, words) in [
        ("{ text: { beside_calls: allow } }", "must be `forbid`"),
        ("{ text: { beside_calls: true } }", "must be"),
    ] {
        let project = Project::with("target: { endpoint: 'http://127.0.0.1:9/' }\n");
        let output = project
            .suite("a", &format!("name: a\nturns: [{{ user: go }}]\nassert: {assertion}\n"))
            .hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{output}");
    }
}
