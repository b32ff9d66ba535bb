//! Recording and replay of agent behaviour.
use std::time::{Duration, Instant};

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::completions::ChatCompletion;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::http_agents::http_agent;
use crate::common::{Project, TestRun, echo, echo_agent, unreachable_address};

/// Recordings of a folder as JSON, by case name.
fn recordings(project: &Project, folder: &str) -> Vec<(String, Value)> {
    let mut found: Vec<(String, Value)> = std::fs::read_dir(project.workspace.path(folder))
        .unwrap_or_else(|error| panic!("{folder}: {error}"))
        .map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let text = project.workspace.read(&format!("{folder}/{name}"));
            (name, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// The only recording of a folder: its path and content.
fn recording(project: &Project, folder: &str) -> (String, Value) {
    let mut all = recordings(project, folder);
    assert_eq!(all.len(), 1, "{all:#?}");
    let (name, value) = all.remove(0);
    (format!("{folder}/{name}"), value)
}

fn edit_recording(project: &Project, path: &str, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_str(&project.workspace.read(path)).unwrap();
    change(&mut value);
    project.workspace.file(path, &serde_json::to_string_pretty(&value).unwrap());
}

/// Results of a conversation without values that differ per run.
fn normalized_results(tested: &TestRun) -> Value {
    let mut results = tested.report["results"].clone();
    for result in results.as_array_mut().unwrap() {
        for key in ["agent", "started_at", "duration_ms"] {
            result.as_object_mut().unwrap().remove(key);
        }
        for turn in result["turns"].as_array_mut().unwrap() {
            for key in ["start_ts", "end_ts", "duration_ms"] {
                turn.as_object_mut().unwrap().remove(key);
            }
            for call in turn["tool_calls"].as_array_mut().unwrap() {
                for key in ["timestamp", "started_ms", "duration_ms"] {
                    call.as_object_mut().unwrap().remove(key);
                }
            }
        }
    }
    results
}

fn remove_reports_if(wanted: bool, mut results: Value) -> Value {
    for result in results.as_array_mut().unwrap().iter_mut().filter(|_| wanted) {
        for turn in result["turns"].as_array_mut().unwrap() {
            turn.as_object_mut().unwrap().remove("usage");
        }
    }
    results
}

#[track_caller]
fn assert_failed(tested: &TestRun, case: &str, kind: &str, words: &[&str]) {
    let failure = tested.failure(case);
    assert_eq!(failure["kind"], kind, "{failure:#}");
    let said =
        format!("{}\n{}", failure["message"].as_str().unwrap(), failure["detail"].as_str().unwrap_or(""));
    for word in words {
        assert!(said.contains(word), "{word:?} is not in {said}");
    }
    assert_eq!(tested.output.code, 1, "{}", tested.output);
}

/// Records a run with the agent and replays it without the agent.
#[track_caller]
fn record_and_replay(project: &Project, agent: FakeAgent) -> (TestRun, TestRun) {
    let live = project.test(&["--record", "rec"]);
    let asked = agent.requests().len();
    assert!(asked > 0);
    let replayed = project.test(&["-n", "replay:rec"]);
    assert_eq!(agent.requests().len(), asked, "a replay contacts no agent");
    (live, replayed)
}

// Everything an agent can do is replayed identically.

const PAY: &str = "
name: pays
tools:
  - name: confirm
    answers: [{ args_match: { what: card }, content: { ok: true } }, { error: 'no such thing' }]
state: { cart: [] }
turns:
  - user: Pay
    resume: [{ reason: '^approval$', tool: charge, payload: { approved: true } }]
    assert:
      tools:
        require:
          - { name: charge, count: { exact: 1 }, args_match: { amount: '^42.5$' }, result_match: 'approved', after: look_up }
          - { name: confirm, count: { exact: 2 } }
      text: { must_match: 'Paid' }
  - user: And again
    resume: [{ status: cancelled }]
    assert: [{ type: json_path, path: total, value: 42.5 }]
  - { user: Break, expect_error: { message: 'out of', code: '^E7$' } }
";

/// An agent that uses every feature of AG-UI.
fn versatile_agent(request: &FakeRequest) -> FakeReply {
    let input = request.input();
    let run = FakeRun::for_request(request).started();
    let answered = input.tool_results_since_last_user().len();
    let resumed = !input.resume().is_empty();
    match (input.last_user_text().as_str(), answered, resumed) {
        ("Pay", 0, false) => run
            .reasoning("They want to pay.")
            .tool("look-1", "look_up", &json!({"id": 7}), Some(json!({"found": [1, 2.5, null]})))
            .tool("fail-1", "look_up", &json!({}), Some(json!("it broke")))
            .tool_call("ask-1", "confirm", &json!({"what": "card"}))
            .tool_call("ask-2", "confirm", &json!({"what": "sky"}))
            .finished()
            .into(),
        ("Pay", _, false) => run
            .text("Let me charge it.")
            .tool_call("pay-1", "charge", &json!({"amount": 42.5}))
            .interrupted(vec![
                json!({"id": "i-1", "reason": "approval", "message": "Charge?", "toolCallId": "pay-1"}),
            ])
            .into(),
        ("Pay", _, true) => {
            run.tool_result("pay-1", &json!({"status": "approved"})).text("Paid 42.5.").finished().into()
        }
        ("And again", _, false) => run
            .state(json!({"total": 1}))
            .delta(json!([{"op": "replace", "path": "/total", "value": 42.5}]))
            .text("Wait.")
            .interrupted(vec![json!({"id": "i-2", "message": "Sure?"})])
            .into(),
        ("And again", _, true) => run.text("It stays as it is. Anything else?").finished().into(),
        _ => run.text("Hm.").error("out of order", Some("E7")).into(),
    }
}

#[test]
fn ag_ui_agent_replays_identically() {
    let agent = FakeAgent::start(versatile_agent);
    let project = Project::with_agent(&agent).suite("pay", PAY);
    let (live, replayed) = record_and_replay(&project, agent);
    live.assert_all_passed();
    replayed.assert_all_passed();
    assert_eq!(normalized_results(&live), normalized_results(&replayed));
    let (path, recording) = recording(&project, "rec");
    assert!(path.starts_with("rec/pay--pays--"), "{path}");
    assert_eq!((&recording["suite"], &recording["case"]), (&json!("pay.test.yaml"), &json!("pays")));
    let first = &recording["turns"][0];
    let types: Vec<&str> =
        first["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    insta::assert_snapshot!(types.join(" "), @"reasoning tool_call tool_result tool_call tool_result tool_call tool_call finished tool_result tool_result message tool_call finished interrupt interrupt_answer tool_result message finished");
    // Replays the recording made by the replay itself.
    project.test(&["-n", "replay:rec", "--record", "rec2"]).assert_all_passed();
    let again = project.test(&["-n", "replay:rec2"]);
    assert_eq!(normalized_results(&live), normalized_results(&again));
}

#[test]
fn agents_of_every_kind_replay_identically() {
    let suite = "
name: a
turns:
  - { user: one, assert: { tools: { require: [{ name: add, args_match: { a: '^1$' } }] } } }
  - { user: two, assert: [{ type: contains, value: three }] }
";
    let completions = FakeAgent::start(|request| {
        let said = String::from_utf8_lossy(&request.body).into_owned();
        match (said.contains("\"two\""), said.contains("tool_call_id")) {
            (true, _) => ChatCompletion::new().text("That is three.").finish("length"),
            (false, true) => ChatCompletion::new().text("Two.").finish("stop"),
            (false, false) => {
                ChatCompletion::new().tool(0, "c", "add", &json!({"a": 1})).finish("tool_calls")
            }
        }
    });
    let http = FakeAgent::start(|request| {
        let second = String::from_utf8_lossy(&request.body).contains("two");
        match second {
            true => FakeReply::json(200, &json!({"text": "three", "waits": true})),
            false => FakeReply::json(
                200,
                &json!({"text": "Two.", "calls": [{"name": "add", "arguments": {"a": 1}, "result": "2"}], "used": {"tokens": 3}}),
            ),
        }
    });
    let targets = [
        format!(
            "type: openai\n  base_url: '{completions}'\n  model: m\n  tools: [{{ name: add, answers: [{{ content: 2 }}] }}]\n"
        ),
        format!(
            "type: http\n  endpoint: '{http}'\n  body: '{{{{message}}}}'\n  map: {{ reply: $.text, tool_calls: $.calls, usage: $.used, awaiting: $.waits }}\n"
        ),
        "type: command\n  command: [sh, agent.sh]\n".to_string(),
        "type: embedded\n  agent: agent.yaml\n".to_string(),
    ];
    for target in targets {
        let project = Project::with_config(&format!("target:\n  {target}")).suite("a", suite)
            .file("agent.sh", "read -r m\necho '{\"type\":\"tool_call\",\"name\":\"add\",\"arguments\":{\"a\":1},\"error\":\"broken\"}'\necho '{\"type\":\"text\",\"text\":\"x\"}'\necho '{\"type\":\"done\",\"finish_reason\":\"stop\"}'\nread -r m\necho '{\"type\":\"reasoning\",\"text\":\"hm\"}'\necho '{\"type\":\"text\",\"text\":\"three\"}'\necho '{\"type\":\"state\",\"state\":{\"n\":3}}'\necho '{\"type\":\"done\"}'\n")
            .file("agent.yaml", "name: Adder\ntools: [{ name: add, task: { steps: [{ mock: { returns: 2 } }] } }]\n")
            .file("script.yaml", "use: always\nrules:\n  - { when: { user: two }, reply: That is three. }\n  - { when: { tool_result: { tool: add } }, reply: Two. }\n  - reply: { text: Let me see., tool_calls: [{ name: add, arguments: { a: 1 } }] }\n");
        let live = project.test(&["--record", "rec"]);
        live.assert_all_passed();
        // Recordings contain the calls of models of embedded agents as a report of their usage.
        let counted = target.starts_with("type: embedded");
        let told = |tested: &TestRun| remove_reports_if(counted, normalized_results(tested));
        // The program and the agent files are removed.
        project.workspace.file("agent.sh", "exit 1\n");
        let replayed = project.test(&["-n", "replay:rec"]);
        replayed.assert_all_passed();
        assert_eq!(told(&live), told(&replayed), "{target}");
    }
}

/// Answers of the test are marked in recordings of embedded agents, and must be the same during replay.
#[test]
fn recordings_of_embedded_agents_mark_answers_of_the_test() {
    let suite = "
name: a
tools: [{ name: pick, answers: [{ args_match: { n: 1 }, content: red }, { error: no such }] }]
turns: [{ user: go, assert: { budget: { max_tokens: 30 } } }]
";
    let project = Project::with_config("target: { type: embedded, agent: agent.yaml }\n")
        .file("agent.yaml", "name: Clerk\n")
        .file("script.yaml", "use: always\nrules:\n  - { when: { tool_result: { tool: pick } }, reply: { text: Done., usage: { input_tokens: 9, output_tokens: 1 } } }\n  - reply: { tool_calls: [{ name: pick, arguments: { n: 1 } }, { name: pick, arguments: { n: 2 } }], usage: { input_tokens: 8, output_tokens: 2 } }\n")
        .suite("a", suite);
    let live = project.test(&["--record", "rec"]);
    live.assert_all_passed();
    let events = recording(&project, "rec").1["turns"][0]["events"].clone();
    let results = events.as_array().unwrap().iter().filter(|event| event["type"] == "tool_result");
    assert_eq!(results.map(|event| event["origin"].clone()).collect::<Vec<_>>(), ["client", "client"]);
    let replayed = project.test(&["-n", "replay:rec"]);
    replayed.assert_all_passed();
    assert_eq!(live.case("a")["spent"], replayed.case("a")["spent"]);
    assert_eq!(live.case("a")["spent"]["total_tokens"], 20);
    let other = project.suite("a", &suite.replace("no such", "other")).test(&["-n", "replay:rec"]);
    assert_failed(
        &other,
        "a",
        "test_error",
        &["the test's answer to a call of pick differs from the recording"],
    );
}

#[test]
fn target_can_be_recordings() {
    let agent = echo_agent();
    let suite = "name: a\nturns: [{ user: hello, assert: { text: { must_match: hello } } }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    project.test(&["--record", "tests/rec"]).assert_all_passed();
    let of = |from: &str| format!("target: {{ type: replay, from: {from} }}\n");
    project.workspace.file("hotseat.yaml", &of("tests/rec"));
    project.test(&[]).assert_all_passed();
    // One recording serves every case.
    let (path, _) = recording(&project, "tests/rec");
    project.workspace.file("hotseat.yaml", &of(&path));
    project.workspace.file("b.test.yaml", &suite.replace("name: a", "name: b"));
    project.test(&[]).assert_all_passed();
    // Without a project file, and from one with further assertions and tools.
    std::fs::remove_file(project.workspace.path("hotseat.yaml")).unwrap();
    project.test(&["-n", "replay:tests/rec", "a.test.yaml"]).assert_all_passed();
}

#[test]
fn project_agent_settings_apply_to_recordings() {
    let agent = echo_agent();
    let asserting = |pattern: &str| {
        format!(
            "target:\n  endpoint: '{agent}'\n  headers: {{ Authorization: 'Bearer ${{ENV.SHOP_KEY}}' }}\n  assert: {{ text: {{ must_match: '{pattern}' }} }}\n"
        )
    };
    let project = Project::with_config(&asserting("hello")).suite("a", "name: a\nturns: [{ user: hello }]\n");
    project.test_in(&[("SHOP_KEY", "sesame-open")], &["--record", "rec"]).assert_all_passed();
    // Replay does not need the API key.
    project.test(&["-n", "replay:rec"]).assert_all_passed();
    project.workspace.file("hotseat.yaml", &asserting("goodbye"));
    assert_failed(&project.test(&["-n", "replay:rec"]), "a", "assertion", &["goodbye"]);
}

#[test]
fn roles_are_not_replayed() {
    let agent = echo_agent();
    let judge = FakeAgent::start(|_| {
        ChatCompletion::new().text("{\"passed\": false, \"reason\": \"rude\"}").finish("stop")
    });
    let project = Project::with_config(&format!(
        "target: shop\nagents:\n  shop: {{ endpoint: '{agent}' }}\n  judge: {{ type: openai, base_url: '{judge}', model: m }}\n"
    ));
    let project = project.suite(
        "a",
        "name: a\nturns: [{ user: hello }]\nassert: [{ type: agent, use: 'agents:judge', criteria: friendly }]\n",
    );
    assert_failed(&project.test(&["--record", "rec"]), "a", "assertion", &["rude"]);
    let asked = judge.requests().len();
    assert_failed(&project.test(&["-n", "replay:rec"]), "a", "assertion", &["rude"]);
    assert_eq!((agent.requests().len(), judge.requests().len()), (1, asked + 1));
}

// Differences from the recording.

#[test]
fn changed_input_is_an_error() {
    let agent = echo_agent();
    let suite = "name: a\nturns: [{ user: hello }, { user: 'I want two' }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    project.test(&["--record", "rec"]).assert_all_passed();
    project.workspace.file("a.test.yaml", &suite.replace("two", "three"));
    let (path, _) = recording(&project, "rec");
    let tested = project.test(&["-n", "replay:rec"]);
    assert_failed(
        &tested,
        "a",
        "test_error",
        &[
            "turn 2",
            "the user's text differs from the recording",
            "now: \"I want three\"",
            &format!("recorded ({path}:"),
            "\"I want two\"",
            "--record",
        ],
    );
    assert_eq!(tested.failure("a")["fault"], "test");
    project.workspace.file("hotseat.yaml", "target: { type: replay, from: rec, match: position }\n");
    project.test(&[]).assert_all_passed();
}

#[test]
fn changed_attachment_is_an_error() {
    let agent = echo_agent();
    let suite = "name: a\nturns: [{ user: look, attachments: [{ type: file, source: 'file://one.txt' }] }]\n";
    let project = Project::with_agent(&agent).suite("a", suite).file("one.txt", "1").file("two.txt", "2");
    project.test(&["--record", "rec"]).assert_all_passed();
    project.test(&["-n", "replay:rec"]).assert_all_passed();
    project.workspace.file("a.test.yaml", &suite.replace("one.txt", "two.txt"));
    assert_failed(
        &project.test(&["-n", "replay:rec"]),
        "a",
        "test_error",
        &["the attachments differ", "now: two.txt", "one.txt"],
    );
}

#[test]
fn changed_client_answers_are_errors() {
    let agent = FakeAgent::start(versatile_agent);
    let project = Project::with_agent(&agent).suite("pay", PAY);
    project.test(&["--record", "rec"]).assert_all_passed();
    for (from, to, words) in [
        (
            "content: { ok: true }",
            "content: { ok: false }",
            vec!["a call of confirm", "now: {\"ok\":false}", "{\"ok\":true}"],
        ),
        (
            "{ error: 'no such thing' }",
            "{ content: here }",
            vec!["a call of confirm", "now: \"here\"", "the error \"no such thing\""],
        ),
        (
            "content: { ok: true } }, { error: 'no such thing' }",
            "content: { ok: true } }",
            vec!["confirm was called with", "no scripted answer matches"],
        ),
        (
            "approved: true",
            "approved: false",
            vec!["interrupt i-1", "now: {\"approved\":false}", "{\"approved\":true}"],
        ),
        ("{ status: cancelled }", "{ payload: 1 }", vec!["interrupt i-2", "now: 1", "it is cancelled"]),
        ("resume: [{ status: cancelled }]", "timeout: 5s", vec!["paused", "Sure?"]),
    ] {
        assert!(PAY.contains(from), "{from}");
        project.workspace.file("pay.test.yaml", &PAY.replace(from, to));
        assert_failed(&project.test(&["-n", "replay:rec"]), "pays", "test_error", &words);
    }
    // An unused answer is a test error, as with the live agent.
    let more = PAY.replace(
        "resume: [{ status: cancelled }]",
        "resume: [{ tool: other, payload: 1 }, { status: cancelled }]",
    );
    project.workspace.file("pay.test.yaml", &more);
    assert_failed(&project.test(&["-n", "replay:rec"]), "pays", "assertion", &["never asked for the answer"]);
    // If only the position matters, the current answers are used.
    project.workspace.file("pay.test.yaml", &PAY.replace("content: { ok: true }", "content: { ok: false }"));
    project.workspace.file("hotseat.yaml", "target: { type: replay, from: rec, match: position }\n");
    let tested = project.test(&[]);
    tested.assert_all_passed();
    assert_eq!(tested.case("pays")["turns"][0]["tool_calls"][2]["result"], json!({"ok": false}));
}

#[test]
fn server_answered_tool_is_not_called_again() {
    let tool = FakeAgent::start(|_| FakeReply::json(200, &json!({"ok": 1})));
    let agent = FakeAgent::with_run(|run, request| match request.tool_results_since_last_user().is_empty() {
        true => run.tool_call("c", "ask", &json!({})).finished(),
        false => run.text("Thanks.").finished(),
    });
    let suite = format!("name: a\ntools: [{{ name: ask, url: '{tool}' }}]\nturns: [{{ user: hello }}]\n");
    let project = Project::with_agent(&agent).suite("a", &suite);
    let live = project.test(&["--record", "rec"]);
    let replayed = project.test(&["-n", "replay:rec"]);
    replayed.assert_all_passed();
    assert_eq!((normalized_results(&live), tool.requests().len()), (normalized_results(&replayed), 1));
}

#[test]
fn missing_or_short_recording_is_an_error() {
    let agent = echo_agent();
    let suite = "name: a\nturns: [{ user: hello }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    project.test(&["--record", "rec"]).assert_all_passed();
    project.workspace.file(
        "a.test.yaml",
        "name: a\nturns: [{ user: hello }, { user: more }]\n---\nname: b\nturns: [{ user: hello }]\n",
    );
    // The same case in another suite is another case.
    project.workspace.file("other/a.test.yaml", "name: c\nid: a\nturns: [{ user: hello }]\n");
    let tested = project.test(&["-n", "replay:rec"]);
    assert_failed(
        &tested,
        "a",
        "test_error",
        &["the recording of `a` has 1 turn(s), but this is turn 2", "--record"],
    );
    assert_failed(&tested, "b", "test_error", &["no recording of `b` of a.test.yaml in rec", "--record rec"]);
    assert_failed(&tested, "c", "test_error", &["no recording of `a` of other/a.test.yaml in rec"]);
}

#[test]
fn missing_recordings_are_usage_errors() {
    let project = Project::empty().suite("a", "name: a\nturns: [{ user: hello }]\n");
    project.workspace.file("empty/notes.txt", "nothing");
    project.workspace.file("broken.json", "{\"version\": 1,\n \"case\": \"a\", \"turn\": []}");
    for (from, words) in [
        ("nowhere", "no such file or folder: nowhere"),
        ("empty", "there are no recordings in empty"),
        ("broken.json", "broken.json:2:15"),
    ] {
        project.hotseat(&["test", "-n", &format!("replay:{from}")]).assert_stderr(2, &[words]);
        project.workspace.file("hotseat.yaml", &format!("target:\n  type: replay\n  from: {from}\n"));
        let output = project.hotseat(&["test"]);
        output.assert_stderr(2, &[words]);
        assert!(from == "broken.json" || output.stderr.contains("hotseat.yaml:3:9"), "{output}");
        std::fs::remove_file(project.workspace.path("hotseat.yaml")).unwrap();
    }
}

/// Error message for a recording with this turn.
fn recording_error(turn: &str) -> String {
    let text = format!("{{\"version\": 1, \"case\": \"a\", \"turns\": [\n{turn}\n]}}");
    let project = Project::empty().suite("a", "name: a\nturns: [{ user: hello }]\n").file("r.json", &text);
    let output = project.hotseat(&["test", "-n", "replay:r.json"]);
    assert_ne!(output.code, 0, "{turn}\n{output}");
    output.stderr
}

#[test]
fn rejects_invalid_recording_with_location() {
    for (events, place, words) in [
        ("", "2:29", "this turn has no events"),
        (r#"{"type": "mesage", "text": "x"}"#, "2:39", "did you mean `message`?"),
        (r#"{"type": "message", "text": ""}"#, "2:58", "this text must not be empty"),
        (r#"{"type": "message"}"#, "2:30", "has no `text`"),
        (r#"{"type": "message", "text": "x", "at_ms": -1}"#, "2:72", "not a number of milliseconds"),
        (
            r#"{"type": "message", "text": "x", "at_ms": 5}, {"type": "message", "text": "y", "at_ms": 4}"#,
            "2:76",
            "before the previous event",
        ),
        (r#"{"type": "message", "text": "x", "at_ms": 500}"#, "2:30", "after the end of the turn"),
        (
            r#"{"type": "message", "text": "x", "at_ms": 5, "started_ms": 6}"#,
            "2:89",
            "the start time is after the time of the event",
        ),
        (r#"{"type": "tool_result", "id": "c", "result": 1}"#, "2:60", "no earlier call has this id"),
        (
            r#"{"type": "tool_call", "id": "c", "tool": "t"}, {"type": "tool_call", "id": "c", "tool": "t"}"#,
            "2:105",
            "another call",
        ),
        (
            r#"{"type": "tool_call", "id": "c", "tool": "t"}, {"type": "tool_result", "id": "c"}"#,
            "2:77",
            "either `result` or `error`",
        ),
        (
            r#"{"type": "tool_call", "id": "c", "tool": "t", "arguments": {}, "arguments_text": "x"}"#,
            "2:111",
            "both give",
        ),
        (
            r#"{"type": "interrupt_answer", "id": "i", "status": "resolved"}"#,
            "2:65",
            "no earlier interrupt has this id",
        ),
        (
            r#"{"type": "error", "message": "x"}, {"type": "message", "text": "x"}"#,
            "2:65",
            "must be the last event of its turn",
        ),
    ] {
        let said = recording_error(&format!(
            "{{\"user\": \"hello\", \"events\": [{events}], \"duration_ms\": 100}}"
        ));
        let right = said.contains(words) && said.contains(&format!("r.json:{place}\n"));
        assert!(right, "{events}\n{said}");
    }
}

#[test]
fn recording_of_another_case_is_an_error() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hello }]\n");
    project.test(&["--record", "rec"]).assert_all_passed();
    let (path, _) = recording(&project, "rec");
    edit_recording(&project, &path, |recording| recording["case"] = json!("b"));
    assert_failed(
        &project.test(&["-n", "replay:rec"]),
        "a",
        "test_error",
        &["should contain the recording of `a` of a.test.yaml, but it is of `b` of a.test.yaml"],
    );
    // A recording without a suite is of any suite, whatever its name.
    edit_recording(&project, &path, |recording| {
        recording["case"] = json!("a");
        recording.as_object_mut().unwrap().remove("suite");
    });
    project.test(&["-n", "replay:rec"]).assert_all_passed();
    project.workspace.file(&path, "{\"version\": 1,\n  \"case\": 7}");
    assert_failed(
        &project.test(&["-n", "replay:rec"]),
        "a",
        "test_error",
        &["this is not a valid recording", &format!("{path}:2:11")],
    );
}

/// A pipe without a writer cannot be opened.
#[test]
#[cfg(unix)]
fn a_pipe_in_place_of_a_recording_is_refused() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hello }]\n");
    project.test(&["--record", "rec"]).assert_all_passed();
    let (path, _) = recording(&project, "rec");
    std::fs::remove_file(project.workspace.root().join(&path)).unwrap();
    assert_eq!(project.workspace.run("mkfifo", &[&path]).code, 0);
    let words = format!("cannot read {path}: it is a pipe or a device");
    assert_failed(&project.test(&["-n", "replay:rec"]), "a", "test_error", &[&words]);
    let named = project.hotseat(&["test", "-n", &format!("replay:{path}")]);
    assert!(named.code == 2 && named.stderr.contains(&words), "{named}");
}

// Times.

#[test]
fn recorded_times_are_reproduced_without_waiting() {
    const SLOW_DELAY: Duration = Duration::from_millis(600);
    let agent = FakeAgent::with_run(|run, _| {
        let run = run.tool("c", "look", &json!({}), Some(json!(1)));
        run.pause(SLOW_DELAY).text("Done.").finished()
    });
    let suite = |limit: u32| {
        format!(
            "name: a\nturns: [{{ user: hello, assert: {{ timing: {{ max_duration_ms: {limit}, max_idle_ms: {limit} }} }} }}]\n"
        )
    };
    let project = Project::with_agent(&agent).suite("a", &suite(30_000));
    let live = project.test(&["--record", "rec"]);
    live.assert_all_passed();
    let begun = Instant::now();
    let replayed = project.test(&["-n", "replay:rec"]);
    replayed.assert_all_passed();
    assert!(begun.elapsed() < SLOW_DELAY * 20);
    let took = |tested: &TestRun| tested.case("a")["turns"][0]["duration_ms"].as_f64().unwrap();
    let (then, now) = (took(&live), took(&replayed));
    assert!(now >= then && now < then + 100.0, "{then} {now}");
    assert!(replayed.case("a")["duration_ms"].as_f64().unwrap() < 500.0, "it was waited for");

    project.workspace.file("a.test.yaml", &suite(200));
    assert_failed(&project.test(&["-n", "replay:rec"]), "a", "assertion", &["200 ms"]);
    // The current time limits apply.
    project.workspace.file("a.test.yaml", "name: a\nturns: [{ user: hello, timeout_ms: 200 }]\n");
    assert_failed(&project.test(&["-n", "replay:rec"]), "a", "timeout", &["the turn timed out after 200 ms"]);
    project
        .workspace
        .file("a.test.yaml", "name: a\ntimeout: 800ms\nturns: [{ user: hello }, { user: hello }]\n");
    project.test(&["--record", "two", "--timeout", "60s"]);
    let (path, _) = recording(&project, "rec");
    edit_recording(&project, &path, |recording| {
        let turn = recording["turns"][0].clone();
        let mut second = turn.clone();
        for event in second["events"].as_array_mut().unwrap() {
            if event.get("id").is_some() {
                event["id"] = json!("c2");
            }
        }
        recording["turns"] = json!([turn, second]);
    });
    assert_failed(&project.test(&["-n", "replay:rec"]), "a", "timeout", &["the case timed out after 800 ms"]);
}

/// A turn that was stopped at a limit is recorded with exactly the limit as its duration.
#[test]
fn turns_that_were_stopped_at_a_limit_fail_by_it_again() {
    let agent = FakeAgent::with_run(|run, _| run.text("Hi").pause(Duration::from_millis(400)).finished());
    let yaml = "name: turn
turns: [{ user: hello }, { user: again, assert: { timing: { max_duration_ms: 150 } } }]
---
name: whole
turns: [{ user: hello }, { user: again }]
assert: { timing: { max_duration_ms: 600 } }
---
name: timeout
turns: [{ user: hello, timeout_ms: 150 }]
";
    let typescript = r#"import { it, user } from "hotseat";
it("turn in a program", () => {
  user.says("hello");
  user.says("again", { assert: { timing: { max_duration_ms: 150 } } });
});
it("whole program", { assert: { timing: { max_duration_ms: 600 } } }, () => {
  user.says("hello");
  user.says("again");
});
it("timeout in a program", () => { user.says("hello", { timeout: "150ms" }); });
"#;
    let project = Project::with_agent(&agent).suite("a", yaml).file("b_test.ts", typescript);
    let files = ["a.test.yaml", "b_test.ts"];
    for source in [["--record", "rec"], ["-n", "replay:rec"]] {
        let tested = project.test(&[&files[..], &source[..]].concat());
        for (case, kind, words) in [
            ("turn", "assertion", "at most 150 ms"),
            ("turn in a program", "assertion", "at most 150 ms"),
            ("whole", "assertion", "at most 600 ms"),
            ("whole program", "assertion", "at most 600 ms"),
            ("timeout", "timeout", "timed out after 150 ms"),
            ("timeout in a program", "timeout", "timed out after 150 ms"),
        ] {
            assert_failed(&tested, case, kind, &[words]);
        }
    }
    // A limit that the turn did not exceed says nothing about it.
    project.workspace.file("a.test.yaml", &yaml.replace("150", "60000").replace("600 ", "60000 "));
    let longer = project.test(&["a.test.yaml", "-n", "replay:rec"]);
    for case in ["turn", "whole", "timeout"] {
        assert_failed(&longer, case, "test_error", &["the recorded turn is incomplete"]);
    }
}

/// A recording is one attempt: nothing follows from it for the reliability of its agent.
#[test]
fn a_declared_reliability_needs_the_agent() {
    let agent = echo_agent();
    let suite = "name: a\nreliability: { rate: 0.9 }\nturns: [{ user: hello }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    project.test(&["--runs", "1", "--record", "rec"]).assert_all_passed();
    let replayed = project.test(&["-n", "replay:rec"]);
    replayed.assert_all_passed();
    let case = replayed.case("a");
    assert!(case["reliability"].is_null() && case["runs"].is_null(), "{case:#}");
    let words = "a recording shows nothing about `reliability`, which is declared for 1 case";
    assert!(replayed.output.stderr.contains(words), "{}", replayed.output);
    let repeated = project.test(&["-n", "replay:rec", "--runs", "2"]);
    assert!(
        repeated.output.stderr.contains("each attempt replays the same recording"),
        "{}",
        repeated.output
    );
}

/// Its bytes are not recorded, so the recording says at which limit.
#[test]
fn turns_that_were_stopped_at_a_limit_of_bytes_fail_by_it_again() {
    let agent = FakeAgent::with_run(|run, _| run.text("Hi").text(&"word ".repeat(2000)).finished());
    let config = |scope: &str, bytes: u32| {
        format!("target:\n  endpoint: {agent}\nlimits: {{ {scope}: {{ bytes: {bytes} }} }}\n")
    };
    let words = "sent more than 5000 bytes";
    for scope in ["turn", "conversation"] {
        let project =
            Project::with_config(&config(scope, 5000)).suite("a", "name: a\nturns: [{ user: hello }]\n");
        for source in [["--record", "rec"], ["-n", "replay:rec"]] {
            assert_failed(&project.test(&source), "a", "limit", &[words, &format!("`limits.{scope}.bytes`")]);
        }
        project.workspace.file("hotseat.yaml", &config(scope, 4000));
        assert_failed(&project.test(&["-n", "replay:rec"]), "a", "limit", &["sent more than 4000 bytes"]);
        // A limit that the turn may not have exceeded says nothing about it.
        project.workspace.file("hotseat.yaml", &config(scope, 6000));
        let replayed = project.test(&["-n", "replay:rec"]);
        assert_failed(&replayed, "a", "test_error", &["the recorded turn is incomplete", words]);
    }
}

/// Limits are inclusive, so replayed times must be exactly the recorded ones.
#[test]
fn replayed_times_are_exactly_the_recorded_ones() {
    let recording = json!({"version": 1, "case": "a", "turns": [{"user": "hello", "duration_ms": 385, "events": [
        {"type": "tool_call", "at_ms": 0, "id": "c", "tool": "look", "arguments": {}},
        {"type": "tool_result", "at_ms": 100, "id": "c", "result": 1},
        {"type": "message", "at_ms": 384, "text": "ok"},
    ]}]});
    let passes = |timing: &str| {
        let suite = format!("name: a\nturns: [{{ user: hello, assert: {{ timing: {{ {timing} }} }} }}]\n");
        let project = Project::empty().suite("a", &suite).file("r.json", &recording.to_string());
        project.test(&["-n", "replay:r.json"]).case("a")["status"] == "passed"
    };
    for (key, exact) in [("max_duration_ms", 385), ("max_idle_ms", 285)] {
        assert!(passes(&format!("{key}: {exact}")) && !passes(&format!("{key}: {}", exact - 1)), "{key}");
    }
    let project = Project::empty().suite("a", "name: a\nturns: [{ user: hello, timeout_ms: 385 }]\n");
    project.file("r.json", &recording.to_string()).test(&["-n", "replay:r.json"]).assert_all_passed();
}

#[test]
fn recording_without_times_has_no_durations() {
    let recording = json!({"version": 1, "case": "a", "turns": [{"user": "hello", "events": [{"type": "message", "text": "Hi."}]}]});
    for timing in ["max_duration_ms", "max_gap_ms", "max_idle_ms"] {
        for place in ["assert", "turn_assert", "evaluate"] {
            let suite = format!(
                "name: a\nturns: [{{ user: hello }}]\n{place}: {{ timing: {{ {timing}: 60000 }} }}\n"
            );
            let project = Project::empty().suite("a", &suite).file("r.json", &recording.to_string());
            let tested = project.test(&["-n", "replay:r.json"]);
            assert_failed(&tested, "a", "test_error", &["assertions about time cannot be evaluated"]);
        }
    }
}

// Written files.

#[test]
fn case_names_may_contain_any_characters() {
    let ids = [
        "a",
        "A",
        "a/b",
        "a b",
        "../../../etc/passwd",
        "..",
        "con",
        "日本",
        "x\u{1b}[2J",
        "é",
        "e\u{301}",
        "%2e",
        "a\\b",
        "\n.",
    ];
    let long = "long ".repeat(400);
    let suite: String = ids
        .iter()
        .copied()
        .chain([long.as_str()])
        .map(|id| {
            format!("{}\n", json!({"id": id, "input": id, "assert": [{"type": "contains", "value": id}]}))
        })
        .collect();
    let agent = echo_agent();
    let project = Project::with_agent(&agent).file("a.test.jsonl", &suite).file("b/a.test.jsonl", &suite);
    project.test(&["--record", "out/rec"]).assert_all_passed();
    let found = recordings(&project, "out/rec");
    assert_eq!(found.len(), 2 * (ids.len() + 1));
    assert!(found.iter().all(|(name, _)| name.len() < 130), "{found:?}");
    let out: Vec<_> = std::fs::read_dir(project.workspace.path("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(out.len(), 2, "{out:?}");
    project.test(&["-n", "replay:out/rec"]).assert_all_passed();
    assert_eq!(agent.requests().len(), found.len());
    // Independent of the working directory.
    project
        .command(&["test", "-n", "replay:../out/rec"])
        .cwd(&project.workspace.path("b").display().to_string())
        .run()
        .assert_code(0);
}

#[test]
fn representative_attempt_is_recorded() {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let agent = FakeAgent::with_run(move |run, _| {
        let number = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        run.text(if number == 1 { "bad" } else { "good" }).finished()
    });
    let suite = "name: a\nturns: [{ user: hello, assert: { text: { must_match: good } } }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    assert_failed(
        &project.test(&["--runs", "3", "--parallel", "1", "--record", "rec"]),
        "a",
        "assertion",
        &[],
    );
    let (_, found) = recording(&project, "rec");
    assert_eq!(found["turns"][0]["events"][0]["text"], "bad", "{found:#}");
    assert_failed(&project.test(&["-n", "replay:rec"]), "a", "assertion", &[]);
}

#[test]
fn recordings_contain_no_secrets() {
    let agent = FakeAgent::start(echo);
    let suite = "name: a\ntools: [{ name: t, answers: [{ content: '${ENV.SHOP_TOKEN}' }] }]\nturns: [{ user: 'my key is ${ENV.SHOP_TOKEN}', assert: { text: { must_match: 'key is ${ENV.SHOP_TOKEN}' } } }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    project.test_in(&[("SHOP_TOKEN", "tok-123456789")], &["--record", "rec"]).assert_all_passed();
    let (path, _) = recording(&project, "rec");
    assert!(!project.workspace.read(&path).contains("tok-123456789"));
    // Another value of the same secret matches.
    project.test_in(&[("SHOP_TOKEN", "other-secret-value")], &["-n", "replay:rec"]).assert_all_passed();
}

/// The mark in a recording stands for the key of its run, and still does so in the run that replays it.
#[test]
fn a_recorded_secret_with_another_value_is_unknown() {
    let agent = FakeAgent::start(|request| {
        FakeRun::for_request(request).started().text("It is tok-12345678.").finished()
    });
    let suite = "name: a\nturns: [{ user: hi, assert: [{ type: not_contains, value: tok- }] }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    let of_run = [("SHOP_TOKEN", "tok-12345678")];
    assert_failed(&project.test_in(&of_run, &["--record", "rec"]), "a", "assertion", &[]);
    let (_, found) = recording(&project, "rec");
    let digest = found["secrets"]["ENV.SHOP_TOKEN"].as_str().unwrap_or_default();
    assert_eq!(digest.len(), 2, "{found:#}");
    assert_failed(&project.test_in(&of_run, &["-n", "replay:rec"]), "a", "assertion", &[]);
    let rotated = [("SHOP_TOKEN", "other-secret-value")];
    let replayed = project.test_in(&rotated, &["-n", "replay:rec", "--record", "again"]);
    assert_failed(&replayed, "a", "test_error", &["its value is unknown here"]);
    let (_, again) = recording(&project, "again");
    assert_eq!(again["secrets"], found["secrets"], "{again:#}");
    let rechecked = project.command(&["recheck", "last"]).env("SHOP_TOKEN", rotated[0].1).run();
    assert!(rechecked.stdout.contains("a secret is redacted in the text"), "{rechecked}");
    // Recordings of earlier versions have no digests.
    let (path, _) = recording(&project, "rec");
    edit_recording(&project, &path, |recording| drop(recording.as_object_mut().unwrap().remove("secrets")));
    project.test_in(&rotated, &["-n", "replay:rec"]).assert_all_passed();
}

#[test]
fn failed_replay_is_never_a_pass() {
    let agent = FakeAgent::start(|request| match request.last_user_text().as_str() {
        "cut" => FakeRun::for_request(request).started().text("I was about to").cut(),
        _ => FakeRun::for_request(request).started().text("Fine.").finished(),
    });
    let suite = |word: &str| format!("name: a\nturns: [{{ user: hello }}, {{ user: {word} }}]\n");
    let project = Project::with_agent(&agent).suite("a", &suite("cut"));
    assert_failed(&project.test(&["--record", "rec"]), "a", "protocol_error", &[]);
    let replayed = project.test(&["-n", "replay:rec"]);
    assert_failed(
        &replayed,
        "a",
        "test_error",
        &["the recorded turn is incomplete", "RUN_FINISHED", "--record"],
    );
    assert_eq!(replayed.case("a")["turns"][1]["messages"], json!(["I was about to"]));
    // An unreachable agent leaves the recording unchanged.
    let before = recording(&project, "rec");
    project.workspace.file("hotseat.yaml", &format!("target: {{ endpoint: '{}' }}\n", unreachable_address()));
    assert_eq!(project.test(&["--record", "rec"]).output.code, 3);
    assert_eq!(recording(&project, "rec"), before);
    // A successful run replaces it.
    project.workspace.file("hotseat.yaml", &format!("target: {{ endpoint: '{agent}' }}\n"));
    project.workspace.file("a.test.yaml", &suite("go"));
    project.test(&["--record", "rec"]).assert_all_passed();
    project.test(&["-n", "replay:rec"]).assert_all_passed();
}

/// An earlier recording of an agent that answers only with an error would pass.
#[test]
fn an_agent_that_only_answers_with_an_error_replaces_its_recording() {
    let broken = [
        ("agent_error", FakeReply::json(500, &json!({"detail": "out of memory"})), "HTTP 500"),
        ("protocol_error", FakeReply::json(200, &json!({"reply": "hello"})), "application/json"),
    ];
    for (kind, reply, reason) in broken {
        let agent = echo_agent();
        let project = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hello }]\n");
        project.test(&["--record", "rec"]).assert_all_passed();
        let agent = FakeAgent::start(move |_: &FakeRequest| reply.clone());
        project.workspace.file("hotseat.yaml", &format!("target: {{ endpoint: '{agent}' }}\n"));
        assert_failed(&project.test(&["--record", "rec"]), "a", kind, &[reason]);
        let replayed = project.test(&["-n", "replay:rec"]);
        assert_failed(&replayed, "a", "test_error", &["the recorded turn is incomplete", reason]);
    }
}

#[test]
fn unwritable_recordings_end_run() {
    let agent = echo_agent();
    let project =
        Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hello }]\n").file("rec", "a file");
    project.hotseat(&["test", "--record", "rec"]).assert_stderr(3, &["cannot write rec"]);
    assert!(agent.requests().is_empty());
    // A recording that disappears during the run is reported too.
    let gone = project.workspace.path("gone");
    let folder = gone.clone();
    let agent = FakeAgent::start(move |request| {
        std::fs::remove_dir_all(&folder).unwrap();
        echo(request)
    });
    project.workspace.file("hotseat.yaml", &format!("target: {{ endpoint: '{agent}' }}\n"));
    project.hotseat(&["test", "--record", "gone"]).assert_stderr(3, &["recordings in gone"]);
    assert!(!gone.exists());
}

