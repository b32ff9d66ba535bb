//! Task that runs one conversation.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_model::{ModelError, ModelErrorKind, ModelReply, ReplyDelta};
use hotseat_trace::{EventRecord, Payload};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::clock::{ConversationClock, wall_millis};
use super::core::{ConversationCore, EntryEffects};
use super::error::HostError;
use super::idle::IdleConversation;
use super::message::{ActorMessage, SendOutcome};
use super::state::HostState;
use super::watch::{Signal, WatcherList};
use crate::conversation::{ConversationInput, ConversationOrigin, ConversationState, ModelAddress};
use crate::failure::{InfrastructureKind, WorkFailure};
use crate::ids::{AgentId, ConversationId, RunId, TokenId, TurnId};
use crate::memory::MemoryResult;
use crate::store::{EntryCommit, HookDigests, LogEntry, StoredEntry};

/// Handling of a conversation that is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingPolicy {
    /// The conversation is opened.
    Open,
    /// An error is returned.
    Refuse,
}

/// Report of a task of the conversation.
enum TaskReport {
    Delta { at: ModelAddress, delta: ReplyDelta },
    Replied { at: ModelAddress, result: Result<ModelReply, ModelError> },
    Recalled { run: RunId, token: TokenId, result: Result<MemoryResult, WorkFailure> },
}

/// Runs one conversation.
pub(super) struct ConversationActor {
    shared: Arc<HostState>,
    id: ConversationId,
    watchers: Arc<WatcherList>,
    generation: u64,
    clock: ConversationClock,
    core: ConversationCore,
    /// Number of stored entries.
    entries: u64,
    calls: BTreeMap<ModelAddress, AbortHandle>,
    reports: mpsc::UnboundedSender<TaskReport>,
    report_receiver: mpsc::UnboundedReceiver<TaskReport>,
}

impl ConversationActor {
    pub(super) fn new(
        shared: Arc<HostState>,
        id: ConversationId,
        watchers: Arc<WatcherList>,
        generation: u64,
    ) -> Self {
        let core = ConversationCore::new(id.clone(), shared.definitions.clone(), shared.options.limits);
        let (news, heard) = mpsc::unbounded_channel();
        let (clock, calls) = (ConversationClock::new(), BTreeMap::new());
        ConversationActor {
            shared,
            id,
            watchers,
            generation,
            clock,
            core,
            entries: 0,
            calls,
            reports: news,
            report_receiver: heard,
        }
    }

    pub(super) async fn run(
        mut self,
        agent: AgentId,
        absent: MissingPolicy,
        mut inbox: mpsc::Receiver<ActorMessage>,
    ) {
        let result = match self.load(agent, absent).await {
            Ok(()) => self.run_loop(&mut inbox).await,
            Err(error) => Err(error),
        };
        let Err(error) = result else {
            let ConversationActor { shared, id, clock, core, entries, .. } = self;
            return shared.idle.add(IdleConversation { id, core, clock, entries });
        };
        // Remove the conversation from the map first; handles that already refer to it receive the error.
        {
            let mut loaded = self.shared.loaded();
            loaded.retain(|id, known| *id != self.id || known.generation != self.generation);
            self.shared.options.store.release(&self.id);
        }
        self.watchers.close();
        inbox.close();
        while let Some(message) = inbox.recv().await {
            message.refuse(error.clone());
        }
    }

