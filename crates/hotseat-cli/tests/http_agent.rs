//! Agents behind an HTTP interface of their own, from outside.
#![cfg(unix)]

mod common;

use hotseat_testkit::{FakeAgent, Reply, Request};
use serde_json::{Value, json};

use common::{Project, Tested, nobody};

const HELLO: &str = "name: a\nturns: [{ user: hello }]\n";

/// A project whose target is this server, with more settings.
fn project(server: &FakeAgent, more: &str) -> Project {
    Project::with(&format!("target:\n  type: http\n  endpoint: '{}chat'\n{more}", server.url()))
}

/// The simplest settings: a message goes in, a reply comes out.
const SIMPLE: &str = "  body: { message: '{{message}}' }\n  map: { reply: $.reply }\n";

/// Settings with a mapping.
fn mapped(map: &str) -> String {
    format!("  body: {{ message: '{{{{message}}}}' }}\n  map: {map}\n")
}

/// Holds one turn with a server that answers with this JSON.
#[track_caller]
fn hears(map: &str, answer: Value) -> Tested {
    let server = FakeAgent::start(move |_| Reply::json(200, &answer));
    project(&server, &mapped(map)).suite("a", HELLO).test(&[])
}

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
fn a_template_is_filled_in_and_keeps_its_types() {
    let server = FakeAgent::start(|request| {
        Reply::json(200, &json!({"reply": format!("answer {}", request.index + 1)}))
    });
    let more = "
  headers: { X-Session: 's-{{conversation_id}}', Authorization: 'Bearer ${ENV.KEY}' }
  body:
    input: { text: '{{message}}', turn: '{{turn}}', label: 'turn {{turn}}', fixed: [1, null] }
    history: '{{history}}'
    messages: '{{messages}}'
    session: '{{conversation_id}}'
    extra: '{{forwardedProps}}'
    state: '{{state}}'
  map: { reply: $.reply }
";
    let suite = "name: a\nthreadId: t-1\nforwardedProps: { seed: 7 }\nturns:\n  - user: 'say \"{{turn}}\"'\n  - user: two\n";
    let project = project(&server, more).suite("a", suite);
    project.test_in(&[("KEY", "k-12345678")], &[]).all_passed();
    let requests = server.requests();
    assert_eq!((requests[1].method.as_str(), requests[1].path.as_str()), ("POST", "/chat"));
    assert_eq!(requests[1].header("x-session"), Some("s-t-1"));
    assert_eq!(requests[1].header("authorization"), Some("Bearer k-12345678"));
    assert_eq!(requests[1].header("content-type"), Some("application/json"));
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    let history = json!([said("user", "say \"{{turn}}\""), said("assistant", "answer 1")]);
    let messages =
        json!([said("user", "say \"{{turn}}\""), said("assistant", "answer 1"), said("user", "two")]);
    assert_eq!(
        requests[1].json(),
        json!({
            "input": {"text": "two", "turn": 2, "label": "turn 2", "fixed": [1, null]},
            "history": history, "messages": messages, "session": "t-1", "extra": {"seed": 7}, "state": null,
        })
    );
    assert_eq!(requests[0].json()["input"]["text"], "say \"{{turn}}\"");
}

/// A case with everything that can be said beside the words of the user.
fn everything() -> Value {
    json!({
        "id": "a",
        "options": {"connector": "large", "metadata": {"trace-id": "t-1"}, "skip": {"history": false}, "search": [1, 2]},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "name": "mary", "content": [{"type": "text", "text": "Book this"}, {"type": "image", "source": "https://example.com/a.png"}]},
            {"role": "assistant", "tool_calls": [{"id": "c1", "name": "book", "arguments": {"to": "Rome"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        ],
        "turns": [
            {"input": "And this?", "attachments": [{"type": "file", "source": "file://notes.txt"}, {"type": "video", "source": "https://example.com/a.mp4", "name": "v"}]},
            {"input": "Thanks", "options": {"connector": "small"}},
        ],
    })
}

/// What was said before the first turn of that case, as agents are told of it.
fn opening() -> Vec<Value> {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{\"to\":\"Rome\"}"}});
    vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "name": "mary", "content": [{"type": "text", "text": "Book this"}, {"type": "image", "url": "https://example.com/a.png"}]}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "ok"}),
    ]
}

