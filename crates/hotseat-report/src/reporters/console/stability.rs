//! Stability section before the summary.

use std::fmt::Write as _;

use super::attempts::headline;
use super::banner::section;
use super::options::{ConsoleOptions, TextStyle};
use crate::reporters::text::format_percent;
use hotseat_engine::run::{CaseOutcome, GradeCounts, ReliabilityGrade, RepeatTotals, RunSummary};

/// Maximum number of failed cases in the list at the end.
pub(super) const MAX_FAILED_CASES: usize = 30;
/// Maximum number of cases of a small run, which also lists the stability of stable cases.
const SMALL_RUN_CASES: usize = 12;

/// Collects the stability of cases. A small run lists every case, a large one the first unstable cases.
#[derive(Debug, Default)]
pub(super) struct StabilitySection {
    stable: Vec<(usize, String)>,
    unstable: Vec<(usize, String)>,
    /// Number of unstable cases that are counted but not listed.
    more: usize,
    /// Number of cases that never passed.
    never_passed: usize,
}

impl StabilitySection {
    /// Adds a finished case.
    pub(super) fn note(&mut self, look: &ConsoleOptions, outcome: &CaseOutcome) {
        let Some(stability) = &outcome.stability else { return };
        self.never_passed += usize::from(stability.never_passed());
        let (lines, most) = match stability.is_stable() {
            Some(true) => (&mut self.stable, SMALL_RUN_CASES),
            Some(false) | None => (&mut self.unstable, MAX_FAILED_CASES),
        };
        if lines.len() < most {
            lines.push((outcome.case_ref.index, headline(look, outcome, stability, "  ")));
        } else if stability.is_stable() != Some(true) {
            self.more += 1;
        }
    }

    /// Formats the section, or an empty text if no case was repeated.
    pub(super) fn section(&mut self, look: &ConsoleOptions, summary: &RunSummary) -> String {
        let made = |repeats: &&RepeatTotals| repeats.total + repeats.invalid > 0;
        let Some(repeats) = summary.repeats.as_ref().filter(made) else {
            return String::new();
        };
        let mut out = section(look, "Stability Analysis");
        let mut row = |name: &str, value: String, tone: Option<TextStyle>| {
            let value = tone.map_or(value.clone(), |tone| look.paint(tone, &value));
            let _ = writeln!(out, "  {name:<18} {value}");
        };
        let some = |n: usize, tone: TextStyle| (n > 0).then_some(tone);
        if let Some(runs) = repeats.runs_per_case {
            row("Runs per case:", runs.to_string(), None);
        }
        row("Total runs:", repeats.total.to_string(), None);
        if repeats.invalid > 0 {
            let words = format!("{} (not the agent's fault), {} replaced", repeats.invalid, repeats.redrawn);
            row("Invalid runs:", words, Some(TextStyle::Skipped));
        }
        let rate =
            repeats.pass_rate().map_or_else(|| "unknown".to_string(), |rate| format_percent(rate * 100.0));
        row("Overall pass rate:", rate, None);
        row("Stable cases:", repeats.stable_cases.to_string(), some(repeats.stable_cases, TextStyle::Good));
        row(
            "Unstable cases:",
            match self.never_passed {
                0 => repeats.unstable_cases.to_string(),
                never => format!("{} ({never} consistently failing)", repeats.unstable_cases),
            },
            some(repeats.unstable_cases, TextStyle::Bad),
        );
        let GradeCounts { pass, fail, flaky, inconclusive } = repeats.grades;
        let grades = [
            (pass, ReliabilityGrade::Pass),
            (fail, ReliabilityGrade::Fail),
            (flaky, ReliabilityGrade::Flaky),
            (inconclusive, ReliabilityGrade::Inconclusive),
        ];
        let grades = grades.iter().filter(|(n, _)| *n > 0).map(|(n, grade)| format!("{n} {}", grade.name()));
        if repeats.grades.total() > 0 {
            let tone = if pass == repeats.grades.total() { TextStyle::Good } else { TextStyle::Bad };
            row("Reliability:", grades.collect::<Vec<_>>().join(", "), Some(tone));
        }
        out.push('\n');
        let cases = repeats.stable_cases + repeats.unstable_cases;
        let mut lines: Vec<&(usize, String)> = self.unstable.iter().collect();
        if cases <= SMALL_RUN_CASES {
            lines.extend(&self.stable);
        }
        lines.sort_by_key(|(index, _)| *index);
        for (_, line) in &lines {
            out.push_str(line);
        }
        if self.more > 0 {
            let _ = writeln!(out, "  … and {} more that are not stable", self.more);
        }
        if !lines.is_empty() {
            out.push('\n');
        }
        out
    }
}
