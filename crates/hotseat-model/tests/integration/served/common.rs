//! A served script and raw HTTP requests to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_http::{HttpClients, IncomingResponse, OutgoingRequest};
use hotseat_model::script::{ModelScript, ScriptedModel};
use hotseat_model::serve::{
    ModelFault, ModelServers, ServeLimits, ServedConversation, ServedModel, ServedModelEventKind,
};
use hotseat_model::{ConnectorConfig, LiveModel, Provider};
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use url::Url;

/// The protocols, by their paths.
pub const PATHS: [&str; 3] = ["v1/chat/completions", "v1/responses", "v1/messages"];

/// A conversation with one model `main` that answers from a script.
pub struct Served {
    pub conversation: ServedConversation,
    _servers: ModelServers,
    clients: Arc<HttpClients>,
}

/// An answer to a request.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// The bytes until the end or until the connection broke.
    pub body: String,
    pub is_broken: bool,
}

impl Served {
    pub fn script(rules: &str) -> Served {
        Served::with(rules, Vec::new(), ServeLimits::default())
    }

    pub fn with(rules: &str, faults: Vec<ModelFault>, limits: ServeLimits) -> Served {
        let servers = ModelServers::start(limits).unwrap();
        let conversation = servers.open_conversation("c1", models(rules, faults));
        Served { conversation, _servers: servers, clients: Arc::default() }
    }

    pub fn url(&self) -> String {
        self.conversation.url("main").unwrap()
    }

    /// A connector of a real client to the model.
    pub fn connector(&self, provider: Provider, stream: bool) -> ConnectorConfig {
        ConnectorConfig { base_url: Some(self.url()), stream, ..ConnectorConfig::new(provider, "gpt") }
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, body.to_string()).await
    }

    pub async fn post_text(&self, path: &str, body: String) -> Answer {
        self.send(self.request(Method::POST, &format!("{}/{path}", self.url())).body(body)).await
    }

    pub fn request(&self, method: Method, url: &str) -> OutgoingRequest {
        request(&self.clients, method, url)
    }

    pub async fn send(&self, request: OutgoingRequest) -> Answer {
        match request.send().await {
            Ok(response) => read(response).await,
            Err(_) => Answer { status: 0, headers: Default::default(), body: String::new(), is_broken: true },
        }
    }

    /// All events so far, one line each.
    pub fn events(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.conversation.try_next_event()).map(|event| describe(event.kind)).collect()
    }
}

pub fn request(clients: &HttpClients, method: Method, url: &str) -> OutgoingRequest {
    clients.request(method, &Url::parse(url).unwrap()).unwrap()
}

pub fn models(rules: &str, faults: Vec<ModelFault>) -> BTreeMap<String, ServedModel> {
    let script = ModelScript::parse("script.yaml", rules).unwrap();
    let model = Arc::new(LiveModel::new(ScriptedModel::new(script)));
    BTreeMap::from([("main".to_string(), ServedModel { faults, ..ServedModel::new(model) })])
}

pub async fn read(mut response: IncomingResponse) -> Answer {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut body = Vec::new();
    let is_broken = loop {
        match response.next_bytes().await {
            Ok(Some(bytes)) => body.extend_from_slice(&bytes),
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    Answer { status, headers, body: String::from_utf8(body).unwrap(), is_broken }
}

fn describe(kind: ServedModelEventKind) -> String {
    match kind {
        ServedModelEventKind::CallReceived { call, dialect, requested, position, tools, .. } => {
            format!("{call} received: {dialect:?} for {requested}, {position}, {tools} tools")
        }
        ServedModelEventKind::CallAnswered { call, reply, .. } => {
            let calls: Vec<_> = reply.tool_calls.iter().map(|call| call.name.as_str()).collect();
            format!("{call} answered: {:?} {}", reply.text, calls.join(" "))
        }
        ServedModelEventKind::CallFailed { call, error, .. } => format!("{call} failed: {}", error.kind),
        ServedModelEventKind::FaultInjected { call, rule, fault } => format!("{call} fault {rule}: {fault}"),
        ServedModelEventKind::UnofferedTool { tool, offered } => {
            format!("{tool} is none of {}", offered.join(" "))
        }
        ServedModelEventKind::UnreadAnswer { path } => format!("unread: {path}"),
        ServedModelEventKind::Refused { message } => format!("refused: {message}"),
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {:?}", self.body))
    }

    /// Data of the events of a stream.
    pub fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A request with one user message in the form of a protocol.
pub fn ask(path: &str, text: &str) -> Value {
    match path {
        "v1/responses" => json!({"model": "gpt", "input": text}),
        "v1/messages" => {
            json!({"model": "claude", "max_tokens": 100, "messages": [{"role": "user", "content": text}]})
        }
        _ => json!({"model": "gpt", "messages": [{"role": "user", "content": text}]}),
    }
}

pub fn streamed(mut body: Value) -> Value {
    body["stream"] = true.into();
    body
}
