//! Decodes traffic limits of agents.

use super::shape::{BOUNDS, LIMITS};
use hotseat_document::MapView;
use hotseat_targets::recorder::{TrafficBounds, TrafficLimits};

/// Decodes `limits` of a project file. Unset values keep their defaults.
pub(super) fn read_limits(project: &MapView<'_>) -> TrafficLimits {
    let usual = TrafficLimits::default();
    let Some(map) = project.get("limits").and_then(|view| view.map(&LIMITS)) else { return usual };
    let bounds = |key: &str, usual: TrafficBounds| {
        let Some(map) = map.get(key).and_then(|view| view.map(&BOUNDS)) else { return usual };
        let read =
            |key: &str, usual: u64| map.integer(key).and_then(|n| u64::try_from(n).ok()).unwrap_or(usual);
        TrafficBounds {
            events: read("events", usual.events),
            bytes: read("bytes", usual.bytes),
            calls: read("calls", usual.calls),
        }
    };
    TrafficLimits {
        turn: bounds("turn", usual.turn),
        conversation: bounds("conversation", usual.conversation),
        run: bounds("run", usual.run),
    }
}
