//! Assertions about topics: `topic`, `reached_topic`, `topic_history`.

use super::prelude::*;
use hotseat_checks::{CurrentTopic, HistoryOrder, TopicHistory, TopicReached};

/// A topic, or alternative topics.
const TOPIC_NAMES: Kind = Kind::OneOf(&[Kind::NonEmptyText, Kind::NonEmptyList(&Kind::NonEmptyText)]);

assertion_type!(
    TOPIC,
    "TopicIs",
    "topic",
    "The turn, or the last turn of the conversation, belongs to a topic.",
    [Field::required("name", TOPIC_NAMES, "The topic, or a list of alternative topics.").aliases(&["value"])],
    |map, _| {
        check_at(map, "name", CheckKind::CurrentTopic(CurrentTopic { names: text_list(map, "name") }))
    }
);

assertion_type!(
    REACHED_TOPIC,
    "ReachedTopic",
    "reached_topic",
    "At least one turn so far belongs to a topic.",
    [Field::required("name", Kind::NonEmptyText, "The topic.").aliases(&["value"])],
    |map, _| {
        let name = map.text("name")?.to_string();
        check_at(map, "name", CheckKind::TopicReached(TopicReached { name }))
    }
);

assertion_type!(
    TOPIC_HISTORY,
    "TopicHistory",
    "topic_history",
    "The topics visited so far, in order. Revisited topics appear again.",
    [
        Field::required("value", Kind::NonEmptyList(&Kind::NonEmptyText), "The topics.").aliases(&["names"]),
        Field::optional(
            "order",
            Kind::Choice(&["strict", "in_order"]),
            "`strict`: exactly these topics. `in_order`: these topics in order, with others allowed in between.",
        )
        .default("strict"),
    ],
    |map, _| {
        let order = match map.text("order") {
            Some("in_order") => HistoryOrder::InOrder,
            _ => HistoryOrder::Strict,
        };
        let check = TopicHistory { names: text_list(map, "value"), order };
        check_at(map, "value", CheckKind::TopicHistory(check))
    }
);
