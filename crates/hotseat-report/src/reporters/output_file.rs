//! Files of reports.

use std::fs::{File, Metadata, TryLockError};
use std::io::{self, BufWriter, Seek, Write};
#[cfg(unix)]
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Outputs that the process has open. A new file in place of one would not get what is printed.
const OPEN_OUTPUTS: [&str; 2] = ["/dev/stdout", "/dev/stderr"];

/// A file that is written once, as a whole. What it contains stays until then, also if the new content cannot be written.
/// A file that did not exist does not remain without content.
pub struct OutputFile {
    file: File,
    /// Its path without links, if a new file takes its place.
    path: Option<PathBuf>,
    /// True if the file did not exist, and has not been written yet.
    is_unwritten: bool,
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let (true, Some(path)) = (self.is_unwritten, &self.path) {
            // If this fails, an empty file remains, and the failure to write it is reported anyway.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl From<File> for OutputFile {
    /// Creates an output that is written into the file itself, after what it contains.
    fn from(file: File) -> OutputFile {
        OutputFile { file, path: None, is_unwritten: false }
    }
}

impl OutputFile {
    /// Writes the content. It is written directly if no new file can take the place of this one, and to devices and pipes.
    pub(super) fn write(
        &mut self,
        write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.replace_content(write)?;
        self.is_unwritten = false;
        Ok(())
    }

    fn replace_content(
        &mut self,
        write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(path) = &self.path else { return write_buffered(&mut self.file, write) };
        let Some(mut new) = self.new_file(path) else {
            truncate(&self.file)?;
            return write_buffered(&mut self.file, write);
        };
        write_buffered(new.as_file_mut(), write)?;
        match new.persist(path) {
            Ok(_) => Ok(()),
            // Nothing takes the place of a mount point.
            Err(failed) if failed.error.kind() == io::ErrorKind::ResourceBusy => {
                let mut new = failed.file;
                new.rewind()?;
                truncate(&self.file)?;
                io::copy(&mut new, &mut self.file).map(drop)
            }
            Err(failed) => Err(failed.error),
        }
    }

    /// Creates the file that takes the place of this one. `None` if its folder or its owner forbids that.
    fn new_file(&self, path: &Path) -> Option<NamedTempFile> {
        let (folder, name) = (path.parent()?, path.file_name()?.to_str()?);
        let new =
            tempfile::Builder::new().prefix(&format!(".{name}.")).suffix(".tmp").tempfile_in(folder).ok()?;
        let (old, own) = (self.file.metadata().ok()?, new.as_file().metadata().ok()?);
        new.as_file().set_permissions(old.permissions()).ok()?;
        has_same_owner(&old, &own).then_some(new)
    }

    /// Returns the file, to write it while the run continues. Its content is removed.
    pub(super) fn into_stream(mut self) -> io::Result<File> {
        truncate(&self.file)?;
        self.is_unwritten = false;
        self.file.try_clone()
    }
}

fn write_buffered(
    file: &mut File,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.flush()
}

#[cfg(unix)]
fn has_same_owner(one: &Metadata, other: &Metadata) -> bool {
    (one.uid(), one.gid()) == (other.uid(), other.gid())
}

#[cfg(not(unix))]
fn has_same_owner(_: &Metadata, _: &Metadata) -> bool {
    true
}

#[cfg(unix)]
fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
    false
}

/// Opens an output, and creates it and its folder if necessary. Fails if the file cannot be written, or another run is writing it.
pub fn open_output_file(path: &Path) -> io::Result<OutputFile> {
    let is_unwritten = !path.exists();
    let file = open_locked(path)?;
    let metadata = file.metadata()?;
    let mut open = OPEN_OUTPUTS.iter().filter_map(|output| std::fs::metadata(output).ok());
    if !metadata.is_file() || open.any(|output| is_same_file(&output, &metadata)) {
        truncate(&file)?;
        return Ok(file.into());
    }
    Ok(OutputFile { file, path: Some(path.canonicalize()?), is_unwritten })
}

/// Writes a file, and creates its folder if necessary. Fails if it cannot be written, or a run is writing it.
pub fn write_output_file(path: &Path, text: &str) -> io::Result<()> {
    open_output_file(path)?.write(|out| out.write_all(text.as_bytes()))
}

fn open_locked(path: &Path) -> io::Result<File> {
    create_folder(path)?;
    let file = File::options().write(true).create(true).truncate(false).open(path)?;
    lock(&file)?;
    Ok(file)
}

/// Creates a file that people edit later, and its folder. Fails if it cannot be written, or has content already.
pub fn create_edited_file(path: &Path) -> io::Result<File> {
    let file = open_locked(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.len() > 0 {
        let message = "it has content, perhaps with your changes; choose another name, or delete the file";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    Ok(file)
}

/// Creates a file that is written during a run, and its folder. An existing file is truncated. Fails if it cannot be written, or a run is writing it.
pub fn create_file(path: &Path) -> io::Result<File> {
    let file = open_locked(path)?;
    truncate(&file)?;
    Ok(file)
}

/// Creates a report file and its folder, if the file does not exist yet. Fails if it cannot be written, or
/// exists.
pub fn create_new_file(path: &Path) -> io::Result<File> {
    create_folder(path)?;
    File::create_new(path)
}

fn create_folder(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let words =
        |error: io::Error| io::Error::new(error.kind(), format!("its folder cannot be created: {error}"));
    std::fs::create_dir_all(folder).map_err(words)
}

/// Locks a file until it is closed. Devices and pipes have any number of writers, and some file systems have no locks.
fn lock(file: &File) -> io::Result<()> {
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let message = "another run is writing this file; wait for its end, or choose another name";
            Err(io::Error::new(io::ErrorKind::ResourceBusy, message))
        }
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Removes the content of a file. Devices and pipes have none.
fn truncate(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) }
}
