//! Console output of scripts.

/// Level of a console line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleLevel {
    /// `console.debug` and `console.trace`
    Debug,
    /// `console.log` and `console.dir`
    Log,
    /// `console.info`
    Info,
    /// `console.warn`
    Warn,
    /// `console.error`, and failed assertions of `console.assert`
    Error,
}

impl ConsoleLevel {
    /// Returns the name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            ConsoleLevel::Debug => "debug",
            ConsoleLevel::Log => "log",
            ConsoleLevel::Info => "info",
            ConsoleLevel::Warn => "warn",
            ConsoleLevel::Error => "error",
        }
    }

    pub(crate) fn from_name(name: &str) -> ConsoleLevel {
        match name {
            "debug" => ConsoleLevel::Debug,
            "info" => ConsoleLevel::Info,
            "warn" => ConsoleLevel::Warn,
            "error" => ConsoleLevel::Error,
            _ => ConsoleLevel::Log,
        }
    }
}

/// One console call; the text may have several lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleLine {
    /// Level.
    pub level: ConsoleLevel,
    /// Text.
    pub text: String,
}

/// Maximum number of bytes kept per context, so that a script cannot fill the memory.
const MAX_CONSOLE_BYTES: usize = 1024 * 1024;

/// Collected console output.
#[derive(Debug, Default)]
pub(crate) struct ConsoleBuffer {
    lines: Vec<ConsoleLine>,
    bytes: usize,
    full: bool,
}

impl ConsoleBuffer {
    pub(crate) fn push(&mut self, level: ConsoleLevel, text: String) {
        // Accounts for the overhead of a line.
        self.bytes += text.len() + 32;
        match (self.bytes > MAX_CONSOLE_BYTES, self.full) {
            (false, _) => self.lines.push(ConsoleLine { level, text }),
            (true, false) => {
                self.full = true;
                let text =
                    format!("(more than {MAX_CONSOLE_BYTES} bytes of console output; the rest is omitted)");
                self.lines.push(ConsoleLine { level: ConsoleLevel::Warn, text });
            }
            (true, true) => {}
        }
    }

    pub(crate) fn take(&mut self) -> Vec<ConsoleLine> {
        std::mem::take(self).lines
    }
}
