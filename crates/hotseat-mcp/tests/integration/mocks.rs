//! Contents of mocks: pages, changes, prompts, resources, input of the user, limits, closed conversations.

use hotseat_mcp::{
    InputRequired, McpAnswer, McpCall, McpEventKind, McpLimits, McpOptions, McpServers, McpTool,
    McpToolResult, MockContent, ServerDefinition, ServerKind, UnmatchedPolicy, read_mock,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

use crate::common::{Answers, Fixture, SessionClient, call, charge, json_of, open, post, stateless};

fn unanswered() -> Answers<impl Fn(&McpCall) -> McpAnswer + Send + Sync> {
    Answers(|_: &McpCall| McpAnswer::Unmatched { nearest: Some("answer 1 wants amount 3".to_string()) })
}

#[tokio::test]
async fn lists_have_pages() {
    let tools = (0..5).map(|index| McpTool::new(format!("tool{index}"), json!({"type": "object"}))).collect();
    let content = MockContent { tools, page_size: Some(2), ..MockContent::default() };
    let definition = ServerDefinition::new("many", ServerKind::Mock(Box::new(content)));
    let fixture = open(definition, unanswered());
    let mut names = Vec::new();
    let empty = stateless(&fixture.url(), "tools/list", json!({"cursor": ""})).send().await.unwrap();
    assert_eq!(json_of(empty).await["result"]["tools"][0]["name"], "tool0");
    // Clients may write a cursor that they do not have as null.
    let mut params = json!({"cursor": null});
    loop {
        let answer = stateless(&fixture.url(), "tools/list", params).send().await.unwrap();
        let result = json_of(answer).await["result"].clone();
        let page = result["tools"].as_array().unwrap().clone();
        assert!(page.len() <= 2);
        names.extend(page.iter().map(|tool| tool["name"].as_str().unwrap().to_string()));
        match result.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(names, ["tool0", "tool1", "tool2", "tool3", "tool4"]);
    let wrong = stateless(&fixture.url(), "tools/list", json!({"cursor": "other"})).send().await.unwrap();
    assert_eq!(json_of(wrong).await["error"]["code"], -32602);
}

#[tokio::test]
async fn an_unmatched_call_is_loud_or_handed_to_the_agent() {
    for (policy, is_error) in [(UnmatchedPolicy::RpcError, false), (UnmatchedPolicy::ErrorResult, true)] {
        let mut definition = ServerDefinition::mock("bank", vec![charge()]);
        definition.unmatched = policy;
        let mut fixture = open(definition, unanswered());
        let answer = call(&fixture.url(), "charge", json!({"amount": 4})).await;
        assert_eq!(answer["result"]["isError"] == true, is_error, "{answer}");
        assert_eq!(answer["error"].is_object(), !is_error);
        assert!(answer.to_string().contains("answer 1 wants amount 3"));
        let nearest = fixture.wait_for(|event| match event {
            McpEventKind::Unmatched { call: Some(1), nearest, .. } => nearest.clone(),
            _ => None,
        });
        assert_eq!(nearest.await, "answer 1 wants amount 3");
    }
}

/// Asks for a name, then greets.
fn greeter() -> Answers<impl Fn(&McpCall) -> McpAnswer + Send + Sync> {
    Answers(|call: &McpCall| match call.input_responses.get("name") {
        None => {
            let question = json!({"method": "elicitation/create", "params": {"message": "Name?", "requestedSchema": {"type": "object"}}});
            let requests = Map::from_iter([("name".to_string(), question)]);
            McpAnswer::InputRequired(InputRequired { requests, state: Some(json!("asked")) })
        }
        Some(answer) => {
            assert_eq!(call.input_state, Some(json!("asked")));
            McpAnswer::Result(McpToolResult::from_text(format!("Hello {}", answer["content"]["name"])))
        }
    })
}

#[tokio::test]
async fn a_stateless_client_answers_questions_in_its_next_request() {
    let mut fixture = open(ServerDefinition::mock("crm", vec![charge()]), greeter());
    let asked = call(&fixture.url(), "charge", json!({"amount": 1})).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    let responses = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
    let retry = |state: Value| {
        let params = json!({
            "name": "charge", "arguments": {"amount": 1}, "inputResponses": responses, "requestState": state,
        });
        stateless(&fixture.url(), "tools/call", params)
    };
    let answer = json_of(retry(asked["requestState"].clone()).send().await.unwrap()).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Hello \"Ada\"");
    // All rounds are one call.
    let mut received = 0;
    while let Some(event) = fixture.conversation.try_next_event() {
        received += usize::from(matches!(event.kind, McpEventKind::CallReceived { .. }));
        assert!(!matches!(event.kind, McpEventKind::CallAnswered { call, .. } if call != 1));
    }
    assert_eq!(received, 1);
}

#[tokio::test]
async fn a_client_with_a_session_answers_questions_on_the_stream_of_its_call() {
    let fixture = open(ServerDefinition::mock("crm", vec![charge()]), greeter());
    let session = SessionClient::open(&fixture.url(), "2025-11-25").await;
    let params = json!({"name": "charge", "arguments": {"amount": 1}});
    let mut stream =
        session.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).await;
    let question = String::from_utf8(stream.next_bytes().await.unwrap().unwrap().to_vec()).unwrap();
    let question = question.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_string();
    let question: Value = serde_json::from_str(&question).unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let result = json!({"action": "accept", "content": {"name": "Bo"}});
    let accepted = session.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await;
    assert_eq!(accepted.status(), 202);
    let mut rest = String::new();
    while let Some(piece) = stream.next_bytes().await.unwrap() {
        rest.push_str(std::str::from_utf8(&piece).unwrap());
    }
    assert!(rest.contains("Hello \\\"Bo\\\""), "{rest}");
}

