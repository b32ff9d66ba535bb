//! Tool calls of agents whose protocol shows none: the models that the test serves show them.

use std::sync::Arc;
use std::time::Duration;

use hotseat_testkit::completions::{ChatCompletion, chunk, complete_reply, text_reply};
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, McpClient, ModelClient, post, post_within};
use serde_json::{Value, json};

use crate::common::http_agents::{
    MODEL_HEADER, asked_text, bank_client, bank_target, http_agent, http_target, model_client, model_target,
};
use crate::common::{Project, TEST_TIMEOUT, TestRun};

/// A model that refunds an order with a tool before it answers.
const REFUNDS: &str = "models:
  main:
    rules:
      - when: { user: 'order (?<order>\\S+)', offered: refund }
        reply: { tool_calls: [{ name: refund, arguments: { order: '{{ order }}' } }] }
      - when: { tool_result: { tool: refund } }
        reply: 'Refunded {{ results.refund.amount }}.'
      - reply: 'Hello.'
";

/// A case with these assertions.
fn case(name: &str, text: &str, asserts: &str) -> String {
    format!("name: {name}\nturns: [{{ user: '{text}', assert: {asserts} }}]\n")
}

/// An agent that carries out the calls of its model, and shows only its answer.
fn agent() -> FakeAgent {
    FakeAgent::start(|request: &FakeRequest| {
        let text = asked_text(request);
        let Some(address) = request.header("x-model") else {
            return FakeReply::json(200, &json!({"reply": "Hi."}));
        };
        let model = ModelClient::new(address);
        let (answer, _) = converse(&model, &text, |arguments| refund(request, arguments));
        FakeReply::json(200, &json!({"reply": answer}))
    })
}

/// Refunds an order, at an MCP server if the request has its address.
fn refund(request: &FakeRequest, arguments: &Value) -> Value {
    match request.header("x-bank") {
        Some(address) => McpClient::new(address).call("refund", arguments).expect("an answer"),
        None => json!({"amount": 42}),
    }
}

/// Lets the model call the tool until it answers. Returns the answer and the arguments of the calls.
fn converse(model: &ModelClient, text: &str, tool: impl Fn(&Value) -> Value) -> (String, Vec<Value>) {
    let mut messages = vec![json!({"role": "user", "content": text})];
    let mut called = Vec::new();
    for _ in 0..5 {
        let reply = model.call_with_retries(&messages, &["refund"]).expect("a reply");
        let calls = reply["tool_calls"].as_array().cloned().unwrap_or_default();
        if calls.is_empty() {
            return (reply["content"].as_str().unwrap_or_default().to_string(), called);
        }
        messages.push(reply);
        for call in calls {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            let arguments: Value = serde_json::from_str(arguments).expect("arguments");
            let content = tool(&arguments).to_string();
            called.push(arguments);
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": content}));
        }
    }
    panic!("the model calls tools without end")
}

fn run(models: &str, suite: &str) -> TestRun {
    let agent = agent();
    Project::with_config(&(model_target(&agent) + models)).suite("a", suite).test(&[])
}

#[track_caller]
fn assert_unseen(run: &TestRun, name: &str) {
    let failure = run.failure(name);
    assert_eq!(failure["kind"], "test_error", "{failure:#}");
    let message = failure["message"].as_str().expect("a message");
    let words =
        "the agent's tool calls are not visible: the agent used no MCP server and no model of the test";
    assert!(message.starts_with(words), "{message}");
}

#[test]
fn assertions_see_the_calls_of_the_model_and_the_results_of_the_agent() {
    let seen = "[{ tools: { require: [{ name: refund, count: { exact: 1 } }] } }, { type: tool_called, name: refund, arguments: { order: o-7 } }, { type: tool_result, name: refund, result: { amount: 42 } }]";
    let suite = [
        case("seen", "order o-7", seen),
        case("forbidden", "order o-7", "{ tools: { forbid: [refund] } }"),
        case("not called", "hello", "{ tools: { forbid: [refund] } }"),
        case("missing", "hello", "{ tools: { require: [refund] } }"),
    ];
    let run = run(REFUNDS, &suite.join("---\n"));
    for name in ["seen", "not called"] {
        assert_eq!(run.case(name)["status"], "passed", "{:#}", run.case(name));
    }
    for name in ["forbidden", "missing"] {
        assert_eq!(run.failure(name)["kind"], "assertion", "{:#}", run.failure(name));
    }
    let call = &run.case("seen")["turns"][0]["tool_calls"][0];
    assert_eq!((&call["name"], &call["args"]), (&json!("refund"), &json!({"order": "o-7"})), "{call:#}");
    assert_eq!(call["seen_by"], json!(["model"]), "{call:#}");
}

