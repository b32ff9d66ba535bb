//! A case that was attempted several times: how steady it is, and a line for each attempt that did not pass.

use std::fmt::Write as _;

use hotseat_trace::Status;

use super::case::{Shown, conversation, label, warnings, word};
use super::look::{Look, Tone};
use super::turn::Detail;
use crate::report::words::{columns, count, duration, one_line};
use crate::run::{Attempt, Class, Grade, Outcome, Promise, Stability};

/// For at most so many runs in a row it is told how likely they all pass.
const ROW: usize = 5;
/// How many attempts that did not pass have a line of their own.
const LINES: usize = 5;

/// A case that was repeated: how steady it is, the runs that did not pass, and the conversation of the one that tells
/// most. Where everything is shown, that of each run.
pub(super) fn repeated(look: &Look, outcome: &Outcome, stability: &Stability) -> Shown {
    let told = outcome.telling();
    let mut text = headline(look, outcome, stability, "► ");
    text.push_str(&figures(look, stability));
    if look.verbose {
        for attempt in &outcome.attempts {
            let _ = writeln!(text, "{}", line(look, attempt, "Run"));
            conversation(look, attempt, Detail::Whole, &mut text);
        }
        warnings(look, outcome, &mut text);
        return Shown { text, is_tree: true };
    }
    let not_passed = others(look, outcome.attempts.iter().map(|attempt| &**attempt), "Run", &mut text);
    if told.verdict.status != Status::Passed {
        // The only one stands right above.
        if not_passed > 1 {
            let _ = writeln!(text, "\n  Run {}:", told.number);
        }
        conversation(look, told, Detail::Whole, &mut text);
    }
    let warned = warnings(look, outcome, &mut text);
    Shown { text, is_tree: not_passed > 0 || warned }
}

/// `[ID] 67% (2/3) Unstable avg:230ms`, behind a `marker`.
pub(super) fn headline(look: &Look, outcome: &Outcome, stability: &Stability, marker: &str) -> String {
    let case = &outcome.selected.case;
    let (rate, tone) = rate(outcome, stability);
    let label = label(&case.id, &case.name, case.named);
    let label = one_line(&label, look.left(columns(marker) + columns(&rate) + 1));
    format!("{marker}{label} {}\n", look.paint(tone, &rate))
}

/// A line or two below it: where the rate lies, how likely all runs pass, and how answers and durations differ.
fn figures(look: &Look, stability: &Stability) -> String {
    let mut out = String::new();
    if let Some(Promise { reliability, grade, decided_after }) = stability.promise {
        let tone = if grade == Grade::Pass { Tone::Good } else { Tone::Bad };
        let percent = |part: f64| format!("{}%", (part * 1e4).round() / 100.0);
        let after = match decided_after {
            Some(runs) => format!("after {runs} of at most {} runs", reliability.max_runs),
            None => format!("not known after {}", count(stability.runs, "run")),
        };
        let words = format!(
            "at least {} declared, with {} confidence: {after}",
            percent(reliability.rate),
            percent(reliability.confidence)
        );
        let words = one_line(&words, look.left(columns(grade.name()) + 3));
        let _ = writeln!(out, "  {} {words}", look.paint(tone, grade.name()));
    }
    let runs = stability.runs;
    if runs == 0 {
        return out;
    }
    let (interval, confidence) = stability.interval();
    let mut parts = vec![format!(
        "rate {:.0}–{:.0}% ({:.0}%)",
        interval.low * 100.0,
        interval.high * 100.0,
        confidence * 100.0
    )];
    let k = runs.min(ROW);
    parts.extend(stability.all_of(k).map(|part| format!("pass^{k} {:.0}%", part * 100.0)));
    parts.extend(stability.consistency.map(|part| format!("same answer {:.0}%", part * 100.0)));
    let took = [stability.shortest, stability.median, stability.longest].map(duration);
    parts.push(took.join("/"));
    let line = one_line(&parts.join(" · "), look.left(2));
    let _ = writeln!(out, "  {}", look.paint(Tone::Quiet, &line));
    out
}

