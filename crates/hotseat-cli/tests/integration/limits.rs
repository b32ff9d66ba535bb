//! Limits on depth, size and number of everything an agent sends, in every adapter.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::completions::ChatCompletion;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

#[cfg(target_os = "linux")]
use crate::common::inherited_peak;
use crate::common::{Project, TEST_TIMEOUT, TestRun};

const HELLO: &str = "name: a\nturns: [{ user: hello }]\n";

/// Patch operations that each double the depth of a document.
fn deepening_patch() -> Value {
    let mut path = "/a".to_string();
    let operations = (0..13).map(|_| {
        let operation = json!({"op": "copy", "from": "", "path": format!("{path}/a")});
        path = format!("{path}/a{}", path.clone());
        operation
    });
    operations.collect()
}

/// Patch operations that each double the size of a document.
fn growing_patch() -> Value {
    (0..40).map(|n| json!({"op": "copy", "from": "", "path": format!("/a/{n}")})).collect()
}

#[test]
fn oversized_state_patches_are_rejected() {
    for (patch, words) in [(deepening_patch(), "nested"), (growing_patch(), "")] {
        let state = json!({"a": {}});
        for on in ["STATE", "ACTIVITY"] {
            let (patch, state) = (patch.clone(), state.clone());
            let agent = FakeAgent::with_run(move |run, _| {
                let run = match on {
                    "STATE" => run.state(state.clone()).delta(patch.clone()),
                    _ => run
                        .raw_event(json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "x", "content": state}))
                        .raw_event(json!({"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "x", "patch": patch})),
                };
                run.text("Done.").finished()
            });
            let project = Project::with_agent(&agent)
                .suite("a", HELLO)
                .suite("b", "name: b\nturns: [{ user: hello }]\n");
            let tested = project.test(&["--trace", "out/trace.jsonl"]);
            for case in ["a", "b"] {
                let failure = tested.failure(case).to_string();
                assert!(failure.contains("a JSON Patch exceeds a limit of Hotseat"), "{failure}");
                assert_eq!(tested.failure(case)["kind"], "limit", "{failure}");
            }
            let trace = project.workspace.read("out/trace.jsonl");
            let note = format!("{on}_DELTA does not apply and changes nothing");
            assert!(trace.contains(&note) && trace.contains(words), "{on} {words}");
            assert!(trace.len() < 1_000_000, "{} bytes of trace", trace.len());
            for (again, code) in [("show", 0), ("recheck", 1), ("resume", 2)] {
                let output = project.hotseat(&[again, "last"]);
                assert_eq!(output.code, code, "{again}: {output}");
            }
        }
    }
}

/// What agents do that once ended whole runs is done again where the run is resumed.
#[test]
fn a_run_that_was_killed_under_a_hostile_agent_is_resumed_to_its_verdicts() {
    type Attack = fn(FakeRun) -> FakeRun;
    // The first two end their conversation.
    let attacks: [(&str, &str, &str, Attack); 4] = [
        ("depth", "failed", "-KILL", |run| run.state(json!({"a": {}})).delta(deepening_patch())),
        ("size", "failed", "-ABRT", |run| run.state(json!({"a": {}})).delta(growing_patch())),
        ("calls", "passed", "-KILL", |run| {
            (0..1_000)
                .fold(run, |run, n| run.tool(&format!("c{n}"), "look", &json!({"n": n}), Some(json!("ok"))))
        }),
        ("text", "passed", "-ABRT", |run| run.text(&"word ".repeat(40_000))),
    ];
    for (name, status, signal, attack) in attacks {
        let is_killed = Arc::new(AtomicBool::new(false));
        let over = is_killed.clone();
        let agent = FakeAgent::with_run(move |run, request| match request.last_user_text().as_str() {
            "attack" => attack(run).text("Done.").finished().reply(),
            "hold" if !over.load(Ordering::SeqCst) => run.hang().into(),
            _ => run.text("Done.").finished().reply(),
        });
        let turns = match status {
            "failed" => "[{ user: attack }]\n---\nname: c\nturns: [{ user: hold }]\n",
            _ => "[{ user: attack }, { user: hold }]\n---\nname: c\nturns: [{ user: hello }]\n",
        };
        let suite = format!("name: b\nturns: {turns}");
        let project = Project::with_agent(&agent).suite("a", HELLO).suite("b", &suite);
        let running = project.command(&["test", "--parallel", "1"]).spawn();
        // The attack was taken in before the next turn is sent.
        agent.wait_for_requests(3, TEST_TIMEOUT);
        assert_eq!(project.workspace.run("kill", &[signal, &running.id().to_string()]).code, 0);
        assert_ne!(running.wait().code, 0);
        is_killed.store(true, Ordering::SeqCst);
        let resumed = project.hotseat(&["resume", "last", "-o", "report.json"]);
        assert_eq!(resumed.code, i32::from(status == "failed"), "{name}: {resumed}");
        let report = project.workspace.read_json("report.json");
        let statuses: Vec<&Value> =
            report["results"].as_array().expect("results").iter().map(|result| &result["status"]).collect();
        assert_eq!(statuses, ["passed", status, "passed"], "{name}: {resumed}");
    }
}

#[test]
fn stores_small_state_changes_as_deltas() {
    let agent = FakeAgent::with_run(|run, _| {
        let state = json!({"big": "x".repeat(200_000), "n": -1});
        let change = |n: usize| json!([{"op": "replace", "path": "/n", "value": n}]);
        (0..100).fold(run.state(state), |run, n| run.delta(change(n))).text("Done.").finished()
    });
    let project = Project::with_agent(&agent).suite("a", HELLO);
    project.test(&["--trace", "out/trace.jsonl"]).assert_all_passed();
    let trace = project.workspace.read("out/trace.jsonl");
    assert!(trace.len() < 500_000, "{} bytes of trace", trace.len());
    assert_eq!(trace.matches("\"state.delta\"").count(), 100);
}

/// Kind of excessive output.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Flood {
    Text,
    Calls,
}

