//! Executes a run: starts agents, runs hooks and conversations, stops agents.

use std::sync::Arc;
use std::time::Instant;

use hotseat_document::Diagnostic;
use hotseat_engine::run::{
    self, CancellationSignal, FaultSweep, HookOutput, RunCassettes, RunContext, RunControl, RunEvent,
    RunPlan, RunSummary, execute,
};
use hotseat_targets::recorder::wall_millis;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::RunBuilder;
use super::event_forwarder::{EventForwarder, RunRemark};

impl RunBuilder {
    /// Starts the agents that the project configures, runs all conversations and stops the agents.
    pub(super) async fn execute(
        self,
        control: watch::Receiver<RunControl>,
        forwarder: &EventForwarder,
    ) -> Result<RunSummary, Vec<Diagnostic>> {
        let RunBuilder { plan, context, options, hooks, completed, report_writing, sweep, .. } = self;
        let mut context = context;
        if context.recheck.is_some() {
            // A recheck starts no agent and runs no hook.
            let (context, mut report) = (Arc::new(context), |event: RunEvent| forwarder.report(event));
            return execute(&plan, context, options, control, &mut Vec::new(), None, &mut report).await;
        }
        context.start_mcp(&plan, options.parallel).map_err(|wrong| vec![wrong])?;
        context.start_models(&plan, options.parallel).map_err(|wrong| vec![wrong])?;
        let (started_at, clock) = (wall_millis(), Instant::now());
        // Ends the reports with an empty summary.
        let nothing_ran = |why: Option<&str>| {
            let (ended_at, duration) = (wall_millis(), clock.elapsed());
            let (interrupted, broken) = (why.is_none(), why.map(Into::into));
            RunSummary { interrupted, broken, started_at, ended_at, duration, ..RunSummary::default() }
        };
        forwarder.remark(RunRemark::Warning, run::end_orphans(&context, &control).await);
        let Some(mut agents) = run::start_agents(&plan, &mut context, &control).await else {
            let summary = nothing_ran(None);
            forwarder.report(RunEvent::Ended(Box::new(summary.clone())));
            return Ok(summary);
        };
        let context = Arc::new(context);
        let cancellation = CancellationSignal::new(control.clone());
        let before = run_before(&plan, hooks.before.as_deref(), &context);
        let before = match cancellation.run_until_cancelled(before).await {
            Some(Ok(before)) => before,
            // No case starts, and the hook after the run still cleans up.
            None => HookOutput::default(),
            Some(Err(diagnostics)) => {
                run::stop_agents(agents).await;
                let why = diagnostics.first().map(|mistake| mistake.message.as_str());
                forwarder.report(RunEvent::Ended(Box::new(nothing_ran(why))));
                return Err(diagnostics);
            }
        };
        forwarder.remark(RunRemark::Log, before.console.iter().cloned());
        let mut results = Vec::new();
        let (mut sweep, mut held) = (sweep.map(FaultSweep::new), None);
        let parallel = options.parallel;
        let mut report = |event: RunEvent| {
            match (&event, &mut sweep) {
                (RunEvent::CaseEnded(outcome), Some(sweep)) => sweep.add_clean_run(outcome),
                // The sweep belongs to the run.
                (RunEvent::Ended(_), Some(_)) => return held = Some(event.clone()),
                _ => {}
            }
            if let (RunEvent::CaseEnded(outcome), Some(_)) = (&event, &hooks.after) {
                results.push((outcome.representative().case_ref.index, run::hook_result(outcome)));
            }
            forwarder.report(event);
        };
        let (agents_of_run, watched) = (&mut agents, control.clone());
        let ended =
            execute(&plan, context.clone(), options, watched, agents_of_run, completed, &mut report).await;
        let ended = match (sweep, ended) {
            (Some(sweep), Ok(summary)) => {
                run_sweep(sweep, summary, &plan, &context, parallel, control, forwarder).await
            }
            (_, ended) => {
                held.into_iter().for_each(|event| forwarder.report(event));
                ended
            }
        };
        forwarder.remark(RunRemark::Warning, context.unwatched_servers());
        forwarder.remark(RunRemark::Warning, context.late_calls());
        forwarder.remark(RunRemark::Warning, context.shown_calls.warnings());
        forwarder.remark(RunRemark::Error, context.write_mcp_recordings().iter().map(ToString::to_string));
        forwarder.remark(RunRemark::Error, context.cassettes.as_ref().and_then(RunCassettes::write_error));
        if let Some(name) = &hooks.after {
            // Sorts results by case, since parallel cases end in any order.
            results.sort_by_key(|(index, _)| *index);
            let results: Vec<Value> = results.into_iter().map(|(_, result)| result).collect();
            let input = json!({"results": results, "before_data": before.data});
            run_after(name, input, &plan, &context, &cancellation, forwarder).await;
        }
        if let Some(write_reports) = report_writing {
            forwarder.flush().await;
            let written = cancellation.clean_up(write_reports(context.clone())).await;
            let written = written.unwrap_or_else(|words| Err(vec![format!("the report writer was {words}")]));
            forwarder.remark(RunRemark::Error, written.err().into_iter().flatten());
        }
        run::stop_agents(agents).await;
        // A signal after the last case: the reports are complete, and the caller still learns of it.
        ended.map(|summary| RunSummary {
            interrupted: summary.interrupted || cancellation.is_stopping(),
            ..summary
        })
    }
}

