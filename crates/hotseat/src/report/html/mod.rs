//! `.html`: the run as one page that needs nothing else: no network, no other file.
//!
//! The page is our own HTML, style and script, which stand beside this file. What is known of the run stands in it as
//! JSON: a short row for each case, from which the overview is made, and each case whole in an element of its own,
//! which is read only when somebody looks at the case.
//!
//! A page that is served ([`served`]) is the same but for where all of that comes from: it asks the server that it comes
//! from, for [`RunRecord`], [`Row`] and [`CaseRecord`].

mod page;
mod row;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use hotseat_trace::{Millis, Payload, Record};
use serde::Serialize;

use super::record::{EnvironmentRecord, MetadataRecord, ResultRecord, StartRecord, SummaryRecord};
use super::spool::{Piece, Spool};
use super::{Reporter, RunEvent};
use crate::run::{Outcome, Setting, Summary};
pub use page::{Page, served};
pub use row::Row;

/// Writes a page. Cases end in any order, so until the end they wait in a spool.
pub struct Html {
    file: File,
    /// The file, as it is shown to people.
    shown: String,
    setting: Arc<Setting>,
    spool: Spool,
    cases: Vec<Case>,
}

/// A case that waits for the end of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    /// Its place in the run.
    index: usize,
    row: Piece,
    whole: Piece,
}

/// Everything that is known of a case.
#[derive(Serialize)]
pub struct CaseRecord<'a> {
    /// As in the `.json` report.
    result: ResultRecord<'a>,
    attempts: Vec<TraceRecord<'a>>,
}

/// What happened in an attempt.
#[derive(Serialize)]
struct TraceRecord<'a> {
    number: usize,
    /// Whether it is the one that stands for the case.
    telling: bool,
    events: Vec<&'a Record>,
    /// How many events are not there.
    left_out: usize,
    /// The graph of its topics with the way that it took, as SVG.
    #[serde(skip_serializing_if = "Option::is_none")]
    topics: Option<String>,
}

/// A run, as far as it is told.
#[derive(Serialize)]
pub struct RunRecord<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<StartRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<SummaryRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<MetadataRecord<'a>>,
    environment: EnvironmentRecord<'a>,
}

impl<'a> RunRecord<'a> {
    /// A run that has begun.
    pub fn begun(total: usize, parallel: usize, at: Millis, setting: &'a Setting) -> Self {
        let start = Some(StartRecord::of(total, parallel, at, setting));
        RunRecord { start, summary: None, metadata: None, environment: EnvironmentRecord::of(setting) }
    }

    /// A run that is over. `shown` is what the file is called in which that stands.
    pub fn ended(summary: &Summary, setting: &'a Setting, shown: &'a str) -> Self {
        RunRecord {
            start: None,
            summary: Some(SummaryRecord::of(summary, setting)),
            metadata: Some(MetadataRecord::of(summary, setting, shown)),
            environment: EnvironmentRecord::of(setting),
        }
    }
}

impl Html {
    /// A report to a file that is still empty.
    ///
    /// # Errors
    /// When no temporary file can be made.
    pub fn new(file: File, shown: String, setting: Arc<Setting>) -> io::Result<Self> {
        Ok(Html { file, shown, setting, spool: Spool::new()?, cases: Vec::new() })
    }

    fn keep(&mut self, outcome: &Outcome) -> io::Result<()> {
        let row = self.spool.add(&page::json(&Row::of(outcome, &self.setting))?)?;
        let whole = self.spool.add(&page::json(&CaseRecord::of(outcome, &self.setting))?)?;
        self.cases.push(Case { index: outcome.selected.index, row, whole });
        Ok(())
    }

    fn write(&mut self, summary: &Summary) -> io::Result<()> {
        self.cases.sort_unstable();
        let run = RunRecord::ended(summary, &self.setting, &self.shown);
        let mut out = BufWriter::new(&self.file);
        page::begin(&mut out)?;
        page::data(&mut out, "run", &page::json(&run)?)?;
        let mut spool = self.spool.read()?;
        page::begin_data(&mut out, "rows")?;
        out.write_all(b"[")?;
        for (number, case) in self.cases.iter().enumerate() {
            out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
            spool.copy(case.row, &mut out)?;
        }
        out.write_all(b"\n]")?;
        page::end_data(&mut out)?;
        // The overview is there before the conversations are.
        page::script(&mut out)?;
        for case in &self.cases {
            page::begin_data(&mut out, &format!("case-{}", case.index))?;
            spool.copy(case.whole, &mut out)?;
            page::end_data(&mut out)?;
        }
        page::end(&mut out)?;
        out.flush()
    }
}

impl<'a> CaseRecord<'a> {
    /// A case that has ended.
    pub fn of(outcome: &'a Outcome, setting: &'a Setting) -> Self {
        let telling = outcome.telling().number;
        let attempts = outcome.attempts.iter().map(|attempt| {
            let events = looked_at(&attempt.events);
            let left_out = attempt.events.len() - events.len();
            let talked = &attempt.conversation;
            let topics = talked.topics.as_ref().map(|graph| graph.to_svg(&talked.topic_visits()));
            TraceRecord {
                number: attempt.number,
                telling: attempt.number == telling,
                events,
                left_out,
                topics,
            }
        });
        CaseRecord { result: ResultRecord::of(outcome, setting), attempts: attempts.collect() }
    }
}

/// The events that people look at. How an agent of our own builds its requests, and each step of its tasks, are nine
/// tenths of its trace; whoever wants them has `--trace`.
fn looked_at(events: &[Record]) -> Vec<&Record> {
    let mut own_work = HashSet::new();
    let wanted = |record: &&Record| -> bool {
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

impl Reporter for Html {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        match event {
            RunEvent::CaseEnded(outcome) => self.keep(outcome),
            RunEvent::Ended(summary) => self.write(summary),
            RunEvent::Started { .. }
            | RunEvent::CaseStarted { .. }
            | RunEvent::AttemptEnded { .. }
            | RunEvent::Stopping(_) => Ok(()),
        }
    }
}
