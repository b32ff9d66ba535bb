//! Project hooks, named by cases and on the command line.

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeRequest};
use serde_json::{Value, json};

use crate::common::{Project, echo_agent};

/// A project whose hooks append their input to a file and print something.
fn project(agent: &FakeAgent, hooks: &[(&str, &str)]) -> Project {
    let mut text = format!("target: {{ endpoint: '{agent}' }}\nhooks:\n");
    for (name, script) in hooks {
        let script = json!(script);
        text.push_str(&format!("  {name}: {{ cmd: [sh, -c, {script}], timeout_ms: 20000 }}\n"));
    }
    Project::with_config(&text)
}

/// Logs its input and prints nothing.
const LOG_INPUT: &str = "read -r told; printf '%s\\n' \"$told\" >> log; ";

fn log(project: &Project) -> Vec<Value> {
    let text = project.workspace.read("log");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The sample of the documentation: a case and its hooks.
const SAMPLE: &str = r#"{
  "id": "T001",
  "name": "Submit expense with user context",
  "before": "env_test.Before",
  "after": "env_test.After",
  "input": "Submit a $500 travel expense as ${who}",
  "assertions": [
    {
      "type": "contains",
      "value": "as Ada"
    }
  ]
}"#;

#[test]
fn before_hook_passes_variables_to_after_hook() {
    let agent = echo_agent();
    let before = format!("{LOG_INPUT} echo '{{\"who\": \"Ada\", \"data\": {{\"userId\": 7}}}}'");
    let project = project(&agent, &[("env_test.Before", &before), ("env_test.After", LOG_INPUT)])
        .file("a.test.jsonl", SAMPLE);
    let tested = project.test(&["--user", "ada"]);
    tested.assert_all_passed();
    let log = log(&project);
    assert_eq!(log.len(), 2);
    assert_eq!(log[0]["test_case"]["id"], "T001");
    assert_eq!(log[0]["ctx"]["authorized"]["user_id"], "ada");
    let after = &log[1];
    assert_eq!(after["before_data"], json!({"userId": 7}));
    let result = &after["result"];
    assert_eq!((&result["id"], &result["status"]), (&json!("T001"), &json!("passed")));
    assert_eq!(result["output"], "You said: Submit a $500 travel expense as Ada");
}

/// Cases of a scenario set run at the same time, so a hook needs the id of each.
#[test]
fn hooks_receive_the_id_and_name_of_results_and_the_scenario() {
    let agent = echo_agent();
    let suite = "name: only named\nbefore: note\nafter: note\nturns: [{ user: hi }]\n---\nid: sc\nname: with\nbefore: note\nafter: note\nscenarios: [{ id: s1, name: one, goal: g, word: x }, { id: s2, name: two, goal: g, word: y }]\nturns: [{ user: '${scenario.word}' }]\n";
    let test = "import { it, user } from \"hotseat\";\nit(\"in code\", { before: \"note\", after: \"note\" }, () => { user.says(\"hi\"); });\n";
    let project = project(&agent, &[("note", LOG_INPUT)]).suite("a", suite).file("b_test.ts", test);
    let tested = project.test(&["--parallel", "1"]);
    assert_eq!(tested.output.code, 0, "{}", tested.output);
    let log = log(&project);
    let mut seen: Vec<(String, String, Value)> = Vec::new();
    for told in &log {
        let case = &told["test_case"];
        let text = |key: &str| case[key].as_str().unwrap_or_default().to_string();
        seen.push((text("id"), text("name"), case["scenario"]["data"]["word"].clone()));
        if let Some(result) = told.get("result") {
            assert_eq!((&case["id"], &case["name"]), (&result["id"], &result["name"]), "{told}");
        }
    }
    seen.dedup();
    assert_eq!(log[0]["test_case"]["turns"][0]["user"], "hi", "the rest is as written");
    let expected = [
        ("only named", "only named", Value::Null),
        ("sc@s1", "with: one", json!("x")),
        ("sc@s2", "with: two", json!("y")),
        ("in code", "in code", Value::Null),
    ];
    let expected = expected.map(|(id, name, word)| (id.to_string(), name.to_string(), word));
    assert_eq!(seen[..3], expected[..3], "{log:#?}");
    assert_eq!((seen.len(), &seen[3].1), (4, &expected[3].1), "{log:#?}");
}

