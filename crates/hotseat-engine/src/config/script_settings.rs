//! Decodes `scripts` of the project file: permissions of scripts, and the processes that they call.

use std::path::Path;
use std::sync::Arc;

use super::env_file::ENV_FILE;
use super::project_files::{FILE_NAMES, STORE_FOLDER};
use super::shape::{PROCESS, SCRIPTS};
use crate::cases::from_millis;
use crate::scripts::{HostPattern, ScriptGrants};
use hotseat_document::{Diagnostic, Diagnostics, DocumentNode, MapView, SourceText};

/// Processes by name, as written. Variables are resolved when a process is called.
#[derive(Debug, Clone, Default)]
pub struct ProcessDefinitions(pub(super) Vec<(String, Arc<SourceText>, DocumentNode)>);

/// Decodes `scripts` of a project file whose shape is valid.
pub(super) fn read_script_settings(
    project: &MapView<'_>,
    root: &Path,
    file: &Path,
    mistakes: &mut Diagnostics,
) -> (ScriptGrants, ProcessDefinitions) {
    let mut grants = ScriptGrants {
        root: root.to_path_buf(),
        file: Some(file.to_path_buf()),
        protected: [&FILE_NAMES[..], &[ENV_FILE, STORE_FOLDER]].concat(),
        ..ScriptGrants::default()
    };
    let Some(map) = project.get("scripts").and_then(|view| view.map(&SCRIPTS)) else {
        return (grants, ProcessDefinitions::default());
    };
    for view in map.items("hosts") {
        match HostPattern::parse(view.text().unwrap_or_default()) {
            Ok(pattern) => grants.hosts.push(pattern),
            Err(words) => mistakes.report(view.place(), words),
        }
    }
    let mut paths = |key: &str| -> Vec<String> {
        let mut all = Vec::new();
        for view in map.items(key) {
            let text = view.text().unwrap_or_default();
            let leaves = |text: &str| {
                Path::new(text).is_absolute()
                    || Path::new(text).components().any(|part| part.as_os_str() == "..")
            };
            if leaves(text) {
                let words = format!("`{text}` is outside the project folder");
                mistakes.push(Diagnostic::new(words).at(view.place()).help(
                    "scripts have no access outside of it; use a relative path, or `.` for the whole folder",
                ));
            }
            all.push(text.to_string());
        }
        all
    };
    (grants.read, grants.write) = (paths("read"), paths("write"));
    grants.env = map.texts("env").map(str::to_string).collect();
    grants.timeout = map.integer("timeout_ms").map(from_millis);
    grants.memory = map.size("memory_mb").map(|mb| mb * 1024 * 1024);
    let mut named = Vec::new();
    for (name, _, view) in map.entries("processes") {
        let Some(process) = view.map(&PROCESS) else { continue };
        let taken =
            ["agents.", "agent.", "scripts.", "scripts:"].iter().find(|prefix| name.starts_with(**prefix));
        if let Some(prefix) = taken {
            let words = format!("`{name}`: the prefix `{prefix}` is reserved");
            mistakes.push(Diagnostic::new(words).at(view.place()).help("rename the process"));
        }
        let of_other = match (process.has("cmd"), process.has("url")) {
            (true, false) => ["method", "headers"].into_iter().find(|key| process.has(key)),
            (false, true) => ["cwd", "env"].into_iter().find(|key| process.has(key)),
            _ => {
                mistakes.report(view.place(), "a process needs either `cmd` or `url`");
                None
            }
        };
        if let Some(key) = of_other {
            let what = if process.has("cmd") { "a command" } else { "a request" };
            let place = process.key_place(key).unwrap_or_else(|| view.place());
            mistakes.report(place, format!("{what} does not support `{key}`"));
        }
        named.push((name.to_string(), view.source.clone(), view.node.clone()));
    }
    (grants, ProcessDefinitions(named))
}

impl ProcessDefinitions {
    /// Finds a process by its exact name, or by the longest matching prefix such as `models.*`.
    pub(super) fn find(&self, name: &str) -> Option<&(String, Arc<SourceText>, DocumentNode)> {
        let begins = |own: &str| own.strip_suffix('*').is_some_and(|beginning| name.starts_with(beginning));
        let exact = self.0.iter().find(|(own, ..)| own == name);
        exact.or_else(|| self.0.iter().filter(|(own, ..)| begins(own)).max_by_key(|(own, ..)| own.len()))
    }
}
