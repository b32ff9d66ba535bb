//! Chat completions server: responses, and selection of the conversation.

use hotseat_model::script::Rule;
use hotseat_model::{ModelErrorKind, StopReason, TokenUsage};
use hotseat_runtime::definition::{mock, persona, task, tool};
use serde_json::{Value, json};

use super::kit::{
    AgUiClient, OutputPiece, TestServer, clerk_persona, controlled_model, read_until, rejection, scripted,
    serve, text,
};

/// A client that keeps its history.
struct ChatClient<'s> {
    served: &'s TestServer,
    model: &'s str,
    messages: Vec<Value>,
    tools: Value,
    tool_choice: Value,
    stream: bool,
}

impl<'s> ChatClient<'s> {
    fn new(served: &'s TestServer, model: &'s str, stream: bool) -> Self {
        ChatClient {
            served,
            model,
            messages: Vec::new(),
            tools: Value::Null,
            tool_choice: Value::Null,
            stream,
        }
    }

    fn body(&self) -> Value {
        let mut body = json!({"model": self.model, "messages": self.messages, "stream": self.stream});
        if !self.tools.is_null() {
            body["tools"] = self.tools.clone();
        }
        if !self.tool_choice.is_null() {
            body["tool_choice"] = self.tool_choice.clone();
        }
        body
    }

    async fn say(&mut self, text: &str) -> Value {
        self.messages.push(json!({"role": "user", "content": text}));
        self.next_choice().await
    }

    /// The choice of the response, which is the same streamed and unstreamed.
    async fn next_choice(&mut self) -> Value {
        let response = self.served.post("/v1/chat/completions", &self.body()).await;
        let (status, text) = (response.status(), text(response).await);
        assert_eq!(status, 200, "{text}");
        let choice = match self.stream {
            false => serde_json::from_str::<Value>(&text).unwrap()["choices"][0].clone(),
            true => join_chunks(&text),
        };
        self.messages.push(choice["message"].clone());
        choice
    }

    async fn send_rejected(&self) -> (u16, String) {
        rejection(self.served.post("/v1/chat/completions", &self.body()).await).await
    }
}

fn chunks(stream: &str) -> Vec<Value> {
    assert!(stream.ends_with("data: [DONE]\n\n"), "{stream}");
    super::kit::events(stream)
}

fn join_chunks(stream: &str) -> Value {
    let (mut content, mut calls, mut reason) = (String::new(), Vec::new(), Value::Null);
    for chunk in chunks(stream) {
        let Some(choice) = chunk["choices"].get(0) else { continue };
        content.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let mut call = call.clone();
            call.as_object_mut().unwrap().remove("index");
            calls.push(call);
        }
        if !choice["finish_reason"].is_null() {
            reason = choice["finish_reason"].clone();
        }
    }
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
        if content.is_empty() {
            message["content"] = Value::Null;
        }
    }
    json!({"index": 0, "message": message, "logprobs": null, "finish_reason": reason})
}

#[tokio::test]
async fn conversation_continues_where_it_was() {
    for stream in [false, true] {
        let model =
            scripted([Rule::new().turn(1).say("Hello Ada."), Rule::new().turn(2).say("Your name is Ada.")]);
        let served = serve(&persona("Greeter"), model).await;
        let mut chat = ChatClient::new(&served, "greeter", stream);
        let choice = chat.say("I am Ada").await;
        let message = json!({"role": "assistant", "content": "Hello Ada.", "refusal": null});
        assert_eq!(
            choice,
            json!({"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"})
        );
        let choice = chat.say("Who am I?").await;
        assert_eq!(choice["message"]["content"], "Your name is Ada.");
        assert_eq!(served.host.conversations().await.unwrap().len(), 1, "stream: {stream}");
    }
}

