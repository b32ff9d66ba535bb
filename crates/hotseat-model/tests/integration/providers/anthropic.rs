//! Anthropic Messages API over a real port.

use super::common::{call, connector, full, hello};
use hotseat_model::{
    ConnectorConfig, ModelError, ModelErrorKind, ModelMessage, ModelReply, ModelRequest, ModelToolCall,
    ModelToolResult, Provider, ProviderParts, ReplyDelta, StopReason, TokenUsage,
};
use hotseat_testkit::{FakeAgent, FakeReply as Answer};
use serde_json::{Value, json};

fn streamed(events: &[Value]) -> Answer {
    events.iter().fold(Answer::sse(), |answer, event| {
        answer.bytes(format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()))
    })
}

fn start() -> Value {
    let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 30, "output_tokens": 1});
    json!({"type": "message_start", "message": {"id": "x", "model": "m-1-2026", "usage": usage}})
}

fn block(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

/// The two final events.
fn end(reason: &str) -> [Value; 2] {
    let tail =
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}});
    [tail, json!({"type": "message_stop"})]
}

fn text(words: &str) -> Vec<Value> {
    vec![
        start(),
        block(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": words})),
        stop(0),
    ]
}

fn hi() -> Answer {
    streamed(&[text("Hi."), end("end_turn").to_vec()].concat())
}

async fn answer(events: Vec<Value>) -> (Result<ModelReply, ModelError>, Vec<ReplyDelta>) {
    let server = FakeAgent::start(move |_| streamed(&events));
    call(connector(Provider::Anthropic, &server), &hello()).await
}

fn tool(id: &str, name: &str, arguments: Value) -> ModelToolCall {
    let provider_id = Some(id.into());
    ModelToolCall { id: id.into(), name: name.into(), arguments, provider_id, ..ModelToolCall::default() }
}

#[tokio::test]
async fn request_matches_protocol() {
    let server = FakeAgent::start(|_| hi());
    call(connector(Provider::Anthropic, &server), &full()).await.0.unwrap();
    let request = &server.requests()[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/messages"));
    assert_eq!(request.header("x-api-key"), Some("key-123456"));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(request.header("authorization"), None);
    insta::assert_snapshot!(serde_json::to_string_pretty(&request.json()).unwrap());
}

#[tokio::test]
async fn each_call_is_followed_by_one_result() {
    let server = FakeAgent::start(|_| hi());
    call(connector(Provider::Anthropic, &server), &full()).await.0.unwrap();
    let body = server.requests()[0].json();
    let messages = body["messages"].as_array().unwrap();
    assert!(messages.windows(2).all(|pair| pair[0]["role"] != pair[1]["role"]));
    let ids = |message: &Value, kind: &str, key: &str| -> Vec<Value> {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks.filter(|block| block["type"] == kind).map(|block| block[key].clone()).collect()
    };
    for pair in messages.windows(2).filter(|pair| pair[0]["role"] == "assistant") {
        let calls = ids(&pair[0], "tool_use", "id");
        assert_eq!(ids(&pair[1], "tool_result", "tool_use_id"), calls);
        let first: Vec<&Value> = pair[1]["content"].as_array().unwrap().iter().take(calls.len()).collect();
        assert!(first.iter().all(|block| block["type"] == "tool_result"));
    }
}

#[tokio::test]
async fn bare_request_has_default_max_tokens() {
    let server = FakeAgent::start(|_| hi());
    let bare = ConnectorConfig {
        key: None,
        base_url: Some(server.url()),
        ..connector(Provider::Anthropic, &server)
    };
    call(bare.clone(), &hello()).await.0.unwrap();
    call(ConnectorConfig { max_tokens: Some(9), temperature: Some(0.5), ..bare }, &hello()).await.0.unwrap();
    let requests = server.requests();
    assert_eq!((requests[0].path.as_str(), requests[0].header("x-api-key")), ("/v1/messages", None));
    let expected = json!({
        "model": "m-1",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
        "stream": true,
    });
    assert_eq!(requests[0].json(), expected);
    assert_eq!(
        (requests[1].json()["max_tokens"].clone(), requests[1].json()["temperature"].clone()),
        (json!(9), json!(0.5))
    );
}

#[tokio::test]
async fn streamed_and_unstreamed_replies_are_equal() {
    let mut events = vec![
        start(),
        json!({"type": "ping"}),
        block(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Think."})),
        delta(0, json!({"type": "signature_delta", "signature": "xyz"})),
        stop(0),
        block(1, json!({"type": "text", "text": "He"})),
        delta(1, json!({"type": "text_delta", "text": "llo"})),
        stop(1),
        block(2, json!({"type": "tool_use", "id": "a", "name": "f", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"x\""})),
        delta(2, json!({"type": "input_json_delta", "partial_json": ":1}"})),
        stop(2),
        block(3, json!({"type": "tool_use", "id": "b", "name": "g", "input": {}})),
        stop(3),
        json!({"type": "something_new", "index": 7}),
    ];
    events.extend(end("tool_use"));
    let (reply, seen) = answer(events).await;
    let expected = ModelReply {
        text: "Hello".into(),
        reasoning: "Think.".into(),
        tool_calls: vec![tool("a", "f", json!({"x": 1})), tool("b", "g", json!({}))],
        stop: StopReason::ToolUse,
        usage: TokenUsage { input_tokens: 42, output_tokens: 7, cached_tokens: 30, ..TokenUsage::default() },
        model: Some("m-1-2026".into()),
        provider_parts: Some(ProviderParts::ThinkingBlocks(vec![
            json!({"type": "thinking", "thinking": "Think.", "signature": "xyz"}),
        ])),
    };
    assert_eq!(reply.unwrap(), expected);
    insta::assert_snapshot!(
        seen.iter().map(|delta| serde_json::to_string(delta).unwrap()).collect::<Vec<_>>().join("\n")
    );
}

#[tokio::test]
async fn handles_interleaved_whole_and_provider_blocks() {
    let mut events = vec![
        start(),
        block(0, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
        block(1, json!({"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}})),
        block(2, json!({"type": "tool_use", "name": "g", "input": {}})),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{\"query\":1}"})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"y\":2}"})),
        stop(2),
        stop(0),
    ];
    // A gateway omitted the end of block 1.
    events.extend(end("tool_use"));
    let (reply, _) = answer(events).await;
    assert_eq!(
        reply.unwrap().tool_calls,
        [tool("a", "f", json!({"x": 1})), tool("call_2", "g", json!({"y": 2}))]
    );
}

#[tokio::test]
async fn accepts_unstreamed_reply() {
    let whole = json!({
        "type": "message",
        "model": "m-1",
        "content": [
            {"type": "thinking", "thinking": "Think."},
            {"type": "text", "text": "Hi."},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
            {"type": "tool_use", "id": "b", "name": "g", "input": {}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    });
    let server = FakeAgent::start(move |_| Answer::json(200, &whole));
    for stream in [false, true] {
        let connector = ConnectorConfig { stream, ..connector(Provider::Anthropic, &server) };
        let (reply, seen) = call(connector, &hello()).await;
        let expected = ModelReply {
            text: "Hi.".into(),
            reasoning: "Think.".into(),
            tool_calls: vec![tool("a", "f", json!({"x": 1})), tool("b", "g", json!({}))],
            stop: StopReason::ToolUse,
            usage: TokenUsage { input_tokens: 3, output_tokens: 2, ..TokenUsage::default() },
            model: Some("m-1".into()),
            provider_parts: Some(ProviderParts::ThinkingBlocks(vec![
                json!({"type": "thinking", "thinking": "Think."}),
            ])),
        };
        assert_eq!(reply.unwrap(), expected);
        assert_eq!(seen.len(), 5);
    }
    assert_eq!(server.requests()[0].json()["stream"], false);
}

#[tokio::test]
async fn maps_every_stop_reason() {
    let cases = [
        ("end_turn", StopReason::EndTurn),
        ("max_tokens", StopReason::MaxTokens),
        ("model_context_window_exceeded", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
        ("refusal", StopReason::Refusal),
        ("pause_turn", StopReason::Other("pause_turn".into())),
        // Gateways pass on the reasons of other providers.
        ("length", StopReason::MaxTokens),
        ("MAX_TOKENS", StopReason::MaxTokens),
        ("content_filtered", StopReason::Refusal),
        ("guardrail_intervened", StopReason::Refusal),
    ];
    for (reason, expected) in cases {
        let (reply, _) = answer([text("a"), end(reason).to_vec()].concat()).await;
        assert_eq!(reply.unwrap().stop, expected);
    }
    for reason in ["error", "network_error", "malformed_model_output"] {
        let (reply, _) = answer([text("a"), end(reason).to_vec()].concat()).await;
        assert!(reply.unwrap_err().to_string().contains(reason), "{reason}");
    }
}

/// The output at the start of a stream is that of the first token.
#[tokio::test]
async fn usage_is_that_of_the_end() {
    let ended = |usage: Value| {
        let tail = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage});
        [text("Hello there."), vec![tail, json!({"type": "message_stop"})]].concat()
    };
    for usage in [json!(null), json!({}), json!({"output_tokens": null}), json!({"output_tokens": "500"})] {
        let (reply, _) = answer(ended(usage.clone())).await;
        assert!(reply.unwrap().usage.unreported, "{usage}");
    }
    let (reply, _) = answer(ended(json!({"input_tokens": 0, "output_tokens": 7}))).await;
    let expected =
        TokenUsage { input_tokens: 42, output_tokens: 7, cached_tokens: 30, ..TokenUsage::default() };
    assert_eq!(reply.unwrap().usage, expected);
}

#[tokio::test]
async fn text_in_unknown_blocks_is_not_said() {
    let hidden = [
        block(1, json!({"type": "web_search_notes"})),
        delta(1, json!({"type": "text_delta", "text": "hidden"})),
        stop(1),
    ];
    let (reply, _) = answer([text("Hi."), hidden.to_vec(), end("end_turn").to_vec()].concat()).await;
    assert_eq!(reply.unwrap().text, "Hi.");
}

#[tokio::test]
async fn rejects_invalid_responses() {
    let stray = vec![start(), delta(4, json!({"type": "input_json_delta", "partial_json": "{"}))];
    let cases: Vec<(Vec<Value>, ModelErrorKind, &str)> = vec![
        (vec![], ModelErrorKind::Network, "may be incomplete"),
        (text("a"), ModelErrorKind::Network, "may be incomplete"),
        (
            [text("a"), vec![json!({"type": "message_stop"})]].concat(),
            ModelErrorKind::Network,
            "may be incomplete",
        ),
        (stray, ModelErrorKind::Decode, "belongs to no open call"),
        (vec![json!({"type": "message_start"})], ModelErrorKind::Decode, "missing field `message`"),
        (
            vec![start(), block(0, json!({"type": "tool_use", "id": "a"}))],
            ModelErrorKind::Decode,
            "missing field `name`",
        ),
        (vec![json!({"hello": 1})], ModelErrorKind::Decode, "missing field `type`"),
        (
            [text("a"), end("tool_use").to_vec()].concat(),
            ModelErrorKind::Decode,
            "it ends with stop_reason tool_use but has no tool call",
        ),
        // A second message in the same stream.
        (
            [
                text("a"),
                end("end_turn").to_vec(),
                vec![start(), block(0, json!({"type": "tool_use", "id": "a", "name": "f", "input": {}}))],
                end("tool_use").to_vec(),
            ]
            .concat(),
            ModelErrorKind::Decode,
            "it has a tool call after its end",
        ),
    ];
    for (events, kind, words) in cases {
        let (reply, _) = answer(events.clone()).await;
        let error = reply.unwrap_err();
        assert_eq!(error.kind, kind, "{events:?}: {error}");
        assert!(error.to_string().contains(words), "{events:?}: {error}");
    }
}

#[tokio::test]
async fn classifies_stream_errors() {
    let cases = [
        ("overloaded_error", "Overloaded", ModelErrorKind::Server),
        ("api_error", "oops", ModelErrorKind::Server),
        ("rate_limit_error", "slow down", ModelErrorKind::RateLimit),
        ("timeout_error", "late", ModelErrorKind::Timeout),
        ("authentication_error", "who?", ModelErrorKind::Auth),
        ("invalid_request_error", "what?", ModelErrorKind::BadRequest),
        ("invalid_request_error", "prompt is too long: 9 tokens", ModelErrorKind::ContextTooLong),
        ("something_new", "hm", ModelErrorKind::Server),
    ];
    for (class, message, kind) in cases {
        let error = json!({"type": "error", "error": {"type": class, "message": message}});
        let (reply, seen) = answer([text("Let me "), vec![error]].concat()).await;
        let error = reply.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(error.partial.unwrap().text, "Let me ");
        assert_eq!(seen.len(), 1);
    }
}

/// With extended thinking, the API rejects results of tools unless the signed blocks precede the calls.
#[tokio::test]
async fn thinking_blocks_are_sent_back_before_the_calls() {
    let thinking = json!({"type": "thinking", "thinking": "Think.", "signature": "xyz"});
    let redacted = json!({"type": "redacted_thinking", "data": "zzz"});
    let mut events = vec![
        start(),
        block(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Think."})),
        delta(0, json!({"type": "signature_delta", "signature": "xyz"})),
        stop(0),
        block(1, redacted.clone()),
        stop(1),
        block(2, json!({"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}})),
        stop(2),
    ];
    events.extend(end("tool_use"));
    let server = FakeAgent::start(move |request| if request.index == 0 { streamed(&events) } else { hi() });
    let mut request = hello();
    let reply = call(connector(Provider::Anthropic, &server), &request).await.0.unwrap();
    request.messages.push(ModelMessage::assistant(&reply));
    let (call_id, name) = (reply.tool_calls[0].id.clone(), "f".to_string());
    request.messages.push(ModelMessage::Tool(ModelToolResult {
        call_id,
        name,
        content: json!("ok"),
        is_error: false,
    }));
    call(connector(Provider::Anthropic, &server), &request).await.0.unwrap();
    let content = server.requests()[1].json()["messages"][1]["content"].clone();
    assert_eq!((&content[0], &content[1], &content[2]["type"]), (&thinking, &redacted, &json!("tool_use")));
}

#[tokio::test]
async fn empty_request_is_sent_unchanged() {
    // The provider decides whether it accepts this.
    let server = FakeAgent::start(|_| hi());
    let request = ModelRequest {
        system: Some(String::new()),
        messages: vec![ModelMessage::assistant(&ModelReply::default())],
        ..ModelRequest::default()
    };
    call(connector(Provider::Anthropic, &server), &request).await.0.unwrap();
    let body = server.requests()[0].json();
    assert_eq!((body.get("system"), body["messages"].clone()), (None, json!([])));
}
