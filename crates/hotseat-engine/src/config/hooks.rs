//! Hooks of the project file, by name.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::agent::ProjectAgent;
use super::shape::NAMED_HOOK;
use crate::cases::from_millis;
use hotseat_document::{Diagnostics, DocumentNode, MapView, SourceText};

/// Hooks of the project file by name, as written. Variables are resolved when a hook runs.
#[derive(Debug, Clone, Default)]
pub struct ProjectHooks(pub(super) BTreeMap<String, (Arc<SourceText>, DocumentNode)>);

/// Scope for resolving script references: a suite and its agent.
#[derive(Debug, Clone, Copy)]
pub struct ScriptScope<'a> {
    /// Folder of the suite.
    pub folder: &'a Path,
    /// The tested agent.
    pub agent: Option<&'a ProjectAgent>,
}

impl ProjectHooks {
    /// Decodes the hooks of a project file whose shape is valid.
    pub(super) fn read(project: &MapView<'_>, mistakes: &mut Diagnostics) -> ProjectHooks {
        let mut hooks = BTreeMap::new();
        for (name, _, view) in project.entries("hooks") {
            let Some(map) = view.map(&NAMED_HOOK) else { continue };
            if map.has("cmd") == map.has("use") {
                mistakes.report(view.place(), "a hook needs either `cmd` or `use`");
            }
            if let (true, Some(key)) = (map.has("use"), ["env", "cwd"].into_iter().find(|key| map.has(key))) {
                let place = map.key_place(key).unwrap_or_else(|| view.place());
                mistakes.report(place, format!("a function hook does not support `{key}`"));
            }
            hooks.insert(name.to_string(), (view.source.clone(), view.node.clone()));
        }
        ProjectHooks(hooks)
    }

    /// The script function of a hook, if it is not a command.
    pub(super) fn function_reference(&self, name: &str) -> Option<(&str, Option<Duration>)> {
        let (source, node) = self.0.get(name)?;
        let map = MapView::from_node(node, source, &NAMED_HOOK)?;
        Some((map.text("use")?, map.integer("timeout_ms").map(from_millis)))
    }
}
