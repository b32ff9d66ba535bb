//! The tokio driver: streaming, cancellation, limits, restarts, and the stores under it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::kit::{at, subjects};
use hotseat_model::{LiveModel, Model, ModelReply, ModelRequest, ReplyDelta, ReplyFuture, ReplySink};
use hotseat_runtime::conversation::{ConversationInput, TurnPhase};
use hotseat_runtime::definition::{Definitions, Persona, mock, persona, task, tool};
use hotseat_runtime::ids::{AgentId, ConversationId, TurnId};
use hotseat_runtime::live::{
    ConversationHandle, ConversationHost, HostError, HostOptions, ModelRegistry, Signal, Watcher,
};
use hotseat_runtime::memory::{MemoryRecord, MemoryResult, MemoryStore, MemoryUse};
use hotseat_runtime::store::{
    ConversationStore, ConversationStoreError, EntryCommit, InMemoryStore, LogEntry, SqliteStore,
    StoreBounds, StoreFuture, StoredEntry,
};
use hotseat_trace::{EventRecord, InvariantOptions, Payload, assert_conversation_invariants};
use proptest::prelude::*;
use serde_json::json;
use tokio::sync::Semaphore;

fn host(persona: &Persona, model: impl Model + 'static, options: HostOptions) -> (ConversationHost, AgentId) {
    let (definitions, agent) = Definitions::from_persona(persona).unwrap();
    (ConversationHost::new(Arc::new(definitions), ModelRegistry::single(model), options), agent)
}

fn store_options(store: impl ConversationStore) -> HostOptions {
    HostOptions { store: Arc::new(store), ..HostOptions::default() }
}

async fn say(handle: &ConversationHandle, content: &str) -> TurnId {
    let input = ConversationInput::UserMessage {
        user: "user".into(),
        content: content.to_string(),
        reply_to: None,
        client_id: None,
    };
    handle.send(input).await.unwrap().turn.unwrap()
}

/// Signals up to the end of a turn.
async fn until_end(watcher: &mut Watcher, turn: &TurnId) -> Vec<Signal> {
    let mut seen = Vec::new();
    loop {
        let signal = watcher.next().await.expect("the conversation continues");
        let ended = match &signal {
            Signal::Event(record) => match &record.payload {
                Payload::TurnCompleted(end) => end.turn_id == turn.0,
                Payload::TurnFailed(end) => end.turn_id == turn.0,
                _ => false,
            },
            Signal::Delta { .. } => false,
        };
        seen.push(signal);
        if ended {
            return seen;
        }
    }
}

fn spoken_texts(signals: &[Signal]) -> Vec<String> {
    let messages = signals.iter().filter_map(|signal| match signal {
        Signal::Event(record) => match &record.payload {
            Payload::AssistantMessage(message) => Some(message.content.to_string()),
            _ => None,
        },
        Signal::Delta { .. } => None,
    });
    messages.collect()
}

/// A model controlled by a gate that counts its concurrent calls.
#[derive(Clone, Default)]
struct GatedModel {
    open: CallGate,
    begun: CallGate,
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

/// A gate that lets one call pass per opening.
#[derive(Clone)]
struct CallGate(Arc<Semaphore>);

impl Default for CallGate {
    fn default() -> Self {
        CallGate(Arc::new(Semaphore::new(0)))
    }
}

impl CallGate {
    fn open(&self) {
        self.0.add_permits(1);
    }

