//! Agents that are started for a run, and stopped after it.

use hotseat_trace::Failure;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::dispatcher::{Control, Started};
use super::outside::Outside;
use super::plan::Plan;
use crate::config::{self, StartedAgent};

/// Ends the processes that runs of the project have left which were killed, and says which, each in one line. It is given
/// up where the run is to end.
pub async fn end_orphans(outside: &Outside, control: &watch::Receiver<Control>) -> Vec<String> {
    let mut interrupted = control.clone();
    tokio::select! {
        ended = config::end_orphans(&outside.project) => ended,
        Ok(_) = interrupted.changed() => Vec::new(),
    }
}

/// Starts the agents that a run speaks with, where the project says how.
///
/// # Errors
/// What keeps one of them from starting; none where the run was to end before all were there. Those that were started are
/// stopped again.
pub async fn start(
    plan: &Plan,
    outside: &Outside,
    control: &watch::Receiver<Control>,
) -> Result<Started, Option<Failure>> {
    let (project, http) = (&outside.project, &outside.means.http);
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
        return Err(not_started);
    }
    Ok(agents)
}

/// Stops agents that were started, all at once.
pub async fn stop(agents: Started) {
    let mut stopping: JoinSet<()> = agents.into_iter().map(|(_, agent)| agent.stop()).collect();
    while stopping.join_next().await.is_some() {}
}