/// Number of text pieces or calls that a flooding agent sends.
const FLOOD_SIZE: usize = 400;

fn text_piece() -> String {
    "word ".repeat(200)
}

/// One project per adapter whose agent sends the given flood.
fn flooding_projects(flood: Flood) -> Vec<(&'static str, Project, Option<FakeAgent>)> {
    let is_text = flood == Flood::Text;
    // Unstreamed answers are measured in bytes before their calls are counted, so these limits leave room for
    // them.
    let limits = if is_text { LIMITS.to_string() } else { LIMITS.replace("100000,", "10000000,") };
    let served = |name: &'static str, target: &str, reply: FakeReply| {
        let agent = FakeAgent::start(move |_| reply.clone());
        let target = target.replace("URL", &agent.url());
        (name, Project::with_config(&format!("target:\n{target}{limits}")), Some(agent))
    };
    let ag_ui = move |request: &FakeRequest| {
        let run = FakeRun::for_request(request).started();
        let run = (0..FLOOD_SIZE).fold(run, |run, n| match is_text {
            true => run
                .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": text_piece()})),
            false => run.tool(&format!("c{n}"), "look", &json!({"n": n}), Some(json!("ok"))),
        });
        run.finished().reply()
    };
    let agent = FakeAgent::start(ag_ui);
    let target = format!("target:\n  endpoint: {agent}\n{limits}");
    let mut all = vec![("ag_ui", Project::with_config(&target), Some(agent))];

    let completion = (0..FLOOD_SIZE).fold(ChatCompletion::new(), |completion, n| match is_text {
        true => completion.text(&text_piece()),
        false => completion.tool(n, &format!("c{n}"), "look", &json!({"n": n})),
    });
    all.push(served(
        "openai",
        "  type: openai\n  base_url: URLv1\n  model: m\n",
        completion.finish("stop").streamed(),
    ));

    let events: Vec<Value> = (0..FLOOD_SIZE)
        .map(|n| match is_text {
            true => json!({"delta": text_piece()}),
            false => json!({"delta": "x", "call": {"id": format!("c{n}"), "name": "look", "arguments": {}}}),
        })
        .chain([json!({"end": true})])
        .collect();
    let map = "  body: { m: '{{message}}' }\n  map: { reply: $.delta, tool_calls: $.call, done: $.end }\n";
    let sse = events.iter().cloned().fold(FakeReply::sse(), FakeReply::event);
    all.push(served("http sse", &format!("  type: http\n  endpoint: URLchat\n  stream: sse\n{map}"), sse));
    let head = FakeReply::status(200).header("content-type", "application/x-ndjson");
    let lines = events.iter().fold(head, |reply, event| reply.bytes(format!("{event}\n")));
    all.push(served(
        "http ndjson",
        &format!("  type: http\n  endpoint: URLchat\n  stream: ndjson\n{map}"),
        lines,
    ));
    let whole = match is_text {
        true => json!({"delta": text_piece().repeat(FLOOD_SIZE)}),
        false => {
            json!({"delta": "x", "call": (0..FLOOD_SIZE).map(|n| json!({"id": n.to_string(), "name": "look"})).collect::<Vec<_>>()})
        }
    };
    let map = "  body: { m: '{{message}}' }\n  map: { reply: $.delta, tool_calls: $.call }\n";
    all.push(served(
        "http",
        &format!("  type: http\n  endpoint: URLchat\n{map}"),
        FakeReply::json(200, &whole),
    ));

    // The programs never stop by themselves.
    let line = match is_text {
        true => json!({"type": "text", "delta": text_piece()}),
        false => json!({"type": "tool_call", "name": "look", "arguments": {}}),
    };
    let program = |name: &'static str, protocol: &str, printed: &str| {
        let target =
            format!("target:\n  type: command\n  command: [sh, agent.sh]\n  protocol: {protocol}\n{limits}");
        (
            name,
            Project::with_config(&target).file("agent.sh", &format!("read -r message\nyes '{printed}'\n")),
            None,
        )
    };
    all.push(program("command", "json_lines", &line.to_string()));
    if is_text {
        all.push(program("command text", "text", "word"));
        let script = json!({"use": "always", "rules": [{"reply": text_piece().repeat(FLOOD_SIZE)}]});
        let target = format!("target: {{ type: embedded, agent: . }}\n{limits}");
        let project = Project::with_config(&target)
            .file("agent.yaml", "name: Clerk\nsystem: You are a clerk.\n")
            .file("script.yaml", &script.to_string());
        all.push(("embedded", project, None));
    }
    // Recordings made without limits are replayed within them.
    let agent = FakeAgent::start(ag_ui);
    let project = Project::with_agent(&agent).suite("a", HELLO);
    project.test(&["--record", "rec"]).assert_all_passed();
    project.workspace.file("hotseat.yaml", &format!("target:\n  type: replay\n  from: rec\n{limits}"));
    all.push(("replay", project, None));
    all
}

