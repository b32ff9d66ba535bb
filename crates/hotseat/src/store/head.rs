//! What is known of a run as a whole.

use std::path::PathBuf;
use std::sync::Arc;

use hotseat_trace::Millis;
use serde::{Deserialize, Serialize};

use super::Commit;
use crate::run::{Setting, Shard, Summary};

/// What is told at the beginning of a run. A new member has a default: what was kept before does not have it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct About {
    /// What it is carried out with.
    pub setting: Arc<Setting>,
    /// How many cases it has.
    pub total: usize,
    /// How many conversations it holds at once.
    pub parallel: usize,
    /// The version of Hotseat.
    pub hotseat: String,
    /// The folder in which it was begun.
    pub folder: PathBuf,
    /// The folder of the project.
    pub project: PathBuf,
    /// The arguments with which it was begun.
    pub command: Vec<String>,
    /// What its cases are, in one number: of other cases, or of cases that are written otherwise, it is another one.
    pub cases: String,
    /// Where what it tells of comes from.
    pub origin: Origin,
    /// Which part of all cases it has, where they were divided.
    #[serde(default)]
    pub shard: Option<Shard>,
    /// How many cases all the parts have together.
    pub of_all: usize,
    /// Whether it has only those that failed in the run before it.
    #[serde(default)]
    pub only_failed: bool,
    /// The test file in Rust that made it; none where `hotseat test` did.
    #[serde(default)]
    pub program: Option<String>,
}

/// Where what a run tells of comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Conversations that were held in it.
    Held,
    /// Conversations of another run, decided again.
    Rechecked {
        /// The run that held them.
        of: String,
    },
    /// Runs that were joined.
    Merged {
        /// Which.
        of: Vec<String>,
    },
}

/// A run that is kept.
#[derive(Debug, Clone)]
pub struct RunHead {
    /// Its place among those of the store.
    pub(super) number: i64,
    /// Its id.
    pub id: String,
    /// When it began.
    pub began: Millis,
    /// What it is, and what it is carried out with.
    pub about: About,
    /// What it came to, once it has ended.
    pub summary: Option<Summary>,
    /// What its cases came to as far as they have ended.
    pub counts: Counts,
    /// What it was made with, where that is known.
    pub commit: Option<Commit>,
    /// How far it is.
    pub state: State,
}

/// A run as it is listed for programs.
#[derive(Debug, Serialize)]
pub struct RunRecord<'a> {
    id: &'a str,
    state: State,
    started_at: Option<String>,
    duration_ms: Option<f64>,
    total: usize,
    passed: usize,
    failed: usize,
    skipped: usize,
    unfinished: usize,
    inputs: &'a [Arc<str>],
    agents: Vec<&'a str>,
    commit: Option<&'a str>,
    dirty: Option<bool>,
    hotseat: &'a str,
    shard: Option<String>,
    origin: &'a Origin,
    command: &'a [String],
}

/// How many cases of a run came to what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many were skipped.
    pub skipped: usize,
    /// How many of these all are left to be run: they were never begun, or broken off.
    pub left: usize,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It goes on.
    Running,
    /// It has ended with all its cases.
    Ended,
    /// It was ended before its time, and told what it came to.
    Interrupted,
    /// Its process is gone, and did not tell what it came to.
    Killed,
}

impl State {
    /// The name used for it.
    pub fn name(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Ended => "ended",
            State::Interrupted => "interrupted",
            State::Killed => "killed",
        }
    }
}

impl RunHead {
    /// The id, as far as people need it.
    pub fn short(&self) -> &str {
        short(&self.id)
    }

    /// The run as it is listed for programs.
    pub fn record(&self) -> RunRecord<'_> {
        let About { setting, total, hotseat, command, origin, shard, .. } = &self.about;
        let summary = self.summary.as_ref();
        RunRecord {
            id: &self.id,
            state: self.state,
            started_at: jiff::Timestamp::from_millisecond(self.began).map(|at| at.to_string()).ok(),
            duration_ms: summary.map(|summary| summary.duration.as_micros() as f64 / 1000.0),
            total: *total,
            passed: self.counts.passed,
            failed: self.counts.failed,
            skipped: self.counts.skipped,
            unfinished: self.unfinished(),
            inputs: &setting.inputs,
            agents: setting.agents().map(|agent| &*agent.id).collect(),
            commit: self.commit.as_ref().map(|commit| commit.id.as_str()),
            dirty: self.commit.as_ref().map(|commit| commit.dirty),
            hotseat,
            shard: shard.map(|shard| shard.to_string()),
            origin,
            command,
        }
    }

    /// How many cases have not ended.
    pub fn unfinished(&self) -> usize {
        let Counts { passed, failed, skipped, left } = self.counts;
        (self.about.total + left).saturating_sub(passed + failed + skipped)
    }
}

/// An id, as far as people need it.
pub(super) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}
