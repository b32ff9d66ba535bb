//! Each protocol, streamed and not.

use hotseat_model::{
    DiscardSink, Model as _, ModelMessage, ModelReply, ModelRequest, ModelTool, ModelToolCall,
    ModelToolResult, Provider, ProviderParts, StopReason, TokenUsage,
};
use serde_json::{Map, Value, json};

use super::common::{PATHS, Served, ask, streamed};

const SHOP: &str = r#"
use: always
rules:
  - when: { system: "You sell (?<what>\\w+)", user: "red", offered: search }
    reply:
      reasoning: "They want red ones."
      text: "I look for {{ what }}: ä, \"quoted\"."
      tool_calls:
        - { name: search, arguments: { query: "red {{ what }}", n: 2 } }
        - { name: clock }
      usage: { input_tokens: 120, output_tokens: 30, cached_tokens: 20 }
  - when: { tool_result: { tool: search } }
    reply: { text: "There are {{ results.search.hits }}.", stop: max_tokens }
  - when: { user: hello }
    reply: "Hello to you."
  - when: { user: nothing }
    reply: ""
  - when: { user: broken arguments }
    reply: { tool_calls: [{ name: search, arguments: "{\"query\": " }] }
  - when: { user: refuse }
    reply: { text: "I will not.", stop: refusal }
"#;

fn tool(name: &str) -> ModelTool {
    let schema = json!({"type": "object", "properties": {"query": {"type": "string"}}});
    ModelTool { name: name.into(), description: "A tool.".into(), input_schema: schema }
}

fn shop_request() -> ModelRequest {
    ModelRequest {
        system: Some("You sell shoes.".into()),
        messages: vec![ModelMessage::user("red ones, please")],
        tools: vec![tool("search"), tool("clock")],
        max_tokens: Some(500),
        ..ModelRequest::default()
    }
}

async fn call(served: &Served, provider: Provider, stream: bool, request: &ModelRequest) -> ModelReply {
    let model = served.connector(provider, stream).open().unwrap();
    model.call(request, &mut DiscardSink).await.unwrap()
}

/// The provider clients of this crate read what is written for them: text, calls, reasoning, usage and stop reason.
#[tokio::test]
async fn provider_clients_read_every_part_of_a_reply() {
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        for stream in [false, true] {
            let served = Served::script(SHOP);
            let mut request = shop_request();
            let reply = call(&served, provider, stream, &request).await;
            let calls = vec![
                ModelToolCall {
                    id: "call_1_1_1".into(),
                    name: "search".into(),
                    arguments: json!({"query": "red shoes", "n": 2}),
                    provider_id: Some("call_1_1_1".into()),
                    ..ModelToolCall::default()
                },
                ModelToolCall {
                    id: "call_1_1_2".into(),
                    name: "clock".into(),
                    arguments: json!({}),
                    provider_id: Some("call_1_1_2".into()),
                    ..ModelToolCall::default()
                },
            ];
            let reasoning = json!("They want red ones.");
            let provider_parts = Some(match provider {
                Provider::OpenAi => {
                    ProviderParts::ChatMembers(Map::from_iter([("reasoning_content".to_string(), reasoning)]))
                }
                Provider::Anthropic => ProviderParts::ThinkingBlocks(vec![
                    json!({"type": "thinking", "thinking": reasoning, "signature": ""}),
                ]),
            });
            let expected = ModelReply {
                text: "I look for shoes: ä, \"quoted\".".into(),
                reasoning: "They want red ones.".into(),
                tool_calls: calls,
                stop: StopReason::ToolUse,
                usage: TokenUsage {
                    input_tokens: 120,
                    output_tokens: 30,
                    cached_tokens: 20,
                    ..TokenUsage::default()
                },
                model: Some("gpt".into()),
                provider_parts,
            };
            assert_eq!(reply, expected, "{provider:?} stream {stream}");

            request.messages.push(ModelMessage::assistant(&reply));
            for (call, content) in reply.tool_calls.iter().zip([json!({"hits": 7}), json!("noon")]) {
                request.messages.push(ModelMessage::Tool(ModelToolResult {
                    call_id: call.id.clone(),
                    name: call.name.clone(),
                    content,
                    is_error: false,
                }));
            }
            let reply = call(&served, provider, stream, &request).await;
            assert_eq!((reply.text.as_str(), &reply.stop), ("There are 7.", &StopReason::MaxTokens));
        }
    }
}

