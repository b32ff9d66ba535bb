//! Conversations of attempts with the services of their tests: MCP servers and served models.

use std::sync::{Arc, Mutex, PoisonError};

use hotseat_document::Diagnostic;
use hotseat_model::serve::{ModelServers, TextCleaner};
use hotseat_targets::recorder::SecretRedactor;
use hotseat_trace::{AttemptFailure, FailureKind};

use crate::cases::{CassetteFiles, MODEL_PREFIX};
use crate::config::{ProjectAgent, StartCommand};
use crate::session::{ConversationSlot, McpObserver, ModelObserver, ServiceObserver};

/// Served models of a run.
pub struct RunModels {
    pub(super) servers: ModelServers,
    /// The conversation of agents that learn addresses when they start. All attempts use it in turn.
    pub(super) shared: Option<SharedService<ModelObserver>>,
    /// Files that conversations record to.
    pub(super) cassettes: CassetteFiles,
}

/// The conversation of one attempt with its MCP servers.
pub(super) type AttemptMcp = AttemptService<McpObserver>;

/// The conversation of one attempt with its served models.
pub(super) type AttemptModels = AttemptService<ModelObserver>;

/// A conversation for an agent that learns addresses when it starts. It is reopened for each attempt at the same addresses.
pub(super) struct SharedService<O: ServiceObserver> {
    /// Addresses by the name of the service.
    addresses: Vec<(String, String)>,
    slot: ConversationSlot<O::Conversation>,
}

/// A conversation, and the slot that receives it after the attempt.
type ConversationWithHome<C> = (C, Option<ConversationSlot<C>>);

/// The conversation of one attempt with the services of one kind. Agents that learn addresses when they start keep it for the
/// next attempt, also if a hook has failed.
pub(super) struct AttemptService<O: ServiceObserver> {
    /// `None` once a session has it.
    conversation: Option<O::Conversation>,
    home: Option<ConversationSlot<O::Conversation>>,
}

impl<O: ServiceObserver> SharedService<O> {
    /// Shares a conversation between attempts.
    pub(super) fn new(conversation: O::Conversation) -> Self {
        SharedService {
            addresses: O::addresses(&conversation),
            slot: Arc::new(Mutex::new(Some(conversation))),
        }
    }

    /// Fills the addresses into the start command of an agent.
    pub(super) fn fill_addresses(&self, start: &mut StartCommand) {
        for (name, address) in &self.addresses {
            let variable = match name.strip_prefix(MODEL_PREFIX) {
                Some(model) => format!("${{MODELS.{model}.url}}"),
                None => format!("${{MCP.{name}.url}}"),
            };
            for text in start.command.iter_mut().chain(start.env.values_mut()) {
                *text = text.replace(&variable, address);
            }
        }
    }
}

impl<O: ServiceObserver> AttemptService<O> {
    /// Opens the conversation of an attempt, or reopens the shared one. `call` names what an agent called, if
    /// an event is a call. Fails if the agent used the services between two conversations, or they cannot be
    /// opened.
    pub(super) fn open(
        shared: Option<&SharedService<O>>,
        call: impl Fn(O::Event) -> Option<String>,
        reopen: impl FnOnce(O::Conversation) -> Result<O::Conversation, AttemptFailure>,
        open: impl FnOnce() -> Result<O::Conversation, AttemptFailure>,
    ) -> Result<Self, AttemptFailure> {
        let home = shared.map(|shared| shared.slot.clone());
        // `None` while another attempt uses it.
        let kept = home.as_ref().and_then(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner).take());
        let Some(mut conversation) = kept else {
            return Ok(AttemptService { conversation: Some(open()?), home });
        };
        let called = std::iter::from_fn(|| O::try_next_event(&mut conversation)).find_map(call);
        // After a failure, too: the next attempt uses the same addresses.
        let service = AttemptService { conversation: Some(reopen(conversation)?), home };
        match called {
            None => Ok(service),
            Some(called) => {
                let message = format!("the agent called {called} between two conversations");
                Err(AttemptFailure::new(FailureKind::AgentError, message))
            }
        }
    }

    /// Returns the addresses of the services, by name.
    pub(super) fn addresses(&self) -> Vec<(String, String)> {
        self.conversation.as_ref().map(O::addresses).unwrap_or_default()
    }

    /// Returns the conversation until a session has it.
    pub(super) fn conversation(&self) -> Option<&O::Conversation> {
        self.conversation.as_ref()
    }

    /// Hands the conversation to a session, with its slot.
    pub(super) fn take(mut self) -> Option<ConversationWithHome<O::Conversation>> {
        Some((self.conversation.take()?, self.home.take()))
    }
}

impl<O: ServiceObserver> Drop for AttemptService<O> {
    fn drop(&mut self) {
        if let (Some(home), Some(conversation)) = (&self.home, self.conversation.take()) {
            *home.lock().unwrap_or_else(PoisonError::into_inner) = Some(conversation);
        }
    }
}

/// Removes the secrets that a redactor knows.
pub(super) fn text_cleaner(redactor: &SecretRedactor) -> TextCleaner {
    let redactor = redactor.clone();
    TextCleaner::new(move |text| redactor.text(text).into_owned())
}

/// Refuses concurrent conversations with an agent that learns the address of a service when it starts.
/// `variable` is the first part of the name of such an address. Fails if there are such conversations.
pub(super) fn check_parallel(
    started_with: Option<&Arc<ProjectAgent>>,
    parallel: usize,
    service: &str,
    variable: &str,
) -> Result<(), Diagnostic> {
    let Some(agent) = started_with.filter(|_| parallel > 1) else { return Ok(()) };
    let who = agent.name.as_deref().map_or("the agent".to_string(), |name| format!("agent `{name}`"));
    let message = format!(
        "{who} receives the address of {service} when it starts, so concurrent conversations would mix: `parallel` is {parallel}"
    );
    let help = format!(
        "set `parallel: 1`, or pass `${{{variable}.NAME.url}}` with each request: in `headers`, `body` or `forwardedProps`"
    );
    Err(Diagnostic::new(message).help(help))
}
