//! Isolation: a flooding agent does not affect concurrent conversations.
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, ReplyStep};
use serde_json::{Value, json};

use crate::common::http_agents::http_target;
#[cfg(target_os = "linux")]
use crate::common::inherited_peak;
use crate::common::{Lifeline, Project, TEST_TIMEOUT, TestRun, echo_agent};

/// A project with a hostile agent and a good one, whose cases start later.
fn project_with_both(hostile: &FakeAgent, good: &FakeAgent) -> Project {
    Project::with_config(&format!(
        "store: false\nagents:\n  hostile: {{ endpoint: '{hostile}', folder: first }}\n  good: {{ endpoint: '{good}', folder: second }}\n"
    ))
}

/// Cases with one turn each, with further keys.
fn suite(name: &str, count: usize, keys: &str) -> String {
    let one = |number| format!("name: {name}-{number}\n{keys}turns: [{{ user: hello }}]\n");
    (1..=count).map(one).collect::<Vec<_>>().join("---\n")
}

/// Results of the cases of this agent.
fn results_of_agent<'a>(tested: &'a TestRun, agent: &str) -> Vec<&'a Value> {
    let results = tested.results();
    results
        .iter()
        .filter(|result| result["name"].as_str().is_some_and(|name| name.starts_with(agent)))
        .collect()
}

/// A state of about one megabyte in small values, which is slow to process.
fn large_state() -> &'static [u8] {
    let state: Vec<Value> = (0..20_000).map(|n| json!({"id": n, "words": ["one", "two", "three"]})).collect();
    format!("data: {}\n\n", json!({"type": "STATE_SNAPSHOT", "snapshot": state})).leak().as_bytes()
}

/// An agent that sends such states until the connection closes.
fn send_states(request: &FakeRequest, state: &'static [u8]) -> FakeReply {
    let run = FakeRun::for_request(request).started();
    (0..10_000).fold(run, |run, _| run.step(ReplyStep::Bytes(state.into()))).hang().into()
}

/// An agent that sends text immediately and endlessly.
fn endless_reply(request: &FakeRequest) -> FakeReply {
    let open = json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"});
    let more = json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "and so on "});
    let much: &'static [u8] = format!("data: {more}\n\n").repeat(1_000).leak().as_bytes();
    let run = FakeRun::for_request(request).started().raw_event(open);
    (0..100_000).fold(run, |run, _| run.step(ReplyStep::Bytes(much.into()))).hang().into()
}

#[test]
fn slow_check_does_not_slow_other_agents() {
    let long: &'static str = "abcdefgh ".repeat(100_000).leak();
    let hostile = FakeAgent::with_text(long);
    let good = FakeAgent::with_run(|run, _| run.pause(Duration::from_millis(50)).text("Hello.").finished());
    let slow = "assert: { text: { must_match: '([a-h]+ )+[0-9]$' } }\n";
    let limited = "assert: { timing: { max_duration_ms: 1000 } }\n";
    let project = project_with_both(&hostile, &good)
        .suite("first/a", &suite("hostile", 4, slow))
        .suite("second/a", &suite("good", 40, limited));
    let tested = project.test(&["--parallel", "8"]);
    let passed =
        results_of_agent(&tested, "good").iter().filter(|result| result["status"] == "passed").count();
    assert_eq!((passed, results_of_agent(&tested, "good").len()), (40, 40), "{}", tested.output);
    for result in results_of_agent(&tested, "hostile") {
        assert_eq!(result["failure"]["kind"], "assertion", "{result:#}");
    }
}

/// An agent may close a connection after an answer without saying so, and a further request there gets no answer.
#[test]
fn agents_that_close_connections_fail_no_other_conversation() {
    let body = r#"{"reply": "Hi."}"#;
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let agent = FakeAgent::start(move |_: &FakeRequest| FakeReply {
        before: vec![
            ReplyStep::Bytes(answer.clone().into()),
            ReplyStep::Pause(Duration::from_millis(3)),
            ReplyStep::Cut,
        ],
        ..FakeReply::status(200)
    });
    let tested = Project::with_config(&http_target(&agent, "")).suite("a", &suite("case", 200, "")).test(&[]);
    tested.assert_all_passed();
}