#[test]
fn scripts_see_calls_once_the_agent_uses_a_model() {
    let script = "import { it, user, expect, conversation } from 'hotseat';
    it('seen', () => {
      user.says('order o-7');
      expect(conversation.calledTool('refund')).toBe(1);
      expect(conversation.turns[0].hasToolCall('refund')).toBe(true);
    });
    it('none', () => { user.says('hello'); expect(conversation.allToolCalls.length).toBe(0); });\n";
    let agent = agent();
    let project = |headers: &str| {
        Project::with_config(&(http_target(&agent, headers) + REFUNDS)).file("a_test.ts", script)
    };
    project(MODEL_HEADER).test(&[]).assert_all_passed();
    let tested = project("").test(&[]);
    for case in ["seen", "none"] {
        let words = ["the agent used no MCP server and no model of the test"];
        tested.assert_failure(case, "script_error", &words);
    }
}

#[test]
fn a_repeated_request_is_no_second_call() {
    let faults = "    faults: [{ nth: 2, do: overloaded }]\n";
    let once = "{ tools: { require: [{ name: refund, count: { exact: 1 } }] } }";
    run(&(REFUNDS.to_string() + faults), &case("a", "order o-7", once)).assert_all_passed();
}

#[test]
fn calls_of_relayed_and_replayed_models_are_seen() {
    let provider = FakeAgent::start(|request: &FakeRequest| {
        let body = request.json();
        let is_first = body["messages"].as_array().is_some_and(|messages| messages.len() == 1);
        let function = json!({"name": "refund", "arguments": "{\"order\":\"o-7\"}"});
        let call = json!({"index": 0, "id": "call_0", "type": "function", "function": function});
        let (message, finish) = match is_first {
            true => (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls"),
            false => (json!({"role": "assistant", "content": "Done."}), "stop"),
        };
        let choice = json!({"index": 0, "message": message, "finish_reason": finish});
        FakeReply::json(200, &json!({"id": "chatcmpl-1", "choices": [choice]}))
    });
    let agent = agent();
    let relayed = format!("models: {{ main: {{ type: relay, url: '{provider}', record: main.jsonl }} }}\n");
    let replayed = "models: { main: { type: replay, file: main.jsonl } }\n";
    let asserts = "[{ tools: { require: [{ name: refund, count: { exact: 1 } }], forbid: [pay] } }, { type: tool_result, name: refund, result: { amount: 42 } }]";
    // Providers may use the same id in every reply.
    let suite = format!(
        "name: a\nturns:\n  - {{ user: order o-7, assert: {asserts} }}\n  - {{ user: order o-7, assert: {asserts} }}\n"
    );
    let recorded = Project::with_config(&(model_target(&agent) + &relayed)).suite("a", &suite);
    recorded.test(&[]).assert_all_passed();
    let recording = std::fs::read_to_string(recorded.workspace.path("main.jsonl")).unwrap();
    drop(provider);
    let project = Project::with_config(&(model_target(&agent) + replayed));
    project.suite("a", &suite).file("main.jsonl", &recording).test(&[]).assert_all_passed();
}

/// Runs a case that forbids refunds. The agent posts one request to each of these paths of a relayed model, which blanks separate,
/// and leaves after a pause.
fn run_relayed(paths: &'static str, provider: &FakeAgent) -> TestRun {
    run_relayed_with(paths, provider, "{ tools: { forbid: [refund] } }")
}

/// Runs a case as [`run_relayed`] does, with these assertions.
fn run_relayed_with(paths: &'static str, provider: &FakeAgent, asserts: &str) -> TestRun {
    let agent = http_agent(move |request| {
        let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "hello"}]});
        for path in paths.split(' ') {
            let url = format!("{}/{path}", request.header("x-model").expect("the address of the model"));
            let _ = post_within(Duration::from_millis(300), &url, &[], &body.to_string());
        }
        "Done."
    });
    let relayed = format!("models: {{ main: {{ type: relay, url: '{provider}' }} }}\n");
    let suite = case("a", "hello", asserts);
    Project::with_config(&(model_target(&agent) + &relayed)).suite("a", &suite).test(&[])
}

/// A call of `refund` in a chat completion.
fn refund_call() -> Value {
    json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "refund", "arguments": "{}"}})
}

