//! Agents behind custom HTTP interfaces.
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::completions::ChatCompletion;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, ReplyStep};
use serde_json::{Value, json};

use crate::common::http_agents::http_agent;
use crate::common::{Project, TestRun, unreachable_address};

const HELLO: &str = "name: a\nturns: [{ user: hello }]\n";

/// A project whose target is this server, with more settings.
fn project(server: &FakeAgent, more: &str) -> Project {
    Project::with_config(&format!("target:\n  type: http\n  endpoint: '{server}chat'\n{more}"))
}

/// Minimal settings: message in, reply out.
const SIMPLE: &str = "  body: { message: '{{message}}' }\n  map: { reply: $.reply }\n";

/// Settings with a mapping.
fn mapping_settings(map: &str) -> String {
    format!("  body: {{ message: '{{{{message}}}}' }}\n  map: {map}\n")
}

/// Runs one turn with a server that answers with this JSON.
#[track_caller]
fn run_with_answer(map: &str, answer: Value) -> TestRun {
    let server = FakeAgent::start(move |_| FakeReply::json(200, &answer));
    project(&server, &mapping_settings(map)).suite("a", HELLO).test(&[])
}

// Requests.

#[test]
fn template_substitution_keeps_types() {
    let server = http_agent(|request| format!("answer {}", request.index + 1));
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
    project.test_in(&[("KEY", "k-12345678")], &[]).assert_all_passed();
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

/// A case with every kind of input besides the user text.
fn full_case() -> Value {
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

/// History of that case in the form that agents receive.
fn expected_history() -> Vec<Value> {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{\"to\":\"Rome\"}"}});
    vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "name": "mary", "content": [{"type": "text", "text": "Book this"}, {"type": "image", "url": "https://example.com/a.png"}]}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "ok"}),
    ]
}

/// Attachments of that case in the form that agents receive.
fn expected_attachments() -> Value {
    json!([
        {"type": "document", "name": "notes.txt", "mimeType": "text/plain", "data": "bm90ZXM="},
        {"type": "video", "name": "v", "url": "https://example.com/a.mp4"},
    ])
}

#[test]
fn template_places_history_attachments_and_options() {
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
        let server = FakeAgent::start(move |_| FakeReply::json(200, &answer));
        let project =
            project(&server, more).file("a.test.json", &full_case().to_string()).file("notes.txt", "notes");
        project.test(&[]).assert_all_passed();
        server.requests().iter().map(|request| request.json()).collect::<Vec<_>>()
    };
    let sent = run(more);
    let parts = [
        &[json!({"type": "text", "text": "And this?"})],
        expected_attachments().as_array().unwrap().as_slice(),
    ]
    .concat();
    let now = json!({"role": "user", "content": parts});
    assert_eq!(sent[0]["history"], Value::Array(expected_history()));
    assert_eq!(sent[0]["messages"], Value::Array([expected_history(), vec![now.clone()]].concat()));
    assert_eq!(
        (&sent[0]["files"], &sent[0]["first"], &sent[0]["text"]),
        (&expected_attachments(), &json!("notes.txt"), &json!("And this?"))
    );
    assert_eq!(sent[0]["options"], full_case()["options"]);
    assert_eq!((&sent[0]["model"], &sent[0]["trace"]), (&json!("large"), &json!("id=t-1")));
    assert_eq!((&sent[0]["second"], &sent[0]["history_is_left_out"]), (&json!(2), &json!(false)));
    assert_eq!(sent[0]["nothing"], Value::Null);
    // Text and calls of the agent are part of the history.
    let call =
        json!({"id": "s1", "type": "function", "function": {"name": "file", "arguments": "{\"n\":1}"}});
    let did = vec![
        now,
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "s1", "content": "{\"ok\":true}"}),
        json!({"role": "assistant", "content": "Done."}),
    ];
    assert_eq!(sent[1]["history"], Value::Array([expected_history(), did].concat()));
    assert_eq!((&sent[1]["model"], &sent[1]["files"]), (&json!("small"), &json!([])));

    // A stateful server receives only new messages.
    let sent = run(&format!("  history: delta\n{more}"));
    assert_eq!(sent[0]["history"], Value::Array(expected_history()));
    assert_eq!(
        (&sent[1]["history"], &sent[1]["messages"]),
        (&json!([]), &json!([{"role": "user", "content": "Thanks"}]))
    );
}

#[test]
fn rejects_input_without_template_placeholder() {
    let server = http_agent(|_| "fine");
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
        let words = format!("this case sets {words}, which its agent does not support");
        assert!(output.code == 2 && output.stderr.contains(&words), "{words}: {output}");
        assert!(output.stderr.contains(help) && output.stderr.contains("a.test.json:1:"), "{help}: {output}");
    }
    // The message points at the key.
    let suite = "name: a\nturns: [{ user: x }]\nforwardedProps: { a: 1 }\n";
    let output = project(&server, plain).suite("a", suite).hotseat(&["test"]);
    assert!(output.stderr.contains("a.test.yaml:3:1"), "{output}");
    // Report-only keys of a case are not sent to the agent.
    let case = json!({"id": "a", "input": "x", "metadata": {"owner": "me"}, "options": {"connector": "a"}});
    project(&server, plain).file("a.test.json", &case.to_string()).test(&[]).assert_all_passed();
    assert_eq!(server.requests()[0].json(), json!({"m": "x", "c": "a"}));
}

/// A template that names a member of an option drops the others.
#[test]
fn refuses_members_of_options_that_the_template_drops() {
    let server = http_agent(|_| "fine");
    let body = "  body: { m: '{{message}}', mode: '{{options.mode.name}}', first: '{{options.list.0}}' }\n  map: { reply: $.reply }\n";
    for (options, dropped) in [
        (json!({"mode": {"name": "fast", "level": 3}}), &["mode.level"][..]),
        (json!({"mode": "fast"}), &["mode"]),
        (json!({"list": ["a", "b"], "other": 1}), &["list.1", "other"]),
    ] {
        let case = json!({"id": "a", "input": "x", "options": options});
        let output = project(&server, body).file("a.test.json", &case.to_string()).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{output}");
        for path in dropped {
            let words = format!("this case sets `options.{path}`, which its agent does not support");
            let help =
                format!("add `{{{{options}}}}` or `{{{{options.{path}}}}}` to the template of the agent");
            assert!(output.stderr.contains(&words) && output.stderr.contains(&help), "{path}: {output}");
        }
    }
    let case = json!({"id": "a", "input": "x", "options": {"mode": {"name": "fast"}, "list": ["a"]}});
    project(&server, body).file("a.test.json", &case.to_string()).test(&[]).assert_all_passed();
    assert_eq!(server.requests()[0].json(), json!({"m": "x", "mode": "fast", "first": "a"}));
}

