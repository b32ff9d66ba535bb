//! Runs of tasks and workflows: start, requests and results.

use std::sync::Arc;

use hotseat_trace::{
    ExecutionInfo, ExecutionKind, MemorySearched, MemoryTouched, MemoryWritten, ParentCall, Payload,
    WorkOrigin,
};
use serde_json::Value;

use super::execution::{ResultRecipient, WorkDefinition, WorkExecution};
use super::{ConversationWorld, DeliveryOutcome, DeliveryTime, DriverRequest, WorldDelivery};
use crate::conversation::{ConversationInput, ConversationOrigin, ReplyTo, TurnCaller};
use crate::failure::{ErrorCode, WorkFailure, WorkResult};
use crate::ids::{AgentId, ConversationId, RunId, TokenId, WorkflowId};
use crate::memory::{MemoryResult, MemoryUse};
use crate::work::{WorkContext, WorkEffect, WorkInput, WorkRun, WorkflowRun};

impl ConversationWorld {
    /// Returns a workflow that a run can execute.
    pub(super) fn workflow(&self, id: WorkflowId) -> Option<WorkDefinition> {
        let workflow = self.definitions.find_workflow(&id)?.clone();
        Some(WorkDefinition::Workflow(id, workflow))
    }

    pub(super) fn start_run(
        &mut self,
        conversation: &ConversationId,
        context: WorkContext,
        definition: Option<WorkDefinition>,
        input: Arc<Value>,
        answer: ResultRecipient,
        outcome: &mut DeliveryOutcome,
    ) {
        let run = context.run.clone();
        let (machine, execution) = match definition {
            // A separate task belongs to the conversation that called it.
            Some(WorkDefinition::Task(task)) => {
                let Some(caller) = self.conversations.get(conversation) else { return };
                (WorkRun::task(context.clone(), task, input), caller.execution())
            }
            Some(WorkDefinition::Workflow(id, workflow)) => {
                let parent = match &answer {
                    ResultRecipient::Token(parent, _) => parent.0.clone(),
                    ResultRecipient::Hook(_) | ResultRecipient::Operation(_) => conversation.0.clone(),
                };
                let kind = ExecutionKind::Workflow;
                let execution = ExecutionInfo { id: run.0.clone(), kind, parent: Some(parent) };
                (WorkRun::workflow(context.clone(), id, workflow, input), execution)
            }
            None => {
                let message = format!("run {run} refers to an unknown task or workflow");
                deliver_result(
                    conversation,
                    answer,
                    Err(WorkFailure::business(ErrorCode::NotFound, message)),
                    outcome,
                );
                return;
            }
        };
        let conversation = conversation.clone();
        self.runs.insert(run.clone(), WorkExecution { machine, context, execution, conversation, answer });
        outcome.push(WorldDelivery::Run { run, input: WorkInput::Start });
    }

    /// Passes an input to a run.
    pub(super) fn handle_work(
        &mut self,
        stamp: DeliveryTime,
        run: &RunId,
        input: &WorkInput,
        outcome: &mut DeliveryOutcome,
    ) {
        let Some(running) = self.runs.get_mut(run) else { return };
        let step = running.machine.handle(input);
        let execution = running.execution.clone();
        self.record_events(stamp, &execution, step.events, outcome);
        for effect in step.effects {
            self.handle_work_effect(stamp, run, effect, outcome);
        }
    }

    /// Handles an effect of a run.
    fn handle_work_effect(
        &mut self,
        stamp: DeliveryTime,
        run: &RunId,
        effect: WorkEffect,
        outcome: &mut DeliveryOutcome,
    ) {
        let Some(running) = self.runs.get(run) else { return };
        let own = |input| WorldDelivery::Run { run: run.clone(), input };
        match effect {
            WorkEffect::Wait { token, millis } => {
                outcome.push_after(millis, own(WorkInput::Waited { token }))
            }
            WorkEffect::JoinTimer { join, millis } => {
                outcome.push_after(millis, own(WorkInput::JoinLate { join }))
            }
            WorkEffect::Memory { token, action, input } => {
                match MemoryUse::from_input(action, &input, run, token) {
                    Ok(usage) => {
                        let (run, agent) = (run.clone(), running.context.agent.clone());
                        outcome.requests.push(DriverRequest::Remember { run, token, agent, usage });
                    }
                    Err(failure) => outcome.push(own(WorkInput::Answered { token, result: Err(failure) })),
                }
            }
            WorkEffect::Subworkflow { token, workflow, input } => {
                let (context, conversation) = (running.context.clone(), running.conversation.clone());
                let origin = match context.origin {
                    WorkOrigin::Tool | WorkOrigin::Workflow => WorkOrigin::Workflow,
                    hook @ (WorkOrigin::ContextAssembly | WorkOrigin::MemoryExtraction) => hook,
                };
                let context = WorkContext { run: WorkflowRun::subrun(run, token), origin, ..context };
                let made = self.workflow(workflow);
                let answer = ResultRecipient::Token(run.clone(), token);
                self.start_run(&conversation, context, made, input, answer, outcome);
            }
            WorkEffect::Agent { token, conversation, agent, input } => {
                let refused = if self.definitions.agent(&agent).is_none() {
                    Some(WorkFailure::business(ErrorCode::NotFound, format!("unknown agent {agent}")))
                } else if running.context.depth >= self.limits.depth {
                    let message =
                        format!("agent calls may be nested at most {} levels deep", self.limits.depth);
                    Some(WorkFailure::execution(message))
                } else {
                    None
                };
                match refused {
                    Some(failure) => outcome.push(own(WorkInput::Answered { token, result: Err(failure) })),
                    None => outcome.push(open_conversation(running, run, token, conversation, agent, input)),
                }
            }
            WorkEffect::CancelAgent { conversation } => {
                self.cancel_run(stamp, RunId(conversation.0), outcome)
            }
            WorkEffect::CancelSubworkflow { token } => {
                self.cancel_run(stamp, WorkflowRun::subrun(run, token), outcome);
            }
            WorkEffect::Done(result) => {
                if let Some(running) = self.runs.remove(run) {
                    deliver_result(&running.conversation, running.answer, result, outcome);
                }
            }
        }
    }

