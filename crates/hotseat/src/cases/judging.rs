//! Who judges and how, as people write it.

use super::assertion::reference;
use super::limits::timeout;
use super::shape::{EVIDENCE, JUDGE};
use crate::checks::{EvidenceLimit, EvidenceOverflow, Judging};
use hotseat_document::{Diagnostics, View};

/// Reads `judge`: who, or a mapping that says more. Where nothing is written nothing is said.
pub fn judging(view: Option<View<'_>>, mistakes: &mut Diagnostics) -> Judging {
    let Some(view) = view else { return Judging::default() };
    let Some(map) = view.map(&JUDGE) else {
        return Judging { judge: reference(view, mistakes), ..Judging::default() };
    };
    let whole = |key: &str| map.integer(key).and_then(|n| usize::try_from(n).ok());
    Judging {
        judge: map.get("use").and_then(|view| reference(view, mistakes)),
        connector: map.text("connector").map(str::to_string),
        retries: whole("retries"),
        votes: whole("votes"),
        timeout: timeout(&map, mistakes),
        evidence: match map.get("evidence").and_then(|view| view.map(&EVIDENCE)) {
            None => EvidenceLimit { max_characters: whole("evidence"), on_overflow: None },
            Some(limit) => EvidenceLimit {
                max_characters: limit.integer("max_characters").and_then(|n| usize::try_from(n).ok()),
                on_overflow: limit.text("on_overflow").map(|word| match word {
                    "truncate" => EvidenceOverflow::Truncate,
                    _ => EvidenceOverflow::Error,
                }),
            },
        },
    }
}
