//! Judgement of a criterion.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Judgement, boolean_judgement};
use hotseat_checks::{ExampleQuality, ResponseCriterion};

pub(super) fn instructions(criterion: &ResponseCriterion) -> String {
    let mut told = "# The criterion\n".to_string();
    if let Some(name) = &criterion.name {
        let _ = writeln!(told, "Name: {name}");
    }
    let _ = write!(told, "{}", criterion.text);
    let of = |wanted: fn(ExampleQuality) -> bool| {
        criterion.examples.iter().filter(move |example| wanted(example.quality))
    };
    for (title, wanted) in [
        (
            "Responses that satisfy it",
            (|quality| quality == ExampleQuality::Good) as fn(ExampleQuality) -> bool,
        ),
        ("Responses that do not satisfy it", |quality| quality == ExampleQuality::Bad),
        ("Responses where it is not plain", |quality| matches!(quality, ExampleQuality::Edge { .. })),
    ] {
        if of(wanted).next().is_none() {
            continue;
        }
        let _ = write!(told, "\n\n# {title}");
        for example in of(wanted) {
            let verdict = match example.quality {
                ExampleQuality::Good | ExampleQuality::Bad => "",
                ExampleQuality::Edge { satisfied: true } => " -> SATISFIED",
                ExampleQuality::Edge { satisfied: false } => " -> NOT SATISFIED",
            };
            let _ = write!(told, "\n- {:?}{verdict}\n  Explanation: {}", example.text, example.explanation);
        }
    }
    told
}

pub(super) fn parse_judgement(answer: &Value) -> Judgement {
    boolean_judgement(answer["satisfied"] == true, ["satisfied", "not satisfied"], answer)
}