#[test]
fn after_hook_runs_for_every_outcome() {
    let agent = FakeAgent::start(|request: &FakeRequest| match request.last_user_text().as_str() {
        "fail" => FakeRun::for_request(request).started().error("out of order", None),
        "hang" => FakeRun::for_request(request).started().hang(),
        _ => FakeRun::for_request(request).started().text("hello").finished(),
    });
    let cases = ["pass", "miss", "fail", "hang"].map(|said| {
        let wanted = if said == "miss" { "nowhere" } else { "hello" };
        json!({"id": said, "input": said, "after": "note", "timeout": "300ms", "assert": [{"type": "contains", "value": wanted}]}).to_string()
    });
    let project = project(&agent, &[("note", LOG_INPUT)]).file("a.test.jsonl", &cases.join("\n"));
    project.test(&["--parallel", "1"]);
    let came_to: Vec<(Value, Value)> = log(&project)
        .into_iter()
        .map(|told| (told["result"]["id"].clone(), told["result"]["error_kind"].clone()))
        .collect();
    let expected = [
        ("pass", Value::Null),
        ("miss", json!("assertion")),
        ("fail", json!("agent_error")),
        ("hang", json!("timeout")),
    ];
    assert_eq!(came_to, expected.map(|(id, kind)| (json!(id), kind)));
}

#[test]
fn failed_before_hook_skips_case() {
    let agent = echo_agent();
    let case = json!({"id": "a", "input": "hi", "before": "fails", "after": "note"});
    let project = project(&agent, &[("fails", "echo no luck >&2; exit 3"), ("note", LOG_INPUT)])
        .file("a.test.jsonl", &case.to_string());
    let tested = project.test(&[]);
    let failure = tested.failure("a");
    assert_eq!(failure["kind"], "hook_error");
    assert!(
        failure["message"].as_str().unwrap().starts_with("before script failed: hook `fails`: `"),
        "{failure}"
    );
    assert!(failure["detail"].as_str().unwrap().contains("no luck"), "{failure}");
    assert_eq!(agent.requests().len(), 0);
    assert!(
        !crate::common::exists(&project.workspace, "log"),
        "without a successful before hook there is no cleanup"
    );
}

#[test]
fn failed_after_hook_is_a_warning() {
    let agent = echo_agent();
    let case =
        json!({"id": "a", "input": "hi", "after": "fails", "assert": [{"type": "contains", "value": "hi"}]});
    let project = project(&agent, &[("fails", "exit 3")]).file("a.test.jsonl", &case.to_string());
    let tested = project.test(&[]);
    tested.assert_all_passed();
    let warning = tested.case("a")["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("after script failed: "), "{warning}");
    assert!(tested.output.stdout.contains("  warning: after script failed: "), "{}", tested.output);
}

#[test]
fn hook_may_ignore_stdin() {
    let agent = echo_agent();
    let long = "x".repeat(200_000);
    let case = json!({"id": "a", "input": long, "before": "deaf"});
    let project =
        project(&agent, &[("deaf", "exec 0<&-; echo '{}'")]).file("a.test.jsonl", &case.to_string());
    project.test(&[]).assert_all_passed();
}

#[test]
fn run_hooks_wrap_the_run() {
    let agent = echo_agent();
    let before = format!("{LOG_INPUT} echo '{{\"data\": {{\"ready\": true}}}}'");
    let cases = ["a", "b"].map(|id| {
        let wanted = if id == "b" { "nowhere" } else { "hi" };
        json!({"id": id, "input": "hi", "before": "each", "after": "each", "assert": [{"type": "contains", "value": wanted}]}).to_string()
    });
    let hooks = [("first", before.as_str()), ("each", LOG_INPUT), ("last", LOG_INPUT)];
    let project = project(&agent, &hooks).file("a.test.jsonl", &cases.join("\n"));
    let args = ["test", "--before", "first", "--after-all", "last", "--parallel", "1", "--fail-fast"];
    project.hotseat(&args).assert_code(1);
    let log = log(&project);
    let kinds: Vec<&str> = log
        .iter()
        .map(|told| match told {
            told if told.get("test_cases").is_some() => "before all",
            told if told.get("results").is_some() => "after all",
            told if told.get("result").is_some() => "after",
            _ => "before",
        })
        .collect();
    assert_eq!(kinds, ["before all", "before", "after", "before", "after", "after all"]);
    assert_eq!(log[0]["test_cases"].as_array().unwrap().len(), 2);
    let last = &log[5];
    assert_eq!(last["before_data"], json!({"ready": true}));
    let statuses: Vec<&Value> =
        last["results"].as_array().unwrap().iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, ["passed", "failed"]);
}

