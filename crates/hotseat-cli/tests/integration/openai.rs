//! Agents behind chat completions.
use std::time::Duration;

use hotseat_testkit::completions::{ChatCompletion, chunk, complete_reply, text_reply};
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::{Project, TestRun, unreachable_address};

const HELLO: &str = "name: a\nturns: [{ user: hello }]\n";

/// A project whose target is this server.
fn project(server: &FakeAgent, more: &str) -> Project {
    Project::with_config(&format!(
        "target:\n  type: openai\n  base_url: {server}v1\n  model: small\n  api_key: '${{ENV.KEY}}'\n{more}"
    ))
}

fn run_hello(project: &Project) -> TestRun {
    project.test_in(&[("KEY", "sk-0123456789")], &["--trace", "out/trace.jsonl"])
}

/// Runs one turn with a server that answers like this.
#[track_caller]
fn run_with_reply<R: Into<FakeReply>>(reply: impl Fn(&FakeRequest) -> R + Send + Sync + 'static) -> TestRun {
    let server = FakeAgent::start(reply);
    run_hello(&project(&server, "").suite("a", HELLO))
}

// Requests.

#[test]
fn request_matches_protocol() {
    let server = FakeAgent::start(|_| ChatCompletion::new().text("Hello there.").finish("stop"));
    let more = "  system: Be brief.\n  temperature: 0.5\n  headers: { X-Team: blue }\n  body: { max_tokens: 50, stream_options: null, user: '{{conversation_id}}' }\n";
    let tested = run_hello(&project(&server, more).suite("a", HELLO));
    tested.assert_all_passed();
    let [request] = server.requests().try_into().expect("one request");
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.header("authorization"), Some("Bearer sk-0123456789"));
    assert_eq!(request.header("x-team"), Some("blue"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let mut body = request.json();
    let id = body["user"].take();
    assert_eq!(id.as_str().map(str::len), Some(36), "{id}");
    assert_eq!(
        body,
        json!({
            "model": "small",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}],
            "temperature": 0.5, "stream": true, "max_tokens": 50, "user": null,
        })
    );
}

/// A server that executes its tools itself need not show them, so nobody knows if it called one.
#[test]
fn a_run_without_any_shown_call_has_a_warning() {
    let server = FakeAgent::start(|_| ChatCompletion::new().text("Done.").finish("stop"));
    let run = |assertion: &str, more: &str| {
        let suite = format!("name: a\nturns: [{{ user: hello, assert: {assertion} }}]\n");
        let tested = project(&server, more).suite("a", &suite).test_in(&[("KEY", "sk-0123456789")], &[]);
        tested.assert_all_passed();
        tested.output.stderr.contains("no reply of the target contained a tool call")
    };
    assert!(run("{ tools: { forbid: [delete] } }", ""));
    assert!(!run("{ text: { must_match: Done } }", ""));
    assert!(!run("{ tools: { forbid: [delete] } }", "  tools: [{ name: pay, answers: [{ content: 1 }] }]\n"));
    let script = "import { agent, expect, it, user } from 'hotseat';\nit('a', () => { user.says('hello'); expect(agent).not.toCallTool('delete'); });\n";
    let tested =
        project(&server, "").file("a_test.ts", script).test_in(&[("KEY", "sk-0123456789")], &["a_test.ts"]);
    assert!(tested.output.stderr.contains("no reply of the target"), "{}", tested.output);
}

#[test]
fn address_may_include_route() {
    let server = FakeAgent::start(|_| ChatCompletion::new().text("Hello.").finish("stop"));
    let target = format!("target: {{ type: openai, base_url: '{server}x/chat/completions/', model: m }}\n");
    Project::with_config(&target).suite("a", HELLO).test(&[]).assert_all_passed();
    assert_eq!(server.requests()[0].path, "/x/chat/completions");
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[test]
fn later_turns_resend_conversation() {
    let server = FakeAgent::start(|request| {
        ChatCompletion::new().text(&format!("answer {}", request.index + 1)).finish("stop")
    });
    let suite = "name: a\nturns: [{ user: one }, { user: two }]\n";
    run_hello(&project(&server, "").suite("a", suite)).assert_all_passed();
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    assert_eq!(
        server.requests()[1].json()["messages"],
        json!([said("user", "one"), said("assistant", "answer 1"), said("user", "two")])
    );
}

#[test]
fn stateful_server_receives_only_new_messages() {
    let server = FakeAgent::start(|_| ChatCompletion::new().text("fine").finish("stop"));
    let suite = "name: a\nthreadId: t-7\nturns: [{ user: one }, { user: two }]\n";
    let more = "  history: delta\n  body: { metadata: { chat_id: '{{conversation_id}}' } }\n";
    run_hello(&project(&server, more).suite("a", suite)).assert_all_passed();
    for (request, said) in server.requests().iter().zip(["one", "two"]) {
        assert_eq!(request.json()["messages"], json!([{"role": "user", "content": said}]));
        assert_eq!(request.json()["metadata"]["chat_id"], "t-7");
    }
}

#[test]
fn a_message_that_failed_is_sent_once() {
    for (history, last) in [("delta", vec!["three"]), ("full", vec!["one", "fine", "two", "three"])] {
        let server = FakeAgent::start(|request| match request.index {
            1 => FakeReply::json(200, &json!({"error": {"message": "kaboom"}})),
            _ => ChatCompletion::new().text("fine").finish("stop").into(),
        });
        let suite = "name: a\nturns: [{ user: one }, { user: two, expect_error: kaboom }, { user: three }]\n";
        run_hello(&project(&server, &format!("  history: {history}\n")).suite("a", suite))
            .assert_all_passed();
        let sent = server.requests()[2].json()["messages"].clone();
        let texts: Vec<&str> = sent
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|message| message["content"].as_str())
            .collect();
        assert_eq!(texts, last, "{history}");
    }
}

/// The conversation continues after an expected error: what the agent said before it is kept.
#[test]
fn a_turn_with_an_expected_error_is_remembered() {
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    let full = json!([said("user", "one"), said("assistant", "half"), said("user", "two")]);
    for (history, second) in [("full", full), ("delta", json!([said("user", "two")]))] {
        for is_stream in [true, false] {
            let server = FakeAgent::start(move |request| match (request.index, is_stream) {
                (0, true) => ChatCompletion::new()
                    .chunk(chunk(json!({"content": "half"}), None))
                    .chunk(json!({"error": {"message": "nope"}}))
                    .into(),
                (0, false) => {
                    let choice = json!({"message": said("assistant", "half"), "finish_reason": "stop"});
                    FakeReply::json(200, &json!({"choices": [choice], "error": {"message": "nope"}}))
                }
                _ => ChatCompletion::new().text("fine").finish("stop").into(),
            });
            let suite = "name: a\nturns: [{ user: one, expect_error: nope }, { user: two }]\n";
            run_hello(&project(&server, &format!("  history: {history}\n")).suite("a", suite))
                .assert_all_passed();
            assert_eq!(server.requests()[1].json()["messages"], second, "{history}, stream {is_stream}");
        }
    }
}

// Answers.

