//! The tools of a mock with their compiled schemas, and the pages of lists.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::definition::{DefinitionProblem, McpTool};
use crate::frame::RpcError;
use crate::revision::error_code;

/// Maximum number of violations that are reported for one call.
const MAX_VIOLATIONS: usize = 8;

/// Tools in the order of `tools/list`.
pub(super) struct ToolCatalog {
    entries: Vec<Value>,
    tools: HashMap<String, CompiledTool>,
}

/// A tool with its schema.
pub(super) struct CompiledTool {
    pub(super) tool: McpTool,
    arguments: jsonschema::Validator,
}

impl ToolCatalog {
    /// Compiles the tools.
    ///
    /// # Errors
    /// If two tools have the same name, or a schema is invalid or refers to another document.
    pub(super) fn new(tools: &[McpTool]) -> Result<ToolCatalog, DefinitionProblem> {
        let mut catalog = ToolCatalog { entries: Vec::new(), tools: HashMap::new() };
        for tool in tools {
            let arguments = jsonschema::options()
                .with_pattern_options(jsonschema::PatternOptions::regex())
                .build(&tool.input_schema)
                .map_err(|error| DefinitionProblem::Schema {
                    tool: tool.name.clone(),
                    source: Box::new(error),
                })?;
            catalog.entries.push(tool.to_json());
            let compiled = CompiledTool { tool: tool.clone(), arguments };
            if catalog.tools.insert(tool.name.clone(), compiled).is_some() {
                return Err(DefinitionProblem::DuplicateTool(tool.name.clone()));
            }
        }
        Ok(catalog)
    }

    pub(super) fn find(&self, name: &str) -> Option<&CompiledTool> {
        self.tools.get(name)
    }

    pub(super) fn entries(&self) -> &[Value] {
        &self.entries
    }
}

impl CompiledTool {
    /// Returns what the arguments violate, one text for each violation.
    pub(super) fn violations(&self, arguments: &Value) -> Vec<String> {
        let text = |error: jsonschema::ValidationError<'_>| match error.instance_path().as_str() {
            "" => error.to_string(),
            path => format!("{path}: {error}"),
        };
        self.arguments.iter_errors(arguments).take(MAX_VIOLATIONS).map(text).collect()
    }
}

/// Returns one page of a list as a result, from the entry that the cursor names.
///
/// # Errors
/// If the cursor is none that this function made.
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