    /// Continues the conversation, restores it from the store, or opens it.
    async fn load(&mut self, agent: AgentId, absent: MissingPolicy) -> Result<(), HostError> {
        let store = &self.shared.options.store;
        // A store with limited capacity may have deleted it.
        if let Some(IdleConversation { core, clock, entries, .. }) = self.shared.idle.take(&self.id)
            && store.entry_count(&self.id).await? == entries
        {
            (self.core, self.clock, self.entries) = (core, clock, entries);
            return Ok(());
        }
        let kept = store.entries(&self.id).await?;
        let (Some(first), Some(last)) = (kept.first(), kept.last()) else {
            if absent == MissingPolicy::Refuse {
                return Err(HostError::UnknownConversation(self.id.clone()));
            }
            let opening = ConversationOrigin { conversation: self.id.clone(), agent, parent: None };
            self.commit_entry(LogEntry::Open { opening }).await?;
            return Ok(());
        };
        self.clock = ConversationClock::resume(first.stamp, last.stamp);
        self.entries = kept.len() as u64;
        let (definitions, limits) = (&self.shared.definitions, self.shared.options.limits);
        let records = store.records(&self.id).await?;
        let (core, changed) =
            ConversationCore::restore(self.id.clone(), definitions, limits, &kept, &records);
        self.core = core;
        if let Some(first_difference) = changed {
            self.commit_entry(LogEntry::DefinitionChanged { first_difference }).await?;
            return Ok(());
        }
        let outstanding = self.core.outstanding();
        self.start_effects(outstanding);
        Ok(())
    }

