//! Every case sample of the documentation, verbatim.

use serde_json::{Value, json};

use super::adapters::{ADAPTERS, SampleProject, sample};
use crate::common::{TestRun, exists};

/// Wraps a sample that is part of a case, unchanged.
fn wrap_as_case(path: &str, more: &Value) -> String {
    let mut case: Value = serde_json::from_str(&sample(path)).unwrap();
    case.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    case.to_string()
}

/// Wraps a sample assertion in a case.
fn wrap_assertion(path: &str) -> String {
    let assertion: Value = serde_json::from_str(&sample(path)).unwrap();
    json!({"id": "asserted", "input": "Hello", "assertions": [assertion]}).to_string()
}

/// Runs a sample with every adapter.
#[track_caller]
fn run_sample(path: &str) -> TestRun {
    SampleProject::create()
        .with_test_file("sample.jsonl", &sample(path))
        .run_with_every_adapter("sample.jsonl", &[])
}

/// Selected members of each turn of the only case.
fn turn_members(tested: &TestRun, members: &[&str]) -> Vec<Value> {
    let turns = tested.report["results"][0]["turns"].as_array().unwrap();
    turns.iter().map(|turn| members.iter().map(|member| turn[*member].clone()).collect()).collect()
}

#[test]
fn single_turn_cases() {
    for path in [
        "documents/multi-turn/single.jsonl",
        "documents/standard/simple.jsonl",
        "documents/multi-turn/options.jsonl",
    ] {
        let tested = run_sample(path);
        tested.assert_all_passed();
        assert_eq!(turn_members(&tested, &["input", "output"]), [json!(["Hello", "Hi there."])]);
    }
}

/// Forms documented as equivalent. They share ids because they never occur in one file.
#[test]
fn legacy_forms_are_equivalent() {
    for path in ["documents/multi-turn/unchanged.jsonl", "documents/standard/unchanged.jsonl"] {
        let text = sample(path);
        let cases: Vec<&str> = text.lines().filter(|line| line.starts_with('{')).collect();
        assert_eq!(cases.len(), 2);
        let house = cases.iter().enumerate().fold(SampleProject::create(), |house, (number, case)| {
            house.with_test_file(&format!("{number}.jsonl"), case)
        });
        let [one, other] = [0, 1].map(|number| house.run_with_every_adapter(&format!("{number}.jsonl"), &[]));
        one.assert_all_passed();
        // Assertions of the case and of its only turn.
        let asserted = |tested: &TestRun| -> Vec<Value> {
            let result = &tested.report["results"][0];
            let checks = [&result["assertions"], &result["turns"][0]["assertions"]];
            let checks = checks.into_iter().filter_map(Value::as_array).flatten();
            checks.map(|check| json!([check["expected"], check["actual"], check["passed"]])).collect()
        };
        assert_eq!(asserted(&one).len(), 1);
        assert_eq!(asserted(&one), asserted(&other));
        let members = ["input", "output", "status"];
        assert_eq!(turn_members(&one, &members), turn_members(&other, &members));
    }
}

#[test]
fn expense_conversation() {
    let tested = run_sample("documents/multi-turn/expense-flow.jsonl");
    tested.assert_all_passed();
    assert_eq!(
        turn_members(&tested, &["input", "input_source", "awaiting_reason"]),
        [
            json!(["I want to submit an expense report", "static", "content_is_question"]),
            json!(["Business travel to Beijing, flight $2000, hotel $1500", "static", "content_is_question"]),
            json!(["Yes, confirm", "static", "completed"]),
        ]
    );
    assert_eq!(tested.report["results"][0]["final_assertions"][0]["passed"], true);
}

/// Two written turns, followed by simulated ones.
#[test]
fn hybrid_conversation() {
    let case = wrap_as_case("documents/multi-turn/hybrid.json", &json!({"id": "hybrid"}));
    let tested = SampleProject::create()
        .with_test_file("hybrid.jsonl", &case)
        .run_with_every_adapter("hybrid.jsonl", &[]);
    tested.assert_all_passed();
    assert_eq!(
        turn_members(&tested, &["input", "input_source"]),
        [
            json!(["Start expense report", "static"]),
            json!(["Travel expense, $500", "static"]),
            json!(["Yes, confirm", "simulated"])
        ]
    );
}

