//! Report records of a run: its settings and its results.

use std::sync::Arc;

use hotseat_trace::{LabelCounts, Millis, optional_members};
use serde::Serialize;

use super::attempts::RepeatsRecord;
use super::format::{VERSION, ms, rfc3339};
use super::spent::SpentRecord;
use crate::reporters::text::round_to_tenths;
use hotseat_engine::run::{CheckTally, CriterionTally, RunSettings, RunSummary, UserIdentity};

/// Default user identity that agents receive.
#[derive(Debug, Serialize)]
pub struct EnvironmentRecord<'a> {
    user_id: &'a str,
    team_id: &'a str,
    locale: &'a str,
}

impl<'a> EnvironmentRecord<'a> {
    pub fn new(setting: &'a RunSettings) -> Self {
        let UserIdentity { user, team, locale } = &setting.environment;
        EnvironmentRecord { user_id: user, team_id: team, locale }
    }
}

optional_members! {
    /// Results of a run.
    #[derive(Debug, Serialize)]
    pub struct SummaryRecord {
        pub total: usize,
        pub passed: usize,
        /// Number of passed cases that passed only on a retry.
        #[serde(skip_serializing_if = "is_zero")]
        pub flaky: usize,
        pub failed: usize,
        pub skipped: usize,
        /// Numbers of cases by their label.
        #[serde(skip_serializing_if = "LabelCounts::is_empty")]
        pub labels: LabelCounts,
        /// Number of cases that were skipped without a `skip` key.
        #[serde(skip_serializing_if = "is_zero")]
        pub unasked_skips: usize,
        pub errors: usize,
        pub timeouts: usize,
        /// Number of conversations of a sweep of faults that show a defect.
        #[serde(skip_serializing_if = "is_zero")]
        pub sweep_failures: usize,
        pub interrupted: bool,
        /// Reason why the run could not be completed, if any.
        pub error?: Option<Box<str>>,
        /// Percentage of passed cases among those that ran; null if none ran.
        pub pass_rate: Option<f64>,
        pub duration_ms: f64,
        /// Informational checks, which are in none of the numbers above.
        pub soft?: Option<TallyRecord>,
        /// Number of checks that were judged on a shortened conversation.
        #[serde(skip_serializing_if = "is_zero")]
        pub truncated_judgements: usize,
        /// Criteria by name.
        pub criteria?: Vec<CriterionRecord>,
        /// Usage of all attempts, as far as it is reported.
        pub spent?: Option<SpentRecord>,
        /// Currency of all costs, if the project names it.
        pub currency?: Option<Arc<str>>,
        /// Totals of the runs of repeated cases.
        #[serde(flatten)]
        pub repeats: Option<RepeatsRecord>,
        #[serde(flatten)]
        pub agent: AgentRecord,
    }

    /// Results of checks.
    #[derive(Debug, Serialize)]
    pub struct TallyRecord {
        /// Number of decided checks.
        pub judged: usize,
        pub passed: usize,
        pub failed: usize,
        /// Number of checks that could not be decided.
        pub errored: usize,
        /// Percentage of passed checks among the decided ones; null if none was decided.
        pub rate: Option<f64>,
    }

    /// Results of a criterion as a hard and as an informational check.
    #[derive(Debug, Serialize)]
    pub struct CriterionRecord {
        pub name: String,
        pub hard?: Option<TallyRecord>,
        pub soft?: Option<TallyRecord>,
    }
}

impl TallyRecord {
    fn new(tally: &CheckTally) -> Option<Self> {
        let CheckTally { passed, failed, errored } = *tally;
        let rate = tally.pass_rate().map(|rate| round_to_tenths(rate * 100.0));
        (!tally.is_empty()).then(|| TallyRecord { judged: tally.evaluated(), passed, failed, errored, rate })
    }
}

optional_members! {
    /// Tested agents. Several names are joined with commas.
    #[derive(Debug, Serialize)]
    pub struct AgentRecord {
        pub agent_id: String,
        pub agent_path?: Option<String>,
        pub connector?: Option<String>,
    }

    /// Start of a run.
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
        /// Currency of all costs, if the project names it.
        pub currency?: Option<&'a str>,
        #[serde(flatten)]
        pub input: InputRecord<'a>,
        pub options: OptionsRecord<'a>,
    }

    /// Metadata of a complete report.
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

    /// Suites of a run.
    #[derive(Debug, Serialize)]
    pub struct InputRecord<'a> {
        /// Suite file, if there is only one.
        pub input_file?: Option<&'a str>,
        pub input_files: &'a [Arc<str>],
        /// Run with the original conversations, if this is a recheck.
        pub recheck_of?: Option<&'a str>,
    }

    /// Effective options.
    #[derive(Debug, Serialize)]
    pub struct OptionsRecord<'a> {
        pub parallel: usize,
        /// Time limit of a case, if it is set for the run.
        pub timeout_ms?: Option<f64>,
        pub fail_fast: bool,
        pub runs: usize,
        /// Required pass rate, if cases are repeated.
        pub min_pass_rate?: Option<f64>,
        /// Number of retries, if it is set for the run.
        pub retries?: Option<usize>,
        pub fail_on_skip: bool,
        pub run?: Option<&'a str>,
        pub agent?: Option<&'a str>,
        pub connector?: Option<&'a str>,
    }
}

