//! Request bodies.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use super::thread::ResumeAnswers;
use super::wire::{MessageObject, PROTOCOL_VERSION};
use super::{AgUiSession, RequestEnvelope};
use crate::message::{ScriptedAnswers, merge_json};

/// Input of a run with the member names of the protocol. All members are always sent, since some servers
/// reject requests without the optional ones.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunInput<'a> {
    protocol_version: &'a str,
    thread_id: &'a str,
    run_id: &'a str,
    state: &'a Value,
    messages: Vec<Cow<'a, MessageObject>>,
    tools: Value,
    context: &'a Value,
    forwarded_props: &'a Value,
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    resume: &'a [Value],
}

impl AgUiSession {
    /// Returns the body of the next request.
    pub(super) fn request_body(
        &self,
        run_id: &str,
        script: &ScriptedAnswers,
        answers: &ResumeAnswers,
    ) -> Vec<u8> {
        let mut forwarded = self.target.forwarded_props.clone();
        if let (Some(options), Value::Object(props)) = (&self.options, &mut forwarded) {
            let below = props.get("options").cloned().unwrap_or_else(|| json!({}));
            props.insert("options".to_string(), merge_json(&below, options));
        }
        if let (Some(answer), Value::Object(props)) = (&answers.command, &mut forwarded) {
            let command = props.entry("command").or_insert_with(|| json!({}));
            match command {
                Value::Object(command) => {
                    command.insert("resume".to_string(), answer.clone());
                }
                other => *other = json!({"resume": answer}),
            }
        }
        let input = RunInput {
            protocol_version: PROTOCOL_VERSION,
            thread_id: &self.thread.id,
            run_id,
            state: &self.thread.state,
            messages: self.thread.outgoing().collect(),
            tools: script.tools_as_json(),
            context: &self.target.context,
            forwarded_props: &forwarded,
            resume: &answers.resume,
        };
        let body = match &self.target.envelope {
            RequestEnvelope::None => serde_json::to_vec(&input),
            RequestEnvelope::CopilotKit { agent_id } => {
                let params = agent_id.as_ref().map_or_else(|| json!({}), |id| json!({"agentId": id}));
                serde_json::to_vec(&json!({"method": "agent/run", "params": params, "body": input}))
            }
        };
        body.expect("maps with text keys are JSON")
    }
}
