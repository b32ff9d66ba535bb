//! Decodes `scripts` of the project file: permissions of scripts, and the processes that they call.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, Url};

use super::hooks::ScriptScope;
use super::project::Project;
use super::shape::{PROCESS, SCRIPTS};
use crate::cases::{HookCommand, VariableScope, from_millis, interpolate};
use crate::scripts::{FunctionError, HostPattern, ScriptFunction, ScriptGrants, ScriptSearchPath};
use hotseat_document::{Diagnostic, Diagnostics, DocumentNode, Kind, MapView, NodeView, SourceText};

/// Processes by name, as written. Variables are resolved when a process is called.
#[derive(Debug, Clone, Default)]
pub struct ProcessDefinitions(Vec<(String, Arc<SourceText>, DocumentNode)>);

/// A resolved process.
#[derive(Debug)]
pub enum ProcessTarget {
    /// A command, which reads JSON from standard input and prints its answer.
    Command(HookCommand),
    /// An HTTP request.
    Request {
        /// URL.
        url: Url,
        /// Method.
        method: Method,
        /// Headers.
        headers: HeaderMap,
        /// Time limit.
        timeout: Duration,
    },
}

/// Default time limit of a process.
const DEFAULT_PROCESS_TIMEOUT: Duration = Duration::from_secs(30);

/// Decodes `scripts` of a project file whose shape is valid.
pub(super) fn read_script_settings(
    project: &MapView<'_>,
    root: &Path,
    file: &Path,
    mistakes: &mut Diagnostics,
) -> (ScriptGrants, ProcessDefinitions) {
    let mut grants =
        ScriptGrants { root: root.to_path_buf(), file: Some(file.to_path_buf()), ..ScriptGrants::default() };
    let Some(map) = project.get("scripts").and_then(|view| view.map(&SCRIPTS)) else {
        return (grants, ProcessDefinitions::default());
    };
    for view in map.list("hosts").into_iter().flatten() {
        match HostPattern::parse(view.text().unwrap_or_default()) {
            Ok(pattern) => grants.hosts.push(pattern),
            Err(words) => mistakes.push(Diagnostic::new(words).at(view.place())),
        }
    }
    let mut paths = |key: &str| -> Vec<String> {
        let mut all = Vec::new();
        for view in map.list(key).into_iter().flatten() {
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
    grants.env =
        map.list("env").into_iter().flatten().filter_map(NodeView::text).map(str::to_string).collect();
    grants.timeout = map.integer("timeout_ms").map(from_millis);
    grants.memory =
        map.integer("memory_mb").and_then(|mb| usize::try_from(mb).ok()).map(|mb| mb * 1024 * 1024);
    let mut named = Vec::new();
    for (name, _, view) in map.get("processes").and_then(NodeView::entries).into_iter().flatten() {
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
                let words = "a process needs either `cmd` or `url`";
                mistakes.push(Diagnostic::new(words).at(view.place()));
                None
            }
        };
        if let Some(key) = of_other {
            let what = if process.has("cmd") { "a command" } else { "a request" };
            let place = process.key_place(key).unwrap_or_else(|| view.place());
            mistakes.push(Diagnostic::new(format!("{what} does not support `{key}`")).at(place));
        }
        named.push((name.to_string(), view.source.clone(), view.node.clone()));
    }
    (grants, ProcessDefinitions(named))
}

impl ProcessDefinitions {
    /// Finds a process by its exact name, or by the longest matching prefix such as `models.*`.
    fn find(&self, name: &str) -> Option<&(String, Arc<SourceText>, DocumentNode)> {
        let begins = |own: &str| own.strip_suffix('*').is_some_and(|beginning| name.starts_with(beginning));
        let exact = self.0.iter().find(|(own, ..)| own == name);
        exact.or_else(|| self.0.iter().filter(|(own, ..)| begins(own)).max_by_key(|(own, ..)| own.len()))
    }
}

impl Project {
    /// Resolves a process by name.
    ///
    /// # Errors
    /// If it does not exist, or a variable is undefined.
    pub fn resolve_process(&self, name: &str) -> Result<ProcessTarget, Diagnostics> {
        let Some((_, source, node)) = self.processes.find(name) else {
            let known: Vec<&str> = self.processes.0.iter().map(|(name, ..)| name.as_str()).collect();
            let help = match hotseat_document::nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "scripts can call `agents.ID`, `scripts.path.function`, and processes defined under `scripts: processes:` in the project file".to_string(),
            };
            return Err(Diagnostic::new(format!("unknown process `{name}`")).help(help).into());
        };
        let given = std::collections::BTreeMap::new();
        let variables = VariableScope {
            environment: self.environment(),
            hook_variables: &given,
            allow_undefined: false,
            redactor: self.redactor(),
        };
        if node.get("cmd").is_some() {
            return HookCommand::read(node, source, variables).map(ProcessTarget::Command);
        }
        let (mut node, mut mistakes) = (node.clone(), Diagnostics::new());
        interpolate(&mut node, &Kind::Shape(&PROCESS), variables, source, &mut mistakes);
        let map = MapView::from_node(&node, source, &PROCESS).expect("the shape was checked");
        let url = map.text("url").unwrap_or_default();
        let url =
            Url::parse(url).map_err(|error| mistakes.push(Diagnostic::new(format!("`{url}`: {error}"))));
        let method = map.text("method").unwrap_or("POST").to_ascii_uppercase();
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| mistakes.push(Diagnostic::new(format!("`{method}` is not an HTTP method"))));
        let headers = super::agent_targets::read_headers(&map, &mut mistakes);
        match (url, method) {
            (Ok(url), Ok(method)) if mistakes.is_empty() => Ok(ProcessTarget::Request {
                url,
                method,
                headers,
                timeout: map.integer("timeout_ms").map_or(DEFAULT_PROCESS_TIMEOUT, from_millis),
            }),
            _ => Err(mistakes),
        }
    }

    /// Finds a script function in this scope.
    ///
    /// # Errors
    /// If it does not exist, or its file is invalid.
    pub fn find_function(
        &self,
        reference: &str,
        whose: ScriptScope<'_>,
    ) -> Result<ScriptFunction, FunctionError> {
        self.scripts.find(reference, &self.script_places(whose))
    }

    /// Folders in which script functions are searched.
    pub fn script_places(&self, ScriptScope { folder, agent }: ScriptScope<'_>) -> ScriptSearchPath {
        let shown = self.file.as_deref().and_then(|file| Path::new(file).parent());
        ScriptSearchPath {
            root: self.root.clone(),
            shown: shown.unwrap_or(Path::new("")).to_path_buf(),
            agent: agent.and_then(|agent| agent.folder.clone()),
            suite: Some(folder.to_path_buf()),
        }
    }
}
