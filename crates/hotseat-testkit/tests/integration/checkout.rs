//! Conversations with the example agent over plain TCP.

use crate::common::{Client, run};
use hotseat_testkit::checkout::{self, AgentFault};
use hotseat_testkit::{FakeAgent, interfaces};
use serde_json::{Value, json};

fn start(fault: AgentFault) -> FakeAgent {
    FakeAgent::start(move |request| interfaces::reply(request, fault))
}

/// A client that keeps the history of one conversation.
struct AgentConversation {
    port: u16,
    runs: usize,
    messages: Vec<Value>,
    tools: Value,
    state: Value,
}

/// Result of one run.
#[derive(Debug)]
struct RunResult {
    text: String,
    /// Name, arguments, and the result if there was one.
    calls: Vec<(String, Value, Option<String>)>,
    call_ids: Vec<String>,
    events: Vec<Value>,
    last: Value,
}

impl AgentConversation {
    fn connect(agent: &FakeAgent) -> AgentConversation {
        AgentConversation {
            port: agent.port(),
            runs: 0,
            messages: Vec::new(),
            tools: json!([]),
            state: json!({}),
        }
    }

    fn say(&mut self, text: &str) -> RunResult {
        self.messages.push(json!({"id": format!("u-{}", self.runs), "role": "user", "content": text}));
        self.resume(json!([]))
    }

    /// Performs one run and appends its events to the history.
    fn resume(&mut self, resume: Value) -> RunResult {
        self.runs += 1;
        let run_id = format!("run-{}", self.runs);
        let events = run(
            self.port,
            &json!({
                "threadId": "th", "runId": run_id, "messages": self.messages, "tools": self.tools,
                "state": self.state, "context": [], "forwardedProps": {}, "resume": resume,
            }),
        );
        let mut heard = RunResult {
            text: String::new(),
            calls: Vec::new(),
            call_ids: Vec::new(),
            last: json!(null),
            events,
        };
        for event in &heard.events.clone() {
            let field =
                |name: &str| event[name].as_str().unwrap_or_else(|| panic!("{name} of {event}")).to_owned();
            match field("type").as_str() {
                "TEXT_MESSAGE_CONTENT" => heard.text.push_str(&field("delta")),
                "TEXT_MESSAGE_END" => self.messages.push(
                    json!({"id": field("messageId"), "role": "assistant", "content": heard.text.clone()}),
                ),
                "TOOL_CALL_START" => {
                    heard.call_ids.push(field("toolCallId"));
                    heard.calls.push((field("toolCallName"), json!(""), None));
                }
                "TOOL_CALL_ARGS" => {
                    let args = &mut heard.calls.last_mut().expect("a call").1;
                    *args = json!(args.as_str().expect("text").to_owned() + &field("delta"));
                }
                "TOOL_CALL_END" => {
                    let (name, args, _) = heard.calls.last_mut().expect("a call");
                    let text = args.as_str().expect("text").to_owned();
                    let function = json!({"name": name, "arguments": text});
                    let call = json!({"id": field("toolCallId"), "type": "function", "function": function});
                    self.messages.push(json!({"id": "a", "role": "assistant", "toolCalls": [call]}));
                    *args = serde_json::from_str(&text).expect("JSON arguments");
                }
                "TOOL_CALL_RESULT" => {
                    if let Some(index) = heard.call_ids.iter().position(|id| *id == field("toolCallId")) {
                        heard.calls[index].2 = Some(field("content"));
                    }
                    self.answer(&field("toolCallId"), &field("content"));
                }
                _ => {}
            }
        }
        assert_eq!(heard.events[0]["type"], "RUN_STARTED");
        assert_eq!((&heard.events[0]["threadId"], &heard.events[0]["runId"]), (&json!("th"), &json!(run_id)));
        heard.last = heard.events.last().expect("a last event").clone();
        heard
    }

    fn answer(&mut self, call_id: &str, content: &str) {
        self.messages.push(json!({"id": "t", "role": "tool", "toolCallId": call_id, "content": content}));
    }
}

impl RunResult {
    fn names(&self) -> Vec<&str> {
        self.calls.iter().map(|(name, _, _)| name.as_str()).collect()
    }

    fn result(&self, index: usize) -> &str {
        self.calls[index].2.as_deref().expect("a result")
    }

