//! Runs of tasks and workflows: they start, ask for things, and answer whoever waits.

use std::sync::Arc;

use hotseat_trace::{
    Execution, ExecutionKind, MemorySearched, MemoryTouched, MemoryWritten, ParentCall, Payload, WorkOrigin,
};
use serde_json::Value;

use super::{Ask, Delivery, Outcome, Stamp, World};
use crate::conversation::{Caller, HookAddress, Input, Opening, OperationAddress, ReplyTo};
use crate::definition::{Task, Workflow};
use crate::failure::{ErrorCode, Failure};
use crate::ids::{AgentId, ConversationId, RunId};
use crate::memory::{MemoryUse, Recalled};
use crate::work::{TokenId, Work, WorkContext, WorkEffect, WorkInput, WorkflowRun};

/// A run of a task or workflow.
#[derive(Debug, Clone)]
pub(super) struct Running {
    machine: Work,
    context: WorkContext,
    execution: Execution,
    conversation: ConversationId,
    pub(super) answer: AnswerTo,
}

/// What a run is a run of.
pub(super) enum Made {
    Task(Arc<Task>),
    Workflow(Arc<Workflow>),
}

/// Who waits for a run.
#[derive(Debug, Clone)]
pub(super) enum AnswerTo {
    Hook(HookAddress),
    Operation(OperationAddress),
    Token(RunId, TokenId),
}

impl World {
    pub(super) fn start(
        &mut self,
        conversation: &ConversationId,
        context: WorkContext,
        made: Option<Made>,
        input: Value,
        answer: AnswerTo,
        outcome: &mut Outcome,
    ) {
        let run = context.run.clone();
        let (machine, execution) = match made {
            // A task alone is part of the conversation that called it.
            Some(Made::Task(task)) => {
                let Some(caller) = self.conversations.get(conversation) else { return };
                (Work::task(context.clone(), task, input), caller.execution())
            }
            Some(Made::Workflow(workflow)) => {
                let parent = match &answer {
                    AnswerTo::Token(parent, _) => parent.0.clone(),
                    AnswerTo::Hook(_) | AnswerTo::Operation(_) => conversation.0.clone(),
                };
                let kind = ExecutionKind::Workflow;
                let execution = Execution { id: run.0.clone(), kind, parent: Some(parent) };
                (Work::workflow(context.clone(), workflow, input), execution)
            }
            None => {
                let message = format!("nothing is known that run {run} could run");
                answer_to(
                    conversation,
                    answer,
                    Err(Failure::business(ErrorCode::NotFound, message)),
                    outcome,
                );
                return;
            }
        };
        let conversation = conversation.clone();
        self.runs.insert(run.clone(), Running { machine, context, execution, conversation, answer });
        outcome.now(Delivery::Run { run, input: WorkInput::Start });
    }

    /// A run takes an input.
    pub(super) fn work(&mut self, stamp: Stamp, run: &RunId, input: &WorkInput, outcome: &mut Outcome) {
        let Some(running) = self.runs.get_mut(run) else { return };
        let step = running.machine.handle(&self.definitions, input);
        let execution = running.execution.clone();
        self.keep(stamp, &execution, step.events, outcome);
        for effect in step.effects {
            self.serve(stamp, run, effect, outcome);
        }
    }

    /// A run asks for something.
    fn serve(&mut self, stamp: Stamp, run: &RunId, effect: WorkEffect, outcome: &mut Outcome) {
        let Some(running) = self.runs.get(run) else { return };
        let own = |input| Delivery::Run { run: run.clone(), input };
        match effect {
            WorkEffect::Wait { token, millis } => outcome.after(millis, own(WorkInput::Waited { token })),
            WorkEffect::JoinTimer { join, millis } => {
                outcome.after(millis, own(WorkInput::JoinLate { join }))
            }
            WorkEffect::Memory { token, action, input } => {
                match MemoryUse::read(action, &input, run, token) {
                    Ok(usage) => {
                        let (run, agent) = (run.clone(), running.context.agent.clone());
                        outcome.asks.push(Ask::Remember { run, token, agent, usage });
                    }
                    Err(failure) => outcome.now(own(WorkInput::Answered { token, result: Err(failure) })),
                }
            }
            WorkEffect::Subworkflow { token, workflow, input } => {
                let (context, conversation) = (running.context.clone(), running.conversation.clone());
                let origin = match context.origin {
                    WorkOrigin::Tool | WorkOrigin::Workflow => WorkOrigin::Workflow,
                    hook @ (WorkOrigin::ContextAssembly | WorkOrigin::MemoryExtraction) => hook,
                };
                let context = WorkContext { run: WorkflowRun::subrun(run, token), origin, ..context };
                let made = self.definitions.find_workflow(&workflow).cloned().map(Made::Workflow);
                let answer = AnswerTo::Token(run.clone(), token);
                self.start(&conversation, context, made, input, answer, outcome);
            }
            WorkEffect::Agent { token, conversation, agent, input } => {
                let refused = if self.definitions.agent(&agent).is_none() {
                    Some(Failure::business(ErrorCode::NotFound, format!("there is no agent {agent}")))
                } else if running.context.depth >= self.limits.depth {
                    let message =
                        format!("agents may call each other {} deep, and no deeper", self.limits.depth);
                    Some(Failure::business(ErrorCode::ExecutionFailed, message))
                } else {
                    None
                };
                match refused {
                    Some(failure) => outcome.now(own(WorkInput::Answered { token, result: Err(failure) })),
                    None => outcome.now(opening(running, run, token, conversation, agent, input)),
                }
            }
            WorkEffect::CancelAgent { conversation } => self.cancel(stamp, RunId(conversation.0), outcome),
            WorkEffect::CancelSubworkflow { token } => {
                self.cancel(stamp, WorkflowRun::subrun(run, token), outcome);
            }
            WorkEffect::Done(result) => {
                if let Some(running) = self.runs.remove(run) {
                    answer_to(&running.conversation, running.answer, result, outcome);
                }
            }
        }
    }

