//! What the processes of a command are known by, wherever they go.
//!
//! A process leaves its process group with `setsid`, and its parent by ending it. What it does not leave is the
//! environment that it was started with: each command is started with a mark of its own in [`TREE_VARIABLE`], which all
//! that it starts inherits. On Linux the marks of all processes can be read, so those of a command are found when it is
//! ended; and a mark names the process that started the command, so what a run has left that was killed is found by the
//! next one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal};

/// The environment variable that holds the marks of a process, those of commands within commands separated by commas.
pub const TREE_VARIABLE: &str = "HOTSEAT_PROCESS_TREE";

/// How often processes are looked for that began while others were ended.
const MAX_ROUNDS: usize = 8;

/// The mark of the processes of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeMark(String);

/// The process that started a command: its id, when it began, and the namespace in which it has that id.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    pid: u32,
    began: String,
    namespace: String,
}

/// A process that a run has left which was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanProcess {
    /// Its id.
    pub pid: u32,
    /// Its program and arguments.
    pub command: String,
}

impl TreeMark {
    /// A mark that no other command has. `group` says to which project the command belongs.
    pub fn new(group: u64) -> TreeMark {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Owner { pid, began, namespace } = Owner::this();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        TreeMark(format!("{pid}.{began}.{namespace}.{group:x}.{number}"))
    }

    /// The value of the variable for a command, where it has this one here.
    pub fn within(&self, outer: Option<&str>) -> String {
        match outer.filter(|outer| !outer.is_empty()) {
            Some(outer) => format!("{outer},{}", self.0),
            None => self.0.clone(),
        }
    }

    /// Kills all processes that have the mark.
    pub fn kill(&self) {
        for _ in 0..MAX_ROUNDS {
            let found = marked(|mark| mark == self.0);
            if found.is_empty() {
                return;
            }
            found.into_iter().for_each(|pid| signal(pid, Signal::KILL));
        }
    }

    /// Asks all processes that have the mark to end.
    pub fn terminate(&self) {
        marked(|mark| mark == self.0).into_iter().for_each(|pid| signal(pid, Signal::TERM));
    }
}

impl Owner {
    /// This process.
    fn this() -> Owner {
        static THIS: OnceLock<Owner> = OnceLock::new();
        let read = || {
            let pid = std::process::id();
            Owner { pid, began: began(pid).unwrap_or_default(), namespace: namespace() }
        };
        THIS.get_or_init(read).clone()
    }

    /// Whether it runs; not known of processes of another namespace.
    fn is_gone(&self) -> bool {
        self.namespace == namespace() && began(self.pid).as_deref() != Some(&self.began)
    }
}

/// The processes that runs of a project have started which were killed; not those that this process is one of.
pub fn orphans(group: u64) -> Vec<OrphanProcess> {
    let group = format!("{group:x}");
    let own = marks(std::process::id()).unwrap_or_default();
    let of_killed = |mark: &str| {
        if own.split(',').any(|own| own == mark) {
            return false;
        }
        let parts: Vec<&str> = mark.split('.').collect();
        let [pid, began, namespace, of, _] = parts[..] else { return false };
        let Ok(pid) = pid.parse() else { return false };
        of == group && Owner { pid, began: began.to_string(), namespace: namespace.to_string() }.is_gone()
    };
    marked(of_killed).into_iter().map(|pid| OrphanProcess { pid, command: command_line(pid) }).collect()
}

/// Asks processes to end, or kills them.
pub fn end_orphans(orphans: &[OrphanProcess], kill: bool) {
    let with = if kill { Signal::KILL } else { Signal::TERM };
    orphans.iter().for_each(|orphan| signal(orphan.pid, with));
}

fn signal(pid: u32, with: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // A process that is gone already is what was wanted.
        let _ = rustix::process::kill_process(pid, with);
    }
}

/// The processes, but for this one and those that have ended, with a mark that is looked for.
fn marked(is_wanted: impl Fn(&str) -> bool) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    pids.filter(|pid| *pid != own && marks(*pid).is_some_and(|marks| marks.split(',').any(&is_wanted)))
        .collect()
}

/// The marks of a process; none of one that has ended or belongs to somebody else.
fn marks(pid: u32) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|one| one.strip_prefix(TREE_VARIABLE.as_bytes())?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// When a process began, in ticks since the machine did.
fn began(pid: u32) -> Option<String> {
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
