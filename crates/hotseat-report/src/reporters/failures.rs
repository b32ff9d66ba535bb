//! Failures of a run: the first failed cases, counts by kind, and a suggestion for the next step.

use std::collections::HashSet;
use std::sync::Arc;

use hotseat_document::is_http_url;
use hotseat_trace::{AttemptFailure, FailureKind, ResultLabel, VerdictStatus};

use super::text::{one_line, shell_word};
use hotseat_checks::escape;
use hotseat_engine::run::{CaseDriver, CaseOutcome, RerunCommands, RunSettings};

/// Failed cases of a run. Only the first ones are kept.
#[derive(Debug, Default)]
pub struct FailureList {
    max_cases: usize,
    /// Number of failed cases.
    pub count: usize,
    first: Vec<FailedCase>,
    /// Number of failed cases by kind.
    kinds: Vec<(FailureKind, usize)>,
    /// Suite of the first case of the run.
    first_suite: Option<Arc<str>>,
    /// True if the run has cases of other suites, too.
    has_more_suites: bool,
    /// Next step for the first case whose agent is unreachable.
    unreachable: Option<&'static str>,
    /// True if a case without input had no message at all.
    lacks_first_message: bool,
}

/// Failed case.
#[derive(Debug)]
pub struct FailedCase {
    /// Index of the case in the run.
    pub index: usize,
    pub id: String,
    pub name: String,
    pub has_name: bool,
    /// Its suite as reports show it.
    suite: Arc<str>,
    /// Location of the case.
    pub place: String,
    /// `FILE:LINE`, if this selects the case alone.
    selector: Option<String>,
    pub kind: FailureKind,
    pub label: ResultLabel,
}

/// Formats `judge error: the judge gave no answer`: the label of a failure, and its message.
pub(super) fn labelled_message(failure: &AttemptFailure) -> String {
    let (word, message) = (ResultLabel::from(failure.fault).name(), &failure.message);
    match message.strip_prefix(word) {
        Some(rest) if rest.starts_with(':') => message.clone(),
        _ => format!("{word}: {message}"),
    }
}

/// Next step for a case whose agent is unreachable.
fn unreachable_advice(outcome: &CaseOutcome, settings: &RunSettings) -> &'static str {
    let path = settings.agent_of_case(&outcome.case_ref).and_then(|agent| agent.path.as_deref());
    match path {
        // Nothing is sent to an agent that did not start.
        _ if outcome.representative().conversation.turns.is_empty() => {
            "correct `start` of the agent in the project file; the failure says why it did not start"
        }
        Some(path) if !is_http_url(path) => {
            "install the program of the agent, or correct its `command` and `cwd` in the project file"
        }
        Some(_) | None => "start the agent, or correct its address in the project file",
    }
}

/// Maximum number of cases in a suggested `--run` pattern, so that the command stays easy to paste.
const MAX_SELECTED_CASES: usize = 5;
/// Maximum length of such a pattern.
const MAX_PATTERN_COLUMNS: usize = 45;

impl FailureList {
    /// Creates an empty list that keeps at most `most` cases.
    pub fn with_limit(most: usize) -> Self {
        FailureList { max_cases: most, ..FailureList::default() }
    }

    /// Records a finished case of a run with these settings, with details if it failed.
    pub fn record(&mut self, outcome: &CaseOutcome, settings: &RunSettings) {
        let suite = &outcome.case_ref.suite.shown;
        self.has_more_suites |= self.first_suite.get_or_insert_with(|| suite.clone()) != suite;
        let (VerdictStatus::Failed, Some(failure)) = (outcome.verdict.status, &outcome.verdict.failure)
        else {
            return;
        };
        self.count += 1;
        if failure.kind == FailureKind::Unreachable {
            self.unreachable.get_or_insert_with(|| unreachable_advice(outcome, settings));
        }
        self.lacks_first_message |=
            failure.kind == FailureKind::NoInput && outcome.representative().conversation.turns.is_empty();
        match self.kinds.iter_mut().find(|(kind, _)| *kind == failure.kind) {
            Some((_, count)) => *count += 1,
            None => self.kinds.push((failure.kind, 1)),
        }
        if self.first.len() < self.max_cases {
            let case = &outcome.case_ref.case;
            self.first.push(FailedCase {
                index: outcome.case_ref.index,
                id: case.id.clone(),
                name: case.name.clone(),
                has_name: case.named,
                suite: suite.clone(),
                place: case.place.to_string(),
                selector: (case.driven == CaseDriver::Written && case.scenario.is_none())
                    .then(|| format!("{}:{}", case.place.file(), case.place.line())),
                kind: failure.kind,
                label: ResultLabel::from(failure.fault),
            });
        }
    }

    /// Returns the kept cases in the order of the run.
    pub fn first(&mut self) -> &[FailedCase] {
        self.first.sort_by_key(|failed| failed.index);
        &self.first
    }

