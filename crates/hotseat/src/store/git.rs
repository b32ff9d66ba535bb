//! What of a repository a run was made with.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long git is waited for when a run is over before it has answered.
const PATIENCE: Duration = Duration::from_millis(500);

/// A commit, and whether the files were just those.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its hash.
    pub id: String,
    /// Whether files that belong to it were changed.
    pub dirty: bool,
}

/// Git while it looks; a run does not wait for that.
pub(super) struct Looking(Option<Receiver<Commit>>);

impl Looking {
    /// Asks about the repository that a folder lies in.
    pub fn at(folder: PathBuf) -> Looking {
        let (told, answer) = channel();
        let looks = move || {
            if let Some(commit) = look(&folder) {
                let _ = told.send(commit);
            }
        };
        // Without a thread for it nothing is known, which is no failure.
        let begun = std::thread::Builder::new().name("git".to_string()).spawn(looks);
        Looking(begun.is_ok().then_some(answer))
    }

    /// The answer, once: if it is there, or comes while a run that is over waits for it.
    pub fn answer(&mut self, is_over: bool) -> Option<Commit> {
        let answer = self.0.as_ref()?;
        let found = if is_over { answer.recv_timeout(PATIENCE).ok() } else { answer.try_recv().ok() };
        if found.is_some() {
            self.0 = None;
        }
        found
    }
}

fn look(folder: &Path) -> Option<Commit> {
    // The first line tells the commit, and any line behind the head that a file is changed.
    let status = ["status", "--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules"];
    let output = Command::new("git")
        .arg("--no-optional-locks")
        .args(status)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    read(&String::from_utf8_lossy(&output.ok().filter(|output| output.status.success())?.stdout))
}

fn read(told: &str) -> Option<Commit> {
    let id = told.lines().find_map(|line| line.strip_prefix("# branch.oid "))?;
    let is_hash = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let dirty = told.lines().any(|line| !line.starts_with('#') && !line.is_empty());
    is_hash.then(|| Commit { id: id.to_string(), dirty })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_tells_is_read() {
        let clean = "# branch.oid 12ab\n# branch.head main\n";
        assert_eq!(read(clean), Some(Commit { id: "12ab".to_string(), dirty: false }));
        let changed = format!("{clean}1 .M N... 100644 100644 100644 1 1 a.rs\n");
        assert_eq!(read(&changed), Some(Commit { id: "12ab".to_string(), dirty: true }));
        assert_eq!(read("# branch.oid (initial)\n# branch.head main\n"), None);
        assert_eq!(read(""), None);
    }
}
