//! JSON Schemas in files.

use hotseat_document::{Diagnostic, DocumentNode, NodeValue, NodeView, SourceText};
use std::sync::Arc;

use super::loader::AgentLoader;
use crate::definition::schema;

/// Decodes a JSON Schema and reports its problems.
pub(super) fn read(loader: &mut AgentLoader, view: NodeView<'_>) -> serde_json::Value {
    check(loader, view.node, view.source);
    view.json()
}

/// Reports the problems of a schema. Nested schemas come first, so that a problem is reported at the
/// innermost position.
fn check(loader: &mut AgentLoader, node: &DocumentNode, source: &Arc<SourceText>) {
    let members = match node.get("properties").map(|members| &members.value) {
        Some(NodeValue::Map(entries)) => entries.as_slice(),
        _ => &[],
    };
    let inner = members.iter().map(|entry| &entry.value);
    let inner = inner.chain(["items", "additionalProperties"].iter().filter_map(|key| node.get(key)));
    inner.for_each(|inner| check(loader, inner, source));
    let place = node.place(source);
    if loader.diagnostics.any_within(&place) {
        return;
    }
    if let Err(problem) = schema::check(&node.to_json()) {
        let keyword = problem.keyword();
        let entries = match &node.value {
            NodeValue::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        let entry = entries.iter().find(|entry| Some(entry.key.text.as_str()) == keyword);
        let place = entry.map_or(place, |entry| entry.key.place(source));
        loader.report_diagnostic(Diagnostic::new(format!("invalid JSON Schema: {problem}")).at(place));
    }
}
