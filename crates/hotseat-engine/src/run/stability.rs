//! Statistics of repeated cases.

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{json_equal, named};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attempt_result::Attempt;
use super::series::{AttemptStatus, RepeatSeries, StopRule};
use crate::cases::Reliability;
use hotseat_checks::read_json;
use hotseat_statistics::{
    ConfidenceInterval, RateDecision, SummaryStatistics, all_pass_probability, wilson_interval,
};

/// Statistics of a repeated case. `runs` counts valid attempts only; invalid attempts are in `invalid`, and
/// those that never started in `not_run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseStability {
    /// Number of valid attempts: passed, failed or skipped.
    pub runs: usize,
    /// Passed attempts.
    pub passed: usize,
    /// Failed attempts.
    pub failed: usize,
    /// Attempts skipped because the agent waited for input and got none.
    pub skipped: usize,
    /// Invalid attempts: a role, a hook, the test or the machine is at fault.
    pub invalid: usize,
    /// Number of invalid attempts that were replaced; the others are missing.
    #[serde(default)]
    pub redrawn: usize,
    /// Requested attempts that never started.
    pub not_run: usize,
    /// Fraction of attempt pairs with identical answers, among valid attempts with an answer. `None` with fewer
    /// than two.
    pub consistency: Option<f64>,
    /// Result for the declared reliability, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<ReliabilityResult>,
    /// Mean duration. All durations are of valid attempts.
    pub average: Duration,
    /// Shortest duration.
    pub shortest: Duration,
    /// Median duration.
    #[serde(default)]
    pub median: Duration,
    /// Longest duration.
    pub longest: Duration,
    /// Population standard deviation of the durations.
    pub deviation: Duration,
}

/// Result for a declared reliability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReliabilityResult {
    /// The declared reliability.
    pub reliability: Reliability,
    /// Grade.
    pub grade: ReliabilityGrade,
    /// Number of attempts until the conclusion. `None` without a conclusion.
    pub decided_after: Option<usize>,
}

named! {
    /// Grade of a declared reliability.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum ReliabilityGrade {
        /// Reached.
        Pass = "PASS",
        /// Missed: the case never passed.
        Fail = "FAIL",
        /// Missed: the case passes less often than declared.
        Flaky = "FLAKY",
        /// Not decided by the attempts made.
        Inconclusive = "INCONCLUSIVE",
    }
}

/// Default confidence level of displayed intervals.
pub const DEFAULT_CONFIDENCE: f64 = 0.95;

named! {
    /// Stability of a case as a category.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum StabilityClass {
        /// All attempts passed.
        Stable = "stable",
        /// At least 80 % passed.
        MostlyStable = "mostly_stable",
        /// At least 50 % passed.
        Unstable = "unstable",
        /// Less than 50 % passed.
        HighlyUnstable = "highly_unstable",
    }
}

impl CaseStability {
    /// Computes the statistics of the attempts made.
    pub(super) fn from_attempts(attempts: &[Arc<Attempt>], series: &RepeatSeries) -> CaseStability {
        let count = |standing| attempts.iter().filter(|attempt| attempt.status() == standing).count();
        let (passed, failed, skipped) =
            (count(AttemptStatus::Passed), count(AttemptStatus::Failed), count(AttemptStatus::Skipped));
        let runs = passed + failed + skipped;
        let valid = || attempts.iter().filter(|attempt| !attempt.is_invalid());
        let took = SummaryStatistics::from_values(valid().map(|attempt| attempt.duration.as_secs_f64()));
        let answers: Vec<AttemptAnswers> =
            valid().filter_map(|attempt| AttemptAnswers::from_attempt(attempt)).collect();
        let promise = match series.stop_rule() {
            StopRule::Made { .. } => None,
            StopRule::Known(reliability) => Some(ReliabilityResult {
                reliability,
                grade: match series.conclusion() {
                    Some(RateDecision::Reached) => ReliabilityGrade::Pass,
                    Some(RateDecision::Missed) if passed > 0 => ReliabilityGrade::Flaky,
                    Some(RateDecision::Missed) if failed > 0 => ReliabilityGrade::Fail,
                    // Without a valid answered attempt nothing can be concluded.
                    Some(RateDecision::Missed) | None => ReliabilityGrade::Inconclusive,
                },
                decided_after: series.decided_after(),
            }),
        };
        CaseStability {
            runs,
            passed,
            failed,
            skipped,
            invalid: attempts.len() - runs,
            redrawn: series.replaced(),
            not_run: series.pending_attempts(attempts.len()),
            consistency: agreement(&answers),
            promise,
            average: Duration::from_secs_f64(took.mean),
            shortest: Duration::from_secs_f64(took.min),
            median: Duration::from_secs_f64(took.median),
            longest: Duration::from_secs_f64(took.max),
            deviation: Duration::from_secs_f64(took.standard_deviation),
        }
    }

