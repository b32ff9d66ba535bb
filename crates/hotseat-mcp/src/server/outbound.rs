//! Answers on their way to a client: one JSON body, or a stream of server-sent events.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::frame::{Frame, RpcError};

/// Number of pieces of a slow answer.
const SLOW_PIECES: usize = 20;
/// Number of frames that wait for a slow client.
pub(super) const MAX_WAITING_FRAMES: usize = 16;
/// Interval of comments that keep a stream open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A message to the client.
#[derive(Debug)]
pub(super) enum OutFrame {
    /// A notification or request before the answer.
    Interim(Value),
    /// The answer. Ends the stream.
    Final(FinalAnswer),
    /// Ends the stream without an answer: the client has cancelled its request.
    End,
}

/// The answer to a request.
#[derive(Debug)]
pub(super) struct FinalAnswer {
    pub(super) message: Value,
    /// HTTP status if the answer is a JSON body.
    pub(super) status: StatusCode,
    pub(super) delivery: AnswerDelivery,
}

#[derive(Debug)]
pub(super) enum AnswerDelivery {
    /// As the protocol demands.
    Plain,
    /// Other bytes in place of the message.
    Bytes(Bytes),
    /// The first half of the message.
    Truncated,
    /// The message two times.
    Twice,
    /// The message in small pieces over this time.
    Slow(Duration),
    /// The connection is closed.
    Abort,
    /// Only an HTTP status.
    Status(StatusCode),
}

/// The server closes the connection.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed without an answer")]
pub(super) struct AbortedConnection;

/// Result of a request: a response, or a closed connection.
pub(super) type HttpOutcome = Result<Response<Body>, AbortedConnection>;

/// Answers with JSON if the first frame is the final one, otherwise with a stream of events. Fails if the
/// connection is to be closed.
pub(super) async fn respond(mut frames: mpsc::Receiver<OutFrame>) -> HttpOutcome {
    match frames.recv().await {
        None => Err(AbortedConnection),
        Some(OutFrame::Final(answer)) => respond_at_once(answer),
        Some(first) => Ok(event_stream(Some(first), frames)),
    }
}

fn respond_at_once(answer: FinalAnswer) -> HttpOutcome {
    let bytes = Bytes::from(answer.message.to_string());
    match answer.delivery {
        AnswerDelivery::Plain => Ok(json_response(answer.status, Body::from(bytes))),
        AnswerDelivery::Bytes(garbage) => Ok(json_response(answer.status, Body::from(garbage))),
        AnswerDelivery::Truncated => {
            Ok(json_response(answer.status, Body::from(bytes.slice(..bytes.len() / 2))))
        }
        AnswerDelivery::Slow(duration) => {
            Ok(json_response(answer.status, Body::from_stream(slow_pieces(bytes, duration))))
        }
        AnswerDelivery::Twice => {
            let (_, none) = mpsc::channel(1);
            Ok(event_stream(Some(OutFrame::Final(answer)), none))
        }
        AnswerDelivery::Abort => Err(AbortedConnection),
        AnswerDelivery::Status(status) => {
            let phrase = status.canonical_reason().unwrap_or("error");
            Ok(text_response(status, format!("{}\n", phrase.to_lowercase())))
        }
    }
}

pub(super) fn json_response(status: StatusCode, body: Body) -> Response<Body> {
    with_type(status, "application/json", body)
}

/// A response with a JSON-RPC error that belongs to no request.
pub(super) fn error_response(status: StatusCode, code: i64, message: impl ToString) -> Response<Body> {
    let outcome = Err(RpcError::new(code, message));
    let frame = Frame::Response { id: Value::Null, outcome };
    json_response(status, Body::from(frame.to_json().to_string()))
}

/// A response with a plain text.
pub(super) fn text_response(status: StatusCode, text: impl Into<String>) -> Response<Body> {
    with_type(status, "text/plain; charset=utf-8", Body::from(text.into()))
}

