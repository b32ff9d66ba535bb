//! Agents behind chat completions, from outside.
#![cfg(unix)]

mod common;

use std::time::Duration;

use hotseat_testkit::completions::{Completion, chunk, whole};
use hotseat_testkit::{FakeAgent, Reply, Request};
use serde_json::{Value, json};

use common::{Project, Tested, nobody};

const HELLO: &str = "name: a\nturns: [{ user: hello }]\n";

/// A project whose target is this server.
fn project(server: &FakeAgent, more: &str) -> Project {
    Project::with(&format!(
        "target:\n  type: openai\n  base_url: {}v1\n  model: small\n  api_key: '${{ENV.KEY}}'\n{more}",
        server.url()
    ))
}

fn test(project: &Project) -> Tested {
    project.test_in(&[("KEY", "sk-0123456789")], &["--trace", "out/trace.jsonl"])
}

/// Holds one turn with a server that answers like this.
#[track_caller]
fn hears<R: Into<Reply>>(reply: impl Fn(&Request) -> R + Send + Sync + 'static) -> Tested {
    let server = FakeAgent::start(reply);
    test(&project(&server, "").suite("a", HELLO))
}

/// No pass: it failed in this way, with these words.
#[track_caller]
fn not_a_pass(tested: &Tested, code: i32, kind: &str, words: &str) {
    let failure = tested.failure("a");
    assert_eq!(failure["kind"], kind, "{failure:#}");
    let message = failure["message"].as_str().unwrap_or_default();
    assert!(message.contains(words), "{words:?} is not in {message:?}");
    assert_eq!(tested.output.code, code, "{}", tested.output);
}

// What is sent.

#[test]
fn the_request_is_what_the_protocol_says() {
    let server = FakeAgent::start(|_| Completion::new().text("Hello there.").finish("stop"));
    let more = "  system: Be brief.\n  temperature: 0.5\n  headers: { X-Team: blue }\n  body: { max_tokens: 50, stream_options: null, user: '{{conversation_id}}' }\n";
    let tested = test(&project(&server, more).suite("a", HELLO));
    tested.all_passed();
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

#[test]
fn the_address_may_name_the_route() {
    let server = FakeAgent::start(|_| Completion::new().text("Hello.").finish("stop"));
    let target =
        format!("target: {{ type: openai, base_url: '{}x/chat/completions/', model: m }}\n", server.url());
    Project::with(&target).suite("a", HELLO).test(&[]).all_passed();
    assert_eq!(server.requests()[0].path, "/x/chat/completions");
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[test]
fn later_turns_carry_the_whole_conversation() {
    let server = FakeAgent::start(|request| {
        Completion::new().text(&format!("answer {}", request.index + 1)).finish("stop")
    });
    let suite = "name: a\nturns: [{ user: one }, { user: two }]\n";
    test(&project(&server, "").suite("a", suite)).all_passed();
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    assert_eq!(
        server.requests()[1].json()["messages"],
        json!([said("user", "one"), said("assistant", "answer 1"), said("user", "two")])
    );
}

#[test]
fn a_server_that_keeps_conversations_is_told_only_what_is_new() {
    let server = FakeAgent::start(|_| Completion::new().text("fine").finish("stop"));
    let suite = "name: a\nthreadId: t-7\nturns: [{ user: one }, { user: two }]\n";
    let more = "  history: delta\n  body: { metadata: { chat_id: '{{conversation_id}}' } }\n";
    test(&project(&server, more).suite("a", suite)).all_passed();
    for (request, said) in server.requests().iter().zip(["one", "two"]) {
        assert_eq!(request.json()["messages"], json!([{"role": "user", "content": said}]));
        assert_eq!(request.json()["metadata"]["chat_id"], "t-7");
    }
}

// What is read.

#[test]
fn text_calls_usage_and_reasons_are_recorded() {
    let tested = hears(|_| {
        Completion::new()
            .chunk(chunk(json!({"reasoning_content": "Let me "}), None))
            .chunk(chunk(json!({"reasoning_content": "see."}), None))
            .text("One moment.")
            .tool(0, "c1", "search", &json!({"query": "shoes", "limit": 3}))
            .tool(1, "c2", "search", &json!({"query": "socks"}))
            .finish("stop")
    });
    tested.all_passed();
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

#[test]
fn a_whole_completion_is_read_as_well_whatever_was_asked_for() {
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "search", "arguments": "{\"q\":1}"}});
    for stream in ["true", "false"] {
        let call = call.clone();
        let server = FakeAgent::start(move |_| {
            whole(json!({"role": "assistant", "content": "Hi.", "tool_calls": [call]}), "stop")
        });
        let tested = test(&project(&server, &format!("  stream: {stream}\n")).suite("a", HELLO));
        tested.all_passed();
        let turn = &tested.case("a")["turns"][0];
        assert_eq!((&turn["output"], &turn["tool_calls"][0]["args"]), (&json!("Hi."), &json!({"q": 1})));
        assert_eq!(server.requests()[0].json()["stream"], stream == "true");
    }
    let streamed = FakeAgent::start(|_| Completion::new().text("Hi.").finish("stop"));
    test(&project(&streamed, "  stream: false\n").suite("a", HELLO)).all_passed();
}

