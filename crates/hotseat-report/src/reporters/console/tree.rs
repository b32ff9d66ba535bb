//! Conversation trees: the turns of a conversation with their checks or with their reached checkpoints.

use std::fmt::Write as _;
use std::ops::Range;

use hotseat_trace::{ConversationTurn, ResultLabel, VerdictStatus};

use super::label;
use super::options::{ConsoleOptions, TextStyle};
use super::turn::{
    DetailLevel, TreeLine, attachment_names, event_lines, goal_line, input_label, passed, simulation_summary,
};
use crate::reporters::text::{columns, format_duration, not_run_turns, one_line, safe_lines, wrap};
use hotseat_engine::run::Attempt;
use hotseat_engine::session::{CheckResult, CheckState, missing_input_hint};

/// Columns reserved for a duration, so that texts are cut to the same width.
pub(super) const DURATION_COLUMNS: usize = "(1000.0m)".len();

/// Maximum number of turns of a conversation that is displayed without folds.
const MAX_UNFOLDED_TURNS: usize = 8;
/// Maximum number of lines of a wrapped text, unless texts are shown as a whole.
const MAX_WRAPPED_LINES: usize = 4;

/// Word of a passed part of a conversation.
const PASSED: (&str, TextStyle) =
    (ResultLabel::Passed.capitals(), TextStyle::Result(ResultLabel::Passed.color()));

/// Prefixes of a branch.
const FORK: &str = "  ├─ ";
const LAST_FORK: &str = "  └─ ";
/// Prefixes of the lines below a branch.
const TRUNK: &str = "  │  ";
const NO_TRUNK: &str = "     ";

pub(super) struct ConversationTree<'a> {
    look: &'a ConsoleOptions,
    attempt: &'a Attempt,
    detail: DetailLevel,
    /// True if more branches follow below the turns.
    has_more: bool,
}

/// Prefixes of a branch and of the lines below it.
#[derive(Clone, Copy)]
struct TreeBranch {
    head: &'static str,
    below: &'static str,
}

impl TreeBranch {
    fn new(is_last: bool) -> Self {
        match is_last {
            true => TreeBranch { head: LAST_FORK, below: NO_TRUNK },
            false => TreeBranch { head: FORK, below: TRUNK },
        }
    }
}

impl<'a> ConversationTree<'a> {
    /// Creates the tree of an attempt. With `has_more`, more branches follow below it.
    pub(super) fn new(
        look: &'a ConsoleOptions,
        attempt: &'a Attempt,
        detail: DetailLevel,
        has_more: bool,
    ) -> Self {
        ConversationTree { look, attempt, detail, has_more }
    }

    /// Writes the only turn with its checks.
    pub(super) fn single_turn(&self, out: &mut String) {
        let is_good = self.attempt.verdict.status != VerdictStatus::Failed;
        for turn in &self.attempt.conversation.turns {
            self.turn_with_checks(turn, TreeBranch::new(!self.has_more), is_good, |_| true, out);
        }
    }

    /// Writes all turns with their checks, and the checks of the whole conversation.
    pub(super) fn multi_turn(&self, out: &mut String) {
        let turns = &self.attempt.conversation.turns;
        let (of_all, not_run) = (
            self.conversation_checks(),
            not_run_turns(self.attempt, "Turn").or_else(|| simulation_summary(self.attempt)),
        );
        for group in turn_groups(self.attempt, self.look.verbose) {
            let is_last =
                group.end == turns.len() && not_run.is_none() && of_all.is_empty() && !self.has_more;
            let branch = TreeBranch::new(is_last);
            let more = match turns.get(group.clone()) {
                Some([turn]) => {
                    let own = |checked: &CheckResult| checked.turn == Some(turn.number);
                    self.turn_with_checks(turn, branch, passed(turn, self.attempt), own, out)
                }
                _ => {
                    self.folded_turns(&group, branch, out);
                    true
                }
            };
            if more && !is_last {
                let _ = writeln!(out, "{}", self.paint_lines(TRUNK.trim_end()));
            }
        }
        if let Some(words) = not_run {
            let branch = TreeBranch::new(of_all.is_empty() && !self.has_more);
            let words = one_line(&words, self.look.columns_left(columns(branch.head)));
            let _ = writeln!(
                out,
                "{}{}",
                self.paint_lines(branch.head),
                self.look.paint(TextStyle::Quiet, &words)
            );
        }
        self.final_assertions(&of_all, out);
    }

