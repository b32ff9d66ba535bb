//! How far a run is: a line at the bottom of a terminal; where there is none, a line now and then.

use std::fmt::Write as _;

use super::look::{Look, Tone};
use crate::report::words::one_line;

/// Fewer cases than this need no line where there is no terminal: each of them says that it has ended.
const MANY: usize = 50;
/// How many such lines there are at most.
const LINES: usize = 20;

/// How far a run is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub total: usize,
    pub ended: usize,
    pub failed: usize,
    /// The cases that run, those that run longest first.
    pub running: Vec<String>,
}

impl Progress {
    pub(super) fn started(&mut self, name: &str) {
        self.running.push(name.to_string());
    }

    pub(super) fn ended(&mut self, name: &str) {
        self.ended += 1;
        if let Some(place) = self.running.iter().position(|running| running == name) {
            self.running.remove(place);
        }
    }

    /// `[Progress: 3/10 completed, 5 running...]`
    fn words(&self) -> String {
        let mut words = format!("[Progress: {}/{} completed", self.ended, self.total);
        if self.failed > 0 {
            let _ = write!(words, ", {} failed", self.failed);
        }
        if !self.running.is_empty() {
            let _ = write!(words, ", {} running...", self.running.len());
        }
        words + "]"
    }

    /// The line at the bottom: with the cases that run longest, as far as there is room.
    pub(super) fn at_the_bottom(&self, look: &Look) -> String {
        let longest = &self.running[..self.running.len().min(10)];
        let line = format!("{} {}", self.words(), longest.join(", "));
        look.paint(Tone::Quiet, &one_line(&line, look.width.saturating_sub(1)))
    }

    /// A line of its own, where it is time for one.
    pub(super) fn now_and_then(&self, look: &Look) -> Option<String> {
        let every = (MANY / 2).max(self.total.div_ceil(LINES));
        let is_time = self.total >= MANY && self.ended.is_multiple_of(every) && self.ended < self.total;
        is_time.then(|| look.paint(Tone::Quiet, &one_line(&self.words(), look.width)) + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_says_now_and_then_how_far_it_is() {
        let look = Look { color: false, width: 80, progress: false, verbose: false };
        for (total, lines) in [(10, 0), (49, 0), (50, 1), (100, 3), (1_000, 19), (100_000, 19)] {
            let mut progress = Progress { total, ..Progress::default() };
            let mut said = 0;
            for _ in 0..total {
                progress.ended("");
                said += usize::from(progress.now_and_then(&look).is_some());
            }
            assert_eq!(said, lines, "of {total}");
        }
    }
}
