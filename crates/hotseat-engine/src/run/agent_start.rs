//! Starts agents before a run and stops them afterwards.

use hotseat_trace::AttemptFailure;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::cancellation::RunControl;
use super::context::RunContext;
use super::dispatcher::StartedAgents;
use super::plan::RunPlan;
use crate::config::{Project, StartedAgent};
use hotseat_targets::process::{OrphanProcess, ProjectServers};

/// How many processes are told by name that a killed run has left.
const MAX_SHOWN_ORPHANS: usize = 10;

/// Ends the processes that runs of the project have left which were killed, and says which, each in one line. It is given
/// up where the run is to end.
pub async fn end_orphans(outside: &RunContext, control: &watch::Receiver<RunControl>) -> Vec<String> {
    let mut interrupted = control.clone();
    tokio::select! {
        ended = end_project_orphans(&outside.project) => ended,
        Ok(_) = interrupted.changed() => Vec::new(),
    }
}

/// Ends the processes that runs of a project have left which were killed, and says which, each in one line.
async fn end_project_orphans(project: &Project) -> Vec<String> {
    let orphans = ProjectServers::new(&project.root).end_orphans().await;
    let words = orphans.iter().take(MAX_SHOWN_ORPHANS).map(|OrphanProcess { pid, command }| {
        let command = project.redactor().text(command);
        format!("process {pid} (`{command}`) was ended: a run that was killed had started it and left it")
    });
    let more = orphans.len().saturating_sub(MAX_SHOWN_ORPHANS);
    words.chain((more > 0).then(|| format!("{more} more such processes were ended"))).collect()
}

/// Starts the agents of a run that have a `start` command. The context gets the failures of those that do not start.
/// Returns `None` if the run was interrupted; agents already started are stopped.
pub async fn start_agents(
    plan: &RunPlan,
    outside: &mut RunContext,
    control: &watch::Receiver<RunControl>,
) -> Option<StartedAgents> {
    let (project, http) = (&outside.project, &outside.target_env.http);
    let (mut agents, mut failed) = (StartedAgents::new(), Vec::new());
    for agent in plan.contacted_agents() {
        let Some(start) = agent.start.as_ref().map(|start| outside.start_command(start)) else {
            continue;
        };
        let mut interrupted = control.clone();
        let started = tokio::select! {
            started = StartedAgent::start(&start, project.environment(), project.redactor(), http) => Some(started),
            // Dropping the future stops the agent being started.
            Ok(_) = interrupted.changed() => None,
        };
        match started {
            Some(Ok(started)) => agents.push((agent.clone(), started)),
            Some(Err(failure)) => {
                let message =
                    format!("{} ({}) did not start: {}", agent.words(), start.place, failure.message);
                failed.push((agent.clone(), AttemptFailure { message, ..failure }));
            }
            None => {
                stop_agents(agents).await;
                return None;
            }
        }
    }
    outside.failed_starts = failed;
    Some(agents)
}

/// Stops started agents concurrently.
pub async fn stop_agents(agents: StartedAgents) {
    let mut stopping: JoinSet<()> = agents.into_iter().map(|(_, agent)| agent.stop()).collect();
    while stopping.join_next().await.is_some() {}
}