/// Once an agent has answered a further request on a connection, conversations share connections.
#[test]
fn conversations_share_connections_to_agents_that_keep_them() {
    const CASES: usize = 40;
    let agent = echo_agent();
    let case = |number: usize| format!("name: case-{number}\nturns: [{{ user: one }}, {{ user: two }}]\n");
    let suite = (0..CASES).map(case).collect::<Vec<_>>().join("---\n");
    Project::with_agent(&agent).suite("a", &suite).test(&["--parallel", "1"]).assert_all_passed();
    let connections: BTreeSet<usize> = agent.requests().iter().map(|request| request.connection).collect();
    assert!(connections.len() < CASES / 2, "{connections:?}");
}

#[test]
fn turn_times_out_during_flood() {
    let hostile = FakeAgent::start(endless_reply);
    let good = echo_agent();
    let keys = "timeout_ms: 1000\n";
    let project = project_with_both(&hostile, &good).suite("first/a", &suite("hostile", 2, keys));
    let tested = project.test(&["--parallel", "2"]);
    for result in results_of_agent(&tested, "hostile") {
        assert_eq!(result["status"], "failed", "{result:#}");
        let took = result["duration_ms"].as_f64().expect("a duration");
        // The limit is 250 ms; the rest is tolerance for concurrent tests.
        assert!(took < 2500.0, "{took} ms instead of 1000: {:#}", result["failure"]);
    }
}

#[test]
fn third_ctrl_c_ends_run_during_flood() {
    let state = large_state();
    let hostile = FakeAgent::start(move |request| send_states(request, state));
    let project = Project::with_config(&format!(
        "store: false\nagents:\n  hostile: {{ endpoint: '{hostile}', folder: first }}\n  program: {{ type: command, command: [sh, agent.sh], folder: second }}\n"
    ))
    .file("agent.sh", "exec 3>alive\ntrap '' TERM\nsleep 1000\n")
    .suite("first/a", &suite("hostile", 3, ""))
    .suite("second/a", &suite("program", 1, ""));
    let alive = Lifeline::new(&project.workspace, "alive");
    let mut running = project.command(&["test", "--parallel", "4"]).spawn();
    hostile.wait_for_requests(3, TEST_TIMEOUT);
    alive.wait_for_start();
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    running.press_ctrl_c();
    running.press_ctrl_c();
    let pressed = Instant::now();
    let output = running.wait();
    assert_eq!(output.code, 130, "{output}");
    assert!(pressed.elapsed() < Duration::from_secs(5), "{:?}: {output}", pressed.elapsed());
    alive.wait_for_end();
}

/// Hostile or broken behaviour, selected by the user text.
fn hostile_reply(request: &FakeRequest, state: &'static [u8]) -> FakeReply {
    let run = FakeRun::for_request(request).started();
    let lines = |line: &'static str, count: usize| {
        (0..count).fold(FakeReply::sse(), |reply, _| reply.bytes(line.as_bytes())).hang()
    };
    match request.last_user_text().as_str() {
        "text" => endless_reply(request),
        "states" => send_states(request, state),
        "deltas" => {
            let delta = json!([{"op": "add", "path": "/-", "value": "more"}]);
            let run = run.state(json!([]));
            (0..3_000).fold(run, |run, _| run.delta(delta.clone())).hang().into()
        }
        "silence" => run.hang().into(),
        "cut" => run.text("Hel").cut().into(),
        "a page" => FakeReply::text(200, "<html>").header("content-type", "text/html"),
        "comments" => lines(": still here\n\n", 200_000),
        "a line" => lines("data: without an end", 200_000),
        "depth" => {
            let deep = format!("data: {}\n\n", "[".repeat(1_000_000));
            FakeReply::sse().bytes(deep).hang()
        }
        "an error" => {
            let body: &'static [u8] = vec![b'x'; 1_000_000].leak();
            (0..100).fold(FakeReply::status(500), |reply, _| reply.bytes(body)).hang()
        }
        other => panic!("nothing is done for {other}"),
    }
}

