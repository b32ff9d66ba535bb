//! What the person at the keyboard, or the machine, wants of a run that goes on.

use std::io;

use tokio::sync::watch;

use super::Control;

/// Ctrl-C, and on Unix the request to terminate, which is how CI servers cancel a job, and the end of the terminal. Only
/// main functions make it.
///
/// From the moment it is made none of them ends the program, so it is made before anything is begun that would have
/// to be cleaned up.
pub struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    /// None where whoever has started the program wants it to survive its terminal.
    #[cfg(unix)]
    hang_up: Option<tokio::signal::unix::Signal>,
    /// Held so that a file which may not grow is an error of writing to it, and not the end of the program.
    #[cfg(unix)]
    _file_size: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
}

impl Signals {
    /// Takes them from now on.
    ///
    /// # Errors
    /// When the system does not let it.
    #[cfg(unix)]
    pub fn new() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            _file_size: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
            hang_up: if ignores_hang_up() { None } else { Some(signal(SignalKind::hangup())?) },
        })
    }

    /// Takes them from now on.
    ///
    /// # Errors
    /// When the system does not let it.
    #[cfg(windows)]
    pub fn new() -> io::Result<Signals> {
        Ok(Signals { interrupt: tokio::signal::windows::ctrl_c()? })
    }

    /// Waits for the next one.
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

    /// Passes them on: at the first, what runs may end; at the second, it is cancelled. Returns at the third.
    pub async fn pass_on(mut self, wishes: watch::Sender<Control>) {
        for wish in [Control::Finish, Control::Cancel] {
            self.next().await;
            let _ = wishes.send(wish);
        }
        self.next().await;
    }
}

/// Whether the end of the terminal is ignored, as it is under `nohup`. Only Linux says so.
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
