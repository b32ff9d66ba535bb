//! Progress of a run: a line at the bottom of a terminal, otherwise an occasional line.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::options::{ConsoleOptions, TextStyle};
use hotseat_trace::VerdictStatus;

use crate::reporters::text::one_line;
use hotseat_engine::run::CaseOutcome;

/// Minimum number of cases for progress lines without a terminal; in smaller runs the lines of the cases
/// suffice.
const MIN_CASES_FOR_LINES: usize = 50;
/// Maximum number of such lines.
const MAX_PROGRESS_LINES: usize = 20;

/// Largest displayed estimate.
const MAX_ESTIMATE_SECONDS: f64 = 999.0 * 3600.0;

/// Formats a time to the second: `7s`, `1m07s`, `1h02m`.
fn format_clock(time: Duration) -> String {
    let (hours, minutes, seconds) = (time.as_secs() / 3600, time.as_secs() / 60 % 60, time.as_secs() % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes) => format!("{hours}h{minutes:02}m"),
    }
}

#[derive(Debug, Default)]
pub(super) struct RunProgress {
    /// Number of cases, or of their runs.
    total: usize,
    /// Number of runs per case.
    runs: usize,
    ended: usize,
    failed: usize,
    /// Running cases, oldest first.
    running: Vec<String>,
    /// Start of the run.
    started: Option<Instant>,
}

impl RunProgress {
    pub(super) fn case_started(&mut self, name: &str) {
        self.running.push(name.to_string());
    }

    pub(super) fn new(cases: usize, runs: usize) -> RunProgress {
        RunProgress { total: cases * runs, runs, started: Some(Instant::now()), ..RunProgress::default() }
    }

    /// Counts a finished run of a repeated case.
    pub(super) fn run_ended(&mut self) {
        self.ended += usize::from(self.runs > 1);
    }

    /// Counts a finished case.
    pub(super) fn case_ended(&mut self, outcome: &CaseOutcome) {
        // Runs were counted as they ended. Runs that are not made count as done, and replaced runs count
        // once.
        let made = outcome.stability.as_ref().map_or(0, |stability| stability.runs + stability.invalid);
        self.ended = match self.runs {
            1 => self.ended + 1,
            runs => (self.ended + runs).saturating_sub(made),
        };
        self.failed += usize::from(outcome.verdict.status == VerdictStatus::Failed);
        let name = &outcome.case_ref.case.name;
        if let Some(place) = self.running.iter().position(|running| running == name) {
            self.running.remove(place);
        }
    }

    /// Formats `[RunProgress: 3/10 completed, 5 running...]`.
    fn progress_text(&self) -> String {
        let mut words = format!("[Progress: {}/{} {}completed", self.ended, self.total, self.unit());
        if self.failed > 0 {
            let _ = write!(words, ", {} failed", self.failed);
        }
        if !self.running.is_empty() {
            let _ = write!(words, ", {} running...", self.running.len());
        }
        words + "]"
    }

    fn unit(&self) -> &'static str {
        if self.runs > 1 { "runs " } else { "" }
    }

    /// Formats the line at the bottom, with the longest-running cases as far as they fit.
    pub(super) fn bottom_line(&self, look: &ConsoleOptions) -> String {
        let elapsed = self.started.map_or(Duration::ZERO, |started| started.elapsed());
        let longest = &self.running[..self.running.len().min(10)];
        let line = format!("{} {} {}", self.progress_text(), self.pace(elapsed), longest.join(", "));
        look.paint(TextStyle::Quiet, &one_line(&line, look.width.saturating_sub(1)))
    }

    /// Formats the elapsed time, and the rate and the estimated remaining time as soon as something has ended.
    fn pace(&self, elapsed: Duration) -> String {
        let seconds = elapsed.as_secs_f64();
        if self.ended == 0 || seconds <= 0.0 {
            return format_clock(elapsed);
        }
        let rate = self.ended as f64 / seconds;
        let rate_text = if rate >= 1.0 { format!("{rate:.1}/s") } else { format!("{:.1}/min", rate * 60.0) };
        let left = self.total.saturating_sub(self.ended) as f64 / rate;
        // A very slow start must not overflow the duration.
        let left = Duration::from_secs_f64(left.min(MAX_ESTIMATE_SECONDS));
        format!("{} · {rate_text} · {} left", format_clock(elapsed), format_clock(left))
    }

    /// Returns a progress line if one is due.
    pub(super) fn occasional_line(&self, look: &ConsoleOptions) -> Option<String> {
        let every = (MIN_CASES_FOR_LINES / 2).max(self.total.div_ceil(MAX_PROGRESS_LINES));
        let is_time =
            self.total >= MIN_CASES_FOR_LINES && self.ended.is_multiple_of(every) && self.ended < self.total;
        is_time.then(|| look.paint(TextStyle::Quiet, &one_line(&self.progress_text(), look.width)) + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_the_remaining_time() {
        let progress = |ended, total| RunProgress { ended, ..RunProgress::new(total, 1) };
        for (ended, total, seconds, text) in [
            (0, 10, 7, "7s"),
            (5, 20, 10, "10s · 30.0/min · 30s left"),
            (40, 100, 20, "20s · 2.0/s · 30s left"),
            (1, 100, 67, "1m07s · 0.9/min · 1h50m left"),
            (10, 10, 5, "5s · 2.0/s · 0s left"),
            (1, usize::MAX, 1_000_000, "277h46m · 0.0/min · 999h00m left"),
        ] {
            assert_eq!(progress(ended, total).pace(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn writes_occasional_lines_in_long_runs() {
        let look = ConsoleOptions { color: false, width: 80, progress: false, verbose: false, wraps: true };
        for (total, lines) in [(10, 0), (48, 0), (50, 1), (100, 3), (1_000, 19), (100_000, 19)] {
            let mut progress = RunProgress::new(total / 2, 2);
            let mut said = 0;
            for _ in 0..total {
                progress.run_ended();
                said += usize::from(progress.occasional_line(&look).is_some());
            }
            assert_eq!(said, lines, "of {total}");
        }
    }
}
