//! Text output of a comparison.

use std::io::{self, Write};
use std::time::Duration;

use super::cases::{ReportAttempt, ReportCase};
use super::comparison::{ComparedCase, PassChange, PassRates, RunComparison};
use super::divergence::{Divergence, DivergentStep, describe_differences};
use super::figures::{ComparedFigure, FigureUnit};
use super::pairing::DIFFERENT_INPUTS;
use super::significance::SignificantChange;
use crate::reporters::{
    format_cost, format_count, format_duration, format_percent, format_whole_percent, one_line, wrap,
};
use hotseat_engine::cases::format_rate;

/// Maximum number of rows of each section.
const MAX_ROWS: usize = 20;
/// Maximum number of displayed differences between arguments.
const MAX_DIFFERENCES: usize = 3;
/// Maximum number of names in a list.
const MAX_NAMES: usize = 5;

/// Writes a comparison in lines of at most `width` columns, where possible. Fails if it cannot be written.
pub fn write_text(comparison: &RunComparison<'_>, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut page = ComparisonWriter { out, width };
    page.write_header(comparison)?;
    if comparison.shared > 0 {
        page.write_pass_rate(comparison)?;
    }
    page.write_cases(comparison)?;
    page.write_soft_checks(comparison)?;
    page.write_figures(comparison)?;
    page.write_verdict(comparison)
}

struct ComparisonWriter<'a> {
    out: &'a mut dyn Write,
    width: usize,
}

