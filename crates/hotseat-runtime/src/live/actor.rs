//! The task that holds one conversation.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_model::{Delta, ErrorKind, ModelError, Reply};
use hotseat_trace::{Payload, Record};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use super::clock::{Clock, wall};
use super::core::{Applied, Core, Entry};
use super::watch::Watchers;
use super::{Absent, HostError, Sent, Shared, Signal};
use crate::conversation::{Input, ModelAddress, Opening, State};
use crate::failure::{Failure, InfrastructureKind};
use crate::ids::{AgentId, ConversationId, RunId, TurnId};
use crate::memory::Recalled;
use crate::store::{Commit, Kept};
use crate::work::TokenId;

/// Where an answer goes.
pub(super) type Answer<T> = oneshot::Sender<Result<T, HostError>>;

/// What a handle asks of its conversation.
pub(super) enum Message {
    Send {
        input: Box<Input>,
        answer: Answer<Sent>,
    },
    State {
        answer: Answer<State>,
    },
    Agent {
        answer: Answer<AgentId>,
    },
    /// The last handle is gone.
    Left,
}

/// What the tasks of a conversation tell it.
enum News {
    Delta { at: ModelAddress, delta: Delta },
    Replied { at: ModelAddress, result: Result<Reply, ModelError> },
    Recalled { run: RunId, token: TokenId, result: Result<Recalled, Failure> },
}

/// Holds one conversation.
pub(super) struct Actor {
    shared: Arc<Shared>,
    id: ConversationId,
    watchers: Arc<Watchers>,
    generation: u64,
    clock: Clock,
    core: Core,
    /// How many entries are kept.
    entries: u64,
    calls: BTreeMap<ModelAddress, AbortHandle>,
    news: mpsc::UnboundedSender<News>,
    heard: mpsc::UnboundedReceiver<News>,
}

impl Actor {
    pub(super) fn new(
        shared: Arc<Shared>,
        id: ConversationId,
        watchers: Arc<Watchers>,
        generation: u64,
    ) -> Self {
        let core = Core::new(id.clone(), shared.definitions.clone(), shared.options.limits);
        let (news, heard) = mpsc::unbounded_channel();
        let (clock, calls) = (Clock::new(), BTreeMap::new());
        Actor { shared, id, watchers, generation, clock, core, entries: 0, calls, news, heard }
    }

    pub(super) async fn run(mut self, agent: AgentId, absent: Absent, mut inbox: mpsc::Receiver<Message>) {
        let result = match self.begin(agent, absent).await {
            Ok(()) => self.hold(&mut inbox).await,
            Err(error) => Err(error),
        };
        let Err(error) = result else { return };
        // Nobody finds this conversation any more; who has found it already is told.
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

    /// Makes the conversation from what is kept of it, or opens it.
    async fn begin(&mut self, agent: AgentId, absent: Absent) -> Result<(), HostError> {
        let store = &self.shared.options.store;
        let kept = store.entries(&self.id).await?;
        let (Some(first), Some(last)) = (kept.first(), kept.last()) else {
            if absent == Absent::Refused {
                return Err(HostError::UnknownConversation(self.id.clone()));
            }
            let opening = Opening { conversation: self.id.clone(), agent, parent: None };
            self.step(Entry::Open { opening }).await?;
            return Ok(());
        };
        self.clock = Clock::resumed(first.stamp, last.stamp);
        self.entries = kept.len() as u64;
        let (definitions, limits) = (&self.shared.definitions, self.shared.options.limits);
        let records = store.records(&self.id).await?;
        let (core, changed) = Core::restored(self.id.clone(), definitions, limits, &kept, &records);
        self.core = core;
        if let Some(first_difference) = changed {
            self.step(Entry::DefinitionChanged { first_difference }).await?;
            return Ok(());
        }
        let outstanding = self.core.outstanding();
        self.carry_out(outstanding);
        Ok(())
    }

    /// Takes what happens, until nobody needs the conversation any more.
    async fn hold(&mut self, inbox: &mut mpsc::Receiver<Message>) -> Result<(), HostError> {
        loop {
            let deadline = self.core.deadline().map(|at| self.clock.instant(at));
            let due = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(news) = self.heard.recv() => self.hear(news).await?,
                Some(message) = inbox.recv() => self.answer(message).await?,
                () = due => drop(self.step(Entry::Due).await?),
            }
            if self.core.is_idle() && self.leave(inbox) {
                return Ok(());
            }
        }
    }

    async fn hear(&mut self, news: News) -> Result<(), HostError> {
        match news {
            News::Delta { at, delta } => {
                if let Some(call) = self.core.call(&at) {
                    let conversation = call.conversation.clone();
                    self.watchers.publish(&Signal::Delta { conversation, at, delta });
                }
            }
            News::Replied { at, result } => {
                self.calls.remove(&at);
                // A call that was given up may have ended all the same.
                if let Some(call) = self.core.call(&at) {
                    let conversation = call.conversation.clone();
                    self.step(Entry::Input { conversation, input: Input::ModelDone { at, result } }).await?;
                }
            }
            News::Recalled { run, token, result } => {
                self.step(Entry::Remembered { run, token, result }).await?;
            }
        }
        Ok(())
    }

