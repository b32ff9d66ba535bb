//! Decodes judge settings.

use super::assertion::role_reference;
use super::limits::read_timeout;
use super::shape::{EVIDENCE, JUDGE};
use hotseat_checks::{EvidenceLimit, EvidenceOverflow, JudgeSettings};
use hotseat_document::{Diagnostics, NodeView};

/// Decodes `judge`: a reference, or a mapping with settings. Unset values stay unset.
pub fn read_judging(view: Option<NodeView<'_>>, diagnostics: &mut Diagnostics) -> JudgeSettings {
    let Some(view) = view else { return JudgeSettings::default() };
    let Some(map) = view.map(&JUDGE) else {
        return JudgeSettings { judge: role_reference(view, diagnostics), ..JudgeSettings::default() };
    };
    let whole = |key: &str| map.integer(key).and_then(|n| usize::try_from(n).ok());
    JudgeSettings {
        judge: map.get("use").and_then(|view| role_reference(view, diagnostics)),
        connector: map.text("connector").map(str::to_string),
        retries: whole("retries"),
        votes: whole("votes"),
        timeout: read_timeout(&map, diagnostics),
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
