//! Topics: the phases of a conversation, which of them may follow which, and how that is drawn.

mod graph;
mod layout;
mod svg;
mod visits;

pub use graph::{GraphError, GraphMistake, GraphNode, Precedence, TopicGraph, Wired};
pub use visits::Visit;
