//! Calls that the agent reports in its protocol and that an MCP server of the test sees.

use std::thread;

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::completions::ChatCompletion;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::http_agents::bank_client;
use crate::common::{Project, TestRun};
use crate::mcp::{BANK, calls};

/// A server whose answers to equal calls differ, so that a wrong pair has a wrong result.
const RECEIPTS: &str = "mcp:
  bank:
    type: mock
    tools:
      - name: charge_card
        answers:
          - { args_match: { order_id: '^o-2$' }, content: receipt of o-2 }
          - { content: first receipt, once: true }
          - { content: second receipt, once: true }
          - { content: third receipt, once: true }
";

/// The header of a target with the address of the bank.
const BANK_HEADER: &str = "  headers: { x-bank: '${MCP.bank.url}' }\n";

fn agui_target(agent: &FakeAgent) -> String {
    format!("target:\n  endpoint: {agent}\n{BANK_HEADER}")
}

/// Runs a case whose turn has `count` calls of charge_card, each seen by the agent and the server.
#[track_caller]
fn run_joined(config: &str, count: usize) -> TestRun {
    let suite = format!(
        "name: a
turns:
  - user: pay
    assert:
      tools: {{ require: [{{ name: charge_card, server: bank, count: {{ exact: {count} }} }}] }}
      budget: {{ max_tool_calls: {count} }}
"
    );
    let run = Project::with_config(config).suite("a", &suite).test(&[]);
    run.assert_all_passed();
    let made = calls(&run, "a");
    assert_eq!(made.len(), count, "{made:#?}");
    assert!(made.iter().all(|call| call["seen_by"] == json!(["agent", "mcp"])), "{made:#?}");
    run
}

/// Id, order and result of each call.
fn results(run: &TestRun) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let shown = calls(run, "a").into_iter().map(|call| {
        format!("{} {} {}", text(&call["id"]), text(&call["args"]["order_id"]), text(&call["result"]))
    });
    shown.collect()
}

#[test]
fn a_call_that_the_agent_reports_and_the_server_sees_is_one_call() {
    let agent = FakeAgent::with_run(|run, request| {
        let bank = bank_client(request);
        let arguments = json!({"amount": 5.0, "order_id": "o-1"});
        let result = bank.call("charge_card", &arguments).expect("an answer");
        run.tool("c1", "mcp__bank__charge_card", &arguments, Some(result)).text("Paid.").finished()
    });
    let target = agui_target(&agent);
    let suite = "name: a
turns:
  - user: pay
    assert:
      tools:
        require:
          - { name: charge_card, server: bank, count: { exact: 1 } }
          - { name: mcp__bank__charge_card, count: { exact: 1 } }
      budget: { max_tool_calls: 1 }
assert:
  - { type: value, of: tool_names, contains: charge_card }
  - { type: value, of: tool_names, equals: [bank_charge_card] }
  - { type: value, of: tool_names, contains: charge, negate: true }
";
    let run = Project::with_config(&(target + BANK)).suite("a", suite).test(&[]);
    run.assert_all_passed();
    let calls = calls(&run, "a");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["seen_by"], json!(["agent", "mcp"]));
}

/// A call has the name of a tool of the server also if it never arrived there.
#[test]
fn a_reported_call_that_no_server_received_is_one_of_the_tool() {
    let agent = FakeAgent::with_run(|run, _| {
        let arguments = json!({"order_id": "o-1", "amount": 5});
        run.tool("c1", "mcp__bank__charge_card", &arguments, Some(json!("charged"))).text("Paid.").finished()
    });
    let suite = "name: forbidden
turns: [{ user: pay, assert: { tools: { forbid: [charge_card] } } }]
---
name: other server
turns: [{ user: pay, assert: { tools: { forbid: [shop_charge_card] } } }]
";
    let test = "import { it, user, expect, agent, conversation } from 'hotseat';
it('called', () => {
  user.says('pay');
  expect(conversation.hasToolCall('charge_card')).toBe(true);
  expect(conversation.hasToolCall('card')).toBe(false);
  expect(agent).toCallTool('charge_card', { amount: (amount) => amount === 5 });
});
";
    let project = Project::with_config(&(agui_target(&agent) + BANK)).suite("a", suite);
    let tested = project.file("a_test.ts", test).test(&[]);
    tested.assert_failure("forbidden", "assertion", &["charge_card"]);
    for case in ["other server", "called"] {
        assert_eq!(tested.case(case)["status"], "passed", "{:#}", tested.case(case));
    }
}

