//! `value`: compares a number or a list of the conversation.

use super::prelude::*;
use crate::cases::limits::TIMES;
use hotseat_checks::{ConversationValue, ListComparison, NumberComparison};

assertion_type! {
    /// Compares a number or a list of the conversation so far: numbers with `equals`, `at_least` or
    /// `at_most`, lists with `equals` or `contains`.
    VALUE "ValueOf" "value" {
        /// The value to compare: `turn_count` is a number; `tool_names` (tools called) and `topic_history`
        /// are lists.
        required "of" = Kind::Choice(ConversationValue::NAMES),
        /// The value equals this.
        optional "equals" = Kind::OneOf(&[TIMES, Kind::List(&Kind::NonEmptyText)]),
        /// The value is at least this.
        optional "at_least" = TIMES,
        /// The value is at most this.
        optional "at_most" = TIMES,
        /// The list contains this entry, or all of these.
        optional "contains" = Kind::OneOf(&[Kind::NonEmptyText, Kind::NonEmptyList(&Kind::NonEmptyText)]),
    }
    read_value
}

/// Decodes `value`: exactly one comparison, which must suit the compared value.
fn read_value(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<Check>> {
    const COMPARISONS: [&str; 4] = ["equals", "at_least", "at_most", "contains"];
    let of = map.text("of")?;
    let is_number = of == "turn_count";
    let suits =
        if is_number { "`equals`, `at_least` or `at_most` with a number" } else { "`equals` or `contains`" };
    let suits = format!("`{of}` supports {suits}");
    let mut written = COMPARISONS.iter().filter(|key| map.has(key));
    let (Some(key), None) = (written.next(), written.next()) else {
        diagnostics
            .push(Diagnostic::new("`value` needs exactly one comparison").at(map.place_of("of")).help(suits));
        return None;
    };
    let view = map.get(key)?;
    let number = || view.json().as_u64();
    let list = || {
        let names = view.one_or_many().filter_map(NodeView::text).map(str::to_string).collect::<Vec<_>>();
        (view.json().as_u64().is_none()).then_some(names)
    };
    let number = match *key {
        "equals" => number().map(NumberComparison::Equal),
        "at_least" => number().map(NumberComparison::AtLeast),
        "at_most" => number().map(NumberComparison::AtMost),
        _ => None,
    };
    let list = match *key {
        "equals" => list().map(ListComparison::Equal),
        "contains" => list().map(ListComparison::Containing),
        _ => None,
    };
    let compared = match of {
        "turn_count" => number.map(ConversationValue::TurnCount),
        "tool_names" => list.map(ConversationValue::ToolNames),
        _ => list.map(ConversationValue::TopicHistory),
    };
    if *key == "contains" && view.one_or_many().count() > 1 && map.bool("negate") == Some(true) {
        let message = "`negate` with several entries is ambiguous: none of them, or not all";
        let wrong = Diagnostic::new(message).at(map.key_place("negate"));
        diagnostics.push(wrong.help("write one assertion for each entry"));
    }
    if let Some(ConversationValue::TurnCount(NumberComparison::AtLeast(0))) = compared {
        diagnostics.report(map.place_of(key), "every number is at least 0, so nothing is asserted");
    }
    if compared.is_none() {
        diagnostics.report(map.place_of(key), suits);
    }
    check_at(map, key, CheckKind::ConversationValue(compared?))
}
