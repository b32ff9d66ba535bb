//! A comparison for people.

use std::io::{self, Write};
use std::time::Duration;

use super::cases::{Attempt, Case};
use super::comparison::{Change, Claim, ComparedCase, Comparison, Rates};
use super::figures::{ComparedFigure, Unit};
use super::parting::{Parting, Step, differences};
use crate::report::{count, duration, one_line, percent, wrap};

/// How many cases are shown of each kind.
const SHOWN: usize = 20;
/// How many differences between arguments are told.
const DIFFERENCES: usize = 3;
/// How many names stand in a row.
const NAMED: usize = 5;

/// Writes a comparison, in lines of `width` columns where that can be.
///
/// # Errors
/// When it cannot be written.
pub fn write_words(comparison: &Comparison<'_>, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page { out, width };
    page.head(comparison)?;
    page.rate(comparison)?;
    page.cases(comparison)?;
    page.soft(comparison)?;
    page.figures(comparison)?;
    page.verdict(comparison)
}

struct Page<'a> {
    out: &'a mut dyn Write,
    width: usize,
}

impl Page<'_> {
    /// A line that is broken where there is no more room; what follows stands below its text.
    fn line(&mut self, head: &str, text: &str) -> io::Result<()> {
        let indent = head.chars().count();
        let room = self.width.saturating_sub(indent).max(20);
        for (at, line) in wrap(&one_line(text, 4000), room, room).iter().enumerate() {
            let head = if at == 0 { head.to_string() } else { " ".repeat(indent) };
            writeln!(self.out, "{}", format!("{head}{line}").trim_end())?;
        }
        Ok(())
    }

    fn head(&mut self, comparison: &Comparison<'_>) -> io::Result<()> {
        let Comparison { before, after, shared, removed, added, not_compared, notes, .. } = comparison;
        for (head, run) in [("before: ", before), ("after:  ", after)] {
            let mut words = run.shown.clone();
            let more = [run.started_at.as_deref(), run.agent.as_deref()];
            for more in more.into_iter().flatten() {
                words.push_str(&format!(" · {more}"));
            }
            self.line(head, &words)?;
        }
        self.line("cases:  ", &format!("{} in both and compared", shared))?;
        for (head, names) in [("only before: ", removed), ("only after: ", added)] {
            if !names.is_empty() {
                self.line(head, &named(names.iter().map(String::as_str)))?;
            }
        }
        let mut reasons: Vec<&str> = not_compared.iter().map(|not| not.why).collect();
        reasons.sort_unstable();
        reasons.dedup();
        for why in reasons {
            let cases = not_compared.iter().filter(|not| not.why == why).map(|not| not.case.shown());
            self.line("not compared: ", &format!("{why}: {}", named(cases)))?;
        }
        for note in notes {
            self.line("note: ", note)?;
        }
        writeln!(self.out)
    }

    fn rate(&mut self, comparison: &Comparison<'_>) -> io::Result<()> {
        let words = format!("{} → {}", rates(&comparison.passed_before), rates(&comparison.passed_after));
        self.line("pass rate: ", &words)?;
        if let (Some(one), Some(other)) =
            (comparison.passed_before.by_attempt, comparison.passed_after.by_attempt)
        {
            let side = |spread: crate::statistics::Spread| {
                format!("{:.1}% ± {:.1}", spread.mean * 100.0, spread.deviation * 100.0)
            };
            let overlap = one.least <= other.most && other.least <= one.most;
            let overlap = if overlap { "their ranges overlap" } else { "their ranges do not overlap" };
            self.line("  run by run: ", &format!("{} → {}; {overlap}", side(one), side(other)))?;
        }
        let words = match (comparison.claim, comparison.can_tell) {
            (Claim::Less, _) => format!("worse, by more than chance (p = {})", p(comparison.p)),
            (Claim::More, _) => format!("better, by more than chance (p = {})", p(comparison.p)),
            (Claim::Nothing, true) => format!("no more than chance (p = {})", p(comparison.p)),
            (Claim::Nothing, false) if comparison.cases.iter().all(|case| case.change == Change::Same) => {
                "every case passes as often as before".to_string()
            }
            (Claim::Nothing, false) => {
                "too few attempts to tell a change from chance: give both runs more, with `--runs`"
                    .to_string()
            }
        };
        self.line("  ", &words)
    }

    fn cases(&mut self, comparison: &Comparison<'_>) -> io::Result<()> {
        for (place, title) in PARTS.iter().enumerate() {
            let mut found: Vec<&ComparedCase<'_>> =
                comparison.cases.iter().filter(|case| part_of(case) == Some(place)).collect();
            if found.is_empty() {
                continue;
            }
            found.sort_by(|a, b| a.p.total_cmp(&b.p));
            writeln!(self.out)?;
            self.line("", &format!("{} {title}", count(found.len(), "case")))?;
            for case in found.iter().take(SHOWN) {
                self.case(case)?;
            }
            if found.len() > SHOWN {
                self.line("  … ", &format!("and {} more", found.len() - SHOWN))?;
            }
        }
        Ok(())
    }

    fn case(&mut self, case: &ComparedCase<'_>) -> io::Result<()> {
        let side = |case: &Case| format!("{}/{}", case.passed(), case.attempts.len());
        let sign = match case.change {
            Change::NewlyFails | Change::PassesLess => "✗",
            Change::NewlyPasses | Change::PassesMore => "✓",
            Change::Same => "·",
        };
        let numbers = format!("{} → {}", side(case.before), side(case.after));
        self.line(&format!("  {sign} "), &format!("{} {numbers}", case.after.shown()))?;
        let Some((one, other)) = case.told else { return Ok(()) };
        match &case.parting {
            Some(found) => {
                let which = |case: &Case, attempt: &Attempt| match case.attempts.len() {
                    1 => String::new(),
                    _ => format!(" (run {})", attempt.number),
                };
                self.parting(found, [which(case.before, one), which(case.after, other)])?;
            }
            None => self.line("      ", "both conversations do and say the same")?,
        }
        match other.error.as_deref().filter(|_| !other.passed) {
            Some(error) => self.line("      error: ", error),
            None => Ok(()),
        }
    }

    /// Where two conversations part, and in which runs of the case.
    fn parting(&mut self, found: &Parting, which: [String; 2]) -> io::Result<()> {
        let place = match found.call {
            Some(call) => format!("they part in turn {}, at call {call}:", found.turn),
            None => format!("they part in turn {}:", found.turn),
        };
        self.line("      ", &place)?;
        if let (Step::Call(a), Step::Call(b)) = (&found.before, &found.after)
            && a.tool == b.tool
        {
            let all = differences(&a.arguments, &b.arguments, DIFFERENCES);
            return self.line("        ", &format!("{} with other arguments: {}", a.tool, all.join("; ")));
        }
        let [before, after] = which;
        for (head, step) in
            [(format!("before{before}: "), &found.before), (format!("after{after}: "), &found.after)]
        {
            let words = match step {
                Step::User(text) => format!("the user says {}", quoted(text)),
                Step::Call(call) => format!("{}({})", call.tool, call.arguments),
                Step::Answer(text) if text.is_empty() => "the agent says nothing".to_string(),
                Step::Answer(text) => format!("the agent says {}", quoted(text)),
                Step::Error(words) => format!("error: {words}"),
                Step::Over => "the conversation is over".to_string(),
            };
            let room = (self.width * 2).max(120);
            self.line(&format!("        {head:<8}"), &one_line(&words, room))?;
        }
        Ok(())
    }

    fn soft(&mut self, comparison: &Comparison<'_>) -> io::Result<()> {
        let differ = comparison.soft.iter().filter(|check| check.before != check.after);
        let differ: Vec<_> = differ.collect();
        if differ.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        self.line("", "only measured")?;
        for check in differ.iter().take(SHOWN) {
            let side = |(holds, all): (usize, usize)| format!("{holds}/{all}");
            let claim = match check.claim {
                Claim::Nothing => "may be chance".to_string(),
                Claim::Less => format!("less often, by more than chance (p = {})", p(check.p)),
                Claim::More => format!("more often, by more than chance (p = {})", p(check.p)),
            };
            let words = one_line(&check.words, self.width);
            self.line("  ", &format!("{words}: {} → {}, {claim}", side(check.before), side(check.after)))?;
        }
        match differ.len() > SHOWN {
            true => self.line("  … ", &format!("and {} more", differ.len() - SHOWN)),
            false => Ok(()),
        }
    }

    fn figures(&mut self, comparison: &Comparison<'_>) -> io::Result<()> {
        let tells = |one: &&ComparedFigure| match one.is_tool {
            true => one.claim != Claim::Nothing,
            false => one.before > 0.0 || one.after > 0.0,
        };
        let shown: Vec<&ComparedFigure> = comparison.figures.iter().filter(tells).collect();
        let tools = comparison.figures.iter().filter(|one| one.is_tool && one.claim == Claim::Nothing);
        let quiet: Vec<&ComparedFigure> = tools.filter(|one| one.before != one.after).collect();
        if shown.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        self.line("", "on average of a case")?;
        for figure in shown {
            let claim = match figure.claim {
                Claim::Nothing if figure.before == figure.after => String::new(),
                Claim::Nothing => ", may be chance".to_string(),
                Claim::Less => format!(", less by more than chance (p = {})", p(figure.p)),
                Claim::More => format!(", more by more than chance (p = {})", p(figure.p)),
            };
            let (before, after) = (amount(figure.unit, figure.before), amount(figure.unit, figure.after));
            let name = if figure.is_tool { format!("calls of {}", figure.name) } else { figure.name.clone() };
            self.line("  ", &format!("{name}: {before} → {after}{claim}"))?;
        }
        if !quiet.is_empty() {
            let names = named(quiet.iter().map(|figure| figure.name.as_str()));
            self.line("  ", &format!("calls of {names}: differ, may be chance"))?;
        }
        Ok(())
    }

    fn verdict(&mut self, comparison: &Comparison<'_>) -> io::Result<()> {
        writeln!(self.out)?;
        let sure = format!("{}%", (comparison.confidence * 1e4).round() / 100.0);
        let words = match (comparison.is_worse(), comparison.newly_failing(), comparison.shared) {
            (_, _, 0) => "nothing could be compared".to_string(),
            (true, ..) => format!("WORSE: more fails than before, by more than chance ({sure} confidence)"),
            (false, 0, _) => format!("nothing got worse by more than chance ({sure} confidence)"),
            (false, n, _) => {
                let fail = if n == 1 { "fails" } else { "fail" };
                let cases = count(n, "case");
                format!(
                    "nothing got worse by more than chance ({sure} confidence), though {cases} newly {fail}"
                )
            }
        };
        let lost = match comparison.lost {
            0 => String::new(),
            n => format!("; {} passed before and did not pass now, and cannot be compared", count(n, "case")),
        };
        self.line("", &format!("{words}{lost}"))
    }
}

