//! Writes client updates as AG-UI 1.0 events.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::client::{ApprovalPrompt, ClientUpdate, Speaker, TurnFailure, UsageByModel, result_id};
use super::history;
use crate::conversation::ConversationState;

/// Protocol version announced by runs.
pub const PROTOCOL_VERSION: &str = "1.0";

/// Writes the events of one run and collects its messages.
#[derive(Debug)]
pub struct AgUiWriter {
    thread: String,
    run: String,
    /// The thread before the run, if the client did not send its messages.
    earlier: Option<Box<ConversationState>>,
    /// Messages known to the client: those it sent, then those of this run.
    messages: Vec<Value>,
    /// Called agents that have not answered yet.
    agents: BTreeSet<Arc<str>>,
    /// Steps that have started and not finished.
    steps: BTreeSet<String>,
}

impl AgUiWriter {
    /// Creates the writer for a run of a thread whose client sent these messages. `earlier` is the thread before the run, if the
    /// client left it out.
    pub fn new(
        thread: &str,
        run: &str,
        earlier: Option<Box<ConversationState>>,
        messages: Vec<Value>,
    ) -> AgUiWriter {
        AgUiWriter {
            thread: thread.to_string(),
            run: run.to_string(),
            earlier,
            messages,
            agents: BTreeSet::new(),
            steps: BTreeSet::new(),
        }
    }

    /// Returns the first event of the run.
    pub fn started(&self) -> Value {
        json!({
            "type": "RUN_STARTED",
            "threadId": self.thread,
            "runId": self.run,
            "protocolVersion": PROTOCOL_VERSION,
        })
    }

    /// Returns the last events of a run without failure. `questions` are for a human, `calls` for the client.
    pub fn finished(
        &mut self,
        questions: &[ApprovalPrompt],
        calls: &[Arc<str>],
        spent: &UsageByModel,
    ) -> Vec<Value> {
        let mut events: Vec<Value> = std::mem::take(&mut self.steps)
            .into_iter()
            .map(|step| json!({"type": "STEP_FINISHED", "stepName": step}))
            .collect();
        // Suspended agents continue in the client's next run.
        events.extend(std::mem::take(&mut self.agents).into_iter().map(|call| {
            json!({"type": "SUBAGENT_FINISHED", "subagentRunId": call, "outcome": {"type": "suspended"}})
        }));
        let outcome = match (questions.is_empty(), calls.is_empty()) {
            (false, _) => {
                let interrupts: Vec<Value> = questions.iter().map(interrupt).collect();
                json!({"type": "interrupt", "interrupts": interrupts})
            }
            (true, false) => json!({"type": "success", "pendingToolCallIds": calls}),
            (true, true) => json!({"type": "success"}),
        };
        let mut event = json!({
            "type": "RUN_FINISHED",
            "threadId": self.thread,
            "runId": self.run,
            "outcome": outcome,
        });
        add_usage(&mut event, spent);
        events.push(event);
        events
    }

    /// Returns the last event of a failed run.
    pub fn failed(&self, failure: &TurnFailure, spent: &UsageByModel) -> Value {
        let mut event = json!({"type": "RUN_ERROR", "message": failure.message});
        if let Some(code) = &failure.code {
            event["code"] = json!(code);
        }
        add_usage(&mut event, spent);
        event
    }

