//! Servers with scripted agents, and a client that keeps its history and resends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hotseat_http::{HttpClients, IncomingResponse, OutgoingRequest};
use hotseat_model::script::{ModelScript, Rule, ScriptedModel};
use hotseat_model::{
    LiveModel, Model, ModelError, ModelErrorKind, ModelRequest, ReplyDelta, ReplyFuture, ReplySink,
};
use hotseat_runtime::definition::schema::{number, object, string};
use hotseat_runtime::definition::{Definitions, Persona, mock, persona, step, task, tool};
use hotseat_runtime::live::{ConversationHost, HostOptions, ModelRegistry};
use hotseat_runtime::serve::{AgentServer, ServeOptions, ServedAgent};
use hotseat_runtime::store::ConversationStore;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use url::Url;

/// Timeout for expected events.
pub const EVENT_TIMEOUT: Duration = Duration::from_secs(20);

/// A running server.
pub struct TestServer {
    pub url: String,
    http: HttpClients,
    pub host: ConversationHost,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

pub async fn serve(persona: &Persona, model: impl Model + 'static) -> TestServer {
    serve_with(persona, model, ServeOptions::default(), HostOptions::default()).await
}

pub async fn serve_with(
    persona: &Persona,
    model: impl Model + 'static,
    options: ServeOptions,
    host: HostOptions,
) -> TestServer {
    let (definitions, id) = Definitions::from_persona(persona).unwrap();
    let definitions = Arc::new(definitions);
    let host = ConversationHost::new(definitions.clone(), ModelRegistry::single(model), host);
    let agent = ServedAgent::new(id.as_str(), host.clone(), definitions, id.clone());
    let server = AgentServer::bind(options, vec![agent]).await.unwrap();
    let url = format!("http://{}", server.address());
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    TestServer { url, http: HttpClients::default(), host, stop: Some(stop), running }
}

/// A bound server that does not accept connections yet.
pub async fn bind(options: ServeOptions) -> Result<AgentServer, hotseat_runtime::serve::ServeError> {
    let (definitions, id) = Definitions::from_persona(&persona("Nobody")).unwrap();
    let definitions = Arc::new(definitions);
    let host = ConversationHost::new(definitions.clone(), ModelRegistry::default(), HostOptions::default());
    AgentServer::bind(options, vec![ServedAgent::new("nobody", host, definitions, id)]).await
}

impl TestServer {
    pub fn open(&self, method: Method, path: &str) -> OutgoingRequest {
        self.http.request(method, &Url::parse(&format!("{}{path}", self.url)).unwrap()).unwrap()
    }

    pub async fn get(&self, path: &str) -> IncomingResponse {
        send(self.open(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> IncomingResponse {
        send(self.request(path, body.to_string())).await
    }

    pub fn request(&self, path: &str, body: String) -> OutgoingRequest {
        self.open(Method::POST, path).header("content-type", "application/json").body(body)
    }

    /// Requests shutdown and waits for it.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        drop(self.http);
        tokio::time::timeout(EVENT_TIMEOUT, &mut self.running).await.expect("the server stops").unwrap();
    }

    /// Requests shutdown.
    pub fn request_stop(&mut self) {
        drop(self.stop.take());
    }
}

/// Sends a request and waits for the head of its response.
pub async fn send(request: OutgoingRequest) -> IncomingResponse {
    tokio::time::timeout(EVENT_TIMEOUT, request.send()).await.expect("the server answers").unwrap()
}

/// Next piece of a response; `None` at its end.
pub async fn next_piece(response: &mut IncomingResponse) -> Option<Bytes> {
    tokio::time::timeout(EVENT_TIMEOUT, response.next_bytes()).await.expect("the response goes on").unwrap()
}

/// The rest of a response.
pub async fn text(mut response: IncomingResponse) -> String {
    let mut body = Vec::new();
    while let Some(piece) = next_piece(&mut response).await {
        body.extend_from_slice(&piece);
    }
    String::from_utf8(body).unwrap()
}

/// Reads a response up to this text.
pub async fn read_until(response: &mut IncomingResponse, words: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(words) {
        let piece = next_piece(response).await.unwrap_or_else(|| panic!("{words} does not come: {seen}"));
        seen.push_str(std::str::from_utf8(&piece).unwrap());
    }
    seen
}

/// A scripted model for any number of conversations.
pub fn scripted(rules: impl IntoIterator<Item = Rule>) -> LiveModel<ScriptedModel> {
    let script =
        rules.into_iter().fold(ModelScript::builder("agent"), hotseat_model::script::ScriptBuilder::rule);
    LiveModel::new(ScriptedModel::new(script.build().unwrap()))
}

/// An agent with its own tool, a tool that needs approval, and shared state.
pub fn clerk_persona() -> Persona {
    let look_up = task("Look Up").step(
        step(mock().computes("{order: input.order, total: 42.5}"))
            .input("order", "input.order")
            .output("output", "result"),
    );
    let refund = task("Refund").step(
        step(mock().computes("{refunded: input.amount}"))
            .input("amount", "input.amount")
            .output("output", "result"),
    );
    persona("Clerk")
        .system("You are a clerk.")
        .tool(tool("look_up").input(object([("order", string())])).task(&look_up).writes("order", "result"))
        .tool(
            tool("refund")
                .input(object([("amount", number())]))
                .approval("Refund {amount} euros?")
                .task(&refund),
        )
}

/// An AG-UI client.
pub struct AgUiClient<'s> {
    pub served: &'s TestServer,
    pub thread: String,
    pub messages: Vec<Value>,
    pub state: Value,
    pub tools: Value,
    pub interrupts: Vec<Value>,
    runs: usize,
}

impl<'s> AgUiClient<'s> {
    pub fn new(served: &'s TestServer, thread: &str) -> Self {
        AgUiClient {
            served,
            thread: thread.to_string(),
            messages: Vec::new(),
            state: json!({}),
            tools: json!([]),
            interrupts: Vec::new(),
            runs: 0,
        }
    }

