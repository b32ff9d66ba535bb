//! Shapes of criteria.

use super::ASSERTION;
use crate::cases::judging::JUDGE_KIND;
use hotseat_document::{Field, Kind, Shape};

/// Criteria by name.
pub const CRITERIA_KIND: Kind = Kind::Map(&Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&CRITERION)]));

/// Defines the shape of a criterion: its specific keys, followed by the common ones.
macro_rules! criterion {
    ($shape:ident, $name:literal, $doc:literal, [$($field:expr),* $(,)?]) => {
        #[doc = $doc]
        pub static $shape: Shape = Shape {
            name: $name,
            doc: $doc,
            fields: &[
                $($field,)*
                Field::optional(
                    "description",
                    Kind::NonEmptyText,
                    "The requirement, phrased for a judge.",
                ),
                Field::optional(
                    "good_examples",
                    Kind::NonEmptyList(&Kind::Shape(&EXAMPLE)),
                    "Responses that satisfy the criterion.",
                ),
                Field::optional(
                    "bad_examples",
                    Kind::NonEmptyList(&Kind::Shape(&EXAMPLE)),
                    "Responses that do not satisfy it.",
                ),
                Field::optional(
                    "edge_cases",
                    Kind::NonEmptyList(&Kind::Shape(&EDGE_CASE)),
                    "Ambiguous responses, with their verdict.",
                ),
                Field::optional(
                    "match",
                    Kind::OneOf(&[
                        Kind::NonEmptyText,
                        Kind::Tagged(&ASSERTION),
                        Kind::NonEmptyList(&Kind::Tagged(&ASSERTION)),
                    ]),
                    "Replaces the judge: assertions that must all pass, or a script function, `scripts:…`, that receives the conversation.",
                ),
                Field::optional(
                    "match_messages",
                    Kind::NonEmptyText,
                    "Replaces the judge: a script function that receives the messages.",
                ),
                Field::optional(
                    "function",
                    Kind::NonEmptyText,
                    "Replaces the judge: a script function that receives the turn.",
                ),
                Field::optional("judge", JUDGE_KIND, "Judge of this criterion, optionally with settings."),
            ],
        };
    };
}

criterion!(
    CRITERION,
    "Criterion",
    "A standard for the agent's messages: a `description` for a judge, or a function or assertions that replace the judge.",
    []
);

criterion!(
    CRITERION_OF_ITS_OWN,
    "CriterionInPlace",
    "An inline criterion.",
    [Field::optional("name", Kind::NonEmptyText, "Name in reports. Default: its description.")]
);

/// Shape of an example response with its explanation.
pub static EXAMPLE: Shape = Shape {
    name: "Example",
    doc: "An example response with the explanation of its verdict.",
    fields: &[
        Field::required("text", Kind::NonEmptyText, "The response of an agent."),
        Field::required("explanation", Kind::NonEmptyText, "Explanation of the verdict."),
    ],
};

/// Shape of an ambiguous example response with its verdict.
pub static EDGE_CASE: Shape = Shape {
    name: "EdgeCase",
    doc: "An ambiguous example response with its verdict.",
    fields: &[
        Field::required("text", Kind::NonEmptyText, "The response of an agent."),
        Field::required("verdict", Kind::Bool, "Whether it satisfies the criterion."),
        Field::required("explanation", Kind::NonEmptyText, "Explanation of the verdict."),
    ],
};