/// A recording of an agent whose calls nothing shows says nothing about them, also when it is replayed and checked again.
#[test]
fn a_recording_without_visible_calls_decides_nothing_about_calls() {
    let agent = http_agent(|_| "Hello.");
    let target = format!(
        "target: {{ type: http, endpoint: '{agent}', body: {{ text: '{{{{message}}}}' }}, map: {{ reply: $.reply }} }}\n"
    );
    let hello = "name: a\nturns: [{ user: hi, assert: { text: { must_match: Hello } } }]\n";
    let project = Project::with_config(&target).suite("a", hello);
    project.test(&["--record", "rec"]).assert_all_passed();
    assert_eq!(recording(&project, "rec").1["hides_calls"], true);
    project.test(&["-n", "replay:rec"]).assert_all_passed();
    let negative = "name: a\nturns: [{ user: hi, assert: { tools: { forbid: [refund] } } }]\n";
    let project = project.suite("a", negative);
    let words = ["the agent's calls are not visible"];
    project.test(&["-n", "replay:rec"]).assert_failure("a", "test_error", &words);
    let project = project.suite("a", hello);
    project.test(&["-n", "replay:rec"]).assert_all_passed();
    project.suite("a", negative).hotseat(&["recheck"]).assert_stdout(1, &["calls are not visible"]);
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_recording() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hi }]\n");
    project.test(&["--record", "kept"]).assert_all_passed();
    let (path, _) = recording(&project, "kept");
    let text = project.workspace.read(&path);
    project.workspace.file(&path, &format!("\u{FEFF}{text}"));
    project.test(&["-n", "replay:kept"]).assert_all_passed();
    assert_eq!(agent.requests().len(), 1);

    project.workspace.file(&path, &text.replace("\"version\": 1", "\"version\": 2"));
    let output = project.hotseat(&["test", "-n", &format!("replay:{path}")]);
    for words in [
        "this recording has version 2, and this Hotseat reads version 1",
        "update Hotseat, or record the case again",
        &format!("{path}:2:14"),
    ] {
        assert!(output.code == 2 && output.stderr.contains(words), "{words}: {output}");
    }
    project.hotseat(&["test", "-n", "replay:"]).assert_stderr(2, &["`-n replay:` names no recordings"]);
}
