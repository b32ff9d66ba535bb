//! Hooks that cases and the command line name: commands of the project, and functions of scripts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::agent::Agent;
use super::project::Project;
use super::shape::NAMED_HOOK;
use crate::cases::{Case, Hook, Variables, millis};
use crate::scripts::{Function, NotFound};
use hotseat_document::{Diagnostic, Diagnostics, Map, Node, Place, Source, View, nearest};

/// Commands and functions by name, as they are written: variables are filled in when one is run.
#[derive(Debug, Clone, Default)]
pub struct Hooks(BTreeMap<String, (Arc<Source>, Node)>);

/// What a name of a hook means. A command goes before a function of the same name.
#[derive(Debug, Clone)]
pub enum NamedBy {
    /// A command of the project file.
    Command(Hook),
    /// A function of a script, and how long it may take if that is said.
    Function(Function, Option<Duration>),
}

/// On behalf of which suite and which agent a script is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Whose<'a> {
    /// The folder of the suite.
    pub folder: &'a Path,
    /// The agent that it tests.
    pub agent: Option<&'a Agent>,
}

impl Hooks {
    /// Those of a project file whose shape was checked.
    pub(super) fn of(project: &Map<'_>, mistakes: &mut Diagnostics) -> Hooks {
        let mut hooks = BTreeMap::new();
        for (name, _, view) in project.get("hooks").and_then(View::entries).into_iter().flatten() {
            let Some(map) = view.map(&NAMED_HOOK) else { continue };
            if map.has("cmd") == map.has("use") {
                let words = "a hook is a command, `cmd`, or a function of a script, `use`";
                mistakes.push(Diagnostic::new(words).at(view.place()));
            }
            if let (true, Some(key)) = (map.has("use"), ["env", "cwd"].into_iter().find(|key| map.has(key))) {
                let place = map.key_place(key).unwrap_or_else(|| view.place());
                mistakes.push(Diagnostic::new(format!("a function has no `{key}`")).at(place));
            }
            hooks.insert(name.to_string(), (view.source.clone(), view.node.clone()));
        }
        Hooks(hooks)
    }

    /// The function that a hook of the project file means, where it is one.
    fn function(&self, name: &str) -> Option<(&str, Option<Duration>)> {
        let (source, node) = self.0.get(name)?;
        let map = Map::of(node, source, &NAMED_HOOK)?;
        Some((map.text("use")?, map.integer("timeout_ms").map(millis)))
    }
}

impl Project {
    /// The hook of a name: a command with its variables filled in, or a function of a script.
    ///
    /// # Errors
    /// When there is none, every variable that is not defined, and what is wrong with the script.
    pub fn hook(
        &self,
        name: &str,
        given: &BTreeMap<String, Value>,
        whose: &[Whose<'_>],
    ) -> Result<NamedBy, Diagnostics> {
        if let Some((function, timeout)) = self.hooks.function(name) {
            return Ok(NamedBy::Function(self.hook_function(function, whose)?, timeout));
        }
        let Some((source, node)) = self.hooks.0.get(name) else {
            return Ok(NamedBy::Function(self.hook_function(name, whose)?, None));
        };
        let variables = Variables {
            environment: self.environment(),
            given,
            more_to_come: false,
            redactor: self.redactor(),
        };
        Hook::read(node, source, variables).map(NamedBy::Command)
    }

    /// What is wrong with the hooks that a case names.
    pub fn wrong_hooks(&self, case: &Case, whose: Whose<'_>) -> Vec<Diagnostic> {
        let named = case.before.iter().chain(&case.after);
        let wrong = named.filter_map(|named| Some((self.wrong_hook(&named.name, &[whose])?, &named.place)));
        let at = |(wrong, place): (Diagnostic, &Place)| match wrong.place {
            Some(_) => wrong,
            None => wrong.at(place.clone()),
        };
        wrong.map(at).collect()
    }

    /// What is wrong with the hook of a name, as far as that can be known before it runs.
    pub fn wrong_hook(&self, name: &str, whose: &[Whose<'_>]) -> Option<Diagnostic> {
        if let Some((function, _)) = self.hooks.function(name) {
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
        let variables = Variables { environment, given: &given, more_to_come: true, redactor };
        Hook::read(node, source, variables).err()?.into_iter().next()
    }

    /// The function of a script that a name means; the first suite beside which there is one decides.
    fn hook_function(&self, name: &str, whose: &[Whose<'_>]) -> Result<Function, Diagnostic> {
        let mut nowhere = None;
        for whose in whose {
            match self.function(name, *whose) {
                Ok(function) => return Ok(function),
                Err(NotFound::Nowhere(looked)) => drop(nowhere.get_or_insert(looked)),
                Err(NotFound::Wrong(mistake)) => return Err(mistake),
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
                    "hooks are commands under `hooks:` in the project file, or functions of scripts{looked}"
                )
            }
        };
        Err(Diagnostic::new(format!("no hook is called `{name}`")).help(help))
    }
}
