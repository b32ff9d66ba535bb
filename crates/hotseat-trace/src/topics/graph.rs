//! Graph of topics and their possible successors.

use std::sync::Arc;

use crate::DeclaredTopic;

/// Graph of topics. The first topic is the initial one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicGraph {
    nodes: Vec<GraphNode>,
}

/// A topic of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphNode {
    /// Name of the topic.
    pub name: Arc<str>,
    /// Indices of the topics that may follow, in declaration order.
    pub next: Vec<usize>,
    /// True if the topic may follow every other topic.
    pub from_any: bool,
    /// Maximum number of turns in the topic, over all visits.
    pub max_turns: Option<usize>,
}

/// An error in a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphError {
    /// Kind of error.
    pub kind: GraphErrorKind,
    /// Index of the topic in the declaration. None for an error of the whole graph.
    pub topic: Option<usize>,
    /// Index of the faulty successor of the topic, if any.
    pub next: Option<usize>,
}

/// Kinds of errors in a graph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum GraphErrorKind {
    #[error("the graph has no topic")]
    Empty,
    #[error("topic `{topic}` references undefined topic `{next}`")]
    UndefinedNext { topic: String, next: String },
    #[error("topic `{0}` is in the graph, but never defined")]
    UndefinedTopic(String),
    #[error("topic `{0}` is followed by itself")]
    SelfLoop(String),
    #[error("topic `{0}` is unreachable: no path leads to it from the first topic")]
    Unreachable(String),
    #[error("topic `{0}` is already in the graph")]
    DuplicateTopic(String),
    #[error("topic `{topic}` is followed by `{next}` twice")]
    DuplicateNext { topic: String, next: String },
    #[error("`{0}` is not a valid topic name: numeric names lose their order in JSON")]
    NumericName(String),
}

impl GraphErrorKind {
    /// Returns advice on how to fix the error.
    pub fn help(&self) -> &'static str {
        match self {
            GraphErrorKind::Empty => "the first topic of a graph is where conversations begin",
            GraphErrorKind::UndefinedNext { .. } => "add it to the graph, with or without successors",
            GraphErrorKind::UndefinedTopic(_) => {
                "define it under `topics`, or describe it here with `characteristic` or `triggers`"
            }
            GraphErrorKind::SelfLoop(_) => {
                "remove it: a conversation stays in its topic until another topic is detected"
            }
            GraphErrorKind::Unreachable(_) => {
                "add it as a successor of another topic, or set `from: any` if it may follow every other"
            }
            GraphErrorKind::DuplicateTopic(_) | GraphErrorKind::DuplicateNext { .. } => "remove one of them",
            GraphErrorKind::NumericName(_) => "give it a name with a letter in it",
        }
    }
}

impl TopicGraph {
    /// Builds a graph from topics in declaration order. `is_defined` tells which names are defined topics.
    ///
    /// # Errors
    /// All errors in the graph.
    pub fn build(
        declared: &[DeclaredTopic],
        is_defined: impl Fn(&str) -> bool,
    ) -> Result<Self, Vec<GraphError>> {
        let mut errors = Vec::new();
        let mut found = |mistake, topic, next| errors.push(GraphError { kind: mistake, topic, next });
        if declared.is_empty() {
            found(GraphErrorKind::Empty, None, None);
        }
        let place = |name: &str| declared.iter().position(|wired| &*wired.name == name);
        for (number, wired) in declared.iter().enumerate() {
            let name = || wired.name.to_string();
            if place(&wired.name) != Some(number) {
                found(GraphErrorKind::DuplicateTopic(name()), Some(number), None);
            }
            if is_number(&wired.name) {
                found(GraphErrorKind::NumericName(name()), Some(number), None);
            }
            if !is_defined(&wired.name) {
                found(GraphErrorKind::UndefinedTopic(name()), Some(number), None);
            }
            for (at, next) in wired.next.iter().enumerate() {
                let (topic, next) = (name(), next.to_string());
                let mistake = match () {
                    () if next == topic => GraphErrorKind::SelfLoop(topic),
                    () if place(&next).is_none() => GraphErrorKind::UndefinedNext { topic, next },
                    () if wired.next[..at].contains(&wired.next[at]) => {
                        GraphErrorKind::DuplicateNext { topic, next }
                    }
                    () => continue,
                };
                found(mistake, Some(number), Some(at));
            }
        }
        let graph = TopicGraph::from_declared(declared);
        let reachable = graph.reachable();
        for (number, wired) in declared.iter().enumerate() {
            if !reachable.contains(&number) && place(&wired.name) == Some(number) {
                found(GraphErrorKind::Unreachable(wired.name.to_string()), Some(number), None);
            }
        }
        if errors.is_empty() { Ok(graph) } else { Err(errors) }
    }

