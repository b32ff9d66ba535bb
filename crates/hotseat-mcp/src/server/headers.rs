//! Headers of stateless requests, which repeat parts of the body.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::catalog::ToolCatalog;
use crate::bridge::BRIDGE_HEADER;
use crate::frame::RpcError;
use crate::revision::{ProtocolRevision, error_code, meta};

/// Header with the identifier of a session.
pub(super) const SESSION_ID: &str = "mcp-session-id";
/// Header with the revision.
pub(super) const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// Header with the last event of a stream that the client resumes.
pub(super) const LAST_EVENT_ID: &str = "last-event-id";

/// Returns a header that is text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns the revision in the body of a request.
pub(super) fn body_version(params: &Map<String, Value>) -> Option<&str> {
    params.get("_meta")?.get(meta::PROTOCOL_VERSION)?.as_str()
}

/// Checks the revision, the required members of `_meta`, and the headers against the body.
///
/// # Errors
/// The error to answer with.
pub(super) fn validate(
    headers: &HeaderMap,
    method: &str,
    params: &Map<String, Value>,
    tools: &ToolCatalog,
) -> Result<(), RpcError> {
    let Some(version) = body_version(params) else {
        let named = text(headers, PROTOCOL_VERSION);
        if let Some(unknown) = named.filter(|name| !is_served(name)) {
            return Err(unsupported(unknown));
        }
        let message = format!("`_meta` must contain `{}`", meta::PROTOCOL_VERSION);
        return Err(RpcError::new(error_code::INVALID_PARAMS, message));
    };
    let has_headers = !headers.contains_key(BRIDGE_HEADER);
    if has_headers && text(headers, PROTOCOL_VERSION) != Some(version) {
        return Err(mismatch("MCP-Protocol-Version", text(headers, PROTOCOL_VERSION), version));
    }
    if !ProtocolRevision::from_name(version).is_some_and(ProtocolRevision::is_stateless) {
        return Err(unsupported(version));
    }
    if !params["_meta"].get(meta::CLIENT_CAPABILITIES).is_some_and(Value::is_object) {
        let message = format!("`_meta` must contain the object `{}`", meta::CLIENT_CAPABILITIES);
        return Err(RpcError::new(error_code::INVALID_PARAMS, message));
    }
    if !has_headers {
        return Ok(());
    }
    if text(headers, "mcp-method") != Some(method) {
        return Err(mismatch("Mcp-Method", text(headers, "mcp-method"), method));
    }
    let named = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        _ => None,
    };
    if let Some(name) = named.and_then(Value::as_str)
        && decoded(headers, "mcp-name").as_deref() != Some(name)
    {
        return Err(mismatch("Mcp-Name", text(headers, "mcp-name"), name));
    }
    if method == "tools/call"
        && let Some(tool) = named.and_then(Value::as_str).and_then(|name| tools.find(name))
    {
        let arguments = params.get("arguments").unwrap_or(&Value::Null);
        validate_parameters(headers, &tool.tool.input_schema, arguments)?;
    }
    Ok(())
}

/// Whether servers of this crate speak the revision of a header.
pub(super) fn is_served(name: &str) -> bool {
    ProtocolRevision::from_name(name).is_some_and(ProtocolRevision::is_served)
}

/// The error for a client of an unknown revision, such as `2024-11-05`.
fn unsupported(revision: &str) -> RpcError {
    let supported: Vec<_> = ProtocolRevision::NEWEST_FIRST.iter().map(|revision| revision.name()).collect();
    let message =
        format!("Unsupported protocol version {revision:?}: the server speaks {}", supported.join(", "));
    RpcError::new(error_code::UNSUPPORTED_VERSION, message)
        .with_data(json!({"supported": supported, "requested": revision}))
}

fn mismatch(header: &str, found: Option<&str>, body: &str) -> RpcError {
    let found = found.map_or("is missing".to_string(), |found| format!("is {found:?}"));
    let message = format!("Header mismatch: {header} {found}, the body says {body:?}");
    RpcError::new(error_code::HEADER_MISMATCH, message)
}

/// Returns a header, decoded if it is in Base64.
fn decoded(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = text(headers, name)?;
    match text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(text.to_string()),
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
    }
}

/// Checks the headers of arguments whose schema has `x-mcp-header`. The recursion is bounded by the depth of the
/// arguments, which the parser bounds.
fn validate_parameters(headers: &HeaderMap, schema: &Value, arguments: &Value) -> Result<(), RpcError> {
    let (Some(properties), Some(arguments)) =
        (schema.get("properties").and_then(Value::as_object), arguments.as_object())
    else {
        return Ok(());
    };
    for (name, property) in properties {
        let Some(value) = arguments.get(name).filter(|value| !value.is_null()) else { continue };
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            let header = format!("mcp-param-{}", header.to_ascii_lowercase());
            let found = decoded(headers, &header);
            let is_equal = found.as_deref().is_some_and(|found| is_same_value(found, value));
            if !is_equal {
                return Err(mismatch(&header, found.as_deref(), &value.to_string()));
            }
        }
        validate_parameters(headers, property, value)?;
    }
    Ok(())
}

fn is_same_value(header: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => header == text,
        Value::Bool(flag) => header == flag.to_string(),
        Value::Number(number) => header.parse::<f64>().ok() == number.as_f64(),
        _ => false,
    }
}
