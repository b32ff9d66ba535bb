//! Parses replies of the Responses protocol.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::connection::{
    ReplyParser, failure, invalid_reply_error, late_call_error, truncated_reply_error,
    unreadable_reply_error, unsupported_call_error,
};
use crate::providers::optional_member::read_or_absent;
use crate::{
    ModelError, ModelReply, ReplyAssembler, ReplyDelta, ReplySink, StopReason, TokenUsage, UsageReport,
};

/// An event of a stream. Its last one contains the whole response.
#[derive(Debug, Deserialize)]
struct ResponseEvent {
    #[serde(rename = "type")]
    kind: String,
    response: Option<ResponseDocument>,
    item: Option<Box<RawValue>>,
    #[serde(default)]
    item_id: Value,
    #[serde(default)]
    output_index: Value,
    /// Arguments of a call, once they are complete.
    #[serde(default)]
    arguments: Value,
}

#[derive(Debug, Deserialize)]
struct ResponseDocument {
    status: Option<String>,
    error: Option<Value>,
    incomplete_details: Option<IncompleteDetails>,
    output: Vec<Box<RawValue>>,
    #[serde(default, deserialize_with = "read_or_absent")]
    usage: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "read_or_absent")]
    model: Option<String>,
}

#[derive(Debug, Deserialize)]
struct IncompleteDetails {
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ItemKind {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OutputItem {
    Message {
        #[serde(default)]
        content: Vec<OutputPart>,
    },
    FunctionCall {
        #[serde(default)]
        id: Value,
        call_id: String,
        name: String,
        #[serde(default)]
        arguments: String,
    },
}

/// Calls of hosted tools, which the provider carries out. All other calls but those of functions are refused.
const HOSTED_CALLS: &[&str] =
    &["code_interpreter_call", "file_search_call", "image_generation_call", "web_search_call"];

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OutputPart {
    OutputText {
        text: String,
    },
    Refusal {
        refusal: String,
    },
    #[serde(other)]
    Other,
}

/// Parser of one reply. It reads the response that ends a stream, which repeats all pieces before it.
#[derive(Default)]
pub(in crate::providers) struct ResponsesParser {
    url: String,
    assembly: ReplyAssembler,
    /// Calls that arrived before the last event.
    streamed: ReplyAssembler,
    /// The keys of these calls: two events end each of them.
    streamed_keys: HashSet<String>,
    /// Ids and names of calls that have started, by their keys.
    started: HashMap<String, (String, String)>,
    /// Ids of the calls that are complete, or in the last event.
    ids: HashSet<String>,
    /// Reason of the end, once the response is there.
    stop: Option<StopReason>,
    usage: Option<TokenUsage>,
    model: Option<String>,
}

impl ResponsesParser {
    pub(in crate::providers) fn new(url: String) -> Self {
        ResponsesParser { url, ..ResponsesParser::default() }
    }

    fn add_response(
        &mut self,
        response: ResponseDocument,
        sink: &mut dyn ReplySink,
    ) -> Result<(), ModelError> {
        let mut refused = false;
        for item in response.output {
            let Some(item) = self.read_item(&item)? else { continue };
            match item {
                OutputItem::Message { content } => {
                    for part in content {
                        refused |= matches!(part, OutputPart::Refusal { .. });
                        self.add_part(part, sink);
                    }
                }
                OutputItem::FunctionCall { call_id, name, arguments, .. } => {
                    let index = self.assembly.started_calls();
                    self.ids.insert(call_id.clone());
                    self.assembly.pass_on(ReplyDelta::ToolCallStarted { index, id: call_id, name }, sink);
                    self.assembly.pass_on(ReplyDelta::ToolCallArguments { index, text: arguments }, sink);
                }
            }
        }
        // A call that was cut at the token limit is never carried out.
        let announced = match response.incomplete_details {
            None => self.started.values().filter(|(id, _)| !self.ids.contains(id)).count(),
            Some(_) => 0,
        };
        if self.streamed.started_calls() + announced > self.assembly.started_calls() {
            return Err(invalid_reply_error(
                &self.url,
                "its end does not repeat all calls of the stream",
                "",
            ));
        }
        let reason = response.incomplete_details.and_then(|details| details.reason);
        self.stop = Some(match (response.status.as_deref(), reason.as_deref()) {
            _ if refused => StopReason::Refusal,
            (_, Some("max_output_tokens")) => StopReason::MaxTokens,
            (_, Some("content_filter")) => StopReason::Refusal,
            (_, Some(other)) => StopReason::Other(other.to_owned()),
            (Some("failed" | "cancelled"), None) => return Err(truncated_reply_error(&self.url)),
            (Some("in_progress" | "queued"), None) => {
                let words = "it is not complete: replies in the background are not read";
                return Err(invalid_reply_error(&self.url, words, ""));
            }
            (_, None) if self.assembly.started_calls() > 0 => StopReason::ToolUse,
            (_, None) => StopReason::EndTurn,
        });
        self.model = response.model;
        self.usage = response.usage.and_then(|usage| UsageReport::parse(&usage)?.to_usage());
        Ok(())
    }

    /// Fails if an event reports an error.
    fn check_errors(&self, event: &ResponseEvent, data: &str) -> Result<(), ModelError> {
        match &event.response {
            _ if event.kind == "error" => {
                Err(failure::from_error_event(&self.url, &serde_json::from_str(data).unwrap_or_default()))
            }
            Some(response) => self.check_response(response),
            None => Ok(()),
        }
    }

    /// Fails if a response reports an error.
    fn check_response(&self, response: &ResponseDocument) -> Result<(), ModelError> {
        match response.error.as_ref().filter(|error| !error.is_null()) {
            Some(error) => Err(failure::from_error_event(&self.url, error)),
            None => Ok(()),
        }
    }

    /// Reads an item of the output. `None` if it is neither text nor a call of the agent's tools.
    fn read_item(&self, item: &RawValue) -> Result<Option<OutputItem>, ModelError> {
        let invalid = |error: serde_json::Error| unreadable_reply_error(&self.url, error, item.get());
        let ItemKind { kind } = serde_json::from_str(item.get()).map_err(invalid)?;
        match kind.as_str() {
            "message" | "function_call" => serde_json::from_str(item.get()).map(Some).map_err(invalid),
            kind if kind.ends_with("_call") && !HOSTED_CALLS.contains(&kind) => {
                Err(unsupported_call_error(&self.url, kind))
            }
            _ => Ok(None),
        }
    }

    /// Remembers the calls that a stream shows before its last event.
    fn read_streamed(&mut self, event: &ResponseEvent) -> Result<(), ModelError> {
        match (event.kind.as_str(), &event.item) {
            ("response.output_item.added", Some(item)) => {
                // What is missing in it follows in later events.
                let item: Value = serde_json::from_str(item.get()).unwrap_or_default();
                if let ("function_call", Some(call_id), Some(name)) = (
                    item["type"].as_str().unwrap_or_default(),
                    item["call_id"].as_str(),
                    item["name"].as_str(),
                ) && let Some(key) = item_key(&item["id"], &event.output_index)
                {
                    self.started.insert(key, (call_id.to_owned(), name.to_owned()));
                }
            }
            ("response.function_call_arguments.done", _) => {
                let key = item_key(&event.item_id, &event.output_index);
                if let Some((call_id, name)) = key.as_ref().and_then(|key| self.started.remove(key)) {
                    let arguments = event.arguments.as_str().unwrap_or_default().to_owned();
                    self.add_streamed(key, call_id, name, arguments);
                }
            }
            ("response.output_item.done", Some(item)) => {
                if let Some(OutputItem::FunctionCall { id, call_id, name, arguments }) =
                    self.read_item(item)?
                {
                    self.ids.insert(call_id.clone());
                    self.add_streamed(item_key(&id, &event.output_index), call_id, name, arguments);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_streamed(&mut self, key: Option<String>, id: String, name: String, arguments: String) {
        if key.is_none_or(|key| self.streamed_keys.insert(key)) {
            let index = self.streamed.started_calls();
            self.streamed.add(&ReplyDelta::ToolCallStarted { index, id, name });
            self.streamed.add(&ReplyDelta::ToolCallArguments { index, text: arguments });
        }
    }

    fn add_part(&mut self, part: OutputPart, sink: &mut dyn ReplySink) {
        if let OutputPart::OutputText { text } | OutputPart::Refusal { refusal: text } = part {
            self.assembly.pass_on(ReplyDelta::Text { text }, sink);
        }
    }
}

/// Returns what identifies an item of the output in a stream: its index, or its id if a gateway leaves the index out. Some
/// gateways change the id from event to event.
fn item_key(id: &Value, index: &Value) -> Option<String> {
    [index, id].into_iter().find(|key| !key.is_null()).map(Value::to_string)
}

impl ReplyParser for ResponsesParser {
    fn url(&self) -> &str {
        &self.url
    }

    fn handle_event(&mut self, data: &str, sink: &mut dyn ReplySink) -> Result<bool, ModelError> {
        let invalid = |error: serde_json::Error| unreadable_reply_error(&self.url, error, data);
        let event: ResponseEvent = serde_json::from_str(data).map_err(invalid)?;
        self.check_errors(&event, data)?;
        self.read_streamed(&event)?;
        match (event.kind.as_str(), event.response) {
            ("response.completed" | "response.incomplete" | "response.failed", Some(response)) => {
                self.add_response(response, sink)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn check_late_event(&self, data: &str) -> Result<(), ModelError> {
        let Ok(event) = serde_json::from_str::<ResponseEvent>(data) else { return Ok(()) };
        self.check_errors(&event, data)?;
        let outputs = event.response.iter().flat_map(|response| &response.output);
        let mut items = outputs.chain(&event.item).map(|item| self.read_item(item));
        match items.any(|item| matches!(item, Err(_) | Ok(Some(OutputItem::FunctionCall { .. })))) {
            true => Err(late_call_error(&self.url, data)),
            false => Ok(()),
        }
    }

    fn handle_complete(&mut self, body: &str, sink: &mut dyn ReplySink) -> Result<(), ModelError> {
        let invalid = |error: serde_json::Error| unreadable_reply_error(&self.url, error, body);
        let response: ResponseDocument = serde_json::from_str(body).map_err(invalid)?;
        self.check_response(&response)?;
        self.add_response(response, sink)
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some()
    }

    fn assembly(&self) -> &ReplyAssembler {
        if self.assembly.is_empty() { &self.streamed } else { &self.assembly }
    }

    fn reply(&mut self) -> Result<(ModelReply, Option<TokenUsage>), ModelError> {
        let Some(stop) = self.stop.take() else { return Err(truncated_reply_error(&self.url)) };
        let (stop, model) = (stop, self.model.take());
        Ok((ModelReply { stop, model, ..self.assembly.clone().into_reply() }, self.usage))
    }
}
