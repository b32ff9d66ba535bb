//! One conversation as a state machine without I/O.
//!
//! [`ConversationMachine::handle`] takes an input and the time, and returns decisions, trace events and requested
//! effects. It has three pure steps: `react` turns an input into decisions, `advance` adds decisions that
//! follow from the state, and `apply` applies one decision. Only `apply` writes events, so the trace cannot
//! contradict the state.

mod advance;
mod apply;
mod context;
mod decision;
mod effect;
mod failing;
mod input;
mod react;
mod recorded;
mod reply;
mod state;
mod step;

use std::sync::Arc;

use hotseat_trace::{ExecutionInfo, ExecutionKind, Payload, RuntimeError};

pub use apply::child_conversation;
pub use context::{built_in_request, canonical_json};
pub use decision::{Decision, MoveDraft, NextStep};
pub use effect::{ConversationEffect, EffectKey};
pub use input::{
    ApprovalError, ApprovalVerdict, ContextEntry, ConversationInput, ConversationOrigin, HookAddress,
    HookKind, ModelAddress, OperationAddress, ReplyTo, TurnCaller,
};
pub use recorded::ReceivedInputs;
pub use state::{
    ClientOffer, ConversationState, ConversationStatus, Millis, OperationStatus, OperationTarget,
    SpeakerRole, TimerKey, TimerKind, ToolOperation, TurnEnd, TurnMessage, TurnPhase, TurnState,
};
pub use step::{ConversationStep, RuntimeFault};

use crate::definition::{Definitions, RuntimeLimits};
use crate::failure::{ErrorCode, WorkFailure};

/// What decisions are made from.
#[derive(Clone, Copy)]
struct DecisionBasis<'a> {
    state: &'a ConversationState,
    definitions: &'a Definitions,
    limits: &'a RuntimeLimits,
    now: Millis,
}

/// State machine of a conversation.
#[derive(Debug, Clone)]
pub struct ConversationMachine {
    definitions: Arc<Definitions>,
    limits: RuntimeLimits,
    state: ConversationState,
}

impl ConversationMachine {
    /// Creates a conversation that has not started; its first input must be [`ConversationInput::Open`].
    pub fn new(definitions: Arc<Definitions>, limits: RuntimeLimits, opening: ConversationOrigin) -> Self {
        ConversationMachine { definitions, limits, state: ConversationState::new(opening) }
    }

    /// Returns the current state.
    pub fn state(&self) -> &ConversationState {
        &self.state
    }

    /// Returns the execution that the events belong to.
    pub fn execution(&self) -> ExecutionInfo {
        ExecutionInfo {
            id: self.state.conversation.0.clone(),
            kind: ExecutionKind::Conversation,
            parent: self.state.parent.as_ref().map(|parent| parent.conversation_id.clone()),
        }
    }

    /// Returns the time at which [`ConversationInput::Wake`] is due, unless another input arrives first.
    pub fn deadline(&self) -> Option<Millis> {
        self.state.timers.values().min().copied()
    }

    /// Returns the requested effects without an answer, which must be requested again after a restart.
    pub fn outstanding(&self) -> impl Iterator<Item = &ConversationEffect> {
        self.state.outstanding.values()
    }

    /// Handles one input.
    pub fn handle(&mut self, now: Millis, input: &ConversationInput) -> ConversationStep {
        let mut step = ConversationStep::default();
        match input {
            ConversationInput::Wake => {
                while let Some(timer) = self.state.next_due_timer(now) {
                    let decisions = react::timer(self.basis(now), &timer);
                    if !self.apply_all(now, decisions, &mut step) {
                        break;
                    }
                }
            }
            other => {
                let decisions = react::react(self.basis(now), other);
                self.apply_all(now, decisions, &mut step);
            }
        }
        step
    }

    fn basis(&self, now: Millis) -> DecisionBasis<'_> {
        DecisionBasis { state: &self.state, definitions: &self.definitions, limits: &self.limits, now }
    }

    /// Applies decisions and everything that follows from them. Returns false after a fault.
    fn apply_all(&mut self, now: Millis, mut decisions: Vec<Decision>, step: &mut ConversationStep) -> bool {
        loop {
            for decision in decisions {
                let applied = if step.decisions.len() >= self.limits.decisions {
                    Err(RuntimeFault {
                        message: format!("one input caused {} decisions", self.limits.decisions),
                    })
                } else {
                    apply::apply(&mut self.state, &self.definitions, &self.limits, now, &decision, step)
                };
                step.decisions.push(decision);
                if let Err(fault) = applied {
                    self.handle_fault(now, &fault, step);
                    return false;
                }
            }
            let next = self.state.turns.iter().map(|turn| advance::advance(self.basis(now), turn));
            match next.into_iter().find(|decisions| !decisions.is_empty()) {
                Some(next) => decisions = next,
                None => return true,
            }
        }
    }

    /// Handles a fault: drops the remaining decisions and fails the turn.
    fn handle_fault(&mut self, now: Millis, fault: &RuntimeFault, step: &mut ConversationStep) {
        let turn = step.decisions.last().and_then(Decision::turn).cloned();
        step.events.push(Payload::RuntimeError(RuntimeError {
            turn_id: turn.as_ref().map(|turn| turn.0.clone()),
            place: "conversation".to_string(),
            message: fault.message.clone(),
        }));
        let Some(turn) = turn.and_then(|id| self.state.turn(&id)).filter(|turn| turn.is_active()) else {
            return;
        };
        let failure = WorkFailure::business(ErrorCode::InternalError, &*fault.message);
        for decision in failing::fail(&self.state, turn, "INTERNAL_ERROR", &failure) {
            // A second fault cannot be reported.
            let _ = apply::apply(&mut self.state, &self.definitions, &self.limits, now, &decision, step);
            step.decisions.push(decision);
        }
    }
}
