//! The bridge between lines and a server.

use std::time::Duration;

use hotseat_mcp::{
    BridgeError, FaultKind, FaultRule, FaultTrigger, McpAnswer, McpCall, McpEventKind, McpToolResult,
    ServerDefinition, bridge_lines, run_bridge,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::common::{Answers, Fixture, charge, open};

struct Lines {
    input: mpsc::Sender<Vec<u8>>,
    output: mpsc::Receiver<Vec<u8>>,
    ended: JoinHandle<Result<(), BridgeError>>,
    fixture: Fixture,
}

fn bridged(faults: Vec<FaultRule>) -> Lines {
    bridged_to("bank", faults)
}

fn bridged_to(name: &'static str, faults: Vec<FaultRule>) -> Lines {
    let mut definition = ServerDefinition::mock("bank", vec![charge()]);
    definition.faults = faults;
    let answers = Answers(|call: &McpCall| McpAnswer::Result(McpToolResult::from_text(call.revision.name())));
    let fixture = open(definition, answers);
    let address = fixture.conversation.bridge_address();
    let (input, lines) = bridge_lines();
    let (written, output) = bridge_lines();
    let ended = tokio::spawn(async move { run_bridge(&address, name, lines, written, 1 << 20).await });
    Lines { input, output, ended, fixture }
}

impl Lines {
    async fn send(&self, message: Value) {
        self.input.send(message.to_string().into_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(20), self.output.recv()).await.unwrap().unwrap();
        serde_json::from_slice(&line).unwrap()
    }
}

fn call(id: u64) -> Value {
    let params = json!({"name": "charge", "arguments": {"amount": 1}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn stateless_call(id: u64) -> Value {
    let mut message = call(id);
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    message
}

#[tokio::test]
async fn both_kinds_of_clients_use_lines() {
    let mut lines = bridged(Vec::new());
    lines.send(stateless_call(1)).await;
    let answer = lines.receive().await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(1), &json!("2026-07-28")));
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    lines.send(json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": params})).await;
    assert_eq!(lines.receive().await["result"]["protocolVersion"], "2025-11-25");
    lines.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    lines.send(call(3)).await;
    assert_eq!(lines.receive().await["result"]["content"][0]["text"], "2025-11-25");
    drop(lines.input);
    assert!(lines.ended.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_misspelt_name_ends_the_bridge_with_the_servers_of_the_conversation() {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let handshake = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    for message in [stateless_call(1), handshake] {
        let mut lines = bridged_to("bnak", Vec::new());
        lines.send(message).await;
        let words = "MCP server `bnak`: there is no server of this name; the conversation has: `bank`";
        assert_eq!(lines.receive().await["error"]["message"], words);
        let ended = lines.ended.await.unwrap();
        assert_eq!(ended.unwrap_err().to_string(), words);
        let event = lines.fixture.conversation.try_next_event().expect("a note");
        let words = words.split_once(": ").expect("a name and a problem").1;
        let noted = matches!(&event.kind, McpEventKind::ProtocolError { message, .. } if message == words);
        assert!(noted && event.server == "bnak", "{event:?}");
    }
}

#[tokio::test]
async fn statuses_are_errors_and_a_lost_answer_ends_the_bridge() {
    let fault = |nth, kind| FaultRule { tool: None, arguments: None, trigger: FaultTrigger::Nth(nth), kind };
    let mut lines = bridged(vec![fault(1, FaultKind::Http(503)), fault(2, FaultKind::LostAnswer)]);
    lines.send(stateless_call(1)).await;
    let answer = lines.receive().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("503"), "{answer}");
    lines.send(stateless_call(2)).await;
    assert!(matches!(lines.ended.await.unwrap(), Err(BridgeError::ConnectionLost)));
}