#[test]
fn the_pieces_of_a_stream_may_come_in_any_portions() {
    let tested = hears(|_| {
        let tool = json!({"city": "Zürich", "note": "a \"quoted\" word"});
        Completion::new()
            .text("Grüezi 🙂.")
            .tool(0, "c", "weather", &tool)
            .finish("stop")
            .streamed()
            .in_pieces_of(1)
    });
    tested.all_passed();
    let turn = &tested.case("a")["turns"][0];
    assert_eq!(turn["output"], "Grüezi 🙂.");
    assert_eq!(turn["tool_calls"][0]["args"]["city"], "Zürich");
}

#[test]
fn what_the_agent_declares_is_in_the_trace() {
    let server = FakeAgent::start(|_| {
        let declared = json!({"content": "How much?", "awaiting_input": true, "input_hint": "an amount"});
        Completion::new().chunk(chunk(declared, None)).finish("stop")
    });
    let project = project(&server, "").suite("a", HELLO);
    test(&project).all_passed();
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
fn a_server_that_runs_its_tools_itself_may_tell_their_results() {
    let server = FakeAgent::start(|request| {
        let result = json!({"role": "tool", "tool_call_id": "c", "content": "{\"total\":3}"});
        match request.index {
            0 => Completion::new()
                .tool(0, "c", "search", &json!({}))
                .chunk(chunk(result, None))
                .text("Found 3.")
                .finish("stop"),
            _ => Completion::new().text("Bye.").finish("stop"),
        }
    });
    let suite = "name: a\nturns: [{ user: search }, { user: bye }]\nassert: { tools: { require: [{ name: search, result_match: '\"total\":3' }] } }\n";
    test(&project(&server, "").suite("a", suite)).all_passed();
    // What the server did itself is its own to remember.
    let history = server.requests()[1].json()["messages"].clone();
    assert_eq!(history[1], json!({"role": "assistant", "content": "Found 3."}));
    assert_eq!(history.as_array().map(Vec::len), Some(3));
}

// Tools that the test answers.

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
fn the_test_answers_the_tools_that_it_offers() {
    let server = FakeAgent::start(|request| match request.index {
        0 => Completion::new()
            .text("Wait.")
            .tool(0, "c-1", "confirm", &json!({"what": "pay 5"}))
            .finish("tool_calls"),
        // Some servers say `stop` where they mean that calls are to be made.
        1 => Completion::new().tool(0, "c-1", "confirm", &json!({"what": "really"})).finish("stop"),
        2 => Completion::new().text("Paid.").finish("stop"),
        _ => Completion::new().text("You are welcome.").finish("stop"),
    });
    let tested = test(&project(&server, "").suite("a", CONFIRM));
    tested.all_passed();
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
    // The server used an id twice; these are two calls all the same.
    let calls = tested.case("a")["turns"][0]["tool_calls"].as_array().expect("a list").clone();
    assert_eq!((&calls[0]["result"], &calls[1]["error"]), (&json!({"ok": true}), &json!("the user said no")));
}

#[test]
fn calls_that_nobody_answers_are_no_pass() {
    let tested = hears(|_| Completion::new().tool(0, "c", "pay", &json!({})).finish("tool_calls"));
    not_a_pass(&tested, 1, "test_error", "the agent called tool pay and waits for its result");

    let server = FakeAgent::start(|_| {
        Completion::new().tool(0, "c", "confirm", &json!({"what": "x"})).finish("tool_calls")
    });
    let suite = "name: a\ntools: [{ name: confirm, answers: [{ args_match: { what: ^pay }, content: ok }] }]\nturns: [{ user: hello }]\n";
    let tested = test(&project(&server, "").suite("a", suite));
    not_a_pass(
        &tested,
        1,
        "test_error",
        "client tool confirm was called with {\"what\":\"x\"} and no scripted answer fits",
    );
}

/// A suite whose tool is answered by a server, unless the first answer fits.
fn asked_at(tools: &FakeAgent, must_match: &str) -> String {
    format!(
        "
name: a
tools:
  - name: confirm
    answers: [{{ args_match: {{ what: ^pay }}, content: scripted }}]
    url: '{}tools/confirm'
turns: [{{ user: go }}]
assert: {{ text: {{ must_match: '{must_match}' }} }}
",
        tools.url()
    )
}

/// An agent that calls the tool with what it was told at first, and then tells what the tool returned.
fn confirms(what: &'static str) -> FakeAgent {
    FakeAgent::start(move |request| match request.index {
        0 => Completion::new().tool(0, "c-1", "confirm", &json!({"what": what})).finish("tool_calls"),
        _ => {
            let messages = request.json()["messages"].clone();
            let told = messages.as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
            Completion::new().text(told["content"].as_str().unwrap_or("nothing")).finish("stop")
        }
    })
}

#[test]
fn a_tool_can_be_answered_by_a_server() {
    let tools = FakeAgent::start(|_| Reply::json(200, &json!({"confirmed": 7})));
    let agent = confirms("delete");
    let suite = asked_at(&tools, "^.\"confirmed\":7.$");
    let tested = test(&project(&agent, "").suite("a", &suite));
    tested.all_passed();
    assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["result"], json!({"confirmed": 7}));
    let [asked] = tools.requests().try_into().expect("one request");
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/tools/confirm"));
    assert_eq!(asked.json(), json!({"id": "c-1", "name": "confirm", "arguments": {"what": "delete"}}));

    // What is scripted comes first.
    test(&project(&confirms("pay 5"), "").suite("a", &asked_at(&tools, "^scripted$"))).all_passed();
    assert_eq!(tools.requests().len(), 1);

    // A tool that fails has failed for the agent, which is told so.
    let broken = FakeAgent::start(|_| Reply::text(500, "no database"));
    let suite = asked_at(&broken, "HTTP 500 Internal Server Error: no database");
    let tested = test(&project(&confirms("delete"), "").suite("a", &suite));
    tested.all_passed();
    let error = tested.case("a")["turns"][0]["tool_calls"][0]["error"].clone();
    assert!(error.as_str().is_some_and(|error| error.contains("no database")), "{error}");
}