#[tokio::test]
async fn response_metadata() {
    let served = serve(&persona("Greeter"), scripted([Rule::new().say("Hello there.").always()])).await;
    let mut chat = ChatClient::new(&served, "greeter", false);
    chat.messages = vec![json!({"role": "user", "content": "hi"})];
    let whole: Value =
        serde_json::from_str(&text(served.post("/v1/chat/completions", &chat.body()).await).await).unwrap();
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(whole["model"], "greeter");
    assert!(whole["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert!(whole["created"].as_u64().unwrap() > 1_600_000_000);
    let usage = &whole["usage"];
    let sum = usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"], sum);
    assert_eq!(usage["completion_tokens"], 3);

    let mut body = chat.body();
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let stream = served.post("/v1/chat/completions", &body).await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream; charset=utf-8");
    let chunks = chunks(&text(stream).await);
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk["id"] == chunks[0]["id"])
    );
    let (last, others) = chunks.split_last().unwrap();
    assert!(others.iter().all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some()));
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["completion_tokens"], 3);

    body["stream_options"] = Value::Null;
    let chunks = self::chunks(&text(served.post("/v1/chat/completions", &body).await).await);
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
}

/// Budgets of a client are decided by these numbers.
#[tokio::test]
async fn usage_covers_called_agents_and_caches_and_is_omitted_if_unknown() {
    for unreported in [false, true] {
        let known = TokenUsage {
            input_tokens: 1000,
            output_tokens: 500,
            cached_tokens: 800,
            ..TokenUsage::default()
        };
        let of_reviewer = TokenUsage { unreported, ..known };
        let desk = || Rule::new().agent("desk").usage(known);
        let model = scripted([
            desk().call(1).call_tool("review", json!({})).call_tool("join", json!({})).always(),
            Rule::new().agent("reviewer").usage(of_reviewer).say("Fine.").always(),
            Rule::new().agent("architect").usage(known).say("I am here.").always(),
            desk().call(2).say("Done.").always(),
        ]);
        let desk = persona("Desk")
            .system("DESK")
            .tool(tool("review").agent(&persona("Reviewer").system("REVIEW")))
            .tool(tool("join").agent(&persona("Architect").system("ARCH")).loop_in());
        let served = serve(&desk, model).await;
        let mut body = json!({"model": "desk", "messages": [{"role": "user", "content": "review"}]});
        let whole: Value =
            serde_json::from_str(&text(served.post("/v1/chat/completions", &body).await).await).unwrap();
        let expected = json!({
            "prompt_tokens": 4000, "completion_tokens": 2000, "total_tokens": 6000,
            "prompt_tokens_details": {"cached_tokens": 3200},
        });
        assert_eq!(whole.get("usage"), Some(&expected).filter(|_| !unreported), "{whole}");

        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
        let chunks = chunks(&text(served.post("/v1/chat/completions", &body).await).await);
        let streamed: Vec<&Value> =
            chunks.iter().map(|chunk| &chunk["usage"]).filter(|usage| !usage.is_null()).collect();
        assert_eq!(streamed, Vec::from_iter(Some(&expected).filter(|_| !unreported)), "{chunks:#?}");

        let events = AgUiClient::new(&served, "t").say("review").await;
        let by_model = json!([{"model": "default", "inputTokens": 4000, "cachedInputTokens": 3200,
            "outputTokens": 2000, "totalTokens": 6000}]);
        assert_eq!(events.last().unwrap().get("usage"), Some(&by_model).filter(|_| !unreported));
    }
}

fn pick() -> Value {
    let parameters = json!({"type": "object", "properties": {"of": {"type": "string"}}});
    json!([{"type": "function", "function": {"name": "pick", "description": "Picks", "parameters": parameters}}])
}