#[test]
fn records_text_calls_usage_and_finish_reason() {
    let tested = run_with_reply(|_| {
        ChatCompletion::new()
            .chunk(chunk(json!({"reasoning_content": "Let me "}), None))
            .chunk(chunk(json!({"reasoning_content": "see."}), None))
            .text("One moment.")
            .tool(0, "c1", "search", &json!({"query": "shoes", "limit": 3}))
            .tool(1, "c2", "search", &json!({"query": "socks"}))
            .finish("stop")
    });
    tested.assert_all_passed();
    let turn = &tested.case("a")["turns"][0];
    assert_eq!(turn["output"], "One moment.");
    assert_eq!(turn["reasoning"], json!(["Let me see."]));
    let calls: Vec<(&Value, &Value)> = turn["tool_calls"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|call| (&call["name"], &call["args"]))
        .collect();
    assert_eq!(
        calls,
        [
            (&json!("search"), &json!({"query": "shoes", "limit": 3})),
            (&json!("search"), &json!({"query": "socks"}))
        ]
    );
    assert_eq!(turn["usage"], json!([{"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}]));
}

/// Streams with their usage where Groq and Moonshot send it: 9 tokens of input and 12 of output.
pub fn usage_elsewhere() -> [FakeReply; 2] {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21});
    let mut moonshot = chunk(json!({}), Some("stop"));
    moonshot["choices"][0]["usage"] = usage.clone();
    let mut groq = chunk(json!({}), Some("stop"));
    groq["x_groq"] = json!({"id": "req_1", "usage": usage});
    let mut first = chunk(json!({"role": "assistant", "content": "Hi."}), None);
    first["x_groq"] = json!({"id": "req_1"});
    [moonshot, groq].map(|last| FakeReply::sse().event(first.clone()).event(last).bytes("data: [DONE]\n\n"))
}

/// Budgets need the tokens.
#[test]
fn usage_is_read_where_providers_send_it() {
    for reply in usage_elsewhere() {
        let server = FakeAgent::start(move |_| reply.clone());
        let suite = "name: a\nturns: [{ user: hello, assert: { budget: { max_tokens: 21 } } }]\n";
        let tested = run_hello(&project(&server, "").suite("a", suite));
        tested.assert_all_passed();
        let turn = &tested.case("a")["turns"][0];
        assert_eq!(turn["usage"], json!([{"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}]));
    }
}

/// Some servers give each piece of a call a new id; the first one counts.
#[test]
fn pieces_with_new_ids_are_one_call() {
    let piece = |id: &str, function: Value| {
        chunk(json!({"tool_calls": [{"index": 0, "id": id, "function": function}]}), None)
    };
    let tested = run_with_reply(move |_| {
        ChatCompletion::new()
            .chunk(piece("c-1", json!({"name": "pay", "arguments": ""})))
            .chunk(piece("c-2", json!({"arguments": "{\"amount\""})))
            .chunk(piece("c-3", json!({"arguments": ":5}"})))
            .finish("stop")
    });
    tested.assert_all_passed();
    let calls = &tested.case("a")["turns"][0]["tool_calls"];
    let read = |key: &str| calls[0][key].clone();
    assert_eq!(calls.as_array().map(Vec::len), Some(1), "{calls}");
    assert_eq!((read("id"), read("name"), read("args")), (json!("c-1"), json!("pay"), json!({"amount": 5})));
}

/// What a call has as arguments does not depend on where the server cuts them.
#[test]
fn arguments_that_are_no_object_may_be_split_anywhere() {
    let piece = |function: Value| chunk(json!({"tool_calls": [{"index": 0, "function": function}]}), None);
    let named = chunk(
        json!({"tool_calls": [{"index": 0, "id": "c-1", "function": {"name": "book", "arguments": ""}}]}),
        None,
    );
    for (pieces, arguments) in [
        (&["to=", "Rome"][..], json!("to=Rome")),
        (&["nu", "ll"], json!({})),
        (&["tr", "ue"], json!(true)),
        (&["1", "2"], json!(12)),
        (&["```json\n", "{\"a\": 1}", "\n```"], json!("```json\n{\"a\": 1}\n```")),
        (&[" ", "{\"a\": ", "1}", " \n"], json!({"a": 1})),
    ] {
        let start = ChatCompletion::new().chunk(named.clone());
        let chunks = pieces.iter().map(|text| piece(json!({"arguments": text})));
        let reply = chunks.fold(start, ChatCompletion::chunk).finish("stop");
        let tested = run_with_reply(move |_| reply.clone());
        tested.assert_all_passed();
        let calls = &tested.case("a")["turns"][0]["tool_calls"];
        assert_eq!((calls.as_array().map(Vec::len), &calls[0]["args"]), (Some(1), &arguments), "{calls}");
    }
}

/// One call in place of two would pass assertions about their number, and those about arguments are undecided.
#[test]
fn complete_calls_of_one_tool_are_different() {
    let pay = |identity: &Value, amount: u64| {
        let function = json!({"name": "pay", "arguments": json!({"amount": amount}).to_string()});
        let mut call = json!({"type": "function", "function": function});
        call.as_object_mut().expect("a call").extend(identity.as_object().expect("members").clone());
        chunk(json!({"tool_calls": [call]}), None)
    };
    for (identity, amounts, count) in [
        (json!({"index": 0}), [3500, 3500], 2),
        (json!({"index": 0, "id": ""}), [3500, 3500], 2),
        (json!({"index": 0, "id": "call_0"}), [3500, 40], 2),
        (json!({"id": "call_0"}), [3500, 40], 2),
        // Reported again.
        (json!({"index": 0, "id": "call_0"}), [3500, 3500], 1),
        (json!({"id": "call_0"}), [3500, 3500], 1),
    ] {
        let chunks = amounts.map(|amount| pay(&identity, amount));
        let server = FakeAgent::start(move |_| {
            chunks.iter().cloned().fold(ChatCompletion::new(), ChatCompletion::chunk).finish("stop")
        });
        let suite = format!(
            "name: a\nturns: [{{ user: hello, assert: {{ tools: {{ require: [{{ name: pay, count: {{ exact: {count} }} }}] }} }} }}]\n"
        );
        let tested = run_hello(&project(&server, "").suite("a", &suite));
        tested.assert_all_passed();
        let calls = tested.case("a")["turns"][0]["tool_calls"].clone();
        assert_eq!(calls[count - 1]["args"], json!({"amount": amounts[1]}), "{identity}: {calls}");
    }
}

/// An agent may number the calls of each of its steps anew. A call that has a result is over, so the next one is another call.
#[test]
fn a_call_after_the_result_of_its_id_is_another_call() {
    let named = |arguments: &str| json!({"index": 0, "id": "call_0", "function": {"name": "charge", "arguments": arguments}});
    let delta = |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}}]});
    let message = |call: Value| json!({"choices": [{"message": {"tool_calls": [call]}}]});
    let result =
        |content: &str| chunk(json!({"role": "tool", "tool_call_id": "call_0", "content": content}), None);
    let charge = named("{\"amount\":1}");
    for (chunks, results) in [
        (vec![delta(charge.clone()), result("ok"), delta(charge.clone()), result("ok")], &["ok", "ok"][..]),
        (
            vec![delta(charge.clone()), result("ok"), delta(charge.clone()), result("declined")],
            &["ok", "declined"],
        ),
        (vec![delta(named("")), result("ok"), delta(named("")), result("ok")], &["ok", "ok"]),
        (vec![message(charge.clone()), result("ok"), message(charge.clone()), result("ok")], &["ok", "ok"]),
        (
            vec![
                delta(charge.clone()),
                result("ok"),
                delta(named("")),
                delta(json!({"index": 0, "function": {"arguments": "{\"amount\":1}"}})),
                result("ok"),
            ],
            &["ok", "ok"],
        ),
        // Reported again: a call without a result in between, a result, and a whole message at the end.
        (vec![delta(charge.clone()), delta(charge.clone()), result("ok"), result("ok")], &["ok"]),
        (vec![delta(charge.clone()), result("ok"), message(charge.clone())], &["ok"]),
    ] {
        let tested = run_with_reply(move |_| {
            chunks
                .iter()
                .cloned()
                .fold(ChatCompletion::new(), ChatCompletion::chunk)
                .text("Done.")
                .finish("stop")
        });
        tested.assert_all_passed();
        let turn = tested.case("a")["turns"][0].clone();
        let calls = turn["tool_calls"].as_array().cloned().unwrap_or_default();
        let told: Vec<Value> = calls.iter().map(|call| call["result"].clone()).collect();
        assert_eq!(told, results, "{turn:#}");
        let ids: Vec<Value> = calls.iter().map(|call| call["id"].clone()).collect();
        assert_eq!(ids, ["call_0", "call_0#2"][..results.len()], "{turn:#}");
        let is_noted = turn["notes"].to_string().contains("tool call id call_0 is used for two calls");
        assert_eq!(is_noted, results.len() == 2, "{turn:#}");
    }
}

/// Some servers send calls and results without ids.
#[test]
fn a_result_with_an_empty_id_belongs_to_the_only_open_call() {
    let call = |name: &str| {
        chunk(json!({"tool_calls": [{"id": "", "function": {"name": name, "arguments": "{}"}}]}), None)
    };
    let result = |content: &str| chunk(json!({"role": "tool", "tool_call_id": "", "content": content}), None);
    let reply = |chunks: Vec<Value>| {
        chunks.into_iter().fold(ChatCompletion::new(), ChatCompletion::chunk).text("Done.").finish("stop")
    };
    let read = reply(vec![call("get"), result("one"), result("one"), call("get"), result("two")]);
    let tested = run_with_reply(move |_| read.clone());
    tested.assert_all_passed();
    let calls = tested.case("a")["turns"][0]["tool_calls"].clone();
    assert_eq!((&calls[0]["result"], &calls[1]["result"]), (&json!("one"), &json!("two")), "{calls}");
    for (chunks, words) in [
        (
            vec![call("get"), call("pay"), result("ok")],
            "a result has an empty `tool_call_id`, and several calls have no result: get, pay",
        ),
        (vec![result("ok")], "a result has an empty `tool_call_id`, and no tool call was announced"),
        (
            vec![call("get"), result("one"), result("two")],
            "a result has an empty `tool_call_id`, and the last call, of get, already has another one",
        ),
    ] {
        let read = reply(chunks);
        run_with_reply(move |_| read.clone()).assert_failed(1, "protocol_error", words);
    }
}

/// Both results are equal: the second one is not the first one, reported again.
#[test]
fn results_with_the_id_of_several_calls_belong_to_them_in_order() {
    let calls: Vec<Value> = [0, 1]
        .map(|index| json!({"index": index, "id": "c1", "function": {"name": "get", "arguments": format!("{{\"place\":{index}}}")}}))
        .into();
    let result =
        |content: &str| chunk(json!({"role": "tool", "tool_call_id": "c1", "content": content}), None);
    for (results, seen) in [(["one", "two"], ["one", "two"]), (["ok", "ok"], ["ok", "ok"])] {
        let reply = ChatCompletion::new().chunk(chunk(json!({"tool_calls": calls}), None));
        let reply = results.iter().fold(reply, |reply, content| reply.chunk(result(content)));
        let reply = reply.text("Done.").finish("stop");
        let tested = run_with_reply(move |_| reply.clone());
        tested.assert_all_passed();
        let turn = tested.case("a")["turns"][0].clone();
        assert_eq!([&turn["tool_calls"][0]["result"], &turn["tool_calls"][1]["result"]], seen, "{turn:#}");
        assert!(turn["notes"].to_string().contains("tool call id c1 is used for two calls"), "{turn:#}");
    }
    let results = ["one", "two", "three"].map(result);
    let reply = ChatCompletion::new().chunk(chunk(json!({"tool_calls": calls}), None));
    let reply = results.into_iter().fold(reply, ChatCompletion::chunk).finish("stop");
    let words = "a result of tool call c1, which already has another one";
    run_with_reply(move |_| reply.clone()).assert_failed(1, "protocol_error", words);
}

#[test]
fn accepts_unstreamed_completion() {
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "search", "arguments": "{\"q\":1}"}});
    for stream in ["true", "false"] {
        let call = call.clone();
        let server = FakeAgent::start(move |_| {
            complete_reply(json!({"role": "assistant", "content": "Hi.", "tool_calls": [call]}), "stop")
        });
        let tested = run_hello(&project(&server, &format!("  stream: {stream}\n")).suite("a", HELLO));
        tested.assert_all_passed();
        let turn = &tested.case("a")["turns"][0];
        assert_eq!((&turn["output"], &turn["tool_calls"][0]["args"]), (&json!("Hi."), &json!({"q": 1})));
        assert_eq!(server.requests()[0].json()["stream"], stream == "true");
    }
    let streamed = FakeAgent::start(|_| ChatCompletion::new().text("Hi.").finish("stop"));
    run_hello(&project(&streamed, "  stream: false\n").suite("a", HELLO)).assert_all_passed();
}