    /// Number of invalid attempts that were not replaced.
    pub fn missing_attempts(&self) -> usize {
        self.invalid - self.redrawn
    }

    /// Confidence interval of the pass rate over valid attempts, and its confidence level.
    pub fn interval(&self) -> (ConfidenceInterval, f64) {
        let confidence = self.promise.map_or(DEFAULT_CONFIDENCE, |promise| promise.reliability.confidence);
        (wilson_interval(self.passed, self.runs, confidence), confidence)
    }

    /// Probability that `k` attempts in a row pass (pass^k). `None` if `k` exceeds the number of valid
    /// attempts.
    pub fn pass_hat_k(&self, k: usize) -> Option<f64> {
        all_pass_probability(k, self.passed, self.runs)
    }

    /// Pass rate of the valid attempts, from 0 to 1. `None` without valid attempts.
    pub fn pass_rate(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.passed as f64 / self.runs as f64)
    }

    /// True if every attempt passed. `None` if none failed but some are missing.
    pub fn is_stable(&self) -> Option<bool> {
        match (self.passed == self.runs, self.is_complete()) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => None,
        }
    }

    /// True if several attempts are valid and none of them passed.
    pub fn never_passed(&self) -> bool {
        self.passed == 0 && self.runs > 1
    }

    /// True if every requested attempt is valid.
    fn is_complete(&self) -> bool {
        self.not_run == 0 && self.missing_attempts() == 0 && self.runs > 0
    }

    /// Stability category. `None` if attempts are missing.
    pub fn class(&self) -> Option<StabilityClass> {
        let percent = (self.passed * 100).checked_div(self.runs)?;
        self.is_complete().then_some(match percent {
            100.. => StabilityClass::Stable,
            80.. => StabilityClass::MostlyStable,
            50.. => StabilityClass::Unstable,
            _ => StabilityClass::HighlyUnstable,
        })
    }
}

impl Attempt {
    /// Status of the attempt with respect to its case.
    pub fn status(&self) -> AttemptStatus {
        AttemptStatus::from_verdict(&self.verdict)
    }

    /// True if the attempt says nothing about the agent.
    pub fn is_invalid(&self) -> bool {
        !self.status().is_valid()
    }
}

/// Answers of the agent in one attempt, turn by turn.
struct AttemptAnswers(Vec<ComparableAnswer>);

/// An answer normalised for comparison: JSON by value, text with collapsed white space.
enum ComparableAnswer {
    None,
    Json(Value),
    Words(String),
}

impl AttemptAnswers {
    /// Returns `None` if the agent answered nothing.
    fn from_attempt(attempt: &Attempt) -> Option<AttemptAnswers> {
        let turns = &attempt.conversation.turns;
        let any = turns.iter().any(|turn| turn.answer().is_some());
        any.then(|| {
            AttemptAnswers(turns.iter().map(|turn| ComparableAnswer::from_text(turn.answer())).collect())
        })
    }

    fn agree(&self, other: &AttemptAnswers) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| a.agrees(b))
    }
}

