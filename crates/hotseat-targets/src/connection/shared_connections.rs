//! Which connections the conversations of a run share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hotseat_http::HttpClients;
use tokio::time::Instant;
use url::{Position, Url};

/// Time that a server must keep the connection of an ended conversation before another one may use it. Servers that close a
/// connection after each answer do so earlier.
const MIN_KEPT_TIME: Duration = Duration::from_millis(100);

/// Connections to the servers of a run.
///
/// Some servers close a connection after an answer without saying so, and a further request there gets no answer. So each
/// conversation has connections of its own until the server has answered a further request on one.
#[derive(Debug, Default)]
pub(super) struct SharedConnections {
    clients: Arc<HttpClients>,
    /// By host and port.
    servers: Mutex<HashMap<String, ServerHabit>>,
}

/// What is known of a server.
#[derive(Debug)]
enum ServerHabit {
    /// Nothing yet. These are the connections of a conversation that ended at this time.
    Unknown { idle: Arc<HttpClients>, since: Instant },
    /// It answers further requests on a connection.
    KeepsConnections,
    /// It has closed a connection without saying so.
    ClosesConnections,
}

/// Connections of one conversation.
#[derive(Debug)]
pub(super) struct OwnConnections {
    shared: Arc<SharedConnections>,
    /// The server of the first request, and the connections.
    used: Mutex<Option<(String, Arc<HttpClients>)>>,
}

impl SharedConnections {
    /// Returns the clients that all conversations share.
    pub(super) fn clients(&self) -> &Arc<HttpClients> {
        &self.clients
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<String, ServerHabit>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnConnections {
    pub(super) fn new(shared: Arc<SharedConnections>) -> OwnConnections {
        OwnConnections { shared, used: Mutex::default() }
    }

    /// Returns the clients for a request of this conversation.
    pub(super) fn clients_for(&self, url: &Url) -> Arc<HttpClients> {
        let server = server_of(url);
        let mut servers = self.shared.servers();
        if let Some(ServerHabit::KeepsConnections) = servers.get(server) {
            return self.shared.clients.clone();
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, own)) = &*used {
            return own.clone();
        }
        let is_kept = |habit: &mut ServerHabit| matches!(habit, ServerHabit::Unknown { since, .. } if since.elapsed() >= MIN_KEPT_TIME);
        let kept = match servers.get_mut(server).is_some_and(is_kept) {
            true => servers.remove(server),
            false => None,
        };
        let own = match kept {
            Some(ServerHabit::Unknown { idle, .. }) => idle,
            _ => Arc::new(self.shared.clients.with_own_connections()),
        };
        *used = Some((server.to_string(), own.clone()));
        own
    }

    /// Records that the server answered a further request on a connection.
    pub(super) fn record_kept(&self, url: &Url) {
        let mut servers = self.shared.servers();
        match servers.get_mut(server_of(url)) {
            Some(ServerHabit::KeepsConnections | ServerHabit::ClosesConnections) => {}
            Some(habit) => *habit = ServerHabit::KeepsConnections,
            None => drop(servers.insert(server_of(url).to_string(), ServerHabit::KeepsConnections)),
        }
    }

    /// Records that the server closed a connection without saying so.
    pub(super) fn record_closed(&self, url: &Url) {
        self.shared.servers().insert(server_of(url).to_string(), ServerHabit::ClosesConnections);
    }
}

impl Drop for OwnConnections {
    fn drop(&mut self) {
        let used = self.used.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((server, idle)) = used.take() {
            let unknown = || ServerHabit::Unknown { idle, since: Instant::now() };
            self.shared.servers().entry(server).or_insert_with(unknown);
        }
    }
}

/// Returns host and port of an address.
fn server_of(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::BeforePath]
}
