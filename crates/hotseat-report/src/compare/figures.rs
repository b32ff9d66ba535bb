//! Countable values of two runs: durations, turns, tool calls, tokens, cost.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::cases::{AttemptFigures, ReportAttempt, ReportCase};
use super::pairing::AttemptWeighting;
use super::significance::SignificantChange;
use hotseat_statistics::{SummaryStatistics, TestPValue, signed_rank_test};

/// Figure of two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedFigure {
    /// Name of the figure.
    pub name: String,
    /// True if it counts the calls of one tool.
    pub is_tool: bool,
    /// Unit of the values.
    pub unit: FigureUnit,
    /// Mean over all cases in the first run; the value of a case is the median of its attempts.
    pub before: f64,
    /// Mean over all cases in the second run.
    pub after: f64,
    /// Number of cases with a value in both runs.
    pub cases: usize,
    /// p-value of the difference.
    pub p_value: f64,
    /// Significance of the difference.
    pub significance: SignificantChange,
}

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureUnit {
    Seconds,
    /// Number of items.
    Count,
    /// Money, in the currency of the configured prices.
    Money,
}

/// Minimum relative change of a duration that is reported. Runs are made at different times, and machines and
/// networks vary.
const MIN_TIME_CHANGE: f64 = 0.1;

/// Minimum change of a duration that is reported, in seconds. Fast agents and replayed recordings differ by less
/// whenever the machine has other work.
const MIN_SECONDS_CHANGE: f64 = 0.005;

/// Figure whose significance is not decided yet.
pub(super) struct UndecidedFigure {
    pub figure: ComparedFigure,
    pub test: TestPValue,
    /// True if increases outweigh decreases, case by case.
    has_grown: bool,
}

impl UndecidedFigure {
    /// Sets the significance after the joint decision of all figures.
    pub(super) fn decide(mut self, found: bool) -> ComparedFigure {
        let ComparedFigure { before, after, unit, .. } = self.figure;
        let enough = unit != FigureUnit::Seconds
            || (after - before).abs() > MIN_SECONDS_CHANGE.max(MIN_TIME_CHANGE * before.max(after));
        // Cases decide but means are displayed. If one case dominates the mean in the other direction,
        // nothing is claimed.
        self.figure.significance = match (self.has_grown, after.total_cmp(&before)) {
            _ if !(found && enough) => SignificantChange::NotSignificant,
            (true, Ordering::Greater) => SignificantChange::More,
            (false, Ordering::Less) => SignificantChange::Less,
            (true, Ordering::Less | Ordering::Equal) | (false, Ordering::Greater | Ordering::Equal) => {
                SignificantChange::NotSignificant
            }
        };
        self.figure
    }
}

/// Compares all figures that both runs have.
pub(super) fn compare_figures(cases: &[(&ReportCase, &ReportCase)]) -> Vec<UndecidedFigure> {
    let mut all = vec![
        compare_figure(cases, "time", FigureUnit::Seconds, &|figures| Some(figures.seconds)),
        compare_figure(cases, "turns", FigureUnit::Count, &|figures| Some(figures.turns as f64)),
        compare_figure(cases, "tool calls", FigureUnit::Count, &|figures| {
            Some(figures.tools.values().sum::<usize>() as f64)
        }),
        compare_figure(cases, "tokens", FigureUnit::Count, &|figures| figures.tokens),
        compare_figure(cases, "cost", FigureUnit::Money, &|figures| figures.cost),
    ];
    let attempts = cases.iter().flat_map(|(one, other)| one.attempts.iter().chain(&other.attempts));
    let tools: BTreeSet<&str> =
        attempts.flat_map(|attempt| attempt.figures.tools.keys()).map(String::as_str).collect();
    all.extend(tools.into_iter().map(|tool| {
        let calls = |figures: &AttemptFigures| Some(figures.tools.get(tool).copied().unwrap_or(0) as f64);
        compare_figure(cases, tool, FigureUnit::Count, &calls).map(|mut measured| {
            measured.figure.is_tool = true;
            measured
        })
    }));
    all.into_iter().flatten().collect()
}

/// Returns `None` if no case has the figure in both runs.
fn compare_figure(
    cases: &[(&ReportCase, &ReportCase)],
    name: &str,
    unit: FigureUnit,
    of: &dyn Fn(&AttemptFigures) -> Option<f64>,
) -> Option<UndecidedFigure> {
    let middle = |attempts: &[ReportAttempt]| {
        let values: Option<Vec<f64>> = attempts.iter().map(|attempt| of(&attempt.figures)).collect();
        values.filter(|values| !values.is_empty()).map(|values| SummaryStatistics::from_values(values).median)
    };
    let both = cases.iter().filter_map(|(one, other)| {
        let weighing = AttemptWeighting::for_cases(one, other);
        let (one, other) = (weighing.attempts(one), weighing.attempts(other));
        Some((middle(one)?, middle(other)?))
    });
    let both: Vec<(f64, f64)> = both.collect();
    if both.is_empty() {
        return None;
    }
    let found = signed_rank_test(&both.iter().map(|(before, after)| after - before).collect::<Vec<_>>());
    let figure = ComparedFigure {
        name: name.to_string(),
        is_tool: false,
        unit,
        before: SummaryStatistics::from_values(both.iter().map(|(before, _)| *before)).mean,
        after: SummaryStatistics::from_values(both.iter().map(|(_, after)| *after)).mean,
        cases: both.len(),
        p_value: found.p,
        significance: SignificantChange::NotSignificant,
    };
    Some(UndecidedFigure {
        figure,
        test: TestPValue { p: found.p, min_p: found.min_p },
        has_grown: found.increased,
    })
}