#[test]
fn failed_run_hook_prevents_all_cases() {
    let agent = echo_agent();
    let project = project(&agent, &[("fails", "echo no luck >&2; exit 3"), ("note", LOG_INPUT)])
        .file("a.test.jsonl", r#"{"id": "a", "input": "hi"}"#);
    project
        .hotseat(&["test", "--before", "fails", "--after", "note", "-o", "out.json"])
        .assert_stderr(3, &["--before fails failed, so no case ran", "no luck"]);
    assert_eq!(agent.requests().len(), 0);
    let report = project.workspace.read_json("out.json");
    assert_eq!(report["summary"]["total"], 0);

    project.hotseat(&["test", "--after", "fails"]).assert_stderr(0, &["warning: --after fails failed: "]);
}

#[test]
fn hook_names_are_checked_before_run() {
    let agent = echo_agent();
    let secret = "  needs: { cmd: [echo, '${ENV.NOT_SET_ANYWHERE}'] }\n";
    let named = project(&agent, &[("setup", LOG_INPUT)]);
    named.workspace.file("hotseat.yaml", &(named.workspace.read("hotseat.yaml") + secret));
    for (hook, words) in [
        ("setpu", "did you mean `setup`?"),
        ("env_test.Before", "or use a script function; looked for env_test.ts"),
        ("needs", "NOT_SET_ANYWHERE"),
    ] {
        let case = json!({"id": "a", "input": "hi", "before": hook});
        named.workspace.file("a.test.jsonl", &case.to_string());
        named.hotseat(&["test"]).assert_stderr(2, &[words]);
        named.hotseat(&["test", "--before", hook]).assert_code(2);
    }
    assert_eq!(agent.requests().len(), 0);
}

/// Variables are members of what a function returns. Anything else set none, and the case ran without them.
#[test]
fn a_function_before_a_case_returns_an_object() {
    const SCRIPT: &str = r#"
export function Nothing() {}
export function Number() { return 5; }
export function List() { return ["Ada"]; }
export function Entries() { return new Map([["name", "Ada"]]); }
export function Nested() { return { data: { names: new Set(["Ada"]) } }; }
export function Forgotten() { return { name: (async () => "Ada")() }; }
export function Nan() { return { data: { price: 3 * undefined } }; }
export function After() { return 5; }
"#;
    for (before, words) in [
        ("Nothing", None),
        ("Nan", Some("it contains NaN, which JSON cannot represent")),
        ("Number", Some("hook `env.Number` returned 5, not an object")),
        ("List", Some("hook `env.List` returned [\"Ada\"], not an object")),
        ("Entries", Some("it contains a `Map`; convert it with `Object.fromEntries`")),
        ("Nested", Some("it contains a `Set`; convert it with `Array.from`")),
        ("Forgotten", Some("it contains a promise; `await` it")),
    ] {
        let agent = echo_agent();
        let case = json!({"id": "a", "input": "hello", "before": format!("env.{before}"), "after": "env.After",
            "assert": [{"type": "contains", "value": "hello"}]});
        let project =
            Project::with_agent(&agent).file("src/env.ts", SCRIPT).file("a.test.jsonl", &case.to_string());
        let tested = project.test(&[]);
        let Some(words) = words else {
            tested.assert_all_passed();
            assert!(!tested.output.stdout.contains("warning"), "{}", tested.output);
            continue;
        };
        assert_eq!(tested.case("a")["error_kind"], "hook_error", "{before}: {}", tested.output);
        let error = tested.case("a")["error"].as_str().expect("an error");
        assert!(error.contains(words), "{before}: {error}");
        assert_eq!(agent.requests().len(), 0, "{before}");
    }
}