#[tokio::test]
async fn client_runs_its_own_tools() {
    for stream in [false, true] {
        let model = scripted([
            Rule::new()
                .user("colors")
                .offered("pick")
                .call_tool("pick", json!({"of": "a"}))
                .call_tool("pick", json!({"of": "b"})),
            Rule::new().tool_result("pick").say("You picked {{ result }}."),
            Rule::new().user("thanks").say("You are welcome."),
        ]);
        let served = serve(&persona("Helper"), model).await;
        let mut chat = ChatClient::new(&served, "helper", stream);
        chat.tools = pick();
        let choice = chat.say("two colors").await;
        assert_eq!(choice["finish_reason"], "tool_calls");
        assert_eq!(choice["message"]["content"], Value::Null);
        let calls = choice["message"]["tool_calls"].as_array().unwrap().clone();
        assert_eq!(calls.len(), 2);
        assert_eq!(calls[1]["function"], json!({"name": "pick", "arguments": "{\"of\":\"b\"}"}));
        chat.messages.push(json!({"role": "tool", "tool_call_id": calls[0]["id"], "content": "red"}));
        let (status, words) = chat.send_rejected().await;
        assert_eq!(status, 400);
        assert!(
            words.contains(calls[1]["id"].as_str().unwrap()) && words.contains("not answered"),
            "{words}"
        );
        chat.messages.push(json!({"role": "tool", "tool_call_id": calls[1]["id"], "content": "blue"}));
        let choice = chat.next_choice().await;
        assert_eq!(choice["message"]["content"], "You picked blue.");
        assert_eq!(choice["finish_reason"], "stop");
        let choice = chat.say("thanks").await;
        assert_eq!(choice["message"]["content"], "You are welcome.");
        assert_eq!(served.host.conversations().await.unwrap().len(), 1);
    }
}

