//! Resources, prompts and completion of a mock.

use std::collections::BTreeMap;

use hotseat_trace::canonical_text;
use serde_json::{Map, Value, json};

use super::rpc_request::{RpcRequest, list, mock_content};
use crate::definition::{McpPrompt, McpResource};
use crate::fixed::FixedAnswer;
use crate::frame::RpcError;
use crate::input_rounds::UnansweredInput;
use crate::revision::error_code;

/// Answers a request for resources, prompts or completion; unknown methods are errors.
pub(super) fn answer(request: &RpcRequest) -> Result<Value, RpcError> {
    let (resources, prompts) = match mock_content(&request.server) {
        Some(content) => (content.resources.as_slice(), content.prompts.as_slice()),
        None => (&[][..], &[][..]),
    };
    let is_stateless = request.revision.is_stateless();
    // Clients with a handshake may ask for lists that the server did not announce; they get empty ones.
    let has_resources = !resources.is_empty() || !is_stateless;
    let has_prompts = !prompts.is_empty() || !is_stateless;
    match request.method.as_str() {
        "resources/list" if has_resources => list(request, "resources", &entries(resources, false)),
        "resources/templates/list" if has_resources => {
            list(request, "resourceTemplates", &entries(resources, true))
        }
        "resources/read" if has_resources => read_resource(request, resources),
        "resources/subscribe" | "resources/unsubscribe" if !is_stateless && has_resources => {
            find_resource(request, resources).map(|_| json!({}))
        }
        "prompts/list" if has_prompts => {
            let entries: Vec<_> = prompts.iter().map(|prompt| prompt.entry.clone()).collect();
            list(request, "prompts", &entries)
        }
        "prompts/get" if has_prompts => get_prompt(request, prompts),
        "completion/complete" if !prompts.is_empty() => {
            Ok(json!({"completion": {"values": [], "total": 0, "hasMore": false}}))
        }
        method => {
            Err(RpcError::new(error_code::METHOD_NOT_FOUND, format!("the server has no method `{method}`")))
        }
    }
}

fn entries(resources: &[McpResource], templates: bool) -> Vec<Value> {
    let wanted = resources.iter().filter(|resource| resource.is_template == templates);
    wanted.map(|resource| resource.entry.clone()).collect()
}

fn find_resource<'a>(
    request: &RpcRequest,
    resources: &'a [McpResource],
) -> Result<(&'a McpResource, Map<String, Value>), RpcError> {
    let uri = request.params.get("uri").and_then(Value::as_str);
    let uri = uri.ok_or_else(|| RpcError::new(error_code::INVALID_PARAMS, "`uri` is missing"))?;
    let found = resources.iter().find_map(|resource| match resource.is_template {
        false => (resource.id == uri).then(|| (resource, Map::new())),
        true => Some((resource, match_template(&resource.id, uri)?)),
    });
    found.ok_or_else(|| {
        let code = match request.revision.is_stateless() {
            true => error_code::INVALID_PARAMS,
            false => error_code::RESOURCE_NOT_FOUND,
        };
        RpcError::new(code, format!("Resource not found: {uri}")).with_data(json!({"uri": uri}))
    })
}

/// Returns the variables of a URI by a template with `{NAME}`, each a part without `/`.
fn match_template(template: &str, uri: &str) -> Option<Map<String, Value>> {
    let (mut template, mut uri) = (template, uri);
    let mut variables = Map::new();
    while let Some((before, after)) = template.split_once('{') {
        let (name, after) = after.split_once('}')?;
        uri = uri.strip_prefix(before)?;
        let literal = after.split('{').next().unwrap_or_default();
        let end = match literal.is_empty() {
            true => uri.len(),
            false => uri.find(literal)?,
        };
        let (value, rest) = uri.split_at(end);
        if value.is_empty() || value.contains('/') {
            return None;
        }
        variables.insert(name.to_string(), json!(value));
        (template, uri) = (after, rest);
    }
    (template == uri).then_some(variables)
}

fn read_resource(request: &RpcRequest, resources: &[McpResource]) -> Result<Value, RpcError> {
    let (resource, mut variables) = find_resource(request, resources)?;
    variables.insert("uri".to_string(), request.params["uri"].clone());
    let values = BTreeMap::from([("variables", &variables)]);
    let mut result = answer_in_rounds(request, &resource.answer, &values)?;
    if request.revision.is_stateless() && result.get("contents").is_some() {
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
    }
    Ok(result)
}

fn get_prompt(request: &RpcRequest, prompts: &[McpPrompt]) -> Result<Value, RpcError> {
    let name = request.params.get("name").and_then(Value::as_str).unwrap_or_default();
    let prompt = prompts.iter().find(|prompt| prompt.name == name);
    let invalid = |message: String| RpcError::new(error_code::INVALID_PARAMS, message);
    let prompt = prompt.ok_or_else(|| invalid(format!("Unknown prompt: {name}")))?;
    let none = Map::new();
    let arguments = request.params.get("arguments").and_then(Value::as_object).unwrap_or(&none);
    let declared = prompt.entry.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let is_required = |argument: &&Value| argument["required"].as_bool().unwrap_or(false);
    for argument in declared.filter(is_required) {
        let argument = argument["name"].as_str().unwrap_or_default();
        if !arguments.contains_key(argument) {
            return Err(invalid(format!("the argument `{argument}` of the prompt `{name}` is missing")));
        }
    }
    answer_in_rounds(request, &prompt.answer, &BTreeMap::from([("arguments", arguments)]))
}

/// Returns the answer, or the requests for input of a client without a session.
fn answer_in_rounds(
    request: &RpcRequest,
    answer: &FixedAnswer,
    values: &BTreeMap<&str, &Map<String, Value>>,
) -> Result<Value, RpcError> {
    let mut identity = Value::Object(request.params.clone());
    if let Some(members) = identity.as_object_mut() {
        members.retain(|key, _| !matches!(key.as_str(), "_meta" | "inputResponses" | "requestState"));
    }
    let purpose = format!(
        "{}/{}/{}/{}",
        request.conversation.token,
        request.server.name(),
        request.method,
        canonical_text(&identity)
    );
    let state = match request.params.get("requestState") {
        None => None,
        Some(text) => Some(
            text.as_str().and_then(|text| request.run.signer.verify(&purpose, text)).ok_or_else(|| {
                let message = "`requestState` was changed, or belongs to another request";
                RpcError::new(error_code::INVALID_PARAMS, message)
            })?,
        ),
    };
    let none = Map::new();
    let responses = request.params.get("inputResponses").and_then(Value::as_object).unwrap_or(&none);
    let input = match answer.complete(values, state.as_ref(), responses, &request.capabilities) {
        Ok(result) => return Ok(result),
        Err(input) => *input,
    };
    let refused = |message: &str| Err(RpcError::new(error_code::INVALID_REQUEST, message));
    match input {
        UnansweredInput::Asked(_) if !request.revision.is_stateless() => {
            refused("this answer needs input of the user, which only revision 2026-07-28 supports here")
        }
        UnansweredInput::Asked(input) => Ok(json!({
            "resultType": "input_required",
            "inputRequests": input.requests,
            "requestState": request.run.signer.sign(&purpose, &input.state.unwrap_or_default()),
        })),
        UnansweredInput::Refused(text) => refused(&text),
        UnansweredInput::Error(error) => Err(error),
    }
}
