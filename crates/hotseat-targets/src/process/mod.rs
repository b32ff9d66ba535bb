//! Child processes in their own process group, so that all their descendants end with them.

#[cfg(unix)]
mod start_record;
#[cfg(unix)]
mod tree;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;
#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hotseat_document::LastOutput;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
#[cfg(unix)]
use tokio::time::{Instant, sleep};

#[cfg(unix)]
use start_record::StartRecord;
#[cfg(unix)]
use tree::TreeMark;
#[cfg(unix)]
pub use tree::{OrphanProcess, TREE_VARIABLE};

/// Grace period before processes are killed.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// A command that starts in its own process group.
#[derive(Debug)]
pub struct GroupCommand {
    /// The command; set its folder, input and output before `spawn`.
    pub command: Command,
    #[cfg(unix)]
    mark: TreeMark,
    #[cfg(unix)]
    project: ProjectServers,
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
            command
                .env(TREE_VARIABLE, mark.variable_value(environment.get(TREE_VARIABLE).map(String::as_str)));
            GroupCommand { command, mark, project }
        }
        #[cfg(not(unix))]
        {
            let _ = project;
            GroupCommand { command }
        }
    }

    /// Starts the command. Fails if the system cannot start it.
    pub fn spawn(mut self) -> io::Result<(Child, ProcessGroup)> {
        #[cfg(unix)]
        let record = StartRecord::new(self.project.0);
        let child = self.command.spawn()?;
        #[cfg(unix)]
        {
            let id = child.id().and_then(|id| i32::try_from(id).ok());
            let leader = id.and_then(rustix::process::Pid::from_raw);
            let is_killed = AtomicBool::new(false);
            Ok((child, ProcessGroup { leader, mark: self.mark, is_killed, _record: record }))
        }
        #[cfg(not(unix))]
        {
            Ok((child, ProcessGroup {}))
        }
    }
}

/// Returns the reason why a command cannot be started, if its program or its folder is missing. `path` is the variable
/// `PATH` of its environment.
pub fn find_missing_program(argv: &[String], path: Option<&String>, folder: &Path) -> Option<String> {
    if !folder.is_dir() {
        return Some(format!("there is no folder {}", folder.display()));
    }
    let program = argv.first()?;
    // Other systems look for programs in more places.
    let is_found = match path {
        _ if !cfg!(unix) => true,
        _ if program.contains('/') => is_executable(&folder.join(program)),
        Some(path) => {
            std::env::split_paths(path).any(|place| is_executable(&folder.join(place).join(program)))
        }
        None => true,
    };
    let is_there = program.contains('/') && folder.join(program).is_file();
    (!is_found).then(|| match is_there {
        true => format!("the file `{program}` is not executable: `chmod +x {program}` makes it so"),
        false => format!("there is no program `{program}`"),
    })
}

fn is_executable(path: &Path) -> bool {
    #[cfg(unix)]
    let may_run = |found: &std::fs::Metadata| {
        std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o111 != 0
    };
    #[cfg(not(unix))]
    let may_run = |_: &std::fs::Metadata| true;
    path.metadata().is_ok_and(|found| found.is_file() && may_run(&found))
}

/// The servers, programs and hooks that runs of one project start.
#[derive(Debug, Clone, Copy)]
pub struct ProjectServers(u64);

impl ProjectServers {
    /// Creates the value for the project in this folder.
    pub fn new(root: &Path) -> ProjectServers {
        let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
        let mut hasher = DefaultHasher::new();
        root.hash(&mut hasher);
        ProjectServers(hasher.finish() | 1)
    }

    /// Ends the processes left behind by killed runs, and returns them. Processes that do not terminate are
    /// killed. Returns nothing on systems that cannot list processes.
    pub async fn end_orphans(self) -> Vec<OrphanProcess> {
        #[cfg(unix)]
        {
            let records = start_record::killed_starters(self.0);
            if records.is_empty() {
                return Vec::new();
            }
            let found = tree::orphans(self.0);
            tree::end_orphans(&found, false);
            let until = Instant::now() + SHUTDOWN_GRACE;
            loop {
                let left = tree::orphans(self.0);
                if left.is_empty() {
                    for record in records {
                        let _ = std::fs::remove_file(record);
                    }
                    return found;
                }
                if Instant::now() >= until {
                    tree::end_orphans(&left, true);
                }
                sleep(Duration::from_millis(10)).await;
                if Instant::now() >= until + SHUTDOWN_GRACE {
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

/// Kills all processes that this one has started, at its end: one that was just being started may belong to no group yet. Does nothing on
/// systems that cannot list processes.
pub fn kill_started() {
    #[cfg(unix)]
    tree::kill_own();
}

/// A process left behind by a killed run.
#[cfg(not(unix))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanProcess {
    /// Its process id.
    pub pid: u32,
    /// Its program and arguments.
    pub command: String,
}

/// The processes of a command: its process group and, on Linux, descendants that have left the group. They
/// are killed on drop.
#[derive(Debug)]
pub struct ProcessGroup {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
    #[cfg(unix)]
    mark: TreeMark,
    /// True if all processes were killed.
    #[cfg(unix)]
    is_killed: AtomicBool,
    /// Tells the next run of the project that this process may have left processes, until they are killed.
    #[cfg(unix)]
    _record: StartRecord,
}

impl ProcessGroup {
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
        if !self.is_killed.swap(true, Ordering::Relaxed) {
            self.signal(rustix::process::Signal::KILL);
            self.mark.kill();
        }
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(leader) = self.leader {
            // The group may have ended already.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads an output to its end, and keeps the last part.
pub async fn collect_output(mut from: impl AsyncReadExt + Unpin, output: LastOutput) {
    let mut buffer = vec![0; 8192];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        output.push(&buffer[..read]);
    }
}
