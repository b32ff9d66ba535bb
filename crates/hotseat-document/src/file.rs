//! Files that are named in other files, found in folders, or read several times.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Opens a file to read it. A folder is an error, and so is a pipe or device: it may never end, cannot be read again,
/// and a pipe without a writer cannot even be opened.
///
/// # Errors
/// If the file cannot be opened.
pub fn open_file(path: &Path) -> io::Result<File> {
    match fs::metadata(path)?.is_dir() {
        true => Err(io::Error::other("it is a folder")),
        false => refuse_pipe(path).and_then(|()| File::open(path)),
    }
}

/// Reads a file, but no pipe or device, as [`open_file`] does.
///
/// # Errors
/// If the file cannot be read.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    refuse_pipe(path)?;
    fs::read(path)
}

/// Reads a file of UTF-8, as [`read_file`] does.
///
/// # Errors
/// If the file cannot be read, or is not UTF-8.
pub fn read_text_file(path: &Path) -> io::Result<String> {
    refuse_pipe(path)?;
    let mut text = fs::read_to_string(path)?;
    if text.starts_with('\u{FEFF}') {
        text.drain(..'\u{FEFF}'.len_utf8());
    }
    Ok(text)
}

fn refuse_pipe(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    // A folder is an error when it is read.
    match metadata.is_file() || metadata.is_dir() {
        true => Ok(()),
        false => Err(io::Error::other("it is a pipe or a device; save the text as a file")),
    }
}
