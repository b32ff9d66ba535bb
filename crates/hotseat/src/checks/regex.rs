//! `regex`: what the agent says fits patterns.

use hotseat_trace::Scope;

use super::Decided;
use super::answer::shown;
use super::pattern::Pattern;
use super::said::{TurnsRead, said};

/// What the agent says fits a pattern, or several.
#[derive(Debug, Clone)]
pub struct Regex {
    /// The patterns.
    pub patterns: Vec<Pattern>,
    /// How many of them have to fit.
    pub fitting: Fitting,
    /// Of several turns, those that are read.
    pub turns: Option<TurnsRead>,
}

/// How many of several patterns have to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fitting {
    /// All of them, anywhere in the text.
    All,
    /// One of them.
    Any,
}

impl Fitting {
    /// Patterns in words.
    pub fn describe(self, patterns: &[Pattern]) -> String {
        let words: Vec<String> = patterns.iter().map(Pattern::to_string).collect();
        words.join(match self {
            Fitting::All => " and ",
            Fitting::Any => " or ",
        })
    }

    /// Whether a text fits.
    pub fn fits(self, patterns: &[Pattern], text: &str) -> bool {
        let mut patterns = patterns.iter();
        match self {
            Fitting::All => patterns.all(|pattern| pattern.fits(text)),
            Fitting::Any => patterns.any(|pattern| pattern.fits(text)),
        }
    }
}

impl Regex {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        format!("what the agent says fits {}", self.fitting.describe(&self.patterns))
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let said = said(self.turns, scope);
        Decided::of(self.fitting.fits(&self.patterns, &said), shown(&said))
    }
}