    /// Returns the events for an update.
    pub fn write(&mut self, told: &ClientUpdate) -> Vec<Value> {
        match told {
            ClientUpdate::StepStarted { step } => {
                self.steps.insert(step.clone());
                vec![json!({"type": "STEP_STARTED", "stepName": step})]
            }
            ClientUpdate::StepFinished { step } => match self.steps.remove(step) {
                true => vec![json!({"type": "STEP_FINISHED", "stepName": step})],
                false => Vec::new(),
            },
            ClientUpdate::ReasoningStarted { message } => vec![
                json!({"type": "REASONING_START", "messageId": message}),
                json!({"type": "REASONING_MESSAGE_START", "messageId": message, "role": "reasoning"}),
            ],
            ClientUpdate::Reasoning { message, text } => {
                vec![json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": message, "delta": text})]
            }
            ClientUpdate::ReasoningEnded { message } => vec![
                json!({"type": "REASONING_MESSAGE_END", "messageId": message}),
                json!({"type": "REASONING_END", "messageId": message}),
            ],
            ClientUpdate::TextStarted { message, speaker } => {
                self.message(message, speaker);
                let event = json!({"type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant"});
                vec![with_subagent(event, speaker)]
            }
            ClientUpdate::Text { message, speaker, text } => {
                match &mut self.message(message, speaker)["content"] {
                    Value::String(content) => content.push_str(text),
                    content => *content = Value::String(text.clone()),
                }
                let event = json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": text});
                vec![with_subagent(event, speaker)]
            }
            ClientUpdate::TextEnded { message, speaker } => {
                vec![with_subagent(json!({"type": "TEXT_MESSAGE_END", "messageId": message}), speaker)]
            }
            ClientUpdate::MessageWithdrawn { message } => {
                self.withdraw(message);
                vec![self.snapshot()]
            }
            ClientUpdate::ToolCalled { call, tool, arguments, message, speaker, by_client: _ } => {
                self.tool_called(call, tool, arguments, message, speaker)
            }
            ClientUpdate::ArgumentsEdited { call, arguments } => self.arguments_edited(call, arguments),
            ClientUpdate::ToolAnswered { call, content, failed, speaker } => {
                let id = result_id(call);
                let mut entry = json!({"id": id, "role": "tool", "toolCallId": call, "content": content});
                let mut event = json!({
                    "type": "TOOL_CALL_RESULT",
                    "messageId": id,
                    "toolCallId": call,
                    "content": content,
                    "role": "tool",
                });
                if *failed {
                    entry["error"] = json!(content);
                    // The protocol has a member for it in messages only, and its clients warn of others.
                    event["metadata"] = json!({"error": content});
                }
                self.messages.push(with_subagent(entry, speaker));
                vec![with_subagent(event, speaker)]
            }
            ClientUpdate::AgentStarted { call, agent } => {
                self.agents.insert(call.clone());
                vec![json!({
                    "type": "SUBAGENT_STARTED",
                    "subagentRunId": call,
                    "name": agent,
                    "parentToolCallId": call,
                })]
            }
            ClientUpdate::AgentFinished { call } => match self.agents.remove(call) {
                true => vec![json!({"type": "SUBAGENT_FINISHED", "subagentRunId": call})],
                false => Vec::new(),
            },
            ClientUpdate::AgentFailed { call, message } => match self.agents.remove(call) {
                true => vec![json!({"type": "SUBAGENT_ERROR", "subagentRunId": call, "message": message})],
                false => Vec::new(),
            },
            ClientUpdate::StateReplaced(state) => vec![json!({"type": "STATE_SNAPSHOT", "snapshot": state})],
            ClientUpdate::StatePatched(patch) => vec![json!({"type": "STATE_DELTA", "delta": patch})],
            // Sent with the last event of the run.
            ClientUpdate::ApprovalRequested(_) | ClientUpdate::TurnEnded { .. } => Vec::new(),
        }
    }

    fn tool_called(
        &mut self,
        call: &str,
        tool: &str,
        arguments: &str,
        message: &str,
        speaker: &Speaker,
    ) -> Vec<Value> {
        let entry = self.message(message, speaker);
        let made = json!({
            "id": call,
            "type": "function",
            "function": {"name": tool, "arguments": arguments},
        });
        match entry["toolCalls"].as_array_mut() {
            Some(calls) => calls.push(made),
            None => entry["toolCalls"] = json!([made]),
        }
        let start = json!({
            "type": "TOOL_CALL_START",
            "toolCallId": call,
            "toolCallName": tool,
            "parentMessageId": message,
        });
        let arguments = json!({"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": arguments});
        let end = json!({"type": "TOOL_CALL_END", "toolCallId": call});
        [start, arguments, end].into_iter().map(|event| with_subagent(event, speaker)).collect()
    }

    /// Replaces the arguments of a call that an earlier run sent. A snapshot is the only event that replaces them.
    fn arguments_edited(&mut self, call: &str, arguments: &str) -> Vec<Value> {
        let messages = self.all_messages().iter_mut().rev();
        let calls = messages.filter_map(|message| message["toolCalls"].as_array_mut());
        let Some(known) = calls.flatten().find(|known| known["id"] == call) else { return Vec::new() };
        known["function"]["arguments"] = json!(arguments);
        vec![self.snapshot()]
    }

    /// Returns the event that replaces all messages of the client.
    fn snapshot(&mut self) -> Value {
        json!({"type": "MESSAGES_SNAPSHOT", "messages": self.all_messages()})
    }

    /// Adds the messages of a turn beside the run, as far as the client did not send them: a snapshot replaces all that it has.
    pub fn add_turn_beside(&mut self, turn: Vec<Value>) {
        let messages = self.all_messages();
        let mut place = messages.len();
        for message in turn {
            match messages.iter().position(|known| is_same_message(known, &message)) {
                Some(known) => place = known + 1,
                None => {
                    messages.insert(place, message);
                    place += 1;
                }
            }
        }
    }

    /// Returns the messages of the thread, also those that the client did not send.
    fn all_messages(&mut self) -> &mut Vec<Value> {
        if let Some(earlier) = self.earlier.take() {
            let turns = history::messages_of_turns(&earlier, |_| true);
            // A client may send the message of the last turn again.
            let repeated = turns.last().and_then(|turn| turn.first()).map(|message| message["id"].clone());
            self.messages.retain(|message| Some(&message["id"]) != repeated.as_ref());
            self.messages.splice(0..0, turns.into_iter().flatten());
        }
        &mut self.messages
    }

    /// Returns the message with this id, adding it if necessary.
    fn message(&mut self, id: &str, speaker: &Speaker) -> &mut Value {
        let place = self.messages.iter().rposition(|message| message["id"] == id);
        let place = place.unwrap_or_else(|| {
            self.messages.push(with_subagent(json!({"id": id, "role": "assistant"}), speaker));
            self.messages.len() - 1
        });
        &mut self.messages[place]
    }

    fn withdraw(&mut self, id: &str) {
        let Some(place) = self.messages.iter().rposition(|message| message["id"] == id) else { return };
        let calls = self.messages[place].get("toolCalls").is_some();
        match self.messages[place].as_object_mut() {
            Some(entry) if calls => drop(entry.shift_remove("content")),
            _ => drop(self.messages.remove(place)),
        }
    }
}

/// Returns true if two messages have one id, or one text: clients may give ids of their own.
fn is_same_message(one: &Value, other: &Value) -> bool {
    let has_text = one["content"].as_str().is_some_and(|text| !text.is_empty());
    let is_same_text = has_text && one["role"] == other["role"] && one["content"] == other["content"];
    one["id"] == other["id"] || (is_same_text && one.get("toolCallId") == other.get("toolCallId"))
}

/// Adds the sub-agent to an event or message of a joined agent.
fn with_subagent(mut value: Value, speaker: &Speaker) -> Value {
    if let Speaker::Joined(call) = speaker {
        value["subagentRunId"] = json!(call);
    }
    value
}

/// Returns the AG-UI interrupt for an approval.
/// [`ApprovalVerdict::parse`](crate::conversation::ApprovalVerdict::parse) parses the answer.
pub fn interrupt(question: &ApprovalPrompt) -> Value {
    let mut interrupt = json!({
        "id": question.id,
        // The protocol's term for a call that waits for a human.
        "reason": "tool_call",
        "responseSchema": {
            "type": "object",
            "properties": {
                "approved": {"type": "boolean"},
                "editedArgs": {"type": "object"},
                "reason": {"type": "string"},
            },
            "required": ["approved"],
        },
        "metadata": {"hotseat": question.value},
    });
    if let Some(message) = &question.message {
        interrupt["message"] = json!(message);
    }
    if let Some(call) = &question.call {
        interrupt["toolCallId"] = json!(call);
    }
    interrupt
}

/// Adds the usage by model, unless that of a call is unknown.
fn add_usage(event: &mut Value, spent: &UsageByModel) {
    let Some(models) = spent.models() else { return };
    let usage: Vec<Value> = models
        .map(|(model, usage)| {
            json!({
                "model": model,
                "inputTokens": usage.input_tokens,
                "cachedInputTokens": usage.cached_tokens,
                "outputTokens": usage.output_tokens,
                "totalTokens": usage.input_tokens.saturating_add(usage.output_tokens),
            })
        })
        .collect();
    if !usage.is_empty() {
        event["usage"] = usage.into();
    }
}
