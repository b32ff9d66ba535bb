//! Files of reports.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use hotseat_engine::run::RunEvent;

use super::Reporter;

/// Opens a report file, and creates it and its folder if necessary. What it contains stays until the report is written, so a run that
/// is killed leaves the report of the run before. Fails if the file cannot be written, or another run is writing it.
pub fn open_report_file(path: &Path) -> io::Result<File> {
    create_folder(path)?;
    let file = File::options().write(true).create(true).truncate(false).open(path)?;
    lock(&file)?;
    Ok(file)
}

/// Creates a file that people edit later, and its folder. Fails if it cannot be written, or has content already.
pub fn create_edited_file(path: &Path) -> io::Result<File> {
    let file = open_report_file(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.len() > 0 {
        let message = "it has content, perhaps with your changes; choose another name, or delete the file";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    Ok(file)
}

/// Creates a file and its folder. An existing file is truncated. Fails if it cannot be written, or a run is writing it.
pub fn create_file(path: &Path) -> io::Result<File> {
    let file = open_report_file(path)?;
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
pub(super) fn truncate(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) }
}

/// A report that is written at the end of the run, in place of the content that the file has.
pub(super) struct EndReporter {
    report: Box<dyn Reporter>,
    file: File,
}

impl EndReporter {
    pub fn new(report: Box<dyn Reporter>, file: File) -> EndReporter {
        EndReporter { report, file }
    }
}

impl Reporter for EndReporter {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        if let RunEvent::Ended(_) = event {
            truncate(&self.file)?;
        }
        self.report.report(event)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.report.flush()
    }

    fn tick(&mut self) -> io::Result<()> {
        self.report.tick()
    }

    fn output_failed(&mut self, output: &str) {
        self.report.output_failed(output);
    }
}
