//! Errors of scripts, as data.

use std::fmt;

use hotseat_document::{Diagnostic, SourceSpan};

/// Reason why no script runs.
#[cfg(not(feature = "engine"))]
pub(crate) const NO_ENGINE: &str = "scripts need the feature `scripts` of the crate `hotseat`";

/// Kind of a script error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScriptErrorKind {
    /// A file is not valid TypeScript, JavaScript or JSON.
    Syntax,
    /// A file does not exist, cannot be read, or is not allowed.
    Import,
    /// A module has no such export.
    MissingExport,
    /// An export is not a function.
    NotAFunction,
    /// The script threw a value, or a promise was rejected.
    Thrown,
    /// The time limit was exceeded.
    TimeLimit,
    /// The caller cancelled the script.
    Cancelled,
    /// The memory limit was exceeded.
    MemoryLimit,
    /// The maximum call depth was exceeded.
    StackLimit,
    /// The result cannot be converted to JSON.
    NotSerialisable,
    /// The script awaits a promise that can no longer settle.
    NeverSettles,
}

/// One call of a stack trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackFrame {
    /// Name of the function, if it has one.
    pub function: Option<String>,
    /// Location in the original source.
    pub place: SourceSpan,
}

impl fmt::Display for StackFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some(function) => write!(f, "at {function} ({})", self.place),
            None => write!(f, "at {}", self.place),
        }
    }
}

/// One error of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// Kind of the error.
    pub kind: ScriptErrorKind,
    /// Message, as a fragment that follows `error: `.
    pub message: String,
    /// Location in the original source.
    pub place: Option<SourceSpan>,
    /// Stack trace, innermost call first.
    pub stack: Vec<StackFrame>,
    /// Advice on how to fix it.
    pub help: Option<String>,
}

/// Number of callers shown with their source lines.
const MAX_SHOWN_CALLERS: usize = 3;

impl ScriptError {
    pub(crate) fn new(kind: ScriptErrorKind, message: impl Into<String>) -> Self {
        ScriptError { kind, message: message.into(), place: None, stack: Vec::new(), help: None }
    }

    pub(crate) fn at(self, place: Option<SourceSpan>) -> Self {
        ScriptError { place, ..self }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        ScriptError { help: Some(help.into()), ..self }
    }

    /// Converts the error to a diagnostic with source lines.
    pub fn diagnostic(&self) -> Diagnostic {
        let mut shown = Diagnostic::new(&self.message);
        shown.place = self.place.clone();
        shown.help = self.help.clone();
        for frame in self.callers().take(MAX_SHOWN_CALLERS) {
            let label = match &frame.function {
                Some(function) => format!("called in `{function}`"),
                None => "called here".to_string(),
            };
            shown = shown.with_related(frame.place.clone(), label);
        }
        shown
    }

    /// Returns the frames outside the location itself.
    fn callers(&self) -> impl Iterator<Item = &StackFrame> {
        self.stack.iter().skip_while(|frame| Some(&frame.place) == self.place.as_ref())
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ScriptError {}
