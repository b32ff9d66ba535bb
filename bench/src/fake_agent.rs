//! A fake AG-UI agent that replies immediately: one tool call with its result, then a text in eight pieces
//! that repeats the last user message. `GET /` returns the totals of requests and bytes.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::workload::{ARGUMENTS, RESULT, TOOL, answer};

/// Number of pieces of a text.
const TEXT_PIECES: usize = 8;

/// Received requests.
#[derive(Debug, Default)]
struct RequestCounters {
    requests: AtomicU64,
    bytes: AtomicU64,
}

/// Part of a run input that determines the reply.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FakeRunInput<'a> {
    #[serde(borrow)]
    thread_id: Cow<'a, str>,
    #[serde(borrow)]
    run_id: Cow<'a, str>,
    #[serde(borrow)]
    messages: Vec<FakeMessage<'a>>,
}

#[derive(Deserialize)]
struct FakeMessage<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
}

/// Serves all connections forever. Fails if no more connections can be accepted.
pub async fn serve(listener: TcpListener) -> io::Result<()> {
    let asked = Arc::new(RequestCounters::default());
    loop {
        let (stream, _) = listener.accept().await?;
        let asked = asked.clone();
        // A broken connection makes its client fail, and the driver reports that.
        tokio::spawn(async move { serve_connection(stream, &asked).await });
    }
}

/// Answers the requests of one connection in order.
async fn serve_connection(mut stream: TcpStream, asked: &RequestCounters) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::with_capacity(16 * 1024);
    while let Some(request) = read_request(&mut stream, &mut received).await? {
        let reply = if request.is_post {
            let number = asked.requests.fetch_add(1, Ordering::Relaxed);
            asked.bytes.fetch_add(request.body.len() as u64, Ordering::Relaxed);
            match serde_json::from_slice(&received[request.body.clone()]) {
                Ok(input) => stream_of(&events(&input, number)),
                Err(error) => plain("400 Bad Request", &error.to_string()),
            }
        } else {
            let (requests, bytes) =
                (asked.requests.load(Ordering::Relaxed), asked.bytes.load(Ordering::Relaxed));
            plain("200 OK", &format!("{requests} {bytes}"))
        };
        stream.write_all(reply.as_bytes()).await?;
        received.drain(..request.body.end);
    }
    Ok(())
}

/// A request at the start of the received bytes.
struct ParsedRequest {
    is_post: bool,
    body: std::ops::Range<usize>,
}

/// Reads until a request is complete; returns `None` when the client has left. Supports only bodies with a
/// content length, which both clients use.
async fn read_request(stream: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<Option<ParsedRequest>> {
    let mut request = None;
    loop {
        if request.is_none() {
            request = read_head(received);
        }
        match request {
            Some(request) if received.len() >= request.body.end => return Ok(Some(request)),
            _ if stream.read_buf(received).await? == 0 => return Ok(None),
            _ => {}
        }
    }
}

fn read_head(received: &[u8]) -> Option<ParsedRequest> {
    let end = received.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&received[..end]);
    let headers = head.lines().filter_map(|line| line.split_once(':'));
    let length = headers.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0);
    Some(ParsedRequest { is_post: head.starts_with("POST "), body: end..end + length })
}

/// Returns the events of a run. `number` makes its ids unique.
fn events(input: &FakeRunInput<'_>, number: u64) -> Vec<String> {
    let asked = input.messages.iter().rev().find(|message| message.role == "user");
    let text = answer(asked.and_then(|message| message.content.as_deref()).unwrap_or(""));
    let (thread, run) = (json!(input.thread_id), json!(input.run_id));
    let (call, message) = (format!("call-{number:08}"), format!("message-{number:08}"));
    let (arguments, result) = (json!(ARGUMENTS), json!(RESULT));

    let mut events = Vec::with_capacity(TEXT_PIECES + 8);
    events.push(format!(r#"{{"type":"RUN_STARTED","threadId":{thread},"runId":{run}}}"#));
    events.push(format!(r#"{{"type":"TOOL_CALL_START","toolCallId":"{call}","toolCallName":"{TOOL}"}}"#));
    events.push(format!(r#"{{"type":"TOOL_CALL_ARGS","toolCallId":"{call}","delta":{arguments}}}"#));
    events.push(format!(r#"{{"type":"TOOL_CALL_END","toolCallId":"{call}"}}"#));
    events.push(format!(
        r#"{{"type":"TOOL_CALL_RESULT","messageId":"result-{number:08}","toolCallId":"{call}","role":"tool","content":{result}}}"#
    ));
    events.push(format!(r#"{{"type":"TEXT_MESSAGE_START","messageId":"{message}","role":"assistant"}}"#));
    for piece in pieces(&text) {
        let delta = json!(piece);
        events.push(format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"{message}","delta":{delta}}}"#));
    }
    events.push(format!(r#"{{"type":"TEXT_MESSAGE_END","messageId":"{message}"}}"#));
    events.push(format!(r#"{{"type":"RUN_FINISHED","threadId":{thread},"runId":{run}}}"#));
    events
}

/// Splits a text into [`TEXT_PIECES`] pieces of similar length, fewer if it is very short.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let length = text.len().div_ceil(TEXT_PIECES);
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = (length..rest.len()).find(|&end| rest.is_char_boundary(end)).unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Builds a response with one HTTP chunk per event.
fn stream_of(events: &[String]) -> String {
    let mut reply = String::with_capacity(4096);
    reply
        .push_str("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
    for event in events {
        let framed = "data: ".len() + event.len() + "\n\n".len();
        reply.push_str(&format!("{framed:x}\r\ndata: {event}\n\n\r\n"));
    }
    reply.push_str("0\r\n\r\n");
    reply
}

fn plain(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}