#[test]
fn message_in_url_is_percent_encoded() {
    let server = FakeAgent::start(|_| FakeReply::text(200, "fine"));
    let target = format!(
        "target: {{ type: http, method: GET, endpoint: '{server}a/{{{{conversation_id}}}}?q={{{{message}}}}&x=1' }}\n"
    );
    let suite = "name: a\nthreadId: 'a/b'\nturns: [{ user: 'c&d=é #1' }]\n";
    Project::with_config(&target).suite("a", suite).test(&[]).assert_all_passed();
    let [request] = server.requests().try_into().expect("one request");
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("GET", "/a/a%2Fb?q=c%26d%3D%C3%A9%20%231&x=1")
    );
    assert_eq!((request.body.len(), request.header("content-type")), (0, None));
}

#[test]
fn carries_server_assigned_id() {
    let server = FakeAgent::start(|request| {
        let id = match request.index {
            0 => json!({"reply": "one", "session": {"id": 41}}),
            1 => json!({"reply": "two"}),
            _ => json!({"reply": "three", "session": {"id": "42"}}),
        };
        FakeReply::json(200, &id)
    });
    let more = "  body: { m: '{{message}}', session: '{{conversation_id}}', text: 'id {{conversation_id}}' }\n  map: { reply: $.reply, conversation_id: $.session.id }\n";
    let suite = "name: a\nturns: [{ user: a }, { user: b }, { user: c }, { user: d }]\n";
    project(&server, more).suite("a", suite).test(&[]).assert_all_passed();
    let sent: Vec<Value> =
        server.requests().iter().map(|request| request.json()["session"].clone()).collect();
    assert_eq!(sent, [json!(null), json!(41), json!(41), json!("42")]);
    assert_eq!(server.requests()[1].json()["text"], "id 41");

    let forgets = http_agent(|_| "one");
    let tested = project(&forgets, more).suite("a", suite).test(&[]);
    tested.assert_failed(1, "protocol_error", "`map.conversation_id` ($.session.id) selects nothing");
}

/// A server that knows its conversations by a cookie would otherwise see a new one in every turn.
#[test]
fn cookies_go_back_within_their_conversation() {
    type MakeReply = fn(&FakeRequest) -> FakeReply;
    let replies: [(&str, MakeReply); 3] = [
        ("type: http\n  body: { text: '{{message}}' }\n  map: { reply: $.reply }\n  endpoint: 'URL'", |_| {
            FakeReply::json(200, &json!({"reply": "Hi."}))
        }),
        ("type: openai\n  model: m\n  base_url: 'URL'", |_| {
            ChatCompletion::new().text("Hi.").finish("stop").into()
        }),
        ("endpoint: 'URL'", |request| FakeRun::for_request(request).started().text("Hi.").finished().reply()),
    ];
    for (target, reply) in replies {
        let count = AtomicUsize::new(0);
        let server = FakeAgent::start(move |request| match request.header("cookie") {
            Some(_) => reply(request),
            None => {
                let number = count.fetch_add(1, Ordering::Relaxed);
                reply(request).header("set-cookie", &format!("sid={number}; HttpOnly"))
            }
        });
        let suite = "name: a\nturns: [{ user: one }, { user: two }, { user: three }]\n---\nname: b\nturns: [{ user: one }, { user: two }]\n";
        let target = format!("target:\n  {}\n", target.replace("URL", &server.url()));
        Project::with_config(&target).suite("a", suite).test(&["--parallel", "1"]).assert_all_passed();
        let requests = server.requests();
        let sent: Vec<_> = requests.iter().map(|request| request.header("cookie")).collect();
        assert_eq!(sent, [None, Some("sid=0"), Some("sid=0"), None, Some("sid=1")], "{target}");
    }
}

// Answers.

