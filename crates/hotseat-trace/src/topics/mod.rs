//! Topics of a conversation: graph, visits and SVG rendering.

mod graph;
mod layout;
mod svg;
mod visits;

pub use graph::{GraphError, GraphErrorKind, GraphNode, TopicGraph, TriggerOrder};
pub use visits::Visit;
