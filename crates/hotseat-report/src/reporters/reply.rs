//! Reply of an agent to a single message, without other output.

use std::borrow::Cow;
use std::io::{self, Write};

use hotseat_trace::VerdictStatus;
use serde_json::Value;

use super::Reporter;
use super::text::{one_line, safe_lines};
use hotseat_checks::read_json;
use hotseat_engine::run::{Attempt, CaseOutcome};

/// Reporter that writes the reply: text unchanged, JSON indented, followed by the tool calls.
pub struct ReplyReporter<W> {
    out: W,
    width: usize,
}

impl<W: Write + Send> ReplyReporter<W> {
    /// Creates a reporter that writes to `out`. Lines other than those of the agent are cut to `width`
    /// columns.
    pub fn new(out: W, width: usize) -> Self {
        ReplyReporter { out, width }
    }

    fn write(&mut self, attempt: &Attempt) -> io::Result<()> {
        let turns = &attempt.conversation.turns;
        for message in turns.iter().flat_map(|turn| &turn.messages) {
            let laid_out = match read_json(&message.content) {
                Ok(value @ (Value::Object(_) | Value::Array(_))) => {
                    Cow::Owned(serde_json::to_string_pretty(&value)?)
                }
                _ => Cow::Borrowed(&*message.content),
            };
            for line in safe_lines(&laid_out) {
                writeln!(self.out, "{line}")?;
            }
        }
        let calls: Vec<_> = turns.iter().flat_map(|turn| &turn.tool_calls).collect();
        if !calls.is_empty() {
            writeln!(self.out, "--- Tool Calls ---")?;
        }
        for call in calls {
            let came_to = match &call.result {
                Some(result) if result.failed => format!("FAILED: {}", result.text()),
                Some(_) => "OK".to_string(),
                None => "no result".to_string(),
            };
            let line = format!("{} → {came_to} (args: {})", call.name, call.arguments);
            writeln!(self.out, "{}", one_line(&line, self.width))?;
        }
        if attempt.verdict.status != VerdictStatus::Passed {
            let failure = attempt.verdict.failure.as_ref();
            let message = failure.map(|failure| failure.message.as_str());
            let message = message.or(attempt.verdict.skip_reason.as_deref()).unwrap_or("not run");
            writeln!(self.out, "error: {}", one_line(message, self.width))?;
            for line in safe_lines(failure.and_then(|failure| failure.detail.as_deref()).unwrap_or_default())
            {
                writeln!(self.out, "  {line}")?;
            }
        }
        self.out.flush()
    }
}

impl<W: Write + Send> Reporter for ReplyReporter<W> {
    fn report_case(&mut self, outcome: &CaseOutcome) -> io::Result<()> {
        if outcome.stability.is_none() {
            return self.write(outcome.representative());
        }
        for attempt in &outcome.attempts {
            writeln!(self.out, "--- Run {} ---", attempt.number)?;
            self.write(attempt)?;
        }
        Ok(())
    }
}
