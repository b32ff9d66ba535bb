//! What the project file says under `scripts`: what scripts may reach, and what they call by which names.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, Url};

use super::hooks::Whose;
use super::project::Project;
use super::shape::{PROCESS, SCRIPTS};
use crate::cases::{Hook, Variables, interpolate, millis};
use crate::scripts::{Function, Grants, HostPattern, NotFound, Places};
use hotseat_document::{Diagnostic, Diagnostics, Kind, Map, Node, Source, View};

/// What scripts call by names of the project file, as it is written: variables are filled in when one is called.
#[derive(Debug, Clone, Default)]
pub struct Named(Vec<(String, Arc<Source>, Node)>);

/// What a name of a process means.
#[derive(Debug)]
pub enum Process {
    /// A command, which is told on its standard input and prints its answer.
    Command(Hook),
    /// A request.
    Request {
        /// Where it is sent.
        url: Url,
        /// With which method.
        method: Method,
        /// With these headers.
        headers: HeaderMap,
        /// How long its answer may take.
        timeout: Duration,
    },
}

/// How long a process may take where it does not say so.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads what stands under `scripts` of a project file whose shape was checked.
pub(super) fn read(
    project: &Map<'_>,
    root: &Path,
    file: &Path,
    mistakes: &mut Diagnostics,
) -> (Grants, Named) {
    let mut grants = Grants { root: root.to_path_buf(), file: Some(file.to_path_buf()), ..Grants::default() };
    let Some(map) = project.get("scripts").and_then(|view| view.map(&SCRIPTS)) else {
        return (grants, Named::default());
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
                let words = format!("`{text}` is not in the folder of the project");
                mistakes.push(Diagnostic::new(words).at(view.place()).help(
                    "scripts reach nothing outside of it; write a path from there, or `.` for all of it",
                ));
            }
            all.push(text.to_string());
        }
        all
    };
    (grants.read, grants.write) = (paths("read"), paths("write"));
    grants.env = map.list("env").into_iter().flatten().filter_map(View::text).map(str::to_string).collect();
    grants.timeout = map.integer("timeout_ms").map(millis);
    grants.memory =
        map.integer("memory_mb").and_then(|mb| usize::try_from(mb).ok()).map(|mb| mb * 1024 * 1024);
    let mut named = Vec::new();
    for (name, _, view) in map.get("processes").and_then(View::entries).into_iter().flatten() {
        let Some(process) = view.map(&PROCESS) else { continue };
        let taken =
            ["agents.", "agent.", "scripts.", "scripts:"].iter().find(|prefix| name.starts_with(**prefix));
        if let Some(prefix) = taken {
            let words = format!("`{name}`: what begins with `{prefix}` is called as such");
            mistakes.push(Diagnostic::new(words).at(view.place()).help("give the process another name"));
        }
        let of_other = match (process.has("cmd"), process.has("url")) {
            (true, false) => ["method", "headers"].into_iter().find(|key| process.has(key)),
            (false, true) => ["cwd", "env"].into_iter().find(|key| process.has(key)),
            _ => {
                let words = "a process is a command, `cmd`, or a request to a `url`";
                mistakes.push(Diagnostic::new(words).at(view.place()));
                None
            }
        };
        if let Some(key) = of_other {
            let what = if process.has("cmd") { "a command" } else { "a request" };
            let place = process.key_place(key).unwrap_or_else(|| view.place());
            mistakes.push(Diagnostic::new(format!("{what} has no `{key}`")).at(place));
        }
        named.push((name.to_string(), view.source.clone(), view.node.clone()));
    }
    (grants, Named(named))
}

impl Named {
    /// The process of a name: the one that is called so, else the one with the longest beginning, as in `models.*`.
    fn find(&self, name: &str) -> Option<&(String, Arc<Source>, Node)> {
        let begins = |own: &str| own.strip_suffix('*').is_some_and(|beginning| name.starts_with(beginning));
        let exact = self.0.iter().find(|(own, ..)| own == name);
        exact.or_else(|| self.0.iter().filter(|(own, ..)| begins(own)).max_by_key(|(own, ..)| own.len()))
    }
}

impl Project {
    /// What a script calls by a name of the project file.
    ///
    /// # Errors
    /// When there is nothing of this name, and every variable that is not defined.
    pub fn process(&self, name: &str) -> Result<Process, Diagnostics> {
        let Some((_, source, node)) = self.processes.find(name) else {
            let known: Vec<&str> = self.processes.0.iter().map(|(name, ..)| name.as_str()).collect();
            let help = match hotseat_document::nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "scripts call `agents.ID`, `scripts.path.function`, and what the project file names under `scripts: processes:`".to_string(),
            };
            return Err(Diagnostic::new(format!("there is no process `{name}`")).help(help).into());
        };
        let given = std::collections::BTreeMap::new();
        let variables = Variables {
            environment: self.environment(),
            given: &given,
            more_to_come: false,
            redactor: self.redactor(),
        };
        if node.get("cmd").is_some() {
            return Hook::read(node, source, variables).map(Process::Command);
        }
        let (mut node, mut mistakes) = (node.clone(), Diagnostics::new());
        interpolate(&mut node, &Kind::Shape(&PROCESS), variables, source, &mut mistakes);
        let map = Map::of(&node, source, &PROCESS).expect("the shape was checked");
        let url = map.text("url").unwrap_or_default();
        let url =
            Url::parse(url).map_err(|error| mistakes.push(Diagnostic::new(format!("`{url}`: {error}"))));
        let method = map.text("method").unwrap_or("POST").to_ascii_uppercase();
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| mistakes.push(Diagnostic::new(format!("`{method}` is no method of HTTP"))));
        let headers = super::target::headers(&map, &mut mistakes);
        match (url, method) {
            (Ok(url), Ok(method)) if mistakes.is_empty() => Ok(Process::Request {
                url,
                method,
                headers,
                timeout: map.integer("timeout_ms").map_or(PATIENCE, millis),
            }),
            _ => Err(mistakes),
        }
    }

    /// The function of a script that is named for the sake of a suite, or of an agent.
    ///
    /// # Errors
    /// When there is none, and what is wrong with its file.
    pub fn function(&self, reference: &str, whose: Whose<'_>) -> Result<Function, NotFound> {
        self.scripts.find(reference, &self.places(whose))
    }

    /// Where functions of scripts are looked for.
    pub fn places(&self, Whose { folder, agent }: Whose<'_>) -> Places {
        let shown = self.file.as_deref().and_then(|file| Path::new(file).parent());
        Places {
            root: self.root.clone(),
            shown: shown.unwrap_or(Path::new("")).to_path_buf(),
            agent: agent.and_then(|agent| agent.folder.clone()),
            suite: Some(folder.to_path_buf()),
        }
    }
}
