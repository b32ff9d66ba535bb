//! Something happens: a machine takes it, its events are kept, and then its effects are let go.

use hotseat_trace::{Event, Execution, Offset, Payload, Record};

use super::queue::Delivery;
use super::{Held, Made, Sim, replay, timer_word};
use crate::conversation::{ApprovalVerdict, Conversation, HookKind, Input, Millis, Opening, Phase, Step};
use crate::ids::{ConversationId, RunId};
use crate::work::{Work, WorkInput};

impl Sim {
    /// Whether a delivery has become pointless.
    pub(super) fn is_stale(&self, at: Millis, delivery: &Delivery) -> bool {
        match delivery {
            Delivery::Wake { conversation } => {
                let deadline = self.conversations.get(conversation).and_then(|held| held.machine.deadline());
                deadline.is_none_or(|deadline| deadline > at)
            }
            Delivery::Work { run, .. } => !self.works.contains_key(run),
            Delivery::Open { opening, .. } => self.cancelled.contains(&RunId(opening.conversation.0.clone())),
            Delivery::Inputs { inputs, .. } => inputs.iter().all(|input| match input {
                Input::AgentCall { reply_to, .. } => {
                    self.cancelled.contains(&reply_to.at.call.run(reply_to.at.attempt))
                }
                Input::ModelDone { at, .. } => {
                    self.cancelled_calls.contains(&crate::conversation::EffectKey::Model(at.clone()))
                }
                _ => false,
            }),
        }
    }

    pub(super) fn take(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Inputs { conversation, inputs } => {
                for input in inputs {
                    self.deliver(&conversation, &input);
                }
            }
            Delivery::Open { opening, input } => {
                let id = opening.conversation.clone();
                self.hold(opening);
                self.deliver(&id, &Input::Open);
                self.deliver(&id, &input);
            }
            Delivery::Work { run, input } => self.work(&run, input),
            Delivery::Wake { conversation } => {
                if let Some(held) = self.conversations.get_mut(&conversation) {
                    held.wakes = None;
                }
                self.deliver(&conversation, &Input::Wake);
            }
        }
    }

    pub(super) fn hold(&mut self, opening: Opening) {
        let machine = Conversation::new(self.definitions.clone(), self.settings.limits, opening.clone());
        let id = opening.conversation.clone();
        self.conversations.insert(id, Held { opening, machine, journal: Vec::new(), wakes: None });
    }

    /// A conversation takes an input.
    pub(super) fn deliver(&mut self, id: &ConversationId, input: &Input) {
        let Some(held) = self.conversations.get_mut(id) else { return };
        let rows = covered(held.machine.state(), input, self.now);
        let step = held.machine.handle(self.now, input);
        held.journal.push((self.now, input.clone()));
        let execution = held.machine.execution();
        self.coverage.extend(rows);
        self.keep(&execution, &step.events);
        let step = if self.settings.crash { self.come_back(id, step) } else { step };
        for effect in step.effects {
            self.issue(id, effect);
        }
        self.arm(id);
    }

    /// Throws a conversation away after its events are kept and before its effects are let go, and makes it anew.
    fn come_back(&mut self, id: &ConversationId, step: Step) -> Step {
        let Some(held) = self.conversations.get_mut(id) else { return step };
        let (machine, again) = replay(&self.definitions, self.settings.limits, &held.opening, &held.journal);
        assert!(*machine.state() == *held.machine.state(), "a conversation comes back as it was");
        assert!(again == step, "the last step of a conversation comes back as it was");
        held.machine = machine;
        let asked =
            |effect: &&crate::conversation::Effect| !self.issued.contains(&(id.clone(), effect.key()));
        let missing: Vec<_> = held.machine.outstanding().filter(asked).collect();
        assert!(
            missing.iter().all(|effect| again.effects.contains(effect)),
            "nothing is outstanding that was neither asked nor is about to be"
        );
        again
    }

    /// The same after it was to be woken.
    pub(super) fn rearm(&mut self, id: &ConversationId) {
        if let Some(held) = self.conversations.get_mut(id) {
            held.wakes = None;
        }
        self.arm(id);
    }

    /// Sees to it that a conversation is woken in time.
    fn arm(&mut self, id: &ConversationId) {
        let Some(held) = self.conversations.get_mut(id) else { return };
        let Some(deadline) = held.machine.deadline() else { return };
        if held.wakes.is_none_or(|wakes| deadline < wakes || wakes < self.now) {
            held.wakes = Some(deadline);
            self.queue.push(deadline, Delivery::Wake { conversation: id.clone() });
        }
    }

    /// A run takes an input.
    fn work(&mut self, run: &RunId, input: WorkInput) {
        let Some(running) = self.works.get_mut(run) else { return };
        let mut step = running.machine.handle(&self.definitions, &input);
        running.journal.push(input);
        if self.settings.crash {
            let (context, made, input) = running.made.clone();
            let mut machine = match made {
                Made::Task(task) => Work::task(context, task, input),
                Made::Workflow(workflow) => Work::workflow(context, workflow, input),
            };
            let mut again = crate::work::WorkStep::default();
            for input in &running.journal {
                again = machine.handle(&self.definitions, input);
            }
            assert!(again == step, "a run comes back as it was");
            running.machine = machine;
            step = again;
        }
        let execution = running.execution.clone();
        self.keep(&execution, &step.events);
        for effect in step.effects {
            self.issue_work(run, effect);
        }
    }

    /// Events get their numbers and join the trace.
    pub(super) fn keep(&mut self, execution: &Execution, events: &[Payload]) {
        let first = self.records.len() as u64 + 1;
        for payload in events {
            let event = Event {
                sequence: self.records.len() as u64 + 1,
                offset: Offset::from_millis(self.now),
                timestamp: i64::try_from(self.now).unwrap_or(i64::MAX),
                payload: payload.clone(),
            };
            self.records.push(Record { event, execution: Some(execution.clone()) });
        }
        if !events.is_empty() {
            self.batches.push((first, self.records.len() as u64));
        }
    }
}

