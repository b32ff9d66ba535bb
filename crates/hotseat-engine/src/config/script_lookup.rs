//! Finds what a project names: hooks, processes and functions of scripts.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hotseat_http::check_encryption;
use http::HeaderMap;
use http::Method;
use serde_json::Value;
use url::Url;

use super::hooks::ScriptScope;
use super::project::Project;
use super::shape::PROCESS;
use crate::cases::{HookCommand, McpAddresses, TestCase, VariableScope, from_millis, interpolate};
use crate::scripts::{FunctionError, ScriptFunction, ScriptSearchPath};
use hotseat_document::{Diagnostic, Diagnostics, Kind, MapView, SourceSpan, nearest_or};

/// A resolved hook. A command takes precedence over a function of the same name.
#[derive(Debug, Clone)]
pub enum ResolvedHook {
    /// A command of the project file.
    Command(HookCommand),
    /// A script function, with its time limit if it is set.
    Function(ScriptFunction, Option<Duration>),
}

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

impl Project {
    /// Resolves a hook by name: a command with its variables, or a script function. Fails if it does not
    /// exist, a variable is undefined, or the script is invalid.
    pub fn resolve_hook(
        &self,
        name: &str,
        given: &BTreeMap<String, Value>,
        mcp: McpAddresses<'_>,
        whose: &[ScriptScope<'_>],
    ) -> Result<ResolvedHook, Diagnostics> {
        if let Some((function, timeout)) = self.hooks.function_reference(name) {
            return Ok(ResolvedHook::Function(self.hook_function(function, whose)?, timeout));
        }
        let Some((source, node)) = self.hooks.0.get(name) else {
            return Ok(ResolvedHook::Function(self.hook_function(name, whose)?, None));
        };
        let variables = VariableScope { hook_variables: given, mcp, ..self.variables() };
        HookCommand::read(node, source, variables).map(ResolvedHook::Command)
    }

    /// The script function that a hook of this name is, unless it is a command.
    pub fn script_of_hook<'n>(&'n self, name: &'n str) -> Option<&'n str> {
        match self.hooks.function_reference(name) {
            Some((function, _)) => Some(function),
            None => (!self.hooks.0.contains_key(name)).then_some(name),
        }
    }

    /// Diagnostics of the hooks that a case names.
    pub fn check_case_hooks(&self, case: &TestCase, whose: ScriptScope<'_>) -> Vec<Diagnostic> {
        let named = case.before.iter().chain(&case.after);
        let wrong = named.filter_map(|named| Some((self.check_hook(&named.name, &[whose])?, &named.place)));
        let at = |(wrong, place): (Diagnostic, &SourceSpan)| match wrong.place {
            Some(_) => wrong,
            None => wrong.at(place.clone()),
        };
        wrong.map(at).collect()
    }

    /// Diagnostic of a hook, as far as it can be validated before it runs.
    pub fn check_hook(&self, name: &str, whose: &[ScriptScope<'_>]) -> Option<Diagnostic> {
        if let Some((function, _)) = self.hooks.function_reference(name) {
            let (source, node) = &self.hooks.0[name];
            let wrong = self.hook_function(function, whose).err()?;
            return Some(match wrong.place {
                Some(_) => wrong,
                None => wrong.at(node.place(source)),
            });
        }
        let Some((source, node)) = self.hooks.0.get(name) else {
            return self.hook_function(name, whose).err();
        };
        let variables =
            VariableScope { mcp: McpAddresses::Example, allow_undefined: true, ..self.variables() };
        HookCommand::read(node, source, variables).err()?.into_iter().next()
    }

    /// Resolves a script function in the first scope that contains it.
    fn hook_function(&self, name: &str, whose: &[ScriptScope<'_>]) -> Result<ScriptFunction, Diagnostic> {
        let mut nowhere = None;
        for whose in whose {
            match self.find_function(name, *whose) {
                Ok(function) => return Ok(function),
                Err(FunctionError::NoSuchFile(looked)) => drop(nowhere.get_or_insert(looked)),
                Err(FunctionError::Invalid(mistake)) => return Err(mistake),
            }
        }
        let known = self.hooks.0.keys().map(String::as_str);
        let help = nearest_or(name, known, || {
            let looked =
                nowhere.and_then(|looked| looked.help).map_or_else(String::new, |help| format!("; {help}"));
            format!("define a command under `hooks:` in the project file, or use a script function{looked}")
        });
        Err(Diagnostic::new(format!("unknown hook `{name}`")).help(help))
    }

    /// Resolves a process by name. Fails if it does not exist, or a variable is undefined.
    pub fn resolve_process(&self, name: &str) -> Result<ProcessTarget, Diagnostics> {
        let Some((_, source, node)) = self.processes.find(name) else {
            let known: Vec<&str> = self.processes.0.iter().map(|(name, ..)| name.as_str()).collect();
            let callable = || {
                "scripts can call `agents.ID`, `scripts.path.function`, and processes defined under `scripts: processes:` in the project file".to_string()
            };
            let help = nearest_or(name, known.iter().copied(), callable);
            return Err(Diagnostic::new(format!("unknown process `{name}`")).help(help).into());
        };
        let variables = self.variables();
        if node.get("cmd").is_some() {
            return HookCommand::read(node, source, variables).map(ProcessTarget::Command);
        }
        let (mut node, mut mistakes) = (node.clone(), Diagnostics::new());
        interpolate(&mut node, &Kind::Shape(&PROCESS), variables, source, &mut mistakes);
        let map = MapView::from_node(&node, source, &PROCESS).expect("the shape was checked");
        let text = map.text("url").unwrap_or_default();
        let url = Url::parse(text).map_err(|error| format!("`{text}`: {error}"));
        let reachable = |url: Url| match check_encryption(&url) {
            Ok(()) => Ok(url),
            Err(error) => Err(error.to_string()),
        };
        let url = url.and_then(reachable).map_err(|error| mistakes.push(Diagnostic::new(error)));
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

    /// Finds a script function in this scope. Fails if it does not exist, or its file is invalid.
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
