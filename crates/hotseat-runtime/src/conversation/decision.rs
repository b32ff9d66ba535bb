//! Decisions of a conversation, as data.

use std::sync::Arc;

use hotseat_model::{ModelError, ModelReply, ModelRequest};
use hotseat_trace::{InvocationMode, MoveCall, Participant, ToolOutcome, TurnIssues};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::state::OperationTarget;
use super::{
    ApprovalVerdict, ContextEntry, HookAddress, ModelAddress, ReplyTo, SpeakerRole, TimerKey, TurnCaller,
};
use crate::definition::ToolDefinition;
use crate::failure::{WorkFailure, WorkResult};
use crate::ids::{AgentId, CallId, MessageId, TaskId, TurnId, WorkflowId};

/// One decision. Applying it changes the state, writes events and requests effects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "members are named as in the events they cause")]
pub enum Decision {
    /// Starts the conversation.
    OpenConversation,
    /// Ends the conversation; no further turns are accepted.
    CloseConversation,
    /// Starts a turn.
    StartTurn {
        turn: TurnId,
        agent: AgentId,
        caller: TurnCaller,
        input: Value,
        reply_to: Option<ReplyTo>,
        answers: Option<MessageId>,
        depth: u32,
    },
    /// Adds a message.
    AppendMessage { turn: TurnId, role: SpeakerRole, content: String, has_tool_use: bool },
    /// Starts the workflow that builds a request.
    DispatchContextAssembly { at: HookAddress, workflow: WorkflowId, input: Arc<Value> },
    /// The workflow returned a request.
    AcceptContext { at: HookAddress, request: Arc<ModelRequest>, tokens: u64 },
    /// The workflow failed.
    FailContext { at: HookAddress, failure: WorkFailure, exhausted: bool },
    /// Calls a model.
    CallLlm { at: ModelAddress, request: Arc<ModelRequest>, last: bool },
    /// The model replied.
    AcceptReply { at: ModelAddress, reply: Box<ModelReply>, next: NextStep },
    /// The model call failed.
    FailLlm { at: ModelAddress, error: ModelError, will_retry: bool },
    /// Records a completed model step.
    RecordMove { turn: TurnId, draft: MoveDraft },
    /// Adds the result of an asynchronous call to its move.
    RecordResult { turn: TurnId, outcome: ToolOutcome },
    /// Rejects a call of the model.
    RefuseCall {
        turn: TurnId,
        call: CallId,
        tool: String,
        input: Value,
        reasoning: Option<String>,
        failure: WorkFailure,
    },
    /// Starts a task for a call.
    DispatchTask {
        turn: TurnId,
        call: CallId,
        tool: String,
        task: TaskId,
        input: Value,
        given: Value,
        is_async: bool,
    },
    /// Starts a workflow for a call.
    DispatchWorkflow {
        turn: TurnId,
        call: CallId,
        tool: String,
        workflow: WorkflowId,
        input: Value,
        given: Value,
        is_async: bool,
    },
    /// Calls another agent.
    DispatchAgent {
        turn: TurnId,
        call: CallId,
        tool: String,
        agent: AgentId,
        mode: InvocationMode,
        input: Value,
        given: Value,
        is_async: bool,
    },
    /// Passes a call to the client.
    DispatchClient { turn: TurnId, call: CallId, tool: String, input: Value, given: Value, is_async: bool },
    /// Asks a human to approve a call; the turn waits.
    AskApproval {
        turn: TurnId,
        call: CallId,
        tool: String,
        work: OperationTarget,
        input: Value,
        is_async: bool,
        reasoning: Option<String>,
        message: String,
    },
    /// A human answered the approval.
    AnswerApproval { turn: TurnId, call: CallId, verdict: ApprovalVerdict },
    /// The turn no longer waits for the approval of a call.
    LeaveApproval { turn: TurnId, call: CallId },
    /// Accepts tools, context and state of a client.
    AcceptOffer { tools: Vec<ToolDefinition>, context: Vec<ContextEntry>, state: Option<Value> },
    /// Switches to changed definitions.
    AdoptDefinitions { first_difference: u64 },
    /// Replaces the shared state.
    ChangeState { turn: TurnId, state: Value },
    /// Adds a participant.
    AddParticipant { participant: Participant, by: TurnId },
    /// Removes a participant.
    RemoveParticipant { participant: Participant },
    /// Shares context with a called agent.
    ShareContext { turn: TurnId, call: CallId, mode: InvocationMode, input: Value },
    /// The turn waits for a call.
    MarkWaiting { turn: TurnId, call: CallId, reasoning: Option<String> },
    /// A call runs asynchronously; the turn does not wait.
    TrackAsyncOperation { turn: TurnId, call: CallId },
    /// A call failed temporarily.
    RetryOperation { turn: TurnId, call: CallId, failure: WorkFailure, delay_ms: u64 },
    /// Runs the call again.
    RedispatchOperation { turn: TurnId, call: CallId },
    /// Stops the work of a call that exceeded its time limit.
    StopOperation { turn: TurnId, call: CallId },
    /// A call has ended.
    CompleteOperation { turn: TurnId, call: CallId, result: WorkResult },
    /// The turn continues after a call it waited for.
    ResumeFromTool { turn: TurnId, call: CallId },
    /// An asynchronous call has ended.
    AsyncOperationCompleted { turn: TurnId, call: CallId },
    /// Cancels a call.
    CancelOperation { turn: TurnId, call: CallId, reason: String },
    /// Starts the workflow that extracts memories.
    DispatchMemoryExtraction { at: HookAddress, workflow: WorkflowId, input: Arc<Value> },
    /// Memories were extracted.
    AcceptExtraction { at: HookAddress },
    /// Memory extraction failed.
    FailExtraction { at: HookAddress, failure: WorkFailure, exhausted: bool },
    /// Completes the turn.
    CompleteTurn { turn: TurnId, issues: TurnIssues },
    /// Fails the turn.
    FailTurn { turn: TurnId, code: String, message: String },
    /// Replies to the caller of the turn.
    ReplyToCaller { turn: TurnId, to: ReplyTo, outcome: WorkResult },
    /// Sets a timer.
    ScheduleTimer { key: TimerKey, at: u64 },
    /// Removes a timer.
    CancelTimer { key: TimerKey },
    /// Ignores an input that does not apply.
    IgnoreInput { turn: Option<TurnId>, reason: String },
}

