//! HTTP and server-sent events: accepted and rejected server behaviour.

use std::time::Duration;

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, ReplyStep};
use hotseat_trace::FailureKind::{AgentError, ProtocolError, Timeout, Unreachable};
use serde_json::{Value, json};

use super::fixture::{ConversationOutcome, RunScript, TestConversation, WAIT_LIMIT, agent, run_turn_with};

const SHORT: Duration = Duration::from_millis(150);

/// Runs a single-turn conversation with an agent that answers with these bytes as an event stream.
fn run_with_bytes(body: impl Into<Vec<u8>>) -> ConversationOutcome {
    let body = body.into();
    run_with_reply(move || FakeReply::sse().bytes(body.clone()))
}

fn run_with_reply(reply: impl Fn() -> FakeReply + Send + Sync + 'static) -> ConversationOutcome {
    let agent = FakeAgent::start(move |_: &FakeRequest| reply());
    let told = TestConversation::new(&agent).user_says("hello").run();
    assert_eq!(agent.requests().len(), 1, "nothing is sent twice");
    told
}

/// Events of a run with this text as lines of JSON.
fn run_lines(text: &str) -> Vec<String> {
    let events = [
        json!({"type": "RUN_STARTED"}),
        json!({"type": "TEXT_MESSAGE_START", "messageId": "m"}),
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": text}),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
        json!({"type": "RUN_FINISHED"}),
    ];
    events.iter().map(Value::to_string).collect()
}

/// Like `run_lines`, as a stream with each event written by `frame`.
fn stream(text: &str, frame: impl Fn(&str) -> String) -> String {
    run_lines(text).iter().map(|event| frame(event)).collect()
}

/// A260, A262–A266: all spellings of the same events.
#[test]
fn accepts_every_standard_sse_form() {
    let split = |event: &str| {
        // JSON treats a line end as white space, so an event may span lines between its members.
        event.replacen(",\"", ",\ndata: \"", 1)
    };
    let ways: [(&str, String); 10] = [
        ("LF", stream("你好 🌍", |e| format!("data: {e}\n\n"))),
        ("CRLF", stream("你好 🌍", |e| format!("data: {e}\r\n\r\n"))),
        ("CR", stream("你好 🌍", |e| format!("data: {e}\r\r"))),
        ("no blank", stream("你好 🌍", |e| format!("data:{e}\n\n"))),
        ("two blanks", stream("你好 🌍", |e| format!("data:  {e}\n\n"))),
        ("several lines", stream("你好 🌍", |e| format!("data: {}\n\n", split(e)))),
        ("comments", stream("你好 🌍", |e| format!(": ping\n\n:\n\ndata: {e}\n: still here\n\n"))),
        (
            "other fields",
            stream("你好 🌍", |e| format!("event: message\nid: 7\nretry: 10\ndata: {e}\nx\n\n")),
        ),
        ("byte order mark", format!("\u{feff}{}", stream("你好 🌍", |e| format!("data: {e}\n\n")))),
        ("mixed ends", stream("你好 🌍", |e| format!("data: {e}\r\n\n"))),
    ];
    for (way, body) in ways {
        let told = run_with_bytes(body.clone()).passed().assert_no_notes();
        assert_eq!(told.texts(), ["1 你好 🌍"], "{way}");
        // A261: in pieces of one byte, splitting characters and line ends.
        let told = run_with_reply(move || FakeReply::sse().bytes(body.clone()).with_piece_size(1))
            .passed()
            .assert_no_notes();
        assert_eq!(told.texts(), ["1 你好 🌍"], "{way}, byte by byte");
    }
}

