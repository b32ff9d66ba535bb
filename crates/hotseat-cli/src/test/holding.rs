//! A run from its first hook to its last: agents are started, conversations held, agents stopped.

use std::sync::Arc;

use hotseat::document::Diagnostic;
use hotseat::run::{
    self, Before, Cancellation, Control, Earlier, Options, Outside, Plan, RunEvent, Summary, execute,
};
use hotseat::session::wall_millis;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::telling::Telling;
use crate::args::TestArgs;
use crate::writer::Writer;

/// How a run is carried out, what of it had ended before, and who writes reports when it is over.
pub struct Rest<'a> {
    pub options: Options,
    pub earlier: Option<Earlier<'a>>,
    pub writer: Option<Writer>,
}

/// Starts the agents where the project says how, holds all conversations, and stops them again.
pub async fn hold_all(
    plan: &Arc<Plan>,
    args: &TestArgs,
    outside: Arc<Outside>,
    control: watch::Receiver<Control>,
    telling: &mut Telling,
    rest: Rest<'_>,
) -> Result<Summary, Vec<Diagnostic>> {
    let Rest { options, earlier, writer } = rest;
    if outside.recheck.is_some() {
        // Nobody is contacted: no agent is started, and no hook runs.
        let mut report = |event: RunEvent| telling.report(event);
        return execute(plan, outside, options, control, &mut Vec::new(), None, &mut report).await;
    }
    let (started_at, clock) = (wall_millis(), std::time::Instant::now());
    // Nothing ran; the reports say so and are whole.
    let nothing_ran = |why: Option<&str>| {
        let (ended_at, duration) = (wall_millis(), clock.elapsed());
        let (interrupted, broken) = (why.is_none(), why.map(Into::into));
        Summary { interrupted, broken, started_at, ended_at, duration, ..Summary::default() }
    };
    telling.warnings.extend(run::end_orphans(&outside, &control).await);
    let mut agents = match run::start(plan, &outside, &control).await {
        Ok(agents) => agents,
        Err(not_started) => {
            let summary = nothing_ran(not_started.as_ref().map(|failure| failure.message.as_str()));
            telling.report(RunEvent::Ended(summary.clone()));
            return match not_started {
                Some(failure) => Err(vec![agent_not_started(failure.message, failure.detail)]),
                None => Ok(summary),
            };
        }
    };
    let cancellation = Cancellation::new(control.clone());
    let before = match run_before(plan, args, &outside).await {
        Ok(before) => before,
        Err(mistakes) => {
            run::stop(agents).await;
            let why = mistakes.first().map(|mistake| mistake.message.as_str());
            telling.report(RunEvent::Ended(nothing_ran(why)));
            return Err(mistakes);
        }
    };
    telling.logs.extend(before.said.iter().cloned());
    let mut results = Vec::new();
    let mut report = |event: RunEvent| {
        if let (RunEvent::CaseEnded(outcome), Some(_)) = (&event, &args.after) {
            results.push((outcome.telling().selected.index, run::result(outcome)));
        }
        telling.report(event);
    };
    let ended = execute(plan, outside.clone(), options, control, &mut agents, earlier, &mut report).await;
    if let Some(name) = &args.after {
        // Cases that run beside each other end in any order.
        results.sort_by_key(|(index, _)| *index);
        let results: Vec<Value> = results.into_iter().map(|(_, result)| result).collect();
        let told = json!({"results": results, "before_data": before.data});
        let after = cancellation.clean_up(outside.run_around(name, told, plan)).await;
        match after.and_then(|after| after.map_err(|failure| failure.message)) {
            Ok(after) => telling.logs.extend(after.said),
            Err(words) => telling.warnings.push(format!("--after {name} failed: {words}")),
        }
    }
    if let Some(writer) = writer {
        telling.settled().await;
        let written = cancellation.clean_up(writer.write(&outside)).await;
        let written = written.unwrap_or_else(|words| Err(vec![format!("the report writer was {words}")]));
        telling.errors.extend(written.err().into_iter().flatten());
    }
    run::stop(agents).await;
    ended
}

/// Runs what `--before` names.
async fn run_before(plan: &Plan, args: &TestArgs, outside: &Arc<Outside>) -> Result<Before, Vec<Diagnostic>> {
    let Some(name) = &args.before else { return Ok(Before::default()) };
    let mut cases = Vec::new();
    for selected in plan.cases(&outside.project) {
        cases.push(selected?.case.to_json());
    }
    let ran = outside.run_around(name, json!({"test_cases": cases}), plan).await;
    ran.map_err(|failure| {
        let message = format!("--before {name} failed, and nothing ran: {}", failure.message);
        vec![agent_not_started(message, failure.detail)]
    })
}

fn agent_not_started(message: String, last_output: Option<String>) -> Diagnostic {
    let diagnostic = Diagnostic::new(message);
    match last_output {
        // No line of what the agent printed can be taken for a command to a CI server.
        Some(output) => {
            diagnostic.help(output.lines().collect::<Vec<_>>().join("\n│ ").replace("##[", "## ["))
        }
        None => diagnostic,
    }
}
