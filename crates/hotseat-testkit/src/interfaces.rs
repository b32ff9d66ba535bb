//! Interfaces of the example agent: AG-UI, chat completions, a custom HTTP interface, and JSON lines.
//!
//! The behavior is defined in [`checkout`](crate::checkout); this module only converts it.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

use crate::agui::{FakeRun, RunAgentInput};
use crate::checkout::{AgentFault, converse};
use crate::completions::{ChatCompletion, chunk};
use crate::reply::{FakeReply, ReplyStep};
use crate::request::FakeRequest;

enum AgentAction {
    Said(String),
    Called { id: String, name: String, arguments: Value },
    Returned { id: String, result: String },
}

/// Actions of the agent in one run.
#[derive(Default)]
struct RunActions {
    actions: Vec<AgentAction>,
    /// Calls that the client must answer.
    pending: Vec<String>,
    /// Question to the user before it continues.
    question: Option<String>,
    error: Option<String>,
}

impl RunActions {
    fn execute(messages: Vec<Value>, tools: Vec<Value>, run_id: &str, fault: AgentFault) -> RunActions {
        let input = json!({"threadId": "t", "runId": run_id, "messages": messages, "tools": tools});
        let Ok(input) = RunAgentInput::from_json(input) else { return RunActions::default() };
        RunActions::from_run(converse(&input, fault))
    }

    fn from_run(run: FakeRun) -> RunActions {
        let mut done = RunActions::default();
        let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
        for step in run.reply().body {
            let ReplyStep::Event(event) = step else { continue };
            match (event["type"].as_str().unwrap_or_default(), done.actions.last_mut()) {
                ("TEXT_MESSAGE_START", _) => done.actions.push(AgentAction::Said(String::new())),
                ("TEXT_MESSAGE_CONTENT", Some(AgentAction::Said(said))) => {
                    said.push_str(&text(&event, "delta"))
                }
                ("TOOL_CALL_START", _) => done.actions.push(AgentAction::Called {
                    id: text(&event, "toolCallId"),
                    name: text(&event, "toolCallName"),
                    arguments: Value::String(String::new()),
                }),
                ("TOOL_CALL_ARGS", Some(AgentAction::Called { arguments: Value::String(arguments), .. })) => {
                    arguments.push_str(&text(&event, "delta"));
                }
                ("TOOL_CALL_RESULT", _) => {
                    let (id, result) = (text(&event, "toolCallId"), text(&event, "content"));
                    done.actions.push(AgentAction::Returned { id, result });
                }
                ("RUN_FINISHED", _) => {
                    let ids = event["outcome"]["pendingToolCallIds"].as_array().cloned().unwrap_or_default();
                    done.pending = ids.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect();
                    let asked = &event["outcome"]["interrupts"][0]["message"];
                    done.question = asked.as_str().map(str::to_owned);
                }
                ("RUN_ERROR", _) => done.error = Some(text(&event, "message")),
                _ => {}
            }
        }
        for deed in &mut done.actions {
            if let AgentAction::Called { arguments, .. } = deed
                && let Some(read) = arguments.as_str().and_then(|text| serde_json::from_str(text).ok())
            {
                *arguments = read;
            }
        }
        done
    }
}

/// Answers a request: `GET /health`, or `POST`: chat completions, `/chat`, or the start of an AG-UI run.
pub fn reply(request: &FakeRequest, fault: AgentFault) -> FakeReply {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/health") => FakeReply::text(200, "ok"),
        ("POST", path) if path.ends_with("/chat/completions") => completions(request, fault),
        ("POST", "/chat") => chat(request, fault),
        ("POST", _) => match RunAgentInput::from_request(request) {
            Ok(input) => converse(&input, fault).reply(),
            Err(why) => FakeReply::json(422, &json!({ "error": why.to_string() })),
        },
        _ => FakeReply::json(405, &json!({ "error": "start a run with POST" })),
    }
}