    pub fn body(&mut self, resume: Option<Value>) -> Value {
        self.runs += 1;
        let mut body = json!({
            "protocolVersion": "1.0",
            "threadId": self.thread,
            "runId": format!("run-{}", self.runs),
            "state": self.state,
            "messages": self.messages,
            "tools": self.tools,
            "context": [],
            "forwardedProps": {},
        });
        if let Some(resume) = resume {
            body["resume"] = resume;
        }
        body
    }

    pub fn user(&mut self, text: &str) {
        let id = format!("u{}", self.messages.len() + 1);
        self.messages.push(json!({"id": id, "role": "user", "content": text}));
    }

    pub fn tool_result(&mut self, call: &str, content: &str) {
        let id = format!("{call}-answer");
        self.messages.push(json!({"id": id, "role": "tool", "toolCallId": call, "content": content}));
    }

    /// Sends a message and processes the response.
    pub async fn say(&mut self, text: &str) -> Vec<Value> {
        self.user(text);
        self.run(None).await
    }

    pub async fn run(&mut self, resume: Option<Value>) -> Vec<Value> {
        let body = self.body(resume);
        let response = self.served.post("/", &body).await;
        let (status, text) = (response.status(), text(response).await);
        assert_eq!(status, 200, "{text}");
        let events = events(&text);
        self.process_events(&events);
        events
    }

    /// Sends the current history and expects a rejection.
    pub async fn send_rejected(&mut self, resume: Option<Value>) -> (u16, String) {
        let body = self.body(resume);
        rejection(self.served.post("/", &body).await).await
    }

    pub fn process_events(&mut self, events: &[Value]) {
        for event in events {
            let id = |member: &str| event[member].as_str().unwrap_or_default().to_string();
            match event["type"].as_str().unwrap() {
                "TEXT_MESSAGE_START" => drop(self.message(&id("messageId"), event)),
                "TEXT_MESSAGE_CONTENT" => {
                    let entry = self.message(&id("messageId"), event);
                    let text = format!("{}{}", entry["content"].as_str().unwrap_or_default(), id("delta"));
                    entry["content"] = json!(text);
                }
                "TOOL_CALL_START" => {
                    let call = json!({
                        "id": event["toolCallId"],
                        "type": "function",
                        "function": {"name": event["toolCallName"], "arguments": ""},
                    });
                    let entry = self.message(&id("parentMessageId"), event);
                    match entry["toolCalls"].as_array_mut() {
                        Some(calls) => calls.push(call),
                        None => entry["toolCalls"] = json!([call]),
                    }
                }
                "TOOL_CALL_ARGS" => {
                    let calls =
                        self.messages.iter_mut().filter_map(|message| message["toolCalls"].as_array_mut());
                    let call = calls.flatten().find(|call| call["id"] == event["toolCallId"]);
                    let arguments = &mut call.expect("a call")["function"]["arguments"];
                    *arguments = json!(format!("{}{}", arguments.as_str().unwrap_or_default(), id("delta")));
                }
                "TOOL_CALL_RESULT" => self.messages.push(json!({
                    "id": event["messageId"],
                    "role": "tool",
                    "toolCallId": event["toolCallId"],
                    "content": event["content"],
                })),
                "STATE_SNAPSHOT" => self.state = event["snapshot"].clone(),
                "MESSAGES_SNAPSHOT" => self.messages = event["messages"].as_array().unwrap().clone(),
                "RUN_FINISHED" => {
                    self.interrupts = event["outcome"]["interrupts"].as_array().cloned().unwrap_or_default();
                }
                _ => {}
            }
        }
    }

    fn message(&mut self, id: &str, event: &Value) -> &mut Value {
        let place = self.messages.iter().position(|message| message["id"] == id).unwrap_or_else(|| {
            let mut message = json!({"id": id, "role": "assistant"});
            if let Some(agent) = event.get("subagentRunId") {
                message["subagentRunId"] = agent.clone();
            }
            self.messages.push(message);
            self.messages.len() - 1
        });
        &mut self.messages[place]
    }

