//! Chat completions over a real port.

use super::common::{call, connector, full, hello};
use hotseat_model::{
    Model, ModelErrorKind, ModelReply, ModelRequest, ModelToolCall, Provider, ProviderParts, ReplyDelta,
    StopReason, TokenUsage,
};
use hotseat_testkit::{FakeAgent, FakeReply as Answer};
use serde_json::{Map, Value, json};

/// A stream of these chunks and the `[DONE]` marker.
fn streamed(chunks: &[Value]) -> Answer {
    chunks.iter().cloned().fold(Answer::sse(), Answer::event).bytes("data: [DONE]\n\n")
}

/// A chunk with this delta.
fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn hi() -> Answer {
    streamed(&[delta(json!({"content": "Hi."})), finish("stop")])
}

async fn answer(chunks: Vec<Value>) -> (Result<ModelReply, hotseat_model::ModelError>, Vec<ReplyDelta>) {
    answer_to(chunks, &hello()).await
}

async fn answer_to(
    chunks: Vec<Value>,
    request: &ModelRequest,
) -> (Result<ModelReply, hotseat_model::ModelError>, Vec<ReplyDelta>) {
    let server = FakeAgent::start(move |_| streamed(&chunks));
    call(connector(Provider::OpenAi, &server), request).await
}

fn tool(id: &str, name: &str, arguments: Value) -> ModelToolCall {
    let provider_id = Some(id.into());
    ModelToolCall { id: id.into(), name: name.into(), arguments, provider_id, ..ModelToolCall::default() }
}

#[tokio::test]
async fn request_matches_protocol() {
    let server = FakeAgent::start(|_| hi());
    call(connector(Provider::OpenAi, &server), &full()).await.0.unwrap();
    let request = &server.requests()[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.header("authorization"), Some("Bearer key-123456"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    insta::assert_snapshot!(serde_json::to_string_pretty(&request.json()).unwrap());
}

#[tokio::test]
async fn bare_request_has_no_optional_fields() {
    let server = FakeAgent::start(|_| hi());
    let bare = hotseat_model::ConnectorConfig { key: None, ..connector(Provider::OpenAi, &server) };
    call(bare, &hello()).await.0.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), None);
    let expected = json!({
        "model": "m-1",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(request.json(), expected);
}

#[tokio::test]
async fn connector_adds_removes_and_defaults_fields() {
    let server = FakeAgent::start(|_| hi());
    let mut configured = connector(Provider::OpenAi, &server);
    configured.temperature = Some(0.5);
    configured.max_tokens = Some(7);
    configured.headers =
        vec![("Authorization".into(), "Basic xyz".into()), ("x-team".into(), "shoes".into())];
    let extra = json!({"stream_options": null, "max_tokens": null, "max_completion_tokens": 9, "top_p": 0.1});
    configured.extra = extra.as_object().unwrap().clone();
    call(configured, &hello()).await.0.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some("Basic xyz"));
    assert_eq!(request.header("x-team"), Some("shoes"));
    let expected = json!({
        "model": "m-1",
        "messages": [{"role": "user", "content": "hello"}],
        "temperature": 0.5,
        "stream": true,
        "max_completion_tokens": 9,
        "top_p": 0.1,
    });
    assert_eq!(request.json(), expected);
}

#[tokio::test]
async fn route_is_appended_once_and_query_is_kept() {
    let server = FakeAgent::start(|_| hi());
    for base in ["", "v1/", "v1/chat/completions", "deploy/m?api-version=7", "v1/chat"] {
        let mut connector = connector(Provider::OpenAi, &server);
        connector.base_url = Some(format!("{}{base}", server.url()));
        call(connector, &hello()).await.0.unwrap();
    }
    let paths: Vec<String> = server.requests().iter().map(|request| request.path.clone()).collect();
    let expected = [
        "/chat/completions",
        "/v1/chat/completions",
        "/v1/chat/completions",
        "/deploy/m/chat/completions?api-version=7",
        "/v1/chat/completions",
    ];
    assert_eq!(paths, expected);
}

/// Providers and gateways report cached tokens in many forms.
#[tokio::test]
async fn reads_every_form_of_cached_tokens() {
    let common = json!({"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17});
    for (cached, input) in [
        (json!({"prompt_tokens_details": {"cached_tokens": 8}}), 12),
        (json!({"prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 4}), 12),
        (json!({"cached_tokens": 8}), 12),
        (json!({"cache_read_input_tokens": 8}), 12),
        (json!({"cache_read_input_tokens": 8, "total_tokens": 25}), 20),
    ] {
        let mut usage = common.clone();
        usage.as_object_mut().unwrap().extend(cached.as_object().unwrap().clone());
        let chunk = json!({"choices": [], "usage": usage});
        let (reply, _) = answer(vec![delta(json!({"content": "Hi."})), finish("stop"), chunk]).await;
        let expected =
            TokenUsage { input_tokens: input, output_tokens: 5, cached_tokens: 8, ..TokenUsage::default() };
        assert_eq!(reply.unwrap().usage, expected, "{usage}");
    }
}

#[tokio::test]
async fn streamed_and_unstreamed_replies_are_equal() {
    let mut usage = json!({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 5}});
    usage["usage"]["prompt_tokens_details"] = json!({"cached_tokens": 8});
    let (reply, seen) = answer(vec![
        json!({"model": "m-1-2026", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}], "usage": null}),
        delta(json!({"reasoning_content": "Think."})),
        delta(json!({"content": "Hel"})),
        delta(json!({"content": "lo"})),
        delta(json!({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]})),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"x\""}}]})),
        delta(json!({"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}]})),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]})),
        finish("tool_calls"),
        usage,
    ])
    .await;
    let expected = ModelReply {
        text: "Hello".into(),
        reasoning: "Think.".into(),
        tool_calls: vec![tool("a", "f", json!({"x": 1})), tool("b", "g", json!({}))],
        stop: StopReason::ToolUse,
        usage: TokenUsage { input_tokens: 12, output_tokens: 5, cached_tokens: 8, ..TokenUsage::default() },
        model: Some("m-1-2026".into()),
        provider_parts: Some(ProviderParts::ChatMembers(Map::from_iter([(
            "reasoning_content".to_string(),
            json!("Think."),
        )]))),
    };
    assert_eq!(reply.unwrap(), expected);
    insta::assert_snapshot!(
        seen.iter().map(|delta| serde_json::to_string(delta).unwrap()).collect::<Vec<_>>().join("\n")
    );
}

