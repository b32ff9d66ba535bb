//! A call to a provider: sends the request and reads the reply.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, pin_mut};
use hotseat_document::json::JsonReadError;
use hotseat_http::{SseDecoder, SseEvent};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::failure;
use super::http::ProviderConnection;
use crate::{
    ModelError, ModelErrorKind, ModelMessage, ModelReply, ModelRequest, ReplyAssembler, ReplySink,
    TokenUsage, reported_error,
};

/// Maximum wait for the end of the body after its last event.
const BODY_END_TIMEOUT: Duration = Duration::from_millis(20);

/// Parses the output of one provider. It does no I/O.
pub(in crate::providers) trait ReplyParser: Send {
    /// Returns the URL of the provider, for errors.
    fn url(&self) -> &str;

    /// Handles the data of one event and passes pieces of the reply to `sink`. Returns true for the last
    /// event. Fails if the event is invalid or reports a failure.
    fn handle_event(&mut self, data: &str, sink: &mut dyn ReplySink) -> Result<bool, ModelError>;

    /// Checks an event after the last one. Fails if it reports a failure, or has a call of a tool: a client that reads on
    /// carries it out.
    fn check_late_event(&self, data: &str) -> Result<(), ModelError>;

    /// Handles a complete reply that was not streamed. Fails if it is invalid or reports a failure.
    fn handle_complete(&mut self, body: &str, sink: &mut dyn ReplySink) -> Result<(), ModelError>;

    /// Returns true if the provider has sent a finish reason: the reply is complete, only usage may follow.
    fn has_ended(&self) -> bool;

    /// Returns the pieces so far.
    fn assembly(&self) -> &ReplyAssembler;

    /// Returns the complete reply after the last event. The usage is None if the provider sent none. Fails if
    /// the reply is incomplete.
    fn reply(&mut self) -> Result<(ModelReply, Option<TokenUsage>), ModelError>;
}

/// Sends a request and reads the reply.
pub(in crate::providers) async fn call(
    connection: &ProviderConnection,
    body: &Value,
    request: &ModelRequest,
    mut reading: impl ReplyParser,
    sink: &mut dyn ReplySink,
) -> Result<ModelReply, ModelError> {
    let read = read(connection, body, &mut reading, sink).await;
    let whole = match read {
        Ok(content_type) => {
            let has_ended = reading.has_ended();
            let mut reply = reading.reply();
            if let (false, Err(error), Some(content_type)) = (has_ended, &mut reply, content_type) {
                error.message.push_str(&format!(
                    "; its content type is {content_type:?}, expected \"text/event-stream\" or \"application/json\""
                ));
            }
            reply
        }
        Err(error) => Err(error),
    };
    match whole {
        Ok((mut reply, usage)) => {
            for call in &mut reply.tool_calls {
                call.provider_id = Some(call.id.clone());
            }
            reply.usage = TokenUsage::reported_or_estimate(usage, request, &reply);
            Ok(reply)
        }
        Err(mut error) => {
            let arrived = reading.assembly();
            error.partial = (!arrived.is_empty()).then(|| Box::new(arrived.clone().into_reply()));
            Err(connection.redact(error))
        }
    }
}

/// Reads the reply. Returns the content type of a stream that is of another one than a stream has.
async fn read(
    connection: &ProviderConnection,
    body: &Value,
    reading: &mut impl ReplyParser,
    sink: &mut dyn ReplySink,
) -> Result<Option<String>, ModelError> {
    let answer = connection.post(body).await?;
    // Servers without streaming answer with a JSON document, even if a stream was requested.
    if body["stream"] != true || answer.is_json() {
        reading.handle_complete(&answer.text().await?, sink)?;
        return Ok(None);
    }
    answer.ensure_stream()?;
    let content_type = answer.content_type();
    read_events(answer.pieces(), reading, sink).await?;
    Ok(Some(content_type).filter(|content_type| content_type != "text/event-stream"))
}

/// Reads a stream of server-sent events up to the last one.
pub(in crate::providers) async fn read_events(
    pieces: impl Stream<Item = Result<Bytes, ModelError>>,
    reading: &mut impl ReplyParser,
    sink: &mut dyn ReplySink,
) -> Result<(), ModelError> {
    pin_mut!(pieces);
    let mut decoder = SseDecoder::default();
    while let Some(piece) = pieces.next().await {
        let piece = match piece {
            Ok(piece) => piece,
            // Some servers close the connection right after the last event.
            Err(_) if reading.has_ended() => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut outcome = Ok(false);
        let mut late = Ok(());
        let fed = decoder.feed(&piece, |event| match outcome {
            Ok(false) => outcome = read_event(reading, event, sink),
            Ok(true) if late.is_ok() => late = check_late_event(reading, event),
            Ok(true) | Err(_) => {}
        });
        let is_last = outcome?;
        fed.map_err(|error| {
            ModelError::new(ModelErrorKind::Decode, format!("an event of the stream {error}"))
        })?;
        if is_last {
            // Reading the body to its end makes the connection reusable, but is not worth a long wait.
            let rest = async {
                let mut check = |event: SseEvent<'_>| {
                    if late.is_ok() {
                        late = check_late_event(reading, event);
                    }
                };
                while let Some(piece) = pieces.next().await {
                    let Ok(piece) = piece else { return };
                    if decoder.feed(&piece, &mut check).is_err() {
                        return;
                    }
                }
                decoder.finish(check);
                if late.is_ok() {
                    late = check_unfinished(reading, &decoder);
                }
            };
            let _ = timeout(BODY_END_TIMEOUT, rest).await;
            return late;
        }
    }
    // Some servers omit the last empty line.
    let mut outcome = Ok(());
    decoder.finish(|event| outcome = read_event(reading, event, sink).map(drop));
    outcome.and_then(|()| check_unfinished(reading, &decoder))
}

