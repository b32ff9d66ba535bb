//! The git commit that a run was made with.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Maximum wait for git after a run has ended.
const GIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Git commit of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitCommit {
    /// Hash of the commit.
    pub id: String,
    /// True if tracked files have changes.
    pub dirty: bool,
}

/// Pending lookup of the commit; the run does not wait for it.
pub(super) struct CommitLookup(Option<Receiver<GitCommit>>);

impl CommitLookup {
    /// Starts to query the repository of a folder.
    pub fn start(folder: PathBuf) -> CommitLookup {
        let (told, answer) = channel();
        let looks = move || {
            if let Some(commit) = query_git(&folder) {
                let _ = told.send(commit);
            }
        };
        // If no thread can be started, the commit stays unknown. This is not an error.
        let begun = std::thread::Builder::new().name("git".to_string()).spawn(looks);
        CommitLookup(begun.is_ok().then_some(answer))
    }

    /// Returns the commit once: if it is available, or, after the end of the run, if it arrives within the
    /// timeout.
    pub fn take_commit(&mut self, is_over: bool) -> Option<GitCommit> {
        let answer = self.0.as_ref()?;
        let found = if is_over { answer.recv_timeout(GIT_TIMEOUT).ok() } else { answer.try_recv().ok() };
        if found.is_some() {
            self.0 = None;
        }
        found
    }
}

fn query_git(folder: &Path) -> Option<GitCommit> {
    // The header line contains the commit; any other line is a changed file.
    let status = ["status", "--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules"];
    let output = Command::new("git")
        .arg("--no-optional-locks")
        .args(status)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    parse_status(&String::from_utf8_lossy(&output.ok().filter(|output| output.status.success())?.stdout))
}

fn parse_status(told: &str) -> Option<GitCommit> {
    let id = told.lines().find_map(|line| line.strip_prefix("# branch.oid "))?;
    let is_hash = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let dirty = told.lines().any(|line| !line.starts_with('#') && !line.is_empty());
    is_hash.then(|| GitCommit { id: id.to_string(), dirty })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_git_status() {
        let clean = "# branch.oid 12ab\n# branch.head main\n";
        assert_eq!(parse_status(clean), Some(GitCommit { id: "12ab".to_string(), dirty: false }));
        let changed = format!("{clean}1 .M N... 100644 100644 100644 1 1 a.rs\n");
        assert_eq!(parse_status(&changed), Some(GitCommit { id: "12ab".to_string(), dirty: true }));
        assert_eq!(parse_status("# branch.oid (initial)\n# branch.head main\n"), None);
        assert_eq!(parse_status(""), None);
    }
}
