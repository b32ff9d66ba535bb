//! Receives agent output on a dedicated thread and timestamps it there.
//!
//! Conversations process events and evaluate checks on other threads. However long that takes, received bytes
//! carry their arrival time, so time assertions are not distorted by load.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use hotseat_trace::{AttemptFailure, FailureKind};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::connection::TurnLimits;

/// Approximate maximum size of the bytes passed on at a time.
const CHUNK_BYTES: usize = 64 * 1024;
/// Capacity of the channel in chunks. If a conversation is slower than its agent, reading pauses.
const CHANNEL_CAPACITY: usize = 4;
/// Maximum time a conversation may process received data before it yields to others.
const YIELD_INTERVAL: Duration = Duration::from_millis(2);

/// The reader thread, started when first needed. Dropping this value ends it and all its connections.
#[derive(Default)]
pub struct ReaderThread(OnceLock<Result<RunningReader, String>>);

struct RunningReader {
    handle: Handle,
    /// Dropping it ends the thread.
    _keep_alive: oneshot::Sender<()>,
}

/// Received bytes in order, with their arrival times.
#[derive(Debug)]
pub struct ArrivalReceiver {
    receive: mpsc::Receiver<ArrivedChunk>,
    /// Received bytes that were not taken yet.
    pending: Bytes,
    /// The end of the source, returned after all pending bytes.
    end: Option<Result<(), String>>,
    at: Instant,
    /// Time since which the conversation has been processing without a pause.
    busy_since: Option<Instant>,
}

/// A chunk of bytes, and the end of the source if it follows them.
#[derive(Debug)]
struct ArrivedChunk {
    at: Instant,
    bytes: Bytes,
    end: Option<Result<(), String>>,
}

/// Error of a read.
#[derive(Debug)]
pub enum ReadError {
    /// The connection broke, with the reason.
    Broken(String),
    /// The deadline of the turn has passed.
    Deadline,
    /// The agent exceeded a traffic limit.
    Limit(AttemptFailure),
    /// The idle limit has passed without data.
    Idle,
}

/// A source of bytes.
pub(crate) trait ByteSource: Send + 'static {
    /// Returns the next bytes; `None` at the end. Cancel-safe.
    fn next_bytes(&mut self) -> impl Future<Output = Result<Option<Bytes>, String>> + Send;
}

impl ByteSource for reqwest::Response {
    async fn next_bytes(&mut self) -> Result<Option<Bytes>, String> {
        self.chunk().await.map_err(|error| crate::connection::http::innermost_cause(&error))
    }
}

/// The output of a process.
pub(crate) struct OutputPipe<R>(pub R);

impl<R: AsyncRead + Unpin + Send + 'static> ByteSource for OutputPipe<R> {
    async fn next_bytes(&mut self) -> Result<Option<Bytes>, String> {
        let mut bytes = BytesMut::with_capacity(8 * 1024);
        let read = self.0.read_buf(&mut bytes).await.map_err(|error| error.to_string())?;
        Ok((read > 0).then(|| bytes.freeze()))
    }
}

impl ReaderThread {
    /// Returns the runtime handle: connections and tasks created with it belong to the thread.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn handle(&self) -> Result<&Handle, AttemptFailure> {
        let running = self.0.get_or_init(|| start_reader().map_err(|error| error.to_string())).as_ref();
        running.map(|running| &running.handle).map_err(|words| {
            AttemptFailure::new(FailureKind::Unreachable, format!("cannot start the reader thread: {words}"))
        })
    }
}

fn start_reader() -> std::io::Result<RunningReader> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let (goes_on, over) = oneshot::channel();
    let reads = move || drop(runtime.block_on(over));
    std::thread::Builder::new().name("reading".to_string()).spawn(reads)?;
    Ok(RunningReader { handle, _keep_alive: goes_on })
}

impl fmt::Debug for ReaderThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadingThread")
    }
}

/// Creates the sender and receiver of arrivals; `at` is the initial arrival time.
pub(crate) fn arrival_channel(at: Instant) -> (ArrivalSender, ArrivalReceiver) {
    let (send, receive) = mpsc::channel(CHANNEL_CAPACITY);
    (ArrivalSender(send), ArrivalReceiver { receive, pending: Bytes::new(), end: None, at, busy_since: None })
}

/// Sends arrivals.
pub(crate) struct ArrivalSender(mpsc::Sender<ArrivedChunk>);

