//! The tokio driver: streaming, cancellation, limits, restarts, and the stores under it.

mod kit;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hotseat_model::{Answering, Delta, Live, Model, Reply, Request, Sink};
use hotseat_runtime::conversation::{Input, Phase};
use hotseat_runtime::definition::{Definitions, Persona, mock, persona, task, tool};
use hotseat_runtime::ids::{AgentId, ConversationId, TurnId};
use hotseat_runtime::live::{Entry, Handle, Host, HostError, HostOptions, Models, Signal, Watcher};
use hotseat_runtime::memory::{MemoryRecord, MemoryStore, MemoryUse, Recalled};
use hotseat_runtime::store::{Commit, InMemory, Kept, Pending, Sqlite, Store, StoreError};
use hotseat_trace::{InvariantOptions, Payload, Record, assert_conversation_invariants};
use kit::{at, subjects};
use proptest::prelude::*;
use serde_json::json;
use tokio::sync::Semaphore;

fn host(persona: &Persona, model: impl Model + 'static, options: HostOptions) -> (Host, AgentId) {
    let (definitions, agent) = Definitions::of(persona).unwrap();
    (Host::new(Arc::new(definitions), Models::one(model), options), agent)
}

fn stored(store: impl Store) -> HostOptions {
    HostOptions { store: Arc::new(store), ..HostOptions::default() }
}

async fn say(handle: &Handle, content: &str) -> TurnId {
    let input = Input::UserMessage { user: "user".into(), content: content.to_string(), reply_to: None };
    handle.send(input).await.unwrap().turn.unwrap()
}

/// Everything up to the end of a turn.
async fn until_end(watcher: &mut Watcher, turn: &TurnId) -> Vec<Signal> {
    let mut seen = Vec::new();
    loop {
        let signal = watcher.next().await.expect("the conversation goes on");
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

fn said(signals: &[Signal]) -> Vec<String> {
    let messages = signals.iter().filter_map(|signal| match signal {
        Signal::Event(record) => match &record.payload {
            Payload::AssistantMessage(message) => Some(message.content.clone()),
            _ => None,
        },
        Signal::Delta { .. } => None,
    });
    messages.collect()
}

/// Says what it is told to, when it is told to, and knows how many calls are under way.
#[derive(Clone, Default)]
struct Gated {
    open: Gate,
    begun: Gate,
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

/// Lets through as often as it was opened.
#[derive(Clone)]
struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Gate(Arc::new(Semaphore::new(0)))
    }
}

impl Gate {
    fn open(&self) {
        self.0.add_permits(1);
    }

    async fn pass(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Model for Gated {
    fn name(&self) -> &str {
        "gated"
    }

    fn call<'a>(&'a self, _request: &'a Request, sink: &'a mut dyn Sink) -> Answering<'a> {
        Box::pin(async move {
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(running, Ordering::SeqCst);
            let _running = Running(self.running.clone());
            sink.delta(Delta::Text { text: "One ".to_string() });
            self.begun.open();
            self.open.pass().await;
            sink.delta(Delta::Text { text: "two.".to_string() });
            Ok(Reply::text("One two."))
        })
    }
}

#[tokio::test]
async fn pieces_of_a_reply_are_seen_before_the_whole() {
    let model = Gated::default();
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
    assert_eq!(first, Delta::Text { text: "One ".to_string() });
    model.open.open();
    let seen = until_end(&mut watcher, &turn).await;
    let second = Delta::Text { text: "two.".to_string() };
    let place = seen.iter().position(|s| matches!(s, Signal::Delta { delta, .. } if *delta == second));
    let whole = seen.iter().position(|signal| !said(std::slice::from_ref(signal)).is_empty());
    assert!(place.unwrap() < whole.unwrap());
    assert_eq!(said(&seen), ["One two."]);
}

#[tokio::test]
async fn a_turn_that_is_cancelled_gives_its_model_call_up_and_the_next_one_is_held() {
    let model = Gated::default();
    let (host, agent) = host(&persona("P"), model.clone(), HostOptions::default());
    let handle = host.conversation(&"c1".into(), &agent).await.unwrap();
    let mut watcher = handle.watch();
    let turn = say(&handle, "go").await;
    model.begun.pass().await;
    let cancel = Input::CancelTurn { turn: turn.clone(), reason: "the client is gone".to_string() };
    assert_eq!(handle.send(cancel.clone()).await.unwrap().ignored, None);
    let seen = until_end(&mut watcher, &turn).await;
    assert!(said(&seen).is_empty());
    let again = handle.send(cancel).await.unwrap();
    assert_eq!(again.ignored.as_deref(), Some("the turn to cancel has ended or never began"));

    let turn = say(&handle, "once more").await;
    model.begun.pass().await;
    assert_eq!(model.running.load(Ordering::SeqCst), 1, "the first call was given up");
    model.open.open();
    assert_eq!(said(&until_end(&mut watcher, &turn).await), ["One two."]);
    let options = InvariantOptions { allow_failed_turns: true, deny_tool_failures: false };
    assert_conversation_invariants(&handle.trace().await.unwrap(), options);
}

#[tokio::test]
async fn no_more_model_calls_are_under_way_than_were_allowed() {
    let model = Gated::default();
    let options = HostOptions { calls_at_once: 2, ..HostOptions::default() };
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
        assert_eq!(said(&until_end(watcher, turn).await), ["One two."]);
    }
    assert_eq!(model.most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_model_that_panics_fails_its_turn_and_nothing_else() {
    struct Broken;
    impl Model for Broken {
        fn name(&self) -> &str {
            "broken"
        }

        fn call<'a>(&'a self, _: &'a Request, _: &'a mut dyn Sink) -> Answering<'a> {
            Box::pin(async { panic!("a model that breaks down on purpose") })
        }
    }
    let mut options = HostOptions::default();
    options.limits.model.backoff_ms = 1;
    let (host, agent) = host(&persona("P"), Broken, options);
    let handle = host.conversation(&"c1".into(), &agent).await.unwrap();
    let mut watcher = handle.watch();
    let turn = say(&handle, "go").await;
    let seen = until_end(&mut watcher, &turn).await;
    let Some(Signal::Event(last)) = seen.last() else { panic!("{seen:?}") };
    let Payload::TurnFailed(failed) = &last.payload else { panic!("{last:?}") };
    assert!(failed.error.message.contains("the model call broke down"), "{failed:?}");
    assert!(handle.state().await.is_ok());
}