    /// Handles messages and timers until the conversation can be unloaded.
    async fn run_loop(&mut self, inbox: &mut mpsc::Receiver<ActorMessage>) -> Result<(), HostError> {
        loop {
            let deadline = self.core.deadline().map(|at| self.clock.instant(at));
            let due = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(news) = self.report_receiver.recv() => self.handle_report(news).await?,
                Some(message) = inbox.recv() => self.handle_message(message).await?,
                () = due => drop(self.commit_entry(LogEntry::Due).await?),
            }
            if self.core.is_idle() && self.try_unload(inbox) {
                return Ok(());
            }
        }
    }

    async fn handle_report(&mut self, news: TaskReport) -> Result<(), HostError> {
        match news {
            TaskReport::Delta { at, delta } => {
                if let Some(call) = self.core.call(&at) {
                    let conversation = call.conversation.clone();
                    self.watchers.publish(&Signal::Delta { conversation, at, delta });
                }
            }
            TaskReport::Replied { at, result } => {
                self.calls.remove(&at);
                // A cancelled call may have ended anyway.
                if let Some(call) = self.core.call(&at) {
                    let conversation = call.conversation.clone();
                    self.commit_entry(LogEntry::Input {
                        conversation,
                        input: ConversationInput::ModelDone { at, result },
                    })
                    .await?;
                }
            }
            TaskReport::Recalled { run, token, result } => {
                self.commit_entry(LogEntry::Remembered { run, token, result }).await?;
            }
        }
        Ok(())
    }

    async fn handle_message(&mut self, message: ActorMessage) -> Result<(), HostError> {
        // The sender may be gone; the message is handled anyway.
        match message {
            ActorMessage::Send { input, answer } => {
                let conversation = self.core.conversation_for(&input);
                let entry = LogEntry::Input { conversation, input: *input };
                match self.commit_entry(entry).await {
                    Ok(sent) => drop(answer.send(Ok(sent))),
                    Err(error) => {
                        let _ = answer.send(Err(error.clone()));
                        return Err(error);
                    }
                }
            }
            ActorMessage::State { answer } => drop(answer.send(self.state().ok_or(HostError::Closed))),
            ActorMessage::Agent { answer } => {
                drop(answer.send(self.state().map(|state| state.agent).ok_or(HostError::Closed)));
            }
            ActorMessage::HandleDropped => {}
        }
        Ok(())
    }

    fn state(&self) -> Option<ConversationState> {
        self.core.world().conversation(&self.id).map(|held| held.state().clone())
    }

    /// Applies an entry, stores it, publishes its records, and starts the requested work.
    async fn commit_entry(&mut self, entry: LogEntry) -> Result<SendOutcome, HostError> {
        let stamp = self.clock.stamp();
        let mut applied = self.core.apply(stamp, entry.clone());
        let records = std::mem::take(&mut applied.records);
        let sent = send_outcome(&self.id, &records);
        let records: Vec<Arc<EventRecord>> = records.into_iter().map(Arc::new).collect();
        let mut digests = HookDigests::default();
        let stored_records =
            records.iter().map(|record| digests.shorten(record).map_or_else(|| record.clone(), Arc::new));
        self.entries += 1;
        let (conversation, number) = (self.id.clone(), self.entries);
        let commit = EntryCommit {
            conversation,
            number,
            stored: StoredEntry { stamp, entry },
            records: stored_records.collect(),
        };
        self.shared.options.store.commit(commit).await?;
        for record in records {
            self.watchers.publish(&Signal::Event(record));
        }
        self.start_effects(applied);
        Ok(sent)
    }

    fn start_effects(&mut self, applied: EntryEffects) {
        for at in applied.cancelled {
            if let Some(call) = self.calls.remove(&at) {
                call.abort();
            }
        }
        for at in applied.calls {
            self.call_model(at);
        }
        for (run, token) in applied.recalls {
            self.remember(run, token);
        }
    }

    fn call_model(&mut self, at: ModelAddress) {
        // The entry that requested the call may have cancelled it as well.
        let Some(call) = self.core.call(&at) else { return };
        let mut replying = ModelCallGuard { news: self.reports.clone(), at: Some(at.clone()) };
        let Some(model) = self.shared.models.get(&call.profile).cloned() else {
            let message = format!("no model is configured for profile {:?}", &*call.profile);
            replying.report(Err(ModelError::new(ModelErrorKind::Configuration, message)));
            return;
        };
        let (request, calls) = (call.request.clone(), self.shared.calls.clone());
        let (news, to) = (self.reports.clone(), at.clone());
        let task = tokio::spawn(async move {
            // The semaphore is never closed.
            let _permit = calls.acquire_owned().await;
            let mut sink = |delta: ReplyDelta| drop(news.send(TaskReport::Delta { at: to.clone(), delta }));
            let result = model.call(&request, &mut sink).await;
            replying.report(result);
        });
        self.calls.insert(at, task.abort_handle());
    }

    fn remember(&mut self, run: RunId, token: TokenId) {
        let Some(recall) = self.core.recall(&(run.clone(), token)) else { return };
        let timestamp = u64::try_from(wall_millis()).unwrap_or(0);
        let recalling =
            self.shared.options.store.remember(recall.agent.clone(), recall.usage.clone(), timestamp);
        let news = self.reports.clone();
        tokio::spawn(async move {
            let result = recalling.await;
            let result = result
                .map_err(|error| WorkFailure::infrastructure(InfrastructureKind::Server, error.message));
            let _ = news.send(TaskReport::Recalled { run, token, result });
        });
    }

    /// Unloads the conversation if it has no handles and no waiting messages. Returns true if it was
    /// unloaded.
    fn try_unload(&self, inbox: &mpsc::Receiver<ActorMessage>) -> bool {
        let mut loaded = self.shared.loaded();
        let needed = loaded.get(&self.id).is_some_and(|known| known.handles > 0) || !inbox.is_empty();
        if !needed {
            loaded.remove(&self.id);
            self.shared.options.store.release(&self.id);
        }
        !needed
    }
}

/// Model call in progress. Reports a failure if its task panics.
struct ModelCallGuard {
    news: mpsc::UnboundedSender<TaskReport>,
    at: Option<ModelAddress>,
}

impl ModelCallGuard {
    fn report(&mut self, result: Result<ModelReply, ModelError>) {
        if let Some(at) = self.at.take() {
            let _ = self.news.send(TaskReport::Replied { at, result });
        }
    }
}

impl Drop for ModelCallGuard {
    fn drop(&mut self) {
        self.report(Err(ModelError::new(ModelErrorKind::Server, "the model call panicked")));
    }
}

/// Returns the result of an input, derived from its records.
fn send_outcome(conversation: &ConversationId, records: &[EventRecord]) -> SendOutcome {
    let own = |record: &&EventRecord| {
        record.execution.as_ref().is_some_and(|execution| execution.id == conversation.0)
    };
    let mut sent = SendOutcome::default();
    if let Some(record) = records.iter().find(own) {
        match &record.payload {
            Payload::TurnStarted(started) => sent.turn = Some(TurnId(started.turn_id.clone())),
            Payload::InputIgnored(ignored) => sent.ignored = Some(ignored.reason.clone()),
            _ => {}
        }
    }
    sent
}
