//! Hooks: commands that run around a conversation.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::limits::millis;
use super::shape::HOOK;
use super::variables::{Variables, interpolate};
use hotseat_document::{Diagnostics, Kind, Map, Node, Place, Source, View};

/// A command that runs before or after a conversation.
#[derive(Debug, Clone)]
pub struct Hook {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long it may run.
    pub timeout: Duration,
    /// Environment variables added for it.
    pub env: BTreeMap<String, String>,
    /// Its working folder, relative to the default one.
    pub cwd: Option<PathBuf>,
}

/// A hook of the project, by its name.
#[derive(Debug, Clone)]
pub struct NamedHook {
    /// Its name.
    pub name: String,
    /// Where a case names it.
    pub place: Place,
}

impl Hook {
    /// Reads a hook whose shape was checked, with its variables filled in.
    ///
    /// # Errors
    /// Every variable that is not defined.
    pub fn read(node: &Node, source: &Arc<Source>, variables: Variables<'_>) -> Result<Hook, Diagnostics> {
        let mut mistakes = Diagnostics::new();
        let mut node = node.clone();
        interpolate(&mut node, &Kind::Shape(&HOOK), variables, source, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let map = Map::of(&node, source, &HOOK).expect("the shape was checked");
        let texts = map.list("cmd").into_iter().flatten().filter_map(View::text);
        let env = map.get("env").and_then(View::entries).into_iter().flatten();
        Ok(Hook {
            command: texts.map(str::to_string).collect(),
            timeout: map.integer("timeout_ms").map_or(Duration::from_secs(30), millis),
            env: env
                .filter_map(|(key, _, value)| Some((key.to_string(), value.text()?.to_string())))
                .collect(),
            cwd: map.text("cwd").map(PathBuf::from),
        })
    }
}

/// The hook that a case names under a key.
pub(super) fn named(map: &Map<'_>, key: &str) -> Option<NamedHook> {
    Some(NamedHook { name: map.text(key)?.to_string(), place: map.place_of(key)? })
}