/// Fails if a stream has ended in the middle of an event, which may be a call of a tool.
fn check_unfinished(reading: &impl ReplyParser, decoder: &SseDecoder) -> Result<(), ModelError> {
    let Some(unfinished) = decoder.unfinished() else { return Ok(()) };
    let url = reading.url();
    let message =
        format!("{url} closed the stream after an incomplete event, without an empty line after it");
    let mut error = ModelError::new(ModelErrorKind::Network, message);
    error.body = failure::excerpt(&unfinished);
    Err(error)
}

/// Handles an event. The data of an event named `error` is the error, or contains it as `error`.
fn read_event(
    reading: &mut impl ReplyParser,
    event: SseEvent<'_>,
    sink: &mut dyn ReplySink,
) -> Result<bool, ModelError> {
    match event.is_error {
        true => Err(named_error(reading, event)),
        false => reading.handle_event(event.data, sink),
    }
}

/// Checks an event after the last one.
fn check_late_event(reading: &impl ReplyParser, event: SseEvent<'_>) -> Result<(), ModelError> {
    match event.is_error {
        true => Err(named_error(reading, event)),
        false => reading.check_late_event(event.data),
    }
}

/// Returns the error in an event named `error`.
fn named_error(reading: &impl ReplyParser, event: SseEvent<'_>) -> ModelError {
    let told: Value = serde_json::from_str(event.data).unwrap_or_else(|_| event.data.into());
    failure::from_error_event(reading.url(), reported_error(told.get("error")).unwrap_or(&told))
}

/// Ids that a provider gave its calls, by the ids in the messages. A provider accepts the results of its calls under these only.
pub(in crate::providers) struct ProviderIds<'m>(HashMap<&'m str, &'m str>);

impl<'m> ProviderIds<'m> {
    /// Collects the ids of the calls in these messages.
    pub(in crate::providers) fn new(messages: &'m [ModelMessage]) -> Self {
        let calls = messages.iter().flat_map(ModelMessage::tool_calls);
        ProviderIds(calls.filter_map(|call| Some((call.id.as_str(), call.provider_id.as_deref()?))).collect())
    }

    /// Returns the id that the provider gave a call, or the id itself.
    pub(in crate::providers) fn restore<'i>(&self, id: &'i str) -> &'i str
    where
        'm: 'i,
    {
        self.0.get(id).copied().unwrap_or(id)
    }
}

/// Returns the messages with tool results moved directly behind their calls, as providers require.
pub(in crate::providers) fn results_first(messages: &[ModelMessage]) -> Vec<&ModelMessage> {
    let is_reply = |message: &ModelMessage| matches!(message, ModelMessage::Assistant { .. });
    let mut ordered: Vec<&ModelMessage> = Vec::with_capacity(messages.len());
    for part in messages.chunk_by(|one, other| !is_reply(one) && !is_reply(other)) {
        let (results, others): (Vec<&ModelMessage>, Vec<&ModelMessage>) =
            part.iter().partition(|message| matches!(message, ModelMessage::Tool(_)));
        ordered.extend(results.into_iter().chain(others));
    }
    ordered
}

/// Merges extra members into a body: they replace existing ones, and `null` removes one.
pub(in crate::providers) fn merge_extra(mut body: Map<String, Value>, extra: &Map<String, Value>) -> Value {
    for (key, value) in extra {
        match value {
            Value::Null => drop(body.shift_remove(key)),
            value => drop(body.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(body)
}

/// Creates the error for invalid output of a provider.
pub(in crate::providers) fn invalid_reply_error(url: &str, what: &str, data: &str) -> ModelError {
    let mut error = ModelError::new(ModelErrorKind::Decode, format!("the reply of {url} is invalid: {what}"));
    error.body = super::failure::excerpt(data);
    error
}

/// Creates the error for a reply that is no JSON, or lacks a member.
pub(in crate::providers) fn unreadable_reply_error(
    url: &str,
    error: serde_json::Error,
    data: &str,
) -> ModelError {
    match error.is_data() {
        true => invalid_reply_error(url, &error.to_string(), data),
        false => invalid_reply_error(url, &format!("it {}", JsonReadError::from(error)), data),
    }
}

/// Creates the error for a call of a tool in a form that is not read. Without it the call would be invisible.
pub(in crate::providers) fn unsupported_call_error(url: &str, kind: &str) -> ModelError {
    invalid_reply_error(url, &format!("it has a `{kind}`, which is not supported"), "")
}

/// Creates the error for a call of a tool after the last event of a reply.
pub(in crate::providers) fn late_call_error(url: &str, data: &str) -> ModelError {
    invalid_reply_error(url, "it has a tool call after its end", data)
}

/// Creates the error for a stream that ended too early.
pub(in crate::providers) fn truncated_reply_error(url: &str) -> ModelError {
    let message = format!("{url} closed the stream without an end marker: the reply may be incomplete");
    ModelError::new(ModelErrorKind::Network, message)
}