#[tokio::test]
async fn accepts_unstreamed_reply() {
    let whole = json!({
        "model": "m-1",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant",
            "content": "Hi.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}},
                {"id": "b", "type": "function", "function": {"name": "g", "arguments": {"y": 2}}},
                {"type": "function", "function": {"name": "h"}},
            ],
        }}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    });
    let server = FakeAgent::start(move |_| Answer::json(200, &whole));
    let expected = ModelReply {
        text: "Hi.".into(),
        tool_calls: vec![
            tool("a", "f", json!({"x": 1})),
            tool("b", "g", json!({"y": 2})),
            tool("call_3", "h", json!({})),
        ],
        stop: StopReason::ToolUse,
        usage: TokenUsage { input_tokens: 3, output_tokens: 2, ..TokenUsage::default() },
        model: Some("m-1".into()),
        ..ModelReply::default()
    };
    // Also from a server that ignores the request to stream.
    for stream in [false, true] {
        let connector = hotseat_model::ConnectorConfig { stream, ..connector(Provider::OpenAi, &server) };
        let (reply, seen) = call(connector, &hello()).await;
        assert_eq!(reply.unwrap(), expected);
        assert_eq!(seen.len(), 6);
    }
    assert_eq!(server.requests()[0].json()["stream"], false);
    assert_eq!(server.requests()[0].json().get("stream_options"), None);
}

