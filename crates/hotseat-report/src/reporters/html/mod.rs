//! `.html`: the run as one self-contained page without network access or other files.
//!
//! The page consists of static HTML, CSS and JavaScript next to this file. Run data is embedded as JSON: a
//! short row for each case, used for the overview, and the full data of each case in an element of its own,
//! which is parsed only when the case is opened.
//!
//! A served page ([`served_page`]) differs only in its source of data: it queries its server for [`RunRecord`],
//! [`OverviewRow`] and [`CaseRecord`].

mod origin;
mod page;
mod row;
mod turns;

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::Arc;

use hotseat_trace::{EventRecord, Millis, Payload, optional_members};
use serde::Serialize;

use super::Reporter;
use super::output_file::OutputFile;
use super::record::{EnvironmentRecord, MetadataRecord, ResultRecord, StartRecord, SummaryRecord, records};
use super::spool::{ReportSpool, SpoolPiece};
use hotseat_engine::run::{Attempt, CaseOutcome, RunSettings, RunSummary, SweepReport};
use origin::{SourceExcerptRecord, rerun_command, source_excerpts};
pub use page::{ServedPage, served_page};
pub use row::OverviewRow;
#[cfg(feature = "store")]
pub(crate) use turns::PageItem;
pub(crate) use turns::PageTurn;

/// Reporter that writes a page. Cases end in any order, so they are spooled until the end of the run.
pub struct HtmlReporter {
    file: OutputFile,
    /// Display name of the file.
    label: String,
    setting: Arc<RunSettings>,
    spool: ReportSpool,
    cases: Vec<SpooledCase>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SpooledCase {
    /// Index of the case in the run.
    index: usize,
    row: SpoolPiece,
    details: SpoolPiece,
}

records! {
    /// All data of a case.
    pub struct CaseRecord<'a>(outcome: &'a CaseOutcome, setting: &'a RunSettings) {
        let telling = outcome.representative().number;
        let attempts = outcome.attempts.iter().map(|attempt| AttemptTraceRecord::new(attempt, telling));
    } => {
        /// Same as in the `.json` report.
        result: ResultRecord<'a> = ResultRecord::new(outcome, setting),
        attempts: Vec<AttemptTraceRecord<'a>> = attempts.collect(),
        /// Lines of test files around failed checks.
        sources?: Vec<SourceExcerptRecord<'a>> = source_excerpts(outcome),
        /// Command that runs the case again.
        rerun?: Option<String> = rerun_command(&outcome.case_ref),
    }

    /// Turns and events of an attempt.
    pub struct AttemptTraceRecord<'a>(attempt: &'a Attempt, telling: usize) {
        let events = visible_events(&attempt.events);
        let left_out = attempt.events.len() - events.len();
        let talked = &attempt.conversation;
        let topics = talked.topics.as_ref().map(|graph| graph.to_svg(&talked.topic_visits()));
    } => {
        number: usize = attempt.number,
        /// True for the representative attempt of the case.
        telling: bool = attempt.number == telling,
        turns: Vec<PageTurn<'a>> = PageTurn::from_events(talked, &events),
        events: Vec<&'a EventRecord> = events,
        /// Number of omitted events.
        left_out: usize = left_out,
        /// Topic graph with the path of the conversation, as SVG.
        topics?: Option<String> = topics,
    }
}

optional_members! {
    /// Data of a run.
    #[derive(Serialize)]
    pub struct RunRecord<'a> {
        start?: Option<StartRecord<'a>>,
        summary?: Option<SummaryRecord>,
        metadata?: Option<MetadataRecord<'a>>,
        environment: EnvironmentRecord<'a>,
        fault_sweep?: Option<&'a SweepReport>,
    }
}

impl<'a> RunRecord<'a> {
    /// Record of a run that has started.
    pub fn started(total: usize, parallel: usize, at: Millis, setting: &'a RunSettings) -> Self {
        let start = Some(StartRecord::new(total, parallel, at, setting));
        let environment = EnvironmentRecord::new(setting);
        RunRecord { start, summary: None, metadata: None, environment, fault_sweep: None }
    }

    /// Record of a finished run. `shown` is the name of the file that contains it.
    pub fn ended(summary: &'a RunSummary, setting: &'a RunSettings, shown: &'a str) -> Self {
        RunRecord {
            start: None,
            summary: Some(SummaryRecord::new(summary, setting)),
            metadata: Some(MetadataRecord::new(summary, setting, shown)),
            environment: EnvironmentRecord::new(setting),
            fault_sweep: summary.sweep.as_deref(),
        }
    }
}

impl HtmlReporter {
    /// Creates a reporter that writes to a file. Fails if no temporary file can be created.
    pub fn new(file: OutputFile, shown: String, setting: Arc<RunSettings>) -> io::Result<Self> {
        let (spool, cases) = (ReportSpool::new()?, Vec::new());
        Ok(HtmlReporter { file, label: shown, setting, spool, cases })
    }
}

impl Reporter for HtmlReporter {
    fn report_case(&mut self, outcome: &CaseOutcome) -> io::Result<()> {
        let row = self.spool.add(&page::to_script_json(&OverviewRow::new(outcome, &self.setting))?)?;
        let whole = self.spool.add(&page::to_script_json(&CaseRecord::new(outcome, &self.setting))?)?;
        self.cases.push(SpooledCase { index: outcome.case_ref.index, row, details: whole });
        Ok(())
    }

    fn report_run(&mut self, summary: &RunSummary) -> io::Result<()> {
        self.cases.sort_unstable();
        let run = RunRecord::ended(summary, &self.setting, &self.label);
        self.file.write(|out| {
            page::begin_page(out)?;
            page::write_data(out, "run", &page::to_script_json(&run)?)?;
            let mut spool = self.spool.reader()?;
            page::begin_data(out, "rows")?;
            out.write_all(b"[")?;
            for (number, case) in self.cases.iter().enumerate() {
                out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
                spool.copy(case.row, out)?;
            }
            out.write_all(b"\n]")?;
            page::end_data(out)?;
            // Places the script before the cases, so the overview is displayed first.
            page::write_script(out)?;
            for case in &self.cases {
                page::begin_data(out, &format!("case-{}", case.index))?;
                spool.copy(case.details, out)?;
                page::end_data(out)?;
            }
            page::end_page(out)
        })
    }
}

/// Returns the events that the page displays. Internal request building and task steps of reference agents
/// are nine tenths of their traces and are left out; `--trace` writes them.
fn visible_events(events: &[EventRecord]) -> Vec<&EventRecord> {
    let mut own_work = HashSet::new();
    let wanted = |record: &&EventRecord| -> bool {
        if let Payload::ContextAssemblyStarted(started) | Payload::MemoryExtractionStarted(started) =
            &record.payload
        {
            own_work.insert(started.run_id.clone());
        }
        let is_machinery = matches!(
            &record.payload,
            Payload::TokenCreated(_)
                | Payload::TokenStatusChanged(_)
                | Payload::TaskStepStarted(_)
                | Payload::TaskStepCompleted(_)
                | Payload::ActionStarted(_)
                | Payload::ActionCompleted(_)
        );
        let within = record.execution.as_ref().is_some_and(|within| own_work.contains(&within.id));
        !is_machinery && !within
    };
    events.iter().filter(wanted).collect()
}
