//! Estimated token usage.

use serde_json::Value;

use super::{ModelMessage, ModelReply, ModelRequest, ModelTool, ModelToolCall, TokenUsage};

impl TokenUsage {
    /// Estimates the usage: one token per four bytes of text, rounded up, deterministic. Suitable for
    /// spotting growth, not for billing.
    pub fn estimate(request: &ModelRequest, reply: &ModelReply) -> Self {
        let system = request.system.as_deref().map_or(0, str::len);
        let messages: usize = request.messages.iter().map(message_bytes).sum();
        let tool_bytes =
            |tool: &ModelTool| tool.name.len() + tool.description.len() + json_bytes(&tool.input_schema);
        let tools: usize = request.tools.iter().map(tool_bytes).sum();
        let said = reply.text.len() + reply.reasoning.len();
        let called: usize = reply.tool_calls.iter().map(call_bytes).sum();
        TokenUsage {
            input_tokens: tokens(system + messages + tools),
            output_tokens: tokens(said + called),
            cached_tokens: 0,
            estimated: true,
            unreported: false,
        }
    }

    /// Returns the counts of a provider, or an estimate if it sent none.
    pub(crate) fn reported_or_estimate(
        reported: Option<TokenUsage>,
        request: &ModelRequest,
        reply: &ModelReply,
    ) -> Self {
        // A reply that is not empty has tokens: servers that do not count report zero.
        let is_empty = reply.text.is_empty() && reply.tool_calls.is_empty();
        let counted = reported.filter(|usage| usage.output_tokens > 0 || is_empty);
        counted.unwrap_or_else(|| TokenUsage { unreported: true, ..TokenUsage::estimate(request, reply) })
    }
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

fn message_bytes(message: &ModelMessage) -> usize {
    let calls: usize = message.tool_calls().iter().map(call_bytes).sum();
    message.text().len() + calls
}

fn call_bytes(call: &ModelToolCall) -> usize {
    call.name.len() + json_bytes(&call.arguments)
}

/// Returns the length of a value as JSON.
fn json_bytes(value: &Value) -> usize {
    struct ByteCounter(usize);

    impl std::io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut counter = ByteCounter(0);
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}
