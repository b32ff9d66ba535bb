//! Supplies the dispatcher with the cases of a run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use hotseat_document::Diagnostic;
use tokio::sync::mpsc;

use super::plan::{RunPlan, SelectedCase};
use crate::config::Project;

/// Number of cases that are read at a time. The thread sleeps between two batches, so that it need not be woken for
/// each case.
const BATCH_CASES: usize = 32;
/// Number of batches that are read ahead of the dispatcher.
const READ_AHEAD_BATCHES: usize = 2;

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
    /// Cases read by a separate thread, so that conversations do not wait for files.
    Streamed(CaseStream),
}

/// Cases from a thread, which ends when this value is dropped.
struct CaseStream {
    received: mpsc::UnboundedReceiver<CaseRead>,
    /// Number of cases received from the current batch.
    taken: usize,
    /// Requests a further batch.
    batch_requests: Sender<()>,
    /// `None` after the end of the cases.
    thread: Option<JoinHandle<()>>,
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
        CaseReader::Streamed(CaseStream::start(plan.clone(), project.clone()))
    }

    async fn next(&mut self) -> Option<CaseRead> {
        match self {
            CaseReader::Cached(plan, next_index) => {
                let next = plan.cached_cases().and_then(|kept| kept.get(*next_index)).cloned();
                *next_index += 1;
                next.map(Ok)
            }
            CaseReader::Streamed(stream) => stream.next().await,
        }
    }
}

impl CaseStream {
    fn start(plan: Arc<RunPlan>, project: Arc<Project>) -> CaseStream {
        let (send, received) = mpsc::unbounded_channel();
        let (batch_requests, requested) = channel();
        for _ in 0..READ_AHEAD_BATCHES {
            let _ = batch_requests.send(());
        }
        let thread = thread::spawn(move || {
            let mut cases = plan.cases(&project);
            for () in requested {
                for _ in 0..BATCH_CASES {
                    let Some(case) = cases.next() else { return };
                    if send.send(case).is_err() {
                        return;
                    }
                }
            }
        });
        CaseStream { received, taken: 0, batch_requests, thread: Some(thread) }
    }

    async fn next(&mut self) -> Option<CaseRead> {
        let next = self.received.recv().await;
        self.taken += usize::from(next.is_some());
        if self.taken == BATCH_CASES {
            self.taken = 0;
            // The thread may have read all cases.
            let _ = self.batch_requests.send(());
        }
        // A panic of the thread must not look like the end of the cases.
        if next.is_none()
            && let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
        {
            std::panic::resume_unwind(panic);
        }
        next
    }
}
