//! The cases of a run, as it asks for them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use hotseat_document::Diagnostic;
use tokio::sync::mpsc;

use super::plan::{Plan, Selected};
use crate::config::Project;

/// How many cases are read ahead of those that have begun.
const AHEAD: usize = 64;

type Read = Result<Selected, Vec<Diagnostic>>;

/// The cases of a run that are left to be run.
pub(super) struct Cases {
    all: All,
    /// The places of those that have ended before.
    ended: BTreeSet<usize>,
}

/// The cases of a run.
enum All {
    /// They were kept when the plan was made; so many of them were given out.
    Kept(Arc<Plan>, usize),
    /// They are read by a thread of its own, so that conversations do not wait for files. It waits when it is ahead
    /// by enough, and ends when nobody wants cases any more.
    Read(mpsc::Receiver<Read>, Option<JoinHandle<()>>),
}

impl Cases {
    pub(super) fn of(plan: &Arc<Plan>, project: &Arc<Project>, ended: BTreeSet<usize>) -> Cases {
        Cases { all: All::of(plan, project), ended }
    }

    /// The next one. Nothing is lost when this is dropped before it is done.
    pub(super) async fn next(&mut self) -> Option<Read> {
        loop {
            match self.all.next().await {
                Some(Ok(selected)) if self.ended.contains(&selected.index) => {}
                next => return next,
            }
        }
    }
}

impl All {
    fn of(plan: &Arc<Plan>, project: &Arc<Project>) -> All {
        if plan.kept().is_some() {
            return All::Kept(plan.clone(), 0);
        }
        let (plan, project) = (plan.clone(), project.clone());
        let (send, received) = mpsc::channel(AHEAD);
        let thread = thread::spawn(move || {
            for case in plan.cases(&project) {
                if send.blocking_send(case).is_err() {
                    break;
                }
            }
        });
        All::Read(received, Some(thread))
    }

    async fn next(&mut self) -> Option<Read> {
        match self {
            All::Kept(plan, given) => {
                let next = plan.kept().and_then(|kept| kept.get(*given)).cloned();
                *given += 1;
                next.map(Ok)
            }
            All::Read(received, thread) => {
                let next = received.recv().await;
                // A thread that broke off must not look like the end of the cases.
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
