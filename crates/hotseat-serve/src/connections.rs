//! Open connections of all clients: a bounded number, of which idle ones make room for new ones.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore};

/// Room for connections. A client that opens many of them and sends nothing must not keep others out.
pub(super) struct ConnectionRoom {
    permits: Arc<Semaphore>,
    /// Connections in the order in which they were opened.
    open: Mutex<VecDeque<Weak<OpenConnection>>>,
    capacity: usize,
}

/// One connection. It leaves the room when it is dropped.
pub(super) struct OpenConnection {
    _permit: OwnedSemaphorePermit,
    /// Number of its requests that are not answered completely.
    busy: AtomicUsize,
    is_closing: AtomicBool,
    close: Notify,
}

impl ConnectionRoom {
    pub(super) fn new(capacity: usize) -> ConnectionRoom {
        let capacity = capacity.clamp(1, Semaphore::MAX_PERMITS);
        ConnectionRoom { permits: Arc::new(Semaphore::new(capacity)), open: Mutex::default(), capacity }
    }

    /// Adds a connection. Without room, the oldest idle connection is closed; if all are busy, this waits until one ends.
    pub(super) async fn enter(&self) -> Result<Arc<OpenConnection>, AcquireError> {
        let permit = match self.permits.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                self.close_idle();
                self.permits.clone().acquire_owned().await?
            }
        };
        let connection = Arc::new(OpenConnection {
            _permit: permit,
            busy: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
            close: Notify::new(),
        });
        let mut open = self.lock();
        if open.len() >= 2 * self.capacity {
            open.retain(|connection| connection.strong_count() > 0);
        }
        open.push_back(Arc::downgrade(&connection));
        Ok(connection)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Weak<OpenConnection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close_idle(&self) {
        let open = self.lock();
        let connections = open.iter().filter_map(Weak::upgrade);
        for connection in connections.filter(|connection| connection.busy.load(Ordering::Acquire) == 0) {
            if !connection.is_closing.swap(true, Ordering::AcqRel) {
                return connection.close.notify_one();
            }
        }
    }
}

impl OpenConnection {
    /// Resolves when the connection has to make room.
    pub(super) async fn wait_closed(&self) {
        self.close.notified().await;
    }

    /// Marks the connection as busy until the value is dropped.
    pub(super) fn begin_request(self: Arc<Self>) -> BusyConnection {
        self.busy.fetch_add(1, Ordering::AcqRel);
        BusyConnection(self)
    }
}

/// A request of a connection that is not answered completely.
pub(super) struct BusyConnection(Arc<OpenConnection>);

impl BusyConnection {
    /// Returns a body that keeps the connection busy until it is sent.
    pub(super) fn until_sent(self, body: Body) -> AnswerBody {
        AnswerBody { body, _busy: self }
    }
}

impl Drop for BusyConnection {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

pub(super) struct AnswerBody {
    body: Body,
    _busy: BusyConnection,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