#[test]
fn a_tool_server_that_does_not_answer_is_no_pass() {
    let silent = FakeAgent::start(|_| Reply::never());
    let suite = asked_at(&silent, "x");
    let tested = test(&project(&confirms("delete"), "  idle_timeout_ms: 100\n").suite("a", &suite));
    not_a_pass(
        &tested,
        1,
        "test_error",
        "client tool confirm could not be asked: it sent nothing for 100 ms",
    );
    let tested = test(&project(&confirms("delete"), "  timeout_ms: 200\n").suite("a", &suite));
    not_a_pass(&tested, 1, "timeout", "the turn timed out after 200 ms");
    let cut = FakeAgent::start(|_| Reply::text(200, "half").cut());
    let tested = test(&project(&confirms("delete"), "").suite("a", &asked_at(&cut, "x")));
    not_a_pass(&tested, 1, "test_error", "client tool confirm could not be asked: the connection broke");
    let suite = asked_at(&cut, "x").replace(&cut.url(), &nobody());
    let tested = test(&project(&confirms("delete"), "").suite("a", &suite));
    not_a_pass(&tested, 1, "test_error", "client tool confirm could not be asked: cannot reach");
}

#[test]
fn an_agent_that_asks_for_ever_is_stopped() {
    let server =
        FakeAgent::start(|_| Completion::new().tool(0, "c", "confirm", &json!({})).finish("tool_calls"));
    let suite = "name: a\ntools: [{ name: confirm, answers: [{ content: ok }] }]\nturns: [{ user: hello }]\n";
    let tested = test(&project(&server, "").suite("a", suite));
    not_a_pass(&tested, 1, "agent_error", "25 times in one turn");
    assert_eq!(server.requests().len(), 25);
}

