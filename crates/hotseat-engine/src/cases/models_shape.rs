//! Shapes of served models and their faults.

use hotseat_document::{Field, Kind, Shape, TaggedShapes};
use hotseat_model::script::{RULE, USE};

use super::mcp_shape::MCP_FAULT;

/// `models`: served models by name.
pub const MODELS_KIND: Kind = Kind::Map(&Kind::Tagged(&MODEL_SOURCE));

/// A served model, or further faults of an inherited one.
pub static MODEL_SOURCE: TaggedShapes =
    TaggedShapes { key: "type", shapes: &[&MODEL_RELAY, &MODEL_REPLAY], untagged: Some(&SERVED_MODEL) };

static FAULT_KIND: Kind = Kind::Shape(&MODEL_FAULT);
const FAULTS_FIELD: Field = Field::optional(
    "faults",
    Kind::NonEmptyList(&FAULT_KIND),
    "Faults in calls of this model, in addition to inherited ones. The first that selects a call applies. A fault that no call reaches fails the case as an error of the test.",
);

const IGNORE_FIELD: Field = Field::optional(
    "ignore",
    Kind::NonEmptyList(&Kind::NonEmptyText),
    "JSON Pointers to members of requests that may differ from the recording, for example `/messages/0/content`. `*` stands for any name or index.",
);

/// Shape of a served model.
static SERVED_MODEL: Shape = Shape {
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
        FAULTS_FIELD,
    ],
};

/// Shape of a relay.
pub static MODEL_RELAY: Shape = Shape {
    name: "ModelRelay",
    doc: "A provider whose answers are relayed to the agent, unchanged and as they arrive.",
    fields: &[
        Field::required("type", Kind::Choice(&["relay"]), "Type of the model."),
        Field::required("url", Kind::Url, "Base URL of the provider, as its clients have it.")
            .other_names(&["base_url", "endpoint"]),
        Field::optional(
            "headers",
            Kind::Map(&Kind::Text),
            "Headers of every request, for example with a key. They replace those of the agent.",
        ),
        Field::optional(
            "record",
            Kind::NonEmptyText,
            "A file that receives the exchanges, relative to the project file. A case replaces its own exchanges when its conversation is complete. Keys are not stored.",
        ),
        IGNORE_FIELD,
        FAULTS_FIELD,
    ],
};

/// Shape of a replayed recording.
pub static MODEL_REPLAY: Shape = Shape {
    name: "ModelReplay",
    doc: "A recording of a relay that answers in place of the provider. A request that was not recorded fails the case as an error of the test.",
    fields: &[
        Field::required("type", Kind::Choice(&["replay"]), "Type of the model."),
        Field::required(
            "file",
            Kind::NonEmptyText,
            "The recording. Searched next to the suite, next to the project file, and in the working directory.",
        ),
        IGNORE_FIELD,
        FAULTS_FIELD,
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
