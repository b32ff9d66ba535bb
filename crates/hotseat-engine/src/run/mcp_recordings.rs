//! Recordings of proxied MCP servers: collected from conversations, and written at the end of a run.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hotseat_mcp::{McpConversation, McpRecording, TextCleaner};

/// Recordings of a run.
#[derive(Debug, Default)]
pub struct McpRecorder {
    files: Mutex<BTreeMap<PathBuf, RecordedFile>>,
    /// Conversations that were not recorded, with the reasons.
    gaps: Mutex<Vec<McpRecordError>>,
}

/// Why the recording of a server is incomplete, or cannot be written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum McpRecordError {
    #[error("{gap} (MCP server `{server}` of `{case}`, not recorded in {})", .path.display())]
    Gap { gap: String, server: String, case: String, path: PathBuf },
    #[error("cannot write {}: {source}", .path.display())]
    Unwritable { path: PathBuf, source: Box<dyn Error + Send + Sync> },
}

/// The new contents of a file.
#[derive(Debug, Default)]
struct RecordedFile {
    server: String,
    /// Exchanges by conversation. The last attempt at a case replaces earlier ones.
    conversations: BTreeMap<String, McpRecording>,
}

/// The recording of one conversation.
#[derive(Debug, Clone)]
pub struct ConversationRecording {
    /// Key of the conversation.
    pub conversation: String,
    /// Servers to record, with their files.
    pub files: BTreeMap<String, PathBuf>,
    /// Removes secrets.
    pub cleaner: TextCleaner,
}

impl McpRecorder {
    /// Adds the exchanges of a conversation, without secrets. Those of a server are left out if some are missing.
    pub fn add(&self, conversation: &McpConversation, recording: &ConversationRecording) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        for (server, path) in &recording.files {
            let Some(mut recorded) = conversation.recording(server) else { continue };
            if let Some(gap) = conversation.recording_gap(server) {
                let (server, case) = (server.clone(), recording.conversation.clone());
                let gap = McpRecordError::Gap { gap, server, case, path: path.clone() };
                self.gaps.lock().unwrap_or_else(PoisonError::into_inner).push(gap);
                continue;
            }
            for exchange in &mut recorded.exchanges {
                exchange.conversation = Some(recording.conversation.clone());
            }
            // Exchanges without secrets are what a reader of their file gets.
            let Ok(recorded) = McpRecording::read(&recorded.write(&recording.cleaner)) else { continue };
            let file = files.entry(path.clone()).or_default();
            file.server.clone_from(server);
            file.conversations.insert(recording.conversation.clone(), recorded);
        }
    }

    /// Writes the files. Conversations of a file that were not recorded again stay. Returns what could not be
    /// written.
    pub fn write(&self, root: &Path) -> Vec<McpRecordError> {
        let files = std::mem::take(&mut *self.files.lock().unwrap_or_else(PoisonError::into_inner));
        let written = files.into_iter().map(|(path, file)| file.write(&root.join(path)));
        let gaps = std::mem::take(&mut *self.gaps.lock().unwrap_or_else(PoisonError::into_inner));
        written.filter_map(Result::err).chain(gaps).collect()
    }
}

impl RecordedFile {
    fn write(self, path: &Path) -> Result<(), McpRecordError> {
        let failed = |source| McpRecordError::Unwritable { path: path.to_owned(), source };
        let mut recording = match hotseat_document::read_text_file(path) {
            Ok(text) => McpRecording::read(&text).map_err(|error| failed(error.into()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => McpRecording::default(),
            Err(error) => return Err(failed(error.into())),
        };
        recording.server = self.server;
        let is_replaced =
            |name: &Option<String>| name.as_ref().is_none_or(|name| self.conversations.contains_key(name));
        recording.exchanges.retain(|exchange| !is_replaced(&exchange.conversation));
        recording.exchanges.extend(self.conversations.into_values().flat_map(|new| new.exchanges));
        recording.exchanges.sort_by(|one, other| one.conversation.cmp(&other.conversation));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| failed(error.into()))?;
        }
        // A run that is killed leaves the old file.
        let new = path.with_extension("new");
        let written = std::fs::write(&new, recording.write(&TextCleaner::default()));
        written.and_then(|()| std::fs::rename(&new, path)).map_err(|error| failed(error.into()))
    }
}
