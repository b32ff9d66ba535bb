//! Recordings of proxied servers, and their replay.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hotseat_mcp::{
    FixedAnswerer, McpAnswer, McpCall, McpConversation, McpEventKind, McpOptions, McpRecording,
    McpReplaySource, McpServers, McpToolResult, ServerDefinition, ServerKind, TextCleaner, Upstream,
    list_contents,
};
use serde_json::{Value, json};

use crate::common::{Answers, SessionClient, body_of, call, charge, json_of, open, stateless};

/// Records calls with these amounts of a server that numbers its answers.
async fn record(amounts: &[u64]) -> McpRecording {
    let number = AtomicU64::new(0);
    let answers = Answers(move |call: &McpCall| {
        let number = number.fetch_add(1, Ordering::SeqCst);
        McpAnswer::Result(McpToolResult::from_text(format!("{}/{number}", call.arguments["amount"])))
    });
    let upstream = open(ServerDefinition::mock("bank", vec![charge()]), answers);
    let proxy = Upstream::Url { url: upstream.url(), headers: Default::default() };
    let definition = ServerDefinition::new("bank", ServerKind::Proxy(proxy));
    let options = McpOptions { record: true, ..McpOptions::default() };
    let servers = McpServers::start(vec![definition], options).unwrap();
    let answerer = Arc::new(FixedAnswerer::default());
    let conversation = servers.open_conversation("record", answerer, Vec::new()).unwrap();
    let url = conversation.url("bank").unwrap();
    body_of(stateless(&url, "tools/list", json!({})).send().await.unwrap()).await.unwrap();
    for amount in amounts {
        call(&url, "charge", json!({"amount": amount, "note": "key sk-12345"})).await;
    }
    conversation.recording("bank").unwrap()
}

struct Replay {
    conversation: McpConversation,
    _servers: McpServers,
}

fn replay(text: &str, cleaner: TextCleaner) -> Replay {
    let recording = Arc::new(McpRecording::read(text).unwrap());
    let kind = ServerKind::Replay(McpReplaySource { recording, cleaner, conversation: None });
    let definition = ServerDefinition::new("bank", kind);
    let servers = McpServers::start(vec![definition], McpOptions::default()).unwrap();
    let answerer = Arc::new(FixedAnswerer::default());
    let conversation = servers.open_conversation("replay", answerer, Vec::new()).unwrap();
    Replay { conversation, _servers: servers }
}

fn text_of(answer: &Value) -> String {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_string()
}

#[tokio::test]
async fn a_recording_is_replayed_in_any_order_with_repeats_in_theirs() {
    let secrets = TextCleaner::new(|text| text.replace("sk-12345", "***"));
    let text = record(&[1, 2, 1]).await.write(&secrets);
    assert!(!text.contains("sk-12345"), "secrets are removed");
    assert!(!text.contains("_meta\":{\"io.modelcontextprotocol/protocolVersion"), "no volatile data: {text}");
    let replay = replay(&text, secrets);
    let url = replay.conversation.url("bank").unwrap();
    let tools = json_of(stateless(&url, "tools/list", json!({})).send().await.unwrap()).await;
    assert_eq!(tools["result"]["tools"][0]["name"], "charge");
    let pay = |amount: u64| call(&url, "charge", json!({"note": "key sk-12345", "amount": amount}));
    assert_eq!(text_of(&pay(2).await), "2/1");
    assert_eq!(text_of(&pay(1).await), "1/0");
    let unused = replay.conversation.unused_exchanges();
    assert_eq!(unused.len(), 1);
    assert_eq!((unused[0].0.as_str(), &unused[0].1.params["arguments"]["amount"]), ("bank", &json!(1)));
    assert_eq!(text_of(&pay(1).await), "1/2");
    assert!(replay.conversation.unused_exchanges().is_empty());
}

