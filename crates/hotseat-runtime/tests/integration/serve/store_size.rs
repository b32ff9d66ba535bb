//! Size of a stored conversation.

use std::path::Path;
use std::sync::Arc;

use hotseat_model::script::Rule;
use hotseat_runtime::definition::persona;
use hotseat_runtime::live::HostOptions;
use hotseat_runtime::serve::ServeOptions;
use hotseat_runtime::store::SqliteStore;
use serde_json::json;

use super::kit::{AgUiClient, TestServer, scripted, serve_with, store_options};

const TEXT_BYTES: usize = 2048;

async fn serve_from(file: &Path, system: &str) -> TestServer {
    let options: HostOptions = store_options(Arc::new(SqliteStore::open(file).unwrap()));
    let model = scripted([Rule::new().say("a".repeat(TEXT_BYTES)).always()]);
    serve_with(&persona("Talker").system(system), model, ServeOptions::default(), options).await
}

/// Stops the server and waits until its file is closed.
async fn stop(served: TestServer) {
    let host = served.host.clone();
    served.stop().await;
    while host.loaded() > 0 {
        tokio::task::yield_now().await;
    }
}

/// Stored bytes of each turn of the only conversation.
fn bytes_of_turns(file: &Path) -> Vec<usize> {
    let connection = rusqlite::Connection::open(file).unwrap();
    let mut query =
        connection.prepare("SELECT entry, records FROM entry WHERE number > 1 ORDER BY number").unwrap();
    let rows = query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).unwrap();
    let mut turns = Vec::new();
    for (entry, records) in rows.map(Result::unwrap) {
        if turns.is_empty() || entry.contains("user_message") {
            turns.push(0);
        }
        *turns.last_mut().unwrap() += entry.len() + records.len();
    }
    turns
}

#[tokio::test]
async fn stored_turn_does_not_grow_with_the_thread() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.db");
    let served = serve_from(&file, "You talk.").await;
    let mut client = AgUiClient::new(&served, "t");
    client.tools = json!([{
        "name": "show",
        "description": "d".repeat(TEXT_BYTES),
        "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
    }]);
    client.state = json!({"page": "s".repeat(TEXT_BYTES)});
    for turn in 1..=30 {
        client.say(&format!("{turn} {}", "u".repeat(TEXT_BYTES))).await;
    }
    drop(client);
    stop(served).await;
    let turns = bytes_of_turns(&file);
    let (early, last) = (turns[3], *turns.last().unwrap());
    assert!(last < early + early / 20, "turn 4 has {early} bytes, the last one {last}");
    assert!(last < 6 * 2 * TEXT_BYTES, "{last} bytes for a question and an answer of {TEXT_BYTES}");
}

#[tokio::test]
async fn shortened_thread_continues_and_notices_a_changed_agent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.db");
    for (system, changes) in [("You talk.", 0), ("You talk.", 0), ("You talk much.", 1)] {
        let served = serve_from(&file, system).await;
        let mut client = AgUiClient::new(&served, "t");
        client.messages = match served.get("/threads/t").await {
            known if known.status() == 200 => {
                let known: serde_json::Value = serde_json::from_str(&super::kit::text(known).await).unwrap();
                known["messages"].as_array().unwrap().clone()
            }
            _ => Vec::new(),
        };
        client.say("u".repeat(TEXT_BYTES).as_str()).await;
        assert_eq!(client.last_text().len(), TEXT_BYTES);
        drop(client);
        stop(served).await;
        let connection = rusqlite::Connection::open(&file).unwrap();
        let changed: i64 = connection
            .query_row("SELECT count(*) FROM entry WHERE entry LIKE '%definition_changed%'", [], |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(changed, changes, "{system}");
    }
}
