//! Failures of programs that are MCP servers, with the end of their error output.

use std::collections::VecDeque;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::event::McpEventKind;
use crate::lock;

/// Maximum size of the error output that is kept.
const MAX_ERROR_OUTPUT_BYTES: usize = 4 * 1024;

/// Why a program does not answer.
#[derive(Debug, Clone)]
pub(super) struct ProgramFailure {
    /// What happened, with the name of the program.
    pub(super) message: String,
    /// The end of its error output.
    error_output: Option<String>,
}

impl ProgramFailure {
    /// A program that could not be started.
    pub(super) fn not_started(message: String) -> ProgramFailure {
        ProgramFailure { message, error_output: None }
    }

    /// A program that closed its output, with its exit status if it ended.
    pub(super) fn ended(program: &str, status: Option<ExitStatus>, errors: &ErrorOutput) -> ProgramFailure {
        let how = status.map_or("closed its output".to_string(), |status| format!("ended ({status})"));
        ProgramFailure { message: format!("the program `{program}` {how}"), error_output: errors.text() }
    }

    /// A program whose message no request can be answered with.
    pub(super) fn invalid_message(program: &str, problem: &str, errors: &ErrorOutput) -> ProgramFailure {
        let message = format!("the program `{program}` {problem}");
        ProgramFailure { message, error_output: errors.text() }
    }

    /// A program that sent a line without an end.
    pub(super) fn line_too_long(program: &str, max_bytes: usize, errors: &ErrorOutput) -> ProgramFailure {
        let message = format!("the program `{program}` printed a line of more than {max_bytes} bytes");
        ProgramFailure { message, error_output: errors.text() }
    }

    /// The event that reports it.
    pub(super) fn event(&self) -> McpEventKind {
        McpEventKind::ServerFailed { message: self.message.clone(), error_output: self.error_output.clone() }
    }
}

/// The end of the error output of a program. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct ErrorOutput(Arc<Mutex<VecDeque<u8>>>);

impl ErrorOutput {
    /// Reads to the end and keeps the last part.
    pub(super) async fn collect(self, mut stderr: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; MAX_ERROR_OUTPUT_BYTES];
        while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
            let mut kept = lock(&self.0);
            kept.extend(&buffer[..read]);
            let surplus = kept.len().saturating_sub(MAX_ERROR_OUTPUT_BYTES);
            kept.drain(..surplus);
        }
    }

    /// Returns the output kept so far, after an ellipsis if there was more.
    fn text(&self) -> Option<String> {
        let bytes: Vec<u8> = lock(&self.0).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim().trim_start_matches('\u{FFFD}');
        let ellipsis = if bytes.len() < MAX_ERROR_OUTPUT_BYTES { "" } else { "…" };
        (!text.is_empty()).then(|| format!("{ellipsis}{text}"))
    }
}
