//! The tools of a mock with their compiled schemas, and the pages of lists.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hotseat_schema::JsonSchema;
use serde_json::{Value, json};

use crate::answer::{MAX_VIOLATIONS, McpToolResult};
use crate::definition::{DefinitionProblem, McpTool};
use crate::frame::RpcError;
use crate::revision::error_code;

/// Tools in the order of `tools/list`.
pub(super) struct ToolCatalog {
    /// The entries of the offered tools.
    entries: Vec<Value>,
    /// All tools, also those that are not offered yet.
    tools: Vec<Arc<CompiledTool>>,
    /// Indexes of all tools by their names.
    indexes: Arc<HashMap<String, usize>>,
    /// Names of the tools that took effect, if another one waits for them.
    effects: HashSet<String>,
}

/// A tool with its schema.
pub(super) struct CompiledTool {
    pub(super) tool: McpTool,
    arguments: JsonSchema,
    /// `None` also if the schema cannot be used: it is a matter of the clients.
    output: Option<JsonSchema>,
}

impl ToolCatalog {
    /// Compiles the tools. Fails if two tools have the same name, or a schema is invalid or refers to another
    /// document.
    pub(super) fn new(tools: &[McpTool]) -> Result<ToolCatalog, DefinitionProblem> {
        let mut compiled = Vec::with_capacity(tools.len());
        let mut indexes = HashMap::with_capacity(tools.len());
        for tool in tools {
            let arguments = JsonSchema::compile(&tool.input_schema)
                .map_err(|source| DefinitionProblem::Schema { tool: tool.name.clone(), source })?;
            if indexes.insert(tool.name.clone(), compiled.len()).is_some() {
                return Err(DefinitionProblem::DuplicateTool(tool.name.clone()));
            }
            let output = tool.output_schema.as_ref().and_then(|schema| JsonSchema::compile(schema).ok());
            compiled.push(Arc::new(CompiledTool { tool: tool.clone(), arguments, output }));
        }
        Ok(ToolCatalog::with_effects(compiled, Arc::new(indexes), HashSet::new()))
    }

    fn with_effects(
        tools: Vec<Arc<CompiledTool>>,
        indexes: Arc<HashMap<String, usize>>,
        effects: HashSet<String>,
    ) -> ToolCatalog {
        let offered = tools.iter().filter(|tool| is_offered(&tool.tool, &effects));
        let entries = offered.map(|tool| tool.tool.to_json()).collect();
        ToolCatalog { entries, tools, indexes, effects }
    }

    /// Returns the catalog after the effect of a tool, if it offers further tools then.
    pub(super) fn after_effect(&self, name: &str) -> Option<ToolCatalog> {
        let waits = |tool: &Arc<CompiledTool>| tool.tool.offered_after.as_deref() == Some(name);
        if self.effects.contains(name) || !self.tools.iter().any(waits) {
            return None;
        }
        let mut effects = self.effects.clone();
        effects.insert(name.to_string());
        Some(ToolCatalog::with_effects(self.tools.clone(), self.indexes.clone(), effects))
    }

    /// Finds an offered tool.
    pub(super) fn find(&self, name: &str) -> Option<&CompiledTool> {
        self.tool(name).filter(|tool| is_offered(&tool.tool, &self.effects))
    }

    /// Returns the tool that must take effect before this one is offered.
    pub(super) fn missing_effect(&self, name: &str) -> Option<&str> {
        self.tool(name).filter(|tool| !is_offered(&tool.tool, &self.effects))?.tool.offered_after.as_deref()
    }

    fn tool(&self, name: &str) -> Option<&CompiledTool> {
        self.tools.get(*self.indexes.get(name)?).map(Arc::as_ref)
    }

    /// The entries of the offered tools.
    pub(super) fn entries(&self) -> &[Value] {
        &self.entries
    }
}

fn is_offered(tool: &McpTool, effects: &HashSet<String>) -> bool {
    tool.offered_after.as_ref().is_none_or(|after| effects.contains(after))
}

impl CompiledTool {
    /// Returns what a result violates of the output schema of the tool. Empty for results that clients do not check.
    pub(super) fn output_violations(&self, result: &Value) -> Vec<String> {
        match (&self.output, McpToolResult::from_json(result)) {
            (Some(schema), Ok(result)) => result.output_violations(schema),
            _ => Vec::new(),
        }
    }

    /// Returns what the arguments violate, one text for each of the first violations.
    pub(super) fn violations(&self, arguments: &Value) -> Vec<String> {
        let found = self.arguments.violations(arguments, MAX_VIOLATIONS);
        found.unwrap_or_else(|error| vec![error.to_string()])
    }
}

/// Returns one page of a list as a result, from the entry that the cursor names. Fails if the cursor is none
/// that this function made.
pub(super) fn list_page(
    member: &str,
    entries: &[Value],
    page_size: Option<usize>,
    cursor: Option<&Value>,
) -> Result<Value, RpcError> {
    let start = match cursor {
        None => 0,
        Some(cursor) => cursor
            .as_str()
            .and_then(|cursor| read_cursor(member, cursor))
            .filter(|start| *start <= entries.len())
            .ok_or_else(|| RpcError::new(error_code::INVALID_PARAMS, "unknown cursor"))?,
    };
    let size = page_size.unwrap_or(entries.len()).max(1);
    let end = start.saturating_add(size).min(entries.len());
    let mut result = json!({member: &entries[start..end]});
    if end < entries.len() {
        result["nextCursor"] = json!(URL_SAFE_NO_PAD.encode(format!("{member}:{end}")));
    }
    Ok(result)
}

fn read_cursor(member: &str, cursor: &str) -> Option<usize> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    text.strip_prefix(member)?.strip_prefix(':')?.parse().ok()
}
