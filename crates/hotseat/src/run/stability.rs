//! How steady a case is that was run several times.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attempt::Attempt;
use super::series::{Series, Standing, Until};
use crate::cases::Reliability;
use crate::checks::{equal, read_json};
use crate::statistics::{Finding, Interval, Spread, all_of, wilson};

/// A part of the runs of a case: more than none, at most all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PassRate(f64);

/// What the runs of a case have in common. Only runs that say something about the agent are counted as its runs; the others
/// are counted in `invalid` alone, and those that were never begun in `not_run` alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stability {
    /// How many runs say something about the agent: those that passed, failed or were skipped.
    pub runs: usize,
    /// How many of them passed.
    pub passed: usize,
    /// How many of them failed.
    pub failed: usize,
    /// How many were skipped, for nobody answered the agent.
    pub skipped: usize,
    /// How many that were made say nothing about the agent: a helper, a hook, the test or the machine is to blame.
    pub invalid: usize,
    /// How many of these were made again; the others are missing.
    #[serde(default)]
    pub redrawn: usize,
    /// How many were asked for and never begun.
    pub not_run: usize,
    /// Of all pairs of runs in which the agent answered, the part that answered the same; none with fewer than two.
    pub consistency: Option<f64>,
    /// What became of the reliability that is declared, if any is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Promise>,
    /// How long a run took on average. All durations are of runs that say something about the agent.
    pub average: Duration,
    /// How long the shortest took.
    pub shortest: Duration,
    /// How long the one in the middle took.
    #[serde(default)]
    pub median: Duration,
    /// How long the longest took.
    pub longest: Duration,
    /// By how much they differ: the standard deviation of all of them, which are no sample.
    pub deviation: Duration,
}

/// What became of a reliability that is declared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// What is declared.
    pub reliability: Reliability,
    /// Whether it is kept.
    pub grade: Grade,
    /// After how many runs that was known; none where it is not.
    pub decided_after: Option<usize>,
}

/// Whether a declared reliability is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grade {
    /// It is.
    Pass,
    /// It is not: the case never passed.
    Fail,
    /// It is not: the case passes sometimes, and less often than declared.
    Flaky,
    /// The runs do not tell.
    Inconclusive,
}

/// How sure a rate is shown to lie in its interval where nobody says it.
pub const CONFIDENCE: f64 = 0.95;

/// How steady a case is, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Every run passed.
    Stable,
    /// At least four of five did.
    MostlyStable,
    /// At least one of two did.
    Unstable,
    /// Fewer did.
    HighlyUnstable,
}

impl PassRate {
    /// All runs.
    pub const ALL: PassRate = PassRate(1.0);

    /// A part; none where it is not more than 0 and at most 1.
    pub fn new(part: f64) -> Option<PassRate> {
        (part > 0.0 && part <= 1.0).then_some(PassRate(part))
    }

    /// The part, as a number from 0 to 1.
    pub fn part(self) -> f64 {
        self.0
    }

    /// How many runs of so many have to pass.
    pub fn of(self, runs: usize) -> usize {
        // What is a whole number but for the last bit of a float is that number.
        (runs as f64 * self.0 - 1e-9).ceil() as usize
    }
}

impl Stability {
    /// What the runs that were made have in common.
    pub(super) fn of(attempts: &[Arc<Attempt>], series: &Series) -> Stability {
        let count = |standing| attempts.iter().filter(|attempt| attempt.standing() == standing).count();
        let (passed, failed, skipped) =
            (count(Standing::Passed), count(Standing::Failed), count(Standing::Skipped));
        let runs = passed + failed + skipped;
        let took = attempts.iter().filter(|attempt| !attempt.is_invalid());
        let took = Spread::of(took.map(|attempt| attempt.duration.as_secs_f64()));
        let answers: Vec<Answers> = attempts.iter().filter_map(|attempt| Answers::of(attempt)).collect();
        let promise = match series.until() {
            Until::Made { .. } => None,
            Until::Known(reliability) => Some(Promise {
                reliability,
                grade: match series.finding() {
                    Some(Finding::Reached) => Grade::Pass,
                    Some(Finding::Missed) if passed > 0 => Grade::Flaky,
                    Some(Finding::Missed) if failed > 0 => Grade::Fail,
                    // Of a case that was never answered nothing is known.
                    Some(Finding::Missed) | None => Grade::Inconclusive,
                },
                decided_after: series.decided_after(),
            }),
        };
        Stability {
            runs,
            passed,
            failed,
            skipped,
            invalid: attempts.len() - runs,
            redrawn: series.made_again(),
            not_run: series.not_begun(attempts.len()),
            consistency: agreement(&answers),
            promise,
            average: Duration::from_secs_f64(took.mean),
            shortest: Duration::from_secs_f64(took.least),
            median: Duration::from_secs_f64(took.median),
            longest: Duration::from_secs_f64(took.most),
            deviation: Duration::from_secs_f64(took.deviation),
        }
    }

    /// How many runs were made that say nothing about the agent and were not made again.
    pub fn missing(&self) -> usize {
        self.invalid - self.redrawn
    }

    /// Where the rate lies at which the case passes, as far as the runs tell that say something about the agent; and how
    /// sure that is.
    pub fn interval(&self) -> (Interval, f64) {
        let confidence = self.promise.map_or(CONFIDENCE, |promise| promise.reliability.confidence);
        (wilson(self.passed, self.runs, confidence), confidence)
    }

