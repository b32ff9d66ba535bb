//! MCP servers of a run: one listener, and a conversation with them for each attempt.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use hotseat_document::Diagnostic;
use hotseat_mcp::{
    BRIDGE_VARIABLE, LateCall, McpConversation, McpError, McpEvent, McpEventKind, McpOptions, McpServers,
    ServerDefinition,
};
use hotseat_targets::AgentSession;
use hotseat_targets::recorder::SecretRedactor;
use hotseat_trace::{AttemptFailure, CallVisibility, FailureKind, ServiceUse};

use super::attempt_services::{AttemptMcp, SharedService, check_parallel, text_cleaner};
use super::cassettes::{AttemptCassette, server_file};
use super::context::RunContext;
use super::mcp_recordings::{ConversationRecording, McpRecordError};
use super::mcp_servers::{GroupLauncher, RunMcp, SweptFault};
use super::plan::{RunPlan, SelectedCase};
use crate::cases::{DefinitionContext, TestCase};
use crate::config::StartCommand;
use crate::session::{ConversationReader, ExpectedCalls, McpAgent, ScriptToolFunctions, ScriptedServers};

/// What an attempt adds to the servers of its case.
#[derive(Default)]
struct AttemptSettings<'a> {
    /// Names its conversation in recordings.
    key: String,
    fault: Option<&'a SweptFault>,
    cassette: Option<&'a AttemptCassette>,
}

impl<'a> AttemptSettings<'a> {
    fn new(selected: &'a SelectedCase) -> AttemptSettings<'a> {
        AttemptSettings {
            key: conversation_key(selected),
            fault: selected.swept_fault.as_deref(),
            cassette: selected.cassette.as_deref(),
        }
    }
}

impl RunContext {
    /// Remembers to which proxied servers the agent of a conversation connected.
    pub(super) fn note_proxies(&self, case: &TestCase, used: &ServiceUse) {
        let mut watched = self.watched_servers.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, _) in case.mcp.iter().filter(|(_, server)| server.is_proxy()) {
            let connected = used.connected.get(name);
            *watched.entry(name.into()).or_default() |= connected.is_some();
        }
    }

    /// Warnings about proxied servers to which no agent of the run connected: they have shown no call.
    pub fn unwatched_servers(&self) -> Vec<String> {
        let watched = self.watched_servers.lock().unwrap_or_else(PoisonError::into_inner);
        let unwatched = watched.iter().filter(|(_, is_connected)| !**is_connected);
        let words = |(name, _): (&Arc<str>, &bool)| {
            format!(
                "no agent connected to the proxied MCP server `{name}`, so its calls were not watched, and assertions that a tool is not called may pass wrongly; `${{MCP.{name}.url}}` is the address for the agent"
            )
        };
        unwatched.map(words).collect()
    }

    /// Warnings about calls that arrived at MCP servers after the end of their conversations, where no assertion sees them.
    pub fn late_calls(&self) -> Vec<String> {
        let late = self.mcp.as_ref().map(|mcp| mcp.servers.late_calls()).unwrap_or_default();
        let words = |LateCall { conversation, server, tool }: &LateCall| {
            format!(
                "the agent called {tool} of MCP server `{server}` after the end of the conversation `{conversation}`, so no assertion saw the call"
            )
        };
        late.iter().map(words).collect()
    }

    /// Starts the MCP servers, if a case has any. `parallel` is the number of concurrent conversations. Fails
    /// if the listener cannot be started, or conversations that run at the same time would share addresses.
    pub fn start_mcp(&mut self, plan: &RunPlan, parallel: usize) -> Result<(), Diagnostic> {
        let Some(first) = plan.first_case_with_mcp() else { return Ok(()) };
        let started_with = plan.agents().find(|agent| agent.starts_with_mcp());
        check_parallel(started_with, parallel, "an MCP server", "MCP")?;
        let launcher = Arc::new(GroupLauncher(self.target_env.servers));
        let options = McpOptions { launcher: Some(launcher), ..McpOptions::default() };
        let failed = |error: McpError| Diagnostic::new(error.to_string());
        let servers = McpServers::start(Vec::new(), options).map_err(failed)?;
        let shared = match started_with {
            None => None,
            // Each attempt reopens it with its own servers.
            Some(_) => {
                Some(self.open_conversation(&servers, first, &AttemptSettings::default()).map_err(failed)?)
            }
        };
        let bridge = shared.as_ref().map(McpConversation::bridge_address);
        let shared = shared.map(SharedService::new);
        self.mcp = Some(RunMcp { servers, shared, bridge, recorder: Arc::default() });
        Ok(())
    }

    fn open_conversation(
        &self,
        servers: &McpServers,
        case: &TestCase,
        attempt: &AttemptSettings<'_>,
    ) -> Result<McpConversation, McpError> {
        let definitions = self.definitions(case, attempt, &self.redactor(&[], &BTreeMap::new()));
        let answerer = Arc::new(ScriptedServers::new(case.mcp.answers(), None));
        servers.open_conversation(&case.id, answerer, definitions)
    }

    /// Definitions of the servers of a case.
    fn definitions(
        &self,
        case: &TestCase,
        attempt: &AttemptSettings<'_>,
        redactor: &SecretRedactor,
    ) -> Vec<ServerDefinition> {
        let mut definitions = case.mcp.definitions(&DefinitionContext {
            environment: self.project.environment(),
            root: &self.project.root,
            conversation: attempt.key.clone(),
            cleaner: text_cleaner(redactor),
            proxies: attempt.cassette.map(AttemptCassette::proxy_mode),
        });
        if let Some(fault) = attempt.fault {
            let server = definitions.iter_mut().find(|definition| definition.name == fault.server);
            server.into_iter().for_each(|server| server.faults.insert(0, fault.rule.clone()));
        }
        definitions
    }