/// Limits that every flood exceeds.
const LIMITS: &str = "limits:\n  turn: { bytes: 100000, calls: 50, events: 100000 }\n";

fn assert_limited(name: &str, tested: &TestRun, limit: &str) {
    let failure = tested.assert_fault("a", "limit", "agent");
    let message = failure["message"].as_str().unwrap_or_default();
    assert!(message.contains(&format!("`limits.{limit}`")), "{name}: {message}");
    assert_eq!(tested.output.code, 1, "{name}: {}", tested.output);
}

#[test]
fn unbounded_output_hits_limit_in_every_adapter() {
    for flood in [Flood::Text, Flood::Calls] {
        for (name, project, _agent) in flooding_projects(flood) {
            let limit = if flood == Flood::Text { "turn.bytes" } else { "turn.calls" };
            let project = project.suite("a", HELLO);
            let tested = project.test(&[]);
            assert_limited(&format!("{name}, {flood:?}"), &tested, limit);
            // Keeps the output before the limit and little more. Chat completions send three characters per
            // chunk.
            let report = tested.case("a").to_string();
            assert!(report.len() < 3_000_000, "{name}: {} bytes of report", report.len());
            if ["ag_ui", "openai", "http sse", "http ndjson", "command"].contains(&name) {
                let turn = &tested.case("a")["turns"][0];
                let kept = match flood {
                    Flood::Text => turn["output"].as_str().is_some_and(|text| text.len() > 1_000),
                    Flood::Calls => turn["tool_calls"].as_array().is_some_and(|calls| calls.len() >= 50),
                };
                assert!(kept, "{name}, {flood:?}: {turn}");
            }
        }
    }
}

