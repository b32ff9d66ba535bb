//! Settings shared by cases, declared in the project file and in the head of a suite.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::agent_name::AgentName;
use super::assertions::CheckVocabulary;
use super::brief::SimulatorBrief;
use super::case::ParseSource;
use super::judging::read_judging;
use super::shape::CASE;
use super::suite::DecodeSettings;
use super::topics::{TopicDefinition, read_topics};
use super::variables::{VariableScope, interpolate};
use hotseat_document::{Diagnostic, Diagnostics, DocumentNode, Kind, MapView, NodeView, SourceText, check};

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

/// Decodes the head of a suite and merges it onto the project's settings. Returns `None` if the first
/// document is not a mapping with `suite`.
pub(super) fn read_head(
    document: &Result<Arc<SourceText>, Diagnostic>,
    parse: ParseSource,
    decoding: DecodeSettings<'_>,
) -> Option<Result<SharedSettings, Diagnostics>> {
    let source = document.as_ref().ok()?;
    // Most files have no head; this avoids parsing them.
    if !source.text.contains("suite") {
        return None;
    }
    let mut node = parse(source).ok()?;
    node.get("suite")?;
    let mut diagnostics = Diagnostics::new();
    check(&node, &Kind::Shape(&CASE), source, &mut diagnostics);
    diagnostics.extend(keys_next_to_suite(&node, source));
    if !diagnostics.is_empty() {
        return Some(Err(diagnostics));
    }
    let hook_variables = BTreeMap::new();
    let DecodeSettings { environment, redactor, .. } = decoding;
    let variables =
        VariableScope { environment, hook_variables: &hook_variables, allow_undefined: false, redactor };
    interpolate(&mut node, &Kind::Shape(&CASE), variables, source, &mut diagnostics);
    let declared = MapView::from_node(&node, source, &CASE).and_then(|head| head.map("suite"))?;
    let shared = SharedSettings::read(|key| declared.get(key), decoding.shared, &mut diagnostics);
    Some(if diagnostics.is_empty() { Ok(shared) } else { Err(diagnostics) })
}

/// Diagnostics for keys next to `suite`.
fn keys_next_to_suite(node: &DocumentNode, source: &Arc<SourceText>) -> Vec<Diagnostic> {
    let entries = NodeView::new(node, source).entries().into_iter().flatten();
    let others = entries.filter(|(key, ..)| *key != "suite").map(|(key, place, _)| {
        Diagnostic::new(format!("`{key}` is not allowed next to `suite`"))
            .at(place)
            .help("the head of a suite is a separate document; put shared settings under `suite`")
    });
    others.collect()
}