#[test]
fn stream_may_be_split_anywhere() {
    let tested = run_with_reply(|_| {
        let tool = json!({"city": "Zürich", "note": "a \"quoted\" word"});
        ChatCompletion::new()
            .text("Grüezi 🙂.")
            .tool(0, "c", "weather", &tool)
            .finish("stop")
            .streamed()
            .with_piece_size(1)
    });
    tested.assert_all_passed();
    let turn = &tested.case("a")["turns"][0];
    assert_eq!(turn["output"], "Grüezi 🙂.");
    assert_eq!(turn["tool_calls"][0]["args"]["city"], "Zürich");
}

#[test]
fn records_declared_tools() {
    let server = FakeAgent::start(|_| {
        let declared = json!({"content": "How much?", "awaiting_input": true, "input_hint": "an amount"});
        ChatCompletion::new().chunk(chunk(declared, None)).finish("stop")
    });
    let project = project(&server, "").suite("a", HELLO);
    run_hello(&project).assert_all_passed();
    let trace = project.workspace.read("out/trace.jsonl");
    let event = |name: &str| {
        let lines = trace.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
        lines.into_iter().find(|line| line["type"] == name).unwrap_or_else(|| panic!("no {name}: {trace}"))
    };
    let awaiting = &event("agent.awaiting_input")["payload"];
    assert_eq!((&awaiting["awaiting"], &awaiting["hint"]), (&json!(true), &json!("an amount")));
    assert_eq!(event("agent.run.finished")["payload"]["finishReason"], "stop");
}

#[test]
fn server_may_report_its_tool_results() {
    let server = FakeAgent::start(|request| {
        let result = json!({"role": "tool", "tool_call_id": "c", "content": "{\"total\":3}"});
        match request.index {
            0 => ChatCompletion::new()
                .tool(0, "c", "search", &json!({}))
                .chunk(chunk(result, None))
                .text("Found 3.")
                .finish("stop"),
            _ => ChatCompletion::new().text("Bye.").finish("stop"),
        }
    });
    let suite = "name: a\nturns: [{ user: search }, { user: bye }]\nassert: { tools: { require: [{ name: search, result_match: '\"total\":3' }] } }\n";
    run_hello(&project(&server, "").suite("a", suite)).assert_all_passed();
    // Calls that the server ran itself are not resent.
    let history = server.requests()[1].json()["messages"].clone();
    assert_eq!(history[1], json!({"role": "assistant", "content": "Found 3."}));
    assert_eq!(history.as_array().map(Vec::len), Some(3));
}

/// The deltas of a message have no role of their own, so those after the head of a result are the result, unless it is complete.
#[test]
fn a_result_may_arrive_in_pieces() {
    let head = |content: Value| json!({"role": "tool", "tool_call_id": "c1", "content": content});
    let part = |text: &str| json!({"type": "text", "text": text});
    let said = json!({"role": "assistant", "content": "hel"});
    for deltas in [
        vec![
            head(json!("")),
            json!({"content": "{\"status\":\"decl"}),
            json!({"role": "", "content": "ined\"}"}),
            said.clone(),
            json!({"content": "lo"}),
        ],
        vec![
            head(json!("{\"status\":\"decl")),
            json!({"content": "ined\"}"}),
            said.clone(),
            json!({"content": "lo"}),
        ],
        vec![
            head(json!([part("{\"status\":")])),
            json!({"content": [part("\"declined\"}")]}),
            said.clone(),
            json!({"content": "lo"}),
        ],
        vec![
            head(json!(null)),
            json!({"content": "{\"status\":\"declined\"}"}),
            said,
            json!({"content": "lo"}),
        ],
        // A complete result needs no more; a note tells how the text is read.
        vec![head(json!("{\"status\":\"declined\"}")), json!({"content": "hel"}), json!({"content": "lo"})],
        vec![head(json!([part("{\"status\":\"declined\"}")])), json!({"content": "hello"})],
        // A refusal is the agent's.
        vec![head(json!("{\"status\":\"declined\"}")), json!({"refusal": "hello"})],
    ] {
        let server = FakeAgent::start(move |_| {
            let called = ChatCompletion::new().tool(0, "c1", "pay", &json!({"a": 1}));
            let chunks = deltas.iter().map(|delta| chunk(delta.clone(), None));
            chunks.fold(called, ChatCompletion::chunk).finish("stop")
        });
        let suite = "name: a\nturns:\n  - user: hello\n    assert: [{ type: tool_result, tool: pay, result: { status: declined } }, { type: equals, value: hello }]\n";
        run_hello(&project(&server, "").suite("a", suite)).assert_all_passed();
    }
}

// Client tools.

const CONFIRM: &str = "
name: a
tools:
  - name: confirm
    description: Asks the user
    parameters: { type: object, properties: { what: { type: string } } }
    answers:
      - args_match: { what: ^pay }
        content: { ok: true }
        once: true
      - error: the user said no
turns:
  - user: pay
    assert: { tools: { require: [{ name: confirm, result_match: ok }] }, text: { must_match: Paid } }
  - user: thanks
";

#[test]
fn client_tools_are_answered_by_case() {
    let server = FakeAgent::start(|request| match request.index {
        0 => ChatCompletion::new()
            .text("Wait.")
            .tool(0, "c-1", "confirm", &json!({"what": "pay 5"}))
            .finish("tool_calls"),
        // Some servers send `stop` although calls are pending.
        1 => ChatCompletion::new().tool(0, "c-1", "confirm", &json!({"what": "really"})).finish("stop"),
        2 => ChatCompletion::new().text("Paid.").finish("stop"),
        _ => ChatCompletion::new().text("You are welcome.").finish("stop"),
    });
    let tested = run_hello(&project(&server, "").suite("a", CONFIRM));
    tested.assert_all_passed();
    let requests = server.requests();
    assert_eq!(
        requests[0].json()["tools"],
        json!([{"type": "function", "function": {
            "name": "confirm", "description": "Asks the user",
            "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
        }}])
    );
    let call = |arguments: &str| json!([{"id": "c-1", "type": "function", "function": {"name": "confirm", "arguments": arguments}}]);
    let history = requests[3].json()["messages"].clone();
    assert_eq!(
        history,
        json!([
            {"role": "user", "content": "pay"},
            {"role": "assistant", "content": "Wait.", "tool_calls": call("{\"what\":\"pay 5\"}")},
            {"role": "tool", "tool_call_id": "c-1", "content": "{\"ok\":true}"},
            {"role": "assistant", "content": "", "tool_calls": call("{\"what\":\"really\"}")},
            {"role": "tool", "tool_call_id": "c-1", "content": "the user said no"},
            {"role": "assistant", "content": "Paid."},
            {"role": "user", "content": "thanks"},
        ])
    );
    // The server reused an id; these are two calls.
    let calls = tested.case("a")["turns"][0]["tool_calls"].as_array().expect("a list").clone();
    assert_eq!((&calls[0]["result"], &calls[1]["error"]), (&json!({"ok": true}), &json!("the user said no")));
}

