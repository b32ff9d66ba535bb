//! Errors on the way to a provider, with their messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::common::{BOTH, call, connector, hello};
use hotseat_model::{
    ConnectorConfig, DiscardSink, Model, ModelError, ModelErrorKind, Provider, Secret, TimeLimits,
};
use hotseat_testkit::{FakeAgent, FakeReply as Answer, ReplyStep};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A complete reply in the format of a provider.
fn complete_reply(provider: Provider) -> Answer {
    let events = match provider {
        Provider::OpenAi => {
            "data: {\"choices\":[{\"delta\":{\"content\":\"Hi.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
        }
        Provider::Anthropic => concat!(
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hi.\"}}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
            "data: {\"type\":\"message_stop\"}\n\n",
        ),
    };
    Answer::sse().bytes(events)
}

/// Start of a reply.
fn partial_reply(provider: Provider) -> Answer {
    let event = match provider {
        Provider::OpenAi => json!({"choices": [{"delta": {"content": "Let me "}}]}),
        Provider::Anthropic => {
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Let me "}})
        }
    };
    Answer::sse().event(event)
}

async fn call_error(provider: Provider, answer: Answer, limits: Option<TimeLimits>) -> ModelError {
    let server = FakeAgent::start(move |_| answer.clone());
    let mut connector = connector(provider, &server);
    connector.limits = limits.unwrap_or(connector.limits);
    let mut error = call(connector, &hello()).await.0.unwrap_err();
    error.message = error.message.replace(&server.port().to_string(), "PORT");
    error
}

#[tokio::test]
async fn error_status_includes_provider_message() {
    let long = "x".repeat(5000);
    let answers: Vec<(&str, Answer)> = vec![
        (
            "400",
            Answer::json(
                400,
                &json!({"error": {"type": "invalid_request_error", "message": "tools.0: bad"}}),
            ),
        ),
        (
            "400 too long",
            Answer::json(400, &json!({"error": {"code": "context_length_exceeded", "message": "too many"}})),
        ),
        (
            "400 too long in words",
            Answer::json(
                400,
                &json!({"error": {"type": "invalid_request_error", "message": "This model's maximum context length is 9 tokens"}}),
            ),
        ),
        ("401", Answer::json(401, &json!({"error": {"message": "Incorrect API key provided: key-123456."}}))),
        ("402", Answer::text(402, "pay first")),
        ("403", Answer::text(403, "")),
        ("404", Answer::json(404, &json!({"error": {"message": "model m-1 not found"}}))),
        ("408", Answer::text(408, "late")),
        ("413", Answer::text(413, "too large")),
        ("429", Answer::text(429, "slow down").header("retry-after", "7")),
        (
            "429 without credit",
            Answer::json(429, &json!({"error": {"code": "insufficient_quota", "message": "no credit"}})),
        ),
        ("500", Answer::text(500, &long)),
        ("503", Answer::text(503, "busy").header("retry-after-ms", "250")),
        (
            "529",
            Answer::json(
                529,
                &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            ),
        ),
        ("302", Answer::status(302).header("location", "https://elsewhere.example/v1")),
    ];
    let mut shown = String::new();
    for (title, answer) in answers {
        let error = call_error(Provider::OpenAi, answer, None).await;
        assert_eq!(error.status.map(|status| status.to_string()).as_deref(), title.split(' ').next());
        let wait = error.retry_after.map(|wait| format!(", retry after {wait:?}")).unwrap_or_default();
        let again = if error.can_retry() { "retried" } else { "not retried" };
        let words = error.to_string().replace(&"x".repeat(1000), "xxx(1000)");
        shown.push_str(&format!("{title}: {}, {again}{wait}\n  {words}\n", error.kind));
    }
    insta::assert_snapshot!(shown);
}

/// No request asks for an encoding, so no reply is decoded.
#[tokio::test]
async fn compressed_replies_are_named() {
    for provider in BOTH {
        for status in [200, 500] {
            let packed =
                Answer::status(status).header("content-encoding", "gzip").bytes(&b"\x1f\x8b\xff"[..]);
            let error = call_error(provider, packed, None).await.to_string();
            assert!(
                error.contains("unsupported encoding gzip; turn off compression at the server"),
                "{error}"
            );
        }
        let plain = complete_reply(provider).header("content-encoding", "identity");
        let server = FakeAgent::start(move |_| plain.clone());
        call(connector(provider, &server), &hello()).await.0.unwrap();
    }
}