/// What is attached in it, as agents are told of it.
fn attached() -> Value {
    json!([
        {"type": "document", "name": "notes.txt", "mimeType": "text/plain", "data": "bm90ZXM="},
        {"type": "video", "name": "v", "url": "https://example.com/a.mp4"},
    ])
}

#[test]
fn history_attachments_and_options_stand_where_the_template_says() {
    let answer = json!({"reply": "Done.", "calls": [{"id": "s1", "name": "file", "arguments": {"n": 1}, "result": {"ok": true}}]});
    let more = "  body:
    messages: '{{messages}}'
    history: '{{history}}'
    files: '{{attachments}}'
    first: '{{attachments.0.name}}'
    text: '{{message}}'
    model: '{{options.connector}}'
    options: '{{options}}'
    trace: 'id={{options.metadata.trace-id}}'
    second: '{{options.search.1}}'
    history_is_left_out: '{{options.skip.history}}'
    nothing: '{{options.nothing}}'
  map: { reply: $.reply, tool_calls: $.calls }
";
    let run = |more: &str| {
        let answer = answer.clone();
        let server = FakeAgent::start(move |_| Reply::json(200, &answer));
        let project =
            project(&server, more).file("a.test.json", &everything().to_string()).file("notes.txt", "notes");
        project.test(&[]).all_passed();
        server.requests().iter().map(|request| request.json()).collect::<Vec<_>>()
    };
    let sent = run(more);
    let parts =
        [&[json!({"type": "text", "text": "And this?"})], attached().as_array().unwrap().as_slice()].concat();
    let now = json!({"role": "user", "content": parts});
    assert_eq!(sent[0]["history"], Value::Array(opening()));
    assert_eq!(sent[0]["messages"], Value::Array([opening(), vec![now.clone()]].concat()));
    assert_eq!(
        (&sent[0]["files"], &sent[0]["first"], &sent[0]["text"]),
        (&attached(), &json!("notes.txt"), &json!("And this?"))
    );
    assert_eq!(sent[0]["options"], everything()["options"]);
    assert_eq!((&sent[0]["model"], &sent[0]["trace"]), (&json!("large"), &json!("id=t-1")));
    assert_eq!((&sent[0]["second"], &sent[0]["history_is_left_out"]), (&json!(2), &json!(false)));
    assert_eq!(sent[0]["nothing"], Value::Null);
    // What the agent said and did is part of what comes after it.
    let call =
        json!({"id": "s1", "type": "function", "function": {"name": "file", "arguments": "{\"n\":1}"}});
    let did = vec![
        now,
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "s1", "content": "{\"ok\":true}"}),
        json!({"role": "assistant", "content": "Done."}),
    ];
    assert_eq!(sent[1]["history"], Value::Array([opening(), did].concat()));
    assert_eq!((&sent[1]["model"], &sent[1]["files"]), (&json!("small"), &json!([])));

    // A server that keeps the conversation is told what is new.
    let sent = run(&format!("  history: delta\n{more}"));
    assert_eq!(sent[0]["history"], Value::Array(opening()));
    assert_eq!(
        (&sent[1]["history"], &sent[1]["messages"]),
        (&json!([]), &json!([{"role": "user", "content": "Thanks"}]))
    );
}

#[test]
fn what_a_template_has_no_place_for_is_refused_before_anything_is_sent() {
    let server = FakeAgent::start(|_| Reply::json(200, &json!({"reply": "fine"})));
    let plain = "  body: { m: '{{message}}', c: '{{options.connector}}' }\n  map: { reply: $.reply }\n";
    for (case, words, help) in [
        (
            json!({"input": [{"content": "x"}, {"content": "y"}]}),
            "messages before the first turn",
            "`{{messages}}` or `{{history}}`",
        ),
        (
            json!({"input": "x", "messages": [{"content": "y"}]}),
            "messages before the first turn",
            "`{{messages}}`",
        ),
        (
            json!({"turns": [{"input": "x"}, {"input": "x", "attachments": [{"type": "image", "source": "https://e.org/a"}]}]}),
            "`attachments`",
            "`{{attachments}}` or `{{messages}}`",
        ),
        (
            json!({"turns": [{"input": "x"}, {"input": "x", "options": {"metadata": {}}}]}),
            "`options.metadata`",
            "`{{options}}` or `{{options.metadata}}`",
        ),
        (
            json!({"input": "x", "options": {"connector": "a", "skip": {"history": false}}}),
            "`options.skip`",
            "`{{options.skip}}`",
        ),
        (json!({"input": "x", "user": "mary"}), "`user`", "`{{user}}`"),
        (json!({"input": "x", "team": "ops"}), "`team`", "`{{team}}`"),
        (json!({"input": "x", "threadId": "t"}), "`threadId`", "`{{conversation_id}}`"),
    ] {
        let mut case = case;
        case["id"] = json!("a");
        let output = project(&server, plain).file("a.test.json", &case.to_string()).hotseat(&["test"]);
        let words = format!("this case gives {words}, which its agent is never told");
        assert!(output.code == 2 && output.stderr.contains(&words), "{words}: {output}");
        assert!(output.stderr.contains(help) && output.stderr.contains("a.test.json:1:"), "{help}: {output}");
    }
    // What reports hold of a case is no order to tell it.
    let case = json!({"id": "a", "input": "x", "metadata": {"owner": "me"}, "options": {"connector": "a"}});
    project(&server, plain).file("a.test.json", &case.to_string()).test(&[]).all_passed();
    assert_eq!(server.requests()[0].json(), json!({"m": "x", "c": "a"}));
}

