//! Revisions with handshake and session.

use hotseat_mcp::{McpAnswer, McpToolResult, ServerDefinition};
use http::Method;
use serde_json::json;

use crate::common::{Answers, SessionClient, charge, open, request_to};

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
