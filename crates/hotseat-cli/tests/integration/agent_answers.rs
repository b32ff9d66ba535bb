//! Answers that are ambiguous or not UTF-8 fail in every protocol: no assertion about what is absent passes.

use crate::common::{Project, TestRun};
use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::completions::{ChatCompletion, chunk, complete_reply};
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

/// Assertions that an absent answer would meet.
const ABSENT: &str = r"name: a
turns:
  - user: hello
    assert:
      - { type: not_contains, value: delete }
      - { type: tool_called, name: delete, negate: true }
";

fn over_ag_ui(run: impl Fn(FakeRun) -> FakeRun + Send + Sync + 'static) -> TestRun {
    let server = FakeAgent::with_run(move |started, _| run(started).finished());
    Project::with_agent(&server).suite("a", ABSENT).test(&[])
}

fn over_chat(reply: FakeReply) -> TestRun {
    let server = FakeAgent::start(move |_: &FakeRequest| reply.clone());
    let target = format!("target: {{ type: openai, base_url: '{server}v1', model: small }}\n");
    Project::with_config(&target).suite("a", ABSENT).test(&[])
}

fn over_http(settings: &str, reply: FakeReply) -> TestRun {
    let server = FakeAgent::start(move |_: &FakeRequest| reply.clone());
    let target = format!(
        "target: {{ type: http, endpoint: '{server}', body: {{ text: '{{{{message}}}}' }}, {settings} }}\n"
    );
    Project::with_config(&target).suite("a", ABSENT).test(&[])
}

fn over_lines(printed: &str) -> TestRun {
    Project::with_config("target: { type: command, command: [sh, agent.sh] }\n")
        .file("agent.sh", &format!("read -r message\nprintf '{printed}'\n"))
        .suite("a", ABSENT)
        .test(&[])
}

const MAPPED: &str = "map: { reply: $.reply, tool_calls: { path: $.calls, name: $.name } }";
const STREAMED: &str =
    "stream: ndjson, map: { reply: $.reply, tool_calls: { path: $.calls, name: $.name }, done: $.end }";

