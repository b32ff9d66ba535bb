//! An agent of Hotseat's own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_document::{Diagnostics, Map};
use hotseat_runtime::conversation::ContextEntry;
use hotseat_runtime::files::{self, Options};
use serde_json::Value;

use super::is_secret;
use crate::adapters::embedded::Target;
use crate::cases::CaseTarget;
use crate::config::agent::Surroundings;
use crate::session::Identity;
/// The target, and the secrets that its files take from the environment.
pub(super) fn read(
    map: &Map<'_>,
    around: Surroundings<'_>,
    mistakes: &mut Diagnostics,
) -> Option<(Target, BTreeMap<String, String>)> {
    let Surroundings { root, connectors, environment } = around;
    let path = root.join(map.text("agent")?);
    let secrets = RefCell::new(BTreeMap::new());
    let looked_up = |name: &str| {
        let value = environment.get(name).cloned();
        if let Some(value) = value.as_ref().filter(|value| is_secret(name, value)) {
            secrets.borrow_mut().insert(name.to_string(), value.clone());
        }
        value
    };
    let agent = match files::load(&path, &Options { environment: &looked_up, connectors: Some(connectors) }) {
        Ok(agent) => Arc::new(agent),
        Err(wrong) => {
            mistakes.extend(wrong);
            return None;
        }
    };
    let target = Target {
        agent,
        path: path.components().collect(),
        conversation_id: map.text("threadId").map(str::to_string),
        state: map.json("state"),
        context: map.json("context").map(|context| entries(&context)).unwrap_or_default(),
        identity: Identity::default(),
        connectors: BTreeMap::new(),
    };
    Some((target, secrets.into_inner()))
}

pub(super) fn for_case(target: &mut Target, case: &CaseTarget) {
    target.identity.clone_from(&case.identity);
    if let Some(id) = &case.thread_id {
        target.conversation_id = Some(id.clone());
    }
    if let Some(state) = &case.state {
        target.state = Some(state.clone());
    }
    if let Some(context) = &case.context {
        target.context = entries(context);
    }
}

/// Context entries whose shape was checked.
fn entries(context: &Value) -> Vec<ContextEntry> {
    serde_json::from_value(context.clone()).unwrap_or_default()
}

/// What an agent is for, and its tools with those of the client.
pub(super) fn described<'a>(
    target: &'a Target,
    offered: impl Iterator<Item = (&'a String, &'a String, &'a Value)>,
) -> (Option<String>, Vec<Value>) {
    let own = target.agent.definitions.agent(&target.agent.id);
    let own = own.into_iter().flat_map(|agent| &agent.persona.tools);
    let own = own.map(|tool| (&tool.name, &tool.description, &tool.input_schema));
    (target.agent.description.clone(), own.chain(offered).map(tool).collect())
}

/// A tool in words that helpers understand.
pub(super) fn tool((name, description, parameters): (&String, &String, &Value)) -> Value {
    serde_json::json!({"name": name, "description": description, "parameters": parameters})
}
