//! Receives agent output on a dedicated thread and timestamps it there.
//!
//! Conversations process events and evaluate checks on other threads. However long that takes, received bytes
//! carry their arrival time, so time assertions are not distorted by load.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;
use std::{fmt, io};

use bytes::{Bytes, BytesMut};
use hotseat_http::{HttpRequestError, IncomingResponse};
use hotseat_trace::{AttemptFailure, FailureKind};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::connection::TurnLimits;

/// Approximate maximum size of the bytes passed on at a time.
const CHUNK_BYTES: usize = 64 * 1024;
/// Capacity of the channel in batches. If a conversation is slower than its agent, reading pauses.
const CHANNEL_CAPACITY: usize = 4;
/// Maximum time that a batch is collected before it is passed on.
const MAX_COLLECT_TIME: Duration = Duration::from_millis(1);
/// Bytes that arrive within this time have the time of the first of them: a connection passes on what one read
/// of its socket has brought in many parts.
const MIN_PIECE_INTERVAL: Duration = Duration::from_micros(100);
/// Maximum time a conversation may process received data before it yields to others.
const YIELD_INTERVAL: Duration = Duration::from_millis(2);

/// The reader thread, started when first needed. Dropping this value ends it and all its connections.
#[derive(Default)]
pub struct ReaderThread(OnceLock<Result<RunningReader, ReaderError>>);

struct RunningReader {
    handle: Handle,
    /// Dropping it ends the thread.
    _keep_alive: oneshot::Sender<()>,
}

/// Received bytes in order, with their arrival times.
#[derive(Debug)]
pub struct ArrivalReceiver {
    receive: mpsc::Receiver<ArrivalBatch>,
    /// The part of the last batch that was not taken yet.
    pending: ArrivalBatch,
    at: Instant,
    /// Time since which the conversation has been processing without a pause.
    busy_since: Option<Instant>,
}

/// Pieces that are passed on together, since they arrived within a short time.
#[derive(Debug, Default)]
struct ArrivalBatch {
    pieces: VecDeque<ArrivedPiece>,
    /// The end of the source and its time, if it follows the pieces.
    end: Option<(Instant, SourceEnd)>,
}

/// Bytes that arrived at the same time.
#[derive(Debug)]
struct ArrivedPiece {
    at: Instant,
    bytes: Bytes,
}

/// Regular end of a source, or the reason why it broke.
type SourceEnd = Result<(), SourceError>;

/// Result of a read: bytes, a regular end, or the reason why the source broke.
type SourceRead = Result<Option<Bytes>, SourceError>;

/// Reason why a source broke.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SourceError {
    /// The connection broke.
    #[error("{}", hotseat_http::root_cause(&**.0))]
    Connection(#[source] Arc<HttpRequestError>),
    /// The output of a process cannot be read.
    #[error("{0}")]
    Pipe(#[source] Arc<io::Error>),
    /// The reader thread has ended.
    #[error("the reader thread has ended")]
    ThreadEnded,
}

/// Error of a read.
#[derive(Debug)]
pub enum ReadError {
    /// The source broke.
    Broken(SourceError),
    /// The deadline of the turn has passed.
    Deadline,
    /// The agent exceeded a traffic limit.
    Limit(AttemptFailure),
    /// The idle limit has passed without data.
    Idle,
}

pub(crate) trait ByteSource: Send + 'static {
    /// Returns the next bytes; `None` at the end. Cancel-safe.
    fn next_bytes(&mut self) -> impl Future<Output = SourceRead> + Send;
}

impl ByteSource for IncomingResponse {
    async fn next_bytes(&mut self) -> SourceRead {
        IncomingResponse::next_bytes(self).await.map_err(|error| SourceError::Connection(Arc::new(error)))
    }
}

/// The output of a process.
pub(crate) struct OutputPipe<R>(pub R);

impl<R: AsyncRead + Unpin + Send + 'static> ByteSource for OutputPipe<R> {
    async fn next_bytes(&mut self) -> SourceRead {
        let mut bytes = BytesMut::with_capacity(8 * 1024);
        let read = self.0.read_buf(&mut bytes).await.map_err(|error| SourceError::Pipe(Arc::new(error)))?;
        Ok((read > 0).then(|| bytes.freeze()))
    }
}

impl ReaderThread {
    /// Returns the runtime handle: connections and tasks created with it belong to the thread. Fails if the
    /// thread cannot be started.
    pub(crate) fn handle(&self) -> Result<&Handle, ReaderError> {
        let running = self.0.get_or_init(|| start_reader().map_err(|error| ReaderError(Arc::new(error))));
        running.as_ref().map(|running| &running.handle).map_err(ReaderError::clone)
    }
}