#[test]
fn repeated_key_is_an_error() {
    let repeated = r#"{"reply": "Done.", "calls": [{"name": "delete"}], "calls": []}"#;
    let words = r#"has a duplicate key \"calls\""#;
    over_http(MAPPED, FakeReply::text(200, repeated)).assert_failure("a", "protocol_error", &[words]);
    let line = repeated.replace("]}", "], \"end\": true}\n");
    over_http(STREAMED, FakeReply::text(200, &line)).assert_failure("a", "protocol_error", &[words]);
    let line = r#"{"type":"tool_call","name":"delete","name":"look"}\n{"type":"done"}\n"#;
    over_lines(line).assert_failure("a", "protocol_error", &[r#"has a duplicate key \"name\""#]);
}

/// Arguments beside `function` would count as none.
#[test]
fn misplaced_arguments_in_a_snapshot_are_an_error() {
    let whole = json!({"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let mut beside = whole.clone();
    beside["arguments"] = json!({"id": 7});
    let mut renamed = whole.clone();
    renamed["function"]["input"] = json!({"id": 7});
    for call in [beside, renamed] {
        let message = json!({"id": "a", "role": "assistant", "content": "Done.", "toolCalls": [call]});
        let tested = over_ag_ui(move |run| run.messages_snapshot(vec![message.clone()]));
        tested.assert_failure(
            "a",
            "protocol_error",
            &["MESSAGES_SNAPSHOT has a tool call that is not an entry of"],
        );
    }
    let message = json!({"id": "a", "role": "assistant", "content": "Done.", "toolCalls": [whole]});
    over_ag_ui(move |run| run.messages_snapshot(vec![message.clone()])).assert_all_passed();
}

/// Within members that hold any JSON, a parser would keep the last value.
#[test]
fn repeated_key_within_a_member_is_an_error() {
    let events = [
        r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"assistant","content":"Done.","toolCalls":[{"id":"c","type":"function","function":{"name":"delete","arguments":"{}"}}],"toolCalls":[]}]}"#,
        r#"{"type":"STATE_SNAPSHOT","snapshot":{"status":"deleted","status":"ok"}}"#,
        r#"{"type":"STATE_DELTA","delta":[{"op":"add","path":"/status","value":"deleted","value":"ok"}]}"#,
        r#"{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":{"status":"deleted","status":"ok"}}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":{"status":"deleted","status":"ok"}}"#,
        r#"{"type":"CUSTOM","name":"n","value":[{"status":"deleted","status":"ok"}]}"#,
    ];
    for event in events {
        let server = FakeAgent::start(move |_: &FakeRequest| {
            let started = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"});
            FakeReply::sse().event(started).bytes(format!("data: {event}\n\n").into_bytes())
        });
        let tested = Project::with_agent(&server).suite("a", ABSENT).test(&[]);
        tested.assert_failure("a", "protocol_error", &["duplicate key"]);
    }
    for message in [
        r#"{"content":[{"type":"text","text":"delete","text":"Done."}]}"#,
        r#"{"tool_calls":[{"id":"c","function":{"name":"look","arguments":{"id":"delete","id":"ok"}}}]}"#,
    ] {
        let whole = format!(r#"{{"choices":[{{"message":{message},"finish_reason":"stop"}}]}}"#);
        let reply =
            FakeReply::status(200).header("content-type", "application/json").bytes(whole.into_bytes());
        over_chat(reply).assert_failure("a", "protocol_error", &["duplicate key"]);
    }
}

/// Some servers write calls where chat completions have none.
#[test]
fn calls_in_other_places_of_a_completion_are_errors() {
    let call = json!({"id": "c", "function": {"name": "delete", "arguments": "{}"}});
    let part = json!({"content": [{"type": "text", "text": "Done."}, {"type": "tool_use", "name": "delete", "input": {}}]});
    for (choice, words) in [
        (json!({"message": part}), "has a part `tool_use` in its `content`"),
        (
            json!({"delta": {"content": "Done."}, "message": {"tool_calls": [call]}}),
            "has a `delta` and a `message`",
        ),
    ] {
        let whole = json!({"choices": [choice]});
        over_chat(FakeReply::json(200, &whole)).assert_failure("a", "protocol_error", &[words]);
    }
}

#[test]
fn byte_order_mark_is_not_part_of_an_answer() {
    let marked = |text: &str| FakeReply::status(200).bytes(format!("\u{feff}{text}").into_bytes());
    over_http(MAPPED, marked(r#"{"reply": "Done.", "calls": []}"#)).assert_all_passed();
    over_http(STREAMED, marked("{\"reply\": \"Done.\"}\n{\"end\": true}\n")).assert_all_passed();
    over_lines(r#"\357\273\277{"type":"text","text":"Done."}\n{"type":"done"}\n"#).assert_all_passed();
    let whole = json!({"choices": [{"message": {"role": "assistant", "content": "Done."}}]});
    over_chat(marked(&whole.to_string()).header("content-type", "application/json")).assert_all_passed();
    let equal = "name: a\nturns: [{ user: hello, assert: [{ type: equals, value: Done. }] }]\n";
    let program =
        Project::with_config("target: { type: command, protocol: text, command: [sh, agent.sh] }\n")
            .file("agent.sh", "printf '\\357\\273\\277Done.'\n");
    program.suite("a", equal).test(&[]).assert_all_passed();
}

#[test]
fn answers_of_another_protocol_name_it() {
    let stream = |events: &[Value]| {
        let events: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        FakeReply::sse().bytes(events.concat().into_bytes())
    };
    let whole = |body: Value| {
        let reply = FakeReply::status(200).header("content-type", "application/json");
        reply.bytes(body.to_string().into_bytes())
    };
    let events = || {
        stream(&[
            json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}),
            json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}),
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hi"}),
            json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}),
        ])
    };
    let plain = || whole(json!({"answer": "Hi"}));
    over_chat(events()).assert_failure("a", "protocol_error", &["the agent speaks AG-UI: set `type: ag_ui`"]);
    over_chat(plain()).assert_failure("a", "protocol_error", &["an API of its own, set `type: http`"]);

    let behind_ag_ui = |reply: FakeReply| {
        let server = FakeAgent::start(move |_: &FakeRequest| reply.clone());
        Project::with_agent(&server).suite("a", ABSENT).test(&[])
    };
    let words = "the agent speaks chat completions: set `type: openai` and `base_url`";
    let delta = json!({"index": 0, "delta": {"role": "assistant", "content": "Hi"}});
    let chunks = stream(&[json!({"object": "chat.completion.chunk", "choices": [delta]})]);
    behind_ag_ui(chunks).assert_failure("a", "protocol_error", &[words]);
    let message = json!({"index": 0, "message": {"role": "assistant", "content": "Hi"}});
    behind_ag_ui(whole(json!({"choices": [message]}))).assert_failure("a", "protocol_error", &[words]);
    behind_ag_ui(plain()).assert_failure("a", "protocol_error", &["an API of its own, set `type: http`"]);
    let parts = stream(&[json!({"type": "start"}), json!({"type": "reasoning-start", "id": "r"})]);
    let parts = parts.header("x-vercel-ai-ui-message-stream", "v1");
    let words = "this is the UI message stream of the AI SDK, not AG-UI";
    behind_ag_ui(parts).assert_failure("a", "protocol_error", &[words]);
}

