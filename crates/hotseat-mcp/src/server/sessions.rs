//! Sessions of clients with a handshake.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};
use tokio::sync::{Notify, oneshot};

use super::stdio::StdioLink;
use crate::answer::LOG_LEVELS;
use crate::frame::RpcError;
use crate::lock;
use crate::revision::ProtocolRevision;

/// Maximum number of open requests of a session, in each direction.
const MAX_OPEN_REQUESTS: usize = 256;

/// A session between `initialize` and its end.
pub(super) struct ClientSession {
    pub(super) revision: ProtocolRevision,
    /// Name of the revision that the server announced; a proxied program may announce an unknown one.
    pub(super) version: String,
    /// Capabilities of the client.
    pub(super) capabilities: Map<String, Value>,
    /// Program of a proxied server that serves this session.
    pub(super) link: Option<Arc<StdioLink>>,
    /// Index of the least severe level of log messages that the client wants.
    log_level: AtomicUsize,
    /// Requests of the server that wait for an answer of the client.
    asked: Mutex<HashMap<String, oneshot::Sender<Result<Value, RpcError>>>>,
    next_question: AtomicU64,
    /// Running requests of the client that it may cancel, by their identifiers as JSON.
    running: Mutex<HashMap<String, Arc<Notify>>>,
}

impl ClientSession {
    pub(super) fn new(
        revision: ProtocolRevision,
        version: &str,
        capabilities: Map<String, Value>,
        link: Option<Arc<StdioLink>>,
    ) -> ClientSession {
        ClientSession {
            revision,
            version: version.to_string(),
            capabilities,
            link,
            log_level: AtomicUsize::new(0),
            asked: Mutex::default(),
            next_question: AtomicU64::new(1),
            running: Mutex::default(),
        }
    }

    /// Sets the least severe level of log messages.
    pub(super) fn set_log_level(&self, level: &str) -> bool {
        let known = LOG_LEVELS.iter().position(|known| *known == level);
        if let Some(index) = known {
            self.log_level.store(index, Ordering::Relaxed);
        }
        known.is_some()
    }

    pub(super) fn log_level(&self) -> usize {
        self.log_level.load(Ordering::Relaxed)
    }

    /// Registers a request to the client. Returns its identifier and the future answer, or `None` if too many
    /// requests are open.
    pub(super) fn register_question(&self) -> Option<(String, oneshot::Receiver<Result<Value, RpcError>>)> {
        let id = format!("hotseat-{}", self.next_question.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        let mut asked = lock(&self.asked);
        asked.retain(|_, sender| !sender.is_closed());
        if asked.len() >= MAX_OPEN_REQUESTS {
            return None;
        }
        asked.insert(id.clone(), sender);
        Some((id, answer))
    }

    /// Passes the answer of the client on. Returns whether it was expected.
    pub(super) fn resolve_question(&self, id: &Value, outcome: Result<Value, RpcError>) -> bool {
        let sender = id.as_str().and_then(|id| lock(&self.asked).remove(id));
        sender.is_some_and(|sender| sender.send(outcome).is_ok())
    }

    /// Registers a request of the client as running until the guard is dropped.
    pub(super) fn register_running(self: &Arc<Self>, id: &Value) -> RunningRequest {
        let (key, cancelled) = (id.to_string(), Arc::new(Notify::new()));
        lock(&self.running).insert(key.clone(), cancelled.clone());
        RunningRequest { session: self.clone(), key, cancelled }
    }

    /// Cancels a running request.
    pub(super) fn cancel(&self, id: &Value) {
        if let Some(cancelled) = lock(&self.running).get(&id.to_string()) {
            cancelled.notify_one();
        }
    }
}

/// A request that the client may cancel.
pub(super) struct RunningRequest {
    session: Arc<ClientSession>,
    key: String,
    cancelled: Arc<Notify>,
}

impl RunningRequest {
    /// Resolves when the client cancels the request.
    pub(super) async fn wait_cancelled(&self) {
        self.cancelled.notified().await;
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        lock(&self.session.running).remove(&self.key);
    }
}