/// Gemini, DeepSeek and OpenRouter reject the results of tools without their own members of the reply.
#[test]
fn provider_members_come_back_with_results() {
    let signature = json!({"google": {"thought_signature": "SIG"}});
    let call = json!({
        "id": "c-1", "type": "function", "extra_content": signature,
        "function": {"name": "confirm", "arguments": "{\"what\":\"pay 5\"}"},
    });
    let detail = |text: &str| json!({"type": "reasoning.text", "text": text});
    let whole = json!({
        "role": "assistant", "content": null, "refusal": null, "annotations": [],
        "reasoning_content": "Let me think.", "reasoning_details": [detail("a"), detail("b")], "tool_calls": [call],
    });
    let pieces = [
        json!({"role": "assistant", "content": null, "reasoning_content": "Let me ", "reasoning_details": [detail("a")]}),
        json!({"reasoning_content": "think.", "reasoning_details": [detail("b")]}),
        json!({"tool_calls": [{"index": 0, "id": "c-1", "type": "function", "function": {"name": "confirm", "arguments": ""}}]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"what\":\"pay 5\"}"}, "extra_content": signature}]}),
    ];
    for streamed in [false, true] {
        let (whole, pieces) = (whole.clone(), pieces.clone());
        let server = FakeAgent::start(move |request| match (request.index, streamed) {
            (0, true) => {
                let pieces = pieces.iter().map(|delta| chunk(delta.clone(), None));
                let chunks = pieces.chain([chunk(json!({}), Some("tool_calls"))]);
                chunks.fold(FakeReply::sse(), FakeReply::event).bytes("data: [DONE]\n\n")
            }
            (0, false) => complete_reply(whole.clone(), "tool_calls"),
            _ => ChatCompletion::new().text("Paid.").finish("stop").into(),
        });
        run_hello(&project(&server, "").suite("a", CONFIRM)).assert_all_passed();
        let requests = server.requests();
        assert_eq!(
            requests[1].json()["messages"][1],
            json!({
                "role": "assistant", "content": null, "tool_calls": [call],
                "reasoning_content": "Let me think.", "reasoning_details": [detail("a"), detail("b")],
            }),
            "streamed: {streamed}"
        );
    }
}

/// A server that runs a tool of the test itself.
#[test]
fn a_result_in_the_reply_is_the_answer_of_an_offered_call() {
    let server = FakeAgent::start(|_| {
        let result = json!({"role": "tool", "tool_call_id": "c-1", "content": "from the server"});
        ChatCompletion::new()
            .tool(0, "c-1", "search", &json!({"q": 1}))
            .chunk(chunk(result, None))
            .text("Done.")
            .finish("stop")
    });
    let suite = "name: a\ntools: [{ name: search, answers: [{ content: from the test }] }]\nturns: [{ user: one }, { user: two }]\n";
    let tested = run_hello(&project(&server, "").suite("a", suite));
    tested.assert_all_passed();
    let turn = tested.case("a")["turns"][0].clone();
    assert_eq!(turn["tool_calls"][0]["result"], "from the server", "{turn:#}");
    assert!(
        turn["notes"].to_string().contains("the server reports the result of its call of `search`"),
        "{turn:#}"
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 2, "one for each turn");
    let roles: Vec<Value> = requests[1].json()["messages"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
}

/// Spellings of the finish reason of calls that wait for their results.
const TOOL_USE_REASONS: [&str; 8] = [
    "tool_calls",
    "tool_use",
    "TOOL_CALLS",
    "TOOL_CALL",
    "function_call",
    "tool-calls",
    "Tool Calls",
    "toolUse",
];

/// Gemini sends `stop` with calls.
#[test]
fn a_call_that_asks_the_user_stays_in_the_history() {
    for reason in TOOL_USE_REASONS.into_iter().chain(["stop"]) {
        let server = FakeAgent::start(move |request| match request.index {
            0 => ChatCompletion::new().tool(0, "c-1", "ask_user", &json!({"q": "Which?"})).finish(reason),
            _ => ChatCompletion::new().text("Fine.").finish("stop"),
        });
        let suite = "name: a\nturns: [{ user: order }, { user: the red one }]\n";
        run_hello(&project(&server, "").suite("a", suite)).assert_all_passed();
        let sent = server.requests()[1].json()["messages"].clone();
        assert_eq!(sent[1]["tool_calls"][0]["function"]["name"], "ask_user", "{reason}: {sent}");
        assert_eq!((&sent[2]["tool_call_id"], &sent[3]["content"]), (&json!("c-1"), &json!("the red one")));
    }
}

#[test]
fn unanswered_calls_never_pass() {
    for reason in TOOL_USE_REASONS {
        let tested =
            run_with_reply(move |_| ChatCompletion::new().tool(0, "c", "pay", &json!({})).finish(reason));
        tested.assert_failed(
            1,
            "test_error",
            "the agent called tool pay and awaits its result, but the test does not offer this tool",
        );
        let tested = run_with_reply(move |_| ChatCompletion::new().text("Done.").finish(reason));
        let words = format!("the reply ends with finish_reason {reason} but has no tool call");
        tested.assert_failed(1, "protocol_error", &words);
    }

    // The last finish reason counts only if text shows that the reply went on.
    let (called, stopped) = (chunk(json!({}), Some("tool_calls")), chunk(json!({}), Some("stop")));
    let text = chunk(json!({"role": "assistant", "content": "Done."}), None);
    for (chunks, is_done) in [
        (vec![called.clone(), text.clone(), stopped.clone()], true),
        (vec![called.clone(), stopped], false),
        (vec![called.clone(), text.clone()], false),
        (vec![called.clone(), text, called], false),
    ] {
        let tested = run_with_reply(move |_| {
            let start = ChatCompletion::new().tool(0, "c", "get", &json!({}));
            let all = chunks.iter().cloned().fold(start, ChatCompletion::chunk);
            all.without_end().bytes("data: [DONE]\n\n")
        });
        match is_done {
            true => tested.assert_all_passed(),
            false => tested.assert_failed(1, "test_error", "the agent called tool get and awaits its result"),
        }
    }

    let server = FakeAgent::start(|_| {
        ChatCompletion::new().tool(0, "c", "confirm", &json!({"what": "x"})).finish("tool_calls")
    });
    let suite = "name: a\ntools: [{ name: confirm, answers: [{ args_match: { what: ^pay }, content: ok }] }]\nturns: [{ user: hello }]\n";
    let tested = run_hello(&project(&server, "").suite("a", suite));
    tested.assert_failed(
        1,
        "test_error",
        "client tool confirm was called with {\"what\":\"x\"}, but no scripted answer matches",
    );
}

/// A suite whose tool is answered by a server, unless the scripted answer matches first.
fn tool_server_suite(tools: &FakeAgent, must_match: &str) -> String {
    format!(
        "
name: a
tools:
  - name: confirm
    answers: [{{ args_match: {{ what: ^pay }}, content: scripted }}]
    url: '{tools}tools/confirm'
turns: [{{ user: go }}]
assert: {{ text: {{ must_match: '{must_match}' }} }}
"
    )
}

/// An agent that calls the tool with the first user text and then repeats the tool result.
fn confirming_agent(what: &'static str) -> FakeAgent {
    FakeAgent::start(move |request| match request.index {
        0 => ChatCompletion::new().tool(0, "c-1", "confirm", &json!({"what": what})).finish("tool_calls"),
        _ => {
            let messages = request.json()["messages"].clone();
            let told = messages.as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
            ChatCompletion::new().text(told["content"].as_str().unwrap_or("nothing")).finish("stop")
        }
    })
}

#[test]
fn client_tools_are_answered_by_server() {
    let tools = FakeAgent::start(|_| FakeReply::json(200, &json!({"confirmed": 7})));
    let agent = confirming_agent("delete");
    let suite = tool_server_suite(&tools, "^.\"confirmed\":7.$");
    let tested = run_hello(&project(&agent, "").suite("a", &suite));
    tested.assert_all_passed();
    assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["result"], json!({"confirmed": 7}));
    let [asked] = tools.requests().try_into().expect("one request");
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/tools/confirm"));
    assert_eq!(asked.json(), json!({"id": "c-1", "name": "confirm", "arguments": {"what": "delete"}}));

    // Scripted answers take precedence.
    run_hello(&project(&confirming_agent("pay 5"), "").suite("a", &tool_server_suite(&tools, "^scripted$")))
        .assert_all_passed();
    assert_eq!(tools.requests().len(), 1);

    // The agent is informed about a failed tool.
    let broken = FakeAgent::start(|_| FakeReply::text(500, "no database"));
    let suite = tool_server_suite(&broken, "HTTP 500 Internal Server Error: no database");
    let tested = run_hello(&project(&confirming_agent("delete"), "").suite("a", &suite));
    tested.assert_all_passed();
    let error = tested.case("a")["turns"][0]["tool_calls"][0]["error"].clone();
    assert!(error.as_str().is_some_and(|error| error.contains("no database")), "{error}");
}