    async fn pass(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

struct RunningCall(Arc<AtomicUsize>);

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Model for GatedModel {
    fn name(&self) -> &str {
        "gated"
    }

    fn call<'a>(&'a self, _request: &'a ModelRequest, sink: &'a mut dyn ReplySink) -> ReplyFuture<'a> {
        Box::pin(async move {
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(running, Ordering::SeqCst);
            let _running = RunningCall(self.running.clone());
            sink.delta(ReplyDelta::Text { text: "One ".to_string() });
            self.begun.open();
            self.open.pass().await;
            sink.delta(ReplyDelta::Text { text: "two.".to_string() });
            Ok(ModelReply::text("One two."))
        })
    }
}

#[tokio::test]
async fn reply_pieces_arrive_before_whole_reply() {
    let model = GatedModel::default();
    let (host, agent) = host(&persona("P"), model.clone(), HostOptions::default());
    let handle = host.conversation(&"c1".into(), &agent).await.unwrap();
    let mut watcher = handle.watch();
    let turn = say(&handle, "go").await;
    let first = loop {
        if let Signal::Delta { at, delta, conversation } = watcher.next().await.unwrap() {
            assert_eq!((at.turn, conversation), (turn.clone(), "c1".into()));
            break delta;
        }
    };
    assert_eq!(first, ReplyDelta::Text { text: "One ".to_string() });
    model.open.open();
    let seen = until_end(&mut watcher, &turn).await;
    let second = ReplyDelta::Text { text: "two.".to_string() };
    let place = seen.iter().position(|s| matches!(s, Signal::Delta { delta, .. } if *delta == second));
    let whole = seen.iter().position(|signal| !spoken_texts(std::slice::from_ref(signal)).is_empty());
    assert!(place.unwrap() < whole.unwrap());
    assert_eq!(spoken_texts(&seen), ["One two."]);
}

#[tokio::test]
async fn cancelled_turn_drops_model_call_and_next_turn_runs() {
    let model = GatedModel::default();
    let (host, agent) = host(&persona("P"), model.clone(), HostOptions::default());
    let handle = host.conversation(&"c1".into(), &agent).await.unwrap();
    let mut watcher = handle.watch();
    let turn = say(&handle, "go").await;
    model.begun.pass().await;
    let cancel =
        ConversationInput::CancelTurn { turn: turn.clone(), reason: "the client is gone".to_string() };
    assert_eq!(handle.send(cancel.clone()).await.unwrap().ignored, None);
    let seen = until_end(&mut watcher, &turn).await;
    assert!(spoken_texts(&seen).is_empty());
    let again = handle.send(cancel).await.unwrap();
    assert_eq!(again.ignored.as_deref(), Some("the turn to cancel is not active"));

    let turn = say(&handle, "once more").await;
    model.begun.pass().await;
    assert_eq!(model.running.load(Ordering::SeqCst), 1, "the first call was given up");
    model.open.open();
    assert_eq!(spoken_texts(&until_end(&mut watcher, &turn).await), ["One two."]);
    let options = InvariantOptions { allow_failed_turns: true, deny_tool_failures: false };
    assert_conversation_invariants(&handle.trace().await.unwrap(), options);
}

#[tokio::test]
async fn concurrent_model_calls_are_limited() {
    let model = GatedModel::default();
    let options = HostOptions { max_model_calls: 2, ..HostOptions::default() };
    let (host, agent) = host(&persona("P"), model.clone(), options);
    let mut held = Vec::new();
    for number in 0..5 {
        let id = ConversationId::from(format!("c{number}"));
        let handle = host.conversation(&id, &agent).await.unwrap();
        let watcher = handle.watch();
        held.push((say(&handle, "go").await, watcher, handle));
    }
    for _ in 0..5 {
        model.begun.pass().await;
        model.open.open();
    }
    for (turn, watcher, _) in &mut held {
        assert_eq!(spoken_texts(&until_end(watcher, turn).await), ["One two."]);
    }
    assert_eq!(model.most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn panicking_model_fails_only_its_turn() {
    struct PanickingModel;
    impl Model for PanickingModel {
        fn name(&self) -> &str {
            "broken"
        }

        fn call<'a>(&'a self, _: &'a ModelRequest, _: &'a mut dyn ReplySink) -> ReplyFuture<'a> {
            Box::pin(async { panic!("a model that breaks down on purpose") })
        }
    }
    let mut options = HostOptions::default();
    options.limits.model.backoff_ms = 1;
    let (host, agent) = host(&persona("P"), PanickingModel, options);
    let handle = host.conversation(&"c1".into(), &agent).await.unwrap();
    let mut watcher = handle.watch();
    let turn = say(&handle, "go").await;
    let seen = until_end(&mut watcher, &turn).await;
    let Some(Signal::Event(last)) = seen.last() else { panic!("{seen:?}") };
    let Payload::TurnFailed(failed) = &last.payload else { panic!("{last:?}") };
    assert!(failed.error.message.contains("the model call panicked"), "{failed:?}");
    assert!(handle.state().await.is_ok());
}

#[tokio::test]
async fn idle_conversation_is_unloaded_and_restored() {
    let model = GatedModel::default();
    let (host, agent) = host(&persona("P"), model.clone(), HostOptions::default());
    let handle = host.conversation(&"c1".into(), &agent).await.unwrap();
    say(&handle, "go").await;
    drop(handle);
    model.begun.pass().await;
    assert_eq!(host.loaded(), 1, "it still waits for its model");
    model.open.open();
    while host.loaded() > 0 {
        tokio::task::yield_now().await;
    }
    let handle = host.conversation(&"c1".into(), &agent).await.unwrap();
    let state = handle.state().await.unwrap();
    assert_eq!(
        state.messages.iter().map(|message| &*message.content).collect::<Vec<_>>(),
        ["go", "One two."]
    );
}

#[tokio::test]
async fn conversation_belongs_to_one_agent() {
    let store = Arc::new(InMemoryStore::default());
    let reviewer = persona("Reviewer").system("Review.");
    let manager = persona("Manager").tool(tool("ask").agent(&reviewer));
    let options = || HostOptions { store: store.clone(), ..HostOptions::default() };
    let (definitions, agent) = Definitions::from_persona(&manager).unwrap();
    let definitions = Arc::new(definitions);
    let model = || ModelRegistry::single(LiveModel::new(subjects::greeter().model()));
    let host = ConversationHost::new(definitions.clone(), model(), options());
    let id: ConversationId = "c1".into();
    let handle = host.conversation(&id, &agent).await.unwrap();
    let mut watcher = handle.watch();
    let turn = say(&handle, "Hello!").await;
    until_end(&mut watcher, &turn).await;

    let wrong = host.conversation(&id, &"reviewer".into()).await.err().unwrap();
    assert_eq!(wrong.to_string(), "conversation c1 belongs to agent manager");
    let wrong = host.conversation(&id, &"nobody".into()).await.err().unwrap();
    assert_eq!(wrong.to_string(), "unknown agent nobody");

    let (changed, agent) =
        Definitions::from_persona(&persona("Manager").system("Now something else.")).unwrap();
    let other = ConversationHost::new(Arc::new(changed), model(), options());
    let handle = other.conversation(&id, &agent).await.unwrap();
    let trace = handle.trace().await.unwrap();
    assert!(trace.all().iter().any(|record| matches!(record.payload, Payload::DefinitionChanged(_))));
}

/// A store that records its commits, counts its reads, and fails from a given entry on.
struct RecordingStore {
    store: InMemoryStore,
    commits: Mutex<Vec<EntryCommit>>,
    reads: Arc<AtomicUsize>,
    fails_from: u64,
}

impl RecordingStore {
    fn failing_from(fails_from: u64) -> Self {
        RecordingStore {
            store: InMemoryStore::default(),
            commits: Mutex::default(),
            reads: Arc::default(),
            fails_from,
        }
    }
}

impl ConversationStore for RecordingStore {
    fn commit(&self, commit: EntryCommit) -> StoreFuture<()> {
        if commit.number >= self.fails_from {
            let error = ConversationStoreError { message: "the disk is full".to_string(), is_full: false };
            return Box::pin(std::future::ready(Err(error)));
        }
        self.commits.lock().unwrap().push(commit.clone());
        self.store.commit(commit)
    }

