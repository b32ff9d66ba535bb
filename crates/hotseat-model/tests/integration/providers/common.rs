//! Shared helpers of the provider tests.

use std::time::Duration;

use hotseat_model::{
    ConnectorConfig, Model, ModelError, ModelMessage, ModelReply, ModelRequest, ModelTool, ModelToolCall,
    ModelToolResult, Provider, ReplyDelta, ResponseFormat, Secret, TimeLimits,
};
use hotseat_testkit::FakeAgent;
use serde_json::json;

pub const BOTH: [Provider; 2] = [Provider::OpenAi, Provider::Anthropic];

/// A connector to a fake server, with limits that tests do not reach by accident.
pub fn connector(provider: Provider, server: &FakeAgent) -> ConnectorConfig {
    ConnectorConfig {
        base_url: Some(format!("{}v1", server.url())),
        key: Some(Secret::new("key-123456")),
        limits: TimeLimits {
            connect: Duration::from_secs(20),
            first_byte: Duration::from_secs(20),
            idle: Duration::from_secs(20),
            total: Duration::from_secs(20),
        },
        ..ConnectorConfig::new(provider, "m-1")
    }
}

/// Calls a model; returns the reply and the streamed deltas.
pub async fn call(
    connector: ConnectorConfig,
    request: &ModelRequest,
) -> (Result<ModelReply, ModelError>, Vec<ReplyDelta>) {
    let model = connector.open().unwrap();
    let mut seen = Vec::new();
    let mut sink = |delta| seen.push(delta);
    let answer = model.call(request, &mut sink).await;
    (answer, seen)
}

pub fn hello() -> ModelRequest {
    ModelRequest { messages: vec![ModelMessage::user("hello")], ..ModelRequest::default() }
}

/// A request with every optional field.
pub fn full() -> ModelRequest {
    let call = |id: &str, name: &str, arguments| ModelToolCall {
        id: id.into(),
        name: name.into(),
        arguments,
        ..ModelToolCall::default()
    };
    let result = |id: &str, name: &str, content, is_error| {
        ModelMessage::Tool(ModelToolResult { call_id: id.into(), name: name.into(), content, is_error })
    };
    let schema =
        json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    let mut request = ModelRequest {
        system: Some("You sell shoes.".into()),
        messages: vec![
            ModelMessage::user("Red shoes, please."),
            ModelMessage::Assistant {
                text: "Let me look.".into(),
                tool_calls: vec![call("a", "search", json!({"query": "red"})), call("b", "clock", json!({}))],
                provider_parts: None,
            },
            result("a", "search", json!({"hits": 2}), false),
            result("b", "clock", json!("Connection refused"), true),
            ModelMessage::Assistant {
                text: String::new(),
                tool_calls: vec![call("c", "search", json!("{oops"))],
                provider_parts: None,
            },
            ModelMessage::notice("Operation 7 is done."),
            result("c", "search", json!("not an object"), true),
            ModelMessage::Assistant { text: String::new(), tool_calls: Vec::new(), provider_parts: None },
            ModelMessage::user("Still there?"),
        ],
        tools: vec![
            ModelTool {
                name: "search".into(),
                description: "Finds shoes.".into(),
                input_schema: schema.clone(),
            },
            ModelTool {
                name: "clock".into(),
                description: String::new(),
                input_schema: json!({"type": "object"}),
            },
        ],
        response_format: Some(ResponseFormat { name: "answer".into(), schema, strict: true }),
        temperature: Some(0.25),
        max_tokens: Some(300),
        ..ModelRequest::default()
    };
    request.position.turn = 2;
    request.position.call = 1;
    request
}