/// The rows of the turn table that an input uses.
fn covered(
    before: &crate::conversation::State,
    input: &Input,
    now: Millis,
) -> Vec<(&'static str, &'static str)> {
    let (turn, word) = match input {
        Input::HookDone { at, result } => {
            let word = match (at.kind, result) {
                (HookKind::ContextAssembly, Ok(_)) => "assembled",
                (HookKind::ContextAssembly, Err(failure)) if failure.can_retry() => {
                    "assembly infrastructure failure"
                }
                (HookKind::ContextAssembly, Err(_)) => "assembly business failure",
                (HookKind::MemoryExtraction, Ok(_)) => "extracted",
                (HookKind::MemoryExtraction, Err(failure)) if failure.can_retry() => {
                    "extraction infrastructure failure"
                }
                (HookKind::MemoryExtraction, Err(_)) => "extraction business failure",
            };
            (Some(&at.turn), word)
        }
        Input::ModelDone { at, result: Ok(reply) } => {
            (Some(&at.turn), if reply.tool_calls.is_empty() { "text reply" } else { "calls" })
        }
        Input::ModelDone { at, result: Err(error) } => {
            (Some(&at.turn), if error.can_retry() { "model infrastructure failure" } else { "model failure" })
        }
        Input::OperationDone { at, .. } => {
            let operation = before.turn(&at.turn).and_then(|turn| turn.operation(&at.call));
            let word = match operation.map(|operation| operation.is_async) {
                Some(true) => "async result",
                Some(false) => "sync result",
                None => "unknown result",
            };
            (Some(&at.turn), word)
        }
        Input::Wake => {
            let due = before.timers.iter().filter(|(_, at)| **at <= now);
            let row = |key: &crate::conversation::TimerKey| {
                (before.turn(&key.turn).map_or("none", |turn| phase_word(&turn.phase)), timer_word(key))
            };
            return due.map(|(key, _)| row(key)).collect();
        }
        Input::Approval { at, verdict } => {
            let word = match verdict {
                ApprovalVerdict::Approved { .. } => "approval",
                ApprovalVerdict::Declined { .. } => "refusal",
            };
            (Some(&at.turn), word)
        }
        Input::CancelTurn { turn, .. } => (Some(turn), "cancel"),
        Input::UserMessage { .. } => (None, "user message"),
        Input::AgentCall { .. } => (None, "agent call"),
        Input::Open | Input::ClientOffer { .. } | Input::RemoveParticipant { .. } | Input::Close => {
            return Vec::new();
        }
    };
    let phase = turn.and_then(|turn| before.turn(turn)).map_or("none", |turn| phase_word(&turn.phase));
    vec![(phase, word)]
}

fn phase_word(phase: &Phase) -> &'static str {
    match phase {
        Phase::Ready => "ready",
        Phase::Assembling { run: Some(_), .. } => "assembling",
        Phase::Assembling { run: None, .. } => "assembly backoff",
        Phase::Assembled { .. } => "assembled",
        Phase::Calling { open: true, .. } => "calling",
        Phase::Calling { open: false, .. } => "call backoff",
        Phase::Waiting { .. } => "waiting",
        Phase::Idle => "idle",
        Phase::Extracting { run: Some(_), .. } => "extracting",
        Phase::Extracting { run: None, .. } => "extraction backoff",
        Phase::Closing => "closing",
        Phase::Ended(_) => "ended",
    }
}
