//! Hooks that cases and the command line name: commands of the project, and functions of scripts.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::agent::Agent;
use super::project::Project;
use crate::cases::{Case, Hook, Suite, Variables};
use crate::scripts::{Function, NotFound};
use hotseat_document::{Diagnostic, Diagnostics, Map, Node, Place, Source, View, nearest};

/// Commands by name, as they are written: variables are filled in when one is run.
#[derive(Debug, Clone, Default)]
pub struct Hooks(BTreeMap<String, (Arc<Source>, Node)>);

/// What a name of a hook means. A command goes before a function of the same name.
#[derive(Debug, Clone)]
pub enum NamedBy {
    /// A command of the project file.
    Command(Hook),
    /// A function of a script.
    Function(Function),
}

/// On behalf of which suite and which agent a script is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Whose<'a> {
    /// The suite.
    pub suite: &'a Suite,
    /// The agent that it tests.
    pub agent: Option<&'a Agent>,
}

impl Hooks {
    /// Those of a project file whose shape was checked.
    pub(super) fn of(project: &Map<'_>) -> Hooks {
        let entries = project.get("hooks").and_then(View::entries).into_iter().flatten();
        Hooks(
            entries
                .map(|(name, _, view)| (name.to_string(), (view.source.clone(), view.node.clone())))
                .collect(),
        )
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
        let Some((source, node)) = self.hooks.0.get(name) else {
            return Ok(NamedBy::Function(self.hook_function(name, whose)?));
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
        for Whose { suite, agent } in whose {
            match self.function(name, suite, *agent) {
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