/// Tests in TypeScript and script functions know the other names too.
#[test]
fn scripts_know_the_names_of_tools_of_servers() {
    let agent = FakeAgent::with_run(|run, request| {
        let arguments = json!({"amount": 5, "order_id": "o-1"});
        let result = bank_client(request).call("charge_card", &arguments).expect("an answer");
        run.tool("c1", "mcp__bank__charge_card", &arguments, Some(result)).text("Paid.").finished()
    });
    let test = "import { it, user, expect, agent, conversation } from 'hotseat';
it('a', () => {
  user.says('pay');
  const charged = (call) => call !== undefined && call.server === 'bank' && call.serverTool === 'charge_card';
  expect(agent).toCallTool('charge_card', { amount: (amount) => amount > 4 });
  expect(agent).not.toCallTool('bank_charge_card', { amount: (amount) => amount > 5 });
  expect(conversation.hasToolCall('charge_card')).toBe(true);
  expect(conversation.hasToolCall('charge_card', { amount: 5 })).toBe(true);
  expect(conversation.hasToolCall('charge')).toBe(false);
  expect(conversation.calledTool('bank_charge_card')).toBe(1);
  expect(conversation.messages[1].hasToolCall('charge_card')).toBe(true);
  expect(charged(conversation.lastTurn.toolCall('charge_card'))).toBe(true);
  expect(Object.keys(conversation.lastTurn.toolCalls[0])).toEqual(['id', 'name', 'arguments', 'result', 'turn']);
});
";
    let check = "export function bank(output, input, expected, context) {
  return context.tool_calls.every((call) => call.server === 'bank' && call.server_tool === 'charge_card');
}
";
    let suite = "name: b\nturns: [{ user: pay, assert: [{ type: script, use: 'scripts:f.bank' }] }]\n";
    let project = Project::with_config(&(agui_target(&agent) + BANK)).suite("b", suite);
    project.file("a_test.ts", test).file("f.ts", check).test(&[]).assert_all_passed();
}

