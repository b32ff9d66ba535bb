//! The servers of a build without them: they cannot be started.

#![expect(missing_docs, reason = "the methods are those of the other file, and nothing can call them")]

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use crate::answer::ToolAnswerer;
use crate::definition::{McpOptions, ServerDefinition};
use crate::event::{AwaitedRequest, LateCall, McpEvent};
use crate::recording::{McpExchange, McpRecording};

/// Reason why no server starts.
#[derive(Debug, thiserror::Error)]
#[error("MCP servers need the feature `mcp` of the crate `hotseat`")]
pub struct McpError;

/// Servers that cannot be started, because this build has none.
pub struct McpServers(Infallible);

impl McpServers {
    pub fn start(_: Vec<ServerDefinition>, _: McpOptions) -> Result<McpServers, McpError> {
        Err(McpError)
    }

    pub fn open_conversation(
        &self,
        _: &str,
        _: Arc<dyn ToolAnswerer>,
        _: Vec<ServerDefinition>,
    ) -> Result<McpConversation, McpError> {
        match self.0 {}
    }

    pub fn late_calls(&self) -> Vec<LateCall> {
        match self.0 {}
    }
}

impl ServerDefinition {
    pub fn validate(&self) -> Result<(), McpError> {
        Err(McpError)
    }
}

/// A conversation that cannot be opened, because this build has no servers.
pub struct McpConversation(Infallible);

impl McpConversation {
    pub fn url(&self, _: &str) -> Option<String> {
        match self.0 {}
    }

    pub fn bridge_address(&self) -> String {
        match self.0 {}
    }

    pub fn servers(&self) -> impl Iterator<Item = &str> {
        match self.0 {}
        #[expect(unreachable_code, reason = "it names the type")]
        std::iter::empty()
    }

    pub async fn next_event(&mut self) -> Option<McpEvent> {
        match self.0 {}
    }

    pub fn try_next_event(&mut self) -> Option<McpEvent> {
        match self.0 {}
    }

    pub fn reopen(
        self,
        _: Arc<dyn ToolAnswerer>,
        _: &[ServerDefinition],
    ) -> Result<McpConversation, McpError> {
        match self.0 {}
    }

    pub fn recording(&self, _: &str) -> Option<McpRecording> {
        match self.0 {}
    }

    pub fn recording_gap(&self, _: &str) -> Option<String> {
        match self.0 {}
    }

    pub fn awaited_requests(&self, _: Instant) -> Vec<AwaitedRequest> {
        match self.0 {}
    }

    pub fn unused_exchanges(&self) -> Vec<(String, McpExchange)> {
        match self.0 {}
    }

    pub fn close(&self) {
        match self.0 {}
    }
}
