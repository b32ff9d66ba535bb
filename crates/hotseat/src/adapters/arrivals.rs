//! What agents send is received on a thread that does nothing else, and stamped there.
//!
//! Conversations take events in, decide and report on other threads. However long that takes, for one of them or for
//! all, bytes of the others carry the time at which they arrived: verdicts about time are made of these stamps.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use hotseat_trace::{Failure, FailureKind};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::Limits;

/// About so many bytes are passed on at a time, where so many are there.
const PORTION: usize = 64 * 1024;
/// How many portions may wait to be taken in. Where a conversation is slower than its agent, reading waits, and with it
/// the agent.
const WAITING: usize = 4;
/// How long a conversation may work on what it has received before others get their turn.
const SLICE: Duration = Duration::from_millis(2);

/// The thread that reads, begun when it is first needed. It ends when this value is dropped, and with it every
/// connection.
#[derive(Default)]
pub struct ReadingThread(OnceLock<Result<Running, String>>);

struct Running {
    handle: Handle,
    /// Dropped to end the thread.
    _goes_on: oneshot::Sender<()>,
}

/// Bytes in the order and with the times of their arrival.
#[derive(Debug)]
pub struct Arrivals {
    receive: mpsc::Receiver<Arrival>,
    /// What has arrived and was not taken yet.
    rest: Bytes,
    /// How it ended, once all that came before was taken.
    end: Option<Result<(), String>>,
    at: Instant,
    /// Since when the conversation works without a pause.
    works_since: Option<Instant>,
}

/// A portion of bytes, and how the source ended, if it ended behind them.
#[derive(Debug)]
struct Arrival {
    at: Instant,
    bytes: Bytes,
    end: Option<Result<(), String>>,
}

/// Why the next bytes did not come.
#[derive(Debug)]
pub enum ReadError {
    /// The connection broke; the words say how.
    Broken(String),
    /// The deadline of the turn has passed.
    Deadline,
    /// The agent has sent or done more than it may.
    Limit(Failure),
    /// Nothing came for as long as nothing may come.
    Silent,
}

/// Where bytes come from.
pub(super) trait Source: Send + 'static {
    /// The next bytes; none at the end. Nothing is lost when the future is dropped.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, String>> + Send;
}

impl Source for reqwest::Response {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        self.chunk().await.map_err(|error| super::http::causes(&error))
    }
}

/// The output of a process.
pub(super) struct Pipe<R>(pub R);

impl<R: AsyncRead + Unpin + Send + 'static> Source for Pipe<R> {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        let mut bytes = BytesMut::with_capacity(8 * 1024);
        let read = self.0.read_buf(&mut bytes).await.map_err(|error| error.to_string())?;
        Ok((read > 0).then(|| bytes.freeze()))
    }
}

impl ReadingThread {
    /// Its runtime: connections that are opened there, and tasks that are begun there, belong to the thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn handle(&self) -> Result<&Handle, Failure> {
        let running = self.0.get_or_init(|| begin().map_err(|error| error.to_string())).as_ref();
        running.map(|running| &running.handle).map_err(|words| {
            Failure::new(FailureKind::Unreachable, format!("cannot start the thread that reads: {words}"))
        })
    }
}

fn begin() -> std::io::Result<Running> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let (goes_on, over) = oneshot::channel();
    let reads = move || drop(runtime.block_on(over));
    std::thread::Builder::new().name("reading".to_string()).spawn(reads)?;
    Ok(Running { handle, _goes_on: goes_on })
}

impl fmt::Debug for ReadingThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadingThread")
    }
}

/// Where arrivals are put, and where they are taken from; `at` is the time of what came before the first of them.
pub(super) fn arrivals(at: Instant) -> (Arriving, Arrivals) {
    let (send, receive) = mpsc::channel(WAITING);
    (Arriving(send), Arrivals { receive, rest: Bytes::new(), end: None, at, works_since: None })
}

/// Where arrivals are put.
pub(super) struct Arriving(mpsc::Sender<Arrival>);