    /// The memory has answered a run.
    pub(super) fn remembered(
        &mut self,
        stamp: Stamp,
        run: &RunId,
        token: TokenId,
        result: &Result<Recalled, Failure>,
        outcome: &mut Outcome,
    ) {
        let Some(running) = self.runs.get(run) else { return };
        let result = match result {
            Ok(recalled) => {
                let execution = running.execution.clone();
                let event = memory_event(&running.context, recalled);
                self.keep(stamp, &execution, vec![event], outcome);
                Ok(recalled.output())
            }
            Err(failure) => Err(failure.clone()),
        };
        self.work(stamp, run, &WorkInput::Answered { token, result }, outcome);
    }
}

/// A run opens a conversation with an agent.
fn opening(
    running: &Running,
    run: &RunId,
    token: TokenId,
    conversation: ConversationId,
    agent: AgentId,
    input: Value,
) -> Delivery {
    let parent = ParentCall {
        conversation_id: running.conversation.0.clone(),
        turn_id: running.context.turn.as_ref().map(|turn| turn.0.clone()).unwrap_or_default(),
        // A run has no call of its own to name; what it opens is called like the place that opens it.
        call_id: conversation.0.clone(),
    };
    let call = Input::AgentCall {
        caller: Caller::Workflow { run_id: run.clone() },
        agent: agent.clone(),
        input,
        reply_to: ReplyTo::Run { run: run.clone(), token },
        depth: running.context.depth + 1,
    };
    Delivery::Open { opening: Opening { conversation, agent, parent: Some(parent) }, call: Some(call) }
}

/// Whoever waits for a run is answered.
fn answer_to(
    conversation: &ConversationId,
    to: AnswerTo,
    result: Result<Value, Failure>,
    outcome: &mut Outcome,
) {
    outcome.now(match to {
        AnswerTo::Hook(at) => {
            Delivery::Input { conversation: conversation.clone(), input: Input::HookDone { at, result } }
        }
        AnswerTo::Operation(at) => {
            Delivery::Input { conversation: conversation.clone(), input: Input::OperationDone { at, result } }
        }
        AnswerTo::Token(run, token) => Delivery::Run { run, input: WorkInput::Answered { token, result } },
    });
}

/// What the trace gets of a use of the memory.
fn memory_event(context: &WorkContext, recalled: &Recalled) -> Payload {
    let turn_id = context.turn.clone().map(|turn| turn.0);
    let agent_id = context.agent.0.clone();
    match recalled {
        Recalled::Written { id, kind, content } => {
            let (memory_id, kind, content) = (id.0.clone(), kind.as_str().into(), content.clone());
            Payload::MemoryWritten(MemoryWritten { turn_id, agent_id, memory_id, kind, content })
        }
        Recalled::Read { id, .. } => {
            Payload::MemoryRead(MemoryTouched { turn_id, agent_id, memory_id: id.0.clone() })
        }
        Recalled::Deleted { id, .. } => {
            Payload::MemoryDeleted(MemoryTouched { turn_id, agent_id, memory_id: id.0.clone() })
        }
        Recalled::Found { query, records } => {
            let found = records.iter().map(|record| record.id.0.clone()).collect();
            Payload::MemorySearched(MemorySearched { turn_id, agent_id, query: query.clone(), found })
        }
    }
}