impl ComparisonWriter<'_> {
    /// Writes a line, wrapped with a hanging indent if it is too long.
    fn write_line(&mut self, head: &str, text: &str) -> io::Result<()> {
        let indent = head.chars().count();
        let room = self.width.saturating_sub(indent).max(20);
        for (at, line) in wrap(&one_line(text, 4000), room, room).iter().enumerate() {
            let head = if at == 0 { head.to_string() } else { " ".repeat(indent) };
            writeln!(self.out, "{}", format!("{head}{line}").trim_end())?;
        }
        Ok(())
    }

    fn write_header(&mut self, comparison: &RunComparison<'_>) -> io::Result<()> {
        let RunComparison { before, after, shared, removed, added, not_compared, notes, .. } = comparison;
        for (head, run) in [("before: ", before), ("after:  ", after)] {
            let mut words = run.label.clone();
            let more = [run.started_at.as_deref(), run.agent.as_deref()];
            for more in more.into_iter().flatten() {
                words.push_str(&format!(" · {more}"));
            }
            self.write_line(head, &words)?;
        }
        self.write_line("cases:  ", &format!("{} in both and compared", shared))?;
        for (head, names) in [("only before: ", removed), ("only after: ", added)] {
            if !names.is_empty() {
                self.write_line(head, &list_names(names.iter().map(String::as_str)))?;
            }
        }
        let mut reasons: Vec<&str> = not_compared.iter().map(|not| not.reason).collect();
        reasons.sort_unstable();
        reasons.dedup();
        for why in reasons {
            let cases = not_compared.iter().filter(|not| not.reason == why).map(|not| not.after.label());
            self.write_line("not compared: ", &format!("{why}: {}", list_names(cases)))?;
            if why == DIFFERENT_INPUTS {
                self.write_line("              ", "`--other-inputs` compares them nevertheless")?;
            }
        }
        for note in notes {
            self.write_line("note: ", note)?;
        }
        writeln!(self.out)
    }

    fn write_pass_rate(&mut self, comparison: &RunComparison<'_>) -> io::Result<()> {
        let words = format!(
            "{} → {}",
            describe_rates(&comparison.passed_before),
            describe_rates(&comparison.passed_after)
        );
        self.write_line("pass rate: ", &words)?;
        if let (Some(one), Some(other)) =
            (comparison.passed_before.by_attempt, comparison.passed_after.by_attempt)
        {
            let side = |spread: hotseat_statistics::SummaryStatistics| {
                format!("{} ± {:.1}", format_percent(spread.mean * 100.0), spread.standard_deviation * 100.0)
            };
            let overlap = one.min <= other.max && other.min <= one.max;
            let overlap = if overlap { "their ranges overlap" } else { "their ranges do not overlap" };
            self.write_line("  run by run: ", &format!("{} → {}; {overlap}", side(one), side(other)))?;
        }
        let words = match (comparison.significance, comparison.can_reach_significance) {
            (SignificantChange::Less, _) => {
                format!("significantly worse (p = {})", format_p_value(comparison.p_value))
            }
            (SignificantChange::More, _) => {
                format!("significantly better (p = {})", format_p_value(comparison.p_value))
            }
            (SignificantChange::NotSignificant, true) => {
                format!("not significant (p = {})", format_p_value(comparison.p_value))
            }
            (SignificantChange::NotSignificant, false)
                if comparison.cases.iter().all(|case| case.change == PassChange::Same) =>
            {
                "every case passes as often as before".to_string()
            }
            (SignificantChange::NotSignificant, false) => {
                "too few attempts to detect a change: raise `--runs` in both runs".to_string()
            }
        };
        self.write_line("  ", &words)
    }

    fn write_cases(&mut self, comparison: &RunComparison<'_>) -> io::Result<()> {
        for (place, title) in SECTION_TITLES.iter().enumerate() {
            let mut found: Vec<&ComparedCase<'_>> =
                comparison.cases.iter().filter(|case| section_of(case) == Some(place)).collect();
            if found.is_empty() {
                continue;
            }
            found.sort_by(|a, b| a.p_value.total_cmp(&b.p_value));
            writeln!(self.out)?;
            self.write_line("", &format!("{} {title}", format_count(found.len(), "case")))?;
            for case in found.iter().take(MAX_ROWS) {
                self.write_case(case)?;
            }
            if found.len() > MAX_ROWS {
                self.write_line("  … ", &format!("and {} more", found.len() - MAX_ROWS))?;
            }
        }
        Ok(())
    }

    fn write_case(&mut self, case: &ComparedCase<'_>) -> io::Result<()> {
        let side = |case: &ReportCase| format!("{}/{}", case.passed_attempts(), case.attempts.len());
        let sign = match case.change {
            PassChange::NewlyFails | PassChange::PassesLess => "✗",
            PassChange::NewlyPasses | PassChange::PassesMore => "✓",
            PassChange::Same => "·",
        };
        let numbers = format!("{} → {}", side(case.before), side(case.after));
        self.write_line(&format!("  {sign} "), &format!("{} {numbers}", case.after.label()))?;
        let Some((one, other)) = case.attempts else { return Ok(()) };
        match &case.divergence {
            Some(found) => {
                let which = |case: &ReportCase, attempt: &ReportAttempt| match case.attempts.len() {
                    1 => String::new(),
                    _ => format!(" (run {})", attempt.number),
                };
                self.write_divergence(found, [which(case.before, one), which(case.after, other)])?;
            }
            None => self.write_line("      ", "both conversations are the same")?,
        }
        match other.error.as_deref().filter(|_| !other.passed) {
            Some(error) => self.write_line("      error: ", error),
            None => Ok(()),
        }
    }

    /// Writes the first divergence of two conversations, with the runs of the case.
    fn write_divergence(&mut self, found: &Divergence, which: [String; 2]) -> io::Result<()> {
        let place = match found.call {
            Some(call) => format!("they diverge in turn {}, at call {call}:", found.turn),
            None => format!("they diverge in turn {}:", found.turn),
        };
        self.write_line("      ", &place)?;
        if let (DivergentStep::Call(a), DivergentStep::Call(b)) = (&found.before, &found.after)
            && a.tool == b.tool
        {
            let all = describe_differences(&a.arguments, &b.arguments, MAX_DIFFERENCES);
            return self
                .write_line("        ", &format!("{} with different arguments: {}", a.tool, all.join("; ")));
        }
        let [before, after] = which;
        for (head, step) in
            [(format!("before{before}: "), &found.before), (format!("after{after}: "), &found.after)]
        {
            let words = match step {
                DivergentStep::User(text) => format!("the user says {}", quote(text)),
                DivergentStep::Call(call) => format!("{}({})", call.tool, call.arguments),
                DivergentStep::Answer(text) if text.is_empty() => "the agent says nothing".to_string(),
                DivergentStep::Answer(text) => format!("the agent says {}", quote(text)),
                DivergentStep::Error(words) => format!("error: {words}"),
                DivergentStep::End => "the conversation is over".to_string(),
            };
            let room = (self.width * 2).max(120);
            self.write_line(&format!("        {head:<8}"), &one_line(&words, room))?;
        }
        Ok(())
    }

    fn write_soft_checks(&mut self, comparison: &RunComparison<'_>) -> io::Result<()> {
        let differ = comparison.soft.iter().filter(|check| check.before != check.after);
        let differ: Vec<_> = differ.collect();
        if differ.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        self.write_line("", "informational checks")?;
        for check in differ.iter().take(MAX_ROWS) {
            let side = |(holds, all): (usize, usize)| format!("{holds}/{all}");
            let claim = match check.significance {
                SignificantChange::NotSignificant => "not significant".to_string(),
                SignificantChange::Less => {
                    format!("significantly less often (p = {})", format_p_value(check.p_value))
                }
                SignificantChange::More => {
                    format!("significantly more often (p = {})", format_p_value(check.p_value))
                }
            };
            let words = one_line(&check.text, self.width);
            self.write_line(
                "  ",
                &format!("{words}: {} → {}, {claim}", side(check.before), side(check.after)),
            )?;
        }
        match differ.len() > MAX_ROWS {
            true => self.write_line("  … ", &format!("and {} more", differ.len() - MAX_ROWS)),
            false => Ok(()),
        }
    }

    fn write_figures(&mut self, comparison: &RunComparison<'_>) -> io::Result<()> {
        let tells = |one: &&ComparedFigure| match one.is_tool {
            true => one.significance != SignificantChange::NotSignificant,
            false => one.before > 0.0 || one.after > 0.0,
        };
        let shown: Vec<&ComparedFigure> = comparison.figures.iter().filter(tells).collect();
        let tools = comparison
            .figures
            .iter()
            .filter(|one| one.is_tool && one.significance == SignificantChange::NotSignificant);
        let quiet: Vec<&ComparedFigure> = tools.filter(|one| one.before != one.after).collect();
        if shown.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        self.write_line("", "average per case")?;
        for figure in shown {
            let claim = match figure.significance {
                SignificantChange::NotSignificant if figure.before == figure.after => String::new(),
                SignificantChange::NotSignificant => ", not significant".to_string(),
                SignificantChange::Less => {
                    format!(", significantly less (p = {})", format_p_value(figure.p_value))
                }
                SignificantChange::More => {
                    format!(", significantly more (p = {})", format_p_value(figure.p_value))
                }
            };
            let (before, after) =
                (format_amount(figure.unit, figure.before), format_amount(figure.unit, figure.after));
            let name = if figure.is_tool { format!("calls of {}", figure.name) } else { figure.name.clone() };
            self.write_line("  ", &format!("{name}: {before} → {after}{claim}"))?;
        }
        if !quiet.is_empty() {
            let names = list_names(quiet.iter().map(|figure| figure.name.as_str()));
            self.write_line("  ", &format!("calls of {names}: differ, not significant"))?;
        }
        Ok(())
    }

    fn write_verdict(&mut self, comparison: &RunComparison<'_>) -> io::Result<()> {
        writeln!(self.out)?;
        let sure = format_rate(comparison.confidence);
        let words = match (comparison.is_worse(), comparison.newly_failing(), comparison.shared) {
            (_, _, 0) => "nothing could be compared".to_string(),
            (true, ..) => format!("WORSE: significantly more failures than before ({sure} confidence)"),
            (false, 0, _) => format!("nothing got significantly worse ({sure} confidence)"),
            (false, n, _) => {
                let fail = if n == 1 { "fails" } else { "fail" };
                let cases = format_count(n, "case");
                format!("nothing got significantly worse ({sure} confidence), though {cases} newly {fail}")
            }
        };
        let lost = match comparison.lost {
            0 => String::new(),
            n => format!(
                "; {} passed before and did not pass now, and cannot be compared",
                format_count(n, "case")
            ),
        };
        self.write_line("", &format!("{words}{lost}"))
    }
}