    /// Writes all turns with their reached checkpoints.
    pub(super) fn dynamic(&self, out: &mut String) {
        let turns = &self.attempt.conversation.turns;
        let of_all = self.conversation_checks();
        for group in turn_groups(self.attempt, self.look.verbose) {
            let branch = TreeBranch::new(group.end == turns.len() && of_all.is_empty() && !self.has_more);
            let Some([turn]) = turns.get(group.clone()) else {
                self.folded_turns(&group, branch, out);
                continue;
            };
            self.turn_with_answer(turn, branch, out);
            let mut below = Vec::new();
            if self.detail == DetailLevel::Full {
                // In verbose mode the answer is also written as a whole, in its place among the calls.
                let is_cut =
                    |text: Option<&str>| text.is_some_and(|text| one_line(text, self.look.width / 3) != text);
                let is_whole = self.look.verbose && is_cut(turn.answer());
                below.extend(self.whole_input(turn, self.look.width / 3));
                below.extend(self.event_lines(turn, !is_whole));
                let own = self.attempt.checks.iter().filter(|checked| checked.turn == Some(turn.number));
                below.extend(own.flat_map(|checked| check_lines(checked, self.detail, self.failed_word().1)));
            }
            below.extend(self.reached_lines(turn));
            let last = below.len().saturating_sub(1);
            for (place, line) in below.iter().enumerate() {
                let twig = if place == last { "└─ " } else { "├─ " };
                self.write_line(&format!("{}{twig}", branch.below), line, out);
            }
        }
        self.final_assertions(&of_all, out);
    }

    /// Writes one line for several passed turns.
    fn folded_turns(&self, group: &Range<usize>, branch: TreeBranch, out: &mut String) {
        let verdict = self.look.paint(PASSED.1, PASSED.0);
        let stem = self.paint_lines(branch.head);
        let _ = writeln!(out, "{stem}Turns {}-{}: {verdict}", group.start + 1, group.end);
    }

    /// Writes the end of a conversation that stopped because no input was left for the agent.
    pub(super) fn missing_input(&self, out: &mut String) {
        let turns = &self.attempt.conversation.turns;
        let skipped = self.look.paint(TextStyle::Skipped, "SKIPPED");
        let _ = writeln!(out, "{}Turn {}: {skipped}", self.paint_lines(FORK), turns.len() + 1);
        let last = turns.last();
        let said = last.and_then(ConversationTurn::answer).filter(|said| !said.is_empty());
        let asked = said.or_else(|| last?.awaiting.as_ref()?.hint.as_deref()).unwrap_or_default();
        let reason = self.attempt.verdict.skip_reason.as_deref().unwrap_or_default();
        let mut lines = vec![format!("Reason: {reason}"), format!("Agent asked: \"{asked}\"")];
        lines.extend(missing_input_hint(reason).map(|hint| format!("Hint: {hint}")));
        let margin = format!("{TRUNK}  ");
        let room = self.look.columns_left(columns(&margin));
        for words in lines {
            for (number, line) in wrap(&one_line(&words, 4 * room), room, room - 2).iter().enumerate() {
                let hang = if number == 0 { "" } else { "  " };
                let _ = writeln!(out, "{}{hang}{line}", self.paint_lines(&margin));
            }
        }
        let _ = writeln!(
            out,
            "{}\n{}Result: {skipped}",
            self.paint_lines(TRUNK.trim_end()),
            self.paint_lines(LAST_FORK)
        );
    }