#[test]
fn conversation_histories() {
    let tested = run_sample("documents/standard/history.jsonl");
    tested.assert_all_passed();
    let calls: Vec<&Value> = tested.report["results"][0]["turns"][0]["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["name"])
        .collect();
    assert_eq!(calls, ["create_expense", "submit_expense"]);

    let tested = run_sample("documents/standard/stages.jsonl");
    tested.assert_all_passed();
    let ids: Vec<&Value> = tested.results().iter().map(|result| &result["id"]).collect();
    assert_eq!(ids, ["expense-turn1", "expense-turn2", "expense-turn3"]);
}

#[test]
fn dynamic_case() {
    let tested = run_sample("documents/standard/dynamic.jsonl");
    tested.assert_all_passed();
    let case = tested.case("Expense Submission Coverage");
    let reached: Vec<Value> = case["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|checkpoint| json!([checkpoint["id"], checkpoint["reached_at_turn"], checkpoint["passed"]]))
        .collect();
    assert_eq!(
        reached,
        [json!(["ask_type", 1, true]), json!(["call_create", 2, true]), json!(["confirm", 3, true])]
    );
    assert_eq!(case["total_turns"], 3);
}

#[test]
fn case_hooks() {
    let house =
        SampleProject::create().with_test_file("hooks.jsonl", &sample("documents/standard/hooks.jsonl"));
    house.run_with_every_adapter("hooks.jsonl", &[]).assert_all_passed();
    let log = house.project.workspace.read("hooks.jsonl");
    let told: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.len(), 2 * ADAPTERS.len());
    for around in told.chunks(2) {
        assert_eq!(around[0]["test_case"]["id"], "T001");
        assert_eq!(around[1]["before_data"], json!({"userId": 7}));
        assert_eq!(around[1]["result"]["status"], "passed");
    }
}

#[test]
fn judges_decide() {
    for path in ["documents/multi-turn/agent-assertion.json", "documents/standard/agent-assertion.json"] {
        let house = SampleProject::create().with_test_file("judged.jsonl", &wrap_assertion(path));
        let tested = house.run_with_every_adapter("judged.jsonl", &[]);
        tested.assert_all_passed();
        let said = &tested.report["results"][0]["turns"][0]["roles"][0];
        assert_eq!(said["finding"]["score"], json!(0.95), "{said:#}");
    }
    let more = json!({"id": "combined", "input": "Submit a $500 travel expense"});
    let case = wrap_as_case("documents/multi-turn/combined.json", &more);
    SampleProject::create()
        .with_test_file("combined.jsonl", &case)
        .run_with_every_adapter("combined.jsonl", &[])
        .assert_all_passed();
}

/// Scripts are unsupported here: they are rejected at their location before any agent is contacted.
#[test]
fn rejects_scripts() {
    for path in ["documents/multi-turn/script-assertion.json", "documents/standard/script-assertion.json"] {
        let house = SampleProject::create().with_test_file("script.jsonl", &wrap_assertion(path));
        for door in ADAPTERS {
            house
                .command(&[
                    "test",
                    "--config",
                    &format!("{door}.yaml"),
                    "-i",
                    "tests/script.jsonl",
                    "-o",
                    "out.json",
                ])
                .run()
                .assert_stderr(2, &["tests/script.jsonl:1:", "script"]);
            assert!(!exists(&house.project.workspace, "out.json"), "nothing ran");
        }
    }
}

/// An answer that declares waiting, as in the first strategy.
#[test]
fn declared_case() {
    let answer = sample("documents/multi-turn/declared.json");
    let case =
        json!({"id": "declared", "turns": [{"input": format!("say: {answer}")}], "type": "multi_turn"});
    let tested = SampleProject::create()
        .with_test_file("declared.jsonl", &case.to_string())
        .run_with_every_adapter("declared.jsonl", &[]);
    assert_eq!(
        turn_members(&tested, &["status", "awaiting_input", "awaiting_reason"]),
        [json!(["passed", true, "agent_declared"]), json!(["skipped", null, null])]
    );
    assert_eq!(tested.case("declared")["status"], "skipped");
}

/// Script tests, verbatim: their own calls to the agent form the conversation.
#[test]
fn script_tests() {
    let house = SampleProject::create();
    let config = "agents:\n  expense: { type: embedded, agent: agent, folder: agent }\n  workers.test.validator: { type: embedded, agent: validator }\n";
    house.project.workspace.file("scripts.yaml", config);
    house
        .project
        .workspace
        .file("agent/src/response_test.ts", &sample("documents/standard/script-testing.ts"));
    let args =
        ["--config", "scripts.yaml", "-i", "scripts.expense.response", "--trace", "out/trace.jsonl", "-v"];
    let tested = house.project.test(&args);
    tested.assert_all_passed();
    let result = &tested.report["results"][0];
    assert_eq!(
        turn_members(&tested, &["turn", "input", "status"]),
        [json!([1, "Travel, $500", "passed"])],
        "{result:#}"
    );
    let turn = &result["turns"][0];
    assert!(turn["output"].as_str().is_some_and(|output| output.contains("Please confirm")), "{turn:#}");
    assert_eq!(turn["tool_calls"][0]["name"], "create_expense");
    assert_eq!(turn["notes"][0], "history: user: I want to submit an expense");
    assert!(turn["duration_ms"].as_f64().is_some_and(|took| took > 0.0), "{turn:#}");
    for words in ["Travel, $500", "create_expense", "Please confirm"] {
        assert!(tested.output.stdout.contains(words), "{words}: {}", tested.output);
    }
    let trace = house.project.workspace.read("out/trace.jsonl");
    for event in ["turn.started", "message.user", "tool.invoked", "message.assistant", "turn.completed"] {
        assert!(trace.contains(event), "{event} is not in {trace}");
    }

    // Calls to other agents are not turns, and a failing call is one.
    let script = "export function TestOthers(t, ctx) {\n  Process('agents.workers.test.validator.Stream', ctx, 'hello');\n  try { Process('agents.expense.Stream', ctx, 'fail'); } catch (error) { t.assert.NotNil(error); }\n}\n";
    house.project.workspace.file("agent/src/others_test.ts", script);
    let tested = house.project.test(&["--config", "scripts.yaml", "-i", "scripts.expense.others"]);
    assert_eq!(turn_members(&tested, &["turn", "input"]), [json!([1, "fail"])], "{}", tested.output);
    let error = &tested.report["results"][0]["turns"][0]["error_info"]["message"];
    assert!(error.as_str().is_some_and(|words| words.contains("the model is out of order")), "{error}");

    for (named, words) in [
        ("scripts.expense.nothing", "test script of `scripts.expense.nothing` not found"),
        ("scripts.expanse.response", "did you mean `scripts.expense.response`?"),
        ("scripts.expense", "write `scripts.AGENT.MODULE`"),
    ] {
        house.command(&["test", "--config", "scripts.yaml", "-i", named]).run().assert_stderr(2, &[words]);
    }
}

/// Reports contain metadata of the agent and the judge.
#[test]
fn reports_hints_reasons_and_suggestions() {
    let assertion = json!({"type": "agent", "use": "agents:workers.test.validator", "criteria": "Response should be an apology"});
    let case = json!({"id": "told", "type": "multi_turn", "turns": [{"input": "declare", "assertions": [assertion]}, {"input": "cut"}], "on_missing_input": "end", "continue_on_failure": true});
    let tested = SampleProject::create().with_test_file("told.jsonl", &case.to_string()).run_with(
        "embedded",
        "told.jsonl",
        &[],
    );
    let turns = &tested.report["results"][0]["turns"];
    assert_eq!(turns[0]["input_hint"], "Enter amount, e.g., $3500", "{turns:#}");
    assert_eq!(turns[1]["finish_reason"], "length");
    assert_eq!(turns[0]["assertions"][0]["judgement"]["suggestions"], json!(["Say sorry"]));
}

/// Document 000: the default simulator applies to generated cases without one.
#[test]
fn fully_dynamic_run() {
    let house = SampleProject::create();
    house.project.workspace.file(
        "tests/generate.ts",
        "export default function () { return [{ id: 'G001', input: 'I want to submit an expense', final_assertions: [{ type: 'contains', value: 'submitted' }] }]; }\n",
    );
    let args = [
        "-i",
        "scripts:tests.generate",
        "-n",
        "assistants.expense",
        "--simulator",
        "agents:workers.test.user-simulator",
    ];
    let tested = house.project.test(&args);
    tested.assert_all_passed();
    let sources = turn_members(&tested, &["input_source"]);
    assert!(sources.len() > 1 && sources[0] == json!(["static"]), "{sources:?}");
    assert!(sources[1..].iter().all(|source| *source == json!(["simulated"])), "{sources:?}");
}