#[test]
fn a_provider_that_breaks_its_protocol_hides_the_calls() {
    let choice =
        |index: usize, message: Value| json!({"index": index, "message": message, "finish_reason": "stop"});
    let said = json!({"role": "assistant", "content": "Done."});
    let output = |kind: &str| {
        let message = json!({"type": "message", "content": [{"type": "output_text", "text": "Done."}]});
        let call = json!({"type": kind, "call_id": "c1", "name": "refund", "input": "", "arguments": ""});
        json!({"status": "completed", "output": [call, message]})
    };
    let replies = [
        (
            "chat/completions",
            json!({"choices": [choice(0, json!({"content": "Done.", "tool_calls": [{"id": "c1"}]}))]}),
            "a tool call has no name",
        ),
        (
            "chat/completions",
            json!({"choices": [choice(0, said), choice(1, json!({"tool_calls": [refund_call()]}))]}),
            "it has more than one choice",
        ),
        (
            "messages",
            json!({"content": [{"type": "mcp_tool_use", "id": "c1", "name": "refund", "input": {}}], "stop_reason": "end_turn"}),
            "it has a `mcp_tool_use`",
        ),
        (
            "chat/completions",
            json!({"choices": [choice(0, json!({"tool_calls": [refund_call()]}))], "error": {"message": "busy"}}),
            "it has an error and tool calls",
        ),
        (
            "chat/completions",
            json!([{"choices": [choice(0, json!({"tool_calls": [refund_call()]}))]}]),
            "it is neither a JSON object nor a stream of events",
        ),
        (
            "chat/completions",
            json!({"choices": [choice(0, json!({"content": [{"type": "tool_use", "name": "refund", "input": {}}]}))]}),
            "it has a `tool_use`",
        ),
        (
            "chat/completions",
            json!({"choices": [{"delta": {"content": "Done."}, "message": {"tool_calls": [refund_call()]}, "finish_reason": "stop"}]}),
            "it has a `delta` and a `message` with tool calls",
        ),
        (
            "chat/completions",
            json!({"choices": [{"message": {"content": "Done."}, "tool_calls": [refund_call()], "finish_reason": "stop"}]}),
            "it has tool calls outside of the `tool_calls` of its message",
        ),
        ("responses", output("custom_tool_call"), "it has a `custom_tool_call`"),
        ("responses", output("mcp_call"), "it has a `mcp_call`"),
        ("responses", json!({"status": "queued", "output": []}), "replies in the background are not read"),
    ];
    for (path, reply, words) in replies {
        let provider = FakeAgent::start(move |_: &FakeRequest| FakeReply::json(200, &reply));
        let run = run_relayed(path, &provider);
        run.assert_failure("a", "test_error", &["the agent's tool calls are not visible: ", words]);
    }
    // The provider carries out calls of its own tools.
    let provider = FakeAgent::start(move |_: &FakeRequest| FakeReply::json(200, &output("web_search_call")));
    run_relayed("responses", &provider).assert_all_passed();
}

/// Frameworks can carry out a tool before they ask the model.
#[test]
fn calls_that_no_model_decided_on_are_noted() {
    let agent = http_agent(|request| {
        let model = model_client(request);
        let call = |id: &str, tool: &str| json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": {"name": tool, "arguments": "{}"}}]});
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "done"});
        let user = json!({"role": "user", "content": "hello"});
        let messages = match request.json()["text"].as_str() {
            // An example in the prompt.
            Some("example") => vec![user.clone(), call("c1", "lookup"), result("c1"), user],
            _ => vec![user, call("c1", "lookup"), result("c1"), call("c2", "delete"), result("c2")],
        };
        for _ in 0..2 {
            model.call(&messages, &["refund"]).expect("a reply");
        }
        "Done."
    });
    let asserts = "{ tools: { forbid: [delete] } }";
    let suite = case("forced", "forced", asserts) + "---\n" + &case("example", "example", asserts);
    let config = model_target(&agent) + "models: { main: { rules: [{ use: always, reply: Hi. }] } }\n";
    let run = Project::with_config(&config).suite("a", &suite).test(&[]);
    let notes = run.case("forced")["turns"][0]["notes"].to_string();
    for tool in ["`lookup` (`c1`)", "`delete` (`c2`)"] {
        let words = format!(
            "the agent sent a model the result of a call of {tool}, which no reply of a model contains"
        );
        assert_eq!(notes.matches(&words).count(), 1, "{notes}");
    }
    let notes = run.case("example")["turns"][0]["notes"].to_string();
    assert!(!notes.contains("which no reply"), "{notes}");
}