    /// Writes a turn with its result (`is_good`), its events, and the matching checks. Returns true if there
    /// are lines below the turn.
    fn turn_with_checks(
        &self,
        turn: &ConversationTurn,
        branch: TreeBranch,
        is_good: bool,
        fits: impl Fn(&CheckResult) -> bool,
        out: &mut String,
    ) -> bool {
        let (verdict, tone) = if is_good { PASSED } else { self.failed_word() };
        let head = format!("Turn {}: ", turn.number);
        let attached = self.attachment_label(turn);
        let taken = columns(branch.head)
            + columns(&head)
            + columns(&attached)
            + columns("\"\" → ")
            + columns(verdict);
        let took = " ".repeat(1 + DURATION_COLUMNS);
        let took = self.look.first_fitting(taken, [took, String::new()]);
        let source = self.look.first_fitting(
            taken + columns(&took),
            [input_label(turn, self.attempt).to_string(), String::new()],
        );
        let room = self.look.columns_left(taken + columns(&took) + columns(&source));
        let said = one_line(turn.user.as_deref().unwrap_or_default(), room);
        let took = if took.is_empty() { took } else { format!(" {}", self.duration_label(turn)) };
        let verdict = self.look.paint(tone, verdict);
        let stem = self.paint_lines(branch.head);
        let _ = writeln!(out, "{stem}{head}{source}\"{said}\"{attached} → {verdict}{took}");

        let margin = format!("{}  ", branch.below);
        let before = out.len();
        self.whole_input(turn, room).into_iter().for_each(|line| self.write_line(&margin, &line, out));
        let shown = |checked: &&CheckResult| self.detail == DetailLevel::Full || checked.check.is_hard();
        let checks = self.attempt.checks.iter().filter(|checked| fits(checked)).filter(shown);
        let checks = checks.flat_map(|checked| check_lines(checked, self.detail, self.failed_word().1));
        let lines = self.event_lines(turn, false).into_iter().chain(checks);
        for line in lines.chain(self.reached_lines(turn)) {
            self.write_line(&margin, &line, out);
        }
        out.len() > before
    }

    /// What happened in a turn; all of it where everything is shown.
    fn event_lines(&self, turn: &ConversationTurn, without_answer: bool) -> Vec<TreeLine> {
        event_lines(turn, self.detail, without_answer, !self.look.verbose)
    }

    /// Returns the whole input in verbose mode, if the line of the turn has no room for it.
    fn whole_input(&self, turn: &ConversationTurn, room: usize) -> Option<TreeLine> {
        let user = turn.user.as_deref().filter(|user| one_line(user, room) != user.trim())?;
        self.look.verbose.then(|| TreeLine::plain(format!("User: \"{user}\"")))
    }

    /// Writes a turn as input and answer.
    fn turn_with_answer(&self, turn: &ConversationTurn, branch: TreeBranch, out: &mut String) {
        let head = format!("Turn {}: ", turn.number);
        let attached = self.attachment_label(turn);
        let taken = columns(branch.head) + columns(&head) + columns(&attached) + columns("\"\" → \"\"");
        // A simulated user is the normal case here.
        let source = if &*turn.caller == "simulator" { "" } else { input_label(turn, self.attempt) };
        let source = self.look.first_fitting(taken, [source.to_string(), String::new()]);
        let room = self.look.columns_left(taken + columns(&source));
        let answer = turn.answer().unwrap_or_default();
        // The input and the answer share the line; each gets the space that the other one does not need.
        let input = turn.user.as_deref().unwrap_or_default();
        let for_input = (room / 2).max(room.saturating_sub(columns(&one_line(answer, room))));
        let said = one_line(input, for_input);
        let answer = match turn.answer() {
            Some(answer) => format!("\"{}\"", one_line(answer, room.saturating_sub(columns(&said)))),
            None if passed(turn, self.attempt) => self.look.paint(TextStyle::Quiet, "nothing"),
            None => {
                let (word, style) = self.failed_word();
                self.look.paint(style, word)
            }
        };
        let stem = self.paint_lines(branch.head);
        let _ = writeln!(out, "{stem}{head}{source}\"{said}\"{attached} → {answer}");
    }