/// Next step of a turn after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextStep {
    /// Wait for calls.
    Wait,
    /// Call the model again.
    Again,
    /// The answer is complete.
    Settle,
}

/// Move without id and sequence number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MoveDraft {
    /// Number of the reply that contains the move.
    pub iteration: u32,
    /// Text of the model.
    pub reasoning: Option<String>,
    /// The tool call.
    pub call: Option<MoveCall>,
    /// Result of the call.
    pub outcome: Option<ToolOutcome>,
}

impl Decision {
    /// Returns the turn that the decision concerns.
    pub fn turn(&self) -> Option<&TurnId> {
        match self {
            Decision::StartTurn { turn, .. }
            | Decision::AppendMessage { turn, .. }
            | Decision::RecordMove { turn, .. }
            | Decision::RecordResult { turn, .. }
            | Decision::RefuseCall { turn, .. }
            | Decision::DispatchTask { turn, .. }
            | Decision::DispatchWorkflow { turn, .. }
            | Decision::DispatchAgent { turn, .. }
            | Decision::DispatchClient { turn, .. }
            | Decision::AskApproval { turn, .. }
            | Decision::AnswerApproval { turn, .. }
            | Decision::LeaveApproval { turn, .. }
            | Decision::ChangeState { turn, .. }
            | Decision::ShareContext { turn, .. }
            | Decision::MarkWaiting { turn, .. }
            | Decision::TrackAsyncOperation { turn, .. }
            | Decision::RetryOperation { turn, .. }
            | Decision::RedispatchOperation { turn, .. }
            | Decision::StopOperation { turn, .. }
            | Decision::CompleteOperation { turn, .. }
            | Decision::ResumeFromTool { turn, .. }
            | Decision::AsyncOperationCompleted { turn, .. }
            | Decision::CancelOperation { turn, .. }
            | Decision::CompleteTurn { turn, .. }
            | Decision::FailTurn { turn, .. }
            | Decision::ReplyToCaller { turn, .. } => Some(turn),
            Decision::AddParticipant { by, .. } => Some(by),
            Decision::DispatchContextAssembly { at, .. }
            | Decision::AcceptContext { at, .. }
            | Decision::FailContext { at, .. }
            | Decision::DispatchMemoryExtraction { at, .. }
            | Decision::AcceptExtraction { at }
            | Decision::FailExtraction { at, .. } => Some(&at.turn),
            Decision::CallLlm { at, .. }
            | Decision::AcceptReply { at, .. }
            | Decision::FailLlm { at, .. } => Some(&at.turn),
            Decision::ScheduleTimer { key, .. } | Decision::CancelTimer { key } => Some(&key.turn),
            Decision::IgnoreInput { turn, .. } => turn.as_ref(),
            Decision::OpenConversation
            | Decision::CloseConversation
            | Decision::RemoveParticipant { .. }
            | Decision::AcceptOffer { .. }
            | Decision::AdoptDefinitions { .. } => None,
        }
    }

