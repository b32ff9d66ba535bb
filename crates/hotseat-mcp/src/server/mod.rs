//! The servers of a run and their conversations.

mod calls;
mod catalog;
mod contents;
mod faults;
mod headers;
mod http;
mod observer;
mod outbound;
mod program_failure;
mod proxy;
mod replay;
mod requests;
mod rpc_request;
mod sessions;
mod signing;
mod state;
mod stdio;
mod suspended;
mod tasks;
mod upstream;
mod url_upstream;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use hotseat_serve::LoopbackServer;
use tokio::sync::mpsc;

use crate::answer::ToolAnswerer;
use crate::definition::{DefinitionProblem, McpOptions, ServerDefinition, ServerKind, Upstream};
use crate::event::{AwaitedRequest, LateCall, McpEvent, McpEventKind};
use crate::lock;
use crate::recording::{McpExchange, McpRecording, ReplayTable};
use catalog::ToolCatalog;
use state::{AnswerSource, CommandUpstream, ConversationState, RunState, ServerState};
use url_upstream::UrlUpstream;

/// Error of a definition or of the listener.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The listener or its thread cannot be started.
    #[error("cannot serve MCP on {address}: {source}")]
    Listen {
        /// Address of the listener.
        address: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// A definition is invalid.
    #[error("MCP server `{server}`: {source}")]
    Definition {
        /// Name of the server.
        server: String,
        /// What is wrong.
        source: DefinitionProblem,
    },
}

/// The servers of a run: one listener on the loopback interface, with a thread of its own. Dropping it closes all
/// conversations.
pub struct McpServers {
    run: Arc<RunState>,
    listener: LoopbackServer,
    definitions: Vec<ServerDefinition>,
}

impl McpServers {
    /// Starts the listener. Programs of proxies start with the first request of a conversation. Fails if a
    /// definition is invalid, two have the same name, or the listener cannot be started.
    pub fn start(definitions: Vec<ServerDefinition>, options: McpOptions) -> Result<McpServers, McpError> {
        server_states(&definitions)?;
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
        let run = Arc::new(RunState::new(options));
        let listener = http::start(run.clone(), wanted.port())
            .map_err(|source| McpError::Listen { address: wanted, source })?;
        Ok(McpServers { run, listener, definitions })
    }

    /// Address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Opens a conversation. `definitions` replace those of the run with the same names, and add to them.
    /// Fails if a definition is invalid.
    pub fn open_conversation(
        &self,
        id: &str,
        answerer: Arc<dyn ToolAnswerer>,
        definitions: Vec<ServerDefinition>,
    ) -> Result<McpConversation, McpError> {
        let replaced = |name: &str| definitions.iter().any(|definition| definition.name == name);
        let kept = self.definitions.iter().filter(|definition| !replaced(&definition.name)).cloned();
        let all: Vec<_> = kept.chain(definitions.iter().cloned()).collect();
        let servers = server_states(&all)?;
        let token = uuid::Uuid::new_v4().simple().to_string();
        Ok(McpConversation::open(id, self.address(), &self.run, token, servers, answerer))
    }

    /// Returns different calls that arrived after the end of their conversations, up to a number. No event reports them.
    pub fn late_calls(&self) -> Vec<LateCall> {
        self.run.late_calls()
    }
}

impl ServerDefinition {
    /// Checks the name, the tools and their schemas. Fails if one of them is invalid.
    pub fn validate(&self) -> Result<(), McpError> {
        server_states(std::slice::from_ref(self)).map(drop)
    }
}

/// Checks definitions and creates their states.
fn server_states(definitions: &[ServerDefinition]) -> Result<BTreeMap<String, Arc<ServerState>>, McpError> {
    let mut states = BTreeMap::new();
    for definition in definitions {
        let wrong = |source| McpError::Definition { server: definition.name.clone(), source };
        let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if definition.name.is_empty() || !definition.name.chars().all(is_name_char) {
            return Err(wrong(DefinitionProblem::ServerName));
        }
        let (source, tools) = source_of(&definition.kind).map_err(wrong)?;
        let state = Arc::new(ServerState::new(definition.clone(), source, tools));
        if states.insert(definition.name.clone(), state).is_some() {
            return Err(wrong(DefinitionProblem::DuplicateServer));
        }
    }
    Ok(states)
}

/// Returns the source of the answers, and the tools that are known before a client lists them.
fn source_of(kind: &ServerKind) -> Result<(AnswerSource, ToolCatalog), DefinitionProblem> {
    match kind {
        ServerKind::Mock(content) => Ok((AnswerSource::Mock, ToolCatalog::new(&content.tools)?)),
        ServerKind::Proxy(Upstream::Url { url, headers }) => {
            Ok((AnswerSource::Url(UrlUpstream::new(url, headers)?), ToolCatalog::from_entries(&[])))
        }
        ServerKind::Proxy(Upstream::Command(command)) if command.argv.is_empty() => {
            Err(DefinitionProblem::EmptyCommand)
        }
        ServerKind::Proxy(Upstream::Command(command)) => {
            Ok((AnswerSource::Command(CommandUpstream::new(command.clone())), ToolCatalog::from_entries(&[])))
        }
        ServerKind::Replay(replay) => {
            let entries = replay.recording.entries("tools/list", "tools");
            // Tools that the proxied server listed, valid or not.
            let tools = ToolCatalog::from_entries(&entries);
            Ok((AnswerSource::Replay(Mutex::new(ReplayTable::new(replay.clone()))), tools))
        }
    }
}

