//! From the socket to events: what a server may do with HTTP and server-sent events, and what it may not.

use std::time::Duration;

use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Reply, Request, Step};
use hotseat_trace::FailureKind::{AgentError, ProtocolError, Timeout, Unreachable};
use serde_json::{Value, json};

use super::talk::{LONG, Play, Talk, Told, agent, hears};

const SHORT: Duration = Duration::from_millis(150);

/// A conversation of one turn with an agent that answers with these bytes as a stream of events.
fn hears_bytes(body: impl Into<Vec<u8>>) -> Told {
    let body = body.into();
    hears_reply(move || Reply::sse().bytes(body.clone()))
}

fn hears_reply(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Told {
    let agent = FakeAgent::start(move |_: &Request| reply());
    let told = Talk::with(&agent).says("hello").held();
    assert_eq!(agent.requests().len(), 1, "nothing is sent twice");
    told
}

/// The events of a run that says this, as lines of JSON.
fn said(text: &str) -> Vec<String> {
    let events = [
        json!({"type": "RUN_STARTED"}),
        json!({"type": "TEXT_MESSAGE_START", "messageId": "m"}),
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": text}),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
        json!({"type": "RUN_FINISHED"}),
    ];
    events.iter().map(Value::to_string).collect()
}

/// The same as a stream, each event written by `frame`.
fn stream(text: &str, frame: impl Fn(&str) -> String) -> String {
    said(text).iter().map(|event| frame(event)).collect()
}

/// A260, A262–A266: every way to write the same events.
#[test]
fn events_may_be_written_in_every_way_that_the_standard_knows() {
    let split = |event: &str| {
        // A line end is white space to JSON, so an event may be spread over lines between its members.
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
        let told = hears_bytes(body.clone()).passed().quietly();
        assert_eq!(told.texts(), ["1 你好 🌍"], "{way}");
        // A261: in pieces of one byte, cut inside characters and line ends.
        let told = hears_reply(move || Reply::sse().bytes(body.clone()).in_pieces_of(1)).passed().quietly();
        assert_eq!(told.texts(), ["1 你好 🌍"], "{way}, byte by byte");
    }
}

/// A267, A275: the last event may lack its blank line; one that is not whole was cut.
#[test]
fn a_last_event_may_lack_its_blank_line_and_nothing_else() {
    let whole = stream("Hi.", |e| format!("data: {e}\n\n"));
    for missing in 1..=2 {
        let told = hears_bytes(&whole[..whole.len() - missing]).passed();
        assert_eq!(told.quietly().texts(), ["1 Hi."]);
    }
    for missing in 3..=20 {
        let told = hears_bytes(&whole[..whole.len() - missing]);
        let told =
            told.failed(ProtocolError, "the stream ended after 4 events, without RUN_FINISHED or RUN_ERROR");
        let told = told.failed(ProtocolError, "cut in the middle of an event: ");
        assert_eq!(told.texts(), ["1 Hi."], "what came before is kept");
    }
    // A connection that breaks is no orderly end, whatever came before.
    let broken = whole[..whole.len() - 2].to_string();
    hears_reply(move || Reply::sse().bytes(broken.clone()).cut())
        .failed(ProtocolError, "the connection broke");
}

/// A275, A276, A60: however a stream ends before its run, the turn fails and says where.
#[test]
fn a_stream_that_ends_before_its_run_is_never_a_pass() {
    let cut = |end: Play| {
        hears_reply_to(move |run| {
            end(run.started().raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m"})))
        })
    };
    let ways: [(Play, &str); 3] = [
        (|run| run, "the stream ended after 2 events, without RUN_FINISHED or RUN_ERROR"),
        (Run::cut, "the connection broke"),
        (|run| run.step(Step::Reset), "the connection broke"),
    ];
    for (end, words) in ways {
        cut(end).failed(ProtocolError, words).failed(ProtocolError, "still open: message m");
    }
    hears_bytes("").failed(ProtocolError, "the stream ended without a single event");
    hears_bytes(": ping\n\n").failed(ProtocolError, "the stream ended without a single event");
    hears_bytes("data: {").failed(ProtocolError, "in the middle of its first event");
    hears_reply(|| Reply::status(204)).failed(ProtocolError, "without a single event");
    hears_reply(|| Reply::sse().until_close()).failed(ProtocolError, "without a single event");
}

fn hears_reply_to(run: impl Fn(Run) -> Run + Send + Sync + 'static) -> Told {
    let agent = agent(run);
    let told = Talk::with(&agent).says("hello").held();
    assert_eq!(agent.requests().len(), 1, "nothing is sent twice");
    told
}

/// A274
#[test]
fn a_connection_that_breaks_after_the_end_of_the_run_is_no_error() {
    let ways: [Play; 2] = [Run::cut, |run| run.step(Step::Reset)];
    for end in ways {
        let told = hears(move |run| end(run.started().text("Hi.").finished())).passed();
        assert_eq!(told.texts(), ["1 Hi."]);
        hears(move |run| end(run.started().error("boom", None))).failed(AgentError, "boom");
    }
    hears_reply(|| Reply::sse().bytes(stream("Hi.", |e| format!("data: {e}\n\n"))).bytes("data: {\"ty"))
        .passed();
}

/// A277: a server may keep the connection open, and even go on pinging; the turn has ended.
#[test]
fn a_connection_that_stays_open_does_not_hold_the_turn() {
    let told = hears(|run| run.started().text("Hi.").finished().hang()).passed();
    assert!(told.0.duration < LONG / 4, "{:?}", told.0.duration);

    let told = hears(|mut run| {
        run = run.started().text("Hi.").finished();
        for _ in 0..100 {
            run = run.pause(Duration::from_millis(50)).step(Step::Bytes(": ping\n\n".into()));
        }
        run
    });
    assert!(told.passed().0.duration < Duration::from_secs(3), "pings kept the turn alive");
}

/// A278: what follows at once in the same stream is still heard.
#[test]
fn another_run_in_the_same_stream_is_part_of_the_turn() {
    let two = |end: Play| {
        hears(move |run| {
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
    let told = told.passed().quietly();
    assert_eq!(
        (told.texts(), told.calls()),
        (vec!["1 One.".into(), "1 Two.".into()], vec!["1 look {} → nothing".into()])
    );
    let runs: Vec<Value> = told.events("agent.run.started").iter().map(|run| run["runId"].clone()).collect();
    assert_eq!(runs[1], "second");
    two(|run| run.error("boom", None)).failed(AgentError, "boom");
    two(|run| run).failed(ProtocolError, "without RUN_FINISHED or RUN_ERROR");
}

/// A279: events are recorded when they arrive and not when the stream ends.
#[test]
fn events_are_taken_in_as_they_arrive() {
    let told = hears(|run| run.started().text("One.").pause(SHORT).text("Two.").finished()).passed();
    let messages = &told.0.conversation.turns[0].messages;
    let apart = messages[1].ended - messages[0].ended;
    assert!(apart >= SHORT - Duration::from_millis(20), "{apart:?}");
}

/// A268
#[test]
fn the_mark_of_another_protocol_is_passed_over() {
    let mut body = stream("Hi.", |e| format!("data: {e}\n\n"));
    body.push_str("data: [DONE]\n\n");
    hears_bytes(body).passed().noting("[DONE]");
}

/// A269, A270
#[test]
fn what_is_not_an_event_is_shown() {
    for (frame, words) in [
        ("{not json", "event 2: not an event, it is not JSON"),
        ("null", "event 2: not an event, it is not a JSON object: null"),
        ("7", "it is not a JSON object: 7"),
        ("[1]", "it is not a JSON object: [1]"),
        ("{}", "it has no `type`: {}"),
        (r#"{"type": 5}"#, "its `type` is not text"),
        (r#"{"type": null}"#, "its `type` is not text"),
        ("", "it is not JSON"),
    ] {
        let body = format!(
            "data: {{\"type\":\"RUN_STARTED\"}}\n\ndata: {frame}\n\ndata: {{\"type\":\"RUN_FINISHED\"}}\n\n"
        );
        hears_bytes(body).failed(ProtocolError, words);
    }
}

/// A320
#[test]
fn a_known_event_with_a_bad_member_is_named_with_its_number() {
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
        (r#"{"type":"RUN_ERROR"}"#, "event 2: RUN_ERROR: missing field `message`"),
    ] {
        hears_bytes(format!("data: {{\"type\":\"RUN_STARTED\"}}\n\ndata: {event}\n\n"))
            .failed(ProtocolError, words);
    }
}

/// A79, A271
#[test]
fn large_events_are_taken_in_whole_and_endless_ones_are_refused() {
    let told = hears(|run| {
        let large = json!("x".repeat(12 * 1024 * 1024) + "end");
        let raw = json!({"type": "RAW", "event": {"text": "y".repeat(1_500_000)}});
        run.started().raw_event(raw).tool("c1", "read", &json!({}), Some(large)).finished()
    });
    let result = told.passed().0.conversation.turns[0].tool_calls[0].result.clone().unwrap().text();
    assert!(result.len() == 12 * 1024 * 1024 + 3 && result.ends_with("end"));

    let told = hears_reply(|| {
        let megabyte = bytes::Bytes::from(vec![b'x'; 1024 * 1024]);
        (0..80).fold(Reply::sse().bytes("data: "), |reply, _| reply.bytes(megabyte.clone()))
    });
    told.failed(ProtocolError, "an event is longer than");
}

/// A256, A257, A426: the status and what the server says are shown; the words of an error are not a run's.
#[test]
fn an_error_of_http_is_shown_with_its_body() {
    for (status, body, words) in [
        (422, r#"{"detail":[{"loc":["body","threadId"]}]}"#, "\"detail\": ["),
        (400, "<html>bad</html>", "<html>bad</html>"),
        (500, "Traceback", "Traceback"),
        (401, "{}", "check target.headers"),
        (404, "", "check target.endpoint"),
        (429, "slow down", "HTTP 429"),
        (503, "", "HTTP 503"),
    ] {
        let told = hears_reply(move || Reply::status(status).bytes(body));
        told.failed(AgentError, &format!("answered HTTP {status}")).failed(AgentError, words);
    }
    let agent = FakeAgent::start(|_: &Request| Reply::text(500, "boom"));
    let talk = Talk::with(&agent).turn(json!({"user": "hello", "expect_error": "boom"}));
    talk.held().failed(AgentError, "HTTP 500");
}

/// The head of an error is enough; its body is not waited for.
#[test]
fn an_error_whose_body_never_comes_is_reported_soon() {
    let told = hears_reply(|| Reply::status(500).bytes("it began").hang());
    let told = told.failed(AgentError, "it began");
    assert!(told.0.duration < LONG / 4, "{:?}", told.0.duration);
}

/// A258, A259, A272
#[test]
fn an_answer_that_is_no_stream_of_events_is_refused_with_its_beginning() {
    for (content_type, body, words) in [
        ("text/html; charset=utf-8", "<h1>Welcome</h1>", "content type text/html"),
        ("application/json", r#"{"ok":true}"#, "\"ok\": true"),
        ("application/vnd.ag-ui.event+proto", "\u{8}\u{1}", "application/vnd.ag-ui.event+proto"),
    ] {
        let told = hears_reply(move || Reply::status(200).header("content-type", content_type).bytes(body));
        told.failed(ProtocolError, words);
    }
    let packed = || Reply::sse().header("content-encoding", "gzip").bytes("\u{1f}\u{8b}");
    hears_reply(packed).failed(ProtocolError, "the answer is encoded as gzip");
}

/// Servers that name no type, or another one in other letters, are understood by what they send.
#[test]
fn the_type_of_the_answer_is_taken_as_it_is_meant() {
    let body = stream("Hi.", |e| format!("data: {e}\n\n"));
    for content_type in [Some("Text/Event-Stream;charset=UTF-8"), Some("text/plain"), None] {
        let body = body.clone();
        let told = hears_reply(move || {
            let reply = Reply::status(200).bytes(body.clone());
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
fn redirects_are_not_followed_and_say_where_to_go() {
    let elsewhere = agent(|run| run.started().finished());
    for status in [301, 302, 303, 307, 308] {
        let url = elsewhere.url();
        let told = hears_reply(move || Reply::status(status).header("location", &url));
        told.failed(
            AgentError,
            &format!("redirects are not followed, set target.endpoint to {}", elsewhere.url()),
        );
    }
    assert_eq!(elsewhere.requests().len(), 0);
}

/// A60: also a connection that was used before, on which clients like to try again.
#[test]
fn nothing_is_ever_sent_twice() {
    let ends: [fn() -> Reply; 3] = [
        Reply::refused,
        || Reply::status(200).first(Step::Reset),
        || Reply::status(200).first(Step::Bytes("not HTTP\r\n\r\n".into())).first(Step::Cut),
    ];
    for end in ends {
        let agent = FakeAgent::start(move |request: &Request| match request.index {
            0 => Run::of(request).started().text("Hi.").finished().reply(),
            _ => end(),
        });
        let told = Talk::with(&agent).says("one").says("two").held();
        told.failed(ProtocolError, "accepted the connection and gave no answer");
        assert_eq!(agent.requests().len(), 2);
    }
}

/// A56
#[test]
fn an_agent_that_is_not_there_is_unreachable() {
    let agent = agent(|run| run.started().finished());
    let talk = Talk::with(&agent).says("hello");
    let url = agent.url();
    drop(agent);
    talk.held().failed(Unreachable, &format!("cannot reach {url}"));
}

/// A57, A59, A78: a limit on the turn and one on silence, each with its own words; what came is kept.
#[test]
fn limits_on_time_end_a_turn_and_keep_what_came() {
    let silent = || FakeAgent::start(|_: &Request| Reply::never());
    Talk::with(&silent()).timeouts(SHORT, LONG).says("hi").held().failed(Timeout, "timed out after 150 ms");
    Talk::with(&silent())
        .timeouts(LONG, SHORT)
        .says("hi")
        .held()
        .failed(Timeout, "the agent sent nothing for 150 ms");

    let stalled = || agent(|run| run.started().tool("c1", "pay", &json!({}), Some(json!("paid"))).hang());
    let told = Talk::with(&stalled()).timeouts(SHORT, LONG).says("hi").held();
    assert_eq!(told.failed(Timeout, "timed out").calls(), ["1 pay {} → paid"]);
    let told = Talk::with(&stalled()).timeouts(LONG, SHORT).says("hi").held();
    assert_eq!(told.failed(Timeout, "sent nothing for").calls(), ["1 pay {} → paid"]);

    // Pings are not silence.
    let pinging = agent(|mut run| {
        run = run.started();
        for _ in 0..6 {
            run = run.pause(SHORT / 3).step(Step::Bytes(": ping\n\n".into()));
        }
        run.text("Hi.").finished()
    });
    Talk::with(&pinging).timeouts(LONG, SHORT).says("hi").held().passed();
}

/// A72: the time before the first byte is part of the turn.
#[test]
fn a_turn_lasts_from_the_request_to_the_end_of_the_run() {
    let agent = FakeAgent::start(|request: &Request| {
        Run::of(request).started().text("Hi.").finished().reply().first(Step::Pause(SHORT))
    });
    let told = Talk::with(&agent).says("hi").held().passed();
    assert!(told.0.conversation.turns[0].duration() >= SHORT);
}