/// Titles of the case sections, in order.
const SECTION_TITLES: [&str; 6] = [
    "significantly worse",
    "significantly better",
    "newly failing; not significant",
    "newly passing; not significant",
    "passing less often; not significant",
    "passing more often; not significant",
];

/// Returns the section of a case, or `None` if the case did not change.
fn section_of(case: &ComparedCase<'_>) -> Option<usize> {
    match (case.significance, case.change) {
        (SignificantChange::Less, _) => Some(0),
        (SignificantChange::More, _) => Some(1),
        (SignificantChange::NotSignificant, PassChange::NewlyFails) => Some(2),
        (SignificantChange::NotSignificant, PassChange::NewlyPasses) => Some(3),
        (SignificantChange::NotSignificant, PassChange::PassesLess) => Some(4),
        (SignificantChange::NotSignificant, PassChange::PassesMore) => Some(5),
        (SignificantChange::NotSignificant, PassChange::Same) => None,
    }
}

/// Formats `84.0% (42/50, 71–92%)`.
fn describe_rates(rates: &PassRates) -> String {
    let PassRates { passed, attempts: tries, interval, .. } = rates;
    let part = format_percent(*passed as f64 * 100.0 / (*tries).max(1) as f64);
    let [low, high] = [interval.low, interval.high].map(format_whole_percent);
    format!("{part} ({passed}/{tries}, {low}–{high}%)")
}

fn format_amount(unit: FigureUnit, value: f64) -> String {
    match unit {
        // A report may contain any number.
        FigureUnit::Seconds => {
            format_duration(Duration::try_from_secs_f64(value.max(0.0)).unwrap_or(Duration::MAX))
        }
        FigureUnit::Money => format_cost(value, None),
        FigureUnit::Count if value >= 100.0 => format!("{value:.0}"),
        FigureUnit::Count => format!("{}", (value * 100.0).round() / 100.0),
    }
}

/// Formats a p-value with three digits, and never as 0.
fn format_p_value(p: f64) -> String {
    if p < 0.0005 { "less than 0.001".to_string() } else { format!("{p:.3}") }
}

fn quote(text: &str) -> String {
    format!("“{}”", text.trim())
}

/// Lists the first names and the number of the remaining ones.
fn list_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.collect();
    let more = all.len().saturating_sub(MAX_NAMES);
    let first = all[..all.len() - more].join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}