#[test]
fn unresponsive_tool_server_never_passes() {
    let silent = FakeAgent::start(|_| FakeReply::never());
    let suite = tool_server_suite(&silent, "x");
    let tested =
        run_hello(&project(&confirming_agent("delete"), "  idle_timeout_ms: 1000\n").suite("a", &suite));
    tested.assert_failed(
        1,
        "test_error",
        "client tool confirm could not be asked: it sent nothing for 1000 ms",
    );
    let tested = run_hello(&project(&confirming_agent("delete"), "  timeout_ms: 1500\n").suite("a", &suite));
    tested.assert_failed(1, "timeout", "the turn timed out after 1500 ms");
    let cut = FakeAgent::start(|_| FakeReply::text(200, "half").cut());
    let tested =
        run_hello(&project(&confirming_agent("delete"), "").suite("a", &tool_server_suite(&cut, "x")));
    tested.assert_failed(1, "test_error", "client tool confirm could not be asked: the connection broke");
    let packed = FakeAgent::start(|_| FakeReply::text(200, "packed").header("content-encoding", "gzip"));
    let tested =
        run_hello(&project(&confirming_agent("delete"), "").suite("a", &tool_server_suite(&packed, "x")));
    tested.assert_failed(1, "test_error", "could not be asked: its answer has the unsupported encoding gzip");
    let suite = tool_server_suite(&cut, "x").replace(&cut.url(), &unreachable_address());
    let tested = run_hello(&project(&confirming_agent("delete"), "").suite("a", &suite));
    tested.assert_failed(1, "test_error", "client tool confirm could not be asked: cannot reach");
}

#[test]
fn endless_tool_calls_are_stopped() {
    let server =
        FakeAgent::start(|_| ChatCompletion::new().tool(0, "c", "confirm", &json!({})).finish("tool_calls"));
    let suite = "name: a\ntools: [{ name: confirm, answers: [{ content: ok }] }]\nturns: [{ user: hello }]\n";
    let tested = run_hello(&project(&server, "").suite("a", suite));
    tested.assert_failed(
        1,
        "limit",
        "the agent made more than 25 requests to the client in one turn, the maximum that Hotseat answers",
    );
    assert_eq!(server.requests().len(), 26);
}

// Failures.

#[test]
fn truncated_stream_is_not_a_reply() {
    let cases: [(FakeReply, &str); 7] = [
        (FakeReply::sse(), "the stream ended without a single chunk"),
        (FakeReply::sse().bytes("data: {\"choi"), "in the middle of its first chunk"),
        (ChatCompletion::new().text("Hel").without_end(), "without finish_reason and `[DONE]`"),
        (
            ChatCompletion::new().text("Hello.").finish("stop").without_end(),
            "with finish_reason stop and without `[DONE]`",
        ),
        (ChatCompletion::new().text("Hel").without_end().cut(), "the connection broke"),
        (ChatCompletion::new().text("Hel").without_end().reset(), "the connection broke"),
        (
            ChatCompletion::new().text("Hel").without_end().until_close().cut(),
            "without finish_reason and `[DONE]`",
        ),
    ];
    for (reply, words) in cases {
        run_with_reply(move |_| reply.clone()).assert_failed(1, "protocol_error", words);
    }
}

#[test]
fn keeps_output_before_truncation() {
    let tested = run_with_reply(|_| {
        ChatCompletion::new().text("Deleting.").tool(0, "c", "delete", &json!({"all": true})).without_end()
    });
    tested.assert_failed(1, "protocol_error", "without finish_reason");
    let turn = &tested.case("a")["turns"][0];
    assert_eq!((&turn["output"], &turn["tool_calls"][0]["name"]), (&json!("Deleting."), &json!("delete")));
}

#[test]
fn invalid_completion_is_quoted() {
    const MISPLACED: &str = "has tool calls outside of the `tool_calls` of its message";
    let said_and = |calls: Value| json!({"message": {"content": "Done."}, "tool_calls": calls});
    let call_with = |members: Value| {
        let mut call = json!({"index": 0, "id": "c", "function": {"name": "pay"}});
        call.as_object_mut().expect("a call").extend(members.as_object().expect("members").clone());
        FakeReply::from(ChatCompletion::new().chunk(chunk(json!({"tool_calls": [call]}), None)))
    };
    let deep = format!("data: {{\"choices\": [], \"usage\": {}{}}}\n\n", "[".repeat(200), "]".repeat(200));
    let beside =
        json!({"choices": [{"message": {"content": "Done."}}], "message": {"tool_calls": [{"id": "c"}]}});
    let piece = |function: Value| chunk(json!({"tool_calls": [{"index": 0, "function": function}]}), None);
    let result =
        |content: &str| chunk(json!({"role": "tool", "tool_call_id": "c1", "content": content}), None);
    let cases: [(FakeReply, &str); 25] = [
        (
            ChatCompletion::new()
                .tool(0, "c1", "pay", &json!({}))
                .chunk(result("declined"))
                .chunk(result("declined"))
                .chunk(result("ok"))
                .finish("stop")
                .into(),
            "a result of tool call c1, which already has another one",
        ),
        (
            ChatCompletion::new()
                .chunk(piece(json!({"name": "pay", "arguments": "{\"amount\":1}"})))
                .chunk(piece(json!({"name": "", "arguments": "{\"amount\":1}"})))
                .finish("stop")
                .into(),
            "chunk 3 is ambiguous: after the complete arguments of tool call \"pay\", further ones have neither",
        ),
        (FakeReply::json(200, &beside), MISPLACED),
        (FakeReply::sse().bytes(deep), "chunk 1 is nested deeper than 127 levels"),
        (call_with(json!({"arguments": {"amount": 9}})), "arguments outside of `function.arguments`"),
        (
            call_with(json!({"function": {"name": "pay", "args": "{\"amount\":9}"}})),
            "arguments outside of `function.arguments`",
        ),
        (FakeReply::sse().bytes("data: hello\n\n"), "chunk 1 is not JSON"),
        (
            FakeReply::sse().event(json!({"choices": [{"delta": {"content": 42}}]})),
            "chunk 1 has a `content` that is not text: 42",
        ),
        (FakeReply::sse().event(json!([])), "chunk 1 is not a chat completion"),
        (
            FakeReply::sse().event(json!({"choices": []})).bytes("data: [DONE]\n\n"),
            "the reply contains no choice",
        ),
        (FakeReply::sse().bytes("data: [DONE]\n\n"), "the reply contains no choice"),
        (FakeReply::json(200, &json!({"choices": []})), "the reply contains no choice"),
        (FakeReply::json(200, &json!({})), "the reply contains no choice"),
        (FakeReply::text(200, "hello"), "HTTP 200 OK with text/plain is neither a completion"),
        (
            FakeReply::status(200)
                .header("content-type", "application/json")
                .bytes("data: {\"choices\": []}\n\n"),
            "the answer has the content type application/json, but is a stream of events: the server must send it as text/event-stream",
        ),
        (FakeReply::status(200), "with no content type is neither a completion"),
        (
            FakeReply::status(200).header("content-type", "application/json").bytes("{\"choices\": [{"),
            "the answer is not JSON",
        ),
        (ChatCompletion::new().chunk(chunk(json!({"function_call": {"name": "x"}}), None)).into(), MISPLACED),
        (ChatCompletion::new().chunk(chunk(json!({"toolCalls": [{"name": "x"}]}), None)).into(), MISPLACED),
        (FakeReply::json(200, &json!({"choices": [said_and(json!([{"name": "x"}]))]})), MISPLACED),
        (
            FakeReply::json(200, &json!({"choices": [said_and(json!(null))], "tool_calls": [{"name": "x"}]})),
            MISPLACED,
        ),
        (
            {
                ChatCompletion::new()
                    .chunk(chunk(json!({"role": "tool", "tool_call_id": "x", "content": "1"}), None))
                    .into()
            },
            "a result of tool call x, which was never announced",
        ),
        (
            ChatCompletion::new()
                .chunk(chunk(json!({"role": "tool", "content": "1"}), None))
                .finish("stop")
                .into(),
            "chunk 2 has a result without a `tool_call_id`",
        ),
        (
            // An echo of the prompt, whose later pieces have no role.
            FakeReply::sse()
                .event(chunk(json!({"role": "user", "content": "Hel"}), None))
                .event(chunk(json!({"content": "lo"}), Some("stop")))
                .bytes("data: [DONE]\n\n"),
            "chunk 1 has a message with role `user`; the agent's messages have the role `assistant`",
        ),
        (
            complete_reply(json!({"role": "system", "content": "Hello"}), "stop"),
            "the answer has a message with role `system`",
        ),
    ];
    for (reply, words) in cases {
        run_with_reply(move |_| reply.clone()).assert_failed(1, "protocol_error", words);
    }
}