    /// Creates the graph of a `topics.declared` event. Unknown successors are ignored.
    pub fn from_declared(declared: &[DeclaredTopic]) -> Self {
        let place = |name: &Arc<str>| declared.iter().position(|wired| wired.name == *name);
        let nodes = declared.iter().map(|wired| GraphNode {
            name: wired.name.clone(),
            next: wired.next.iter().filter_map(place).collect(),
            from_any: wired.from_any,
            max_turns: wired.max_turns,
        });
        TopicGraph { nodes: nodes.collect() }
    }

    /// Returns the topics in the form of a `topics.declared` event.
    pub fn to_declared(&self) -> Vec<DeclaredTopic> {
        let name = |place: &usize| self.nodes[*place].name.clone();
        let topics = self.nodes.iter().map(|node| DeclaredTopic {
            name: node.name.clone(),
            next: node.next.iter().map(name).collect(),
            from_any: node.from_any,
            max_turns: node.max_turns,
        });
        topics.collect()
    }

    /// Returns the topics, in order.
    pub fn nodes(&self) -> &[GraphNode] {
        &self.nodes
    }

    /// Returns the number of topics.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if the graph has no topics. Graphs from [`TopicGraph::build`] have at least one.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the names of the topics, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| &*node.name)
    }

    /// Returns the index of a topic.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| &*node.name == name)
    }

    /// Returns the possible next topics: declared successors in order, then topics that may follow every
    /// other.
    pub fn successors(&self, from: usize) -> Vec<usize> {
        let Some(node) = self.nodes.get(from) else { return Vec::new() };
        let mut all = node.next.clone();
        for (place, other) in self.nodes.iter().enumerate() {
            if other.from_any && place != from && !all.contains(&place) {
                all.push(place);
            }
        }
        all
    }

    /// Returns the topics reachable from the first one, itself included, in breadth-first order.
    pub fn reachable(&self) -> Vec<usize> {
        let mut found: Vec<usize> = (0..self.nodes.len().min(1)).collect();
        let mut at = 0;
        while let Some(&place) = found.get(at) {
            for next in self.successors(place) {
                if !found.contains(&next) {
                    found.push(next);
                }
            }
            at += 1;
        }
        found
    }

    /// Returns the order in which triggers are evaluated after a turn in topic `current`.
    pub fn trigger_order(&self, current: usize) -> TriggerOrder {
        let mut asked = vec![current];
        asked.extend(self.successors(current));
        TriggerOrder { topics: asked, position: 0 }
    }
}

/// The order in which topic triggers are evaluated after a turn: the current topic first, so that the
/// conversation stays where possible, then its successors in declaration order. The first trigger that fires
/// decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerOrder {
    topics: Vec<usize>,
    position: usize,
}

impl Iterator for TriggerOrder {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let next = self.topics.get(self.position).copied();
        self.position += 1;
        next
    }
}

impl TriggerOrder {
    /// Returns the candidate topics if no trigger fired, the current one first. None if there is no
    /// alternative.
    pub fn candidates(&self) -> Option<&[usize]> {
        (self.topics.len() > 1).then_some(&*self.topics)
    }
}