    /// How likely so many runs in a row all pass: pass^k. None of more than say something about the agent.
    pub fn all_of(&self, k: usize) -> Option<f64> {
        all_of(k, self.passed, self.runs)
    }

    /// The part of the runs that passed, from 0 to 1; none where no run says anything about the agent.
    pub fn pass_rate(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.passed as f64 / self.runs as f64)
    }

    /// Whether every run passed; not known where none failed and some are missing.
    pub fn is_stable(&self) -> Option<bool> {
        match (self.passed == self.runs, self.is_whole()) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => None,
        }
    }

    /// Whether each run that was asked for says something about the agent.
    fn is_whole(&self) -> bool {
        self.not_run == 0 && self.missing() == 0 && self.runs > 0
    }

    /// How steady it is, in a word; none where some runs are missing.
    pub fn class(&self) -> Option<Class> {
        let percent = (self.passed * 100).checked_div(self.runs)?;
        self.is_whole().then_some(match percent {
            100.. => Class::Stable,
            80.. => Class::MostlyStable,
            50.. => Class::Unstable,
            _ => Class::HighlyUnstable,
        })
    }
}

impl Grade {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Grade::Pass => "PASS",
            Grade::Fail => "FAIL",
            Grade::Flaky => "FLAKY",
            Grade::Inconclusive => "INCONCLUSIVE",
        }
    }
}

impl Class {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::Stable => "stable",
            Class::MostlyStable => "mostly_stable",
            Class::Unstable => "unstable",
            Class::HighlyUnstable => "highly_unstable",
        }
    }
}

impl Attempt {
    /// What it came to, for its case.
    pub fn standing(&self) -> Standing {
        Standing::of(&self.verdict)
    }

    /// Whether it failed by the fault of something that is not tested, and so says nothing about the agent.
    pub fn is_invalid(&self) -> bool {
        !self.standing().is_valid()
    }
}

/// What an agent answered in a conversation, turn by turn.
struct Answers(Vec<Answer>);

/// An answer as it is compared: JSON by its value, words whatever the blanks between them.
enum Answer {
    None,
    Json(Value),
    Words(String),
}

impl Answers {
    /// None of an attempt in which nothing was answered.
    fn of(attempt: &Attempt) -> Option<Answers> {
        let turns = &attempt.conversation.turns;
        let any = turns.iter().any(|turn| turn.answer().is_some());
        any.then(|| Answers(turns.iter().map(|turn| Answer::of(turn.answer())).collect()))
    }

    fn agree(&self, other: &Answers) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| a.agrees(b))
    }
}

impl Answer {
    fn of(text: Option<&str>) -> Answer {
        let Some(text) = text else { return Answer::None };
        match read_json(text) {
            Ok(value) => Answer::Json(value),
            Err(_) => Answer::Words(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }

    fn agrees(&self, other: &Answer) -> bool {
        match (self, other) {
            (Answer::None, Answer::None) => true,
            (Answer::Json(a), Answer::Json(b)) => equal(a, b),
            (Answer::Words(a), Answer::Words(b)) => a == b,
            (Answer::None | Answer::Json(_) | Answer::Words(_), _) => false,
        }
    }
}

/// The part of all pairs that agree.
fn agreement(all: &[Answers]) -> Option<f64> {
    let pairs = |n: usize| n * n.saturating_sub(1) / 2;
    // Those that agree with one another are counted together: comparing each with each would take long for many.
    let mut groups: Vec<(&Answers, usize)> = Vec::new();
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

    fn of(passed: usize, runs: usize) -> Stability {
        let none = Series::new(Until::Made { runs: 0, least: PassRate::ALL }, 0);
        Stability { passed, runs, ..Stability::of(&[], &none) }
    }

    #[test]
    fn classes_begin_where_the_documents_say() {
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
            assert_eq!(of(passed, runs).class().map(Class::name), Some(class), "{passed} of {runs}");
        }
    }

    #[test]
    fn a_case_of_which_not_all_runs_were_made_is_not_known_to_be_stable() {
        let cut_short = |passed, runs| Stability { not_run: 1, ..of(passed, runs) };
        assert_eq!((cut_short(2, 2).is_stable(), cut_short(2, 2).class()), (None, None));
        assert_eq!((cut_short(1, 2).is_stable(), cut_short(1, 2).class()), (Some(false), None));
        assert_eq!((of(2, 2).is_stable(), of(1, 2).is_stable()), (Some(true), Some(false)));
    }

    #[test]
    fn a_rate_is_a_number_of_runs() {
        for (part, runs, needed) in
            [(1.0, 3, 3), (0.8, 5, 4), (0.7, 10, 7), (0.1, 30, 3), (0.5, 3, 2), (0.01, 3, 1), (0.29, 100, 29)]
        {
            let rate = PassRate::new(part).expect("a part");
            assert_eq!(rate.of(runs), needed, "{part} of {runs}");
        }
        for part in [0.0, -0.1, 1.1, f64::NAN] {
            assert_eq!(PassRate::new(part), None, "{part}");
        }
    }

    #[test]
    fn agreement_is_counted_over_pairs() {
        let answers = |texts: &[&str]| {
            Answers(
                texts.iter().map(|text| Answer::of(Some(text).filter(|t| !t.is_empty()).copied())).collect(),
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