/// A second result of a call is refused before the agent has received any.
#[tokio::test]
async fn a_call_has_one_result() {
    let model = scripted([
        Rule::new()
            .user("colors")
            .call_tool("pick", json!({"of": "a"}))
            .call_tool("pick", json!({"of": "b"})),
        Rule::new().tool_result("pick").say("You picked {{ result }}."),
        Rule::new().user("thanks").say("You are welcome."),
    ]);
    let served = serve(&persona("Helper"), model).await;
    let mut chat = ChatClient::new(&served, "helper", false);
    chat.tools = pick();
    let choice = chat.say("two colors").await;
    let call = |index: usize| choice["message"]["tool_calls"][index]["id"].clone();
    let result =
        |call: Value, content: &str| json!({"role": "tool", "tool_call_id": call, "content": content});
    let asked = chat.messages.clone();
    for (results, place) in [
        ([result(call(0), "red"), result(call(0), "green"), result(call(1), "blue")], 3),
        ([result(call(0), "red"), result(call(1), "blue"), result(call(1), "green")], 4),
    ] {
        chat.messages = [&asked[..], &results].concat();
        let response = served.post("/v1/chat/completions", &chat.body()).await;
        assert_eq!(response.status(), 400);
        let error: Value = serde_json::from_str(&text(response).await).unwrap();
        assert_eq!(error["error"]["param"], format!("messages[{place}].tool_call_id"), "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains("is answered twice"), "{error}");
    }
    // The same result again is the same result, now and in the history.
    chat.messages =
        [&asked[..], &[result(call(0), "red"), result(call(0), "red"), result(call(1), "blue")]].concat();
    assert_eq!(chat.next_choice().await["message"]["content"], "You picked blue.");
    assert_eq!(chat.say("thanks").await["message"]["content"], "You are welcome.");
    assert_eq!(served.host.conversations().await.unwrap().len(), 1);
}

/// The agent declares a tool that the client runs, and this client runs none.
#[tokio::test]
async fn calls_of_client_tools_are_declined_without_a_tool_choice() {
    for stream in [false, true] {
        let model = scripted([
            Rule::new().user("sign").call_tool("sign", json!({})).call_tool("sign", json!({})).always(),
            Rule::new()
                .tool_result("sign")
                .result_failed(true)
                .say("Not signed: {{ result.message }}")
                .always(),
        ]);
        let served = serve(&persona("Helper").tool(tool("sign").client()), model).await;
        let mut chat = ChatClient::new(&served, "helper", stream);
        chat.messages.push(json!({"role": "user", "content": "sign it"}));
        let choice = chat.next_choice().await;
        assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
        let mut chat = ChatClient::new(&served, "helper", stream);
        chat.tools = pick();
        chat.tool_choice = json!("none");
        let choice = chat.say("sign it").await;
        let words = "Not signed: the client does not run tools for this answer";
        assert_eq!(
            (&choice["message"]["content"], &choice["finish_reason"]),
            (&json!(words), &json!("stop"))
        );
        assert!(choice["message"].get("tool_calls").is_none(), "{choice}");
        // The conversation continues.
        chat.say("sign it now").await;
        assert_eq!(served.host.conversations().await.unwrap().len(), 2);
    }
}

/// The model may call a tool of the request although the client asks for none: it learns why there is no result.
#[tokio::test]
async fn calls_of_tools_of_the_request_are_declined_without_a_tool_choice() {
    for stream in [false, true] {
        let model = scripted([
            Rule::new().user("paint").call_tool("pick", json!({})).always(),
            Rule::new()
                .tool_result("pick")
                .result_failed(true)
                .say("Not painted: {{ result.message }}")
                .always(),
        ]);
        let served = serve(&persona("Helper"), model).await;
        let mut chat = ChatClient::new(&served, "helper", stream);
        chat.tools = pick();
        chat.tool_choice = json!("none");
        let choice = chat.say("paint it").await;
        let words = "Not painted: the client does not run tools for this answer";
        assert_eq!(choice["message"]["content"], words, "{choice}");
        chat.tools = json!([{"type": "custom", "custom": {"name": "pick"}}]);
        chat.messages.push(json!({"role": "user", "content": "paint it"}));
        let (status, refused) = chat.send_rejected().await;
        assert_eq!(status, 400, "{refused}");
        assert!(refused.contains("must be of type `function`"), "{refused}");
    }
}

#[tokio::test]
async fn agent_tools_are_hidden() {
    for stream in [false, true] {
        let model = scripted([
            Rule::new().user("order").say("Let me look.").call_tool("look_up", json!({"order": "o-9"})),
            Rule::new().tool_result("look_up").say("It costs {{ result.total }}."),
        ]);
        let served = serve(&clerk_persona(), model).await;
        let mut chat = ChatClient::new(&served, "clerk", stream);
        let choice = chat.say("my order").await;
        assert_eq!(choice["message"]["content"], "Let me look.\n\nIt costs 42.5.");
        assert_eq!(choice["finish_reason"], "stop");
        assert!(choice["message"].get("tool_calls").is_none());
    }
}

/// Stream of an answer with visible agent tools followed by client tool calls.
#[tokio::test]
async fn agent_tools_are_visible_on_request() {
    let model = scripted([
        Rule::new().user("order").say("Let me look.").call_tool("look_up", json!({"order": "o-9"})),
        Rule::new().tool_result("look_up").call_tool("refund", json!({"amount": 5})),
        Rule::new().tool_result("refund").call_tool("pick", json!({"of": "a"})),
        Rule::new().tool_result("pick").say("Done."),
    ]);
    let served = serve(&clerk_persona(), model).await;
    let mut chat = ChatClient::new(&served, "clerk", true);
    chat.tools = pick();
    chat.messages.push(json!({"role": "user", "content": "my order"}));
    let asking = |chat: &ChatClient| {
        let mut body = chat.body();
        body["show_tools"] = json!(true);
        body
    };
    let answer = text(served.post("/v1/chat/completions", &asking(&chat)).await).await;
    let mut calls = Vec::new();
    let told: Vec<Value> = chunks(&answer)
        .iter()
        .filter_map(|chunk| {
            let choice = &chunk["choices"][0];
            let delta = &choice["delta"];
            if let Some(call) = delta["tool_calls"].get(0) {
                calls.push(call["id"].clone());
                return Some(json!([call["index"], call["function"]["name"], call["function"]["arguments"]]));
            }
            match delta["role"].as_str() {
                Some("tool") => {
                    let of = calls.iter().position(|id| *id == delta["tool_call_id"]);
                    Some(json!({"result": delta["content"], "of": of}))
                }
                _ => choice["finish_reason"].as_str().map(|reason| json!(reason)),
            }
        })
        .collect();
    assert_eq!(
        told,
        [
            json!([0, "look_up", "{\"order\":\"o-9\"}"]),
            json!({"result": "{\"order\":\"o-9\",\"total\":42.5}", "of": 0}),
            json!([1, "refund", "{\"amount\":5}"]),
            json!({"result": "the call needs the approval of a human: this client cannot ask for approvals", "of": 1}),
            json!([2, "pick", "{\"of\":\"a\"}"]),
            json!("tool_calls"),
        ]
    );
    // Visible agent calls are not part of the history: the client answers its own call and continues.
    let own = json!({"id": calls[2], "type": "function", "function": {"name": "pick", "arguments": "{}"}});
    chat.messages.push(json!({"role": "assistant", "content": "Let me look.", "tool_calls": [own]}));
    chat.messages.push(json!({"role": "tool", "tool_call_id": calls[2], "content": "red"}));
    let choice = chat.next_choice().await;
    assert_eq!(choice["message"]["content"], "Done.");
    assert_eq!(served.host.conversations().await.unwrap().len(), 1);

    chat.stream = false;
    let (status, words) = rejection(served.post("/v1/chat/completions", &asking(&chat)).await).await;
    assert!(status == 400 && words.contains("`show_tools` requires `stream: true`"), "{words}");
}

#[tokio::test]
async fn calls_needing_approval_are_declined() {
    let model = scripted([
        Rule::new().user("refund").call_tool("refund", json!({"amount": 10})),
        Rule::new().tool_result("refund").result_failed(true).say("No refund: {{ result.message }}"),
    ]);
    let served = serve(&clerk_persona(), model).await;
    let choice = ChatClient::new(&served, "clerk", true).say("refund please").await;
    let said = choice["message"]["content"].as_str().unwrap();
    assert!(said.contains("this client cannot ask for approvals"), "{said}");
}

#[tokio::test]
async fn approval_in_delegated_agent_is_declined() {
    let refund =
        tool("refund").approval("Refund?").task(&task("Refund").step(mock().returns(json!({"done": true}))));
    let cashier = persona("Cashier").system("CASH").tool(refund);
    let manager = persona("Manager").system("MANAGE").tool(tool("ask").agent(&cashier));
    let model = scripted([
        Rule::new().agent("manager").call(1).call_tool("ask", json!({})),
        Rule::new().agent("cashier").call(1).call_tool("refund", json!({})),
        Rule::new().agent("cashier").call(2).result_failed(true).say("Not allowed: {{ result.message }}"),
        Rule::new().agent("manager").call(2).say("The cashier says: {{ result.response }}"),
    ]);
    let served = serve(&manager, model).await;
    let choice = ChatClient::new(&served, "manager", false).say("refund please").await;
    let said = choice["message"]["content"].as_str().unwrap();
    assert!(
        said.contains("approvals are not available to agents that run in a separate conversation"),
        "{said}"
    );
}

#[tokio::test]
async fn external_history_reaches_model() {
    let model = scripted([
        Rule::new()
            .turn(1)
            .user("Who")
            .system("(?s)Be brief.*Earlier messages of this conversation.*My name is Ada")
            .say("Ada."),
        Rule::new()
            .turn(2)
            .system("(?s)Be brief.*Earlier messages of this conversation.*My name is Ada")
            .say("Still Ada."),
    ]);
    let served = serve(&persona("Helper"), model).await;
    let mut chat = ChatClient::new(&served, "helper", false);
    chat.messages = vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": "My name is Ada"}),
        json!({"role": "assistant", "content": "Noted."}),
    ];
    chat.say("Who am I?").await;
    chat.say("And now?").await;
    assert_eq!(chat.messages.last().unwrap()["content"], "Still Ada.");
    assert_eq!(served.host.conversations().await.unwrap().len(), 1);
}