/// Nothing that a server says or calls in the parts of a content may be invisible to checks.
#[test]
fn every_part_of_a_content_counts() {
    let run = |part: Value, streamed: bool| {
        let message = json!({"role": "assistant", "content": [{"type": "text", "text": "Hello. "}, part]});
        run_with_reply(move |_| match streamed {
            true => ChatCompletion::new().chunk(chunk(message.clone(), Some("stop"))).into(),
            false => complete_reply(message.clone(), "stop"),
        })
    };
    for (part, note) in [
        (json!("secret"), None),
        (json!({"type": "text", "text": {"value": "secret"}}), None),
        (json!({"text": "secret"}), None),
        (json!({"type": "refusal", "refusal": "secret"}), None),
        (json!({"type": "image_url", "image_url": {"url": "x"}, "text": "secret"}), None),
        (
            json!({"type": "image_url", "image_url": {"url": "x"}}),
            Some("a part `image_url`, which is not read"),
        ),
        (json!({"type": "thinking", "thinking": "hm"}), None),
        (json!({"type": "text", "text": "", "tool_calls": []}), None),
        (json!({"type": "text", "text": null}), None),
    ] {
        let has_secret = part.to_string().contains("secret");
        let tested = run(part.clone(), true);
        tested.assert_all_passed();
        let turn = &tested.case("a")["turns"][0];
        assert_eq!(turn["output"], if has_secret { "Hello. secret" } else { "Hello. " }, "{part}");
        let notes = turn["notes"].to_string();
        assert!(note.map_or(notes == "null", |note| notes.contains(note)), "{part}: {notes}");
    }
    for part in [json!({"type": "text", "content": "secret"}), json!({"content": "secret"}), json!(42)] {
        run(part, false).assert_failed(1, "protocol_error", "has a part without text in its `content`");
    }
    let calls = [
        json!({"toolUse": {"name": "delete", "input": {}}}),
        json!({"functionCall": {"name": "delete"}}),
        json!({"type": "tool-call", "toolName": "delete"}),
        json!({"type": "tool_use", "name": "delete"}),
        json!({"type": "server_tool_use", "name": "delete"}),
        json!({"type": "text", "text": "Hi.", "tool_calls": [{"name": "delete"}]}),
    ];
    for (part, streamed) in calls.into_iter().zip([true, false].into_iter().cycle()) {
        run(part, streamed).assert_failed(1, "protocol_error", "calls belong into `tool_calls`");
    }
}

#[test]
fn rejects_call_without_name() {
    let nameless = |_: &FakeRequest| {
        let call = json!({"index": 0, "id": "c", "function": {"arguments": "{\"a\":1}"}});
        ChatCompletion::new()
            .text("Hm.")
            .chunk(chunk(json!({"tool_calls": [call]}), None))
            .finish("tool_calls")
    };
    run_with_reply(nameless).assert_failed(
        1,
        "protocol_error",
        "a tool call has no name; its arguments are {\"a\":1}",
    );
    let tested = run_with_reply(|_| {
        let call = json!({"index": 0, "id": "c", "type": "web_search"});
        ChatCompletion::new().chunk(chunk(json!({"tool_calls": [call]}), None)).finish("tool_calls")
    });
    tested.assert_failed(1, "protocol_error", "a tool call has neither a name nor arguments");
    let tested = run_with_reply(|_| {
        let call = json!({"id": "c", "type": "custom", "custom": {"name": "search", "input": "shoes"}});
        complete_reply(json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
    });
    tested.assert_failed(1, "protocol_error", "a tool call has the type `custom`, which is not supported");
}

#[test]
fn empty_answer_is_an_error() {
    let nothing = |_: &FakeRequest| ChatCompletion::new().finish("stop");
    run_with_reply(nothing).assert_failed(
        1,
        "protocol_error",
        "the agent's answer is empty: no text and no tool call",
    );
    let null = |_: &FakeRequest| complete_reply(json!({"role": "assistant", "content": null}), "stop");
    run_with_reply(null).assert_failed(
        1,
        "protocol_error",
        "the agent's answer is empty: no text and no tool call",
    );
    let invisible = |_: &FakeRequest| text_reply(" \u{200b}\u{feff}");
    run_with_reply(invisible).assert_failed(
        1,
        "protocol_error",
        "the agent's answer is empty: no text and no tool call",
    );
    let thinks = |_: &FakeRequest| {
        ChatCompletion::new().chunk(chunk(json!({"reasoning": "Hm."}), None)).finish("stop")
    };
    run_with_reply(thinks).assert_failed(
        1,
        "protocol_error",
        "the agent's answer is empty: no text and no tool call",
    );
}

#[test]
fn event_without_choices_is_ignored_with_a_note() {
    let tested = run_with_reply(|_| {
        ChatCompletion::new().text("Hello").chunk(json!({"type": "ping", "code": 0})).finish("stop")
    });
    tested.assert_all_passed();
    let notes = tested.case("a")["turns"][0]["notes"].to_string();
    assert!(notes.contains("has no `choices`; it is ignored"), "{notes}");
}

/// MiniMax ends a stream with the whole message.
#[test]
fn a_whole_message_after_the_deltas_counts_once() {
    let call = json!({"index": 0, "id": "c-1", "type": "function", "function": {"name": "book", "arguments": "{\"to\":\"Rome\"}"}});
    let without_id =
        json!({"type": "function", "index": 0, "function": {"name": "book", "arguments": {"to": "Rome"}}});
    let streamed = |whole: Value| {
        let deltas = ChatCompletion::new()
            .chunk(chunk(json!({"reasoning_content": "Hm. ", "tool_calls": [call]}), None))
            .chunk(chunk(json!({"content": "hello "}), None))
            .chunk(chunk(json!({"content": "world"}), None));
        let choice = json!({"finish_reason": "stop", "index": 0, "message": whole});
        deltas.chunk(json!({"object": "chat.completion", "choices": [choice]}))
    };
    let message = |text: &str, call: &Value| json!({"role": "assistant", "content": text, "reasoning_content": "Hm. ", "tool_calls": [call]});
    for (text, said, is_noted) in [
        ("hello world", "hello world", false),
        ("hello world\n", "hello world\n", false),
        ("", "hello world", false),
        ("hello world, again", "hello world, again", false),
        ("bye", "hello worldbye", true),
    ] {
        for call in [&call, &without_id] {
            let reply = streamed(message(text, call));
            let tested = run_with_reply(move |_| reply.clone());
            tested.assert_all_passed();
            let turn = tested.case("a")["turns"][0].clone();
            assert_eq!(turn["output"], said, "{turn:#}");
            assert_eq!(turn["tool_calls"].as_array().map(Vec::len), Some(1), "{turn:#}");
            assert_eq!(
                turn["notes"].to_string().contains("differs from that of the deltas"),
                is_noted,
                "{turn:#}"
            );
        }
    }
}

#[test]
fn a_stream_without_chunks_shows_its_body() {
    let whole = json!({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]});
    for body in [whole.to_string(), format!("{whole:#}")] {
        let tested = run_with_reply(move |_| FakeReply::sse().bytes(body.clone()));
        let words = "the stream ended without a single chunk: HTTP 200 OK with text/event-stream; the body is JSON, not server-sent events: a whole completion needs the content type application/json";
        tested.assert_failed(1, "protocol_error", words);
        let detail = tested.failure("a")["detail"].to_string();
        assert!(detail.contains("Hello"), "{detail}");
    }
}