#[tokio::test]
async fn calls_survive_any_index_numbering() {
    let piece = |call: Value| delta(json!({"tool_calls": [call]}));
    let cases: Vec<(&str, Vec<Value>, Vec<ModelToolCall>)> = vec![
        (
            "without an index",
            vec![piece(json!({"id": "a", "function": {"name": "f", "arguments": "{}"}}))],
            vec![tool("a", "f", json!({}))],
        ),
        (
            "from 1",
            vec![
                piece(json!({"index": 1, "id": "a", "function": {"name": "f", "arguments": "{\"x\":"}})),
                piece(json!({"index": 1, "function": {"arguments": "1}"}})),
            ],
            vec![tool("a", "f", json!({"x": 1}))],
        ),
        (
            "two with the same index",
            vec![
                piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}})),
                piece(json!({"index": 0, "id": "b", "function": {"name": "f", "arguments": "{\"x\":2}"}})),
            ],
            vec![tool("a", "f", json!({"x": 1})), tool("b", "f", json!({"x": 2}))],
        ),
        (
            "two with the same index and no ids",
            vec![
                piece(json!({"index": 0, "function": {"name": "f", "arguments": "{\"x\":1}"}})),
                piece(json!({"index": 0, "function": {"name": "g", "arguments": "{\"x\":"}})),
                piece(json!({"index": 0, "function": {"name": "g", "arguments": "2}"}})),
            ],
            vec![tool("call_2_1_1", "f", json!({"x": 1})), tool("call_2_1_2", "g", json!({"x": 2}))],
        ),
        (
            "two with the same index, continued",
            vec![
                piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}})),
                piece(json!({"index": 0, "id": "b", "function": {"name": "g", "arguments": "{\"x\":"}})),
                piece(json!({"index": 0, "function": {"arguments": "2}"}})),
            ],
            vec![tool("a", "f", json!({})), tool("b", "g", json!({"x": 2}))],
        ),
        (
            "the id and the name in every piece",
            vec![
                piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":"}})),
                piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "1}"}})),
            ],
            vec![tool("a", "f", json!({"x": 1}))],
        ),
        (
            "no index, continued by id and by nothing",
            vec![
                piece(json!({"id": "a", "function": {"name": "f", "arguments": "{"}})),
                piece(json!({"id": "a", "function": {"arguments": "\"x\":"}})),
                piece(json!({"function": {"arguments": "1}"}})),
            ],
            vec![tool("a", "f", json!({"x": 1}))],
        ),
        (
            "no index and no id",
            vec![
                piece(json!({"function": {"name": "f", "arguments": "{}"}})),
                piece(json!({"function": {"name": "g", "arguments": "{}"}})),
            ],
            vec![tool("call_2_1_1", "f", json!({})), tool("call_2_1_2", "g", json!({}))],
        ),
        (
            "one id for two calls",
            vec![
                piece(json!({"index": 0, "id": "a", "function": {"name": "f"}})),
                piece(json!({"index": 1, "id": "a", "function": {"name": "g"}})),
            ],
            vec![tool("a", "f", json!({})), tool("call_2_1_2", "g", json!({}))],
        ),
        (
            "the name late",
            vec![
                piece(json!({"index": 0, "id": "a"})),
                piece(json!({"index": 0, "function": {"arguments": "{\"x\":"}})),
                piece(json!({"index": 0, "function": {"name": "f", "arguments": "1}"}})),
            ],
            vec![tool("a", "f", json!({"x": 1}))],
        ),
        (
            "the id late",
            vec![
                piece(json!({"index": 0, "id": "", "function": {"arguments": ""}})),
                piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}})),
            ],
            vec![tool("a", "f", json!({}))],
        ),
        (
            "several in one piece, with the finish",
            vec![json!({"choices": [{"finish_reason": "stop", "delta": {"tool_calls": [
                {"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}},
                {"index": 1, "id": "b", "function": {"name": "g", "arguments": null}},
            ]}}]})],
            vec![tool("a", "f", json!({"x": 1})), tool("b", "g", json!({}))],
        ),
        (
            "two complete calls with the same index and the same id",
            vec![
                piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}})),
                piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":2}"}})),
            ],
            vec![tool("a", "f", json!({"x": 1})), tool("call_2_1_2", "f", json!({"x": 2}))],
        ),
        (
            "a complete call, reported again",
            vec![
                piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}})),
                piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}})),
                piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": " "}})),
            ],
            vec![tool("a", "f", json!({"x": 1}))],
        ),
        (
            "arguments that are not JSON",
            vec![piece(
                json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\": oops"}}),
            )],
            vec![tool("a", "f", json!("{\"x\": oops"))],
        ),
    ];
    for (title, mut chunks, expected) in cases {
        chunks.push(finish("tool_calls"));
        let (reply, _) = answer_to(chunks, &full()).await;
        let reply = reply.unwrap();
        assert_eq!(reply.tool_calls, expected, "{title}");
        assert_eq!(reply.stop, StopReason::ToolUse, "{title}");
    }
}

#[tokio::test]
async fn maps_every_finish_reason() {
    let cases = [
        ("stop", StopReason::EndTurn),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::Refusal),
        ("tired", StopReason::Other("tired".into())),
    ];
    for (reason, expected) in cases {
        let (reply, _) = answer(vec![delta(json!({"content": "a"})), finish(reason)]).await;
        assert_eq!(reply.unwrap().stop, expected);
    }
    let (reply, _) = answer(vec![delta(json!({"refusal": "I will not."})), finish("stop")]).await;
    let reply = reply.unwrap();
    assert_eq!((reply.stop, reply.text.as_str()), (StopReason::Refusal, "I will not."));
}

