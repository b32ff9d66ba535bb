//! One conversation as a state machine without I/O.
//!
//! [`Conversation::handle`] takes what has happened and the time, and says what was decided, what the trace gets,
//! and what the world is asked to do. Inside it are three pure steps: `react` turns an input into decisions,
//! `advance` adds what follows from the state alone, `apply` carries out one decision. Events are written nowhere
//! but in `apply`, so the trace cannot disagree with the state.

mod advance;
mod apply;
mod context;
mod decision;
mod effect;
mod input;
mod react;
mod recorded;
mod reply;
mod state;

use std::collections::VecDeque;
use std::sync::Arc;

use hotseat_trace::{Execution, ExecutionKind, Payload, RuntimeError};

pub use apply::child_conversation;
pub use context::{built_in, canonical};
pub use decision::{Decision, MoveDraft, NextStep};
pub use effect::{Effect, EffectKey};
pub use input::{
    ApprovalVerdict, Caller, ContextEntry, HookAddress, HookKind, Input, ModelAddress, Opening,
    OperationAddress, ReplyTo,
};
pub use recorded::ReceivedInputs;
pub use state::{
    ConversationStatus, Message, Offer, Operation, OperationStatus, Phase, Role, State, TimerKey, TimerKind,
    Turn, TurnEnd, Work,
};

use crate::definition::{Definitions, Limits};
use crate::failure::{ErrorCode, Failure};

/// Time as milliseconds; where it starts is the driver's business.
pub type Millis = u64;

/// A conversation.
#[derive(Debug, Clone)]
pub struct Conversation {
    definitions: Arc<Definitions>,
    limits: Limits,
    state: State,
}

/// What came of one input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// What was decided, in order.
    pub decisions: Vec<Decision>,
    /// What the trace gets, in order. The driver numbers it.
    pub events: Vec<Payload>,
    /// What the world is asked to do once the step is kept.
    pub effects: Vec<Effect>,
}

/// A decision that cannot be carried out: a fault of the runtime, not of anything it talks to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub message: String,
}

impl Conversation {
    /// A conversation that has not begun; its first input is [`Input::Open`].
    pub fn new(definitions: Arc<Definitions>, limits: Limits, opening: Opening) -> Self {
        Conversation { definitions, limits, state: State::new(opening) }
    }

    /// What is known of it.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What its events are part of.
    pub fn execution(&self) -> Execution {
        Execution {
            id: self.state.conversation.0.clone(),
            kind: ExecutionKind::Conversation,
            parent: self.state.parent.as_ref().map(|parent| parent.conversation_id.clone()),
        }
    }

    /// When it wants to be woken by [`Input::Wake`], if nothing happens before.
    pub fn deadline(&self) -> Option<Millis> {
        self.state.timers.values().min().copied()
    }

    /// What it has asked of the world and has no answer to: what a restart must ask again.
    pub fn outstanding(&self) -> impl Iterator<Item = &Effect> {
        self.state.outstanding.values()
    }

    /// Takes what has happened.
    pub fn handle(&mut self, now: Millis, input: &Input) -> Step {
        let mut step = Step::default();
        match input {
            Input::Wake => {
                while let Some(timer) = self.state.due(now) {
                    let decisions = react::timer(&self.state, &self.definitions, &self.limits, now, &timer);
                    if !self.carry_out(now, decisions, &mut step) {
                        break;
                    }
                }
            }
            other => {
                let decisions = react::react(&self.state, &self.definitions, &self.limits, now, other);
                self.carry_out(now, decisions, &mut step);
            }
        }
        step
    }

    /// Carries out decisions and everything that follows from them. Says whether all went well.
    fn carry_out(&mut self, now: Millis, decisions: Vec<Decision>, step: &mut Step) -> bool {
        let mut queue = VecDeque::from(decisions);
        loop {
            while let Some(decision) = queue.pop_front() {
                let applied = if step.decisions.len() >= self.limits.decisions {
                    Err(Fault { message: format!("one input caused {} decisions", self.limits.decisions) })
                } else {
                    apply::apply(&mut self.state, &self.definitions, &self.limits, now, &decision, step)
                };
                step.decisions.push(decision);
                if let Err(fault) = applied {
                    self.break_down(now, &fault, step);
                    return false;
                }
            }
            let turns = self.state.turns.iter();
            let next = turns.map(|turn| advance::advance(&self.state, &self.definitions, turn));
            match next.into_iter().find(|decisions| !decisions.is_empty()) {
                Some(decisions) => queue.extend(decisions),
                None => return true,
            }
        }
    }

    /// What is left to do after a fault: nothing that was decided after it is carried out, and its turn fails.
    fn break_down(&mut self, now: Millis, fault: &Fault, step: &mut Step) {
        let turn = step.decisions.last().and_then(Decision::turn).cloned();
        step.events.push(Payload::RuntimeError(RuntimeError {
            turn_id: turn.as_ref().map(|turn| turn.0.clone()),
            place: "conversation".to_string(),
            message: fault.message.clone(),
        }));
        let Some(turn) = turn.and_then(|id| self.state.turn(&id)).filter(|turn| turn.is_active()) else {
            return;
        };
        let failure = Failure::business(ErrorCode::InternalError, &*fault.message);
        for decision in react::fail(&self.state, turn, "INTERNAL_ERROR", &failure) {
            // A second fault has nobody to be told to.
            let _ = apply::apply(&mut self.state, &self.definitions, &self.limits, now, &decision, step);
            step.decisions.push(decision);
        }
    }
}
