//! What the simulated world does when it is asked.

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{
    Execution, ExecutionKind, InvocationMode, MemorySearched, MemoryTouched, MemoryWritten, ParentCall,
    Payload, WorkOrigin,
};
use serde_json::{Value, json};

use super::queue::Delivery;
use super::{AnswerTo, ApprovalQuestion, ClientCall, Made, Running, Sim};
use crate::conversation::{Effect, EffectKey, HookKind, Input, Opening, ReplyTo};
use crate::definition::Memory;
use crate::failure::{ErrorCode, Failure};
use crate::ids::{ConversationId, MemoryId, RunId, TurnId};
use crate::work::{Work, WorkContext, WorkEffect, WorkInput, WorkflowRun};

impl Sim {
    /// A conversation asks for something.
    pub(super) fn issue(&mut self, id: &ConversationId, effect: Effect) {
        self.issued.insert((id.clone(), effect.key()));
        match effect {
            Effect::RunHook { at, agent, workflow, input } => {
                let origin = match at.kind {
                    HookKind::ContextAssembly => WorkOrigin::ContextAssembly,
                    HookKind::MemoryExtraction => WorkOrigin::MemoryExtraction,
                };
                let context = self.work_context(at.run.clone(), &at.turn, agent, origin, at.attempt);
                let made = self.definitions.find_workflow(&workflow).cloned().map(Made::Workflow);
                self.start(id, context, made, input, AnswerTo::Hook(at));
            }
            Effect::CallModel { at, request, .. } => {
                let answer = self.model.answer(&request);
                self.requests.push(*request);
                let input = Input::ModelDone { at, result: answer.value };
                self.later(answer.delay, id, input);
            }
            Effect::RunTask { at, agent, task, input } => {
                let run = at.call.run(at.attempt);
                let context = self.work_context(run, &at.turn, agent, WorkOrigin::Tool, at.attempt);
                let made = self.definitions.find_task(&task).cloned().map(Made::Task);
                self.start(id, context, made, input, AnswerTo::Operation(at));
            }
            Effect::RunWorkflow { at, agent, workflow, input } => {
                let run = at.call.run(at.attempt);
                let context = self.work_context(run, &at.turn, agent, WorkOrigin::Tool, at.attempt);
                let made = self.definitions.find_workflow(&workflow).cloned().map(Made::Workflow);
                self.start(id, context, made, input, AnswerTo::Operation(at));
            }
            Effect::RunAgent { at, agent, mode, caller, input, depth } => {
                let reply_to = ReplyTo { conversation: id.clone(), at: at.clone() };
                let call = Input::AgentCall { caller, agent: agent.clone(), input, reply_to, depth };
                let delivery = match mode {
                    InvocationMode::LoopIn => {
                        Delivery::Inputs { conversation: id.clone(), inputs: vec![call] }
                    }
                    InvocationMode::Delegate => {
                        let parent = ParentCall {
                            conversation_id: id.0.clone(),
                            turn_id: at.turn.0.clone(),
                            call_id: at.call.0.clone(),
                        };
                        let conversation = crate::conversation::child_conversation(&at.call, at.attempt);
                        let opening = Opening { conversation, agent, parent: Some(parent) };
                        Delivery::Open { opening, input: call }
                    }
                };
                self.queue.push(self.now, delivery);
            }
            Effect::AskClient { at, tool, input } => {
                let call = ClientCall { at, tool, input };
                let answer = self.outside.client.as_mut().and_then(|client| client(&call));
                if let Some(answer) = answer {
                    let input = Input::OperationDone { at: call.at, result: answer.value };
                    self.later(answer.delay, id, input);
                }
            }
            Effect::AskApproval { at, tool, input, message } => {
                let question = ApprovalQuestion { at, tool, input, message };
                let answer = self.outside.person.as_mut().and_then(|person| person(&question));
                if let Some(answer) = answer {
                    let input = Input::Approval { at: question.at, verdict: answer.value };
                    self.later(answer.delay, id, input);
                }
            }
            // An answer that comes all the same is of no use to the conversation, and it says so.
            Effect::TakeBack { .. } => {}
            Effect::CancelRun { run } => self.cancel(run),
            Effect::CancelModel { at } => drop(self.cancelled_calls.insert(EffectKey::Model(at))),
            Effect::Reply { to, outcome } => {
                let input = Input::OperationDone { at: to.at, result: outcome };
                let delivery = Delivery::Inputs { conversation: to.conversation, inputs: vec![input] };
                self.queue.push(self.now, delivery);
            }
        }
    }

