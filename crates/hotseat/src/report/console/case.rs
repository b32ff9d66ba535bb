//! One case: a line, and a tree where there is more to see than how it ended.

use std::fmt::Write as _;

use hotseat_trace::Status;

use super::attempts;
use super::failure;
use super::look::{Look, Tone};
use super::tree::{TOOK, Tree};
use super::turn::Detail;
use crate::report::words::{columns, count, duration, one_line, preview, wrap};
use crate::run::{Attempt, Mode, Outcome, Setting};

/// A preview that has less room than this tells nothing.
const SHORTEST_PREVIEW: usize = 16;

/// A case that was shown.
pub(super) struct Shown {
    pub text: String,
    /// Whether it takes several lines, which stand apart from other cases.
    pub is_tree: bool,
}

/// How much of a case is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// How it ended.
    Line,
    /// The conversation as well.
    Tree(Detail),
}

/// A case that has ended. In a run of a few cases the conversations of those that passed are shown, too, where they
/// have several turns.
pub(super) fn case(look: &Look, outcome: &Outcome, setting: &Setting, few: bool) -> Shown {
    if let Some(stability) = &outcome.stability {
        return attempts::repeated(look, outcome, stability);
    }
    let attempt = outcome.telling();
    let mode = attempt.mode();
    let verdict = &attempt.verdict;
    let held = !attempt.conversation.turns.is_empty();
    let extent = match verdict.status {
        Status::Failed if held => Extent::Tree(Detail::Whole),
        Status::Passed | Status::Skipped if held && look.verbose => Extent::Tree(Detail::Whole),
        Status::Skipped if held => Extent::Tree(Detail::Gist),
        Status::Passed if held && few && mode != Mode::Standard => Extent::Tree(Detail::Gist),
        Status::Passed | Status::Failed | Status::Skipped => Extent::Line,
    };
    let before = attempts::before(look, outcome);
    let mut text = headline(look, outcome, setting, extent == Extent::Line || mode == Mode::Standard);
    text.push_str(&before);
    match extent {
        Extent::Tree(detail) => conversation(look, attempt, detail, &mut text),
        Extent::Line => {
            if let Some(failure) = &verdict.failure {
                failure::reason(look, failure, attempt, &mut text);
            }
        }
    }
    logs(look, attempt, &mut text);
    let warned = warnings(look, outcome, &mut text);
    let is_tree = extent != Extent::Line || verdict.failure.is_some() || !before.is_empty() || warned;
    Shown { text, is_tree }
}

/// What scripts said to `console`, where everything is shown.
fn logs(look: &Look, attempt: &Attempt, text: &mut String) {
    if !look.verbose {
        return;
    }
    let of_checks = attempt.checks.iter().flat_map(|checked| &checked.said);
    for line in attempt.logs.iter().chain(of_checks).flat_map(|said| said.lines()) {
        let words = one_line(&format!("console: {line}"), look.left(2));
        let _ = writeln!(text, "  {}", look.paint(Tone::Quiet, &words));
    }
}

/// What went wrong and changes nothing, each once. Says whether anything did.
pub(super) fn warnings(look: &Look, outcome: &Outcome, text: &mut String) -> bool {
    let mut said: Vec<String> = Vec::new();
    let warnings = outcome.attempts.iter().flat_map(|attempt| {
        let ended = attempt.conversation.turns.iter().filter_map(|turn| {
            let outcome = turn.run_outcome.as_ref()?;
            Some(format!("turn {}: the agent says that its run ended as `{outcome}`", turn.number))
        });
        attempt.warnings.iter().cloned().chain(ended)
    });
    for warning in warnings {
        if !said.contains(&warning) {
            let words = one_line(&format!("warning: {warning}"), look.left(2));
            let _ = writeln!(text, "  {}", look.paint(Tone::Skipped, &words));
            said.push(warning);
        }
    }
    !said.is_empty()
}