#[tokio::test]
async fn clients_read_empty_and_refused_replies_and_malformed_arguments() {
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        for stream in [false, true] {
            let served = Served::script(SHOP);
            let ask = |text: &str| ModelRequest {
                messages: vec![ModelMessage::user(text)],
                ..ModelRequest::default()
            };
            let empty = call(&served, provider, stream, &ask("nothing")).await;
            assert_eq!((empty.text.as_str(), empty.stop), ("", StopReason::EndTurn));
            let refused = call(&served, provider, stream, &ask("refuse")).await;
            assert_eq!((refused.text.as_str(), refused.stop), ("I will not.", StopReason::Refusal));
            let broken = call(&served, provider, stream, &ask("broken arguments")).await;
            let arguments = broken.tool_calls[0].arguments_text();
            assert_eq!(arguments, "{\"query\": ", "{provider:?} stream {stream}");
        }
    }
}

#[tokio::test]
async fn responses_are_written_item_by_item() {
    let served = Served::script(SHOP);
    let body = json!({
        "model": "gpt",
        "instructions": "You sell shoes.",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "red ones"}]}],
        "tools": [{"type": "function", "name": "search", "parameters": {"type": "object"}}],
    });
    let whole = served.post("v1/responses", &body).await.json();
    let kinds = |output: &Value| -> Vec<String> {
        output.as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&whole["output"]), ["reasoning", "message", "function_call", "function_call"]);
    assert_eq!(whole["usage"]["total_tokens"], 150);
    assert_eq!(whole["status"], "completed");

    let stream = served.post("v1/responses", &streamed(body)).await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream; charset=utf-8"));
    let events = stream.events();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number, "{event}");
        let name = format!("event: {}\n", event["type"].as_str().unwrap());
        assert!(stream.body.contains(&name), "{event}");
    }
    let completed = events.last().unwrap();
    assert_eq!(completed["type"], "response.completed");
    let output = &completed["response"]["output"];
    assert_eq!(kinds(output), kinds(&whole["output"]));
    // The pieces are the same as the whole.
    let joined = |kind: &str, index: usize| -> String {
        let pieces = events.iter().filter(|event| event["type"] == kind && event["output_index"] == index);
        pieces.map(|event| event["delta"].as_str().unwrap()).collect()
    };
    assert_eq!(joined("response.output_text.delta", 1), "I look for shoes: ä, \"quoted\".");
    assert_eq!(output[1]["content"][0]["text"], "I look for shoes: ä, \"quoted\".");
    assert_eq!(joined("response.function_call_arguments.delta", 2), output[2]["arguments"].as_str().unwrap());
    assert_eq!(output[2]["name"], "search");
    for item in output.as_array().unwrap() {
        let same = |event: &&Value| event["item"]["id"] == item["id"];
        let kinds: Vec<_> = events.iter().filter(same).map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["response.output_item.added", "response.output_item.done"]);
    }
}

