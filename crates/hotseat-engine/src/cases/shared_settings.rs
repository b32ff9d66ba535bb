//! Settings shared by cases, declared in the project file and in the heads of suites.

use std::sync::Arc;

use super::agent_name::AgentName;
use super::assertions::CheckVocabulary;
use super::brief::SimulatorBrief;
use super::judging::read_judging;
use super::mcp::McpSettings;
use super::models::ModelSettings;
use super::topics::{TopicDefinition, read_topics};
use hotseat_document::{Diagnostics, DocumentNode, NodeView, SourceText};

/// Settings shared by cases.
#[derive(Debug, Clone, Default)]
pub struct SharedSettings {
    /// Topics for graphs.
    pub topics: Vec<Arc<TopicDefinition>>,
    /// Default graph.
    pub graph: Option<Arc<(DocumentNode, Arc<SourceText>)>>,
    /// Shared settings of simulated users.
    pub simulate: SimulatorBrief,
    /// Definitions for resolving assertions.
    pub vocabulary: Arc<CheckVocabulary>,
    /// MCP servers.
    pub mcp: Arc<McpSettings>,
    /// Served models.
    pub models: Arc<ModelSettings>,
    /// Default agent to test.
    pub agent: Option<AgentName>,
}

impl SharedSettings {
    /// Decodes the settings under these keys and merges them onto the inherited ones.
    pub fn read<'n>(
        get: impl Fn(&str) -> Option<NodeView<'n>>,
        above: &SharedSettings,
        diagnostics: &mut Diagnostics,
    ) -> SharedSettings {
        let agent = get("agent").and_then(AgentName::read).or_else(|| above.agent.clone());
        let graph = get("graph").map(|view| Arc::new((view.node.clone(), view.source.clone())));
        SharedSettings {
            agent,
            mcp: McpSettings::read(get("mcp"), &above.mcp, diagnostics),
            models: ModelSettings::read(get("models"), &above.models, diagnostics),
            topics: read_topics(get("topics"), &above.topics, diagnostics),
            graph: graph.or_else(|| above.graph.clone()),
            simulate: SimulatorBrief::read_shared(get("simulate"), &above.simulate, diagnostics),
            vocabulary: Arc::new(
                above
                    .vocabulary
                    .with_criteria(get("criteria"), diagnostics)
                    .with_judging(read_judging(get("judge"), diagnostics)),
            ),
        }
    }

    /// Default graph.
    pub fn graph(&self) -> Option<NodeView<'_>> {
        self.graph.as_ref().map(|graph| NodeView::new(&graph.0, &graph.1))
    }
}
