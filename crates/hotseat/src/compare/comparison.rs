//! What two runs say of each other.
//!
//! A claim is made only where chance alone would hardly do it. The chance of any claim at all, where nothing has changed, is
//! at most 1 - confidence: half of that is for the run as a whole, and a sixth each for single cases, for checks that are
//! only measured and for figures. What cannot claim anything, whatever comes out, leaves its part to the run as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::cases::{Attempt, CameTo, Case, Run};
use super::figures::{ComparedFigure, Measured, measured};
use super::pairing::{NotCompared, Paired, Weighing, notes, paired, why_not};
use super::parting::{Parting, parting};
use crate::statistics::{Compared, Interval, Sample, Spread, Test, can_tell, compared, decided, wilson};

/// Two runs beside each other.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// The first run.
    pub before: &'a Run,
    /// The second run.
    pub after: &'a Run,
    /// How sure claims are.
    pub confidence: f64,
    /// How many cases are in both and are compared.
    pub shared: usize,
    /// Cases that only the first run has.
    pub removed: Vec<String>,
    /// Cases that only the second run has.
    pub added: Vec<String>,
    /// How many cases passed in the first run and did not pass in the second one, beside those that newly fail: they are
    /// missing, were skipped, or failed and cannot be compared.
    pub lost: usize,
    /// Cases that both have and that cannot be compared.
    pub not_compared: Vec<NotCompared<'a>>,
    /// What else makes the runs hard to compare.
    pub notes: Vec<String>,
    /// How often attempts passed in the first run.
    pub passed_before: Rates,
    /// How often attempts passed in the second run.
    pub passed_after: Rates,
    /// How likely so different runs are where nothing has changed.
    pub p: f64,
    /// What can be said of how often attempts pass, over all cases.
    pub claim: Claim,
    /// Whether anything could have been said of it.
    pub can_tell: bool,
    /// Cases that are compared and did not come to quite the same.
    pub cases: Vec<ComparedCase<'a>>,
    /// Checks that are only measured.
    pub soft: Vec<ComparedCheck>,
    /// Time, turns, calls, tokens, cost.
    pub figures: Vec<ComparedFigure>,
}

/// What can be said of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Nothing: it may well be chance.
    Nothing,
    /// It is less than it was.
    Less,
    /// It is more than it was.
    More,
}

/// How often attempts passed in a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// How many attempts passed.
    pub passed: usize,
    /// Of so many.
    pub tries: usize,
    /// Where the rate lies.
    pub interval: Interval,
    /// Where cases were run several times: the rates of the first, second, … attempts at all cases.
    pub by_attempt: Option<Spread>,
}

/// How a case changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It passed, and fails now.
    NewlyFails,
    /// It failed, and passes now.
    NewlyPasses,
    /// It came to the same, and fewer of its attempts passed.
    PassesLess,
    /// It came to the same, and more of its attempts passed.
    PassesMore,
    /// It passes as often as before.
    Same,
}

/// A case of both runs.
#[derive(Debug)]
pub struct ComparedCase<'a> {
    /// As it was.
    pub before: &'a Case,
    /// As it is.
    pub after: &'a Case,
    /// How it changed.
    pub change: Change,
    /// How likely that is where nothing has changed.
    pub p: f64,
    /// What can be said of how often it passes.
    pub claim: Claim,
    /// The two attempts whose conversations stand beside each other.
    pub told: Option<(&'a Attempt, &'a Attempt)>,
    /// Where these part.
    pub parting: Option<Parting>,
}

/// A check that is only measured, over all cases that have it in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedCheck {
    /// Its words.
    pub words: String,
    /// Of the first run: in how many attempts it holds wherever it was decided, and of how many.
    pub before: (usize, usize),
    /// The same of the second run.
    pub after: (usize, usize),
    /// How likely that is where nothing has changed.
    pub p: f64,
    /// What can be said of it.
    pub claim: Claim,
}

impl Comparison<'_> {
    /// Whether something passes less often than before, by more than chance.
    pub fn is_worse(&self) -> bool {
        self.claim == Claim::Less || self.cases.iter().any(|case| case.claim == Claim::Less)
    }

    /// How many cases passed, and fail now.
    pub fn newly_failing(&self) -> usize {
        self.cases.iter().filter(|case| case.change == Change::NewlyFails).count()
    }
}

