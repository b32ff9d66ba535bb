//! How things look, decided once by whoever knows the terminal.

use crate::report::words::columns;

/// How things look.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Whether colours are used.
    pub color: bool,
    /// How many columns there are.
    pub width: usize,
    /// Whether a line at the bottom shows what is going on.
    pub progress: bool,
    /// Whether conversations are shown whole that did not fail.
    pub verbose: bool,
}

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy)]
pub(super) enum Tone {
    Good,
    Bad,
    Skipped,
    Quiet,
    Strong,
    /// The sign before what is told of a run.
    Info,
    /// The frame of a snippet.
    Frame,
}

/// How long rules are where there is room.
const RULE: usize = 63;
/// With fewer columns than this a text cannot be read.
const ENOUGH: usize = 20;

impl Look {
    pub(super) fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.color || text.is_empty() {
            return text.to_string();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Skipped => "33",
            Tone::Quiet => "2",
            Tone::Strong => "1",
            Tone::Info => "36",
            Tone::Frame => "1;94",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// How many columns are left beside something that takes `taken`; never so few that nothing can be read.
    pub(super) fn left(&self, taken: usize) -> usize {
        self.width.saturating_sub(taken).max(ENOUGH / 2)
    }

    /// The first of these that leaves enough room beside it, the fullest first; the last one if none does.
    pub(super) fn fitting<const N: usize>(&self, taken: usize, candidates: [String; N]) -> String {
        let enough = |words: &String| self.width >= taken + columns(words) + ENOUGH;
        let fits = candidates.iter().position(enough).unwrap_or(N - 1);
        candidates.into_iter().nth(fits).unwrap_or_default()
    }

    /// How long a rule is.
    pub(super) fn rule(&self) -> usize {
        self.width.min(RULE)
    }
}
