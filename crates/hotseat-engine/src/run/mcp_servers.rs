//! The MCP servers of a run, and the conversations of attempts with them.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use hotseat_mcp::{
    BRIDGE_VARIABLE, FaultRule, LaunchedUpstream, McpConversation, McpServers, UpstreamCommand,
    UpstreamLauncher,
};
use hotseat_targets::process::{GroupCommand, ProjectServers};

use super::mcp_recordings::McpRecorder;
use crate::config::ProjectAgent;
use crate::session::ConversationSlot;

/// MCP servers of a run.
pub struct RunMcp {
    pub(super) servers: McpServers,
    /// The conversation of agents that learn addresses when they start. All attempts use it in turn.
    pub(super) shared: Option<SharedConversation>,
    /// Recordings of proxied servers.
    pub(super) recorder: Arc<McpRecorder>,
}

/// A conversation that is reopened for each attempt at the same addresses.
pub(super) struct SharedConversation {
    pub(super) addresses: BTreeMap<String, String>,
    pub(super) bridge: String,
    pub(super) slot: ConversationSlot<McpConversation>,
}

/// A fault that a sweep adds to one attempt.
#[derive(Debug, Clone)]
pub struct SweptFault {
    /// Name of the server.
    pub server: String,
    /// The rule.
    pub rule: FaultRule,
}

/// The conversation of one attempt with its MCP servers.
pub(super) struct AttemptMcp {
    /// `None` once a session has it.
    conversation: Option<McpConversation>,
    /// Addresses by the name of the server.
    pub(super) addresses: BTreeMap<String, String>,
    home: Option<ConversationSlot<McpConversation>>,
}

/// Starts the programs of proxies in process groups.
pub(super) struct GroupLauncher(pub(super) ProjectServers);

impl UpstreamLauncher for GroupLauncher {
    fn launch(&self, command: &UpstreamCommand) -> std::io::Result<LaunchedUpstream> {
        let mut group_command = GroupCommand::new(&command.argv, &command.environment, self.0);
        let process = &mut group_command.command;
        if let Some(folder) = &command.folder {
            process.current_dir(folder);
        }
        process.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        process.stderr(std::process::Stdio::piped());
        let (child, group) = group_command.spawn()?;
        Ok(LaunchedUpstream { child, guard: Box::new(group) })
    }
}

impl RunMcp {
    /// Slot of the shared conversation, if the agent uses it.
    pub(super) fn shared_slot(
        &self,
        agent: Option<&ProjectAgent>,
    ) -> Option<ConversationSlot<McpConversation>> {
        let shared = self.shared.as_ref()?;
        agent.is_some_and(ProjectAgent::starts_with_mcp).then(|| shared.slot.clone())
    }
}

impl AttemptMcp {
    /// Adds the addresses of a conversation, which returns to `home` after the attempt.
    pub(super) fn new(
        conversation: McpConversation,
        home: Option<ConversationSlot<McpConversation>>,
    ) -> AttemptMcp {
        AttemptMcp { addresses: addresses(&conversation), conversation: Some(conversation), home }
    }

    /// Value of the variable for programs that use `hotseat mcp NAME`.
    pub(super) fn bridge(&self) -> Option<(String, String)> {
        Some((BRIDGE_VARIABLE.to_string(), self.conversation.as_ref()?.bridge_address()))
    }

    /// Hands the conversation to a session, with its slot.
    pub(super) fn take(mut self) -> Option<(McpConversation, Option<ConversationSlot<McpConversation>>)> {
        Some((self.conversation.take()?, self.home.take()))
    }
}

impl Drop for AttemptMcp {
    fn drop(&mut self) {
        // A hook has failed: the agent keeps its addresses for the next attempt.
        if let (Some(home), Some(conversation)) = (&self.home, self.conversation.take()) {
            *home.lock().unwrap_or_else(PoisonError::into_inner) = Some(conversation);
        }
    }
}

/// Addresses of the servers of a conversation.
pub(super) fn addresses(conversation: &McpConversation) -> BTreeMap<String, String> {
    let urls = conversation.servers().filter_map(|name| Some((name.to_string(), conversation.url(name)?)));
    urls.collect()
}
