//! Decodes checkpoints.

use std::collections::HashMap;

use super::assertions::AssertionBlock;
use super::shape::CHECKPOINT;
use hotseat_checks::{Check, CheckKind, CheckStrength, ConversationValue, NumberComparison};
use hotseat_document::{Diagnostic, Diagnostics, MapView, SourceSpan};

/// Maximum number of ids in a message.
const MAX_LISTED: usize = 20;

/// A condition that some turn has to reach.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// Name.
    pub id: String,
    /// Description.
    pub description: Option<String>,
    /// Indices of the checkpoints that must be reached first.
    pub after: Vec<usize>,
    /// Checks that the reaching turn must pass.
    pub checks: Vec<Check>,
    /// True if the case fails without it.
    pub required: bool,
    /// Position of the name in the file.
    pub place: SourceSpan,
}

/// Decodes the checkpoints of a case. Reports duplicate names and cycles.
pub(super) fn read_checkpoints(case: &MapView<'_>, diagnostics: &mut Diagnostics) -> Vec<Checkpoint> {
    let maps: Vec<MapView<'_>> = case.maps("checkpoints", &CHECKPOINT).collect();
    let id = |map: &MapView<'_>| map.text("id").unwrap_or_default().to_string();
    let ids: Vec<String> = maps.iter().map(id).collect();
    let mut places = HashMap::new();
    for (place, id) in ids.iter().enumerate() {
        places.entry(id.as_str()).or_insert(place);
    }
    let mut checkpoints = Vec::new();
    for (place, map) in maps.iter().enumerate() {
        if places[ids[place].as_str()] != place {
            diagnostics.report(map.place_of("id"), format!("duplicate checkpoint id `{}`", ids[place]));
        }
        let mut after = Vec::new();
        for name in map.items("after") {
            let wanted = name.text().unwrap_or_default();
            match places.get(wanted) {
                Some(found) => after.push(*found),
                None => {
                    let listed = ids.iter().take(MAX_LISTED).map(|id| format!("`{id}`"));
                    let known = listed.collect::<Vec<_>>().join(", ");
                    let more = if ids.len() > MAX_LISTED { ", …" } else { "" };
                    let message = format!("unknown checkpoint `{wanted}`");
                    let help = format!("there are {known}{more}");
                    diagnostics.push(Diagnostic::new(message).at(name.place()).help(help));
                }
            }
        }
        let checks = AssertionBlock::read_turn_checks(map.get("assertion"), diagnostics);
        if let Some(assertion) = map
            .get("assertion")
            .filter(|_| checks.is_empty())
            .filter(|view| view.entries().is_some_and(|entries| entries.len() == 0))
        {
            diagnostics.report(assertion.place(), "this checkpoint asserts nothing");
        }
        checkpoints.push(Checkpoint {
            id: ids[place].clone(),
            description: map.text("description").map(str::to_string),
            after,
            checks,
            required: map.bool("required").unwrap_or(true),
            place: map.place_near("id"),
        });
    }
    if let Some(stuck) = find_cycle(&checkpoints) {
        let names: Vec<&str> = stuck.iter().map(|&place| checkpoints[place].id.as_str()).collect();
        let message = format!("these checkpoints depend on each other in a cycle: {}", names.join(", "));
        diagnostics.report(checkpoints[stuck[0]].place.clone(), message);
    }
    checkpoints
}

/// Reports checkpoints of a case that are reached by a turn in which nothing happens. Their criteria must be resolved.
pub(super) fn refuse_idle_checkpoints(
    case: &MapView<'_>,
    checkpoints: &[Checkpoint],
    diagnostics: &mut Diagnostics,
) {
    let passes_by_itself = |check: &Check| !check.is_timing() && check.passes_in_idle_turn();
    for (map, Checkpoint { id, checks, .. }) in case.maps("checkpoints", &CHECKPOINT).zip(checkpoints) {
        if !checks.is_empty() && checks.iter().all(passes_by_itself) {
            let message = format!("the checkpoint `{id}` is reached by a turn in which nothing happens");
            let help = "a checkpoint needs something that the agent does; use `turn_assert` for what must hold in every turn";
            diagnostics.push(Diagnostic::new(message).at(map.place_near("assertion")).help(help));
        }
    }
}

/// Reports checkpoints of a case that no turn can reach: they need a turn beyond the last one, or before the first.
/// `max_turns` is the number of turns that the case can have, if it is limited.
pub(super) fn refuse_unreachable_checkpoints(
    checkpoints: &[Checkpoint],
    max_turns: Option<usize>,
    diagnostics: &mut Diagnostics,
) {
    let last = max_turns.and_then(|max| u64::try_from(max).ok()).unwrap_or(u64::MAX);
    for Checkpoint { id, checks, .. } in checkpoints {
        for check in checks.iter().filter(|check| !check.negated && check.strength == CheckStrength::Hard) {
            let CheckKind::ConversationValue(ConversationValue::TurnCount(number)) = &check.kind else {
                continue;
            };
            let needed = match *number {
                NumberComparison::Equal(needed) | NumberComparison::AtLeast(needed) if needed > last => {
                    needed
                }
                NumberComparison::Equal(0) | NumberComparison::AtMost(0) => 0,
                _ => continue,
            };
            let help = match needed {
                0 => "the first turn is number 1".to_string(),
                _ => format!("the case has at most {last} turns"),
            };
            let message =
                format!("no turn can reach the checkpoint `{id}`: it needs a `turn_count` of {needed}");
            diagnostics.push(Diagnostic::new(message).at(check.place.clone()).help(help));
        }
    }
}

/// Finds checkpoints that can never be reached because they depend on each other.
fn find_cycle(checkpoints: &[Checkpoint]) -> Option<Vec<usize>> {
    let mut missing: Vec<usize> = checkpoints.iter().map(|checkpoint| checkpoint.after.len()).collect();
    let mut dependents = vec![Vec::new(); checkpoints.len()];
    for (place, checkpoint) in checkpoints.iter().enumerate() {
        checkpoint.after.iter().for_each(|&before| dependents[before].push(place));
    }
    let mut free: Vec<usize> = (0..checkpoints.len()).filter(|&place| missing[place] == 0).collect();
    while let Some(place) = free.pop() {
        for &dependent in &dependents[place] {
            missing[dependent] -= 1;
            if missing[dependent] == 0 {
                free.push(dependent);
            }
        }
    }
    let stuck: Vec<usize> = (0..checkpoints.len()).filter(|&place| missing[place] > 0).collect();
    (!stuck.is_empty()).then_some(stuck)
}