/// A response without a body.
pub(super) fn empty_response(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn with_type(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A stream of server-sent events that ends with the final frame.
pub(super) fn event_stream(first: Option<OutFrame>, frames: mpsc::Receiver<OutFrame>) -> Response<Body> {
    let state =
        EventStreamState { first, frames, pieces: Vec::new(), pause: Duration::ZERO, is_ended: false };
    let body = stream::unfold(state, |mut state| async move { Some((state.next().await?, state)) });
    let mut response = with_type(StatusCode::OK, "text/event-stream", Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct EventStreamState {
    first: Option<OutFrame>,
    frames: mpsc::Receiver<OutFrame>,
    /// Pieces of a slow answer, the last one first.
    pieces: Vec<Bytes>,
    pause: Duration,
    is_ended: bool,
}

impl EventStreamState {
    async fn next(&mut self) -> Option<Result<Bytes, io::Error>> {
        if let Some(piece) = self.pieces.pop() {
            tokio::time::sleep(self.pause).await;
            return Some(Ok(piece));
        }
        if self.is_ended {
            return None;
        }
        let frame = match self.first.take() {
            Some(frame) => Some(frame),
            None => match tokio::time::timeout(KEEP_ALIVE, self.frames.recv()).await {
                Ok(frame) => frame,
                Err(_) => return Some(Ok(Bytes::from_static(b": keep-alive\n\n"))),
            },
        };
        match frame? {
            OutFrame::Interim(message) => Some(Ok(event_bytes(&message.to_string()))),
            OutFrame::Final(answer) => self.finish(answer),
            OutFrame::End => None,
        }
    }

    fn finish(&mut self, answer: FinalAnswer) -> Option<Result<Bytes, io::Error>> {
        self.is_ended = true;
        let text = answer.message.to_string();
        Some(Ok(match answer.delivery {
            AnswerDelivery::Plain => event_bytes(&text),
            AnswerDelivery::Bytes(garbage) => event_bytes(&String::from_utf8_lossy(&garbage)),
            AnswerDelivery::Truncated => {
                let whole = event_bytes(&text);
                let half = whole.len() / 2;
                [&whole[..half], b"\n\n"].concat().into()
            }
            AnswerDelivery::Twice => event_bytes(&text).repeat(2).into(),
            AnswerDelivery::Slow(duration) => {
                self.pieces = split_pieces(&event_bytes(&text));
                self.pause = duration / u32::try_from(self.pieces.len().max(1)).unwrap_or(1);
                self.pieces.pop()?
            }
            AnswerDelivery::Abort | AnswerDelivery::Status(_) => {
                return Some(Err(io::Error::other(AbortedConnection)));
            }
        }))
    }
}

/// Writes a message as one server-sent event.
pub(super) fn event_bytes(text: &str) -> Bytes {
    let mut bytes = String::with_capacity(text.len() + 32);
    bytes.push_str("event: message\n");
    for line in text.split(['\n', '\r']) {
        bytes.push_str("data: ");
        bytes.push_str(line);
        bytes.push('\n');
    }
    bytes.push('\n');
    bytes.into()
}

/// Cuts bytes into pieces, the last one first.
fn split_pieces(bytes: &Bytes) -> Vec<Bytes> {
    let size = bytes.len().div_ceil(SLOW_PIECES).max(1);
    let mut pieces: Vec<_> = bytes.chunks(size).map(Bytes::copy_from_slice).collect();
    pieces.reverse();
    pieces
}

fn slow_pieces(
    bytes: Bytes,
    duration: Duration,
) -> impl futures_util::Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    let pieces = split_pieces(&bytes);
    let pause = duration / u32::try_from(pieces.len().max(1)).unwrap_or(1);
    stream::unfold(pieces, move |mut pieces| async move {
        let piece = pieces.pop()?;
        tokio::time::sleep(pause).await;
        Some((Ok(piece), pieces))
    })
}
