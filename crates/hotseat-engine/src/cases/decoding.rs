//! What cases inherit, and what they are decoded with.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::agent_name::{AgentName, unknown_agent};
use super::assertions::AssertionBlock;
use super::awaiting_markers::{AwaitingMarkers, awaiting_markers};
use super::shared_settings::SharedSettings;
use super::variables::{VariableScope, interpolate, uses_hook_variables};
use hotseat_document::{Diagnostic, Diagnostics, DocumentNode, Kind, MapView, NodeValue, Shape, SourceText};
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
    /// The target, if these settings use variables of hooks: each case reads them with its own values.
    open: Option<Arc<OpenSettings>>,
}

/// Settings of a target with variables of hooks.
#[derive(Debug)]
struct OpenSettings {
    /// The target, with these settings only.
    node: DocumentNode,
    source: Arc<SourceText>,
    shape: &'static Shape,
}

/// Keys of a target that cases inherit.
const INHERITED_KEYS: [&str; 3] = ["assert", "turn_assert", "awaiting"];

impl InheritedSettings {
    /// Decodes the settings of a target. `written` is the target with its variables.
    pub fn read(
        map: &MapView<'_>,
        written: &DocumentNode,
        shape: &'static Shape,
        source: &Arc<SourceText>,
        diagnostics: &mut Diagnostics,
    ) -> InheritedSettings {
        let mut node = written.clone();
        if let NodeValue::Map(entries) = &mut node.value {
            entries.retain(|entry| INHERITED_KEYS.contains(&&*entry.key.text));
        }
        let is_open = uses_hook_variables(&node);
        let open = is_open.then(|| Arc::new(OpenSettings { node, source: source.clone(), shape }));
        InheritedSettings { open, ..InheritedSettings::decode(map, diagnostics) }
    }

    fn decode(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> InheritedSettings {
        InheritedSettings {
            case: AssertionBlock::read(map.get("assert"), diagnostics).into(),
            turn: AssertionBlock::read_of_turn(map.get("turn_assert"), diagnostics).into(),
            signs: awaiting_markers(map, &Arc::default()),
            open: None,
        }
    }

    /// Returns the settings with the variables of a case.
    pub(super) fn filled(
        &self,
        variables: VariableScope<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Cow<'_, InheritedSettings> {
        let Some(open) = &self.open else { return Cow::Borrowed(self) };
        let mut node = open.node.clone();
        interpolate(&mut node, &Kind::Shape(open.shape), variables, &open.source, diagnostics);
        match MapView::from_node(&node, &open.source, open.shape) {
            Some(map) => Cow::Owned(InheritedSettings::decode(&map, diagnostics)),
            None => Cow::Borrowed(self),
        }
    }
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
