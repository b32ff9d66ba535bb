//! Payloads of events that the MCP servers of a test observe.

use std::sync::Arc;

use super::members::members;

members! {
    loose {
        /// `mcp.connected`
        McpConnected {
            /// Name of the server.
            server: Arc<str>,
            /// Revision of the protocol that the client speaks, for instance `2026-07-28`.
            revision: String,
            /// Name and version of the client, if it reports them.
            client?: Option<String>,
        }
    }
}

members! {
    turn {
        /// `mcp.arguments_invalid`
        McpArgumentsInvalid {
            /// Id of the call.
            tool_call_id: Arc<str>,
            /// Violations of the tool's input schema.
            errors: Vec<String>,
        }
        /// `mcp.arguments_unchecked`
        McpArgumentsUnchecked {
            /// Id of the call.
            tool_call_id: Arc<str>,
            /// Why the listed tool cannot be used. Absent if the agent did not list it.
            problem?: Option<Arc<str>>,
        }
        /// `mcp.fault_injected`
        McpFaultInjected {
            /// Id of the call.
            tool_call_id: Arc<str>,
            /// Name of the server.
            server: Arc<str>,
            /// Name of the tool.
            tool: Arc<str>,
            /// Kind of the fault, for instance `lost_answer`.
            fault: Arc<str>,
            /// Index of the fault among those of the server, from 0.
            rule: usize,
            /// True if the tool took effect although the client may not know it.
            effect: bool,
        }
        /// `mcp.answer_lost`
        McpAnswerLost {
            /// Id of the call.
            tool_call_id: Arc<str>,
            /// True if the effect of the tool happened, or may have happened: a server that broke off, or a call that the client
            /// cancelled, has no known outcome.
            success: bool,
        }
    }
}