/// How two runs are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// How sure claims are: they are wrong with a chance of 1 less this at most, all of them together.
    pub confidence: f64,
    /// Whether cases are compared although the user says something else in them: as users do who are no script.
    pub other_inputs: bool,
}

/// Compares two runs.
pub fn compare<'a>(before: &'a Run, after: &'a Run, rules: Rules) -> Comparison<'a> {
    let Rules { confidence, other_inputs } = rules;
    let Paired { pairs, removed, added } = paired(before, after);
    let mut not_compared = Vec::new();
    let mut both = Vec::new();
    for (one, other) in pairs {
        match why_not(one, other, other_inputs) {
            Some(why) => not_compared.push(NotCompared { before: one, case: other, why }),
            None => both.push((one, other)),
        }
    }
    let passed = |case: &&Case| case.came_to == CameTo::Passed;
    let differing = not_compared.iter().map(|not| (not.before, not.case));
    let skipped = both.iter().copied().filter(|(_, other)| other.came_to == CameTo::Skipped);
    let lost = removed.iter().copied().filter(passed).count()
        + differing.chain(skipped).filter(|(one, other)| passed(one) && !passed(other)).count();
    let samples: Vec<Sample> = both.iter().map(|(one, other)| tested(one, other)).collect();
    let overall = compared(&samples);
    let singly: Vec<Compared> = samples.iter().map(|sample| compared(&[*sample])).collect();
    let soft = soft(&both);
    let figures = measured(&both);

    // What is left of the chance to be wrong once those who can claim something have got their part.
    let alpha = 1.0 - confidence;
    let part = alpha / 6.0;
    let of_cases: Vec<Test> = singly.iter().map(test).collect();
    let of_soft: Vec<Test> = soft.iter().map(|(_, found)| test(found)).collect();
    let of_figures: Vec<Test> = figures.iter().map(|measured| measured.test).collect();
    let families = [&of_cases, &of_soft, &of_figures];
    let able = families.iter().filter(|tests| can_tell(tests, part)).count();
    let share = alpha - part * able as f64;

    let cases = decided(&of_cases, part);
    let soft_found = decided(&of_soft, part);
    let figures_found = decided(&of_figures, part);
    let found = decided(&[test(&overall)], share);
    Comparison {
        before,
        after,
        confidence,
        shared: both.len(),
        removed: removed.iter().map(|case| case.shown().to_string()).collect(),
        added,
        lost,
        not_compared,
        notes: notes(before, after, &both),
        passed_before: rates(both.iter().map(|(one, _)| *one), confidence),
        passed_after: rates(both.iter().map(|(_, other)| *other), confidence),
        p: overall.p,
        claim: claim(&overall, found[0]),
        can_tell: can_tell(&[test(&overall)], share) || can_tell(&of_cases, part),
        cases: both
            .iter()
            .zip(singly.iter().zip(cases))
            .map(|((one, other), (single, found))| case(one, other, single, found))
            .collect(),
        soft: soft
            .into_iter()
            .zip(soft_found)
            .map(|((check, single), found)| ComparedCheck {
                p: single.p,
                claim: claim(&single, found),
                ..check
            })
            .collect(),
        figures: figures
            .into_iter()
            .zip(figures_found)
            .map(|(one, found)| Measured::decided(one, found))
            .collect(),
    }
}

/// What all attempts at a case came to.
fn sample(before: &Case, after: &Case) -> Sample {
    Sample {
        passed_before: before.passed(),
        tries_before: before.attempts.len(),
        passed_after: after.passed(),
        tries_after: after.attempts.len(),
    }
}

/// What a test is told of a case.
fn tested(before: &Case, after: &Case) -> Sample {
    let weighing = Weighing::of(before, after);
    let count = |case| {
        let attempts = weighing.attempts(case);
        (attempts.iter().filter(|attempt| attempt.passed).count(), attempts.len())
    };
    let ((passed_before, tries_before), (passed_after, tries_after)) = (count(before), count(after));
    weighing.sample(Sample { passed_before, tries_before, passed_after, tries_after })
}

fn test(found: &Compared) -> Test {
    Test { p: found.p, least_p: found.least_p }
}

fn claim(compared: &Compared, found: bool) -> Claim {
    match (found, compared.worse < compared.better) {
        (false, _) => Claim::Nothing,
        (true, true) => Claim::Less,
        (true, false) => Claim::More,
    }
}