/// `67% (2/3) Unstable avg:230ms`, and what else is to be known of the runs. Where none of them says anything about the agent,
/// there is no rate.
fn rate(outcome: &Outcome, stability: &Stability) -> (String, Tone) {
    let class = match stability.class() {
        Some(Class::Stable) => "Stable",
        Some(Class::MostlyStable) => "Mostly Stable",
        Some(Class::Unstable) => "Unstable",
        Some(Class::HighlyUnstable) => "Highly Unstable",
        None if stability.missing() > 0 => "Incomplete",
        None => "Cut Short",
    };
    let Stability { passed, runs, not_run, .. } = stability;
    let mut words = match stability.pass_rate() {
        None => "no run says anything about the agent".to_string(),
        Some(part) => {
            // Only what is all is called so.
            let percent = match (part * 100.0).round() as usize {
                100.. if passed < runs => 99,
                percent => percent,
            };
            format!("{percent}% ({passed}/{runs}) {class} avg:{}", duration(stability.average))
        }
    };
    let notes = [
        (stability.missing(), "not the agent's fault"),
        (stability.redrawn, "made again"),
        (stability.skipped, "skipped"),
        (*not_run, "not begun"),
    ];
    for (n, what) in notes.into_iter().filter(|(n, _)| *n > 0) {
        let _ = write!(words, ", {n} {what}");
    }
    let tone = match outcome.verdict.status {
        Status::Passed if stability.is_stable() == Some(true) => Tone::Good,
        Status::Passed => {
            words.push_str(" - enough to pass");
            Tone::Skipped
        }
        Status::Failed => Tone::Bad,
        Status::Skipped => Tone::Skipped,
    };
    (words, tone)
}

/// The attempts beside the one that is shown, at a case that was tried again.
pub(super) fn before(look: &Look, outcome: &Outcome) -> String {
    let mut out = String::new();
    let told = outcome.telling().number;
    let rest = outcome.attempts.iter().map(|attempt| &**attempt).filter(|attempt| attempt.number != told);
    others(look, rest, "Attempt", &mut out);
    out
}

/// A line for each of the first attempts that did not pass. Says how many did not.
fn others<'a>(
    look: &Look,
    attempts: impl Iterator<Item = &'a Attempt>,
    what: &str,
    out: &mut String,
) -> usize {
    let not_passed: Vec<&Attempt> =
        attempts.filter(|attempt| attempt.verdict.status != Status::Passed).collect();
    // One more line is shorter than saying that there is one more.
    let shown = if not_passed.len() == LINES + 1 { LINES + 1 } else { LINES.min(not_passed.len()) };
    for attempt in &not_passed[..shown] {
        let _ = writeln!(out, "{}", line(look, attempt, what));
    }
    if not_passed.len() > shown {
        let more = count(not_passed.len() - shown, &format!("more {}", what.to_lowercase()));
        let _ = writeln!(out, "  … and {more} that did not pass");
    }
    not_passed.len()
}

/// `Run 2: FAILED (240ms) assertion: …`
fn line(look: &Look, attempt: &Attempt, what: &str) -> String {
    let (word, tone) = word(attempt.verdict.status);
    let head = format!("  {what} {}: ", attempt.number);
    let took = format!("({})", duration(attempt.duration));
    let why = match (&attempt.verdict.failure, &attempt.verdict.skip_reason) {
        (Some(failure), _) => format!("{}: {}", failure.kind.name(), failure.message),
        (None, Some(reason)) => reason.clone(),
        (None, None) => String::new(),
    };
    let room = look.left(columns(&head) + columns(word) + super::tree::TOOK + 2);
    let why = one_line(&why, room);
    let line = format!("{head}{} {} {why}", look.paint(tone, word), look.paint(Tone::Quiet, &took));
    line.trim_end().to_string()
}