impl Arriving {
    /// Passes on whatever comes, until the source ends or nobody wants it any more.
    pub async fn all_of(self, mut source: impl Source) {
        loop {
            let first = tokio::select! {
                biased;
                next = source.next() => next,
                () = self.0.closed() => return,
            };
            let at = Instant::now();
            let (bytes, end) = together(first, &mut source);
            let is_last = end.is_some();
            if self.0.send(Arrival { at, bytes, end }).await.is_err() || is_last {
                return;
            }
        }
    }
}

/// What has come, with what is there behind it already.
fn together(
    first: Result<Option<Bytes>, String>,
    source: &mut impl Source,
) -> (Bytes, Option<Result<(), String>>) {
    let first = match first {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return (Bytes::new(), Some(Ok(()))),
        Err(words) => return (Bytes::new(), Some(Err(words))),
    };
    let mut all = None;
    while all.as_ref().map_or(first.len(), BytesMut::len) < PORTION {
        let end = match source.next().now_or_never() {
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

impl Arrivals {
    /// When the last bytes that were taken arrived, or the end, once that was found.
    pub fn at(&self) -> Instant {
        self.at
    }

    /// The next bytes; none at an orderly end. What arrived before the deadline is given however late it is asked for.
    ///
    /// # Errors
    /// When the connection breaks or the limits pass.
    pub async fn next(&mut self, limits: Limits<'_>) -> Result<Option<Bytes>, ReadError> {
        if self.works_since.is_some_and(|since| since.elapsed() > SLICE) {
            self.works_since = None;
            tokio::task::yield_now().await;
        }
        let bytes = self.wait(limits).await;
        self.works_since.get_or_insert_with(Instant::now);
        bytes
    }

    /// The next bytes, where they have arrived; nothing is waited for.
    pub fn there(&mut self) -> Option<Bytes> {
        if self.rest.is_empty() && self.end.is_none() {
            let arrived = self.receive.try_recv().ok()?;
            (self.at, self.rest, self.end) = (arrived.at, arrived.bytes, arrived.end);
        }
        self.portion()
    }

    /// The first of what was not taken yet. A portion of a fast agent may be larger than others are given at a time.
    fn portion(&mut self) -> Option<Bytes> {
        let size = self.rest.len().min(PORTION);
        (size > 0).then(|| self.rest.split_to(size))
    }

    async fn wait(&mut self, limits: Limits<'_>) -> Result<Option<Bytes>, ReadError> {
        if let Some(bytes) = self.portion() {
            return Ok(Some(bytes));
        }
        if let Some(end) = &self.end {
            return end.clone().map(|()| None).map_err(ReadError::Broken);
        }
        let arrived = match self.receive.try_recv() {
            Ok(arrived) => Some(arrived),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                self.works_since = None;
                let until = limits.deadline.min(Instant::now() + limits.idle);
                match timeout_at(until, self.receive.recv()).await {
                    Ok(arrived) => arrived,
                    Err(_) if limits.deadline <= Instant::now() => return Err(ReadError::Deadline),
                    Err(_) => return Err(ReadError::Silent),
                }
            }
        };
        self.take(arrived, limits)
    }

    fn take(&mut self, arrived: Option<Arrival>, limits: Limits<'_>) -> Result<Option<Bytes>, ReadError> {
        let Some(Arrival { at, bytes, end }) = arrived else {
            return Err(ReadError::Broken("the thread that reads has ended".to_string()));
        };
        if at > limits.deadline {
            return Err(ReadError::Deadline);
        }
        (self.at, self.rest, self.end) = (at, bytes, end);
        match (self.portion(), &self.end) {
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

    /// Gives the given portions one after the other, and tells of each time that it is asked.
    struct Told {
        portions: std::vec::IntoIter<Bytes>,
        asked: mpsc::Sender<()>,
    }

    impl Source for Told {
        async fn next(&mut self) -> Result<Option<Bytes>, String> {
            // Each portion arrives by itself, and not together with the one before.
            tokio::task::yield_now().await;
            let _ = self.asked.send(());
            Ok(self.portions.next())
        }
    }

    fn limits(deadline: Instant) -> Limits<'static> {
        Limits::within(deadline, LONG)
    }

    /// A runtime of one thread, which does nothing while the test does not wait.
    fn conversation() -> tokio::runtime::Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    fn reading(portions: &[&'static str]) -> (ReadingThread, Arrivals, mpsc::Receiver<()>) {
        let portions: Vec<Bytes> = portions.iter().map(|text| Bytes::from_static(text.as_bytes())).collect();
        let (asked, told) = mpsc::channel();
        let (thread, (arriving, arrivals)) = (ReadingThread::default(), arrivals(Instant::now()));
        let source = Told { portions: portions.into_iter(), asked };
        thread.handle().unwrap().spawn(arriving.all_of(source));
        (thread, arrivals, told)
    }

    #[test]
    fn stamps_do_not_wait_for_a_conversation_that_is_at_work() {
        let (_thread, mut arrivals, told) = reading(&["a", "b", "c"]);
        let runtime = conversation();
        // The conversation does something else until everything has arrived: four questions, the last for the end.
        (0..4).for_each(|_| told.recv_timeout(LONG).unwrap());
        assert!(told.recv_timeout(LONG).is_err(), "nobody reads any more");
        let all_there = Instant::now();
        let mut heard = Vec::new();
        while let Some(bytes) = runtime.block_on(arrivals.next(limits(all_there + LONG))).unwrap() {
            heard.extend_from_slice(&bytes);
            assert!(arrivals.at() <= all_there, "it had arrived before it was looked at");
        }
        assert_eq!(heard, b"abc");
        assert!(arrivals.at() <= all_there);
    }

    #[test]
    fn what_arrived_before_the_deadline_counts_however_late_it_is_taken_in() {
        let (_thread, mut arrivals, told) = reading(&["in time"]);
        let runtime = conversation();
        (0..2).for_each(|_| told.recv_timeout(LONG).unwrap());
        assert!(told.recv_timeout(LONG).is_err());
        let deadline = Instant::now();
        let taken = runtime.block_on(arrivals.next(limits(deadline)));
        assert_eq!(taken.unwrap().as_deref(), Some(&b"in time"[..]));
        let (_thread, mut arrivals, told) = reading(&["too late"]);
        (0..2).for_each(|_| told.recv_timeout(LONG).unwrap());
        assert!(told.recv_timeout(LONG).is_err());
        let taken = runtime.block_on(arrivals.next(limits(deadline)));
        assert!(matches!(taken, Err(ReadError::Deadline)), "{taken:?}");
    }

    /// Gives bytes for ever and counts them.
    struct Endless(Arc<AtomicUsize>);

    impl Source for Endless {
        async fn next(&mut self) -> Result<Option<Bytes>, String> {
            self.0.fetch_add(1000, Ordering::SeqCst);
            Ok(Some(Bytes::from_static(&[b'x'; 1000])))
        }
    }

    #[test]
    fn who_is_not_listened_to_is_not_read_for_ever() {
        let (thread, (arriving, mut arrivals)) = (ReadingThread::default(), arrivals(Instant::now()));
        let read = Arc::new(AtomicUsize::new(0));
        let handle = thread.handle().unwrap();
        let reads = handle.spawn(arriving.all_of(Endless(read.clone())));
        // Tasks of the thread take turns: once others have run so often, this one has come to a halt.
        let runtime = conversation();
        runtime.block_on(async {
            for _ in 0..1_000 {
                handle.spawn(tokio::task::yield_now()).await.unwrap();
            }
        });
        let most = (WAITING + 2) * (PORTION + 1000);
        let seen = read.load(Ordering::SeqCst);
        assert!(seen <= most, "{seen} bytes were read ahead");
        let taken = runtime.block_on(arrivals.next(limits(Instant::now() + LONG)));
        assert_eq!(
            taken.unwrap().map(|bytes| bytes.len()),
            Some(PORTION),
            "much comes at a time, and not too much"
        );
        drop(arrivals);
        runtime
            .block_on(async { tokio::time::timeout(LONG, reads).await })
            .expect("nobody wants more")
            .unwrap();
    }
}