    fn entries(&self, conversation: &ConversationId) -> StoreFuture<Vec<StoredEntry>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.store.entries(conversation)
    }

    fn entry_count(&self, conversation: &ConversationId) -> StoreFuture<u64> {
        self.store.entry_count(conversation)
    }

    fn records(&self, conversation: &ConversationId) -> StoreFuture<Vec<EventRecord>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.store.records(conversation)
    }

    fn conversations(&self) -> StoreFuture<Vec<ConversationId>> {
        self.store.conversations()
    }

    fn remember(&self, agent: AgentId, usage: MemoryUse, timestamp: u64) -> StoreFuture<MemoryResult> {
        self.store.remember(agent, usage, timestamp)
    }
}

/// Otherwise each turn of a thread would cost as much as all turns before it.
#[tokio::test]
async fn next_turn_of_an_idle_conversation_reads_nothing() {
    let store = RecordingStore::failing_from(u64::MAX);
    let reads = store.reads.clone();
    let (host, agent) =
        host(&persona("P"), LiveModel::new(subjects::greeter().model()), store_options(store));
    let mut read_before = Vec::new();
    for _ in 0..3 {
        let handle = host.conversation(&"c1".into(), &agent).await.unwrap();
        let mut watcher = handle.watch();
        let turn = say(&handle, "Hello!").await;
        until_end(&mut watcher, &turn).await;
        drop((handle, watcher));
        while host.loaded() > 0 {
            tokio::task::yield_now().await;
        }
        read_before.push(reads.load(Ordering::SeqCst));
    }
    assert_eq!(read_before, [1, 1, 1], "only the first turn looks the conversation up");
    let handle = host.conversation(&"c1".into(), &agent).await.unwrap();
    assert_eq!(handle.state().await.unwrap().turns.len(), 3);
}