#[test]
fn refusals_for_want_of_the_ids_of_ag_ui_name_it() {
    let missing =
        |name: &str| json!({"type": "missing", "loc": ["body", name], "msg": "Field required", "input": {}});
    let refused = json!({"detail": [missing("threadId"), missing("runId"), missing("state")]});
    let path = |name: &str| json!({"code": "invalid_type", "path": [name], "message": "Required"});
    let in_text = json!({"error": json!([path("threadId"), path("runId")]).to_string()});
    let named = "set `type: ag_ui` and `endpoint`";
    for (status, body) in [(422, &refused), (400, &refused), (400, &in_text)] {
        let tested = over_chat(FakeReply::json(status, body));
        tested.assert_failure("a", "agent_error", &[named]);
    }
    // Errors of servers of chat completions, which may have such ids as well.
    let error = json!({"message": "the tool call is missing", "code": "required"});
    let with_ids = json!({"error": error, "threadId": "t", "runId": "r", "log": "threadId=t runId = r"});
    let model = json!({"error": {"message": "you must provide a model; missing threadId"}});
    for (status, body) in [(400, &with_ids), (422, &model), (500, &refused)] {
        let tested = over_chat(FakeReply::json(status, body));
        tested.assert_failure("a", "agent_error", &[&format!("answered HTTP {status}")]);
        assert!(!tested.output.stdout.contains("AG-UI"), "{}", tested.output);
    }
}

#[test]
fn https_at_a_port_of_plain_http_is_named() {
    let server = FakeAgent::start(|_: &FakeRequest| FakeReply::status(200));
    let address = server.url().replace("http://", "https://");
    let tested =
        Project::with_config(&format!("target: {{ endpoint: '{address}' }}\n")).suite("a", ABSENT).test(&[]);
    tested.assert_failure(
        "a",
        "unreachable",
        &["does not speak TLS (`https://`) at this port; try the address with `http://`"],
    );
}

#[test]
fn bytes_that_are_not_utf8_are_an_error() {
    let sse = |data: &[u8]| FakeReply::sse().bytes([b"data: ", data, b"\n\n"].concat());
    let server = FakeAgent::start(move |request: &FakeRequest| {
        let start = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}).to_string();
        let _ = request;
        sse(start.as_bytes()).bytes(&b"data: {\"type\":\"CUSTOM\",\"name\":\"\xff\"}\n\n"[..])
    });
    let tested = Project::with_agent(&server).suite("a", ABSENT).test(&[]);
    tested.assert_failure("a", "protocol_error", &["event 2 is not UTF-8"]);
    let chat = b"{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"del\xffete\"}}]}";
    over_chat(sse(chat)).assert_failure("a", "protocol_error", &["chunk 1 is not UTF-8"]);
    let json =
        |body: &'static [u8]| FakeReply::status(200).header("content-type", "application/json").bytes(body);
    let whole = json(b"{\"choices\":[{\"message\":{\"content\":\"del\xffete\"}}]}");
    over_chat(whole).assert_failure("a", "protocol_error", &["the completion is not UTF-8"]);
    let line = json(b"{\"reply\": \"del\xffete\"}\n{\"end\": true}\n");
    over_http(STREAMED, line).assert_failure("a", "protocol_error", &["a line is not UTF-8"]);
    let streamed = STREAMED.replace("ndjson", "sse");
    over_http(&streamed, sse(b"{\"reply\": \"\xff\"}")).assert_failure(
        "a",
        "protocol_error",
        &["event 1 is not UTF-8"],
    );
}

#[test]
fn further_choices_are_noted() {
    let choice =
        |text: &str| json!({"message": {"role": "assistant", "content": text}, "finish_reason": "stop"});
    let reply = json!({"choices": [choice("Done."), choice("I delete it.")]});
    let tested = over_chat(FakeReply::json(200, &reply));
    tested.assert_all_passed();
    let turn = &tested.case("a")["turns"][0];
    assert_eq!(turn["output"], "Done.", "{turn:#}");
    assert!(turn["notes"].to_string().contains("the reply has further choices"), "{turn:#}");
}

#[test]
fn two_names_without_arguments_are_ambiguous() {
    let piece = |id: Option<&str>, name: &str| {
        let call = json!({"index": 0, "id": id, "function": {"name": name, "arguments": ""}});
        chunk(json!({"tool_calls": [call]}), None)
    };
    let reply = ChatCompletion::new().chunk(piece(Some("c"), "del")).chunk(piece(None, "ete"));
    over_chat(reply.finish("stop").streamed()).assert_failure("a", "protocol_error", &["has two names"]);
}

