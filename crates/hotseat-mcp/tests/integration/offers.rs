//! Tools that a mock offers only after another one took effect.

use hotseat_http::IncomingResponse;
use hotseat_mcp::{McpAnswer, McpCall, McpEventKind, McpTool, McpToolResult, ServerDefinition, read_mock};
use http::Method;
use serde_json::{Value, json};

use crate::common::{Answers, Fixture, SessionClient, call, open, request_to, stateless};

/// `login`, then `pay`, then `refund`. `login` fails without a name.
fn bank() -> Fixture {
    let tool = |name: &str, after: Option<&str>| McpTool {
        offered_after: after.map(str::to_string),
        ..McpTool::new(name, json!({"type": "object"}))
    };
    let tools = vec![tool("refund", Some("pay")), tool("login", None), tool("pay", Some("login"))];
    let answers = Answers(|call: &McpCall| match call.arguments.get("name") {
        None if call.tool == "login" => McpAnswer::Result(McpToolResult::error("who are you?")),
        _ => McpAnswer::Result(McpToolResult::from_text("done")),
    });
    open(ServerDefinition::mock("bank", tools), answers)
}

fn names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().expect("tools");
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_string()).collect()
}

async fn listed(url: &str) -> Vec<String> {
    names(&crate::common::json_of(stateless(url, "tools/list", json!({})).send().await.unwrap()).await)
}

async fn next_change(stream: &mut IncomingResponse) -> String {
    String::from_utf8(stream.next_bytes().await.unwrap().unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn an_effect_offers_tools_and_notifies_listeners() {
    let mut fixture = bank();
    let url = fixture.url();
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut stream = stateless(&url, "subscriptions/listen", wanted).send().await.unwrap();
    assert!(next_change(&mut stream).await.contains("acknowledged"));
    assert_eq!(listed(&url).await, ["login"]);
    let early = call(&url, "pay", json!({})).await;
    assert_eq!(
        (&early["error"]["code"], &early["error"]["message"]),
        (&json!(-32602), &json!("Unknown tool: pay"))
    );
    let after = fixture.wait_for(|event| match event {
        McpEventKind::UnknownTool { offered_after, .. } => Some(offered_after.clone()),
        _ => None,
    });
    assert_eq!(after.await.as_deref(), Some("login"));
    // A failed call has no effect.
    assert_eq!(call(&url, "login", json!({})).await["result"]["isError"], true);
    assert_eq!(listed(&url).await, ["login"]);
    call(&url, "login", json!({"name": "Ada"})).await;
    let changed = next_change(&mut stream).await;
    assert!(changed.contains("notifications/tools/list_changed"), "{changed}");
    assert!(changed.contains("io.modelcontextprotocol/subscriptionId"), "{changed}");
    assert_eq!(listed(&url).await, ["login", "pay"]);
    assert_eq!(call(&url, "pay", json!({})).await["result"]["content"][0]["text"], "done");
    assert!(next_change(&mut stream).await.contains("notifications/tools/list_changed"));
    assert_eq!(listed(&url).await, ["refund", "login", "pay"]);
    fixture.conversation.close();
    let ended = next_change(&mut stream).await;
    assert!(ended.contains("\"resultType\":\"complete\""), "the subscription ends properly: {ended}");
}

#[tokio::test]
async fn sessions_are_notified_on_their_stream() {
    let fixture = bank();
    let session = SessionClient::open(&fixture.url(), "2025-11-25").await;
    assert_eq!(session.initialized["result"]["capabilities"]["tools"]["listChanged"], true);
    let mut stream = request_to(Method::GET, &fixture.url())
        .header("mcp-session-id", &session.session)
        .send()
        .await
        .unwrap();
    assert_eq!(names(&session.request("tools/list", json!({})).await), ["login"]);
    let params = json!({"name": "login", "arguments": {"name": "Ada"}});
    session.request("tools/call", params).await;
    assert!(next_change(&mut stream).await.contains("notifications/tools/list_changed"));
    assert_eq!(names(&session.request("tools/list", json!({})).await), ["login", "pay"]);
}

#[test]
fn a_tool_that_is_never_offered_is_refused() {
    for (tools, words) in [
        (
            json!([{"name": "a", "offeredAfter": "b"}]),
            "`a` is offered after `b`, which the server does not have",
        ),
        (json!([{"name": "a", "offeredAfter": "a"}]), "the tool `a` is never offered"),
        (
            json!([{"name": "a"}, {"name": "b", "offeredAfter": "c"}, {"name": "c", "offeredAfter": "b"}]),
            "is never offered",
        ),
        (json!([{"name": "a", "offeredAfter": 5}]), "`offeredAfter` must be the name of a tool"),
    ] {
        let error =
            read_mock(&json!({"tools": tools}).to_string()).map(drop).expect_err("refused").to_string();
        assert!(error.contains(words), "{error}");
    }
    let chain =
        json!([{"name": "c", "offeredAfter": "b"}, {"name": "b", "offeredAfter": "a"}, {"name": "a"}]);
    assert!(read_mock(&json!({"tools": chain}).to_string()).is_ok());
}