fn is_zero(value: &usize) -> bool {
    *value == 0
}

impl SummaryRecord {
    pub fn new(summary: &RunSummary, setting: &RunSettings) -> Self {
        SummaryRecord {
            total: summary.total,
            passed: summary.passed,
            flaky: summary.flaky,
            failed: summary.failed,
            skipped: summary.skipped,
            labels: (*summary.labels).clone(),
            unasked_skips: summary.unasked_skips,
            errors: summary.errors,
            timeouts: summary.timeouts,
            sweep_failures: summary.sweep_failures,
            interrupted: summary.interrupted,
            error: summary.broken.clone(),
            pass_rate: summary.pass_rate().map(round_to_tenths),
            duration_ms: ms(summary.duration),
            soft: TallyRecord::new(&summary.measured.soft),
            truncated_judgements: summary.measured.truncated,
            criteria: summary
                .measured
                .criteria
                .iter()
                .map(|(name, CriterionTally { hard, soft })| CriterionRecord {
                    name: name.clone(),
                    hard: TallyRecord::new(hard),
                    soft: TallyRecord::new(soft),
                })
                .collect(),
            spent: summary.spent.as_deref().cloned().map(SpentRecord::new),
            currency: setting.currency.clone(),
            repeats: summary.repeats.as_ref().map(RepeatsRecord::new),
            agent: AgentRecord::new(setting),
        }
    }
}

impl AgentRecord {
    pub fn new(setting: &RunSettings) -> Self {
        let joined = |parts: Vec<&str>| (!parts.is_empty()).then(|| parts.join(", "));
        AgentRecord {
            agent_id: joined(setting.agents().map(|agent| &*agent.id).collect()).unwrap_or_default(),
            agent_path: joined(setting.agents().filter_map(|agent| agent.path.as_deref()).collect()),
            connector: joined(setting.connectors()),
        }
    }
}

impl<'a> StartRecord<'a> {
    pub fn new(total: usize, parallel: usize, at: Millis, setting: &'a RunSettings) -> Self {
        StartRecord {
            version: VERSION,
            hotseat: env!("CARGO_PKG_VERSION"),
            started_at: rfc3339(at),
            total,
            parallel,
            environment: EnvironmentRecord::new(setting),
            agent: AgentRecord::new(setting),
            currency: setting.currency.as_deref(),
            input: InputRecord::new(setting),
            options: OptionsRecord::new(setting),
        }
    }
}

impl<'a> MetadataRecord<'a> {
    pub fn new(summary: &RunSummary, setting: &'a RunSettings, output_file: &'a str) -> Self {
        MetadataRecord {
            version: VERSION,
            hotseat: env!("CARGO_PKG_VERSION"),
            started_at: rfc3339(summary.started_at),
            completed_at: rfc3339(summary.ended_at),
            input: InputRecord::new(setting),
            output_file,
            options: OptionsRecord::new(setting),
        }
    }
}

impl<'a> InputRecord<'a> {
    fn new(setting: &'a RunSettings) -> Self {
        let input_file = match setting.inputs.as_slice() {
            [one] => Some(&**one),
            _ => None,
        };
        InputRecord { input_file, input_files: &setting.inputs, recheck_of: setting.rechecked.as_deref() }
    }
}

impl<'a> OptionsRecord<'a> {
    fn new(setting: &'a RunSettings) -> Self {
        let options = &setting.choices.options;
        OptionsRecord {
            parallel: options.parallel,
            timeout_ms: setting.case_timeout.map(ms),
            fail_fast: options.fail_fast,
            runs: options.runs,
            min_pass_rate: (options.runs > 1).then(|| options.min_pass_rate.as_fraction()),
            retries: options.retries.filter(|_| options.runs == 1),
            fail_on_skip: options.fail_on_skip,
            run: setting.choices.run.as_deref(),
            agent: setting.choices.agent.as_deref(),
            connector: setting.choices.connector.as_deref(),
        }
    }
}