    /// Returns the word for a part of the conversation that did not pass: that of the attempt, which says who
    /// is at fault.
    fn failed_word(&self) -> (&'static str, TextStyle) {
        match ResultLabel::from_verdict(&self.attempt.verdict) {
            ResultLabel::Passed | ResultLabel::Skipped => {
                (ResultLabel::Failed.capitals(), TextStyle::Result(ResultLabel::Failed.color()))
            }
            label => (label.capitals(), TextStyle::Result(label.color())),
        }
    }

    /// Writes the checks of the whole conversation as the last branch.
    fn final_assertions(&self, of_all: &[&CheckResult], out: &mut String) {
        if of_all.is_empty() {
            return;
        }
        let branch = TreeBranch::new(!self.has_more);
        let failed = of_all.iter().any(|checked| checked.fails());
        let (word, style) = if failed { self.failed_word() } else { PASSED };
        let verdict = self.look.paint(style, word);
        let _ = writeln!(out, "{}Final Assertions: {verdict}", self.paint_lines(branch.head));
        for checked in of_all {
            for line in check_lines(checked, self.detail, self.failed_word().1) {
                self.write_line(branch.below, &line, out);
            }
        }
    }

    /// Returns the checks of the whole conversation; informational ones only in full detail.
    fn conversation_checks(&self) -> Vec<&'a CheckResult> {
        let all = self.attempt.checks.iter().filter(|checked| checked.turn.is_none());
        all.filter(|checked| self.detail == DetailLevel::Full || checked.check.is_hard()).collect()
    }

    /// Returns lines for the checkpoints reached in a turn, and for the achieved goal of the simulated user.
    fn reached_lines(&self, turn: &ConversationTurn) -> Vec<TreeLine> {
        let reached = self.attempt.checkpoints.iter().filter(|reached| reached.at == Some(turn.number));
        let reached =
            reached.map(|reached| TreeLine::marked("✓", TextStyle::Good, label::checkpoint_label(reached)));
        reached.chain(goal_line(turn)).collect()
    }

    /// Names the attachments of the input, in at most a quarter of the line.
    fn attachment_label(&self, turn: &ConversationTurn) -> String {
        let names = attachment_names(turn);
        match names.is_empty() {
            true => names,
            false => format!(" {}", one_line(&names, self.look.width / 4)),
        }
    }

    /// Paints the lines of the tree in a quiet style.
    fn paint_lines(&self, lines: &str) -> String {
        if lines.trim().is_empty() { lines.to_string() } else { self.look.paint(TextStyle::Quiet, lines) }
    }

    fn duration_label(&self, turn: &ConversationTurn) -> String {
        self.look.paint(TextStyle::Quiet, &format!("({})", format_duration(turn.duration())))
    }

    /// Writes a line, cut to the available width. In verbose mode it is written as a whole, on as many lines
    /// as it needs.
    fn write_line(&self, margin: &str, line: &TreeLine, out: &mut String) {
        let mark = line.mark.map_or_else(String::new, |(mark, tone)| self.look.paint(tone, mark) + " ");
        let taken = columns(margin) + line.mark.map_or(0, |(mark, _)| columns(mark) + 1);
        let room = self.look.columns_left(taken);
        let lines = match self.look.verbose {
            true => whole_lines(&line.text, if self.look.wraps { room } else { usize::MAX }),
            false if line.is_wrapped => whole_lines(&one_line(&line.text, MAX_WRAPPED_LINES * room), room),
            false => vec![one_line(&line.text, room)],
        };
        for (number, words) in lines.iter().enumerate() {
            let words = line.tone.map_or(words.clone(), |tone| self.look.paint(tone, words));
            let (margin, mark) = match number {
                0 => (margin.to_string(), mark.as_str()),
                // A branch of the tree continues as its trunk, and the bar keeps texts of agents from the start
                // of the line.
                _ => (margin.replace("├─", "│ ").replace("└─", "  ") + "│ ", ""),
            };
            let _ = writeln!(out, "{}", format!("{}{mark}{words}", self.paint_lines(&margin)).trim_end());
        }
    }
}

