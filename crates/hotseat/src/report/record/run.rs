//! A run as it is written to report files: what it was carried out with, and what it came to.

use std::sync::Arc;

use hotseat_trace::Millis;
use serde::Serialize;

use super::super::attempts::RepeatsRecord;
use super::super::words::tenths;
use super::{SpentRecord, VERSION, ms, rfc3339};
use crate::run::{Environment, OfCriterion, Setting, Summary, Tally};

/// On whose behalf agents were spoken to, where no case says otherwise.
#[derive(Debug, Serialize)]
pub struct EnvironmentRecord<'a> {
    user_id: &'a str,
    team_id: &'a str,
    locale: &'a str,
}

impl<'a> EnvironmentRecord<'a> {
    pub fn of(setting: &'a Setting) -> Self {
        let Environment { user, team, locale } = &setting.environment;
        EnvironmentRecord { user_id: user, team_id: team, locale }
    }
}

/// What a run came to.
#[derive(Debug, Serialize)]
pub struct SummaryRecord {
    pub total: usize,
    pub passed: usize,
    /// How many of those passed only when they were tried again.
    #[serde(skip_serializing_if = "is_zero")]
    pub flaky: usize,
    pub failed: usize,
    pub skipped: usize,
    /// How many of those are skipped although they do not say so.
    #[serde(skip_serializing_if = "is_zero")]
    pub unasked_skips: usize,
    pub errors: usize,
    pub timeouts: usize,
    pub interrupted: bool,
    /// Why the run could not be carried out, where it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<str>>,
    /// How many percent of those that ran passed; null where none ran.
    pub pass_rate: Option<f64>,
    pub duration_ms: f64,
    /// What is only measured; it is in none of the figures above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft: Option<TallyRecord>,
    /// How many checks were judged on a shortened conversation.
    #[serde(skip_serializing_if = "is_zero")]
    pub truncated_judgements: usize,
    /// Criteria, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<CriterionRecord>,
    /// What all attempts have spent, as far as somebody says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<SpentRecord>,
    /// The runs, where each case has several.
    #[serde(flatten)]
    pub repeats: Option<RepeatsRecord>,
    #[serde(flatten)]
    pub agent: AgentRecord,
}

/// What some checks came to.
#[derive(Debug, Serialize)]
pub struct TallyRecord {
    /// How many were decided.
    pub judged: usize,
    pub passed: usize,
    pub failed: usize,
    /// How many could not be decided.
    pub errored: usize,
    /// How many percent of those that were decided hold; null where none was.
    pub rate: Option<f64>,
}

/// What a criterion came to: where it decides, and where it is only measured.
#[derive(Debug, Serialize)]
pub struct CriterionRecord {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hard: Option<TallyRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft: Option<TallyRecord>,
}

impl TallyRecord {
    fn of(tally: &Tally) -> Option<Self> {
        let Tally { passed, failed, errored } = *tally;
        let rate = tally.rate().map(|rate| tenths(rate * 100.0));
        (!tally.is_empty()).then(|| TallyRecord { judged: tally.judged(), passed, failed, errored, rate })
    }
}

/// The agents that were tested; several stand beside each other, with commas between them.
#[derive(Debug, Serialize)]
pub struct AgentRecord {
    pub agent_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connector: Option<String>,
}

/// The beginning of a run.
#[derive(Debug, Serialize)]
pub struct StartRecord<'a> {
    pub version: &'static str,
    pub hotseat: &'static str,
    pub started_at: String,
    pub total: usize,
    pub parallel: usize,
    pub environment: EnvironmentRecord<'a>,
    #[serde(flatten)]
    pub agent: AgentRecord,
    #[serde(flatten)]
    pub input: InputRecord<'a>,
    pub options: OptionsRecord<'a>,
}

/// What a report of a whole run says of itself.
#[derive(Debug, Serialize)]
pub struct MetadataRecord<'a> {
    pub version: &'static str,
    pub hotseat: &'static str,
    pub started_at: String,
    pub completed_at: String,
    #[serde(flatten)]
    pub input: InputRecord<'a>,
    pub output_file: &'a str,
    pub options: OptionsRecord<'a>,
}

/// The suites of a run.
#[derive(Debug, Serialize)]
pub struct InputRecord<'a> {
    /// The suite, where there is just one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_file: Option<&'a str>,
    pub input_files: &'a [Arc<str>],
    /// The run that held the conversations, where they were decided again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recheck_of: Option<&'a str>,
}

