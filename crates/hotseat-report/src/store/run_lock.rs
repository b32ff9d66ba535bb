//! Lock file that shows whether the process of a run is alive.
//!
//! The process holds a lock on a file of its own until it ends, however it ends. The stored results cannot
//! show this: a killed run looks like one that waits for an agent.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{io, thread};

use super::live;

/// Number of tries to take the lock; a process that only probes it holds it for a moment.
const LOCK_TRIES: usize = 10;
/// Delay between two tries.
const RETRY_DELAY: Duration = Duration::from_millis(5);

/// Lock that marks a run as running.
#[derive(Debug)]
pub(super) struct RunLock {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

fn lock_path(store: &Path, run: &str) -> PathBuf {
    store.with_file_name("locks").join(run)
}

impl RunLock {
    /// Takes the lock of a run. Returns `None` if another process holds it.
    pub fn acquire(store: &Path, run: &str) -> io::Result<Option<RunLock>> {
        let path = lock_path(store, run);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        for _ in 0..LOCK_TRIES {
            let file = File::create(&path)?;
            match file.try_lock() {
                Ok(()) if path.exists() => return Ok(Some(RunLock { path, _file: file })),
                // A process that probed the lock took it for a stale file and removed it.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => thread::sleep(RETRY_DELAY),
                // Without file locks the state is unknown. Two processes that resume the same run are rarer
                // than such file systems.
                Err(TryLockError::Error(_)) => return Ok(Some(RunLock { path, _file: file })),
            }
        }
        Ok(None)
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns true if a run is running. Removes the stale lock file of a killed process.
pub(super) fn is_running(store: &Path, run: &str) -> bool {
    let path = lock_path(store, run);
    let Ok(file) = File::open(&path) else { return false };
    match file.try_lock() {
        Ok(()) => {
            let _ = fs::remove_file(&path);
            live::remove_files(store, run);
            false
        }
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(_)) => false,
    }
}