/// Any number of conversations would take any amount of memory.
#[tokio::test]
async fn sixty_four_idle_conversations_are_kept() {
    let store = RecordingStore::failing_from(u64::MAX);
    let reads = store.reads.clone();
    let (host, agent) =
        host(&persona("P"), LiveModel::new(subjects::greeter().model()), store_options(store));
    let visit = async |number: usize| {
        let before = reads.load(Ordering::SeqCst);
        let handle = host.conversation(&format!("c{number}").as_str().into(), &agent).await.unwrap();
        drop(handle);
        while host.loaded() > 0 {
            tokio::task::yield_now().await;
        }
        reads.load(Ordering::SeqCst) > before
    };
    for number in 0..65 {
        assert!(visit(number).await, "a new conversation is looked up");
    }
    assert!(!visit(64).await && !visit(1).await, "they are kept");
    assert!(visit(0).await, "the 65th took its place");
}

#[tokio::test]
async fn a_conversation_that_the_store_deleted_begins_anew() {
    let bounds = StoreBounds { conversations: 1, ..StoreBounds::default() };
    let options = store_options(InMemoryStore::with_bounds(bounds));
    let (host, agent) = host(&persona("P"), LiveModel::new(subjects::greeter().model()), options);
    for id in ["c1", "c2", "c1"] {
        let handle = host.conversation(&id.into(), &agent).await.unwrap();
        let mut watcher = handle.watch();
        let turn = say(&handle, "Hello!").await;
        until_end(&mut watcher, &turn).await;
        assert_eq!(handle.state().await.unwrap().turns.len(), 1, "{id}");
        drop((handle, watcher));
        while host.loaded() > 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn store_failure_stops_work_and_is_reported() {
    let model = GatedModel::default();
    let store = RecordingStore::failing_from(2);
    let (host, agent) = host(&persona("P"), model.clone(), store_options(store));
    let handle = host.conversation(&"c1".into(), &agent).await.unwrap();
    let mut watcher = handle.watch();
    let input = ConversationInput::UserMessage {
        user: "user".into(),
        content: "go".to_string(),
        reply_to: None,
        client_id: None,
    };
    let error = handle.send(input).await.err().unwrap();
    assert_eq!(error.to_string(), "the conversation cannot be stored: the disk is full");
    assert!(watcher.next().await.is_none());
    assert_eq!(handle.state().await.err(), Some(HostError::Closed));
    assert_eq!(model.most.load(Ordering::SeqCst), 0, "no model was asked");
    drop((handle, watcher));
    let again = host.conversation(&"c1".into(), &agent).await.unwrap();
    assert_eq!(again.state().await.unwrap().turns.len(), 0);
}

/// Every foundation conversation is interrupted after each entry and resumed from there.
#[test]
fn conversation_resumes_after_restart_at_any_entry() {
    let held = |test: &crate::kit::Test, known: &[EntryCommit]| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(resume_from(test, known))
    };
    let words = |commits: &[EntryCommit]| -> Vec<String> {
        let records = commits.iter().flat_map(|commit| &commit.records);
        let messages = records.filter_map(|record| match &record.payload {
            Payload::AssistantMessage(message) => Some(message.content.to_string()),
            _ => None,
        });
        messages.collect()
    };
    let mut restarts = 0;
    for (name, test) in subjects::all() {
        let commits = held(&test, &[]);
        for count in 1..commits.len() {
            let again = held(&test, &commits[..count]);
            assert_eq!(words(&again), words(&commits), "{name}, after {count}");
            let records = again.iter().flat_map(|commit| &commit.records).map(|record| (**record).clone());
            let options =
                InvariantOptions { allow_failed_turns: test.allow_failed_turns, deny_tool_failures: false };
            assert_conversation_invariants(&hotseat_trace::Trace::new(records), options);
            restarts += 1;
        }
    }
    assert!(restarts > 40, "{restarts}");
}

/// Resumes a conversation from the known commits; returns all commits at its end.
async fn resume_from(test: &crate::kit::Test, known: &[EntryCommit]) -> Vec<EntryCommit> {
    let store = Arc::new(RecordingStore::failing_from(u64::MAX));
    for commit in known {
        store.commit(commit.clone()).await.unwrap();
    }
    let is_message = |commit: &&EntryCommit| {
        matches!(&commit.stored.entry, LogEntry::Input { input: ConversationInput::UserMessage { .. }, .. })
    };
    let sent = known.iter().filter(is_message).count();
    let (definitions, agent) = Definitions::from_persona(&test.persona).unwrap();
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = ConversationHost::new(
        Arc::new(definitions),
        ModelRegistry::single(LiveModel::new(test.model())),
        options,
    );
    let handle = host.conversation(&"c1".into(), &agent).await.unwrap();
    let mut watcher = handle.watch();
    for message in test.messages.iter().skip(sent) {
        if test.sequential {
            wait_until_idle(&handle, &mut watcher).await;
        }
        say(&handle, &message.content).await;
    }
    wait_until_idle(&handle, &mut watcher).await;
    let commits = store.commits.lock().unwrap();
    commits.clone()
}

/// Waits until every turn has ended.
async fn wait_until_idle(handle: &ConversationHandle, watcher: &mut Watcher) {
    while handle.state().await.unwrap().turns.iter().any(|turn| !matches!(turn.phase, TurnPhase::Ended(_))) {
        watcher.next().await.unwrap();
    }
}

#[tokio::test]
async fn sqlite_persists_conversations_and_memories() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.db");
    let id: ConversationId = "c1".into();
    let test = subjects::multi_turn();
    let (definitions, agent) = Definitions::from_persona(&test.persona).unwrap();
    let definitions = Arc::new(definitions);
    let mut records = Vec::new();
    for message in &test.messages {
        let store = Arc::new(SqliteStore::open(&file).unwrap());
        let options = HostOptions { store: store.clone(), ..HostOptions::default() };
        let host = ConversationHost::new(
            definitions.clone(),
            ModelRegistry::single(LiveModel::new(test.model())),
            options,
        );
        let handle = host.conversation(&id, &agent).await.unwrap();
        let mut watcher = handle.watch();
        let before = handle.trace().await.unwrap();
        if !records.is_empty() {
            assert_eq!(before.all(), records, "stored records are unchanged");
        }
        let turn = say(&handle, &message.content).await;
        until_end(&mut watcher, &turn).await;
        records = handle.trace().await.unwrap().all().to_vec();
        assert_eq!(host.conversations().await.unwrap(), std::slice::from_ref(&id));
        drop((handle, watcher));
        while host.loaded() > 0 {
            tokio::task::yield_now().await;
        }
        drop(host);
        assert_eq!(Arc::strong_count(&store), 1);
    }
    let trace = hotseat_trace::Trace::new(records);
    assert_eq!(trace.turns().completions().len(), 3);
    assert_conversation_invariants(&trace, InvariantOptions::default());
}