/// What hostile agents do, with what their cases may fail as: the kind of the failure, and a part of its message. Whether a
/// flood ends by its time or by its size depends on the machine.
#[cfg(target_os = "linux")]
const HOSTILE_KINDS: [(&str, &[(&str, &str)]); 10] = [
    ("text", &[("timeout", "timed out after 2000 ms"), ("limit", "`limits.turn.bytes`")]),
    ("states", &[("timeout", "timed out after 2000 ms"), ("limit", "`limits.turn.bytes`")]),
    ("deltas", &[("timeout", "timed out after 2000 ms")]),
    ("silence", &[("timeout", "timed out after 2000 ms")]),
    ("cut", &[("protocol_error", "the connection broke")]),
    ("a page", &[("protocol_error", "the stream ended without a single event")]),
    ("comments", &[("timeout", "timed out after 2000 ms")]),
    ("a line", &[("timeout", "timed out after 2000 ms")]),
    ("depth", &[("protocol_error", "not an event, it is nested deeper than 127 levels")]),
    ("an error", &[("agent_error", "500")]),
];

/// The durations of the good cases of a run, in order of their length; all have passed, and every hostile one has failed with
/// words of its own.
#[cfg(target_os = "linux")]
fn durations(project: &Project, output: &hotseat_testkit::ProgramOutput) -> Vec<f64> {
    let report = project.workspace.read_json("report.json");
    let results = report["results"].as_array().expect("a list of results");
    let (mut durations, mut unexpected) = (Vec::new(), Vec::new());
    for result in results {
        let name = result["name"].as_str().expect("a name");
        if name.starts_with("good") {
            assert_eq!(result["status"], "passed", "{result:#}\n{output}");
            durations.push(result["duration_ms"].as_f64().expect("a duration"));
        } else {
            assert_eq!(result["status"], "failed", "{result:#}");
            let failure = &result["failure"];
            assert_eq!(failure["fault"], "agent", "{name}: {failure:#}");
            let (_, expected) = HOSTILE_KINDS
                .iter()
                .find(|(kind, _)| name.starts_with(&format!("bad {kind} ")))
                .expect("a kind");
            let message = failure["message"].as_str().expect("a message");
            let fits = |(kind, words): &(&str, &str)| failure["kind"] == *kind && message.contains(words);
            if !expected.iter().any(fits) {
                unexpected.push(format!("{name}: {failure:#}"));
            }
        }
    }
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
    durations.sort_by(f64::total_cmp);
    durations
}

/// Ten conversations with agents of each kind of malice beside a hundred with one that behaves. With the environment
/// variable `HOTSEAT_SOAK` there are that many times as many of both in one run.
#[cfg(target_os = "linux")]
#[test]
fn hundred_good_cases_pass_with_ten_hostile_agents() {
    let times =
        std::env::var("HOTSEAT_SOAK").map_or(1, |times| times.parse().expect("HOTSEAT_SOAK is a number"));
    const MAX_MEMORY_BYTES: u64 = 512 * 1024 * 1024;
    let state = large_state();
    let bad = FakeAgent::start(move |request| hostile_reply(request, state));
    let good = FakeAgent::with_run(|run, _| run.pause(Duration::from_millis(300)).text("Hello.").finished());
    let limited = "assert: { timing: { max_duration_ms: 1500 } }\n";
    let bad_case = |number: usize| {
        let (kind, _) = HOSTILE_KINDS[number % HOSTILE_KINDS.len()];
        format!("name: bad {kind} {number}\ntimeout_ms: 2000\nturns: [{{ user: {kind} }}]\n")
    };
    let project = project_with_both(&bad, &good)
        .suite("first/a", &(0..10 * times).map(bad_case).collect::<Vec<_>>().join("---\n"))
        .suite("second/a", &suite("good", 100 * times, limited));
    let run = |paths: &[&str]| {
        let args = [&["test", "-o", "report.json", "--parallel", "20"], paths].concat();
        let timeout = (1 + u32::try_from(times).expect("a small number")) * TEST_TIMEOUT;
        let (output, peak) = project.command(&args).timeout(timeout).spawn().wait_and_measure();
        (durations(&project, &output), peak)
    };
    let median = |durations: &[f64]| durations[durations.len() / 2];
    // Other work on the machine can slow one of two runs, but not the same one of each pair.
    let mut pairs = Vec::new();
    for _ in 0..3 {
        let (alone, _) = run(&["second"]);
        let (beside, peak) = run(&[]);
        assert_eq!((alone.len(), beside.len()), (100 * times, 100 * times));
        assert!(peak <= MAX_MEMORY_BYTES.max(inherited_peak()), "{} MB", peak / 1024 / 1024);
        if median(&beside) <= 1.1 * median(&alone) {
            return;
        }
        pairs.push(format!("{} ms, {} ms", median(&alone), median(&beside)));
    }
    panic!("medians alone and beside hostile agents: {}", pairs.join("; "));
}

