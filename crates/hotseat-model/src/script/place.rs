//! Where something of a script was written, and what is wrong there.

use std::fmt;
use std::sync::Arc;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file, as it is shown to people.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One thing that is wrong with a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where it is; nowhere if the script was built in code.
    pub place: Option<Place>,
    /// The rule that it belongs to, from 1; none if it concerns the whole script.
    pub rule: Option<usize>,
    /// What is wrong, and what to write instead where that is known.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if let Some(rule) = self.rule {
            write!(f, "rule {rule}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// Everything that is wrong with a script, in the order in which it is written. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// The mistakes.
    pub mistakes: Vec<Mistake>,
}

impl fmt::Display for ScriptError {
    /// One mistake per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, mistake) in self.mistakes.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ScriptError {}

/// Collects mistakes while a script is read, so that all of them are reported together.
#[derive(Debug, Default)]
pub(super) struct Mistakes {
    mistakes: Vec<Mistake>,
    /// The rule that is being read, from 1.
    pub(super) rule: Option<usize>,
}

impl Mistakes {
    pub(super) fn add(&mut self, place: Option<&Place>, message: impl Into<String>) {
        self.mistakes.push(Mistake { place: place.cloned(), rule: self.rule, message: message.into() });
    }

    pub(super) fn count(&self) -> usize {
        self.mistakes.len()
    }

    /// Whether there is one about the rule that is being read.
    pub(super) fn concern_rule(&self) -> bool {
        self.mistakes.iter().any(|mistake| mistake.rule == self.rule)
    }

    /// The value, or everything that is wrong, sorted by place.
    ///
    /// # Errors
    /// When there are mistakes.
    pub(super) fn or<T>(mut self, value: T) -> Result<T, ScriptError> {
        if self.mistakes.is_empty() {
            return Ok(value);
        }
        self.mistakes.sort_by(|one, other| (&one.place, one.rule).cmp(&(&other.place, other.rule)));
        Err(ScriptError { mistakes: self.mistakes })
    }
}
