//! Events of a conversation with its servers.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::answer::McpToolResult;
use crate::fault::FaultKind;
use crate::frame::RpcError;
use crate::revision::{ProtocolRevision, error_code};

/// A call that arrived after the end of its conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LateCall {
    /// Name of the conversation.
    pub conversation: String,
    /// Name of the server.
    pub server: String,
    /// Name of the tool.
    pub tool: String,
}

/// A request to a proxied server, other than a call, that it has not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedRequest {
    /// Name of the server.
    pub server: String,
    /// Method of the request.
    pub method: String,
    /// Arrival of the request.
    pub arrived: Instant,
}

/// One event between a client and a server.
#[derive(Debug, Clone)]
pub struct McpEvent {
    /// Time at which the cause of the event arrived or happened.
    pub at: Instant,
    /// Name of the server.
    pub server: String,
    /// The event.
    pub kind: McpEventKind,
}

/// The event itself. `call` is the [number](crate::McpCall::number) of a call in its conversation.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the documentation of the variants names the members")]
pub enum McpEventKind {
    /// A client connected, or a known one speaks another revision: the one that both sides speak. The client gives itself name and
    /// version.
    ClientConnected { revision: ProtocolRevision, client: Option<String>, client_version: Option<String> },
    /// A proxied server listed all its tools, by name. `may_change` is true if it announced that the list may change.
    ToolsListed { tools: Vec<String>, may_change: bool },
    /// A call of a tool arrived. The arguments are an object; `meta` is `_meta` of the request, for example with `traceparent`.
    CallReceived { call: u64, tool: String, arguments: Value, meta: Map<String, Value> },
    /// A call was answered. `outcome` is what the server gave, before any fault; `duration` is the time since the call arrived.
    /// `delivered` is true if an answer was sent to the client, perhaps changed by a fault.
    CallAnswered { call: u64, outcome: Result<McpToolResult, RpcError>, duration: Duration, delivered: bool },
    /// The server answered a call with a task, which carries the call out. [`CallAnswered`](Self::CallAnswered) follows when the
    /// client fetches the result.
    TaskStarted { call: u64 },
    /// A proxied server got a call and did not answer it, for example because it ended. The call may have taken effect. Precedes
    /// [`CallAnswered`](Self::CallAnswered), whose error the client got in place of an answer.
    CallBrokenOff { call: u64 },
    /// The client cancelled a call, or disconnected before the answer; or the conversation was closed. A proxied server may have
    /// carried the call out. `duration` is the time since the call arrived.
    CallCancelled { call: u64, duration: Duration },
    /// The schema of a proxied or recorded tool is not known, so the arguments of a call were not validated. `problem` says why the
    /// entry of the tool in the list cannot be used; `None` if the client did not list it.
    UncheckedArguments { call: u64, problem: Option<String> },
    /// The arguments of a call violate `inputSchema`. A mock answers the call with `isError`; other servers decide themselves. The
    /// call gets no fault.
    InvalidArguments { call: u64, violations: Vec<String> },
    /// A call names a tool that the server does not have, or offers only after another tool took effect.
    UnknownTool { call: u64, tool: String, offered_after: Option<String> },
    /// No answer fits a call, or no recorded exchange fits a request: the nearest one, and why it does not fit.
    Unmatched { call: Option<u64>, method: String, nearest: Option<String> },
    /// The code that answers a call failed. The client got a JSON-RPC error. `detail` may be an excerpt of the code.
    AnswerFailed { call: u64, message: String, detail: Option<String> },
    /// The server asked for input of the user before it completes a call: its requests by their names.
    InputRequested { call: u64, requests: Map<String, Value> },
    /// The client answered requests for input, by their names.
    InputProvided { call: u64, responses: Map<String, Value> },
    /// A fault was injected into a call. `rule` is its index among the faults of the server.
    FaultInjected { call: u64, rule: usize, fault: FaultKind },
    /// A proxied server cannot be reached, or its program could not be started or ended before its answer. `error_output` is the
    /// end of what the program wrote.
    ServerFailed { message: String, error_output: Option<String> },
    /// A message violates the protocol, or the answer of a proxied server does. `code` is that of the error it was answered with.
    ProtocolError { code: Option<i64>, message: String },
    /// A request arrived after the conversation was closed: its method, and the tool if it is a call. The request was refused.
    CallAfterClose { request: String },
    /// A request was refused because its body is incomplete, invalid or slow.
    RequestBroken { message: String },
    /// A request was refused because a limit is reached.
    LimitReached { limit: String },
}

impl McpEventKind {
    /// The events of an answer. An invalid result is a failure of its server.
    pub(crate) fn of_answer(
        call: u64,
        outcome: Result<Value, RpcError>,
        duration: Duration,
        delivered: bool,
    ) -> Vec<McpEventKind> {
        let mut events = Vec::new();
        let outcome = outcome.and_then(|result| {
            McpToolResult::from_json(&result).map_err(|problem| {
                let message = format!("it answered a call with an invalid result: {problem}");
                events.push(McpEventKind::ServerFailed { message: message.clone(), error_output: None });
                RpcError::new(error_code::INTERNAL_ERROR, message)
            })
        });
        events.push(McpEventKind::CallAnswered { call, outcome, duration, delivered });
        events
    }

    /// Describes the failure of a proxied server in one line: with the last line of its error output.
    pub fn server_failure(&self) -> Option<String> {
        let McpEventKind::ServerFailed { message, error_output } = self else { return None };
        let last = error_output.as_deref().and_then(|text| text.lines().last());
        Some(last.map_or_else(|| message.clone(), |line| format!("{message}: {line}")))
    }
}
