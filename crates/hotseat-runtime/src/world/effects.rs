//! Converts effects of conversations into runs, deliveries and driver requests.

use hotseat_trace::{InvocationMode, ParentCall, WorkOrigin};

use super::{
    ApprovalQuestion, ClientToolCall, ConversationWorld, DeliveryOutcome, DeliveryTime, DriverRequest,
    WorldDelivery,
};
use crate::conversation::{
    ConversationEffect, ConversationInput, ConversationOrigin, HookKind, ReplyTo, child_conversation,
};
use crate::ids::{AgentId, ConversationId, RunId, TurnId};
use crate::work::{WorkContext, WorkInput};

use super::execution::{ResultRecipient, WorkDefinition};

impl ConversationWorld {
    pub(super) fn start_effect(
        &mut self,
        stamp: DeliveryTime,
        id: &ConversationId,
        effect: ConversationEffect,
        outcome: &mut DeliveryOutcome,
    ) {
        match effect {
            ConversationEffect::RunHook { at, agent, workflow, input } => {
                let origin = match at.kind {
                    HookKind::ContextAssembly => WorkOrigin::ContextAssembly,
                    HookKind::MemoryExtraction => WorkOrigin::MemoryExtraction,
                };
                let run = at.run.clone();
                let context = self.work_context(id, &at.turn, run, agent, origin, at.attempt);
                let made = self.workflow(workflow);
                self.start_run(id, context, made, input, ResultRecipient::Hook(at), outcome);
            }
            ConversationEffect::CallModel { at, profile, request } => {
                outcome.requests.push(DriverRequest::CallModel {
                    conversation: id.clone(),
                    at,
                    profile,
                    request,
                });
            }
            ConversationEffect::RunTask { at, agent, task, input } => {
                let run = at.call.run(at.attempt);
                let origin = WorkOrigin::Tool;
                let context = self.work_context(id, &at.turn, run, agent, origin, at.attempt);
                let made = self.definitions.find_task(&task).cloned().map(WorkDefinition::Task);
                self.start_run(id, context, made, input, ResultRecipient::Operation(at), outcome);
            }
            ConversationEffect::RunWorkflow { at, agent, workflow, input } => {
                let run = at.call.run(at.attempt);
                let origin = WorkOrigin::Tool;
                let context = self.work_context(id, &at.turn, run, agent, origin, at.attempt);
                let made = self.workflow(workflow);
                self.start_run(id, context, made, input, ResultRecipient::Operation(at), outcome);
            }
            ConversationEffect::RunAgent { at, agent, mode, caller, input, depth } => {
                let reply_to = ReplyTo::Call { conversation: id.clone(), at: at.clone() };
                let call =
                    ConversationInput::AgentCall { caller, agent: agent.clone(), input, reply_to, depth };
                outcome.push(match mode {
                    InvocationMode::LoopIn => WorldDelivery::Input { conversation: id.clone(), input: call },
                    InvocationMode::Delegate => {
                        let parent = ParentCall {
                            conversation_id: id.0.clone(),
                            turn_id: at.turn.0.clone(),
                            call_id: at.call.0.clone(),
                        };
                        let conversation = child_conversation(&at.call, at.attempt);
                        let opening = ConversationOrigin { conversation, agent, parent: Some(parent) };
                        WorldDelivery::Open { opening, call: Some(call) }
                    }
                });
            }
            ConversationEffect::AskClient { at, tool, input } => {
                let call = ClientToolCall { at, tool, input };
                outcome.requests.push(DriverRequest::AskClient { conversation: id.clone(), call });
            }
            ConversationEffect::AskApproval { at, tool, input, message } => {
                let question = ApprovalQuestion { at, tool, input, message };
                outcome.requests.push(DriverRequest::AskApproval { conversation: id.clone(), question });
            }
            // A late answer is ignored by the conversation, which records the reason.
            ConversationEffect::Withdraw { .. } => {}
            ConversationEffect::CancelRun { run } => self.cancel_run(stamp, run, outcome),
            ConversationEffect::CancelModel { at } => {
                outcome.requests.push(DriverRequest::CancelModel { at })
            }
            ConversationEffect::Reply { to: ReplyTo::Call { conversation, at }, outcome: result } => {
                let input = ConversationInput::OperationDone { at, result };
                outcome.push(WorldDelivery::Input { conversation, input });
            }
            ConversationEffect::Reply { to: ReplyTo::Run { run, token }, outcome: result } => {
                outcome.push(WorldDelivery::Run { run, input: WorkInput::Answered { token, result } });
            }
        }
    }

    /// Returns the context of a run for a turn.
    fn work_context(
        &self,
        id: &ConversationId,
        turn: &TurnId,
        run: RunId,
        agent: AgentId,
        origin: WorkOrigin,
        attempt: u32,
    ) -> WorkContext {
        let held = self.conversations.get(id).and_then(|machine| machine.state().turn(turn));
        let depth = held.map_or(0, |turn| turn.depth);
        WorkContext { run, turn: Some(turn.clone()), agent, origin, attempt, depth }
    }

    /// Cancels a run with everything it started, or the turns of the conversation with that id.
    pub(super) fn cancel_run(&mut self, stamp: DeliveryTime, run: RunId, outcome: &mut DeliveryOutcome) {
        let conversation = ConversationId(run.0.clone());
        if let Some(machine) = self.conversations.get(&conversation) {
            let turns: Vec<_> = machine.state().active_turns().map(|turn| turn.id.clone()).collect();
            for turn in turns {
                let reason = "the calling turn has ended".to_string();
                self.handle_input(
                    stamp,
                    &conversation,
                    &ConversationInput::CancelTurn { turn, reason },
                    outcome,
                );
            }
        }
        self.runs.remove(&run);
        let started: Vec<RunId> = self
            .runs
            .iter()
            .filter(
                |(_, running)| matches!(&running.answer, ResultRecipient::Token(parent, _) if *parent == run),
            )
            .map(|(id, _)| id.clone())
            .collect();
        let asked: Vec<RunId> = self
            .conversations
            .iter()
            .filter(|(_, machine)| {
                machine.state().active_turns().any(
                    |turn| matches!(&turn.reply_to, Some(ReplyTo::Run { run: asking, .. }) if *asking == run),
                )
            })
            .map(|(id, _)| RunId(id.0.clone()))
            .collect();
        self.cancelled.insert(run);
        for run in started.into_iter().chain(asked) {
            self.cancel_run(stamp, run, outcome);
        }
    }
}

impl DeliveryOutcome {
    pub(super) fn push(&mut self, delivery: WorldDelivery) {
        self.push_after(0, delivery);
    }

    pub(super) fn push_after(&mut self, after: u64, delivery: WorldDelivery) {
        self.requests.push(DriverRequest::Deliver { after, delivery });
    }
}
