//! Decodes checkpoints.

use super::assertions::AssertionBlock;
use super::shape::CHECKPOINT;
use super::variables::diagnostic_at;
use hotseat_checks::Check;
use hotseat_document::{Diagnostics, MapView, NodeView, SourceSpan};

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
    let maps: Vec<MapView<'_>> =
        case.list("checkpoints").into_iter().flatten().filter_map(|view| view.map(&CHECKPOINT)).collect();
    let id = |map: &MapView<'_>| map.text("id").unwrap_or_default().to_string();
    let ids: Vec<String> = maps.iter().map(id).collect();
    let mut checkpoints = Vec::new();
    for (place, map) in maps.iter().enumerate() {
        if ids[..place].contains(&ids[place]) {
            diagnostics
                .push(diagnostic_at(map.place_of("id"), format!("duplicate checkpoint id `{}`", ids[place])));
        }
        let mut after = Vec::new();
        for name in map.list("after").into_iter().flatten() {
            let wanted = name.text().unwrap_or_default();
            match ids.iter().position(|id| id == wanted) {
                Some(found) => after.push(found),
                None => {
                    let known = ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
                    let message = format!("unknown checkpoint `{wanted}`");
                    diagnostics
                        .push(diagnostic_at(Some(name.place()), message).help(format!("there are {known}")));
                }
            }
        }
        let checks = AssertionBlock::read(map.get("assertion"), diagnostics).into_checks();
        if let Some(assertion) =
            map.get("assertion").filter(|_| checks.is_empty()).filter(|view| is_empty_mapping(*view))
        {
            diagnostics.push(diagnostic_at(Some(assertion.place()), "this checkpoint asserts nothing"));
        }
        checkpoints.push(Checkpoint {
            id: ids[place].clone(),
            description: map.text("description").map(str::to_string),
            after,
            checks,
            required: map.bool("required").unwrap_or(true),
            place: map.place_of("id").unwrap_or_else(|| map.place()),
        });
    }
    if let Some(stuck) = find_cycle(&checkpoints) {
        let names: Vec<&str> = stuck.iter().map(|&place| checkpoints[place].id.as_str()).collect();
        let message = format!("these checkpoints depend on each other in a cycle: {}", names.join(", "));
        diagnostics.push(diagnostic_at(Some(checkpoints[stuck[0]].place.clone()), message));
    }
    checkpoints
}

fn is_empty_mapping(view: NodeView<'_>) -> bool {
    view.entries().is_some_and(|entries| entries.len() == 0)
}

/// Finds checkpoints that can never be reached because they depend on each other.
fn find_cycle(checkpoints: &[Checkpoint]) -> Option<Vec<usize>> {
    let mut waiting: Vec<usize> = (0..checkpoints.len()).collect();
    loop {
        let free = |place: &usize| !checkpoints[*place].after.iter().any(|before| waiting.contains(before));
        let left: Vec<usize> = waiting.iter().filter(|place| !free(place)).copied().collect();
        if left.is_empty() {
            return None;
        }
        if left.len() == waiting.len() {
            return Some(left);
        }
        waiting = left;
    }
}
