//! Decodes embedded targets.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_document::{Diagnostics, MapView};
use hotseat_runtime::conversation::ContextEntry;
use hotseat_runtime::files::{self, LoadOptions};
use serde_json::Value;

use super::is_secret;
use crate::cases::CaseTarget;
use crate::config::agent::AgentReadContext;
use hotseat_targets::embedded::EmbeddedTarget;
use hotseat_targets::message::RequestIdentity;
/// Decodes a target, and returns the secrets that its files take from the environment.
pub(super) fn read_target(
    map: &MapView<'_>,
    around: AgentReadContext<'_>,
    mistakes: &mut Diagnostics,
) -> Option<(EmbeddedTarget, BTreeMap<String, String>)> {
    let AgentReadContext { root, connectors, environment } = around;
    let path = root.join(map.text("agent")?);
    let secrets = RefCell::new(BTreeMap::new());
    let looked_up = |name: &str| {
        let value = environment.get(name).cloned();
        if let Some(value) = value.as_ref().filter(|value| is_secret(name, value)) {
            secrets.borrow_mut().insert(name.to_string(), value.clone());
        }
        value
    };
    let agent =
        match files::load(&path, &LoadOptions { environment: &looked_up, connectors: Some(connectors) }) {
            Ok(agent) => Arc::new(agent),
            Err(wrong) => {
                mistakes.extend(wrong);
                return None;
            }
        };
    let target = EmbeddedTarget {
        agent,
        path: path.components().collect(),
        conversation_id: map.text("threadId").map(str::to_string),
        state: map.json("state"),
        context: map.json("context").map(|context| parse_context_entries(&context)).unwrap_or_default(),
        identity: RequestIdentity::default(),
        connectors: BTreeMap::new(),
    };
    Some((target, secrets.into_inner()))
}

pub(super) fn apply_case(target: &mut EmbeddedTarget, case: &CaseTarget) {
    target.identity.clone_from(&case.identity);
    if let Some(id) = &case.thread_id {
        target.conversation_id = Some(id.clone());
    }
    if let Some(state) = &case.state {
        target.state = Some(state.clone());
    }
    if let Some(context) = &case.context {
        target.context = parse_context_entries(context);
    }
}

/// Parses context entries whose shape is valid.
fn parse_context_entries(context: &Value) -> Vec<ContextEntry> {
    serde_json::from_value(context.clone()).unwrap_or_default()
}

/// Description of an agent, and its tools including those of the client.
pub(super) fn describe<'a>(
    target: &'a EmbeddedTarget,
    offered: impl Iterator<Item = (&'a String, &'a String, &'a Value)>,
) -> (Option<String>, Vec<Value>) {
    let own = target.agent.definitions.agent(&target.agent.id);
    let own = own.into_iter().flat_map(|agent| &agent.persona.tools);
    let own = own.map(|tool| (&tool.name, &tool.description, &tool.input_schema));
    (target.agent.description.clone(), own.chain(offered).map(tool_json).collect())
}

/// Description of a tool for roles.
pub(super) fn tool_json((name, description, parameters): (&String, &String, &Value)) -> Value {
    serde_json::json!({"name": name, "description": description, "parameters": parameters})
}
