//! Served models of a run: started with it, and opened for each attempt.

use std::sync::{Arc, Mutex, PoisonError};

use hotseat_document::Diagnostic;
use hotseat_model::serve::{
    ModelServers, ServeLimits, ServedConversation, ServedModelEventKind, TextCleaner,
};
use hotseat_targets::AgentSession;
use hotseat_trace::{AttemptFailure, FailureKind};

use super::context::RunContext;
use super::models_served::{AttemptModels, RunModels, SharedModels, addresses};
use super::plan::{RunPlan, SelectedCase};
use crate::cases::{CassetteFiles, ModelOpening, RelayMode, TestCase};
use crate::config::StartCommand;

impl RunContext {
    /// Starts the server of models, if a case has any. `parallel` is the number of concurrent conversations.
    ///
    /// # Errors
    /// If the listener cannot be started, or conversations that run at the same time would share addresses.
    pub fn start_models(&mut self, plan: &RunPlan, parallel: usize) -> Result<(), Diagnostic> {
        let Some(first) = plan.first_case_with_models() else { return Ok(()) };
        let started_with = plan.agents().find(|agent| agent.starts_with_models());
        if let Some(agent) = started_with.filter(|_| parallel > 1) {
            let who = agent.name.as_deref().map_or("the agent".to_string(), |name| format!("agent `{name}`"));
            let message = format!(
                "{who} receives the address of a served model when it starts, so concurrent conversations would mix: `parallel` is {parallel}"
            );
            let help = "set `parallel: 1`, or pass `${MODELS.NAME.url}` with each request: in `headers`, `body` or `forwardedProps`";
            return Err(Diagnostic::new(message).help(help));
        }
        let failed = |error| Diagnostic::new(format!("models cannot be served: {error}"));
        let servers = ModelServers::start(ServeLimits::default()).map_err(failed)?;
        let cassettes = CassetteFiles::default();
        let shared = started_with.map(|_| {
            let opening = self.opening(first.id.clone(), &cassettes, None);
            let conversation = servers.open_conversation(&first.id, first.models.open(&opening));
            let addresses = addresses(&conversation).collect();
            SharedModels { addresses, slot: Arc::new(Mutex::new(Some(conversation))) }
        });
        self.models = Some(RunModels { servers, shared, cassettes });
        Ok(())
    }

    /// Joins a session with its served models, whose rules now have their variables resolved.
    pub(super) fn attach_models(
        &self,
        models: AttemptModels,
        selected: &SelectedCase,
        case: &TestCase,
        agent: Box<dyn AgentSession>,
    ) -> Box<dyn AgentSession> {
        // Hooks may have set variables.
        let models = match &self.models {
            Some(run) if case.has_hooks() => {
                models.reopened(case, &self.model_opening(selected, &run.cassettes))
            }
            _ => models,
        };
        models.attach(agent)
    }

    fn model_opening<'a>(
        &'a self,
        selected: &SelectedCase,
        cassettes: &'a CassetteFiles,
    ) -> ModelOpening<'a> {
        let relays = selected.cassette.as_ref().map(|cassette| cassette.relay_mode());
        self.opening(format!("{}#{}", selected.suite_name, selected.case.id), cassettes, relays)
    }

    fn opening<'a>(
        &'a self,
        lane: String,
        cassettes: &'a CassetteFiles,
        relays: Option<RelayMode>,
    ) -> ModelOpening<'a> {
        let redactor = self.project.redactor().clone();
        let cleaner = TextCleaner::new(move |text| redactor.text(text).into_owned());
        ModelOpening { lane, root: &self.project.root, cassettes, cleaner, relays }
    }

    /// Fills the addresses of served models into the start command of an agent.
    pub(super) fn with_model_addresses(&self, mut start: StartCommand) -> StartCommand {
        let shared = self.models.as_ref().and_then(|models| models.shared.as_ref());
        for (name, address) in shared.iter().flat_map(|shared| &shared.addresses) {
            for text in start.command.iter_mut().chain(start.env.values_mut()) {
                *text = text.replace(&format!("${{MODELS.{name}.url}}"), address);
            }
        }
        start
    }

    /// Opens the conversation of an attempt with its served models, if the case has any and its agent is contacted.
    ///
    /// # Errors
    /// If the agent called a model between conversations.
    pub(super) fn open_models(
        &self,
        selected: &SelectedCase,
    ) -> Result<Option<AttemptModels>, AttemptFailure> {
        let case = &selected.case;
        let contacts = selected.agent.as_ref().is_some_and(|agent| !agent.is_replayed());
        let Some(models) = self.models.as_ref().filter(|_| !case.models.is_empty() && contacts) else {
            return Ok(None);
        };
        let opening = self.model_opening(selected, &models.cassettes);
        let home = models.shared_slot(selected.agent.as_deref());
        let kept = home.as_ref().and_then(|home| home.lock().unwrap_or_else(PoisonError::into_inner).take());
        let conversation = match kept {
            Some(mut conversation) => {
                let called = call_between_conversations(&mut conversation);
                let conversation = conversation.reopen(&case.id, case.models.open(&opening));
                if let Some(failure) = called {
                    // The next attempt uses the same addresses.
                    drop(AttemptModels::new(conversation, home));
                    return Err(failure);
                }
                conversation
            }
            None => models.servers.open_conversation(&case.id, case.models.open(&opening)),
        };
        Ok(Some(AttemptModels::new(conversation, home)))
    }
}

/// Returns the failure of an agent that called a model while no conversation ran.
fn call_between_conversations(conversation: &mut ServedConversation) -> Option<AttemptFailure> {
    while let Some(event) = conversation.try_next_event() {
        if let ServedModelEventKind::CallReceived { .. } = event.kind {
            let message = format!("the agent called the model `{}` between two conversations", event.model);
            return Some(AttemptFailure::new(FailureKind::AgentError, message));
        }
    }
    None
}