impl ArrivalSender {
    /// Forwards all bytes until the source ends or the receiver is dropped.
    pub async fn forward(self, mut source: impl ByteSource) {
        loop {
            let first = tokio::select! {
                biased;
                next = source.next_bytes() => next,
                () = self.0.closed() => return,
            };
            let at = Instant::now();
            let (bytes, end) = coalesce(first, &mut source);
            let is_last = end.is_some();
            if self.0.send(ArrivedChunk { at, bytes, end }).await.is_err() || is_last {
                return;
            }
        }
    }
}

/// Joins the received bytes with those that are already available.
fn coalesce(
    first: Result<Option<Bytes>, String>,
    source: &mut impl ByteSource,
) -> (Bytes, Option<Result<(), String>>) {
    let first = match first {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return (Bytes::new(), Some(Ok(()))),
        Err(words) => return (Bytes::new(), Some(Err(words))),
    };
    let mut all = None;
    while all.as_ref().map_or(first.len(), BytesMut::len) < CHUNK_BYTES {
        let end = match source.next_bytes().now_or_never() {
            None => break,
            Some(Ok(Some(more))) => {
                all.get_or_insert_with(|| BytesMut::from(&first[..])).extend_from_slice(&more);
                continue;
            }
            Some(Ok(None)) => Ok(()),
            Some(Err(words)) => Err(words),
        };
        return (all.map_or(first, BytesMut::freeze), Some(end));
    }
    (all.map_or(first, BytesMut::freeze), None)
}

impl ArrivalReceiver {
    /// Returns the arrival time of the last bytes taken, or of the end once it was returned.
    pub fn last_arrival(&self) -> Instant {
        self.at
    }

    /// Returns the next bytes; `None` at a regular end. Bytes that arrived before the deadline are returned
    /// even if read later.
    ///
    /// # Errors
    /// If the connection breaks or a limit passes.
    pub async fn next_bytes(&mut self, limits: TurnLimits<'_>) -> Result<Option<Bytes>, ReadError> {
        if self.busy_since.is_some_and(|since| since.elapsed() > YIELD_INTERVAL) {
            self.busy_since = None;
            tokio::task::yield_now().await;
        }
        let bytes = self.wait_for_bytes(limits).await;
        self.busy_since.get_or_insert_with(Instant::now);
        bytes
    }

    /// Returns the next bytes if they have arrived, without waiting.
    pub fn try_next_bytes(&mut self) -> Option<Bytes> {
        if self.pending.is_empty() && self.end.is_none() {
            let arrived = self.receive.try_recv().ok()?;
            (self.at, self.pending, self.end) = (arrived.at, arrived.bytes, arrived.end);
        }
        self.take_chunk()
    }

    /// Returns the next pending bytes, at most [`CHUNK_BYTES`].
    fn take_chunk(&mut self) -> Option<Bytes> {
        let size = self.pending.len().min(CHUNK_BYTES);
        (size > 0).then(|| self.pending.split_to(size))
    }