// What is not a pass.

#[test]
fn a_stream_that_is_cut_is_no_reply() {
    let cases: [(Reply, &str); 7] = [
        (Reply::sse(), "the stream ended without a single chunk"),
        (Reply::sse().bytes("data: {\"choi"), "in the middle of its first chunk"),
        (Completion::new().text("Hel").unfinished(), "without finish_reason and `[DONE]`"),
        (
            Completion::new().text("Hello.").finish("stop").unfinished(),
            "with finish_reason stop and without `[DONE]`",
        ),
        (Completion::new().text("Hel").unfinished().cut(), "the connection broke"),
        (Completion::new().text("Hel").unfinished().reset(), "the connection broke"),
        (
            Completion::new().text("Hel").unfinished().until_close().cut(),
            "without finish_reason and `[DONE]`",
        ),
    ];
    for (reply, words) in cases {
        not_a_pass(&hears(move |_| reply.clone()), 1, "protocol_error", words);
    }
}

#[test]
fn what_came_before_a_cut_is_kept() {
    let tested = hears(|_| {
        Completion::new().text("Deleting.").tool(0, "c", "delete", &json!({"all": true})).unfinished()
    });
    not_a_pass(&tested, 1, "protocol_error", "without finish_reason");
    let turn = &tested.case("a")["turns"][0];
    assert_eq!((&turn["output"], &turn["tool_calls"][0]["name"]), (&json!("Deleting."), &json!("delete")));
}

#[test]
fn what_is_no_completion_is_told_with_its_beginning() {
    let cases: [(Reply, &str); 12] = [
        (Reply::sse().bytes("data: hello\n\n"), "chunk 1 is not JSON"),
        (
            Reply::sse().event(json!({"choices": [{"delta": {"content": 42}}]})),
            "chunk 1 has a `content` that is no text: 42",
        ),
        (Reply::sse().event(json!([])), "chunk 1 is not a chat completion"),
        (Reply::sse().event(json!({"choices": []})).bytes("data: [DONE]\n\n"), "the reply holds no choice"),
        (Reply::sse().bytes("data: [DONE]\n\n"), "the reply holds no choice"),
        (Reply::json(200, &json!({"choices": []})), "the reply holds no choice"),
        (Reply::json(200, &json!({})), "the reply holds no choice"),
        (Reply::text(200, "hello"), "HTTP 200 OK with text/plain is neither a completion"),
        (Reply::status(200), "with no content type is neither a completion"),
        (
            Reply::status(200).header("content-type", "application/json").bytes("{\"choices\": [{"),
            "the answer is not JSON",
        ),
        (
            Completion::new().chunk(chunk(json!({"function_call": {"name": "x"}}), None)).into(),
            "the form before `tool_calls`",
        ),
        (
            {
                Completion::new()
                    .chunk(chunk(json!({"role": "tool", "tool_call_id": "x", "content": "1"}), None))
                    .into()
            },
            "a result of tool call x, which was never announced",
        ),
    ];
    for (reply, words) in cases {
        not_a_pass(&hears(move |_| reply.clone()), 1, "protocol_error", words);
    }
}

