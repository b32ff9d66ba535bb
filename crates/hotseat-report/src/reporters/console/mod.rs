//! Console output: a line for each finished case, the conversation if there is more to display, and a
//! summary.
//!
//! Output of an agent must not control a terminal or a CI server: control characters are replaced by visible
//! ones, and no line starts with text of an agent.

mod attempts;
mod banner;
mod case;
mod comparison;
mod conversation;
mod failure;
mod label;
mod options;
mod progress;
mod stability;
mod summary;
mod sweep;
mod tree;
mod turn;

use std::io::{self, Write};
use std::sync::Arc;

use hotseat_trace::VerdictStatus;

pub use options::ConsoleOptions;
pub(super) use turn::passed;

use self::progress::RunProgress;
use self::stability::{MAX_FAILED_CASES, StabilitySection};
use self::summary::ConversationTotals;
use super::failures::FailureList;
use super::{Reporter, RunEvent};
use hotseat_engine::run::{AttemptPolicy, CaseOutcome, RunControl, RunSettings, RunSummary};

/// Size of unwritten output that is written before the next event.
const MAX_UNWRITTEN_BYTES: usize = 64 * 1024;

/// Reporter that writes human-readable text.
pub struct ConsoleReporter<W> {
    out: W,
    options: ConsoleOptions,
    setting: Arc<RunSettings>,
    progress: RunProgress,
    totals: ConversationTotals,
    failures: FailureList,
    stability: StabilitySection,
    /// Number of cases that were not started, and the reason.
    not_run: usize,
    why_not_run: String,
    /// Reports that could not be written.
    lost: Vec<String>,
    /// Output that is not written yet: short cases share a system call.
    unwritten: String,
    /// True if a progress line is displayed at the bottom.
    has_progress_line: bool,
    /// The output before the next one.
    preceding: PrecedingOutput,
}

/// Kind of the output before the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PrecedingOutput {
    /// A rule, or nothing.
    Rule,
    /// A case in one line.
    Line,
    /// An empty line.
    Gap,
}

/// Renders a finished case with all details.
pub fn conversation(look: &ConsoleOptions, outcome: &CaseOutcome, setting: &RunSettings) -> String {
    case::render_case(look, outcome, setting).text
}

impl<W: Write + Send> ConsoleReporter<W> {
    /// Creates a console reporter that writes to `out`.
    pub fn new(out: W, look: ConsoleOptions, setting: Arc<RunSettings>) -> Self {
        ConsoleReporter {
            out,
            options: look,
            // The number of runs is unknown if cases declare a reliability.
            progress: RunProgress::new(
                setting.selected,
                if setting.declared > 0 { 1 } else { setting.choices.options.runs },
            ),
            stability: StabilitySection::default(),
            setting,
            totals: ConversationTotals::default(),
            failures: FailureList::with_limit(MAX_FAILED_CASES),
            not_run: 0,
            why_not_run: String::new(),
            lost: Vec::new(),
            unwritten: String::new(),
            has_progress_line: false,
            preceding: PrecedingOutput::Rule,
        }
    }

    fn case_ended(&mut self, outcome: &CaseOutcome) -> String {
        self.progress.case_ended(outcome);
        self.failures.record(outcome, &self.setting);
        self.stability.note(&self.options, outcome);
        for attempt in &outcome.attempts {
            let turns = attempt.conversation.turns.len();
            self.totals.conversations += usize::from(turns > 0);
            self.totals.turns += turns;
            self.totals.duration += attempt.duration;
        }

        let skipped = outcome.verdict.status == VerdictStatus::Skipped;
        let held = outcome.attempts.iter().any(|attempt| !attempt.conversation.turns.is_empty());
        self.totals.cases += usize::from(held);
        if skipped && !held && outcome.case_ref.case.skip.is_none() && !self.options.verbose {
            // An interrupted run leaves many such cases for the same reason.
            self.not_run += 1;
            self.why_not_run = outcome.verdict.skip_reason.clone().unwrap_or_default();
            return String::new();
        }
        let shown = case::render_case(&self.options, outcome, &self.setting);
        let mut text = match shown.is_tree {
            true => self.with_gaps(shown.text),
            false => self.without_gaps(shown.text),
        };
        if !self.options.progress
            && let Some(line) = self.progress.occasional_line(&self.options)
        {
            text.push_str(&self.with_gaps(line));
        }
        text
    }