#[test]
fn size_limits_apply_to_conversations_and_runs() {
    let agent = FakeAgent::with_text("word ".repeat(2000));
    let turns = "turns: [{ user: one }, { user: two }, { user: three }, { user: four }]\n";
    for (limits, limit, failed) in [
        ("conversation: { bytes: 30000 }", "conversation.bytes", ["a", "b"]),
        ("conversation: { events: 10 }", "conversation.events", ["a", "b"]),
        ("run: { bytes: 70000 }", "run.bytes", ["a", "a"]),
    ] {
        let target = format!("target:\n  endpoint: {agent}\nparallel: 1\nlimits:\n  {limits}\n");
        let project = Project::with_config(&target)
            .suite("a", &format!("name: a\n{turns}"))
            .suite("b", &format!("name: b\n{turns}"));
        let tested = project.test(&[]);
        for name in failed {
            let failure = tested.failure(name);
            assert_eq!(failure["kind"], "limit", "{limits}: {failure:#}");
            assert!(failure["message"].as_str().unwrap_or_default().contains(limit), "{failure:#}");
        }
    }
}

/// After a limit of the run is exceeded, no case starts: it would fail for what other agents did.
#[test]
fn an_exceeded_limit_of_the_run_leaves_cases_out() {
    let agent = FakeAgent::with_run(|run, request| {
        let calls = if request.last_user_text() == "call" { 2 } else { 0 };
        (0..calls)
            .fold(run, |run, n| run.tool(&format!("c{n}"), "look", &json!({"n": n}), Some(json!("ok"))))
            .text("Done.")
            .finished()
    });
    let config =
        format!("target: {{ endpoint: '{agent}' }}\nparallel: 1\nlimits: {{ run: {{ calls: 1 }} }}\n");
    let project = Project::with_config(&config)
        .suite("a", "name: a\nturns: [{ user: call }]\n")
        .suite("b", "name: b\nturns: [{ user: hello }]\n");
    let tested = project.test(&[]);
    assert_eq!(tested.failure("a")["kind"], "limit", "{}", tested.output);
    let left_out = tested.case("b");
    assert_eq!(left_out["status"], "skipped", "{}", tested.output);
    let reason = left_out["skip_reason"].as_str().unwrap_or_default();
    assert!(reason.contains("`limits.run.calls` of the project is exceeded"), "{left_out:#}");
    assert_eq!(agent.requests().len(), 1);
    let runs = project.hotseat(&["runs"]);
    assert!(runs.stdout.contains("incomplete"), "{runs}");
}

#[test]
fn rejects_invalid_limits_with_location() {
    for (limits, words) in [
        ("turn: { bytes: 0 }", "hotseat.yaml:3"),
        ("turn: { byte: 7 }", "did you mean"),
        ("case: { bytes: 7 }", "hotseat.yaml:3"),
    ] {
        let project = Project::with_config(&format!(
            "target: {{ endpoint: 'http://127.0.0.1:1/' }}\nlimits:\n  {limits}\n"
        ));
        let output = project.suite("a", HELLO).hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{limits}: {output}");
    }
}

