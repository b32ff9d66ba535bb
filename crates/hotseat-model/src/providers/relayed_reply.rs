//! Reads the answer of a provider that passed through a relay, or that a recording contains.

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use super::Dialect;
use super::anthropic::parser::AnthropicParser;
use super::connection::{CallIds, ReplyParser, invalid_reply_error, read_events};
use super::openai::parser::OpenAiParser;
use super::responses::ResponsesParser;
use crate::{DiscardSink, ModelError, ModelErrorKind, ModelReply, ModelRequest, TokenUsage};

/// Size of the pieces in which an answer is read.
const PIECE_BYTES: usize = 16 * 1024;
/// What messages call the sender of an answer.
const SENDER: &str = "the provider";
/// The byte order mark, which clients ignore.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads a complete answer: a JSON document, or a stream of events. Fails if the answer is incomplete,
/// reports a failure or does not fit the protocol. The error has what a stream contains until then.
pub(crate) async fn read_relayed_reply(
    dialect: Dialect,
    body: &[u8],
    request: &ModelRequest,
) -> Result<ModelReply, ModelError> {
    let sender = SENDER.to_owned();
    match dialect {
        Dialect::ChatCompletions => read(OpenAiParser::new(sender, CallIds::AsSent), body, request).await,
        Dialect::Messages => read(AnthropicParser::new(sender, CallIds::AsSent), body, request).await,
        Dialect::Responses => read(ResponsesParser::new(sender), body, request).await,
    }
}

async fn read(
    mut parser: impl ReplyParser,
    body: &[u8],
    request: &ModelRequest,
) -> Result<ModelReply, ModelError> {
    match read_body(&mut parser, body).await.and_then(|()| parser.reply()) {
        Ok((mut reply, usage)) => {
            reply.usage = TokenUsage::reported_or_estimate(usage, request, &reply);
            Ok(reply)
        }
        Err(error) => {
            let arrived = parser.assembly();
            let partial = (!arrived.is_empty()).then(|| Box::new(arrived.clone().into_reply()));
            Err(ModelError { partial, ..error })
        }
    }
}

async fn read_body(parser: &mut impl ReplyParser, body: &[u8]) -> Result<(), ModelError> {
    let text = std::str::from_utf8(without_mark(body)).map_err(|error| {
        ModelError::new(ModelErrorKind::Decode, format!("{SENDER} sent no text: {error}"))
    })?;
    if is_document(body) {
        return parser.handle_complete(text, &mut DiscardSink);
    }
    // A client may find calls in what is read neither as a document nor as events.
    if !is_event_stream(text) {
        return Err(invalid_reply_error(SENDER, "it is neither a JSON object nor a stream of events", text));
    }
    // Between the pieces, others on this thread get their turn.
    let pieces = stream::iter(body.chunks(PIECE_BYTES)).then(async |piece| {
        tokio::task::yield_now().await;
        Ok(Bytes::copy_from_slice(piece))
    });
    let read = read_events(pieces, parser, &mut DiscardSink).await;
    // No connection breaks here. A client may find calls in the lines of an incomplete event.
    read.map_err(|error| match error.kind {
        ModelErrorKind::Network => ModelError { kind: ModelErrorKind::Decode, ..error },
        _ => error,
    })
}

/// True if an answer, or a part of it, is a JSON document and no stream of events.
pub(crate) fn is_document(body: &[u8]) -> bool {
    without_mark(body).trim_ascii_start().starts_with(b"{")
}

/// True if an answer has more than blank lines and comments of an event stream.
pub(crate) fn has_content(body: &[u8]) -> bool {
    let mut lines = without_mark(body).split(|byte| matches!(byte, b'\n' | b'\r'));
    lines.any(|line| !line.trim_ascii().is_empty() && !line.starts_with(b":"))
}

fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body)
}

