//! What can be counted in two runs, beside each other: time, turns, tool calls, tokens, cost.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::cases::{Attempt, Case, Figures};
use super::comparison::Claim;
use super::pairing::Weighing;
use crate::statistics::{Spread, Test, shift};

/// A figure of two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedFigure {
    /// What is counted.
    pub name: String,
    /// Whether it is the calls of one tool.
    pub is_tool: bool,
    /// What it is counted in.
    pub unit: Unit,
    /// The mean of all cases in the first run; of a case the median of its attempts.
    pub before: f64,
    /// The same in the second run.
    pub after: f64,
    /// How many cases have it in both runs.
    pub cases: usize,
    /// How likely differences as extreme are where nothing has changed.
    pub p: f64,
    /// What can be said of it.
    pub claim: Claim,
}

/// What a figure is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Pieces of something.
    Count,
    /// Money, in whatever currency it is given.
    Money,
}

/// By so much, as a part of what it was, a time has to differ before anything is said of it. Two runs are made at two
/// times, and machines and networks are never quite as they were.
const WORTH_SAYING: f64 = 0.1;

/// A figure that is not yet decided.
pub(super) struct Measured {
    pub figure: ComparedFigure,
    pub test: Test,
    /// Whether what grew outweighs what shrank, case by case.
    grown: bool,
}

impl Measured {
    /// Takes note of what was decided together with others.
    pub(super) fn decided(mut self, found: bool) -> ComparedFigure {
        let ComparedFigure { before, after, unit, .. } = self.figure;
        let enough = unit != Unit::Seconds || (after - before).abs() > WORTH_SAYING * before.max(after);
        // Cases decide, and means are shown: one case may outweigh all others in a mean, and then nothing is claimed.
        self.figure.claim = match (self.grown, after.total_cmp(&before)) {
            _ if !(found && enough) => Claim::Nothing,
            (true, Ordering::Greater) => Claim::More,
            (false, Ordering::Less) => Claim::Less,
            (true, Ordering::Less | Ordering::Equal) | (false, Ordering::Greater | Ordering::Equal) => {
                Claim::Nothing
            }
        };
        self.figure
    }
}

/// All figures that both runs have.
pub(super) fn measured(cases: &[(&Case, &Case)]) -> Vec<Measured> {
    let mut all = vec![
        figure(cases, "time", Unit::Seconds, &|figures| Some(figures.seconds)),
        figure(cases, "turns", Unit::Count, &|figures| Some(figures.turns as f64)),
        figure(cases, "tool calls", Unit::Count, &|figures| {
            Some(figures.tools.values().sum::<usize>() as f64)
        }),
        figure(cases, "tokens", Unit::Count, &|figures| figures.tokens),
        figure(cases, "cost", Unit::Money, &|figures| figures.cost),
    ];
    let attempts = cases.iter().flat_map(|(one, other)| one.attempts.iter().chain(&other.attempts));
    let tools: BTreeSet<&str> =
        attempts.flat_map(|attempt| attempt.figures.tools.keys()).map(String::as_str).collect();
    all.extend(tools.into_iter().map(|tool| {
        let calls = |figures: &Figures| Some(figures.tools.get(tool).copied().unwrap_or(0) as f64);
        figure(cases, tool, Unit::Count, &calls).map(|mut measured| {
            measured.figure.is_tool = true;
            measured
        })
    }));
    all.into_iter().flatten().collect()
}

/// None where no case has it in both runs.
fn figure(
    cases: &[(&Case, &Case)],
    name: &str,
    unit: Unit,
    of: &dyn Fn(&Figures) -> Option<f64>,
) -> Option<Measured> {
    let middle = |attempts: &[Attempt]| {
        let values: Option<Vec<f64>> = attempts.iter().map(|attempt| of(&attempt.figures)).collect();
        values.filter(|values| !values.is_empty()).map(|values| Spread::of(values).median)
    };
    let both = cases.iter().filter_map(|(one, other)| {
        let weighing = Weighing::of(one, other);
        let (one, other) = (weighing.attempts(one), weighing.attempts(other));
        Some((middle(one)?, middle(other)?))
    });
    let both: Vec<(f64, f64)> = both.collect();
    if both.is_empty() {
        return None;
    }
    let found = shift(&both.iter().map(|(before, after)| after - before).collect::<Vec<_>>());
    let figure = ComparedFigure {
        name: name.to_string(),
        is_tool: false,
        unit,
        before: Spread::of(both.iter().map(|(before, _)| *before)).mean,
        after: Spread::of(both.iter().map(|(_, after)| *after)).mean,
        cases: both.len(),
        p: found.p,
        claim: Claim::Nothing,
    };
    Some(Measured { figure, test: Test { p: found.p, least_p: found.least_p }, grown: found.grown })
}
