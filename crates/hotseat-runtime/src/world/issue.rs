//! What a conversation asks for becomes runs, deliveries and questions to the driver.

use hotseat_trace::{InvocationMode, ParentCall, WorkOrigin};

use super::{ApprovalQuestion, Ask, ClientCall, Delivery, Outcome, Stamp, World};
use crate::conversation::{Effect, HookKind, Input, Opening, ReplyTo, child_conversation};
use crate::ids::{AgentId, ConversationId, RunId, TurnId};
use crate::work::{WorkContext, WorkInput};

use super::run::{AnswerTo, Made};

impl World {
    pub(super) fn issue(&mut self, stamp: Stamp, id: &ConversationId, effect: Effect, outcome: &mut Outcome) {
        match effect {
            Effect::RunHook { at, agent, workflow, input } => {
                let origin = match at.kind {
                    HookKind::ContextAssembly => WorkOrigin::ContextAssembly,
                    HookKind::MemoryExtraction => WorkOrigin::MemoryExtraction,
                };
                let run = at.run.clone();
                let context = self.context(id, &at.turn, run, agent, origin, at.attempt);
                let made = self.definitions.find_workflow(&workflow).cloned().map(Made::Workflow);
                self.start(id, context, made, input, AnswerTo::Hook(at), outcome);
            }
            Effect::CallModel { at, profile, request } => {
                outcome.asks.push(Ask::CallModel { conversation: id.clone(), at, profile, request });
            }
            Effect::RunTask { at, agent, task, input } => {
                let run = at.call.run(at.attempt);
                let origin = WorkOrigin::Tool;
                let context = self.context(id, &at.turn, run, agent, origin, at.attempt);
                let made = self.definitions.find_task(&task).cloned().map(Made::Task);
                self.start(id, context, made, input, AnswerTo::Operation(at), outcome);
            }
            Effect::RunWorkflow { at, agent, workflow, input } => {
                let run = at.call.run(at.attempt);
                let origin = WorkOrigin::Tool;
                let context = self.context(id, &at.turn, run, agent, origin, at.attempt);
                let made = self.definitions.find_workflow(&workflow).cloned().map(Made::Workflow);
                self.start(id, context, made, input, AnswerTo::Operation(at), outcome);
            }
            Effect::RunAgent { at, agent, mode, caller, input, depth } => {
                let reply_to = ReplyTo::Call { conversation: id.clone(), at: at.clone() };
                let call = Input::AgentCall { caller, agent: agent.clone(), input, reply_to, depth };
                outcome.now(match mode {
                    InvocationMode::LoopIn => Delivery::Input { conversation: id.clone(), input: call },
                    InvocationMode::Delegate => {
                        let parent = ParentCall {
                            conversation_id: id.0.clone(),
                            turn_id: at.turn.0.clone(),
                            call_id: at.call.0.clone(),
                        };
                        let conversation = child_conversation(&at.call, at.attempt);
                        let opening = Opening { conversation, agent, parent: Some(parent) };
                        Delivery::Open { opening, call: Some(call) }
                    }
                });
            }
            Effect::AskClient { at, tool, input } => {
                let call = ClientCall { at, tool, input };
                outcome.asks.push(Ask::AskClient { conversation: id.clone(), call });
            }
            Effect::AskApproval { at, tool, input, message } => {
                let question = ApprovalQuestion { at, tool, input, message };
                outcome.asks.push(Ask::AskApproval { conversation: id.clone(), question });
            }
            // An answer that comes all the same is of no use to the conversation, and it says so.
            Effect::TakeBack { .. } => {}
            Effect::CancelRun { run } => self.cancel(stamp, run, outcome),
            Effect::CancelModel { at } => outcome.asks.push(Ask::CancelModel { at }),
            Effect::Reply { to: ReplyTo::Call { conversation, at }, outcome: result } => {
                let input = Input::OperationDone { at, result };
                outcome.now(Delivery::Input { conversation, input });
            }
            Effect::Reply { to: ReplyTo::Run { run, token }, outcome: result } => {
                outcome.now(Delivery::Run { run, input: WorkInput::Answered { token, result } });
            }
        }
    }

    /// What a run that a turn needs depends on.
    fn context(
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

    /// Stops a run with everything it has started, or the turns of the conversation of that name.
    pub(super) fn cancel(&mut self, stamp: Stamp, run: RunId, outcome: &mut Outcome) {
        let conversation = ConversationId(run.0.clone());
        if let Some(machine) = self.conversations.get(&conversation) {
            let turns: Vec<_> = machine.state().active_turns().map(|turn| turn.id.clone()).collect();
            for turn in turns {
                let reason = "the call has ended".to_string();
                self.converse(stamp, &conversation, &Input::CancelTurn { turn, reason }, outcome);
            }
        }
        self.runs.remove(&run);
        let started: Vec<RunId> = self
            .runs
            .iter()
            .filter(|(_, running)| matches!(&running.answer, AnswerTo::Token(parent, _) if *parent == run))
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
            self.cancel(stamp, run, outcome);
        }
    }
}

impl Outcome {
    pub(super) fn now(&mut self, delivery: Delivery) {
        self.after(0, delivery);
    }

    pub(super) fn after(&mut self, after: u64, delivery: Delivery) {
        self.asks.push(Ask::Deliver { after, delivery });
    }
}