fn rates<'a>(cases: impl Iterator<Item = &'a Case> + Clone, confidence: f64) -> Rates {
    let passed = cases.clone().map(Case::passed).sum();
    let tries = cases.clone().map(|case| case.attempts.len()).sum();
    let most = cases.clone().map(|case| case.attempts.len()).max().unwrap_or(0);
    let rate = |at: usize| {
        let made = cases.clone().filter_map(move |case| case.attempts.get(at));
        let passed: Vec<bool> = made.map(|attempt| attempt.passed).collect();
        passed.iter().filter(|passed| **passed).count() as f64 / passed.len().max(1) as f64
    };
    let by_attempt = (most > 1).then(|| Spread::of((0..most).map(rate)));
    Rates { passed, tries, interval: wilson(passed, tries, confidence), by_attempt }
}

/// Checks that are only measured, by their words. They are undecided yet.
fn soft(both: &[(&Case, &Case)]) -> Vec<(ComparedCheck, Compared)> {
    // What was found in all attempts, and what a test is told of it.
    let mut all: BTreeMap<&str, Vec<(Sample, Sample)>> = BTreeMap::new();
    let of = |attempts: &[Attempt], words: &str| {
        // What an agent does in one conversation hangs together, so an attempt counts once.
        let decided = attempts.iter().filter_map(|attempt| attempt.soft.get(words));
        decided.fold((0, 0), |(tries, all), (decided, hold)| (tries + 1, all + usize::from(decided == hold)))
    };
    for (one, other) in both {
        let words: BTreeSet<&String> = one.attempts.iter().flat_map(|attempt| attempt.soft.keys()).collect();
        for words in words {
            let both = |before: &[Attempt], after: &[Attempt]| {
                let ((tries_before, passed_before), (tries_after, passed_after)) =
                    (of(before, words), of(after, words));
                Sample { passed_before, tries_before, passed_after, tries_after }
            };
            let found = both(&one.attempts, &other.attempts);
            if found.tries_after > 0 {
                let weighing = Weighing::of(one, other);
                let tested = both(weighing.attempts(one), weighing.attempts(other));
                all.entry(words).or_default().push((found, weighing.sample(tested)));
            }
        }
    }
    let check = |(words, samples): (&str, Vec<(Sample, Sample)>)| {
        let (samples, tested): (Vec<Sample>, Vec<Sample>) = samples.into_iter().unzip();
        let sum = |of: fn(&Sample) -> usize| samples.iter().map(of).sum::<usize>();
        let check = ComparedCheck {
            words: words.to_string(),
            before: (sum(|one| one.passed_before), sum(|one| one.tries_before)),
            after: (sum(|one| one.passed_after), sum(|one| one.tries_after)),
            p: 1.0,
            claim: Claim::Nothing,
        };
        (check, compared(&tested))
    };
    all.into_iter().map(check).collect()
}

