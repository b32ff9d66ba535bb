//! The threads on which conversations are held.

use std::io;
use std::mem;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{AbortHandle, JoinSet};

/// The most threads that are started. Conversations wait nearly all the time, so only those that compute at the same
/// moment need one each; where there are more of these, they take turns.
const MOST: usize = 32;
/// How long is waited for conversations to be given up that somebody wants to end.
const PATIENCE: Duration = Duration::from_millis(500);

/// The threads on which conversations are held, one for each that may go on, up to a number. These are more than there
/// are cores: the system shares the cores out, so a conversation that computes for long keeps no other one waiting.
///
/// Dropping them gives up what goes on there, which ends its processes, and waits a moment for that.
pub(super) struct Workers {
    handle: Handle,
    /// None once it is shut down.
    runtime: Option<Runtime>,
    /// Each conversation has a copy until it ends.
    held: Sender<()>,
    all_gone: Receiver<()>,
}

impl Workers {
    /// Starts threads for so many conversations at once.
    ///
    /// # Errors
    /// When the system does not let it.
    pub(super) fn start(conversations: usize) -> io::Result<Workers> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(conversations.clamp(1, MOST)).thread_name("conversations").enable_all();
        let runtime = builder.build()?;
        let (held, all_gone) = channel();
        Ok(Workers { handle: runtime.handle().clone(), runtime: Some(runtime), held, all_gone })
    }

    /// Begins something on one of the threads.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        all: &mut JoinSet<T>,
        conversation: impl Future<Output = T> + Send + 'static,
    ) -> AbortHandle {
        let held = self.held.clone();
        let holding = async move {
            let _held = held;
            conversation.await
        };
        all.spawn_on(holding, &self.handle)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        // Only conversations hold on to it now. Who is still at work after that is ended with the program.
        drop(mem::replace(&mut self.held, channel().0));
        let _ = self.all_gone.recv_timeout(PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn conversations_compute_at_the_same_time() {
        const AT_ONCE: usize = 8;
        let workers = Workers::start(AT_ONCE).unwrap();
        let mut all = JoinSet::new();
        let (arrive, arrived) = mpsc::channel();
        let mut releases = Vec::new();
        for _ in 0..AT_ONCE {
            let (release, released) = mpsc::channel::<()>();
            let arrive = arrive.clone();
            // Blocks its thread, as a long computation does.
            workers.spawn(
                &mut all,
                async move { arrive.send(()).is_ok() && released.recv_timeout(LONG).is_ok() },
            );
            releases.push(release);
        }
        // Each of them is at work although all others are.
        (0..AT_ONCE).for_each(|_| arrived.recv_timeout(LONG).expect("nobody waits for another one"));
        releases.iter().for_each(|release| release.send(()).unwrap());
        let runtime = Builder::new_current_thread().build().unwrap();
        assert!(runtime.block_on(all.join_all()).into_iter().all(|released| released));
    }

    #[test]
    fn what_goes_on_is_given_up_before_they_are_gone() {
        struct Held(Arc<AtomicBool>);
        impl Drop for Held {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let given_up = Arc::new(AtomicBool::new(false));
        let (begun, begins) = mpsc::channel();
        let mut all = JoinSet::new();
        let workers = Workers::start(2).unwrap();
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
