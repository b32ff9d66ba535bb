//! Payloads of tool events.

use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::members::members;
use super::{ErrorInfo, Origin};
use crate::TimeOffset;

/// Outcome of a tool call: a result or an error.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "WireToolOutcome")]
pub struct ToolOutcome {
    /// Id of the call.
    pub tool_call_id: Arc<str>,
    /// The result, or the error.
    pub result: Result<Value, ErrorInfo>,
}

impl ToolOutcome {
    /// Returns true if the tool succeeded.
    pub fn is_success(&self) -> bool {
        self.result.is_ok()
    }

    /// Returns the error of a failed call.
    pub fn error(&self) -> Option<&ErrorInfo> {
        self.result.as_ref().err()
    }

    /// Returns the result of a successful call.
    pub fn value(&self) -> Option<&Value> {
        self.result.as_ref().ok()
    }
}

impl Serialize for ToolOutcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("ToolOutcome", 3)?;
        out.serialize_field("tool_call_id", &self.tool_call_id)?;
        out.serialize_field("success", &self.is_success())?;
        match &self.result {
            Ok(value) => out.serialize_field("result", value)?,
            Err(error) => out.serialize_field("error", error)?,
        }
        out.end()
    }
}

/// Serialised form of [`ToolOutcome`].
#[derive(Deserialize)]
struct WireToolOutcome {
    tool_call_id: Arc<str>,
    success: bool,
    #[serde(default, deserialize_with = "hotseat_trace::present")]
    result: Option<Value>,
    error: Option<ErrorInfo>,
}

impl TryFrom<WireToolOutcome> for ToolOutcome {
    type Error = &'static str;

    fn try_from(written: WireToolOutcome) -> Result<ToolOutcome, &'static str> {
        let result = match (written.success, written.result, written.error) {
            (true, Some(value), None) => Ok(value),
            (false, None, Some(error)) => Err(error),
            _ => return Err("a tool result has either success and a result, or no success and an error"),
        };
        Ok(ToolOutcome { tool_call_id: written.tool_call_id, result })
    }
}

members! {
    turn {
        /// `tool.invoked`
        #[derive(Default)]
        ToolInvocation {
            /// Id of the call, unique in the trace.
            tool_call_id: Arc<str>,
            /// Name of the tool.
            tool_name: Arc<str>,
            /// Kind of the tool, if the agent reports it: `task`, `workflow`, `agent`, or `client` for
            /// client-side tools.
            target_type?: Option<Arc<str>>,
            /// Id of the task, workflow or agent.
            target_id?: Option<Arc<str>>,
            /// True if the agent continues before the tool returns.
            #[serde(default)]
            r#async: bool,
            /// Arguments, if already known; otherwise `tool.arguments` follows.
            #[serde(deserialize_with = "hotseat_trace::present")]
            input?: Option<Value>,
            /// Start of the call if before the event: the arrival of the snapshot that contains it.
            started_us?: Option<TimeOffset>,
            /// Source of the event.
            origin?: Origin,
            /// Sub-agent that made the call; absent for the agent itself.
            subagent?: Option<Arc<str>>,
            /// Message that makes the call, if the agent reports it; it may contain text and other calls.
            message_id?: Option<Arc<str>>,
            /// Delegated or joining agent: `delegate` or `loop_in`. Only for tools that are agents.
            invocation_mode?: Option<InvocationMode>,
            /// MCP server of the test that received the call; absent for calls that the agent reports.
            server?: Option<Arc<str>>,
            /// Id under which the agent reports the call, if its MCP client passed it.
            agent_call_id?: Option<Arc<str>>,
        }
        /// `tool.arguments`
        ToolArguments {
            /// Id of the call.
            tool_call_id: Arc<str>,
            /// Arguments as JSON; absent if the text is not JSON.
            #[serde(deserialize_with = "hotseat_trace::present")]
            input?: Option<Value>,
            /// Arguments as received; present only if the text is not JSON.
            text?: Option<String>,
            /// When the arguments were complete if before the event: the arrival of their last part.
            ended_us?: Option<TimeOffset>,
            /// Message that makes the call, if that is known only after the start of the call. Without `input` and `text`, the
            /// arguments stay as they are.
            message_id?: Option<Arc<str>>,
        }
        /// `tool.completed`
        ToolCompleted {
            /// Id of the call.
            tool_call_id: Arc<str>,
            /// Result of the tool: JSON if the tool returned JSON, otherwise text.
            output: Value,
            /// Source of the event.
            origin?: Origin,
        }
        /// `tool.failed`
        ToolFailed {
            /// Id of the call.
            tool_call_id: Arc<str>,
            /// Error of the tool.
            error: ErrorInfo,
            /// Source of the event.
            origin?: Origin,
        }
        /// `tool.retry_scheduled`
        ToolRetry {
            /// Id of the call.
            tool_call_id: Arc<str>,
            /// Number of the failed attempt, from 1.
            attempt: u32,
            /// Maximum number of attempts.
            max_attempts: u32,
            /// Delay before the next attempt, in milliseconds.
            delay_ms: u64,
            /// Error of the attempt.
            error: ErrorInfo,
        }
    }
}

/// How a called agent participates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationMode {
    /// In a separate conversation that contains only the input; only the caller gets the answer.
    #[default]
    Delegate,
    /// In the caller's conversation: it sees the history, and its messages are visible to all.
    LoopIn,
}

impl ToolInvocation {
    /// Creates a call without arguments and without details.
    pub fn new(turn_id: Arc<str>, tool_call_id: Arc<str>, tool_name: impl Into<Arc<str>>) -> ToolInvocation {
        ToolInvocation { turn_id, tool_call_id, tool_name: tool_name.into(), ..ToolInvocation::default() }
    }
}
