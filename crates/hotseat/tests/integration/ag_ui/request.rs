//! Content of a request: headers and members of the run input.

use hotseat_targets::ag_ui::RequestEnvelope;
use hotseat_testkit::{FakeAgent, FakeRequest};
use http::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::fixture::{TestConversation, agent};

fn greeting_agent() -> FakeAgent {
    agent(|run| run.started().text("Hi.").finished())
}

/// All keys of a JSON value at any depth, except in user and agent data.
fn keys(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            found.push(key.clone());
            keys(value, found);
        }),
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().any(has_null),
        Value::Array(items) => items.iter().any(has_null),
        _ => false,
    }
}

/// A231
#[test]
fn request_is_json_post_accepting_event_stream() {
    let agent = greeting_agent();
    TestConversation::new(&agent).user_says("hello").run().passed();
    let request = &agent.requests()[0];
    assert_eq!(request.method, "POST");
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("accept"), Some("text/event-stream"));
    assert_eq!(request.header("accept-encoding"), None, "unsupported encodings are not requested");
}

/// A5, A10: each header once, ignoring case, and none of another protocol.
#[test]
fn target_headers_are_sent_without_protocol() {
    let agent = greeting_agent();
    let talk = TestConversation::new(&agent).target(|target| {
        for (name, value) in
            [("x-team", "red"), ("USER-AGENT", "mine"), ("Content-Type", "text/x"), ("ACCEPT", "y/z")]
        {
            let name: HeaderName = name.parse().unwrap();
            target.headers.insert(name, HeaderValue::from_static(value));
        }
    });
    talk.user_says("one").user_says("two").run().passed();
    for request in agent.requests() {
        let values = |name: &str| -> Vec<String> {
            let meant = request.headers.iter().filter(|(known, _)| known == name);
            meant.map(|(_, value)| value.clone()).collect()
        };
        assert_eq!(values("x-team"), ["red"]);
        assert_eq!(values("user-agent"), ["mine"]);
        assert_eq!(values("content-type"), ["application/json"]);
        assert_eq!(values("accept"), ["text/event-stream"]);
    }
}

/// A232, A233, A234, A235, A237, A253: some servers reject requests without optional members.
#[test]
fn request_contains_exactly_the_required_members() {
    let agent = greeting_agent();
    TestConversation::new(&agent).user_says("hello").run().passed();
    let body = agent.requests()[0].json();
    let members: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
    let expected =
        ["protocolVersion", "threadId", "runId", "state", "messages", "tools", "context", "forwardedProps"];
    assert_eq!(members, expected);
    assert_eq!(body["protocolVersion"], "1.0");
    assert_eq!((&body["state"], &body["forwardedProps"]), (&json!({}), &json!({})));
    assert_eq!((&body["tools"], &body["context"]), (&json!([]), &json!([])));
    let message = &body["messages"][0];
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    assert_eq!((&message["role"], &message["content"]), (&json!("user"), &json!("hello")));
    assert!(message["id"].as_str().is_some_and(|id| !id.is_empty()));
}

/// A51, A52
#[test]
fn thread_id_is_stable_and_run_ids_are_unique() {
    let agent = greeting_agent();
    TestConversation::new(&agent).user_says("one").user_says("two").run().passed();
    TestConversation::new(&agent).user_says("three").run().passed();
    let inputs: Vec<_> = agent.requests().iter().map(FakeRequest::input).collect();
    assert_eq!(inputs[0].thread_id, inputs[1].thread_id);
    assert_ne!(inputs[0].thread_id, inputs[2].thread_id);
    assert_ne!(inputs[0].run_id, inputs[1].run_id);
    assert_ne!(inputs[1].run_id, inputs[2].run_id);
}

/// A207, A208, A209, A251, A252
#[test]
fn case_overrides_are_sent() {
    let agent = greeting_agent();
    let talk = TestConversation::new(&agent).target(|target| {
        target.thread_id = Some("th-7".to_string());
        target.state = json!({"cart": [1, {"deep": null}]});
        target.context = json!([{"description": "today", "value": "Monday"}]);
        target.forwarded_props = json!({"user_id": 7, "nested": {"a_b": [true]}});
    });
    let parameters = json!({"type": "object", "properties": {"action": {"type": "string"}}});
    let tools = json!([{"name": "confirm", "description": "Ask.", "parameters": parameters}]);
    talk.case("tools", tools.clone()).user_says("hello").run().passed();
    let body = agent.requests()[0].json();
    assert_eq!(body["threadId"], "th-7");
    assert_eq!(body["state"], json!({"cart": [1, {"deep": null}]}));
    assert_eq!(body["context"], json!([{"description": "today", "value": "Monday"}]));
    assert_eq!(body["forwardedProps"], json!({"user_id": 7, "nested": {"a_b": [true]}}));
    assert_eq!(body["tools"], tools);
}

/// A236, A239, A255: no null and no snake_case keys, even after a conversation with every feature.
#[test]
fn missing_values_are_omitted_and_names_are_camel_case() {
    let agent = FakeAgent::with_run(|run, request| {
        let run = run.reasoning("Hm.");
        let start = json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "look", "parentMessageId": null});
        run.raw_event(start)
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}))
            .tool_result("c1", &json!({"ok": true}))
            .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": format!("m{}", request.index), "role": null, "name": null}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": format!("m{}", request.index), "delta": "Hi."}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": format!("m{}", request.index)}))
            .finished()
    });
    TestConversation::new(&agent).user_says("one").user_says("two").run().passed();
    let body = agent.requests()[1].json();
    assert!(!has_null(&body), "{body:#}");
    let mut found = Vec::new();
    keys(&body, &mut found);
    assert!(found.contains(&"toolCallId".to_string()), "the history holds a result");
    assert!(!found.iter().any(|key| key.contains('_') || key == "binary"), "{found:?}");
}

/// A206, A212
#[test]
fn envelope_wraps_input() {
    let agent = greeting_agent();
    let envelope = RequestEnvelope::CopilotKit { agent_id: Some("checkout".to_string()) };
    TestConversation::new(&agent)
        .target(|target| target.envelope = envelope)
        .user_says("hello")
        .run()
        .passed();
    let body = agent.requests()[0].json();
    assert_eq!((&body["method"], &body["params"]), (&json!("agent/run"), &json!({"agentId": "checkout"})));
    assert_eq!(body["body"]["messages"][0]["content"], "hello");
    assert_eq!(body["body"]["protocolVersion"], "1.0");
}

/// A237: text is sent verbatim.
#[test]
fn user_text_is_sent_unchanged() {
    let agent = greeting_agent();
    let text = "  \"quotes\" \\ new\nline\t你好 🌍 ${not} \u{0}\u{7f}";
    TestConversation::new(&agent).turn(json!({"user": text.replace("${", "$${")})).run().passed();
    assert_eq!(agent.requests()[0].last_user_text(), text);
}
