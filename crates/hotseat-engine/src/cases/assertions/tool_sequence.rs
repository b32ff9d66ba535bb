//! `tool_sequence`: all tool calls, in order.

use super::block_shape::SERVER;
use super::prelude::*;
use hotseat_checks::{ArgumentMatch, SequenceCall, SequenceMatch, ToolSequence};

assertion_type! {
    /// All tool calls of the turn, or of the conversation.
    TOOL_SEQUENCE "ToolSequence" "tool_sequence" {
        /// The expected calls: names, or mappings with `name` and `arguments`. An empty list expects no
        /// calls.
        required "calls" = Kind::List(&Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&EXPECTED_CALL)])),
            aliases &["value"],
        /// `strict`: exactly these calls in this order. `in_order`: these calls in this order, with others
        /// allowed in between. `unordered`: exactly these calls in any order. `subset`: only these calls, not
        /// necessarily all. `superset`: all of these calls, with others allowed.
        optional "order" = Kind::Choice(SequenceMatch::NAMES), shown "strict",
        /// Only calls of these tools are considered, for example tools with side effects. Default: all.
        optional "only" = Kind::NonEmptyList(&Kind::NonEmptyText),
        /// How the expected arguments are compared. An expected call without arguments matches any arguments.
        optional "arguments" = Kind::Choice(ArgumentMatch::NAMES), shown "exact",
    }
    read_tool_sequence
}

document_shape! {
    /// An expected tool call.
    static EXPECTED_CALL "ExpectedCall" {
        /// The tool.
        required "name" = Kind::NonEmptyText,
        /// Its arguments. If omitted, any arguments match.
        optional "arguments" = Kind::JsonMap, aliases &["args"],
        ..SERVER,
    }
}

fn read_tool_sequence(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<Check>> {
    let calls = map.list("calls")?.filter_map(|view| {
        if let Some(name) = view.text() {
            return Some(SequenceCall { name: name.to_string(), server: None, arguments: None });
        }
        let call = view.map(&EXPECTED_CALL)?;
        Some(SequenceCall {
            name: call.text("name")?.to_string(),
            server: call.text("server").map(str::to_string),
            arguments: call.json("arguments"),
        })
    });
    let calls: Vec<SequenceCall> = calls.collect();
    let only = map.list("only").map(|names| names.filter_map(NodeView::text).map(str::to_string).collect());
    if let Some(only) = &only {
        let only: &Vec<String> = only;
        for (call, view) in
            calls.iter().zip(map.list("calls")?).filter(|(call, _)| !only.contains(&call.name))
        {
            let message = format!("`{}` is expected, but `only` excludes its calls", call.name);
            diagnostics.report(view.place(), message);
        }
    }
    let order = map.text("order").unwrap_or_default();
    if calls.is_empty() && matches!(order, "in_order" | "superset") {
        let message = format!("no calls with `order: {order}` asserts nothing");
        diagnostics.push(
            Diagnostic::new(message)
                .at(map.place_of("calls"))
                .help("use `order: strict` to require that there are no calls"),
        );
    }
    let check = ToolSequence {
        calls,
        only,
        order: SequenceMatch::from_name(order).unwrap_or(SequenceMatch::Strict),
        arguments: map.text("arguments").and_then(ArgumentMatch::from_name).unwrap_or(ArgumentMatch::Exact),
    };
    check_at(map, "calls", CheckKind::ToolSequence(check))
}
