//! Who may ask, how answers arrive, and what happens when somebody goes away.

use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use hotseat_model::script::Rule;
use hotseat_runtime::definition::persona;
use hotseat_runtime::live::HostOptions;
use hotseat_runtime::serve::Options;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::kit::{Client, Piece, SOON, Served, events, refused, scripted, serve, serve_with, told};

async fn yes() -> Served {
    serve(&persona("Helper"), scripted([Rule::new().say("Yes.").always()])).await
}

fn hello() -> String {
    json!({"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "hi"}]})
        .to_string()
}

/// What arrives of an answer up to these words.
async fn until<B: AsRef<[u8]>, E: std::fmt::Debug>(
    pieces: &mut (impl Stream<Item = Result<B, E>> + Unpin),
    words: &str,
) -> String {
    let mut seen = String::new();
    while !seen.contains(words) {
        seen.push_str(std::str::from_utf8(pieces.next().await.unwrap().unwrap().as_ref()).unwrap());
    }
    seen
}

#[tokio::test]
async fn what_is_served_is_told() {
    let served = yes().await;
    let get = async |path: &str| {
        let response = served.http.get(format!("{}{path}", served.url)).send().await.unwrap();
        let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
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
    assert_eq!(body["error"]["message"], "/v1/chat/completions does not take GET");
}

#[tokio::test]
async fn an_agent_is_found_by_its_name() {
    let served = yes().await;
    let body = serde_json::from_str(&hello()).unwrap();
    assert_eq!(served.post("/agents/helper", &body).await.status(), 200);
    let (status, words) = refused(served.post("/agents/other", &body).await).await;
    assert_eq!(status, 404);
    assert_eq!(words, "there is no agent \"other\"; there is helper");
}

#[tokio::test]
async fn bodies_must_be_json_and_not_too_long() {
    let options = Options { longest_body: 1000, ..Options::default() };
    let model = scripted([Rule::new().say("Yes.").always()]);
    let served = serve_with(&persona("Helper"), model, options, HostOptions::default()).await;
    let request = served.http.post(&served.url).header("content-type", "text/plain").body(hello());
    let (status, words) = refused(request.send().await.unwrap()).await;
    assert_eq!(status, 415);
    assert!(words.contains("application/json"), "{words}");
    let (status, words) = refused(served.request("/", " ".repeat(1001)).send().await.unwrap()).await;
    assert_eq!(status, 413);
    assert!(words.contains("longer than 1000 bytes"), "{words}");
    let request = served.http.post(&served.url).header("content-type", "Application/JSON; charset=utf-8");
    assert_eq!(request.body(hello()).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn only_requests_for_this_machine_are_answered() {
    let served = yes().await;
    let (status, words) =
        refused(served.request("/", hello()).header("host", "evil.example").send().await.unwrap()).await;
    assert_eq!(status, 403);
    assert!(words.contains("localhost only") && words.contains("evil.example"), "{words}");
    let named = served.request("/", hello()).header("host", "localhost:1");
    assert_eq!(named.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn pages_of_other_origins_are_let_in_where_they_are_named() {
    let served = yes().await;
    let from = |served: &Served, origin: &str| served.request("/", hello()).header("origin", origin);
    let (status, words) = refused(from(&served, "https://app.example").send().await.unwrap()).await;
    assert_eq!(status, 403);
    assert!(words.contains("--allow-origin https://app.example"), "{words}");
    let own = from(&served, &served.url).send().await.unwrap();
    assert_eq!(own.status(), 200);

    let options = Options { allow_origins: vec!["https://app.example".to_string()], ..Options::default() };
    let model = scripted([Rule::new().say("Yes.").always()]);
    let served = serve_with(&persona("Helper"), model, options, HostOptions::default()).await;
    let preflight = served
        .http
        .request(reqwest::Method::OPTIONS, &served.url)
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "content-type");
    let answer = preflight.send().await.unwrap();
    assert_eq!(answer.status(), 204);
    assert_eq!(answer.headers()["access-control-allow-origin"], "https://app.example");
    assert_eq!(answer.headers()["access-control-allow-headers"], "content-type");
    let answer = from(&served, "https://app.example").send().await.unwrap();
    assert_eq!(answer.headers()["access-control-allow-origin"], "https://app.example");
    assert_eq!(from(&served, "https://app.example.evil").send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn pieces_arrive_as_they_are_said() {
    let (teller, model) = told();
    let served = serve(&persona("Helper"), model).await;
    let mut client = Client::new(&served, "t");
    client.user("hi");
    let body = client.body(None);
    let mut pieces = Box::pin(served.post("/", &body).await.bytes_stream());
    teller.tell([Piece::Say("Hel")]);
    let mut seen = until(&mut pieces, "\"Hel\"").await;
    teller.tell([Piece::Say("lo"), Piece::Done]);
    while let Some(piece) = pieces.next().await {
        seen.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    client.take_in(&events(&seen));
    assert_eq!(client.last_text(), "Hello");
}

#[tokio::test]
async fn one_run_at_a_time_on_a_thread() {
    let (teller, model) = told();
    let served = serve(&persona("Helper"), model).await;
    let mut client = Client::new(&served, "t");
    client.user("hi");
    let body = client.body(None);
    let first = served.post("/", &body).await;
    let (status, words) = refused(served.post("/", &body).await).await;
    assert_eq!(status, 409);
    assert!(words.contains("a run of the thread t goes on"), "{words}");
    teller.tell([Piece::Say("Hello"), Piece::Done]);
    client.take_in(&events(&first.text().await.unwrap()));
    client.say("again").await;
    assert_eq!(client.last_text(), "Hello");
}

#[tokio::test]
async fn a_client_that_goes_away_gives_its_turn_up() {
    let (teller, model) = told();
    let served = serve(&persona("Helper"), model).await;
    let mut client = Client::new(&served, "t");
    client.user("hi");
    let body = client.body(None);
    let mut pieces = Box::pin(served.post("/", &body).await.bytes_stream());
    teller.tell([Piece::Say("Hel")]);
    until(&mut pieces, "\"Hel\"").await;
    let listeners = teller.listeners();
    drop(pieces);
    // The connection is closed, and with it the call of the model.
    client.messages.clear();
    teller.until_given_up(listeners - 1).await;
    teller.tell([Piece::Say("lo"), Piece::Done]);
    client.user("hi");
    let answered = async {
        loop {
            let body = client.body(None);
            let response = served.post("/", &body).await;
            // The turn may take a moment to end.
            if response.status() == 200 {
                return events(&response.text().await.unwrap());
            }
            assert_eq!(response.status(), 409);
        }
    };
    let told = tokio::time::timeout(SOON, answered).await.unwrap();
    let mut client = Client::new(&served, "t");
    client.user("hi");
    client.take_in(&told);
    assert_eq!(client.last_text(), "Hello");
    client.say("again").await;
}

#[tokio::test]
async fn a_slow_client_misses_nothing() {
    let (teller, model) = told();
    let served = serve(&persona("Helper"), model).await;
    // Far more than sockets hold, in pieces that nobody reads for now.
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
    teller.tell(vec![Piece::Say(piece); count]);
    teller.tell([Piece::Done]);
    // The conversation does not wait for the one who reads.
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
    assert_eq!(tokio::time::timeout(SOON, ended).await.unwrap(), piece.len() * count);
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let said: usize = answer.matches("0123456789abcdef").count();
    assert_eq!(said, 64 * count);
    assert!(answer.contains("RUN_FINISHED"));
}

#[tokio::test]
async fn silence_is_broken_by_comments() {
    let (teller, model) = told();
    let options = Options { keep_alive: Duration::from_millis(20), ..Options::default() };
    let served = serve_with(&persona("Helper"), model, options, HostOptions::default()).await;
    let mut client = Client::new(&served, "t");
    client.user("hi");
    let body = client.body(None);
    let mut pieces = served.post("/", &body).await.bytes_stream();
    let mut seen = String::new();
    while !seen.contains("\n\n: the agent is at work\n\n") {
        seen.push_str(std::str::from_utf8(&pieces.next().await.unwrap().unwrap()).unwrap());
    }
    teller.tell([Piece::Say("Hello"), Piece::Done]);
    while let Some(piece) = pieces.next().await {
        seen.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    assert!(seen.contains("RUN_FINISHED"), "{seen}");
}

#[tokio::test]
async fn a_server_that_stops_finishes_its_answers() {
    let (teller, model) = told();
    let mut served = serve(&persona("Helper"), model).await;
    let mut client = Client::new(&served, "t");
    client.user("hi");
    let body = client.body(None);
    let answer = served.post("/", &body).await;
    served.ask_to_stop();
    // Nobody new is let in.
    let refused = async {
        while served.http.get(format!("{}/health", served.url)).send().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, refused).await.unwrap();
    teller.tell([Piece::Say("Goodbye"), Piece::Done]);
    let told = answer.text().await.unwrap();
    assert!(told.contains("Goodbye") && told.contains("RUN_FINISHED"), "{told}");
    served.stop().await;
}

#[tokio::test]
async fn a_busy_port_is_named() {
    let served = yes().await;
    let port = served.url.rsplit(':').next().unwrap().parse().unwrap();
    let options = Options { port, ..Options::default() };
    let error = super::kit::bind(options).await.err().expect("the port is taken").to_string();
    assert!(error.starts_with(&format!("cannot listen on 127.0.0.1:{port}: ")), "{error}");
}

#[tokio::test]
async fn connections_that_ask_for_nothing_do_not_stay() {
    let options = Options { head_timeout: Duration::from_millis(300), ..Options::default() };
    let (_, model) = told();
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
        // A listener has room for fewer that wait to be accepted.
        tokio::task::yield_now().await;
    }
    let all_closed = async {
        for mut socket in open {
            let mut rest = Vec::new();
            // The server closes it, with or without an answer.
            drop(socket.read_to_end(&mut rest).await);
        }
    };
    tokio::time::timeout(SOON, all_closed).await.expect("all of them are closed");
    assert_eq!(served.http.get(format!("{}/health", served.url)).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn whoever_comes_when_all_connections_are_taken_is_answered_when_one_is_closed() {
    let options = Options { connections: 3, head_timeout: Duration::from_millis(300), ..Options::default() };
    let (_, model) = told();
    let served = serve_with(&persona("Helper"), model, options, HostOptions::default()).await;
    let address = served.url.strip_prefix("http://").unwrap().to_string();
    let mut idle = Vec::new();
    for _ in 0..12 {
        idle.push(tokio::net::TcpStream::connect(&address).await.unwrap());
    }
    let health = served.http.get(format!("{}/health", served.url)).send();
    assert_eq!(tokio::time::timeout(SOON, health).await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let options = Options { body_timeout: Duration::from_millis(200), ..Options::default() };
    let (_, model) = told();
    let served = serve_with(&persona("Helper"), model, options, HostOptions::default()).await;
    let address = served.url.strip_prefix("http://").unwrap().to_string();
    let mut socket = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: 100\r\n\r\n{{"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(SOON, socket.read_to_end(&mut answer));
    read.await.expect("the server gives it up").unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("the body did not come within 0.2 s"), "{answer}");
}

#[tokio::test]
async fn bodies_together_have_a_bound() {
    let options = Options { bodies: 64 * 1024, ..Options::default() };
    let (_, model) = told();
    let served = serve_with(&persona("Helper"), model, options, HostOptions::default()).await;
    let long = format!("{{\"threadId\": \"{}\"}}", "x".repeat(100 * 1024));
    let (status, words) = refused(served.request("/", long).send().await.unwrap()).await;
    assert_eq!(status, 503);
    assert!(words.contains("too much is being sent"), "{words}");
    // What was held for it is free again.
    for _ in 0..5 {
        let body = format!("{{\"threadId\": \"{}\"}}", "x".repeat(40 * 1024));
        assert_eq!(refused(served.request("/", body).send().await.unwrap()).await.0, 400);
    }
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_given_up() {
    let (teller, model) = told();
    let options = Options { write_timeout: Duration::from_millis(200), ..Options::default() };
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
    teller.until_asked(2).await;
    let listeners = teller.listeners();
    teller.tell(vec![Piece::Say(piece); 1024]);
    // The model goes on for ever, and is stopped.
    teller.until_given_up(listeners - 1).await;
    drop(socket);
}

#[tokio::test]
async fn no_more_threads_are_kept_than_there_is_room_for() {
    use hotseat_runtime::store::{InMemory, MemoryBounds};
    let bounds = MemoryBounds { conversations: 5, bytes: 1024 * 1024, ..MemoryBounds::default() };
    let store = std::sync::Arc::new(InMemory::bounded(bounds));
    let model = scripted([hotseat_model::script::Rule::new().say("Hello")]);
    let options = super::kit::stored(store.clone());
    let served = serve_with(&persona("Helper"), model, Options::default(), options).await;
    for number in 0..40 {
        Client::new(&served, &format!("t{number}")).say("hi").await;
    }
    let kept = served.host.conversations().await.unwrap();
    let kept: Vec<&str> = kept.iter().map(|id| id.as_str()).collect();
    // Who has left a moment ago may still be held.
    assert!(kept.len() <= 5 && kept.contains(&"t39"), "{kept:?}");
    // One that was forgotten begins anew, with what its client says was said before.
    let mut client = Client::new(&served, "t0");
    client.messages = vec![
        serde_json::json!({"id": "u1", "role": "user", "content": "hi"}),
        serde_json::json!({"id": "a1", "role": "assistant", "content": "Hello"}),
    ];
    client.say("again").await;
    assert_eq!(client.last_text(), "Hello");
}
