//! Access control, delivery of responses, and disconnects.

use std::time::Duration;

use hotseat_model::script::Rule;
use hotseat_runtime::definition::persona;
use hotseat_runtime::live::HostOptions;
use hotseat_runtime::serve::ServeOptions;
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::kit::{
    AgUiClient, EVENT_TIMEOUT, OutputPiece, TestServer, controlled_model, events, read_until, rejection,
    scripted, send, serve, serve_with, text,
};

async fn start_server() -> TestServer {
    serve(&persona("Helper"), scripted([Rule::new().say("Yes.").always()])).await
}

fn hello() -> String {
    json!({"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "hi"}]})
        .to_string()
}

#[tokio::test]
async fn startup_lists_served_agents() {
    let served = start_server().await;
    let get = async |path: &str| {
        let response = served.get(path).await;
        let (status, text) = (response.status().as_u16(), text(response).await);
        (status, serde_json::from_str::<serde_json::Value>(&text).unwrap())
    };
    assert_eq!(get("/health").await, (200, json!({"status": "ok"})));
    let (_, index) = get("/").await;
    assert_eq!(index["agents"], json!([{"name": "helper", "agUi": "/agents/helper"}]));
    let (_, models) = get("/v1/models").await;
    assert_eq!(models["data"][0]["id"], "helper");
    let (status, body) = get("/nowhere").await;
    assert_eq!(status, 404);
    assert!(body["error"]["message"].as_str().unwrap().contains("POST / and /agents/NAME"), "{body}");
    let (status, body) = get("/v1/chat/completions").await;
    assert_eq!(status, 405);
    assert_eq!(body["error"]["message"], "/v1/chat/completions does not support GET; use POST");
}

#[tokio::test]
async fn agent_is_addressed_by_name() {
    let served = start_server().await;
    let body = serde_json::from_str(&hello()).unwrap();
    assert_eq!(served.post("/agents/helper", &body).await.status(), 200);
    let (status, words) = rejection(served.post("/agents/other", &body).await).await;
    assert_eq!(status, 404);
    assert_eq!(words, "unknown agent \"other\"; available agents: helper");
}

#[tokio::test]
async fn body_must_be_json_within_size_limit() {
    let options = ServeOptions { max_body_bytes: 1000, ..ServeOptions::default() };
    let model = scripted([Rule::new().say("Yes.").always()]);
    let served = serve_with(&persona("Helper"), model, options, HostOptions::default()).await;
    let request = served.open(Method::POST, "/").header("content-type", "text/plain").body(hello());
    let (status, words) = rejection(send(request).await).await;
    assert_eq!(status, 415);
    assert!(words.contains("application/json"), "{words}");
    let (status, words) = rejection(send(served.request("/", " ".repeat(1001))).await).await;
    assert_eq!(status, 413);
    assert!(words.contains("longer than 1000 bytes"), "{words}");
    let request = served.open(Method::POST, "/").header("content-type", "Application/JSON; charset=utf-8");
    assert_eq!(send(request.body(hello())).await.status(), 200);
}

/// The client has not sent the body, and does not send it.
#[tokio::test]
async fn announced_length_of_a_body_is_checked_before_the_body_arrives() {
    let served = start_server().await;
    for path in ["/", "/v1/chat/completions"] {
        for expect in ["", "expect: 100-continue\r\n"] {
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{expect}\
                 content-length: 8388609\r\n\r\n"
            );
            let answer = exchange(&served, &head).await;
            assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
            assert!(answer.contains("the body is longer than 8388608 bytes"), "{answer}");
        }
    }
}

/// Values take far more memory than their text.
#[tokio::test]
async fn body_has_a_limited_number_of_values() {
    let served = start_server().await;
    let with_values = |count: usize| hello().replacen('{', &format!("{{\"x\":[{}0],", "0,".repeat(count)), 1);
    assert_eq!(send(served.request("/", with_values(1000))).await.status(), 200);
    let (status, words) = rejection(send(served.request("/", with_values(200_001))).await).await;
    assert_eq!(status, 400);
    assert!(words.contains("more than 200000 JSON values"), "{words}");
    let table = hello().replacen('{', &format!("{{\"x\":\"a \\\" {}\",", "0,".repeat(200_001)), 1);
    let other = start_server().await;
    assert_eq!(send(other.request("/", table)).await.status(), 200, "a long text is one value");
}

#[tokio::test]
async fn rejects_requests_for_other_hosts() {
    let served = start_server().await;
    let (status, words) =
        rejection(send(served.request("/", hello()).header("host", "evil.example")).await).await;
    assert_eq!(status, 403);
    assert!(words.contains("localhost only") && words.contains("evil.example"), "{words}");
    let named = served.request("/", hello()).header("host", "localhost:1");
    assert_eq!(send(named).await.status(), 200);
}

/// Sends bytes and returns everything that the server answers until it closes the connection.
async fn exchange(served: &TestServer, request: &str) -> String {
    let mut socket = connect(served).await;
    socket.write_all(request.as_bytes()).await.unwrap();
    rest(&mut socket).await
}

async fn connect(served: &TestServer) -> tokio::net::TcpStream {
    tokio::net::TcpStream::connect(served.url.strip_prefix("http://").unwrap()).await.unwrap()
}

async fn rest(socket: &mut tokio::net::TcpStream) -> String {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(EVENT_TIMEOUT, socket.read_to_end(&mut answer));
    read.await.expect("the server ends the connection").unwrap();
    String::from_utf8(answer).unwrap()
}

/// Two programs could take different ones of several hosts.
#[tokio::test]
async fn repeated_host_is_rejected() {
    let served = start_server().await;
    for hosts in ["host: localhost\r\nhost: evil.example", "host: evil.example\r\nhost: localhost"] {
        let answer =
            exchange(&served, &format!("GET / HTTP/1.1\r\n{hosts}\r\nconnection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("the header `host` occurs several times; send it once"), "{answer}");
    }
}

#[tokio::test]
async fn all_errors_have_one_shape() {
    let served = start_server().await;
    let json = "content-type: application/json\r\n";
    let chat = "/v1/chat/completions";
    let message = r#""messages":[{"role":"user","content":"hi"}]"#;
    let cases = [
        ("GET", chat, "", "", 405, None, "/v1/chat/completions does not support GET; use POST"),
        ("PUT", "/", "", "", 405, None, "/ does not support PUT; use GET or POST"),
        ("POST", "/health", json, "{}", 405, None, "/health does not support POST; use GET"),
        ("DELETE", "/threads/t", "", "", 405, None, "/threads/t does not support DELETE; use GET"),
        ("GET", "/agents/helper", "", "", 405, None, "/agents/helper does not support GET; use POST"),
        ("GET", "/nowhere", "", "", 404, None, "nothing found at \"/nowhere\"; POST / and"),
        ("POST", "/agents/other", json, "{}", 404, None, "unknown agent \"other\"; available agents: helper"),
        ("GET", "/threads/none", "", "", 404, None, "none"),
        ("GET", "/threads/none/events", "", "", 404, None, "none"),
        ("GET", "/threads/%FF", "", "", 400, None, "must be UTF-8; percent-encode"),
        ("GET", "/agents/%FF/threads/t/events", "", "", 400, None, "must be UTF-8; percent-encode"),
        ("POST", "/agents/%FF", json, "{}", 400, None, "must be UTF-8; percent-encode"),
        ("POST", "/", "", "{}", 415, None, "with `content-type: application/json`"),
        ("POST", chat, "content-type: text/plain\r\n", "{}", 415, None, "got \"text/plain\""),
        ("POST", "/", json, "", 400, None, "the body is empty; it must be a JSON object"),
        ("POST", chat, json, "{", 400, None, "the body is not JSON"),
        ("POST", chat, json, "[]", 400, None, "the body must be a JSON object"),
        ("POST", chat, json, "{}", 400, Some("model"), "missing field `model`"),
        ("POST", chat, json, r#"{"model":"helper"}"#, 400, Some("messages"), "missing field `messages`"),
        (
            "POST",
            chat,
            json,
            &format!(r#"{{"model":7,{message}}}"#),
            400,
            Some("model"),
            "model: invalid type: integer `7`, expected a string",
        ),
        (
            "POST",
            chat,
            json,
            &format!(r#"{{"model":"helper","stream":"yes",{message}}}"#),
            400,
            Some("stream"),
            "stream: invalid type: string \"yes\", expected a boolean",
        ),
        (
            "POST",
            chat,
            json,
            &format!(r#"{{"model":"helper","stream_options":"x",{message}}}"#),
            400,
            Some("stream_options"),
            "stream_options: invalid type: string \"x\", expected an object",
        ),
        (
            "POST",
            chat,
            json,
            &format!(r#"{{"model":"helper","n":1.5,{message}}}"#),
            400,
            Some("n"),
            "expected a whole number",
        ),
        (
            "POST",
            chat,
            json,
            r#"{"model":"helper","messages":[{"role":"user","content":"a"},"b"]}"#,
            400,
            Some("messages[1]"),
            "messages[1]: invalid type: string \"b\", expected an object",
        ),
        (
            "POST",
            chat,
            json,
            r#"{"model":"helper","messages":[{"role":"assistant","tool_calls":[{"id":1}]}]}"#,
            400,
            Some("messages[0].tool_calls[0].id"),
            "messages[0].tool_calls[0].id: invalid type: integer `1`, expected a string",
        ),
        (
            "POST",
            chat,
            json,
            &format!(r#"{{"model":"gpt",{message}}}"#),
            404,
            Some("model"),
            "unknown agent \"gpt\"",
        ),
        ("POST", "/", json, "{}", 400, Some("threadId"), "missing field `threadId`"),
        (
            "POST",
            "/",
            json,
            r#"{"threadId":"t","runId":"r","messages":[],"context":[5]}"#,
            400,
            Some("context[0]"),
            "context[0]: invalid type: integer `5`, expected an object",
        ),
        (
            "POST",
            "/",
            json,
            r#"{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"i","status":"resolved","payload":5}]}"#,
            400,
            Some("resume[0].payload"),
            "invalid type: integer `5`, expected an object",
        ),
        ("GET", "/threads/t/events", "last-event-id: x\r\n", "", 400, Some("last-event-id"), "got \"x\""),
    ];
    for (method, path, headers, body, status, param, says) in cases {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = exchange(&served, &request).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert!(head.contains("content-type: application/json"), "{request}: {answer}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let error = &body["error"];
        assert!(error["message"].as_str().unwrap().contains(says), "{request}: {says} in {error}");
        assert_eq!(error["param"].as_str(), param, "{request}: {error}");
        assert!(error["type"].is_string() && error["code"].is_string(), "{request}: {error}");
        for leak in ["Wire", "struct ", "u64", "sequence"] {
            assert!(!error.to_string().contains(leak), "{request}: {error}");
        }
    }
}

#[tokio::test]
async fn allowed_origins_are_accepted() {
    let served = start_server().await;
    let from = |served: &TestServer, origin: &str| served.request("/", hello()).header("origin", origin);
    let (status, words) = rejection(send(from(&served, "https://app.example")).await).await;
    assert_eq!(status, 403);
    assert!(words.contains("--allow-origin https://app.example"), "{words}");
    let own = send(from(&served, &served.url)).await;
    assert_eq!(own.status(), 200);

    let options =
        ServeOptions { allow_origins: vec!["https://app.example".to_string()], ..ServeOptions::default() };
    let model = scripted([Rule::new().say("Yes.").always()]);
    let served = serve_with(&persona("Helper"), model, options, HostOptions::default()).await;
    let preflight = served
        .open(Method::OPTIONS, "/")
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "content-type");
    let answer = send(preflight).await;
    assert_eq!(answer.status(), 204);
    assert_eq!(answer.headers()["access-control-allow-origin"], "https://app.example");
    assert_eq!(answer.headers()["access-control-allow-headers"], "content-type");
    let answer = send(from(&served, "https://app.example")).await;
    assert_eq!(answer.headers()["access-control-allow-origin"], "https://app.example");
    assert_eq!(send(from(&served, "https://app.example.evil")).await.status(), 403);
}

#[tokio::test]
async fn pieces_are_streamed_immediately() {
    let (teller, model) = controlled_model();
    let served = serve(&persona("Helper"), model).await;
    let mut client = AgUiClient::new(&served, "t");
    client.user("hi");
    let body = client.body(None);
    let mut response = served.post("/", &body).await;
    teller.emit([OutputPiece::Text("Hel")]);
    let mut seen = read_until(&mut response, "\"Hel\"").await;
    teller.emit([OutputPiece::Text("lo"), OutputPiece::Done]);
    seen.push_str(&text(response).await);
    client.process_events(&events(&seen));
    assert_eq!(client.last_text(), "Hello");
}

#[tokio::test]
async fn one_run_at_a_time_per_thread() {
    let (teller, model) = controlled_model();
    let served = serve(&persona("Helper"), model).await;
    let mut client = AgUiClient::new(&served, "t");
    client.user("hi");
    let body = client.body(None);
    let first = served.post("/", &body).await;
    let (status, words) = rejection(served.post("/", &body).await).await;
    assert_eq!(status, 409);
    assert!(words.contains("thread t already has a running request"), "{words}");
    teller.emit([OutputPiece::Text("Hello"), OutputPiece::Done]);
    client.process_events(&events(&text(first).await));
    client.say("again").await;
    assert_eq!(client.last_text(), "Hello");
}

#[tokio::test]
async fn client_disconnect_cancels_turn() {
    let (teller, model) = controlled_model();
    let served = serve(&persona("Helper"), model).await;
    let mut client = AgUiClient::new(&served, "t");
    client.user("hi");
    let body = client.body(None);
    let mut response = served.post("/", &body).await;
    teller.emit([OutputPiece::Text("Hel")]);
    read_until(&mut response, "\"Hel\"").await;
    let listeners = teller.listeners();
    drop(response);
    // The connection is closed, which cancels the model call.
    client.messages.clear();
    teller.wait_for_cancellation(listeners - 1).await;
    teller.emit([OutputPiece::Text("lo"), OutputPiece::Done]);
    client.user("hi");
    let answered = async {
        loop {
            let body = client.body(None);
            let response = served.post("/", &body).await;
            // The turn may end slightly later.
            if response.status() == 200 {
                return events(&text(response).await);
            }
            assert_eq!(response.status(), 409);
        }
    };
    let told = tokio::time::timeout(EVENT_TIMEOUT, answered).await.unwrap();
    let mut client = AgUiClient::new(&served, "t");
    client.user("hi");
    client.process_events(&told);
    assert_eq!(client.last_text(), "Hello");
    client.say("again").await;
}

#[tokio::test]
async fn slow_client_loses_no_events() {
    let (teller, model) = controlled_model();
    let served = serve(&persona("Helper"), model).await;
    // Far more than socket buffers hold, in pieces that are not read yet.
    let piece: &'static str = Box::leak("0123456789abcdef".repeat(64).into_boxed_str());
    let count = 8 * 1024;
    let address = served.url.strip_prefix("http://").unwrap().to_string();
    let mut socket = tokio::net::TcpStream::connect(&address).await.unwrap();
    let body = hello();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    teller.emit(vec![OutputPiece::Text(piece); count]);
    teller.emit([OutputPiece::Done]);
    // The conversation does not wait for its reader.
    let handle = served.host.conversation(&"t".into(), &"helper".into()).await.unwrap();
    let ended = async {
        loop {
            let state = handle.state().await.unwrap();
            if !state.turns.is_empty() && state.active_turns().next().is_none() {
                return state.messages.last().unwrap().content.len();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert_eq!(tokio::time::timeout(EVENT_TIMEOUT, ended).await.unwrap(), piece.len() * count);
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let said: usize = answer.matches("0123456789abcdef").count();
    assert_eq!(said, 64 * count);
    assert!(answer.contains("RUN_FINISHED"));
}

#[tokio::test]
async fn keep_alive_comments_are_sent() {
    let (teller, model) = controlled_model();
    let options = ServeOptions { keep_alive: Duration::from_millis(20), ..ServeOptions::default() };
    let served = serve_with(&persona("Helper"), model, options, HostOptions::default()).await;
    let mut client = AgUiClient::new(&served, "t");
    client.user("hi");
    let body = client.body(None);
    let mut response = served.post("/", &body).await;
    let mut seen = read_until(&mut response, "\n\n: the agent is at work\n\n").await;
    teller.emit([OutputPiece::Text("Hello"), OutputPiece::Done]);
    seen.push_str(&text(response).await);
    assert!(seen.contains("RUN_FINISHED"), "{seen}");
}

#[tokio::test]
async fn shutdown_finishes_responses() {
    let (teller, model) = controlled_model();
    let mut served = serve(&persona("Helper"), model).await;
    let mut client = AgUiClient::new(&served, "t");
    client.user("hi");
    let body = client.body(None);
    let answer = served.post("/", &body).await;
    served.request_stop();
    // New connections are rejected.
    let refused = async {
        while served.open(Method::GET, "/health").send().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(EVENT_TIMEOUT, refused).await.unwrap();
    teller.emit([OutputPiece::Text("Goodbye"), OutputPiece::Done]);
    let told = text(answer).await;
    assert!(told.contains("Goodbye") && told.contains("RUN_FINISHED"), "{told}");
    served.stop().await;
}

#[tokio::test]
async fn port_in_use_is_reported() {
    let served = start_server().await;
    let port = served.url.rsplit(':').next().unwrap().parse().unwrap();
    let options = ServeOptions { port, ..ServeOptions::default() };
    let error = super::kit::bind(options).await.err().expect("the port is taken").to_string();
    assert!(error.starts_with(&format!("cannot listen on 127.0.0.1:{port}: ")), "{error}");
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let options = ServeOptions { head_timeout: Duration::from_millis(300), ..ServeOptions::default() };
    let (_, model) = controlled_model();
    let served = serve_with(&persona("Helper"), model, options, HostOptions::default()).await;
    let address = served.url.strip_prefix("http://").unwrap().to_string();
    let heads = [
        "",
        "P",
        "POST / HTTP/1.1\r\nhost: 127.0.0.1\r\n",
        "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ];
    let mut open = Vec::new();
    for number in 0..900 {
        let mut socket = tokio::net::TcpStream::connect(&address).await.unwrap();
        socket.write_all(heads[number % heads.len()].as_bytes()).await.unwrap();
        open.push(socket);
        // The listen backlog is smaller.
        tokio::task::yield_now().await;
    }
    let all_closed = async {
        for mut socket in open {
            let mut rest = Vec::new();
            // The server closes it, with or without a response.
            drop(socket.read_to_end(&mut rest).await);
        }
    };
    tokio::time::timeout(EVENT_TIMEOUT, all_closed).await.expect("all of them are closed");
    assert_eq!(served.get("/health").await.status(), 200);
}

#[tokio::test]
async fn excess_connection_waits_for_free_slot() {
    let options = ServeOptions {
        max_connections: 3,
        head_timeout: Duration::from_millis(300),
        ..ServeOptions::default()
    };
    let (_, model) = controlled_model();
    let served = serve_with(&persona("Helper"), model, options, HostOptions::default()).await;
    let address = served.url.strip_prefix("http://").unwrap().to_string();
    let mut idle = Vec::new();
    for _ in 0..12 {
        idle.push(tokio::net::TcpStream::connect(&address).await.unwrap());
    }
    assert_eq!(served.get("/health").await.status(), 200);
}

#[tokio::test]
async fn incomplete_body_times_out() {
    let options = ServeOptions { body_timeout: Duration::from_millis(200), ..ServeOptions::default() };
    let (_, model) = controlled_model();
    let served = serve_with(&persona("Helper"), model, options, HostOptions::default()).await;
    let address = served.url.strip_prefix("http://").unwrap().to_string();
    let mut socket = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: 100\r\n\r\n{{"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(EVENT_TIMEOUT, socket.read_to_end(&mut answer));
    read.await.expect("the server gives it up").unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("the body did not arrive within 0.2 s"), "{answer}");
}

#[tokio::test]
async fn total_body_size_is_limited() {
    let options = ServeOptions { max_buffered_bytes: 64 * 1024, ..ServeOptions::default() };
    let (_, model) = controlled_model();
    let served = serve_with(&persona("Helper"), model, options, HostOptions::default()).await;
    let long = format!("{{\"threadId\": \"{}\"}}", "x".repeat(100 * 1024));
    let (status, words) = rejection(send(served.request("/", long)).await).await;
    assert_eq!(status, 503);
    assert!(words.contains("the server is receiving too much data"), "{words}");
    // Its reserved memory is free again.
    for _ in 0..5 {
        let body = format!("{{\"threadId\": \"{}\"}}", "x".repeat(40 * 1024));
        assert_eq!(rejection(send(served.request("/", body)).await).await.0, 400);
    }
}

#[tokio::test]
async fn unread_response_is_abandoned() {
    let (teller, model) = controlled_model();
    let options = ServeOptions { write_timeout: Duration::from_millis(200), ..ServeOptions::default() };
    let served = serve_with(&persona("Helper"), model, options, HostOptions::default()).await;
    let piece: &'static str = Box::leak("0123456789abcdef".repeat(4096).into_boxed_str());
    let address = served.url.strip_prefix("http://").unwrap().to_string();
    let mut socket = tokio::net::TcpStream::connect(&address).await.unwrap();
    let body = hello();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    teller.wait_for_calls(2).await;
    let listeners = teller.listeners();
    teller.emit(vec![OutputPiece::Text(piece); 1024]);
    // The endless model is stopped.
    teller.wait_for_cancellation(listeners - 1).await;
    drop(socket);
}

#[tokio::test]
async fn thread_count_is_limited() {
    use hotseat_runtime::store::{InMemoryStore, StoreBounds};
    let bounds = StoreBounds { conversations: 5, bytes: 1024 * 1024, ..StoreBounds::default() };
    let store = std::sync::Arc::new(InMemoryStore::with_bounds(bounds));
    let model = scripted([hotseat_model::script::Rule::new().say("Hello")]);
    let options = super::kit::store_options(store.clone());
    let served = serve_with(&persona("Helper"), model, ServeOptions::default(), options).await;
    for number in 0..40 {
        AgUiClient::new(&served, &format!("t{number}")).say("hi").await;
    }
    let kept = served.host.conversations().await.unwrap();
    let kept: Vec<&str> = kept.iter().map(|id| id.as_str()).collect();
    // A recently disconnected thread may still be loaded.
    assert!(kept.len() <= 5 && kept.contains(&"t39"), "{kept:?}");
    // A forgotten thread starts from the history sent by its client.
    let mut client = AgUiClient::new(&served, "t0");
    client.messages = vec![
        serde_json::json!({"id": "u1", "role": "user", "content": "hi"}),
        serde_json::json!({"id": "a1", "role": "assistant", "content": "Hello"}),
    ];
    client.say("again").await;
    assert_eq!(client.last_text(), "Hello");
}