#[tokio::test]
async fn a_conversation_is_unloaded_when_nobody_needs_it_and_comes_back() {
    let model = Gated::default();
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
async fn a_conversation_belongs_to_one_agent() {
    let store = Arc::new(InMemory::default());
    let reviewer = persona("Reviewer").system("Review.");
    let manager = persona("Manager").tool(tool("ask").agent(&reviewer));
    let options = || HostOptions { store: store.clone(), ..HostOptions::default() };
    let (definitions, agent) = Definitions::of(&manager).unwrap();
    let definitions = Arc::new(definitions);
    let model = || Models::one(Live::new(subjects::greeter().model()));
    let host = Host::new(definitions.clone(), model(), options());
    let id: ConversationId = "c1".into();
    let handle = host.conversation(&id, &agent).await.unwrap();
    let mut watcher = handle.watch();
    let turn = say(&handle, "Hello!").await;
    until_end(&mut watcher, &turn).await;

    let wrong = host.conversation(&id, &"reviewer".into()).await.err().unwrap();
    assert_eq!(wrong.to_string(), "conversation c1 is held by agent manager");
    let wrong = host.conversation(&id, &"nobody".into()).await.err().unwrap();
    assert_eq!(wrong.to_string(), "there is no agent nobody");

    let (changed, agent) = Definitions::of(&persona("Manager").system("Now something else.")).unwrap();
    let other = Host::new(Arc::new(changed), model(), options());
    let handle = other.conversation(&id, &agent).await.unwrap();
    let trace = handle.trace().await.unwrap();
    assert!(trace.all().iter().any(|record| matches!(record.payload, Payload::DefinitionChanged(_))));
}

/// A store that remembers what it was given, and fails from some entry on.
struct Observed {
    store: InMemory,
    commits: Mutex<Vec<Commit>>,
    fails_from: u64,
}

impl Observed {
    fn failing_from(fails_from: u64) -> Self {
        Observed { store: InMemory::default(), commits: Mutex::default(), fails_from }
    }
}

impl Store for Observed {
    fn commit(&self, commit: Commit) -> Pending<()> {
        if commit.number >= self.fails_from {
            let error = StoreError { message: "the disk is full".to_string(), is_full: false };
            return Box::pin(std::future::ready(Err(error)));
        }
        self.commits.lock().unwrap().push(commit.clone());
        self.store.commit(commit)
    }

    fn entries(&self, conversation: &ConversationId) -> Pending<Vec<Kept>> {
        self.store.entries(conversation)
    }

    fn records(&self, conversation: &ConversationId) -> Pending<Vec<Record>> {
        self.store.records(conversation)
    }

    fn conversations(&self) -> Pending<Vec<ConversationId>> {
        self.store.conversations()
    }

    fn remember(&self, agent: AgentId, usage: MemoryUse, timestamp: u64) -> Pending<Recalled> {
        self.store.remember(agent, usage, timestamp)
    }
}

#[tokio::test]
async fn what_cannot_be_kept_is_not_done_and_everybody_is_told() {
    let model = Gated::default();
    let store = Observed::failing_from(2);
    let (host, agent) = host(&persona("P"), model.clone(), stored(store));
    let handle = host.conversation(&"c1".into(), &agent).await.unwrap();
    let mut watcher = handle.watch();
    let input = Input::UserMessage { user: "user".into(), content: "go".to_string(), reply_to: None };
    let error = handle.send(input).await.err().unwrap();
    assert_eq!(error.to_string(), "the conversation cannot be kept: the disk is full");
    assert!(watcher.next().await.is_none());
    assert_eq!(handle.state().await.err(), Some(HostError::Gone));
    assert_eq!(model.most.load(Ordering::SeqCst), 0, "no model was asked");
    drop((handle, watcher));
    let again = host.conversation(&"c1".into(), &agent).await.unwrap();
    assert_eq!(again.state().await.unwrap().turns.len(), 0);
}

/// Every conversation of the foundation tests is broken off after each of its entries and goes on from there.
#[test]
fn a_conversation_goes_on_after_a_restart_at_any_entry() {
    let held = |test: &kit::Test, known: &[Commit]| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(held_from(test, known))
    };
    let words = |commits: &[Commit]| -> Vec<String> {
        let records = commits.iter().flat_map(|commit| &commit.records);
        let messages = records.filter_map(|record| match &record.payload {
            Payload::AssistantMessage(message) => Some(message.content.clone()),
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
            let records = again.into_iter().flat_map(|commit| commit.records);
            let options =
                InvariantOptions { allow_failed_turns: test.allow_failed_turns, deny_tool_failures: false };
            assert_conversation_invariants(&hotseat_trace::Trace::new(records), options);
            restarts += 1;
        }
    }
    assert!(restarts > 40, "{restarts}");
}

/// Holds what is left of a conversation of which this is kept; gives everything that is kept in the end.
async fn held_from(test: &kit::Test, known: &[Commit]) -> Vec<Commit> {
    let store = Arc::new(Observed::failing_from(u64::MAX));
    for commit in known {
        store.commit(commit.clone()).await.unwrap();
    }
    let is_message = |commit: &&Commit| {
        matches!(&commit.kept.entry, Entry::Input { input: Input::UserMessage { .. }, .. })
    };
    let sent = known.iter().filter(is_message).count();
    let (definitions, agent) = Definitions::of(&test.persona).unwrap();
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = Host::new(Arc::new(definitions), Models::one(Live::new(test.model())), options);
    let handle = host.conversation(&"c1".into(), &agent).await.unwrap();
    let mut watcher = handle.watch();
    for message in test.messages.iter().skip(sent) {
        if test.sequential {
            at_rest(&handle, &mut watcher).await;
        }
        say(&handle, &message.content).await;
    }
    at_rest(&handle, &mut watcher).await;
    let commits = store.commits.lock().unwrap();
    commits.clone()
}

/// Waits until every turn has ended.
async fn at_rest(handle: &Handle, watcher: &mut Watcher) {
    while handle.state().await.unwrap().turns.iter().any(|turn| !matches!(turn.phase, Phase::Ended(_))) {
        watcher.next().await.unwrap();
    }
}

#[tokio::test]
async fn sqlite_keeps_conversations_and_memories_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.db");
    let id: ConversationId = "c1".into();
    let test = subjects::multi_turn();
    let (definitions, agent) = Definitions::of(&test.persona).unwrap();
    let definitions = Arc::new(definitions);
    let mut records = Vec::new();
    for message in &test.messages {
        let store = Arc::new(Sqlite::open(&file).unwrap());
        let options = HostOptions { store: store.clone(), ..HostOptions::default() };
        let host = Host::new(definitions.clone(), Models::one(Live::new(test.model())), options);
        let handle = host.conversation(&id, &agent).await.unwrap();
        let mut watcher = handle.watch();
        let before = handle.trace().await.unwrap();
        if !records.is_empty() {
            assert_eq!(before.all(), records, "what was kept is there");
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
async fn a_file_is_used_by_one_process_and_by_no_earlier_version() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.db");
    let first = Sqlite::open(&file).unwrap();
    let wrong = Sqlite::open(&file).err().unwrap();
    assert!(wrong.message.ends_with("another process uses this file"), "{wrong}");
    drop(first);
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let wrong = Sqlite::open(&file).err().unwrap();
    assert!(wrong.message.contains("made by a later version (tables 99, known 2)"), "{wrong}");
    let wrong = Sqlite::open(folder.path()).err().unwrap();
    assert!(wrong.message.starts_with(&folder.path().display().to_string()), "{wrong}");
}

#[tokio::test]
async fn an_entry_that_does_not_follow_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let stores: [Box<dyn Store>; 2] =
        [Box::new(InMemory::default()), Box::new(Sqlite::open(&folder.path().join("s.db")).unwrap())];
    let kept = || Kept { stamp: hotseat_runtime::world::Stamp::default(), entry: Entry::Due };
    let commit = |number| Commit { conversation: "c1".into(), number, kept: kept(), records: Vec::new() };
    for store in stores {
        store.commit(commit(1)).await.unwrap();
        assert!(store.commit(commit(1)).await.is_err());
        store.commit(commit(2)).await.unwrap();
        assert_eq!(store.entries(&"c1".into()).await.unwrap(), [kept(), kept()]);
    }
}

/// Words that collide often, with what a search could take for operators.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "tea", "Tea", "green", "Alice", "likes", "\"", "OR", "NOT", "tea*", "a-b", "Füße", "NEAR(", "x'; --",
    ]);
    prop::collection::vec(word, 0..6).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever is written, read, deleted and searched, both stores remember the same.
    #[test]
    fn sqlite_remembers_what_the_store_in_memory_remembers(
        uses in prop::collection::vec((0..6_u8, 0..4_u8, words(), 0..3_u8), 1..30)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = Sqlite::open(&folder.path().join("s.db")).unwrap();
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
            prop_assert_eq!(kept, memory.carry_out(&agent, &usage, 7));
        }
    }
}

