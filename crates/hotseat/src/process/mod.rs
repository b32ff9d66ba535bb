//! Child processes with a process group of their own, so that what they start ends with them.

#[cfg(unix)]
mod tree;

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;
#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
#[cfg(unix)]
use tokio::time::{Instant, sleep};

#[cfg(unix)]
use tree::TreeMark;
#[cfg(unix)]
pub use tree::{OrphanProcess, TREE_VARIABLE};

/// How long processes are given to end in order.
pub const GRACE: Duration = Duration::from_secs(5);
/// How much of a process's last output is kept.
const KEPT_OUTPUT: usize = 16 * 1024;

/// A command that is to be started in a process group of its own.
#[derive(Debug)]
pub struct GroupCommand {
    /// The command, to be given folder, input and output.
    pub command: Command,
    #[cfg(unix)]
    mark: TreeMark,
}

impl GroupCommand {
    /// A command without a shell, with the given environment. The next run of the project knows its processes.
    pub fn new(
        argv: &[String],
        environment: &BTreeMap<String, String>,
        project: ProjectServers,
    ) -> GroupCommand {
        let mut command = Command::new(argv.first().map_or("", String::as_str));
        command.args(argv.iter().skip(1)).env_clear().envs(environment).kill_on_drop(true);
        #[cfg(unix)]
        {
            let mark = TreeMark::new(project.0);
            command.process_group(0);
            command.env(TREE_VARIABLE, mark.within(environment.get(TREE_VARIABLE).map(String::as_str)));
            GroupCommand { command, mark }
        }
        #[cfg(not(unix))]
        {
            let _ = project;
            GroupCommand { command }
        }
    }

    /// Starts it.
    ///
    /// # Errors
    /// When the system does not let it.
    pub fn spawn(mut self) -> io::Result<(Child, Group)> {
        let child = self.command.spawn()?;
        #[cfg(unix)]
        {
            let id = child.id().and_then(|id| i32::try_from(id).ok());
            let leader = id.and_then(rustix::process::Pid::from_raw);
            Ok((child, Group { leader, mark: self.mark, is_gone: AtomicBool::new(false) }))
        }
        #[cfg(not(unix))]
        {
            Ok((child, Group {}))
        }
    }
}

/// The servers, programs and hooks that runs of one project start.
#[derive(Debug, Clone, Copy)]
pub struct ProjectServers(u64);

impl ProjectServers {
    /// Those of the project in this folder.
    pub fn of(root: &Path) -> ProjectServers {
        let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
        let mut hasher = DefaultHasher::new();
        root.hash(&mut hasher);
        ProjectServers(hasher.finish() | 1)
    }

    /// Ends the processes that runs have left which were killed, and says which these were. Those that do not end in order
    /// are killed. Where processes cannot be looked through, none are known.
    pub async fn end_orphans(self) -> Vec<OrphanProcess> {
        #[cfg(unix)]
        {
            let found = tree::orphans(self.0);
            tree::end_orphans(&found, false);
            let until = Instant::now() + GRACE;
            loop {
                let left = tree::orphans(self.0);
                if left.is_empty() {
                    return found;
                }
                if Instant::now() >= until {
                    tree::end_orphans(&left, true);
                }
                sleep(Duration::from_millis(10)).await;
                if Instant::now() >= until + GRACE {
                    return found;
                }
            }
        }
        #[cfg(not(unix))]
        {
            Vec::new()
        }
    }
}

/// A process that a run has left which was killed.
#[cfg(not(unix))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanProcess {
    /// Its id.
    pub pid: u32,
    /// Its program and arguments.
    pub command: String,
}

/// The processes of a command: its process group and, on Linux, whatever has left that. They are killed when this value is
/// dropped.
#[derive(Debug)]
pub struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
    #[cfg(unix)]
    mark: TreeMark,
    /// Whether all were killed: none can begin any more.
    #[cfg(unix)]
    is_gone: AtomicBool,
}

impl Group {
    /// Asks every process of the group to end.
    pub fn terminate(&self) {
        #[cfg(unix)]
        {
            self.mark.terminate();
            self.signal(rustix::process::Signal::TERM);
        }
    }

    /// Ends every process of the group.
    pub fn kill(&self) {
        #[cfg(unix)]
        if !self.is_gone.swap(true, Ordering::Relaxed) {
            self.signal(rustix::process::Signal::KILL);
            self.mark.kill();
        }
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
