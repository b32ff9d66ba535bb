//! How far a run is: a line at the bottom of a terminal; where there is none, a line now and then.

use std::fmt::Write as _;

use super::look::{Look, Tone};
use hotseat_trace::Status;

use crate::report::words::one_line;
use crate::run::Outcome;

/// Fewer cases than this need no line where there is no terminal: each of them says that it has ended.
const MANY: usize = 50;
/// How many such lines there are at most.
const LINES: usize = 20;

/// How far a run is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// How many cases there are, or how many runs of them.
    total: usize,
    /// How many runs each case has.
    runs: usize,
    ended: usize,
    failed: usize,
    /// The cases that run, those that run longest first.
    running: Vec<String>,
}

impl Progress {
    pub(super) fn started(&mut self, name: &str) {
        self.running.push(name.to_string());
    }

    pub(super) fn of(cases: usize, runs: usize) -> Progress {
        Progress { total: cases * runs, runs, ..Progress::default() }
    }

    /// One of several runs of a case has ended.
    pub(super) fn run_ended(&mut self) {
        self.ended += usize::from(self.runs > 1);
    }

    /// A case has ended.
    pub(super) fn ended(&mut self, outcome: &Outcome) {
        // Runs were counted as they ended; those that were not made are done, too, and those that were made again count
        // once.
        let made = outcome.stability.as_ref().map_or(0, |stability| stability.runs + stability.invalid);
        self.ended = match self.runs {
            1 => self.ended + 1,
            runs => (self.ended + runs).saturating_sub(made),
        };
        self.failed += usize::from(outcome.verdict.status == Status::Failed);
        let name = &outcome.selected.case.name;
        if let Some(place) = self.running.iter().position(|running| running == name) {
            self.running.remove(place);
        }
    }

    /// `[Progress: 3/10 completed, 5 running...]`
    fn words(&self) -> String {
        let mut words = format!("[Progress: {}/{} {}completed", self.ended, self.total, self.what());
        if self.failed > 0 {
            let _ = write!(words, ", {} failed", self.failed);
        }
        if !self.running.is_empty() {
            let _ = write!(words, ", {} running...", self.running.len());
        }
        words + "]"
    }

    fn what(&self) -> &'static str {
        if self.runs > 1 { "runs " } else { "" }
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
        for (total, lines) in [(10, 0), (48, 0), (50, 1), (100, 3), (1_000, 19), (100_000, 19)] {
            let mut progress = Progress::of(total / 2, 2);
            let mut said = 0;
            for _ in 0..total {
                progress.run_ended();
                said += usize::from(progress.now_and_then(&look).is_some());
            }
            assert_eq!(said, lines, "of {total}");
        }
    }
}
