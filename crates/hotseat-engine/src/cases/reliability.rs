//! Decodes the declared reliability of an agent.

use serde::{Deserialize, Serialize};

use super::pass_rate::{format_rate, read_rate};
use super::shape::RELIABILITY;
use hotseat_document::{Diagnostic, Diagnostics, MapView};
use hotseat_statistics::SequentialTest;

/// A required pass rate with a confidence level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reliability {
    /// Required fraction of passing attempts, between 0 and 1.
    pub rate: f64,
    /// Confidence level of the conclusion, between 0 and 1.
    pub confidence: f64,
    /// Maximum number of attempts without a conclusion.
    pub max_runs: usize,
}

/// `reliability` of a case.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum ReliabilitySetting {
    /// Not set: inherited from the project.
    #[default]
    Inherited,
    /// `false`: no reliability, regardless of the project.
    Nothing,
    /// Set.
    Here(Reliability),
}

const DEFAULT_CONFIDENCE: f64 = 0.95;
/// Default `max_runs`, as a multiple of the attempts that a perfect agent needs. An imperfect agent that
/// exceeds the declared rate needs more.
const DEFAULT_MAX_RUNS_FACTOR: usize = 3;

/// Decodes `reliability` of a case or of the project file.
pub fn read_reliability(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> ReliabilitySetting {
    if map.bool("reliability") == Some(false) {
        return ReliabilitySetting::Nothing;
    }
    let Some(written) = map.get("reliability").and_then(|view| view.map(&RELIABILITY)) else {
        return ReliabilitySetting::Inherited;
    };
    let mut part = |key: &str, too_low: &str, too_high: &str, example: &str| {
        let number = read_rate(&written, key)?;
        let is_part = number > 0.0 && number < 1.0;
        if !is_part {
            let reason = match number {
                low if low <= 0.0 => too_low,
                high if high >= 1.0 => too_high,
                _ => "",
            };
            let message = format!("`{key}` must be between 0 and 1{reason}");
            let wrong = Diagnostic::new(message).at(written.place_of(key));
            diagnostics.push(wrong.help(example));
        }
        is_part.then_some(number)
    };
    let none = ": a rate of 0 asserts nothing";
    let all = ": no number of attempts can prove that a case always passes";
    let rate = part("rate", none, all, "0.9: nine of ten attempts must pass");
    let sure = ": nothing is ever wholly sure";
    let sure = part("confidence", "", sure, "0.95: at most one wrong conclusion in twenty");
    let (Some(rate), Some(confidence)) =
        (rate, sure.or((!written.has("confidence")).then_some(DEFAULT_CONFIDENCE)))
    else {
        return ReliabilitySetting::Inherited;
    };
    let fewest = SequentialTest::min_attempts(rate, confidence);
    let max_runs = written.size("max_runs");
    if max_runs.is_some_and(|most| most < fewest) || fewest > MAX_RUNS_LIMIT {
        let place = if written.has("max_runs") { "max_runs" } else { "rate" };
        let message = format!(
            "at least {fewest} runs are needed to confirm a rate of {} with a confidence of {}, even if every run passes",
            format_rate(rate),
            format_rate(confidence)
        );
        let help = match fewest > MAX_RUNS_LIMIT {
            true => {
                format!("at most {MAX_RUNS_LIMIT} runs are supported: declare a lower `rate` or `confidence`")
            }
            false => format!(
                "increase `max_runs` to about {}, or declare a lower `rate` or `confidence`",
                default_max_runs(fewest)
            ),
        };
        diagnostics.push(Diagnostic::new(message).at(written.place_of(place)).help(help));
    }
    if let Some(place) = map.key_place("retries") {
        let wrong = Diagnostic::new("`retries` and `reliability` cannot be combined").at(place);
        diagnostics.push(wrong.help(
            "a case with a declared reliability is never retried, since retries would distort its pass rate",
        ));
    }
    let max_runs = max_runs.unwrap_or_else(|| default_max_runs(fewest));
    ReliabilitySetting::Here(Reliability { rate, confidence, max_runs })
}

/// Default `max_runs` of a case that needs at least `fewest` attempts.
fn default_max_runs(fewest: usize) -> usize {
    (DEFAULT_MAX_RUNS_FACTOR * fewest).min(MAX_RUNS_LIMIT)
}

/// Upper bound of `max_runs`.
pub(crate) const MAX_RUNS_LIMIT: usize = 10_000;
