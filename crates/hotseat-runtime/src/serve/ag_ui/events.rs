//! What a client is told, as events of AG-UI 1.0.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::translate::{Failed, Question, Speaker, Spent, Told, result_id};

/// The version of the protocol that runs announce.
pub const PROTOCOL_VERSION: &str = "1.0";

/// Writes the events of one run, and keeps the messages that it brings.
#[derive(Debug)]
pub struct Writer {
    thread: String,
    run: String,
    /// The conversation as the client knows it: what it sent, then what the run has told it.
    messages: Vec<Value>,
    /// Agents that were asked in this run and have not answered.
    agents: BTreeSet<Arc<str>>,
    /// Steps that have begun and not ended.
    steps: BTreeSet<String>,
}

impl Writer {
    /// A run of a thread whose client knows these messages.
    pub fn new(thread: &str, run: &str, messages: Vec<Value>) -> Writer {
        Writer {
            thread: thread.to_string(),
            run: run.to_string(),
            messages,
            agents: BTreeSet::new(),
            steps: BTreeSet::new(),
        }
    }

    /// The first event of the run.
    pub fn started(&self) -> Value {
        json!({
            "type": "RUN_STARTED",
            "threadId": self.thread,
            "runId": self.run,
            "protocolVersion": PROTOCOL_VERSION,
        })
    }

    /// The events that end a run which nothing went wrong in: `questions` are put to a person, `calls` to the client.
    pub fn finished(&mut self, questions: &[Question], calls: &[Arc<str>], spent: &Spent) -> Vec<Value> {
        let mut events: Vec<Value> = std::mem::take(&mut self.steps)
            .into_iter()
            .map(|step| json!({"type": "STEP_FINISHED", "stepName": step}))
            .collect();
        // They go on when the client has answered, in a run of its own.
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

    /// The event that ends a run which failed.
    pub fn failed(&self, failure: &Failed, spent: &Spent) -> Value {
        let mut event = json!({"type": "RUN_ERROR", "message": failure.message});
        if let Some(code) = &failure.code {
            event["code"] = json!(code);
        }
        add_usage(&mut event, spent);
        event
    }

    /// The events for something that the client is told.
    pub fn write(&mut self, told: &Told) -> Vec<Value> {
        match told {
            Told::StepStarted { step } => {
                self.steps.insert(step.clone());
                vec![json!({"type": "STEP_STARTED", "stepName": step})]
            }
            Told::StepFinished { step } => match self.steps.remove(step) {
                true => vec![json!({"type": "STEP_FINISHED", "stepName": step})],
                false => Vec::new(),
            },
            Told::ReasoningStarted { message } => vec![
                json!({"type": "REASONING_START", "messageId": message}),
                json!({"type": "REASONING_MESSAGE_START", "messageId": message, "role": "reasoning"}),
            ],
            Told::Reasoning { message, text } => {
                vec![json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": message, "delta": text})]
            }
            Told::ReasoningEnded { message } => vec![
                json!({"type": "REASONING_MESSAGE_END", "messageId": message}),
                json!({"type": "REASONING_END", "messageId": message}),
            ],
            Told::TextStarted { message, speaker } => {
                self.message(message, speaker);
                let event = json!({"type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant"});
                vec![of(event, speaker)]
            }
            Told::Text { message, speaker, text } => {
                match &mut self.message(message, speaker)["content"] {
                    Value::String(content) => content.push_str(text),
                    content => *content = Value::String(text.clone()),
                }
                let event = json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": text});
                vec![of(event, speaker)]
            }
            Told::TextEnded { message, speaker } => {
                vec![of(json!({"type": "TEXT_MESSAGE_END", "messageId": message}), speaker)]
            }
            Told::Withdrawn { message } => {
                self.withdraw(message);
                vec![json!({"type": "MESSAGES_SNAPSHOT", "messages": self.messages})]
            }
            Told::Called { call, tool, arguments, message, speaker, by_client: _ } => {
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
                [start, arguments, end].into_iter().map(|event| of(event, speaker)).collect()
            }
            Told::Answered { call, content, failed, speaker } => {
                let id = result_id(call);
                let mut entry = json!({"id": id, "role": "tool", "toolCallId": call, "content": content});
                let event = json!({
                    "type": "TOOL_CALL_RESULT",
                    "messageId": id,
                    "toolCallId": call,
                    "content": content,
                    "role": "tool",
                });
                if *failed {
                    entry["error"] = json!(content);
                }
                self.messages.push(of(entry, speaker));
                vec![of(event, speaker)]
            }
            Told::AgentStarted { call, agent } => {
                self.agents.insert(call.clone());
                vec![json!({
                    "type": "SUBAGENT_STARTED",
                    "subagentRunId": call,
                    "name": agent,
                    "parentToolCallId": call,
                })]
            }
            Told::AgentFinished { call } => match self.agents.remove(call) {
                true => vec![json!({"type": "SUBAGENT_FINISHED", "subagentRunId": call})],
                false => Vec::new(),
            },
            Told::AgentFailed { call, message } => match self.agents.remove(call) {
                true => vec![json!({"type": "SUBAGENT_ERROR", "subagentRunId": call, "message": message})],
                false => Vec::new(),
            },
            Told::State(state) => vec![json!({"type": "STATE_SNAPSHOT", "snapshot": state})],
            Told::StatePatched(patch) => vec![json!({"type": "STATE_DELTA", "delta": patch})],
            // They are told with the end of the run.
            Told::Asked(_) | Told::TurnEnded { .. } => Vec::new(),
        }
    }

    /// The message of this id, which is added if it is not there.
    fn message(&mut self, id: &str, speaker: &Speaker) -> &mut Value {
        let place = self.messages.iter().rposition(|message| message["id"] == id);
        let place = place.unwrap_or_else(|| {
            self.messages.push(of(json!({"id": id, "role": "assistant"}), speaker));
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

/// The event or message with its sub-agent, if it is of one.
fn of(mut value: Value, speaker: &Speaker) -> Value {
    if let Speaker::Joined(call) = speaker {
        value["subagentRunId"] = json!(call);
    }
    value
}

/// A question to a person. The answer is read by [`ApprovalVerdict::read`](crate::conversation::ApprovalVerdict::read).
fn interrupt(question: &Question) -> Value {
    let mut interrupt = json!({
        "id": question.id,
        // The protocol's own word for a call that waits for a person.
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

fn add_usage(event: &mut Value, spent: &Spent) {
    if spent.by_model.is_empty() {
        return;
    }
    let usage = spent.by_model.iter().map(|(model, (input, output))| {
        json!({"model": model, "inputTokens": input, "outputTokens": output, "totalTokens": input + output})
    });
    event["usage"] = usage.collect();
}
