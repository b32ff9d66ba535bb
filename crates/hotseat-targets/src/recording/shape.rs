//! File format of recordings.

use hotseat_document::{Kind, document_shape};

use super::events::{EVENT, MILLISECONDS};

document_shape! {
    /// Behavior of an agent in one conversation. `hotseat test --record` and `hotseat import` write it, and
    /// an agent of `type: replay` serves it again.
    pub static RECORDING "Recording" {
        /// Version of this format.
        required "version" = Kind::Integer { min: 1, max: 1 },
        /// The suite of the case, as a path from the project folder. Without it the recording matches the
        /// case in any suite.
        optional "suite" = Kind::NonEmptyText,
        /// Id of the case.
        required "case" = Kind::Text,
        /// Name of the agent in the project.
        optional "agent" = Kind::Text,
        /// Time of the recording.
        optional "recorded_at" = Kind::Text,
        /// True if nothing showed the tool calls of the agent: assertions about calls are errors of the test.
        optional "hides_calls" = Kind::Bool,
        /// Digests of 8 bits of the secrets that were replaced by `[redacted:NAME]`, by name: a secret that has another
        /// value now is unknown to assertions.
        optional "secrets" = Kind::Map(&Kind::Text),
        /// Turns in order. The first turn of a case is served from the first one.
        required "turns" = Kind::NonEmptyList(&Kind::Shape(&TURN)),
    }

    /// User input and agent behavior of a turn.
    pub static TURN "RecordedTurn" {
        /// Text of the user.
        required "user" = Kind::Text,
        /// Names of the attachments.
        optional "attachments" = Kind::List(&Kind::Text),
        /// Duration of the turn. Without it, checks of time cannot be evaluated.
        optional "duration_ms" = MILLISECONDS,
        /// Events of the agent, in order.
        required "events" = Kind::List(&Kind::Tagged(&EVENT)),
        /// Reason why the turn is incomplete. It is replayed as an error.
        optional "unfinished" = Kind::NonEmptyText,
        /// Error of the protocol after the turn, such as output after the end of the conversation. It is replayed if the turn is
        /// the last one.
        optional "trailing_error" = Kind::NonEmptyText,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_shapes_are_sound() {
        assert_eq!(super::RECORDING.problems(), Vec::<String>::new());
    }
}