#[test]
fn a_call_without_a_name_is_no_call() {
    let nameless = |_: &Request| {
        let call = json!({"index": 0, "id": "c", "function": {"arguments": "{\"a\":1}"}});
        Completion::new().text("Hm.").chunk(chunk(json!({"tool_calls": [call]}), None)).finish("tool_calls")
    };
    not_a_pass(&hears(nameless), 1, "protocol_error", "a tool call has no name; its arguments are {\"a\":1}");
}

#[test]
fn an_answer_that_says_nothing_is_none() {
    let nothing = |_: &Request| Completion::new().finish("stop");
    not_a_pass(&hears(nothing), 1, "protocol_error", "the agent answered with nothing");
    let null = |_: &Request| whole(json!({"role": "assistant", "content": null}), "stop");
    not_a_pass(&hears(null), 1, "protocol_error", "the agent answered with nothing");
    let thinks =
        |_: &Request| Completion::new().chunk(chunk(json!({"reasoning": "Hm."}), None)).finish("stop");
    not_a_pass(&hears(thinks), 1, "protocol_error", "the agent answered with nothing");
}

#[test]
fn errors_of_the_server_are_errors_of_the_agent() {
    let told = json!({"error": {"message": "no such model", "code": "model_not_found"}});
    let status = told.clone();
    let tested = hears(move |_| Reply::json(404, &status));
    not_a_pass(&tested, 1, "agent_error", "answered HTTP 404 Not Found; check target.base_url");
    assert!(tested.failure("a")["detail"].as_str().is_some_and(|detail| detail.contains("no such model")));
    not_a_pass(&hears(|_| Reply::text(429, "slow down")), 1, "agent_error", "HTTP 429");
    let in_stream = told.clone();
    let tested = hears(move |_| Reply::sse().event(in_stream.clone()));
    not_a_pass(&tested, 1, "agent_error", "the agent failed: no such model (model_not_found)");
    not_a_pass(&hears(move |_| Reply::json(200, &told)), 1, "agent_error", "no such model");
    not_a_pass(
        &hears(|_| Completion::new().text("Oh").finish("error")),
        1,
        "agent_error",
        "finish_reason error",
    );
}

