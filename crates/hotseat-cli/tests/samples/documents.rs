//! Every sample of a case, as it stands in the documents.

use serde_json::{Value, json};

use crate::common::{Tested, exists};
use crate::doors::{DOORS, House, sample};

/// A sample that is a part of a case, as a case: nothing of it is changed.
fn as_case(path: &str, more: &Value) -> String {
    let mut case: Value = serde_json::from_str(&sample(path)).unwrap();
    case.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    case.to_string()
}

/// A sample of an assertion, in a case.
fn asserting(path: &str) -> String {
    let assertion: Value = serde_json::from_str(&sample(path)).unwrap();
    json!({"id": "asserted", "input": "Hello", "assertions": [assertion]}).to_string()
}

/// A sample behind every door.
#[track_caller]
fn held(path: &str) -> Tested {
    House::open().with("sample.jsonl", &sample(path)).everywhere("sample.jsonl", &[])
}

/// These members of each turn of the only case.
fn turns(tested: &Tested, members: &[&str]) -> Vec<Value> {
    let turns = tested.report["results"][0]["turns"].as_array().unwrap();
    turns.iter().map(|turn| members.iter().map(|member| turn[*member].clone()).collect()).collect()
}

#[test]
fn single_turns() {
    for path in [
        "documents/multi-turn/single.jsonl",
        "documents/standard/simple.jsonl",
        "documents/multi-turn/options.jsonl",
    ] {
        let tested = held(path);
        tested.all_passed();
        assert_eq!(turns(&tested, &["input", "output"]), [json!(["Hello", "Hi there."])]);
    }
}

/// What the documents call equivalent. The ids are the same there, as both are never in one file.
#[test]
fn the_older_forms_mean_the_same() {
    for path in ["documents/multi-turn/unchanged.jsonl", "documents/standard/unchanged.jsonl"] {
        let text = sample(path);
        let cases: Vec<&str> = text.lines().filter(|line| line.starts_with('{')).collect();
        assert_eq!(cases.len(), 2);
        let house = cases
            .iter()
            .enumerate()
            .fold(House::open(), |house, (number, case)| house.with(&format!("{number}.jsonl"), case));
        let [one, other] = [0, 1].map(|number| house.everywhere(&format!("{number}.jsonl"), &[]));
        one.all_passed();
        // What is asserted of the case, and what of its only turn.
        let asserted = |tested: &Tested| -> Vec<Value> {
            let result = &tested.report["results"][0];
            let checks = [&result["assertions"], &result["turns"][0]["assertions"]];
            let checks = checks.into_iter().filter_map(Value::as_array).flatten();
            checks.map(|check| json!([check["expected"], check["actual"], check["passed"]])).collect()
        };
        assert_eq!(asserted(&one).len(), 1);
        assert_eq!(asserted(&one), asserted(&other));
        let members = ["input", "output", "status"];
        assert_eq!(turns(&one, &members), turns(&other, &members));
    }
}

#[test]
fn the_expense_flow() {
    let tested = held("documents/multi-turn/expense-flow.jsonl");
    tested.all_passed();
    assert_eq!(
        turns(&tested, &["input", "input_source", "awaiting_reason"]),
        [
            json!(["I want to submit an expense report", "static", "content_is_question"]),
            json!(["Business travel to Beijing, flight $2000, hotel $1500", "static", "content_is_question"]),
            json!(["Yes, confirm", "static", "completed"]),
        ]
    );
    assert_eq!(tested.report["results"][0]["final_assertions"][0]["passed"], true);
}

/// Two turns are written, the simulated user says the rest.
#[test]
fn the_hybrid() {
    let case = as_case("documents/multi-turn/hybrid.json", &json!({"id": "hybrid"}));
    let tested = House::open().with("hybrid.jsonl", &case).everywhere("hybrid.jsonl", &[]);
    tested.all_passed();
    assert_eq!(
        turns(&tested, &["input", "input_source"]),
        [
            json!(["Start expense report", "static"]),
            json!(["Travel expense, $500", "static"]),
            json!(["Yes, confirm", "simulated"])
        ]
    );
}

