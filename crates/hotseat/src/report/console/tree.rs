//! Conversations as trees: turn by turn with what was asserted of each, or turn by turn with the checkpoints that were
//! reached.

use std::fmt::Write as _;

use hotseat_trace::{Status, Turn};

use super::label;
use super::look::{Look, Tone};
use super::turn::{Detail, Line, attached, doings, goal, passed, shortened, simulated, source};
use crate::report::words::{columns, duration, one_line, wrap};
use crate::run::{Attempt, Finding, State};
use crate::session::{MORE_INPUT, NO_NEXT_TURN};

/// How many columns are kept for a duration, so that texts beside it are cut alike whatever it is.
pub(super) const TOOK: usize = "(1000.0m)".len();

/// What stands before a branch of a tree.
const FORK: &str = "  ├─ ";
const END: &str = "  └─ ";
/// What stands before what belongs to a branch.
const TRUNK: &str = "  │  ";
const NO_TRUNK: &str = "     ";

/// What a tree shows of a conversation, and what comes below it.
pub(super) struct Tree<'a> {
    look: &'a Look,
    attempt: &'a Attempt,
    detail: Detail,
    /// Whether something stands below the turns that the tree goes on with.
    goes_on: bool,
}

/// A branch: what stands before it, and before what belongs to it.
#[derive(Clone, Copy)]
struct Branch {
    head: &'static str,
    below: &'static str,
}

impl Branch {
    fn new(is_last: bool) -> Self {
        match is_last {
            true => Branch { head: END, below: NO_TRUNK },
            false => Branch { head: FORK, below: TRUNK },
        }
    }
}

impl<'a> Tree<'a> {
    /// The tree of an attempt. `goes_on` says that more branches follow below it.
    pub(super) fn new(look: &'a Look, attempt: &'a Attempt, detail: Detail, goes_on: bool) -> Self {
        Tree { look, attempt, detail, goes_on }
    }

    /// One turn and what is asserted of it.
    pub(super) fn single_turn(&self, out: &mut String) {
        let is_good = self.attempt.verdict.status != Status::Failed;
        for turn in &self.attempt.conversation.turns {
            self.turn_with_checks(turn, Branch::new(!self.goes_on), is_good, |_| true, out);
        }
    }

    /// Turn by turn, with what is asserted of each, and what is asserted of all.
    pub(super) fn multi_turn(&self, out: &mut String) {
        let turns = &self.attempt.conversation.turns;
        let (of_all, not_run) = (self.of_all(), self.not_run().or_else(|| simulated(self.attempt)));
        for turn in turns {
            let is_last =
                turn.number == turns.len() && not_run.is_none() && of_all.is_empty() && !self.goes_on;
            let branch = Branch::new(is_last);
            let own = |checked: &Finding| checked.turn == Some(turn.number);
            let more = self.turn_with_checks(turn, branch, passed(turn, self.attempt), own, out);
            if more && !is_last {
                let _ = writeln!(out, "{}", self.wood(TRUNK.trim_end()));
            }
        }
        if let Some(words) = not_run {
            let branch = Branch::new(of_all.is_empty() && !self.goes_on);
            let words = one_line(&words, self.look.left(columns(branch.head)));
            let _ = writeln!(out, "{}{}", self.wood(branch.head), self.look.paint(Tone::Quiet, &words));
        }
        self.final_assertions(&of_all, out);
    }

    /// Turn by turn, with the checkpoints that were reached.
    pub(super) fn dynamic(&self, out: &mut String) {
        let turns = &self.attempt.conversation.turns;
        let of_all = self.of_all();
        for turn in turns {
            let branch = Branch::new(turn.number == turns.len() && of_all.is_empty() && !self.goes_on);
            self.turn_with_answer(turn, branch, out);
            let mut below = Vec::new();
            if self.detail == Detail::Whole {
                below.extend(self.doings(turn, true));
                let own = self.attempt.checks.iter().filter(|checked| checked.turn == Some(turn.number));
                below.extend(own.flat_map(|checked| check(checked, self.detail)));
            }
            below.extend(self.reached(turn));
            let last = below.len().saturating_sub(1);
            for (place, line) in below.iter().enumerate() {
                let twig = if place == last { "└─ " } else { "├─ " };
                self.line(&format!("{}{twig}", branch.below), line, out);
            }
        }
        self.final_assertions(&of_all, out);
    }