/// A provider that answers chat completions without calls, and everything else with a call.
fn provider_of_two_protocols() -> FakeAgent {
    FakeAgent::start(|request: &FakeRequest| {
        let message = match request.path.as_str() {
            "/chat/completions" => json!({"role": "assistant", "content": "Done."}),
            _ => json!({"role": "assistant", "tool_calls": [refund_call()]}),
        };
        FakeReply::json(200, &json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    })
}

#[test]
fn answers_in_other_protocols_hide_calls() {
    let provider = provider_of_two_protocols();
    for (paths, path) in [
        ("v1beta/models/m:generateContent", "`v1beta/models/m:generateContent`"),
        ("chat/completions v1beta/models/m:generateContent", "`v1beta/models/m:generateContent`"),
        ("chat/completions api/chat", "`api/chat`"),
    ] {
        let words =
            ["the agent's tool calls are not visible: ", path, "a protocol that Hotseat does not read"];
        run_relayed(paths, &provider).assert_failure("a", "test_error", &words);
        let budget = run_relayed_with(paths, &provider, "{ budget: { max_tokens: 100000 } }");
        assert_eq!(budget.failure("a")["kind"], "usage_error", "{:#}", budget.failure("a"));
    }
    run_relayed("chat/completions v1/embeddings messages/count_tokens", &provider).assert_all_passed();
}

#[test]
fn the_end_of_a_path_tells_the_protocol() {
    let provider = provider_of_two_protocols();
    for path in
        ["openai/deployments/gpt/chat/completions?api-version=2024-10-21", "v1/engines/m/chat/completions"]
    {
        run_relayed(path, &provider).assert_failure("a", "assertion", &["refund"]);
    }
}

#[test]
fn a_call_behind_a_byte_order_mark_is_seen() {
    let reply = json!({"choices": [{"index": 0, "message": {"tool_calls": [refund_call()]}, "finish_reason": "tool_calls"}]});
    let provider = FakeAgent::start(move |_: &FakeRequest| FakeReply::text(200, &format!("\u{feff}{reply}")));
    run_relayed("chat/completions", &provider).assert_failure("a", "assertion", &["refund"]);
}

/// Arguments as text, with a repeated key or an integer beyond 64 bits, and as an object in another protocol.
#[test]
fn arguments_of_a_relayed_model_are_read_without_loss() {
    let chat = |arguments: &str| {
        let call = json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "refund", "arguments": arguments}});
        json!({"choices": [{"index": 0, "message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]})
            .to_string()
    };
    let block =
        r#"{"type": "tool_use", "id": "c1", "name": "refund", "input": {"order": 123456789012345678901}}"#;
    let message = format!(r#"{{"content": [{block}], "stop_reason": "tool_use"}}"#);
    let long = chat(r#"{"order": 123456789012345678901}"#);
    let run = |path: &'static str, reply: String, order: &str| {
        let provider = FakeAgent::start(move |_: &FakeRequest| FakeReply::text(200, &reply));
        let asserts =
            format!("{{ tools: {{ require: [{{ name: refund, args_match: {{ order: '^{order}$' }} }}] }} }}");
        run_relayed_with(path, &provider, &asserts)
    };
    run("chat/completions", long, "123456789012345678901").assert_all_passed();
    run("messages", message, "123456789012345678901").assert_all_passed();
}

/// They decide no check of arguments, whether it is met by their text or by what is missing in it.
#[test]
fn invalid_arguments_of_a_relayed_model_decide_nothing() {
    let asserts = [
        "{ tools: { require: [{ name: refund, args_match: { order: '2' } }] } }",
        "{ tools: { require: [{ name: refund, args_not_match: { order: '9' } }] } }",
        "{ tools: { forbid_calls: [{ name: refund, args_match: { order: '9' } }] } }",
        "[{ type: tool_called, name: refund, arguments: { order: 9 }, negate: true }]",
    ];
    for (arguments, reason) in [
        (r#"{"order": 1, "order": 2}"#, "tool_calls"),
        (r#"{"order": 2,"#, "tool_calls"),
        ("order 2", "tool_calls"),
        ("", "length"),
    ] {
        let function = json!({"name": "refund", "arguments": arguments});
        let message =
            json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]});
        let reply = json!({"choices": [{"index": 0, "message": message, "finish_reason": reason}]});
        let provider = FakeAgent::start(move |_: &FakeRequest| FakeReply::json(200, &reply));
        for asserts in asserts {
            let run = run_relayed_with("chat/completions", &provider, asserts);
            assert_eq!(run.case("a")["status"], "failed", "{arguments} {asserts}: {}", run.output);
            assert_eq!(run.failure("a")["fault"], "agent", "{arguments} {asserts}");
        }
    }
}

#[test]
fn a_call_is_seen_although_the_agent_leaves_before_the_end_of_the_reply() {
    let chat = || FakeReply::sse().event(chunk(json!({"tool_calls": [refund_call()]}), None)).hang();
    let item = json!({"type": "function_call", "call_id": "c1", "name": "refund", "arguments": "{}"});
    let done = json!({"type": "response.output_item.done", "item": item});
    let provider = FakeAgent::start(move |request: &FakeRequest| match request.path.ends_with("responses") {
        true => FakeReply::sse().event(done.clone()).hang(),
        false => chat(),
    });
    for path in ["chat/completions", "responses"] {
        let run = run_relayed(path, &provider);
        run.assert_failure("a", "assertion", &["refund"]);
    }
    let early = FakeAgent::start(|_: &FakeRequest| {
        FakeReply::sse().event(chunk(json!({"content": "One moment"}), None)).hang()
    });
    run_relayed("chat/completions", &early).assert_all_passed();
}

#[test]
fn a_reply_for_which_the_agent_does_not_wait_hides_its_calls() {
    let run = |tools: &'static [&'static str]| {
        let provider = Arc::new(FakeAgent::start(|_: &FakeRequest| FakeReply::never()));
        let asked = provider.clone();
        let agent = http_agent(move |request| {
            let model = model_client(request);
            std::thread::spawn(move || model.call(&[json!({"role": "user", "content": "hello"})], tools));
            asked.wait_for_requests(1, TEST_TIMEOUT);
            "Done."
        });
        let relayed = format!("models: {{ main: {{ type: relay, url: '{provider}' }} }}\n");
        let suite = case("a", "hello", "{ tools: { forbid: [refund] } }");
        Project::with_config(&(model_target(&agent) + &relayed)).suite("a", &suite).test(&[])
    };
    let words = ["the agent's tool calls are not visible: ", "the turn ended before the model replied"];
    run(&["refund"]).assert_failure("a", "test_error", &words);
    // A model without tools, for example one that finds a title, can call none.
    run(&[]).assert_all_passed();
}

#[test]
fn a_call_in_a_broken_reply_counts_once_the_agent_sends_its_result() {
    let provider = FakeAgent::start(|request: &FakeRequest| {
        let is_first = request.json()["messages"].as_array().is_some_and(|messages| messages.len() == 1);
        match is_first {
            true => FakeReply::sse().event(chunk(json!({"tool_calls": [refund_call()]}), None)),
            false => ChatCompletion::new().text("Done.").finish("stop").streamed(),
        }
    });
    let agent = http_agent(|request| {
        let url =
            format!("{}/chat/completions", request.header("x-model").expect("the address of the model"));
        let mut messages = vec![json!({"role": "user", "content": "hello"})];
        let is_naive = request.json()["text"] == "naive";
        for _ in 0..2 {
            let body = json!({"model": "m", "stream": true, "messages": messages}).to_string();
            post(&url, &[], &body).expect("an answer");
            if is_naive {
                messages.push(json!({"role": "assistant", "content": null, "tool_calls": [refund_call()]}));
                messages.push(json!({"role": "tool", "tool_call_id": "c1", "content": "refunded"}));
            }
        }
        "Done."
    });
    let relayed = format!("models: {{ main: {{ type: relay, url: '{provider}' }} }}\n");
    let asserts = "{ tools: { forbid: [refund] } }";
    let suite = case("naive", "naive", asserts) + "---\n" + &case("careful", "careful", asserts);
    let run = Project::with_config(&(model_target(&agent) + &relayed)).suite("a", &suite).test(&[]);
    run.assert_failure("naive", "assertion", &["1 call: turn 1: refund({}) → refunded"]);
    assert_eq!(run.case("careful")["status"], "passed", "{:#}", run.case("careful"));
}

/// Streams that a client may take for complete, although their protocol ends them otherwise.
#[test]
fn streams_that_do_not_end_as_their_protocol_demands_hide_calls() {
    let item = |arguments: &str| json!({"type": "function_call", "id": "f1", "call_id": "c1", "name": "refund", "arguments": arguments});
    let added = json!({"type": "response.output_item.added", "output_index": 0, "item": item("")});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item("{}")});
    let arguments = json!({"type": "response.function_call_arguments.done", "item_id": "f1", "output_index": 0, "arguments": "{}"});
    let end = |output: Value| json!({"type": "response.completed", "response": {"status": "completed", "output": output}});
    let start =
        |content: Value| json!({"type": "message_start", "message": {"type": "message", "content": content}});
    let stop = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}});
    let block = json!({"type": "tool_use", "id": "c1", "name": "refund", "input": {}});
    let whole = json!({"type": "content_block_start", "index": 0, "content_block": block});
    let last = json!({"type": "message_stop"});
    let end_turn = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}});
    let said = chunk(json!({"content": "Done."}), Some("stop"));
    let late = "it has a tool call after its end";
    let unended = "and the agent may have carried out its calls";
    let streams = [
        ("chat/completions", vec![chunk(json!({"tool_calls": [refund_call()]}), None)], unended),
        ("responses", vec![done.clone()], unended),
        ("responses", vec![added.clone(), arguments.clone()], unended),
        ("messages", vec![start(json!([])), whole.clone()], unended),
        (
            "responses",
            vec![added.clone(), arguments.clone(), end(json!([]))],
            "does not repeat all calls of the stream",
        ),
        ("responses", vec![added.clone(), end(json!([]))], "does not repeat all calls of the stream"),
        ("responses", vec![end(json!([])), done.clone()], late),
        ("responses", vec![end(json!([])), end(json!([item("{}")]))], late),
        ("messages", vec![start(json!([block])), stop.clone()], "its start has a `tool_use`"),
        (
            "messages",
            vec![start(json!([])), stop.clone()],
            "ends with stop_reason tool_use but has no tool call",
        ),
        (
            "messages",
            vec![start(json!([])), end_turn.clone(), last.clone(), whole.clone(), stop.clone()],
            late,
        ),
        (
            "messages",
            vec![
                start(json!([])),
                end_turn,
                last.clone(),
                start(json!([])),
                whole.clone(),
                stop.clone(),
                last,
            ],
            late,
        ),
        (
            "chat/completions",
            vec![said.clone(), json!("[DONE]"), chunk(json!({"tool_calls": [refund_call()]}), None)],
            late,
        ),
        (
            "chat/completions",
            vec![said, json!("[DONE]"), json!({"choices": [{"message": {"tool_calls": [refund_call()]}}]})],
            late,
        ),
        ("chat/completions", vec![], "the answer of the provider is empty"),
    ];
    for (path, events, words) in streams {
        let provider = FakeAgent::start(move |_: &FakeRequest| {
            events.iter().fold(FakeReply::sse().bytes(": ping\n\n"), |reply, event| match event.as_str() {
                Some(text) => reply.bytes(format!("data: {text}\n\n")),
                None => reply.event(event.clone()),
            })
        });
        let run = run_relayed(path, &provider);
        run.assert_failure("a", "test_error", &["the agent's tool calls are not visible: ", words]);
    }
    // The events of a call are one call.
    let events = [added, arguments, done, end(json!([item("{}")]))];
    let provider = FakeAgent::start(move |_: &FakeRequest| {
        events.iter().fold(FakeReply::sse(), |reply, event| reply.event(event.clone()))
    });
    run_relayed("responses", &provider).assert_failure("a", "assertion", &["1 call: turn 1: refund({})"]);
    // The text of a stream without an end hides no call.
    let provider =
        FakeAgent::start(|_: &FakeRequest| FakeReply::sse().event(chunk(json!({"content": "Done."}), None)));
    run_relayed("chat/completions", &provider).assert_all_passed();
}

