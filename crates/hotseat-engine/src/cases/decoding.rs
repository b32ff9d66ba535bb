//! What cases inherit, and what they are decoded with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::agent_name::{AgentName, unknown_agent};
use super::assertions::AssertionBlock;
use super::awaiting_markers::AwaitingMarkers;
use super::shared_settings::SharedSettings;
use hotseat_document::{Diagnostic, Diagnostics, DocumentNode, SourceText};
use hotseat_targets::recorder::SecretRedactor;

/// Parses a source text into a tree.
pub type ParseSource = fn(&Arc<SourceText>) -> Result<DocumentNode, Diagnostics>;

/// Settings that every case inherits from the target.
#[derive(Debug, Clone, Default)]
pub struct InheritedSettings {
    /// Assertions of each conversation.
    pub case: Arc<AssertionBlock>,
    /// Assertions of each turn.
    pub turn: Arc<AssertionBlock>,
    /// Markers that show that the agent waits.
    pub signs: Arc<AwaitingMarkers>,
}

/// Inherited settings by agent name.
pub type AgentsByName = BTreeMap<String, InheritedSettings>;

/// Project-wide settings for decoding cases.
#[derive(Debug, Clone, Copy)]
pub struct DecodeSettings<'a> {
    /// Settings inherited from the target.
    pub inherited: &'a InheritedSettings,
    /// Settings inherited from named agents.
    pub agents: &'a Arc<AgentsByName>,
    /// Settings shared by all cases of the project.
    pub shared: &'a Arc<SharedSettings>,
    /// Folder of the project.
    pub root: &'a Path,
    /// Environment variables.
    pub environment: &'a BTreeMap<String, String>,
    /// Redactor for secrets of the environment.
    pub redactor: &'a SecretRedactor,
    /// True if cases without a simulator of their own get the default one.
    pub default_simulator: bool,
}

/// Settings for decoding the cases of one suite.
#[derive(Debug, Clone, Copy)]
pub struct DecodeContext<'a> {
    /// Project-wide settings.
    pub decoding: DecodeSettings<'a>,
    /// Settings shared by the cases of the suite.
    pub shared: &'a Arc<SharedSettings>,
    /// Folders in which files named by cases are searched.
    pub folders: &'a Arc<[PathBuf]>,
}

impl AgentName {
    /// Returns the settings inherited from the agent. Fails if the project has no such agent.
    pub(super) fn inherited<'a>(
        &self,
        agents: &'a AgentsByName,
    ) -> Result<&'a InheritedSettings, Diagnostic> {
        let found = agents.get(&self.name);
        found.ok_or_else(|| {
            unknown_agent(&self.name, agents.keys().map(String::as_str)).at(self.place.clone())
        })
    }
}