    /// The end of a conversation that could not go on because nobody answers the agent.
    pub(super) fn without_input(&self, out: &mut String) {
        let turns = &self.attempt.conversation.turns;
        let skipped = self.look.paint(Tone::Skipped, "SKIPPED");
        let _ = writeln!(out, "{}Turn {}: {skipped}", self.wood(FORK), turns.len() + 1);
        let asked = turns.last().and_then(Turn::answer).unwrap_or_default();
        let reason = self.attempt.verdict.skip_reason.as_deref().unwrap_or_default();
        let mut lines = vec![format!("Reason: {reason}"), format!("Agent asked: \"{asked}\"")];
        lines.extend(reason.starts_with(NO_NEXT_TURN).then(|| format!("Hint: {MORE_INPUT}")));
        let margin = format!("{TRUNK}  ");
        let room = self.look.left(columns(&margin));
        for words in lines {
            for (number, line) in wrap(&one_line(&words, 4 * room), room, room - 2).iter().enumerate() {
                let hang = if number == 0 { "" } else { "  " };
                let _ = writeln!(out, "{}{hang}{line}", self.wood(&margin));
            }
        }
        let _ = writeln!(out, "{}\n{}Result: {skipped}", self.wood(TRUNK.trim_end()), self.wood(END));
    }

    /// A turn with its verdict (`is_good`), what happened in it, and the checks that fit. Says whether anything stands below it.
    fn turn_with_checks(
        &self,
        turn: &Turn,
        branch: Branch,
        is_good: bool,
        fits: impl Fn(&Finding) -> bool,
        out: &mut String,
    ) -> bool {
        let (verdict, tone) = match is_good {
            true => ("PASSED", Tone::Good),
            false => ("FAILED", Tone::Bad),
        };
        let head = format!("Turn {}: ", turn.number);
        let attached = self.attached(turn);
        let taken = columns(branch.head)
            + columns(&head)
            + columns(&attached)
            + columns("\"\" → ")
            + columns(verdict);
        let took = " ".repeat(1 + TOOK);
        let took = self.look.fitting(taken, [took, String::new()]);
        let source = self
            .look
            .fitting(taken + columns(&took), [source(turn, self.attempt).to_string(), String::new()]);
        let room = self.look.left(taken + columns(&took) + columns(&source));
        let said = one_line(turn.user.as_deref().unwrap_or_default(), room);
        let took = if took.is_empty() { took } else { format!(" {}", self.took(turn)) };
        let verdict = self.look.paint(tone, verdict);
        let stem = self.wood(branch.head);
        let _ = writeln!(out, "{stem}{head}{source}\"{said}\"{attached} → {verdict}{took}");

        let margin = format!("{}  ", branch.below);
        let before = out.len();
        let shown = |checked: &&Finding| self.detail == Detail::Whole || checked.check.is_hard();
        let checks = self.attempt.checks.iter().filter(|checked| fits(checked)).filter(shown);
        let checks = checks.flat_map(|checked| check(checked, self.detail));
        let lines = self.doings(turn, false).into_iter().chain(checks);
        for line in lines.chain(self.reached(turn)) {
            self.line(&margin, &line, out);
        }
        out.len() > before
    }

    /// What happened in a turn; all of it where everything is shown.
    fn doings(&self, turn: &Turn, without_answer: bool) -> Vec<Line> {
        let lines = doings(turn, self.detail, without_answer);
        if self.look.verbose { lines } else { shortened(lines) }
    }

    /// A turn as what was said and what was answered.
    fn turn_with_answer(&self, turn: &Turn, branch: Branch, out: &mut String) {
        let head = format!("Turn {}: ", turn.number);
        let attached = self.attached(turn);
        let taken = columns(branch.head) + columns(&head) + columns(&attached) + columns("\"\" → \"\"");
        // That a user is simulated goes without saying here.
        let source = if &*turn.caller == "simulator" { "" } else { source(turn, self.attempt) };
        let source = self.look.fitting(taken, [source.to_string(), String::new()]);
        let room = self.look.left(taken + columns(&source));
        let answer = turn.answer().unwrap_or_default();
        // What one of them does not need the other one has.
        let input = turn.user.as_deref().unwrap_or_default();
        let for_input = (room / 2).max(room.saturating_sub(columns(&one_line(answer, room))));
        let said = one_line(input, for_input);
        let answer = match turn.answer() {
            Some(answer) => format!("\"{}\"", one_line(answer, room.saturating_sub(columns(&said)))),
            None if passed(turn, self.attempt) => self.look.paint(Tone::Quiet, "nothing"),
            None => self.look.paint(Tone::Bad, "FAILED"),
        };
        let stem = self.wood(branch.head);
        let _ = writeln!(out, "{stem}{head}{source}\"{said}\"{attached} → {answer}");
    }

