//! Clients that end their side of a connection before they have an answer.
//!
//! Such a client may still read, or it may be gone: the server sees the same end of its data. Only a client that is gone
//! rejects further bytes. So it is sent bytes that mean nothing: an interim response (`100 Continue`, which every client of
//! HTTP/1.1 must skip) before the answer, or a comment between server-sent events. If they are rejected, the client is gone.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// Time for an answer before a client that has ended its side is tested. Most answers are complete by then.
const PROBE_DELAY: Duration = Duration::from_millis(300);
/// Time until it is tested again.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// The bytes before an answer.
const INTERIM_RESPONSE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// The bytes between server-sent events.
pub(super) const EVENT_COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// How far the answer to the current request of a connection is.
#[derive(Debug, Default)]
pub(super) struct AnswerProgress {
    /// True if the client understands interim responses.
    accepts_interim: AtomicBool,
    /// True if bytes were written since the request.
    has_begun: AtomicBool,
    /// True if the server has bytes that are not written yet.
    has_unwritten: AtomicBool,
    /// True if event streams must send a comment.
    wants_comment: AtomicBool,
}

impl AnswerProgress {
    /// Marks the beginning of a request.
    pub(super) fn begin_request(&self, accepts_interim: bool) {
        self.accepts_interim.store(accepts_interim, Ordering::Relaxed);
        self.has_begun.store(false, Ordering::Relaxed);
    }

    /// Returns true once if an event stream must send a comment.
    pub(super) fn take_comment(&self) -> bool {
        self.wants_comment.swap(false, Ordering::Relaxed)
    }

    /// Returns true if an interim response would be the next response that the client reads.
    fn is_before_answer(&self) -> bool {
        self.accepts_interim.load(Ordering::Relaxed)
            && !self.has_begun.load(Ordering::Relaxed)
            && !self.has_unwritten.load(Ordering::Relaxed)
    }
}

/// The stream of a connection, which its task also watches while the HTTP library does not read.
pub(super) struct ClientStream {
    pub(super) stream: Arc<TcpStream>,
    pub(super) progress: Arc<AnswerProgress>,
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(context))?;
            match self.stream.try_read(buffer.initialize_unfilled()) {
                Ok(count) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl ClientStream {
    fn poll_write_with(
        &self,
        context: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        self.progress.has_begun.store(true, Ordering::Relaxed);
        self.progress.has_unwritten.store(true, Ordering::Relaxed);
        loop {
            ready!(self.stream.poll_write_ready(context))?;
            match write(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, |stream| stream.try_write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Called when all bytes are written.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.progress.has_unwritten.store(false, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }

    /// The connection is closed when its last user drops it, which follows immediately.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Waits until the client is gone while a request is not answered completely. Must be polled after the HTTP connection, in
/// the same task.
pub(super) async fn wait_until_gone(
    stream: &TcpStream,
    progress: &AnswerProgress,
    is_busy: impl Fn() -> bool,
) {
    if poll_fn(|context| poll_end(stream, &is_busy, context)).await.is_err() {
        return;
    }
    let mut delay = PROBE_DELAY;
    loop {
        tokio::select! {
            _ = stream.ready(Interest::ERROR) => return,
            () = tokio::time::sleep(delay) => {}
        }
        if !poll_fn(|context| Poll::Ready(send_probe(stream, progress, context))).await {
            return;
        }
        delay = PROBE_INTERVAL;
    }
}

/// Sends bytes that mean nothing, where the answer allows it. Returns false if the connection cannot be used any more.
fn send_probe(stream: &TcpStream, progress: &AnswerProgress, context: &mut Context<'_>) -> bool {
    if !progress.is_before_answer() {
        progress.wants_comment.store(true, Ordering::Relaxed);
        // The body of the answer is asked again.
        context.waker().wake_by_ref();
        return true;
    }
    match stream.try_write(INTERIM_RESPONSE) {
        Ok(count) => count == INTERIM_RESPONSE.len(),
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

/// Waits until the client has ended its side. Fails if the connection is broken.
fn poll_end(
    stream: &TcpStream,
    is_busy: impl Fn() -> bool,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    // The HTTP library reads between requests. While there is more to read, it wakes this task when it reads.
    if !is_busy() {
        return Poll::Pending;
    }
    let mut byte = [0];
    match ready!(stream.poll_peek(context, &mut ReadBuf::new(&mut byte))) {
        Ok(0) => Poll::Ready(Ok(())),
        Ok(_) => Poll::Pending,
        Err(error) => Poll::Ready(Err(error)),
    }
}
