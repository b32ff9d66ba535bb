//! Questions to the user of a client that precede an answer, in both kinds of revisions, and what faults do to them.

use std::sync::Arc;

use hotseat_mcp::{
    FaultKind, FaultRule, FaultTrigger, FixedAnswerer, McpEventKind, McpOptions, McpReplaySource, McpServers,
    ServerDefinition, ServerKind, TextCleaner, Upstream, read_mock,
};
use serde_json::{Map, Value, json};

use crate::common::{Fixture, SessionClient, json_of, open, stateless};

/// A mock that asks for a name and a confirmation.
fn asking(faults: Vec<FaultRule>) -> Fixture {
    let file = json!({"name": "crm", "tools": [{"name": "greet", "answer": {
        "ask": {
            "who": {"message": "Who?", "schema": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
            "sure": {"message": "Sure?"},
        },
        "content": [{"type": "text", "text": "Hi ${inputs.who}"}],
    }}]});
    let (mut definition, answerer) = read_mock(&file.to_string()).unwrap();
    definition.faults = faults;
    let servers = McpServers::start(vec![definition], McpOptions::default()).unwrap();
    let conversation = servers.open_conversation("case", answerer, Vec::new()).unwrap();
    Fixture { conversation, _servers: servers }
}

fn accepted() -> Value {
    json!({"who": {"action": "accept", "content": {"name": "Ada"}}, "sure": {"action": "accept", "content": {}}})
}

async fn greet(url: &str, more: Value) -> Option<Value> {
    let mut params = json!({"name": "greet", "arguments": {}});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Some(json_of(stateless(url, "tools/call", params).send().await.ok()?).await)
}

/// Calls the tool and answers its questions. Returns the final message; `None` if the connection was closed.
async fn greet_with(url: &str, responses: Value) -> Option<Value> {
    let asked = greet(url, json!({})).await?["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    greet(url, json!({"inputResponses": responses, "requestState": asked["requestState"]})).await
}

#[tokio::test]
async fn all_questions_must_be_accepted() {
    let fixture = asking(Vec::new());
    let url = fixture.url();
    let answer = greet_with(&url, accepted()).await.unwrap();
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("Ada"), "{answer}");
    for (action, words) in [("decline", "declined"), ("cancel", "cancelled")] {
        let mut responses = accepted();
        responses["sure"] = json!({"action": action});
        let refused = greet_with(&url, responses).await.unwrap();
        assert_eq!(refused["result"]["isError"], true);
        let text = refused["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(text, format!("The user {words} the question `sure`"));
    }
    for (response, words) in [
        (json!({"action": "accept", "content": {"name": 5}}), "does not fit its schema: /name: 5"),
        (json!({"action": "accept"}), "\"name\" is a required property"),
        (json!({"action": "agree"}), "does not have the form"),
        (json!("yes"), "does not have the form"),
    ] {
        let mut responses = accepted();
        responses["who"] = response;
        let wrong = greet_with(&url, responses).await.unwrap();
        assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
        let message = wrong["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("the response to `who` ") && message.contains(words), "{message}");
    }
}

/// Checks see such a call, as they see one with invalid arguments.
#[tokio::test]
async fn a_state_of_another_call_makes_a_failed_call() {
    let mut fixture = asking(Vec::new());
    let url = fixture.url();
    let asked = greet(&url, json!({})).await.unwrap()["result"].clone();
    for (arguments, state) in [
        (json!({"to": "o-2"}), asked["requestState"].clone()),
        (json!({}), json!(format!("{}x", asked["requestState"].as_str().unwrap()))),
        (json!({}), json!(5)),
    ] {
        let more = json!({"arguments": arguments, "inputResponses": accepted(), "requestState": state});
        let answer = greet(&url, more).await.unwrap();
        let message = answer["error"]["message"].as_str().unwrap().to_string();
        assert!(message.contains("belongs to another request"), "{answer}");
        let received = fixture.wait_for(|event| match event {
            McpEventKind::CallReceived { call, arguments, .. } if *call > 1 => {
                Some((*call, arguments.clone()))
            }
            _ => None,
        });
        let (number, received) = received.await;
        assert_eq!(received, arguments);
        let answered = fixture.wait_for(|event| match event {
            McpEventKind::CallAnswered { call, outcome: Err(error), .. } => {
                Some((*call, error.message.clone()))
            }
            _ => None,
        });
        assert_eq!(answered.await, (number, message));
    }
    // The call that was asked is not continued by them.
    let more = json!({"inputResponses": accepted(), "requestState": asked["requestState"]});
    assert!(greet(&url, more).await.unwrap()["result"]["content"].is_array());
    let provided = fixture.wait_for(|event| match event {
        McpEventKind::InputProvided { call, .. } => Some(*call),
        _ => None,
    });
    assert_eq!(provided.await, 1);
}

#[tokio::test]
async fn a_question_without_a_response_is_asked_again() {
    let fixture = asking(Vec::new());
    let url = fixture.url();
    let mut responses = accepted();
    responses.as_object_mut().unwrap().shift_remove("who");
    let again = greet_with(&url, responses).await.unwrap()["result"].clone();
    assert_eq!(again["resultType"], "input_required", "{again}");
    let more = json!({"inputResponses": accepted(), "requestState": again["requestState"]});
    let answer = greet(&url, more).await.unwrap();
    assert!(answer.to_string().contains("Ada"), "{answer}");
}

#[tokio::test]
async fn a_client_that_cannot_ask_its_user_gets_an_error() {
    let fixture = asking(Vec::new());
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "greet", "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let request = stateless(&fixture.url(), "tools/call", json!({"name": "greet"})).body(body.to_string());
    let answer = json_of(request.send().await.unwrap()).await;
    assert_eq!(answer["error"]["code"], -32021, "{answer}");
}

/// Calls the tool in a session and answers its questions. Returns the events of the stream.
async fn greet_in_session(url: &str, responses: &Map<String, Value>) -> String {
    let session = SessionClient::open(url, "2025-11-25").await;
    let params = json!({"name": "greet", "arguments": {}});
    let mut stream =
        session.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).await;
    let mut all = String::new();
    while let Some(piece) = stream.next_bytes().await.unwrap() {
        let text = String::from_utf8(piece.to_vec()).unwrap();
        for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let message: Value = serde_json::from_str(data).unwrap();
            if message["method"] == "elicitation/create" {
                let name = if message["params"]["message"] == "Who?" { "who" } else { "sure" };
                let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": responses[name]});
                assert_eq!(session.send(body).await.status(), 202);
            }
        }
        all.push_str(&text);
    }
    all
}

#[tokio::test]
async fn a_session_is_asked_on_the_stream_of_the_call() {
    let fixture = asking(Vec::new());
    let mut responses = accepted().as_object().unwrap().clone();
    let answer = greet_in_session(&fixture.url(), &responses).await;
    assert!(answer.contains("Ada") && answer.contains("\"content\""), "{answer}");
    responses["sure"] = json!({"action": "decline"});
    let refused = greet_in_session(&fixture.url(), &responses).await;
    assert!(refused.contains("The user declined the question `sure`"), "{refused}");
    responses["sure"] = json!({"action": "accept", "content": 5});
    let wrong = greet_in_session(&fixture.url(), &responses).await;
    assert!(wrong.contains("-32602"), "{wrong}");
}

fn rule(nth: u64, kind: FaultKind) -> Vec<FaultRule> {
    vec![FaultRule { tool: None, arguments: None, trigger: FaultTrigger::Nth(nth), kind }]
}

/// A proxy of a mock that asks. The mock lives as long as the returned fixtures.
fn proxied(faults: Vec<FaultRule>) -> (Fixture, Fixture) {
    let upstream = asking(Vec::new());
    let kind = ServerKind::Proxy(Upstream::Url { url: upstream.url(), headers: Default::default() });
    let mut definition = ServerDefinition::new("proxy", kind);
    definition.faults = faults;
    (open(definition, FixedAnswerer::default()), upstream)
}

#[tokio::test]
async fn a_fault_counts_calls_and_breaks_answers() {
    for is_proxied in [false, true] {
        let start = |faults| match is_proxied {
            true => {
                let (proxy, upstream) = proxied(faults);
                (proxy, Some(upstream))
            }
            false => (asking(faults), None),
        };
        // The second round of the first call is no second call.
        let (mut fixture, _upstream) = start(rule(2, FaultKind::IsError { text: "busy".to_string() }));
        let url = fixture.url();
        let first = greet_with(&url, accepted()).await.unwrap();
        assert!(first.to_string().contains("Ada"), "{first}");
        let second = greet(&url, json!({})).await.unwrap();
        assert!(second.to_string().contains("busy"), "{second}");
        let broken = fixture.wait_for(|event| match event {
            McpEventKind::FaultInjected { call, .. } => Some(*call),
            _ => None,
        });
        assert_eq!(broken.await, 2);
        // The question arrives, the answer does not.
        let (mut fixture, _upstream) = start(rule(1, FaultKind::LostAnswer));
        let url = fixture.url();
        assert_eq!(greet_with(&url, accepted()).await, None);
        let end = fixture.wait_for(|event| match event {
            McpEventKind::CallAnswered { call, outcome, delivered, .. } => {
                Some((*call, outcome.is_ok(), *delivered))
            }
            _ => None,
        });
        assert_eq!(end.await, (1, true, false));
    }
}

#[tokio::test]
async fn a_client_that_repeats_its_responses_makes_another_call() {
    for is_proxied in [false, true] {
        let (mut fixture, _upstream) = match is_proxied {
            true => proxied(rule(1, FaultKind::LostAnswer)),
            false => (asking(rule(1, FaultKind::LostAnswer)), asking(Vec::new())),
        };
        let url = fixture.url();
        let asked = greet(&url, json!({})).await.unwrap()["result"].clone();
        let more = json!({"inputResponses": accepted(), "requestState": asked["requestState"]});
        assert_eq!(greet(&url, more.clone()).await, None);
        let again = greet(&url, more).await.unwrap();
        assert!(again.to_string().contains("Ada"), "{again}");
        let mut answered = Vec::new();
        while answered.len() < 2 {
            let end = fixture.wait_for(|event| match event {
                McpEventKind::CallAnswered { call, delivered, .. } => Some((*call, *delivered)),
                _ => None,
            });
            answered.push(end.await);
        }
        assert_eq!(answered, [(1, false), (2, true)]);
    }
}

#[tokio::test]
async fn a_recording_of_questions_is_replayed() {
    let upstream = asking(Vec::new());
    let kind = ServerKind::Proxy(Upstream::Url { url: upstream.url(), headers: Default::default() });
    let recorded = ServerDefinition { record: true, ..ServerDefinition::new("crm", kind) };
    let proxy = open(recorded, FixedAnswerer::default());
    greet_with(&proxy.url(), accepted()).await.unwrap();
    let recording = proxy.conversation.recording("crm").unwrap();
    assert_eq!(recording.exchanges.len(), 2);
    let source = McpReplaySource {
        recording: Arc::new(recording),
        cleaner: TextCleaner::default(),
        conversation: None,
    };
    let mut replayed = ServerDefinition::new("crm", ServerKind::Replay(source));
    replayed.faults = rule(1, FaultKind::Empty);
    let mut replay = open(replayed, FixedAnswerer::default());
    let answer = greet_with(&replay.url(), accepted()).await.unwrap();
    assert_eq!(answer["result"]["content"], json!([]), "the fault breaks the answer: {answer}");
    let mut events = Vec::new();
    while events.len() < 4 {
        let event = replay.wait_for(|event| match event {
            McpEventKind::CallReceived { call, .. } => Some(("received", *call)),
            McpEventKind::InputRequested { call, .. } => Some(("asked", *call)),
            McpEventKind::InputProvided { call, .. } => Some(("provided", *call)),
            McpEventKind::CallAnswered { call, .. } => Some(("answered", *call)),
            _ => None,
        });
        events.push(event.await);
    }
    assert_eq!(events, [("received", 1), ("asked", 1), ("provided", 1), ("answered", 1)]);
}

#[tokio::test]
async fn responses_to_questions_that_were_not_asked_are_ignored() {
    let fixture = asking(Vec::new());
    let asked = greet(&fixture.url(), json!({"inputResponses": accepted()})).await.unwrap();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
}

#[tokio::test]
async fn a_proxy_reports_the_responses_of_a_session() {
    let (mut proxy, _upstream) = proxied(Vec::new());
    let answer = greet_in_session(&proxy.url(), accepted().as_object().unwrap()).await;
    assert!(answer.contains("Ada"), "{answer}");
    let mut provided = Vec::new();
    while provided.len() < 2 {
        let found = proxy.wait_for(|event| match event {
            McpEventKind::InputProvided { call: 1, responses } => Some(responses.clone()),
            _ => None,
        });
        provided.extend(found.await.into_iter().map(|(_, response)| response["action"].clone()));
    }
    assert_eq!(provided, ["accept", "accept"]);
}

#[test]
fn a_definition_of_questions_is_checked() {
    for (ask, words) in [
        (json!("Sure?"), "`ask` must be an object"),
        (json!([5]), "`ask` must be an object"),
        (json!({"sure": "Sure?"}), "the question `sure` must have a `message`"),
        (json!({"sure": {"message": "Sure?", "form": {}}}), "the question `sure` must have a `message`"),
        (json!({"sure": {"message": "Sure?", "schema": {"type": "string"}}}), "must have `type: object`"),
        (
            json!({"sure": {"message": "Sure?", "schema": {"type": "object", "properties": 5}}}),
            "the `schema` of the question `sure` is invalid",
        ),
        (json!([{"a": {"message": "A"}}, {"a": {"message": "B"}}]), "two questions with the name `a`"),
    ] {
        let file = json!({"tools": [{"name": "greet", "answer": {"ask": ask}}]});
        let error = read_mock(&file.to_string()).map(drop).expect_err("it is refused").to_string();
        assert!(error.contains(words), "{error}");
    }
}