    /// Returns the name of the decision, for example `START_TURN`.
    pub fn name(&self) -> &'static str {
        match self {
            Decision::OpenConversation => "OPEN_CONVERSATION",
            Decision::CloseConversation => "CLOSE_CONVERSATION",
            Decision::StartTurn { .. } => "START_TURN",
            Decision::AppendMessage { .. } => "APPEND_MESSAGE",
            Decision::DispatchContextAssembly { .. } => "DISPATCH_CONTEXT_ASSEMBLY",
            Decision::AcceptContext { .. } => "ACCEPT_CONTEXT",
            Decision::FailContext { .. } => "FAIL_CONTEXT",
            Decision::CallLlm { .. } => "CALL_LLM",
            Decision::AcceptReply { .. } => "ACCEPT_REPLY",
            Decision::FailLlm { .. } => "FAIL_LLM",
            Decision::RecordMove { .. } => "RECORD_MOVE",
            Decision::RecordResult { .. } => "RECORD_RESULT",
            Decision::RefuseCall { .. } => "REFUSE_CALL",
            Decision::DispatchTask { .. } => "DISPATCH_TASK",
            Decision::DispatchWorkflow { .. } => "DISPATCH_WORKFLOW",
            Decision::DispatchAgent { .. } => "DISPATCH_AGENT",
            Decision::DispatchClient { .. } => "DISPATCH_CLIENT",
            Decision::AskApproval { .. } => "ASK_APPROVAL",
            Decision::AnswerApproval { .. } => "ANSWER_APPROVAL",
            Decision::LeaveApproval { .. } => "LEAVE_APPROVAL",
            Decision::AcceptOffer { .. } => "ACCEPT_OFFER",
            Decision::AdoptDefinitions { .. } => "ADOPT_DEFINITIONS",
            Decision::ChangeState { .. } => "CHANGE_STATE",
            Decision::AddParticipant { .. } => "ADD_PARTICIPANT",
            Decision::RemoveParticipant { .. } => "REMOVE_PARTICIPANT",
            Decision::ShareContext { .. } => "SHARE_CONTEXT",
            Decision::MarkWaiting { .. } => "MARK_WAITING",
            Decision::TrackAsyncOperation { .. } => "TRACK_ASYNC_OPERATION",
            Decision::RetryOperation { .. } => "RETRY_OPERATION",
            Decision::RedispatchOperation { .. } => "REDISPATCH_OPERATION",
            Decision::StopOperation { .. } => "STOP_OPERATION",
            Decision::CompleteOperation { .. } => "COMPLETE_OPERATION",
            Decision::ResumeFromTool { .. } => "RESUME_FROM_TOOL",
            Decision::AsyncOperationCompleted { .. } => "ASYNC_OPERATION_COMPLETED",
            Decision::CancelOperation { .. } => "CANCEL_OPERATION",
            Decision::DispatchMemoryExtraction { .. } => "DISPATCH_MEMORY_EXTRACTION",
            Decision::AcceptExtraction { .. } => "ACCEPT_EXTRACTION",
            Decision::FailExtraction { .. } => "FAIL_EXTRACTION",
            Decision::CompleteTurn { .. } => "COMPLETE_TURN",
            Decision::FailTurn { .. } => "FAIL_TURN",
            Decision::ReplyToCaller { .. } => "REPLY_TO_CALLER",
            Decision::ScheduleTimer { .. } => "SCHEDULE_TIMER",
            Decision::CancelTimer { .. } => "CANCEL_TIMER",
            Decision::IgnoreInput { .. } => "IGNORE_INPUT",
        }
    }
}
