//! Whether what the agent said satisfies a criterion.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Judgement, plain};
use crate::checks::{Criterion, Quality};

pub(super) fn told(criterion: &Criterion) -> String {
    let mut told = "# The criterion\n".to_string();
    if let Some(name) = &criterion.name {
        let _ = writeln!(told, "Name: {name}");
    }
    let _ = write!(told, "{}", criterion.text);
    let of = |wanted: fn(Quality) -> bool| {
        criterion.examples.iter().filter(move |example| wanted(example.quality))
    };
    for (title, wanted) in [
        ("Responses that satisfy it", (|quality| quality == Quality::Good) as fn(Quality) -> bool),
        ("Responses that do not satisfy it", |quality| quality == Quality::Bad),
        ("Responses where it is not plain", |quality| matches!(quality, Quality::Edge { .. })),
    ] {
        if of(wanted).next().is_none() {
            continue;
        }
        let _ = write!(told, "\n\n# {title}");
        for example in of(wanted) {
            let verdict = match example.quality {
                Quality::Good | Quality::Bad => "",
                Quality::Edge { satisfied: true } => " -> SATISFIED",
                Quality::Edge { satisfied: false } => " -> NOT SATISFIED",
            };
            let _ = write!(told, "\n- {:?}{verdict}\n  Explanation: {}", example.text, example.explanation);
        }
    }
    told
}

pub(super) fn read(answer: &Value) -> Judgement {
    plain(answer["satisfied"] == true, ["satisfied", "not satisfied"], answer)
}
