//! Cassettes: one folder for each case with everything that others answered in its conversation: relayed models,
//! proxied MCP servers, simulators and judges.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hotseat_mcp::McpRecording;
use hotseat_model::serve::{CassetteFile, ModelCassette};
use hotseat_targets::recording::file_name;
use hotseat_trace::format_count;

use super::mcp_recordings::{McpRecordError, McpRecorder};
use crate::cases::{ProxyMode, RelayMode, TestCase};
use crate::roles::RoleCassette;

/// File with the exchanges of relayed models.
const MODELS_FILE: &str = "models.jsonl";
/// File with the answers of simulators and judges.
const ROLES_FILE: &str = "roles.jsonl";
/// End of the names of files with the exchanges of MCP servers.
const SERVER_FILE_END: &str = ".mcp.jsonl";

/// The cassettes of a run.
#[derive(Debug)]
pub struct RunCassettes {
    folder: PathBuf,
    mode: CassetteMode,
    /// Held while a cassette is replaced: how many could not be written.
    unwritten: Mutex<usize>,
}

/// Why a cassette cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CassetteError {
    /// The case has none, or one without a part that it needs.
    #[error("no cassette: {0} was not found")]
    Missing(String),
    /// A file cannot be read, or has another content.
    #[error("the cassette is damaged: {}: {source}", .path.display())]
    Damaged { path: PathBuf, source: Box<dyn Error + Send + Sync> },
}

impl CassetteError {
    fn damaged(path: &Path, source: impl Into<Box<dyn Error + Send + Sync>>) -> CassetteError {
        CassetteError::Damaged { path: path.to_owned(), source: source.into() }
    }
}

/// Why a cassette is not replaced by what was recorded.
#[derive(Debug, thiserror::Error)]
pub(super) enum CassetteSaveError {
    #[error("the conversation did not reach its end")]
    Incomplete,
    #[error("{}: {source}", .path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Servers(#[from] McpRecordError),
}

/// Whether cassettes are recorded or replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CassetteMode {
    /// Everybody is asked, and the answers are recorded.
    Record,
    /// Recorded answers only.
    Replay,
}

/// The cassette of one attempt.
#[derive(Debug)]
pub struct AttemptCassette {
    content: CassetteContent,
    pub(super) roles: Arc<RoleCassette>,
}

#[derive(Debug)]
enum CassetteContent {
    Recorded { target: PathBuf, new: PathBuf, models: Arc<CassetteFile>, servers: Arc<McpRecorder> },
    Replayed { models: Arc<ModelCassette>, servers: BTreeMap<String, Arc<McpRecording>> },
}

impl RunCassettes {
    /// Creates the cassettes of a run in a folder.
    pub fn new(folder: PathBuf, mode: CassetteMode) -> RunCassettes {
        RunCassettes { folder, mode, unwritten: Mutex::default() }
    }

    /// Returns an error if complete cassettes could not be written. The attempts have warnings with the reasons.
    pub fn write_error(&self) -> Option<String> {
        let unwritten = *self.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
        let words = format_count(unwritten, "cassette");
        (unwritten > 0).then(|| format!("{words} in {} could not be written", self.folder.display()))
    }

    /// The folder of all cassettes.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// True if the run records cassettes.
    pub(super) fn is_recording(&self) -> bool {
        self.mode == CassetteMode::Record
    }

    /// Opens the cassette of an attempt. Fails if there is none to replay, or it cannot be read.
    pub(super) fn open(
        &self,
        suite_name: &str,
        case: &TestCase,
        attempt: usize,
    ) -> Result<AttemptCassette, CassetteError> {
        let name = file_name(Some(suite_name), &case.id);
        let name = name.strip_suffix(".json").unwrap_or(&name);
        let target = self.folder.join(name);
        match self.mode {
            CassetteMode::Record => {
                let new = self.folder.join(format!("{name}.new-{}-{attempt}", std::process::id()));
                let models = Arc::new(CassetteFile::new(new.join(MODELS_FILE)));
                let servers = Arc::default();
                let content = CassetteContent::Recorded { target, new, models, servers };
                Ok(AttemptCassette { content, roles: Arc::default() })
            }
            CassetteMode::Replay => AttemptCassette::read(case, &target),
        }
    }
}

