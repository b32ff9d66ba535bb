//! `--json`: events for programs. Every line of stdout is an event, and the last one is the summary.
use hotseat_testkit::{FakeAgent, ProgramOutput};
use serde_json::{Value, json};

use crate::common::{Project, TEST_TIMEOUT, echo_agent, unreachable_address};

/// The events of a run. Asserts that stdout contains nothing else and stderr is empty.
#[track_caller]
fn parse_events(output: &ProgramOutput) -> Vec<Value> {
    assert_eq!(output.stderr, "", "{output}");
    read_events(output)
}

#[track_caller]
fn read_events(output: &ProgramOutput) -> Vec<Value> {
    let read =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}\n{output}"));
    let events: Vec<Value> = output.stdout.lines().map(read).collect();
    let last = events.last().unwrap_or_else(|| panic!("no events\n{output}"));
    assert_eq!((&last["type"], &last["exit_code"]), (&json!("summary"), &json!(output.code)), "{output}");
    events
}

fn event_types(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["type"].as_str()).collect()
}

const SUITE: &str = "
id: T-1
input: hello
assertions: [{ type: contains, value: hello }]
---
id: T-2
input: bye
assertions: [{ type: contains, value: hello }]
";

#[test]
fn emits_events_for_each_case() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", SUITE);
    let output = project.hotseat(&["test", "--json", "--parallel", "1"]);
    let events = parse_events(&output);
    assert_eq!(event_types(&events), ["start", "test_start", "result", "test_start", "result", "summary"]);
    let (start, first, failed, summary) = (&events[0], &events[2], &events[4], &events[5]);
    assert_eq!(first.get("text"), None);
    let text = failed["text"].as_str().expect("a failed case has its text");
    assert!(text.starts_with("► [T-2] bye FAILED") && text.contains("--> a.test.yaml:8:"), "{text}");
    assert_eq!(
        (&start["total"], &start["agent_id"], &start["input_file"], &start["options"]["parallel"]),
        (&json!(2), &json!(agent.url()), &json!("a.test.yaml"), &json!(1))
    );
    assert_eq!(
        (&events[1]["id"], &events[1]["file"], &events[1]["line"]),
        (&json!("T-1"), &json!("a.test.yaml"), &json!(2))
    );
    assert_eq!(
        (&first["status"], &first["input"], &first["output"]),
        (&json!("passed"), &json!("hello"), &json!("You said: hello"))
    );
    assert_eq!((&failed["status"], &failed["error_kind"]), (&json!("failed"), &json!("assertion")));
    assert!(
        failed["assertion_errors"][0].as_str().is_some_and(|words| words.contains("\"hello\"")),
        "{failed}"
    );
    assert_eq!(
        (
            &summary["total"],
            &summary["passed"],
            &summary["failed"],
            &summary["pass_rate"],
            &summary["failed_ids"]
        ),
        (&json!(2), &json!(1), &json!(1), &json!(50.0), &json!(["T-2"]))
    );
    let suggestion = summary["suggestion"].as_str().unwrap_or_else(|| panic!("{summary}"));
    assert!(suggestion.contains("`hotseat test --parallel 1 --lf`"), "{suggestion}");
    // The suggested command selects the failed cases.
    let again = project.hotseat(&["test", "--json", "--parallel", "1", "--lf"]);
    assert_eq!(read_events(&again)[0]["total"], 1, "{again}");
}

#[test]
fn emits_events_during_run() {
    let agent = FakeAgent::with_run(|run, request| {
        let said = request.last_user_text();
        let run = if said == "bye" { run.gate("open") } else { run };
        run.text(&said).finished()
    });
    let project = Project::with_agent(&agent).suite("a", SUITE);
    let mut running = project.command(&["test", "--json", "--parallel", "1"]).spawn();
    agent.wait_at_gate("open", TEST_TIMEOUT);
    let soon = running.wait_for_stdout("\"id\":\"T-2\"");
    assert!(soon.contains("\"type\":\"result\"") && !soon.contains("\"type\":\"summary\""), "{soon}");
    agent.release("open");
    assert_eq!(event_types(&parse_events(&running.wait())).len(), 6);
}

#[test]
fn result_event_matches_report() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", SUITE);
    let events = parse_events(&project.hotseat(&["test", "--json", "--parallel", "1", "-o", "out.jsonl"]));
    let report = project.workspace.read("out.jsonl");
    let results: Vec<Value> = report
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .filter(|line: &Value| line["type"] == "result")
        .collect();
    let mut told: Vec<Value> = events.into_iter().filter(|event| event["type"] == "result").collect();
    for event in &mut told {
        // Only the event of a failed case contains the text of the console.
        let text = event.as_object_mut().and_then(|members| members.remove("text"));
        assert_eq!(text.is_some(), event["status"] == "failed", "{event}");
    }
    assert_eq!(results, told);
}

