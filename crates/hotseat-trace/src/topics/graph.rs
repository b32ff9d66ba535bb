//! Which topics may follow which.

use std::fmt;
use std::sync::Arc;

use crate::DeclaredTopic;

/// Topics and which of them may follow which. The first one is where conversations begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicGraph {
    nodes: Vec<GraphNode>,
}

/// A topic in a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphNode {
    /// Its name.
    pub name: Arc<str>,
    /// The topics that may follow it, by their places in the graph, in the order in which they were declared.
    pub next: Vec<usize>,
    /// Whether it may follow every other topic.
    pub from_any: bool,
    /// How many turns there may be in it, all visits together.
    pub max_turns: Option<usize>,
}

/// A topic as it is put into a graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wired {
    /// Its name.
    pub name: String,
    /// The names of the topics that may follow it.
    pub next: Vec<String>,
    /// Whether it may follow every other topic.
    pub from_any: bool,
    /// How many turns there may be in it, all visits together.
    pub max_turns: Option<usize>,
}

/// Something that is wrong with a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphError {
    /// What.
    pub mistake: GraphMistake,
    /// The place of the topic among those that were declared, from 0; none where it is the graph as a whole.
    pub topic: Option<usize>,
    /// The place of the name among those that may follow the topic, from 0, where it is one of them.
    pub next: Option<usize>,
}

/// What can be wrong with a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphMistake {
    /// It has no topic.
    Empty,
    /// A topic may be followed by one that is not in the graph.
    UndefinedNext {
        /// The topic.
        topic: String,
        /// What may follow it.
        next: String,
    },
    /// A topic is put into the graph that is defined nowhere.
    UndefinedTopic(String),
    /// A topic may be followed by itself.
    SelfLoop(String),
    /// No way leads to a topic.
    Unreachable(String),
    /// A topic is in the graph twice.
    Twice(String),
    /// A topic may be followed by another one, and that is said twice.
    NextTwice {
        /// The topic.
        topic: String,
        /// What may follow it.
        next: String,
    },
    /// A name that is a whole number: keys like it are moved to the front by what reads JSON.
    Number(String),
}

impl GraphMistake {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            GraphMistake::Empty => "the first topic of a graph is where conversations begin",
            GraphMistake::UndefinedNext { .. } => {
                "put it into the graph, with what may follow it, or with nothing"
            }
            GraphMistake::UndefinedTopic(_) => {
                "define it under `topics`, or say here what it is: `characteristic`, `triggers`"
            }
            GraphMistake::SelfLoop(_) => {
                "leave it out: a conversation stays in its topic as long as nothing shows that it has left it"
            }
            GraphMistake::Unreachable(_) => {
                "let another topic be followed by it, or write `from: any` for one that may follow every other"
            }
            GraphMistake::Twice(_) | GraphMistake::NextTwice { .. } => "leave one of them out",
            GraphMistake::Number(_) => "give it a name with a letter in it",
        }
    }
}

impl fmt::Display for GraphMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphMistake::Empty => f.write_str("the graph has no topic"),
            GraphMistake::UndefinedNext { topic, next } => {
                write!(f, "topic `{topic}` references undefined topic `{next}`")
            }
            GraphMistake::UndefinedTopic(name) => {
                write!(f, "topic `{name}` is in the graph, but never defined")
            }
            GraphMistake::SelfLoop(name) => write!(f, "topic `{name}` is followed by itself"),
            GraphMistake::Unreachable(name) => {
                write!(f, "topic `{name}` is unreachable: no way leads to it from the first topic")
            }
            GraphMistake::Twice(name) => write!(f, "topic `{name}` is already in the graph"),
            GraphMistake::NextTwice { topic, next } => {
                write!(f, "topic `{topic}` is followed by `{next}` twice")
            }
            GraphMistake::Number(name) => {
                write!(f, "`{name}` is no name for a topic: names that are numbers lose their order")
            }
        }
    }
}