#[test]
fn records_values_selected_by_paths() {
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
    let server = FakeAgent::start(move |_| FakeReply::json(200, &answer));
    let project = project(&server, &mapping_settings(map)).suite("a", HELLO);
    let tested = project.test(&["--trace", "out/trace.jsonl"]);
    tested.assert_all_passed();
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
fn reply_that_ended_with_an_error_fails() {
    let map = "{ reply: $.reply, finish_reason: $.why, error: $.error }";
    let tested = run_with_answer(map, json!({"reply": "ok", "why": "error"}));
    tested.assert_failure("a", "agent_error", &["finish_reason error"]);
    // Empty values are no errors.
    for error in [json!(null), json!(false), json!(""), json!({}), json!([])] {
        run_with_answer(map, json!({"reply": "ok", "why": "stop", "error": error})).assert_all_passed();
    }
    run_with_answer(map, json!({"reply": "ok", "error": ["bad"]})).assert_failure(
        "a",
        "agent_error",
        &["bad"],
    );
}

/// What a later event says does not make a reply whole that had failed or was cut.
#[test]
fn the_worst_finish_reason_of_a_stream_counts() {
    let map = "{ reply: $.delta, finish_reason: $.why, done: { path: $.type, equals: end } }";
    let run = |first: &str, last: &str| {
        let end = json!({"type": "end", "why": last});
        let events = [json!({"delta": "Hello.", "why": first}), json!({"why": null}), end];
        let server = FakeAgent::start(move |_| ndjson(&events));
        let settings = format!("{}  stream: ndjson\n", mapping_settings(map));
        project(&server, &settings).suite("a", HELLO).test(&[])
    };
    for (first, last) in [("error", "stop"), ("stop", "error"), ("length", "error")] {
        run(first, last).assert_failure("a", "agent_error", &["finish_reason error"]);
    }
    for (first, last) in [("length", "stop"), ("stop", "length")] {
        let tested = run(first, last);
        tested.assert_all_passed();
        let notes = tested.case("a")["turns"][0]["notes"].to_string();
        assert!(notes.contains("truncated at its token limit"), "{notes}");
    }
}

/// A reply that ends for a call and has none is not complete, unless it goes on: a stream may have the finish reason of each step.
#[test]
fn a_reply_that_ends_for_calls_needs_one() {
    let map = "{ reply: $.reply, finish_reason: $.why, tool_calls: { path: $.calls } }";
    let answer = |calls: Value| json!({"reply": "One moment.", "why": "tool_calls", "calls": calls});
    let words = "the reply ends with finish_reason tool_calls but has no tool call";
    run_with_answer(map, answer(json!([]))).assert_failed(1, "protocol_error", words);
    let call = json!([{"name": "pay", "arguments": {}, "result": "ok"}]);
    run_with_answer(map, answer(call)).assert_all_passed();
    let step = json!({"delta": "One moment.", "why": "tool_calls"});
    let end = |why: Value| json!({"type": "end", "why": why});
    let run = |events: Vec<Value>| {
        let map = "{ reply: $.delta, finish_reason: $.why, done: { path: $.type, equals: end } }";
        let server = FakeAgent::start(move |_| ndjson(&events));
        let settings = format!("{}  stream: ndjson\n", mapping_settings(map));
        project(&server, &settings).suite("a", HELLO).test(&[])
    };
    for last in [json!(null), json!("stop")] {
        run(vec![step.clone(), end(last)]).assert_failed(1, "protocol_error", words);
    }
    let more = json!({"delta": " Paid."});
    run(vec![step.clone(), more.clone(), end(json!(null))]).assert_failed(1, "protocol_error", words);
    run(vec![step, more, end(json!("stop"))]).assert_all_passed();
}

/// A wrong path of the arguments must not look like calls without arguments.
/// A stream reports a call at its start and again with its result.
#[test]
fn invalid_arguments_of_a_call_that_is_reported_twice_are_noted_once() {
    let map = "{ reply: $.delta, tool_calls: { path: '$.call', id: $.id, name: $.name, arguments: $.args, result: $.result }, done: { path: $.type, equals: end } }";
    let call = json!({"id": "c-1", "name": "pay", "args": "{\"amount\": 3"});
    let mut answered = call.clone();
    answered["result"] = json!("ok");
    let events = [json!({"call": call}), json!({"call": answered}), json!({"delta": "Hi.", "type": "end"})];
    let server = FakeAgent::start(move |_| ndjson(&events));
    let settings = format!("{}  stream: ndjson\n", mapping_settings(map));
    let tested = project(&server, &settings).suite("a", HELLO).test(&[]);
    tested.assert_all_passed();
    let turn = &tested.case("a")["turns"][0];
    assert_eq!(turn["tool_calls"].as_array().map(Vec::len), Some(1), "{turn}");
    let notes = turn["notes"].as_array().cloned().unwrap_or_default();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].to_string().contains("is not JSON"), "{notes:?}");
}

#[test]
fn arguments_in_unread_members_are_unknown() {
    let map = "{ reply: $.reply, tool_calls: { path: $.calls, name: $.tool } }";
    let run = |call: Value, assertion: &str| {
        let answer = json!({"reply": "Done.", "calls": [call]});
        let server = FakeAgent::start(move |_| FakeReply::json(200, &answer));
        let suite = format!("name: a\nturns: [{{ user: hello, assert: {assertion} }}]\n");
        project(&server, &mapping_settings(map)).suite("a", &suite).test(&[])
    };
    let forbidden = "{ tools: { forbid_calls: [{ name: pay, args_match: { amount: '9' } }] } }";
    let negated = "{ type: tool_called, name: pay, arguments: { amount: 9999 }, negate: true }";
    for call in [
        json!({"tool": "pay", "input": {"amount": 9999}}),
        json!({"tool": "pay", "amount": 9999}),
        json!({"tool": "pay", "input": {"amount": 9999}, "result": "ok"}),
    ] {
        for assertion in [forbidden, negated] {
            let tested = run(call.clone(), assertion);
            let words = ["the call has no `map.tool_calls.arguments` ($.arguments), but `"];
            tested.assert_failure("a", "assertion", &words);
        }
    }
    let tested = run(json!({"tool": "pay", "input": {"amount": 9999}}), "{ tools: { require: [pay] } }");
    tested.assert_all_passed();
    for call in [
        json!({"tool": "pay", "type": "call", "id": 1, "result": {"input": 1}}),
        json!({"tool": "pay", "arguments": null, "took_ms": 5}),
        json!({"tool": "pay", "arguments": {"amount": 1}, "took_ms": 5}),
    ] {
        run(call, forbidden).assert_all_passed();
    }
}

/// A part of the usage must not look like all of it.
#[test]
fn every_selected_usage_counts() {
    let map = "{ reply: $.reply, usage: '$.steps[*].usage' }";
    let run = |steps: Value, limit: u64| {
        let answer = json!({"reply": "Done.", "steps": steps});
        let server = FakeAgent::start(move |_| FakeReply::json(200, &answer));
        let suite =
            format!("name: a\nturns: [{{ user: hello, assert: {{ budget: {{ max_tokens: {limit} }} }} }}]\n");
        project(&server, &mapping_settings(map)).suite("a", &suite).test(&[])
    };
    let steps = json!([{"usage": {"total_tokens": 10}}, {"usage": {"total_tokens": 90}}]);
    run(steps.clone(), 100).assert_all_passed();
    run(steps, 99).assert_failure("a", "assertion", &["100 tokens"]);
    let partly = json!([{"usage": {"total_tokens": 10}}, {"usage": null}]);
    run(partly, 100).assert_failure("a", "usage_error", &[]);
    run(json!([{"usage": {"total_tokens": 10}}]), 10).assert_all_passed();
    // Also of several events.
    for (limit, passes) in [(100, true), (99, false)] {
        let cost = |tokens: u64| json!({"delta": "Hm. ", "cost": {"total_tokens": tokens}});
        let events = [cost(90), json!({"delta": "Done.", "cost": null}), cost(10), json!({"type": "end"})];
        let server = FakeAgent::start(move |_| ndjson(&events));
        let suite =
            format!("name: a\nturns: [{{ user: hello, assert: {{ budget: {{ max_tokens: {limit} }} }} }}]\n");
        let settings = format!("{}  stream: ndjson\n", mapping_settings(STREAM));
        let tested = project(&server, &settings).suite("a", &suite).test(&[]);
        match passes {
            true => tested.assert_all_passed(),
            false => tested.assert_failure("a", "assertion", &["100 tokens"]),
        }
    }
}

