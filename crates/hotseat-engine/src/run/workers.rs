//! Worker threads for conversations.

use std::future::poll_fn;
use std::io;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{AbortHandle, JoinSet};

use crate::threads::{CORE_COUNT, compute_aside};

/// Maximum number of threads: beyond it, the threads that read and report could not keep up.
const MAX_WORKER_THREADS: usize = 16;
/// Duration of a step after which the next steps of a conversation are computed aside.
const LONG_STEP: Duration = Duration::from_millis(1);

/// Starts threads for this number of concurrent conversations. The task that dispatches them belongs on the same
/// threads, so that it need not be woken across threads for each conversation.
///
/// They have half of the cores, since the threads that read from agents, read cases, and report need the other half. A
/// computation that may take long gets a further thread (`threads::compute_aside`), so it does not delay other
/// conversations. Fails if the threads cannot be started.
pub fn start_workers(conversations: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads((*CORE_COUNT / 2).min(conversations).clamp(1, MAX_WORKER_THREADS))
        .thread_name("conversations")
        .enable_all()
        .build()
}

/// Spawns a conversation on the worker threads. Must be called from one of them.
pub(super) fn spawn_conversation<T: Send + 'static>(
    all: &mut JoinSet<T>,
    conversation: impl Future<Output = T> + Send + 'static,
) -> AbortHandle {
    // A task is copied several times; the future is large.
    all.spawn(give_way(Box::pin(conversation)))
}

/// Lets others use the thread of a conversation that computes long. Once a step has taken long, the next ones are
/// computed aside: an agent that sends much keeps sending.
fn give_way<F: Future + Unpin>(mut conversation: F) -> impl Future<Output = F::Output> {
    let mut computes_long = false;
    poll_fn(move |context| {
        if computes_long {
            return compute_aside(|| conversation.poll_unpin(context));
        }
        let started = Instant::now();
        let progress = conversation.poll_unpin(context);
        computes_long = started.elapsed() >= LONG_STEP;
        progress
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn long_computations_run_in_parallel() {
        const AT_ONCE: usize = 8;
        let (arrive, arrived) = mpsc::channel();
        let mut releases = Vec::new();
        let workers = start_workers(AT_ONCE).unwrap();
        let all = workers.block_on(async {
            let mut all = JoinSet::new();
            for _ in 0..AT_ONCE {
                let (release, released) = mpsc::channel::<()>();
                let arrive = arrive.clone();
                let compute = move || arrive.send(()).is_ok() && released.recv_timeout(LONG).is_ok();
                spawn_conversation(&mut all, async move { compute_aside(compute) });
                releases.push(release);
            }
            all
        });
        // Every conversation runs while the others block.
        (0..AT_ONCE).for_each(|_| arrived.recv_timeout(LONG).expect("a task waits for another one"));
        releases.iter().for_each(|release| release.send(()).unwrap());
        assert!(workers.block_on(all.join_all()).into_iter().all(|released| released));
    }
}
