//! Shapes of served models and their faults.

use hotseat_document::{Field, Kind, Shape};
use hotseat_model::script::{RULE, USE};

use super::mcp_shape::MCP_FAULT;

/// `models`: served models by name.
pub const MODELS_KIND: Kind = Kind::Map(&Kind::Shape(&SERVED_MODEL));

/// Shape of a served model.
pub static SERVED_MODEL: Shape = Shape {
    name: "ServedModel",
    doc: "A scripted language model, served to the agent as chat completions, Responses and Anthropic's messages.",
    fields: &[
        Field::optional(
            "script",
            Kind::NonEmptyText,
            "A file with a script. Searched next to the suite, next to the project file, and in the working directory.",
        ),
        Field::optional(
            "rules",
            Kind::NonEmptyList(&Kind::Shape(&RULE)),
            "Instead of a file: the rules of the script.",
        ),
        Field::optional(
            "use",
            USE,
            "How often rules without their own `use` may answer in each conversation.",
        )
        .default("once"),
        Field::optional(
            "faults",
            Kind::NonEmptyList(&Kind::Shape(&MODEL_FAULT)),
            "Faults in calls of this model, in addition to inherited ones. The first that selects a call applies. A fault that no call reaches fails the case as an error of the test.",
        ),
    ],
};

/// Shape of a fault.
pub static MODEL_FAULT: Shape = Shape {
    name: "ModelFault",
    doc: "A fault in calls of a served model. Without `nth`, `every` and `rate` it breaks the first call.",
    fields: &[
        MCP_FAULT.fields[2],
        MCP_FAULT.fields[3],
        MCP_FAULT.fields[4],
        MCP_FAULT.fields[5],
        Field::required(
            "do",
            Kind::OneOf(&[Kind::Choice(FAULT_WORDS), Kind::Shape(&MODEL_FAULT_ACTION)]),
            FAULT_DOC,
        ),
    ],
};

/// Faults that need no value.
const FAULT_WORDS: &[&str] = &[
    "rate_limit",
    "overloaded",
    "http",
    "timeout",
    "disconnect",
    "lost_answer",
    "truncate",
    "empty",
    "garbage",
    "malformed_arguments",
];

const FAULT_DOC: &str = "The fault. `rate_limit`: status 429. `overloaded`: status 529 as from Anthropic, else 503. `http`: status 500. `timeout`: no answer. `disconnect`: the connection closes before the model answers. `lost_answer`: the model answers, and the connection closes without an answer. `truncate`: half an answer. `empty`: a reply without content. `garbage`: no JSON. `malformed_arguments`: half of the arguments of the first tool call; counts replies with tool calls. A mapping sets a value.";

/// Shape of a fault with a value.
pub static MODEL_FAULT_ACTION: Shape = Shape {
    name: "ModelFaultAction",
    doc: "A fault with a value: one of these keys.",
    fields: &[
        Field::optional("delay_ms", super::limits::MILLISECONDS, "The answer arrives this much later."),
        Field::optional(
            "rate_limit_ms",
            super::limits::MILLISECONDS,
            "Status 429 with this delay in the header `retry-after`.",
        ),
        Field::optional("http", Kind::Integer { min: 400, max: 599 }, "HTTP status of the answer."),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn every_fault_has_a_word() {
        let keys = super::MODEL_FAULT_ACTION.fields.iter().map(|field| field.key);
        let words: Vec<&str> = super::FAULT_WORDS.iter().copied().chain(keys).collect();
        for name in hotseat_model::serve::FaultKind::NAMES {
            assert!(words.iter().any(|word| word.starts_with(name)), "{name}");
        }
    }
}
