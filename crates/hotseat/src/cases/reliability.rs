//! How reliable an agent has to be, as people declare it.

use serde::{Deserialize, Serialize};

use super::shape::RELIABILITY;
use super::variables::mistake;
use crate::statistics::Sequential;
use hotseat_document::{Diagnostics, Map};

/// How often a case has to pass, and how sure that has to be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reliability {
    /// The part of all attempts that has to pass, between 0 and 1.
    pub rate: f64,
    /// How sure it has to be that the rate is reached or missed, between 0 and 1.
    pub confidence: f64,
    /// After how many runs it is left undecided.
    pub max_runs: usize,
}

/// What a case says of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Declared {
    /// Nothing: what the project says holds.
    #[default]
    Inherited,
    /// `false`: nothing is declared, whatever the project says.
    Nothing,
    /// This.
    Here(Reliability),
}

const CONFIDENCE: f64 = 0.95;
/// Where nobody says how many runs there may be: so many times as many as something takes that always passes. An agent
/// that is better than declared, and not perfect, takes longer.
const MOST: usize = 3;

/// Reads `reliability` of a case or of the project file.
pub fn reliability(map: &Map<'_>, mistakes: &mut Diagnostics) -> Declared {
    if map.bool("reliability") == Some(false) {
        return Declared::Nothing;
    }
    let Some(written) = map.get("reliability").and_then(|view| view.map(&RELIABILITY)) else {
        return Declared::Inherited;
    };
    let mut part = |key: &str, what: &str, example: &str| {
        let number = written.number(key)?.as_f64()?;
        let is_part = number > 0.0 && number < 1.0;
        if !is_part {
            let wrong = mistake(written.place_of(key), format!("`{key}` lies between 0 and 1: {what}"));
            mistakes.push(wrong.help(example));
        }
        is_part.then_some(number)
    };
    let all = "no number of runs can show that something always passes";
    let rate = part("rate", all, "0.9: nine of ten attempts have to pass");
    let sure =
        part("confidence", "nothing is ever wholly sure", "0.95: wrong in one of twenty cases at most");
    let (Some(rate), Some(confidence)) = (rate, sure.or((!written.has("confidence")).then_some(CONFIDENCE)))
    else {
        return Declared::Inherited;
    };
    let fewest = Sequential::fewest(rate, confidence);
    let max_runs = written.integer("max_runs").and_then(|n| usize::try_from(n).ok());
    if max_runs.is_some_and(|most| most < fewest) || fewest > LONGEST {
        let place = if written.has("max_runs") { "max_runs" } else { "rate" };
        let message = format!(
            "{fewest} runs are needed to show that a case that always passes has a rate of {rate}, with a confidence of {confidence}"
        );
        let help = match fewest > LONGEST {
            true => format!("there can be {LONGEST} runs at most: declare a lower `rate` or `confidence`"),
            false => format!(
                "raise `max_runs` to {} or so, or declare a lower `rate` or `confidence`",
                MOST * fewest
            ),
        };
        mistakes.push(mistake(written.place_of(place), message).help(help));
    }
    if let Some(place) = map.key_place("retries") {
        let wrong = mistake(Some(place), "`retries` and `reliability`: one of the two");
        mistakes.push(wrong.help(
            "a case that is run until its rate is known is never tried again, for that would hide the rate",
        ));
    }
    let max_runs = max_runs.unwrap_or_else(|| (MOST * fewest).min(LONGEST));
    Declared::Here(Reliability { rate, confidence, max_runs })
}

/// As many runs of a case as there may be.
pub const LONGEST: usize = 10_000;
