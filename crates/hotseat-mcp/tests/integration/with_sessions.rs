//! Revisions with handshake and session.

use hotseat_http::IncomingResponse;
use hotseat_mcp::{
    AnswerFuture, FixedAnswerer, McpAnswer, McpCall, McpEventKind, McpToolResult, ServerDefinition,
    ServerKind, ToolAnswerer, Upstream,
};
use hotseat_testkit::{FakeAgent, FakeReply};
use http::Method;
use serde_json::json;

use crate::common::{Answers, Fixture, SessionClient, body_of, charge, open, request_to};

/// Never answers.
struct SilentAnswerer;

impl ToolAnswerer for SilentAnswerer {
    fn answer<'a>(&'a self, _: &'a McpCall) -> AnswerFuture<'a> {
        Box::pin(std::future::pending())
    }
}

/// Calls a tool and cancels the call as soon as it has arrived. Returns the response to the call, and whether the call counts as
/// cancelled.
async fn cancel_a_call(fixture: &mut Fixture, cancelled: impl FnOnce()) -> (IncomingResponse, bool) {
    let session = SessionClient::open(&fixture.url(), "2025-11-25").await;
    let params = json!({"name": "charge", "arguments": {"amount": 1}});
    let call = session.send(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}));
    let cancel = async {
        fixture.wait_for(|event| matches!(event, McpEventKind::CallReceived { .. }).then_some(())).await;
        let params = json!({"requestId": 7});
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert!(session.send(cancel).await.status().is_success());
        cancelled();
        let end = fixture.wait_for(|event| match event {
            McpEventKind::CallCancelled { .. } => Some(true),
            McpEventKind::CallAnswered { .. } => Some(false),
            _ => None,
        });
        end.await
    };
    tokio::join!(call, cancel)
}

#[tokio::test]
async fn a_session_lists_and_calls_tools_until_it_is_deleted() {
    let answers = Answers(|call: &hotseat_mcp::McpCall| {
        McpAnswer::Result(McpToolResult::from_text(call.revision.name()))
    });
    let fixture = open(ServerDefinition::mock("bank", vec![charge()]), answers);
    let session = SessionClient::open(&fixture.url(), "2025-11-25").await;
    assert_eq!(session.initialized["result"]["protocolVersion"], "2025-11-25");
    let tools = session.request("tools/list", json!({})).await;
    assert_eq!(tools["result"]["tools"][0]["name"], "charge");
    let answer = session.request("tools/call", json!({"name": "charge", "arguments": {"amount": 1}})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "2025-11-25");
    assert!(answer["result"].get("resultType").is_none(), "resultType is of later revisions");
    let deleted =
        request_to(Method::DELETE, &fixture.url()).header("mcp-session-id", &session.session).send().await;
    assert!(deleted.unwrap().status().is_success());
    let response = session.send(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
    assert_eq!(response.status(), 404);
}

/// The protocol demands no answer, but HTTP a response: clients take a closed connection for a broken server.
#[tokio::test]
async fn a_cancelled_call_has_a_response_without_an_answer() {
    let mut fixture = open(ServerDefinition::mock("bank", vec![charge()]), SilentAnswerer);
    let (response, is_cancelled) = cancel_a_call(&mut fixture, || ()).await;
    assert!(is_cancelled);
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(body_of(response).await.as_deref(), Some(""));
}

/// A server may answer a cancelled call with an error although it carries the call out.
#[tokio::test]
async fn the_error_of_a_cancelled_call_is_no_failed_call() {
    let server = FakeAgent::start(|request| match request.json()["method"].as_str() {
        Some("initialize") => {
            let info = json!({"name": "bank", "version": "1"});
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info});
            let answer = json!({"jsonrpc": "2.0", "id": 0, "result": result});
            FakeReply::json(200, &answer).header("mcp-session-id", "s1")
        }
        Some("tools/call") => {
            let error = json!({"code": -32800, "message": "Request cancelled"});
            FakeReply::sse().gate("cancelled").event(json!({"jsonrpc": "2.0", "id": 7, "error": error}))
        }
        _ => FakeReply::text(202, ""),
    });
    let url = Upstream::Url { url: server.url(), headers: Default::default() };
    let mut fixture = open(ServerDefinition::new("proxy", ServerKind::Proxy(url)), FixedAnswerer::default());
    let (response, is_cancelled) = cancel_a_call(&mut fixture, || server.release("cancelled")).await;
    assert!(is_cancelled);
    let body = body_of(response).await.unwrap();
    assert!(body.contains("-32800"), "{body}");
}
