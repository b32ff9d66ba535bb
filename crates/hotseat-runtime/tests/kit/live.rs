//! The same conversations on the tokio driver. The clock stands still and jumps to whatever is waited for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotseat_model::{Answering, Live, Model, Request, Sink};
use hotseat_runtime::conversation::{Input, Phase, TurnEnd};
use hotseat_runtime::definition::Definitions;
use hotseat_runtime::ids::AgentId;
use hotseat_runtime::live::{Handle, Host, HostOptions, Models, Signal, Watcher};
use hotseat_runtime::memory::{MemoryStore, MemoryUse, Recalled};
use hotseat_runtime::sim::{RunStatus, TestMessage};
use hotseat_runtime::store::{InMemory, Store};
use hotseat_trace::Payload;

use super::{Held, Test};

/// How long nothing may happen, on the clock that jumps.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

pub fn hold(test: &Test) -> Held {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        tokio::time::timeout(LONGEST, conversation(test)).await.expect("the conversation comes to rest")
    })
}

async fn conversation(test: &Test) -> Held {
    let (definitions, agent) = Definitions::of(&test.persona).unwrap();
    let requests = Arc::<Mutex<Vec<Request>>>::default();
    let model = Spied { model: Live::new(test.model()), requests: requests.clone() };
    let store = Arc::new(InMemory::default());
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = Host::new(Arc::new(definitions), Models::one(model), options);
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
    let failed = state.turns.iter().any(|turn| turn.phase == Phase::Ended(TurnEnd::Failed));
    let requests = requests.lock().unwrap().clone();
    Held {
        status: if failed { RunStatus::Failed } else { RunStatus::Completed },
        trace: handle.trace().await.unwrap(),
        turn_ids: state.turns.iter().map(|turn| turn.id.clone()).collect(),
        requests,
        memory: memory(&store, &agent).await,
    }
}

async fn say(handle: &Handle, message: &TestMessage) {
    let TestMessage { content, reply_to, .. } = message.clone();
    let input = Input::UserMessage { user: "user".into(), content, reply_to };
    let sent = handle.send(input).await.unwrap();
    assert!(sent.turn.is_some(), "{sent:?}");
}

/// Waits until every turn has ended.
async fn at_rest(handle: &Handle, watcher: &mut Watcher) {
    while handle.state().await.unwrap().active_turns().next().is_some() {
        loop {
            let signal = watcher.next().await.expect("the conversation goes on");
            let Signal::Event(record) = signal else { continue };
            if matches!(record.payload, Payload::TurnCompleted(_) | Payload::TurnFailed(_)) {
                break;
            }
        }
    }
}

async fn memory(store: &InMemory, agent: &AgentId) -> MemoryStore {
    let listed = store.remember(agent.clone(), MemoryUse::List { limit: None }, 0).await.unwrap();
    let Recalled::Found { records, .. } = listed else { panic!("{listed:?}") };
    let mut memory = MemoryStore::default();
    records.into_iter().for_each(|record| memory.write(record));
    memory
}

/// A model that is listened to.
struct Spied<M> {
    model: M,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl<M: Model> Model for Spied<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn call<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Answering<'a> {
        self.requests.lock().unwrap().push(request.clone());
        self.model.call(request, sink)
    }
}