/// A conversation as a tree, with what it came to below it.
pub(super) fn conversation(look: &Look, attempt: &Attempt, detail: Detail, text: &mut String) {
    let (mode, verdict) = (attempt.mode(), &attempt.verdict);
    let skipped = verdict.status == Status::Skipped;
    if !attempt.conversation.turns.is_empty() {
        match mode {
            Mode::Standard => {
                Tree::new(look, attempt, detail, true).single_turn(text);
                if verdict.failure.is_none() && !skipped {
                    let _ =
                        writeln!(text, "{}", look.paint(Tone::Quiet, &format!("  └─ {}", holds(attempt))));
                }
            }
            Mode::MultiTurn | Mode::Dynamic => {
                let tree = Tree::new(look, attempt, detail, skipped);
                match mode {
                    Mode::Dynamic => tree.dynamic(text),
                    Mode::Standard | Mode::MultiTurn => tree.multi_turn(text),
                }
                if !skipped {
                    let (word, tone) = word(verdict.status);
                    let head = 2 + columns(word) + 1;
                    let lines = wrap(&ending(attempt, mode), look.left(head), look.left(4));
                    let lines: Vec<String> = lines.iter().map(|line| look.paint(Tone::Quiet, line)).collect();
                    let _ = writeln!(text, "  {} {}", look.paint(tone, word), lines.join("\n    "));
                }
            }
        }
        if skipped {
            Tree::new(look, attempt, Detail::Gist, false).without_input(text);
        }
    }
    if let Some(failure) = &verdict.failure {
        failure::reason(look, failure, attempt, text);
    }
}

/// The line that every case has: which case it is and, if it `ends` there, how it ended.
fn headline(look: &Look, outcome: &Outcome, setting: &Setting, ends: bool) -> String {
    let attempt = outcome.telling();
    let (case, mode) = (&attempt.selected.case, attempt.mode());
    let (word, tone) = word(attempt.verdict.status);
    let turns = match (mode, setting.simulator_of(case)) {
        (Mode::MultiTurn, Some(simulator)) => format!(" (simulator: {})", one_line(&simulator, 40)),
        // Of a test that is a program nobody knows before how many there are.
        (Mode::MultiTurn, None) => {
            format!(" ({})", count(case.turns.max(attempt.conversation.turns.len()), "turn"))
        }
        (Mode::Standard | Mode::Dynamic, _) => String::new(),
    };
    let turns = if ends { turns } else { turns + &tries(outcome) };
    let marker = "► ";
    let (status, skip_reason) = (attempt.verdict.status, attempt.verdict.skip_reason.as_deref());
    if !ends {
        let turns = look.fitting(columns(marker), [turns, String::new()]);
        let name = name(look, attempt, false, look.left(columns(marker) + columns(&turns)));
        return format!("{marker}{name}{}\n", look.paint(Tone::Quiet, &turns));
    }
    let taken = columns(marker) + columns(" ") + columns(word) + columns(" ");
    let (turns, name, note) = match (status, skip_reason) {
        (Status::Skipped, Some(reason)) => {
            // The name gives way to the reason, but not to all of a long one.
            let turns = look.fitting(taken + 10, [turns, String::new()]);
            let room = look.left(taken + columns(&turns));
            let label = columns(&label(&case.id, &case.name, case.named));
            let reason = one_line(reason, room.saturating_sub(label.min(room / 2)));
            let name = name(look, attempt, true, room.saturating_sub(columns(&reason)));
            (turns, name, reason)
        }
        _ => {
            let taken = taken + TOOK;
            let (rest, tries) = (rest(attempt, mode), tries(outcome));
            let rest = look.fitting(taken + columns(&turns), [rest + &tries, tries]);
            let turns = look.fitting(taken + columns(&rest), [turns, String::new()]);
            let name = name(look, attempt, true, look.left(taken + columns(&rest) + columns(&turns)));
            (turns, name, format!("({}){rest}", duration(attempt.duration)))
        }
    };
    let (word, note) = (look.paint(tone, word), look.paint(Tone::Quiet, &note));
    format!("{marker}{name}{} {word} {note}\n", look.paint(Tone::Quiet, &turns))
}

