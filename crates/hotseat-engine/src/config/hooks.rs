//! Resolves hooks named by cases and the command line: project commands and script functions.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::agent::ProjectAgent;
use super::project::Project;
use super::shape::NAMED_HOOK;
use crate::cases::{HookCommand, TestCase, VariableScope, from_millis};
use crate::scripts::{FunctionError, ScriptFunction};
use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, MapView, NodeView, SourceSpan, SourceText, nearest,
};

/// Hooks of the project file by name, as written. Variables are resolved when a hook runs.
#[derive(Debug, Clone, Default)]
pub struct ProjectHooks(BTreeMap<String, (Arc<SourceText>, DocumentNode)>);

/// A resolved hook. A command takes precedence over a function of the same name.
#[derive(Debug, Clone)]
pub enum ResolvedHook {
    /// A command of the project file.
    Command(HookCommand),
    /// A script function, with its time limit if it is set.
    Function(ScriptFunction, Option<Duration>),
}

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
        for (name, _, view) in project.get("hooks").and_then(NodeView::entries).into_iter().flatten() {
            let Some(map) = view.map(&NAMED_HOOK) else { continue };
            if map.has("cmd") == map.has("use") {
                let words = "a hook needs either `cmd` or `use`";
                mistakes.push(Diagnostic::new(words).at(view.place()));
            }
            if let (true, Some(key)) = (map.has("use"), ["env", "cwd"].into_iter().find(|key| map.has(key))) {
                let place = map.key_place(key).unwrap_or_else(|| view.place());
                mistakes.push(Diagnostic::new(format!("a function hook does not support `{key}`")).at(place));
            }
            hooks.insert(name.to_string(), (view.source.clone(), view.node.clone()));
        }
        ProjectHooks(hooks)
    }

    /// The script function of a hook, if it is not a command.
    fn function_reference(&self, name: &str) -> Option<(&str, Option<Duration>)> {
        let (source, node) = self.0.get(name)?;
        let map = MapView::from_node(node, source, &NAMED_HOOK)?;
        Some((map.text("use")?, map.integer("timeout_ms").map(from_millis)))
    }
}

impl Project {
    /// Resolves a hook by name: a command with its variables, or a script function.
    ///
    /// # Errors
    /// If it does not exist, a variable is undefined, or the script is invalid.
    pub fn resolve_hook(
        &self,
        name: &str,
        given: &BTreeMap<String, Value>,
        whose: &[ScriptScope<'_>],
    ) -> Result<ResolvedHook, Diagnostics> {
        if let Some((function, timeout)) = self.hooks.function_reference(name) {
            return Ok(ResolvedHook::Function(self.hook_function(function, whose)?, timeout));
        }
        let Some((source, node)) = self.hooks.0.get(name) else {
            return Ok(ResolvedHook::Function(self.hook_function(name, whose)?, None));
        };
        let variables = VariableScope {
            environment: self.environment(),
            hook_variables: given,
            allow_undefined: false,
            redactor: self.redactor(),
        };
        HookCommand::read(node, source, variables).map(ResolvedHook::Command)
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
        let (given, environment, redactor) = (BTreeMap::new(), self.environment(), self.redactor());
        let variables =
            VariableScope { environment, hook_variables: &given, allow_undefined: true, redactor };
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
        let help = match (nearest(name, known), nowhere) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, looked) => {
                let looked = looked
                    .and_then(|looked| looked.help)
                    .map_or_else(String::new, |help| format!("; {help}"));
                format!(
                    "define a command under `hooks:` in the project file, or use a script function{looked}"
                )
            }
        };
        Err(Diagnostic::new(format!("unknown hook `{name}`")).help(help))
    }
}