    async fn wait_for_bytes(&mut self, limits: TurnLimits<'_>) -> Result<Option<Bytes>, ReadError> {
        if let Some(bytes) = self.take_chunk() {
            return Ok(Some(bytes));
        }
        if let Some(end) = &self.end {
            return end.clone().map(|()| None).map_err(ReadError::Broken);
        }
        let arrived = match self.receive.try_recv() {
            Ok(arrived) => Some(arrived),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                self.busy_since = None;
                let until = limits.deadline.min(Instant::now() + limits.idle);
                match timeout_at(until, self.receive.recv()).await {
                    Ok(arrived) => arrived,
                    Err(_) if limits.deadline <= Instant::now() => return Err(ReadError::Deadline),
                    Err(_) => return Err(ReadError::Idle),
                }
            }
        };
        self.accept(arrived, limits)
    }

    fn accept(
        &mut self,
        arrived: Option<ArrivedChunk>,
        limits: TurnLimits<'_>,
    ) -> Result<Option<Bytes>, ReadError> {
        let Some(ArrivedChunk { at, bytes, end }) = arrived else {
            return Err(ReadError::Broken("the reader thread has ended".to_string()));
        };
        if at > limits.deadline {
            return Err(ReadError::Deadline);
        }
        (self.at, self.pending, self.end) = (at, bytes, end);
        match (self.take_chunk(), &self.end) {
            (None, Some(end)) => end.clone().map(|()| None).map_err(ReadError::Broken),
            (bytes, _) => Ok(Some(bytes.unwrap_or_default())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    /// A source that returns the given chunks and reports each read.
    struct ScriptedSource {
        portions: std::vec::IntoIter<Bytes>,
        asked: mpsc::Sender<()>,
    }

    impl ByteSource for ScriptedSource {
        async fn next_bytes(&mut self) -> Result<Option<Bytes>, String> {
            // Each chunk arrives separately.
            tokio::task::yield_now().await;
            let _ = self.asked.send(());
            Ok(self.portions.next())
        }
    }

    fn limits(deadline: Instant) -> TurnLimits<'static> {
        TurnLimits::new(deadline, LONG)
    }

    /// A single-threaded runtime, idle unless the test waits on it.
    fn single_threaded_runtime() -> tokio::runtime::Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    fn start_reading(portions: &[&'static str]) -> (ReaderThread, ArrivalReceiver, mpsc::Receiver<()>) {
        let portions: Vec<Bytes> = portions.iter().map(|text| Bytes::from_static(text.as_bytes())).collect();
        let (asked, told) = mpsc::channel();
        let (thread, (arriving, arrivals)) = (ReaderThread::default(), arrival_channel(Instant::now()));
        let source = ScriptedSource { portions: portions.into_iter(), asked };
        thread.handle().unwrap().spawn(arriving.forward(source));
        (thread, arrivals, told)
    }

    #[test]
    fn timestamps_do_not_depend_on_processing() {
        let (_thread, mut arrivals, told) = start_reading(&["a", "b", "c"]);
        let runtime = single_threaded_runtime();
        // Everything arrives before the conversation reads: four reads, the last one for the end.
        (0..4).for_each(|_| told.recv_timeout(LONG).unwrap());
        assert!(told.recv_timeout(LONG).is_err(), "reading has stopped");
        let all_there = Instant::now();
        let mut heard = Vec::new();
        while let Some(bytes) = runtime.block_on(arrivals.next_bytes(limits(all_there + LONG))).unwrap() {
            heard.extend_from_slice(&bytes);
            assert!(arrivals.last_arrival() <= all_there, "it had arrived before it was looked at");
        }
        assert_eq!(heard, b"abc");
        assert!(arrivals.last_arrival() <= all_there);
    }

    #[test]
    fn accepts_bytes_that_arrived_before_the_deadline() {
        let (_thread, mut arrivals, told) = start_reading(&["in time"]);
        let runtime = single_threaded_runtime();
        (0..2).for_each(|_| told.recv_timeout(LONG).unwrap());
        assert!(told.recv_timeout(LONG).is_err());
        let deadline = Instant::now();
        let taken = runtime.block_on(arrivals.next_bytes(limits(deadline)));
        assert_eq!(taken.unwrap().as_deref(), Some(&b"in time"[..]));
        let (_thread, mut arrivals, told) = start_reading(&["too late"]);
        (0..2).for_each(|_| told.recv_timeout(LONG).unwrap());
        assert!(told.recv_timeout(LONG).is_err());
        let taken = runtime.block_on(arrivals.next_bytes(limits(deadline)));
        assert!(matches!(taken, Err(ReadError::Deadline)), "{taken:?}");
    }

    /// A source that returns bytes forever and counts them.
    struct EndlessSource(Arc<AtomicUsize>);

    impl ByteSource for EndlessSource {
        async fn next_bytes(&mut self) -> Result<Option<Bytes>, String> {
            self.0.fetch_add(1000, Ordering::SeqCst);
            Ok(Some(Bytes::from_static(&[b'x'; 1000])))
        }
    }

    #[test]
    fn stops_reading_ahead_when_the_channel_is_full() {
        let (thread, (arriving, mut arrivals)) = (ReaderThread::default(), arrival_channel(Instant::now()));
        let read = Arc::new(AtomicUsize::new(0));
        let handle = thread.handle().unwrap();
        let reads = handle.spawn(arriving.forward(EndlessSource(read.clone())));
        // Tasks of the thread take turns; after this many turns the reader is blocked.
        let runtime = single_threaded_runtime();
        runtime.block_on(async {
            for _ in 0..1_000 {
                handle.spawn(tokio::task::yield_now()).await.unwrap();
            }
        });
        let most = (CHANNEL_CAPACITY + 2) * (CHUNK_BYTES + 1000);
        let seen = read.load(Ordering::SeqCst);
        assert!(seen <= most, "{seen} bytes were read ahead");
        let taken = runtime.block_on(arrivals.next_bytes(limits(Instant::now() + LONG)));
        assert_eq!(
            taken.unwrap().map(|bytes| bytes.len()),
            Some(CHUNK_BYTES),
            "chunks are large but bounded"
        );
        drop(arrivals);
        runtime
            .block_on(async { tokio::time::timeout(LONG, reads).await })
            .expect("the receiver was dropped")
            .unwrap();
    }
}