#[tokio::test]
async fn responses_continue_by_id_or_by_items() {
    let served = Served::script(SHOP);
    let tools = json!([{"type": "function", "name": "search", "parameters": {"type": "object"}}]);
    let first = json!({"model": "gpt", "instructions": "You sell shoes.", "input": "red", "tools": tools});
    let first = served.post("v1/responses", &first).await.json();
    let azure = json!({"model": "gpt", "messages": [{"role": "user", "content": "hello"}]});
    let azure = served.post("openai/deployments/gpt/chat/completions?api-version=1", &azure).await;
    assert_eq!(azure.status, 200, "{}", azure.body);
    let [search, clock] = [2, 3].map(|index| &first["output"][index]["call_id"]);
    let outputs = json!([
        {"type": "function_call_output", "call_id": search, "output": "{\"hits\": 3}"},
        {"type": "function_call_output", "call_id": clock, "output": "noon"},
    ]);
    let by_id = json!({"model": "gpt", "input": outputs, "previous_response_id": first["id"]});
    let by_id = served.post("v1/responses", &by_id).await.json();
    assert_eq!(by_id["output"][0]["content"][0]["text"], "There are 3.");
    assert_eq!(by_id["incomplete_details"]["reason"], "max_output_tokens");
    let mut items = vec![json!({"role": "user", "content": "red"})];
    items.extend(first["output"].as_array().unwrap().clone());
    items.extend(outputs.as_array().unwrap().clone());
    let by_items = served.post("v1/responses", &json!({"model": "gpt", "input": items})).await.json();
    assert_eq!(by_items["output"][0]["content"][0]["text"], "There are 3.");
    let reference = |item: &Value| json!({"type": "item_reference", "id": item["id"]});
    let mut references = vec![json!({"role": "user", "content": "red"})];
    references.extend(first["output"].as_array().unwrap().iter().map(reference));
    references.extend(outputs.as_array().unwrap().clone());
    let by_reference =
        served.post("v1/responses", &json!({"model": "gpt", "input": references})).await.json();
    assert_eq!(by_reference["output"][0]["content"][0]["text"], "There are 3.");
    for id in ["", "msg", "msg_resp_none_0", "fc_resp_1_0", "msg_resp_1_99"] {
        let unknown = json!({"model": "gpt", "input": [{"type": "item_reference", "id": id}]});
        let unknown = served.post("v1/responses", &unknown).await;
        assert_eq!((unknown.status, &unknown.json()["error"]["param"]), (400, &json!("input[0].id")), "{id}");
    }
    let unknown = json!({"model": "gpt", "input": "x", "previous_response_id": "resp_none"});
    let unknown = served.post("v1/responses", &unknown).await;
    assert_eq!((unknown.status, &unknown.json()["error"]["param"]), (400, &json!("previous_response_id")));
}

#[tokio::test]
async fn errors_have_the_form_of_the_protocol() {
    for path in PATHS {
        for stream in [false, true] {
            let mut served = Served::script("rules:\n  - when: { user: hello }\n    reply: Hi.");
            let mut body = ask(path, "goodbye");
            body["stream"] = stream.into();
            let answer = served.post(path, &body).await;
            assert_eq!(answer.status, 400, "{path}");
            assert_eq!(answer.header("x-should-retry"), Some("false"));
            let error = answer.json();
            assert_eq!(error["error"]["type"], "invalid_request_error");
            assert_eq!(error["type"] == "error", path == "v1/messages");
            let message = error["error"]["message"].as_str().unwrap();
            assert!(
                message.contains("no rule of script.yaml answers") && message.contains("not rule 1"),
                "{message}"
            );
            assert!(served.events()[1].starts_with("1 failed: unanswered"));
        }
    }
}

#[tokio::test]
async fn scripted_failures_arrive_as_the_provider_sends_them() {
    let script = "
rules:
  - error: { kind: rate_limit, retry_after_ms: 1500 }
  - error: { kind: server, status: 529 }
  - error: { kind: context_too_long }
  - error: { kind: server, after: half an answer }
  - error: { kind: network, after: half an answer }
  - error: { kind: network }
  - error: { kind: decode }
  - error: { kind: bad_request, body: '{\"own\": 1}' }";
    for path in PATHS {
        let served = Served::script(script);
        let ask = || served.post_text(path, streamed(ask(path, "x")).to_string());
        let limited = ask().await;
        assert_eq!((limited.status, limited.header("retry-after")), (429, Some("2")));
        assert_eq!(limited.header("retry-after-ms"), Some("1500"));
        assert_eq!(limited.json()["error"]["type"], "rate_limit_error");
        let overloaded = ask().await;
        let kind = if path == "v1/messages" { "overloaded_error" } else { "server_error" };
        assert_eq!((overloaded.status, &overloaded.json()["error"]["type"]), (529, &json!(kind)));
        assert_eq!(ask().await.status, 400);
        let ended = ask().await;
        assert_eq!((ended.status, ended.is_broken), (200, false));
        assert!(ended.body.contains("half") && ended.body.contains("simulates"), "{}", ended.body);
        let cut = ask().await;
        assert_eq!((cut.status, cut.is_broken), (200, true));
        assert!(cut.body.contains("answer") && !cut.body.contains("simulates"), "{}", cut.body);
        assert!(ask().await.is_broken);
        let garbage = ask().await;
        assert!(garbage.status == 200 && serde_json::from_str::<Value>(&garbage.body).is_err());
        let own = ask().await;
        assert_eq!((own.status, own.body.as_str()), (400, "{\"own\": 1}"));
    }
}

