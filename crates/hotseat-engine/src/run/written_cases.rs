//! Cases that are written to a file of their own, which may lie in another folder than their suite.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::case_roles::{CaseScope, case_roles};
use super::plan::SelectedCase;
use crate::cases::Suite;
use crate::config::{Project, ProjectAgent, ResolvedRole};
use hotseat_checks::ScriptCheck;
use hotseat_targets::message::{ToolAnswer, ToolFunction};

impl SelectedCase {
    /// Says what would be different if the case were in another suite, in place of its own: the agent, or a file that is
    /// looked for beside the suite.
    pub fn difference_in(&self, other: &Suite, project: &Project) -> Option<String> {
        let agent = project.agent_of_case(&self.case, project.agent_of(&other.path).as_ref()).ok()?;
        let words = |agent: Option<&Arc<ProjectAgent>>| {
            agent.map_or_else(|| "no agent".to_string(), |agent| agent.words())
        };
        let (now, then) = (words(self.agent.as_ref()), words(agent.as_ref()));
        if now != then {
            return Some(format!("it would test {then}, and not {now}"));
        }
        if same_file(&self.suite.folder, &other.folder) {
            return None;
        }
        let found = |suite: &Suite, path: &str| {
            let folders = [suite.folder.as_path(), project.root.as_path(), Path::new("")];
            folders.iter().map(|folder| folder.join(path)).find(|file| file.is_file())?.canonicalize().ok()
        };
        // The value of a variable of a hook is not known yet.
        let moves = |path: &&str| path.contains("${") || found(&self.suite, path) != found(other, path);
        if let Some(path) = self.case.named_files().find(moves) {
            return Some(format!("`{path}` would be another file, or none"));
        }
        if self.case.hooks > 0 && project.file.is_none() {
            return Some("its hooks would run in another folder".to_string());
        }
        let [here, there] = [&*self.suite, other].map(|suite| self.functions_in(suite, project));
        if let Some((name, _)) = here.iter().find(|function| !there.contains(function)) {
            return Some(format!("`{name}` would be another function, or none"));
        }
        let sources = |suite| {
            project.scripts().source_folders(&project.script_places(self.scope_in(suite).script_scope()))
        };
        let moves = !here.is_empty() && sources(&self.suite) != sources(other);
        moves.then(|| "its scripts would find other scripts".to_string())
    }

    fn scope_in<'a>(&'a self, suite: &'a Suite) -> CaseScope<'a> {
        CaseScope { case: &self.case, suite, agent: self.agent.as_ref(), attempt: 1 }
    }

    /// The script functions that the case uses in a suite, each with its file. `None` if it does not exist.
    fn functions_in(&self, suite: &Suite, project: &Project) -> Vec<(String, Option<PathBuf>)> {
        let scope = self.scope_in(suite);
        let of_checks = self.case.every_check().filter_map(|check| {
            let ScriptCheck { function, .. } = check.as_script()?;
            Some(function.to_string())
        });
        let hooks = self.case.before.iter().chain(&self.case.after);
        let hooks = hooks.filter_map(|hook| Some(project.script_of_hook(&hook.name)?.to_string()));
        let target = self.agent.as_ref().and_then(|agent| project.bind_without_hooks(agent).ok());
        let of_target = target.iter().flat_map(|target| &target.tools).flat_map(|tool| &tool.answers);
        let tools = self.case.tool_functions().chain(of_target.filter_map(ToolAnswer::function));
        let tools = tools.map(|ToolFunction { reference, .. }| reference.clone());
        let find = |reference: String| {
            let found = project.find_function(&reference, scope.script_scope()).ok();
            (reference, found.map(|function| function.file()))
        };
        let roles = case_roles(project, scope).into_iter().flatten();
        let roles = roles.filter_map(|(reference, role)| match role {
            ResolvedRole::Script(function) => Some((reference.to_string(), Some(function.file()))),
            ResolvedRole::Agent(_) | ResolvedRole::Connector(_) => None,
        });
        of_checks.chain(hooks).chain(tools).map(find).chain(roles).collect()
    }
}

/// True if two paths lead to the same file or folder.
fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    real(one) == real(other)
}