    fn outcome(&self) -> &Value {
        assert_eq!(self.last["type"], "RUN_FINISHED");
        &self.last["outcome"]["type"]
    }
}

#[test]
fn three_turns_lead_to_payment() {
    let agent = start(AgentFault::None);
    let mut talk = AgentConversation::connect(&agent);

    let heard = talk.say("I want to checkout");
    assert_eq!(heard.names(), ["validate_cart", "get_shipping_options"]);
    assert_eq!(heard.calls[1].1["cart"]["items"][1], json!({"sku": "B", "qty": 2}));
    assert_eq!(heard.result(0), "{\"ok\":true,\"cart_id\":\"c-1\",\"items\":2}");
    assert_eq!(heard.text, "Cart is valid. Shipping options: standard, express.");
    assert_eq!(heard.outcome(), "success");

    let heard = talk.say("Use the first shipping option");
    assert_eq!(heard.names(), ["calculate_total"]);
    assert_eq!(heard.result(0), "{\"total\":42.5,\"currency\":\"EUR\",\"shipping\":\"standard\"}");
    assert_eq!(heard.text, "Your total is 42.50 EUR.");

    let heard = talk.say("Confirm and pay");
    assert_eq!(heard.names(), ["charge_card"]);
    assert_eq!(heard.calls[0].1, json!({"amount": 42.5, "currency": "EUR", "token": "tok_test"}));
    assert!(heard.result(0).contains("\"approved\""));
    assert_eq!(heard.text, "Payment approved. Charge id ch_001.");

    let heard = talk.say("history");
    assert_eq!(heard.text, "I saw 4 user message(s); the first was: 'I want to checkout'");
}

#[test]
fn user_text_selects_action() {
    let agent = start(AgentFault::None);
    let check = |say: &str, calls: &[&str], text: &str| {
        let heard = AgentConversation::connect(&agent).say(say);
        assert_eq!((heard.names().as_slice(), heard.text.as_str()), (calls, text), "{say}");
        assert_eq!(heard.outcome(), "success", "{say}");
        assert!(heard.calls.iter().all(|(_, _, result)| result.is_some()), "{say}");
    };
    check("Hello", &[], "You said: Hello");
    check("UNICODE please", &[], "Grüße — 你好 🌍\nsecond line: \"quoted\" \\ backslash");
    check("parallel", &["validate_cart", "get_shipping_options"], "Both checks done.");
    check("pay twice", &["charge_card", "charge_card"], "Charged twice.");
    check(
        "decline",
        &["charge_card"],
        "Payment failed: {\"status\":\"declined\",\"reason\":\"insufficient funds\"}",
    );
    check("toolfail", &["fail_tool"], "The tool failed: tool exploded: on purpose");
    check("delete it", &["delete_order"], "Order deleted.");
    check("slow", &["slow_tool"], "Done waiting.");
    check("frontend", &[], "No client tools were supplied.");
    check("history of 'it'", &[], "I saw 1 user message(s); the first was: \"history of 'it'\"");
}

#[test]
fn calls_of_one_step_start_before_any_result() {
    let heard = AgentConversation::connect(&start(AgentFault::None)).say("parallel");
    let calls: Vec<&str> = heard
        .events
        .iter()
        .filter_map(|event| event["type"].as_str().filter(|kind| kind.starts_with("TOOL_CALL_")))
        .filter(|kind| *kind != "TOOL_CALL_ARGS")
        .collect();
    let expected = [
        "TOOL_CALL_START",
        "TOOL_CALL_END",
        "TOOL_CALL_START",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
        "TOOL_CALL_RESULT",
    ];
    assert_eq!(calls, expected);
}

#[test]
fn crash_is_a_run_error() {
    let heard = AgentConversation::connect(&start(AgentFault::None)).say("crash");
    assert_eq!(
        heard.last,
        json!({"type": "RUN_ERROR", "message": "model backend exploded", "code": "MODEL_ERROR"})
    );
}

#[test]
fn ids_differ_between_turns() {
    let agent = start(AgentFault::None);
    let mut talk = AgentConversation::connect(&agent);
    assert_ne!(talk.say("pay").call_ids, talk.say("pay").call_ids);
}