impl TopicGraph {
    /// A graph of topics, in the order in which they are declared.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn build(declared: &[Wired], is_defined: impl Fn(&str) -> bool) -> Result<Self, Vec<GraphError>> {
        let mut errors = Vec::new();
        let mut found = |mistake, topic, next| errors.push(GraphError { mistake, topic, next });
        if declared.is_empty() {
            found(GraphMistake::Empty, None, None);
        }
        let place = |name: &str| declared.iter().position(|wired| wired.name == name);
        for (number, wired) in declared.iter().enumerate() {
            let name = || wired.name.clone();
            if place(&wired.name) != Some(number) {
                found(GraphMistake::Twice(name()), Some(number), None);
            }
            if is_number(&wired.name) {
                found(GraphMistake::Number(name()), Some(number), None);
            }
            if !is_defined(&wired.name) {
                found(GraphMistake::UndefinedTopic(name()), Some(number), None);
            }
            for (at, next) in wired.next.iter().enumerate() {
                let (topic, next) = (name(), next.clone());
                let mistake = match () {
                    () if next == topic => GraphMistake::SelfLoop(topic),
                    () if place(&next).is_none() => GraphMistake::UndefinedNext { topic, next },
                    () if wired.next[..at].contains(&next) => GraphMistake::NextTwice { topic, next },
                    () => continue,
                };
                found(mistake, Some(number), Some(at));
            }
        }
        let graph = TopicGraph::of_valid(declared);
        let reachable = graph.reachable();
        for (number, wired) in declared.iter().enumerate() {
            if !reachable.contains(&number) && place(&wired.name) == Some(number) {
                found(GraphMistake::Unreachable(wired.name.clone()), Some(number), None);
            }
        }
        if errors.is_empty() { Ok(graph) } else { Err(errors) }
    }

    /// The graph of an event. What is not in it is passed over.
    pub fn of_declared(topics: &[DeclaredTopic]) -> Self {
        let wired: Vec<Wired> = topics
            .iter()
            .map(|topic| Wired {
                name: topic.name.to_string(),
                next: topic.next.iter().map(ToString::to_string).collect(),
                from_any: topic.from_any,
                max_turns: topic.max_turns,
            })
            .collect();
        TopicGraph::of_valid(&wired)
    }

    fn of_valid(declared: &[Wired]) -> Self {
        let place = |name: &String| declared.iter().position(|wired| wired.name == *name);
        let nodes = declared.iter().map(|wired| GraphNode {
            name: wired.name.as_str().into(),
            next: wired.next.iter().filter_map(place).collect(),
            from_any: wired.from_any,
            max_turns: wired.max_turns,
        });
        TopicGraph { nodes: nodes.collect() }
    }

    /// The topics as an event tells of them.
    pub fn declared(&self) -> Vec<DeclaredTopic> {
        let name = |place: &usize| self.nodes[*place].name.clone();
        let topics = self.nodes.iter().map(|node| DeclaredTopic {
            name: node.name.clone(),
            next: node.next.iter().map(name).collect(),
            from_any: node.from_any,
            max_turns: node.max_turns,
        });
        topics.collect()
    }

    /// Its topics, in order.
    pub fn nodes(&self) -> &[GraphNode] {
        &self.nodes
    }

    /// How many topics it has.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it has none. A graph that was built has one.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The names of its topics, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| &*node.name)
    }

    /// The place of a topic, from 0.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| &*node.name == name)
    }

    /// The topics to which a conversation may go from one: those that are said to follow it, in that order, then
    /// those that may follow every topic.
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

    /// The topics to which some way leads from the first one, itself included, in the order in which they are found.
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

    /// Whose triggers are asked after a turn, and who is left to choose from when none of them fires.
    pub fn precedence(&self, current: usize) -> Precedence {
        let mut asked = vec![current];
        asked.extend(self.successors(current));
        Precedence { asked, at: 0 }
    }
}

/// The order in which triggers are asked after a turn: first those of the current topic, so that a conversation stays
/// where it can, then those of its successors as they are declared. The first one that fires decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Precedence {
    asked: Vec<usize>,
    at: usize,
}

impl Iterator for Precedence {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let next = self.asked.get(self.at).copied();
        self.at += 1;
        next
    }
}

