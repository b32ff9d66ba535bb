//! Settings of embedded agents.

use super::common::{ASSERTED, AWAITED, DESCRIPTION, FOLDER, IDLE_TIMEOUT, TIMEOUT, TOOLS, TURN_ASSERTED};
use crate::cases::shape::CONTEXT;
use hotseat_document::{Kind, document_shape};

document_shape! {
    /// An embedded agent that runs in the same process: without a server and, with a scripted model, without
    /// network and key.
    pub(super) static SHAPE "EmbeddedTarget" {
        /// Type of the target.
        required "type" = Kind::Choice(&["embedded"]),
        /// File of the agent, or folder that contains its `agent.yaml`. Relative to the project file.
        required "agent" = Kind::NonEmptyText,
        /// Id of every conversation. Default: a new id for each case.
        optional "threadId" = Kind::NonEmptyText,
        /// The shared state before the first turn.
        optional "state" = Kind::Json,
        /// Context entries.
        optional "context" = Kind::List(&Kind::Shape(&CONTEXT)), shown "[]",
        ..TOOLS,
        ..TIMEOUT,
        ..IDLE_TIMEOUT,
        ..DESCRIPTION,
        ..FOLDER,
        ..ASSERTED,
        ..TURN_ASSERTED,
        ..AWAITED,
    }
}