    /// Passes an answer of the memory to a run.
    pub(super) fn handle_memory(
        &mut self,
        stamp: DeliveryTime,
        run: &RunId,
        token: TokenId,
        result: &Result<MemoryResult, WorkFailure>,
        outcome: &mut DeliveryOutcome,
    ) {
        let Some(running) = self.runs.get(run) else { return };
        let result = match result {
            Ok(recalled) => {
                let execution = running.execution.clone();
                let event = memory_event(&running.context, recalled);
                self.record_events(stamp, &execution, vec![event], outcome);
                Ok(Arc::new(recalled.output()))
            }
            Err(failure) => Err(failure.clone()),
        };
        self.handle_work(stamp, run, &WorkInput::Answered { token, result }, outcome);
    }
}

/// Returns the delivery that opens a conversation for a run.
fn open_conversation(
    running: &WorkExecution,
    run: &RunId,
    token: TokenId,
    conversation: ConversationId,
    agent: AgentId,
    input: Value,
) -> WorldDelivery {
    let parent = ParentCall {
        conversation_id: running.conversation.0.clone(),
        turn_id: running.context.turn.as_ref().map(|turn| turn.0.clone()).unwrap_or_default(),
        // A run has no call id; the id of the opened conversation is used instead.
        call_id: conversation.0.clone(),
    };
    let call = ConversationInput::AgentCall {
        caller: TurnCaller::Workflow { run_id: run.clone() },
        agent: agent.clone(),
        input,
        reply_to: ReplyTo::Run { run: run.clone(), token },
        depth: running.context.depth + 1,
    };
    WorldDelivery::Open {
        opening: ConversationOrigin { conversation, agent, parent: Some(parent) },
        call: Some(call),
    }
}

/// Delivers the result of a run to its recipient.
fn deliver_result(
    conversation: &ConversationId,
    to: ResultRecipient,
    result: WorkResult,
    outcome: &mut DeliveryOutcome,
) {
    outcome.push(match to {
        ResultRecipient::Hook(at) => WorldDelivery::Input {
            conversation: conversation.clone(),
            input: ConversationInput::HookDone { at, result },
        },
        ResultRecipient::Operation(at) => WorldDelivery::Input {
            conversation: conversation.clone(),
            input: ConversationInput::OperationDone { at, result },
        },
        ResultRecipient::Token(run, token) => {
            WorldDelivery::Run { run, input: WorkInput::Answered { token, result } }
        }
    });
}

/// Returns the trace event of a memory access.
fn memory_event(context: &WorkContext, recalled: &MemoryResult) -> Payload {
    let turn_id = context.turn.clone().map(|turn| turn.0);
    let agent_id = context.agent.0.clone();
    match recalled {
        MemoryResult::Written { id, kind, content } => {
            let (memory_id, kind, content) = (id.0.clone(), kind.as_str().into(), content.clone());
            Payload::MemoryWritten(MemoryWritten { turn_id, agent_id, memory_id, kind, content })
        }
        MemoryResult::Read { id, .. } => {
            Payload::MemoryRead(MemoryTouched { turn_id, agent_id, memory_id: id.0.clone() })
        }
        MemoryResult::Deleted { id, .. } => {
            Payload::MemoryDeleted(MemoryTouched { turn_id, agent_id, memory_id: id.0.clone() })
        }
        MemoryResult::Found { query, records } => {
            let found = records.iter().map(|record| record.id.0.clone()).collect();
            Payload::MemorySearched(MemorySearched { turn_id, agent_id, query: query.clone(), found })
        }
    }
}