/// Divides the turns of a conversation into groups, by index: turns that are displayed alone, and passed turns
/// of a long conversation that are folded into one line.
fn turn_groups(attempt: &Attempt, is_verbose: bool) -> Vec<Range<usize>> {
    let turns = &attempt.conversation.turns;
    let alone = |index: usize| index..index + 1;
    if is_verbose || turns.len() <= MAX_UNFOLDED_TURNS {
        return (0..turns.len()).map(alone).collect();
    }
    let shown = displayed_turns(attempt);
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut folds = false;
    for (index, is_shown) in shown.into_iter().enumerate() {
        match groups.last_mut().filter(|_| folds && !is_shown) {
            Some(group) => group.end = index + 1,
            None => groups.push(alone(index)),
        }
        folds = !is_shown;
    }
    groups
}

/// Returns true for each turn that explains the result: turns that did not pass, turns with a call that a
/// failed check compares, turns that reached a checkpoint, and the last turn.
fn displayed_turns(attempt: &Attempt) -> Vec<bool> {
    let turns = &attempt.conversation.turns;
    let mut shown: Vec<bool> = turns.iter().map(|turn| !passed(turn, attempt)).collect();
    let failed = attempt.checks.iter().filter(|checked| checked.fails());
    let compared = failed.filter_map(|checked| checked.verdict.comparison.as_deref());
    let nearest =
        compared.flat_map(|comparison| &comparison.missing).filter_map(|missing| missing.nearest.as_ref());
    let reached = attempt.checkpoints.iter().filter_map(|reached| reached.at);
    for number in nearest.map(|call| call.turn).chain(reached).chain([turns.len()]) {
        if let Some(shown) = number.checked_sub(1).and_then(|index| shown.get_mut(index)) {
            *shown = true;
        }
    }
    shown
}

/// Splits a text into lines that are safe to print, of at most `room` columns; all but the first are indented.
fn whole_lines(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in safe_lines(text.trim()) {
        let first = if lines.is_empty() { room } else { room.saturating_sub(2) };
        lines.extend(wrap(&line, first, room.saturating_sub(2)));
    }
    if lines.is_empty() { vec![String::new()] } else { lines }
}

/// Returns the line of a check, followed by the reason of the judge or of the error. `errored` is the style of a check
/// without a result.
fn check_lines(checked: &CheckResult, detail: DetailLevel, errored: TextStyle) -> Vec<TreeLine> {
    let (mark, tone) = match (checked.state(), checked.check.is_hard()) {
        (CheckState::Passed, _) => ("✓", TextStyle::Good),
        (CheckState::Failed, true) => ("✗", TextStyle::Bad),
        (CheckState::Errored, true) => ("✗", errored),
        (CheckState::Failed, false) => ("○", TextStyle::Quiet),
        (CheckState::Errored, false) => ("?", TextStyle::Skipped),
    };
    let measured = if checked.check.is_hard() { "" } else { "(informational) " };
    let topic = checked.topic.as_ref().map_or_else(String::new, |of| match of.visit {
        1 => format!("topic {}: ", of.topic),
        visit => format!("topic {}, visit {visit}: ", of.topic),
    });
    let words = format!("{measured}{topic}{}", label::check_label(checked));
    let mut lines = vec![TreeLine::marked(mark, tone, words)];
    let why = match (checked.state(), &checked.opinion) {
        (CheckState::Errored, _) => Some(format!("error: {}", checked.verdict.actual)),
        // The reason of a script function is displayed with its turn.
        (CheckState::Passed | CheckState::Failed, Some(opinion)) if opinion.by.prompt.is_some() => {
            Some(checked.verdict.actual.clone())
        }
        (CheckState::Passed | CheckState::Failed, _) => None,
    };
    let left_out = checked.opinion.as_ref().map(|opinion| &opinion.by.left_out).filter(|all| !all.is_empty());
    lines.extend(left_out.map(|all| {
        TreeLine::marked(
            "  !",
            TextStyle::Skipped,
            format!("judged on a shortened conversation: {}", all.join("; ")),
        )
    }));
    lines.extend(
        why.filter(|_| detail == DetailLevel::Full).map(|why| TreeLine::marked("  →", TextStyle::Quiet, why)),
    );
    lines
}