    /// Last text of the agent.
    pub fn last_text(&self) -> &str {
        let said = self.messages.iter().rev().find_map(|message| match message["role"] == "assistant" {
            true => message["content"].as_str(),
            false => None,
        });
        said.unwrap_or_default()
    }
}

/// Status and message of a rejection in the standard error format.
pub async fn rejection(response: IncomingResponse) -> (u16, String) {
    let status = response.status().as_u16();
    let text = text(response).await;
    let body: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (status, body["error"]["message"].as_str().unwrap().to_string())
}

/// Events of a stream.
pub fn events(stream: &str) -> Vec<Value> {
    let data = stream.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Abbreviated events, one per line; pieces of the same text are joined.
pub fn abbreviate(events: &[Value]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut last = Value::Null;
    for event in events {
        let kind = event["type"].as_str().unwrap();
        let of = |member: &str| match &event[member] {
            Value::Null => String::new(),
            Value::String(text) => format!(" {text}"),
            other => format!(" {other}"),
        };
        if kind.ends_with("_CONTENT") && last["type"] == kind && last["messageId"] == event["messageId"] {
            lines.last_mut().unwrap().push_str(event["delta"].as_str().unwrap());
            continue;
        }
        last = event.clone();
        lines.push(match kind {
            "RUN_STARTED" => format!("{kind}{}{}", of("threadId"), of("runId")),
            "RUN_FINISHED" => format!("{kind}{}", of("outcome")),
            "RUN_ERROR" => format!("{kind}{}{}", of("code"), of("message")),
            "TEXT_MESSAGE_START" | "TEXT_MESSAGE_END" | "TEXT_MESSAGE_CONTENT" => {
                format!("{kind}{}{}{}", of("messageId"), of("subagentRunId"), of("delta"))
            }
            "TOOL_CALL_START" => {
                format!("{kind}{}{}{}", of("toolCallId"), of("toolCallName"), of("parentMessageId"))
            }
            "TOOL_CALL_RESULT" => format!("{kind}{}{}", of("toolCallId"), of("content")),
            "MESSAGES_SNAPSHOT" => {
                let messages = event["messages"].as_array().unwrap();
                format!(
                    "{kind} {}",
                    messages.iter().map(|m| m["id"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
                )
            }
            _ => format!(
                "{kind}{}{}{}{}{}{}{}",
                of("messageId"),
                of("toolCallId"),
                of("subagentRunId"),
                of("name"),
                of("stepName"),
                of("delta"),
                of("snapshot"),
            ),
        });
    }
    lines
}

/// A model whose output the test controls piece by piece.
pub struct ControlledModel {
    pieces: watch::Receiver<Vec<OutputPiece>>,
    /// Index of the first piece of the next call.
    start: AtomicUsize,
}

/// Next output of a controlled model.
#[derive(Clone)]
pub enum OutputPiece {
    Text(&'static str),
    /// The call fails, and the next one goes on with the pieces after it.
    Restart,
    Done,
}

/// Control handle of the model.
pub struct ModelControl(watch::Sender<Vec<OutputPiece>>);

pub fn controlled_model() -> (ModelControl, ControlledModel) {
    let (teller, pieces) = watch::channel(Vec::new());
    (ModelControl(teller), ControlledModel { pieces, start: AtomicUsize::new(0) })
}

impl ModelControl {
    pub fn emit(&self, more: impl IntoIterator<Item = OutputPiece>) {
        self.0.send_modify(|pieces| pieces.extend(more));
    }

    /// Number of running calls plus one.
    pub fn listeners(&self) -> usize {
        self.0.receiver_count()
    }

    /// Waits until this number of calls is running.
    pub async fn wait_for_calls(&self, listeners: usize) {
        let asked = async {
            while self.listeners() < listeners {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(EVENT_TIMEOUT, asked).await.expect("the model is asked");
    }

    /// Waits until a call has been cancelled.
    pub async fn wait_for_cancellation(&self, listeners: usize) {
        let given_up = async {
            while self.listeners() > listeners {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(EVENT_TIMEOUT, given_up).await.expect("the call is given up");
    }
}

impl Model for ControlledModel {
    fn name(&self) -> &str {
        "told"
    }

    fn call<'a>(&'a self, _request: &'a ModelRequest, sink: &'a mut dyn ReplySink) -> ReplyFuture<'a> {
        let mut pieces = self.pieces.clone();
        Box::pin(async move {
            let (mut text, mut next) = (String::new(), self.start.load(Ordering::SeqCst));
            loop {
                let known = pieces.wait_for(|pieces| pieces.len() > next).await.unwrap()[next].clone();
                next += 1;
                match known {
                    OutputPiece::Text(more) => {
                        text.push_str(more);
                        sink.delta(ReplyDelta::Text { text: more.to_string() });
                    }
                    OutputPiece::Restart => {
                        self.start.store(next, Ordering::SeqCst);
                        return Err(ModelError::new(ModelErrorKind::Server, "restarted"));
                    }
                    OutputPiece::Done => return Ok(hotseat_model::ModelReply::text(text)),
                }
            }
        })
    }
}

/// Host options with this store.
pub fn store_options(store: Arc<dyn ConversationStore>) -> HostOptions {
    HostOptions { store, ..HostOptions::default() }
}