#[test]
fn nothing_is_sent_twice() {
    for reply in
        [|| Reply::text(503, "busy"), || Reply::refused(), || Completion::new().text("H").unfinished().cut()]
    {
        let server = FakeAgent::start(move |_| reply());
        let tested = test(&project(&server, "").suite("a", HELLO));
        assert_eq!(tested.case("a")["status"], "failed");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_server_that_is_silent_slow_or_not_there() {
    let silent = FakeAgent::start(|_| Completion::new().text("Hel").unfinished().hang());
    let tested = test(&project(&silent, "  idle_timeout_ms: 100\n").suite("a", HELLO));
    not_a_pass(&tested, 1, "timeout", "the agent sent nothing for 100 ms");

    let never = FakeAgent::start(|_| Reply::never());
    let tested = test(&project(&never, "  timeout_ms: 100\n").suite("a", HELLO));
    not_a_pass(&tested, 1, "timeout", "the turn timed out after 100 ms");

    let drips = FakeAgent::start(|_| {
        let drip =
            |reply: Reply| reply.event(chunk(json!({"content": "x"}), None)).pause(Duration::from_millis(20));
        (0..500).fold(Reply::sse(), |reply, _| drip(reply))
    });
    let tested = test(&project(&drips, "  timeout_ms: 200\n  idle_timeout_ms: 150\n").suite("a", HELLO));
    not_a_pass(&tested, 1, "timeout", "the turn timed out after 200 ms");

    let target = format!("target: {{ type: openai, base_url: '{}', model: m }}\n", nobody());
    let tested = Project::with(&target).suite("a", HELLO).test(&[]);
    not_a_pass(&tested, 3, "unreachable", "cannot reach");
}

#[test]
fn a_reply_that_was_cut_at_its_limit_says_so() {
    let tested = hears(|_| Completion::new().text("And then").finish("length"));
    tested.all_passed();
    let notes = tested.case("a")["turns"][0]["notes"].to_string();
    assert!(notes.contains("cut at its token limit"), "{notes}");
}

// Secrets and settings.

#[test]
fn the_key_is_never_shown_not_even_in_pieces() {
    let secret = "sk-0123456789";
    let server = FakeAgent::start(move |_| {
        Completion::new()
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
    // Whoever puts the received pieces together again does not find it either.
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
fn what_the_agent_could_not_be_told_is_refused() {
    let target = "target: { type: openai, base_url: 'http://127.0.0.1:9/', model: m }\n";
    for (key, value) in [("threadId", "t"), ("state", "{}"), ("context", "[]")] {
        let suite = format!("name: a\n{key}: {value}\nturns: [{{ user: hello }}]\n");
        let output = Project::with(target).suite("a", &suite).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{output}");
        assert!(output.stderr.contains(&format!("gives `{key}`, which its agent is never told")), "{output}");
    }
    let server = FakeAgent::start(|_| Completion::new().text("Hi.").finish("stop"));
    let suite = "name: a\nforwardedProps: { seed: 7 }\nturns: [{ user: hello }]\n";
    test(&project(&server, "").suite("a", suite)).all_passed();
    assert_eq!(server.requests()[0].json()["seed"], 7);
}

#[test]
fn settings_that_are_wrong_are_refused_before_anything_is_sent() {
    for (target, words) in [
        ("{ type: openai, base_url: 'http://127.0.0.1:9/' }", "`target` has no `model`"),
        (
            "{ type: openai, base_url: 'http://127.0.0.1:9/', model: m, endpoint: x }",
            "unknown key `endpoint`",
        ),
        ("{ type: openai, base_url: 'http://127.0.0.1:9/', model: m, history: some }", "`history` must be"),
        (
            "{ type: openai, base_url: 'http://127.0.0.1:9/', model: m, body: { a: '{{conversation}}' } }",
            "`{{conversation}}` is no placeholder",
        ),
        (
            "{ type: openai, base_url: 'http://127.0.0.1:9/', model: m, api_key: k, headers: { authorization: b } }",
            "are two keys",
        ),
        (
            "{ type: openai, base_url: 'http://127.0.0.1:9/', model: m, api_key: '${ENV.NOT_SET}' }",
            "environment variable `NOT_SET` is not set",
        ),
    ] {
        let output = Project::with(&format!("target: {target}\n")).suite("a", HELLO).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{output}");
        assert!(output.stderr.contains(words), "{words}: {output}");
    }
}

// History, attachments, options.

#[test]
fn history_attachments_and_options_have_their_forms() {
    let server = FakeAgent::start(|_| Completion::new().text("Fine.").finish("stop"));
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
    test(&project).all_passed();
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
fn what_has_no_form_is_refused_before_anything_is_sent() {
    let server = FakeAgent::start(|_| Completion::new().text("Fine.").finish("stop"));
    let video = json!({"id": "a", "turns": [{"input": "x", "attachments": [{"type": "video", "source": "https://example.com/a.mp4"}]}]});
    let output = project(&server, "").file("a.test.json", &video.to_string()).hotseat(&["test"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("the address of video cannot be sent over chat completions"), "{output}");
    assert!(output.stderr.contains("a.test.json:1:"), "{output}");
    assert_eq!(server.requests().len(), 0);

    let plain = format!(
        "target:\n  type: http\n  endpoint: {}\n  body: {{ message: '{{{{message}}}}' }}\n",
        server.url()
    );
    for (case, words) in [
        (json!({"id": "a", "input": [{"content": "x"}, {"content": "y"}]}), "messages before the first turn"),
        (json!({"id": "a", "input": "x", "options": {"mode": "y"}}), "`options.mode`"),
        (
            json!({"id": "a", "input": {"content": [{"type": "image", "source": "data:image/png;base64,AA"}]}}),
            "`attachments`",
        ),
    ] {
        let output = Project::with(&plain).file("a.test.json", &case.to_string()).hotseat(&["test"]);
        let words = format!("this case gives {words}, which its agent is never told");
        assert!(output.code == 2 && output.stderr.contains(&words), "{words}: {output}");
    }
    assert_eq!(server.requests().len(), 0);
}