#[test]
fn every_selected_error_and_result_counts() {
    let run = |map: &str, answer: Value, assertion: &str| {
        let server = FakeAgent::start(move |_| FakeReply::json(200, &answer));
        let suite = format!("name: a\nturns: [{{ user: hello, assert: {assertion} }}]\n");
        project(&server, &mapping_settings(map)).suite("a", &suite).test(&[])
    };
    let steps = json!({"reply": "Done.", "steps": [{"error": false}, {"error": "declined"}]});
    let tested =
        run("{ reply: $.reply, error: '$.steps[*].error' }", steps, "{ type: contains, value: Done }");
    tested.assert_failure("a", "agent_error", &["declined"]);
    let map = "{ reply: $.reply, tool_calls: { path: $.calls, name: $.tool, arguments: '$.parts[*].in', result: '$.parts[*].out' } }";
    let call =
        json!({"tool": "pay", "parts": [{"in": {"a": 1}, "out": "ok"}, {"in": {"b": 2}, "out": "leaked"}]});
    let answer = json!({"reply": "Done.", "calls": [call]});
    let forbidden = "{ tools: { require: [{ name: pay, result_not_match: leaked }] } }";
    run(map, answer.clone(), forbidden).assert_failure("a", "assertion", &["leaked"]);
    let forbidden = "{ tools: { forbid_calls: [{ name: pay, args_match: { b: '2' } }] } }";
    run(map, answer, forbidden).assert_failure("a", "assertion", &["selects several values in a tool call"]);
}