/// Errors of llama.cpp, vLLM, FastAPI, DashScope, MiniMax and Groq in a stream, with words of the message.
pub const PROVIDER_ERRORS: [(&str, &str); 7] = [
    (
        r#"data: {"choices":[{"index":0,"delta":{}}],"x_groq":{"id":"r","error":"upstream died"}}"#,
        "upstream died",
    ),
    (r#"error: {"code":500,"message":"context shift failed"}"#, "context shift failed"),
    (r#"data: {"object":"error","message":"EngineDeadError","param":null,"code":500}"#, "EngineDeadError"),
    (r#"data: {"detail":"Internal Server Error"}"#, "Internal Server Error"),
    (r#"data: {"code":"InternalError","message":"inference failed","request_id":"r"}"#, "inference failed"),
    (r#"data: {"choices":null,"base_resp":{"status_code":1002,"status_msg":"rate limit"}}"#, "rate limit"),
    (
        r#"data: {"choices":[{"index":0,"delta":{"content":" Bye."}}],"base_resp":{"status_code":1027,"status_msg":"sensitive"}}"#,
        "sensitive",
    ),
];

/// Finish reasons of a provider that failed.
pub const FAILURE_REASONS: [&str; 14] = [
    "server_error",
    "internal-error",
    "provider_error",
    "model_error",
    "failed",
    "cancelled",
    "engine_overloaded",
    "malformed_tool_use",
    "error",
    "network_error",
    "abort",
    "insufficient_system_resource",
    "malformed_function_call",
    "function_call_filter: MALFORMED_FUNCTION_CALL",
];

/// A stream of a provider that did not fail, although it looks so: Azure's first chunk, members `error` without an error, and
/// events with blank data.
pub fn harmless_stream() -> FakeReply {
    let filters = json!({"choices": [], "object": "", "prompt_filter_results": [{"prompt_index": 0}]});
    let mut completion = ChatCompletion::new().chunk(filters);
    for error in [json!(null), json!(""), json!({}), json!(false)] {
        let mut said = chunk(json!({"content": "Paid. ", "error": error}), None);
        said["choices"][0]["error"] = error.clone();
        said["error"] = error;
        said["base_resp"] = json!({"status_code": 0, "status_msg": ""});
        said["x_groq"] = json!({"id": "r", "error": null});
        completion = completion.chunk(said);
    }
    let usage =
        json!({"object": "chat.completion.chunk", "usage": {"prompt_tokens": 1, "completion_tokens": 1}});
    let blank = "data:\n\ndata: \n\n";
    completion.chunk(usage).finish("stop").without_end().bytes(blank).bytes("data: [DONE]\n\n")
}

/// Streams with a text, this event and the end marker, in both orders.
pub fn failing_streams(event: &str) -> [FakeReply; 2] {
    let (event, end) = (format!("{event}\n\n"), "data: [DONE]\n\n".to_string());
    [[event.clone(), end.clone()], [end, event]].map(|[first, last]| {
        let text = chunk(json!({"role": "assistant", "content": "Paid."}), Some("stop"));
        FakeReply::sse().event(text).bytes(first).bytes(last)
    })
}

#[test]
fn an_unknown_finish_reason_is_noted() {
    for (reason, is_noted) in
        [("tired", true), ("incomplete", true), ("eos", false), ("length", false), ("end-turn", false)]
    {
        let tested = run_with_reply(|_| ChatCompletion::new().text("Hello").finish(reason));
        tested.assert_all_passed();
        let notes = tested.case("a")["turns"][0]["notes"].to_string();
        let noted = notes.contains(&format!("the reply ends with an unknown finish_reason, {reason}"));
        assert_eq!(noted, is_noted, "{reason}: {notes}");
    }
}

#[test]
fn server_errors_are_agent_errors() {
    let told = json!({"error": {"message": "no such model", "code": "model_not_found"}});
    let status = told.clone();
    let tested = run_with_reply(move |_| FakeReply::json(404, &status));
    tested.assert_failed(1, "agent_error", "answered HTTP 404 Not Found; check `base_url` of the agent");
    assert!(tested.failure("a")["detail"].as_str().is_some_and(|detail| detail.contains("no such model")));
    run_with_reply(|_| FakeReply::text(429, "slow down")).assert_failed(1, "agent_error", "HTTP 429");
    let in_stream = told.clone();
    let tested = run_with_reply(move |_| FakeReply::sse().event(in_stream.clone()));
    tested.assert_failed(1, "agent_error", "the agent failed: no such model (model_not_found)");
    let listed = json!([told]);
    let tested = run_with_reply(move |_| FakeReply::json(200, &listed));
    tested.assert_failed(1, "agent_error", "the agent failed: no such model (model_not_found)");
    run_with_reply(move |_| FakeReply::json(200, &told)).assert_failed(1, "agent_error", "no such model");
    for data in [r#"{"message": "out of memory"}"#, r#"{"error": "out of memory"}"#, "out of memory"] {
        let stream = format!("event: error\ndata: {data}\n\n");
        let tested = run_with_reply(move |_| {
            let answer = chunk(json!({"content": "Hi."}), Some("stop"));
            FakeReply::sse().bytes(stream.clone()).event(answer).bytes("data: [DONE]\n\n")
        });
        tested.assert_failed(1, "agent_error", "the agent failed: out of memory");
    }
    // Further forms of servers and gateways, after the start of a reply that looks complete.
    for (event, words) in PROVIDER_ERRORS {
        for reply in failing_streams(event) {
            let tested = run_with_reply(move |_| reply.clone());
            tested.assert_failed(1, "agent_error", words);
        }
    }
    for reason in FAILURE_REASONS {
        let tested = run_with_reply(|_| ChatCompletion::new().text("Paid").finish(reason));
        tested.assert_failed(1, "agent_error", &format!("the reply ends with finish_reason {reason}"));
    }
    run_with_reply(|_| harmless_stream()).assert_all_passed();
    // Also after the end, and whatever the data.
    for (event, words) in [
        ("event: error\ndata: {\"message\": \"overloaded\"}\n\n", "the agent failed: overloaded"),
        ("event: error\ndata: [DONE]\n\n", "the agent failed: an event named `error`"),
        ("event: error\n\n", "the agent failed: an event named `error`"),
    ] {
        let tested =
            run_with_reply(move |_| ChatCompletion::new().text("Hi.").finish("stop").streamed().bytes(event));
        tested.assert_failed(1, "agent_error", words);
    }
    // Gateways report the error of a provider in the choice.
    let error = json!({"code": 502, "message": "provider died"});
    let said = json!({"role": "assistant", "content": "Hello"});
    let with_error = |mut value: Value| {
        value["error"] = error.clone();
        value
    };
    let choices = [
        with_error(json!({"message": said, "finish_reason": "stop"})),
        json!({"message": with_error(said.clone()), "finish_reason": "stop"}),
        with_error(json!({"delta": said, "finish_reason": "stop"})),
        json!({"delta": with_error(said.clone()), "finish_reason": "stop"}),
    ];
    for choice in choices {
        let completion = json!({"choices": [choice]});
        let whole = completion.clone();
        let tested = run_with_reply(move |_| FakeReply::json(200, &whole));
        tested.assert_failed(1, "agent_error", "the agent failed: provider died (502)");
        let tested =
            run_with_reply(move |_| FakeReply::sse().event(completion.clone()).bytes("data: [DONE]\n\n"));
        tested.assert_failed(1, "agent_error", "the agent failed: provider died (502)");
    }
    let fine = json!({"choices": [{"message": {"content": "Hello", "error": null}, "error": null, "finish_reason": "stop"}]});
    run_with_reply(move |_| FakeReply::json(200, &fine)).assert_all_passed();
    run_with_reply(|_| ChatCompletion::new().text("Oh").finish("error")).assert_failed(
        1,
        "agent_error",
        "finish_reason error",
    );
}

#[test]
fn requests_are_never_retried() {
    for reply in [
        || FakeReply::text(503, "busy"),
        || FakeReply::refused(),
        || ChatCompletion::new().text("H").without_end().cut(),
    ] {
        let server = FakeAgent::start(move |_| reply());
        let tested = run_hello(&project(&server, "").suite("a", HELLO));
        assert_eq!(tested.case("a")["status"], "failed");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn silent_slow_and_missing_servers_fail() {
    let silent = FakeAgent::start(|_| ChatCompletion::new().text("Hel").without_end().hang());
    let tested = run_hello(&project(&silent, "  idle_timeout_ms: 100\n").suite("a", HELLO));
    tested.assert_failed(1, "timeout", "the agent sent nothing for 100 ms");

    let never = FakeAgent::start(|_| FakeReply::never());
    let tested = run_hello(&project(&never, "  timeout_ms: 100\n").suite("a", HELLO));
    tested.assert_failed(1, "timeout", "the turn timed out after 100 ms");

    let drips = FakeAgent::start(|_| {
        let drip = |reply: FakeReply| {
            reply.event(chunk(json!({"content": "x"}), None)).pause(Duration::from_millis(20))
        };
        (0..500).fold(FakeReply::sse(), |reply, _| drip(reply))
    });
    let tested =
        run_hello(&project(&drips, "  timeout_ms: 1500\n  idle_timeout_ms: 1000\n").suite("a", HELLO));
    tested.assert_failed(1, "timeout", "the turn timed out after 1500 ms");

    let target = format!("target: {{ type: openai, base_url: '{}', model: m }}\n", unreachable_address());
    let tested = Project::with_config(&target).suite("a", HELLO).test(&[]);
    tested.assert_failed(3, "unreachable", "cannot reach");
}

#[test]
fn reports_reply_cut_at_token_limit() {
    let tested = run_with_reply(|_| ChatCompletion::new().text("And then").finish("length"));
    tested.assert_all_passed();
    let notes = tested.case("a")["turns"][0]["notes"].to_string();
    assert!(notes.contains("truncated at its token limit"), "{notes}");
}

// Secrets and settings.

#[test]
fn api_key_is_redacted_even_in_fragments() {
    let secret = "sk-0123456789";
    let server = FakeAgent::start(move |_| {
        ChatCompletion::new()
            .text(&format!("The key is {secret}."))
            .tool(0, "c", "tell", &json!({"key": secret}))
            .finish("stop")
    });
    let suite = "name: a\nturns: [{ user: hello }]\nassert: { text: { must_match: impossible } }\n";
    let project = project(&server, "").suite("a", suite);
    let output = project
        .command(&["test", "-v", "-o", "out/r.json", "-o", "out/r.xml", "--trace", "out/t.jsonl"])
        .env("KEY", secret)
        .run();
    assert_eq!(output.code, 1, "{output}");
    let trace = project.workspace.read("out/t.jsonl");
    let files = [trace.clone(), project.workspace.read("out/r.json"), project.workspace.read("out/r.xml")];
    for text in files.iter().chain([&output.stdout, &output.stderr]) {
        assert!(!text.contains(secret), "{text}");
    }
    // Joining the received fragments does not reveal it either.
    let pieces: String = trace
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"))
        .filter(|line| line["type"] == "raw")
        .flat_map(|line| {
            let delta = line["payload"]["event"]["choices"][0]["delta"].clone();
            let arguments = delta["tool_calls"][0]["function"]["arguments"].as_str().map(str::to_string);
            delta["content"].as_str().map(str::to_string).into_iter().chain(arguments)
        })
        .collect();
    assert!(pieces.contains("The key is [redacted:") && !pieces.contains(secret), "{pieces}");
}

#[test]
fn rejects_unsupported_input() {
    let target = "target: { type: openai, base_url: 'http://127.0.0.1:9/', model: m }\n";
    for (key, value) in [("threadId", "t"), ("state", "{}"), ("context", "[]")] {
        let suite = format!("name: a\n{key}: {value}\nturns: [{{ user: hello }}]\n");
        Project::with_config(target)
            .suite("a", &suite)
            .hotseat(&["test"])
            .assert_stderr(2, &[&format!("sets `{key}`, which its agent does not support")]);
    }
    let server = FakeAgent::start(|_| ChatCompletion::new().text("Hi.").finish("stop"));
    let suite = "name: a\nforwardedProps: { seed: 7 }\nturns: [{ user: hello }]\n";
    run_hello(&project(&server, "").suite("a", suite)).assert_all_passed();
    assert_eq!(server.requests()[0].json()["seed"], 7);
}

#[test]
fn rejects_invalid_settings_before_sending() {
    for (target, words) in [
        ("{ type: openai, base_url: 'http://127.0.0.1:9/' }", "`target` has no `model`"),
        (
            "{ type: openai, base_url: 'http://127.0.0.1:9/', model: m, endpoint: x }",
            "unknown key `endpoint`",
        ),
        ("{ type: openai, base_url: 'http://127.0.0.1:9/', model: m, history: some }", "`history` must be"),
        (
            "{ type: openai, base_url: 'http://127.0.0.1:9/', model: m, body: { a: '{{conversation}}' } }",
            "unknown placeholder `{{conversation}}`",
        ),
        (
            "{ type: openai, base_url: 'http://127.0.0.1:9/', model: m, body: { messages: [] } }",
            "`messages` of `body` would replace the messages of the conversation",
        ),
        (
            "{ type: openai, base_url: 'http://127.0.0.1:9/', model: m, api_key: k, headers: { authorization: b } }",
            "`api_key` and the header `Authorization` cannot be combined",
        ),
        (
            "{ type: openai, base_url: 'http://127.0.0.1:9/', model: m, api_key: '${ENV.NOT_SET}' }",
            "environment variable `NOT_SET` is not set",
        ),
    ] {
        Project::with_config(&format!("target: {target}\n"))
            .suite("a", HELLO)
            .hotseat(&["test"])
            .assert_stderr(2, &[words]);
    }
}

// History, attachments, options.

#[test]
fn history_attachments_and_options_are_encoded() {
    let server = FakeAgent::start(|_| ChatCompletion::new().text("Fine.").finish("stop"));
    let case = json!({
        "id": "a",
        "options": {"connector": "large", "metadata": {"scenario": "x"}},
        "messages": [
            {"role": "user", "content": "Book it"},
            {"role": "assistant", "tool_calls": [{"id": "c1", "name": "book", "arguments": {"to": "Rome"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        ],
        "turns": [{"input": "And this?", "attachments": [
            {"type": "image", "source": "data:image/png;base64,AAAA"},
            {"type": "image", "source": "https://example.com/a.png"},
            {"type": "audio", "source": "data:audio/mpeg;base64,BBBB"},
            {"type": "file", "source": "file://notes.txt"},
        ]}],
    });
    let project = project(&server, "").file("a.test.json", &case.to_string()).file("notes.txt", "notes");
    run_hello(&project).assert_all_passed();
    let body = server.requests()[0].json();
    assert_eq!((&body["model"], &body["metadata"]), (&json!("large"), &json!({"scenario": "x"})));
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": "Book it"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{\"to\":\"Rome\"}"}}]},
            {"role": "tool", "content": "ok", "tool_call_id": "c1"},
            {"role": "user", "content": [
                {"type": "text", "text": "And this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "mp3"}},
                {"type": "file", "file": {"filename": "notes.txt", "file_data": "data:text/plain;base64,bm90ZXM="}},
            ]},
        ])
    );
}

#[test]
fn rejects_unencodable_input_before_sending() {
    let server = FakeAgent::start(|_| ChatCompletion::new().text("Fine.").finish("stop"));
    let video = json!({"id": "a", "turns": [{"input": "x", "attachments": [{"type": "video", "source": "https://example.com/a.mp4"}]}]});
    project(&server, "")
        .file("a.test.json", &video.to_string())
        .hotseat(&["test"])
        .assert_stderr(2, &["video by URL cannot be sent to a chat completions API", "a.test.json:1:"]);
    assert_eq!(server.requests().len(), 0);

    let plain =
        format!("target:\n  type: http\n  endpoint: {server}\n  body: {{ message: '{{{{message}}}}' }}\n");
    for (case, words) in [
        (json!({"id": "a", "input": [{"content": "x"}, {"content": "y"}]}), "messages before the first turn"),
        (json!({"id": "a", "input": "x", "options": {"mode": "y"}}), "`options.mode`"),
        (
            json!({"id": "a", "input": {"content": [{"type": "image", "source": "data:image/png;base64,AA"}]}}),
            "`attachments`",
        ),
    ] {
        let output = Project::with_config(&plain).file("a.test.json", &case.to_string()).hotseat(&["test"]);
        let words = format!("this case sets {words}, which its agent does not support");
        assert!(output.code == 2 && output.stderr.contains(&words), "{words}: {output}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn cost_depends_on_the_model_that_the_completion_names() {
    for (model, is_dear) in [("dear", true), ("unknown", false)] {
        let server = FakeAgent::start(move |_| {
            let mut usage = chunk(json!({}), None);
            usage["choices"] = json!([]);
            usage["model"] = json!(model);
            usage["usage"] = json!({"prompt_tokens": 1_000_000, "completion_tokens": 10});
            ChatCompletion::new().text("Hello.").finish("stop").chunk(usage)
        });
        let url = format!("{server}v1");
        let config = format!(
            "target: {{ type: openai, base_url: '{url}', model: small }}\nconnectors:\n  \
             cheap: {{ type: openai, base_url: '{url}', model: small, price: {{ input: 1, output: 1 }} }}\n  \
             other: {{ type: openai, model: dear, price: {{ input: 9, output: 9 }} }}\n"
        );
        let suite = "name: a\nturns: [{ user: hello, options: { connector: cheap }, assert: { budget: { max_cost: 2 } } }]\n";
        let tested = Project::with_config(&config).suite("a", suite).test(&[]);
        match is_dear {
            false => tested.assert_all_passed(),
            true => assert_eq!(tested.failure("a")["kind"], "assertion", "{}", tested.output),
        }
    }
}

#[test]
fn error_of_a_result_is_that_of_the_tool() {
    let suite =
        "name: a\nturns: [{ user: hello, assert: [{ type: tool_result, tool: find, negate: true }] }]\n";
    let server = FakeAgent::start(|_| {
        let call = ChatCompletion::new().tool(0, "c1", "find", &json!({}));
        let result =
            json!({"role": "tool", "tool_call_id": "c1", "content": "no order", "error": {"message": "x"}});
        call.chunk(chunk(result, None)).text("No.").finish("stop")
    });
    let tested = run_hello(&project(&server, "").suite("a", suite));
    tested.assert_all_passed();
    assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["error"], "x: no order");
}

/// An error excuses only what is sent after it: a call or a text in the same completion or chunk counts.
#[test]
fn what_stands_beside_an_error_counts() {
    let call = json!({"index": 0, "id": "c1", "function": {"name": "delete", "arguments": "{}"}});
    let said = json!({"role": "assistant", "content": "secret", "tool_calls": [call]});
    let error = json!({"message": "nope"});
    let whole = json!({"choices": [{"message": said, "finish_reason": "error"}], "error": error});
    let streamed = json!({"choices": [{"delta": said, "finish_reason": null}], "error": error});
    // As OpenRouter sends it.
    let in_choice = json!({"choices": [{"delta": said, "finish_reason": "error", "error": error}]});
    let misplaced =
        json!({"choices": [{"delta": said}, {"index": 0, "delta": {"role": "user"}}], "error": error});
    for reply in [
        FakeReply::json(200, &whole),
        FakeReply::sse().event(streamed.clone()),
        FakeReply::sse().event(in_choice),
        FakeReply::sse().event(misplaced),
        FakeReply::sse().bytes(format!("event: error\ndata: {streamed}\n\n")),
    ] {
        for (assertion, passes) in [
            ("tools: { forbid: [delete] }", false),
            ("tools: { require: [delete] }", true),
            ("text: { must_not_match: secret }", false),
            ("text: { must_match: ^secret$ }", true),
        ] {
            let reply = reply.clone();
            let server = FakeAgent::start(move |_| reply.clone());
            let suite = format!(
                "name: a\nturns: [{{ user: hello, expect_error: ^nope$, assert: {{ {assertion} }} }}]\n"
            );
            let tested = run_hello(&project(&server, "").suite("a", &suite));
            assert_eq!(tested.output.code, i32::from(!passes), "{assertion}: {}", tested.output);
        }
    }
    // The error counts more than a part beside it that cannot be read.
    let broken = json!({"choices": "none", "error": error});
    let server = FakeAgent::start(move |_| FakeReply::json(200, &broken));
    let suite = "name: a\nturns: [{ user: hello, expect_error: ^nope$ }]\n";
    run_hello(&project(&server, "").suite("a", suite)).assert_all_passed();
}
