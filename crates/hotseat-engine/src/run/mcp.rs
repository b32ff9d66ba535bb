//! MCP servers of a run: one listener, and a conversation with them for each attempt.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use hotseat_document::Diagnostic;
use hotseat_mcp::{BRIDGE_VARIABLE, McpConversation, McpError, McpEventKind, McpOptions, McpServers};
use hotseat_targets::AgentSession;
use hotseat_trace::{AttemptFailure, FailureKind};

use super::context::RunContext;
use super::mcp_servers::{AttemptMcp, GroupLauncher, RunMcp, SharedConversation, addresses};
use super::plan::{RunPlan, SelectedCase};
use crate::cases::TestCase;
use crate::config::StartCommand;
use crate::session::{McpAgent, ScriptedServers};

impl RunContext {
    /// Starts the MCP servers, if a case has any. `parallel` is the number of concurrent conversations.
    ///
    /// # Errors
    /// If the listener cannot be started, or conversations that run at the same time would share addresses.
    pub fn start_mcp(&mut self, plan: &RunPlan, parallel: usize) -> Result<(), Diagnostic> {
        let Some(first) = plan.first_case_with_mcp() else { return Ok(()) };
        let started_with = plan.agents().find(|agent| agent.starts_with_mcp());
        if let Some(agent) = started_with.filter(|_| parallel > 1) {
            let who = agent.name.as_deref().map_or("the agent".to_string(), |name| format!("agent `{name}`"));
            let message = format!(
                "{who} receives the address of an MCP server when it starts, so concurrent conversations would mix: `parallel` is {parallel}"
            );
            let help = "set `parallel: 1`, or pass `${MCP.NAME.url}` with each request: in `headers`, `body` or `forwardedProps`";
            return Err(Diagnostic::new(message).help(help));
        }
        let launcher = Arc::new(GroupLauncher(self.target_env.servers));
        let options = McpOptions { launcher: Some(launcher), ..McpOptions::default() };
        let failed = |error: McpError| Diagnostic::new(error.to_string());
        let servers = McpServers::start(Vec::new(), options).map_err(failed)?;
        let shared = match started_with {
            None => None,
            Some(_) => {
                let conversation = self.open_conversation(&servers, first).map_err(failed)?;
                Some(SharedConversation {
                    addresses: addresses(&conversation),
                    bridge: conversation.bridge_address(),
                    slot: Arc::new(Mutex::new(Some(conversation))),
                })
            }
        };
        self.mcp = Some(RunMcp { servers, shared });
        Ok(())
    }

    fn open_conversation(&self, servers: &McpServers, case: &TestCase) -> Result<McpConversation, McpError> {
        let (environment, root) = (self.project.environment(), &self.project.root);
        let definitions = case.mcp.definitions(environment, root);
        let answerer = Arc::new(ScriptedServers::new(case.mcp.answers()));
        servers.open_conversation(&case.id, answerer, definitions)
    }

    /// Fills the addresses of MCP servers into the start command of an agent.
    pub(super) fn start_command(&self, start: &StartCommand) -> StartCommand {
        let mut start = start.clone();
        let Some(shared) = self.mcp.as_ref().and_then(|mcp| mcp.shared.as_ref()) else { return start };
        for text in start.command.iter_mut().chain(start.env.values_mut()) {
            for (name, address) in &shared.addresses {
                *text = text.replace(&format!("${{MCP.{name}.url}}"), address);
            }
        }
        start.env.entry(BRIDGE_VARIABLE.to_string()).or_insert_with(|| shared.bridge.clone());
        start
    }

    /// Opens the conversation of an attempt with its MCP servers, if the case has any and its agent is contacted.
    ///
    /// # Errors
    /// If the agent used the servers between conversations, or a definition is invalid.
    pub(super) fn open_mcp(&self, selected: &SelectedCase) -> Result<Option<AttemptMcp>, AttemptFailure> {
        let case = &selected.case;
        let contacts = selected.agent.as_ref().is_some_and(|agent| !agent.is_replayed());
        let Some(mcp) = self.mcp.as_ref().filter(|_| !case.mcp.is_empty() && contacts) else {
            return Ok(None);
        };
        let home = mcp.shared_slot(selected.agent.as_deref());
        let kept = home.as_ref().and_then(|home| home.lock().unwrap_or_else(PoisonError::into_inner).take());
        let conversation = match kept {
            Some(mut conversation) => match call_between_conversations(&mut conversation) {
                Some(failure) => {
                    // The agent keeps its addresses for the next attempt.
                    drop(AttemptMcp::new(conversation, home));
                    return Err(failure);
                }
                None => self.reopen(conversation, case),
            },
            None => self.open_conversation(&mcp.servers, case).map_err(definition_failure),
        }?;
        Ok(Some(AttemptMcp::new(conversation, home)))
    }

    fn reopen(
        &self,
        conversation: McpConversation,
        case: &TestCase,
    ) -> Result<McpConversation, AttemptFailure> {
        let definitions = case.mcp.definitions(self.project.environment(), &self.project.root);
        let answerer = Arc::new(ScriptedServers::new(case.mcp.answers()));
        conversation.reopen(answerer, &definitions).map_err(definition_failure)
    }

    /// Joins a session with its MCP servers, whose definitions now have their variables resolved.
    pub(super) fn attach_mcp(
        &self,
        mcp: AttemptMcp,
        case: &TestCase,
        agent: Box<dyn AgentSession>,
    ) -> Result<Box<dyn AgentSession>, AttemptFailure> {
        let Some((conversation, home)) = mcp.take() else { return Ok(agent) };
        // Hooks may have set variables.
        let conversation = match case.has_hooks() {
            true => self.reopen(conversation, case)?,
            false => conversation,
        };
        let servers = case.mcp.servers().filter(|(_, server)| server.answers_unmatched);
        let answers_unmatched: BTreeSet<String> = servers.map(|(name, _)| name.to_string()).collect();
        Ok(Box::new(McpAgent::new(agent, conversation, answers_unmatched, home)))
    }
}

/// Returns the failure of an agent that called a tool while no conversation ran.
fn call_between_conversations(conversation: &mut McpConversation) -> Option<AttemptFailure> {
    while let Some(event) = conversation.try_next_event() {
        if let McpEventKind::CallReceived { tool, .. } = event.kind {
            let server = event.server;
            let message =
                format!("the agent called {tool} of MCP server `{server}` between two conversations");
            return Some(AttemptFailure::new(FailureKind::AgentError, message));
        }
    }
    None
}

fn definition_failure(error: McpError) -> AttemptFailure {
    AttemptFailure::new(FailureKind::TestError, error.to_string())
}
