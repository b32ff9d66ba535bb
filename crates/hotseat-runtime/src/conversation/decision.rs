//! Decisions of a conversation, as data.

use std::sync::Arc;

use hotseat_model::{ModelError, ModelReply, ModelRequest};
use hotseat_trace::{InvocationMode, MoveCall, Participant, ToolOutcome, TurnIssues, named_variants};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::state::OperationTarget;
use super::{
    ApprovalVerdict, ContextEntry, HookAddress, ModelAddress, ReplyTo, SpeakerRole, TimerKey, TurnCaller,
};
use crate::definition::ToolDefinition;
use crate::failure::{WorkFailure, WorkResult};
use crate::ids::{AgentId, CallId, MessageId, TaskId, TurnId, WorkflowId};

named_variants! {
    /// One decision. Applying it changes the state, writes events and requests effects.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
    #[expect(missing_docs, reason = "members are named as in the events they cause")]
    pub enum Decision {
        /// Starts the conversation.
        OpenConversation = "OPEN_CONVERSATION",
        /// Ends the conversation; no further turns are accepted.
        CloseConversation = "CLOSE_CONVERSATION",
        /// Starts a turn.
        StartTurn {
            turn: TurnId,
            agent: AgentId,
            caller: TurnCaller,
            input: Value,
            reply_to: Option<ReplyTo>,
            answers: Option<MessageId>,
            depth: u32,
        } = "START_TURN",
        /// Adds a message.
        AppendMessage { turn: TurnId, role: SpeakerRole, content: String, has_tool_use: bool } = "APPEND_MESSAGE",
        /// Starts the workflow that builds a request.
        DispatchContextAssembly { at: HookAddress, workflow: WorkflowId, input: Arc<Value> } = "DISPATCH_CONTEXT_ASSEMBLY",
        /// The workflow returned a request.
        AcceptContext { at: HookAddress, request: Arc<ModelRequest>, tokens: u64 } = "ACCEPT_CONTEXT",
        /// The workflow failed.
        FailContext { at: HookAddress, failure: WorkFailure, exhausted: bool } = "FAIL_CONTEXT",
        /// Calls a model.
        CallLlm { at: ModelAddress, request: Arc<ModelRequest>, last: bool } = "CALL_LLM",
        /// The model replied.
        AcceptReply { at: ModelAddress, reply: Box<ModelReply>, next: NextStep } = "ACCEPT_REPLY",
        /// The model call failed.
        FailLlm { at: ModelAddress, error: ModelError, will_retry: bool } = "FAIL_LLM",
        /// Records a completed model step.
        RecordMove { turn: TurnId, draft: MoveDraft } = "RECORD_MOVE",
        /// Adds the result of an asynchronous call to its move.
        RecordResult { turn: TurnId, outcome: ToolOutcome } = "RECORD_RESULT",
        /// Rejects a call of the model.
        RefuseCall {
            turn: TurnId,
            call: CallId,
            tool: String,
            input: Value,
            reasoning: Option<String>,
            failure: WorkFailure,
        } = "REFUSE_CALL",
        /// Starts a task for a call.
        DispatchTask {
            turn: TurnId,
            call: CallId,
            tool: String,
            task: TaskId,
            input: Value,
            given: Value,
            is_async: bool,
        } = "DISPATCH_TASK",
        /// Starts a workflow for a call.
        DispatchWorkflow {
            turn: TurnId,
            call: CallId,
            tool: String,
            workflow: WorkflowId,
            input: Value,
            given: Value,
            is_async: bool,
        } = "DISPATCH_WORKFLOW",
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
        } = "DISPATCH_AGENT",
        /// Passes a call to the client.
        DispatchClient { turn: TurnId, call: CallId, tool: String, input: Value, given: Value, is_async: bool } = "DISPATCH_CLIENT",
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
        } = "ASK_APPROVAL",
        /// A human answered the approval.
        AnswerApproval { turn: TurnId, call: CallId, verdict: ApprovalVerdict } = "ANSWER_APPROVAL",
        /// The turn no longer waits for the approval of a call.
        LeaveApproval { turn: TurnId, call: CallId } = "LEAVE_APPROVAL",
        /// Accepts tools, context and state of a client.
        AcceptOffer { tools: Vec<ToolDefinition>, context: Vec<ContextEntry>, state: Option<Value> } = "ACCEPT_OFFER",
        /// Switches to changed definitions.
        AdoptDefinitions { first_difference: u64 } = "ADOPT_DEFINITIONS",
        /// Replaces the shared state.
        ChangeState { turn: TurnId, state: Value } = "CHANGE_STATE",
        /// Adds a participant.
        AddParticipant { participant: Participant, by: TurnId } = "ADD_PARTICIPANT",
        /// Removes a participant.
        RemoveParticipant { participant: Participant } = "REMOVE_PARTICIPANT",
        /// Shares context with a called agent.
        ShareContext { turn: TurnId, call: CallId, mode: InvocationMode, input: Value } = "SHARE_CONTEXT",
        /// The turn waits for a call.
        MarkWaiting { turn: TurnId, call: CallId, reasoning: Option<String> } = "MARK_WAITING",
        /// A call runs asynchronously; the turn does not wait.
        TrackAsyncOperation { turn: TurnId, call: CallId } = "TRACK_ASYNC_OPERATION",
        /// A call failed temporarily.
        RetryOperation { turn: TurnId, call: CallId, failure: WorkFailure, delay_ms: u64 } = "RETRY_OPERATION",
        /// Runs the call again.
        RedispatchOperation { turn: TurnId, call: CallId } = "REDISPATCH_OPERATION",
        /// Stops the work of a call that exceeded its time limit.
        StopOperation { turn: TurnId, call: CallId } = "STOP_OPERATION",
        /// A call has ended.
        CompleteOperation { turn: TurnId, call: CallId, result: WorkResult } = "COMPLETE_OPERATION",
        /// The turn continues after a call it waited for.
        ResumeFromTool { turn: TurnId, call: CallId } = "RESUME_FROM_TOOL",
        /// An asynchronous call has ended.
        AsyncOperationCompleted { turn: TurnId, call: CallId } = "ASYNC_OPERATION_COMPLETED",
        /// Cancels a call.
        CancelOperation { turn: TurnId, call: CallId, reason: String } = "CANCEL_OPERATION",
        /// Starts the workflow that extracts memories.
        DispatchMemoryExtraction { at: HookAddress, workflow: WorkflowId, input: Arc<Value> } = "DISPATCH_MEMORY_EXTRACTION",
        /// Memories were extracted.
        AcceptExtraction { at: HookAddress } = "ACCEPT_EXTRACTION",
        /// Memory extraction failed.
        FailExtraction { at: HookAddress, failure: WorkFailure, exhausted: bool } = "FAIL_EXTRACTION",
        /// Completes the turn.
        CompleteTurn { turn: TurnId, issues: TurnIssues } = "COMPLETE_TURN",
        /// Fails the turn.
        FailTurn { turn: TurnId, code: String, message: String } = "FAIL_TURN",
        /// Replies to the caller of the turn.
        ReplyToCaller { turn: TurnId, to: ReplyTo, outcome: WorkResult } = "REPLY_TO_CALLER",
        /// Sets a timer.
        ScheduleTimer { key: TimerKey, at: u64 } = "SCHEDULE_TIMER",
        /// Removes a timer.
        CancelTimer { key: TimerKey } = "CANCEL_TIMER",
        /// Ignores an input that does not apply.
        IgnoreInput { turn: Option<TurnId>, reason: String } = "IGNORE_INPUT",
    }
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
}