/// Clients that read line by line find the calls in them.
#[test]
fn streams_without_empty_lines_hide_calls() {
    let said = |finish| chunk(json!({"content": "Done."}), finish);
    let call = chunk(json!({"tool_calls": [refund_call()]}), None);
    let cut = &call.to_string()[..60];
    for stream in [
        format!("data: {}\ndata: {call}\ndata: [DONE]\n", said(None)),
        format!("data: {}\ndata: {call}\n", said(None)),
        format!("data: {}\ndata: {call}\ndata: [DONE]\n\n", said(None)),
        format!("data: {}\n\ndata: {cut}", said(None)),
        format!("data: {}\n\ndata: {cut}", said(Some("stop"))),
        format!("data: {}\n\ndata: [DONE]\n\ndata: {call}\ndata: {call}\n", said(Some("stop"))),
    ] {
        let sent = stream.clone();
        let provider = FakeAgent::start(move |_: &FakeRequest| FakeReply::sse().bytes(sent.clone()));
        let run = run_relayed("chat/completions", &provider);
        assert_eq!(run.case("a")["status"], "failed", "{stream}");
        run.assert_failure("a", "test_error", &["the agent's tool calls are not visible: "]);
    }
    // The agent leaves although the stream has not ended.
    let stream = format!("data: {}\ndata: {call}\ndata: [DONE]\n", said(None));
    let provider = FakeAgent::start(move |_: &FakeRequest| FakeReply::sse().bytes(stream.clone()).hang());
    let words = ["the agent's tool calls are not visible: ", "closed the stream after an incomplete event"];
    run_relayed("chat/completions", &provider).assert_failure("a", "test_error", &words);
    // A line that the connection cuts is no event that anyone reads.
    let stream = format!("data: {}\n\ndata: {cut}", said(None));
    let provider = FakeAgent::start(move |_: &FakeRequest| FakeReply::sse().bytes(stream.clone()).hang());
    run_relayed("chat/completions", &provider).assert_all_passed();
}

