//! Hooks: commands that run before or after a conversation.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::limits::from_millis;
use super::shape::HOOK;
use super::variables::{VariableScope, interpolate};
use hotseat_document::{Diagnostics, DocumentNode, Kind, MapView, SourceSpan, SourceText};

/// A command that runs before or after a conversation.
#[derive(Debug, Clone)]
pub struct HookCommand {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Time limit.
    pub timeout: Duration,
    /// Additional environment variables.
    pub env: BTreeMap<String, String>,
    /// Working directory, relative to the default one.
    pub cwd: Option<PathBuf>,
    /// Position of its definition.
    pub place: SourceSpan,
}

/// A reference to a project hook by name.
#[derive(Debug, Clone)]
pub struct NamedHook {
    /// Name.
    pub name: String,
    /// Position of the name in the case.
    pub place: SourceSpan,
}

impl HookCommand {
    /// Decodes a hook whose shape is valid, with variables resolved. Fails if a variable is undefined.
    pub fn read(
        node: &DocumentNode,
        source: &Arc<SourceText>,
        variables: VariableScope<'_>,
    ) -> Result<HookCommand, Diagnostics> {
        let mut diagnostics = Diagnostics::new();
        let mut node = node.clone();
        interpolate(&mut node, &Kind::Shape(&HOOK), variables, source, &mut diagnostics);
        if !diagnostics.is_empty() {
            return Err(diagnostics);
        }
        let map = MapView::from_node(&node, source, &HOOK).expect("the shape was checked");
        Ok(HookCommand {
            command: map.texts("cmd").map(str::to_string).collect(),
            timeout: map.integer("timeout_ms").map_or(Duration::from_secs(30), from_millis),
            env: map.text_entries("env").collect(),
            cwd: map.text("cwd").map(PathBuf::from),
            place: map.place(),
        })
    }
}

/// Decodes the hook named under a key.
pub(super) fn read_named_hook(map: &MapView<'_>, key: &str) -> Option<NamedHook> {
    Some(NamedHook { name: map.text(key)?.to_string(), place: map.place_of(key)? })
}