    /// Adds empty lines around a text.
    fn with_gaps(&mut self, mut text: String) -> String {
        if self.preceding == PrecedingOutput::Line {
            text.insert(0, '\n');
        }
        if !text.ends_with("\n\n") {
            text.push('\n');
        }
        self.preceding = PrecedingOutput::Gap;
        text
    }

    /// Adds a text directly below the preceding output.
    fn without_gaps(&mut self, text: String) -> String {
        self.preceding = PrecedingOutput::Line;
        text
    }

    fn summary(&mut self, summary: &RunSummary) -> String {
        let look = self.options;
        if summary.total == 0 {
            return summary::result_banner(&look, summary);
        }
        let mut out = String::new();
        if self.not_run > 0 {
            let line = summary::not_run_line(&look, self.not_run, &self.why_not_run);
            out.push_str(&self.without_gaps(line));
        }
        if self.preceding == PrecedingOutput::Line {
            out.push('\n');
        }
        out.push_str(&self.stability.section(&look, summary));
        out.push_str(&summary::failed_cases(&look, &mut self.failures, summary));
        let written = self.setting.choices.outputs.iter().filter(|output| !self.lost.contains(output));
        let written: Vec<&str> = written.map(String::as_str).collect();
        out.push_str(&summary::summary_table(&look, &self.setting, summary, &self.totals, &written));
        if let Some(words) = self.failures.suggestion(summary.total, self.setting.choices.rerun.as_ref()) {
            out.push_str(&summary::format_suggestion(&look, &words));
        }
        out + &summary::result_banner(&look, summary)
    }
}

impl<W: Write + Send> Reporter for ConsoleReporter<W> {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        let mut text = match event {
            RunEvent::Started { .. } => banner::run_header(&self.options, &self.setting),
            RunEvent::CaseStarted { case, .. } => {
                self.progress.case_started(&case.case.name);
                String::new()
            }
            RunEvent::AttemptEnded { repetition: AttemptPolicy::Repeated { .. }, .. } => {
                self.progress.run_ended();
                String::new()
            }
            RunEvent::AttemptEnded { repetition: AttemptPolicy::Retried { .. }, .. } => String::new(),
            RunEvent::CaseEnded(outcome) => self.case_ended(outcome),
            RunEvent::Stopping(RunControl::Cancel) => {
                self.without_gaps("cancelling running cases\n".to_string())
            }
            RunEvent::Stopping(_) => self.without_gaps(
                "no new cases; waiting for running cases (Ctrl-C again cancels them)\n".to_string(),
            ),
            RunEvent::SweepStarted { runs, combinations } => {
                self.without_gaps(sweep::announcement(*runs, *combinations))
            }
            RunEvent::SweepEnded(report) => self.with_gaps(sweep::table(&self.options, report)),
            RunEvent::Ended(summary) => self.summary(summary),
        };
        if std::mem::take(&mut self.has_progress_line) {
            text.insert_str(0, "\r\x1b[2K");
        }
        self.has_progress_line = self.options.progress && !matches!(event, RunEvent::Ended(_));
        if self.has_progress_line {
            text.push_str(&self.progress.bottom_line(&self.options));
        }
        self.unwritten.push_str(&text);
        match event {
            RunEvent::Ended(_) => self.flush(),
            _ if self.unwritten.len() >= MAX_UNWRITTEN_BYTES => self.flush(),
            _ => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        let text = std::mem::take(&mut self.unwritten);
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Redraws the progress line, so that its times go on while nothing else happens.
    fn tick(&mut self) -> io::Result<()> {
        if !self.has_progress_line {
            return Ok(());
        }
        let line = format!("\r\x1b[2K{}", self.progress.bottom_line(&self.options));
        self.out.write_all(line.as_bytes())?;
        self.out.flush()
    }

    fn output_failed(&mut self, output: &str) {
        self.lost.push(output.to_string());
    }
}
