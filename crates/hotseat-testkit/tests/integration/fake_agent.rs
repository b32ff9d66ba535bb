//! Responses of a fake agent byte by byte.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::common::{Client, Piece, TEST_TIMEOUT};
use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, ReplyStep};
use serde_json::json;

fn chunk(text: &str) -> Piece {
    Piece::Chunk(text.to_owned())
}

#[test]
fn connection_serves_several_requests() {
    let agent = FakeAgent::start(|request| FakeReply::text(200, &format!("reply {}", request.index)));
    let mut client = Client::connect(agent.port());
    for (index, body) in ["one", "two"].iter().enumerate() {
        client.post(&format!("/path?n={index}"), body);
        assert_eq!(client.reply(), (200, format!("reply {index}")));
    }

    let requests = agent.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!((requests[1].index, requests[1].method.as_str()), (1, "POST"));
    assert_eq!((requests[1].path.as_str(), &requests[1].body[..]), ("/path?n=1", &b"two"[..]));
    assert!(requests[0].arrived <= requests[1].arrived);
}

#[test]
fn headers_are_lower_case_and_ordered() {
    let agent = FakeAgent::start(|_| FakeReply::status(204));
    let mut client = Client::connect(agent.port());
    client.write("GET / HTTP/1.1\r\nX-B: Two \r\nX-A: One\r\nX-b: Three\r\n\r\n");
    assert_eq!(client.head().status, 204);

    let request = agent.requests().remove(0);
    let expected = [("x-b", "Two"), ("x-a", "One"), ("x-b", "Three")];
    assert_eq!(request.headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(request.header("x-b"), Some("Two"));
    assert_eq!(request.header("x-c"), None);
}

#[test]
fn reply_without_body_keeps_connection_usable() {
    let agent = FakeAgent::start(|request| {
        let status = if request.path == "/none" { 204 } else { 200 };
        FakeReply::status(status).bytes("body")
    });
    let mut client = Client::connect(agent.port());
    client.get("/none");
    let head = client.head();
    assert_eq!((head.status, head.headers.len()), (204, 0));
    client.write("HEAD / HTTP/1.1\r\n\r\n");
    assert_eq!(client.head().status, 200);
    client.get("/");
    assert_eq!(client.reply(), (200, "body".to_owned()));
}

#[test]
fn requests_are_read_in_any_chunks() {
    let agent = FakeAgent::start(|request| FakeReply::json(200, &request.json()));
    let mut client = Client::connect(agent.port());
    let whole = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
                 3;note=x\r\n{\"a\r\n5\r\n\":[1]\r\n1\r\n}\r\n0\r\nTrailer: x\r\n\r\n";
    for byte in whole.split_inclusive(|_| true) {
        client.write(byte);
    }
    assert_eq!(client.reply(), (200, "{\"a\":[1]}".to_owned()));
    // Two requests in one write are two requests.
    client
        .write("POST / HTTP/1.1\r\ncontent-length: 1\r\n\r\n1POST / HTTP/1.1\r\ncontent-length: 1\r\n\r\n2");
    assert_eq!((client.reply().1, client.reply().1), ("1".to_owned(), "2".to_owned()));
}

#[test]
fn answers_expect_continue() {
    let agent = FakeAgent::start(|request| FakeReply::json(200, &request.json()));
    let mut client = Client::connect(agent.port());
    client.write("POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.head().status, 100);
    client.write("42");
    assert_eq!(client.reply(), (200, "42".to_owned()));
}

#[test]
fn each_step_is_a_separate_write() {
    let agent = FakeAgent::start(|_| FakeReply::sse().bytes(": hi\n\n").event(json!({"a": 1})));
    let mut client = Client::connect(agent.port());
    client.get("/");
    let head = client.head();
    let expected =
        ["transfer-encoding: chunked", "content-type: text/event-stream", "cache-control: no-cache"];
    assert_eq!(head.headers, expected);
    assert_eq!(client.piece(), chunk(": hi\n\n"));
    assert_eq!(client.piece(), chunk("data: {\"a\":1}\n\n"));
    assert_eq!(client.piece(), Piece::End);
}

#[test]
fn body_can_be_split_inside_characters() {
    let agent = FakeAgent::start(|_| FakeReply::sse().bytes("é🌍\r\n").with_piece_size(1));
    let mut client = Client::connect(agent.port());
    client.get("/");
    client.head();
    let chunks = client.chunks();
    assert!(chunks.iter().all(|chunk| chunk.len() == 1));
    assert_eq!(String::from_utf8(chunks.concat()).unwrap(), "é🌍\r\n");
}

#[test]
fn end_skips_following_steps() {
    let agent = FakeAgent::start(|_| FakeReply::sse().bytes("a").step(ReplyStep::End).bytes("b"));
    let mut client = Client::connect(agent.port());
    client.get("/");
    assert_eq!(client.reply(), (200, "a".to_owned()));
}

#[test]
fn gate_holds_following_steps_until_released() {
    let agent = FakeAgent::start(|request| match request.path.as_str() {
        "/held" => FakeReply::sse().bytes("before").gate("middle").bytes("after").gate("end"),
        _ => FakeReply::status(204),
    });
    let mut client = Client::connect(agent.port());
    client.get("/held");
    agent.wait_at_gate("middle", TEST_TIMEOUT);
    client.head();
    assert_eq!(client.piece(), chunk("before"));

    // Another gate shows the difference: when a later request is answered, the reply would have continued.
    agent.release("another");
    let mut other = Client::connect(agent.port());
    other.get("/");
    assert_eq!(other.head().status, 204);
    let at_end = catch_unwind(AssertUnwindSafe(|| agent.wait_at_gate("end", Duration::ZERO)));
    assert!(at_end.is_err(), "the gate `middle` did not hold");

    agent.release("middle");
    assert_eq!(client.piece(), chunk("after"));
    agent.release("end");
    assert_eq!(client.piece(), Piece::End);
    // Gates stay open for later requests.
    client.get("/held");
    assert_eq!(client.reply(), (200, "beforeafter".to_owned()));
}

#[test]
fn gate_can_hold_head() {
    let agent = FakeAgent::start(|_| FakeReply::text(200, "late").first(ReplyStep::Gate("head".to_owned())));
    let mut client = Client::connect(agent.port());
    client.get("/");
    agent.wait_at_gate("head", TEST_TIMEOUT);
    agent.release("head");
    assert_eq!(client.reply(), (200, "late".to_owned()));
}

#[test]
fn pause_takes_its_time() {
    let agent = FakeAgent::start(|_| FakeReply::text(200, "a").pause(Duration::from_millis(60)).bytes("b"));
    let mut client = Client::connect(agent.port());
    let start = Instant::now();
    client.get("/");
    assert_eq!(client.reply(), (200, "ab".to_owned()));
    assert!(start.elapsed() >= Duration::from_millis(60));
}

#[test]
fn cut_ends_stream_without_last_chunk() {
    let agent = FakeAgent::start(|_| FakeReply::sse().bytes("half").cut());
    let mut client = Client::connect(agent.port());
    client.get("/");
    client.head();
    assert_eq!(client.piece(), chunk("half"));
    assert_eq!(client.piece(), Piece::Closed);
}

#[test]
fn reset_is_seen_by_client() {
    // A reset may overtake earlier data, so the client reads that first.
    let agent = FakeAgent::start(|_| FakeReply::sse().bytes("half").gate("read").reset());
    let mut client = Client::connect(agent.port());
    client.get("/");
    client.head();
    assert_eq!(client.piece(), chunk("half"));
    agent.release("read");
    assert_eq!(client.piece(), Piece::Reset);
}

#[test]
fn connection_can_end_before_head() {
    let agent = FakeAgent::start(|request| match request.path.as_str() {
        "/raw" => FakeReply {
            before: vec![ReplyStep::Bytes("SSH-2.0-x\r\n".into()), ReplyStep::End],
            ..FakeReply::status(200)
        },
        _ => FakeReply::refused(),
    });
    for (path, expected) in [("/", ""), ("/raw", "SSH-2.0-x\r\n")] {
        let mut client = Client::connect(agent.port());
        client.get(path);
        assert_eq!(client.rest(), expected, "{path}");
    }
}

#[test]
fn body_can_end_with_connection() {
    let agent = FakeAgent::start(|_| FakeReply::text(200, "all").until_close());
    let mut client = Client::connect(agent.port());
    client.get("/");
    assert_eq!(client.head().headers[0], "connection: close");
    assert_eq!(client.rest(), "all");
}

#[test]
fn honors_connection_close() {
    let agent = FakeAgent::start(|_| FakeReply::text(200, "all"));
    let mut client = Client::connect(agent.port());
    client.write("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(client.reply(), (200, "all".to_owned()));
    assert_eq!(client.rest(), "");

    let mut old = Client::connect(agent.port());
    old.write("GET / HTTP/1.0\r\n\r\n");
    old.head();
    assert_eq!(old.rest(), "all");
}

#[test]
fn rejects_invalid_http_with_reason() {
    for nonsense in ["hello\r\n\r\n", "GET / SPDY/3\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n"] {
        let agent = FakeAgent::start(|_| FakeReply::status(204));
        let mut client = Client::connect(agent.port());
        client.write(nonsense);
        assert_eq!(client.head().status, 400, "{nonsense:?}");
        assert_ne!(client.rest(), "", "{nonsense:?}");
        assert_eq!(agent.requests().len(), 0, "{nonsense:?}");
    }
}

#[test]
fn hang_ends_with_server() {
    let agent = FakeAgent::start(|request| match request.path.as_str() {
        "/silent" => FakeReply::never(),
        _ => FakeReply::sse().bytes("begun").hang(),
    });
    let mut silent = Client::connect(agent.port());
    silent.get("/silent");
    let mut begun = Client::connect(agent.port());
    begun.get("/");
    begun.head();
    assert_eq!(begun.piece(), chunk("begun"));
    agent.wait_for_requests(2, TEST_TIMEOUT);

    drop(agent);
    assert_eq!(silent.rest(), "");
    assert_eq!(begun.piece(), Piece::Closed);
}

#[test]
fn hang_ends_with_client_and_is_counted() {
    let agent = FakeAgent::start(|_| FakeReply::sse().bytes("begun").hang());
    let mut client = Client::connect(agent.port());
    client.get("/");
    client.head();
    assert_eq!(client.piece(), chunk("begun"));
    assert_eq!(agent.abandoned(), 0);
    client.leave();
    agent.wait_for_abandoned(1, TEST_TIMEOUT);
}

#[test]
fn in_flight_requests_are_counted() {
    let agent = FakeAgent::start(|request| match request.path.as_str() {
        "/held" => FakeReply::status(200).gate("all").bytes("x"),
        _ => FakeReply::status(200).bytes("x"),
    });
    let mut single = Client::connect(agent.port());
    for _ in 0..20 {
        single.get("/");
        single.reply();
        let mut other = Client::connect(agent.port());
        other.get("/");
        other.reply();
    }
    assert_eq!(agent.most_in_flight(), 1);

    let mut clients: Vec<Client> = (0..7).map(|_| Client::connect(agent.port())).collect();
    clients.iter_mut().for_each(|client| client.get("/held"));
    assert_eq!(agent.wait_for_requests(47, TEST_TIMEOUT).len(), 47);
    agent.release("all");
    for client in &mut clients {
        assert_eq!(client.reply(), (200, "x".to_owned()));
    }
    assert_eq!(agent.most_in_flight(), 7);
    assert_eq!(agent.abandoned(), 0);
}

#[test]
fn waiting_for_missing_requests_fails() {
    let agent = FakeAgent::start(|_| FakeReply::status(204));
    let message = |wait: &dyn Fn()| {
        let panic = catch_unwind(AssertUnwindSafe(wait)).expect_err("nothing happens");
        panic.downcast::<String>().expect("words")
    };
    let short = Duration::from_millis(5);
    assert_eq!(*message(&|| drop(agent.wait_for_requests(1, short))), "0 requests instead of 1 after 5ms");
    assert_eq!(*message(&|| agent.wait_at_gate("g", short)), "no reply reached the gate `g` in 5ms");
    assert!(message(&|| agent.wait_for_abandoned(1, short)).starts_with("0 replies instead of 1"));
}

#[test]
fn failed_assertion_in_handler_fails_test() {
    let agent = FakeAgent::start(|request| {
        assert_eq!(request.path, "/expected", "the path");
        FakeReply::status(204)
    });
    let mut client = Client::connect(agent.port());
    client.get("/other");
    let (status, body) = client.reply();
    assert_eq!(status, 500);
    assert!(body.contains("the path"), "{body}");

    let panic = catch_unwind(AssertUnwindSafe(|| drop(agent))).expect_err("dropping it panics");
    let message = panic.downcast::<String>().expect("words");
    assert!(message.contains("/expected") && message.contains("/other"), "{message}");
}

#[test]
fn run_takes_ids_from_request() {
    let agent = FakeAgent::start(|request| {
        assert_eq!(request.last_user_text(), "two parts");
        assert_eq!(request.user_texts(), ["hi", "two parts"]);
        FakeRun::for_request(request).started().text_chunks("A text of two chunks").tool_chunks(
            "c",
            "t",
            &json!({}),
            Some(json!("ok")),
        )
    });
    let messages = json!([
        {"id": "1", "role": "user", "content": "hi"},
        {"id": "2", "role": "assistant", "content": "hello"},
        {"id": "3", "role": "user", "content": [{"type": "text", "text": "two"}, {"type": "text", "text": "parts"}]},
    ]);
    let input = json!({"threadId": "th", "runId": "r", "messages": messages});
    let envelope = json!({"method": "agent/run", "params": {"agentId": "a"}, "body": input});
    let expected = [
        json!({"type": "RUN_STARTED", "threadId": "th", "runId": "r", "protocolVersion": "1.0"}),
        json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "r-message-1", "role": "assistant", "delta": "A text of tw"}),
        json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "o chunks"}),
        json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "t", "delta": "{"}),
        json!({"type": "TOOL_CALL_CHUNK", "delta": "}"}),
        json!({"type": "TOOL_CALL_RESULT", "messageId": "r-result-2", "toolCallId": "c", "role": "tool", "content": "ok"}),
    ];
    assert_eq!(crate::common::run(agent.port(), &input), expected);
    assert_eq!(crate::common::run(agent.port(), &envelope), expected);
}