#[tokio::test]
async fn database_is_locked_and_version_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.db");
    let first = SqliteStore::open(&file).unwrap();
    let wrong = SqliteStore::open(&file).err().unwrap();
    assert!(wrong.message.ends_with("another process uses this file"), "{wrong}");
    drop(first);
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let wrong = SqliteStore::open(&file).err().unwrap();
    assert!(wrong.message.contains("created by a later version (schema 99, known 4)"), "{wrong}");
    let wrong = SqliteStore::open(folder.path()).err().unwrap();
    assert!(wrong.message.starts_with(&folder.path().display().to_string()), "{wrong}");
}

#[tokio::test]
async fn other_databases_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (application, version, table)) in
        [(0, 0, "notes"), (0, 6, "conversation"), (0x486f_7431, 6, "run"), (0x486f_7431, 0, "entry")]
            .iter()
            .enumerate()
    {
        let file = folder.path().join(format!("{number}.db"));
        let connection = rusqlite::Connection::open(&file).unwrap();
        connection.execute_batch(&format!("CREATE TABLE {table} (text TEXT)")).unwrap();
        connection.pragma_update(None, "application_id", application).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
        drop(connection);
        let before = std::fs::read(&file).unwrap();
        let wrong = SqliteStore::open(&file).err().unwrap();
        assert!(
            wrong
                .message
                .ends_with("is a database, but not a store of served conversations; name another file"),
            "{wrong}"
        );
        assert_eq!(std::fs::read(&file).unwrap(), before, "{table}");
    }
    // Earlier versions set no application id.
    let file = folder.path().join("own.db");
    drop(SqliteStore::open(&file).unwrap());
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.pragma_update(None, "application_id", 0).unwrap();
    drop(connection);
    drop(SqliteStore::open(&file).unwrap());
}

