//! A run from its first hook to its last: agents are started, conversations held, agents stopped.

use std::sync::Arc;

use hotseat::adapters::http::Http;
use hotseat::config::StartedAgent;
use hotseat::document::Diagnostic;
use hotseat::run::{self, Before, Control, Options, Outside, Plan, RunEvent, Started, Summary, execute};
use hotseat::session::wall_millis;
use serde_json::json;
use tokio::sync::watch;

use super::reporters::Reporters;
use crate::args::TestArgs;

/// Starts the agents where the project says how, holds all conversations, and stops them again.
pub async fn hold_all(
    plan: &Arc<Plan>,
    args: &TestArgs,
    outside: Arc<Outside>,
    http: &Http,
    options: Options,
    control: watch::Receiver<Control>,
    reporters: &mut Reporters,
) -> Result<Summary, Vec<Diagnostic>> {
    let project = outside.project.clone();
    let (started_at, clock) = (wall_millis(), std::time::Instant::now());
    // Nothing ran; the reports say so and are whole.
    let nothing_ran = |interrupted: bool| {
        let (ended_at, duration) = (wall_millis(), clock.elapsed());
        Summary { interrupted, started_at, ended_at, duration, ..Summary::default() }
    };
    let mut agents = Started::new();
    for agent in plan.reached() {
        let Some(start) = &agent.start else { continue };
        let mut interrupted = control.clone();
        let started = tokio::select! {
            started = StartedAgent::start(start, project.environment(), project.redactor(), http) => Some(started),
            // Dropping what was being started ends it.
            Ok(_) = interrupted.changed() => None,
        };
        let not_started = match started {
            Some(Ok(started)) => {
                agents.push((agent.clone(), started));
                continue;
            }
            Some(Err(failure)) => Some(failure),
            None => None,
        };
        stop(agents).await;
        let summary = nothing_ran(not_started.is_none());
        reporters.report(&RunEvent::Ended(&summary));
        return match not_started {
            Some(failure) => Err(vec![agent_not_started(failure.message, failure.detail)]),
            None => Ok(summary),
        };
    }
    let before = match run_before(plan, args, &outside).await {
        Ok(before) => before,
        Err(mistakes) => {
            stop(agents).await;
            reporters.report(&RunEvent::Ended(&nothing_ran(false)));
            return Err(mistakes);
        }
    };
    reporters.logs.extend(before.said.iter().cloned());
    let mut results = Vec::new();
    let mut report = |event: RunEvent<'_>| {
        if let (RunEvent::CaseEnded(outcome), Some(_)) = (&event, &args.after) {
            results.push(run::result(outcome));
        }
        reporters.report(&event);
    };
    let ended = execute(plan, outside.clone(), options, control, &mut agents, &mut report).await;
    if let Some(name) = &args.after {
        let told = json!({"results": results, "before_data": before.data});
        match outside.run_around(name, told, plan).await {
            Ok(after) => reporters.logs.extend(after.said),
            Err(failure) => reporters.warnings.push(format!("--after {name} failed: {}", failure.message)),
        }
    }
    if let Some(writer) = reporters.writer.take() {
        reporters.errors.extend(writer.write(&outside).await.err().into_iter().flatten());
    }
    stop(agents).await;
    ended
}

/// Runs what `--before` names.
async fn run_before(plan: &Plan, args: &TestArgs, outside: &Outside) -> Result<Before, Vec<Diagnostic>> {
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

async fn stop(agents: Started) {
    for (_, agent) in agents {
        agent.stop().await;
    }
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
