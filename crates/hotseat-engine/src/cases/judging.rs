//! Judge settings: their shape and decoding.

use super::limits::{MILLISECONDS, TIMEOUT, read_timeout};
use hotseat_checks::{EvidenceLimit, EvidenceOverflow, JudgeSettings, RoleReference};
use hotseat_document::{Diagnostics, Kind, NodeView, document_shape};

/// A judge reference, or a judge with settings.
pub const JUDGE_KIND: Kind = Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&JUDGE)]);

document_shape! {
    /// A judge with settings. Unset values are inherited from the case, the suite and the project.
    pub static JUDGE "Judge" {
        /// The judge: `agents:ID`, `scripts:path.function`, or `connectors:NAME` for a model with the
        /// built-in prompts.
        optional "use" = Kind::NonEmptyText,
        /// Connector of the judge, if it is an agent that supports selecting one. Without `use`: the model
        /// that judges.
        optional "connector" = Kind::NonEmptyText,
        /// Number of retries if the judge does not answer or its answer is malformed. Default: 2.
        optional "retries" = Kind::Integer { min: 0, max: 10 },
        /// Number of votes. The majority decides; without a majority the check errors. Default: 1.
        optional "votes" = Kind::Integer { min: 1, max: 15 },
        /// Time limit for one answer. Default: 2 minutes for a model, the agent's own limit for an agent.
        optional "timeout_ms" = MILLISECONDS,
        ..TIMEOUT,
        /// Maximum number of characters of the conversation shown to the judge, or a mapping that also sets
        /// the overflow action. Default: 1000000, and longer conversations are a judge error.
        optional "evidence" = Kind::OneOf(&[EVIDENCE_CHARACTERS, Kind::Shape(&EVIDENCE)]),
    }
}

/// Range of the evidence limit of a judge, in characters.
const EVIDENCE_CHARACTERS: Kind = Kind::Integer { min: 1_000, max: 10_000_000 };

document_shape! {
    /// Limit on the conversation shown to a judge.
    static EVIDENCE "Evidence" {
        /// Maximum number of characters of the conversation shown to the judge. Default: 1000000.
        optional "max_characters" = EVIDENCE_CHARACTERS,
        /// Action if the conversation is longer: `error` ends the check with a judge error; `truncate`
        /// shortens the conversation and notes this for the judge, the console and the reports. Default:
        /// error.
        optional "on_overflow" = Kind::Choice(&["error", "truncate"]),
    }
}

/// Decodes `judge`: a reference, or a mapping with settings. Unset values stay unset.
pub fn read_judging(view: Option<NodeView<'_>>, diagnostics: &mut Diagnostics) -> JudgeSettings {
    let Some(view) = view else { return JudgeSettings::default() };
    let Some(map) = view.map(&JUDGE) else {
        let (judge, place) = (role_reference(view, diagnostics), Some(view.place()));
        return JudgeSettings { judge, place, ..JudgeSettings::default() };
    };
    JudgeSettings {
        judge: map.get("use").and_then(|view| role_reference(view, diagnostics)),
        place: map.place_of("use").or_else(|| map.place_of("connector")),
        connector: map.text("connector").map(str::to_string),
        retries: map.size("retries"),
        votes: map.size("votes"),
        timeout: read_timeout(&map, diagnostics),
        evidence: match map.get("evidence").and_then(|view| view.map(&EVIDENCE)) {
            None => EvidenceLimit { max_characters: map.size("evidence"), on_overflow: None },
            Some(limit) => EvidenceLimit {
                max_characters: limit.size("max_characters"),
                on_overflow: limit.text("on_overflow").map(|word| match word {
                    "truncate" => EvidenceOverflow::Truncate,
                    _ => EvidenceOverflow::Error,
                }),
            },
        },
    }
}

/// Decodes a reference to a role.
pub(super) fn role_reference(view: NodeView<'_>, diagnostics: &mut Diagnostics) -> Option<RoleReference> {
    match RoleReference::parse(view.text()?) {
        Ok(reference) => Some(reference),
        Err(words) => {
            diagnostics.report(view.place(), words);
            None
        }
    }
}