#[test]
fn text_of_a_refusal_is_read() {
    let parts =
        json!([{"type": "refusal", "refusal": "I do not delete it."}, {"type": "text", "text": "Sorry."}]);
    let message = json!({"role": "assistant", "content": parts});
    let tested = over_chat(complete_reply(message, "stop"));
    tested.assert_failure("a", "assertion", &["I do not delete it."]);
}

#[test]
fn snapshot_with_an_invalid_call_is_an_error() {
    let snapshot = |key: &'static str, value: Value| {
        move |run: FakeRun| {
            let message = json!({"id": "m", "role": "assistant", key: value});
            run.messages_snapshot(vec![message]).text("Done.")
        }
    };
    let call = json!({"id": "c", "function": {"name": "delete", "arguments": "{}"}});
    for (key, calls) in [
        ("toolCalls", json!([{"id": "c", "name": "delete", "arguments": "{}"}])),
        ("toolCalls", json!([{"id": "c", "function": {"name": "", "arguments": "{}"}}])),
        ("toolCalls", call.clone()),
        ("tool_calls", json!([call])),
        ("functionCall", json!({"name": "delete", "arguments": "{}"})),
        ("content", json!([{"type": "tool_use", "id": "c", "name": "delete", "input": {}}])),
    ] {
        let tested = over_ag_ui(snapshot(key, calls));
        tested.assert_failure(
            "a",
            "protocol_error",
            &["a tool call that is not an entry of `toolCalls` with `id`"],
        );
    }
    over_ag_ui(snapshot("toolCalls", Value::Null)).assert_all_passed();
    over_ag_ui(snapshot("tool_calls", json!([]))).assert_all_passed();
}

#[test]
fn snapshot_with_the_result_of_an_unknown_call_is_an_error() {
    let tested = over_ag_ui(|run| {
        let result = json!({"id": "r", "role": "tool", "toolCallId": "c9", "content": "deleted"});
        run.messages_snapshot(vec![json!({"id": "m", "role": "assistant", "content": "Done."}), result])
    });
    tested.assert_failure("a", "protocol_error", &["a result arrived for tool call c9"]);
}

#[test]
fn call_without_a_name_is_an_error() {
    let tested = over_ag_ui(|run| run.tool_call("c", "", &json!({})).text("Done."));
    tested.assert_failure("a", "protocol_error", &["TOOL_CALL_START has a tool call without a name"]);
}

#[test]
fn empty_values_of_done_end_no_stream() {
    for value in [json!(""), json!(0), json!({}), json!([]), Value::Null, json!(false)] {
        let line = FakeReply::text(200, &format!("{}\n", json!({"reply": "hello", "end": value})));
        over_http(STREAMED, line.clone()).assert_failure("a", "protocol_error", &[""]);
    }
    for value in [json!("stop"), json!(true), json!(1)] {
        let line = FakeReply::text(200, &format!("{}\n", json!({"reply": "hello", "end": value})));
        over_http(STREAMED, line).assert_all_passed();
    }
}

#[test]
fn part_of_an_answer_is_no_answer() {
    let partial =
        FakeReply::status(206).header("content-type", "application/json").bytes("{\"reply\": \"Done.\"}");
    over_http(MAPPED, partial).assert_failure("a", "agent_error", &["HTTP 206"]);
}

#[test]
fn errors_without_a_member_error_are_errors() {
    for error in [
        json!({"text": "**NETWORK ERROR**", "error_code": 50001}),
        json!({"success": false, "message": "no"}),
        json!({"errors": [{"message": "no"}]}),
        json!({"message": "no", "type": "server_error"}),
    ] {
        let delta = json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "hello"}}]});
        let stream = format!("data: {delta}\n\ndata: {error}\n\ndata: [DONE]\n\n");
        over_chat(FakeReply::sse().bytes(stream.into_bytes())).assert_failure("a", "agent_error", &[""]);
    }
}

#[test]
fn ag_ui_of_another_content_type_and_blank_events() {
    let run = |kind: &str, first: &str| {
        let (kind, first) = (kind.to_string(), first.to_string());
        let server = FakeAgent::start(move |request: &FakeRequest| {
            let ids = request.json();
            let (thread, run) = (&ids["threadId"], &ids["runId"]);
            let events = [
                json!({"type": "RUN_STARTED", "threadId": thread, "runId": run}),
                json!({"type": "RUN_FINISHED", "threadId": thread, "runId": run}),
            ];
            let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
            FakeReply::status(200).header("content-type", &kind).bytes(format!("{first}{body}").into_bytes())
        });
        Project::with_agent(&server).suite("a", ABSENT).test(&[])
    };
    run("text/event-stream", "data:\n\ndata: \n\n").assert_all_passed();
    run("text/html", "").assert_failure(
        "a",
        "protocol_error",
        &["the server must send it as `text/event-stream`"],
    );
}