#[test]
fn an_agent_that_uses_no_model_has_no_visible_calls() {
    let agent = agent();
    let asserts = "{ tools: { forbid: [refund] } }";
    let suite = [
        case("in a turn", "hello", asserts),
        format!("name: at the end\nturns: [{{ user: hello }}]\nassert: {asserts}\n"),
    ];
    let script = r#"
import { it, user, agent, expect } from "hotseat";
it("in a script", () => { user.says("hello"); expect(agent).not.toCallTool("refund"); });
"#;
    let project = Project::with_config(&(http_target(&agent, "") + REFUNDS))
        .suite("a", &suite.join("---\n"))
        .file("a_test.ts", script);
    let run = project.test(&["a.test.yaml", "a_test.ts"]);
    for name in ["in a turn", "at the end", "in a script"] {
        assert_unseen(&run, name);
    }
    // Nothing else is known when the saved run is evaluated again.
    let rechecked = project.hotseat(&["recheck", "last"]);
    assert_eq!(rechecked.code, 1, "{}", rechecked.stdout);
    assert_eq!(
        rechecked.stdout.matches("test_error: the agent's tool calls are not visible").count(),
        3,
        "{}",
        rechecked.stdout
    );
}

#[test]
fn an_agent_that_connects_to_no_server_has_no_visible_calls() {
    let agent = agent();
    let bank =
        "mcp: { bank: { type: mock, tools: [{ name: refund, answers: [{ content: { amount: 42 } }] }] } }\n";
    let suite = case("a", "hello", "{ tools: { forbid: [refund] } }");
    let faulty = "---\nname: b\nfaults: [{ tool: refund, do: timeout }]\nturns: [{ user: hello }]\n";
    let run = Project::with_config(&(http_target(&agent, "") + bank)).suite("a", &(suite + faulty)).test(&[]);
    assert_unseen(&run, "a");
    let words = "the agent connected to no MCP server of the test; `${MCP.bank.url}` is the address";
    run.assert_failure("b", "test_error", &["fault `timeout` on refund", words]);
}

