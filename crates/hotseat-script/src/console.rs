//! What scripts say to `console`.

/// How a line was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `console.debug` and `console.trace`
    Debug,
    /// `console.log` and `console.dir`
    Log,
    /// `console.info`
    Info,
    /// `console.warn`
    Warn,
    /// `console.error` and an assertion of `console.assert` that does not hold
    Error,
}

impl Level {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Log => "log",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }

    pub(crate) fn read(name: &str) -> Level {
        match name {
            "debug" => Level::Debug,
            "info" => Level::Info,
            "warn" => Level::Warn,
            "error" => Level::Error,
            _ => Level::Log,
        }
    }
}

/// One thing that a script said; it may have several lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// How it was said.
    pub level: Level,
    /// What was said.
    pub text: String,
}

/// So many bytes are kept of what a context says; a script can say more than any memory holds.
const MOST: usize = 1024 * 1024;

/// What was said until now.
#[derive(Debug, Default)]
pub(crate) struct Console {
    lines: Vec<Line>,
    bytes: usize,
    full: bool,
}

impl Console {
    pub(crate) fn say(&mut self, level: Level, text: String) {
        // A line without words takes room too.
        self.bytes += text.len() + 32;
        match (self.bytes > MOST, self.full) {
            (false, _) => self.lines.push(Line { level, text }),
            (true, false) => {
                self.full = true;
                let text = format!("(more than {MOST} bytes were said; the rest is left out)");
                self.lines.push(Line { level: Level::Warn, text });
            }
            (true, true) => {}
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Line> {
        std::mem::take(self).lines
    }
}