    fn work_context(
        &self,
        run: RunId,
        turn: &TurnId,
        agent: crate::ids::AgentId,
        origin: WorkOrigin,
        attempt: u32,
    ) -> WorkContext {
        WorkContext { run, turn: Some(turn.clone()), agent, origin, attempt, seed: 0 }
    }

    fn later(&mut self, delay: Duration, id: &ConversationId, input: Input) {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let delivery = Delivery::Inputs { conversation: id.clone(), inputs: vec![input] };
        self.queue.push(self.now.saturating_add(millis), delivery);
    }

    fn start(
        &mut self,
        conversation: &ConversationId,
        context: WorkContext,
        made: Option<Made>,
        input: Value,
        answer: AnswerTo,
    ) {
        let run = context.run.clone();
        let Some(made) = made else {
            let failure =
                Failure::business(ErrorCode::NotFound, format!("nothing is known that run {run} could run"));
            self.answer(conversation, answer, Err(failure));
            return;
        };
        let parent = match &answer {
            AnswerTo::Token(parent, _) => parent.0.clone(),
            AnswerTo::Hook(_) | AnswerTo::Operation(_) => conversation.0.clone(),
        };
        let (machine, execution) = match &made {
            // A task alone is part of the conversation that called it.
            Made::Task(task) => {
                let held = self.conversations.get(conversation).map(|held| held.machine.execution());
                (Work::task(context.clone(), task.clone(), input.clone()), held)
            }
            Made::Workflow(workflow) => {
                let execution =
                    Execution { id: run.0.clone(), kind: ExecutionKind::Workflow, parent: Some(parent) };
                (Work::workflow(context.clone(), workflow.clone(), input.clone()), Some(execution))
            }
        };
        let Some(execution) = execution else { return };
        let conversation = conversation.clone();
        let made = (context, made, input);
        let running = Running { machine, made, journal: Vec::new(), execution, conversation, answer };
        self.works.insert(run.clone(), running);
        self.queue.push(self.now, Delivery::Work { run, input: WorkInput::Start });
    }

    /// Whoever waits for a run is answered.
    fn answer(&mut self, conversation: &ConversationId, to: AnswerTo, result: Result<Value, Failure>) {
        let delivery = match to {
            AnswerTo::Hook(at) => {
                let inputs = vec![Input::HookDone { at, result }];
                Delivery::Inputs { conversation: conversation.clone(), inputs }
            }
            AnswerTo::Operation(at) => {
                let inputs = vec![Input::OperationDone { at, result }];
                Delivery::Inputs { conversation: conversation.clone(), inputs }
            }
            AnswerTo::Token(run, token) => {
                Delivery::Work { run, input: WorkInput::Answered { token, result } }
            }
        };
        self.queue.push(self.now, delivery);
    }

    /// Stops a run with everything it has started, or the turns of a conversation of that name.
    fn cancel(&mut self, run: RunId) {
        let conversation = ConversationId(run.0.clone());
        if let Some(held) = self.conversations.get(&conversation) {
            let turns: Vec<_> = held.machine.state().active_turns().map(|turn| turn.id.clone()).collect();
            for turn in turns {
                let reason = "the call has ended".to_string();
                self.deliver(&conversation, &Input::CancelTurn { turn, reason });
            }
        }
        self.works.remove(&run);
        let started: Vec<RunId> = self
            .works
            .iter()
            .filter(|(_, running)| matches!(&running.answer, AnswerTo::Token(parent, _) if *parent == run))
            .map(|(id, _)| id.clone())
            .collect();
        self.cancelled.insert(run);
        for run in started {
            self.cancel(run);
        }
    }