#[test]
fn a_message_in_an_address_stays_a_part_of_it() {
    let server = FakeAgent::start(|_| Reply::text(200, "fine"));
    let target = format!(
        "target: {{ type: http, method: GET, endpoint: '{}a/{{{{conversation_id}}}}?q={{{{message}}}}&x=1' }}\n",
        server.url()
    );
    let suite = "name: a\nthreadId: 'a/b'\nturns: [{ user: 'c&d=é #1' }]\n";
    Project::with(&target).suite("a", suite).test(&[]).all_passed();
    let [request] = server.requests().try_into().expect("one request");
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("GET", "/a/a%2Fb?q=c%26d%3D%C3%A9%20%231&x=1")
    );
    assert_eq!((request.body.len(), request.header("content-type")), (0, None));
}

#[test]
fn an_id_that_the_server_gives_is_carried_on() {
    let server = FakeAgent::start(|request| {
        let id = match request.index {
            0 => json!({"reply": "one", "session": {"id": 41}}),
            1 => json!({"reply": "two"}),
            _ => json!({"reply": "three", "session": {"id": 42}}),
        };
        Reply::json(200, &id)
    });
    let more = "  body: { m: '{{message}}', session: '{{conversation_id}}' }\n  map: { reply: $.reply, conversation_id: $.session.id }\n";
    let suite = "name: a\nturns: [{ user: a }, { user: b }, { user: c }, { user: d }]\n";
    project(&server, more).suite("a", suite).test(&[]).all_passed();
    let sent: Vec<Value> =
        server.requests().iter().map(|request| request.json()["session"].clone()).collect();
    assert_eq!(sent, [json!(null), json!("41"), json!("41"), json!("42")]);

    let forgets = FakeAgent::start(|_| Reply::json(200, &json!({"reply": "one"})));
    let tested = project(&forgets, more).suite("a", suite).test(&[]);
    not_a_pass(&tested, 1, "protocol_error", "`map.conversation_id` ($.session.id) selects nothing");
}

// What is read.