impl ComparableAnswer {
    fn from_text(text: Option<&str>) -> ComparableAnswer {
        let Some(text) = text else { return ComparableAnswer::None };
        match read_json(text) {
            Ok(value) => ComparableAnswer::Json(value),
            Err(_) => ComparableAnswer::Words(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }

    fn agrees(&self, other: &ComparableAnswer) -> bool {
        match (self, other) {
            (ComparableAnswer::None, ComparableAnswer::None) => true,
            (ComparableAnswer::Json(a), ComparableAnswer::Json(b)) => json_equal(a, b),
            (ComparableAnswer::Words(a), ComparableAnswer::Words(b)) => a == b,
            (ComparableAnswer::None | ComparableAnswer::Json(_) | ComparableAnswer::Words(_), _) => false,
        }
    }
}

/// Fraction of all pairs that agree.
fn agreement(all: &[AttemptAnswers]) -> Option<f64> {
    let pairs = |n: usize| n * n.saturating_sub(1) / 2;
    // Groups equal answers, since comparing all pairs would be slow for many attempts.
    let mut groups: Vec<(&AttemptAnswers, usize)> = Vec::new();
    for answers in all {
        match groups.iter_mut().find(|(first, _)| first.agree(answers)) {
            Some((_, count)) => *count += 1,
            None => groups.push((answers, 1)),
        }
    }
    let agreeing: usize = groups.iter().map(|(_, count)| pairs(*count)).sum();
    (all.len() > 1).then(|| agreeing as f64 / pairs(all.len()) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::PassRate;

    fn stability(passed: usize, runs: usize) -> CaseStability {
        let none = RepeatSeries::new(StopRule::Made { runs: 0, least: PassRate::ALL }, 0);
        CaseStability { passed, runs, ..CaseStability::from_attempts(&[], &none) }
    }

    #[test]
    fn classes_have_documented_thresholds() {
        for (passed, runs, class) in [
            (10, 10, "stable"),
            (99, 100, "mostly_stable"),
            (199, 200, "mostly_stable"),
            (8, 10, "mostly_stable"),
            (79, 100, "unstable"),
            (7, 10, "unstable"),
            (1, 2, "unstable"),
            (49, 100, "highly_unstable"),
            (0, 1, "highly_unstable"),
        ] {
            assert_eq!(
                stability(passed, runs).class().map(StabilityClass::name),
                Some(class),
                "{passed} of {runs}"
            );
        }
    }

    #[test]
    fn incomplete_case_is_not_stable() {
        let cut_short = |passed, runs| CaseStability { not_run: 1, ..stability(passed, runs) };
        assert_eq!((cut_short(2, 2).is_stable(), cut_short(2, 2).class()), (None, None));
        assert_eq!((cut_short(1, 2).is_stable(), cut_short(1, 2).class()), (Some(false), None));
        assert_eq!((stability(2, 2).is_stable(), stability(1, 2).is_stable()), (Some(true), Some(false)));
    }

    #[test]
    fn rate_is_converted_to_required_passes() {
        for (part, runs, needed) in
            [(1.0, 3, 3), (0.8, 5, 4), (0.7, 10, 7), (0.1, 30, 3), (0.5, 3, 2), (0.01, 3, 1), (0.29, 100, 29)]
        {
            let rate = PassRate::new(part).expect("a part");
            assert_eq!(rate.required_passes(runs), needed, "{part} of {runs}");
        }
        for part in [0.0, -0.1, 1.1, f64::NAN] {
            assert_eq!(PassRate::new(part), None, "{part}");
        }
    }

    #[test]
    fn agreement_is_computed_over_pairs() {
        let answers = |texts: &[&str]| {
            AttemptAnswers(
                texts
                    .iter()
                    .map(|text| ComparableAnswer::from_text(Some(text).filter(|t| !t.is_empty()).copied()))
                    .collect(),
            )
        };
        let of = |all: &[&[&str]]| agreement(&all.iter().map(|texts| answers(texts)).collect::<Vec<_>>());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[&["a"]]), None);
        assert_eq!(of(&[&["a"], &["a"]]), Some(1.0));
        assert_eq!(of(&[&["a"], &["b"]]), Some(0.0));
        assert_eq!(of(&[&["a"], &["b"], &["a"]]), Some(1.0 / 3.0));
        assert_eq!(of(&[&["a"], &["a"], &["b"], &["b"]]), Some(2.0 / 6.0));
        assert_eq!(of(&[&["a  b\n"], &["a b"]]), Some(1.0), "blanks do not matter");
        assert_eq!(of(&[&["A"], &["a"]]), Some(0.0));
        assert_eq!(of(&[&[r#"{"a":1,"b":2}"#], &[r#"{"b": 2.0, "a": 1}"#]]), Some(1.0), "JSON by its value");
        assert_eq!(of(&[&["a", "b"], &["a"]]), Some(0.0), "a turn less");
        assert_eq!(of(&[&["a", ""], &["a", "b"]]), Some(0.0), "a turn without an answer");
    }
}
