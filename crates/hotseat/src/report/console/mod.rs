//! The console: a line for each case as it ends, the conversation where there is more to see, a summary.
//!
//! Nothing that an agent said may steer a terminal or a CI server: control characters are made visible, and no
//! line begins with its words.

mod attempts;
mod case;
mod failure;
mod frame;
mod label;
mod look;
mod progress;
mod stability;
mod summary;
mod tree;
mod turn;

use std::io::{self, Write};
use std::sync::Arc;

use hotseat_trace::Status;

pub use look::Look;
pub(super) use turn::passed;

use self::progress::Progress;
use self::stability::Steadiness;
use self::summary::Totals;
use super::failures::Failures;
use super::{Reporter, RunEvent};
use crate::run::{Control, Outcome, Repetition, Setting, Summary};

/// How many cases that failed are named once more at the end.
const NAMED: usize = 30;
/// Up to so many cases, conversations that went well are shown, too.
const FEW: usize = 12;

/// Writes for people.
pub struct Console<W> {
    out: W,
    look: Look,
    setting: Arc<Setting>,
    progress: Progress,
    totals: Totals,
    failures: Failures,
    steadiness: Steadiness,
    /// How many cases were never begun, and why.
    not_run: usize,
    why_not_run: String,
    /// Reports that could not be written.
    lost: Vec<String>,
    /// Whether a progress line stands at the bottom.
    drawn: bool,
    /// What the last thing was that was written.
    last: Last,
}

/// What stands above what is written next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// A rule, or nothing at all.
    Rule,
    /// A case in one line.
    Line,
    /// An empty line.
    Gap,
}

/// One case that has ended, with everything that is known of it.
pub fn conversation(look: &Look, outcome: &Outcome, setting: &Setting) -> String {
    case::case(look, outcome, setting, true).text
}

impl<W: Write + Send> Console<W> {
    /// A console that writes to `out`.
    pub fn new(out: W, look: Look, setting: Arc<Setting>) -> Self {
        Console {
            out,
            look,
            // How many runs there will be is not known where reliabilities are declared.
            progress: Progress::of(
                setting.selected,
                if setting.declared > 0 { 1 } else { setting.choices.options.runs },
            ),
            steadiness: Steadiness::default(),
            setting,
            totals: Totals::default(),
            failures: Failures::keeping(NAMED),
            not_run: 0,
            why_not_run: String::new(),
            lost: Vec::new(),
            drawn: false,
            last: Last::Rule,
        }
    }

    fn case(&mut self, outcome: &Outcome) -> String {
        self.progress.ended(outcome);
        self.failures.note(outcome);
        self.steadiness.note(&self.look, outcome);
        for attempt in &outcome.attempts {
            let turns = attempt.conversation.turns.len();
            self.totals.held += usize::from(turns > 0);
            self.totals.turns += turns;
            self.totals.took += attempt.duration;
        }

        let skipped = outcome.verdict.status == Status::Skipped;
        let held = outcome.attempts.iter().any(|attempt| !attempt.conversation.turns.is_empty());
        if skipped && !held && outcome.selected.case.skip.is_none() && !self.look.verbose {
            // A run that ends early leaves many such cases, for one reason.
            self.not_run += 1;
            self.why_not_run = outcome.verdict.skip_reason.clone().unwrap_or_default();
            return String::new();
        }
        let shown = case::case(&self.look, outcome, &self.setting, self.setting.selected <= FEW);
        let mut text = match shown.is_tree {
            true => self.apart(shown.text),
            false => self.beside(shown.text),
        };
        if !self.look.progress
            && let Some(line) = self.progress.now_and_then(&self.look)
        {
            text.push_str(&self.apart(line));
        }
        text
    }

    /// A text that stands between empty lines.
    fn apart(&mut self, mut text: String) -> String {
        if self.last == Last::Line {
            text.insert(0, '\n');
        }
        if !text.ends_with("\n\n") {
            text.push('\n');
        }
        self.last = Last::Gap;
        text
    }

    /// A text that follows on what stands above.
    fn beside(&mut self, text: String) -> String {
        self.last = Last::Line;
        text
    }

    fn summary(&mut self, summary: &Summary) -> String {
        let look = self.look;
        if summary.total == 0 {
            return summary::verdict(&look, summary);
        }
        let mut out = String::new();
        if self.not_run > 0 {
            let line = summary::not_run(&look, self.not_run, &self.why_not_run);
            out.push_str(&self.beside(line));
        }
        if self.last == Last::Line {
            out.push('\n');
        }
        out.push_str(&self.steadiness.section(&look, summary));
        out.push_str(&summary::failed(&look, &mut self.failures, summary));
        let written = self.setting.choices.outputs.iter().filter(|output| !self.lost.contains(output));
        let written: Vec<&str> = written.map(String::as_str).collect();
        out.push_str(&summary::counts(&look, &self.setting, summary, &self.totals, &written));
        if let Some(words) = self.failures.suggestion(summary.total) {
            out.push_str(&summary::suggestion(&look, &words));
        }
        out + &summary::verdict(&look, summary)
    }
}

impl<W: Write + Send> Reporter for Console<W> {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        let mut text = match event {
            RunEvent::Started { .. } => frame::opening(&self.look, &self.setting),
            RunEvent::CaseStarted { case, .. } => {
                self.progress.started(&case.case.name);
                String::new()
            }
            RunEvent::AttemptEnded { repetition: Repetition::Repeated { .. }, .. } => {
                self.progress.run_ended();
                String::new()
            }
            RunEvent::AttemptEnded { repetition: Repetition::Retried { .. }, .. } => String::new(),
            RunEvent::CaseEnded(outcome) => self.case(outcome),
            RunEvent::Stopping(Control::Cancel) => self.beside("cancelling what runs\n".to_string()),
            RunEvent::Stopping(_) => self
                .beside("no new cases; waiting for those that run (Ctrl-C again cancels them)\n".to_string()),
            RunEvent::Ended(summary) => self.summary(summary),
        };
        // All that is to be seen at once is written at once.
        if std::mem::take(&mut self.drawn) {
            text.insert_str(0, "\r\x1b[2K");
        }
        self.drawn = self.look.progress && !matches!(event, RunEvent::Ended(_));
        if self.drawn {
            text.push_str(&self.progress.at_the_bottom(&self.look));
        }
        if text.is_empty() {
            return Ok(());
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn lost(&mut self, output: &str) {
        self.lost.push(output.to_string());
    }
}
