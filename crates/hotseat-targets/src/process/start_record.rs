//! Records that this process runs commands of a project, so that the next run of the project knows of it.
//!
//! While commands run, an empty file in the folder for temporary files names this process. A killed run leaves its
//! file. Only then the next run searches the processes of the machine for those that were left.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::tree::MarkOwner;

/// How many commands of each project this process runs.
static RUNNING: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

/// Keeps the record of this process while a command of a project runs.
#[derive(Debug)]
pub struct StartRecord {
    group: u64,
}

impl StartRecord {
    /// Writes the record, unless another command has written it. `group` is the project.
    pub fn new(group: u64) -> StartRecord {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let count = running.entry(group).or_default();
        *count += 1;
        if *count == 1 {
            // Without a record the command still starts; only a killed run would not be noticed.
            let _ = write(&folder(), &own_name(group));
        }
        StartRecord { group }
    }
}

impl Drop for StartRecord {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let count = running.entry(self.group).or_default();
        *count = count.saturating_sub(1);
        if *count == 0 {
            running.remove(&self.group);
            let _ = fs::remove_file(folder().join(own_name(self.group)));
        }
    }
}

/// Returns the records of killed processes that ran commands of a project.
pub fn killed_starters(group: u64) -> Vec<PathBuf> {
    let prefix = project_prefix(group);
    let Ok(entries) = fs::read_dir(folder()) else { return Vec::new() };
    let is_killed = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let owner = name.and_then(|name| MarkOwner::parse(name.strip_prefix(&prefix)?));
        owner.is_some_and(|owner| owner.is_gone())
    };
    entries.flatten().map(|entry| entry.path()).filter(is_killed).collect()
}

/// The folder of all records of this user.
fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("hotseat-processes-{}", rustix::process::getuid().as_raw()))
}

fn project_prefix(group: u64) -> String {
    format!("{group:x}-")
}

fn own_name(group: u64) -> String {
    format!("{}{}", project_prefix(group), MarkOwner::current())
}

fn write(folder: &Path, name: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    File::create(folder.join(name)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_lasts_as_long_as_the_last_command() {
        let group = 0x5eed_0001;
        let path = folder().join(own_name(group));
        let first = StartRecord::new(group);
        let second = StartRecord::new(group);
        assert!(path.exists());
        drop(first);
        assert!(path.exists(), "the second command still runs");
        assert!(killed_starters(group).is_empty(), "this process is alive");
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn a_killed_process_is_known_by_its_record() {
        let group = 0x5eed_0002;
        // The start time of a process never is zero.
        let gone = MarkOwner { started: "0".to_string(), ..MarkOwner::current() };
        let name = format!("{}{gone}", project_prefix(group));
        write(&folder(), &name).unwrap();
        assert_eq!(killed_starters(group), [folder().join(&name)]);
        assert!(killed_starters(group + 1).is_empty(), "it is of another project");
        fs::remove_file(folder().join(name)).unwrap();
    }
}
