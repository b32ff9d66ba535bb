//! Finds the processes of a command by an inherited environment variable.
//!
//! A process can leave its process group with `setsid`, and its parent by outliving it, but it keeps its
//! initial environment. Each command is started with a unique mark in [`TREE_VARIABLE`], which all
//! descendants inherit. On Linux the environments of all processes can be read, so the descendants of a
//! command are found when it ends. A mark also names the process that started the command, so the next run
//! finds processes left behind by a killed run. It searches for them only if that run left a record.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal};

/// Environment variable with the marks of a process; marks of nested commands are separated by commas.
pub const TREE_VARIABLE: &str = "HOTSEAT_PROCESS_TREE";

/// Maximum number of rounds that look for processes started while others were killed.
const MAX_KILL_ROUNDS: usize = 8;
/// Size of the buffer for an environment. Most are smaller.
const ENVIRONMENT_BYTES: usize = 16 * 1024;

/// The mark of the processes of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeMark(String);

/// The process that started a command: id, start time, and the namespace of the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkOwner {
    /// Its process id.
    pub pid: u32,
    /// Its start time, in clock ticks since boot.
    pub started: String,
    /// The namespace of its id.
    pub namespace: String,
}

/// A process left behind by a killed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanProcess {
    /// Its process id.
    pub pid: u32,
    /// Its program and arguments.
    pub command: String,
}

impl TreeMark {
    /// A mark that no other command has. `group` says to which project the command belongs.
    pub fn new(group: u64) -> TreeMark {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        TreeMark(format!("{}.{group:x}.{number}", MarkOwner::current()))
    }

    /// Returns the value of the variable for a command; `outer` is the value of the current process.
    pub fn variable_value(&self, outer: Option<&str>) -> String {
        match outer.filter(|outer| !outer.is_empty()) {
            Some(outer) => format!("{outer},{}", self.0),
            None => self.0.clone(),
        }
    }

    /// Kills all processes with this mark.
    pub fn kill(&self) {
        kill_marked(|mark| mark == self.0);
    }

    /// Asks all processes with this mark to terminate.
    pub fn terminate(&self) {
        find_marked(|mark| mark == self.0).into_iter().for_each(|pid| signal(pid, Signal::TERM));
    }
}

impl MarkOwner {
    /// Returns the current process.
    pub fn current() -> MarkOwner {
        static THIS: OnceLock<MarkOwner> = OnceLock::new();
        let read = || {
            let pid = std::process::id();
            MarkOwner { pid, started: start_time(pid).unwrap_or_default(), namespace: namespace() }
        };
        THIS.get_or_init(read).clone()
    }

    /// Reads an owner from the text that it displays as.
    pub fn parse(text: &str) -> Option<MarkOwner> {
        let mut parts = text.split('.');
        let (pid, started, namespace) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
        let owner = MarkOwner { pid, started: started.to_string(), namespace: namespace.to_string() };
        parts.next().is_none().then_some(owner)
    }

    /// Returns true if the owner has ended; false if it belongs to another namespace.
    pub fn is_gone(&self) -> bool {
        self.namespace == namespace() && start_time(self.pid).as_deref() != Some(&self.started)
    }
}

impl fmt::Display for MarkOwner {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}.{}.{}", self.pid, self.started, self.namespace)
    }
}

/// The processes that runs of a project have started which were killed; not those that this process is one of.
pub fn orphans(group: u64) -> Vec<OrphanProcess> {
    let group = format!("{group:x}");
    let own = marks(std::process::id(), &mut Vec::new()).unwrap_or_default();
    let of_killed = |mark: &str| {
        if own.split(',').any(|own| own == mark) {
            return false;
        }
        let mut parts = mark.rsplitn(3, '.').skip(1);
        parts.next() == Some(group.as_str())
            && parts.next().and_then(MarkOwner::parse).is_some_and(|owner| owner.is_gone())
    };
    find_marked(of_killed).into_iter().map(|pid| OrphanProcess { pid, command: command_line(pid) }).collect()
}

/// Kills the processes that this process has started, in all projects.
pub fn kill_own() {
    let prefix = format!("{}.", MarkOwner::current());
    kill_marked(|mark| mark.starts_with(&prefix));
}

fn kill_marked(is_wanted: impl Fn(&str) -> bool) {
    for _ in 0..MAX_KILL_ROUNDS {
        let found = find_marked(&is_wanted);
        if found.is_empty() {
            return;
        }
        found.into_iter().for_each(|pid| signal(pid, Signal::KILL));
    }
}

/// Terminates processes, or kills them.
pub fn end_orphans(orphans: &[OrphanProcess], kill: bool) {
    let with = if kill { Signal::KILL } else { Signal::TERM };
    orphans.iter().for_each(|orphan| signal(orphan.pid, with));
}

fn signal(pid: u32, with: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // The process may have ended already.
        let _ = rustix::process::kill_process(pid, with);
    }
}

/// Returns the ids of all other running processes with a matching mark.
fn find_marked(is_wanted: impl Fn(&str) -> bool) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    let mut environment = Vec::new();
    let mut is_marked =
        |pid| marks(pid, &mut environment).is_some_and(|marks| marks.split(',').any(&is_wanted));
    pids.filter(|pid| *pid != own && is_marked(*pid)).collect()
}

/// Returns the marks of a process; `None` if it has ended or belongs to another user. `environment` is a
/// buffer: with one for all processes, most are read at once.
fn marks(pid: u32, environment: &mut Vec<u8>) -> Option<String> {
    environment.clear();
    environment.reserve(ENVIRONMENT_BYTES);
    let file = File::open(format!("/proc/{pid}/environ")).ok()?;
    // `take` avoids asking for the size, which is unknown.
    file.take(u64::MAX).read_to_end(environment).ok()?;
    // Few processes have the variable, so its name is searched for before anything is split.
    let name = memchr::memmem::find_iter(environment, TREE_VARIABLE);
    let value = name.map(|at| environment.split_at(at)).find_map(|(before, after)| {
        let value = after.get(TREE_VARIABLE.len()..)?.strip_prefix(b"=")?;
        matches!(before.last(), None | Some(0)).then(|| value.split(|byte| *byte == 0).next())?
    })?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Returns the start time of a process in clock ticks since boot.
fn start_time(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses that may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    (state != "Z").then(|| fields.nth(18).map(str::to_string)).flatten()
}

fn namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>().join(" ")
}
