//! Chat completions as servers send them: streamed chunks or a complete response.

use serde_json::{Value, json};

use crate::reply::FakeReply;

/// Builder of a streamed completion.
#[derive(Debug, Clone)]
pub struct ChatCompletion {
    chunks: Vec<Value>,
}

/// Number of characters per chunk.
const PIECE_CHARS: usize = 3;

impl ChatCompletion {
    /// Creates a completion without content.
    pub fn new() -> ChatCompletion {
        ChatCompletion { chunks: vec![chunk(json!({"role": "assistant", "content": ""}), None)] }
    }

    /// Adds text, in pieces. After the result of a tool, the first of them has the role of the agent.
    pub fn text(mut self, text: &str) -> ChatCompletion {
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(PIECE_CHARS) {
            let mut delta = json!({"content": piece.iter().collect::<String>()});
            if self.chunks.last().is_some_and(|last| last["choices"][0]["delta"]["role"] == "tool") {
                delta["role"] = json!("assistant");
            }
            self.chunks.push(chunk(delta, None));
        }
        self
    }

    /// Adds a tool call; its arguments are sent in pieces.
    pub fn tool(mut self, index: usize, id: &str, name: &str, arguments: &Value) -> ChatCompletion {
        let begin = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        self.chunks.push(chunk(json!({"tool_calls": [begin]}), None));
        let arguments: Vec<char> = arguments.to_string().chars().collect();
        for piece in arguments.chunks(PIECE_CHARS) {
            let piece = json!({"index": index, "function": {"arguments": piece.iter().collect::<String>()}});
            self.chunks.push(chunk(json!({"tool_calls": [piece]}), None));
        }
        self
    }

    /// Adds a chunk as it is.
    pub fn chunk(mut self, chunk: Value) -> ChatCompletion {
        self.chunks.push(chunk);
        self
    }

    /// Ends the completion with a reason and token usage.
    pub fn finish(mut self, reason: &str) -> ChatCompletion {
        self.chunks.push(chunk(json!({}), Some(reason)));
        let usage = json!({"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21});
        self.chunks.push(
            json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage}),
        );
        self
    }

    /// Returns the stream so far, without its end.
    pub fn without_end(self) -> FakeReply {
        self.chunks.into_iter().fold(FakeReply::sse(), FakeReply::event)
    }

    /// Returns the complete stream.
    pub fn streamed(self) -> FakeReply {
        self.without_end().bytes("data: [DONE]\n\n")
    }
}

impl Default for ChatCompletion {
    fn default() -> Self {
        ChatCompletion::new()
    }
}

impl From<ChatCompletion> for FakeReply {
    fn from(completion: ChatCompletion) -> FakeReply {
        completion.streamed()
    }
}

/// Returns a complete response with this message.
pub fn complete_reply(message: Value, finish_reason: &str) -> FakeReply {
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason});
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21});
    FakeReply::json(
        200,
        &json!({"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": usage}),
    )
}

/// Returns a complete response with this text.
pub fn text_reply(text: &str) -> FakeReply {
    complete_reply(json!({"role": "assistant", "content": text}), "stop")
}

/// Returns a chunk of the only choice.
pub fn chunk(delta: Value, finish_reason: Option<&str>) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]})
}
