//! What can go wrong with a script, as data.

use std::fmt;

use hotseat_document::{Diagnostic, Place};

/// What kind of mistake it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file is not what its ending says: TypeScript, JavaScript or JSON.
    Syntax,
    /// A file is not there, cannot be read, or may not be read.
    Import,
    /// A module exports nothing of this name.
    MissingExport,
    /// What a module exports under this name is not a function.
    NotAFunction,
    /// The script has thrown something, or a promise was rejected.
    Thrown,
    /// It did not end in time.
    TimeLimit,
    /// Nobody waits for it any more.
    GivenUp,
    /// It needs more memory than it may have.
    MemoryLimit,
    /// It calls itself too deeply.
    StackLimit,
    /// What it returned cannot be written as JSON.
    NotSerialisable,
    /// It waits for a promise that nothing can settle any more.
    NeverSettles,
}

impl ErrorKind {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Syntax => "syntax",
            ErrorKind::Import => "import",
            ErrorKind::MissingExport => "missing_export",
            ErrorKind::NotAFunction => "not_a_function",
            ErrorKind::Thrown => "thrown",
            ErrorKind::TimeLimit => "time_limit",
            ErrorKind::GivenUp => "given_up",
            ErrorKind::MemoryLimit => "memory_limit",
            ErrorKind::StackLimit => "stack_limit",
            ErrorKind::NotSerialisable => "not_serialisable",
            ErrorKind::NeverSettles => "never_settles",
        }
    }
}

/// A call on the way to where something went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The name of the function, where it has one.
    pub function: Option<String>,
    /// Where it was, in the file as it is written.
    pub place: Place,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some(function) => write!(f, "at {function} ({})", self.place),
            None => write!(f, "at {}", self.place),
        }
    }
}

/// One mistake of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// What kind of mistake it is.
    pub kind: ErrorKind,
    /// What is wrong, as a fragment that follows `error: `.
    pub message: String,
    /// Where it is wrong, in the file as it is written.
    pub place: Option<Place>,
    /// The calls that led there, the innermost first.
    pub stack: Vec<Frame>,
    /// What to do about it.
    pub help: Option<String>,
}

/// So many callers are shown with their lines.
const CALLERS_SHOWN: usize = 3;

impl ScriptError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        ScriptError { kind, message: message.into(), place: None, stack: Vec::new(), help: None }
    }

    pub(crate) fn at(self, place: Option<Place>) -> Self {
        ScriptError { place, ..self }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        ScriptError { help: Some(help.into()), ..self }
    }

    /// The mistake with the lines it is about, as mistakes of other files are shown.
    pub fn diagnostic(&self) -> Diagnostic {
        let mut shown = Diagnostic::new(&self.message);
        shown.place = self.place.clone();
        shown.help = self.help.clone();
        for frame in self.callers().take(CALLERS_SHOWN) {
            let label = match &frame.function {
                Some(function) => format!("called in `{function}`"),
                None => "called here".to_string(),
            };
            shown = shown.also(frame.place.clone(), label);
        }
        shown
    }

    /// The frames behind the place itself.
    fn callers(&self) -> impl Iterator<Item = &Frame> {
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