    /// Suggests the next step after a run of `total` cases, in one line. Returns `None` if nothing failed, or
    /// the next step is obvious.
    pub fn suggestion(&mut self, total: usize, rerun: Option<&RerunCommands>) -> Option<String> {
        let (kind, _) = *self.kinds.iter().rev().max_by_key(|(_, count)| *count)?;
        let run = self.rerun_command(rerun);
        // The command, or the options that select the failed cases, and other useful options.
        let with = |rest: &str| {
            let parts: Vec<&str> =
                run.as_deref().into_iter().chain(Some(rest).filter(|rest| !rest.is_empty())).collect();
            format!("`{}`", parts.join(" "))
        };
        let trace = match rerun.and_then(|rerun| rerun.trace.as_deref()) {
            Some(command) => format!("`{command}`"),
            None => with("--trace trace.jsonl"),
        };
        Some(match kind {
            FailureKind::Assertion | FailureKind::MissingCheckpoints if self.count == total => return None,
            FailureKind::Assertion | FailureKind::MissingCheckpoints => match &run {
                Some(run) => format!("after the fix, run only the failed cases: `{run}`"),
                None => "run one of the failed cases alone with `--run` and its name".to_string(),
            },
            FailureKind::AgentError | FailureKind::ProtocolError => {
                format!("see everything the agent sent: {trace}")
            }
            FailureKind::Unreachable => self.unreachable.unwrap_or_default().to_string(),
            FailureKind::Timeout => {
                "see where the time goes in the turns above; if the agent needs longer, raise `timeout_ms` or give `--timeout`"
                    .to_string()
            }
            FailureKind::Limit => {
                "see what the agent sends in the turns above; if that is intended and the failure names a key of the project file, raise this limit"
                    .to_string()
            }
            FailureKind::HookError => {
                "run the command of the hook on its own; its output is shown with the failure".to_string()
            }
            FailureKind::TestError => "correct the case; the failure says what is wrong with it".to_string(),
            // The cases are not from a file that could be edited.
            FailureKind::NoInput if rerun.is_none() && self.lacks_first_message => {
                "give a message: type it, or pass it with `-i TEXT`".to_string()
            }
            FailureKind::NoInput if rerun.is_none() => {
                "give a message, or end the conversation where input is missing with `--on-missing-input end`"
                    .to_string()
            }
            FailureKind::NoInput => {
                "add turns to the case; where only a later message is missing, `on_missing_input: end` ends the conversation there"
                    .to_string()
            }
            FailureKind::MaxTurns => {
                "see above whether the conversation goes in circles; if it needs longer, raise `max_turns`".to_string()
            }
            FailureKind::SimulatorError | FailureKind::JudgeError => {
                format!("see the requests and answers of the role: {trace}")
            }
            FailureKind::Inconclusive => {
                "raise `max_runs` of `reliability`, or declare a rate that the agent exceeds clearly".to_string()
            }
            FailureKind::ScriptError => {
                "correct the script; the failure shows the line that is wrong".to_string()
            }
            FailureKind::UsageError => {
                "have the agent report its usage, and give its model's connector a `price`; or drop the budget".to_string()
            }
            // Another recheck of the same run would miss the same conversations.
            FailureKind::NotKept => match self.selecting_options() {
                Some(options) => {
                    format!("make the missing conversations: `hotseat test {options}`")
                }
                None => "make the missing conversations with `hotseat test`".to_string(),
            },
            FailureKind::Cancelled => match run.as_ref().filter(|_| rerun.is_some()) {
                Some(run) => format!("run the cancelled cases again: `{run}`"),
                None => "run the cancelled cases again".to_string(),
            },
        })
    }

    /// Returns the shortest command that runs the failed cases, or the options that select them if the command is
    /// unknown.
    fn rerun_command(&mut self, rerun: Option<&RerunCommands>) -> Option<String> {
        let options = self.selecting_options();
        let Some(rerun) = rerun else { return options };
        let by_line = self.lines().map(|lines| format!("{} {lines}", rerun.any));
        // The options name the suite, unless the run has only one.
        let command = if self.has_more_suites { &rerun.any } else { &rerun.suites };
        let by_name = options.map(|options| format!("{command} {options}"));
        let commands = [rerun.failed.clone(), by_line, by_name].into_iter().flatten();
        commands.min_by_key(|command| command.chars().count())
    }

    /// Returns the lines of the failed cases as arguments of a shell. `None` if there are too many, or a line does not select one
    /// of them.
    fn lines(&mut self) -> Option<String> {
        if self.count > MAX_SELECTED_CASES || self.count > self.max_cases {
            return None;
        }
        let words = self.first().iter().map(|failed| Some(shell_word(failed.selector.as_deref()?)));
        Some(words.collect::<Option<Vec<_>>>()?.join(" "))
    }

    /// Returns options that select the failed cases by their ids. Ids are unique within a suite, so `None` if the cases are from
    /// several ones.
    fn selecting_options(&mut self) -> Option<String> {
        let pattern = self.run_pattern()?;
        if !self.has_more_suites {
            return Some(format!("--run {pattern}"));
        }
        let [first, others @ ..] = self.first.as_slice() else { return None };
        let is_same = others.iter().all(|other| other.suite == first.suite);
        is_same.then(|| format!("{} --run {pattern}", shell_word(&first.suite)))
    }

    /// Returns a shell-quoted pattern that selects the failed cases and others with their ids, or `None` if it would be
    /// too long.
    fn run_pattern(&mut self) -> Option<String> {
        if self.count > MAX_SELECTED_CASES || self.count > self.max_cases {
            return None;
        }
        // Outside of brackets these characters need no escape.
        let plainly =
            |id: &str| ["-", "#", "&", "~"].iter().fold(escape(id), |id, c| id.replace(&format!("\\{c}"), c));
        let mut seen = HashSet::new();
        let failed = self.first().iter().filter(|failed| seen.insert(failed.id.clone()));
        let ids: Vec<String> = failed.map(|failed| plainly(&failed.id)).collect();
        let pattern = match ids.as_slice() {
            [one] => format!("'^{one}$'"),
            several => format!("'^({})$'", several.join("|")),
        };
        // A quote would end the shell string, and replaced control characters would not match.
        let plain = one_line(&pattern, MAX_PATTERN_COLUMNS) == pattern && pattern.matches('\'').count() == 2;
        plain.then_some(pattern)
    }
}
