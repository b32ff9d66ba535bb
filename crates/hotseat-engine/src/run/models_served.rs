//! The served models of a run, and the conversations of attempts with them.

use std::sync::PoisonError;

use hotseat_model::serve::{ModelServers, ServedConversation};
use hotseat_targets::AgentSession;

use crate::cases::{CassetteFiles, MODEL_PREFIX, ModelOpening, TestCase};
use crate::config::ProjectAgent;
use crate::session::{ConversationSlot, ModelAgent};

/// Served models of a run.
pub struct RunModels {
    pub(super) servers: ModelServers,
    /// The conversation of agents that learn addresses when they start. All attempts use it in turn.
    pub(super) shared: Option<SharedModels>,
    /// Files that conversations record to.
    pub(super) cassettes: CassetteFiles,
}

/// A conversation that is reopened for each attempt at the same addresses.
pub(super) struct SharedModels {
    /// Addresses by the name of the model.
    pub(super) addresses: Vec<(String, String)>,
    pub(super) slot: ConversationSlot<ServedConversation>,
}

/// The conversation of one attempt with its served models.
pub(super) struct AttemptModels {
    /// `None` once a session has it.
    conversation: Option<ServedConversation>,
    home: Option<ConversationSlot<ServedConversation>>,
}

impl RunModels {
    /// Slot of the shared conversation, if the agent uses it.
    pub(super) fn shared_slot(
        &self,
        agent: Option<&ProjectAgent>,
    ) -> Option<ConversationSlot<ServedConversation>> {
        let shared = self.shared.as_ref()?;
        agent.is_some_and(ProjectAgent::starts_with_models).then(|| shared.slot.clone())
    }
}

impl AttemptModels {
    /// Holds a conversation, which returns to `home` after the attempt.
    pub(super) fn new(
        conversation: ServedConversation,
        home: Option<ConversationSlot<ServedConversation>>,
    ) -> AttemptModels {
        AttemptModels { conversation: Some(conversation), home }
    }

    /// Addresses of the models, by their names among addresses.
    pub(super) fn addresses(&self) -> impl Iterator<Item = (String, String)> {
        let addresses = self.conversation.iter().flat_map(addresses);
        addresses.map(|(name, address)| (format!("{MODEL_PREFIX}{name}"), address))
    }

    /// Begins the conversation again, with models whose variables are resolved.
    pub(super) fn reopened(mut self, case: &TestCase, opening: &ModelOpening<'_>) -> AttemptModels {
        let conversation = self.conversation.take();
        self.conversation =
            conversation.map(|conversation| conversation.reopen(&case.id, case.models.open(opening)));
        self
    }

    /// Joins a session with its served models.
    pub(super) fn attach(mut self, agent: Box<dyn AgentSession>) -> Box<dyn AgentSession> {
        match self.conversation.take() {
            Some(conversation) => Box::new(ModelAgent::new(agent, conversation, self.home.take())),
            None => agent,
        }
    }
}

impl Drop for AttemptModels {
    fn drop(&mut self) {
        if let (Some(home), Some(conversation)) = (&self.home, self.conversation.take()) {
            *home.lock().unwrap_or_else(PoisonError::into_inner) = Some(conversation);
        }
    }
}

/// Addresses by the name of the model.
pub(super) fn addresses(conversation: &ServedConversation) -> impl Iterator<Item = (String, String)> {
    conversation.models().filter_map(|name| Some((name.to_string(), conversation.url(name)?)))
}
