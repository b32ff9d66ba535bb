//! HTTP responses of served models.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use hotseat_serve::GARBAGE;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::Dialect;
use super::call::CallPiece;
use crate::providers::served::{ReplyHead, ReplyWriter, error_status};
use crate::{ModelError, ModelErrorKind, ModelReply};

/// Maximum number of pieces that are sent at once.
const MAX_PIECES_AT_ONCE: usize = 256;

/// The answer to one call while it is written.
pub(super) struct Answer {
    pub(super) dialect: Dialect,
    pub(super) head: ReplyHead,
    pub(super) pieces: mpsc::UnboundedReceiver<CallPiece>,
    /// Held until the answer was sent.
    pub(super) _permit: OwnedSemaphorePermit,
}

impl Answer {
    /// Waits for the reply and sends it at once.
    pub(super) async fn complete(mut self) -> Response {
        loop {
            match self.pieces.recv().await {
                Some(CallPiece::Delta(_)) => {}
                Some(CallPiece::Reply(reply)) => {
                    return json_response(StatusCode::OK, &self.dialect.reply(&self.head, &reply));
                }
                Some(CallPiece::Truncated(reply)) => return self.truncated(&reply),
                Some(end) => return self.failed(end),
                None => return cut_response(Vec::new()),
            }
        }
    }

    fn truncated(&self, reply: &ModelReply) -> Response {
        let mut written = self.dialect.reply(&self.head, reply).to_string().into_bytes();
        written.truncate(written.len() / 2);
        cut_response(written)
    }

    /// Writes an answer without any piece of a reply.
    fn failed(&self, end: CallPiece) -> Response {
        match end {
            CallPiece::Error(error) => match error.kind {
                ModelErrorKind::Network => cut_response(Vec::new()),
                ModelErrorKind::Decode if error.status.is_none() => garbage_response(&error),
                _ => error_response(self.dialect, &error, None),
            },
            CallPiece::Garbage => garbage_response(&ModelError::new(ModelErrorKind::Decode, "")),
            _ => cut_response(Vec::new()),
        }
    }

    /// Waits for the first piece, and sends a stream of events. A call that fails before has an HTTP status of its own.
    pub(super) async fn stream(mut self) -> Response {
        let Some(first) = self.pieces.recv().await else { return cut_response(Vec::new()) };
        if matches!(first, CallPiece::Error(_) | CallPiece::Garbage | CallPiece::Cut) {
            return self.failed(first);
        }
        let mut writer = self.dialect.writer(self.head.clone());
        let mut start = Vec::new();
        writer.start(&mut start);
        let state = EventStream { answer: self, writer, next: Some(first), start, has_ended: false };
        let body = Body::from_stream(stream::unfold(state, |mut state| async move {
            let bytes = state.next_bytes().await?;
            Some((bytes, state))
        }));
        let mut response = body.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}

/// The body of a streamed answer.
struct EventStream {
    answer: Answer,
    writer: Box<dyn ReplyWriter>,
    /// A piece that has arrived.
    next: Option<CallPiece>,
    /// The start of the answer, until it is sent.
    start: Vec<u8>,
    has_ended: bool,
}

impl EventStream {
    /// Returns the next bytes: all pieces that have arrived. An error closes the connection.
    async fn next_bytes(&mut self) -> Option<io::Result<Bytes>> {
        if self.has_ended {
            return None;
        }
        let mut out = std::mem::take(&mut self.start);
        let mut piece = match self.next.take() {
            Some(piece) => Some(piece),
            None => self.answer.pieces.recv().await,
        };
        for _ in 0..MAX_PIECES_AT_ONCE {
            match piece {
                Some(CallPiece::Delta(delta)) => self.writer.delta(&delta, &mut out),
                Some(CallPiece::Reply(reply)) => {
                    self.writer.finish(&reply, &mut out);
                    self.has_ended = true;
                    break;
                }
                Some(CallPiece::Error(error)) if error.kind != ModelErrorKind::Network => {
                    self.writer.fail(&error, &mut out);
                    self.has_ended = true;
                    break;
                }
                cut if out.is_empty() => {
                    drop(cut);
                    self.has_ended = true;
                    return Some(Err(connection_cut().await));
                }
                // The pieces before are sent first.
                cut => {
                    self.next = cut.or(Some(CallPiece::Cut));
                    break;
                }
            }
            match self.answer.pieces.try_recv() {
                Ok(more) => piece = Some(more),
                Err(_) => break,
            }
        }
        Some(Ok(out.into()))
    }
}

/// Returns the error that closes a connection, after the bytes before it were sent.
pub(super) async fn connection_cut() -> io::Error {
    tokio::task::yield_now().await;
    io::Error::new(io::ErrorKind::ConnectionAborted, "the connection is closed on purpose")
}

/// Sends the start of a body, and closes the connection.
pub(super) fn cut_response(start: Vec<u8>) -> Response {
    let start = stream::iter((!start.is_empty()).then(|| Ok(Bytes::from(start))));
    let pieces = start.chain(stream::once(async { Err(connection_cut().await) }));
    let mut response = Body::from_stream(pieces).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Sends a body that is no JSON.
pub(super) fn garbage_response(error: &ModelError) -> Response {
    let body = error.body.clone().unwrap_or_else(|| GARBAGE.to_owned());
    with_type(StatusCode::OK, body.into())
}

/// Sends a JSON document.
pub(super) fn json_response(status: StatusCode, body: &Value) -> Response {
    with_type(status, body.to_string().into())
}

fn with_type(status: StatusCode, body: Bytes) -> Response {
    let mut response = (status, body).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Sends an error in the form of a protocol.
pub(super) fn error_response(dialect: Dialect, error: &ModelError, member: Option<&str>) -> Response {
    let status = StatusCode::from_u16(error_status(error)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match &error.body {
        Some(body) => with_type(status, body.clone().into()),
        None => json_response(status, &dialect.error(error, member)),
    };
    let headers = response.headers_mut();
    if let Some(delay) = error.retry_after {
        add_retry_after(headers, delay);
    }
    if error.kind == ModelErrorKind::Unanswered {
        // A retry would only hide the message.
        headers.insert("x-should-retry", HeaderValue::from_static("false"));
    }
    response
}

/// Adds the delay in seconds, rounded up, and in milliseconds.
fn add_retry_after(headers: &mut HeaderMap, delay: Duration) {
    let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    headers.insert("retry-after-ms", HeaderValue::from(millis));
}
