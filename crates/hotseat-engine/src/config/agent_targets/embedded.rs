//! Embedded agents, which run in this process.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::{
    AgentTarget, SupportedOptions, TargetCapabilities, TargetEnv, TargetInput, TargetSummary, tool_json,
};
use crate::cases::CaseTarget;
use hotseat_document::{Diagnostic, DocumentNode};
use hotseat_runtime::conversation::ContextEntry;
use hotseat_runtime::files::{self, ConnectorSet, LoadOptions, ModelConnector};
use hotseat_targets::AgentSession;
pub(super) use hotseat_targets::embedded::EmbeddedTarget;
use hotseat_targets::embedded::{self, EmbeddedSession};
use hotseat_targets::message::{ClientTool, RequestIdentity};
use hotseat_targets::recorder::is_secret;

impl AgentTarget for EmbeddedTarget {
    fn reads_files() -> bool {
        true
    }

    fn capabilities(_: &DocumentNode) -> TargetCapabilities {
        TargetCapabilities {
            keys: vec!["threadId", "state", "context", "tools", "messages", "user", "team", "locale"],
            options: SupportedOptions::Only(
                embedded::SUPPORTED_OPTIONS.map(|name| vec![name.to_string()]).to_vec(),
            ),
            own_connectors: true,
            uses_connectors: true,
            option_error,
            key_help: |key| (key == "attachments").then(|| "embedded agents support text only".to_string()),
            option_help: |_| Some("embedded agents support `connector` and `metadata`".to_string()),
            resolve: |name, place, connectors, environment| {
                connectors.get(name, place, environment).map(Some)
            },
            ..TargetCapabilities::all()
        }
    }

    fn read(input: &mut TargetInput<'_>) -> Option<Self> {
        let (map, mistakes) = (input.map, &mut *input.mistakes);
        let path = input.root.join(map.text("agent")?);
        let secrets = RefCell::new(BTreeMap::new());
        let looked_up = |name: &str| {
            let value = input.environment.get(name).cloned();
            if let Some(value) = value.as_ref().filter(|value| is_secret(name, value)) {
                secrets.borrow_mut().insert(name.to_string(), value.clone());
            }
            value
        };
        let agent = match files::load(
            &path,
            &LoadOptions { environment: &looked_up, connectors: Some(input.connectors) },
        ) {
            Ok(agent) => Arc::new(agent),
            Err(wrong) => {
                // An error without a place is about the path itself.
                let place = map.place_of("agent");
                mistakes.extend(wrong.into_iter().map(|wrong| Diagnostic {
                    place: wrong.place.clone().or_else(|| place.clone()),
                    ..wrong
                }));
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
        input.secrets.extend(secrets.into_inner());
        Some(target)
    }

    fn open(&self, env: &TargetEnv) -> Box<dyn AgentSession> {
        Box::new(EmbeddedSession::open(env.http.clone(), self.clone()))
    }

    fn summary(&self) -> TargetSummary {
        let definition = self.agent.definitions.agent(&self.agent.id);
        TargetSummary {
            id: Some(self.agent.id.to_string()),
            path: self.path.display().to_string(),
            connector: definition.map(|agent| agent.persona.profile.id.to_string()),
            label: format!("{} (embedded)", self.agent.id),
        }
    }

    fn named_paths(&self) -> Vec<PathBuf> {
        self.agent.files.clone()
    }

    fn apply_case(&mut self, case: &CaseTarget) {
        self.identity.clone_from(&case.identity);
        if let Some(id) = &case.thread_id {
            self.conversation_id = Some(id.clone());
        }
        if let Some(state) = &case.state {
            self.state = Some(state.clone());
        }
        if let Some(context) = &case.context {
            self.context = parse_context_entries(context);
        }
    }

    fn fixed_conversation_id(&mut self) -> Option<&mut String> {
        self.conversation_id.as_mut()
    }

    fn set_connectors(&mut self, connectors: BTreeMap<String, ModelConnector>) {
        self.connectors = connectors;
    }

    fn own_connectors(&self) -> Option<&ConnectorSet> {
        Some(&self.agent.available_connectors)
    }

    fn description(&self) -> Option<String> {
        self.agent.description.clone()
    }

    fn written_files(&self) -> Option<&str> {
        Some(&self.agent.written)
    }

    fn tool_error(&self, tool: &ClientTool) -> Option<String> {
        embedded::executed_tool_error(&self.agent, &tool.name)
    }

    fn own_tools(&self) -> Vec<Value> {
        let agent = self.agent.definitions.agent(&self.agent.id);
        let tools = agent.into_iter().flat_map(|agent| &agent.persona.tools);
        tools.map(|tool| tool_json(&tool.name, &tool.description, &tool.input_schema)).collect()
    }
}

/// Reports wishes under `options.skip` that differ from what embedded agents always do.
fn option_error(name: &str, value: &Value) -> Option<Result<(), Diagnostic>> {
    let wishes = value.as_object().filter(|_| name == "skip")?;
    let Some((what, wanted)) = wishes.iter().find(|(what, wanted)| !embedded::satisfies_skip(what, wanted))
    else {
        return Some(Ok(()));
    };
    let message =
        format!("this case sets `options.skip.{what}: {wanted}`, which embedded agents do not support");
    let help =
        "its conversations are never stored and always traced, as with `history: true` and `trace: false`";
    Some(Err(Diagnostic::new(message).help(help)))
}

/// Parses context entries whose shape is valid.
fn parse_context_entries(context: &Value) -> Vec<ContextEntry> {
    serde_json::from_value(context.clone()).unwrap_or_default()
}
