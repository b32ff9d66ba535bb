//! Failures of programs that are MCP servers, with the end of their error output.

use std::process::ExitStatus;

use hotseat_document::LastOutput;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::event::McpEventKind;

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

    fn with_output(message: String, errors: &LastOutput) -> ProgramFailure {
        ProgramFailure { message, error_output: Some(errors.text()).filter(|text| !text.is_empty()) }
    }

    /// A program that closed its output, with its exit status if it ended.
    pub(super) fn ended(program: &str, status: Option<ExitStatus>, errors: &LastOutput) -> ProgramFailure {
        let how = status.map_or("closed its output".to_string(), |status| format!("ended ({status})"));
        ProgramFailure::with_output(format!("the program `{program}` {how}"), errors)
    }

    /// A program whose message no request can be answered with.
    pub(super) fn invalid_message(program: &str, problem: &str, errors: &LastOutput) -> ProgramFailure {
        let message = format!("the program `{program}` {problem}");
        ProgramFailure::with_output(message, errors)
    }

    /// A program that sent a line without an end.
    pub(super) fn line_too_long(program: &str, max_bytes: usize, errors: &LastOutput) -> ProgramFailure {
        let message = format!("the program `{program}` printed a line of more than {max_bytes} bytes");
        ProgramFailure::with_output(message, errors)
    }

    /// The event that reports it.
    pub(super) fn event(&self) -> McpEventKind {
        McpEventKind::ServerFailed { message: self.message.clone(), error_output: self.error_output.clone() }
    }
}

/// Reads the error output of a program to its end, and keeps the last part.
pub(super) async fn collect_errors(mut stderr: impl AsyncRead + Unpin, errors: LastOutput) {
    let mut buffer = vec![0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        errors.push(&buffer[..read]);
    }
}
