//! The servers of a build without them: they cannot be started.

use std::convert::Infallible;
use std::sync::Arc;

use crate::answer::ToolAnswerer;
use crate::definition::{McpOptions, ServerDefinition};
use crate::event::McpEvent;
use crate::fault::UnreachedFault;
use crate::recording::{McpExchange, McpRecording};

/// Reason why no server starts.
#[derive(Debug, thiserror::Error)]
#[error("MCP servers need the feature `mcp` of the crate `hotseat`")]
pub struct McpError;

/// Servers that cannot be started, because this build has none.
pub struct McpServers(Infallible);

impl McpServers {
    /// Returns the error that this build has no servers. Always fails.
    pub fn start(_: Vec<ServerDefinition>, _: McpOptions) -> Result<McpServers, McpError> {
        Err(McpError)
    }

    /// Opens a conversation.
    pub fn open_conversation(
        &self,
        _: &str,
        _: Arc<dyn ToolAnswerer>,
        _: Vec<ServerDefinition>,
    ) -> Result<McpConversation, McpError> {
        match self.0 {}
    }
}

impl ServerDefinition {
    /// Returns the error that this build has no servers. Always fails.
    pub fn validate(&self) -> Result<(), McpError> {
        Err(McpError)
    }
}

/// A conversation that cannot be opened, because this build has no servers.
pub struct McpConversation(Infallible);

impl McpConversation {
    /// Address of a server in this conversation.
    pub fn url(&self, _: &str) -> Option<String> {
        match self.0 {}
    }

    /// Address of the servers for `hotseat mcp NAME`.
    pub fn bridge_address(&self) -> String {
        match self.0 {}
    }

    /// Names of the servers.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        match self.0 {}
        #[expect(unreachable_code, reason = "it names the type")]
        std::iter::empty()
    }

    /// Waits for the next event.
    pub async fn next_event(&mut self) -> Option<McpEvent> {
        match self.0 {}
    }

    /// Returns the next event if there is one.
    pub fn try_next_event(&mut self) -> Option<McpEvent> {
        match self.0 {}
    }

    /// Whether a client has connected to a server.
    pub fn is_connected(&self, _: &str) -> bool {
        match self.0 {}
    }

    /// Opens a conversation at the same addresses.
    pub fn reopen(
        self,
        _: Arc<dyn ToolAnswerer>,
        _: &[ServerDefinition],
    ) -> Result<McpConversation, McpError> {
        match self.0 {}
    }

    /// Returns the recorded exchanges of a server.
    pub fn recording(&self, _: &str) -> Option<McpRecording> {
        match self.0 {}
    }

    /// Returns why the recording of a server is incomplete.
    pub fn recording_gap(&self, _: &str) -> Option<String> {
        match self.0 {}
    }

    /// Returns the exchanges of recordings that no request has used.
    pub fn unused_exchanges(&self) -> Vec<(String, McpExchange)> {
        match self.0 {}
    }

    /// Ends the conversation.
    pub fn close(&self) {
        match self.0 {}
    }

    /// Returns the fault rules that selected no call.
    pub fn unreached_faults(&self) -> Vec<UnreachedFault> {
        match self.0 {}
    }
}