#[tokio::test]
async fn branched_history_becomes_another_conversation() {
    let model = scripted([
        Rule::new().turn(1).user("^one$").say("First."),
        Rule::new().turn(2).user("^two$").say("Second."),
        Rule::new().turn(1).user("^zwei$").system("First").say("Zweite."),
    ]);
    let served = serve(&persona("Helper"), model).await;
    let mut chat = ChatClient::new(&served, "helper", false);
    chat.say("one").await;
    let before = chat.messages.clone();
    chat.say("two").await;
    chat.messages = before;
    let choice = chat.say("zwei").await;
    assert_eq!(choice["message"]["content"], "Zweite.");
    assert_eq!(served.host.conversations().await.unwrap().len(), 2);
}

#[tokio::test]
async fn unknown_call_results_are_sent_with_question() {
    let model = scripted([Rule::new()
        .turn(1)
        .user("which color")
        .system("Earlier messages of this conversation.*c1.*pick.*from.*paints.*tool_call_id.*c1.*red")
        .say("Red it is.")]);
    let served = serve(&persona("Helper"), model).await;
    let mut chat = ChatClient::new(&served, "helper", false);
    let function = json!({"name": "pick", "arguments": "{\"from\":\"paints\"}"});
    let call = json!({"id": "c1", "type": "function", "function": function});
    chat.messages = vec![
        json!({"role": "user", "content": "which color"}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "red"}),
    ];
    let choice = chat.next_choice().await;
    assert_eq!(choice["message"]["content"], "Red it is.");
}

