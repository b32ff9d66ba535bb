//! Functions of scripts that answer tools of the test.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use hotseat_document::excerpt;
use hotseat_targets::message::{
    ToolFunction, ToolFunctionCall, ToolFunctionCaller, ToolReply, ToolReplyFuture,
};
use hotseat_trace::{AttemptFailure, FailureKind};
use serde_json::{Value, json};

use super::script_check::DEFAULT_FUNCTION_TIMEOUT;
use crate::scripts::{ScriptCapabilities, ScriptOutput};

/// Maximum number of characters of an unusable result in a message.
const MAX_SHOWN_CHARS: usize = 200;
/// Maximum size of the console output that is kept, in bytes. The agent decides how often a function is called.
const MAX_CONSOLE_BYTES: usize = 1024 * 1024;

/// Calls functions of scripts that answer tools in one conversation.
#[derive(Debug, Clone)]
pub struct ScriptToolFunctions {
    permissions: ScriptCapabilities,
    test_id: String,
    /// The MCP server whose tools are answered.
    server: Option<String>,
    console: Arc<Mutex<KeptConsole>>,
}

/// Console output of all calls in a conversation.
#[derive(Debug, Default)]
struct KeptConsole {
    lines: Vec<String>,
    bytes: usize,
}

impl KeptConsole {
    fn keep(&mut self, lines: Vec<String>) {
        for line in lines {
            if self.bytes > MAX_CONSOLE_BYTES {
                return;
            }
            // Accounts for the overhead of a line.
            self.bytes += line.len() + 32;
            self.lines.push(match self.bytes > MAX_CONSOLE_BYTES {
                true => {
                    format!("(more than {MAX_CONSOLE_BYTES} bytes of console output; the rest is omitted)")
                }
                false => line,
            });
        }
    }
}

impl ScriptToolFunctions {
    /// Creates the functions of a case, with their permissions.
    pub fn new(permissions: ScriptCapabilities, test_id: &str) -> ScriptToolFunctions {
        let test_id = test_id.to_string();
        ScriptToolFunctions { permissions, test_id, server: None, console: Arc::default() }
    }

    /// The functions for tools of an MCP server. Their console output is the same as that of the others.
    pub(super) fn for_server(&self, name: &str) -> ScriptToolFunctions {
        ScriptToolFunctions { server: Some(name.to_string()), ..self.clone() }
    }

    /// Takes the lines that the functions wrote to `console`.
    pub fn take_console(&self) -> Vec<String> {
        std::mem::take(&mut self.console.lock().unwrap_or_else(PoisonError::into_inner).lines)
    }

    async fn answer(
        self,
        function: ToolFunction,
        call: ToolFunctionCall,
    ) -> Result<ToolReply, AttemptFailure> {
        let ToolFunctionCall { tool, arguments, number, inputs } = call;
        let place = format!("named at {}", function.place);
        let failed = |reason: &dyn fmt::Display| {
            let of_server =
                self.server.as_ref().map_or_else(String::new, |name| format!(" of MCP server `{name}`"));
            let message = format!("{} did not answer {tool}{of_server}: {reason}", function.reference);
            AttemptFailure::new(FailureKind::ScriptError, message)
        };
        let found = self.permissions.find(&function.reference).await;
        let bound = found.map_err(|error| failed(&error).with_detail(place.as_str()))?;
        let context = json!({
            "tool": tool,
            "server": self.server,
            "number": number,
            "inputs": inputs,
            "test_id": self.test_id,
        });
        let ScriptOutput { result, console } =
            bound.call(vec![arguments, context], None, DEFAULT_FUNCTION_TIMEOUT).await;
        self.console.lock().unwrap_or_else(PoisonError::into_inner).keep(console);
        match result {
            Ok(returned) => read_reply(returned).map_err(|error| failed(&error).with_detail(place.as_str())),
            Err(error) => {
                let shown = error.diagnostic().to_detail();
                Err(failed(&error).with_detail(format!("{shown}\n{place}")))
            }
        }
    }
}

impl ToolFunctionCaller for ScriptToolFunctions {
    fn call(&self, function: ToolFunction, call: ToolFunctionCall) -> ToolReplyFuture {
        Box::pin(self.clone().answer(function, call))
    }
}

/// A function returned something else than an answer. Contains the start of the value.
#[derive(Debug, thiserror::Error)]
#[error("it returned {0}; expected an object with either `content` or `error` (a text)")]
struct ToolReplyError(String);

/// Reads the result of a function: an object with `content` or `error`, as written answers have them.
fn read_reply(returned: Value) -> Result<ToolReply, ToolReplyError> {
    let wrong = |returned: &dyn fmt::Display| {
        Err(ToolReplyError(excerpt(&returned.to_string(), MAX_SHOWN_CHARS).into_owned()))
    };
    let Value::Object(mut members) = returned else { return wrong(&returned) };
    match (members.len(), members.remove("content"), members.remove("error")) {
        (1, Some(content), None) => Ok(ToolReply::Content(content)),
        (1, None, Some(Value::String(message))) if !message.is_empty() => Ok(ToolReply::Error(message)),
        (_, content, error) => {
            let found = [("content", content), ("error", error)];
            members.extend(found.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?))));
            wrong(&Value::Object(members))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KeptConsole, MAX_CONSOLE_BYTES};

    #[test]
    fn the_console_of_many_calls_is_bounded() {
        let mut console = KeptConsole::default();
        for _ in 0..1_000 {
            console.keep(vec!["a".repeat(100_000), String::new()]);
        }
        let kept: usize = console.lines.iter().map(String::len).sum();
        assert!(kept <= MAX_CONSOLE_BYTES && kept > MAX_CONSOLE_BYTES / 2, "{kept}");
        let last = console.lines.last().expect("a line");
        assert!(last.contains("the rest is omitted"), "{last}");
    }
}
