//! Markers by which an agent that awaits input is detected.

use std::sync::Arc;

use hotseat_document::{MapView, NodeView};
use serde::{Deserialize, Serialize};

use super::shape::AWAITING;

/// Markers of an agent that awaits input without declaring it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitingMarkers {
    /// Tools that ask the user for input.
    pub tools: Vec<String>,
    /// True if the agent's text is searched for questions.
    pub questions: bool,
}

impl Default for AwaitingMarkers {
    fn default() -> Self {
        let tools = ["request_confirmation", "ask_user", "get_user_input"].map(str::to_string);
        AwaitingMarkers { tools: tools.to_vec(), questions: true }
    }
}

/// Decodes the awaiting markers. Unset values are inherited.
pub fn awaiting_markers(map: &MapView<'_>, above: &Arc<AwaitingMarkers>) -> Arc<AwaitingMarkers> {
    let Some(written) = map.get("awaiting").and_then(|view| view.map(&AWAITING)) else {
        return above.clone();
    };
    let tools =
        written.list("tools").map(|tools| tools.into_iter().filter_map(NodeView::text).map(str::to_string));
    Arc::new(AwaitingMarkers {
        tools: tools.map_or_else(|| above.tools.clone(), Iterator::collect),
        questions: written.bool("questions").unwrap_or(above.questions),
    })
}