/// Projects whose agents send text as fast as they can, by protocol, with a time limit of the turn.
fn endless_projects(timeout_ms: u64, limits: &str) -> Vec<(&'static str, Project, Option<FakeAgent>)> {
    let piece = "word ".repeat(200);
    let served = |name: &'static str, event: Value, target: &str| {
        let much: &'static [u8] = format!("data: {event}\n\n").repeat(64).leak().as_bytes();
        let agent = FakeAgent::start(move |_: &FakeRequest| {
            (0..100_000).fold(FakeReply::sse(), |reply, _| reply.bytes(much)).hang()
        });
        let config = format!("{}  timeout_ms: {timeout_ms}\n{limits}", target.replace("URL", &agent.url()));
        (name, Project::with_config(&config).suite("a", HELLO), Some(agent))
    };
    let program = |name: &'static str, line: &Value| {
        let target = "target:\n  type: command\n  command: [sh, agent.sh]\n";
        let project = Project::with_config(&format!("{target}  timeout_ms: {timeout_ms}\n{limits}"));
        let project = project.file("agent.sh", &format!("read -r message\nyes '{line}'\n"));
        (name, project.suite("a", HELLO), None)
    };
    vec![
        served(
            "ag_ui",
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": piece}),
            "target:\n  endpoint: URL\n",
        ),
        served(
            "openai",
            json!({"choices": [{"index": 0, "delta": {"content": piece}}]}),
            "target:\n  type: openai\n  base_url: URLv1\n  model: m\n",
        ),
        program("command", &json!({"type": "text", "delta": piece})),
        program("command without text", &json!({"type": "usage", "usage": {}})),
    ]
}

/// Limits that no agent of these tests reaches.
const WIDE_LIMITS: &str = "limits:\n  turn: { bytes: 1000000000000, events: 1000000000 }\n  conversation: { bytes: 1000000000000, events: 1000000000 }\n";

/// An endless agent is never idle. Nothing that arrives after the deadline counts, however long the data before takes to
/// process.
#[test]
fn a_flooded_turn_ends_exactly_at_its_deadline() {
    for (name, project, _agent) in endless_projects(200, WIDE_LIMITS) {
        let tested = project.test(&["--trace", "out/trace.jsonl"]);
        let failure = tested.failure("a");
        assert_eq!(failure["kind"], "timeout", "{name}: {failure:#}");
        let took = tested.case("a")["turns"][0]["duration_ms"].as_f64().expect("a duration");
        assert!((200.0..201.0).contains(&took), "{name}: the turn took {took} ms");
        let trace = project.workspace.read("out/trace.jsonl");
        let events: Vec<Value> =
            trace.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
        let offset = |kind: &str| {
            let event = events.iter().find(|event| event["type"] == kind);
            event.unwrap_or_else(|| panic!("{name}: no {kind}"))["offsetUs"].as_u64().expect("a time")
        };
        let deadline = offset("turn.started") + 200_000;
        assert!(offset("turn.failed").abs_diff(deadline) <= 1, "{name}");
        assert!(events.iter().all(|event| event["offsetUs"].as_u64() <= Some(deadline + 1)), "{name}");
    }
}

/// A limit of a check ends the turn just after it, so the check fails by the measured time.
#[test]
fn a_flooded_turn_ends_just_after_the_limit_of_a_check() {
    let limited = "name: a\nturns: [{ user: hello }]\nassert: { timing: { max_duration_ms: 300 } }\n";
    let (_, project, _agent) = endless_projects(60_000, WIDE_LIMITS).remove(0);
    let tested = project.suite("a", limited).test(&[]);
    let failure = tested.failure("a");
    assert_eq!(failure["kind"], "assertion", "{failure:#}");
    let took = tested.case("a")["turns"][0]["duration_ms"].as_f64().expect("a duration");
    assert!((300.5..302.0).contains(&took), "the turn took {took} ms");
}

