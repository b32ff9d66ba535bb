//! Worker threads for conversations.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{AbortHandle, JoinSet};

use crate::threads::{CORE_COUNT, compute_aside};

/// Maximum number of threads: beyond it, the threads that read and report could not keep up.
const MAX_WORKER_THREADS: usize = 16;
/// Duration of a step after which the next steps of a conversation are computed aside.
const LONG_STEP: Duration = Duration::from_millis(1);
/// Time limit for dropping conversations at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// Thread pool for conversations. It has half of the cores, since the threads that read from agents, start cases,
/// and report need the other half. A computation that may take long gets a further thread
/// ([`compute_aside`](crate::threads::compute_aside)), so it does not delay other conversations.
///
/// Dropping the pool aborts its conversations, which ends their processes, and waits briefly for that.
pub(super) struct WorkerPool {
    handle: Handle,
    /// `None` after shutdown.
    runtime: Option<Runtime>,
    /// Cloned by each conversation until it ends.
    alive_sender: Sender<()>,
    alive_receiver: Receiver<()>,
}

impl WorkerPool {
    /// Starts threads for this number of concurrent conversations. Fails if the threads cannot be started.
    pub(super) fn start(conversations: usize) -> io::Result<WorkerPool> {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads((*CORE_COUNT / 2).min(conversations).clamp(1, MAX_WORKER_THREADS))
            .thread_name("conversations")
            .enable_all();
        let runtime = builder.build()?;
        let (alive, all_gone) = channel();
        Ok(WorkerPool {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
            alive_sender: alive,
            alive_receiver: all_gone,
        })
    }

    /// Spawns a conversation on the pool.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        all: &mut JoinSet<T>,
        conversation: impl Future<Output = T> + Send + 'static,
    ) -> AbortHandle {
        let alive = self.alive_sender.clone();
        let holding = async move {
            let _alive = alive;
            conversation.await
        };
        // A task is copied several times; the future is large.
        all.spawn_on(give_way(Box::pin(holding)), &self.handle)
    }
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

impl Drop for WorkerPool {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        // Only running conversations hold a sender now. Those still running after the timeout end with the
        // process.
        drop(mem::replace(&mut self.alive_sender, channel().0));
        let _ = self.alive_receiver.recv_timeout(SHUTDOWN_TIMEOUT);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn long_computations_run_in_parallel() {
        const AT_ONCE: usize = 8;
        let workers = WorkerPool::start(AT_ONCE).unwrap();
        let mut all = JoinSet::new();
        let (arrive, arrived) = mpsc::channel();
        let mut releases = Vec::new();
        for _ in 0..AT_ONCE {
            let (release, released) = mpsc::channel::<()>();
            let arrive = arrive.clone();
            let compute = move || arrive.send(()).is_ok() && released.recv_timeout(LONG).is_ok();
            workers.spawn(&mut all, async move { compute_aside(compute) });
            releases.push(release);
        }
        // Every conversation runs while the others block.
        (0..AT_ONCE).for_each(|_| arrived.recv_timeout(LONG).expect("a task waits for another one"));
        releases.iter().for_each(|release| release.send(()).unwrap());
        let runtime = Builder::new_current_thread().build().unwrap();
        assert!(runtime.block_on(all.join_all()).into_iter().all(|released| released));
    }

    #[test]
    fn drop_aborts_running_conversations() {
        struct Held(Arc<AtomicBool>);
        impl Drop for Held {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let given_up = Arc::new(AtomicBool::new(false));
        let (begun, begins) = mpsc::channel();
        let mut all = JoinSet::new();
        let workers = WorkerPool::start(2).unwrap();
        let held = Held(given_up.clone());
        workers.spawn(&mut all, async move {
            let _held = held;
            begun.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        begins.recv_timeout(LONG).unwrap();
        drop(workers);
        assert!(given_up.load(Ordering::SeqCst), "its processes would be left behind");
    }
}
