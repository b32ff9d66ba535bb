//! Report records of a run: its settings and its results.

use std::sync::Arc;

use hotseat_trace::{LabelCounts, Millis, optional_members};
use serde::Serialize;

use super::attempts::RepeatsRecord;
use super::declare::records;
use super::format::{VERSION, ms, rfc3339};
use super::spent::SpentRecord;
use crate::reporters::text::round_to_tenths;
use hotseat_engine::run::{CheckTally, CriterionTally, RunSettings, RunSummary, UserIdentity};

records! {
    /// Default user identity that agents receive.
    pub struct EnvironmentRecord<'a>(setting: &'a RunSettings) {
        let UserIdentity { user, team, locale } = &setting.environment;
    } => {
        user_id: &'a str = user,
        team_id: &'a str = team,
        locale: &'a str = locale,
    }

    /// Results of a run.
    pub struct SummaryRecord(summary: &RunSummary, setting: &RunSettings) => {
        total: usize = summary.total,
        passed: usize = summary.passed,
        /// Number of passed cases that passed only on a retry.
        flaky?: usize = summary.flaky,
        failed: usize = summary.failed,
        skipped: usize = summary.skipped,
        /// Numbers of cases by their label.
        labels: LabelCounts = (*summary.labels).clone(),
        /// Number of cases that were skipped without a `skip` key.
        unasked_skips?: usize = summary.unasked_skips,
        errors: usize = summary.errors,
        timeouts: usize = summary.timeouts,
        /// Number of conversations of a sweep of faults that show a defect.
        sweep_failures?: usize = summary.sweep_failures,
        interrupted: bool = summary.interrupted,
        /// Reason why the run could not be completed, if any.
        error?: Option<Box<str>> = summary.broken.clone(),
        /// Percentage of passed cases among those that ran; null if none ran.
        pass_rate: Option<f64> = summary.pass_rate().map(round_to_tenths),
        duration_ms: f64 = ms(summary.duration),
        /// Informational checks, which are in none of the numbers above.
        soft?: Option<TallyRecord> = TallyRecord::new(&summary.measured.soft),
        /// Number of checks that were judged on a shortened conversation.
        truncated_judgements?: usize = summary.measured.truncated,
        /// Criteria by name.
        criteria?: Vec<CriterionRecord> = summary
            .measured
            .criteria
            .iter()
            .map(|(name, CriterionTally { hard, soft })| CriterionRecord {
                name: name.clone(),
                hard: TallyRecord::new(hard),
                soft: TallyRecord::new(soft),
            })
            .collect(),
        /// Usage of all attempts, as far as it is reported.
        spent?: Option<SpentRecord> = summary.spent.as_deref().cloned().map(SpentRecord::new),
        /// Currency of all costs, if the project names it.
        currency?: Option<Arc<str>> = setting.currency.clone(),
        /// Totals of the runs of repeated cases.
        #[serde(flatten)]
        repeats: Option<RepeatsRecord> = summary.repeats.as_ref().map(RepeatsRecord::new),
        #[serde(flatten)]
        agent: AgentRecord = AgentRecord::new(setting),
    }
}

optional_members! {
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

records! {
    /// Tested agents. Several names are joined with commas.
    pub struct AgentRecord(setting: &RunSettings) {
        let joined = |parts: Vec<&str>| (!parts.is_empty()).then(|| parts.join(", "));
    } => {
        agent_id: String = joined(setting.agents().map(|agent| &*agent.id).collect()).unwrap_or_default(),
        agent_path?: Option<String> =
            joined(setting.agents().filter_map(|agent| agent.path.as_deref()).collect()),
        connector?: Option<String> = joined(setting.connectors()),
    }

    /// Start of a run.
    pub struct StartRecord<'a>(total: usize, parallel: usize, at: Millis, setting: &'a RunSettings) => {
        version: &'static str = VERSION,
        hotseat: &'static str = env!("CARGO_PKG_VERSION"),
        started_at: String = rfc3339(at),
        total: usize = total,
        parallel: usize = parallel,
        environment: EnvironmentRecord<'a> = EnvironmentRecord::new(setting),
        #[serde(flatten)]
        agent: AgentRecord = AgentRecord::new(setting),
        /// Currency of all costs, if the project names it.
        currency?: Option<&'a str> = setting.currency.as_deref(),
        #[serde(flatten)]
        input: InputRecord<'a> = InputRecord::new(setting),
        options: OptionsRecord<'a> = OptionsRecord::new(setting),
    }

    /// Metadata of a complete report.
    pub struct MetadataRecord<'a>(summary: &RunSummary, setting: &'a RunSettings, output_file: &'a str) => {
        version: &'static str = VERSION,
        hotseat: &'static str = env!("CARGO_PKG_VERSION"),
        started_at: String = rfc3339(summary.started_at),
        completed_at: String = rfc3339(summary.ended_at),
        #[serde(flatten)]
        input: InputRecord<'a> = InputRecord::new(setting),
        output_file: &'a str = output_file,
        options: OptionsRecord<'a> = OptionsRecord::new(setting),
    }
}

optional_members! {
    /// Suites of a run.
    #[derive(Debug, Serialize)]
    pub struct InputRecord<'a> {
        /// Suite file, if there is only one.
        pub input_file?: Option<&'a str>,
        pub input_files: &'a [Arc<str>],
        /// Run with the original conversations, if this is a recheck.
        pub recheck_of?: Option<&'a str>,
    }
}

records! {
    /// Effective options.
    pub struct OptionsRecord<'a>(setting: &'a RunSettings) {
        let options = &setting.choices.options;
    } => {
        parallel: usize = options.parallel,
        /// Time limit of a case, if it is set for the run.
        timeout_ms?: Option<f64> = setting.case_timeout.map(ms),
        fail_fast: bool = options.fail_fast,
        runs: usize = options.runs,
        /// Required pass rate, if cases are repeated.
        min_pass_rate?: Option<f64> = (options.runs > 1).then(|| options.min_pass_rate.as_fraction()),
        /// Number of retries, if it is set for the run.
        retries?: Option<usize> = options.retries.filter(|_| options.runs == 1),
        fail_on_skip: bool = options.fail_on_skip,
        run?: Option<&'a str> = setting.choices.run.as_deref(),
        agent?: Option<&'a str> = setting.choices.agent.as_deref(),
        connector?: Option<&'a str> = setting.choices.connector.as_deref(),
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
