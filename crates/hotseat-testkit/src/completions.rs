//! Chat completions as a server sends them: chunks of a stream, or a whole completion.

use serde_json::{Value, json};

use crate::reply::Reply;

/// A reply that is being written, as a stream of chunks.
#[derive(Debug, Clone)]
pub struct Completion {
    chunks: Vec<Value>,
}

/// Where the text of a piece is cut.
const PIECE: usize = 3;

impl Completion {
    /// A reply that says nothing yet.
    pub fn new() -> Completion {
        Completion { chunks: vec![chunk(json!({"role": "assistant", "content": ""}), None)] }
    }

    /// Says a text, in pieces.
    pub fn text(mut self, text: &str) -> Completion {
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(PIECE) {
            self.chunks.push(chunk(json!({"content": piece.iter().collect::<String>()}), None));
        }
        self
    }

    /// Calls a tool; the arguments come in pieces.
    pub fn tool(mut self, index: usize, id: &str, name: &str, arguments: &Value) -> Completion {
        let begin = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        self.chunks.push(chunk(json!({"tool_calls": [begin]}), None));
        let arguments: Vec<char> = arguments.to_string().chars().collect();
        for piece in arguments.chunks(PIECE) {
            let piece = json!({"index": index, "function": {"arguments": piece.iter().collect::<String>()}});
            self.chunks.push(chunk(json!({"tool_calls": [piece]}), None));
        }
        self
    }

    /// Adds a chunk as it is.
    pub fn chunk(mut self, chunk: Value) -> Completion {
        self.chunks.push(chunk);
        self
    }

    /// Ends for this reason, with figures.
    pub fn finish(mut self, reason: &str) -> Completion {
        self.chunks.push(chunk(json!({}), Some(reason)));
        let usage = json!({"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21});
        self.chunks.push(
            json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage}),
        );
        self
    }

    /// The stream so far, without its end.
    pub fn unfinished(self) -> Reply {
        self.chunks.into_iter().fold(Reply::sse(), Reply::event)
    }

    /// The whole stream.
    pub fn streamed(self) -> Reply {
        self.unfinished().bytes("data: [DONE]\n\n")
    }
}

impl Default for Completion {
    fn default() -> Self {
        Completion::new()
    }
}

impl From<Completion> for Reply {
    fn from(completion: Completion) -> Reply {
        completion.streamed()
    }
}

/// A whole completion with this message.
pub fn whole(message: Value, finish_reason: &str) -> Reply {
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason});
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21});
    Reply::json(
        200,
        &json!({"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": usage}),
    )
}

/// A chunk of the only choice.
pub fn chunk(delta: Value, finish_reason: Option<&str>) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]})
}