#[tokio::test]
async fn a_replay_announces_what_the_recorded_server_announced() {
    const BY_HANDSHAKE: &str = r#"{"format":"hotseat-mcp-recording","version":1,"server":"bank"}
{"method":"initialize","params":{},"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"vault","version":"7"},"instructions":"Be polite."}}
"#;
    const STATELESS: &str = r#"{"format":"hotseat-mcp-recording","version":1,"server":"bank"}
{"method":"server/discover","params":{},"result":{"capabilities":{"tools":{"listChanged":true}},"instructions":"Be polite.","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"vault","version":"7"}}}}
"#;
    for text in [BY_HANDSHAKE, STATELESS] {
        let replay = replay(text, TextCleaner::default());
        let url = replay.conversation.url("bank").unwrap();
        let opened = SessionClient::open(&url, "2025-06-18").await.initialized["result"].clone();
        let discovered = json_of(stateless(&url, "server/discover", json!({})).send().await.unwrap()).await;
        let discovered = &discovered["result"];
        for (result, info) in [
            (&opened, &opened["serverInfo"]),
            (discovered, &discovered["_meta"]["io.modelcontextprotocol/serverInfo"]),
        ] {
            assert_eq!(result["instructions"], "Be polite.", "{result}");
            assert_eq!(result["capabilities"], json!({"tools": {"listChanged": true}}));
            assert_eq!(*info, json!({"name": "vault", "version": "7"}));
        }
    }
}

#[tokio::test]
async fn a_miss_names_the_nearest_request_and_the_first_difference() {
    let text = record(&[1]).await.write(&TextCleaner::default());
    let mut replay = replay(&text, TextCleaner::default());
    let url = replay.conversation.url("bank").unwrap();
    let answer = call(&url, "charge", json!({"amount": 9, "note": "key sk-12345"})).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("exchange in line 3: /arguments/amount: recorded 1, now 9"), "{message}");
    let mut is_reported = false;
    while let Some(event) = replay.conversation.try_next_event() {
        is_reported |= matches!(event.kind, McpEventKind::Unmatched { call: Some(1), .. });
    }
    assert!(is_reported);
}

#[tokio::test]
async fn a_hundred_parallel_replays_give_the_same_answers() {
    let amounts: Vec<u64> = (0..20).collect();
    let text = record(&amounts).await.write(&TextCleaner::default());
    let mut digests = std::collections::BTreeSet::new();
    for _ in 0..5 {
        let runs = (0..20).map(|seed: u64| {
            let text = text.clone();
            async move {
                let replay = replay(&text, TextCleaner::default());
                let url = replay.conversation.url("bank").unwrap();
                // Another order in each run, all calls at once.
                let calls = (0..20).map(|index| {
                    let amount = (index * 7 + seed) % 20;
                    let url = url.clone();
                    async move {
                        let arguments = json!({"amount": amount, "note": "key sk-12345"});
                        (amount, text_of(&call(&url, "charge", arguments).await))
                    }
                });
                let mut answers = futures_util::future::join_all(calls).await;
                answers.sort();
                format!("{answers:?}")
            }
        });
        digests.extend(futures_util::future::join_all(runs).await);
    }
    assert_eq!(digests.len(), 1, "{digests:?}");
    assert!(digests.first().unwrap().contains("(19, \"19/19\")"));
}

#[tokio::test]
async fn the_tools_of_a_real_server_are_the_tools_of_a_mock() {
    let answers = Answers(|_: &McpCall| McpAnswer::Unmatched { nearest: None });
    let upstream = open(ServerDefinition::mock("bank", vec![charge()]), answers);
    let proxy = Upstream::Url { url: upstream.url(), headers: Default::default() };
    let recording = list_contents(proxy).await.unwrap();
    assert_eq!(recording.entries("tools/list", "tools"), [charge().to_json()]);
}

#[test]
fn broken_recordings_name_their_line() {
    let error = McpRecording::read("{\"format\":\"hotseat-mcp-recording\",\"version\":1}\n{\"method\":1}");
    assert_eq!(error.unwrap_err().to_string(), "line 2: `method` is missing");
    assert!(McpRecording::read("{}").is_err());
    let newer = McpRecording::read("{\"format\":\"hotseat-mcp-recording\",\"version\":2}");
    assert!(newer.unwrap_err().to_string().contains("newer"));
}