    /// Writes the recordings of proxied servers. Returns what could not be written, in words.
    pub fn write_mcp_recordings(&self) -> Vec<McpRecordError> {
        self.mcp.as_ref().map_or_else(Vec::new, |mcp| mcp.recorder.write(&self.project.root))
    }

    /// Fills the addresses of MCP servers and served models into the start command of an agent.
    pub(super) fn start_command(&self, start: &StartCommand) -> StartCommand {
        let mut start = start.clone();
        if let Some(shared) = self.mcp.as_ref().and_then(|mcp| mcp.shared.as_ref()) {
            shared.fill_addresses(&mut start);
        }
        if let Some(shared) = self.models.as_ref().and_then(|models| models.shared.as_ref()) {
            shared.fill_addresses(&mut start);
        }
        if let Some(bridge) = self.mcp.as_ref().and_then(|mcp| mcp.bridge.as_ref()) {
            start.env.entry(BRIDGE_VARIABLE.to_string()).or_insert_with(|| bridge.clone());
        }
        start
    }

    /// Opens the conversation of an attempt with its MCP servers, if the case has any and its agent is
    /// contacted. Fails if the agent used the servers between conversations, or a definition is invalid.
    pub(super) fn open_mcp(&self, selected: &SelectedCase) -> Result<Option<AttemptMcp>, AttemptFailure> {
        let case = &selected.case;
        let Some(mcp) = self.mcp.as_ref().filter(|_| !case.mcp.is_empty() && selected.contacts_agent())
        else {
            return Ok(None);
        };
        let is_shared = selected.agent.as_ref().is_some_and(|agent| agent.starts_with_mcp());
        let shared = mcp.shared.as_ref().filter(|_| is_shared);
        let redactor = self.redactor(&[], &BTreeMap::new());
        let reopen = |conversation| self.reopen(conversation, selected, case, None, &redactor);
        let open = || {
            let attempt = AttemptSettings::new(selected);
            self.open_conversation(&mcp.servers, case, &attempt).map_err(definition_failure)
        };
        let call = |event: McpEvent| match event.kind {
            McpEventKind::CallReceived { tool, .. } => {
                Some(format!("{tool} of MCP server `{}`", event.server))
            }
            _ => None,
        };
        AttemptMcp::open(shared, call, reopen, open).map(Some)
    }

    fn reopen(
        &self,
        conversation: McpConversation,
        selected: &SelectedCase,
        case: &TestCase,
        functions: Option<&ScriptToolFunctions>,
        redactor: &SecretRedactor,
    ) -> Result<McpConversation, AttemptFailure> {
        let definitions = self.definitions(case, &AttemptSettings::new(selected), redactor);
        let answerer = Arc::new(ScriptedServers::new(case.mcp.answers(), functions));
        conversation.reopen(answerer, &definitions).map_err(definition_failure)
    }

    /// Joins a session with its MCP servers, whose definitions now have their variables resolved.
    pub(super) fn attach_mcp(
        &self,
        mcp: AttemptMcp,
        selected: &SelectedCase,
        case: &TestCase,
        functions: Option<&ScriptToolFunctions>,
        redactor: &SecretRedactor,
        agent: Box<dyn AgentSession>,
    ) -> Result<Box<dyn AgentSession>, AttemptFailure> {
        let Some((conversation, home)) = mcp.take() else { return Ok(agent) };
        // Hooks may have set variables, which functions know too.
        let conversation = match case.has_hooks() || functions.is_some() {
            true => self.reopen(conversation, selected, case, functions, redactor)?,
            false => conversation,
        };
        let servers = case.mcp.iter().filter(|(_, server)| server.answers_unmatched);
        let answers_unmatched: BTreeSet<String> = servers.map(|(name, _)| name.to_string()).collect();
        let expected = ExpectedCalls {
            answers_unmatched,
            tools: case.tool_references(),
            case: (agent.capabilities().calls != CallVisibility::Protocol).then(|| selected.case.clone()),
        };
        let recorded = match &selected.cassette {
            // Instead of the files of the servers.
            Some(cassette) => cassette.server_recorder().map(|recorder| {
                let files = case.mcp.proxies().map(|name| (name.to_string(), server_file(name).into()));
                (recorder.clone(), files.collect())
            }),
            // Broken conversations are no recordings.
            None if selected.swept_fault.is_some() => None,
            None => self.mcp.as_ref().map(|mcp| (mcp.recorder.clone(), case.mcp.recorded())),
        };
        let recorded = recorded.filter(|(_, files): &(_, BTreeMap<_, _>)| !files.is_empty());
        let on_end = recorded.map(|(recorder, files)| -> ConversationReader {
            let conversation = conversation_key(selected);
            let recording = ConversationRecording { conversation, files, cleaner: text_cleaner(redactor) };
            Box::new(move |conversation| recorder.add(conversation, &recording))
        });
        Ok(Box::new(McpAgent::new(agent, conversation, expected, home, on_end)))
    }
}

/// Key of a case in recordings of MCP servers.
fn conversation_key(selected: &SelectedCase) -> String {
    format!("{}/{}", selected.suite_name, selected.case.id)
}

fn definition_failure(error: McpError) -> AttemptFailure {
    AttemptFailure::new(FailureKind::TestError, error.to_string())
}