#[test]
fn what_the_paths_select_is_recorded() {
    let map = "
    reply: $.out[?@.kind == 'text'].text
    tool_calls: { path: '$.out[?@.kind == \"tool\"]', name: $.fn.name, arguments: $.fn.args, result: $.ret, error: $.err, id: $.uid }
    awaiting: { path: $.status, equals: need_input }
    hint: $.question
    usage: $.cost
    finish_reason: $.why
    error: $.error";
    let answer = json!({
        "out": [
            {"kind": "text", "text": "One moment."},
            {"kind": "tool", "uid": 7, "fn": {"name": "search", "args": {"q": "shoes"}}, "ret": {"total": 3}},
            {"kind": "tool", "fn": {"name": "pay", "args": "{\"amount\":5}"}, "err": {"message": "declined"}},
            {"kind": "tool", "fn": {"name": "log", "args": "not json"}, "ret": "[1,2]"},
            {"kind": "tool", "fn": {"name": "wait"}, "ret": null},
            {"kind": "text", "text": "How much?"},
        ],
        "status": "need_input", "question": "an amount", "cost": {"tokens": 3}, "why": "stop", "error": null,
    });
    let server = FakeAgent::start(move |_| Reply::json(200, &answer));
    let project = project(&server, &mapped(map)).suite("a", HELLO);
    let tested = project.test(&["--trace", "out/trace.jsonl"]);
    tested.all_passed();
    let turn = &tested.case("a")["turns"][0];
    assert_eq!(turn["messages"], json!(["One moment.", "How much?"]));
    assert_eq!(turn["usage"], json!([{"tokens": 3}]));
    let calls = turn["tool_calls"].as_array().expect("a list");
    assert_eq!(
        (&calls[0]["id"], &calls[0]["args"], &calls[0]["result"]),
        (&json!("7"), &json!({"q": "shoes"}), &json!({"total": 3}))
    );
    assert_eq!((&calls[1]["args"], &calls[1]["error"]), (&json!({"amount": 5}), &json!("declined")));
    assert_eq!((&calls[2]["args_broken"], &calls[2]["result"]), (&json!(true), &json!([1, 2])));
    assert!(calls[3].get("result").is_none() && calls[3].get("error").is_none(), "{}", calls[3]);
    let trace = project.workspace.read("out/trace.jsonl");
    assert!(
        trace.contains(r#""awaiting":true,"hint":"an amount""#) && trace.contains(r#""finishReason":"stop""#),
        "{trace}"
    );
}

#[test]
fn forms_of_answers() {
    // A list of calls, with the names that most interfaces use.
    let answer =
        json!({"reply": "", "tool_calls": [{"name": "search", "arguments": {"q": 1}, "result": "ok"}]});
    let tested = hears("{ reply: $.reply, tool_calls: $.tool_calls }", answer);
    tested.all_passed();
    assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["args"], json!({"q": 1}));
    // A structured answer.
    let tested = hears("{ reply: $.data }", json!({"data": {"status": "ok"}}));
    assert_eq!(tested.case("a")["turns"][0]["output"], "{\"status\":\"ok\"}");
    // No mapping: the body is what the agent says.
    let server =
        FakeAgent::start(|request| Reply::text(200, &format!("You said {}.\n", request.json()["message"])));
    let tested = project(&server, "  body: { message: '{{message}}' }\n").suite("a", HELLO).test(&[]);
    assert_eq!(tested.case("a")["turns"][0]["output"], "You said \"hello\".\n");
    // Truth values say whether it waits.
    for (answer, passed) in
        [(json!(true), true), (json!(false), true), (json!(null), true), (json!("yes"), false)]
    {
        let tested = hears("{ reply: $.r, awaiting: $.awaiting }", json!({"r": "Hm", "awaiting": answer}));
        assert_eq!(tested.case("a")["status"] == "passed", passed, "{}", tested.output);
    }
}

#[test]
fn a_path_to_tool_calls_that_finds_nothing_is_noted() {
    let tested =
        hears("{ reply: $.reply, tool_calls: $.toolCalls }", json!({"reply": "Hi", "tool_calls": []}));
    tested.all_passed();
    let notes = tested.case("a")["turns"][0]["notes"].to_string();
    assert!(notes.contains("`map.tool_calls` ($.toolCalls) selects nothing"), "{notes}");
    let tested =
        hears("{ reply: $.reply, tool_calls: $.tool_calls }", json!({"reply": "Hi", "tool_calls": []}));
    assert!(tested.case("a")["turns"][0].get("notes").is_none());
}

// Streams.

const STREAM: &str = "{ reply: $.delta, tool_calls: { path: $.call, name: $.name }, usage: $.cost, done: { path: $.type, equals: end }, error: $.error }";

fn piece(text: &str) -> Value {
    json!({"type": "piece", "delta": text})
}

fn ndjson(events: &[Value]) -> Reply {
    let reply = Reply::status(200).header("content-type", "application/x-ndjson");
    events.iter().fold(reply, |reply, event| reply.bytes(format!("{event}\n")))
}

fn sse(events: &[Value]) -> Reply {
    events.iter().cloned().fold(Reply::sse(), Reply::event)
}

/// Holds one turn with a server that streams.
#[track_caller]
fn streamed(form: &str, reply: Reply) -> Tested {
    let server = FakeAgent::start(move |_| reply.clone());
    project(&server, &format!("{}  stream: {form}\n", mapped(STREAM)))
        .suite("a", HELLO)
        .test(&["--trace", "out/t.jsonl"])
}

