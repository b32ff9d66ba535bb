//! Errors in large numbers and of large size: output and time stay bounded.
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use hotseat_testkit::FakeAgent;
use hotseat_testkit::agui::FakeRun;
use serde_json::json;

use crate::common::Project;

/// Maximum output of a flood.
const MAX_OUTPUT_BYTES: usize = 200_000;

/// Maximum duration. The flood takes well under a second of processor time, but machines may be busy.
const MAX_TIME: Duration = Duration::from_secs(20);

#[track_caller]
fn assert_bounded(project: &Project, args: &[&str], expected: &str) {
    let started = Instant::now();
    let output = project.hotseat(args);
    let printed = output.stdout.len() + output.stderr.len();
    assert!(started.elapsed() < MAX_TIME, "{args:?}: {:?}", started.elapsed());
    assert!(printed < MAX_OUTPUT_BYTES, "{args:?}: {printed} bytes");
    assert_eq!(output.code, 2, "{args:?}: {printed} bytes");
    let all = output.stdout + &output.stderr;
    assert!(all.contains(expected), "{args:?}: {}", &all[..all.len().min(3_000)]);
}

#[test]
fn many_unknown_keys_are_counted_not_listed() {
    let mut lines = "name: a\nturns: [{ user: Hello }]\n".to_string();
    for number in 0..20_000 {
        writeln!(lines, "unknown_{number}: 1").expect("memory takes everything");
    }
    let inline: Vec<String> = (0..20_000).map(|number| format!("unknown_{number}: 1")).collect();
    let one_line = format!("{{ name: a, turns: [{{ user: Hello }}], {} }}\n", inline.join(", "));
    for suite in [lines, one_line] {
        let project = Project::with_config("target: { endpoint: 'http://127.0.0.1:9' }\n").suite("a", &suite);
        assert_bounded(&project, &["test"], "… and 19900 more errors");
        assert_bounded(&project, &["test", "--json"], "… and 19900 more errors");
    }
}

/// An agent whose turn has 1,500 calls, each in a message of its own, and changes a large state 1,500 times.
fn agent_with_many_calls() -> FakeAgent {
    const MANY: usize = 1_500;
    FakeAgent::with_run(|run, _| {
        let run = run.state(json!({"big": vec!["x".repeat(20); 20_000], "n": 0}));
        let call = |run: FakeRun, n: usize| {
            run.tool(&format!("c{n}"), "look", &json!({"n": n}), Some(json!("ok")))
                .delta(json!([{"op": "replace", "path": "/n", "value": n}]))
        };
        (0..MANY).fold(run, call).text("Done.").finished()
    })
}

#[test]
fn a_turn_of_many_calls_is_shown_by_its_first_ones() {
    let agent = agent_with_many_calls();
    let suite = "name: a\nturns: [{ user: hello, assert: { text: { must_match: never } } }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    let output = project.hotseat(&["test"]);
    assert_eq!(output.code, 1, "{} bytes", output.stdout.len());
    assert!(output.stdout.contains("… 1401 more lines; `--verbose` shows all"), "{}", output.stdout);
    assert!(output.stdout.contains("Agent: \"Done.\""), "{}", output.stdout);
    assert!(output.stdout.len() < MAX_OUTPUT_BYTES, "{} bytes", output.stdout.len());
    let whole = project.hotseat(&["test", "--verbose"]);
    assert!(whole.stdout.matches("[tool: look(").count() >= 1_500);
}

/// Of a state that changes often the last one is recorded, and no other one is copied for that.
#[test]
fn a_recording_of_many_changes_of_a_large_state_takes_no_longer_than_the_run() {
    let agent = agent_with_many_calls();
    let project = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hello }]\n");
    let took = |args: &[&str]| {
        let started = Instant::now();
        project.hotseat(args).assert_code(0);
        started.elapsed()
    };
    let alone = took(&["test"]);
    let recorded = took(&["test", "--record", "rec"]);
    // To copy the state for each change takes several seconds more.
    assert!(recorded < 3 * alone + Duration::from_secs(1), "{recorded:?} instead of {alone:?}");
}

#[test]
fn a_check_of_calls_of_many_different_tools_takes_no_longer_than_the_run() {
    let agent = "read -r message\n\
        seq 60000 | sed 's/.*/{\"type\": \"tool_call\", \"name\": \"tool&\"}/'\n\
        echo '{\"type\": \"done\"}'\n";
    let project =
        Project::with_config("target: { type: command, command: [sh, agent.sh] }\n").file("agent.sh", agent);
    let took = |asserts: &str, code: i32| {
        let file = project.workspace.path("a.test.yaml");
        let suite = format!("name: a\nturns: [{{ user: hello, assert: {{ tools: {asserts} }} }}]\n");
        std::fs::write(file, suite).expect("the suite is written");
        let started = Instant::now();
        project.hotseat(&["test", "--no-store"]).assert_code(code);
        started.elapsed()
    };
    let (alone, failed) = (took("{ forbid: [absent] }", 0), took("{ require: [absent] }", 1));
    // To compare each name with all others takes several times as long.
    assert!(failed < 3 * alone + Duration::from_secs(1), "{failed:?} instead of {alone:?}");
}

#[test]
fn truncates_multi_megabyte_message() {
    let project = Project::with_config("target: { endpoint: 'http://127.0.0.1:9' }\n")
        .file("a_test.ts", "throw new Error('x'.repeat(10_000_000));\n");
    assert_bounded(&project, &["test", "a_test.ts"], "more bytes)");
    assert_bounded(&project, &["test", "--json", "a_test.ts"], "more bytes)");
}

#[test]
fn annotations_of_long_errors_are_bounded() {
    let agent = FakeAgent::with_run(|run, _| run.error(&"x".repeat(1_000_000), None));
    let project = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hello }]\n");
    let output = project.command(&["test"]).env("GITHUB_ACTIONS", "true").run();
    assert_eq!(output.code, 1, "{}", output.stderr.len());
    let annotation =
        output.stdout.lines().chain(output.stderr.lines()).find(|line| line.starts_with("::error "));
    let annotation = annotation.expect("a failed case has an annotation");
    assert!(annotation.contains("xxx") && annotation.len() < 20_000, "{} bytes", annotation.len());
}