#[tokio::test]
async fn failure_is_an_error_and_can_be_retried() {
    for stream in [false, true] {
        let model = scripted([
            Rule::new().turn(1).say("Hello."),
            Rule::new().turn(2).fail_after(ModelErrorKind::Auth, "I would"),
            Rule::new().turn(3).say("Now it works."),
        ]);
        let served = serve(&persona("Helper"), model).await;
        let mut chat = ChatClient::new(&served, "helper", stream);
        chat.say("hi").await;
        chat.messages.push(json!({"role": "user", "content": "more"}));
        let response = served.post("/v1/chat/completions", &chat.body()).await;
        match stream {
            false => {
                assert_eq!(response.headers()["x-should-retry"], "false");
                let (status, words) = rejection(response).await;
                assert_eq!(status, 500);
                assert_eq!(words, "rule 2 simulates a failure: auth");
            }
            true => {
                let chunks = chunks(&text(response).await);
                let error = &chunks.last().unwrap()["error"];
                assert_eq!(error["message"], "rule 2 simulates a failure: auth");
                assert_eq!((&error["type"], &error["code"]), (&json!("server_error"), &json!("LLM_FAILED")));
            }
        }
        let choice = chat.next_choice().await;
        assert_eq!(choice["message"]["content"], "Now it works.");
    }
}

#[tokio::test]
async fn restarted_reply() {
    let same = [
        OutputPiece::Text("Hello "),
        OutputPiece::Restart,
        OutputPiece::Text("Hello "),
        OutputPiece::Text("you"),
        OutputPiece::Done,
    ];
    let other =
        [OutputPiece::Text("Hello "), OutputPiece::Restart, OutputPiece::Text("Good day"), OutputPiece::Done];
    for (pieces, stream, said) in [
        (same.clone(), false, "Hello you"),
        (same, true, "Hello you"),
        (other.clone().into_pieces(), false, "Good day"),
    ] {
        let (teller, model) = controlled_model();
        teller.emit(pieces);
        let served = serve(&persona("Helper"), model).await;
        let choice = ChatClient::new(&served, "helper", stream).say("hi").await;
        assert_eq!(choice["message"]["content"], said, "stream: {stream}");
    }
    // Sent text cannot be taken back: the answer ends with an error.
    let (teller, model) = controlled_model();
    let served = serve(&persona("Helper"), model).await;
    let mut chat = ChatClient::new(&served, "helper", true);
    chat.messages = vec![json!({"role": "user", "content": "hi"})];
    let mut response = served.post("/v1/chat/completions", &chat.body()).await;
    teller.emit([OutputPiece::Text("Hello ")]);
    let mut stream = read_until(&mut response, "Hello ").await;
    teller.emit(other[1..].to_vec());
    stream.push_str(&text(response).await);
    assert!(!stream.contains("Good day"), "{stream}");
    let error = chunks(&stream).last().unwrap()["error"].clone();
    assert!(
        error["message"].as_str().unwrap().contains("was interrupted after a part of it was sent"),
        "{error}"
    );
}

/// Converts pieces into a fixed-length array.
trait IntoPieces {
    fn into_pieces(self) -> [OutputPiece; 5];
}

