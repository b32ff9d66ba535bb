//! Test scripts of agents, referred to as `scripts.AGENT.MODULE`.

use std::path::PathBuf;

use super::project::Project;
use crate::cases::PROGRAM_EXTENSIONS;
use hotseat_document::{Diagnostic, nearest};

impl Project {
    /// Resolves a reference to test scripts, without its first part, to an agent and a file: `expense.setup`
    /// is `src/setup_test.ts` in the folder of the agent `expense`. Agent names may contain dots. Fails if
    /// the agent or the file does not exist.
    pub fn find_script_tests(&self, reference: &str) -> Result<(String, PathBuf), Diagnostic> {
        let shown = format!("scripts.{reference}");
        let parts: Vec<&str> = reference.split('.').collect();
        if parts.len() < 2 || parts.iter().any(|part| part.is_empty()) {
            let help = "write `scripts.AGENT.MODULE`, for example `scripts.expense.setup`";
            return Err(Diagnostic::new(format!("`{shown}` is not a valid test reference")).help(help));
        }
        let mut looked_for = Vec::new();
        // The longest matching agent name takes precedence.
        for split in (1..parts.len()).rev() {
            let (agent, module) = (parts[..split].join("."), parts[split..].join("/"));
            let Some(known) = self.agents.iter().find(|known| known.name.as_deref() == Some(&agent)) else {
                continue;
            };
            let by_name = self.root.join(parts[..split].join("/"));
            for folder in known.folder.iter().cloned().chain([by_name, self.root.clone()]) {
                let of = |ending: &str| folder.join("src").join(format!("{module}_test.{ending}"));
                if let Some(path) =
                    PROGRAM_EXTENSIONS.iter().map(|ending| of(ending)).find(|path| path.is_file())
                {
                    return Ok((agent, path));
                }
                looked_for.push(of("ts").display().to_string());
            }
        }
        if looked_for.is_empty() {
            let wrong = Diagnostic::new(format!("`{shown}` does not start with the name of an agent"));
            let names = self.agents.iter().filter_map(|agent| agent.name.as_deref());
            return Err(match nearest(&parts[..parts.len() - 1].join("."), names) {
                Some(near) => {
                    wrong.help(format!("did you mean `scripts.{near}.{}`?", parts[parts.len() - 1]))
                }
                None => wrong.help("agents are defined under `agents:` in the project file"),
            });
        }
        looked_for.dedup();
        let help = format!("looked for {}", looked_for.join(", "));
        Err(Diagnostic::new(format!("test script of `{shown}` not found")).help(help))
    }
}
