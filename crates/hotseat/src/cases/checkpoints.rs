//! Checkpoints, as people write them.

use super::block::Block;
use super::shape::CHECKPOINT;
use super::variables::mistake;
use crate::checks::Check;
use hotseat_document::{Diagnostics, Map, Place, View};

/// Something that has to be reached in some turn.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// Its name.
    pub id: String,
    /// What it stands for.
    pub description: Option<String>,
    /// The checkpoints that are reached before it, by their places in the list.
    pub after: Vec<usize>,
    /// What holds of the turn in which it is reached.
    pub checks: Vec<Check>,
    /// Whether the case fails if it is not reached.
    pub required: bool,
    /// Where its name is written.
    pub place: Place,
}

/// Reads the checkpoints of a case. Each has a name of its own, and no order leads back to itself.
pub(super) fn checkpoints(case: &Map<'_>, mistakes: &mut Diagnostics) -> Vec<Checkpoint> {
    let maps: Vec<Map<'_>> =
        case.list("checkpoints").into_iter().flatten().filter_map(|view| view.map(&CHECKPOINT)).collect();
    let id = |map: &Map<'_>| map.text("id").unwrap_or_default().to_string();
    let ids: Vec<String> = maps.iter().map(id).collect();
    let mut checkpoints = Vec::new();
    for (place, map) in maps.iter().enumerate() {
        if ids[..place].contains(&ids[place]) {
            mistakes
                .push(mistake(map.place_of("id"), format!("another checkpoint is called `{}`", ids[place])));
        }
        let mut after = Vec::new();
        for name in map.list("after").into_iter().flatten() {
            let wanted = name.text().unwrap_or_default();
            match ids.iter().position(|id| id == wanted) {
                Some(found) => after.push(found),
                None => {
                    let known = ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
                    let message = format!("no checkpoint is called `{wanted}`");
                    mistakes.push(mistake(Some(name.place()), message).help(format!("there are {known}")));
                }
            }
        }
        let checks = Block::read(map.get("assertion"), mistakes).checks();
        if let Some(assertion) =
            map.get("assertion").filter(|_| checks.is_empty()).filter(|view| says_nothing(*view))
        {
            mistakes.push(mistake(Some(assertion.place()), "this checkpoint asserts nothing"));
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
    if let Some(stuck) = in_a_circle(&checkpoints) {
        let names: Vec<&str> = stuck.iter().map(|&place| checkpoints[place].id.as_str()).collect();
        let message = format!("these checkpoints wait for each other: {}", names.join(", "));
        mistakes.push(mistake(Some(checkpoints[stuck[0]].place.clone()), message));
    }
    checkpoints
}

fn says_nothing(view: View<'_>) -> bool {
    view.entries().is_some_and(|entries| entries.len() == 0)
}

/// The checkpoints that can never be reached because each waits for another of them.
fn in_a_circle(checkpoints: &[Checkpoint]) -> Option<Vec<usize>> {
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
