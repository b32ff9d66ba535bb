//! The baseline: a client that sends the requests and reads the streams that Hotseat does, with the same HTTP
//! client and number of threads, and only searches the text for the marker.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hotseat_http::{HttpClients, IncomingResponse};
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde::{Deserialize, Serialize};
use url::Url;
use uuid::Uuid;

use crate::workload::{Workload, marker, question};

/// Error of a benchmark.
pub type BenchError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BareRunInput<'a> {
    protocol_version: &'static str,
    thread_id: &'a str,
    run_id: String,
    state: serde_json::Map<String, serde_json::Value>,
    messages: &'a [BareMessage],
    tools: [(); 0],
    context: [(); 0],
    forwarded_props: serde_json::Map<String, serde_json::Value>,
}

/// A message of the history.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BareMessage {
    id: String,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[BareToolCall; 1]>,
}

#[derive(Serialize)]
struct BareToolCall {
    id: String,
    r#type: &'static str,
    function: BareFunctionCall,
}

#[derive(Serialize)]
struct BareFunctionCall {
    name: String,
    arguments: String,
}

/// Union of the members of all relevant event types.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BareEvent<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    message_id: Cow<'a, str>,
    #[serde(borrow, default)]
    tool_call_id: Cow<'a, str>,
    #[serde(borrow, default)]
    tool_call_name: Cow<'a, str>,
    #[serde(borrow, default)]
    delta: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Cow<'a, str>,
}

/// Received reply: a tool call with its result, and a text.
#[derive(Default)]
struct BareReply {
    call: String,
    tool: String,
    arguments: String,
    result_message: String,
    result: String,
    message: String,
    text: String,
    finished: bool,
}

/// Runs all conversations of a workload.
///
/// # Errors
/// At the first failure.
pub async fn run_all(url: &str, workload: Workload) -> Result<(), BenchError> {
    let clients = Arc::new(HttpClients::default());
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..workload.parallel.min(workload.cases) {
        let (clients, next, url) = (clients.clone(), next.clone(), Url::parse(url)?);
        workers.spawn(async move {
            loop {
                let case = next.fetch_add(1, Ordering::Relaxed);
                if case >= workload.cases {
                    return Ok::<(), BenchError>(());
                }
                run_conversation(&clients, &url, case, workload.turns).await?;
            }
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    Ok(())
}

/// Runs one conversation.
async fn run_conversation(
    clients: &HttpClients,
    url: &Url,
    case: usize,
    turns: usize,
) -> Result<(), BenchError> {
    let thread_id = Uuid::new_v4().to_string();
    let mut messages = Vec::new();
    for turn in 1..=turns {
        messages.push(text_message("user", Uuid::new_v4().to_string(), question(case, turn)));
        let body = serde_json::to_vec(&BareRunInput {
            protocol_version: "1.0",
            thread_id: &thread_id,
            run_id: Uuid::new_v4().to_string(),
            state: serde_json::Map::new(),
            messages: &messages,
            tools: [],
            context: [],
            forwarded_props: serde_json::Map::new(),
        })?;
        let request = clients.request(Method::POST, url)?.header(CONTENT_TYPE, "application/json");
        let response = request.header(ACCEPT, "text/event-stream").body(body).send().await?;
        if response.status() != 200 {
            return Err(format!("turn {turn} of case {case} got status {}", response.status()).into());
        }
        let reply = read_reply(response).await?;
        if !reply.finished || !reply.text.contains(&marker(case, turn)) {
            return Err(format!("turn {turn} of case {case} got a wrong answer: {}", reply.text).into());
        }
        messages.extend(history(reply));
    }
    Ok(())
}

/// Reads an event stream to its end.
async fn read_reply(mut response: IncomingResponse) -> Result<BareReply, BenchError> {
    let mut reply = BareReply::default();
    let mut received = Vec::new();
    while let Some(bytes) = response.next_bytes().await? {
        received.extend_from_slice(&bytes);
        let mut done = 0;
        while let Some(length) = received[done..].windows(2).position(|pair| pair == b"\n\n") {
            if let Some(data) = received[done..done + length].strip_prefix(b"data: ") {
                reply.apply(serde_json::from_slice(data)?);
            }
            done += length + 2;
        }
        received.drain(..done);
    }
    Ok(reply)
}

impl BareReply {
    fn apply(&mut self, event: BareEvent<'_>) {
        match &*event.r#type {
            "TOOL_CALL_START" => {
                self.call = event.tool_call_id.into_owned();
                self.tool = event.tool_call_name.into_owned();
            }
            "TOOL_CALL_ARGS" => self.arguments.push_str(&event.delta),
            "TOOL_CALL_RESULT" => {
                self.result_message = event.message_id.into_owned();
                self.result = event.content.into_owned();
            }
            "TEXT_MESSAGE_START" => self.message = event.message_id.into_owned(),
            "TEXT_MESSAGE_CONTENT" => self.text.push_str(&event.delta),
            "RUN_FINISHED" => self.finished = true,
            _ => {}
        }
    }
}

/// Returns the messages of the reply for the next request.
fn history(reply: BareReply) -> [BareMessage; 3] {
    let function = BareFunctionCall { name: reply.tool, arguments: reply.arguments };
    let call = BareToolCall { id: reply.call.clone(), r#type: "function", function };
    let caller = BareMessage {
        id: reply.call.clone(),
        role: "assistant",
        tool_call_id: None,
        content: None,
        tool_calls: Some([call]),
    };
    let result = BareMessage {
        tool_call_id: Some(reply.call),
        ..text_message("tool", reply.result_message, reply.result)
    };
    [caller, result, text_message("assistant", reply.message, reply.text)]
}

fn text_message(role: &'static str, id: String, content: String) -> BareMessage {
    BareMessage { id, role, tool_call_id: None, content: Some(content), tool_calls: None }
}

/// Parses all YAML files of a folder with Hotseat's YAML parser, and counts the events. Fails if a file
/// cannot be read or is not YAML.
pub fn read_yaml(folder: &std::path::Path) -> Result<usize, BenchError> {
    let mut events = 0;
    for entry in std::fs::read_dir(folder)? {
        let text = std::fs::read_to_string(entry?.path())?;
        for event in saphyr_parser::Parser::new_from_str(&text) {
            event?;
            events += 1;
        }
    }
    Ok(events)
}
