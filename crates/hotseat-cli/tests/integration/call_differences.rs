//! Failures of checks of tool calls name the arguments that differ, on every output.
use hotseat_testkit::FakeAgent;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::common::{Project, TestRun};

/// An agent that books in its answer to `book`, and calls `search` for anything else.
fn booking_agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let number = request.user_texts().len();
        let run = match request.last_user_text().as_str() {
            "book" => run
                .tool("b-1", "book", &json!({"to": "Oslo", "seats": 4}), Some(json!({"ok": false, "left": 3})))
                .tool(
                    "b-2",
                    "book",
                    &json!({"to": "Rome", "seats": "2", "stops": [{"at": "Linz", "hours": 3}], "note": "asap"}),
                    Some(json!({"ok": true, "id": "R-7"})),
                ),
            _ => run.tool(&format!("s-{number}"), "search", &json!({"to": "Rome"}), Some(json!([]))),
        };
        run.text("Done.").finished()
    })
}

fn run(turns: &str, assertions: &str) -> (Project, TestRun) {
    let agent = booking_agent();
    let project = Project::with_agent(&agent)
        .suite("a", &format!("name: a\nturns: [{turns}]\nassert:\n{assertions}\n"));
    let tested = project.test(&[
        "-o",
        "out/junit.xml",
        "-o",
        "out/page.html",
        "-o",
        "out/short.md",
        "-o",
        "out/lines.jsonl",
    ]);
    assert_eq!(tested.output.code, 1, "{}", tested.output);
    (project, tested)
}

/// The comparison of the only failed check.
#[track_caller]
fn comparison(tested: &TestRun) -> Value {
    let checks = tested.case("a")["assertions"].as_array().expect("checks");
    let failed: Vec<&Value> = checks.iter().filter(|check| check["passed"] == false).collect();
    assert_eq!(failed.len(), 1, "{checks:#?}");
    assert!(failed[0]["comparison"].is_object(), "{:#}", failed[0]);
    failed[0]["comparison"].clone()
}

/// Path, expected value, actual value and reason of each difference of the first missing call.
#[track_caller]
fn differences(tested: &TestRun) -> Vec<[String; 4]> {
    let nearest = comparison(tested)["missing"][0]["nearest"].clone();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_string();
    let all = nearest["differences"].as_array().unwrap_or_else(|| panic!("{nearest:#}\n{}", tested.output));
    all.iter().map(|one| ["path", "expected", "got", "reason"].map(|key| text(&one[key]))).collect()
}

fn rows(expected: &[[&str; 4]]) -> Vec<[String; 4]> {
    expected.iter().map(|row| row.map(str::to_string)).collect()
}

/// The lines of the failed check on the console, from the actual value on.
fn got(tested: &TestRun) -> String {
    let text = &tested.output.stdout;
    let begin = text.find("= got:").unwrap_or_else(|| panic!("{text}"));
    text[begin..].split("\n\n").next().unwrap_or_default().to_string()
}