/// A conversation with its own addresses. Dropping it closes its sessions; its addresses then refuse requests.
pub struct McpConversation {
    id: String,
    address: SocketAddr,
    run: Arc<RunState>,
    state: Arc<ConversationState>,
    events: mpsc::Receiver<McpEvent>,
}

impl McpConversation {
    fn open(
        id: &str,
        address: SocketAddr,
        run: &Arc<RunState>,
        token: String,
        servers: BTreeMap<String, Arc<ServerState>>,
        answerer: Arc<dyn ToolAnswerer>,
    ) -> McpConversation {
        let (sender, events) = mpsc::channel(run.limits.max_waiting_events.max(1));
        let state = Arc::new(ConversationState::new(token, servers, answerer, run, sender));
        run.insert(state.clone());
        McpConversation { id: id.to_string(), address, run: run.clone(), state, events }
    }

    /// Names of the servers.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.state.servers.keys().map(String::as_str)
    }

    /// Address of a server in this conversation. It contains a token that cannot be guessed.
    pub fn url(&self, server: &str) -> Option<String> {
        let is_known = self.state.servers.contains_key(server);
        is_known.then(|| format!("http://{}/mcp/{server}/{}", self.address, self.state.token))
    }

    /// Value of the environment variable [`BRIDGE_VARIABLE`](crate::BRIDGE_VARIABLE) for programs that use `hotseat mcp NAME`.
    pub fn bridge_address(&self) -> String {
        format!("http://{}/mcp/{{server}}/{}", self.address, self.state.token)
    }

    /// Waits for the next event. Cancel-safe. Returns `None` only if the conversation was closed and all requests
    /// have ended.
    pub async fn next_event(&mut self) -> Option<McpEvent> {
        self.events.recv().await
    }

    /// Returns the next event if there is one.
    pub fn try_next_event(&mut self) -> Option<McpEvent> {
        self.events.try_recv().ok()
    }

    /// Opens a conversation at the same addresses, with other definitions and answers. Sessions of clients
    /// continue; running calls of this conversation end. Fails if a definition is invalid.
    pub fn reopen(
        self,
        answerer: Arc<dyn ToolAnswerer>,
        definitions: &[ServerDefinition],
    ) -> Result<McpConversation, McpError> {
        let servers = server_states(definitions)?;
        for (name, server) in &servers {
            if let Some(known) = self.state.servers.get(name) {
                let sessions = std::mem::take(&mut *lock(&known.sessions));
                *lock(&server.sessions) = sessions;
                if matches!(server.source, AnswerSource::Url(_) | AnswerSource::Command(_)) {
                    // The clients may not list the tools again.
                    server.learn_tools(known.tools());
                }
            }
        }
        let token = self.state.token.clone();
        Ok(McpConversation::open(&self.id, self.address, &self.run, token, servers, answerer))
    }

    /// Returns the recorded exchanges of a proxied server, if [`McpOptions::record`] or [`ServerDefinition::record`] is set.
    pub fn recording(&self, server: &str) -> Option<McpRecording> {
        let server = self.state.servers.get(server).filter(|server| self.state.records(server))?;
        Some(McpRecording {
            server: server.name().to_string(),
            exchanges: server.recorded(),
            lines: Vec::new(),
        })
    }

    /// Returns why the recording of a server is incomplete, so that its replay would miss an answer.
    pub fn recording_gap(&self, server: &str) -> Option<String> {
        self.state.servers.get(server)?.recording_gap()
    }

    /// Returns the requests to proxied servers, other than calls, that were not answered at this time.
    pub fn awaited_requests(&self, at: Instant) -> Vec<AwaitedRequest> {
        self.state.awaited_requests(at)
    }

    /// Returns the exchanges of replayed recordings that no request has used, with the names of their servers.
    pub fn unused_exchanges(&self) -> Vec<(String, McpExchange)> {
        let unused = |server: &Arc<ServerState>| match &server.source {
            AnswerSource::Replay(table) => {
                let unused = lock(table).unused();
                unused.into_iter().map(|exchange| (server.name().to_string(), exchange)).collect()
            }
            _ => Vec::new(),
        };
        self.state.servers.values().flat_map(unused).collect()
    }

    /// Ends sessions and running calls. Later requests are refused, and reported as
    /// [`CallAfterClose`](crate::McpEventKind::CallAfterClose).
    pub fn close(&self) {
        self.state.close();
    }
}

impl Drop for McpConversation {
    fn drop(&mut self) {
        self.state.close();
        self.run.remove(&self.state, &self.id);
        // Calls that arrived after the caller read the last event.
        while let Some(McpEvent { server, kind, .. }) = self.try_next_event() {
            if let McpEventKind::CallReceived { tool, .. } = kind {
                self.run.note_late_call(LateCall { conversation: self.id.clone(), server, tool });
            }
        }
    }
}
