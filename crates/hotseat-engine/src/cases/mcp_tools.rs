//! Tools of MCP servers that a case names: in its faults, and in assertions about a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_checks::Check;
use hotseat_document::{Diagnostic, SourceSpan, nearest_or};
use hotseat_mcp::DefinitionProblem;
use hotseat_trace::is_reported_tool_name;

use super::mcp::{McpServer, McpSettings, UnofferedTool};

/// Characters that names of tools do not contain.
const IMPOSSIBLE_IN_NAMES: [char; 13] = ['*', '^', '$', '|', ',', '(', ')', '\\', '[', ']', '{', '}', '"'];

/// A tool of an MCP server that a case names.
#[derive(Debug, Clone)]
pub struct ToolReference {
    /// Name of the server.
    pub server: String,
    /// Name of the tool.
    tool: String,
    /// True for faults. Assertions may use the name under which the agent reports the tool.
    is_exact: bool,
    /// Position in the file.
    place: SourceSpan,
}

impl ToolReference {
    /// A reference by the name that the tool has at its server.
    fn exact(server: &str, tool: &str, place: &SourceSpan) -> ToolReference {
        let (server, tool) = (server.to_string(), tool.to_string());
        ToolReference { server, tool, is_exact: true, place: place.clone() }
    }

    /// Returns a diagnostic if the server does not have the tool.
    pub fn check(&self, tools: &[String]) -> Option<Diagnostic> {
        let ToolReference { server, tool, is_exact, place } = self;
        let is_meant = |known: &String| match is_exact {
            true => known == tool,
            false => is_reported_tool_name(server, known, tool),
        };
        if is_unknown_yet(tool) || tools.iter().any(is_meant) {
            return None;
        }
        let wrong = Diagnostic::new(format!("MCP server `{server}` has no tool `{tool}`")).at(place.clone());
        let names = tools.iter().map(String::as_str);
        Some(wrong.help(nearest_or(tool, names, || format!("it has {}", tools.join(", ")))))
    }
}

/// True for a name with a variable of a hook, which is known only later, and for one that contains a secret: servers list
/// it, conversations do not show it.
fn is_unknown_yet(name: &str) -> bool {
    name.contains("${") || name.contains("[redacted:")
}

/// Returns a diagnostic if no tool can have this name: a pattern, a list or a call in its place would never be found, and
/// a prohibition of it would always hold.
pub(super) fn impossible_tool(name: &str) -> Option<Diagnostic> {
    let is_expression = name.len() > 1 && name.starts_with('/') && name.ends_with('/');
    let is_impossible = name.trim() != name || name.contains(IMPOSSIBLE_IN_NAMES) || is_expression;
    (is_impossible && !is_unknown_yet(name)).then(|| {
        let message =
            format!("`{name}` cannot be the name of a tool: names are compared exactly, not as patterns");
        Diagnostic::new(message).help("list the tools by their names")
    })
}

/// Tools that MCP servers have listed in a conversation, by the name of the server. Without servers whose list may change.
pub type ListedTools = BTreeMap<String, Arc<[String]>>;

/// Tools that a check names without a server, if the check holds as long as they are not called.
fn unseen_names(check: &Check) -> Vec<&str> {
    if !check.passes_without_calls() {
        return Vec::new();
    }
    let named = check.named_tools().into_iter().filter(|named| named.server.is_none());
    named.flat_map(|named| named.tools).collect()
}

impl McpSettings {
    /// Tools that the faults name.
    pub fn fault_tools(&self) -> Vec<ToolReference> {
        let faults = self.iter().flat_map(|(name, server)| server.faults.iter().map(move |one| (name, one)));
        let named = faults.filter_map(|(name, fault)| {
            Some(ToolReference::exact(name, fault.rule.tool.as_deref()?, &fault.tool_place))
        });
        named.collect()
    }

    /// Diagnostics of tools that can never be offered. Needs loaded files.
    pub(super) fn unoffered_tools(&self) -> Vec<Diagnostic> {
        let diagnostic = |(name, server): (&str, &McpServer)| {
            let UnofferedTool { problem, after, names } = server.unoffered_tool(name)?;
            match problem {
                DefinitionProblem::OfferedAfterUnknown { .. } => {
                    ToolReference::exact(name, &after.tool, &after.place).check(&names)
                }
                problem => Some(Diagnostic::new(problem.to_string()).at(after.place)),
            }
        };
        self.iter().filter_map(diagnostic).collect()
    }

    /// Tools that a check names with their server.
    pub fn check_tools(check: &Check) -> Vec<ToolReference> {
        let named = check.named_tools().into_iter().filter_map(|named| Some((named.server?, named.tools)));
        let named = named.flat_map(|(server, tools)| tools.into_iter().map(move |tool| (server, tool)));
        let reference = |(server, tool): (&str, &str)| ToolReference {
            server: server.to_string(),
            tool: tool.to_string(),
            is_exact: false,
            place: check.place.clone(),
        };
        named.map(reference).collect()
    }

    /// Diagnostics of tools that a check names without a server, if no server has them and the check would hold only because of that.
    /// Needs servers whose tools the test defines, or that have `listed` them.
    pub fn unseen_tools(&self, check: &Check, listed: &ListedTools) -> Vec<Diagnostic> {
        self.unknown_to_all(unseen_names(check), &check.place, listed)
    }

    /// Diagnostics of tools that no server has. Needs servers whose tools the test defines, or that have `listed` them.
    pub(super) fn unknown_to_all(
        &self,
        tools: Vec<&str>,
        place: &SourceSpan,
        listed: &ListedTools,
    ) -> Vec<Diagnostic> {
        if tools.is_empty() {
            return Vec::new();
        }
        let tools_of =
            |name: &str| self.defined_tools(name).or_else(|| listed.get(name).map(|tools| tools.to_vec()));
        let servers = self.iter().map(|(name, _)| Some((name, tools_of(name)?)));
        let Some(servers) = servers.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty()) else {
            return Vec::new();
        };
        let is_known = |tool: &str| {
            let is_of = |(server, tools): &(&str, Vec<String>)| {
                tools.iter().any(|known| is_reported_tool_name(server, known, tool))
            };
            is_unknown_yet(tool) || servers.iter().any(is_of)
        };
        let unseen = tools.into_iter().filter(|tool| !is_known(tool));
        let all = || servers.iter().flat_map(|(_, tools)| tools).map(String::as_str);
        let diagnostic = |tool: &str| {
            let message = format!(
                "no MCP server of the test has a tool `{tool}`, and nothing else shows the agent's calls"
            );
            let list = || format!("the servers have {}", all().collect::<Vec<_>>().join(", "));
            Diagnostic::new(message).at(place.clone()).help(nearest_or(tool, all(), list))
        };
        unseen.map(diagnostic).collect()
    }

    /// Diagnostics of tools that their server does not have, as far as the test defines the tools of the server.
    pub fn unknown_tools(&self, named: &[ToolReference]) -> Vec<Diagnostic> {
        let unknown = |reference: &ToolReference| {
            let known = self.defined_tools(&reference.server)?;
            reference.check(&known)
        };
        named.iter().filter_map(unknown).collect()
    }
}