#[test]
fn a_tool_that_nothing_can_show_is_refused() {
    let agent = agent();
    let bank =
        "mcp: { bank: { type: mock, tools: [{ name: refund, answers: [{ content: { amount: 42 } }] }] } }\n";
    let config = bank_target(&agent) + bank;
    for asserts in [
        "{ tools: { forbid: [refnd] } }",
        "[{ type: tool_called, name: refnd, negate: true }]",
        "{ tools: { require: [{ name: refnd, count: { max: 2 } }] } }",
        "[{ type: tool_sequence, only: [refnd], calls: [] }]",
        "[{ type: value, of: tool_names, contains: refnd, negate: true }]",
    ] {
        let output =
            Project::with_config(&config).suite("a", &case("a", "hello", asserts)).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{asserts}: {}", output.stdout);
        let words = "no MCP server of the test has a tool `refnd`, and nothing else shows the agent's calls";
        assert!(output.stderr.contains(words), "{asserts}: {}", output.stderr);
        assert!(output.stderr.contains("did you mean `refund`?"), "{asserts}: {}", output.stderr);
    }
    // The name under which agents report a tool of a server.
    let reported = case("a", "hello", "{ tools: { forbid: [mcp__bank__refund] } }");
    let project = Project::with_config(&config).suite("a", &reported);
    assert_unseen(&project.test(&[]), "a");
    let script = r#"
import { it, user, agent, expect } from "hotseat";
it("in a script", () => { user.says("hello"); expect(agent).not.toCallTool("refnd"); });
"#;
    let connecting =
        http_agent(|request| format!("I have {}.", bank_client(request).tools().expect("tools").join(", ")));
    let config = bank_target(&connecting) + bank;
    let run = Project::with_config(&config).file("a_test.ts", script).test(&["a_test.ts"]);
    run.assert_failure("in a script", "test_error", &["no MCP server of the test has a tool `refnd`"]);
}

