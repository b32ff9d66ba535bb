//! Signals of the operating system that stop a run.

use std::io;

use tokio::sync::watch;

use super::cancellation::RunControl;

/// Listener for Ctrl-C and, on Unix, SIGTERM (sent by CI servers to cancel a job) and SIGHUP. Only main
/// functions create it.
///
/// Once created, these signals no longer end the process. Create it before starting work that needs cleanup.
pub struct ShutdownSignals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    /// `None` if the process ignores SIGHUP, as under `nohup`.
    #[cfg(unix)]
    hang_up: Option<tokio::signal::unix::Signal>,
    /// Held so that exceeding the file size limit becomes a write error instead of ending the process.
    #[cfg(unix)]
    _file_size: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
}

impl ShutdownSignals {
    /// Starts listening. Fails if a signal handler cannot be installed.
    #[cfg(unix)]
    pub fn new() -> io::Result<ShutdownSignals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(ShutdownSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            _file_size: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
            hang_up: if ignores_hang_up() { None } else { Some(signal(SignalKind::hangup())?) },
        })
    }

    /// Starts listening. Fails if a signal handler cannot be installed.
    #[cfg(windows)]
    pub fn new() -> io::Result<ShutdownSignals> {
        Ok(ShutdownSignals { interrupt: tokio::signal::windows::ctrl_c()? })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            Some(_) = received(&mut self.hang_up) => {}
        }
        #[cfg(windows)]
        self.interrupt.recv().await;
    }

    /// Forwards the first signal as [`RunControl::Finish`] and the second as [`RunControl::Cancel`]. Returns at the
    /// third.
    pub async fn forward(mut self, wishes: watch::Sender<RunControl>) {
        for wish in [RunControl::Finish, RunControl::Cancel] {
            self.next().await;
            let _ = wishes.send(wish);
        }
        self.next().await;
    }
}

/// True if SIGHUP is ignored, as under `nohup`. Detected on Linux only.
#[cfg(unix)]
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(unix)]
async fn received(signal: &mut Option<tokio::signal::unix::Signal>) -> Option<()> {
    match signal {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    }
}
