//! State of the topics of a running conversation.

use std::sync::Arc;

use crate::cases::CaseTopics;

/// State of topic tracking.
pub(super) struct TopicTracker {
    pub topics: Arc<CaseTopics>,
    /// Index of the current topic in the graph.
    pub current: usize,
    /// Number of turns when visits were last evaluated. Earlier turns belong to visits that are done, with or
    /// without checks.
    pub evaluated_turns: usize,
}