/// A267, A275: the last event may lack its blank line; an incomplete one is truncated.
#[test]
fn last_event_may_lack_only_blank_line() {
    let whole = stream("Hi.", |e| format!("data: {e}\n\n"));
    for missing in 1..=2 {
        let told = run_with_bytes(&whole[..whole.len() - missing]).passed();
        assert_eq!(told.assert_no_notes().texts(), ["1 Hi."]);
    }
    for missing in 3..=20 {
        let told = run_with_bytes(&whole[..whole.len() - missing]);
        let told =
            told.failed(ProtocolError, "the stream ended after 4 events, without RUN_FINISHED or RUN_ERROR");
        let told = told.failed(ProtocolError, "incomplete event: ");
        assert_eq!(told.texts(), ["1 Hi."], "what came before is kept");
    }
    // A broken connection is never a clean end.
    let broken = whole[..whole.len() - 2].to_string();
    run_with_reply(move || FakeReply::sse().bytes(broken.clone()).cut())
        .failed(ProtocolError, "the connection broke");
}

/// A275, A276, A60: any stream end before the end of the run fails the turn, with the position.
#[test]
fn truncated_stream_never_passes() {
    let cut = |end: RunScript| {
        run_with_reply_to(move |run| {
            end(run.started().raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m"})))
        })
    };
    let ways: [(RunScript, &str); 3] = [
        (|run| run, "the stream ended after 2 events, without RUN_FINISHED or RUN_ERROR"),
        (FakeRun::cut, "the connection broke"),
        (|run| run.step(ReplyStep::Reset), "the connection broke"),
    ];
    for (end, words) in ways {
        cut(end).failed(ProtocolError, words).failed(ProtocolError, "still open: message m");
    }
    run_with_bytes("").failed(ProtocolError, "the stream ended without a single event");
    run_with_bytes(": ping\n\n").failed(ProtocolError, "the stream ended without a single event");
    run_with_bytes("data: {").failed(ProtocolError, "in the middle of its first event");
    run_with_reply(|| FakeReply::status(204)).failed(ProtocolError, "without a single event");
    run_with_reply(|| FakeReply::sse().until_close()).failed(ProtocolError, "without a single event");
}

fn run_with_reply_to(run: impl Fn(FakeRun) -> FakeRun + Send + Sync + 'static) -> ConversationOutcome {
    let agent = agent(run);
    let told = TestConversation::new(&agent).user_says("hello").run();
    assert_eq!(agent.requests().len(), 1, "nothing is sent twice");
    told
}

/// A274
#[test]
fn connection_loss_after_run_is_ignored() {
    let ways: [RunScript; 2] = [FakeRun::cut, |run| run.step(ReplyStep::Reset)];
    for end in ways {
        let told = run_turn_with(move |run| end(run.started().text("Hi.").finished())).passed();
        assert_eq!(told.texts(), ["1 Hi."]);
        run_turn_with(move |run| end(run.started().error("boom", None))).failed(AgentError, "boom");
    }
    run_with_reply(|| {
        FakeReply::sse().bytes(stream("Hi.", |e| format!("data: {e}\n\n"))).bytes("data: {\"ty")
    })
    .passed();
}

/// A277: a server may keep the connection open and send pings; the turn has ended.
#[test]
fn open_connection_does_not_delay_turn() {
    let told = run_turn_with(|run| run.started().text("Hi.").finished().hang()).passed();
    assert!(told.0.duration < WAIT_LIMIT / 4, "{:?}", told.0.duration);

    let told = run_turn_with(|mut run| {
        run = run.started().text("Hi.").finished();
        for _ in 0..100 {
            run = run.pause(Duration::from_millis(50)).step(ReplyStep::Bytes(": ping\n\n".into()));
        }
        run
    });
    assert!(told.passed().0.duration < Duration::from_secs(3), "pings kept the turn alive");
}

/// A278: events directly following in the same stream are read.
#[test]
fn second_run_in_stream_belongs_to_turn() {
    let two = |end: RunScript| {
        run_turn_with(move |run| {
            end(run
                .started()
                .text("One.")
                .finished()
                .raw_event(json!({"type": "RUN_STARTED", "runId": "second"})))
        })
    };
    let told = two(|run| {
        run.tool("c1", "look", &json!({}), None).text("Two.").raw_event(json!({"type": "RUN_FINISHED"}))
    });
    let told = told.passed().assert_no_notes();
    assert_eq!(
        (told.texts(), told.calls()),
        (vec!["1 One.".into(), "1 Two.".into()], vec!["1 look {} → nothing".into()])
    );
    let runs: Vec<Value> = told.events("agent.run.started").iter().map(|run| run["runId"].clone()).collect();
    assert_eq!(runs[1], "second");
    two(|run| run.error("boom", None)).failed(AgentError, "boom");
    two(|run| run).failed(ProtocolError, "without RUN_FINISHED or RUN_ERROR");
}

/// A279: events are recorded on arrival, not at the end of the stream.
#[test]
fn events_are_processed_on_arrival() {
    let told = run_turn_with(|run| run.started().text("One.").pause(SHORT).text("Two.").finished()).passed();
    let messages = &told.0.conversation.turns[0].messages;
    let apart = messages[1].ended - messages[0].ended;
    assert!(apart >= SHORT - Duration::from_millis(20), "{apart:?}");
}

/// A268
#[test]
fn done_marker_is_ignored() {
    let mut body = stream("Hi.", |e| format!("data: {e}\n\n"));
    body.push_str("data: [DONE]\n\n");
    run_with_bytes(body).passed().assert_note("[DONE]");
}

/// A269, A270
#[test]
fn invalid_event_is_quoted() {
    for (frame, words) in [
        ("{not json", "event 2: not an event, it is not JSON"),
        ("null", "event 2: not an event, it is not a JSON object: null"),
        ("7", "it is not a JSON object: 7"),
        ("[1]", "it is not a JSON object: [1]"),
        ("{}", "it has no `type`: {}"),
        (r#"{"type": 5}"#, "its `type` is not text"),
        (r#"{"type": null}"#, "its `type` is not text"),
    ] {
        let body = format!(
            "data: {{\"type\":\"RUN_STARTED\"}}\n\ndata: {frame}\n\ndata: {{\"type\":\"RUN_FINISHED\"}}\n\n"
        );
        run_with_bytes(body).failed(ProtocolError, words);
    }
}

/// A320
#[test]
fn invalid_event_member_is_named_with_event_number() {
    for (event, words) in [
        (
            r#"{"type":"TOOL_CALL_START","toolCallName":"x"}"#,
            "event 2: TOOL_CALL_START: missing field `toolCallId`",
        ),
        (
            r#"{"type":"TOOL_CALL_RESULT","toolCallId":"x"}"#,
            "event 2: TOOL_CALL_RESULT: missing field `content`",
        ),
        (
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":5}"#,
            "event 2: TEXT_MESSAGE_CONTENT: invalid type",
        ),
        (r#"{"type":"MESSAGES_SNAPSHOT","messages":{}}"#, "event 2: MESSAGES_SNAPSHOT: invalid type"),
        (r#"{"type":"STEP_STARTED"}"#, "event 2: STEP_STARTED: missing field `stepName`"),
    ] {
        run_with_bytes(format!("data: {{\"type\":\"RUN_STARTED\"}}\n\ndata: {event}\n\n"))
            .failed(ProtocolError, words);
    }
}

/// A79, A271
#[test]
fn large_events_are_accepted_and_endless_ones_rejected() {
    let told = run_turn_with(|run| {
        let large = json!("x".repeat(12 * 1024 * 1024) + "end");
        let raw = json!({"type": "RAW", "event": {"text": "y".repeat(1_500_000)}});
        run.started().raw_event(raw).tool("c1", "read", &json!({}), Some(large)).finished()
    });
    let result = told.passed().0.conversation.turns[0].tool_calls[0].result.clone().unwrap().text();
    assert!(result.len() == 12 * 1024 * 1024 + 3 && result.ends_with("end"));

    let told = run_with_reply(|| {
        let megabyte = bytes::Bytes::from(vec![b'x'; 1024 * 1024]);
        (0..80).fold(FakeReply::sse().bytes("data: "), |reply, _| reply.bytes(megabyte.clone()))
    });
    told.failed(ProtocolError, "event 1 is longer than");
}

/// A256, A257, A426: status and body are shown; an error body is not agent text.
#[test]
fn http_error_includes_body() {
    for (status, body, words) in [
        (422, r#"{"detail":[{"loc":["body","threadId"]}]}"#, "\"detail\": ["),
        (400, "<html>bad</html>", "<html>bad</html>"),
        (500, "Traceback", "Traceback"),
        (401, "{}", "check `headers` of the agent"),
        (404, "", "check `endpoint` of the agent"),
        (429, "slow down", "HTTP 429"),
        (503, "", "HTTP 503"),
    ] {
        let told = run_with_reply(move || FakeReply::status(status).bytes(body));
        told.failed(AgentError, &format!("answered HTTP {status}")).failed(AgentError, words);
    }
    let agent = FakeAgent::start(|_: &FakeRequest| FakeReply::text(500, "boom"));
    let talk = TestConversation::new(&agent).turn(json!({"user": "hello", "expect_error": "boom"}));
    talk.run().failed(AgentError, "HTTP 500");
}

/// The error status suffices; its body is not awaited.
#[test]
fn http_error_with_missing_body_is_reported_soon() {
    let told = run_with_reply(|| FakeReply::status(500).bytes("it began").hang());
    let told = told.failed(AgentError, "it began");
    assert!(told.0.duration < WAIT_LIMIT / 4, "{:?}", told.0.duration);
}

/// A258, A259, A272
#[test]
fn rejects_non_event_stream_response() {
    for (content_type, body, words) in [
        ("text/html; charset=utf-8", "<h1>Welcome</h1>", "content type text/html"),
        ("application/json", r#"{"ok":true}"#, "\"ok\": true"),
        ("application/vnd.ag-ui.event+proto", "\u{8}\u{1}", "application/vnd.ag-ui.event+proto"),
    ] {
        let told =
            run_with_reply(move || FakeReply::status(200).header("content-type", content_type).bytes(body));
        told.failed(ProtocolError, words);
    }
    let packed = || FakeReply::sse().header("content-encoding", "gzip").bytes("\u{1f}\u{8b}");
    run_with_reply(packed).failed(ProtocolError, "the answer has the unsupported encoding gzip");
}

/// Servers with a missing or unusual content type are recognised by the body.
#[test]
fn content_type_is_parsed_leniently() {
    let body = stream("Hi.", |e| format!("data: {e}\n\n"));
    for content_type in [Some("Text/Event-Stream;charset=UTF-8"), Some("text/plain"), None] {
        let body = body.clone();
        let told = run_with_reply(move || {
            let reply = FakeReply::status(200).bytes(body.clone());
            match content_type {
                Some(content_type) => reply.header("Content-Type", content_type),
                None => reply,
            }
        });
        assert_eq!(told.passed().texts(), ["1 Hi."]);
    }
}

/// A273
#[test]
fn redirects_are_reported_not_followed() {
    let elsewhere = agent(|run| run.started().finished());
    for status in [301, 302, 303, 307, 308] {
        let url = elsewhere.url();
        let told = run_with_reply(move || FakeReply::status(status).header("location", &url));
        told.failed(
            AgentError,
            &format!("redirects are not followed, set `endpoint` of the agent to {elsewhere}"),
        );
    }
    assert_eq!(elsewhere.requests().len(), 0);
}

/// A60: also on a reused connection, where HTTP clients tend to retry.
#[test]
fn requests_are_never_retried() {
    let closed = "closed a connection after an earlier answer and did not answer this request";
    let invalid = ReplyStep::Bytes("not HTTP\r\n\r\n".into());
    let ends = [
        (FakeReply::refused(), closed),
        (FakeReply::status(200).first(ReplyStep::Reset), closed),
        (
            FakeReply::status(200).first(invalid).first(ReplyStep::Cut),
            "sent an answer that cannot be read as HTTP",
        ),
    ];
    for (end, words) in ends {
        let agent = FakeAgent::start(move |request: &FakeRequest| match request.index {
            0 => FakeRun::for_request(request).started().text("Hi.").finished().reply(),
            _ => end.clone(),
        });
        let told = TestConversation::new(&agent).user_says("one").user_says("two").run();
        told.failed(ProtocolError, words);
        assert_eq!(agent.requests().len(), 2);
    }
}

/// A56
#[test]
fn missing_agent_is_unreachable() {
    let agent = agent(|run| run.started().finished());
    let talk = TestConversation::new(&agent).user_says("hello");
    let url = agent.url();
    drop(agent);
    talk.run().failed(Unreachable, &format!("cannot reach {url}"));
}

/// A57, A59, A78: turn limit and idle limit have separate messages; received events are kept.
#[test]
fn time_limits_end_turn_and_keep_events() {
    let silent = || FakeAgent::start(|_: &FakeRequest| FakeReply::never());
    TestConversation::new(&silent())
        .timeouts(SHORT, WAIT_LIMIT)
        .user_says("hi")
        .run()
        .failed(Timeout, "timed out after 150 ms");
    TestConversation::new(&silent())
        .timeouts(WAIT_LIMIT, SHORT)
        .user_says("hi")
        .run()
        .failed(Timeout, "the agent sent nothing for 150 ms");

    let stalled = || agent(|run| run.started().tool("c1", "pay", &json!({}), Some(json!("paid"))).hang());
    let told = TestConversation::new(&stalled()).timeouts(SHORT, WAIT_LIMIT).user_says("hi").run();
    assert_eq!(told.failed(Timeout, "timed out").calls(), ["1 pay {} → paid"]);
    let told = TestConversation::new(&stalled()).timeouts(WAIT_LIMIT, SHORT).user_says("hi").run();
    assert_eq!(told.failed(Timeout, "sent nothing for").calls(), ["1 pay {} → paid"]);

    // Pings do not count as idle.
    let pinging = agent(|mut run| {
        run = run.started();
        for _ in 0..6 {
            run = run.pause(SHORT / 3).step(ReplyStep::Bytes(": ping\n\n".into()));
        }
        run.text("Hi.").finished()
    });
    TestConversation::new(&pinging).timeouts(WAIT_LIMIT, SHORT).user_says("hi").run().passed();
}

/// The end of a run within the requested one, such as that of a sub-agent, does not end the turn: a later call or error would
/// be lost.
#[test]
fn inner_run_ends_only_itself() {
    const LONGER_THAN_TRAILING_DATA: Duration = Duration::from_millis(400);
    for ended in ["inner", "another"] {
        let agent_with = |rest: fn(FakeRun) -> FakeRun| {
            agent(move |run| {
                let run = run.started().raw_event(json!({"type": "RUN_STARTED", "runId": "inner"}));
                let run = run.text("Looking.").raw_event(json!({"type": "RUN_FINISHED", "runId": ended}));
                rest(run.pause(LONGER_THAN_TRAILING_DATA))
            })
        };
        let run = |agent: FakeAgent| TestConversation::new(&agent).user_says("hi").run();
        let told = run(agent_with(|run| run.tool("c1", "pay", &json!({}), Some(json!("paid"))).finished()));
        let told = told.passed().assert_note("RUN_STARTED while a run is active");
        assert_eq!(told.calls(), ["1 pay {} → paid"], "{ended}");
        run(agent_with(|run| run.error("boom", None))).failed(AgentError, "the agent failed: boom");
        run(agent_with(|run| run)).failed(ProtocolError, "without RUN_FINISHED or RUN_ERROR");
    }
}

/// A `RUN_FINISHED` with an id that no run has may be that of a run within the requested one.
#[test]
fn the_end_of_an_unknown_run_hides_no_later_call() {
    const LONGER_THAN_TRAILING_DATA: Duration = Duration::from_millis(400);
    let agent_with = |rest: fn(FakeRun) -> FakeRun| {
        agent(move |run| {
            let run = run.started().text("Looking.");
            rest(run.raw_event(json!({"type": "RUN_FINISHED", "runId": "another"})))
        })
    };
    let run = |agent: FakeAgent| TestConversation::new(&agent).user_says("hi").run();
    let told = run(agent_with(|run| {
        run.pause(LONGER_THAN_TRAILING_DATA).tool("c1", "pay", &json!({}), Some(json!("paid"))).finished()
    }));
    let told = told.passed().assert_note("RUN_FINISHED has run another, RUN_STARTED has");
    assert_eq!(told.calls(), ["1 pay {} → paid"]);
    let late = run(agent_with(|run| run.pause(LONGER_THAN_TRAILING_DATA).error("boom", None)));
    late.failed(AgentError, "the agent failed: boom");
    // The end of the stream ends the run.
    run(agent_with(|run| run)).passed();
    let open = agent_with(FakeRun::hang);
    let told = TestConversation::new(&open).timeouts(WAIT_LIMIT, SHORT).user_says("hi").run();
    told.failed(Timeout, "the agent sent nothing for").assert_note("RUN_FINISHED has run another");
}

/// A72: the time before the first byte belongs to the turn.
#[test]
fn turn_lasts_from_request_to_end_of_run() {
    let agent =
        FakeAgent::with_run(|run, _| run.text("Hi.").finished().reply().first(ReplyStep::Pause(SHORT)));
    let told = TestConversation::new(&agent).user_says("hi").run().passed();
    assert!(told.0.conversation.turns[0].duration() >= SHORT);
}

/// An event that is named as an error, or a field `error`, is an error of the agent, unless its data is an event of the protocol.
#[test]
fn an_event_named_error_is_an_error_of_the_agent() {
    let whole = stream("Hi.", |e| format!("data: {e}\n\n"));
    let (before_end, _) = whole.split_at(whole.find("data: {\"type\":\"RUN_FINISHED").expect("an end"));
    for (event, message) in [
        ("event: error\ndata: boom\n\n", "the agent failed: boom"),
        ("event: error\ndata: {\"message\":\"boom\",\"code\":7}\n\n", "the agent failed: boom (7)"),
        ("event: error\ndata: {\"error\":{\"message\":\"boom\"}}\n\n", "the agent failed: boom"),
        ("event: error\ndata: {\"type\":\"error\",\"message\":\"boom\"}\n\n", "the agent failed: boom"),
        ("event: error\ndata: {\"type\":\"RUN_ERROR\",\"message\":\"boom\"}\n\n", "the agent failed: boom"),
        (
            "event: error\ndata: {\"type\":\"TOOL_CALL_END\",\"message\":\"boom\"}\n\n",
            "the agent failed: boom",
        ),
        ("event: error\n\n", "the agent failed: an event named `error`"),
        ("event: error\ndata: [DONE]\n\n", "the agent failed: an event named `error`"),
        ("event: error\ndata: {}\n\n", "the agent failed: an event named `error`: {}"),
        ("error: {\"message\":\"boom\"}\n\n", "the agent failed: boom"),
    ] {
        let (alone, followed, late) = (
            format!("{before_end}{event}"),
            whole.replace(before_end, &format!("{before_end}{event}")),
            format!("{whole}{event}"),
        );
        for body in [alone, followed, late] {
            let told = run_with_bytes(body.clone()).failed(AgentError, message);
            assert_eq!(told.texts(), ["1 Hi."], "{body}");
            assert_eq!(told.events("agent.run.failed").len(), 1, "{body}");
        }
    }
    // The data decides if it is an event of the protocol.
    let named = stream("Hi.", |e| format!("event: error\ndata: {e}\n\n"));
    assert_eq!(run_with_bytes(named).passed().assert_no_notes().texts(), ["1 Hi."]);
}
