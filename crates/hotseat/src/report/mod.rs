//! Reports: consumers of what happens in a run. They know nothing but events and what attempts came to.

mod attempts;
mod ci_commands;
mod console;
mod events;
mod failures;
mod github;
pub mod html;
mod json;
mod jsonl;
mod junit;
mod markdown;
mod record;
mod recordings;
mod reply;
mod saved;
mod spool;
mod trace;
mod words;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use ci_commands::CommandGuard;
pub use console::{Console, Look, conversation};
pub use events::{Events, mistake, note, nothing_ran, said, would_run};
pub use github::GitHub;
pub use html::Html;
pub use json::Json;
pub use jsonl::JsonLines;
pub use junit::JUnit;
pub use markdown::Markdown;
pub use recordings::Recordings;
pub use reply::Reply;
pub use saved::SavedCases;
pub use trace::TraceLines;
pub use words::{count, duration, lines, one_line, percent, wrap};

use crate::run::{RunEvent, Setting};

/// Somebody who is told what happens in a run.
pub trait Reporter: Send {
    /// Takes note of an event.
    ///
    /// # Errors
    /// When what it writes cannot be written.
    fn report(&mut self, event: &RunEvent) -> io::Result<()>;

    /// Takes note of another report that cannot be written.
    fn lost(&mut self, _output: &str) {}
}

/// A report file, by the ending of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.json`: one object with all results, in the order of the cases.
    Json,
    /// `.jsonl`: a line as each case ends.
    JsonLines,
    /// `.xml`: JUnit.
    JUnit,
    /// `.html`: a page for people, whole in itself.
    Html,
    /// `.md`: a short summary.
    Markdown,
}

/// The endings that name a format.
pub const ENDINGS: &str = ".json, .jsonl, .xml, .html, .md";

impl Format {
    /// The format that a file name asks for.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" => Some(Format::Json),
            "jsonl" | "ndjson" => Some(Format::JsonLines),
            "xml" => Some(Format::JUnit),
            "html" | "htm" => Some(Format::Html),
            "md" | "markdown" => Some(Format::Markdown),
            _ => None,
        }
    }

    /// Whether it is made for programs, so that nobody else can write it.
    pub fn is_for_programs(self) -> bool {
        match self {
            Format::Json | Format::JsonLines | Format::JUnit => true,
            Format::Html | Format::Markdown => false,
        }
    }

    /// Whether it needs the events of conversations, not only what they amount to.
    pub fn needs_events(self) -> bool {
        self == Format::Html
    }
}

/// A report to a file that is still empty. `shown` is what the file is called for people.
///
/// # Errors
/// When there is no room for what it has to remember.
pub fn open(file: File, format: Format, shown: &str, setting: Arc<Setting>) -> io::Result<Box<dyn Reporter>> {
    Ok(match format {
        Format::Json => Box::new(Json::new(file, shown.to_string(), setting)?),
        Format::JsonLines => Box::new(JsonLines::new(file, setting)),
        Format::JUnit => Box::new(JUnit::new(file)?),
        Format::Html => Box::new(Html::new(file, shown.to_string(), setting)?),
        Format::Markdown => Box::new(Markdown::new(file, setting)),
    })
}

/// Makes a file for a report, with its folder; one that is there already is emptied.
///
/// # Errors
/// When it cannot be written.
pub fn create(path: &Path) -> io::Result<File> {
    create_folder(path)?;
    File::create(path)
}

/// Makes a file for a report, with its folder, where there is none yet.
///
/// # Errors
/// When it cannot be written, or is there already.
pub fn create_new(path: &Path) -> io::Result<File> {
    create_folder(path)?;
    File::create_new(path)
}

fn create_folder(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let words =
        |error: io::Error| io::Error::new(error.kind(), format!("its folder cannot be made: {error}"));
    std::fs::create_dir_all(folder).map_err(words)
}

/// A report file that cannot be written.
#[derive(Debug)]
pub struct NotWritable {
    path: PathBuf,
    error: io::Error,
}

impl NotWritable {
    /// The file, as it is shown to people, and what is wrong with it.
    pub fn new(path: &Path, error: io::Error) -> Self {
        NotWritable { path: path.to_path_buf(), error }
    }
}

impl fmt::Display for NotWritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write {}: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for NotWritable {}