#[test]
fn emits_errors_as_events() {
    let agent = echo_agent();
    let project =
        Project::with_agent(&agent).suite("a", "name: a\nturns: [{ usr: hello }]\n---\nname: b\ntruns: []\n");
    let output = project.hotseat(&["test", "--json"]);
    let events = parse_events(&output);
    assert_eq!(output.code, 2, "{output}");
    let place = |event: &Value| (event["file"].clone(), event["line"].clone(), event["column"].clone());
    let mistakes: Vec<_> = events.iter().filter(|event| event["type"] == "error").collect();
    assert_eq!(place(mistakes[0]), (json!("a.test.yaml"), json!(2), json!(11)), "{output}");
    assert!(mistakes[0]["message"].as_str().is_some_and(|words| words.contains("usr")), "{output}");
    assert!(
        mistakes.iter().any(|event| event["help"].as_str().is_some_and(|help| help.contains("turns"))),
        "{output}"
    );
}

#[test]
fn every_failure_ends_with_summary_event() {
    let agent = echo_agent();
    let unreachable = Project::with_config(&format!("target: {{ endpoint: '{}' }}\n", unreachable_address()))
        .suite("a", SUITE);
    let output = unreachable.hotseat(&["test", "--json"]);
    let events = parse_events(&output);
    assert_eq!((output.code, events.len()), (3, 6), "{output}");
    assert!(
        events[5]["suggestion"].as_str().is_some_and(|words| words.starts_with("start the agent")),
        "{output}"
    );

    let config = "target: { endpoint: 'http://127.0.0.1:9/' }\nhooks: { fails: { cmd: ['false'] } }\n";
    let not_started = Project::with_config(config).suite("a", SUITE);
    let output = not_started.hotseat(&["test", "--json", "--before", "fails"]);
    assert_eq!((output.code, event_types(&parse_events(&output))), (3, vec!["error", "summary"]), "{output}");

    let project = Project::with_agent(&agent).suite("a", SUITE);
    for (args, code) in [
        (&["--run", "no such case"][..], 4),
        (&["--run", "("], 2),
        (&["--parallel", "0"], 2),
        (&["--no-such-flag"], 2),
        (&["-o", "a.txt"], 2),
        (&["-o", "hotseat.yaml/report.json"], 3),
        (&["no-such-file.yaml"], 4),
    ] {
        let output = project.hotseat(&[&["test", "--json"], args].concat());
        let events = parse_events(&output);
        assert_eq!(
            (output.code, event_types(&events)),
            (code, vec!["error", "summary"]),
            "{args:?}\n{output}"
        );
        assert!(events[0]["message"].as_str().is_some_and(|words| !words.is_empty()), "{args:?}\n{output}");
    }
    let helped = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nagents: {{ writer: {{ endpoint: '{agent}' }} }}\n"
    ));
    let output = helped.suite("a", SUITE).hotseat(&["test", "--json", "--reporter", "agents:writer"]);
    let events = parse_events(&output);
    assert_eq!((output.code, event_types(&events)), (2, vec!["error", "summary"]), "{output}");
    assert!(events[0]["help"].as_str().is_some_and(|help| help.contains("-o report.md")), "{output}");

    let full = project.hotseat(&["test", "--json", "--trace", "/dev/full"]);
    if cfg!(target_os = "linux") {
        assert_eq!((full.code, event_types(&parse_events(&full)).contains(&"error")), (3, true), "{full}");
    }
}

#[test]
fn emits_warnings_as_events() {
    let agent = echo_agent();
    let output = Project::with_agent(&agent).suite("a", "id: a\ninput: hello\n").hotseat(&["test", "--json"]);
    let events = parse_events(&output);
    assert_eq!(
        (&events[0]["type"], &events[0]["level"], &events[0]["line"]),
        (&json!("log"), &json!("warning"), &json!(1))
    );
    assert_eq!(events[events.len() - 1]["failed_ids"], json!([]));
    assert_eq!(events[events.len() - 1].get("suggestion"), None, "nothing has to be done");
}

#[test]
fn dry_run_emits_planned_cases() {
    let agent = echo_agent();
    let output = Project::with_agent(&agent).suite("a", SUITE).hotseat(&["test", "--json", "--dry-run"]);
    let events = parse_events(&output);
    assert_eq!(event_types(&events), ["dry_run_case", "dry_run_case", "summary"]);
    assert_eq!((&events[1]["id"], &events[1]["line"], output.code), (&json!("T-2"), &json!(6), 0));
    assert_eq!(agent.requests().len(), 0);
}

#[test]
fn annotations_are_written_elsewhere() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", SUITE);
    let output = project.command(&["test", "--json"]).env("GITHUB_ACTIONS", "true").run();
    read_events(&output);
    assert!(output.stderr.starts_with("::error file=a.test.yaml,line=8,"), "{output}");
}

#[test]
fn stdout_contains_only_events() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent)
        .suite("a", "name: a\nturns: [{ user: hello }]\n")
        .file(".hotseat", "no folder");
    let output = project.hotseat(&["test", "--json"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
    let warning = output.stdout.lines().find(|line| line.contains("this run is not saved"));
    assert!(warning.is_some_and(|line| line.contains(r#""type":"log""#)), "{output}");

    let output = project.hotseat(&["resume", "--json", "--bogus"]);
    assert_eq!((output.code, output.stderr.as_str()), (2, ""), "{output}");
    let events: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let types: Vec<_> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(json!(types), json!(["error", "summary"]), "{output}");
}
