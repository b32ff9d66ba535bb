//! The MCP servers of a run, and the programs of their proxies.

use std::sync::Arc;

use hotseat_mcp::{FaultRule, LaunchedUpstream, McpServers, UpstreamCommand, UpstreamLauncher};
use hotseat_targets::process::{GroupCommand, ProjectServers};

use super::attempt_services::SharedService;
use super::mcp_recordings::McpRecorder;
use crate::session::McpObserver;

/// MCP servers of a run.
pub struct RunMcp {
    pub(super) servers: McpServers,
    /// The conversation of agents that learn addresses when they start. All attempts use it in turn.
    pub(super) shared: Option<SharedService<McpObserver>>,
    /// Address of the shared conversation for programs that use `hotseat mcp NAME`.
    pub(super) bridge: Option<String>,
    /// Recordings of proxied servers.
    pub(super) recorder: Arc<McpRecorder>,
}

/// A fault that a sweep adds to one attempt.
#[derive(Debug, Clone)]
pub struct SweptFault {
    /// Name of the server.
    pub server: String,
    /// The rule.
    pub rule: FaultRule,
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
