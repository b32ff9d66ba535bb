//! JSON Schemas within files.

use hotseat_document::{Diagnostic, Node, Source, Value, View};
use std::sync::Arc;

use super::loader::Loader;
use crate::definition::schema;

/// Reads a JSON Schema.
pub(super) fn read(loader: &mut Loader, view: View<'_>) -> serde_json::Value {
    check(loader, view.node, view.source);
    view.json()
}

/// Reports what is wrong with a schema: first with those within it, so that a mistake has the nearest place.
fn check(loader: &mut Loader, node: &Node, source: &Arc<Source>) {
    let members = match node.get("properties").map(|members| &members.value) {
        Some(Value::Map(entries)) => entries.as_slice(),
        _ => &[],
    };
    let inner = members.iter().map(|entry| &entry.value);
    let inner = inner.chain(["items", "additionalProperties"].iter().filter_map(|key| node.get(key)));
    inner.for_each(|inner| check(loader, inner, source));
    let place = node.place(source);
    if loader.mistakes.any_within(&place) {
        return;
    }
    if let Err(problem) = schema::check(&node.to_json()) {
        // The problem names the keyword it is about.
        let keyword = problem.split('`').nth(1);
        let entries = match &node.value {
            Value::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        let entry = entries.iter().find(|entry| Some(entry.key.text.as_str()) == keyword);
        let place = entry.map_or(place, |entry| entry.key.place(source));
        loader.wrong(Diagnostic::new(format!("this JSON Schema cannot be used: {problem}")).at(place));
    }
}
