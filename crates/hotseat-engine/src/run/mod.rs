//! Runs: select cases, execute them concurrently, and report results as they finish.

mod agent_start;
mod aggregate;
mod attempt;
mod attempt_result;
mod backlog;
mod cancellation;
mod case_filter;
mod case_queue;
mod case_roles;
mod check_totals;
mod context;
mod dispatch;
mod dispatcher;
mod execution_options;
mod generate;
mod hooks;
mod mcp;
mod mcp_servers;
mod mode;
mod outcome;
mod pass_rate;
mod plan;
mod recheck;
mod recheck_source;
mod requested_options;
mod results;
mod running;
mod script_processes;
mod series;
mod settings;
mod shard;
mod signals;
mod stability;
mod summary;
mod workers;

pub use agent_start::{end_orphans, start_agents, stop_agents};
pub use attempt_result::Attempt;
pub use backlog::ReportBacklog;
pub use cancellation::{CLEANUP_LIMIT, CancellationSignal, RunControl};
pub use case_filter::{CaseFilter, CaseLabels, KeywordExpression, KnownLabels};
pub use case_roles::open_role;
pub use check_totals::{CheckTally, CheckTotals, CriterionTally};
pub use context::{CaseOverrides, EventRetention, HumanPolicy, RunContext};
pub use dispatcher::{ResumeState, RunEvent, StartedAgents, execute};
pub use execution_options::ExecutionOptions;
pub use generate::generate_cases;
pub use hooks::{HookOutput, hook_result};
pub use mcp_servers::RunMcp;
pub use mode::{ConversationMode, RunModes};
pub use outcome::{AttemptPolicy, CaseOutcome};
pub use pass_rate::PassRate;
pub use plan::{CaseSelection, PlannedSuite, RunPlan, SelectedCase};
pub use recheck_source::{RecheckSource, SavedConversations};
pub use requested_options::RequestedOptions;
pub use results::short_digest;
pub use results::{
    CaseDriver, CaseInfo, CaseRef, CaseSource, CheckInfo, CheckResult, CheckState, CheckpointInfo,
    CheckpointResult, SimulatorInfo,
};
pub use running::{RunningConversation, RunningConversations};
pub use series::{AttemptStatus, StopRule};
pub use settings::{RerunCommands, RunChoices, RunSettings, TestedAgent, UserIdentity};
pub use shard::Shard;
pub use signals::ShutdownSignals;
pub use stability::{CaseStability, ReliabilityGrade, ReliabilityResult, StabilityClass};
pub use summary::{GradeCounts, RepeatTotals, RunSummary};
