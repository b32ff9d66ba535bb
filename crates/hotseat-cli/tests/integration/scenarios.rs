//! Scenario sets: one case per scenario with its data; ids; and errors with their location.

use hotseat_schema::JsonSchema;
use hotseat_testkit::{FakeAgent, FakeRequest};
use serde_json::{Value, json};

use crate::common::Project;

fn agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let said = request.last_user_text();
        run.tool("c1", "add_service", &json!({"service_type": "catering", "count": 15}), Some(json!("ok")))
            .text(&format!("You want: {said}"))
            .finished()
    })
}

const SCENARIOS: &str = r#"[
  {"id": "one", "name": "Corporate workshop", "goal": "Find a venue (for 50)", "context": ["Acme"], "personality": "Calm",
   "verification": {"services": ["catering"], "count": 15, "assert": [{"type": "tool_called", "name": "add_service", "arguments": {"service_type": "catering"}}]}},
  {"name": "Two", "goal": "g2", "extra": "${HOME}", "verification": {"services": ["x"], "count": 15, "assert": [{"type": "contains", "value": "g2"}]}}
]"#;

const SUITE: &str = r"
name: handles ${scenario.name}
id: venues
scenarios: venues.json
metadata: { extra: '${scenario.extra}' }
turns:
  - user: '${scenario.goal} please'
    assert:
      - { type: regex, pattern: '${scenario.goal}' }
      - { type: tool_called, name: add_service, arguments: { count: '${scenario.verification.count}' } }
final_assertions: '${scenario.verification.assert}'
";

#[test]
fn each_scenario_becomes_a_case() {
    let agent = agent();
    let suite = SUITE.replace("metadata: { extra: '${scenario.extra}' }\n", "");
    let project = Project::with_agent(&agent).suite("a", &suite).file("venues.json", SCENARIOS);
    let tested = project.test(&["--parallel", "1"]);
    tested.assert_all_passed();
    let said = agent.user_texts();
    assert_eq!(said, ["Find a venue (for 50) please", "g2 please"]);
    let one = tested.case("handles Corporate workshop");
    assert_eq!(one["id"], "venues@one");
    assert_eq!(one["scenario"]["set"], "venues");
    assert_eq!(one["scenario"]["id"], "one");
    assert_eq!(one["scenario"]["data"]["verification"]["count"], 15);
    let two = tested.case("handles Two");
    let id = two["scenario"]["id"].as_str().unwrap();
    assert!(id.starts_with("scenario_") && id.len() == 17 && two["scenario"]["fingerprint"] == id, "{two:#}");
    assert_eq!(two["final_assertions"].as_array().unwrap().len(), 1);
    assert!(two["stable_id"].as_str().unwrap().starts_with("example:"));
    assert_ne!(one["stable_id"], two["stable_id"]);
    // Variable syntax inside scenario values is literal.
    project.hotseat(&["test", "--run", "venues@one", "--dry-run"]).assert_code(0);
}