#[test]
fn histories() {
    let tested = held("documents/standard/history.jsonl");
    tested.all_passed();
    let calls: Vec<&Value> = tested.report["results"][0]["turns"][0]["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["name"])
        .collect();
    assert_eq!(calls, ["create_expense", "submit_expense"]);

    let tested = held("documents/standard/stages.jsonl");
    tested.all_passed();
    let ids: Vec<&Value> =
        tested.report["results"].as_array().unwrap().iter().map(|result| &result["id"]).collect();
    assert_eq!(ids, ["expense-turn1", "expense-turn2", "expense-turn3"]);
}

#[test]
fn the_dynamic_case() {
    let tested = held("documents/standard/dynamic.jsonl");
    tested.all_passed();
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
fn hooks_of_a_case() {
    let house = House::open().with("hooks.jsonl", &sample("documents/standard/hooks.jsonl"));
    house.everywhere("hooks.jsonl", &[]).all_passed();
    let log = house.project.workspace.read("hooks.jsonl");
    let told: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.len(), 2 * DOORS.len());
    for around in told.chunks(2) {
        assert_eq!(around[0]["test_case"]["id"], "T001");
        assert_eq!(around[1]["before_data"], json!({"userId": 7}));
        assert_eq!(around[1]["result"]["status"], "passed");
    }
}

#[test]
fn judges() {
    for path in ["documents/multi-turn/agent-assertion.json", "documents/standard/agent-assertion.json"] {
        let house = House::open().with("judged.jsonl", &asserting(path));
        let tested = house.everywhere("judged.jsonl", &[]);
        tested.all_passed();
        let said = &tested.report["results"][0]["turns"][0]["roles"][0];
        assert_eq!(said["finding"]["score"], json!(0.95), "{said:#}");
    }
    let more = json!({"id": "combined", "input": "Submit a $500 travel expense"});
    let case = as_case("documents/multi-turn/combined.json", &more);
    House::open().with("combined.jsonl", &case).everywhere("combined.jsonl", &[]).all_passed();
}

/// Scripts are no part of this version: they are refused where they stand, before anybody is asked.
#[test]
fn scripts_are_refused() {
    for path in ["documents/multi-turn/script-assertion.json", "documents/standard/script-assertion.json"] {
        let house = House::open().with("script.jsonl", &asserting(path));
        for door in DOORS {
            let output = house
                .command(&[
                    "test",
                    "--config",
                    &format!("{door}.yaml"),
                    "-i",
                    "tests/script.jsonl",
                    "-o",
                    "out.json",
                ])
                .run();
            assert_eq!(output.code, 2, "{output}");
            assert!(output.stderr.contains("tests/script.jsonl:1:"), "{output}");
            assert!(output.stderr.contains("script"), "{output}");
            assert!(!exists(&house.project.workspace, "out.json"), "nothing ran");
        }
    }
}

/// An answer that declares that it waits, as the first of the strategies has it.
#[test]
fn a_declaration() {
    let answer = sample("documents/multi-turn/declared.json");
    let case =
        json!({"id": "declared", "turns": [{"input": format!("say: {answer}")}], "type": "multi_turn"});
    let tested = House::open().with("declared.jsonl", &case.to_string()).everywhere("declared.jsonl", &[]);
    assert_eq!(
        turns(&tested, &["status", "awaiting_input", "awaiting_reason"]),
        [json!(["passed", true, "agent_declared"]), json!(["skipped", null, null])]
    );
    assert_eq!(tested.case("declared")["status"], "skipped");
}

/// Tests in scripts, as they stand in the document: what they say to an agent by themselves is their conversation.
#[test]
fn script_tests() {
    let house = House::open();
    let config = "agents:\n  expense: { type: embedded, agent: agent, folder: agent }\n  workers.test.validator: { type: embedded, agent: validator }\n";
    house.project.workspace.file("scripts.yaml", config);
    house
        .project
        .workspace
        .file("agent/src/response_test.ts", &sample("documents/standard/script-testing.ts"));
    let args =
        ["--config", "scripts.yaml", "-i", "scripts.expense.response", "--trace", "out/trace.jsonl", "-v"];
    let tested = house.project.test(&args);
    tested.all_passed();
    let result = &tested.report["results"][0];
    assert_eq!(
        turns(&tested, &["turn", "input", "status"]),
        [json!([1, "Travel, $500", "passed"])],
        "{result:#}"
    );
    let turn = &result["turns"][0];
    assert!(turn["output"].as_str().is_some_and(|output| output.contains("Please confirm")), "{turn:#}");
    assert_eq!(turn["tool_calls"][0]["name"], "create_expense");
    assert_eq!(turn["notes"][0], "said before: user: I want to submit an expense");
    assert!(turn["duration_ms"].as_f64().is_some_and(|took| took > 0.0), "{turn:#}");
    for words in ["Travel, $500", "create_expense", "Please confirm"] {
        assert!(tested.output.stdout.contains(words), "{words}: {}", tested.output);
    }
    let trace = house.project.workspace.read("out/trace.jsonl");
    for event in ["turn.started", "message.user", "tool.invoked", "message.assistant", "turn.completed"] {
        assert!(trace.contains(event), "{event} is not in {trace}");
    }

    // Whoever is called that the case does not test holds no turn of it, and a call that fails is one.
    let script = "export function TestOthers(t, ctx) {\n  Process('agents.workers.test.validator.Stream', ctx, 'hello');\n  try { Process('agents.expense.Stream', ctx, 'fail'); } catch (error) { t.assert.NotNil(error); }\n}\n";
    house.project.workspace.file("agent/src/others_test.ts", script);
    let tested = house.project.test(&["--config", "scripts.yaml", "-i", "scripts.expense.others"]);
    assert_eq!(turns(&tested, &["turn", "input"]), [json!([1, "fail"])], "{}", tested.output);
    let error = &tested.report["results"][0]["turns"][0]["error_info"]["message"];
    assert!(error.as_str().is_some_and(|words| words.contains("the model is out of order")), "{error}");

    for (named, words) in [
        ("scripts.expense.nothing", "there are no tests `scripts.expense.nothing`"),
        ("scripts.expanse.response", "did you mean `scripts.expense.response`?"),
        ("scripts.expense", "write `scripts.AGENT.MODULE`"),
    ] {
        let output = house.command(&["test", "--config", "scripts.yaml", "-i", named]).run();
        assert!(output.code == 2 && output.stderr.contains(words), "{output}");
    }
}

/// What an agent and a judge say beside their words stands in reports.
#[test]
fn hints_reasons_and_suggestions_are_reported() {
    let assertion = json!({"type": "agent", "use": "agents:workers.test.validator", "criteria": "Response should be an apology"});
    let case = json!({"id": "told", "type": "multi_turn", "turns": [{"input": "declare", "assertions": [assertion]}, {"input": "cut"}], "on_missing_input": "end", "continue_on_failure": true});
    let tested = House::open().with("told.jsonl", &case.to_string()).held("embedded", "told.jsonl", &[]);
    let turns = &tested.report["results"][0]["turns"];
    assert_eq!(turns[0]["input_hint"], "Enter amount, e.g., $3500", "{turns:#}");
    assert_eq!(turns[1]["finish_reason"], "length");
    assert_eq!(turns[0]["assertions"][0]["judgement"]["suggestions"], json!(["Say sorry"]));
}

/// Document 000: who simulates users by default does so in cases that are made up and name nobody.
#[test]
fn a_fully_dynamic_run() {
    let house = House::open();
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
    tested.all_passed();
    let sources = turns(&tested, &["input_source"]);
    assert!(sources.len() > 1 && sources[0] == json!(["static"]), "{sources:?}");
    assert!(sources[1..].iter().all(|source| *source == json!(["simulated"])), "{sources:?}");
}