/// The options that were in effect.
#[derive(Debug, Serialize)]
pub struct OptionsRecord<'a> {
    pub parallel: usize,
    /// The limit of a case, where one was set for the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<f64>,
    pub fail_fast: bool,
    pub runs: usize,
    /// Where that is several: how much of it has to pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_pass_rate: Option<f64>,
    /// How often any case is tried again, where that was set for the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<usize>,
    pub fail_on_skip: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connector: Option<&'a str>,
}

fn is_zero(value: &usize) -> bool {
    *value == 0
}

impl SummaryRecord {
    pub fn of(summary: &Summary, setting: &Setting) -> Self {
        SummaryRecord {
            total: summary.total,
            passed: summary.passed,
            flaky: summary.flaky,
            failed: summary.failed,
            skipped: summary.skipped,
            unasked_skips: summary.unasked_skips,
            errors: summary.errors,
            timeouts: summary.timeouts,
            interrupted: summary.interrupted,
            error: summary.broken.clone(),
            pass_rate: summary.pass_rate().map(tenths),
            duration_ms: ms(summary.duration),
            soft: TallyRecord::of(&summary.measured.soft),
            truncated_judgements: summary.measured.truncated,
            criteria: summary
                .measured
                .criteria
                .iter()
                .map(|(name, OfCriterion { hard, soft })| CriterionRecord {
                    name: name.clone(),
                    hard: TallyRecord::of(hard),
                    soft: TallyRecord::of(soft),
                })
                .collect(),
            spent: summary.spent.as_deref().cloned().map(SpentRecord::of),
            repeats: summary.repeats.as_ref().map(RepeatsRecord::of),
            agent: AgentRecord::of(setting),
        }
    }
}

impl AgentRecord {
    fn of(setting: &Setting) -> Self {
        let joined = |parts: Vec<&str>| (!parts.is_empty()).then(|| parts.join(", "));
        AgentRecord {
            agent_id: joined(setting.agents().map(|agent| &*agent.id).collect()).unwrap_or_default(),
            agent_path: joined(setting.agents().filter_map(|agent| agent.path.as_deref()).collect()),
            connector: joined(setting.connectors()),
        }
    }
}

impl<'a> StartRecord<'a> {
    pub fn of(total: usize, parallel: usize, at: Millis, setting: &'a Setting) -> Self {
        StartRecord {
            version: VERSION,
            hotseat: env!("CARGO_PKG_VERSION"),
            started_at: rfc3339(at),
            total,
            parallel,
            environment: EnvironmentRecord::of(setting),
            agent: AgentRecord::of(setting),
            input: InputRecord::of(setting),
            options: OptionsRecord::of(setting),
        }
    }
}

impl<'a> MetadataRecord<'a> {
    pub fn of(summary: &Summary, setting: &'a Setting, output_file: &'a str) -> Self {
        MetadataRecord {
            version: VERSION,
            hotseat: env!("CARGO_PKG_VERSION"),
            started_at: rfc3339(summary.started_at),
            completed_at: rfc3339(summary.ended_at),
            input: InputRecord::of(setting),
            output_file,
            options: OptionsRecord::of(setting),
        }
    }
}

impl<'a> InputRecord<'a> {
    fn of(setting: &'a Setting) -> Self {
        let input_file = match setting.inputs.as_slice() {
            [one] => Some(&**one),
            _ => None,
        };
        InputRecord { input_file, input_files: &setting.inputs, recheck_of: setting.rechecked.as_deref() }
    }
}

impl<'a> OptionsRecord<'a> {
    fn of(setting: &'a Setting) -> Self {
        let options = &setting.choices.options;
        OptionsRecord {
            parallel: options.parallel,
            timeout_ms: setting.case_timeout.map(ms),
            fail_fast: options.fail_fast,
            runs: options.runs,
            min_pass_rate: (options.runs > 1).then(|| options.min_pass_rate.part()),
            retries: options.retries.filter(|_| options.runs == 1),
            fail_on_skip: options.fail_on_skip,
            run: setting.choices.run.as_deref(),
            agent: setting.choices.agent.as_deref(),
            connector: setting.choices.connector.as_deref(),
        }
    }
}