/// A list would be a set of characters, the point of a number any character, and the word "null" is in no answer.
#[test]
fn values_that_are_no_texts_are_literal_in_patterns() {
    let agent = FakeAgent::with_run(|run, _| {
        run.tool("c1", "book", &json!({"city": "Berlin"}), Some(json!("ok")))
            .text("It costs 1205 EUR. Your PIN is 1000 and 1000000000000000000000.")
            .finished()
    });
    let project = |checks: &str| {
        let suite = format!(
            "name: a\nscenarios: [{{ name: b, goal: g, cities: [Paris, Rome], price: 12.5, whole: 12.0, tool: null, pin: 1000.0, large: 1e21 }}]\nturns: [{{ user: hi, assert: {checks} }}]\n"
        );
        Project::with_agent(&agent).suite("a", &suite)
    };
    for checks in [
        "{ tools: { require: [{ name: book, args_match: { city: '${scenario.cities}' } }] } }",
        "{ text: { must_match: ['^It costs ${scenario.price} EUR'] } }",
        "{ text: { must_match: ['${scenario.cities}'] } }",
        "[{ type: regex, pattern: 'costs ${scenario.price} EUR' }]",
        "[{ type: tool_called, name: book, where: { city: { regex: '[${scenario.cities}]{6}x?' } } }]",
        "[{ type: not_contains, value: '${scenario.pin}' }]",
        "[{ type: not_contains, value: 'PIN is ${scenario.pin}' }]",
        "[{ type: not_contains, value: '${scenario.large}' }]",
    ] {
        let tested = project(checks).test(&[]);
        assert_eq!(tested.case("a: b")["status"], "failed", "{checks}: {}", tested.output);
        assert_eq!(tested.case("a: b")["failure"]["kind"], "assertion", "{checks}: {}", tested.output);
    }
    for checks in [
        "[{ type: contains, value: '${scenario.pin}' }]",
        "[{ type: contains, value: ['${scenario.pin}', PIN] }]",
        "[{ type: regex, pattern: 'PIN is ${scenario.pin} ' }]",
    ] {
        project(checks).test(&[]).assert_all_passed();
    }
    for checks in [
        "{ text: { must_not_match: '${scenario.tool}' } }",
        "{ tools: { forbid: ['${scenario.tool}'] } }",
        "{ tools: { require: [{ name: book, args_not_match: { city: '${scenario.tool}' } }] } }",
        "[{ type: regex, pattern: '${scenario.tool}', negate: true }]",
        "[{ type: tool_called, name: '${scenario.tool}', negate: true }]",
        "[{ type: not_contains, value: 'x${scenario.tool}' }]",
    ] {
        let output = project(checks).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{checks}: {output}");
        let message = "variable `scenario.tool` is null, expected a value for a text";
        assert!(output.stderr.contains(message), "{checks}: {output}");
    }
}

