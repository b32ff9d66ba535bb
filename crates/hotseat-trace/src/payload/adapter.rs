//! Payloads of the events that only adapters emit: state, runs, interrupts and steps of a protocol.

use std::sync::Arc;

use serde_json::Value;

use super::ErrorInfo;
use super::members::members;

members! {
    turn {
        /// `state.snapshot`
        StateSnapshot {
            /// The new state.
            state: Value,
        }
        /// `state.delta`
        StateDelta {
            /// A JSON Patch (RFC 6902).
            patch: Value,
            /// True if the patch applied to the state known from earlier events.
            applied?: bool,
            /// The resulting state, if the previous state is unknown from the events. If absent and `applied`
            /// is false, the patch failed and changed nothing.
            #[serde(deserialize_with = "hotseat_trace::present")]
            state?: Option<Value>,
        }
        /// `agent.run.started`
        AgentRunStarted {
            /// Id of the run.
            run_id: Arc<str>,
            /// The protocol version that the agent announced.
            protocol_version?: Option<String>,
        }
        /// `agent.run.finished`
        AgentRunFinished {
            /// Id of the run.
            run_id: Arc<str>,
            /// `success`, `interrupt`, `cancelled`, or another value sent by the agent.
            outcome: Arc<str>,
            /// Result of the run.
            #[serde(deserialize_with = "hotseat_trace::present")]
            result?: Option<Value>,
            /// Usage of the run, as reported by the agent.
            usage?: Option<Value>,
            /// Finish reason, as sent by the agent: `stop`, `length`, `tool_calls`, …
            finish_reason?: Option<Arc<str>>,
        }
        /// `agent.awaiting_input`
        AwaitingInput {
            /// True if the agent reports that it waits for user input; `false` is reported too.
            awaiting: bool,
            /// Expected input, in the agent's words.
            hint?: Option<String>,
        }
        /// `agent.run.failed`
        AgentRunFailed {
            /// Error of the run.
            error: ErrorInfo,
            /// Usage of the run until its error, as reported by the agent.
            usage?: Option<Value>,
        }
        /// `conversation.failed`, with the last turn
        ConversationFailed {
            /// Error after the last turn. Its code is the kind of the failure.
            error: ErrorInfo,
        }
        /// `interrupt.raised`
        InterruptRaised {
            /// Id of the interrupt.
            interrupt_id: Arc<str>,
            /// Short name of the reason.
            reason?: Option<String>,
            /// Question shown to the human.
            message?: Option<String>,
            /// Id of the tool call that is paused.
            tool_call_id?: Option<Arc<str>>,
            /// MCP server of the test that asks the user; absent if the agent asks.
            server?: Option<Arc<str>>,
            /// The interrupt as sent by the agent or the server.
            value: Value,
        }
        /// `interrupt.answered`
        InterruptAnswered {
            /// Id of the interrupt.
            interrupt_id: Arc<str>,
            /// `resolved` or `cancelled`; `declined` at MCP servers.
            status: Arc<str>,
            /// The answer; absent when cancelled.
            #[serde(deserialize_with = "hotseat_trace::present")]
            payload?: Option<Value>,
        }
        /// `step.started`, `step.finished`
        Step {
            /// Name of the step.
            name: String,
        }
        /// `subagent.started`, `subagent.finished`, `subagent.failed`
        #[derive(Default)]
        Subagent {
            /// Id of the subtask.
            subagent: Arc<str>,
            /// Name of the agent, if known.
            name?: Option<String>,
            /// Result of the subtask.
            #[serde(deserialize_with = "hotseat_trace::present")]
            result?: Option<Value>,
            /// Error of the subtask.
            error?: Option<ErrorInfo>,
        }
        /// `custom`
        Custom {
            /// Name of the event.
            name: String,
            /// Its value.
            value: Value,
        }
        /// `raw`
        Raw {
            /// The event as received.
            event: Value,
        }
        /// `role.answered`
        RoleAnswered {
            /// Kind of role: `simulator` or `judge`.
            role: Arc<str>,
            /// Name of the role, as used in the case.
            agent: Arc<str>,
            /// The question.
            question: Value,
            /// The answer verbatim; empty if there was none.
            answer: String,
            /// Parsed answer. Absent if it could not be parsed.
            #[serde(deserialize_with = "hotseat_trace::present")]
            finding?: Option<Value>,
            /// Reason why the answer is not usable.
            error?: Option<String>,
            /// Name of the model that answered, as reported by the provider, if known.
            model?: Option<Arc<str>>,
            /// Cost of the answer: `input_tokens` and `output_tokens` of a model, or the usage that an agent
            /// reports.
            usage?: Option<Value>,
            /// For a judge: number of the vote, from 1.
            vote?: Option<u64>,
            /// For a judge: number of the attempt at this vote, from 1. Above 1 after unusable answers.
            attempt?: Option<u64>,
            /// Console output of a script that answered.
            logs?: Vec<String>,
            /// Duration in microseconds.
            duration_us: u64,
        }
        /// `protocol.note`
        Note {
            /// Note for the user.
            message: String,
            /// Number of the received protocol event in its run, from 1.
            event?: Option<u64>,
        }
    }
}
