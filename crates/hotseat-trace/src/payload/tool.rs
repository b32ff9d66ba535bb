//! Members of tool events.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::members::members;
use super::{ErrorInfo, Origin};
use crate::Offset;

/// What a tool call came to: a result or an error, never both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct ToolOutcome {
    /// Id of the call.
    pub tool_call_id: Arc<str>,
    /// What it returned, or why it failed.
    pub result: Result<Value, ErrorInfo>,
}

impl ToolOutcome {
    /// Whether the tool did what it was asked.
    pub fn success(&self) -> bool {
        self.result.is_ok()
    }

    /// Why it failed.
    pub fn error(&self) -> Option<&ErrorInfo> {
        self.result.as_ref().err()
    }

    /// What it returned.
    pub fn value(&self) -> Option<&Value> {
        self.result.as_ref().ok()
    }
}

/// [`ToolOutcome`] as it is written.
#[derive(Serialize, Deserialize)]
struct Written {
    tool_call_id: Arc<str>,
    success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorInfo>,
}

/// A member that is written as `null` is there; one that is not written is not.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl From<ToolOutcome> for Written {
    fn from(outcome: ToolOutcome) -> Written {
        let success = outcome.success();
        let (result, error) = match outcome.result {
            Ok(value) => (Some(value), None),
            Err(error) => (None, Some(error)),
        };
        Written { tool_call_id: outcome.tool_call_id, success, result, error }
    }
}

impl TryFrom<Written> for ToolOutcome {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<ToolOutcome, &'static str> {
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
        ToolInvocation {
            /// Id of the call, unique in the trace.
            tool_call_id: Arc<str>,
            /// Name of the tool.
            tool_name: Arc<str>,
            /// What the tool is, where the agent says: `task`, `workflow`, `agent`; `client` for client-side tools.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            target_type: Option<Arc<str>>,
            /// Which task, workflow or agent it is.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            target_id: Option<Arc<str>>,
            /// Whether the agent goes on before the tool has answered.
            #[serde(default)]
            r#async: bool,
            /// The arguments, where they are known at once; otherwise `tool.arguments` follows.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            input: Option<Value>,
            /// When it began, where that was before the event: the arrival of the snapshot that told of it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            started_us: Option<Offset>,
            /// Where it was seen.
            #[serde(default, skip_serializing_if = "Origin::is_stream")]
            origin: Origin,
            /// The sub-agent that called; absent for the agent itself.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            subagent: Option<Arc<str>>,
            /// The message that calls, where the agent says: it may hold a text and other calls.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            message_id: Option<Arc<str>>,
            /// Whether an agent works apart or joins the conversation: `delegate`, `loop_in`; only where the tool is one.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            invocation_mode: Option<InvocationMode>,
        }
        /// `tool.arguments`
        ToolArguments {
            /// The call.
            tool_call_id: Arc<str>,
            /// The arguments as JSON; absent when the text is not JSON.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            input: Option<Value>,
            /// The text as received; present only when it is not JSON.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            text: Option<String>,
        }
        /// `tool.completed`
        ToolCompleted {
            /// The call.
            tool_call_id: Arc<str>,
            /// What the tool returned: JSON where it is JSON, otherwise text.
            output: Value,
            /// Where it was seen.
            #[serde(default, skip_serializing_if = "Origin::is_stream")]
            origin: Origin,
        }
        /// `tool.failed`
        ToolFailed {
            /// The call.
            tool_call_id: Arc<str>,
            /// Why.
            error: ErrorInfo,
            /// Where it was seen.
            #[serde(default, skip_serializing_if = "Origin::is_stream")]
            origin: Origin,
        }
        /// `tool.retry_scheduled`
        ToolRetry {
            /// The call.
            tool_call_id: Arc<str>,
            /// The attempt that failed, from 1.
            attempt: u32,
            /// How many attempts there are in all.
            max_attempts: u32,
            /// How long until the next one, in milliseconds.
            delay_ms: u64,
            /// Why the attempt failed.
            error: ErrorInfo,
        }
    }
}

/// How an agent takes part when another one calls it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationMode {
    /// In a conversation of its own that knows nothing but the input; the caller alone gets the answer.
    #[default]
    Delegate,
    /// In the caller's conversation, which it sees and in which all see it.
    LoopIn,
}
