//! Tests with split streams, which must read the same, and truncated streams, which must never count as
//! complete.

use bytes::Bytes;
use futures_util::stream;
use proptest::prelude::*;

use super::anthropic::parser::AnthropicParser;
use super::connection::{CallIds, ReplyParser, read_events};
use super::openai::parser::OpenAiParser;
use crate::{ModelError, ModelErrorKind, ModelReply, ModelRequest, ReplyDelta, TokenUsage};

const OPENAI: &str = concat!(
    ": a comment\r\n\r\n",
    "data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"Hm.\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Schöne Schuhe 👟\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"find\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"q\\\":\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"now\"}},",
    "{\"index\":0,\"function\":{\"arguments\":\"\\\"é\\\"}\"}}]}}]}\r\r",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":3}}}\n\n",
    "data: [DONE]\n\n",
);

const ANTHROPIC: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m-1\",\"usage\":{\"input_tokens\":6,\"cache_read_input_tokens\":3,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"Hm.\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"xyz\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"Schöne Schuhe 👟\"}}\r\n\r\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"find\",\"input\":{}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"q\\\":\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\\\"é\\\"}\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":2}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":3,\"content_block\":{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"now\",\"input\":{}}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":3}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":4}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

type ParsedReply = Result<(ModelReply, Option<TokenUsage>), ModelError>;

/// Reads a stream in the given pieces; returns the result and the streamed deltas.
fn read(mut reading: impl ReplyParser, pieces: &[&[u8]]) -> (ParsedReply, Vec<ReplyDelta>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut seen = Vec::new();
    let pieces: Vec<Result<Bytes, ModelError>> =
        pieces.iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let mut sink = |delta| seen.push(delta);
    let outcome = match runtime.block_on(read_events(stream::iter(pieces), &mut reading, &mut sink)) {
        Ok(()) => reading.reply(),
        Err(error) => Err(error),
    };
    (outcome, seen)
}

fn openai(pieces: &[&[u8]]) -> (ParsedReply, Vec<ReplyDelta>) {
    read(OpenAiParser::new("u".into(), CallIds::Unique(&ModelRequest::default())), pieces)
}

fn anthropic(pieces: &[&[u8]]) -> (ParsedReply, Vec<ReplyDelta>) {
    read(AnthropicParser::new("u".into(), CallIds::Unique(&ModelRequest::default())), pieces)
}

type ReadFn = fn(&[&[u8]]) -> (ParsedReply, Vec<ReplyDelta>);

const PROTOCOLS: [(&str, ReadFn); 2] = [(OPENAI, openai), (ANTHROPIC, anthropic)];

#[test]
fn protocols_yield_equal_replies() {
    let [(one, _), (other, _)] = PROTOCOLS.map(|(stream, read)| read(&[stream.as_bytes()]));
    let (reply, usage) = one.unwrap();
    assert_eq!((reply.text.as_str(), reply.reasoning.as_str()), ("Schöne Schuhe 👟", "Hm."));
    assert_eq!(reply.tool_calls[0].arguments, serde_json::json!({"q": "é"}));
    assert_eq!(reply.tool_calls[1].arguments, serde_json::json!({}));
    let expected =
        TokenUsage { input_tokens: 9, output_tokens: 4, cached_tokens: 3, ..TokenUsage::default() };
    assert_eq!(usage, Some(expected));
    // What goes back to a provider has its form.
    let common = |reply: ModelReply| ModelReply { provider_parts: None, ..reply };
    let (other, other_usage) = other.unwrap();
    assert_eq!((common(other), other_usage), (common(reply), usage));
}

#[test]
fn any_single_split_reads_the_same() {
    for (stream, read) in PROTOCOLS {
        let bytes = stream.as_bytes();
        let whole = read(&[bytes]);
        for at in 0..=bytes.len() {
            assert_eq!(read(&[&bytes[..at], &bytes[at..]]), whole, "cut at {at}");
        }
        assert_eq!(read(&bytes.chunks(1).collect::<Vec<_>>()), whole);
    }
}

#[test]
fn truncated_stream_is_complete_or_an_error() {
    for (stream, read) in PROTOCOLS {
        let bytes = stream.as_bytes();
        let (whole, seen) = read(&[bytes]);
        let whole = whole.unwrap().0;
        for at in 0..bytes.len() {
            let (outcome, seen_before) = read(&[&bytes[..at]]);
            assert!(seen.starts_with(&seen_before), "cut off at {at}");
            match outcome {
                // The finish reason had arrived; only usage may be missing.
                Ok((reply, _)) => assert_eq!(reply, whole, "cut off at {at}"),
                Err(error) => assert_eq!(error.kind, ModelErrorKind::Network, "cut off at {at}: {error}"),
            }
        }
    }
}

proptest! {
    #[test]
    fn any_splits_read_the_same(cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        for (stream, read) in PROTOCOLS {
            let bytes = stream.as_bytes();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&pieces), read(&[bytes]));
        }
    }

    #[test]
    fn streamed_deltas_match_reply(events in proptest::collection::vec(event(), 0..12)) {
        let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let (outcome, seen) = openai(&[stream.as_bytes(), b"data: [DONE]\n\n"]);
        if let Ok((reply, _)) = outcome {
            let mut assembly = crate::ReplyAssembler::default();
            seen.iter().for_each(|delta| assembly.add(delta));
            let watched = assembly.into_reply();
            prop_assert_eq!(watched.text, reply.text);
            prop_assert_eq!(&watched.tool_calls, &reply.tool_calls);
            // No call is lost, and call ids are unique.
            let mut ids: Vec<&str> = reply.tool_calls.iter().map(|call| call.id.as_str()).collect();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), reply.tool_calls.len());
            let names = |text: &str| text.matches("\"name\":\"").count();
            prop_assert!(reply.tool_calls.len() <= names(&stream));
            prop_assert!(names(&stream) == 0 || !reply.tool_calls.is_empty());
        }
    }
}

/// Generates events of a server that numbers its calls in unusual ways.
fn event() -> impl Strategy<Value = String> {
    let part = |key: &'static str, values: &'static [&'static str]| {
        proptest::option::of(proptest::sample::select(values)).prop_map(move |value| match value {
            Some(value) => format!("\"{key}\":{value},"),
            None => String::new(),
        })
    };
    let call = (
        part("index", &["0", "1", "2"]),
        part("id", &["\"a\"", "\"b\"", "\"\"", "null"]),
        part("name", &["\"f\"", "\"g\""]),
        part("arguments", &["\"\"", "\"{\"", "\"}\"", "{}", "null"]),
    );
    let call = call.prop_map(|(index, id, name, arguments)| {
        let function = format!("{name}{arguments}");
        format!("{{{index}{id}\"function\":{{{}}}}}", function.trim_end_matches(','))
    });
    let calls = proptest::collection::vec(call, 0..3);
    (calls, part("content", &["\"x\"", "\"\"", "null", "[{\"type\":\"text\",\"text\":\"y\"}]"])).prop_map(
        |(calls, content)| {
            format!("{{\"choices\":[{{\"delta\":{{{content}\"tool_calls\":[{}]}}}}]}}", calls.join(","))
        },
    )
}
