//! Settings of embedded agents.

use super::common::{ASSERTED, AWAITED, DESCRIPTION, FOLDER, IDLE_TIMEOUT, TIMEOUT, TOOLS, TURN_ASSERTED};
use crate::cases::shape::CONTEXT;
use hotseat_document::{Field, Kind, Shape};

/// Shape of an embedded target, which runs in the same process.
pub(super) static SHAPE: Shape = Shape {
    name: "EmbeddedTarget",
    doc: "An embedded agent that runs in the same process: without a server and, with a scripted model, without network and key.",
    fields: &[
        Field::required("type", Kind::Choice(&["embedded"]), "Type of the target."),
        Field::required(
            "agent",
            Kind::NonEmptyText,
            "File of the agent, or folder that contains its `agent.yaml`. Relative to the project file.",
        ),
        Field::optional(
            "threadId",
            Kind::NonEmptyText,
            "Id of every conversation. Default: a new id for each case.",
        ),
        Field::optional("state", Kind::Json, "The shared state before the first turn."),
        Field::optional("context", Kind::List(&Kind::Shape(&CONTEXT)), "Context entries.").default("[]"),
        TOOLS,
        TIMEOUT,
        IDLE_TIMEOUT,
        DESCRIPTION,
        FOLDER,
        ASSERTED,
        TURN_ASSERTED,
        AWAITED,
    ],
};