#[test]
fn every_selected_sign_and_reason_counts() {
    let steps = json!([{"waits": false, "why": "stop"}, {"waits": true, "why": "length"}, {"why": null}]);
    let answer = json!({"reply": "Hm", "steps": steps});
    for awaiting in ["'$.steps[*].waits'", "{ path: '$.steps[*].why', equals: length }"] {
        let map = format!("{{ reply: $.reply, awaiting: {awaiting}, finish_reason: '$.steps[*].why' }}");
        let agent = answer.clone();
        let server = FakeAgent::start(move |_| FakeReply::json(200, &agent));
        let project = project(&server, &mapping_settings(&map)).suite("a", HELLO);
        project.test(&["--trace", "out/trace.jsonl"]).assert_all_passed();
        let trace = project.workspace.read("out/trace.jsonl");
        let reason = r#""finishReason":"[\"stop\",\"length\"]""#;
        assert!(trace.contains(r#""awaiting":true"#) && trace.contains(reason), "{trace}");
    }
    // Also in an event that is not the last one.
    let events = [
        json!({"delta": "Hm", "type": "text"}),
        json!({"type": "need_input", "waits": true}),
        json!({"type": "end", "waits": false}),
    ];
    for awaiting in ["$.waits", "{ path: $.type, equals: need_input }"] {
        let map =
            format!("{{ reply: $.delta, awaiting: {awaiting}, done: {{ path: $.type, equals: end }} }}");
        let events = events.clone();
        let server = FakeAgent::start(move |_| ndjson(&events));
        let settings = format!("{}  stream: ndjson\n", mapping_settings(&map));
        let project = project(&server, &settings).suite("a", HELLO);
        project.test(&["--trace", "out/trace.jsonl"]).assert_all_passed();
        let trace = project.workspace.read("out/trace.jsonl");
        assert!(trace.contains(r#""awaiting":true"#), "{trace}");
    }
    let wrong = json!({"reply": "Hm", "steps": [{"waits": false}, {"waits": "yes"}]});
    let tested = run_with_answer("{ reply: $.reply, awaiting: '$.steps[*].waits' }", wrong);
    tested.assert_failed(1, "protocol_error", "selects the text \"yes\"");
    let map = "{ reply: $.delta, done: { path: '$.states[*]', equals: end } }";
    let server = FakeAgent::start(|_| sse(&[json!({"delta": "Hello.", "states": ["sent", "end"]})]));
    let settings = format!("{}  stream: sse\n", mapping_settings(map));
    project(&server, &settings).suite("a", HELLO).test(&[]).assert_all_passed();
}

#[test]
fn reads_answer_formats() {
    // A list of calls with the most common names.
    let answer =
        json!({"reply": "", "tool_calls": [{"name": "search", "arguments": {"q": 1}, "result": "ok"}]});
    let tested = run_with_answer("{ reply: $.reply, tool_calls: $.tool_calls }", answer);
    tested.assert_all_passed();
    assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["args"], json!({"q": 1}));
    // A structured answer.
    let tested = run_with_answer("{ reply: $.data }", json!({"data": {"status": "ok"}}));
    assert_eq!(tested.case("a")["turns"][0]["output"], "{\"status\":\"ok\"}");
    // Without a mapping the body is the answer.
    let server = FakeAgent::start(|request| {
        FakeReply::text(200, &format!("You said {}.\n", request.json()["message"]))
    });
    let tested = project(&server, "  body: { message: '{{message}}' }\n").suite("a", HELLO).test(&[]);
    assert_eq!(tested.case("a")["turns"][0]["output"], "You said \"hello\".\n");
    // A boolean tells whether the agent waits.
    for (answer, passed) in
        [(json!(true), true), (json!(false), true), (json!(null), true), (json!("yes"), false)]
    {
        let tested =
            run_with_answer("{ reply: $.r, awaiting: $.awaiting }", json!({"r": "Hm", "awaiting": answer}));
        assert_eq!(tested.case("a")["status"] == "passed", passed, "{}", tested.output);
    }
}

#[test]
fn warns_if_tool_call_path_matches_nothing() {
    for selector in ["", "[*]", "[?@.kind == 'tool']", "[0:5]", "[*].name", ".*"] {
        let notes = |path: &str| {
            let map =
                format!("{{ reply: $.reply, tool_calls: {{ path: \"{path}{selector}\", name: $.name }} }}");
            let tested = run_with_answer(&map, json!({"reply": "Hi", "tool_calls": []}));
            tested.assert_all_passed();
            tested.case("a")["turns"][0]["notes"].to_string()
        };
        for wrong in ["$.toolCalls", "$..toolCalls"] {
            let found = notes(wrong);
            assert!(found.contains(&format!("({wrong}{selector}) selects nothing in the answer")), "{found}");
        }
        assert_eq!(notes("$.tool_calls"), "null", "{selector}");
    }
}

// Streams.

const STREAM: &str = "{ reply: $.delta, tool_calls: { path: $.call, name: $.name }, usage: $.cost, done: { path: $.type, equals: end }, error: $.error }";

fn piece(text: &str) -> Value {
    json!({"type": "piece", "delta": text})
}

fn ndjson(events: &[Value]) -> FakeReply {
    let reply = FakeReply::status(200).header("content-type", "application/x-ndjson");
    events.iter().fold(reply, |reply, event| reply.bytes(format!("{event}\n")))
}

fn sse(events: &[Value]) -> FakeReply {
    events.iter().cloned().fold(FakeReply::sse(), FakeReply::event)
}

/// Runs one turn with a server that streams.
#[track_caller]
fn run_with_stream(form: &str, reply: FakeReply) -> TestRun {
    let server = FakeAgent::start(move |_| reply.clone());
    project(&server, &format!("{}  stream: {form}\n", mapping_settings(STREAM)))
        .suite("a", HELLO)
        .test(&["--trace", "out/t.jsonl"])
}

#[test]
fn reads_stream_events_individually() {
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
        ("sse", sse(&events).with_piece_size(1)),
        ("ndjson", ndjson(&events).with_piece_size(1)),
    ] {
        let tested = run_with_stream(form, reply);
        tested.assert_all_passed();
        let turn = &tested.case("a")["turns"][0];
        assert_eq!(turn["messages"], json!(["One moment.", "Found 3."]));
        assert_eq!(turn["tool_calls"].as_array().map(Vec::len), Some(1));
        let call = &turn["tool_calls"][0];
        assert_eq!((&call["args"], &call["result"]), (&json!({"q": "shoes"}), &json!({"total": 3})));
        assert_eq!(turn["usage"], json!([{"tokens": 5}]));
    }
    // `[DONE]` ends the stream too, and the last line may lack its line end.
    run_with_stream("sse", sse(&[piece("Hello.")]).bytes("data: [DONE]\n\n")).assert_all_passed();
    run_with_stream("ndjson", ndjson(&[piece("Hello.")]).bytes("{\"type\": \"end\"}")).assert_all_passed();
}

/// An id that the agent uses for two calls hides neither.
#[test]
fn one_id_for_two_calls_is_two_calls() {
    let call = |members: Value| {
        let mut call = json!({"id": 1, "name": "search", "arguments": {"q": "shoes"}});
        call.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        json!({"type": "begin", "call": call})
    };
    for (first, second, calls) in [
        (json!({}), json!({"name": "delete_order", "arguments": {}}), vec!["search", "delete_order"]),
        (json!({}), json!({"arguments": {"q": "hats"}}), vec!["search", "search"]),
        (json!({"result": "a"}), json!({"result": "b"}), vec!["search", "search"]),
        // Reported again, complete or growing.
        (json!({}), json!({"result": "a"}), vec!["search"]),
        (json!({}), json!({"arguments": {"q": "shoes", "size": 42}}), vec!["search"]),
    ] {
        let events = [call(first), call(second), piece("Done."), json!({"type": "end"})];
        let tested = run_with_stream("ndjson", ndjson(&events));
        tested.assert_all_passed();
        let made = tested.case("a")["turns"][0]["tool_calls"].as_array().unwrap().clone();
        let names: Vec<&str> = made.iter().map(|call| call["name"].as_str().unwrap()).collect();
        assert_eq!(names, calls, "{made:#?}");
    }
}

/// An agent that returns its whole state makes no calls by that.
#[test]
fn calls_of_earlier_turns_are_not_made_again() {
    let suite = "name: a\nturns: [{ user: one }, { user: two, assert: { tools: { require: [pay] } } }]\n";
    let map = "{ reply: '$.messages[-1].content', tool_calls: { path: '$.messages[*].calls[*]', arguments: $.args }, error: $.error }";
    let settings = |stream: bool| match stream {
        true => format!(
            "{}  stream: ndjson\n",
            mapping_settings(&map.replace("error: $.error", "error: $.error, done: $.end"))
        ),
        false => mapping_settings(map),
    };
    let run = |suite: &str, stream: bool, answers: [Value; 2]| {
        let server = FakeAgent::start(move |request| {
            let answer = answers[request.index.min(1)].clone();
            if stream { ndjson(&[answer, json!({"end": true})]) } else { FakeReply::json(200, &answer) }
        });
        project(&server, &settings(stream)).suite("a", suite).test(&[])
    };
    let call = |id: &str, amount: u64| json!({"content": "", "calls": [{"id": id, "name": "pay", "args": {"amount": amount}}]});
    let said = json!({"content": "Done.", "calls": []});
    let state = |calls: &[Value]| {
        let messages = [calls, std::slice::from_ref(&said)].concat();
        json!({"messages": messages})
    };
    for stream in [false, true] {
        for id in [
            "call_abc",
            "call_a1b2",
            "7f3a0001",
            "call_12345",
            "abc-123",
            "order-17",
            "run42",
            "7",
            "call_2",
            "call_01",
        ] {
            let answers = [state(&[call(id, 5)]), state(&[call(id, 5), call("call_new", 6)])];
            let tested = run(suite, stream, answers);
            let words = format!("the answer repeats call `{id}` of turn 1: let `map.tool_calls` select only");
            tested.assert_failed(1, "protocol_error", &words);
        }
        // Counters of servers begin again, and some ids are the names of tools.
        for id in ["call_0", "1", "tool-1", "pay"] {
            let tested = run(suite, stream, [state(&[call(id, 5)]), state(&[call(id, 5)])]);
            tested.assert_all_passed();
            let notes = tested.case("a")["turns"][1]["notes"].to_string();
            let words =
                format!("a call equals call `{id}` of turn 1, also in its id; it counts as a new call");
            assert!(notes.contains(&words), "{notes}");
        }
        // The second of the turn.
        let counted = [state(&[call("call_1", 5)]), state(&[call("call_0", 4), call("call_1", 5)])];
        run(suite, stream, counted).assert_all_passed();
        let gap = [state(&[call("call_2", 5)]), state(&[call("call_0", 4), call("call_2", 5)])];
        let words = "the answer repeats call `call_2` of turn 1";
        run(suite, stream, gap).assert_failed(1, "protocol_error", words);
        let tested = run(suite, stream, [state(&[call("call_abc", 5)]), state(&[call("call_abc", 6)])]);
        tested.assert_all_passed();
    }
    // Also of a turn that failed as expected.
    let suite = "name: a\nturns: [{ user: one, expect_error: declined }, { user: two }]\n";
    let failed = json!({"messages": [call("call_abc", 5)], "error": null});
    let events = [failed, json!({"error": "declined"})];
    let repeated = [state(&[call("call_abc", 5)]), json!({"end": true})];
    let server = FakeAgent::start(move |request| match request.index {
        0 => ndjson(&events),
        _ => ndjson(&repeated),
    });
    let tested = project(&server, &settings(true)).suite("a", suite).test(&[]);
    tested.assert_failed(1, "protocol_error", "the answer repeats call `call_abc` of turn 1");
}

/// Entries of one list are different calls, unless one adds to the other.
#[test]
fn equal_entries_of_a_list_are_two_calls() {
    let call = json!({"id": "call_0", "name": "pay", "arguments": {"amount": 3500}});
    let (start, result) = (json!({"id": "call_0", "name": "pay"}), json!({"id": "call_0", "result": "ok"}));
    for (calls, count) in [
        (json!([call, call]), 2),
        (json!([call, call, result]), 2),
        (json!([start, start]), 2),
        (json!([call, start]), 2),
        (json!([call, result]), 1),
        (json!([start, call]), 1),
    ] {
        let answer = json!({"reply": "Done.", "calls": calls});
        let tested = run_with_answer("{ reply: $.reply, tool_calls: $.calls }", answer);
        tested.assert_all_passed();
        let made = tested.case("a")["turns"][0]["tool_calls"].clone();
        assert_eq!(made.as_array().map(Vec::len), Some(count), "{calls}: {made:#}");
    }
}

#[test]
fn rejects_invalid_streams() {
    let unfinished = "none of which is the last one by `map.done`";
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
            FakeReply::json(200, &piece("Hello")),
            "protocol_error",
            "the stream ended without a single event: HTTP 200 OK with application/json; the body is JSON, not server-sent events: remove `stream` from `target`",
        ),
        (
            "ndjson",
            FakeReply::status(200),
            "protocol_error",
            "the stream ended without a single event: HTTP 200 OK with no content type and an empty body",
        ),
        (
            "sse",
            sse(&[piece("Hel"), json!({"error": "out of stock"})]),
            "agent_error",
            "the agent failed: out of stock",
        ),
        (
            "sse",
            FakeReply::sse().bytes("event: error\ndata: {\"message\": \"boom\"}\n\n").event(piece("Hello")),
            "agent_error",
            "the agent failed: boom",
        ),
        (
            "sse",
            sse(&[piece("Hello")]).bytes("error: {\"code\": 500, \"message\": \"boom\"}\n\ndata: [DONE]\n\n"),
            "agent_error",
            "the agent failed: boom (500)",
        ),
        (
            "sse",
            sse(&[piece("Hello")]).bytes("event: error\ndata: [DONE]\n\n"),
            "agent_error",
            "the agent failed: an event named `error`",
        ),
        (
            "sse",
            sse(&[piece("Hello")]).bytes("event: error\ndata:\n\ndata: [DONE]\n\n"),
            "agent_error",
            "the agent failed: an event named `error`",
        ),
        (
            "sse",
            sse(&[piece("Hello")]).bytes("event: error\n\ndata: [DONE]\n\n"),
            "agent_error",
            "the agent failed: an event named `error`",
        ),
    ] {
        run_with_stream(form, reply).assert_failed(1, kind, words);
    }
    let whole = run_with_stream("sse", FakeReply::json(200, &piece("Hello")));
    let detail = whole.failure("a")["detail"].to_string();
    assert!(detail.contains("Hello"), "{detail}");
    let cut = run_with_stream("sse", sse(&[piece("Deleting"), json!({"call": {"name": "delete"}})]));
    let turn = &cut.case("a")["turns"][0];
    assert_eq!((&turn["output"], &turn["tool_calls"][0]["name"]), (&json!("Deleting"), &json!("delete")));
}

