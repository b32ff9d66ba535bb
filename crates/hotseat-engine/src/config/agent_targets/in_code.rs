//! Agents implemented by the test program.

use std::sync::Arc;

use serde_json::Value;

use super::{
    AgentTarget, BoundTarget, SupportedOptions, TargetCapabilities, TargetEnv, TargetInput, TargetSummary,
};
use hotseat_document::DocumentNode;
use hotseat_targets::AgentSession;
use hotseat_targets::code_agent::{CodeAgent, CodeAgentSession};

/// An agent implemented by the test program. It has no entry in a project file.
#[derive(Debug, Clone)]
struct InCodeTarget(Arc<dyn CodeAgent>);

impl AgentTarget for InCodeTarget {
    fn capabilities(_: &DocumentNode) -> TargetCapabilities {
        TargetCapabilities {
            keys: vec!["messages"],
            options: SupportedOptions::All,
            ..TargetCapabilities::none()
        }
    }

    fn read(_: &mut TargetInput<'_>) -> Option<Self> {
        None
    }

    fn open(&self, _: &TargetEnv) -> Box<dyn AgentSession> {
        Box::new(CodeAgentSession::open(|id| self.0.open(id)))
    }

    fn summary(&self) -> TargetSummary {
        TargetSummary::at(format!("in the test, {}", self.0.location()))
    }
}

impl TargetCapabilities {
    /// Capabilities of an agent implemented by this program.
    pub(in crate::config) fn in_code() -> TargetCapabilities {
        InCodeTarget::capabilities(&Value::Null.into())
    }
}

impl BoundTarget {
    /// Creates the target of an agent implemented by this program.
    pub(in crate::config) fn in_code(agent: Arc<dyn CodeAgent>) -> Self {
        BoundTarget { target: Box::new(InCodeTarget(agent)), tools: Vec::new(), secrets: Vec::new() }
    }
}
