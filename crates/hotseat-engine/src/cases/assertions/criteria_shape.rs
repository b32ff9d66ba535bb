//! Shapes of criteria.

use super::ASSERTION;
use crate::cases::judging::JUDGE_KIND;
use hotseat_document::{Kind, document_shape};

/// Criteria by name.
pub const CRITERIA_KIND: Kind = Kind::Map(&Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&CRITERION)]));

/// Names of other tools for the description of a criterion.
const NAMES_OF_OTHERS: &[&str] = &[
    "prompt",
    "prompts",
    "rubric",
    "question",
    "query",
    "instruction",
    "instructions",
    "requirement",
    "text",
];

/// Defines the shape of a criterion: its specific keys, followed by the common ones.
macro_rules! criterion {
    ($(#[doc = $doc:literal])+ $shape:ident $name:literal { $($fields:tt)* }) => {
        document_shape! {
            $(#[doc = $doc])+
            pub static $shape $name {
                $($fields)*
                /// The requirement, phrased for a judge.
                optional "description" = Kind::NonEmptyText, other_names NAMES_OF_OTHERS,
                /// Responses that satisfy the criterion.
                optional "good_examples" = Kind::NonEmptyList(&Kind::Shape(&EXAMPLE)),
                /// Responses that do not satisfy it.
                optional "bad_examples" = Kind::NonEmptyList(&Kind::Shape(&EXAMPLE)),
                /// Ambiguous responses, with their verdict.
                optional "edge_cases" = Kind::NonEmptyList(&Kind::Shape(&EDGE_CASE)),
                /// Replaces the judge: assertions that must all pass, or a script function, `scripts:…`, that
                /// receives the conversation.
                optional "match" = Kind::OneOf(&[
                    Kind::NonEmptyText, Kind::Tagged(&ASSERTION), Kind::NonEmptyList(&Kind::Tagged(&ASSERTION)),
                ]),
                /// Replaces the judge: a script function that receives the messages.
                optional "match_messages" = Kind::NonEmptyText,
                /// Replaces the judge: a script function that receives the turn.
                optional "function" = Kind::NonEmptyText,
                /// Judge of this criterion, optionally with settings.
                optional "judge" = JUDGE_KIND,
            }
        }
    };
}

criterion! {
    /// A standard for the agent's messages: a `description` for a judge, or a function or assertions that replace
    /// the judge.
    CRITERION "Criterion" {}
}

criterion! {
    /// An inline criterion.
    CRITERION_OF_ITS_OWN "CriterionInPlace" {
        /// Name in reports. Default: its description.
        optional "name" = Kind::NonEmptyText,
    }
}

document_shape! {
    /// An example response with the explanation of its verdict.
    pub static EXAMPLE "Example" {
        /// The response of an agent.
        required "text" = Kind::NonEmptyText,
        /// Explanation of the verdict.
        required "explanation" = Kind::NonEmptyText,
    }

    /// An ambiguous example response with its verdict.
    pub static EDGE_CASE "EdgeCase" {
        /// The response of an agent.
        required "text" = Kind::NonEmptyText,
        /// Whether it satisfies the criterion.
        required "verdict" = Kind::Bool,
        /// Explanation of the verdict.
        required "explanation" = Kind::NonEmptyText,
    }
}