    /// The turns that are written and were not sent, where one that failed came before them.
    fn not_run(&self) -> Option<String> {
        let (held, written) = (self.attempt.conversation.turns.len(), self.attempt.selected.case.turns);
        let failed = self.attempt.verdict.status == Status::Failed;
        match written.saturating_sub(held) {
            0 => None,
            _ if !failed => None,
            1 => Some(format!("Turn {written}: not run")),
            _ => Some(format!("Turns {} to {written}: not run", held + 1)),
        }
    }

    /// What is asserted of the whole conversation, as the last branch.
    fn final_assertions(&self, of_all: &[&Finding], out: &mut String) {
        if of_all.is_empty() {
            return;
        }
        let branch = Branch::new(!self.goes_on);
        let verdict = match of_all.iter().any(|checked| checked.fails()) {
            false => self.look.paint(Tone::Good, "PASSED"),
            true => self.look.paint(Tone::Bad, "FAILED"),
        };
        let _ = writeln!(out, "{}Final Assertions: {verdict}", self.wood(branch.head));
        for checked in of_all {
            for line in check(checked, self.detail) {
                self.line(branch.below, &line, out);
            }
        }
    }

    /// The checks of the whole conversation; those that are only measured where everything is shown.
    fn of_all(&self) -> Vec<&'a Finding> {
        let all = self.attempt.checks.iter().filter(|checked| checked.turn.is_none());
        all.filter(|checked| self.detail == Detail::Whole || checked.check.is_hard()).collect()
    }

    /// The checkpoints that were reached in a turn, and whether the simulated user had what it wanted behind it.
    fn reached(&self, turn: &Turn) -> Vec<Line> {
        let reached = self.attempt.checkpoints.iter().filter(|reached| reached.at == Some(turn.number));
        let reached = reached.map(|reached| Line::marked("✓", Tone::Good, label::checkpoint(reached)));
        reached.chain(goal(turn)).collect()
    }

    /// What is attached to the input; it takes a quarter of the line at most.
    fn attached(&self, turn: &Turn) -> String {
        let names = attached(turn);
        match names.is_empty() {
            true => names,
            false => format!(" {}", one_line(&names, self.look.width / 4)),
        }
    }

    /// The lines of the tree itself, which what stands in it outshines.
    fn wood(&self, lines: &str) -> String {
        if lines.trim().is_empty() { lines.to_string() } else { self.look.paint(Tone::Quiet, lines) }
    }

    fn took(&self, turn: &Turn) -> String {
        self.look.paint(Tone::Quiet, &format!("({})", duration(turn.duration())))
    }

    /// A line of at most the width that there is.
    fn line(&self, margin: &str, line: &Line, out: &mut String) {
        let mark = line.mark.map_or_else(String::new, |(mark, tone)| self.look.paint(tone, mark) + " ");
        let taken = columns(margin) + line.mark.map_or(0, |(mark, _)| columns(mark) + 1);
        let words = one_line(&line.words, self.look.left(taken));
        let words = line.tone.map_or(words.clone(), |tone| self.look.paint(tone, &words));
        let _ = writeln!(out, "{}{mark}{words}", self.wood(margin));
    }
}

/// A check, and below it why a judge has found so, or why nobody could.
fn check(checked: &Finding, detail: Detail) -> Vec<Line> {
    let (mark, tone) = match (checked.state(), checked.check.is_hard()) {
        (State::Passed, _) => ("✓", Tone::Good),
        (State::Failed | State::Errored, true) => ("✗", Tone::Bad),
        (State::Failed, false) => ("○", Tone::Quiet),
        (State::Errored, false) => ("?", Tone::Skipped),
    };
    let measured = if checked.check.is_hard() { "" } else { "(measured only) " };
    let topic = checked.topic.as_ref().map_or_else(String::new, |of| match of.visit {
        1 => format!("topic {}: ", of.topic),
        visit => format!("topic {}, visit {visit}: ", of.topic),
    });
    let words = format!("{measured}{topic}{}", label::check(checked));
    let mut lines = vec![Line::marked(mark, tone, words)];
    let why = match (checked.state(), &checked.opinion) {
        (State::Errored, _) => Some(format!("could not be decided: {}", checked.verdict.actual)),
        // What a judge said in words of its own is quoted with the turn.
        (State::Passed | State::Failed, Some(opinion)) if opinion.by.prompt.is_some() => {
            Some(checked.verdict.actual.clone())
        }
        (State::Passed | State::Failed, _) => None,
    };
    let left_out = checked.opinion.as_ref().map(|opinion| &opinion.by.left_out).filter(|all| !all.is_empty());
    lines.extend(left_out.map(|all| {
        Line::marked("  !", Tone::Skipped, format!("judged on a shortened conversation: {}", all.join("; ")))
    }));
    lines.extend(why.filter(|_| detail == Detail::Whole).map(|why| Line::marked("  →", Tone::Quiet, why)));
    lines
}
