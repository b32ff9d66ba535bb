//! The tools of a mock with their compiled schemas, and the pages of lists.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hotseat_document::excerpt;
use hotseat_schema::{JsonSchema, JsonSchemaError};
use serde_json::{Value, json};

use crate::answer::{MAX_VIOLATIONS, McpToolResult};
use crate::definition::{DefinitionProblem, McpTool};
use crate::event::McpEventKind;
use crate::frame::RpcError;
use crate::revision::error_code;

/// Maximum length of the reason why a tool cannot be used. It may quote a part of the schema.
const MAX_PROBLEM_CHARS: usize = 400;

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
    /// Why listed tools of a proxied server are not in this catalog, by their names.
    unusable: Arc<HashMap<String, String>>,
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
            let tool = CompiledTool::new(tool)?;
            let name = tool.tool.name.clone();
            if indexes.insert(name.clone(), compiled.len()).is_some() {
                return Err(DefinitionProblem::DuplicateTool(name));
            }
            compiled.push(Arc::new(tool));
        }
        Ok(ToolCatalog::with_effects(compiled, Arc::new(indexes), HashSet::new()))
    }

    /// Compiles the entries of the list of a proxied server. Those that cannot be used are left out, with the reason.
    pub(super) fn from_entries(entries: &[Value]) -> ToolCatalog {
        let mut unusable = HashMap::new();
        let mut refuse = |name: Option<&str>, problem: DefinitionProblem| {
            if let Some(name) = name {
                unusable
                    .entry(name.to_string())
                    .or_insert_with(|| excerpt(&problem.to_string(), MAX_PROBLEM_CHARS).into_owned());
            }
        };
        let (mut compiled, mut indexes) = (Vec::with_capacity(entries.len()), HashMap::new());
        for entry in entries {
            let tool = McpTool::from_json(entry).and_then(|tool| CompiledTool::new(&tool));
            match tool {
                Err(problem) => refuse(entry.get("name").and_then(Value::as_str), problem),
                // The first one counts.
                Ok(tool) if indexes.contains_key(&tool.tool.name) => {}
                Ok(tool) => {
                    indexes.insert(tool.tool.name.clone(), compiled.len());
                    compiled.push(Arc::new(tool));
                }
            }
        }
        let catalog = ToolCatalog::with_effects(compiled, Arc::new(indexes), HashSet::new());
        ToolCatalog { unusable: Arc::new(unusable), ..catalog }
    }

    /// Returns why a listed tool is not in this catalog.
    pub(super) fn problem(&self, name: &str) -> Option<&str> {
        self.unusable.get(name).map(String::as_str)
    }

    fn with_effects(
        tools: Vec<Arc<CompiledTool>>,
        indexes: Arc<HashMap<String, usize>>,
        effects: HashSet<String>,
    ) -> ToolCatalog {
        let offered = tools.iter().filter(|tool| is_offered(&tool.tool, &effects));
        let entries = offered.map(|tool| tool.tool.to_json()).collect();
        ToolCatalog { entries, tools, indexes, effects, unusable: Arc::default() }
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
    /// Compiles the schemas of a tool. Fails if that of the arguments is invalid or refers to another document.
    fn new(tool: &McpTool) -> Result<CompiledTool, DefinitionProblem> {
        let arguments = JsonSchema::compile_foreign(&tool.input_schema)
            .map_err(|source| DefinitionProblem::Schema { tool: tool.name.clone(), source })?;
        let output = tool.output_schema.as_ref().and_then(|schema| JsonSchema::compile(schema).ok());
        Ok(CompiledTool { tool: tool.clone(), arguments, output })
    }

    /// Returns what a result violates of the output schema of the tool. Empty for results that clients do not check.
    pub(super) fn output_violations(&self, result: &Value) -> Vec<String> {
        match (&self.output, McpToolResult::from_json(result)) {
            (Some(schema), Ok(result)) => result.output_violations(schema),
            _ => Vec::new(),
        }
    }

    /// Validates the arguments of a call. Returns the event to report, unless they are valid: they are unchecked if a pattern that is
    /// not supported decides.
    pub(super) fn validate(&self, call: u64, arguments: &Value) -> Option<McpEventKind> {
        let violations = match self.arguments.violations(arguments, MAX_VIOLATIONS) {
            Err(error @ JsonSchemaError::UnsupportedPattern { .. }) => {
                let problem =
                    format!("`inputSchema` of the tool `{}` cannot be checked: {error}", self.tool.name);
                return Some(McpEventKind::UncheckedArguments { call, problem: Some(problem) });
            }
            found => found.unwrap_or_else(|error| vec![error.to_string()]),
        };
        (!violations.is_empty()).then_some(McpEventKind::InvalidArguments { call, violations })
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
    let start = match given_cursor(cursor) {
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

/// Returns the cursor of a page. Null and an empty text are none.
pub(super) fn given_cursor(cursor: Option<&Value>) -> Option<&Value> {
    cursor.filter(|cursor| !cursor.is_null() && *cursor != "")
}

fn read_cursor(member: &str, cursor: &str) -> Option<usize> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    text.strip_prefix(member)?.strip_prefix(':')?.parse().ok()
}
