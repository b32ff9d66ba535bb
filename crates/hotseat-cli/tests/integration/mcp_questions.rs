//! Mocks that ask the user of the client before they answer, and that change their lists of tools.

use std::sync::{Arc, Mutex};

use hotseat_testkit::{FakeAgent, TestWorkspace};
use serde_json::{Map, Value, json};

use crate::common::http_agents::{asked_text, bank_client, bank_target, http_agent};
use crate::common::{HOTSEAT, Project, TestRun};
use crate::mcp::calls;
use crate::mcp_command::ServedMcp;

const REVISIONS: [&str; 2] = ["2026-07-28", "2025-11-25"];

/// A bank that asks before it charges, by a function, and offers `refund` after that.
const BANK: &str = "mcp:
  bank:
    type: mock
    tools:
      - name: charge_card
        answers:
          - use: scripts:bank.charge
            ask:
              confirm: { message: 'Charge the card?', schema: { type: object, required: [ok], properties: { ok: { type: boolean } } } }
              note: { message: 'Any note?' }
      - { name: refund, offered_after: charge_card, answers: [{ content: refunded }] }
";

const FUNCTIONS: &str = "
export const charge = (args: { order_id: string }, { inputs, number }: { inputs: { confirm: { ok: boolean } }; number: number }) =>
  inputs.confirm.ok ? { content: { charged: args.order_id, inputs, number } } : { error: 'not confirmed' };
";

/// Calls `charge_card` with a client of the revision that the user names, which responds with the rest of the text.
fn asked_agent() -> FakeAgent {
    http_agent(|request| {
        let text = asked_text(request);
        let (revision, response) = text.split_once(' ').expect("a revision and a response");
        let response: Value = serde_json::from_str(response).expect("JSON");
        let note = json!({"action": "accept", "content": {}});
        let client = match response.is_null() {
            true => bank_client(request),
            false => bank_client(request).responding(&[("Charge the card?", response), ("Any note?", note)]),
        };
        let client =
            if revision == REVISIONS[1] { client.with_session().expect("a session") } else { client };
        match client.call("charge_card", &json!({"order_id": "o-1"})) {
            Ok(value) => format!("done {value}"),
            Err(words) => format!("failed: {words}"),
        }
    })
}

fn project(agent: &FakeAgent, suite: &str) -> Project {
    Project::with_config(&(bank_target(agent) + BANK)).file("src/bank.ts", FUNCTIONS).suite("a", suite)
}

fn run(suite: &str) -> TestRun {
    project(&asked_agent(), suite).test(&["-v"])
}

/// A case whose client responds to the confirmation.
fn case(revision: &str, response: &Value, must_match: &str) -> String {
    format!(
        "name: {revision}\nturns: [{{ user: {}, assert: {{ text: {{ must_match: '{must_match}' }} }} }}]\n---\n",
        json!(format!("{revision} {response}"))
    )
}

fn cases(response: &Value, must_match: &str) -> String {
    REVISIONS.map(|revision| case(revision, response, must_match)).concat()
}

#[test]
fn an_answer_is_given_when_its_questions_are_accepted() {
    let accepted = json!({"action": "accept", "content": {"ok": true}});
    let run = run(&cases(&accepted, "^done"));
    run.assert_all_passed();
    for revision in REVISIONS {
        let called = calls(&run, revision);
        assert_eq!(called.len(), 1, "{called:#?}");
        let inputs = json!({"confirm": {"ok": true}, "note": {}});
        assert_eq!(called[0]["result"], json!({"charged": "o-1", "inputs": inputs, "number": 1}));
        let interrupts = &run.case(revision)["turns"][0]["interrupts"];
        let shown = |place: usize| {
            let asked = &interrupts[place];
            (
                asked["server"].clone(),
                asked["message"].clone(),
                asked["status"].clone(),
                asked["payload"].clone(),
            )
        };
        assert_eq!(
            shown(0),
            (json!("bank"), json!("Charge the card?"), json!("resolved"), json!({"ok": true}))
        );
        assert_eq!(shown(1), (json!("bank"), json!("Any note?"), json!("resolved"), json!({})));
    }
    let printed = &run.output.stdout;
    assert!(printed.contains("paused: Charge the card? → resolved"), "{printed}");
}

