//! Sweeps of faults in saved runs: their reports, shards, rechecks, and what remains after an interruption.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hotseat_testkit::FakeAgent;
use serde_json::{Value, json};

use crate::common::http_agents::bank_client;
use crate::common::{Project, TEST_TIMEOUT};
use crate::mcp::{BANK, bank_project, plain_agent};

/// An agent that acts twice after a fault, and one that does not.
const CASES: &str =
    "id: naive\nturns: [{ user: naive o-1 }]\n---\nid: careful\nturns: [{ user: careful o-1 }]\n";
const SWEEP: [&str; 5] = ["test", "--faults", "sweep", "--fault-kinds", "lost_answer,delay"];

fn sweep_with<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&SWEEP[..], arguments].concat()
}

fn report(project: &Project, name: &str) -> Value {
    project.workspace.read_json(name)
}

#[test]
fn a_saved_run_shows_its_sweep_again() {
    let agent = plain_agent();
    let project = bank_project(&agent, CASES);
    let names = ["r.json", "r.jsonl", "r.md", "r.xml", "r.html"];
    let outputs: Vec<&str> = names.iter().flat_map(|name| ["-o", name]).collect();
    project.hotseat(&sweep_with(&outputs)).assert_code(1);
    let first = names.map(|name| project.workspace.read(name));
    let shown = project.hotseat(&["show", "last"]);
    assert!(
        shown.stdout.contains("acted twice") && shown.stdout.contains("SWEEP OF FAULTS FAILED"),
        "{shown}"
    );
    assert_eq!(project.hotseat(&[&["show", "last"], &outputs[..]].concat()).code, 0);
    for (name, first) in names.iter().zip(first) {
        assert_eq!(project.workspace.read(name), first, "{name}");
    }
    let json = report(&project, "r.json");
    assert_eq!(json["summary"]["sweep_failures"], 1, "{json:#}");
    assert_eq!(json["fault_sweep"]["rows"].as_array().map(Vec::len), Some(4), "{json:#}");
    let listed = project.hotseat(&["runs"]);
    assert!(listed.stdout.contains("2 passed, 1 failed with a fault"), "{listed}");
    let rechecked = project.hotseat(&["recheck", "last"]);
    assert!(
        rechecked.stderr.contains("the sweep of faults, with 1 failure, is not rechecked"),
        "{rechecked}"
    );
}

/// Servers that read JUnit or annotations must not show a failed sweep as passed.
#[test]
fn a_failed_sweep_fails_in_junit_and_annotations() {
    let agent = plain_agent();
    let project = bank_project(&agent, CASES);
    let run = project.test_in(&[("GITHUB_ACTIONS", "true")], &[&SWEEP[1..], &["-o", "r.xml"]].concat());
    let junit = project.workspace.read("r.xml");
    for words in [
        "tests=\"6\" skipped=\"0\" failures=\"1\" errors=\"0\"",
        "name=\"naive: charge_card at bank #1, lost_answer\"",
        "<failure message=\"acted twice\"",
    ] {
        assert!(junit.contains(words), "{words}: {junit}");
    }
    let annotation = "::error title=naive (sweep of faults)::acted twice after lost_answer of charge_card #1 at bank: charge_card took effect 2 times";
    assert!(run.output.stdout.contains(annotation), "{}", run.output);
    assert_eq!(run.output.stdout.matches("::error").count(), 1, "{}", run.output);
}

#[test]
fn merged_shards_have_the_sweeps_of_all() {
    let suite = format!("{CASES}---\nid: no call\nturns: [{{ user: list }}]\n");
    let agent = plain_agent();
    let project = bank_project(&agent, &suite);
    let mut files = Vec::new();
    let mut codes = Vec::new();
    for part in ["1/3", "2/3", "3/3"] {
        codes.push(project.hotseat(&sweep_with(&["--shard", part])).code);
        let file = format!("{}.hotseat", &part[..1]);
        assert_eq!(project.hotseat(&["show", "last", "--export", &file]).code, 0);
        files.push(file);
    }
    // A shard without a case, or without a call, has no fault, which is no error.
    codes.sort_unstable();
    assert_eq!(codes, [0, 0, 1]);
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    project.hotseat(&[&["merge"], &files[..], &["-o", "m.json"]].concat()).assert_code(1);
    let sweep = &report(&project, "m.json")["fault_sweep"];
    let numbers = ["runs", "missing"].map(|key| sweep[key].as_u64());
    assert_eq!((numbers, sweep["rows"].as_array().map(Vec::len)), ([Some(4), Some(0)], Some(4)), "{sweep:#}");
    assert_eq!(sweep["skipped"][0]["case"], "no call", "{sweep:#}");
    // A shard without a sweep is another test.
    project.hotseat(&["test", "--shard", "1/3"]);
    project
        .hotseat(&[&["merge", "last"], &files[1..]].concat())
        .assert_stderr(2, &["only one has a sweep of faults"]);
    // Shards that all injected no fault prove nothing together.
    let project =
        project.suite("a", "id: one\nturns: [{ user: list }]\n---\nid: two\nturns: [{ user: list }]\n");
    for part in ["1/2", "2/2"] {
        assert_eq!(project.hotseat(&sweep_with(&["--shard", part])).code, 0);
    }
    project.hotseat(&["merge", "last", "last~1"]).assert_stderr(3, &["the sweep injected no fault"]);
}

#[test]
fn an_interrupted_sweep_is_resumed() {
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = is_slow.clone();
    let agent = FakeAgent::with_run(move |run, request| {
        let bank = bank_client(request);
        let paid = bank.call("charge_card", &json!({"order_id": "o-1", "amount": 5}));
        match paid {
            Ok(_) => run.text("Paid.").finished(),
            Err(_) if slow.load(Ordering::SeqCst) => run.gate("fault").text("Not paid.").finished(),
            Err(_) => run.text("Not paid.").finished(),
        }
    });
    let target = format!("target: {{ endpoint: '{agent}', headers: {{ x-bank: '${{MCP.bank.url}}' }} }}\n");
    let project = Project::with_config(&(target + BANK)).suite("a", "id: a\nturns: [{ user: pay }]\n");
    let arguments = ["test", "--parallel", "1", "--faults=sweep", "--fault-kinds", "is_error,http"];
    let mut running = project.command(&arguments).spawn();
    agent.wait_at_gate("fault", TEST_TIMEOUT);
    is_slow.store(false, Ordering::SeqCst);
    running.interrupt();
    running.wait_for_stdout("no new cases");
    agent.release("fault");
    running.wait().assert_stdout(130, &["1 conversation did not run"]);
    project.hotseat(&["resume", "last", "-o", "r.json"]).assert_code(0);
    let sweep = &report(&project, "r.json")["fault_sweep"];
    assert_eq!((&sweep["runs"], &sweep["missing"]), (&json!(2), &json!(0)), "{sweep:#}");
    project.hotseat(&["resume", "last"]).assert_stderr(2, &["is complete"]);
}