#[tokio::test]
async fn a_definition_file_serves_prompts_and_resources() {
    let (definition, answerer) = read_mock(
        r#"{"name": "notes", "tools": [{"name": "greet", "answer": "Hi ${arguments.name}"}],
            "resources": [{"uri": "note://1", "name": "one", "contents": [{"uri": "note://1", "text": "first"}]}],
            "resourceTemplates": [{"uriTemplate": "note://{id}/x", "name": "x", "contents": [{"uri": "${variables.uri}", "text": "<${variables.id}>"}]}],
            "prompts": [{"name": "ask", "arguments": [{"name": "topic", "required": true}],
                         "messages": [{"role": "user", "content": {"type": "text", "text": "About ${arguments.topic}"}}]}]}"#,
    )
    .unwrap();
    let servers = McpServers::start(vec![definition], McpOptions::default()).unwrap();
    let conversation = servers.open_conversation("case", answerer, Vec::new()).unwrap();
    let url = conversation.url("notes").unwrap();
    let answer = async |method: &str, params: Value| {
        let mut request = stateless(&url, method, params.clone());
        if let Some(uri) = params["uri"].as_str() {
            request = request.header("mcp-name", uri);
        }
        json_of(request.send().await.unwrap()).await
    };
    let greeted = answer("tools/call", json!({"name": "greet", "arguments": {"name": "Ada"}})).await;
    assert_eq!(greeted["result"]["content"][0]["text"], "Hi Ada");
    let read = answer("resources/read", json!({"uri": "note://77/x"})).await;
    assert_eq!(read["result"]["contents"][0], json!({"uri": "note://77/x", "text": "<77>"}));
    let missing = answer("resources/read", json!({"uri": "note://77/y"})).await;
    assert_eq!(missing["error"]["code"], -32602);
    let prompt = answer("prompts/get", json!({"name": "ask", "arguments": {"topic": "tea"}})).await;
    assert_eq!(prompt["result"]["messages"][0]["content"]["text"], "About tea");
    let incomplete = answer("prompts/get", json!({"name": "ask"})).await;
    assert_eq!(incomplete["error"]["code"], -32602);
}

#[tokio::test]
async fn requests_from_foreign_pages_are_refused() {
    let fixture = open(ServerDefinition::mock("bank", vec![charge()]), unanswered());
    for (header, value, status) in [
        ("origin", "http://evil.example", 403),
        ("host", "evil.example", 403),
        ("origin", "http://localhost:3000", 200),
    ] {
        let request = stateless(&fixture.url(), "tools/list", json!({})).header(header, value);
        assert_eq!(request.send().await.unwrap().status(), status, "{header}: {value}");
    }
}

#[tokio::test]
async fn a_closed_conversation_refuses_calls_and_reports_them() {
    let mut fixture = open(ServerDefinition::mock("bank", vec![charge()]), unanswered());
    let url = fixture.url();
    fixture.conversation.close();
    let request = stateless(&url, "tools/call", json!({"name": "charge", "arguments": {"amount": 4}}));
    assert_eq!(request.send().await.unwrap().status(), 404);
    let late = fixture.wait_for(|event| match event {
        McpEventKind::CallAfterClose { request } => Some(request.clone()),
        _ => None,
    });
    assert_eq!(late.await, "tools/call charge");
    let Fixture { conversation, .. } = fixture;
    drop(conversation);
}

#[tokio::test]
async fn bodies_and_calls_are_limited() {
    let limits = McpLimits { max_message_bytes: 2000, max_calls: 1, ..McpLimits::default() };
    let options = McpOptions { limits, ..McpOptions::default() };
    let definition = ServerDefinition::mock("bank", vec![charge()]);
    let servers = McpServers::start(vec![definition], options).unwrap();
    let conversation = servers.open_conversation("case", Arc::new(unanswered()), Vec::new()).unwrap();
    let url = conversation.url("bank").unwrap();
    let long = post(&url).body("x".repeat(3000)).send().await.unwrap();
    assert_eq!(long.status(), 413);
    let deep = post(&url).body("[".repeat(1900)).send().await.unwrap();
    assert_eq!(json_of(deep).await["error"]["code"], -32700, "nesting is bounded");
    call(&url, "charge", json!({"amount": 1})).await;
    let second = call(&url, "charge", json!({"amount": 1})).await;
    assert!(second["error"]["message"].as_str().unwrap().contains("1 calls"), "{second}");
}