#[tokio::test]
async fn time_limits_have_distinct_errors() {
    let limits = TimeLimits {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs(10),
        idle: Duration::from_secs(10),
        total: Duration::from_secs(10),
    };
    let short = Duration::from_millis(60);
    let mut shown = Vec::new();
    for provider in BOTH {
        let first_byte = Some(TimeLimits { first_byte: short, ..limits });
        shown.push(call_error(provider, Answer::never(), first_byte).await);
        // Headers alone are not a reply.
        shown.push(call_error(provider, Answer::sse().hang(), first_byte).await);
        let idle = Some(TimeLimits { idle: short, ..limits });
        shown.push(call_error(provider, partial_reply(provider).hang(), idle).await);
        // Must last until the first piece arrives.
        let total = Some(TimeLimits { total: Duration::from_millis(400), ..limits });
        shown.push(call_error(provider, partial_reply(provider).hang(), total).await);
    }
    assert!(shown.iter().all(|error| error.kind == ModelErrorKind::Timeout && error.can_retry()));
    let partial = |error: &ModelError| error.partial.as_ref().map(|partial| partial.text.clone());
    let shown: Vec<String> = shown.iter().map(|error| format!("{error} {:?}", partial(error))).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[tokio::test]
async fn comments_reset_idle_timeout() {
    let pause = Duration::from_millis(60);
    let mut answer = Answer::sse();
    for _ in 0..5 {
        answer = answer.pause(pause).bytes(": still there\n\n");
    }
    answer.body.extend(complete_reply(Provider::OpenAi).body);
    let server = FakeAgent::start(move |_| answer.clone());
    let mut connector = connector(Provider::OpenAi, &server);
    connector.limits.idle = Duration::from_millis(250);
    assert_eq!(call(connector, &hello()).await.0.unwrap().text, "Hi.");
}

#[tokio::test]
async fn first_byte_of_unstreamed_reply_may_be_late() {
    let whole = json!({"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]});
    let server = FakeAgent::start(move |_| {
        Answer::json(200, &whole).first(ReplyStep::Pause(Duration::from_millis(80)))
    });
    let mut connector = connector(Provider::OpenAi, &server);
    connector.limits.first_byte = Duration::from_millis(20);
    connector.stream = false;
    assert_eq!(call(connector, &hello()).await.0.unwrap().text, "Hi.");
}

#[tokio::test]
async fn broken_connections_are_classified_and_retried() {
    for provider in BOTH {
        for answer in [Answer::refused(), Answer::status(200).first(ReplyStep::Reset)] {
            let error = call_error(provider, answer, None).await;
            assert_eq!(error.kind, ModelErrorKind::Network, "{error}");
            assert!(error.message.contains("accepted the connection but did not answer"), "{error}");
            assert!(error.can_retry() && error.partial.is_none());
        }
        for answer in [
            partial_reply(provider).cut(),
            partial_reply(provider).reset(),
            partial_reply(provider).until_close(),
        ] {
            let error = call_error(provider, answer, None).await;
            assert_eq!(error.kind, ModelErrorKind::Network, "{error}");
            assert_eq!(error.partial.unwrap().text, "Let me ");
        }
    }
}

#[tokio::test]
async fn refused_connection_names_port() {
    let server = FakeAgent::start(|_| complete_reply(Provider::OpenAi));
    let connector = connector(Provider::OpenAi, &server);
    let port = server.port();
    drop(server);
    let error = call(connector, &hello()).await.0.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Network);
    let expected = format!(
        "http://127.0.0.1:{port}/v1/chat/completions cannot be reached: Connection refused (os error 111)"
    );
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn invalid_utf8_is_an_error() {
    let error = call_error(Provider::OpenAi, Answer::sse().bytes(&b"data: \xff\n\n"[..]), None).await;
    assert_eq!(error.kind, ModelErrorKind::Decode);
    let whole =
        Answer::status(200).header("content-type", "application/json").bytes(&b"{\"a\":\"\xff\"}"[..]);
    assert_eq!(call_error(Provider::OpenAi, whole, None).await.kind, ModelErrorKind::Decode);
}

#[tokio::test]
async fn stream_chunking_does_not_change_reply() {
    for provider in BOTH {
        for size in [1, 2, 3, 7, 64] {
            let server = FakeAgent::start(move |_| complete_reply(provider).with_piece_size(size));
            assert_eq!(call(connector(provider, &server), &hello()).await.0.unwrap().text, "Hi.");
        }
    }
}

#[tokio::test]
async fn errors_redact_secrets() {
    let echo =
        Answer::json(401, &json!({"error": {"message": "key-123456 and sesame-open are wrong, abc is not"}}));
    let server = FakeAgent::start(move |_| echo.clone());
    let mut connector = connector(Provider::OpenAi, &server);
    connector.base_url = Some(server.url().replace("http://", "http://user:word@") + "v1?token=t0ken");
    connector.headers =
        vec![("x-open".into(), Secret::new("sesame-open")), ("x-short".into(), Secret::new("abc"))];
    assert!(!format!("{connector:?}").contains("sesame"));
    let error = call(connector, &hello()).await.0.unwrap_err().to_string();
    assert!(error.contains("[secret] and [secret] are wrong, abc is not"), "{error}");
    assert!(!error.contains("word") && !error.contains("t0ken"), "{error}");
}

#[tokio::test]
async fn rejects_invalid_requests_before_sending() {
    let refused = |change: fn(&mut ConnectorConfig)| {
        let mut connector = ConnectorConfig::new(Provider::OpenAi, "m-1");
        change(&mut connector);
        let Err(error) = connector.open() else { panic!("the connector was accepted") };
        assert_eq!(error.kind, ModelErrorKind::Configuration);
        error.to_string()
    };
    let shown = [
        refused(|connector| connector.base_url = Some("nowhere".into())),
        refused(|connector| connector.base_url = Some("ftp://127.0.0.1/v1".into())),
        refused(|connector| connector.headers = vec![("bad name".into(), "x".into())]),
        refused(|connector| connector.headers = vec![("Content-Length".into(), "0".into())]),
        refused(|connector| connector.headers = vec![("x-a".into(), "line\nbreak".into())]),
        refused(|connector| connector.key = Some("line\nbreak".into())),
    ];
    insta::assert_snapshot!(shown.join("\n"));
}

#[tokio::test]
async fn https_uses_encrypted_connection() {
    let server = FakeAgent::start(|_| complete_reply(Provider::OpenAi));
    let mut connector = connector(Provider::OpenAi, &server);
    connector.base_url = Some(server.url().replace("http://", "https://"));
    let error = call(connector, &hello()).await.0.unwrap_err();
    // The server does not encrypt, and the machine may have no certificates.
    assert!(matches!(error.kind, ModelErrorKind::Network | ModelErrorKind::Configuration), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_call_closes_connection() {
    let server = FakeAgent::start(|_| partial_reply(Provider::OpenAi).gate("begun").hang());
    server.release("begun");
    let model = connector(Provider::OpenAi, &server).open().unwrap();
    let request = hello();
    let mut sink = DiscardSink;
    let given_up = tokio::time::timeout(Duration::from_millis(200), model.call(&request, &mut sink)).await;
    assert!(given_up.is_err());
    server.wait_for_abandoned(1, Duration::from_secs(10));
}

#[tokio::test]
async fn sequential_calls_reuse_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut buffer = vec![0; 64 * 1024];
                while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                    let body =
                        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
                    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                    let answer = format!("{head}{:x}\r\n{body}\r\n", body.len());
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.flush().await;
                    let _ = stream.write_all(b"0\r\n\r\n").await;
                }
            });
        }
    });
    let connector = ConnectorConfig {
        base_url: Some(format!("http://{address}")),
        ..ConnectorConfig::new(Provider::OpenAi, "m-1")
    };
    let model = connector.open().unwrap();
    for _ in 0..10 {
        model.call(&hello(), &mut DiscardSink).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // A slow machine may lose one or two connections; without reading bodies to their end there would be ten.
    let connections = connections.load(Ordering::SeqCst);
    assert!(connections < 8, "{connections} connections");
}