#[test]
fn client_tool_is_left_to_client() {
    let agent = start(AgentFault::None);
    let mut talk = AgentConversation::connect(&agent);
    talk.tools = json!([{"name": "confirm_action", "description": "", "parameters": {}}]);

    let heard = talk.say("frontend");
    assert_eq!(heard.names(), ["confirm_action"]);
    assert_eq!(heard.calls[0].1, json!({"action": "confirm payment of 42.50 EUR"}));
    assert_eq!(heard.calls[0].2, None);
    assert_eq!(heard.last["outcome"], json!({"type": "success", "pendingToolCallIds": heard.call_ids}));

    talk.answer(&heard.call_ids[0], "approved");
    let heard = talk.resume(json!([]));
    assert_eq!((heard.names().len(), heard.text.as_str()), (0, "Client tool answered: approved"));
}

#[test]
fn refund_waits_for_approval() {
    let agent = start(AgentFault::None);
    for (answer, expected) in [
        (
            json!({"status": "resolved", "payload": {"approved": true}}),
            "{\"refunded\":42.5,\"order_id\":\"o-9\"}",
        ),
        (json!({"status": "resolved", "payload": {"approved": false}}), "refund not approved"),
        (json!({"status": "cancelled"}), "refund not approved"),
    ] {
        let mut talk = AgentConversation::connect(&agent);
        let heard = talk.say("refund");
        assert_eq!((heard.names(), &heard.calls[0].2), (vec!["refund_order"], &None));
        assert_eq!(heard.outcome(), "interrupt");
        let interrupt = &heard.last["outcome"]["interrupts"][0];
        assert_eq!(interrupt["toolCallId"], heard.call_ids[0].as_str());
        assert_eq!(interrupt["message"], "Refund 42.5 EUR of order o-9?");

        let mut answer = answer;
        answer["interruptId"] = interrupt["id"].clone();
        let resumed = talk.resume(json!([answer]));
        let result = &resumed.events[1];
        assert_eq!((&result["type"], &result["content"]), (&json!("TOOL_CALL_RESULT"), &json!(expected)));
        assert_eq!(result["toolCallId"], heard.call_ids[0].as_str());
        assert_eq!(resumed.text, format!("Refund outcome: {expected}"));
        assert_eq!(resumed.outcome(), "success");
    }
}

#[test]
fn answer_without_open_interrupt_is_an_error() {
    let agent = start(AgentFault::None);
    let mut talk = AgentConversation::connect(&agent);
    let id = talk.say("refund").last["outcome"]["interrupts"][0]["id"].clone();
    let mut check = |answer: Value, message: &str| {
        let heard = talk.resume(json!([answer]));
        assert_eq!(
            (&heard.last["type"], &heard.last["code"]),
            (&json!("RUN_ERROR"), &json!("INVALID_RESUME"))
        );
        assert!(heard.last["message"].as_str().unwrap().contains(message), "{}", heard.last);
    };
    check(json!({"interruptId": "other", "status": "cancelled"}), "no interrupt `other` is open");
    check(json!({"interruptId": id, "status": "resolved", "payload": {}}), "no boolean `approved`");
    check(json!({"interruptId": id, "status": "maybe"}), "no known status");
    talk.resume(json!([{"interruptId": id, "status": "cancelled"}]));
    let again = talk.resume(json!([{"interruptId": id, "status": "cancelled"}]));
    assert!(again.last["message"].as_str().unwrap().contains("answered before"), "{}", again.last);
}

#[test]
fn shared_state_persists() {
    let agent = start(AgentFault::None);
    let mut talk = AgentConversation::connect(&agent);
    talk.state = json!({"items": {"old": 1}});
    let heard = talk.say("remember");
    let events: Vec<&Value> =
        heard.events.iter().skip_while(|event| event["type"] != "STATE_SNAPSHOT").take(3).collect();
    assert_eq!(events[0]["snapshot"], json!({"items": {"old": 1, "color": "blue"}}));
    assert_eq!(events[1]["delta"], json!([{"op": "add", "path": "/items/size", "value": "L"}]));
    assert_eq!(*events[2], json!({"type": "CUSTOM", "name": "remembered", "value": {"key": "color"}}));
    assert_eq!((heard.result(0), heard.text.as_str()), ("stored color", "Remembered."));
}

#[test]
fn double_charge_charges_twice() {
    let heard = AgentConversation::connect(&start(AgentFault::DoubleCharge)).say("pay");
    assert_eq!(heard.names(), ["charge_card", "charge_card"]);
    assert_eq!(heard.text, "Payment approved. Charge id ch_001.");
}