/// Starts a server that sends these bytes again and again, until the connection closes.
fn endless_server(block: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let block: &'static [u8] = block.leak().as_bytes();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            thread::spawn(move || {
                // Its first bytes are those of a request.
                let _ = client.read(&mut [0; 1024]);
                while client.write_all(block).is_ok() {}
            });
        }
    });
    format!("http://{address}/")
}

/// `100 Continue` is no answer, however often it comes.
#[test]
fn endless_interim_responses_are_no_answer() {
    let hostile = endless_server("HTTP/1.1 100 Continue\r\n\r\n".repeat(10_000));
    let good = echo_agent();
    let agents =
        ["type: ag-ui", "type: http, body: '{{message}}', map: { reply: $ }", "type: openai, model: m"];
    let suite = (0..10).map(|n| format!("name: good {n}\nturns: [{{ user: hello }}]\n"));
    for agent in agents {
        let key = if agent.contains("openai") { "base_url" } else { "endpoint" };
        let config = format!(
            "target: {{ endpoint: '{good}' }}\nagents: {{ bad: {{ {agent}, {key}: '{hostile}' }} }}\n"
        );
        let bad = "name: bad\nagent: bad\nturns: [{ user: hello }]\n".to_string();
        let cases: Vec<String> = std::iter::once(bad).chain(suite.clone()).collect();
        let tested =
            Project::with_config(&config).suite("a", &cases.join("---\n")).test(&["--parallel", "4"]);
        tested.assert_failure("bad", "protocol_error", &["more than 100 interim responses (HTTP 1xx)"]);
        assert_eq!(tested.count("passed"), 10, "{agent}: {}", tested.output);
    }
}

/// A schema that needs 2^40 steps for every value.
fn doubling_schema() -> Value {
    let mut definitions = serde_json::Map::from_iter([("d40".to_string(), json!(false))]);
    for n in 0..40 {
        let next = format!("#/$defs/d{}", n + 1);
        definitions.insert(format!("d{n}"), json!({"anyOf": [{"$ref": next}, {"$ref": next}]}));
    }
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

#[test]
fn costly_schemas_and_paths_do_not_decide_other_verdicts() {
    let agent = FakeAgent::with_run(|run, request| {
        let nested = (0..100).fold(json!(1), |inner, _| json!({"a": inner, "b": 1}));
        let answer = if request.last_user_text() == "nested" { nested } else { json!({"a": 1}) };
        run.text(&answer.to_string()).finished()
    });
    let case = |id: &str, user: &str, check: Value| {
        json!({"id": id, "input": user, "assertions": [check]}).to_string()
    };
    let costly =
        |n| case(&format!("costly-{n}"), "hello", json!({"type": "schema", "schema": doubling_schema()}));
    let path = |negate| json!({"type": "json_path", "path": "$..a..a..a..a", "value": 5, "negate": negate});
    let good = json!({"type": "schema", "schema": {"type": "object", "required": ["a"]}});
    let lines: Vec<String> = (0..9)
        .map(costly)
        .chain([false, true].map(|negate| case(&format!("path-{negate}"), "nested", path(negate))))
        .chain([case("good", "hello", good)])
        .collect();
    let project = Project::with_agent(&agent).file("a.test.jsonl", &lines.join("\n"));
    let tested = project.test(&[]);
    let results = tested.results();
    for result in results {
        let expected = if result["id"] == "good" { "passed" } else { "failed" };
        assert_eq!(result["status"], expected, "{result}");
    }
    let words = tested.output.stdout.as_str();
    assert!(
        words.contains("by its schema takes more than")
            && words.contains("it would visit or select too many parts"),
        "{words}"
    );
}
