//! Events of a conversation with its servers.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::answer::McpToolResult;
use crate::fault::FaultKind;
use crate::frame::RpcError;
use crate::revision::ProtocolRevision;

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
pub enum McpEventKind {
    /// A client connected, or a known one speaks another revision.
    ClientConnected {
        /// Revision that both sides speak.
        revision: ProtocolRevision,
        /// Name that the client gives itself.
        client: Option<String>,
        /// Version that the client gives itself.
        client_version: Option<String>,
    },
    /// A proxied server listed all its tools.
    ToolsListed {
        /// Names of the tools.
        tools: Vec<String>,
        /// Whether the server announced that the list may change.
        may_change: bool,
    },
    /// A call of a tool arrived.
    CallReceived {
        /// Number of the call.
        call: u64,
        /// Name of the tool.
        tool: String,
        /// Arguments, an object.
        arguments: Value,
        /// `_meta` of the request, for example with `traceparent`.
        meta: Map<String, Value>,
    },
    /// A call was answered.
    CallAnswered {
        /// Number of the call.
        call: u64,
        /// Result or JSON-RPC error as the server gave it, before any fault.
        outcome: Result<McpToolResult, RpcError>,
        /// Time since the call arrived.
        duration: Duration,
        /// Whether the answer was sent to the client, perhaps changed by a fault.
        delivered: bool,
    },
    /// A proxied server got a call and did not answer it, for example because it ended. The call may have taken effect. Precedes
    /// [`CallAnswered`](Self::CallAnswered), whose error the client got in place of an answer.
    CallBrokenOff {
        /// Number of the call.
        call: u64,
    },
    /// The client cancelled a call, or disconnected before the answer; or the conversation was closed. A proxied server may have
    /// carried the call out.
    CallCancelled {
        /// Number of the call.
        call: u64,
        /// Time since the call arrived.
        duration: Duration,
    },
    /// The schema of a proxied or recorded tool is not known, so the arguments of a call were not validated.
    UncheckedArguments {
        /// Number of the call.
        call: u64,
    },
    /// The arguments of a call violate `inputSchema`. A mock answers the call with `isError`; other servers decide themselves. The
    /// call gets no fault.
    InvalidArguments {
        /// Number of the call.
        call: u64,
        /// What is wrong, one text for each violation.
        violations: Vec<String>,
    },
    /// A call names a tool that the server does not have, or does not offer yet.
    UnknownTool {
        /// Number of the call.
        call: u64,
        /// The unknown name.
        tool: String,
        /// The tool that must take effect before the server offers this one.
        offered_after: Option<String>,
    },
    /// No answer fits a call, or no recorded exchange fits a request.
    Unmatched {
        /// Number of the call, if the request is a call.
        call: Option<u64>,
        /// Method of the request.
        method: String,
        /// The nearest answer or recorded request, and why it does not fit.
        nearest: Option<String>,
    },
    /// The code that answers a call failed. The client got a JSON-RPC error.
    AnswerFailed {
        /// Number of the call.
        call: u64,
        /// What went wrong.
        message: String,
        /// Details, for example an excerpt of the code.
        detail: Option<String>,
    },
    /// The server asked for input of the user before it completes a call.
    InputRequested {
        /// Number of the call.
        call: u64,
        /// The requests by their names.
        requests: Map<String, Value>,
    },
    /// The client answered requests for input.
    InputProvided {
        /// Number of the call.
        call: u64,
        /// The answers by the names of the requests.
        responses: Map<String, Value>,
    },
    /// A fault was injected into a call.
    FaultInjected {
        /// Number of the call.
        call: u64,
        /// Index of the rule among the faults of the server.
        rule: usize,
        /// The fault.
        fault: FaultKind,
    },
    /// A proxied server cannot be reached, or its program could not be started or ended before its answer.
    ServerFailed {
        /// What happened.
        message: String,
        /// The end of the error output of the program.
        error_output: Option<String>,
    },
    /// A message violates the protocol, or the answer of a proxied server does.
    ProtocolError {
        /// Code of the answered error, if there is one.
        code: Option<i64>,
        /// What is wrong.
        message: String,
    },
    /// A request arrived after the conversation was closed. The request was refused.
    CallAfterClose {
        /// Method of the request, and the tool if it is a call.
        request: String,
    },
    /// A request was refused because a limit is reached.
    LimitReached {
        /// The limit in words.
        limit: String,
    },
}

impl McpEventKind {
    /// Describes the failure of a proxied server in one line: with the last line of its error output.
    pub fn server_failure(&self) -> Option<String> {
        let McpEventKind::ServerFailed { message, error_output } = self else { return None };
        let last = error_output.as_deref().and_then(|text| text.lines().last());
        Some(last.map_or_else(|| message.clone(), |line| format!("{message}: {line}")))
    }
}