#[test]
fn the_events_of_a_stream_are_read_one_by_one() {
    let events = [
        piece("One mo"),
        piece("ment."),
        json!({"type": "begin", "call": {"id": 1, "name": "search", "arguments": {"q": "shoes"}}}),
        json!({"type": "ended", "call": {"id": 1, "result": {"total": 3}}}),
        piece("Found "),
        piece("3."),
        json!({"type": "end", "cost": {"tokens": 5}}),
    ];
    for (form, reply) in [
        ("sse", sse(&events)),
        ("ndjson", ndjson(&events)),
        ("sse", sse(&events).in_pieces_of(1)),
        ("ndjson", ndjson(&events).in_pieces_of(1)),
    ] {
        let tested = streamed(form, reply);
        tested.all_passed();
        let turn = &tested.case("a")["turns"][0];
        assert_eq!(turn["messages"], json!(["One moment.", "Found 3."]));
        assert_eq!(turn["tool_calls"].as_array().map(Vec::len), Some(1));
        let call = &turn["tool_calls"][0];
        assert_eq!((&call["args"], &call["result"]), (&json!({"q": "shoes"}), &json!({"total": 3})));
        assert_eq!(turn["usage"], json!([{"tokens": 5}]));
    }
    // `[DONE]` says it as well, and the last line may lack its end.
    streamed("sse", sse(&[piece("Hello.")]).bytes("data: [DONE]\n\n")).all_passed();
    streamed("ndjson", ndjson(&[piece("Hello.")]).bytes("{\"type\": \"end\"}")).all_passed();
}

#[test]
fn streams_that_are_no_answer() {
    let unfinished = "none of which says that it is the last (`map.done`)";
    for (form, reply, kind, words) in [
        ("sse", sse(&[]), "protocol_error", "the stream ended without a single event"),
        ("ndjson", ndjson(&[]), "protocol_error", "the stream ended without a single event"),
        ("sse", sse(&[piece("Hel")]), "protocol_error", unfinished),
        ("ndjson", ndjson(&[piece("Hel")]), "protocol_error", unfinished),
        ("sse", sse(&[piece("Hel")]).cut(), "protocol_error", "the connection broke after 1 event(s)"),
        ("ndjson", ndjson(&[piece("Hel")]).bytes("{\"type"), "protocol_error", "event 2 is not JSON"),
        (
            "sse",
            sse(&[json!({"type": "end"})]),
            "protocol_error",
            "`map.reply` ($.delta) selects nothing in any event",
        ),
        ("sse", sse(&[json!({"type": "piece", "delta": 5})]), "protocol_error", "selects the number 5"),
        (
            "sse",
            sse(&[json!({"call": {"id": 9}})]),
            "protocol_error",
            "`map.tool_calls.name` ($.name) selects nothing in a tool call",
        ),
        (
            "sse",
            sse(&[piece("Hel"), json!({"error": "out of stock"})]),
            "agent_error",
            "the agent failed: out of stock",
        ),
    ] {
        not_a_pass(&streamed(form, reply), 1, kind, words);
    }
    let cut = streamed("sse", sse(&[piece("Deleting"), json!({"call": {"name": "delete"}})]));
    let turn = &cut.case("a")["turns"][0];
    assert_eq!((&turn["output"], &turn["tool_calls"][0]["name"]), (&json!("Deleting"), &json!("delete")));
}

// What is not a pass.

#[test]
fn what_a_path_does_not_find_or_finds_wrong() {
    let simple = "{ reply: $.reply, tool_calls: $.calls, conversation_id: $.id }";
    for (answer, words) in [
        (json!({}), "`map.reply` ($.reply) selects nothing in the answer"),
        (json!({"reply": null, "calls": []}), "`map.reply` ($.reply) selects nothing"),
        (json!([]), "`map.reply` ($.reply) selects nothing"),
        (json!({"reply": ""}), "selects nothing in the answer to the first message"),
        (json!({"reply": "", "id": "1"}), "the agent answered with nothing"),
        (
            json!({"reply": 42}),
            "`map.reply` ($.reply) selects the number 42; a text, an object or a list is needed",
        ),
        (json!({"reply": true}), "selects true"),
        (
            json!({"reply": "x", "calls": "none"}),
            "`map.tool_calls` ($.calls) selects the text \"none\"; an object for each call is needed",
        ),
        (
            json!({"reply": "x", "calls": [{"function": "a"}]}),
            "`map.tool_calls.name` ($.name) selects nothing in a tool call",
        ),
        (
            json!({"reply": "x", "calls": [{"name": 3}]}),
            "`map.tool_calls.name` ($.name) selects the number 3",
        ),
        (json!({"reply": "x", "id": {}}), "`map.conversation_id` ($.id) selects an object"),
    ] {
        not_a_pass(&hears(simple, answer), 1, "protocol_error", words);
    }
    let tested = hears(simple, json!({"answer": "Hello from elsewhere"}));
    assert!(
        tested.failure("a")["detail"].as_str().is_some_and(|detail| detail.contains("Hello from elsewhere"))
    );
}