/// True if the text begins with a field or a comment of an event stream, or is blank.
fn is_event_stream(text: &str) -> bool {
    let field = text.trim_start().split([':', '\n', '\r']).next();
    matches!(field, None | Some("" | "data" | "event" | "id" | "retry"))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use serde_json::{Value, json};

    use super::*;
    use crate::StopReason;

    /// Streams a document as its protocol does.
    fn streamed(events: &[Value]) -> Vec<u8> {
        events.iter().flat_map(|event| format!("data: {event}\n\n").into_bytes()).collect()
    }

    async fn read(dialect: Dialect, body: &[u8]) -> Result<ModelReply, ModelError> {
        read_relayed_reply(dialect, body, &ModelRequest::default()).await
    }

    /// Others on the thread get their turn before each piece of a long answer.
    #[test]
    fn a_long_answer_is_read_in_pieces() {
        let body = b"\n".repeat(10 * PIECE_BYTES);
        let mut reading = pin!(read(Dialect::ChatCompletions, &body));
        let mut context = Context::from_waker(Waker::noop());
        let turns = (0..).take_while(|_| reading.as_mut().poll(&mut context).is_pending()).count();
        assert_eq!(turns, 10);
    }

    #[tokio::test]
    async fn tokens_and_calls_of_all_protocols() {
        let call = json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"id\":7}"}});
        let choice = |member: &str| json!([{"index": 0, "finish_reason": "tool_calls", member: {"tool_calls": [call]}}]);
        let usage = json!({"prompt_tokens": 30, "completion_tokens": 10});
        let chat = json!({"choices": choice("message"), "usage": usage});
        let chunks = [json!({"choices": choice("delta")}), json!({"choices": [], "usage": usage})];
        let usage = json!({"input_tokens": 30, "output_tokens": 10});
        let output = json!([{"type": "reasoning"}, {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{\"id\":7}"}]);
        let responses = json!({"object": "response", "status": "completed", "error": null, "output": output, "usage": usage});
        let items = [
            json!({"type": "response.output_item.added", "item": output[1]}),
            json!({"type": "response.completed", "response": responses}),
        ];
        let content = json!([{"type": "tool_use", "id": "c1", "name": "find", "input": {"id": 7}}]);
        let messages =
            json!({"type": "message", "content": content, "stop_reason": "tool_use", "usage": usage});
        let blocks = [
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 30, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c1", "name": "find", "input": {}}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"id\":7}"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 10}}),
            json!({"type": "message_stop"}),
        ];
        for (dialect, document, events) in [
            (Dialect::ChatCompletions, chat, chunks.as_slice()),
            (Dialect::Responses, responses, &items),
            (Dialect::Messages, messages, &blocks),
        ] {
            for body in [document.to_string().into_bytes(), streamed(events)] {
                let reply = read(dialect, &body).await.expect("a complete reply");
                assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (30, 10));
                assert!(!reply.usage.estimated);
                assert_eq!(reply.stop, StopReason::ToolUse);
                let calls: Vec<_> =
                    reply.tool_calls.iter().map(|call| (&*call.id, &*call.name, &call.arguments)).collect();
                assert_eq!(calls, [("c1", "find", &json!({"id": 7}))]);
            }
            let cut = streamed(&events[..events.len() - 1]);
            let is_complete = dialect == Dialect::ChatCompletions || dialect == Dialect::Messages;
            assert_eq!(read(dialect, &cut).await.is_ok(), is_complete, "{dialect:?}");
            for broken in ["", "no events", "data: {\n\n", "{\"choices\": 3}", "\u{0}"] {
                assert!(read(dialect, broken.as_bytes()).await.is_err(), "{dialect:?}: {broken:?}");
            }
        }
        assert!(read(Dialect::Messages, &[0xff]).await.is_err());
    }

    #[tokio::test]
    async fn ends_of_responses() {
        let end = |members: Value| async move {
            let mut document = json!({"object": "response", "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hi."}]}]});
            document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            read(Dialect::Responses, document.to_string().as_bytes())
                .await
                .map(|reply| (reply.text, reply.stop))
        };
        let text = || "Hi.".to_owned();
        assert_eq!(end(json!({"status": "completed"})).await.unwrap(), (text(), StopReason::EndTurn));
        let cut = json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}});
        assert_eq!(end(cut).await.unwrap(), (text(), StopReason::MaxTokens));
        assert!(end(json!({"status": "failed"})).await.is_err());
        assert!(end(json!({"status": "failed", "error": {"message": "overloaded"}})).await.is_err());
    }
}
