//! Assertions about topics: `topic`, `reached_topic`, `topic_history`.

use super::prelude::*;
use hotseat_checks::{CurrentTopic, HistoryOrder, TopicHistory, TopicReached};

/// A topic, or alternative topics.
const TOPIC_NAMES: Kind = Kind::OneOf(&[Kind::NonEmptyText, Kind::NonEmptyList(&Kind::NonEmptyText)]);

assertion_type! {
    /// The turn, or the last turn of the conversation, belongs to a topic.
    TOPIC "TopicIs" "topic" {
        /// The topic, or a list of alternative topics.
        required "name" = TOPIC_NAMES, aliases &["value"],
    }
    |map, _| {
        check_at(map, "name", CheckKind::CurrentTopic(CurrentTopic { names: text_list(map, "name") }))
    }
}

assertion_type! {
    /// At least one turn so far belongs to a topic.
    REACHED_TOPIC "ReachedTopic" "reached_topic" {
        /// The topic.
        required "name" = Kind::NonEmptyText, aliases &["value"],
    }
    |map, _| {
        let name = map.text("name")?.to_string();
        check_at(map, "name", CheckKind::TopicReached(TopicReached { name }))
    }
}

assertion_type! {
    /// The topics visited so far, in order. Revisited topics appear again.
    TOPIC_HISTORY "TopicHistory" "topic_history" {
        /// The topics.
        required "value" = Kind::NonEmptyList(&Kind::NonEmptyText), aliases &["names"],
        /// `strict`: exactly these topics. `in_order`: these topics in order, with others allowed in between.
        optional "order" = Kind::Choice(&["strict", "in_order"]), shown "strict",
    }
    |map, _| {
        let order = match map.text("order") {
            Some("in_order") => HistoryOrder::InOrder,
            _ => HistoryOrder::Strict,
        };
        let check = TopicHistory { names: text_list(map, "value"), order };
        check_at(map, "value", CheckKind::TopicHistory(check))
    }
}
