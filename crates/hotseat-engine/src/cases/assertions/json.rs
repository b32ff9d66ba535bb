//! Assertions about JSON in the answer: `json_path`, `type`, `schema`.

use super::prelude::*;
use hotseat_checks::{
    CompiledSchema, JsonPathCheck, JsonPathQuery, JsonSchemaCheck, JsonTypeCheck, JsonValueType,
};

assertion_type! {
    /// A value at a JSON path. Searched in order: the answer if it is or contains JSON, the result of the
    /// run, the shared state, the tool results from last to first. The first document in which the path
    /// selects a value is used.
    JSON_PATH "JsonPath" "json_path" {
        /// A JSON path of RFC 9535; the leading `$.` is optional.
        required "path" = Kind::JsonPath,
        /// The expected value. A list also matches if one of its entries does; if the path may select several values, for
        /// example with `[*]`, the list is compared with all of them in order. Without `value` the path only has to select
        /// something.
        optional "value" = Kind::Json,
    }
    |map, diagnostics| {
        let path = json_path(map.get("path")?, diagnostics)?;
        check_at(map, "path", CheckKind::JsonPath(JsonPathCheck { path, value: map.json("value") }))
    },
    |written| {
        let path = written.get("path")?.as_str()?;
        Some(match written.get("value") {
            Some(value) => format!("{path} = {value}"),
            None => path.to_string(),
        })
    }
}

assertion_type! {
    /// The type of the answer, or of the value at a path. An answer that is not entirely JSON is a `string`.
    TYPE "Type" "type" {
        /// The type.
        required "value" = Kind::Choice(JsonValueType::NAMES),
        /// JSON path to the value, as in `json_path`.
        optional "path" = Kind::JsonPath,
    }
    |map, diagnostics| {
        let expected = JsonValueType::from_name(map.text("value")?)?;
        let path = optional_path(map, diagnostics)?;
        check_at(map, "value", CheckKind::JsonType(JsonTypeCheck { path, expected }))
    },
    |written| {
        let path = written.get("path").and_then(Value::as_str).map(|path| format!("{path} = "));
        Some(format!("type {}{}", path.unwrap_or_default(), written.get("value")?))
    }
}

assertion_type! {
    /// The answer as JSON, or the value at a path, is valid against a JSON Schema. Remote references are not
    /// fetched.
    SCHEMA "Schema" "schema" {
        /// The schema: draft 2020-12 unless `$schema` sets another.
        required "schema" = Kind::OneOf(&[Kind::Bool, Kind::JsonSchema]), aliases &["value"],
        /// JSON path to the value, as in `json_path`.
        optional "path" = Kind::JsonPath,
    }
    |map, diagnostics| {
        let path = optional_path(map, diagnostics)?;
        match CompiledSchema::compile(&map.json("schema")?) {
            Ok(schema) => check_at(map, "schema", CheckKind::JsonSchema(JsonSchemaCheck { schema, path })),
            Err(words) => {
                diagnostics.report(map.place_of("schema"), words);
                None
            }
        }
    }
}

fn json_path(view: NodeView<'_>, diagnostics: &mut Diagnostics) -> Option<JsonPathQuery> {
    match JsonPathQuery::parse(view.text()?) {
        Ok(path) => Some(path),
        Err(words) => {
            diagnostics.report(view.place(), format!("invalid JSON path: {words}"));
            None
        }
    }
}

/// Decodes an optional path. The outer `None` means that it is invalid.
fn optional_path(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Option<JsonPathQuery>> {
    match map.get("path") {
        Some(view) => json_path(view, diagnostics).map(Some),
        None => Some(None),
    }
}
