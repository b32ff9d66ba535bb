//! The foundation conversations on the tokio driver, with a paused clock that advances to the next timer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotseat_model::{LiveModel, Model, ModelRequest, ReplyFuture, ReplySink};
use hotseat_runtime::conversation::{ConversationInput, TurnEnd, TurnPhase};
use hotseat_runtime::definition::Definitions;
use hotseat_runtime::ids::AgentId;
use hotseat_runtime::live::{
    ConversationHandle, ConversationHost, HostOptions, ModelRegistry, Signal, Watcher,
};
use hotseat_runtime::memory::{MemoryResult, MemoryStore, MemoryUse};
use hotseat_runtime::sim::{TestMessage, TestStatus};
use hotseat_runtime::store::{ConversationStore, InMemoryStore};
use hotseat_trace::Payload;

use super::{ConversationRun, Test};

/// Maximum idle time on the paused clock.
const MAX_IDLE: Duration = Duration::from_secs(24 * 3600);

pub fn run_with_driver(test: &Test) -> ConversationRun {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        tokio::time::timeout(MAX_IDLE, conversation(test)).await.expect("the conversation comes to rest")
    })
}

async fn conversation(test: &Test) -> ConversationRun {
    let (definitions, agent) = Definitions::from_persona(&test.persona).unwrap();
    let requests = Arc::<Mutex<Vec<Arc<ModelRequest>>>>::default();
    let model = ObservedModel { model: LiveModel::new(test.model()), requests: requests.clone() };
    let store = Arc::new(InMemoryStore::default());
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = ConversationHost::new(Arc::new(definitions), ModelRegistry::single(model), options);
    let handle = host.conversation(&"c1".into(), &agent).await.unwrap();
    let mut watcher = handle.watch();
    for message in &test.messages {
        tokio::time::sleep(Duration::from_millis(message.delay_ms)).await;
        say(&handle, message).await;
        if test.sequential {
            at_rest(&handle, &mut watcher).await;
        }
    }
    at_rest(&handle, &mut watcher).await;
    let state = handle.state().await.unwrap();
    let failed = state.turns.iter().any(|turn| turn.phase == TurnPhase::Ended(TurnEnd::Failed));
    let requests = requests.lock().unwrap().clone();
    ConversationRun {
        status: if failed { TestStatus::Failed } else { TestStatus::Completed },
        trace: handle.trace().await.unwrap(),
        turn_ids: state.turns.iter().map(|turn| turn.id.clone()).collect(),
        requests,
        memory: memory(&store, &agent).await,
    }
}

async fn say(handle: &ConversationHandle, message: &TestMessage) {
    let TestMessage { content, reply_to, .. } = message.clone();
    let input = ConversationInput::UserMessage { user: "user".into(), content, reply_to, client_id: None };
    let sent = handle.send(input).await.unwrap();
    assert!(sent.turn.is_some(), "{sent:?}");
}

/// Waits until every turn has ended.
async fn at_rest(handle: &ConversationHandle, watcher: &mut Watcher) {
    while handle.state().await.unwrap().active_turns().next().is_some() {
        loop {
            let signal = watcher.next().await.expect("the conversation continues");
            let Signal::Event(record) = signal else { continue };
            if matches!(record.payload, Payload::TurnCompleted(_) | Payload::TurnFailed(_)) {
                break;
            }
        }
    }
}

async fn memory(store: &InMemoryStore, agent: &AgentId) -> MemoryStore {
    let listed = store.remember(agent.clone(), MemoryUse::List { limit: None }, 0).await.unwrap();
    let MemoryResult::Found { records, .. } = listed else { panic!("{listed:?}") };
    let mut memory = MemoryStore::default();
    records.into_iter().for_each(|record| memory.write(record));
    memory
}

/// A model that records its requests.
struct ObservedModel<M> {
    model: M,
    requests: Arc<Mutex<Vec<Arc<ModelRequest>>>>,
}

impl<M: Model> Model for ObservedModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn call<'a>(&'a self, request: &'a ModelRequest, sink: &'a mut dyn ReplySink) -> ReplyFuture<'a> {
        self.requests.lock().unwrap().push(Arc::new(request.clone()));
        self.model.call(request, sink)
    }
}