#[test]
fn a_question_that_is_not_accepted_makes_the_tool_fail() {
    for (response, words, status) in [
        (json!({"action": "decline"}), "The user declined the question `confirm`", "declined"),
        (json!({"action": "cancel"}), "The user cancelled the question `confirm`", "cancelled"),
        (
            json!({"action": "accept", "content": {"ok": "yes"}}),
            "the response to `confirm` does not fit its schema: /ok: \"yes\" is not of type \"boolean\"",
            "resolved",
        ),
        (json!({"action": "accept", "content": {"ok": false}}), "not confirmed", "resolved"),
    ] {
        let run = run(&cases(&response, "^failed"));
        run.assert_all_passed();
        for revision in REVISIONS {
            assert_eq!(calls(&run, revision)[0]["error"], words);
            assert_eq!(run.case(revision)["turns"][0]["interrupts"][0]["status"], status);
        }
    }
}

#[test]
fn a_client_that_cannot_ask_its_user_gets_an_error() {
    let run = run(&cases(&Value::Null, "failed: the client lacks the capability elicitation"));
    run.assert_all_passed();
    for revision in REVISIONS {
        let turn = &run.case(revision)["turns"][0];
        assert_eq!(calls(&run, revision)[0]["error"], "the client lacks the capability elicitation");
        assert!(
            turn.get("interrupts").is_none_or(|asked| asked.as_array().is_none_or(Vec::is_empty)),
            "{turn:#}"
        );
    }
}

/// Tells the question to the user of the agent, and calls again in the next turn.
fn patient_agent() -> FakeAgent {
    let state = Arc::new(Mutex::new(Value::Null));
    http_agent(move |request| {
        let client = bank_client(request).responding(&[("Charge the card?", json!({}))]);
        let mut state = state.lock().expect("the state");
        let mut more = Map::new();
        if asked_text(request) == "yes" {
            let responses = json!({
                "confirm": {"action": "accept", "content": {"ok": true}},
                "note": {"action": "accept"},
            });
            more.insert("inputResponses".to_string(), responses);
            more.insert("requestState".to_string(), state.take());
        }
        let result = client.call_once("charge_card", &json!({"order_id": "o-1"}), &more).expect("a result");
        *state = result["requestState"].clone();
        let question = result["inputRequests"]["confirm"]["params"]["message"].as_str();
        question.unwrap_or("Paid.").to_string()
    })
}

#[test]
fn the_user_of_the_agent_answers_in_the_next_turn() {
    let suite = "name: a
faults: [{ tool: charge_card, nth: 2, do: is_error }]
turns:
  - user: pay
    assert: { text: { must_match: 'Charge the card' } }
  - user: 'yes'
    assert: { text: { must_match: Paid } }
assert:
  - { type: idempotent, tool: charge_card, key: order_id }
";
    // Both rounds are one call, so the fault of the second call is not reached.
    let agent = patient_agent();
    let unreached = project(&agent, suite).test(&[]);
    unreached.assert_failure("a", "test_error", &["was not reached: it was called once"]);
    let suite = suite.replace("faults: [{ tool: charge_card, nth: 2, do: is_error }]\n", "");
    let run = project(&agent, &suite).test(&[]);
    run.assert_all_passed();
    let turns = run.case("a")["turns"].as_array().expect("turns").clone();
    assert_eq!(turns[0]["tool_calls"][0]["result"]["charged"], "o-1", "{turns:#?}");
    assert_eq!(turns[0]["interrupts"][0]["status"], "resolved");
    assert_eq!(turns[1]["tool_calls"].as_array().map_or(0, Vec::len), 0);
}

#[test]
fn an_agent_that_repeats_its_responses_after_a_lost_answer_pays_twice() {
    let agent = http_agent(|request| {
        let client = bank_client(request).responding(&[("Charge the card?", json!({}))]);
        let call =
            |more: &Map<String, Value>| client.call_once("charge_card", &json!({"order_id": "o-1"}), more);
        let asked = call(&Map::new()).expect("a question");
        let accepted = json!({"action": "accept", "content": {"ok": true}});
        let responses = json!({"confirm": accepted, "note": {"action": "accept"}});
        let more = Map::from_iter([
            ("inputResponses".to_string(), responses),
            ("requestState".to_string(), asked["requestState"].clone()),
        ]);
        let paid = call(&more).or_else(|_| call(&more)).expect("an answer");
        format!("Paid {paid}")
    });
    let suite = "name: a
faults: [{ tool: charge_card, do: lost_answer }]
turns: [{ user: pay }]
assert: [{ type: idempotent, tool: charge_card, key: order_id }]
";
    let run = project(&agent, suite).test(&[]);
    run.assert_failure("a", "assertion", &["2 effects for order_id", "[lost_answer]"]);
}

