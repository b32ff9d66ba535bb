//! The agent that a case names.

use hotseat_document::{Diagnostic, NodeView, SourceSpan, nearest_or};

/// Name of an agent of the project file, as used in a case or the head of a suite.
#[derive(Debug, Clone)]
pub struct AgentName {
    /// Name.
    pub name: String,
    /// Position in the file.
    pub place: SourceSpan,
}

impl AgentName {
    /// Decodes an agent name.
    pub(super) fn read(view: NodeView<'_>) -> Option<AgentName> {
        Some(AgentName { name: view.text()?.to_string(), place: view.place() })
    }

    /// True if the name contains a hook variable, which is set too late to select the agent.
    pub(super) fn has_variable(&self) -> bool {
        self.name.contains("${")
    }
}

/// Diagnostic for an unknown agent. `agents:NAME` is the form of references to roles.
pub fn unknown_agent<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Diagnostic {
    let known: Vec<&str> = known.collect();
    let bare = name.strip_prefix("agents:").unwrap_or(name).trim();
    let name = if bare.is_empty() { name } else { bare };
    if known.contains(&name) {
        return Diagnostic::new(format!("agent `{name}` is named with a prefix"))
            .help(format!("write `{name}`: the tested agent is named without `agents:`"));
    }
    let help = nearest_or(name, known.iter().copied(), || match known.is_empty() {
        true => "define agents under `agents:` in the project file".to_string(),
        false => format!("there are {}", known.join(", ")),
    });
    Diagnostic::new(format!("unknown agent `{name}`")).help(help)
}