/// What a case is called: `[id] name`, each only where it is written.
pub(super) fn label(id: &str, name: &str, named: bool) -> String {
    match named {
        true if id == name => name.to_string(),
        true => format!("[{id}] {name}"),
        false => format!("[{id}]"),
    }
}

/// What a case is called. Where nothing of the conversation stands below (`ends`), also how its only question begins, or
/// the first one of a case without a name.
fn name(look: &Look, attempt: &Attempt, ends: bool, room: usize) -> String {
    let (case, mode) = (&attempt.selected.case, attempt.mode());
    let label = one_line(&label(&case.id, &case.name, case.named), room);
    // What was never said is not shown: secrets are taken out of what is said when it is recorded.
    let tells = ends && (mode == Mode::Standard || !case.named);
    let said = attempt.conversation.turns.first().filter(|_| tells).and_then(|turn| turn.user.as_deref());
    let between = if case.named { " · " } else { " " };
    let room = room.saturating_sub(columns(&label) + columns(between));
    let Some(said) = said.filter(|said| !said.trim().is_empty() && room >= SHORTEST_PREVIEW) else {
        return label;
    };
    let preview = preview(said, room);
    match case.named {
        true => format!("{label}{}", look.paint(Tone::Quiet, &format!("{between}{preview}"))),
        false => format!("{label}{between}{preview}"),
    }
}

/// What is said of a case that was tried again.
fn tries(outcome: &Outcome) -> String {
    match outcome.attempts.len() {
        1 => String::new(),
        n if outcome.is_flaky() => format!(" - flaky, attempt {n}"),
        n => format!(" - attempt {n}"),
    }
}

pub(super) fn word(status: Status) -> (&'static str, Tone) {
    match status {
        Status::Passed => ("PASSED", Tone::Good),
        Status::Failed => ("FAILED", Tone::Bad),
        Status::Skipped => ("SKIPPED", Tone::Skipped),
    }
}

/// What follows the duration on the line of a case.
fn rest(attempt: &Attempt, mode: Mode) -> String {
    let turns = count(attempt.conversation.turns.len(), "turn");
    match (mode, checkpoints(attempt)) {
        (Mode::Dynamic, Some(reached)) => format!(" - {turns}, {reached}"),
        (Mode::Dynamic, None) => format!(" - {turns}"),
        (Mode::Standard | Mode::MultiTurn, Some(reached)) => format!(" - {reached}"),
        (Mode::Standard | Mode::MultiTurn, None) => String::new(),
    }
}

/// What follows the verdict below a tree.
fn ending(attempt: &Attempt, mode: Mode) -> String {
    let turns = count(attempt.conversation.turns.len(), "turn");
    let hard = attempt.checks.iter().filter(|checked| checked.check.is_hard()).count();
    let mut parts = vec![turns];
    parts.extend(checkpoints(attempt));
    if mode == Mode::MultiTurn {
        let passed = attempt.verdict.status == Status::Passed;
        let nothing = passed && hard == 0 && attempt.checkpoints.is_empty();
        parts.extend((hard > 0).then(|| count(hard, "check")));
        parts.extend(nothing.then(|| "nothing was asserted".to_string()));
    }
    format!("({}) - {}", duration(attempt.duration), parts.join(", "))
}

/// `2/3 checkpoints`: those that were reached, and all.
fn checkpoints(attempt: &Attempt) -> Option<String> {
    let reached = attempt.checkpoints.iter().filter(|reached| reached.at.is_some()).count();
    let all = attempt.checkpoints.len();
    (all > 0).then(|| format!("{reached}/{all} checkpoints"))
}

fn holds(attempt: &Attempt) -> String {
    match attempt.checks.iter().filter(|checked| checked.check.is_hard()).count() {
        0 if attempt.checkpoints.is_empty() => "nothing was asserted".to_string(),
        0 => "the checkpoints are reached".to_string(),
        1 => "1 check holds".to_string(),
        n => format!("{n} checks hold"),
    }
}
