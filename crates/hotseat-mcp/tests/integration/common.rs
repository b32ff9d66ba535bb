//! A conversation with one mock, and raw clients of both kinds.

use std::sync::Arc;
use std::time::Duration;

use hotseat_http::{HttpClients, IncomingResponse, OutgoingRequest};
use hotseat_mcp::{
    AnswerFuture, McpAnswer, McpCall, McpConversation, McpEvent, McpEventKind, McpOptions, McpServers,
    McpTool, ServerDefinition, ToolAnswerer,
};
use http::Method;
use serde_json::{Value, json};
use url::Url;

/// Answers with a function.
pub struct Answers<F>(pub F);

impl<F: Fn(&McpCall) -> McpAnswer + Send + Sync> ToolAnswerer for Answers<F> {
    fn answer<'a>(&'a self, call: &'a McpCall) -> AnswerFuture<'a> {
        let answer = (self.0)(call);
        Box::pin(async { answer })
    }
}

/// A run with one conversation.
pub struct Fixture {
    pub conversation: McpConversation,
    pub _servers: McpServers,
}

/// The tool of most tests.
pub fn charge() -> McpTool {
    McpTool::new(
        "charge",
        json!({"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}),
    )
}

pub fn open(definition: ServerDefinition, answerer: impl ToolAnswerer + 'static) -> Fixture {
    let servers = McpServers::start(vec![definition], McpOptions::default()).unwrap();
    let conversation = servers.open_conversation("case", Arc::new(answerer), Vec::new()).unwrap();
    Fixture { conversation, _servers: servers }
}

impl Fixture {
    pub fn url(&self) -> String {
        let name = self.conversation.servers().next().unwrap().to_string();
        self.conversation.url(&name).unwrap()
    }

    /// Waits for an event that `select` accepts, and returns it.
    pub async fn wait_for<T>(&mut self, select: impl Fn(&McpEventKind) -> Option<T>) -> T {
        let found = async {
            loop {
                let McpEvent { kind, .. } = self.conversation.next_event().await.unwrap();
                if let Some(found) = select(&kind) {
                    return found;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), found).await.expect("the event does not arrive")
    }
}

thread_local! {
    /// Each test has a thread, and a runtime that the connections of its client belong to.
    static CLIENTS: HttpClients = HttpClients::default();
}

pub fn request_to(method: Method, url: &str) -> OutgoingRequest {
    CLIENTS.with(|clients| clients.request(method, &Url::parse(url).unwrap()).unwrap())
}

pub fn post(url: &str) -> OutgoingRequest {
    request_to(Method::POST, url)
}

/// A client of revision 2026-07-28.
pub fn stateless(url: &str, method: &str, mut params: Value) -> OutgoingRequest {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "raw", "version": "1"});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
    let mut request = post(url)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if let Some(name) = params["name"].as_str() {
        request = request.header("mcp-name", name);
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    request.header("content-type", "application/json").body(body.to_string())
}

pub async fn json_of(response: IncomingResponse) -> Value {
    serde_json::from_str(&body_of(response).await.unwrap()).unwrap()
}

/// Reads the whole body. `None` if it breaks off.
pub async fn body_of(mut response: IncomingResponse) -> Option<String> {
    let mut body = Vec::new();
    while let Some(bytes) = response.next_bytes().await.ok()? {
        body.extend_from_slice(&bytes);
    }
    Some(String::from_utf8(body).unwrap())
}

/// Calls a tool without a session and returns the whole message.
pub async fn call(url: &str, tool: &str, arguments: Value) -> Value {
    let request = stateless(url, "tools/call", json!({"name": tool, "arguments": arguments}));
    json_of(request.send().await.unwrap()).await
}

/// A client of revision 2025-11-25.
pub struct SessionClient {
    pub url: String,
    pub session: String,
    pub initialized: Value,
}

impl SessionClient {
    pub async fn open(url: &str, version: &str) -> SessionClient {
        let params = json!({
            "protocolVersion": version,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "old", "version": "2"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = post(url).body(body.to_string()).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let session = response.headers()["mcp-session-id"].to_str().unwrap().to_string();
        SessionClient { url: url.to_string(), session, initialized: json_of(response).await }
    }

    pub async fn send(&self, message: Value) -> IncomingResponse {
        let request = post(&self.url).header("mcp-session-id", &self.session);
        let announced = self.initialized["result"]["protocolVersion"].as_str().unwrap();
        request.header("mcp-protocol-version", announced).body(message.to_string()).send().await.unwrap()
    }

    pub async fn request(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        json_of(self.send(body).await).await
    }
}