    /// A run asks for something.
    pub(super) fn issue_work(&mut self, run: &RunId, effect: WorkEffect) {
        match effect {
            WorkEffect::Wait { token, millis } => {
                let delivery = Delivery::Work { run: run.clone(), input: WorkInput::Waited { token } };
                self.queue.push(self.now.saturating_add(millis), delivery);
            }
            WorkEffect::JoinTimer { join, millis } => {
                let delivery = Delivery::Work { run: run.clone(), input: WorkInput::JoinLate { join } };
                self.queue.push(self.now.saturating_add(millis), delivery);
            }
            WorkEffect::Memory { token, action, input } => {
                let result = self.remember(run, action, &input);
                let delivery =
                    Delivery::Work { run: run.clone(), input: WorkInput::Answered { token, result } };
                self.queue.push(self.now, delivery);
            }
            WorkEffect::Subworkflow { token, workflow, input } => {
                let Some(running) = self.works.get(run) else { return };
                let (context, conversation) = (running.made.0.clone(), running.conversation.clone());
                let origin = match context.origin {
                    WorkOrigin::Tool | WorkOrigin::Workflow => WorkOrigin::Workflow,
                    hook @ (WorkOrigin::ContextAssembly | WorkOrigin::MemoryExtraction) => hook,
                };
                let context = WorkContext { run: WorkflowRun::subrun(run, token), origin, ..context };
                let made = self.definitions.find_workflow(&workflow).cloned().map(Made::Workflow);
                self.start(&conversation, context, made, input, AnswerTo::Token(run.clone(), token));
            }
            WorkEffect::CancelSubworkflow { token } => self.cancel(WorkflowRun::subrun(run, token)),
            WorkEffect::Done(result) => {
                if let Some(running) = self.works.remove(run) {
                    self.answer(&running.conversation, running.answer, result);
                }
            }
        }
    }

    /// Uses the memory of the agent that a run works for.
    fn remember(&mut self, run: &RunId, action: Memory, input: &Value) -> Result<Value, Failure> {
        let Some(running) = self.works.get(run) else {
            return Err(Failure::business(ErrorCode::InternalError, "the run is gone"));
        };
        let (context, execution) = (running.made.0.clone(), running.execution.clone());
        let (turn_id, agent) = (context.turn.map(|turn| turn.0), context.agent);
        let agent_id = agent.0.clone();
        let text = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_string);
        let needed = |name: &str| {
            text(name).ok_or_else(|| {
                Failure::business(ErrorCode::InvalidInput, format!("memory needs the text `{name}`"))
            })
        };
        let record = |found: &crate::memory::MemoryRecord| {
            json!({
                "id": found.id,
                "kind": found.kind,
                "content": found.content,
                "significance": found.significance,
            })
        };
        let (event, output) = match action {
            Memory::Write => {
                let (content, kind) =
                    (needed("content")?, text("kind").unwrap_or_else(|| "note".to_string()));
                let significance = input.get("significance").and_then(Value::as_f64).unwrap_or(0.5);
                let id = self.memory.write(&agent, &kind, &content, significance, self.now);
                let memory_id: Arc<str> = id.0.clone();
                let kind = kind.into();
                (
                    Payload::MemoryWritten(MemoryWritten { turn_id, agent_id, memory_id, kind, content }),
                    json!({"id": id}),
                )
            }
            Memory::Read => {
                let id = MemoryId::from(needed("id")?);
                let found = self.memory.read(&agent, &id).map_or(Value::Null, record);
                let memory_id = id.0;
                (
                    Payload::MemoryRead(MemoryTouched { turn_id, agent_id, memory_id }),
                    json!({"record": found}),
                )
            }
            Memory::Delete => {
                let id = MemoryId::from(needed("id")?);
                let deleted = self.memory.delete(&agent, &id);
                let memory_id = id.0;
                (
                    Payload::MemoryDeleted(MemoryTouched { turn_id, agent_id, memory_id }),
                    json!({"deleted": deleted}),
                )
            }
            Memory::Search | Memory::List => {
                let limit = input.get("limit").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
                let (query, found) = if action == Memory::Search {
                    let query = needed("query")?;
                    let found = self.memory.search(&agent, &query, limit.unwrap_or(10));
                    (query, found)
                } else {
                    (String::new(), self.memory.list(&agent).iter().collect())
                };
                let records: Vec<Value> = found.iter().map(|found| record(found)).collect();
                let found = found.iter().map(|found| found.id.0.clone()).collect();
                let members = MemorySearched { turn_id, agent_id, query, found };
                (Payload::MemorySearched(members), json!({"records": records}))
            }
        };
        self.keep(&execution, &[event]);
        Ok(output)
    }
}