#[test]
fn typed_arguments_are_compared_with_the_nearest_call() {
    let assertion = r#"  - { type: tool_called, name: book, arguments: { to: Rome, seats: 2, stops: [{ at: Linz }, { at: Graz }] } }"#;
    let (project, tested) = run("{ user: find }, { user: book }", assertion);
    assert_eq!(
        differences(&tested),
        rows(&[["seats", "2", "\"2\"", "type"], ["stops.1", "{\"at\":\"Graz\"}", "-", "missing"]])
    );
    let nearest = &comparison(&tested)["missing"][0]["nearest"];
    assert_eq!((&nearest["turn"], &nearest["tool"]), (&json!(2), &json!("book")), "{nearest}");
    assert_snapshot!(got(&tested), @r#"
    = got: 0 of 2 calls matching
           |   nearest: book in turn 2
           |     argument  expected       got
           |     seats     2              "2"
           |               expected the number 2, got the text "2"
           |     stops.1   {"at":"Graz"}  missing
           |   - turn 2: book({"to":"Oslo","seats":4}) → {"ok":false,"left":3}
           |   - turn 2: book({"to":"Rome","seats":"2","stops":[{"at":"Linz","hours":3}],"note":"asap"})
           |     → {"ok":true,"id":"R-7"}
    "#);
    let message = tested.failure("a")["message"].as_str().unwrap();
    assert!(
        message.ends_with("got book in turn 2, where seats is \"2\", not 2 and stops.1 is missing"),
        "{message}"
    );
    // Every output names the argument and both values.
    let note = "expected the number 2, got the text";
    for (file, escaped) in [
        ("out/junit.xml", "&quot;"),
        ("out/page.html", "\\\""),
        ("out/lines.jsonl", "\\\""),
        ("out/short.md", "\""),
    ] {
        let text = project.workspace.read(file);
        assert!(text.contains("seats") && text.contains(note), "{file}: {text}");
        assert!(
            text.contains(&format!("{note} {escaped}2"))
                || file == "out/page.html"
                || file == "out/junit.xml",
            "{file}: {text}"
        );
    }
    let agent = booking_agent();
    project.workspace.file("hotseat.yaml", &format!("target:\n  endpoint: {agent}\n"));
    let narrow = project.command(&["test"]).env("COLUMNS", "40").run().stdout;
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    assert!(narrow.contains("seats\n") && narrow.contains("expected 2\n"), "{narrow}");
}

#[test]
fn every_kind_of_expectation_names_its_argument() {
    for (assertion, expected) in [
        (
            "  tools: { require: [{ name: book, args_match: { to: '^Rome$', stops.0.at: Graz, seats: '^2$' } }] }",
            &[["stops.0.at", "/Graz/", "\"Linz\"", "pattern"]][..],
        ),
        (
            "  tools: { require: [{ name: book, args_match: { to: '^Rome$', stops.4.at: Linz } }] }",
            &[["stops.4.at", "/Linz/", "-", "missing"]],
        ),
        (
            "  tools: { require: [{ name: book, args_match: { to: '^Rome$' }, result_match: declined }] }",
            &[["", "/declined/", "{\"ok\":true,\"id\":\"R-7\"}", "pattern"]],
        ),
        (
            "  - { type: tool_called, name: book, match: exact, arguments: { to: Rome, seats: '2', stops: [{ at: Linz, hours: 3 }] } }",
            &[["note", "-", "\"asap\"", "unexpected"]],
        ),
        (
            "  - { type: tool_called, name: book, where: { to: { equals: Rome }, seats: { one_of: [2, 3] } } }",
            &[["seats", "one of 2, 3", "\"2\"", "condition"]],
        ),
        (
            "  - { type: tool_called, name: book, where: { stops: { entries: [{ members: { at: { regex: Wels } } }] } } }",
            &[["stops.0.at", "matching /Wels/", "\"Linz\"", "pattern"]],
        ),
        (
            "  - { type: tool_called, name: book, where: { to: { not: { equals: Rome } }, note: { regex: p$ } } }",
            &[["to", "not \"Rome\"", "\"Rome\"", "condition"]],
        ),
        (
            "  - { type: tool_result, tool: book, result: { ok: true, id: 'regex:^S' } }",
            &[["id", "/^S/", "\"R-7\"", "pattern"]],
        ),
        (
            "  - { type: tool_sequence, order: superset, calls: [search, { name: book, arguments: { to: Oslo, seats: 5 } }] }",
            &[["seats", "5", "4", "value"]],
        ),
    ] {
        let (_, tested) = run("{ user: find }, { user: book }", assertion);
        assert_eq!(differences(&tested), rows(expected), "{assertion}\n{}", tested.output);
        let path = expected[0][0];
        let shown = if path.is_empty() { "the result" } else { path };
        let is_shown =
            got(&tested).lines().any(|line| line.trim_start_matches([' ', '|']).starts_with(shown));
        assert!(is_shown, "{assertion}\n{}", tested.output);
    }
}

#[test]
fn nested_checks_of_a_criterion_name_the_argument() {
    let assertion = "  - { type: satisfy, criteria: for_two }\ncriteria: { for_two: { match: [{ type: tool_called, name: book, arguments: { to: Rome, seats: 2 } }, { type: contains, value: Paid }] } }";
    let (_, tested) = run("{ user: book }", assertion);
    assert_eq!(differences(&tested), rows(&[["seats", "2", "\"2\"", "type"]]));
    let text = got(&tested);
    assert!(text.contains("2 of 2 checks failed") && text.contains("Paid"), "{text}");
}

#[test]
fn a_sequence_shows_missing_calls_first_and_blames_no_allowed_ones() {
    let superset = "  - { type: tool_sequence, order: superset, calls: [pay, { name: book, arguments: { to: Rome, seats: 2 } }], arguments: subset }";
    let (_, tested) = run("{ user: find }, { user: find }, { user: book }", superset);
    assert_snapshot!(got(&tested), @r#"
    = got: 2 of 2 expected calls missing
           |   missing: pay
           |   missing: book({"to":"Rome","seats":2})
           |   nearest: book in turn 3
           |     argument  expected  got
           |     seats     2         "2"
           |               expected the number 2, got the text "2"
           |   - turn 3: book({"to":"Oslo","seats":4}) → {"ok":false,"left":3}
           |   - turn 3: book({"to":"Rome","seats":"2","stops":[{"at":"Linz","hours":3}],"note":"asap"})
           |     → {"ok":true,"id":"R-7"}
    "#);
    let comparison = comparison(&tested);
    assert_eq!(comparison["missing"].as_array().map(Vec::len), Some(2), "{comparison:#}");
    assert!(!tested.output.stdout.contains("unexpected"), "{}", tested.output);

    let unordered = "  - { type: tool_sequence, order: unordered, calls: [search, { name: book, arguments: { to: Oslo, seats: 4 } }] }";
    let (_, tested) = run("{ user: find }, { user: book }", unordered);
    assert_snapshot!(got(&tested), @r#"
    = got: 1 unexpected call
           |   - unexpected: turn 2: book({"to":"Rome","seats":"2","stops":[{"at":"Linz","hours":3}],
           |     "note":"asap"}) → {"ok":true,"id":"R-7"}
    "#);

    let in_order = "  - { type: tool_sequence, order: in_order, calls: [book, search] }";
    let (_, tested) = run("{ user: find }, { user: book }", in_order);
    assert_snapshot!(got(&tested), @r#"
    = got: the expected calls in another order: no call of search after book in turn 2
           |   - turn 1: search({"to":"Rome"}) → []
           |   - turn 2: book({"to":"Oslo","seats":4}) → {"ok":false,"left":3}
           |   - turn 2: book({"to":"Rome","seats":"2","stops":[{"at":"Linz","hours":3}],"note":"asap"})
           |     → {"ok":true,"id":"R-7"}
    "#);

    let strict = "  - { type: tool_sequence, calls: [book, search, book] }";
    let (_, tested) = run("{ user: find }, { user: book }", strict);
    assert_snapshot!(got(&tested), @r#"
    = got: the expected calls in another order: call 1 is search in turn 1, expected book
           |   - turn 1: search({"to":"Rome"}) → []
           |   - turn 2: book({"to":"Oslo","seats":4}) → {"ok":false,"left":3}
           |   - turn 2: book({"to":"Rome","seats":"2","stops":[{"at":"Linz","hours":3}],"note":"asap"})
           |     → {"ok":true,"id":"R-7"}
    "#);
}

/// `3500`, `3500.0` and `"^3500$"` mean the same number; a text is no number, and the message says so.
#[test]
fn numbers_compare_by_value() {
    let agent = FakeAgent::with_run(|run, request| {
        let amount = request.last_user_json();
        run.tool("c", "pay", &json!({ "amount": amount }), Some(json!("ok"))).text("Paid.").finished()
    });
    let note = "expected the number 3500, got the text \"3500\"";
    for (expected, typed, sent, failure) in [
        ("3500", "3500", "3500", None),
        ("3500", "3500", "3500.0", None),
        ("3500.0", "3500.0", "3500", None),
        ("'^3500$'", "3500", "3500", None),
        ("'^3500$'", "3500", "3500.0", None),
        (r"'^3500(\.0)?$'", "3500", "3500.0", None),
        ("3500", "3500", "\"3500\"", Some(note)),
        ("3500", "3500", "3500.5", Some("amount is 3500.5")),
        ("'^3500$'", "3500", "13500", Some("amount is 13500")),
        ("true", "true", "\"true\"", Some("expected true, got the text \"true\"")),
    ] {
        let suite = format!(
            "name: a\nturns: [{{ user: '{sent}' }}]\nassert:\n  - tools: {{ require: [{{ name: pay, args_match: {{ amount: {expected} }} }}] }}\n  - {{ type: tool_called, name: pay, arguments: {{ amount: {typed} }} }}\n"
        );
        let tested = Project::with_agent(&agent).suite("a", &suite).test(&[]);
        match failure {
            None => tested.assert_all_passed(),
            Some(words) => {
                let failure = tested.failure("a");
                let text = format!("{}\n{}", failure["message"], tested.output);
                assert_eq!(tested.case("a")["assertion_errors"].as_array().map(Vec::len), Some(2), "{text}");
                assert!(text.contains(words), "{expected} and {sent}: {text}");
            }
        }
    }
}

#[test]
fn after_in_a_later_turn_says_where_it_belongs() {
    let assertion = "assert: { tools: { require: [{ name: book, after: search }] } }";
    let agent = booking_agent();
    let suite = |turn: &str, case: &str| {
        let text = format!("name: a\nturns: [{{ user: find }}, {{ user: book{turn} }}]\n{case}\n");
        Project::with_agent(&agent).suite("a", &text).test(&[])
    };
    let tested = suite(&format!(", {assertion}"), "");
    let message = tested.failure("a")["message"].as_str().unwrap();
    assert!(
        message.contains(
            "no earlier call of search in turn 2, only in turn 1, which this assertion does not evaluate"
        ) && message.contains("move `after` to `assert` of the case"),
        "{message}"
    );
    suite("", assertion).assert_all_passed();
    // Without an earlier call the place of the assertion is right.
    let tested = suite(", assert: { tools: { require: [{ name: book, after: pay }] } }", "");
    let message = tested.failure("a")["message"].as_str().unwrap();
    assert!(message.contains("no call of pay") && !message.contains("move"), "{message}");
}

/// Secrets of the environment do not appear in comparisons.
#[test]
fn comparisons_are_redacted() {
    let agent = booking_agent();
    let project = Project::with_agent(&agent).suite(
        "a",
        "name: a\nturns: [{ user: book }]\nassert: { type: tool_called, name: book, arguments: { to: '${ENV.BOOKING_TOKEN}' } }\n",
    );
    let tested = project.test_in(&[("BOOKING_TOKEN", "s3cr3t-token-value")], &["-o", "out/short.md"]);
    assert_eq!(tested.output.code, 1, "{}", tested.output);
    for text in
        [tested.report.to_string(), tested.output.stdout.clone(), project.workspace.read("out/short.md")]
    {
        assert!(!text.contains("s3cr3t-token-value"), "{text}");
    }
}

/// A note names few of them, and each character of the text costs the same.
#[test]
fn a_hundred_thousand_hidden_characters_are_named_quickly() {
    let agent = FakeAgent::with_run(|run, _| {
        let hidden: String = ('\u{f0000}'..='\u{ffffd}').chain('\u{100000}'..='\u{10fffd}').collect();
        run.tool("c1", "book", &json!({"to": format!("Rome{hidden}")}), Some(json!(true)))
            .text("Done.")
            .finished()
    });
    let suite = "name: a
turns: [{ user: book, assert: [{ type: tool_called, name: book, arguments: { to: Rome } }] }]
";
    let tested = Project::with_agent(&agent).suite("a", suite).test(&[]);
    let note = "they differ only in U+F0000, U+F0001, U+F0002 and 131065 more";
    tested.output.assert_stdout(1, &[note]);
}

/// Texts that look the same are told apart in every output.
#[test]
fn look_alikes_are_told_apart() {
    let agent = FakeAgent::with_run(|run, _| {
        let run = run.tool("c1", "book", &json!({"to": "Jose\u{301}", "room": "R-12\u{200b}"}), None);
        run.tool("c2", "p\u{430}y", &json!({}), None).text("Done.").finished()
    });
    let suite = "name: a
turns: [{ user: book }]
assert:
  - { type: tool_called, name: book, arguments: { to: José, room: R-12 } }
  - { tools: { require: [{ name: book, args_match: { room: '^R-12$' } }] } }
  - { tools: { require: [pay] } }
";
    let script = "import { agent, expect, it, user } from 'hotseat';
it('b', () => { user.says('book'); expect(agent.response.toolCalls[0].arguments.to).toBe('José'); });
";
    let project = Project::with_agent(&agent).suite("a", suite).file("b_test.ts", script);
    let tested = project.test(&["-o", "out.xml", "-o", "out.md"]);
    for text in [tested.output.stdout.clone(), project.workspace.read("out.xml").replace("&quot;", "\"")] {
        for words in [
            r#""Jose\u0301""#,
            r#""R-12\u200b""#,
            "they differ only in U+00E9, U+0301",
            "they differ only in U+200B",
            "(differs from pay only in U+0430)",
        ] {
            assert!(text.contains(words), "{words} is not in {text}");
        }
    }
    let failed = tested.case("b")["assertion_errors"].to_string();
    assert!(failed.contains(r"Jose\\\\u0301") || failed.contains(r"Jose\\u0301"), "{failed}");
    // In the report they are the same JSON values as before.
    let checks = tested.case("a")["assertions"].as_array().cloned().unwrap_or_default();
    let nearest = checks.iter().map(|check| &check["comparison"]["missing"][0]["nearest"]["differences"]);
    let values: Vec<Value> = nearest
        .flat_map(|differences| differences.as_array().into_iter().flatten())
        .map(|difference| serde_json::from_str(difference["got"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(values.iter().filter(|got| **got == "R-12\u{200b}").count(), 2, "{values:?}");
    assert_eq!(values.iter().filter(|got| **got == "Jose\u{301}").count(), 1, "{values:?}");
}
