//! Shapes of served models and their faults.

use hotseat_document::{Kind, TaggedShapes, document_shape};
use hotseat_model::script::{RULE, USE};

use super::mcp_shape::MCP_FAULT;

/// `models`: served models by name.
pub const MODELS_KIND: Kind = Kind::Map(&Kind::Tagged(&MODEL_SOURCE));

/// A served model, or further faults of an inherited one.
pub static MODEL_SOURCE: TaggedShapes =
    TaggedShapes { key: "type", shapes: &[&MODEL_RELAY, &MODEL_REPLAY], untagged: Some(&SERVED_MODEL) };

static FAULT_KIND: Kind = Kind::Shape(&MODEL_FAULT);

document_shape! {
    /// Faults in calls of this model, in addition to inherited ones. The first that selects a call applies. A
    /// fault that no call reaches fails the case as an error of the test.
    const FAULTS_FIELD: optional "faults" = Kind::NonEmptyList(&FAULT_KIND),
    /// JSON Pointers to members of requests that may differ from the recording, for example
    /// `/messages/0/content`. `*` stands for any name or index.
    const IGNORE_FIELD: optional "ignore" = Kind::NonEmptyList(&Kind::NonEmptyText),
}

document_shape! {
    /// A scripted language model, served to the agent as chat completions, Responses and Anthropic's
    /// messages.
    static SERVED_MODEL "ServedModel" {
        /// A file with a script. Searched next to the suite, next to the project file, and in the working
        /// directory.
        optional "script" = Kind::NonEmptyText,
        /// Instead of a file: the rules of the script.
        optional "rules" = Kind::NonEmptyList(&Kind::Shape(&RULE)),
        /// How often rules without their own `use` may answer in each conversation.
        optional "use" = USE, shown "once",
        ..FAULTS_FIELD,
    }

    /// A provider whose answers are relayed to the agent, unchanged and as they arrive.
    pub static MODEL_RELAY "ModelRelay" {
        /// Type of the model.
        required "type" = Kind::Choice(&["relay"]),
        /// Base URL of the provider, as its clients have it.
        required "url" = Kind::Url, other_names &["base_url", "endpoint"],
        /// Headers of every request, for example with a key. They replace those of the agent.
        optional "headers" = Kind::Map(&Kind::Text),
        /// A file that receives the exchanges, relative to the project file. A case replaces its own
        /// exchanges when its conversation is complete. Keys are not stored.
        optional "record" = Kind::NonEmptyText,
        ..IGNORE_FIELD,
        ..FAULTS_FIELD,
    }

    /// A recording of a relay that answers in place of the provider. A request that was not recorded fails
    /// the case as an error of the test.
    pub static MODEL_REPLAY "ModelReplay" {
        /// Type of the model.
        required "type" = Kind::Choice(&["replay"]),
        /// The recording. Searched next to the suite, next to the project file, and in the working directory.
        required "file" = Kind::NonEmptyText,
        ..IGNORE_FIELD,
        ..FAULTS_FIELD,
    }

    /// A fault in calls of a served model. Without `nth`, `every` and `rate` it breaks the first call.
    pub static MODEL_FAULT "ModelFault" {
        ..(MCP_FAULT.fields[2]),
        ..(MCP_FAULT.fields[3]),
        ..(MCP_FAULT.fields[4]),
        ..(MCP_FAULT.fields[5]),
        /// The fault. `rate_limit`: status 429. `overloaded`: status 529 as from Anthropic, else 503. `http`:
        /// status 500. `timeout`: no answer. `disconnect`: the connection closes before the model answers.
        /// `lost_answer`: the model answers, and the connection closes without an answer. `truncate`: half an
        /// answer. `empty`: a reply without content. `garbage`: no JSON. `malformed_arguments`: half of the
        /// arguments of the first tool call; counts replies with tool calls. A mapping sets a value.
        required "do" = Kind::OneOf(&[Kind::Choice(FAULT_WORDS), Kind::Shape(&MODEL_FAULT_ACTION)]),
    }
}

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

document_shape! {
    /// A fault with a value: one of these keys.
    pub static MODEL_FAULT_ACTION "ModelFaultAction" {
        /// The answer arrives this much later.
        optional "delay_ms" = super::limits::MILLISECONDS,
        /// Status 429 with this delay in the header `retry-after`.
        optional "rate_limit_ms" = super::limits::MILLISECONDS,
        /// HTTP status of the answer.
        optional "http" = Kind::Integer { min: 400, max: 599 },
    }
}

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
