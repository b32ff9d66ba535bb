//! Child processes with a process group of their own, so that what they start ends with them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

/// How much of a process's last output is kept.
const KEPT_OUTPUT: usize = 16 * 1024;

/// A command in a new process group, without a shell, with the given environment.
pub fn group_command(argv: &[String], environment: &BTreeMap<String, String>) -> Command {
    let mut command = Command::new(argv.first().map_or("", String::as_str));
    command.args(argv.iter().skip(1)).env_clear().envs(environment).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    command
}

/// The process group of a child. It is killed when this value is dropped.
#[derive(Debug)]
pub struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl Group {
    /// The group that a child leads.
    pub fn of(child: &Child) -> Self {
        #[cfg(unix)]
        {
            let id = child.id().and_then(|id| i32::try_from(id).ok());
            Group { leader: id.and_then(rustix::process::Pid::from_raw) }
        }
        #[cfg(not(unix))]
        {
            let _ = child;
            Group {}
        }
    }

    /// Asks every process of the group to end.
    pub fn terminate(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
    }

    /// Ends every process of the group.
    pub fn kill(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(leader) = self.leader {
            // A group that is gone already is what was wanted.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last output of a process.
#[derive(Debug, Clone, Default)]
pub struct LastOutput(Arc<Mutex<VecDeque<u8>>>);

impl LastOutput {
    /// Reads to the end and keeps the last of it.
    pub async fn keep(self, mut from: impl AsyncReadExt + Unpin) {
        let mut buffer = vec![0; 8192];
        while let Ok(n) = from.read(&mut buffer).await
            && n > 0
        {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(&buffer[..n]);
            let surplus = kept.len().saturating_sub(KEPT_OUTPUT);
            kept.drain(..surplus);
        }
    }

    /// What was kept so far.
    pub fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