#[tokio::test]
async fn truncated_reply_keeps_calls() {
    let call = json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\": \"long"}});
    let (reply, _) = answer(vec![delta(json!({"tool_calls": [call]})), finish("length")]).await;
    let reply = reply.unwrap();
    assert_eq!(reply.stop, StopReason::MaxTokens);
    assert_eq!(reply.tool_calls, [tool("a", "f", json!("{\"x\": \"long"))]);
}

#[tokio::test]
async fn several_choices_are_an_error() {
    let another = json!({"choices": [{"index": 1, "delta": {"content": "another reply"}}]});
    let (reply, _) = answer(vec![delta(json!({"content": "a"})), another, finish("stop")]).await;
    let error = reply.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Decode);
    assert!(error.message.ends_with("it has more than one choice"), "{}", error.message);
}

#[tokio::test]
async fn reads_text_and_usage_variants() {
    let (reply, _) = answer(vec![
        delta(json!({"content": ["a", {"type": "image"}, {"type": "reasoning_text", "text": "no"}, {"type": "text", "text": {"value": "b"}}, {"type": "text", "text": null}]})),
        delta(json!({"reasoning": "because"})),
        finish("stop"),
        json!({"choices": [], "x_groq": {"usage": {"prompt_tokens": 2, "completion_tokens": 1}}}),
    ])
    .await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.reasoning.as_str()), ("ab", "because"));
    assert_eq!(reply.usage, TokenUsage { input_tokens: 2, output_tokens: 1, ..TokenUsage::default() });
}

#[tokio::test]
async fn last_usage_is_the_total() {
    let counted = |tokens: u64| {
        let usage = json!({"prompt_tokens": 2, "completion_tokens": tokens});
        json!({"choices": [{"index": 0, "delta": {"content": "a"}}], "usage": usage})
    };
    let empty = json!({"choices": [], "usage": {}});
    let (reply, _) = answer(vec![counted(1), counted(2), finish("stop"), empty]).await;
    assert_eq!(
        reply.unwrap().usage,
        TokenUsage { input_tokens: 2, output_tokens: 2, ..TokenUsage::default() }
    );
    // One that contradicts itself, or has no numbers, leaves the total unknown.
    for usage in [
        json!({"prompt_tokens": 2, "completion_tokens": 500, "total_tokens": 3}),
        json!({"prompt_tokens": "2", "completion_tokens": "500"}),
    ] {
        let last = json!({"choices": [], "usage": usage});
        let (reply, _) = answer(vec![counted(1), finish("stop"), last]).await;
        assert!(reply.unwrap().usage.unreported, "{usage}");
    }
}

#[tokio::test]
async fn missing_usage_is_estimated() {
    let (reply, _) = answer(vec![delta(json!({"content": "12345678"})), finish("stop")]).await;
    let expected = TokenUsage {
        input_tokens: 2,
        output_tokens: 2,
        estimated: true,
        unreported: true,
        ..TokenUsage::default()
    };
    assert_eq!(reply.unwrap().usage, expected);
    let half = json!({"choices": [], "usage": {"completion_tokens": 1}});
    let (reply, _) = answer(vec![delta(json!({"content": "12345678"})), finish("stop"), half]).await;
    assert_eq!(reply.unwrap().usage, expected);
}