#[test]
fn calls_before_a_wrong_one_are_kept() {
    let calls = json!([{"name": "delete", "arguments": {"all": true}}, {"nome": "x"}]);
    let tested = hears("{ reply: $.reply, tool_calls: $.calls }", json!({"reply": "Done", "calls": calls}));
    not_a_pass(&tested, 1, "protocol_error", "selects nothing in a tool call");
    assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["name"], "delete");
}

#[test]
fn answers_that_are_none() {
    let cases: [(Reply, &str, &str); 9] = [
        (Reply::status(200), "protocol_error", "HTTP 200 OK with an empty body"),
        (Reply::text(200, "  \n"), "protocol_error", "with an empty body"),
        (Reply::text(200, "<html>Hello</html>"), "protocol_error", "the answer is not JSON"),
        (
            Reply::text(200, "{\"reply\": \"Hel"),
            "protocol_error",
            "the answer is not JSON (EOF while parsing a string",
        ),
        (
            Reply::text(200, "{\"reply\": \"Hello\"").cut(),
            "protocol_error",
            "the connection broke before the answer was whole",
        ),
        (Reply::status(200).bytes(&b"\xff\xfe{}"[..]), "protocol_error", "the answer is not UTF-8"),
        (Reply::text(200, "{}").header("content-encoding", "gzip"), "protocol_error", "encoded as gzip"),
        (Reply::json(500, &json!({"reply": "Hello"})), "agent_error", "HTTP 500"),
        (
            Reply::status(302).header("location", "/other"),
            "agent_error",
            "redirects are not followed, set target.endpoint to /other",
        ),
    ];
    for (reply, kind, words) in cases {
        let server = FakeAgent::start(move |_: &Request| reply.clone());
        not_a_pass(&project(&server, SIMPLE).suite("a", HELLO).test(&[]), 1, kind, words);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn an_error_that_the_agent_tells_of() {
    let map = "{ reply: $.reply, error: $.error }";
    for (error, words) in [
        (json!("out of stock"), "the agent failed: out of stock"),
        (json!({"message": "out of stock", "code": 7}), "the agent failed: out of stock (7)"),
        (json!({"reason": "x"}), "the agent failed: {\"reason\":\"x\"}"),
        (json!(true), "the agent failed: true"),
    ] {
        not_a_pass(&hears(map, json!({"reply": "Hello", "error": error})), 1, "agent_error", words);
    }
    for error in [json!(null), json!(false), json!(""), json!({})] {
        hears(map, json!({"reply": "Hello", "error": error})).all_passed();
    }
    let server = FakeAgent::start(|_| Reply::json(200, &json!({"error": "out of stock"})));
    let suite = "name: a\nturns: [{ user: hello, expect_error: out of }]\n";
    project(&server, &mapped(map)).suite("a", suite).test(&[]).all_passed();
}

#[test]
fn a_server_that_is_silent_slow_or_not_there() {
    let silent = FakeAgent::start(|_| Reply::text(200, "{\"reply\"").hang());
    let tested = project(&silent, &format!("{SIMPLE}  idle_timeout_ms: 100\n")).suite("a", HELLO).test(&[]);
    not_a_pass(&tested, 1, "timeout", "the agent sent nothing for 100 ms");
    let never = FakeAgent::start(|_| Reply::never());
    let tested = project(&never, &format!("{SIMPLE}  timeout_ms: 100\n")).suite("a", HELLO).test(&[]);
    not_a_pass(&tested, 1, "timeout", "the turn timed out after 100 ms");
    let target =
        format!("target: {{ type: http, endpoint: '{}', body: {{ m: '{{{{message}}}}' }} }}\n", nobody());
    not_a_pass(&Project::with(&target).suite("a", HELLO).test(&[]), 3, "unreachable", "cannot reach");
}

#[test]
fn a_message_that_would_lead_elsewhere_is_not_sent() {
    let server = FakeAgent::start(|_| Reply::text(200, "fine"));
    let target =
        format!("target: {{ type: http, method: GET, endpoint: '{}a/{{{{message}}}}/b' }}\n", server.url());
    let suite = "name: a\nturns: [{ user: '..' }]\n";
    not_a_pass(
        &Project::with(&target).suite("a", suite).test(&[]),
        1,
        "test_error",
        "leads elsewhere than it says",
    );
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_header_that_cannot_carry_a_message_is_told() {
    let server = FakeAgent::start(|_| Reply::text(200, "fine"));
    let target = format!(
        "target: {{ type: http, endpoint: '{}', headers: {{ X-M: '{{{{message}}}}' }} }}\n",
        server.url()
    );
    let suite = "name: a\nturns: [{ user: \"two\\nlines\" }]\n";
    not_a_pass(
        &Project::with(&target).suite("a", suite).test(&[]),
        1,
        "test_error",
        "header `x-m` has become something with a line end",
    );
    assert_eq!(server.requests().len(), 0);
}

// Settings.

#[test]
fn settings_that_are_wrong_are_refused_before_anything_is_sent() {
    for (target, words) in [
        ("{ type: http, endpoint: 'http://127.0.0.1:9/' }", "the agent is never told what the user says"),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/', body: { m: '{{history}}' } }",
            "the agent is never told what the user says",
        ),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/', body: { m: '{{mesage}}', n: '{{message}}' } }",
            "did you mean `{{message}}`?",
        ),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/', body: { m: '{{message}}', n: '{{user.name}}' } }",
            "`{{user}}` stands for a word or a number, which has no members",
        ),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/', body: { m: '{{message}}', n: '{{option.a}}' } }",
            "did you mean `{{options}}`?",
        ),
        ("{ type: http, endpoint: 'http://{{message}}:9/' }", "cannot stand where the server is named"),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/{{message}}', body: 1, method: GET }",
            "a request by `GET` has no `body`",
        ),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/', body: '{{message}}', map: { reply: reply } }",
            "`reply` is not a JSONPath",
        ),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/', body: '{{message}}', map: { reply: $.r, tool_calls: { path: $.a, name: '$[' } } }",
            "`$[` is not a JSONPath",
        ),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/', body: '{{message}}', map: { tool_calls: $.a } }",
            "`map` has no `reply`",
        ),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/', body: '{{message}}', map: { reply: $.r, hint: $.h } }",
            "`hint` goes with `awaiting`",
        ),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/', body: '{{message}}', tools: [] }",
            "unknown key `tools`",
        ),
    ] {
        let output = Project::with(&format!("target: {target}\n")).suite("a", HELLO).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{output}");
        assert!(output.stderr.contains(words), "{words}: {output}");
    }
    let suite = "name: a\nstate: {}\nturns: [{ user: hello }]\n";
    let target = "target: { type: http, endpoint: 'http://127.0.0.1:9/', body: '{{message}}' }\n";
    let output = Project::with(target).suite("a", suite).hotseat(&["test"]);
    assert!(
        output.code == 2 && output.stderr.contains("gives `state`, which its agent is never told"),
        "{output}"
    );
}

#[test]
fn secrets_in_templates_are_never_shown() {
    let secret = "k-0123456789";
    let server = FakeAgent::start(|request| {
        let header = request.header("authorization").unwrap_or_default().to_string();
        Reply::json(200, &json!({"reply": format!("I was sent {header}")}))
    });
    let more = format!("  headers: {{ Authorization: 'Bearer ${{ENV.PLAIN}}' }}\n{SIMPLE}");
    let suite = "name: a\nturns: [{ user: hello }]\nassert: { text: { must_match: impossible } }\n";
    let project = project(&server, &more).suite("a", suite);
    let tested = project.test_in(&[("PLAIN", secret)], &["-v", "--trace", "out/t.jsonl"]);
    not_a_pass(&tested, 1, "assertion", "does not hold");
    let all = format!("{}{}{}", tested.output, tested.report, project.workspace.read("out/t.jsonl"));
    assert!(!all.contains(secret) && all.contains("I was sent Bearer [redacted:"), "{all}");
}