// Failures.

#[test]
fn reports_missing_or_mistyped_path_values() {
    let simple = "{ reply: $.reply, tool_calls: $.calls, conversation_id: $.id }";
    for (answer, words) in [
        (json!({}), "`map.reply` ($.reply) selects nothing in the answer"),
        (json!({"reply": null, "calls": []}), "`map.reply` ($.reply) selects nothing"),
        (json!([]), "`map.reply` ($.reply) selects nothing"),
        (json!({"reply": ""}), "selects nothing in the answer to the first message"),
        (
            json!({"reply": "Hi.", "id": ""}),
            "`map.conversation_id` ($.id) selects nothing in the answer to the first message",
        ),
        (json!({"reply": "", "id": "1"}), "the agent's answer is empty: no text and no tool call"),
        (
            json!({"reply": 42}),
            "`map.reply` ($.reply) selects the number 42, expected a text, an object or a list",
        ),
        (json!({"reply": true}), "selects true"),
        (
            json!({"reply": "x", "calls": "none"}),
            "`map.tool_calls` ($.calls) selects the text \"none\", expected an object for each call",
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
        run_with_answer(simple, answer).assert_failed(1, "protocol_error", words);
    }
    let each = "{ reply: $.reply, tool_calls: \"$.calls[*]\" }";
    run_with_answer(each, json!({"reply": "x", "calls": "none"})).assert_failed(
        1,
        "protocol_error",
        "`map.tool_calls` ($.calls[*]) selects the text \"none\", expected a list of calls",
    );
    run_with_answer(each, json!({"reply": "x", "calls": null})).assert_all_passed();
    let tested = run_with_answer(each, json!({"reply": "x", "calls": [null]}));
    tested.assert_failed(1, "protocol_error", "selects null, expected an object for each call");
    let tested = run_with_answer(simple, json!({"answer": "Hello from elsewhere"}));
    assert!(
        tested.failure("a")["detail"].as_str().is_some_and(|detail| detail.contains("Hello from elsewhere"))
    );
}

#[test]
fn keeps_calls_before_an_invalid_one() {
    let calls = json!([{"name": "delete", "arguments": {"all": true}}, {"nome": "x"}]);
    let tested =
        run_with_answer("{ reply: $.reply, tool_calls: $.calls }", json!({"reply": "Done", "calls": calls}));
    tested.assert_failed(1, "protocol_error", "selects nothing in a tool call");
    assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["name"], "delete");
}