#[test]
fn case_ids_are_stable_when_data_moves_or_changes() {
    let agent = agent();
    let ids = |scenarios: &str, suite: &str, name: &str| -> Vec<(Value, Value, Value)> {
        let tested = Project::with_agent(&agent).suite(name, suite).file("venues.json", scenarios).test(&[]);
        tested
            .results()
            .iter()
            .map(|r| {
                (r["stable_id"].clone(), r["scenario"]["id"].clone(), r["scenario"]["fingerprint"].clone())
            })
            .collect()
    };
    let suite = "name: x ${scenario.name}\nscenarios: venues.json\nturns: [{ user: hi }]\n";
    let first = ids(r#"[{"id": "a", "name": "A", "goal": "g"}]"#, suite, "a");
    let moved = ids(r#"[{"goal": "g", "name": "A", "id": "a"}]"#, &format!("# moved\n\n{suite}"), "b");
    assert_eq!(first, moved);
    let changed = ids(r#"[{"id": "a", "name": "A", "goal": "another"}]"#, suite, "a");
    assert_eq!((&changed[0].0, &changed[0].1), (&first[0].0, &first[0].1), "the id identifies the case");
    assert_ne!(changed[0].2, first[0].2, "and its fingerprint tells that it changed");
}

#[test]
fn inline_scenarios_and_other_formats_work() {
    let agent = agent();
    for (suite, file) in [
        (
            "name: x\nscenarios: [{ name: A, goal: g }, { name: B, goal: h }]\nturns: [{ user: '${scenario.goal}' }]\n",
            "",
        ),
        (
            "name: x\nscenarios: { name: set, scenarios: [{ name: A, goal: g }, { name: B, goal: h }] }\nturns: [{ user: '${scenario.goal}' }]\n",
            "",
        ),
        ("name: x\nscenarios: { from: s.yaml }\nturns: [{ user: '${scenario.goal}' }]\n", "s.yaml"),
        ("name: x\nscenarios: s.jsonl\nturns: [{ user: '${scenario.goal}' }]\n", "s.jsonl"),
    ] {
        let before = agent.requests().len();
        let project = Project::with_agent(&agent).suite("a", suite);
        let project = match file {
            "s.yaml" => project.file("s.yaml", "- { name: A, goal: g }\n- { name: B, goal: h }\n"),
            "s.jsonl" => project
                .file("s.jsonl", "{\"name\": \"A\", \"goal\": \"g\"}\n{\"name\": \"B\", \"goal\": \"h\"}\n"),
            _ => project,
        };
        let tested = project.test(&["--parallel", "1"]);
        tested.assert_all_passed();
        let said: Vec<String> = agent.requests()[before..].iter().map(FakeRequest::last_user_text).collect();
        assert_eq!(said, ["g", "h"], "{suite}");
        // A name without scenario data is extended to be unique.
        tested.case("x: A");
    }
}

#[test]
fn thousands_of_scenarios_belong_into_a_file() {
    let set: Vec<Value> =
        (0..5000).map(|number| json!({"id": number.to_string(), "name": "n", "goal": "g"})).collect();
    let case = |scenarios: Value| json!({"id": "a", "input": "hi", "scenarios": scenarios}).to_string();
    let project = Project::with_agent(&agent()).file("set.json", &json!(set).to_string());
    let project =
        project.file("a.test.json", &case(json!("set.json"))).file("b.test.json", &case(json!(set)));
    let listed = project.hotseat(&["list", "a.test.json"]);
    assert!(listed.stderr.ends_with("5000 of 5000 cases in 1 suite\n"), "{listed}");
    let refused = project.hotseat(&["list", "b.test.json"]);
    assert_eq!(refused.code, 2, "{refused}");
    let words = ["the case contains 5000 scenarios, more than 500", "scenarios: FILE.json", "b.test.json:1:"];
    words.iter().for_each(|words| assert!(refused.stderr.contains(words), "{words}: {refused}"));
}

/// Read once for each scenario, a document of this size would take minutes.
#[test]
fn inline_scenarios_are_read_once() {
    let list = vec!["0"; 60].join(", ");
    let set = (0..500).map(|number| format!("  - {{ name: n{number}, goal: g, list: [{list}] }}\n"));
    let case = format!("id: a\nturns: [{{ user: hi }}]\nscenarios:\n{}", set.collect::<String>());
    let listed = Project::with_agent(&agent()).suite("a", &case).hotseat(&["list"]);
    assert!(listed.stderr.ends_with("500 of 500 cases in 1 suite\n"), "{listed}");
}

#[test]
fn errors_name_scenario_set_file_and_index() {
    let agent = agent();
    let suite = "name: x\nscenarios: { name: venues, from: s.json }\nturns: [{ user: '${scenario.goal}' }]\n";
    for (file, words) in [
        (
            r#"[{"name": "A", "goal": "g"}, {"name": "B"}]"#,
            "scenario at index 1 of set `venues` in s.json is missing required fields: goal",
        ),
        (
            r#"[{"name": "A", "goal": "g"}, {}]"#,
            "scenario at index 1 of set `venues` in s.json is missing required fields: name, goal",
        ),
        (
            r#"[{"name": "A", "goal": "g", "context": "x"}]"#,
            "index 0 of set `venues` in s.json: `context` must be a list",
        ),
        (r#"[{"name": "A", "goal": "g", "personality": ["x"]}]"#, "`personality` must be a text"),
        (r#"[{"name": "A", "goal": "g", "verification": []}]"#, "`verification` must be a mapping"),
        (r#"[{"name": "A", "goal": 7}]"#, "`goal` must be a text"),
        (r#"[7]"#, "scenario at index 0 of set `venues` in s.json is not a mapping"),
        (r#"{"name": "A", "goal": "g"}"#, "the scenarios of set `venues` are not a list"),
        ("[]", "set `venues` has no scenario"),
        ("[{]", "s.json:1:"),
        (
            r#"[{"id": "a", "name": "A", "goal": "g"}, {"id": "a", "name": "B", "goal": "g"}]"#,
            "another scenario of the set has the id `a`",
        ),
    ] {
        let output = Project::with_agent(&agent).suite("a", suite).file("s.json", file).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{file}: {output}");
        assert!(output.stderr.contains(words), "{words}: {output}");
    }
    for (scenarios, words) in [
        ("scenarios: nowhere.json", "scenario file `nowhere.json` not found"),
        ("scenarios: .", "cannot be read"),
        ("scenarios: { name: set }", "this set needs `from` or `scenarios`"),
        (
            "scenarios: { from: s.json, scenarios: [{ name: A, goal: g }] }",
            "`from` and `scenarios` cannot be combined",
        ),
        ("scenarios: []", "set `x` has no scenario"),
        (
            "scenarios: [{ name: A, goal: g }]\nmetadata: { x: '${scenario.nothing}' }",
            "scenario at index 0 of set `x`: it has no `scenario.nothing`",
        ),
    ] {
        let suite = format!("name: x\n{scenarios}\nturns: [{{ user: hi }}]\n");
        let output = Project::with_agent(&agent).suite("a", &suite).file("s.json", "[]").hotseat(&["test"]);
        assert_eq!(output.code, 2, "{scenarios}: {output}");
        assert!(output.stderr.contains(words), "{words}: {output}");
    }
    assert!(agent.requests().is_empty());
}

/// A value that does not fit its place in the case is a mistake of the scenario, which has a place of its own.
#[test]
fn errors_in_values_name_their_scenario() {
    let agent = agent();
    let suite = "name: x\nscenarios: v.json\nturns: [{ user: hi }]\nfinal_assertions: ${scenario.verification.assert}\n";
    let scenarios = r#"[
  {"id": "one", "name": "A", "goal": "g", "verification": {"assert": [{"type": "nothing"}]}},
  {"id": "two", "name": "B", "goal": "g", "verification": {"assert": [{"type": "contains", "value": "x"}]}},
  {"id": "three", "name": "C", "goal": "g", "verification": {"assert": [{"type": "nothing"}]}},
  {"id": "four", "name": "D", "goal": "g"}
]
"#;
    let output = Project::with_agent(&agent).suite("a", suite).file("v.json", scenarios).hotseat(&["test"]);
    assert_eq!(output.code, 2, "{output}");
    for (index, id, line) in [(0, "one", 2), (2, "three", 4), (3, "four", 5)] {
        let position = format!("scenario at index {index} of set `v` in v.json: ");
        assert_eq!(output.stderr.matches(&position).count(), 1, "{position}: {output}");
        let place = format!("v.json:{line}:3");
        assert!(output.stderr.contains(&place), "{place}: {output}");
        assert!(output.stderr.contains(&format!("scenario `{id}`")), "{id}: {output}");
    }
    assert_eq!(output.stderr.matches("a.test.yaml:4:").count(), 3, "{output}");
    assert!(!output.stderr.contains("undefined"), "{output}");
}

/// All scenarios of a case have the same text.
#[test]
fn mistakes_of_a_case_are_told_once() {
    let scenarios = "scenarios: [{ name: b, goal: g }, { name: c, goal: g }]\n";
    let listed = |turns: &str| {
        let suite = format!("name: a\n{scenarios}turns:\n{turns}---\nname: d\nturns: [{{ user: hi }}]\n");
        let output = Project::with_agent(&agent()).suite("a", &suite).hotseat(&["list"]);
        output.stderr
    };
    let asserts_nothing = listed("  - user: hi\n");
    assert_eq!(asserts_nothing.matches("this case asserts nothing").count(), 2, "{asserts_nothing}");
    for line in [1, 6] {
        let place = format!("(a.test.yaml:{line}:7)");
        assert_eq!(asserts_nothing.matches(&place).count(), 1, "{asserts_nothing}");
    }
    let wrong = listed("  - user: hi\n    asert: x\n    assert: [{ type: satisfy, criteria: nope }]\n");
    assert_eq!(wrong.matches("unknown key `asert`").count(), 1, "{wrong}");
    let unknown = listed("  - user: hi\n    assert: [{ type: script, use: 'scripts:nope.fn' }]\n");
    assert_eq!(unknown.matches("no script found for `scripts:nope.fn`").count(), 1, "{unknown}");
}

#[test]
fn scenario_configures_simulated_user() {
    let agent = agent();
    let user = FakeAgent::with_run(|run, request| {
        let told = request.last_user_json();
        let answer = match told["turn_number"].as_u64() {
            Some(1) => json!({"message": "Hello", "done": false, "goal_progress": "none", "reason": "r"}),
            _ => json!({"message": "", "done": true, "goal_progress": "achieved", "reason": "r"}),
        };
        run.text(&answer.to_string()).finished()
    });
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nagents: {{ user: {{ endpoint: '{user}' }} }}\nsimulator: agents:user\n"
    ));
    let suite = "
name: handles ${scenario.name}
scenarios: venues.json
simulate:
  goal: ${scenario.goal}
  context: ${scenario.context}
  personality: ${scenario.personality}
";
    let scenarios = r#"[{"id": "one", "name": "One", "goal": "g1", "context": ["Acme", "Budget"], "personality": "Calm"},
        {"id": "two", "name": "Two", "goal": "g2", "context": ["Acme"], "personality": null}]"#;
    project.suite("a", suite).file("venues.json", scenarios).test(&["--parallel", "1"]).assert_all_passed();
    let requests = user.requests();
    let told = requests.iter().map(FakeRequest::last_user_json);
    let told: Vec<Value> = told.collect();
    let told = |goal: &str| told.iter().find(|told| told["goal"] == goal).expect("the goal");
    let first = told("g1");
    assert_eq!((&first["context"], &first["personality"]), (&json!(["Acme", "Budget"]), &json!("Calm")));
    let second = told("g2");
    assert_eq!((&second["context"], second.get("personality")), (&json!(["Acme"]), None));
}

/// Pointers to all values below `value`.
fn all_pointers(value: &Value, at: &str, pointers: &mut Vec<String>) {
    let mut add = |key: &str, member: &Value| {
        let pointer = format!("{at}/{key}");
        all_pointers(member, &pointer, pointers);
        pointers.push(pointer);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(key, member)| add(key, member)),
        Value::Array(entries) => entries.iter().enumerate().for_each(|(n, entry)| add(&n.to_string(), entry)),
        _ => {}
    }
}

/// A value of a scenario may stand in place of any value. What the program accepts, the schema accepts.
#[test]
fn the_schema_accepts_scenario_values_where_the_program_does() {
    let project = Project::empty();
    let schema = project.hotseat(&["schema", "suite"]).stdout;
    let schema = JsonSchema::compile(&serde_json::from_str(&schema).unwrap()).unwrap();
    let case = json!({
        "name": "a",
        "tags": ["x", "y"],
        "retries": 2,
        "skip": false,
        "timeout": "10s",
        "turns": [{
            "user": "hi",
            "timeout_ms": 5000,
            "assert": [
                {"type": "contains", "value": "x", "turns": "last"},
                {"type": "tool_called", "name": "t", "arguments": {"a": 1}, "match": "exact", "count": {"min": 1}},
                {"tools": {"require": [{"name": "t", "count": {"exact": 1}, "args_match": {"n": 1}}], "forbid": ["u"]}, "timing": {"max_duration_ms": 5}},
            ],
        }],
        "checkpoints": [{"id": "c", "assertion": {"type": "contains", "value": "x"}}],
        "final_assertions": [{"type": "contains", "value": "x", "negate": true}],
    });
    let mut pointers = Vec::new();
    all_pointers(&case, "", &mut pointers);
    let mut accepted = 0;
    for pointer in pointers {
        let mut case = case.clone();
        let value = case.pointer_mut(&pointer).unwrap();
        let value = std::mem::replace(value, json!("${scenario.value}"));
        case["scenarios"] = json!([{"name": "One", "goal": "g", "value": value}]);
        let project = Project::with_config("target: { endpoint: 'http://127.0.0.1:9/' }\n");
        let project = project.file("a.test.json", &case.to_string());
        if project.hotseat(&["test", "--dry-run"]).code == 0 {
            accepted += 1;
            // Editors tell shapes apart by this constant.
            let wrong = schema.violations(&case, 9).unwrap();
            assert!(wrong.is_empty() || pointer.ends_with("/type"), "{pointer}: {wrong:?}");
        }
    }
    assert!(accepted > 40, "{accepted}");
}
