//! What the tests of the clients share.

use std::time::Duration;

use hotseat_model::{
    Connector, Delta, Message, Model, ModelError, Provider, Reply, Request, ResponseFormat, Secret,
    TimeLimits, Tool, ToolCall, ToolResult,
};
use hotseat_testkit::FakeAgent;
use serde_json::json;

pub const BOTH: [Provider; 2] = [Provider::OpenAi, Provider::Anthropic];

/// A connector to a fake server, with limits that no test reaches by accident.
pub fn connector(provider: Provider, server: &FakeAgent) -> Connector {
    Connector {
        base_url: Some(format!("{}v1", server.url())),
        key: Some(Secret::new("key-123456")),
        limits: TimeLimits {
            connect: Duration::from_secs(20),
            first_byte: Duration::from_secs(20),
            idle: Duration::from_secs(20),
            total: Duration::from_secs(20),
        },
        ..Connector::new(provider, "m-1")
    }
}

/// Calls a model and returns what a watcher saw beside the answer.
pub async fn call(connector: Connector, request: &Request) -> (Result<Reply, ModelError>, Vec<Delta>) {
    let model = connector.open().unwrap();
    let mut seen = Vec::new();
    let mut sink = |delta| seen.push(delta);
    let answer = model.call(request, &mut sink).await;
    (answer, seen)
}

pub fn hello() -> Request {
    Request { messages: vec![Message::user("hello")], ..Request::default() }
}

/// A request with everything that a request can hold.
pub fn full() -> Request {
    let call = |id: &str, name: &str, arguments| ToolCall { id: id.into(), name: name.into(), arguments };
    let result = |id: &str, name: &str, content, is_error| {
        Message::Tool(ToolResult { call_id: id.into(), name: name.into(), content, is_error })
    };
    let schema =
        json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    let mut request = Request {
        system: Some("You sell shoes.".into()),
        messages: vec![
            Message::user("Red shoes, please."),
            Message::Assistant {
                text: "Let me look.".into(),
                tool_calls: vec![call("a", "search", json!({"query": "red"})), call("b", "clock", json!({}))],
            },
            result("a", "search", json!({"hits": 2}), false),
            result("b", "clock", json!("Connection refused"), true),
            Message::Assistant { text: String::new(), tool_calls: vec![call("c", "search", json!("{oops"))] },
            Message::notice("Operation 7 is done."),
            result("c", "search", json!("not an object"), true),
            Message::Assistant { text: String::new(), tool_calls: Vec::new() },
            Message::user("Still there?"),
        ],
        tools: vec![
            Tool { name: "search".into(), description: "Finds shoes.".into(), input_schema: schema.clone() },
            Tool {
                name: "clock".into(),
                description: String::new(),
                input_schema: json!({"type": "object"}),
            },
        ],
        response_format: Some(ResponseFormat { name: "answer".into(), schema, strict: true }),
        temperature: Some(0.25),
        max_tokens: Some(300),
        ..Request::default()
    };
    request.position.turn = 2;
    request.position.call = 1;
    request
}
