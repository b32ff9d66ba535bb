//! Identity of an open file: shows whether its path still leads to it.

use std::fs;
use std::io;
use std::path::Path;

/// Identity of a file in its file system. A file that is open keeps its identity, also after its name was deleted, so no other file
/// gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl FileIdentity {
    /// Returns the identity of the file at a path. Fails if there is none. Other systems than Unix do not let anyone
    /// delete or replace an open file, so there all files are the same.
    pub fn from_path(path: &Path) -> io::Result<FileIdentity> {
        let metadata = fs::metadata(path)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Ok(FileIdentity { device: metadata.dev(), inode: metadata.ino() })
        }
        #[cfg(not(unix))]
        {
            let _ = metadata;
            Ok(FileIdentity {})
        }
    }

    /// True if this file is at the path.
    pub fn is_at(self, path: &Path) -> bool {
        FileIdentity::from_path(path).is_ok_and(|found| found == self)
    }
}
