//! Whether the process that makes a run is still there.
//!
//! It holds a lock on a file of its own as long as it lives, however it ends. What a run has come to says nothing about
//! that: one that was killed looks like one that waits for an agent.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// How often the sign is tried to be taken: somebody who only looks holds it for a moment.
const TRIES: usize = 10;
/// How long it takes until the next try.
const MOMENT: Duration = Duration::from_millis(5);

/// The sign that a run goes on.
#[derive(Debug)]
pub(super) struct Life {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

fn sign_of(store: &Path, run: &str) -> PathBuf {
    store.with_file_name("going-on").join(run)
}

impl Life {
    /// Says that a run goes on; none if another process says so already.
    pub fn begin(store: &Path, run: &str) -> io::Result<Option<Life>> {
        let path = sign_of(store, run);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        for _ in 0..TRIES {
            let file = File::create(&path)?;
            match file.try_lock() {
                Ok(()) if path.exists() => return Ok(Some(Life { path, _file: file })),
                // Whoever looked took it for what a process had left, and cleared it away.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => thread::sleep(MOMENT),
                // Without locks nobody can tell; two processes that finish the same run are rarer than such file systems.
                Err(TryLockError::Error(_)) => return Ok(Some(Life { path, _file: file })),
            }
        }
        Ok(None)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether a run goes on. What a process that was killed has left is cleared away.
pub(super) fn goes_on(store: &Path, run: &str) -> bool {
    let path = sign_of(store, run);
    let Ok(file) = File::open(&path) else { return false };
    match file.try_lock() {
        Ok(()) => {
            let _ = fs::remove_file(&path);
            false
        }
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(_)) => false,
    }
}