/// Runs the hook after the run, also of a cancelled one.
async fn run_after(
    name: &str,
    input: Value,
    plan: &Arc<RunPlan>,
    context: &Arc<RunContext>,
    cancellation: &CancellationSignal,
    forwarder: &EventForwarder,
) {
    let after = cancellation.clean_up(context.run_project_hook(name, input, plan)).await;
    match after.map_err(|error| error.to_string()).and_then(|after| after.map_err(|failure| failure.message))
    {
        Ok(after) => forwarder.remark(RunRemark::Log, after.console),
        Err(words) => forwarder.remark(RunRemark::Warning, [format!("--after {name} failed: {words}")]),
    }
}

/// Sweeps faults after the run, unless it was stopped, and reports its end.
async fn run_sweep(
    sweep: FaultSweep,
    mut summary: RunSummary,
    plan: &Arc<RunPlan>,
    context: &Arc<RunContext>,
    parallel: usize,
    control: watch::Receiver<RunControl>,
    forwarder: &EventForwarder,
) -> Result<RunSummary, Vec<Diagnostic>> {
    let started = Instant::now();
    let mut report = |event: RunEvent| forwarder.report(event);
    let mut failed = None;
    if !summary.interrupted {
        match sweep.run(plan, context, parallel, control.clone(), &mut report).await {
            Ok(result) => {
                summary.interrupted = *control.borrow() != RunControl::Run;
                summary.duration += started.elapsed();
                summary.ended_at = wall_millis();
                let result = Arc::new(result);
                // A shard may have no case that can be swept.
                summary.add_sweep(result.clone(), plan.selected == plan.selected_in_all_shards);
                failed = summary.broken.as_deref().map(|why| {
                    let help = match result.skipped.is_empty() {
                        true => "faults break calls at MCP servers of the test; none of these faults applies to a call of the run",
                        false => "faults break calls at MCP servers of the test; the table says why a case is left out",
                    };
                    vec![Diagnostic::new(why).help(help)]
                });
                report(RunEvent::SweepEnded(result));
            }
            Err(diagnostics) => {
                summary.broken = diagnostics.first().map(|mistake| mistake.message.as_str().into());
                failed = Some(diagnostics);
            }
        }
    }
    report(RunEvent::Ended(Box::new(summary.clone())));
    failed.map_or(Ok(summary), Err)
}

/// Runs the hook before the first case.
async fn run_before(
    plan: &RunPlan,
    hook: Option<&str>,
    context: &Arc<RunContext>,
) -> Result<HookOutput, Vec<Diagnostic>> {
    let Some(name) = hook else { return Ok(HookOutput::default()) };
    let mut cases = Vec::new();
    for selected in plan.cases(&context.project) {
        cases.push(selected?.case.to_hook_json());
    }
    let ran = context.run_project_hook(name, json!({"test_cases": cases}), plan).await;
    ran.map_err(|failure| {
        let message = format!("--before {name} failed, so no case ran: {}", failure.message);
        vec![start_failure(message, failure.detail)]
    })
}

fn start_failure(message: String, last_output: Option<String>) -> Diagnostic {
    let diagnostic = Diagnostic::new(message);
    match last_output {
        // Masks `##[` so that no CI server reads agent output as a command.
        Some(output) => {
            diagnostic.help(output.lines().collect::<Vec<_>>().join("\n│ ").replace("##[", "## ["))
        }
        None => diagnostic,
    }
}
