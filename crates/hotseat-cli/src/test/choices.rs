//! Options of a run, from the command line and the project file.

use std::sync::Arc;

use hotseat_document::{Diagnostic, Diagnostics};
use hotseat_engine::cases::{OnMissingInput, PromptPolicy};
use hotseat_engine::config::{CallSettings, ContextFile, Project};
use hotseat_engine::run::{CaseOverrides, ExecutionOptions, HumanPolicy, PassRate, RunPlan};
use hotseat_engine::session::HumanPrompter;
use hotseat_report::reporters::format_count;

use crate::args::{CallArgs, MissingInputArg, TestArgs};
use crate::context::CliContext;
use crate::input::TestInput;
use crate::keyboard::KeyboardInput;

/// Default number of parallel conversations. They mostly wait for the network, and an agent on a developer
/// machine handles this many.
const DEFAULT_PARALLEL: usize = 8;

/// Returns true if the run may ask a human.
pub fn may_ask_human(args: &TestArgs, plan: &RunPlan) -> bool {
    !args.skip_interactive && (args.interactive || plan.needs_human)
}

/// Returns the options of the run.
pub fn run_options(
    args: &TestArgs,
    project: &Project,
    plan: &RunPlan,
) -> Result<ExecutionOptions, Diagnostic> {
    let runs = args.runs.or(project.runs).unwrap_or(1);
    // An explicit number of runs overrides declared reliability targets.
    let as_declared = args.runs.is_none();
    if runs == 1 && args.min_pass_rate.is_some() {
        let help = "pass `--runs N` to run each case N times";
        return Err(
            Diagnostic::new("--min-pass-rate requires repeated cases, and each case runs once").help(help)
        );
    }
    if runs > 1 && args.retries.is_some_and(|retries| retries > 0) {
        let message = format!("--retries cannot be used with {runs} runs of each case");
        let help =
            "repeated runs are not retried, since that would hide unreliable cases; pass `--runs 1` to retry";
        return Err(Diagnostic::new(message).help(help));
    }
    // A human answers one conversation at a time.
    let unless_said = if may_ask_human(args, plan) { 1 } else { DEFAULT_PARALLEL };
    Ok(ExecutionOptions {
        parallel: args.parallel.or(project.parallel).unwrap_or(unless_said),
        fail_fast: args.fail_fast,
        runs,
        min_pass_rate: args
            .min_pass_rate
            .or_else(|| project.min_pass_rate.and_then(PassRate::new))
            .unwrap_or(PassRate::ALL),
        as_declared,
        reliability: project.reliability,
        max_invalid: args.max_invalid.map(usize::from).or(project.max_invalid),
        retries: args.retries.map(usize::from),
        default_retries: project.retries,
        fail_on_skip: args.fail_on_skip,
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

/// Returns how the command line calls agents.
pub fn call_settings(args: &CallArgs, context: &CliContext) -> Result<CallSettings, Diagnostics> {
    let file = args.ctx.as_ref().map(|path| {
        ContextFile::read(&context.folder.join(path), &path.to_string_lossy(), &context.environment)
    });
    Ok(CallSettings {
        user: args.user.clone(),
        team: args.team.clone(),
        locale: args.locale.clone(),
        connector: args.connector.clone(),
        context: file.transpose()?,
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
    }
}

/// Returns the reader of standard input, unless humans may not be asked.
pub fn human(args: &TestArgs, context: &CliContext) -> Option<Arc<dyn HumanPrompter>> {
    (!args.skip_interactive).then(|| -> Arc<dyn HumanPrompter> { Arc::new(KeyboardInput::new(context)) })
}