#[test]
fn a_call_that_the_model_and_an_mcp_server_see_is_one_call() {
    let agent = agent();
    let bank =
        "mcp: { bank: { type: mock, tools: [{ name: refund, answers: [{ content: { amount: 7 } }] }] } }\n";
    let headers = format!("{MODEL_HEADER}, x-bank: '${{MCP.bank.url}}'");
    let asserts = "[{ tools: { require: [{ name: refund, server: bank, count: { exact: 1 } }] }, budget: { max_tool_calls: 1 } }]";
    let suite = case("a", "order o-7", asserts);
    let run =
        Project::with_config(&(http_target(&agent, &headers) + bank + REFUNDS)).suite("a", &suite).test(&[]);
    run.assert_all_passed();
    let calls = run.case("a")["turns"][0]["tool_calls"].as_array().expect("calls").clone();
    assert_eq!(calls.len(), 1, "{calls:#?}");
    assert_eq!(calls[0]["seen_by"], json!(["model", "mcp"]));
}

#[test]
fn calls_that_the_protocol_shows_are_not_counted_twice() {
    let agent = FakeAgent::with_run(|run, request| {
        let model = model_client(request);
        let (answer, called) = converse(&model, "order o-7", |_| json!({"amount": 42}));
        let run = called
            .iter()
            .fold(run, |run, arguments| run.tool("c1", "refund", arguments, Some(json!({"amount": 42}))));
        run.text(&answer).finished()
    });
    let config = format!("target:\n  endpoint: {agent}\n  headers: {{ {MODEL_HEADER} }}\n");
    let once = "{ tools: { require: [{ name: refund, count: { exact: 1 } }] } }";
    let suite = case("a", "order o-7", once);
    Project::with_config(&(config + REFUNDS)).suite("a", &suite).test(&[]).assert_all_passed();
}

/// Runs a case with these assertions. A relayed model calls `refund` once for each of the ids, all in one reply, and the agent
/// sends the results: with its own ids `gen-0`, `gen-1` and so on, or with those of the model. The result of each call is its
/// place.
fn run_with_ids(ids: &'static [&'static str], has_own_ids: bool, asserts: &str) -> TestRun {
    let call = |index: usize, id: &str| json!({"index": index, "id": id, "type": "function", "function": {"name": "refund", "arguments": format!("{{\"order\":{index}}}")}});
    let provider = FakeAgent::start(move |request: &FakeRequest| {
        if request.json()["messages"].as_array().is_some_and(|messages| messages.len() > 1) {
            return text_reply("Done.");
        }
        let calls: Vec<Value> = ids.iter().enumerate().map(|(index, id)| call(index, id)).collect();
        complete_reply(json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
    });
    let agent = http_agent(move |request| {
        let model = model_client(request);
        let mut messages = vec![json!({"role": "user", "content": "hello"})];
        messages.push(model.call(&messages, &["refund"]).expect("a reply"));
        for (index, id) in ids.iter().enumerate() {
            let own = format!("gen-{index}");
            let id = if has_own_ids { &own } else { *id };
            messages[1]["tool_calls"][index]["id"] = id.into();
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": index.to_string()}));
        }
        model.call(&messages, &["refund"]).expect("a reply");
        "Done."
    });
    let relayed = format!("models: {{ main: {{ type: relay, url: '{provider}' }} }}\n");
    let suite = case("a", "hello", asserts);
    Project::with_config(&(model_target(&agent) + &relayed)).suite("a", &suite).test(&[])
}

#[test]
fn results_of_relayed_calls_are_found_without_ids_of_their_own() {
    let once = "[{ type: tool_result, name: refund, result: '0' }]";
    for (ids, has_own_ids) in
        [([""].as_slice(), false), (&[""], true), (&["c1", "c1"], false), (&["c1", "c1", ""], false)]
    {
        let run = run_with_ids(ids, has_own_ids, once);
        run.assert_all_passed();
        let turn = &run.case("a")["turns"][0];
        let results: Vec<&Value> =
            turn["tool_calls"].as_array().expect("calls").iter().map(|call| &call["result"]).collect();
        let expected: Vec<Value> = (0..ids.len()).map(|place| json!(place.to_string())).collect();
        assert_eq!(results, expected.iter().collect::<Vec<_>>(), "{ids:?} {turn:#}");
        assert_eq!(turn["notes"], json!(null), "{ids:?}");
    }
}

#[test]
fn results_that_may_belong_to_several_calls_of_a_relayed_model_hide_the_calls() {
    for has_own_ids in [false, true] {
        let run = run_with_ids(&["", ""], has_own_ids, "[{ type: tool_result, name: refund, result: '0' }]");
        let words = [
            "the agent's tool calls are not visible: ",
            "the agent sent the model `main` the result of a call without an id, and several calls have no result: refund, refund",
        ];
        run.assert_failure("a", "test_error", &words);
    }
}
