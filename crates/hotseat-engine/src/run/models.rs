//! Served models of a run: started with it, and opened for each attempt.

use hotseat_document::Diagnostic;
use hotseat_model::serve::{
    ModelServers, ServeLimits, ServedConversation, ServedModelEvent, ServedModelEventKind,
};
use hotseat_targets::AgentSession;
use hotseat_trace::AttemptFailure;

use super::attempt_services::{AttemptModels, RunModels, SharedService, check_parallel, text_cleaner};
use super::context::RunContext;
use super::plan::{RunPlan, SelectedCase};
use crate::cases::{CassetteFiles, ModelOpening, RelayMode, TestCase};
use crate::session::ModelAgent;

impl RunContext {
    /// Starts the server of models, if a case has any. `parallel` is the number of concurrent conversations.
    /// Fails if the listener cannot be started, or conversations that run at the same time would share
    /// addresses.
    pub fn start_models(&mut self, plan: &RunPlan, parallel: usize) -> Result<(), Diagnostic> {
        let Some(first) = plan.first_case_with_models() else { return Ok(()) };
        let started_with = plan.agents().find(|agent| agent.starts_with_models());
        check_parallel(started_with, parallel, "a served model", "MODELS")?;
        let failed = |error| Diagnostic::new(format!("models cannot be served: {error}"));
        let servers = ModelServers::start(ServeLimits::default()).map_err(failed)?;
        let cassettes = CassetteFiles::default();
        let shared = started_with.map(|_| {
            let opening = self.opening(first.id.clone(), &cassettes, None);
            SharedService::new(servers.open_conversation(&first.id, first.models.open(&opening)))
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
        let Some((conversation, home)) = models.take() else { return agent };
        // Hooks may have set variables.
        let conversation = match &self.models {
            Some(run) if case.has_hooks() => {
                let opening = self.model_opening(selected, &run.cassettes);
                conversation.reopen(&case.id, case.models.open(&opening))
            }
            _ => conversation,
        };
        Box::new(ModelAgent::new(agent, conversation, home))
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
        let cleaner = text_cleaner(self.project.redactor());
        ModelOpening { lane, root: &self.project.root, cassettes, cleaner, relays }
    }

    /// Opens the conversation of an attempt with its served models, if the case has any and its agent is
    /// contacted. Fails if the agent called a model between conversations.
    pub(super) fn open_models(
        &self,
        selected: &SelectedCase,
    ) -> Result<Option<AttemptModels>, AttemptFailure> {
        let case = &selected.case;
        let Some(models) =
            self.models.as_ref().filter(|_| !case.models.is_empty() && selected.contacts_agent())
        else {
            return Ok(None);
        };
        let is_shared = selected.agent.as_ref().is_some_and(|agent| agent.starts_with_models());
        let shared = models.shared.as_ref().filter(|_| is_shared);
        let opened = || case.models.open(&self.model_opening(selected, &models.cassettes));
        let reopen = |conversation: ServedConversation| Ok(conversation.reopen(&case.id, opened()));
        let open = || Ok(models.servers.open_conversation(&case.id, opened()));
        let call = |event: ServedModelEvent| match event.kind {
            ServedModelEventKind::CallReceived { .. } => Some(format!("the model `{}`", event.model)),
            _ => None,
        };
        AttemptModels::open(shared, call, reopen, open).map(Some)
    }
}