#[test]
fn rejects_invalid_answers() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let cases: [(FakeReply, &str, &str); 10] = [
        (FakeReply::text(200, &deep), "protocol_error", "the answer is nested deeper than 127 levels"),
        (FakeReply::status(200), "protocol_error", "HTTP 200 OK with an empty body"),
        (FakeReply::text(200, "  \n"), "protocol_error", "with an empty body"),
        (FakeReply::text(200, "<html>Hello</html>"), "protocol_error", "the answer is not JSON"),
        (
            FakeReply::text(200, "{\"reply\": \"Hel"),
            "protocol_error",
            "the answer is not JSON (EOF while parsing a string",
        ),
        (
            FakeReply::text(200, "{\"reply\": \"Hello\"").cut(),
            "protocol_error",
            "the connection broke before the answer was complete",
        ),
        (FakeReply::status(200).bytes(&b"\xff\xfe{}"[..]), "protocol_error", "the answer is not UTF-8"),
        (
            FakeReply::text(200, "{}").header("content-encoding", "gzip"),
            "protocol_error",
            "the answer has the unsupported encoding gzip; turn off compression at the server",
        ),
        (FakeReply::json(500, &json!({"reply": "Hello"})), "agent_error", "HTTP 500"),
        (
            FakeReply::status(302).header("location", "/other"),
            "agent_error",
            "redirects are not followed, set `endpoint` of the agent to http://127.0.0.1:",
        ),
    ];
    for (reply, kind, words) in cases {
        let server = FakeAgent::start(move |_: &FakeRequest| reply.clone());
        project(&server, SIMPLE).suite("a", HELLO).test(&[]).assert_failed(1, kind, words);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn reports_agent_errors() {
    let map = "{ reply: $.reply, error: $.error }";
    for (error, words) in [
        (json!("out of stock"), "the agent failed: out of stock"),
        (json!({"message": "out of stock", "code": 7}), "the agent failed: out of stock (7)"),
        (json!({"reason": "x"}), "the agent failed: {\"reason\":\"x\"}"),
        (json!(true), "the agent failed: true"),
    ] {
        run_with_answer(map, json!({"reply": "Hello", "error": error})).assert_failed(
            1,
            "agent_error",
            words,
        );
    }
    for error in [json!(null), json!(false), json!(""), json!({})] {
        run_with_answer(map, json!({"reply": "Hello", "error": error})).assert_all_passed();
    }
    let server = FakeAgent::start(|_| FakeReply::json(200, &json!({"error": "out of stock"})));
    let suite = "name: a\nturns: [{ user: hello, expect_error: out of }]\n";
    project(&server, &mapping_settings(map)).suite("a", suite).test(&[]).assert_all_passed();
}

#[test]
fn silent_slow_and_missing_servers_fail() {
    let silent = FakeAgent::start(|_| FakeReply::text(200, "{\"reply\"").hang());
    let tested = project(&silent, &format!("{SIMPLE}  idle_timeout_ms: 100\n")).suite("a", HELLO).test(&[]);
    tested.assert_failed(1, "timeout", "the agent sent nothing for 100 ms");
    let never = FakeAgent::start(|_| FakeReply::never());
    let tested = project(&never, &format!("{SIMPLE}  timeout_ms: 100\n")).suite("a", HELLO).test(&[]);
    tested.assert_failed(1, "timeout", "the turn timed out after 100 ms");
    let target = format!(
        "target: {{ type: http, endpoint: '{}', body: {{ m: '{{{{message}}}}' }} }}\n",
        unreachable_address()
    );
    Project::with_config(&target).suite("a", HELLO).test(&[]).assert_failed(3, "unreachable", "cannot reach");
}

/// Requests are never sent twice, so a server has to announce that it closes its connections.
#[test]
fn a_closed_connection_is_named() {
    let invalid = FakeReply::status(200).first(ReplyStep::Bytes("no HTTP\r\n\r\n".into()));
    for (failed, reply, words) in [
        (0, FakeReply::refused(), "accepted the connection but did not answer"),
        (1, invalid, "sent an answer that cannot be read as HTTP"),
        (
            1,
            FakeReply::refused(),
            "closed a connection after an earlier answer and did not answer this request",
        ),
    ] {
        let server = FakeAgent::start(move |request| match request.index == failed {
            true => reply.clone(),
            false => FakeReply::json(200, &json!({"reply": "Hi."})),
        });
        let suite = "name: a\nturns: [{ user: one }, { user: two }]\n";
        let tested = project(&server, SIMPLE).suite("a", suite).test(&[]);
        tested.assert_failed(1, "protocol_error", words);
        assert_eq!(server.requests().len(), failed + 1);
    }
}

#[test]
fn rejects_message_that_changes_url_target() {
    let server = FakeAgent::start(|_| FakeReply::text(200, "fine"));
    let target = format!("target: {{ type: http, method: GET, endpoint: '{server}a/{{{{message}}}}/b' }}\n");
    let suite = "name: a\nturns: [{ user: '..' }]\n";
    Project::with_config(&target).suite("a", suite).test(&[]).assert_failed(
        1,
        "test_error",
        "whose `.` or `..` segments change the path",
    );
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn rejects_message_invalid_in_header() {
    let server = FakeAgent::start(|_| FakeReply::text(200, "fine"));
    let target =
        format!("target: {{ type: http, endpoint: '{server}', headers: {{ X-M: '{{{{message}}}}' }} }}\n");
    let suite = "name: a\nturns: [{ user: \"two\\nlines\" }]\n";
    Project::with_config(&target).suite("a", suite).test(&[]).assert_failed(
        1,
        "test_error",
        "header `x-m` expands to a value with a line end",
    );
    assert_eq!(server.requests().len(), 0);
}

// Settings.

#[test]
fn rejects_invalid_settings_before_sending() {
    for (target, words) in [
        ("{ type: http, endpoint: 'http://127.0.0.1:9/' }", "the user's message is never sent to the agent"),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/', body: { m: '{{history}}' } }",
            "the user's message is never sent to the agent",
        ),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/', body: { m: '{{mesage}}', n: '{{message}}' } }",
            "did you mean `{{message}}`?",
        ),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/', body: { m: '{{message}}', n: '{{user.name}}' } }",
            "`{{user}}` is a text or a number, which has no members",
        ),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/', body: { m: '{{message}}', n: '{{option.a}}' } }",
            "did you mean `{{options}}`?",
        ),
        ("{ type: http, endpoint: 'http://{{message}}:9/' }", "the server name cannot contain a placeholder"),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/{{message}}', body: 1, method: GET }",
            "a `GET` request cannot have a `body`",
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
            "`hint` requires `awaiting`",
        ),
        (
            "{ type: http, endpoint: 'http://127.0.0.1:9/', body: '{{message}}', tools: [] }",
            "unknown key `tools`",
        ),
    ] {
        Project::with_config(&format!("target: {target}\n"))
            .suite("a", HELLO)
            .hotseat(&["test"])
            .assert_stderr(2, &[words]);
    }
    let suite = "name: a\nstate: {}\nturns: [{ user: hello }]\n";
    let target = "target: { type: http, endpoint: 'http://127.0.0.1:9/', body: '{{message}}' }\n";
    Project::with_config(target)
        .suite("a", suite)
        .hotseat(&["test"])
        .assert_stderr(2, &["sets `state`, which its agent does not support"]);
}