#[tokio::test]
async fn connection_may_break_after_reply() {
    let finish = |provider| match provider {
        Provider::OpenAi => json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        Provider::Anthropic => json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
    };
    for provider in BOTH {
        for last in [ReplyStep::Cut, ReplyStep::Reset, ReplyStep::Hang] {
            let server =
                FakeAgent::start(move |_| partial_reply(provider).event(finish(provider)).step(last.clone()));
            let mut connector = connector(provider, &server);
            connector.limits.idle = Duration::from_millis(300);
            assert_eq!(call(connector, &hello()).await.0.unwrap().text, "Let me ");
        }
    }
}

#[tokio::test]
async fn time_limits_may_be_unbounded() {
    let server = FakeAgent::start(|_| complete_reply(Provider::OpenAi));
    let endless = Duration::MAX;
    let limits = TimeLimits { first_byte: endless, idle: endless, total: endless, ..TimeLimits::default() };
    let connector = ConnectorConfig { limits, ..connector(Provider::OpenAi, &server) };
    assert_eq!(call(connector, &hello()).await.0.unwrap().text, "Hi.");
}

#[tokio::test]
async fn does_not_wait_for_end_of_body() {
    let server = FakeAgent::start(|_| complete_reply(Provider::OpenAi).hang());
    let started = Instant::now();
    assert_eq!(call(connector(Provider::OpenAi, &server), &hello()).await.0.unwrap().text, "Hi.");
    assert!(started.elapsed() < Duration::from_secs(5));
}
