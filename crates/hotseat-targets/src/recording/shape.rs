//! File format of recordings.

use hotseat_document::{Field, Kind, Shape};

use super::events::{EVENT, MILLISECONDS};

/// A recording.
pub static RECORDING: Shape = Shape {
    name: "Recording",
    doc: "Behavior of an agent in one conversation. `hotseat test --record` and `hotseat import` write it, and an agent of `type: replay` serves it again.",
    fields: &[
        Field::required("version", Kind::Integer { min: 1, max: 1 }, "Version of this format."),
        Field::optional(
            "suite",
            Kind::NonEmptyText,
            "The suite of the case, as a path from the project folder. Without it the recording matches the case in any suite.",
        ),
        Field::required("case", Kind::Text, "Id of the case."),
        Field::optional("agent", Kind::Text, "Name of the agent in the project."),
        Field::optional("recorded_at", Kind::Text, "Time of the recording."),
        Field::required(
            "turns",
            Kind::NonEmptyList(&Kind::Shape(&TURN)),
            "Turns in order. The first turn of a case is served from the first one.",
        ),
    ],
};

/// A turn.
pub static TURN: Shape = Shape {
    name: "RecordedTurn",
    doc: "User input and agent behavior of a turn.",
    fields: &[
        Field::required("user", Kind::Text, "Text of the user."),
        Field::optional("attachments", Kind::List(&Kind::Text), "Names of the attachments."),
        Field::optional(
            "duration_ms",
            MILLISECONDS,
            "Duration of the turn. Without it, checks of time cannot be evaluated.",
        ),
        Field::required("events", Kind::List(&Kind::Tagged(&EVENT)), "Events of the agent, in order."),
        Field::optional(
            "unfinished",
            Kind::NonEmptyText,
            "Reason why the turn is incomplete. It is replayed as an error.",
        ),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn the_shapes_are_sound() {
        assert_eq!(super::RECORDING.problems(), Vec::<String>::new());
    }
}
