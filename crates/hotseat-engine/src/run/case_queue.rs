//! Supplies the dispatcher with the cases of a run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use hotseat_document::Diagnostic;
use tokio::sync::mpsc;

use super::plan::{RunPlan, SelectedCase};
use crate::config::Project;

/// Number of cases that are read ahead of the dispatcher.
const READ_AHEAD_CASES: usize = 64;

type CaseRead = Result<SelectedCase, Vec<Diagnostic>>;

/// The cases of a run that still have to run.
pub(super) struct CaseQueue {
    all: CaseReader,
    /// Indices of cases that finished before the run was resumed.
    finished: BTreeSet<usize>,
}

/// Source of all cases of a run.
enum CaseReader {
    /// Cases cached by the plan, and the number already taken.
    Cached(Arc<RunPlan>, usize),
    /// Cases read by a separate thread, so that conversations do not wait for files. The thread blocks when
    /// it is far enough ahead and ends when the receiver is dropped.
    Streamed(mpsc::Receiver<CaseRead>, Option<JoinHandle<()>>),
}

impl CaseQueue {
    pub(super) fn new(plan: &Arc<RunPlan>, project: &Arc<Project>, ended: BTreeSet<usize>) -> CaseQueue {
        CaseQueue { all: CaseReader::new(plan, project), finished: ended }
    }

    /// Returns the next case. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<CaseRead> {
        loop {
            match self.all.next().await {
                Some(Ok(selected)) if self.finished.contains(&selected.index) => {}
                next => return next,
            }
        }
    }
}

impl CaseReader {
    fn new(plan: &Arc<RunPlan>, project: &Arc<Project>) -> CaseReader {
        if plan.cached_cases().is_some() {
            return CaseReader::Cached(plan.clone(), 0);
        }
        let (plan, project) = (plan.clone(), project.clone());
        let (send, received) = mpsc::channel(READ_AHEAD_CASES);
        let thread = thread::spawn(move || {
            for case in plan.cases(&project) {
                if send.blocking_send(case).is_err() {
                    break;
                }
            }
        });
        CaseReader::Streamed(received, Some(thread))
    }

    async fn next(&mut self) -> Option<CaseRead> {
        match self {
            CaseReader::Cached(plan, next_index) => {
                let next = plan.cached_cases().and_then(|kept| kept.get(*next_index)).cloned();
                *next_index += 1;
                next.map(Ok)
            }
            CaseReader::Streamed(received, thread) => {
                let next = received.recv().await;
                // A panic of the thread must not look like the end of the cases.
                if next.is_none()
                    && let Some(Err(panic)) = thread.take().map(JoinHandle::join)
                {
                    std::panic::resume_unwind(panic);
                }
                next
            }
        }
    }
}