#[test]
fn a_replay_has_the_questions_of_its_recording() {
    let accepted = json!({"action": "accept", "content": {"ok": true}});
    let agent = asked_agent();
    let project = project(&agent, &case(REVISIONS[0], &accepted, "^done"));
    project.test(&["--record", "out"]).assert_all_passed();
    let replayed = project.test(&["-n", "replay:out"]);
    replayed.assert_all_passed();
    let asked = &replayed.case(REVISIONS[0])["turns"][0]["interrupts"][0];
    assert_eq!((&asked["server"], &asked["status"]), (&json!("bank"), &json!("resolved")), "{asked}");
}

/// A server with a session asks on the stream of its call. A replay asks as well, and compares the responses.
#[test]
fn a_replayed_server_asks_what_the_recorded_one_asked() {
    let accepted = json!({"action": "accept", "content": {"ok": true}});
    let ask = json!({"confirm": {"message": "Charge the card?"}});
    let charged = json!({"content": [{"type": "text", "text": "charged"}]});
    let answer = json!({"result": charged, "ask": ask});
    let workspace = TestWorkspace::new();
    let tools = json!([{"name": "charge_card", "inputSchema": {"type": "object"}, "answer": answer}]);
    workspace.file("bank.json", &json!({"name": "bank", "tools": tools}).to_string());
    let served = ServedMcp::start(&workspace, &["bank.json"]);
    let bridge = format!(
        "command: ['{HOTSEAT}', mcp, bank], env: {{ HOTSEAT_MCP: '{}' }}",
        served.bridge_address("bank")
    );
    let agent = asked_agent();
    let tested = |servers: &str, response: &Value, recorded: &str| {
        let project = Project::with_config(&(bank_target(&agent) + servers));
        let suite = case(REVISIONS[1], response, "^done");
        let project = project.file("bank.mcp.jsonl", recorded).suite("a", &suite);
        (project.test(&[]), project.workspace.read("bank.mcp.jsonl"))
    };
    for proxied in [format!("url: '{}'", served.url), bridge] {
        let proxy = format!("mcp: {{ bank: {{ type: proxy, {proxied}, record: bank.mcp.jsonl }} }}\n");
        let empty = "{\"format\":\"hotseat-mcp-recording\",\"version\":1,\"server\":\"bank\"}\n";
        let (recording, text) = tested(&proxy, &accepted, empty);
        recording.assert_all_passed();
        assert!(text.contains(r#""questions":[{"method":"elicitation/create""#), "{text}");
        let replay = "mcp: { bank: { type: replay, from: bank.mcp.jsonl } }\n";
        let (replayed, _) = tested(replay, &accepted, &text);
        replayed.assert_all_passed();
        let asked = &replayed.case(REVISIONS[1])["turns"][0]["interrupts"][0];
        assert_eq!(asked["status"], "resolved", "{asked}");
        for (other, words) in [
            (json!({"action": "decline"}), "the client responds otherwise to `elicitation/create`: /action"),
            (Value::Null, "the client lacks the capability elicitation"),
        ] {
            let (refused, _) = tested(replay, &other, &text);
            refused.assert_failure(REVISIONS[1], "test_error", &["elicitation/create", words]);
        }
    }
}

/// Listens for changes, logs in, and lists the tools before and after.
fn listing_agent() -> FakeAgent {
    http_agent(|request| {
        let client = bank_client(request);
        let client = if asked_text(request) == REVISIONS[1] {
            client.with_session().expect("a session")
        } else {
            client
        };
        let mut changes = client.listen().expect("a stream");
        let before = client.tools().expect("tools");
        let early = client.call("pay", &json!({})).expect_err("not offered");
        client.call("login", &json!({})).expect("a result");
        let changed = changes.next_message().expect("a change")["method"].clone();
        let reply =
            format!("{before:?} {early} {changed} {:?} {:?}", client.tools(), client.call("pay", &json!({})));
        reply
    })
}

#[test]
fn a_tool_is_offered_after_another_one_took_effect() {
    let agent = listing_agent();
    let servers = "mcp:
  bank:
    type: mock
    tools:
      - { name: login, answers: [{ content: welcome }] }
      - { name: pay, offered_after: login, answers: [{ content: paid }] }
";
    let expected = "\\[\"login\"\\] Unknown tool: pay \"notifications/tools/list_changed\" Ok\\(\\[\"login\", \"pay\"\\]\\) Ok\\(String\\(\"paid\"\\)\\)";
    let case = |name: &str| {
        format!(
            "name: {name}\nturns: [{{ user: '{name}', assert: {{ text: {{ must_match: {} }} }} }}]\n---\n",
            json!(expected)
        )
    };
    let suite = REVISIONS.map(case).concat();
    let run = Project::with_config(&(bank_target(&agent) + servers)).suite("a", &suite).test(&["-v"]);
    run.assert_all_passed();
    let note = "MCP server `bank` offers `pay` only after `login` took effect";
    assert!(run.output.stdout.contains(note), "{}", run.output);
}

#[test]
fn mistakes_are_reported_before_anything_is_contacted() {
    let tools = |tools: &str| format!("mcp: {{ bank: {{ type: mock, tools: [{tools}] }} }}\n");
    let asking = |ask: &str| tools(&format!("{{ name: a, answers: [{{ content: 1, ask: {ask} }}] }}"));
    let inherited = "mcp: { bank: { tools: [{ name: charge_card, offered_after: refund }] } }\n".to_string();
    for (keys, words) in [
        (tools("{ name: a, offered_after: login }"), "MCP server `bank` has no tool `login`"),
        (tools("{ name: login }, { name: a, offered_after: logn }"), "did you mean `login`?"),
        (tools("{ name: a, offered_after: a }"), "the tool `a` is never offered"),
        (tools("{ name: a, offered_after: b }, { name: b, offered_after: a }"), "is never offered"),
        (inherited, "is never offered: `offered_after` leads back to it"),
        (asking("{ sure: { schema: { type: object } } }"), "`message`"),
        (asking("{ sure: { message: 'Sure?', schema: { type: string } } }"), "must have `type: object`"),
        (asking("{ sure: { message: 'Sure?', schema: { type: object, required: 5 } } }"), "is invalid"),
        (asking("{ sure: { message: 'Sure?', form: 1 } }"), "form"),
        (
            "tools: [{ name: a, answers: [{ content: 1, ask: { sure: { message: 'Sure?' } } }] }]\n"
                .to_string(),
            "`ask`",
        ),
    ] {
        let agent = asked_agent();
        let suite = format!("name: a\n{keys}turns: [{{ user: pay }}]\n");
        let output = project(&agent, &suite).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{keys}: {output}");
        assert!(output.stderr.contains(words), "{keys}: {output}");
        let place = if keys.contains("charge_card") { "hotseat.yaml:17:" } else { "a.test.yaml:2:" };
        assert!(output.stderr.contains(place), "{keys}: {output}");
        assert!(agent.requests().is_empty());
    }
}

/// A server that looks whether its client is there before it answers a call.
const PINGING: &str = "import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, answer = message.get('method'), {'jsonrpc': '2.0', 'id': message.get('id')}
    if method == 'initialize':
        info = {'name': 'bank', 'version': '1'}
        answer['result'] = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': info}
    elif method == 'tools/call':
        call, answer = message['id'], {'jsonrpc': '2.0', 'id': 'p', 'method': 'ping'}
    elif message.get('id') == 'p':
        answer = {'jsonrpc': '2.0', 'id': call, 'result': {'content': [{'type': 'text', 'text': 'charged'}]}}
    else:
        continue
    print(json.dumps(answer), flush=True)
";

#[test]
fn a_ping_is_no_question() {
    let agent = http_agent(|request| {
        let bank = bank_client(request).with_session().expect("a session");
        bank.call("charge", &json!({})).expect("an answer")
    });
    let config =
        format!("{}mcp: {{ bank: {{ type: proxy, command: [python3, bank.py] }} }}\n", bank_target(&agent));
    let suite = "name: a\nturns: [{ user: pay, assert: [{ type: contains, value: charged }] }]\n";
    let run = Project::with_config(&config).file("bank.py", PINGING).suite("a", suite).test(&[]);
    run.assert_all_passed();
    assert!(run.case("a")["turns"][0].get("interrupts").is_none(), "{:#}", run.case("a"));
}
