//! Hooks of the project: commands that cases and the command line name.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::project::Project;
use crate::cases::{Case, Hook, Variables};
use hotseat_document::{Diagnostic, Diagnostics, Map, Node, Place, Source, View, nearest};

/// Commands by name, as they are written: variables are filled in when one is run.
#[derive(Debug, Clone, Default)]
pub struct Hooks(BTreeMap<String, (Arc<Source>, Node)>);

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
    /// The hook of a name, with its variables filled in.
    ///
    /// # Errors
    /// When there is none, and every variable that is not defined.
    pub fn hook(&self, name: &str, given: &BTreeMap<String, Value>) -> Result<Hook, Diagnostics> {
        let Some((source, node)) = self.hooks.0.get(name) else { return Err(self.no_hook(name).into()) };
        let variables = Variables {
            environment: self.environment(),
            given,
            more_to_come: false,
            redactor: self.redactor(),
        };
        Hook::read(node, source, variables)
    }

    /// What is wrong with the hooks that a case names.
    pub fn wrong_hooks(&self, case: &Case) -> Vec<Diagnostic> {
        let named = case.before.iter().chain(&case.after);
        let wrong = named.filter_map(|named| Some((self.wrong_hook(&named.name)?, &named.place)));
        let at = |(wrong, place): (Diagnostic, &Place)| match wrong.place {
            Some(_) => wrong,
            None => wrong.at(place.clone()),
        };
        wrong.map(at).collect()
    }

    /// What is wrong with the hook of a name, as far as that can be known before it runs.
    pub fn wrong_hook(&self, name: &str) -> Option<Diagnostic> {
        let Some((source, node)) = self.hooks.0.get(name) else { return Some(self.no_hook(name)) };
        let (given, environment, redactor) = (BTreeMap::new(), self.environment(), self.redactor());
        let variables = Variables { environment, given: &given, more_to_come: true, redactor };
        Hook::read(node, source, variables).err()?.into_iter().next()
    }

    fn no_hook(&self, name: &str) -> Diagnostic {
        let known = self.hooks.0.keys().map(String::as_str);
        let help = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "hooks are commands under `hooks:` in the project file; this version cannot run functions of scripts".to_string(),
        };
        Diagnostic::new(format!("no hook is called `{name}`")).help(help)
    }
}