fn case<'a>(before: &'a Case, after: &'a Case, single: &Compared, found: bool) -> ComparedCase<'a> {
    let by = sample(before, after).difference().unwrap_or(0.0);
    let change = match (before.came_to, after.came_to) {
        (CameTo::Passed, CameTo::Failed) => Change::NewlyFails,
        (CameTo::Failed, CameTo::Passed) => Change::NewlyPasses,
        _ if by < 0.0 => Change::PassesLess,
        _ if by > 0.0 => Change::PassesMore,
        _ => Change::Same,
    };
    // Where it changed, an attempt that passed stands beside one that failed.
    let first = |case: &'a Case, passed: Option<bool>| {
        let fits = |attempt: &&Attempt| passed.is_none_or(|passed| attempt.passed == passed);
        case.attempts.iter().find(fits).or(case.attempts.first())
    };
    let (one, other) = match change {
        Change::NewlyFails | Change::PassesLess => (Some(true), Some(false)),
        Change::NewlyPasses | Change::PassesMore => (Some(false), Some(true)),
        Change::Same => (None, None),
    };
    let told = first(before, one).zip(first(after, other));
    let parting = told.and_then(|(one, other)| parting(one, other));
    ComparedCase { before, after, change, p: single.p, claim: claim(single, found), told, parting }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::cases::{Figures, StoppingRule};
    use super::*;
    use crate::statistics::{Dice, Sequential};

    const RULES: Rules = Rules { confidence: 0.95, other_inputs: false };

    /// A run of cases of which so many of so many attempts passed.
    fn run(cases: &[(&str, usize, usize)]) -> Run {
        let case = |&(id, passed, tries): &(&str, usize, usize)| Case {
            id: id.into(),
            came_to: if passed == tries { CameTo::Passed } else { CameTo::Failed },
            checked: Some("same".into()),
            asked: Some("same".into()),
            attempts: (0..tries)
                .map(|at| Attempt { number: at + 1, passed: at < passed, ..Attempt::default() })
                .collect(),
            ..Case::default()
        };
        Run { cases: cases.iter().map(case).collect(), ..Run::default() }
    }

    #[test]
    fn one_attempt_that_fails_is_no_claim() {
        let all: Vec<(String, usize)> = (0..20).map(|n| (format!("c{n}"), 1)).collect();
        let of = |failing: usize| {
            run(&all
                .iter()
                .enumerate()
                .map(|(n, (id, _))| (&**id, usize::from(n >= failing), 1))
                .collect::<Vec<_>>())
        };
        let (before, one, many) = (of(0), of(1), of(10));
        let found = compare(&before, &one, RULES);
        assert_eq!(
            (found.claim, found.is_worse(), found.newly_failing(), found.can_tell),
            (Claim::Nothing, false, 1, false)
        );
        let found = compare(&before, &many, RULES);
        assert_eq!((found.claim, found.is_worse(), found.newly_failing()), (Claim::Less, true, 10));
        let found = compare(&many, &before, RULES);
        assert_eq!((found.claim, found.is_worse()), (Claim::More, false));
        assert_eq!(compare(&before, &before, RULES).p, 1.0);
    }

    #[test]
    fn a_case_that_always_passed_and_never_does_is_found_among_many() {
        let before: Vec<(String, usize)> = (0..100).map(|n| (format!("c{n}"), 10)).collect();
        let of = |broken: usize| {
            let passed = |n: usize| if n < broken { 0 } else { 10 };
            run(&before.iter().enumerate().map(|(n, (id, _))| (&**id, passed(n), 10)).collect::<Vec<_>>())
        };
        let (whole, broken) = (of(0), of(1));
        let found = compare(&whole, &broken, RULES);
        let worse: Vec<&str> = found
            .cases
            .iter()
            .filter(|case| case.claim == Claim::Less)
            .map(|case| &*case.before.id)
            .collect();
        assert_eq!((worse, found.is_worse()), (vec!["c0"], true));
    }

    /// Runs of the same agent, in which each case is attempted until it is known whether it passes as often as declared.
    struct SameAgent {
        rule: StoppingRule,
        /// What is known after so many passes and failures: simulations ask the same again and again.
        known: HashMap<(usize, usize), Sequential>,
        dice: Dice,
    }

    impl SameAgent {
        fn attempts(&mut self, rate: f64) -> Vec<Attempt> {
            let (mut passed, mut failed) = (0, 0);
            let mut attempts = Vec::new();
            while attempts.len() < self.rule.max_runs {
                let test = self.known[&(passed, failed)].clone();
                if test.finding().is_some() {
                    break;
                }
                let passes = self.dice.happens(rate);
                if passes {
                    passed += 1;
                } else {
                    failed += 1;
                }
                self.known.entry((passed, failed)).or_insert_with(|| {
                    let mut test = test;
                    test.note(passes);
                    test
                });
                attempts.push(attempt(passes));
            }
            attempts
        }

        fn run(&mut self, rates: &[f64], stopping: Option<StoppingRule>) -> Run {
            let case = |(number, rate): (usize, &f64)| Case {
                id: format!("c{number}"),
                checked: Some("same".into()),
                asked: Some("same".into()),
                attempts: match stopping {
                    Some(_) => self.attempts(*rate),
                    None => (0..5).map(|_| attempt(self.dice.happens(*rate))).collect(),
                },
                stopping,
                ..Case::default()
            };
            Run { cases: rates.iter().enumerate().map(case).collect(), ..Run::default() }
        }
    }

    /// An attempt in which everything hangs together with whether it passes.
    fn attempt(passed: bool) -> Attempt {
        let soft = BTreeMap::from([("kind".to_string(), (1, usize::from(passed)))]);
        let figures = Figures { turns: 1 + usize::from(passed), ..Figures::default() };
        Attempt { passed, soft, figures, ..Attempt::default() }
    }

    /// 4,000 pairs of runs of the same agent: where results decide how many attempts are made, the limit of wrong claims
    /// is kept as it is elsewhere.
    #[test]
    fn the_same_agent_is_claimed_to_be_another_one_in_one_of_twenty_pairs_at_most() {
        let rule = StoppingRule { rate: 0.8, confidence: 0.9, max_runs: 30 };
        let first = Sequential::new(rule.rate, rule.confidence);
        let mut agent = SameAgent { rule, known: HashMap::from([((0, 0), first)]), dice: Dice::new(23) };
        let mut shares = Vec::new();
        for (name, other, pairs) in [("the same rule", Some(rule), 2_500), ("a fixed number", None, 1_500)] {
            let (mut claims, mut by_counts) = (0_u32, 0_u32);
            for _ in 0..pairs {
                let rates: Vec<f64> = (0..20).map(|_| 0.55 + 0.45 * agent.dice.part()).collect();
                let (before, after) = (agent.run(&rates, Some(rule)), agent.run(&rates, other));
                let found = compare(&before, &after, RULES);
                assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
                assert!(found.cases.iter().all(|case| case.claim == Claim::Nothing));
                let claimed = found.claim != Claim::Nothing
                    || found.soft.iter().any(|check| check.claim != Claim::Nothing)
                    || found.figures.iter().any(|figure| figure.claim != Claim::Nothing);
                claims += u32::from(claimed);
                let pairs = before.cases.iter().zip(&after.cases);
                let counts: Vec<Sample> = pairs.map(|(one, other)| sample(one, other)).collect();
                by_counts += u32::from(compared(&counts).p <= 0.05);
            }
            shares.push((
                name,
                f64::from(claims) / f64::from(pairs),
                f64::from(by_counts) / f64::from(pairs),
            ));
        }
        assert!(shares.iter().all(|(_, claims, _)| *claims <= 0.05), "{shares:?}");
        // A test of counts would not keep the limit, so these are runs in which it can be missed.
        assert!(shares.iter().all(|(.., by_counts)| *by_counts > 0.05), "{shares:?}");
    }

    #[test]
    fn an_agent_that_is_worse_is_found_where_results_decide_how_often_it_is_asked() {
        let rule = StoppingRule { rate: 0.8, confidence: 0.9, max_runs: 30 };
        let first = Sequential::new(rule.rate, rule.confidence);
        let mut agent = SameAgent { rule, known: HashMap::from([((0, 0), first)]), dice: Dice::new(5) };
        let (before, after) = (agent.run(&[0.95; 20], Some(rule)), agent.run(&[0.6; 20], Some(rule)));
        let found = compare(&before, &after, RULES);
        assert_eq!((found.claim, found.is_worse()), (Claim::Less, true));
        assert_eq!(
            found.passed_before.tries,
            before.cases.iter().map(|case| case.attempts.len()).sum::<usize>()
        );
    }

    #[test]
    fn what_cannot_be_compared_is_named() {
        let before = run(&[("a", 1, 1), ("b", 1, 1), ("c", 1, 1), ("gone", 1, 1), ("e", 1, 1)]);
        let mut after = run(&[("a", 1, 1), ("b", 0, 1), ("c", 0, 1), ("e", 0, 0), ("new", 1, 1)]);
        after.cases[1].checked = Some("other".into());
        after.cases[2].judges.insert("mild".into());
        after.agent = Some("b".into());
        let mut before_judged = before;
        before_judged.cases[2].judges.insert("stern".into());
        before_judged.agent = Some("a".into());
        let found = compare(&before_judged, &after, RULES);
        let why: Vec<(&str, &str)> = found.not_compared.iter().map(|not| (&*not.case.id, not.why)).collect();
        assert_eq!(
            why,
            [
                ("b", "other checks"),
                ("c", "another judge"),
                ("e", "says nothing about the agent in the second run")
            ]
        );
        assert_eq!((found.shared, found.removed, found.added), (1, vec!["gone".into()], vec!["new".into()]));
        assert_eq!(found.notes, ["other agents: a and b"]);
    }

    #[test]
    fn cases_belong_together_by_id_where_their_suite_has_moved() {
        let (mut before, mut after) =
            (run(&[("a", 1, 1), ("a", 1, 1), ("b", 1, 1)]), run(&[("a", 1, 1), ("b", 1, 1)]));
        before.cases[0].file = "x".into();
        before.cases[1].file = "y".into();
        after.cases[0].file = "y".into();
        after.cases[1].file = "moved".into();
        let found = compare(&before, &after, RULES);
        assert_eq!((found.shared, found.removed.len(), found.added.len()), (2, 1, 0));
    }
}