impl AttemptCassette {
    /// Reads the parts of a cassette that a case needs.
    fn read(case: &TestCase, folder: &Path) -> Result<AttemptCassette, CassetteError> {
        let mut models = ModelCassette::default();
        if case.models.has_relays() {
            let (path, text) = read_part(folder, MODELS_FILE)?;
            models = ModelCassette::parse(&text).map_err(|error| CassetteError::damaged(&path, error))?;
        }
        let mut servers = BTreeMap::new();
        for name in case.mcp.proxies() {
            let (path, text) = read_part(folder, &server_file(name))?;
            let recording =
                McpRecording::read(&text).map_err(|error| CassetteError::damaged(&path, error))?;
            servers.insert(name.to_string(), Arc::new(recording));
        }
        let roles = match read_part(folder, ROLES_FILE) {
            Ok((path, text)) => {
                RoleCassette::parse(&text).map_err(|error| CassetteError::damaged(&path, error))?
            }
            Err(CassetteError::Missing(_)) => RoleCassette::without_answers(),
            Err(damaged) => return Err(damaged),
        };
        let content = CassetteContent::Replayed { models: Arc::new(models), servers };
        Ok(AttemptCassette { content, roles: Arc::new(roles) })
    }

    /// What relays of the case do.
    pub(super) fn relay_mode(&self) -> RelayMode {
        match &self.content {
            CassetteContent::Recorded { models, .. } => RelayMode::Record(models.clone()),
            CassetteContent::Replayed { models, .. } => RelayMode::Replay(models.clone()),
        }
    }

    /// What proxies of the case do.
    pub(super) fn proxy_mode(&self) -> ProxyMode {
        match &self.content {
            CassetteContent::Recorded { .. } => ProxyMode::Record,
            CassetteContent::Replayed { servers, .. } => ProxyMode::Replay(servers.clone()),
        }
    }

    /// The recorder of proxied servers, if they are recorded.
    pub(super) fn server_recorder(&self) -> Option<&Arc<McpRecorder>> {
        match &self.content {
            CassetteContent::Recorded { servers, .. } => Some(servers),
            CassetteContent::Replayed { .. } => None,
        }
    }

    /// Replaces the cassette of the case by what was recorded, if the conversation is complete.
    ///
    /// # Errors
    /// Why the cassette stays as it was.
    pub(super) fn save(
        &self,
        case: &TestCase,
        is_complete: bool,
        run: &RunCassettes,
    ) -> Result<(), CassetteSaveError> {
        let CassetteContent::Recorded { target, new, servers, .. } = &self.content else { return Ok(()) };
        let is_complete = is_complete && (!case.models.has_relays() || new.join(MODELS_FILE).exists());
        let written = match is_complete {
            true => {
                let written = self.write(new, servers);
                let mut unwritten = run.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
                let written = written.and_then(|()| {
                    replace_parts(new, target)
                        .map_err(|source| CassetteSaveError::Folder { path: target.clone(), source })
                });
                *unwritten += usize::from(written.is_err());
                written
            }
            false => Err(CassetteSaveError::Incomplete),
        };
        if written.is_err() {
            let _ = std::fs::remove_dir_all(new);
        }
        written
    }

    fn write(&self, folder: &Path, servers: &McpRecorder) -> Result<(), CassetteSaveError> {
        let failed = |source| CassetteSaveError::Folder { path: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        std::fs::write(folder.join(ROLES_FILE), self.roles.to_text()).map_err(failed)?;
        servers.write(folder).into_iter().next().map_or(Ok(()), |error| Err(error.into()))
    }
}

/// File with the exchanges of a proxied MCP server.
pub(super) fn server_file(server: &str) -> String {
    format!("{server}{SERVER_FILE_END}")
}

fn read_part(folder: &Path, name: &str) -> Result<(PathBuf, String), CassetteError> {
    let path = folder.join(name);
    match hotseat_document::read_text_file(&path) {
        Ok(text) => Ok((path, text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(CassetteError::Missing(path.display().to_string()))
        }
        Err(error) => Err(CassetteError::damaged(&path, error)),
    }
}

/// Replaces the parts of a cassette by those in another folder. Other files in it stay.
fn replace_parts(new: &Path, target: &Path) -> io::Result<()> {
    if !target.exists() {
        return std::fs::rename(new, target);
    }
    let parts = file_names(new)?;
    for name in &parts {
        std::fs::rename(new.join(name), target.join(name))?;
    }
    for name in file_names(target)?.difference(&parts) {
        if name.to_str().is_some_and(is_part) {
            std::fs::remove_file(target.join(name))?;
        }
    }
    std::fs::remove_dir(new)
}

/// True for the names of the files of a cassette.
fn is_part(name: &str) -> bool {
    [MODELS_FILE, ROLES_FILE].contains(&name) || name.ends_with(SERVER_FILE_END)
}

/// Returns the names of the files in a folder.
fn file_names(folder: &Path) -> io::Result<BTreeSet<OsString>> {
    std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
}