    async fn answer(&mut self, message: Message) -> Result<(), HostError> {
        // Whoever asked may be gone; what was asked is done all the same.
        match message {
            Message::Send { input, answer } => {
                let conversation = self.core.home(&input);
                let entry = Entry::Input { conversation, input: *input };
                match self.step(entry).await {
                    Ok(sent) => drop(answer.send(Ok(sent))),
                    Err(error) => {
                        let _ = answer.send(Err(error.clone()));
                        return Err(error);
                    }
                }
            }
            Message::State { answer } => drop(answer.send(self.state().ok_or(HostError::Gone))),
            Message::Agent { answer } => {
                drop(answer.send(self.state().map(|state| state.agent).ok_or(HostError::Gone)));
            }
            Message::Left => {}
        }
        Ok(())
    }

    fn state(&self) -> Option<State> {
        self.core.world().conversation(&self.id).map(|held| held.state().clone())
    }

    /// An entry is carried out, kept, shown, and then done what it asks for.
    async fn step(&mut self, entry: Entry) -> Result<Sent, HostError> {
        let stamp = self.clock.stamp();
        let mut applied = self.core.apply(stamp, entry.clone());
        let records = std::mem::take(&mut applied.records);
        let sent = sent(&self.id, &records);
        let shown: Vec<Arc<Record>> = records.iter().cloned().map(Arc::new).collect();
        self.entries += 1;
        let (conversation, number) = (self.id.clone(), self.entries);
        let commit = Commit { conversation, number, kept: Kept { stamp, entry }, records };
        self.shared.options.store.commit(commit).await?;
        for record in shown {
            self.watchers.publish(&Signal::Event(record));
        }
        self.carry_out(applied);
        Ok(sent)
    }

    fn carry_out(&mut self, applied: Applied) {
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
        // A call may be given up by the same entry that asked for it.
        let Some(call) = self.core.call(&at) else { return };
        let mut replying = Replying { news: self.news.clone(), at: Some(at.clone()) };
        let Some(model) = self.shared.models.get(&call.profile).cloned() else {
            let message = format!("no model is known as {:?}", &*call.profile);
            replying.ended(Err(ModelError::new(ErrorKind::Configuration, message)));
            return;
        };
        let (request, calls) = (call.request.clone(), self.shared.calls.clone());
        let (news, to) = (self.news.clone(), at.clone());
        let task = tokio::spawn(async move {
            // The semaphore is never closed.
            let _permit = calls.acquire_owned().await;
            let mut sink = |delta: Delta| drop(news.send(News::Delta { at: to.clone(), delta }));
            let result = model.call(&request, &mut sink).await;
            replying.ended(result);
        });
        self.calls.insert(at, task.abort_handle());
    }

    fn remember(&mut self, run: RunId, token: TokenId) {
        let Some(recall) = self.core.recall(&(run.clone(), token)) else { return };
        let timestamp = u64::try_from(wall()).unwrap_or(0);
        let recalling =
            self.shared.options.store.remember(recall.agent.clone(), recall.usage.clone(), timestamp);
        let news = self.news.clone();
        tokio::spawn(async move {
            let result = recalling.await;
            let result =
                result.map_err(|error| Failure::infrastructure(InfrastructureKind::Server, error.message));
            let _ = news.send(News::Recalled { run, token, result });
        });
    }

    /// Whether nobody holds the conversation and nothing has come for it; it is then no longer found.
    fn leave(&self, inbox: &mpsc::Receiver<Message>) -> bool {
        let mut loaded = self.shared.loaded();
        let needed = loaded.get(&self.id).is_some_and(|known| known.handles > 0) || !inbox.is_empty();
        if !needed {
            loaded.remove(&self.id);
            self.shared.options.store.release(&self.id);
        }
        !needed
    }
}

impl Message {
    fn refuse(self, error: HostError) {
        match self {
            Message::Send { answer, .. } => drop(answer.send(Err(error))),
            Message::State { answer } => drop(answer.send(Err(error))),
            Message::Agent { answer } => drop(answer.send(Err(error))),
            Message::Left => {}
        }
    }
}

/// A model call that is on its way. If its task breaks down, the conversation learns of it.
struct Replying {
    news: mpsc::UnboundedSender<News>,
    at: Option<ModelAddress>,
}

impl Replying {
    fn ended(&mut self, result: Result<Reply, ModelError>) {
        if let Some(at) = self.at.take() {
            let _ = self.news.send(News::Replied { at, result });
        }
    }
}

impl Drop for Replying {
    fn drop(&mut self) {
        self.ended(Err(ModelError::new(ErrorKind::Server, "the model call broke down")));
    }
}

/// What became of an input, by the records it gave.
fn sent(conversation: &ConversationId, records: &[Record]) -> Sent {
    let own =
        |record: &&Record| record.execution.as_ref().is_some_and(|execution| execution.id == conversation.0);
    let mut sent = Sent::default();
    if let Some(record) = records.iter().find(own) {
        match &record.payload {
            Payload::TurnStarted(started) => sent.turn = Some(TurnId(started.turn_id.clone())),
            Payload::InputIgnored(ignored) => sent.ignored = Some(ignored.reason.clone()),
            _ => {}
        }
    }
    sent
}
