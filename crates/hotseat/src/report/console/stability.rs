//! How steady the cases of a run are, all together: the section before the summary.

use std::fmt::Write as _;

use super::attempts::headline;
use super::frame::section;
use super::look::{Look, Tone};
use super::{FEW, NAMED};
use crate::report::words::percent;
use crate::run::{Grade, Grades, Outcome, Repeats, Summary};

/// How steady cases are. Of a few cases each has a line; of many those that are not stable, and of these the first.
#[derive(Debug, Default)]
pub(super) struct Steadiness {
    stable: Vec<(usize, String)>,
    unstable: Vec<(usize, String)>,
    /// How many were counted and not kept.
    more: usize,
}

impl Steadiness {
    /// Takes note of a case that has ended.
    pub(super) fn note(&mut self, look: &Look, outcome: &Outcome) {
        let Some(stability) = &outcome.stability else { return };
        let (lines, most) = match stability.is_stable() {
            Some(true) => (&mut self.stable, FEW),
            Some(false) | None => (&mut self.unstable, NAMED),
        };
        if lines.len() < most {
            lines.push((outcome.selected.index, headline(look, outcome, stability, "  ")));
        } else if stability.is_stable() != Some(true) {
            self.more += 1;
        }
    }

    /// The section; nothing where each case was run once.
    pub(super) fn section(&mut self, look: &Look, summary: &Summary) -> String {
        let made = |repeats: &&Repeats| repeats.total + repeats.invalid > 0;
        let Some(repeats) = summary.repeats.as_ref().filter(made) else {
            return String::new();
        };
        let mut out = section(look, "Stability Analysis");
        let mut row = |name: &str, value: String, tone: Option<Tone>| {
            let value = tone.map_or(value.clone(), |tone| look.paint(tone, &value));
            let _ = writeln!(out, "  {name:<18} {value}");
        };
        let some = |n: usize, tone: Tone| (n > 0).then_some(tone);
        if let Some(runs) = repeats.runs_per_case {
            row("Runs per case:", runs.to_string(), None);
        }
        row("Total runs:", repeats.total.to_string(), None);
        if repeats.invalid > 0 {
            let words =
                format!("{} (not the agent's fault), {} made again", repeats.invalid, repeats.redrawn);
            row("Invalid runs:", words, Some(Tone::Skipped));
        }
        let rate = repeats.pass_rate().map_or_else(|| "not known".to_string(), |rate| percent(rate * 100.0));
        row("Overall pass rate:", rate, None);
        row("Stable cases:", repeats.stable_cases.to_string(), some(repeats.stable_cases, Tone::Good));
        row("Unstable cases:", repeats.unstable_cases.to_string(), some(repeats.unstable_cases, Tone::Bad));
        let Grades { pass, fail, flaky, inconclusive } = repeats.grades;
        let grades = [
            (pass, Grade::Pass),
            (fail, Grade::Fail),
            (flaky, Grade::Flaky),
            (inconclusive, Grade::Inconclusive),
        ];
        let grades = grades.iter().filter(|(n, _)| *n > 0).map(|(n, grade)| format!("{n} {}", grade.name()));
        if repeats.grades.all() > 0 {
            let tone = if pass == repeats.grades.all() { Tone::Good } else { Tone::Bad };
            row("Reliability:", grades.collect::<Vec<_>>().join(", "), Some(tone));
        }
        out.push('\n');
        let cases = repeats.stable_cases + repeats.unstable_cases;
        let mut lines: Vec<&(usize, String)> = self.unstable.iter().collect();
        if cases <= FEW {
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