/// Returns true for names that JavaScript-like JSON parsers move to the front of an object.
fn is_number(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions(edges: &[(&str, &[&str])]) -> Vec<DeclaredTopic> {
        let wired = |(name, next): &(&str, &[&str])| DeclaredTopic {
            name: (*name).into(),
            next: next.iter().map(|next| (*next).into()).collect(),
            ..DeclaredTopic::default()
        };
        edges.iter().map(wired).collect()
    }

    fn error_messages(edges: &[(&str, &[&str])], defined: &[&str]) -> Vec<String> {
        let errors = TopicGraph::build(&definitions(edges), |name| defined.contains(&name)).unwrap_err();
        errors.iter().map(|error| error.kind.to_string()).collect()
    }

    const ALL: &[&str] = &["a", "b", "c", "d", "7"];

    #[test]
    fn all_errors_are_reported_together() {
        let found = error_messages(
            &[
                ("a", &["b", "b", "x"]),
                ("b", &["b"]),
                ("b", &[]),
                ("c", &["d"]),
                ("d", &[]),
                ("e", &[]),
                ("7", &[]),
            ],
            ALL,
        );
        assert_eq!(
            found,
            [
                "topic `a` is followed by `b` twice",
                "topic `a` references undefined topic `x`",
                "topic `b` is followed by itself",
                "topic `b` is already in the graph",
                "topic `e` is in the graph, but never defined",
                "`7` is not a valid topic name: numeric names lose their order in JSON",
                "topic `c` is unreachable: no path leads to it from the first topic",
                "topic `d` is unreachable: no path leads to it from the first topic",
                "topic `e` is unreachable: no path leads to it from the first topic",
                "topic `7` is unreachable: no path leads to it from the first topic",
            ]
        );
        assert_eq!(error_messages(&[], ALL), ["the graph has no topic"]);
    }

    #[test]
    fn error_kinds_have_distinct_messages_and_help() {
        let topic = || "a".to_string();
        let all = [
            GraphErrorKind::Empty,
            GraphErrorKind::UndefinedNext { topic: topic(), next: topic() },
            GraphErrorKind::UndefinedTopic(topic()),
            GraphErrorKind::SelfLoop(topic()),
            GraphErrorKind::Unreachable(topic()),
            GraphErrorKind::DuplicateTopic(topic()),
            GraphErrorKind::DuplicateNext { topic: topic(), next: topic() },
            GraphErrorKind::NumericName(topic()),
        ];
        let words: std::collections::BTreeSet<_> = all.iter().map(ToString::to_string).collect();
        assert_eq!(words.len(), all.len());
        assert!(all.iter().all(|mistake| !mistake.help().is_empty()));
    }

    #[test]
    fn error_has_indices() {
        let errors =
            TopicGraph::build(&definitions(&[("a", &["b", "x"]), ("b", &[])]), |_| true).unwrap_err();
        assert_eq!((errors[0].topic, errors[0].next), (Some(0), Some(1)));
    }

    #[test]
    fn cycles_and_from_any_topics_are_allowed() {
        let mut declared = definitions(&[("a", &["b"]), ("b", &["a"]), ("c", &["a"])]);
        assert!(TopicGraph::build(&declared, |_| true).is_err(), "no way leads to c");
        declared[2].from_any = true;
        let graph = TopicGraph::build(&declared, |_| true).unwrap();
        assert_eq!(graph.successors(0), [1, 2]);
        assert_eq!(graph.successors(1), [0, 2]);
        assert_eq!(graph.successors(2), [0]);
        assert_eq!(graph.reachable(), [0, 1, 2]);
        assert_eq!(TopicGraph::from_declared(&graph.to_declared()), graph);
    }

    #[test]
    fn current_topic_precedes_successors_in_trigger_order() {
        let graph = TopicGraph::build(
            &definitions(&[("a", &["c", "b"]), ("b", &["d"]), ("c", &[]), ("d", &["a"])]),
            |_| true,
        );
        let graph = graph.unwrap();
        let order = graph.trigger_order(0);
        assert_eq!(order.candidates(), Some(&[0, 2, 1][..]), "d follows a at no time");
        assert_eq!(order.collect::<Vec<_>>(), [0, 2, 1]);
        assert_eq!(
            graph.trigger_order(2).candidates(),
            None,
            "nothing follows c, so there is nothing to choose"
        );
    }
}
