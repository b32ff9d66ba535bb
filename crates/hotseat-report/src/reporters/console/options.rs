//! Display options of the console, set by the caller that knows the terminal.

use hotseat_trace::LabelColor;

use crate::reporters::text::columns;

/// Display options of the console.
#[derive(Debug, Clone, Copy)]
pub struct ConsoleOptions {
    /// True if colours are used.
    pub color: bool,
    /// Width in columns.
    pub width: usize,
    /// True if a progress line is displayed at the bottom.
    pub progress: bool,
    /// True if complete conversations are displayed for all cases.
    pub verbose: bool,
    /// True if the width limits whole texts of verbose mode, too. They are never wrapped for a program that
    /// reads the output.
    pub wraps: bool,
}

/// Role of a piece of text, which determines its colour.
#[derive(Clone, Copy)]
pub(super) enum TextStyle {
    Good,
    Bad,
    Skipped,
    Quiet,
    Strong,
    /// Marker before the settings of a run.
    Info,
    /// Frame of a snippet.
    Frame,
    /// A result, in its colour.
    Result(LabelColor),
}

/// Maximum length of rules.
const MAX_RULE_COLUMNS: usize = 63;
/// Minimum width of readable text.
const MIN_TEXT_COLUMNS: usize = 20;

impl ConsoleOptions {
    pub(super) fn paint(&self, tone: TextStyle, text: &str) -> String {
        if !self.color || text.is_empty() {
            return text.to_string();
        }
        let code = match tone {
            TextStyle::Good => "32",
            TextStyle::Bad => "31",
            TextStyle::Skipped => "33",
            TextStyle::Quiet => "2",
            TextStyle::Strong => "1",
            TextStyle::Info => "36",
            TextStyle::Frame => "1;94",
            TextStyle::Result(color) => color.ansi_code(),
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Returns the number of columns next to a text of width `taken`, with a readable minimum.
    pub(super) fn columns_left(&self, taken: usize) -> usize {
        self.width.saturating_sub(taken).max(MIN_TEXT_COLUMNS / 2)
    }

    /// Returns the first candidate that leaves enough space, or the last one. Candidates are ordered from
    /// long to short.
    pub(super) fn first_fitting<const N: usize>(&self, taken: usize, candidates: [String; N]) -> String {
        let enough = |words: &String| self.width >= taken + columns(words) + MIN_TEXT_COLUMNS;
        let fits = candidates.iter().position(enough).unwrap_or(N - 1);
        candidates.into_iter().nth(fits).unwrap_or_default()
    }

    /// Returns the length of rules.
    pub(super) fn rule_columns(&self) -> usize {
        self.width.min(MAX_RULE_COLUMNS)
    }
}