/// In which parts cases are shown, in this order.
const PARTS: [&str; 6] = [
    "worse, by more than chance",
    "better, by more than chance",
    "newly failing; that may be chance",
    "newly passing; that may be chance",
    "passing less often; that may be chance",
    "passing more often; that may be chance",
];

/// The part in which a case is shown; none where it is as it was.
fn part_of(case: &ComparedCase<'_>) -> Option<usize> {
    match (case.claim, case.change) {
        (Claim::Less, _) => Some(0),
        (Claim::More, _) => Some(1),
        (Claim::Nothing, Change::NewlyFails) => Some(2),
        (Claim::Nothing, Change::NewlyPasses) => Some(3),
        (Claim::Nothing, Change::PassesLess) => Some(4),
        (Claim::Nothing, Change::PassesMore) => Some(5),
        (Claim::Nothing, Change::Same) => None,
    }
}

/// `84.0% (42/50, 71–92%)`
fn rates(rates: &Rates) -> String {
    let Rates { passed, tries, interval, .. } = rates;
    let part = percent(*passed as f64 * 100.0 / (*tries).max(1) as f64);
    format!("{part} ({passed}/{tries}, {:.0}–{:.0}%)", interval.low * 100.0, interval.high * 100.0)
}

fn amount(unit: Unit, value: f64) -> String {
    match unit {
        // A report may hold any number.
        Unit::Seconds => duration(Duration::try_from_secs_f64(value.max(0.0)).unwrap_or(Duration::MAX)),
        Unit::Money => format!("{value:.4}"),
        Unit::Count if value >= 100.0 => format!("{value:.0}"),
        Unit::Count => format!("{}", (value * 100.0).round() / 100.0),
    }
}

/// A probability as it is read: three digits, and never 0.
fn p(p: f64) -> String {
    if p < 0.0005 { "less than 0.001".to_string() } else { format!("{p:.3}") }
}

fn quoted(text: &str) -> String {
    format!("“{}”", text.trim())
}

/// The first of some names, and how many more there are.
fn named<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.collect();
    let more = all.len().saturating_sub(NAMED);
    let first = all[..all.len() - more].join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}