#[tokio::test]
async fn out_of_order_entry_is_rejected_without_effect() {
    let folder = tempfile::tempdir().unwrap();
    let stores: [Box<dyn ConversationStore>; 2] = [
        Box::new(InMemoryStore::default()),
        Box::new(SqliteStore::open(&folder.path().join("s.db")).unwrap()),
    ];
    let kept =
        || StoredEntry { stamp: hotseat_runtime::world::DeliveryTime::default(), entry: LogEntry::Due };
    let commit =
        |number| EntryCommit { conversation: "c1".into(), number, stored: kept(), records: Vec::new() };
    for store in stores {
        store.commit(commit(1)).await.unwrap();
        assert!(store.commit(commit(1)).await.is_err());
        store.commit(commit(2)).await.unwrap();
        assert_eq!(store.entries(&"c1".into()).await.unwrap(), [kept(), kept()]);
    }
}

/// Text with frequent collisions and search operators.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "tea", "Tea", "green", "Alice", "likes", "\"", "OR", "NOT", "tea*", "a-b", "Füße", "NEAR(", "x'; --",
    ]);
    prop::collection::vec(word, 0..6).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// After any writes, reads, deletions and searches, both stores return the same memories.
    #[test]
    fn sqlite_and_memory_store_behave_alike(
        uses in prop::collection::vec((0..6_u8, 0..4_u8, words(), 0..3_u8), 1..30)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = SqliteStore::open(&folder.path().join("s.db")).unwrap();
        let mut memory = MemoryStore::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (kind, id, text, agent) in uses {
            let (agent, id) = (AgentId::from(format!("a{agent}")), format!("m{id}").into());
            let usage = match kind {
                0 | 1 => MemoryUse::Write {
                    id,
                    kind: "fact".to_string(),
                    content: text,
                    significance: f64::from(kind) / 2.0,
                },
                2 => MemoryUse::Read { id },
                3 => MemoryUse::Search { query: text, limit: 3 },
                4 => MemoryUse::List { limit: None },
                _ => MemoryUse::Delete { id },
            };
            let kept = runtime.block_on(sqlite.remember(agent.clone(), usage.clone(), 7)).unwrap();
            prop_assert_eq!(kept, memory.execute(&agent, &usage, 7));
        }
    }
}

#[test]
fn memory_record_round_trips_through_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let usage = MemoryUse::Write {
        id: "m1".into(),
        kind: "fact".to_string(),
        content: "Alice likes tea".to_string(),
        significance: 0.25,
    };
    runtime.block_on(SqliteStore::open(&file).unwrap().remember("ann".into(), usage, 5)).unwrap();
    let read = MemoryUse::Read { id: "m1".into() };
    let recalled =
        runtime.block_on(SqliteStore::open(&file).unwrap().remember("ann".into(), read, 9)).unwrap();
    let record = MemoryRecord {
        id: "m1".into(),
        agent: "ann".into(),
        kind: "fact".to_string(),
        content: "Alice likes tea".to_string(),
        significance: 0.25,
        created_at: 5,
    };
    assert_eq!(recalled, MemoryResult::Read { id: "m1".into(), record: Some(record) });
}

#[tokio::test]
async fn slow_observer_blocks_nothing() {
    let slow = task("Slow").step(mock().returns(json!({"done": true})));
    let agent = persona("P").tool(tool("work").task(&slow));
    let script = crate::kit::Test::new(
        agent.clone(),
        ["go"],
        [at("p", 1, 1).call_tool("work", json!({})), at("p", 1, 2).say("Done with it.")],
    );
    let (host, id) = host(&agent, LiveModel::new(script.model()), HostOptions::default());
    let handle = host.conversation(&"c1".into(), &id).await.unwrap();
    let (mut slow, mut fast) = (handle.watch(), handle.watch());
    let turn = say(&handle, "go").await;
    let seen = until_end(&mut fast, &turn).await;
    let events = |seen: &[Signal]| seen.iter().filter(|signal| matches!(signal, Signal::Event(_))).count();
    assert_eq!(events(&until_end(&mut slow, &turn).await), events(&seen));
}
