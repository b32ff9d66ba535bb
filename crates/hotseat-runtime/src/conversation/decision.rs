//! What a conversation decides, as data.

use hotseat_model::{ModelError, Reply, Request};
use hotseat_trace::{InvocationMode, Issues, MoveCall, Participant, ToolOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::state::Work;
use super::{ApprovalVerdict, Caller, ContextEntry, HookAddress, ModelAddress, ReplyTo, Role, TimerKey};
use crate::definition::Tool;
use crate::failure::Failure;
use crate::ids::{AgentId, CallId, MessageId, TaskId, TurnId, WorkflowId};

/// One decision. Carrying it out changes the state, writes events and asks for effects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "members are named as in the events they cause")]
pub enum Decision {
    /// The conversation begins.
    OpenConversation,
    /// It takes no more turns.
    CloseConversation,
    /// A turn begins.
    StartTurn {
        turn: TurnId,
        agent: AgentId,
        caller: Caller,
        input: Value,
        reply_to: Option<ReplyTo>,
        answers: Option<MessageId>,
        depth: u32,
    },
    /// Something was said.
    AppendMessage { turn: TurnId, role: Role, content: String, has_tool_use: bool },
    /// The workflow that builds a request is started.
    DispatchContextAssembly { at: HookAddress, workflow: WorkflowId, input: Value },
    /// It brought a request.
    AcceptContext { at: HookAddress, request: Box<Request>, tokens: u64 },
    /// It failed.
    FailContext { at: HookAddress, failure: Failure, exhausted: bool },
    /// A model is asked.
    CallLlm { at: ModelAddress, request: Box<Request>, last: bool },
    /// It replied.
    AcceptReply { at: ModelAddress, reply: Box<Reply>, next: NextStep },
    /// It failed.
    FailLlm { at: ModelAddress, error: ModelError, will_retry: bool },
    /// A model step is done.
    RecordMove { turn: TurnId, draft: MoveDraft },
    /// The result of an asynchronous call is added to its move.
    RecordResult { turn: TurnId, outcome: ToolOutcome },
    /// A call of the model is not made.
    RefuseCall {
        turn: TurnId,
        call: CallId,
        tool: String,
        input: Value,
        reasoning: Option<String>,
        failure: Failure,
    },
    /// A task is started for a call.
    DispatchTask {
        turn: TurnId,
        call: CallId,
        tool: String,
        task: TaskId,
        input: Value,
        given: Value,
        is_async: bool,
    },
    /// A workflow is started for a call.
    DispatchWorkflow {
        turn: TurnId,
        call: CallId,
        tool: String,
        workflow: WorkflowId,
        input: Value,
        given: Value,
        is_async: bool,
    },
    /// An agent is asked for a call.
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
    /// A call is passed on to the client.
    DispatchClient { turn: TurnId, call: CallId, tool: String, input: Value, given: Value, is_async: bool },
    /// A person is asked whether a call may be made; the turn waits.
    AskApproval {
        turn: TurnId,
        call: CallId,
        tool: String,
        work: Work,
        input: Value,
        is_async: bool,
        reasoning: Option<String>,
        message: String,
    },
    /// The person has answered.
    AnswerApproval { turn: TurnId, call: CallId, verdict: ApprovalVerdict },
    /// The turn no longer waits for a call that a person was asked about.
    LeaveApproval { turn: TurnId, call: CallId },
    /// A client's tools and what it knows are taken over.
    AcceptOffer { tools: Vec<Tool>, context: Vec<ContextEntry>, state: Option<Value> },
    /// Another definition of the agent holds from here on.
    AdoptDefinitions { first_difference: u64 },
    /// The shared state becomes another one.
    ChangeState { turn: TurnId, state: Value },
    /// Somebody joins.
    AddParticipant { participant: Participant, by: TurnId },
    /// Somebody leaves.
    RemoveParticipant { participant: Participant },
    /// A called agent is told what it may know.
    ShareContext { turn: TurnId, call: CallId, mode: InvocationMode, input: Value },
    /// The turn waits for a call.
    MarkWaiting { turn: TurnId, call: CallId, reasoning: Option<String> },
    /// The turn does not wait for a call.
    TrackAsyncOperation { turn: TurnId, call: CallId },
    /// A call failed in a way that may pass.
    RetryOperation { turn: TurnId, call: CallId, failure: Failure, delay_ms: u64 },
    /// It is tried again.
    RedispatchOperation { turn: TurnId, call: CallId },
    /// What runs for a call is stopped, for it took too long.
    StopOperation { turn: TurnId, call: CallId },
    /// A call has ended.
    CompleteOperation { turn: TurnId, call: CallId, result: Result<Value, Failure> },
    /// The turn goes on after a call it waited for.
    ResumeFromTool { turn: TurnId, call: CallId },
    /// A call it did not wait for has ended.
    AsyncOperationCompleted { turn: TurnId, call: CallId },
    /// A call is given up.
    CancelOperation { turn: TurnId, call: CallId, reason: String },
    /// The workflow that keeps what the turn has brought is started.
    DispatchMemoryExtraction { at: HookAddress, workflow: WorkflowId, input: Value },
    /// It is kept.
    AcceptExtraction { at: HookAddress },
    /// It is not kept.
    FailExtraction { at: HookAddress, failure: Failure, exhausted: bool },
    /// The turn is done.
    CompleteTurn { turn: TurnId, issues: Issues },
    /// The turn cannot be held to its end.
    FailTurn { turn: TurnId, code: String, message: String },
    /// Whoever started the turn is answered.
    ReplyToCaller { turn: TurnId, to: ReplyTo, outcome: Result<Value, Failure> },
    /// The conversation wants to be woken.
    ScheduleTimer { key: TimerKey, at: u64 },
    /// It no longer wants to.
    CancelTimer { key: TimerKey },
    /// An input is of no use.
    IgnoreInput { turn: Option<TurnId>, reason: String },
}

/// How a turn goes on after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextStep {
    /// It waits for calls.
    Wait,
    /// The model is asked again.
    Again,
    /// The agent has said what it had to say.
    Settle,
}

/// A move before it has a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MoveDraft {
    /// Which reply it belongs to.
    pub iteration: u32,
    /// What the model wrote.
    pub reasoning: Option<String>,
    /// The call it made.
    pub call: Option<MoveCall>,
    /// What the call came to.
    pub outcome: Option<ToolOutcome>,
}

impl Decision {
    /// The turn it is about.
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

    /// The name of the decision, for instance `START_TURN`.
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
