//! Revision 2026-07-28: requests without handshake and session.

use hotseat_mcp::{McpAnswer, McpEventKind, McpToolResult, ProtocolRevision, ServerDefinition};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::json;

use crate::common::{Answers, call, charge, json_of, open, post, request_to, stateless};

#[tokio::test]
async fn a_call_is_answered_and_reported() {
    let answers = Answers(|call: &hotseat_mcp::McpCall| {
        McpAnswer::Result(McpToolResult::from_value(json!({"charged": call.arguments["amount"]})))
    });
    let mut fixture = open(ServerDefinition::mock("bank", vec![charge()]), answers);
    let answer = call(&fixture.url(), "charge", json!({"amount": 5})).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"charged": 5}));
    assert_eq!(answer["result"]["resultType"], "complete");
    let revision = fixture.wait_for(|event| match event {
        McpEventKind::ClientConnected { revision, client, .. } => Some((*revision, client.clone())),
        _ => None,
    });
    assert_eq!(revision.await, (ProtocolRevision::V2026July, Some("raw".to_string())));
    let (tool, arguments) = fixture
        .wait_for(|event| match event {
            McpEventKind::CallReceived { call: 1, tool, arguments, .. } => {
                Some((tool.clone(), arguments.clone()))
            }
            _ => None,
        })
        .await;
    assert_eq!((tool.as_str(), arguments), ("charge", json!({"amount": 5})));
    let (outcome, delivered) = fixture
        .wait_for(|event| match event {
            McpEventKind::CallAnswered { call: 1, outcome, delivered, .. } => {
                Some((outcome.clone(), *delivered))
            }
            _ => None,
        })
        .await;
    assert_eq!(outcome.unwrap().value(), json!({"charged": 5}));
    assert!(delivered);
}

#[tokio::test]
async fn invalid_arguments_have_no_effect() {
    let answers = Answers(|_: &hotseat_mcp::McpCall| panic!("the call is invalid"));
    let mut fixture = open(ServerDefinition::mock("bank", vec![charge()]), answers);
    let answer = call(&fixture.url(), "charge", json!({"amount": "five"})).await;
    assert_eq!(answer["result"]["isError"], true);
    let violations = fixture.wait_for(|event| match event {
        McpEventKind::InvalidArguments { call: 1, violations } => Some(violations.clone()),
        _ => None,
    });
    assert!(violations.await[0].starts_with("/amount: "), "the violation names its place");
}

#[tokio::test]
async fn headers_must_repeat_the_body() {
    let answers = Answers(|_: &hotseat_mcp::McpCall| panic!("the call is refused"));
    let fixture = open(ServerDefinition::mock("bank", vec![charge()]), answers);
    let other = HeaderMap::from_iter([(
        HeaderName::from_static("mcp-method"),
        HeaderValue::from_static("tools/call"),
    )]);
    let request = stateless(&fixture.url(), "tools/list", json!({})).headers(other);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(json_of(response).await["error"]["code"], -32020);
}

#[tokio::test]
async fn a_client_of_an_unknown_revision_learns_which_ones_are_spoken() {
    let answers = Answers(|_: &hotseat_mcp::McpCall| panic!("the call is refused"));
    let mut fixture = open(ServerDefinition::mock("bank", vec![charge()]), answers);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let request = post(&fixture.url()).header("mcp-protocol-version", "2024-11-05");
    let response = request.body(body.to_string()).send().await.unwrap();
    assert_eq!(response.status(), 400);
    let error = json_of(response).await["error"].clone();
    assert_eq!((&error["code"], &error["data"]["requested"]), (&json!(-32022), &json!("2024-11-05")));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("\"2024-11-05\"") && message.contains("2026-07-28, 2025-11-25"), "{message}");
    // Its transport begins with a stream.
    assert_eq!(request_to(Method::GET, &fixture.url()).send().await.unwrap().status(), 405);
    let reported = fixture.wait_for(|event| match event {
        McpEventKind::ProtocolError { message, .. } if message.contains("HTTP+SSE") => Some(message.clone()),
        _ => None,
    });
    assert!(reported.await.contains("send `initialize` by POST first"));
}