#[tokio::test]
async fn invalid_requests_are_refused_with_their_place() {
    let mut served = Served::script(SHOP);
    let deep = format!("{{\"model\": \"m\", \"messages\": {}1{}}}", "[".repeat(5000), "]".repeat(5000));
    let unknown_result = json!({"model": "gpt", "messages": [
        {"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "c9", "content": "1"}]});
    for (path, body, words) in [
        (PATHS[0], "{".to_string(), "the body is not JSON"),
        (PATHS[0], deep, "the body is nested deeper than 127 levels"),
        (PATHS[0], "[]".to_string(), "must be a JSON object"),
        (PATHS[0], "{}".to_string(), "`messages` must be a list"),
        (PATHS[0], r#"{"messages": [{"role": "user", "content": "x"}]}"#.to_string(), "a `model`"),
        (PATHS[0], r#"{"messages": [{"role": "king"}]}"#.to_string(), "unknown role \"king\""),
        (PATHS[0], unknown_result.to_string(), "the call \"c9\", which no earlier message has"),
        (PATHS[1], r#"{"model": "m", "input": [{"type": "shell"}]}"#.to_string(), "type \"shell\" are not"),
        (PATHS[1], r#"{"model": "m"}"#.to_string(), "`input` must be"),
        (PATHS[2], r#"{"model": "m", "messages": 1}"#.to_string(), "`messages` must be a list"),
        (PATHS[2], r#"{"model": "m", "messages": []}"#.to_string(), "at least one message"),
    ] {
        let answer = served.post_text(path, body).await;
        assert_eq!(answer.status, 400, "{words}");
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(words), "{message}");
        let events = served.events();
        assert!(events.len() == 1 && events[0].starts_with("refused: "), "{events:?}");
    }
}

#[tokio::test]
async fn any_content_of_a_message_has_a_text() {
    let served = Served::script(
        "rules:\n  - reply: \"{{ user }}|{{ system }}|{{ messages | map(attribute='role') | join(',') }}\"",
    );
    let body = json!({"model": "gpt", "messages": [
        {"role": "developer", "content": [{"type": "text", "text": "A"}]},
        {"role": "system", "content": "B"},
        {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "content": null, "refusal": "no"},
        {"role": "system", "content": "later"},
        {"role": "user", "content": "again"},
    ]});
    let reply = served.post(PATHS[0], &body).await.json();
    let text = reply["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.starts_with("again|A\n\nB|"), "{text}");
    assert!(text.ends_with("user,assistant,notice,user"), "{text}");
}

/// A request with texts, `calls` of a tool by their ids, and `result`s by the ids of their calls, in the form of a protocol.
fn history(path: &str, messages: &Value) -> Value {
    let ids = |message: &Value| message["calls"].as_array().cloned().unwrap_or_default();
    let messages = messages.as_array().unwrap().iter();
    match path {
        "v1/responses" => {
            let items = messages.flat_map(|message| match &message["result"] {
                Value::Null if ids(message).is_empty() => vec![message.clone()],
                Value::Null => {
                    let call = |id| json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"});
                    ids(message).into_iter().map(call).collect()
                }
                id => vec![json!({"type": "function_call_output", "call_id": id, "output": "1"})],
            });
            json!({"model": "gpt", "input": items.collect::<Vec<_>>()})
        }
        "v1/messages" => {
            let messages = messages.map(|message| match &message["result"] {
                Value::Null if ids(message).is_empty() => message.clone(),
                Value::Null => {
                    let call = |id| json!({"type": "tool_use", "id": id, "name": "look", "input": {}});
                    json!({"role": "assistant", "content": ids(message).into_iter().map(call).collect::<Vec<_>>()})
                }
                id => json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "1"}]}),
            });
            json!({"model": "gpt", "max_tokens": 100, "messages": messages.collect::<Vec<_>>()})
        }
        _ => {
            let messages = messages.map(|message| match &message["result"] {
                Value::Null if ids(message).is_empty() => message.clone(),
                Value::Null => {
                    let call = |id| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}});
                    json!({"role": "assistant", "tool_calls": ids(message).into_iter().map(call).collect::<Vec<_>>()})
                }
                id => json!({"role": "tool", "tool_call_id": id, "content": "1"}),
            });
            json!({"model": "gpt", "messages": messages.collect::<Vec<_>>()})
        }
    }
}

#[tokio::test]
async fn histories_without_exactly_one_result_for_each_call_are_refused() {
    let mut served = Served::script("use: always\nrules: [{ reply: Hello. }]");
    let user = || json!({"role": "user", "content": "x"});
    let reply = || json!({"role": "assistant", "content": "y"});
    let calls = |ids: &[&str]| json!({"calls": ids});
    let result = |id: &str| json!({"result": id});
    let unanswered = "the call \"b\" of `look` has no result";
    let repeated = "the call \"a\" of `look` has more than one result";
    for (messages, problem) in [
        (json!([user(), calls(&["a", "b"]), result("b"), result("a")]), None),
        // Only the last reply may have open calls.
        (json!([user(), calls(&["a", "b"])]), None),
        (json!([user(), calls(&["a"]), result("a"), calls(&["b"])]), None),
        // Ids may be used again.
        (json!([user(), calls(&["a"]), result("a"), reply(), user(), calls(&["a"]), result("a")]), None),
        (json!([user(), calls(&["a", "a"]), result("a"), result("a")]), None),
        (json!([user(), calls(&["a", "b"]), result("a")]), Some(unanswered)),
        (json!([user(), calls(&["b"]), user()]), Some(unanswered)),
        (json!([user(), calls(&["a", "b"]), result("a"), reply(), user()]), Some(unanswered)),
        (json!([user(), calls(&["a", "b"]), result("a"), calls(&["c"])]), Some(unanswered)),
        (json!([user(), calls(&["a"]), result("a"), result("a")]), Some(repeated)),
        (json!([user(), calls(&["a"]), result("a"), reply(), result("a")]), Some(repeated)),
    ] {
        for path in PATHS {
            let answer = served.post(path, &history(path, &messages)).await;
            let events = served.events();
            let Some(problem) = problem else {
                assert_eq!(answer.status, 200, "{path}: {messages}: {}", answer.body);
                continue;
            };
            let error = &answer.json()["error"];
            assert_eq!(answer.status, 400, "{path}: {messages}: {}", answer.body);
            assert!(error["message"].as_str().unwrap().contains(problem), "{path}: {messages}: {error}");
            assert!(events.len() == 1 && events[0].starts_with("refused: "), "{events:?}");
        }
    }
}

/// Chat completions require results directly after the calls, Anthropic before the next reply, and Responses anywhere.
#[tokio::test]
async fn results_have_the_place_that_the_protocol_requires() {
    let served = Served::script("use: always\nrules: [{ reply: Hello. }]");
    let user = json!({"role": "user", "content": "x"});
    let reply = json!({"role": "assistant", "content": "y"});
    let late = json!([user, {"calls": ["a"]}, user, reply, {"result": "a"}]);
    let after_user = json!([user, {"calls": ["a"]}, user, {"result": "a"}]);
    for (path, messages, status) in
        [(PATHS[0], &after_user, 400), (PATHS[0], &late, 400), (PATHS[1], &late, 200), (PATHS[2], &late, 400)]
    {
        let answer = served.post(path, &history(path, messages)).await;
        assert_eq!(answer.status, status, "{path}: {messages}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_continued_response_needs_the_results_of_its_calls() {
    let served = Served::script(SHOP);
    let tools = json!([{"type": "function", "name": "search", "parameters": {"type": "object"}}]);
    let first = json!({"model": "gpt", "instructions": "You sell shoes.", "input": "red", "tools": tools});
    let first = served.post("v1/responses", &first).await.json();
    let output =
        json!({"type": "function_call_output", "call_id": first["output"][2]["call_id"], "output": "1"});
    for input in [json!([output]), json!("hello")] {
        let body = json!({"model": "gpt", "input": input, "previous_response_id": first["id"]});
        let answer = served.post("v1/responses", &body).await;
        assert_eq!((answer.status, &answer.json()["error"]["param"]), (400, &json!("input")), "{input}");
        assert!(answer.body.contains("has no result"), "{}", answer.body);
    }
}