/// The reader thread cannot be started.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot start the reader thread: {0}")]
pub struct ReaderError(#[source] Arc<io::Error>);

impl From<ReaderError> for AttemptFailure {
    fn from(error: ReaderError) -> AttemptFailure {
        AttemptFailure::new(FailureKind::Unreachable, error.to_string())
    }
}

fn start_reader() -> io::Result<RunningReader> {
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
    (ArrivalSender(send), ArrivalReceiver { receive, pending: ArrivalBatch::default(), at, busy_since: None })
}

/// Sends arrivals.
pub(crate) struct ArrivalSender(mpsc::Sender<ArrivalBatch>);

impl ArrivalSender {
    /// Forwards all bytes until the source ends or the receiver is dropped.
    pub async fn forward(self, mut source: impl ByteSource) {
        loop {
            let first = tokio::select! {
                biased;
                next = source.next_bytes() => next,
                () = self.0.closed() => return,
            };
            let batch = ArrivalBatch::collect(first, &mut source).await;
            let is_last = batch.end.is_some();
            if self.0.send(batch).await.is_err() || is_last {
                return;
            }
        }
    }

    /// Like [`ArrivalSender::forward`], but first adds what has arrived already to the receiver, and then calls
    /// `deliver` with it. So a short response takes one message between threads. Stops if `deliver` returns
    /// false.
    pub async fn forward_with(
        self,
        mut source: impl ByteSource,
        mut receiver: ArrivalReceiver,
        deliver: impl FnOnce(ArrivalReceiver) -> bool,
    ) {
        if let Some(first) = next_if_arrived(&mut source).await {
            receiver.pending = ArrivalBatch::collect(first, &mut source).await;
        }
        let is_whole = receiver.pending.end.is_some();
        if deliver(receiver) && !is_whole {
            self.forward(source).await;
        }
    }
}

impl ArrivalBatch {
    /// Collects the first bytes and those that follow immediately. Bytes that arrive at almost the same time are
    /// one piece.
    async fn collect(first: SourceRead, source: &mut impl ByteSource) -> ArrivalBatch {
        let started = Instant::now();
        let (mut batch, mut piece, mut size) = (ArrivalBatch::default(), PieceBuilder::new(started), 0);
        let (mut at, mut next) = (started, Some(first));
        while let Some(read) = next {
            match read {
                Ok(Some(bytes)) => {
                    if at - piece.at >= MIN_PIECE_INTERVAL {
                        batch.pieces.extend(piece.finish());
                        piece = PieceBuilder::new(at);
                    }
                    size += bytes.len();
                    if !bytes.is_empty() {
                        piece.parts.push(bytes);
                    }
                }
                Ok(None) => batch.end = Some((at, Ok(()))),
                Err(error) => batch.end = Some((at, Err(error))),
            }
            if batch.end.is_some() || size >= CHUNK_BYTES || at - started >= MAX_COLLECT_TIME {
                break;
            }
            next = next_if_arrived(source).await;
            at = Instant::now();
        }
        batch.pieces.extend(piece.finish());
        batch
    }
}

/// Bytes that arrive at almost the same time.
struct PieceBuilder {
    at: Instant,
    parts: Vec<Bytes>,
}

impl PieceBuilder {
    fn new(at: Instant) -> PieceBuilder {
        PieceBuilder { at, parts: Vec::new() }
    }

    /// Joins the bytes. `None` without any.
    fn finish(mut self) -> Option<ArrivedPiece> {
        let bytes = match self.parts.len() {
            0 | 1 => self.parts.pop()?,
            _ => Bytes::from(self.parts.concat()),
        };
        Some(ArrivedPiece { at: self.at, bytes })
    }
}

/// Returns the next bytes if they arrive while the other tasks of the thread run once: a connection is a task of
/// its own that passes on its bytes piece by piece.
async fn next_if_arrived(source: &mut impl ByteSource) -> Option<SourceRead> {
    let mut next = pin!(source.next_bytes());
    let mut has_yielded = false;
    poll_fn(|context| match next.as_mut().poll(context) {
        Poll::Ready(read) => Poll::Ready(Some(read)),
        Poll::Pending if has_yielded => Poll::Ready(None),
        Poll::Pending => {
            has_yielded = true;
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

impl ArrivalReceiver {
    /// Returns the arrival time of the last bytes taken, or of the end once it was returned.
    pub fn last_arrival(&self) -> Instant {
        self.at
    }

    /// Returns the next bytes; `None` at a regular end. Bytes that arrived before the deadline are returned
    /// even if read later. Fails if the connection breaks or a limit passes.
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
        if self.pending.is_empty() {
            self.pending = self.receive.try_recv().ok()?;
        }
        let piece = self.take_piece()?;
        self.at = piece.at;
        Some(piece.bytes)
    }

    /// Returns the next pending bytes, at most [`CHUNK_BYTES`].
    fn take_piece(&mut self) -> Option<ArrivedPiece> {
        let first = self.pending.pieces.front_mut()?;
        if first.bytes.len() > CHUNK_BYTES {
            return Some(ArrivedPiece { at: first.at, bytes: first.bytes.split_to(CHUNK_BYTES) });
        }
        self.pending.pieces.pop_front()
    }

    async fn wait_for_bytes(&mut self, limits: TurnLimits<'_>) -> Result<Option<Bytes>, ReadError> {
        if self.pending.is_empty() {
            // Most pieces arrived with another one, so their future should be small.
            self.pending = Box::pin(self.next_batch(limits)).await?;
        }
        let next = match (self.take_piece(), &self.pending.end) {
            (Some(ArrivedPiece { at, bytes }), _) => (at, Ok(Some(bytes))),
            (None, Some((at, end))) => (*at, end.clone().map(|()| None).map_err(ReadError::Broken)),
            (None, None) => return Ok(Some(Bytes::new())),
        };
        let (at, read) = next;
        if at > limits.deadline {
            return Err(ReadError::Deadline);
        }
        self.at = at;
        read
    }

    async fn next_batch(&mut self, limits: TurnLimits<'_>) -> Result<ArrivalBatch, ReadError> {
        let batch = match self.receive.try_recv() {
            Ok(batch) => Some(batch),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                self.busy_since = None;
                let until = limits.deadline.min(Instant::now() + limits.idle);
                match timeout_at(until, self.receive.recv()).await {
                    Ok(batch) => batch,
                    Err(_) if limits.deadline <= Instant::now() => return Err(ReadError::Deadline),
                    Err(_) => return Err(ReadError::Idle),
                }
            }
        };
        batch.ok_or_else(|| ReadError::Broken(SourceError::ThreadEnded))
    }
}

impl ArrivalBatch {
    fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.end.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    /// A source that returns the given chunks, at least this time apart, and reports each read.
    struct ScriptedSource {
        portions: std::vec::IntoIter<Bytes>,
        interval: Duration,
        asked: mpsc::Sender<()>,
    }

    impl ByteSource for ScriptedSource {
        async fn next_bytes(&mut self) -> SourceRead {
            // Each chunk arrives separately.
            tokio::task::yield_now().await;
            let started = Instant::now();
            while started.elapsed() < self.interval {
                std::thread::yield_now();
            }
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
        let source = ScriptedSource { portions: portions.into_iter(), interval: Duration::ZERO, asked };
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

    /// Collects a batch of three portions that arrive at this interval. A busy machine may interrupt it, so that
    /// it is not complete; then it starts anew.
    fn collect_three(interval: Duration) -> ArrivalBatch {
        (0..1_000).map(|_| try_to_collect_three(interval)).find(|batch| batch.end.is_some()).unwrap()
    }

    fn try_to_collect_three(interval: Duration) -> ArrivalBatch {
        let (send, receive) = mpsc::sync_channel(1);
        let portions = ["a", "b", "c"].map(|text| Bytes::from_static(text.as_bytes()));
        let (asked, _told) = mpsc::channel();
        let source = ScriptedSource { portions: Vec::from(portions).into_iter(), interval, asked };
        let (arriving, arrivals) = arrival_channel(Instant::now());
        let delivered = |receiver: ArrivalReceiver| send.send(receiver).is_ok();
        single_threaded_runtime().block_on(arriving.forward_with(source, arrivals, delivered));
        receive.recv_timeout(LONG).unwrap().pending
    }

    #[test]
    fn a_batch_keeps_the_time_of_each_piece() {
        let ArrivalBatch { pieces, end } = collect_three(MIN_PIECE_INTERVAL);
        let received: Vec<&Bytes> = pieces.iter().map(|piece| &piece.bytes).collect();
        assert_eq!(received, ["a", "b", "c"]);
        assert!(pieces[0].at < pieces[1].at && pieces[1].at < pieces[2].at, "{pieces:?}");
        assert!(end.is_some_and(|(at, end)| at > pieces[2].at && end.is_ok()));
    }

    #[test]
    fn bytes_that_arrive_at_the_same_time_are_one_piece() {
        // A busy machine may interrupt the source, but not every time.
        let joined = (0..1_000).map(|_| collect_three(Duration::ZERO)).find(|batch| batch.pieces.len() == 1);
        assert_eq!(joined.unwrap().pieces[0].bytes, "abc");
    }

    /// A source that returns bytes forever and counts them.
    struct EndlessSource(Arc<AtomicUsize>);

    impl ByteSource for EndlessSource {
        async fn next_bytes(&mut self) -> SourceRead {
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