#[test]
fn an_answer_that_is_not_http_is_an_answer() {
    let long_head = format!("HTTP/1.1 200 OK\r\nx-long: {}\r\n\r\n", "x".repeat(2_000_000));
    for answer in ["SSH-2.0-OpenSSH_9.6\r\n\r\n".to_string(), long_head] {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let server = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().expect("a connection");
            let (mut request, mut piece) = (Vec::new(), [0; 4096]);
            while !request.ends_with(b"\"hello\"") {
                let received = connection.read(&mut piece).expect("a request");
                request.extend_from_slice(&piece[..received]);
            }
            // The client stops reading a head that is too long.
            let _ = connection.write_all(answer.as_bytes());
        });
        let target =
            format!("target: {{ type: http, endpoint: 'http://{address}/', body: '{{{{message}}}}' }}\n");
        let tested = Project::with_config(&target).suite("a", HELLO).test(&[]);
        tested.assert_failed(1, "protocol_error", "sent an answer that cannot be read as HTTP: ");
        server.join().expect("the server answers");
    }
}

#[test]
fn redacts_secrets_in_templates() {
    let secret = "k-0123456789";
    let server = http_agent(|request| {
        let header = request.header("authorization").unwrap_or_default().to_string();
        format!("I was sent {header}")
    });
    let more = format!("  headers: {{ Authorization: 'Bearer ${{ENV.PLAIN}}' }}\n{SIMPLE}");
    let suite = "name: a\nturns: [{ user: hello }]\nassert: { text: { must_match: impossible } }\n";
    let project = project(&server, &more).suite("a", suite);
    let tested = project.test_in(&[("PLAIN", secret)], &["-v", "--trace", "out/t.jsonl"]);
    tested.assert_failed(
        1,
        "assertion",
        "expected the agent to say something that matches /impossible/, got",
    );
    let all = format!("{}{}{}", tested.output, tested.report, project.workspace.read("out/t.jsonl"));
    assert!(!all.contains(secret) && all.contains("I was sent Bearer [redacted:"), "{all}");
}

/// An error excuses only what is sent after it: a call or a text in the same document or event counts.
#[test]
fn what_stands_beside_an_error_counts() {
    let call = json!({"name": "delete", "arguments": {}});
    let answer = json!({"delta": "secret", "call": call, "error": "nope"});
    let unreadable = json!({"delta": "secret", "call": [7, call], "error": "nope"});
    let named = FakeReply::sse().bytes(format!("event: error\ndata: {answer}\n\n"));
    let replies = [
        ("none", FakeReply::json(200, &answer)),
        ("none", FakeReply::json(200, &unreadable)),
        ("ndjson", ndjson(std::slice::from_ref(&answer))),
        ("sse", sse(std::slice::from_ref(&answer))),
        ("sse", named),
    ];
    let map = STREAM.replace(", done: { path: $.type, equals: end }", "");
    for (form, reply) in replies {
        let done = if form == "none" { map.as_str() } else { STREAM };
        let settings = format!("{}  stream: {form}\n", mapping_settings(done));
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
            let tested = project(&server, &settings).suite("a", &suite).test(&[]);
            assert_eq!(tested.output.code, i32::from(!passes), "{form} {assertion}: {}", tested.output);
        }
    }
    // The texts of an event that is itself the error are not the agent's.
    let error = FakeReply::sse().bytes("event: error\ndata: {\"delta\": \"x\", \"message\": \"nope\"}\n\n");
    let server = FakeAgent::start(move |_| error.clone());
    let suite =
        "name: a\nturns: [{ user: hello, expect_error: ^nope$, assert: { text: { must_not_match: . } } }]\n";
    project(&server, &format!("{}  stream: sse\n", mapping_settings(STREAM)))
        .suite("a", suite)
        .test(&[])
        .assert_all_passed();
}

/// The conversation continues after an expected error: its id and its messages are kept, and nothing is sent twice.
#[test]
fn a_turn_with_an_expected_error_is_remembered() {
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    let (before, one) = (said("user", "before"), said("user", "one"));
    for (history, earlier) in
        [("full", json!([before, one, said("assistant", "half")])), ("delta", json!([]))]
    {
        let server = FakeAgent::start(|request| {
            let answer = match request.index {
                0 => json!({"r": "half", "id": 7, "error": "nope"}),
                _ => json!({"r": "fine"}),
            };
            FakeReply::json(200, &answer)
        });
        let more = format!(
            "  history: {history}\n  body: {{ m: '{{{{message}}}}', id: '{{{{conversation_id}}}}', earlier: '{{{{history}}}}' }}\n  map: {{ reply: $.r, conversation_id: $.id, error: $.error }}\n"
        );
        let suite = "name: a\nmessages: [{ role: user, content: before }]\nturns: [{ user: one, expect_error: nope }, { user: two }]\n";
        project(&server, &more).suite("a", suite).test(&[]).assert_all_passed();
        let sent: Vec<Value> = server.requests().iter().map(FakeRequest::json).collect();
        assert_eq!(sent[0], json!({"m": "one", "id": null, "earlier": [before]}), "{history}");
        assert_eq!(sent[1], json!({"m": "two", "id": 7, "earlier": earlier}), "{history}");
    }
}
