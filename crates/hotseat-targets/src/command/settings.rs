//! The settings of a target that runs a program.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::target::template::{CaseInputs, Placeholder, references};
use crate::target::{HistoryMode, ProtocolCapabilities};

/// A target that runs a program.
#[derive(Debug, Clone)]
pub struct CommandTarget {
    /// The program and its arguments; with [`CommandProtocol::Text`] these are templates.
    pub command: Vec<String>,
    /// The protocol of the program.
    pub protocol: CommandProtocol,
    /// Working folder.
    pub folder: PathBuf,
    /// Additional environment variables.
    pub env: BTreeMap<String, String>,
    /// The part of the conversation sent with each message.
    pub history: HistoryMode,
    /// Capabilities of the program.
    pub capabilities: ProtocolCapabilities,
    /// Values defined by the case.
    pub given: CaseInputs,
    /// True if all received data is kept in the trace.
    pub keep_raw: bool,
}

impl CommandTarget {
    /// Returns true if the arguments of the command contain the user's message.
    pub(super) fn has_message_argument(&self) -> bool {
        let mut carried = self.command.iter().flat_map(|word| references(word).unwrap_or_default());
        carried.any(|reference| matches!(reference.placeholder, Placeholder::Message | Placeholder::Messages))
    }
}

/// Protocol of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandProtocol {
    /// JSON lines, one process per conversation.
    JsonLines,
    /// Plain text, one process per turn.
    Text,
}