/// The branches of each round lie within one of the round before: 10,000 tokens have up to a thousand around them.
#[cfg(target_os = "linux")]
#[test]
fn a_cycle_of_workflow_branches_takes_little_memory() {
    const MOST: u64 = 500_000_000;
    let agent = "name: W\ntools: [{ name: go, workflow: rounds }]\n";
    let script = "use: always
rules:
  - { when: { tool_result: { tool: go } }, reply: '{{ results.go }}' }
  - { reply: { tool_calls: [{ name: go, arguments: {} }] } }
";
    let workflow = "nodes:
  - { name: a, task: { steps: [{ mock: { computes: '{ l: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] }' } }] } }
  - { name: b, task: { steps: [{ mock: { returns: 2 } }] } }
transitions:
  - { from: a, to: b, for_each: { collection: output.l, item: x }, group: g }
  - { from: b, to: a }
";
    let project = Project::with_config(
        "target: { type: embedded, agent: ., timeout_ms: 100000 }\nstore: false\n",
    )
    .file("agent.yaml", agent)
    .file("script.yaml", script)
    .file("workflows/rounds.yaml", workflow)
    .suite(
        "a",
        "name: a\nturns: [{ user: go, assert: { text: { must_match: 'has created 10000 tokens' } } }]\n",
    );
    let (output, peak) = project.command(&["test"]).timeout(TEST_TIMEOUT).spawn().wait_and_measure();
    assert_eq!(output.code, 0, "{output}");
    assert!(peak <= MOST.max(inherited_peak()), "{} MB", peak / 1_000_000);
}

/// A message that starts again under one id continues its text. Each of the texts so far would take 50 MB in a conversation.
#[cfg(target_os = "linux")]
#[test]
fn a_restarted_message_takes_little_memory() {
    const MOST: u64 = 150_000_000;
    let event = |kind: &str, index: usize| {
        let delta = (kind == "CONTENT").then(|| format!("{index:>1000}"));
        let event = json!({"type": format!("TEXT_MESSAGE_{kind}"), "messageId": "m", "delta": delta});
        format!("data: {event}\n\n")
    };
    let restarts = |index: usize| ["START", "CONTENT", "END"].map(|kind| event(kind, index)).concat();
    let texts: &'static [u8] = (0..320).map(restarts).collect::<String>().leak().as_bytes();
    let agent = FakeAgent::start(move |_: &FakeRequest| {
        let started = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"});
        let finished = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"});
        FakeReply::sse().event(started).bytes(texts).event(finished)
    });
    let case = |number: usize| format!("name: c{number}\nturns: [{{ user: go }}]\n");
    let suite = (0..8).map(case).collect::<Vec<_>>().join("---\n");
    let project = Project::with_config(&format!("target: {{ endpoint: '{agent}' }}\nstore: false\n"));
    let project = project.suite("a", &suite);
    let (output, peak) = project.command(&["test"]).timeout(TEST_TIMEOUT).spawn().wait_and_measure();
    assert_eq!(output.code, 0, "{output}");
    assert!(peak <= MOST.max(inherited_peak()), "{} MB", peak / 1_000_000);
}

/// The text is kept once, not once for each part of Hotseat that reads it.
#[cfg(target_os = "linux")]
#[test]
fn endless_text_takes_a_small_multiple_of_its_size() {
    const RECEIVED: u64 = 100_000_000;
    const BASE: u64 = 50_000_000;
    let limits = format!("limits:\n  turn: {{ bytes: {RECEIVED}, events: 1000000000 }}\n");
    for (name, project, _agent) in endless_projects(600_000, &limits).into_iter().take(3) {
        let (output, peak) = project.command(&["test"]).timeout(TEST_TIMEOUT).spawn().wait_and_measure();
        assert!(output.code == 1 && output.stdout.contains("limits.turn.bytes"), "{name}: {output}");
        let most = (BASE + 7 * RECEIVED / 2).max(inherited_peak());
        assert!(peak <= most, "{name}: {} MB", peak / 1_000_000);
    }
}