#[test]
fn every_builder_writes_its_event() {
    let agent = FakeAgent::start(|request| {
        FakeRun::for_request(request)
            .reasoning("hm")
            .state(json!({"a": 1}))
            .delta(json!([]))
            .messages_snapshot(vec![json!({"id": "m"})])
            .custom("c", json!(null))
            .raw_event(json!({"type": "X"}))
            .finished()
            .pending(&["c1".to_owned()])
            .interrupted(vec![json!({"id": "i", "reason": "r"})])
            .error("broken", None)
            .error("broken", Some("E1"))
            .gate("open")
            .pause(Duration::ZERO)
    });
    agent.release("open");
    let finished =
        |outcome| json!({"type": "RUN_FINISHED", "threadId": "th", "runId": "r", "outcome": outcome});
    assert_eq!(
        crate::common::run(agent.port(), &json!({"threadId": "th", "runId": "r", "messages": []})),
        [
            json!({"type": "REASONING_START", "messageId": "r-reasoning-1"}),
            json!({"type": "REASONING_MESSAGE_START", "messageId": "r-reasoning-1", "role": "reasoning"}),
            json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "r-reasoning-1", "delta": "hm"}),
            json!({"type": "REASONING_MESSAGE_END", "messageId": "r-reasoning-1"}),
            json!({"type": "REASONING_END", "messageId": "r-reasoning-1"}),
            json!({"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}),
            json!({"type": "STATE_DELTA", "delta": []}),
            json!({"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m"}]}),
            json!({"type": "CUSTOM", "name": "c", "value": null}),
            json!({"type": "X"}),
            finished(json!({"type": "success"})),
            finished(json!({"type": "success", "pendingToolCallIds": ["c1"]})),
            finished(json!({"type": "interrupt", "interrupts": [{"id": "i", "reason": "r"}]})),
            json!({"type": "RUN_ERROR", "message": "broken"}),
            json!({"type": "RUN_ERROR", "message": "broken", "code": "E1"}),
        ]
    );
}
