//! Servers with scripted agents, and a client that does what clients do: it keeps what it was told, and sends it all
//! again.

use std::sync::Arc;
use std::time::Duration;

use hotseat_model::script::{Rule, Script, Scripted};
use hotseat_model::{Answering, Delta, Live, Model, Request, Sink};
use hotseat_runtime::definition::schema::{number, object, string};
use hotseat_runtime::definition::{Definitions, Persona, mock, persona, step, task, tool};
use hotseat_runtime::live::{Host, HostOptions, Models};
use hotseat_runtime::serve::{Agent, Options, Server};
use hotseat_runtime::store::Store;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// How long a test waits for something that has to come.
pub const SOON: Duration = Duration::from_secs(20);

/// A server that listens.
pub struct Served {
    pub url: String,
    pub http: reqwest::Client,
    pub host: Host,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

pub async fn serve(persona: &Persona, model: impl Model + 'static) -> Served {
    serve_with(persona, model, Options::default(), HostOptions::default()).await
}

pub async fn serve_with(
    persona: &Persona,
    model: impl Model + 'static,
    options: Options,
    host: HostOptions,
) -> Served {
    let (definitions, id) = Definitions::of(persona).unwrap();
    let definitions = Arc::new(definitions);
    let host = Host::new(definitions.clone(), Models::one(model), host);
    let agent = Agent::new(id.as_str(), host.clone(), definitions, id.clone());
    let server = Server::bind(options, vec![agent]).await.unwrap();
    let url = format!("http://{}", server.address());
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().no_proxy().timeout(SOON).build().unwrap();
    Served { url, http, host, stop: Some(stop), running }
}

/// A server that listens and answers nobody.
pub async fn bind(options: Options) -> Result<Server, hotseat_runtime::serve::ServeError> {
    let (definitions, id) = Definitions::of(&persona("Nobody")).unwrap();
    let definitions = Arc::new(definitions);
    let host = Host::new(definitions.clone(), Models::default(), HostOptions::default());
    Server::bind(options, vec![Agent::new("nobody", host, definitions, id)]).await
}

impl Served {
    pub async fn post(&self, path: &str, body: &Value) -> reqwest::Response {
        self.request(path, body.to_string()).send().await.unwrap()
    }

    pub fn request(&self, path: &str, body: String) -> reqwest::RequestBuilder {
        self.http.post(format!("{}{path}", self.url)).header("content-type", "application/json").body(body)
    }

    /// Asks the server to stop, and waits until it has.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        drop(self.http);
        tokio::time::timeout(SOON, &mut self.running).await.expect("the server stops").unwrap();
    }

    /// Asks the server to stop.
    pub fn ask_to_stop(&mut self) {
        drop(self.stop.take());
    }
}

/// A script that answers any number of conversations.
pub fn scripted(rules: impl IntoIterator<Item = Rule>) -> Live<Scripted> {
    let script = rules.into_iter().fold(Script::builder("agent"), hotseat_model::script::ScriptBuilder::rule);
    Live::new(Scripted::new(script.build().unwrap()))
}

/// An agent with a tool of its own, one that a person must approve, and shared state.
pub fn clerk() -> Persona {
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

/// A client of AG-UI.
pub struct Client<'s> {
    pub served: &'s Served,
    pub thread: String,
    pub messages: Vec<Value>,
    pub state: Value,
    pub tools: Value,
    pub interrupts: Vec<Value>,
    runs: usize,
}

impl<'s> Client<'s> {
    pub fn new(served: &'s Served, thread: &str) -> Self {
        Client {
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

    /// Says something, and takes in what it is answered.
    pub async fn say(&mut self, text: &str) -> Vec<Value> {
        self.user(text);
        self.run(None).await
    }

    pub async fn run(&mut self, resume: Option<Value>) -> Vec<Value> {
        let body = self.body(resume);
        let response = self.served.post("/", &body).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, 200, "{text}");
        let events = events(&text);
        self.take_in(&events);
        events
    }

    /// Sends what it has, and is refused.
    pub async fn refused(&mut self, resume: Option<Value>) -> (u16, String) {
        let body = self.body(resume);
        refused(self.served.post("/", &body).await).await
    }

    pub fn take_in(&mut self, events: &[Value]) {
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

    /// What the agent said last.
    pub fn last_text(&self) -> &str {
        let said = self.messages.iter().rev().find_map(|message| match message["role"] == "assistant" {
            true => message["content"].as_str(),
            false => None,
        });
        said.unwrap_or_default()
    }
}

/// The status and the words of a refusal, in the shape that clients read.
pub async fn refused(response: reqwest::Response) -> (u16, String) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let body: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (status, body["error"]["message"].as_str().unwrap().to_string())
}

/// The events of a stream.
pub fn events(stream: &str) -> Vec<Value> {
    let data = stream.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The events in short, one a line; pieces of the same text are put together.
pub fn short(events: &[Value]) -> Vec<String> {
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

/// A model that says what a test tells it to, piece by piece.
pub struct Told {
    pieces: watch::Receiver<Vec<Piece>>,
}

/// What a model that is told does next.
#[derive(Clone)]
pub enum Piece {
    Say(&'static str),
    Restart,
    Done,
}

/// What tells it.
pub struct Teller(watch::Sender<Vec<Piece>>);

pub fn told() -> (Teller, Told) {
    let (teller, pieces) = watch::channel(Vec::new());
    (Teller(teller), Told { pieces })
}

impl Teller {
    pub fn tell(&self, more: impl IntoIterator<Item = Piece>) {
        self.0.send_modify(|pieces| pieces.extend(more));
    }

    /// How many calls are under way, and one.
    pub fn listeners(&self) -> usize {
        self.0.receiver_count()
    }

    /// Waits until so many calls are under way.
    pub async fn until_asked(&self, listeners: usize) {
        let asked = async {
            while self.listeners() < listeners {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(SOON, asked).await.expect("the model is asked");
    }

    /// Waits until a call has been given up.
    pub async fn until_given_up(&self, listeners: usize) {
        let given_up = async {
            while self.listeners() > listeners {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(SOON, given_up).await.expect("the call is given up");
    }
}

impl Model for Told {
    fn name(&self) -> &str {
        "told"
    }

    fn call<'a>(&'a self, _request: &'a Request, sink: &'a mut dyn Sink) -> Answering<'a> {
        let mut pieces = self.pieces.clone();
        Box::pin(async move {
            let (mut text, mut next) = (String::new(), 0);
            loop {
                let known = pieces.wait_for(|pieces| pieces.len() > next).await.unwrap()[next].clone();
                next += 1;
                match known {
                    Piece::Say(more) => {
                        text.push_str(more);
                        sink.delta(Delta::Text { text: more.to_string() });
                    }
                    Piece::Restart => {
                        text.clear();
                        sink.delta(Delta::Restarted);
                    }
                    Piece::Done => return Ok(hotseat_model::Reply::text(text)),
                }
            }
        })
    }
}

/// Options with this store.
pub fn stored(store: Arc<dyn Store>) -> HostOptions {
    HostOptions { store, ..HostOptions::default() }
}