impl IntoPieces for [OutputPiece; 4] {
    fn into_pieces(self) -> [OutputPiece; 5] {
        let [a, b, c, d] = self;
        [a, b, c, OutputPiece::Text(""), d]
    }
}

#[tokio::test]
async fn reports_finish_reason() {
    let model = scripted([Rule::new().say("And so").stop(StopReason::MaxTokens)]);
    let served = serve(&persona("Helper"), model).await;
    let choice = ChatClient::new(&served, "helper", false).say("hi").await;
    assert_eq!(choice["finish_reason"], "length");
}

#[tokio::test]
async fn rejects_unsupported_requests() {
    let served = serve(&clerk_persona(), scripted([Rule::new().say("Yes.").always()])).await;
    let good = || json!({"model": "clerk", "messages": [{"role": "user", "content": "hi"}]});
    let with = |member: &str, value: Value| {
        let mut body = good();
        body[member] = value;
        body
    };
    for (body, status, says) in [
        (json!({}), 400, "missing field `model`"),
        (with("model", json!("gpt-9")), 404, "unknown agent \"gpt-9\"; available agents: clerk"),
        (with("messages", json!([])), 400, "the last message"),
        (with("messages", json!([{"role": "assistant", "content": "hi"}])), 400, "the last message"),
        (with("messages", json!([{"role": "user", "content": " \n"}])), 400, "messages[0].content"),
        (with("messages", json!([{"role": "user", "content": null}])), 400, "has no text"),
        (with("messages", json!([{"role": "robot", "content": "hi"}])), 400, "unknown role \"robot\""),
        (with("messages", json!([{"role": "tool", "content": "hi"}])), 400, "tool_call_id"),
        (
            with(
                "messages",
                json!([
                    {"role": "user", "content": "hi"},
                    {"role": "tool", "tool_call_id": "zz", "content": "red"},
                ]),
            ),
            400,
            "messages[1]: no assistant message before it has the tool call \"zz\"",
        ),
        (
            with("messages", json!([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])),
            400,
            "only parts of type `text`, got image_url",
        ),
        (with("n", json!(2)), 400, "`n` must be 1"),
        (with("tool_choice", json!("required")), 400, "tool_choice"),
        (with("response_format", json!({"type": "json_object"})), 400, "response_format"),
        (with("functions", json!([])), 400, "use `tools`"),
        (with("logprobs", json!(true)), 400, "log probabilities"),
        (with("modalities", json!(["audio"])), 400, "text only"),
        (with("tools", json!([{"type": "custom"}])), 400, "of type `function`"),
        (
            with("tools", json!([{"type": "function", "function": {"name": "look_up"}}])),
            400,
            "the agent already has a tool named \"look_up\"",
        ),
    ] {
        let (found, words) = rejection(served.post("/v1/chat/completions", &body).await).await;
        assert_eq!(found, status, "{words}");
        assert!(words.contains(says), "{says} in {words}");
    }
    let mut body = with("temperature", json!(0.5));
    body["max_tokens"] = json!(5);
    body["response_format"] = json!({"type": "text"});
    body["tool_choice"] = json!("auto");
    body["n"] = json!(1);
    assert_eq!(served.post("/v1/chat/completions", &body).await.status(), 200);
    assert_eq!(served.host.conversations().await.unwrap().len(), 1);
}

#[tokio::test]
async fn client_disconnect_cancels_turn() {
    let (teller, model) = controlled_model();
    let served = serve(&persona("Helper"), model).await;
    let mut chat = ChatClient::new(&served, "helper", false);
    chat.messages = vec![json!({"role": "user", "content": "hi"})];
    let asked = tokio::spawn(served.request("/v1/chat/completions", chat.body().to_string()).send());
    let idle = teller.listeners();
    teller.wait_for_calls(idle + 1).await;
    asked.abort();
    teller.wait_for_cancellation(idle).await;
    teller.emit([OutputPiece::Text("Hello"), OutputPiece::Done]);
    let choice = chat.next_choice().await;
    assert_eq!(choice["message"]["content"], "Hello");
}