#[test]
fn a_record_survives_its_tables() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let usage = MemoryUse::Write {
        id: "m1".into(),
        kind: "fact".to_string(),
        content: "Alice likes tea".to_string(),
        significance: 0.25,
    };
    runtime.block_on(Sqlite::open(&file).unwrap().remember("ann".into(), usage, 5)).unwrap();
    let read = MemoryUse::Read { id: "m1".into() };
    let recalled = runtime.block_on(Sqlite::open(&file).unwrap().remember("ann".into(), read, 9)).unwrap();
    let record = MemoryRecord {
        id: "m1".into(),
        agent: "ann".into(),
        kind: "fact".to_string(),
        content: "Alice likes tea".to_string(),
        significance: 0.25,
        created_at: 5,
    };
    assert_eq!(recalled, Recalled::Read { id: "m1".into(), record: Some(record) });
}

#[tokio::test]
async fn a_slow_watcher_slows_nobody() {
    let slow = task("Slow").step(mock().returns(json!({"done": true})));
    let agent = persona("P").tool(tool("work").task(&slow));
    let script = kit::Test::new(
        agent.clone(),
        ["go"],
        [at("p", 1, 1).call_tool("work", json!({})), at("p", 1, 2).say("Done with it.")],
    );
    let (host, id) = host(&agent, Live::new(script.model()), HostOptions::default());
    let handle = host.conversation(&"c1".into(), &id).await.unwrap();
    let (mut slow, mut fast) = (handle.watch(), handle.watch());
    let turn = say(&handle, "go").await;
    let seen = until_end(&mut fast, &turn).await;
    let events = |seen: &[Signal]| seen.iter().filter(|signal| matches!(signal, Signal::Event(_))).count();
    assert_eq!(events(&until_end(&mut slow, &turn).await), events(&seen));
}
