//! What the person at the keyboard, or the machine, wants of a run that goes on.

use std::io;

use tokio::sync::watch;

use super::Control;

/// Ctrl-C, and on Unix the request to terminate, which is how CI servers cancel a job. Only main functions make it.
///
/// From the moment it is made none of them ends the program, so it is made before anything is begun that would have
/// to be cleaned up.
pub struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
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