impl Precedence {
    /// Where nothing has fired: the topics of which one has to be chosen, the current one first. None where the
    /// current one is the only one: then there is nothing to choose.
    pub fn choice(&self) -> Option<&[usize]> {
        (self.asked.len() > 1).then_some(&*self.asked)
    }
}

/// Whether a key like this is moved to the front of its mapping where JSON is read as JavaScript reads it.
fn is_number(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wired(edges: &[(&str, &[&str])]) -> Vec<Wired> {
        let wired = |(name, next): &(&str, &[&str])| Wired {
            name: (*name).to_string(),
            next: next.iter().map(ToString::to_string).collect(),
            ..Wired::default()
        };
        edges.iter().map(wired).collect()
    }

    fn mistakes(edges: &[(&str, &[&str])], defined: &[&str]) -> Vec<String> {
        let errors = TopicGraph::build(&wired(edges), |name| defined.contains(&name)).unwrap_err();
        errors.iter().map(|error| error.mistake.to_string()).collect()
    }

    const ALL: &[&str] = &["a", "b", "c", "d", "7"];

    #[test]
    fn every_mistake_is_named_at_once() {
        let found = mistakes(
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
                "`7` is no name for a topic: names that are numbers lose their order",
                "topic `c` is unreachable: no way leads to it from the first topic",
                "topic `d` is unreachable: no way leads to it from the first topic",
                "topic `e` is unreachable: no way leads to it from the first topic",
                "topic `7` is unreachable: no way leads to it from the first topic",
            ]
        );
        assert_eq!(mistakes(&[], ALL), ["the graph has no topic"]);
    }

    #[test]
    fn mistakes_are_told_apart_and_say_what_to_do() {
        let topic = || "a".to_string();
        let all = [
            GraphMistake::Empty,
            GraphMistake::UndefinedNext { topic: topic(), next: topic() },
            GraphMistake::UndefinedTopic(topic()),
            GraphMistake::SelfLoop(topic()),
            GraphMistake::Unreachable(topic()),
            GraphMistake::Twice(topic()),
            GraphMistake::NextTwice { topic: topic(), next: topic() },
            GraphMistake::Number(topic()),
        ];
        let words: std::collections::BTreeSet<_> = all.iter().map(ToString::to_string).collect();
        assert_eq!(words.len(), all.len());
        assert!(all.iter().all(|mistake| !mistake.help().is_empty()));
    }

    #[test]
    fn a_mistake_knows_where_it_is() {
        let errors = TopicGraph::build(&wired(&[("a", &["b", "x"]), ("b", &[])]), |_| true).unwrap_err();
        assert_eq!((errors[0].topic, errors[0].next), (Some(0), Some(1)));
    }

    #[test]
    fn circles_are_allowed_and_any_reaches_from_everywhere() {
        let mut declared = wired(&[("a", &["b"]), ("b", &["a"]), ("c", &["a"])]);
        assert!(TopicGraph::build(&declared, |_| true).is_err(), "no way leads to c");
        declared[2].from_any = true;
        let graph = TopicGraph::build(&declared, |_| true).unwrap();
        assert_eq!(graph.successors(0), [1, 2]);
        assert_eq!(graph.successors(1), [0, 2]);
        assert_eq!(graph.successors(2), [0]);
        assert_eq!(graph.reachable(), [0, 1, 2]);
        assert_eq!(TopicGraph::of_declared(&graph.declared()), graph);
    }

    #[test]
    fn the_current_topic_is_asked_first_and_then_its_successors_as_they_are_declared() {
        let graph = TopicGraph::build(
            &wired(&[("a", &["c", "b"]), ("b", &["d"]), ("c", &[]), ("d", &["a"])]),
            |_| true,
        );
        let graph = graph.unwrap();
        let order = graph.precedence(0);
        assert_eq!(order.choice(), Some(&[0, 2, 1][..]), "d follows a at no time");
        assert_eq!(order.collect::<Vec<_>>(), [0, 2, 1]);
        assert_eq!(graph.precedence(2).choice(), None, "nothing follows c, so there is nothing to choose");
    }
}