#[test]
fn no_confirm_skips_confirmation() {
    let agent = start(AgentFault::NoConfirm);
    let mut talk = AgentConversation::connect(&agent);
    talk.tools = json!([{"name": "confirm_action"}]);
    assert_eq!(talk.say("frontend").names(), ["charge_card"]);
    let heard = talk.say("refund");
    assert_eq!(
        (heard.outcome(), heard.result(0)),
        (&json!("success"), "{\"refunded\":42.5,\"order_id\":\"o-9\"}")
    );
}

#[test]
fn wrong_total_is_too_high() {
    let heard = AgentConversation::connect(&start(AgentFault::WrongTotal)).say("shipping");
    assert!(heard.result(0).contains("45.2"));
    assert_eq!(heard.text, "Your total is 45.20 EUR.");
}

#[test]
fn faults_have_names() {
    let parse = |name: &str| name.parse::<AgentFault>();
    assert_eq!(parse("double-charge").unwrap(), AgentFault::DoubleCharge);
    assert_eq!(parse("no-confirm").unwrap(), AgentFault::NoConfirm);
    assert_eq!(parse("wrong-total").unwrap(), AgentFault::WrongTotal);
    assert!(parse("other").unwrap_err().to_string().contains("double-charge"));
}

#[test]
fn rejects_requests_that_start_no_run() {
    let agent = start(AgentFault::None);
    let mut client = Client::connect(agent.port());
    client.get("/health");
    assert_eq!(client.reply(), (200, "ok".to_owned()));
    client.get("/");
    assert_eq!(client.reply().0, 405);
    for (body, why) in [
        ("not json", "not JSON"),
        ("[]", "`threadId` is missing"),
        (r#"{"threadId": 1}"#, "`threadId` is not a string: 1"),
        (r#"{"threadId": "a"}"#, "`runId` is missing"),
        (r#"{"threadId": "a", "runId": "b"}"#, "`messages` is not a list"),
        (r#"{"method": "agent/run"}"#, "`threadId` is missing"),
    ] {
        client.post("/", body);
        let (status, body) = client.reply();
        assert_eq!(status, 422, "{body}");
        assert!(body.contains(why), "{body}");
    }
}

#[cfg(unix)]
mod binary {
    use super::*;
    use hotseat_testkit::{SpawnedProgram, TestWorkspace};

    const BINARY: &str = env!("CARGO_BIN_EXE_checkout-agent");

    /// The port in `listening on http://127.0.0.1:PORT/`.
    fn port(running: &mut SpawnedProgram) -> u16 {
        let printed = running.wait_for_stdout("\n");
        let port =
            printed.strip_prefix("listening on http://127.0.0.1:").and_then(|rest| rest.strip_suffix("/\n"));
        port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("printed {printed:?}"))
    }

    #[test]
    fn serves_at_given_address_until_stopped() {
        let workspace = TestWorkspace::new();
        let mut running = workspace.command(BINARY, &["--fault", "double-charge"]).spawn();
        let input = json!({"threadId": "t", "runId": "r", "messages": [{"role": "user", "content": "pay"}]});
        let events = run(port(&mut running), &input);
        assert_eq!(events.iter().filter(|event| event["type"] == "TOOL_CALL_START").count(), 2);
        running.interrupt();
        let output = running.wait();
        assert_eq!(output.code, 128 + 2);
        assert_eq!(output.redacted().stdout, "listening on http://127.0.0.1:[PORT]/\n");
    }

    #[test]
    fn invalid_usage_exits_with_code_2() {
        let workspace = TestWorkspace::new();
        let agent = start(AgentFault::None);
        let check = |args: &[&str], why: &str| {
            let output = workspace.run(BINARY, args);
            assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}");
            assert!(output.stderr.contains(why), "{args:?}: {output}");
        };
        check(&["--port"], "--port needs a value");
        check(&["--port", "x"], "--port: invalid digit");
        check(&["--fault", "x"], "unknown fault `x`");
        check(&["--color"], "unknown argument `--color`");
        check(&["--port", &agent.port().to_string()], &format!("port {}: ", agent.port()));
        assert!(workspace.run(BINARY, &["--help"]).stdout.contains("--fault NAME"));
    }

    #[test]
    fn other_packages_can_find_binary() {
        assert_eq!(
            checkout::binary().canonicalize().unwrap(),
            std::path::Path::new(BINARY).canonicalize().unwrap()
        );
    }
}
