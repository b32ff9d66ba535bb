//! What cases have in common: declared in the project file, and at the head of a suite.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::brief::Brief;
use super::case::Parse;
use super::criteria::Vocabulary;
use super::judging::judging;
use super::shape::CASE;
use super::suite::Decoding;
use super::tested::AgentName;
use super::topics::{Topic, topics};
use super::variables::{Variables, interpolate};
use hotseat_document::{Diagnostic, Diagnostics, Kind, Map, Node, Source, View, check};

/// What cases have in common.
#[derive(Debug, Clone, Default)]
pub struct Shared {
    /// Topics that graphs may use.
    pub topics: Vec<Arc<Topic>>,
    /// The graph of cases that have none of their own.
    pub graph: Option<Arc<(Node, Arc<Source>)>>,
    /// What simulated users have in common.
    pub simulate: Brief,
    /// What assertions take from around them.
    pub vocabulary: Arc<Vocabulary>,
    /// The agent that cases test which name none themselves.
    pub agent: Option<AgentName>,
}

impl Shared {
    /// Reads what is declared under keys of these names, on top of what is declared above.
    pub fn read<'n>(
        get: impl Fn(&str) -> Option<View<'n>>,
        above: &Shared,
        mistakes: &mut Diagnostics,
    ) -> Shared {
        let agent = get("agent").and_then(AgentName::read).or_else(|| above.agent.clone());
        let graph = get("graph").map(|view| Arc::new((view.node.clone(), view.source.clone())));
        Shared {
            agent,
            topics: topics(get("topics"), &above.topics, mistakes),
            graph: graph.or_else(|| above.graph.clone()),
            simulate: Brief::read_shared(get("simulate"), &above.simulate, mistakes),
            vocabulary: Arc::new(
                above
                    .vocabulary
                    .with_criteria(get("criteria"), mistakes)
                    .with_judging(judging(get("judge"), mistakes)),
            ),
        }
    }

    /// The graph of cases that have none of their own.
    pub fn graph(&self) -> Option<View<'_>> {
        self.graph.as_ref().map(|graph| View::new(&graph.0, &graph.1))
    }
}

/// The head of a suite on top of what the project declares, if its first document is one: a mapping with `suite`.
pub(super) fn head(
    document: &Result<Arc<Source>, Diagnostic>,
    parse: Parse,
    decoding: Decoding<'_>,
) -> Option<Result<Shared, Diagnostics>> {
    let source = document.as_ref().ok()?;
    // Most files have none, and it is found without taking them apart.
    if !source.text.contains("suite") {
        return None;
    }
    let mut node = parse(source).ok()?;
    node.get("suite")?;
    let mut mistakes = Diagnostics::new();
    check(&node, &Kind::Shape(&CASE), source, &mut mistakes);
    mistakes.extend(alone(&node, source));
    if !mistakes.is_empty() {
        return Some(Err(mistakes));
    }
    let given = BTreeMap::new();
    let Decoding { environment, redactor, .. } = decoding;
    let variables = Variables { environment, given: &given, more_to_come: false, redactor };
    interpolate(&mut node, &Kind::Shape(&CASE), variables, source, &mut mistakes);
    let declared = Map::of(&node, source, &CASE).and_then(|head| head.map("suite"))?;
    let shared = Shared::read(|key| declared.get(key), decoding.shared, &mut mistakes);
    Some(if mistakes.is_empty() { Ok(shared) } else { Err(mistakes) })
}

/// What stands beside `suite`, which stands alone.
fn alone(node: &Node, source: &Arc<Source>) -> Vec<Diagnostic> {
    let entries = View::new(node, source).entries().into_iter().flatten();
    let others = entries.filter(|(key, ..)| *key != "suite").map(|(key, place, _)| {
        Diagnostic::new(format!("`{key}` stands beside `suite`"))
            .at(place)
            .help("the head of a suite is a document of its own and no case; what cases have in common stands under `suite`")
    });
    others.collect()
}