/// Answers `POST …/chat/completions` with a stream of chunks. Results of the agent's own tools have the role
/// `tool`.
pub fn completions(request: &FakeRequest, fault: AgentFault) -> FakeReply {
    let body = request.json();
    let list = |key: &str| body[key].as_array().cloned().unwrap_or_default();
    let messages = list("messages").into_iter().map(|mut message| {
        for (theirs, ours) in [("tool_calls", "toolCalls"), ("tool_call_id", "toolCallId")] {
            let value = message[theirs].take();
            message[ours] = value;
        }
        message
    });
    let tools = list("tools").into_iter().map(|mut tool| tool["function"].take());
    let run_id = format!("r{}", request.index);
    let done = RunActions::execute(messages.collect(), tools.collect(), &run_id, fault);
    if let Some(error) = done.error {
        return FakeReply::sse().event(json!({"error": {"message": error, "code": "model_error"}}));
    }
    let mut completion = ChatCompletion::new();
    let mut calls = 0;
    for deed in done.actions {
        completion = match deed {
            AgentAction::Said(text) => completion.text(&text),
            AgentAction::Called { id, name, arguments } => {
                calls += 1;
                completion.tool(calls - 1, &id, &name, &arguments)
            }
            AgentAction::Returned { id, result } => {
                let told = json!({"role": "tool", "tool_call_id": id, "content": result});
                completion.chunk(chunk(told, None))
            }
        };
    }
    if let Some(asked) = done.question {
        completion = completion.text(&asked).chunk(chunk(json!({"awaiting_input": true}), None));
    }
    let reason = if done.pending.is_empty() { "stop" } else { "tool_calls" };
    completion.finish(reason).streamed()
}

/// Answers `POST /chat` with `{"messages": […], "session": …}`: `{"reply", "steps", "session", "waiting"}`.
pub fn chat(request: &FakeRequest, fault: AgentFault) -> FakeReply {
    let body = request.json();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let session = body["session"].as_str().map_or_else(|| format!("s-{}", request.index), str::to_owned);
    let done = RunActions::execute(messages, Vec::new(), &format!("r{}", request.index), fault);
    let mut reply = String::new();
    let mut steps: Vec<Value> = Vec::new();
    for deed in done.actions {
        match deed {
            AgentAction::Said(text) => reply.push_str(&text),
            AgentAction::Called { id, name, arguments } => {
                steps.push(json!({"id": id, "tool": name, "input": arguments}));
            }
            AgentAction::Returned { id, result } => {
                if let Some(step) = steps.iter_mut().find(|step| step["id"] == id) {
                    step["output"] = serde_json::from_str(&result).unwrap_or(Value::String(result));
                }
            }
        }
    }
    let reply = done.question.as_deref().unwrap_or(&reply);
    let waiting = done.question.is_some();
    FakeReply::json(
        200,
        &json!({"reply": reply, "steps": steps, "session": session, "waiting": waiting, "error": done.error}),
    )
}

/// Answers messages from `input` with lines on `output` until the input ends. Fails if a line cannot be read
/// or is not JSON, or the output is closed.
pub fn lines(mut input: impl BufRead, mut output: impl Write, fault: AgentFault) -> io::Result<()> {
    let mut messages: Vec<Value> = Vec::new();
    let mut runs = 0;
    while let Some(message) = read_line(&mut input)? {
        messages.push(json!({"role": "user", "content": message["text"]}));
        let tools = message["tools"].as_array().cloned().unwrap_or_default();
        loop {
            runs += 1;
            let done = RunActions::execute(messages.clone(), tools.clone(), &format!("r{runs}"), fault);
            let mut say = |line: Value| writeln!(output, "{line}");
            let mut calls: Vec<Value> = Vec::new();
            let mut results: Vec<Value> = Vec::new();
            for deed in &done.actions {
                match deed {
                    AgentAction::Said(text) => {
                        say(json!({"type": "text", "text": text}))?;
                        results.push(json!({"role": "assistant", "content": text}));
                    }
                    AgentAction::Called { id, name, arguments } => {
                        say(json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments}))?;
                        let function = json!({"name": name, "arguments": arguments.to_string()});
                        calls.push(json!({"id": id, "type": "function", "function": function}));
                    }
                    AgentAction::Returned { id, result } => {
                        say(json!({"type": "tool_result", "id": id, "result": result}))?;
                        results.push(json!({"role": "tool", "toolCallId": id, "content": result}));
                    }
                }
            }
            messages.push(json!({"role": "assistant", "content": "", "toolCalls": calls}));
            messages.extend(results);
            if let Some(error) = done.error {
                say(json!({"type": "error", "message": error}))?;
                break;
            }
            if let Some(asked) = &done.question {
                say(json!({"type": "text", "text": asked}))?;
                say(json!({"type": "awaiting_input"}))?;
            }
            if done.pending.is_empty() {
                say(json!({"type": "done"}))?;
                break;
            }
            output.flush()?;
            for _ in &done.pending {
                let Some(answer) = read_line(&mut input)? else { return Ok(()) };
                let result = if answer["error"].is_null() { &answer["result"] } else { &answer["error"] };
                let content = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
                messages.push(json!({"role": "tool", "toolCallId": answer["id"], "content": content}));
            }
        }
        output.flush()?;
    }
    Ok(())
}

fn read_line(input: &mut impl BufRead) -> io::Result<Option<Value>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    serde_json::from_str(&line).map(Some).map_err(io::Error::other)
}
