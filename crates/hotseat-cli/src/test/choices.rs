//! Options of a run, from the command line and the project file.

use std::sync::Arc;

use hotseat_document::Diagnostic;
use hotseat_engine::cases::{OnMissingInput, PromptPolicy};
use hotseat_engine::config::Project;
use hotseat_engine::run::{
    CaseOverrides, ExecutionOptions, HumanPolicy, RequestedOptions, RunPlan, SweepSettings,
};
use hotseat_engine::session::HumanPrompter;
use hotseat_mcp::FaultKind;
use hotseat_report::reporters::format_count;

use crate::args::{FaultsArg, MissingInputArg, SweepArgs, TestArgs};
use crate::context::CliContext;
use crate::input::TestInput;
use crate::keyboard::KeyboardInput;

/// Returns true if the run may ask a human.
pub fn may_ask_human(args: &TestArgs, plan: &RunPlan, input: Option<&TestInput>) -> bool {
    let is_typed = matches!(input, Some(TestInput::StandardInput));
    !args.skip_interactive && (args.interactive || plan.needs_human || is_typed)
}

/// Returns the options of the run.
pub fn run_options(
    args: &TestArgs,
    project: &Project,
    plan: &RunPlan,
    input: Option<&TestInput>,
) -> Result<ExecutionOptions, Diagnostic> {
    let requested = RequestedOptions {
        parallel: args.parallel,
        runs: args.runs,
        min_pass_rate: args.min_pass_rate,
        max_invalid: args.max_invalid.map(usize::from),
        retries: args.retries.map(usize::from),
        fail_fast: args.fail_fast,
        fail_on_skip: args.fail_on_skip,
        may_ask_human: may_ask_human(args, plan, input),
    };
    let options = requested.resolve(project)?;
    // Cases with a declared reliability are repeated, too.
    if args.max_invalid.is_some() && options.runs == 1 && plan.declared_count(&options) == 0 {
        let message = "--max-invalid requires repeated cases, and each case runs once";
        return Err(Diagnostic::new(message).help("pass `--runs N` to run each case N times"));
    }
    Ok(options)
}

/// Default maximum number of conversations of a sweep.
const DEFAULT_SWEEP_LIMIT: u32 = 500;

/// Returns the settings of a sweep of faults, if there is one.
pub fn sweep(args: &SweepArgs) -> Option<SweepSettings> {
    args.faults.map(|FaultsArg::Sweep| {
        let names = FaultKind::NAMES.iter().copied();
        let is_wanted =
            |name: &&str| args.fault_kinds.is_empty() || args.fault_kinds.iter().any(|wanted| wanted == name);
        SweepSettings {
            kinds: names.filter(is_wanted).filter_map(FaultKind::with_defaults).collect(),
            limit: args.fault_limit.unwrap_or(DEFAULT_SWEEP_LIMIT) as usize,
            seed: args.fault_seed.unwrap_or(0),
        }
    })
}

/// Returns a note if `--runs` overrides declared reliability targets.
pub fn ignored_reliability_note(plan: &RunPlan, options: ExecutionOptions) -> Option<Diagnostic> {
    let declared = plan.declared_count(&ExecutionOptions { as_declared: true, ..options });
    let words = "--runs overrides `reliability`, which is declared for";
    (!options.as_declared && declared > 0).then(|| {
        Diagnostic::new(format!("{words} {} and ignored in this run", format_count(declared, "case")))
    })
}

/// Returns a note if recordings answer in place of agents whose reliability is asked for: each has one attempt.
pub fn replayed_reliability_note(plan: &RunPlan, options: ExecutionOptions) -> Option<Diagnostic> {
    let declared = plan.replayed_count(&options);
    let repeats = options.runs > 1 && plan.agents().any(|agent| agent.is_replayed());
    match (declared, repeats) {
        (1.., _) => {
            let cases = format_count(declared, "case");
            Some(Diagnostic::new(format!(
                "a recording shows nothing about `reliability`, which is declared for {cases}: each of them is replayed once"
            )))
        }
        (0, true) => Some(Diagnostic::new(
            "each attempt replays the same recording, so the pass rates show how judges vary, and nothing about the agent",
        )),
        (0, false) => None,
    }
}

/// Returns a note if repeats of cases ignore their retries.
pub fn ignored_retries_note(plan: &RunPlan, options: ExecutionOptions) -> Option<Diagnostic> {
    let (runs, retried) = (options.runs, plan.retried_count(&options));
    (runs > 1 && retried > 0).then(|| {
        let cases = format_count(retried, "case");
        Diagnostic::new(format!(
            "each case runs {runs} times, so `retries`, which is set for {cases}, is ignored in this run"
        ))
    })
}

/// Returns a note if the project file sets a pass rate and the run repeats no case for it.
pub fn ignored_pass_rate_note(project: &Project, options: ExecutionOptions) -> Option<Diagnostic> {
    (options.runs == 1 && project.min_pass_rate.is_some()).then(|| {
        let words = "`min_pass_rate` of the project file is ignored, because each case runs once";
        Diagnostic::new(format!("{words}: set `runs` beside it, or pass `--runs N`"))
    })
}

pub fn overrides(args: &TestArgs, input: Option<&TestInput>) -> CaseOverrides {
    CaseOverrides {
        on_missing_input: args.on_missing_input.map(|missing| match missing {
            MissingInputArg::Skip => OnMissingInput::Skip,
            MissingInputArg::Fail => OnMissingInput::Fail,
            MissingInputArg::End => OnMissingInput::End,
        }),
        human: match (input, args.skip_interactive, args.interactive) {
            // A human who types the conversation also ends it.
            (Some(TestInput::StandardInput), ..) => Some(HumanPolicy::Always(PromptPolicy::Always)),
            (_, true, _) => Some(HumanPolicy::Never),
            (_, false, true) => Some(HumanPolicy::Always(PromptPolicy::WhenAwaited)),
            (_, false, false) => None,
        },
        is_sweep: args.sweep.faults.is_some(),
    }
}

/// Returns the reader of standard input, unless humans may not be asked.
pub fn human(args: &TestArgs, context: &CliContext) -> Option<Arc<dyn HumanPrompter>> {
    (!args.skip_interactive).then(|| -> Arc<dyn HumanPrompter> { Arc::new(KeyboardInput::new(context)) })
}