#[tokio::test]
async fn rejects_invalid_responses() {
    let cases: Vec<(Vec<Value>, ModelErrorKind, &str)> = vec![
        (vec![], ModelErrorKind::Decode, "it has no choices"),
        (vec![json!({"choices": []})], ModelErrorKind::Decode, "it has no choices"),
        (vec![json!("hello")], ModelErrorKind::Decode, "invalid type: string \"hello\""),
        (vec![json!({"choices": 7})], ModelErrorKind::Decode, "invalid type: integer `7`"),
        (
            vec![delta(json!({"function_call": {"name": "f"}})), finish("stop")],
            ModelErrorKind::Decode,
            "it has tool calls outside of the `tool_calls` of its message",
        ),
        (
            vec![
                delta(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "{}"}}]})),
                finish("stop"),
            ],
            ModelErrorKind::Decode,
            "a tool call has no name",
        ),
        (
            vec![delta(json!({"content": "a"})), finish("tool_use")],
            ModelErrorKind::Decode,
            "it ends with finish_reason tool_use but has no tool call",
        ),
        (
            vec![delta(json!({"content": "a"})), finish("error")],
            ModelErrorKind::Server,
            "ended its reply with an error",
        ),
        (
            vec![delta(json!({"content": "a"})), finish("ERROR")],
            ModelErrorKind::Server,
            "ended its reply with an error",
        ),
        (
            vec![
                delta(json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]})),
                delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})),
                finish("tool_calls"),
            ],
            ModelErrorKind::Decode,
            "after the complete arguments of tool call \"f\", further ones have neither a name nor a new id",
        ),
        (
            vec![delta(json!({"content": [{"type": "text", "content": "a"}]})), finish("stop")],
            ModelErrorKind::Decode,
            "it has a part without text in its `content`",
        ),
        // Gateways report the error of a provider in the choice.
        (
            vec![json!({"choices": [{"delta": {"content": "a"}, "error": {"message": "provider died"}}]})],
            ModelErrorKind::Server,
            "provider died",
        ),
        (
            vec![delta(json!({"content": "a", "error": {"message": "provider died"}}))],
            ModelErrorKind::Server,
            "provider died",
        ),
        (
            vec![delta(json!({"role": "user", "content": "a"})), finish("stop")],
            ModelErrorKind::Decode,
            "it has a message with role `user` instead of `assistant`",
        ),
    ];
    for (chunks, kind, words) in cases {
        let (reply, _) = answer(chunks.clone()).await;
        let error = reply.unwrap_err();
        assert_eq!(error.kind, kind, "{chunks:?}: {error}");
        assert!(error.to_string().contains(words), "{chunks:?}: {error}");
    }
    let deep = (0..200).fold(json!(1), |value, _| json!([value]));
    let (reply, _) = answer(vec![json!({"error": deep})]).await;
    let error = reply.unwrap_err().to_string();
    assert!(error.contains("is invalid: it is nested deeper than 127 levels"), "{error}");
}

#[tokio::test]
async fn classifies_stream_errors() {
    let cases = [
        (json!({"error": {"type": "server_error", "message": "oops"}}), ModelErrorKind::Server, None),
        (json!({"error": {"code": 429, "message": "slow down"}}), ModelErrorKind::RateLimit, Some(429)),
        (json!({"error": {"code": "rate_limit_exceeded"}}), ModelErrorKind::RateLimit, None),
        (json!({"error": {"code": "context_length_exceeded"}}), ModelErrorKind::ContextTooLong, None),
        (json!({"error": "just words"}), ModelErrorKind::Server, None),
    ];
    for (error, kind, status) in cases {
        let (reply, seen) = answer(vec![delta(json!({"content": "Let me "})), error]).await;
        let error = reply.unwrap_err();
        assert_eq!((error.kind, error.status), (kind, status), "{error}");
        assert_eq!(error.partial.unwrap().text, "Let me ");
        assert_eq!(seen.len(), 1);
    }
}

#[tokio::test]
async fn model_name_matches_configuration() {
    let server = FakeAgent::start(|_| hi());
    assert_eq!(connector(Provider::OpenAi, &server).open().unwrap().name(), "m-1");
}

#[tokio::test]
async fn response_content_type_is_ignored() {
    let whole = json!({"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]}).to_string();
    let server = FakeAgent::start(move |_| Answer::text(200, &whole));
    let connector = hotseat_model::ConnectorConfig { stream: false, ..connector(Provider::OpenAi, &server) };
    assert_eq!(call(connector, &hello()).await.0.unwrap().text, "Hi.");
}

/// MiniMax ends a stream with the whole message.
#[tokio::test]
async fn a_whole_message_after_the_deltas_counts_once() {
    let call =
        json!({"index": 0, "id": "c-1", "function": {"name": "book", "arguments": "{\"to\":\"Rome\"}"}});
    for (whole, text) in
        [("hello world", "hello world"), ("", "hello world"), ("hello world!", "hello world!")]
    {
        let message =
            json!({"role": "assistant", "content": whole, "reasoning_content": "Hm.", "tool_calls": [call]});
        let (reply, _) = answer(vec![
            delta(json!({"reasoning_content": "Hm.", "tool_calls": [call]})),
            delta(json!({"content": "hello "})),
            delta(json!({"content": "world"})),
            json!({"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}),
        ])
        .await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.reasoning.as_str()), (text, "Hm."));
        assert_eq!(reply.tool_calls.len(), 1, "{reply:?}");
    }
}
