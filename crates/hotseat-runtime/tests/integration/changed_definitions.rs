//! Stored conversations continue after changes to their agent, and stores of earlier versions can be read.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::kit::{Test, subjects};
use hotseat_model::{FunctionModel, LiveModel, Model, ModelRequest, TimedValue};
use hotseat_runtime::conversation::{
    ApprovalVerdict, ConversationInput, OperationAddress, ReceivedInputs, TurnEnd, TurnPhase,
};
use hotseat_runtime::definition::schema::{object, string};
use hotseat_runtime::definition::{Definitions, Persona, mock, task, tool};
use hotseat_runtime::files;
use hotseat_runtime::ids::{AgentId, ConversationId};
use hotseat_runtime::live::{ConversationHandle, ConversationHost, HostOptions, ModelRegistry};
use hotseat_runtime::store::{ConversationStore, EntryCommit, InMemoryStore, LogEntry, SqliteStore};
use hotseat_runtime::world::{ConversationWorld, WorldDelivery, replay};
use hotseat_trace::{InvariantOptions, Payload, Trace, check_invariants};

const FAILURES: InvariantOptions = InvariantOptions { allow_failed_turns: true, deny_tool_failures: false };

/// Name of an edit, and its effect on a persona.
type PersonaEdit = (&'static str, fn(Persona) -> Persona);

/// Plausible edits of a persona.
fn edits() -> Vec<PersonaEdit> {
    vec![
        ("a word of the prompt", |mut persona| {
            persona.system_prompt.push_str(" Edited.");
            persona
        }),
        ("one more tool", |persona| {
            let added = task("Added").step(mock().returns(serde_json::json!({"added": true})));
            persona.tool(tool("added").task(&added).input(object([("why", string())])))
        }),
        ("no tools", |mut persona| {
            persona.tools.clear();
            persona.system_prompt.push_str(" Edited.");
            persona
        }),
        ("other hooks", |mut persona| {
            persona.context_assembly =
                Some(hotseat_runtime::definition::DefinitionRef::Embedded(Arc::new(subjects::marking())));
            persona.memory_extraction = None;
            persona
        }),
    ]
}

/// A model that always replies `ok`, and the requests it received.
fn agreeing_model() -> (impl Model + 'static, Arc<Mutex<Vec<ModelRequest>>>) {
    let requests = Arc::<Mutex<Vec<ModelRequest>>>::default();
    let seen = requests.clone();
    let model = FunctionModel::new("agreeable", move |request: &ModelRequest| {
        seen.lock().unwrap().push(request.clone());
        TimedValue::now(Ok(hotseat_model::ModelReply::text("ok")))
    });
    (LiveModel::new(model), requests)
}

fn host(
    persona: &Persona,
    model: impl Model + 'static,
    store: &Arc<InMemoryStore>,
) -> (ConversationHost, AgentId) {
    let (definitions, agent) = Definitions::from_persona(persona).unwrap();
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    (ConversationHost::new(Arc::new(definitions), ModelRegistry::single(model), options), agent)
}

async fn say(handle: &ConversationHandle, content: &str) {
    let input = ConversationInput::UserMessage {
        user: "user".into(),
        content: content.to_string(),
        reply_to: None,
        client_id: None,
    };
    assert_eq!(handle.send(input).await.unwrap().ignored, None);
}

/// Waits until every turn has ended or waits only for the client.
async fn wait_until_idle(handle: &ConversationHandle) {
    let mut watcher = handle.watch();
    loop {
        let state = handle.state().await.unwrap();
        if state.active_turns().all(|turn| turn.waits_only_for_client()) {
            return;
        }
        watcher.next().await.unwrap();
    }
}

/// Number of definition changes in the trace.
fn changes(trace: &Trace) -> usize {
    trace.all().iter().filter(|record| matches!(record.payload, Payload::DefinitionChanged(_))).count()
}

/// All commits of a conversation.
async fn commits(test: &Test) -> Vec<EntryCommit> {
    let store = Arc::new(InMemoryStore::default());
    let (host, agent) = host(&test.persona, LiveModel::new(test.model()), &store);
    let id: ConversationId = "c1".into();
    let handle = host.conversation(&id, &agent).await.unwrap();
    for message in &test.messages {
        say(&handle, &message.content).await;
        if test.sequential {
            wait_until_idle(&handle).await;
        }
    }
    wait_until_idle(&handle).await;
    let (kept, records) = (store.entries(&id).await.unwrap(), store.records(&id).await.unwrap());
    let mut records = records.into_iter().peekable();
    let count = kept.len();
    kept.into_iter()
        .enumerate()
        .map(|(index, kept)| {
            // Records carry the time of their entry; only those of the last entry remain.
            let own = std::iter::from_fn(|| {
                records.next_if(|record| index + 1 == count || record.offset <= kept.stamp.offset)
            });
            let records = own.map(Arc::new).collect();
            EntryCommit { conversation: id.clone(), number: index as u64 + 1, stored: kept, records }
        })
        .collect()
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

#[test]
fn conversation_continues_after_any_definition_change() {
    let mut restarts = 0;
    for (name, test) in subjects::all() {
        let commits = paused().block_on(commits(&test));
        for count in 1..=commits.len() {
            for (edit, edited) in edits() {
                let case = format!("{name}, after entry {count}, {edit}");
                paused().block_on(assert_continues(&test, &commits[..count], edited, &case));
                restarts += 1;
            }
        }
    }
    assert!(restarts > 200, "{restarts}");
}

async fn assert_continues(test: &Test, known: &[EntryCommit], edited: fn(Persona) -> Persona, case: &str) {
    let store = Arc::new(InMemoryStore::default());
    for commit in known {
        store.commit(commit.clone()).await.unwrap();
    }
    let id: ConversationId = "c1".into();
    let before = store.records(&id).await.unwrap();
    let begun = before.iter().any(|record| matches!(record.payload, Payload::LlmCallStarted(_)));
    let persona = edited(test.persona.clone());
    let (model, requests) = agreeing_model();
    let (first, agent) = host(&persona, model, &store);
    let handle = first.conversation(&id, &agent).await.unwrap_or_else(|error| panic!("{case}: {error}"));
    say(&handle, "and now?").await;
    wait_until_idle(&handle).await;
    let state = handle.state().await.unwrap();
    let last = state.turns.last().unwrap();
    // The edited context workflow may be a failing one.
    assert!(matches!(last.phase, TurnPhase::Ended(_)), "{case}: {:?}", last.phase);
    if last.phase == TurnPhase::Ended(TurnEnd::Completed) {
        assert_eq!(last.last_text.as_deref(), Some("ok"), "{case}");
        let asked = requests.lock().unwrap().last().unwrap().clone();
        let system = asked.system.unwrap_or_default();
        assert!(system.starts_with(&persona.system_prompt), "{case}: {system}");
        let heard = serde_json::to_string(&asked.messages).unwrap();
        for said in state.messages.iter().filter(|said| said.turn != last.id) {
            let said = serde_json::to_string(&said.content).unwrap();
            assert!(heard.contains(said.trim_matches('"')), "{case}: {said} in {heard}");
        }
    }
    let trace = handle.trace().await.unwrap();
    assert_eq!(trace.all()[..before.len()], before, "{case}: what was recorded stays");
    assert!(changes(&trace) >= usize::from(begun && is_edit_visible(test, &persona)), "{case}");
    let known = changes(&trace);
    drop(handle);
    // With the same definition it continues unchanged; returning to the old one is another change.
    let (second, _) = host(&persona, agreeing_model().0, &store);
    let handle = second.conversation(&id, &agent).await.unwrap();
    let trace = handle.trace().await.unwrap();
    assert_eq!(changes(&trace), known, "{case}: nothing was changed since");
    let violations = check_invariants(&trace, FAILURES);
    assert!(known > 0 || violations.is_empty(), "{case}: {violations:?}");
    let (third, _) = host(&test.persona, agreeing_model().0, &store);
    let handle = third.conversation(&id, &agent).await.unwrap();
    say(&handle, "once more").await;
    wait_until_idle(&handle).await;
    let trace = handle.trace().await.unwrap();
    assert!(changes(&trace) > known || !is_edit_visible(test, &persona), "{case}: changed back");
}

/// Returns true if the edit changes any request or event.
fn is_edit_visible(test: &Test, persona: &Persona) -> bool {
    test.persona != *persona
}

#[test]
fn stored_records_rebuild_same_state() {
    let mut compared = 0;
    let approval =
        subjects::approval(ApprovalVerdict::Approved { input: Some(serde_json::json!({"amount": 3})) });
    let refusal = subjects::approval(ApprovalVerdict::Declined { reason: "no".to_string() });
    for (name, test) in subjects::all().into_iter().chain([("approved", approval), ("declined", refusal)]) {
        let held = test.run();
        let (definitions, _) = Definitions::from_persona(&test.persona).unwrap();
        let (definitions, limits) = (Arc::new(definitions), test.options().settings.limits);
        for count in 1..=held.journal.len() {
            let journal = &held.journal[..count];
            let (replayed, _) = replay(&definitions, limits, journal);
            let mut received = ReceivedInputs::default();
            for (stamp, delivery) in journal {
                if let WorldDelivery::Input { input, .. } = delivery {
                    received.add(stamp.offset, input);
                }
            }
            let all = held.trace.all().iter();
            let sequence = replayed.recorded_events();
            let records: Vec<_> = all.take_while(|record| record.sequence <= sequence).cloned().collect();
            let read = ConversationWorld::from_records(definitions.clone(), limits, &received, &records);
            for (id, machine) in replayed.conversations() {
                let (left, right) = (machine.state(), read.conversation(id).unwrap().state());
                let place = format!("{name}, after {count}, {id}");
                assert_eq!(right.messages, left.messages, "{place}");
                assert_eq!(right.participants, left.participants, "{place}");
                assert_eq!((&right.shared, right.status), (&left.shared, left.status), "{place}");
                assert_eq!(right.turns.len(), left.turns.len(), "{place}");
                for (left, right) in left.turns.iter().zip(&right.turns) {
                    // Only turns that ended or wait for the client alone are continued.
                    let waits = left.waits_only_for_client();
                    assert_eq!(right.waits_only_for_client(), waits, "{place}");
                    if left.is_active() && !waits {
                        continue;
                    }
                    let mut expected = hotseat_runtime::conversation::TurnState::clone(left);
                    expected.prefix = None;
                    expected.depth = right.depth;
                    expected.reply_to.clone_from(&right.reply_to);
                    expected.answers.clone_from(&right.answers);
                    expected.input.clone_from(&right.input);
                    for (known, read) in expected.operations.iter_mut().zip(&right.operations) {
                        known.target_input.clone_from(&read.target_input);
                    }
                    if !left.is_active() {
                        // Unused after the turn has ended.
                        expected.slots.clone_from(&right.slots);
                        expected.notices.clone_from(&right.notices);
                        for (known, read) in expected.operations.iter_mut().zip(&right.operations) {
                            known.reasoning.clone_from(&read.reasoning);
                        }
                    }
                    assert_eq!(**right, expected, "{place}");
                    compared += 1;
                }
                if left.active_turns().all(|turn| turn.waits_only_for_client()) {
                    let keys = |state: &hotseat_runtime::conversation::ConversationState| {
                        state.outstanding.keys().cloned().collect::<Vec<_>>()
                    };
                    assert_eq!(keys(right), keys(left), "{place}");
                }
            }
        }
    }
    assert!(compared > 60, "{compared}");
}

/// The agent of a store created by an earlier version.
fn stored_agent() -> files::LoadedAgent {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores/version_1");
    files::load(&folder, &files::LoadOptions { environment: &|_| None, connectors: None }).unwrap()
}

/// A host on a copy of the version 1 store.
fn version_1(folder: &Path, edited: bool) -> (ConversationHost, AgentId) {
    let file = folder.join("kept.db");
    if !file.exists() {
        let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores/version_1/conversations.db");
        std::fs::copy(made, &file).unwrap();
    }
    let agent = stored_agent();
    let mut models = ModelRegistry::default();
    for (id, model) in agent.models().unwrap() {
        models = models.with_model(&id, model);
    }
    let mut persona = Persona::clone(&agent.definitions.agent(&agent.id).unwrap().persona);
    if edited {
        persona.system_prompt.push_str(" Be brief.");
    }
    let (definitions, id) = Definitions::from_persona(&persona).unwrap();
    let store = Arc::new(SqliteStore::open(&file).unwrap());
    let options = HostOptions { store, limits: agent.limits, ..HostOptions::default() };
    (ConversationHost::new(Arc::new(definitions), models, options), id)
}

async fn last_words(handle: &ConversationHandle) -> String {
    wait_until_idle(handle).await;
    handle.state().await.unwrap().messages.last().unwrap().content.clone()
}

#[tokio::test]
async fn version_1_store_continues_with_same_or_changed_agent() {
    for edited in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (host, agent) = version_1(folder.path(), edited);
        let open = async |id: &str| host.conversation(&id.into(), &agent).await.unwrap();
        let kept: Vec<String> = host.conversations().await.unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(kept, ["ended", "asked", "picks", "working"]);

        let ended = open("ended").await;
        say(&ended, "Order 7?").await;
        assert_eq!(last_words(&ended).await, "It is 42.5 euros.", "edited: {edited}");

        let asked = open("asked").await;
        let at = OperationAddress { turn: "asked-t1".into(), call: "asked-t1-k1".into(), attempt: 1 };
        asked
            .send(ConversationInput::Approval { at, verdict: ApprovalVerdict::Approved { input: None } })
            .await
            .unwrap();
        assert_eq!(last_words(&asked).await, "Refunded.", "edited: {edited}");

        let picks = open("picks").await;
        let at = OperationAddress { turn: "picks-t1".into(), call: "picks-t1-k1".into(), attempt: 1 };
        let result = Ok(Arc::new(serde_json::json!("a")));
        picks.send(ConversationInput::OperationDone { at, result }).await.unwrap();
        assert_eq!(last_words(&picks).await, "Picked.", "edited: {edited}");

        let working = open("working").await;
        wait_until_idle(&working).await;
        let state = working.state().await.unwrap();
        if edited {
            assert_eq!(state.turns[0].phase, TurnPhase::Ended(TurnEnd::Failed));
            let trace = working.trace().await.unwrap();
            let failure = &trace.turns().failures()[0].payload.error;
            assert_eq!(failure.code.as_deref(), Some("AGENT_CHANGED"));
        } else {
            assert_eq!(state.turns[0].phase, TurnPhase::Ended(TurnEnd::Completed));
            // The time limit of the call has long expired.
            let call = working.trace().await.unwrap();
            let call = call.tools().calls()[0].error().unwrap().clone();
            assert_eq!(call.message, "no answer within 60000 ms");
        }
        for handle in [&ended, &asked, &picks, &working] {
            assert_eq!(changes(&handle.trace().await.unwrap()), usize::from(edited), "{}", handle.id());
        }
    }
}

#[tokio::test]
async fn continued_store_is_upgraded() {
    let folder = tempfile::tempdir().unwrap();
    drop(version_1(folder.path(), true));
    let file = folder.path().join("kept.db");
    let version = || -> i64 {
        let connection = rusqlite::Connection::open(&file).unwrap();
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    assert_eq!(version(), 4);
    let (host, agent) = version_1(folder.path(), true);
    assert!(host.conversation(&"ended".into(), &agent).await.is_ok());
}

#[tokio::test]
async fn unreadable_row_names_table_and_conversation() {
    let damages = [
        (
            "UPDATE entry SET entry = '{\"type\": \"open' WHERE conversation = 'ended' AND number = 1",
            "cannot read row 1 of table entry, conversation ended: ",
        ),
        (
            "UPDATE entry SET entry = x'ff' WHERE conversation = 'ended' AND number = 2",
            "cannot read row 2 of table entry, conversation ended: ",
        ),
        (
            "UPDATE entry SET offset_us = -5 WHERE conversation = 'ended' AND number = 3",
            "cannot read row 3 of table entry, conversation ended: ",
        ),
        (
            "UPDATE entry SET timestamp = 'noon' WHERE conversation = 'ended' AND number = 3",
            "cannot read row 3 of table entry, conversation ended: ",
        ),
        (
            "DELETE FROM entry WHERE conversation = 'ended' AND number = 2",
            "cannot read row 3 of table entry, conversation ended: ",
        ),
        (
            "UPDATE entry SET records = '[]' WHERE conversation = 'ended' AND records <> ''",
            " of table entry, conversation ended: ",
        ),
        ("UPDATE entry SET records = NULL WHERE conversation = 'ended' AND records <> ''", ""),
        (
            "UPDATE entry SET records = substr(records, instr(records, char(10)) + 1) WHERE conversation = 'ended' AND records <> ''",
            "conversation ended: event 2 follows event 0, so events are missing",
        ),
        (
            "UPDATE entry SET records = replace(records, '\"sequence\":4,', '\"sequence\":5,') WHERE conversation = 'ended' AND records <> ''",
            "conversation ended: event 5 follows event 3, so events are missing",
        ),
    ];
    for (damage, words) in damages {
        let folder = tempfile::tempdir().unwrap();
        drop(version_1(folder.path(), false));
        let connection = rusqlite::Connection::open(folder.path().join("kept.db")).unwrap();
        let changed = connection.execute(damage, []);
        drop(connection);
        // Rows rejected by the table constraints cannot exist.
        let Ok(changed) = changed else { continue };
        assert_eq!(changed, 1, "{damage}");
        let (host, agent) = version_1(folder.path(), false);
        let error = host.conversation(&"ended".into(), &agent).await.err().expect(damage).to_string();
        assert!(error.contains(words) && error.contains("kept.db"), "{damage}: {error}");
        assert!(host.conversation(&"asked".into(), &agent).await.is_ok(), "{damage}");
    }
}

#[tokio::test]
async fn unreadable_memory_names_agent() {
    use hotseat_runtime::memory::MemoryUse;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kept.db");
    let store = SqliteStore::open(&file).unwrap();
    let write = MemoryUse::Write {
        id: "m1".into(),
        kind: "fact".to_string(),
        content: "tea".to_string(),
        significance: 0.5,
    };
    store.remember("clerk".into(), write, 1).await.unwrap();
    drop(store);
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.execute("UPDATE memory SET significance = 'much', created_at = -1", []).unwrap();
    drop(connection);
    let store = SqliteStore::open(&file).unwrap();
    for usage in [
        MemoryUse::List { limit: None },
        MemoryUse::Read { id: "m1".into() },
        MemoryUse::Search { query: "tea".to_string(), limit: 3 },
    ] {
        let error = store.remember("clerk".into(), usage, 2).await.unwrap_err();
        assert!(error.message.contains("cannot read row 1 of table memory, agent clerk: "), "{error}");
    }
}

/// Later versions rely on the entry being unchanged.
#[test]
fn change_entry_has_documented_format() {
    let entry = LogEntry::DefinitionChanged { first_difference: 7 };
    let written = serde_json::to_string(&entry).unwrap();
    assert_eq!(written, r#"{"type":"definition_changed","first_difference":7}"#);
}