/// The trace has the result that the agent reports, which may hide what the server answered.
#[test]
fn a_reported_result_that_the_server_did_not_answer_is_noted() {
    let notes = |reported: Value| {
        let agent = FakeAgent::with_run(move |run, request| {
            let arguments = json!({"order_id": "o-1", "amount": 5});
            bank_client(request).call("charge_card", &arguments).expect("an answer");
            run.tool("c1", "charge_card", &arguments, Some(reported.clone())).text("Paid.").finished()
        });
        let suite = "name: a\nturns: [{ user: pay, assert: { budget: { max_tool_calls: 1 } } }]\n";
        let run = Project::with_config(&(agui_target(&agent) + BANK)).suite("a", suite).test(&[]);
        run.assert_all_passed();
        run.case("a")["turns"][0]["notes"].to_string()
    };
    let words = "the agent reports another result of charge_card than MCP server `bank` answered; that of the agent counts: ";
    for (other, shown) in [
        (json!({"charged": false}), r#"{\"charged\":false}"#),
        (json!([{"refunded": true}]), r#"[{\"refunded\":true}]"#),
        (json!("Charged the card."), r#"\"Charged the card.\""#),
    ] {
        let notes = notes(other);
        let words = format!(r#"{words}{shown}, not {{\"charged\":true}}"#);
        assert!(notes.contains(&words), "{words}: {notes}");
    }
    let wrapped = json!({"content": [{"type": "text", "text": "{\"charged\": true}"}], "isError": false});
    for same in [json!({"charged": true}), wrapped, json!("{'charged': True}"), json!("charged=True")] {
        assert_eq!(notes(same), "null");
    }
}

/// Members that no path reads are no reason to count a call twice: the server knows its arguments.
#[test]
fn a_call_whose_arguments_are_unknown_has_those_of_the_server() {
    let agent = FakeAgent::start(|request: &FakeRequest| {
        let bank = bank_client(request);
        let pay = |order: &str| bank.call("charge_card", &json!({"order_id": order})).expect("an answer");
        let results = ["o-2", "o-1"].map(pay);
        let calls = results.map(|result| json!({"name": "charge_card", "took_ms": 5, "result": result}));
        FakeReply::json(200, &json!({"reply": "Paid.", "calls": calls}))
    });
    let target = format!(
        "target:\n  type: http\n  endpoint: {agent}\n{BANK_HEADER}  body: '{{{{message}}}}'\n  map: {{ reply: $.reply, tool_calls: $.calls }}\n{RECEIPTS}"
    );
    let joined = run_joined(&target, 2);
    assert_eq!(results(&joined), ["call o-2 receipt of o-2", "call#2 o-1 first receipt"]);
    assert!(calls(&joined, "a").iter().all(|call| call["args_broken"] != json!(true)));
}

#[test]
fn parallel_calls_of_one_tool_are_joined_by_their_arguments() {
    let orders = ["o-1", "o-2", "o-1", "o-3"];
    let agent = FakeAgent::with_run(move |run, request| {
        let bank = bank_client(request);
        thread::scope(|scope| {
            for order in orders {
                let bank = &bank;
                scope
                    .spawn(move || bank.call("charge_card", &json!({"order_id": order})).expect("an answer"));
            }
        });
        let report = |run: FakeRun, (place, order): (usize, &str)| {
            run.tool_call(&format!("c{place}"), "charge_card", &json!({"order_id": order}))
        };
        orders.into_iter().enumerate().fold(run, report).text("Paid.").finished()
    });
    let run = run_joined(&(agui_target(&agent) + RECEIPTS), orders.len());
    // The calls reach the server at the same time.
    let mut shown = results(&run);
    shown.sort_unstable();
    let names: Vec<&str> = shown.iter().map(|call| call.split(" ").next().unwrap_or_default()).collect();
    assert_eq!(names, ["c0", "c1", "c2", "c3"]);
    assert_eq!(shown[1], "c1 o-2 receipt of o-2");
    // Each of the others has a receipt of its own.
    let mut receipts: Vec<&str> =
        [0, 2, 3].iter().filter_map(|place| shown[*place].get("c0 o-1 ".len()..)).collect();
    receipts.sort_unstable();
    assert_eq!(receipts, ["first receipt", "second receipt", "third receipt"], "{shown:?}");
}

#[test]
fn equal_calls_are_joined_by_the_id_that_the_client_passes() {
    let agent = FakeAgent::with_run(|run, request| {
        let bank = bank_client(request);
        // The calls reach the server in another order than the agent reports them.
        for id in ["c", "a", "b"] {
            let meta = json!({"progressToken": "a", "example/toolCallId": id});
            let arguments = json!({"order_id": "o-1", "added_by_the_client": true});
            bank.call_with_meta("charge_card", &arguments, meta).expect("an answer");
        }
        let report =
            |run: FakeRun, id: &str| run.tool_call(id, "bank_charge_card", &json!({"order_id": "o-1"}));
        ["a", "b", "c"].into_iter().fold(run, report).text("Paid.").finished()
    });
    let run = run_joined(&(agui_target(&agent) + RECEIPTS), 3);
    assert_eq!(results(&run), ["c o-1 first receipt", "a o-1 second receipt", "b o-1 third receipt"]);
    // The arguments are those that reached the server.
    assert!(calls(&run, "a").iter().all(|call| call["args"]["added_by_the_client"] == true));
}

#[test]
fn ids_that_the_agent_uses_again_are_joined_in_order() {
    let agent = FakeAgent::with_run(|run, request| {
        let bank = bank_client(request);
        let pay = |run: FakeRun, order: &str| {
            let arguments = json!({"order_id": order});
            let result = bank.call_with_meta("charge_card", &arguments, json!({"toolCallId": "call_0"}));
            run.tool("call_0", "charge_card", &arguments, Some(result.expect("an answer")))
        };
        ["o-1", "o-2", "o-3"].into_iter().fold(run, pay).text("Paid.").finished()
    });
    let run = run_joined(&(agui_target(&agent) + RECEIPTS), 3);
    let results = results(&run);
    let shown = results.iter().map(|call| call.split_once(' ').map_or("", |(_, rest)| rest));
    assert_eq!(shown.collect::<Vec<_>>(), ["o-1 first receipt", "o-2 receipt of o-2", "o-3 second receipt"]);
}

/// Clients that validate arguments add defaults at every level.
#[test]
fn defaults_within_arguments_are_those_of_one_call() {
    let agent = FakeAgent::with_run(|run, request| {
        let received = json!({"order_id": "o-1", "guest": {"name": "a", "age": null}, "items": [{"sku": 1.0, "count": 1}]});
        let result = bank_client(request).call("charge_card", &received).expect("an answer");
        let reported = json!({"order_id": "o-1", "guest": {"name": "a"}, "items": [{"sku": 1}]});
        run.tool("c1", "charge_card", &reported, Some(result)).text("Paid.").finished()
    });
    let run = run_joined(&(agui_target(&agent) + RECEIPTS), 1);
    assert_eq!(calls(&run, "a")[0]["args"]["guest"], json!({"name": "a", "age": null}));
}

/// Hotseat numbers the calls at its servers; an agent may use the same ids for its own.
#[test]
fn an_id_of_the_agent_is_not_that_of_a_call_at_a_server() {
    let agent = FakeAgent::with_run(|run, request| {
        bank_client(request).call("charge_card", &json!({"order_id": "o-1"})).expect("an answer");
        run.tool("mcp-1", "lookup", &json!({}), Some(json!("charge refused"))).text("Paid.").finished()
    });
    let suite = "name: a
turns: [{ user: pay }]
assert:
  - { type: tool_result, tool: charge_card, result: first receipt }
  - { type: tool_result, tool: lookup, result: charge refused }
";
    let project = Project::with_config(&(agui_target(&agent) + RECEIPTS)).suite("a", suite);
    project.test(&["--record", "recordings"]).assert_all_passed();
    project.test(&["-n", "replay:recordings"]).assert_all_passed();
}

#[test]
fn calls_of_a_chat_agent_are_joined() {
    let agent = FakeAgent::start(|request: &FakeRequest| -> FakeReply {
        let bank = bank_client(request);
        for (id, order) in [("b", "o-2"), ("c", "o-1"), ("a", "o-1")] {
            let meta = json!({"tool_call_id": id});
            bank.call_with_meta("charge_card", &json!({"order_id": order}), meta).expect("an answer");
        }
        let mut completion = ChatCompletion::new();
        for (index, (id, order)) in [("a", "o-1"), ("b", "o-2"), ("c", "o-1")].into_iter().enumerate() {
            completion = completion.tool(index, id, "mcp__bank__charge_card", &json!({"order_id": order}));
        }
        completion.text("Paid.").finish("stop").into()
    });
    let target = format!(
        "target:\n  type: openai\n  base_url: {agent}v1\n  model: small\n  api_key: sk-0123456789\n{BANK_HEADER}"
    );
    let run = run_joined(&(target + RECEIPTS), 3);
    assert_eq!(results(&run), ["b o-2 receipt of o-2", "c o-1 first receipt", "a o-1 second receipt"]);
}

#[test]
fn a_lost_answer_of_one_of_two_equal_calls_is_a_call_more() {
    let agent = FakeAgent::with_run(|run, request| {
        let bank = bank_client(request);
        for id in ["a", "b"] {
            let arguments = json!({"order_id": "o-1"});
            let meta = json!({"toolCallId": id});
            let again = || bank.call_with_meta("charge_card", &arguments, meta.clone());
            again().or_else(|_| again()).expect("an answer");
        }
        let report = |run: FakeRun, id: &str| run.tool_call(id, "charge_card", &json!({"order_id": "o-1"}));
        ["a", "b"].into_iter().fold(run, report).text("Paid.").finished()
    });
    let suite = "name: a\nfaults: [{ do: lost_answer }]\nturns: [{ user: pay }]\n";
    let run = Project::with_config(&(agui_target(&agent) + RECEIPTS)).suite("a", suite).test(&[]);
    run.assert_all_passed();
    let seen_by = |call: &Value| format!("{} {}", call["seen_by"], call["faults"]);
    assert_eq!(
        calls(&run, "a").iter().map(seen_by).collect::<Vec<_>>(),
        ["[\"agent\",\"mcp\"] [\"lost_answer\"]", "[\"mcp\"] null", "[\"agent\",\"mcp\"] null"],
    );
}

/// The agent reports its calls afterwards in another order than it made them.
#[test]
fn joined_calls_are_in_the_order_in_which_the_server_saw_them() {
    const SHOP: &str = "mcp:
  bank:
    type: mock
    tools:
      - { name: validate, answers: [{ content: valid }] }
      - { name: charge, answers: [{ content: charged }] }
";
    let agent = FakeAgent::with_run(|mut run, request| {
        let body = request.json();
        let text = body["messages"][0]["content"].as_str().unwrap_or_default();
        let made: Vec<&str> = text.split(' ').collect();
        let mut results = Vec::new();
        for tool in &made {
            results.push(bank_client(request).call(tool, &json!({})));
            thread::sleep(std::time::Duration::from_millis(20));
        }
        for (tool, result) in made.iter().zip(results).rev() {
            run = run.tool(tool, tool, &json!({}), Some(result.expect("an answer")));
        }
        run.text("Paid.").finished()
    });
    let after = "{ tools: { require: [{ name: charge, after: validate }] } }";
    let sequence = "[{ type: tool_sequence, calls: [validate, charge], arguments: ignored }]";
    let suite = format!(
        "name: right\nturns: [{{ user: validate charge, assert: {after} }}]
---\nname: right sequence\nturns: [{{ user: validate charge, assert: {sequence} }}]
---\nname: wrong\nturns: [{{ user: charge validate, assert: {after} }}]
---\nname: wrong sequence\nturns: [{{ user: charge validate, assert: {sequence} }}]
"
    );
    let run = Project::with_config(&(agui_target(&agent) + SHOP)).suite("a", &suite).test(&[]);
    for case in ["right", "right sequence"] {
        assert_eq!(run.case(case)["status"], "passed", "{}", run.output);
    }
    run.assert_failure("wrong", "assertion", &["calls before validate: turn 1: charge"]);
    run.assert_failure("wrong sequence", "assertion", &["in another order"]);
    for call in calls(&run, "wrong") {
        assert_eq!(call["seen_by"], json!(["agent", "mcp"]));
    }
}
