//! One call to a provider, from the body of the request to the reply.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, pin_mut};
use serde_json::{Map, Value};
use sse_stream::SseByteStream;
use tokio::time::timeout;

use super::http::Connection;
use crate::{Assembly, ErrorKind, Message, ModelError, Reply, Request, Sink, Usage};

/// How long the end of a body may take after its last event.
const END_OF_BODY: Duration = Duration::from_millis(20);

/// Reads what one provider sends. It does no I/O, so it can be fed anything.
pub(super) trait Reading: Send {
    /// Takes the data of the next event and hands the pieces of the reply on. True if it was the last event.
    ///
    /// # Errors
    /// When the event cannot be understood, or tells of a failure.
    fn event(&mut self, data: &str, sink: &mut dyn Sink) -> Result<bool, ModelError>;

    /// Takes a whole reply that was not streamed.
    ///
    /// # Errors
    /// When it cannot be understood, or tells of a failure.
    fn whole(&mut self, body: &str, sink: &mut dyn Sink) -> Result<(), ModelError>;

    /// Whether the provider has said why the reply ends: then it is whole, and only figures may follow.
    fn has_ended(&self) -> bool;

    /// What has arrived.
    fn assembly(&self) -> &Assembly;

    /// The whole reply, after the last event. A usage that the provider did not give is none.
    ///
    /// # Errors
    /// When it is not whole.
    fn reply(&mut self) -> Result<(Reply, Option<Usage>), ModelError>;
}

/// Sends a request and reads the reply.
pub(super) async fn call(
    connection: &Connection,
    body: &Value,
    request: &Request,
    mut reading: impl Reading,
    sink: &mut dyn Sink,
) -> Result<Reply, ModelError> {
    let read = read(connection, body, &mut reading, sink).await;
    let whole = match read {
        Ok(()) => reading.reply(),
        Err(error) => Err(error),
    };
    match whole {
        Ok((mut reply, usage)) => {
            reply.usage = usage.unwrap_or_else(|| Usage::estimate(request, &reply));
            Ok(reply)
        }
        Err(mut error) => {
            let arrived = reading.assembly();
            error.partial = (!arrived.is_empty()).then(|| Box::new(arrived.clone().reply()));
            Err(connection.redact(error))
        }
    }
}

async fn read(
    connection: &Connection,
    body: &Value,
    reading: &mut impl Reading,
    sink: &mut dyn Sink,
) -> Result<(), ModelError> {
    let answer = connection.post(body).await?;
    // A server that does not stream answers with a document, whatever it was asked for.
    if body["stream"] != true || answer.is_json() {
        return reading.whole(&answer.text().await?, sink);
    }
    events(answer.pieces(), reading, sink).await
}

/// Reads a stream of server-sent events up to the last one.
pub(super) async fn events(
    pieces: impl Stream<Item = Result<Bytes, ModelError>>,
    reading: &mut impl Reading,
    sink: &mut dyn Sink,
) -> Result<(), ModelError> {
    let events = SseByteStream::new(pieces);
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            // Some servers hang up as soon as they have said everything.
            Err(_) if reading.has_ended() => return Ok(()),
            Err(error) => return Err(stream_error(error)),
        };
        if let Some(data) = event.data
            && reading.event(&data, sink)?
        {
            // A body that is read to its end leaves the connection to the next call. It is not worth a wait.
            let _ = timeout(END_OF_BODY, events.next()).await;
            return Ok(());
        }
    }
    Ok(())
}

fn stream_error(error: sse_stream::Error) -> ModelError {
    match error {
        sse_stream::Error::Body(error) => match error.downcast::<ModelError>() {
            Ok(error) => *error,
            Err(error) => ModelError::new(ErrorKind::Network, error.to_string()),
        },
        error => ModelError::new(ErrorKind::Decode, format!("the stream cannot be read: {error}")),
    }
}

/// The messages with the results of tools directly behind the calls, where every provider wants them: before what
/// else was said until the model's next reply.
pub(super) fn results_first(messages: &[Message]) -> Vec<&Message> {
    let is_reply = |message: &Message| matches!(message, Message::Assistant { .. });
    let mut ordered: Vec<&Message> = Vec::with_capacity(messages.len());
    for part in messages.chunk_by(|one, other| !is_reply(one) && !is_reply(other)) {
        let (results, others): (Vec<&Message>, Vec<&Message>) =
            part.iter().partition(|message| matches!(message, Message::Tool(_)));
        ordered.extend(results.into_iter().chain(others));
    }
    ordered
}

/// Adds the further members of a body: they replace others, and `null` takes one away.
pub(super) fn extend(mut body: Map<String, Value>, extra: &Map<String, Value>) -> Value {
    for (key, value) in extra {
        match value {
            Value::Null => drop(body.shift_remove(key)),
            value => drop(body.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(body)
}

/// An answer that cannot be understood.
pub(super) fn not_understood(url: &str, what: &str, data: &str) -> ModelError {
    let mut error =
        ModelError::new(ErrorKind::Decode, format!("the reply of {url} cannot be understood: {what}"));
    error.body = super::failure::excerpt(data);
    error
}

/// A stream that ended too early.
pub(super) fn cut(url: &str) -> ModelError {
    let message = format!("{url} ended its reply without saying so: the reply may be cut");
    ModelError::new(ErrorKind::Network, message)
}
