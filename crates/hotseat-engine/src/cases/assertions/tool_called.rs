//! `tool_called`: a tool is called.

use super::block::{read_count, refuse_any_count};
use super::block_shape::{COUNT_KIND, SERVER};
use super::prelude::*;
use crate::cases::condition::{CONDITIONS, read_conditions};
use hotseat_checks::{ArgumentMatch, ToolCalled};

assertion_type! {
    /// A tool is called in this turn, or in the whole conversation. Tool names are compared exactly.
    TOOL_CALLED "ToolCalled" "tool_called" {
        /// The tool.
        optional "name" = Kind::NonEmptyText,
        /// Instead of `name`: the tool, a list of alternative tools, or a tool with its arguments.
        optional "value" = Kind::OneOf(&[
            Kind::NonEmptyText, Kind::NonEmptyList(&Kind::NonEmptyText), Kind::Shape(&TOOL_CALLED_VALUE)
        ]),
        /// Arguments of the call, compared as JSON.
        optional "arguments" = Kind::JsonMap, aliases &["args"],
        /// How `arguments` are compared: `subset` allows additional members on every level.
        optional "match" = Kind::Choice(&["exact", "subset"]), shown "subset",
        ..SERVER,
        /// Conditions on arguments, by name or dotted path.
        optional "where" = CONDITIONS,
        /// Number of matching calls; a number alone is the exact one. Default: at least one.
        optional "count" = COUNT_KIND,
    }
    read_tool_called,
    |written| {
        // The value is a name, a list of names, or an object with a name and arguments.
        let value = written.get("value");
        let name = written.get("name").or_else(|| value?.get("name")).or(value)?;
        let arguments = written.get("arguments").or_else(|| value?.get("arguments"));
        let arguments =
            arguments.map_or_else(String::new, |arguments| format!(" with arguments {arguments}"));
        Some(format!("tool_called {name}{arguments}"))
    }
}

document_shape! {
    /// A tool and its arguments.
    static TOOL_CALLED_VALUE "ToolCalledValue" {
        /// The tool.
        required "name" = Kind::NonEmptyText,
        /// Arguments of the call.
        optional "arguments" = Kind::JsonMap, aliases &["args"],
    }
}

/// Refuses texts that would be patterns in results. Arguments are compared as they are, so a negation would pass.
fn refuse_patterns(view: NodeView<'_>, diagnostics: &mut Diagnostics) {
    let members = view.entries().into_iter().flatten().map(|(_, _, member)| member);
    for part in members.chain(view.list().into_iter().flatten()) {
        refuse_patterns(part, diagnostics);
    }
    let place = view.place();
    // The value of a variable is never a pattern.
    if view.text().is_some() && place.text().trim_start_matches(['"', '\'']).starts_with("regex:") {
        let message = "`regex:` marks a pattern in results only; arguments are compared as they are";
        let help = "use `where`: `{ regex: PATTERN }`, or `{ equals: TEXT }` for this very text";
        diagnostics.push(Diagnostic::new(message).at(place).help(help));
    }
}

fn read_tool_called(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<Check>> {
    let value = map.get("value");
    let named = value.and_then(|value| value.map(&TOOL_CALLED_VALUE));
    let names: Vec<&str> = match (map.text("name"), value, &named) {
        (Some(name), None, _) => vec![name],
        (None, Some(_), Some(named)) => vec![named.text("name")?],
        (None, Some(value), None) => value.one_or_many().filter_map(NodeView::text).collect(),
        (Some(_), Some(_), _) => {
            diagnostics.report(map.place_of("value"), "both `name` and `value` name the tool; remove one");
            return None;
        }
        (None, None, _) => {
            diagnostics.report(map.place(), "`tool_called` needs the `name` of a tool");
            return None;
        }
    };
    let inner = named.as_ref().and_then(|named| named.json("arguments"));
    let arguments = match (map.json("arguments"), inner) {
        (Some(_), Some(_)) => {
            diagnostics.report(map.place_of("arguments"), "the arguments are set twice; remove one");
            return None;
        }
        (outer, inner) => outer.or(inner),
    };
    for written in [Some(map), named.as_ref()].into_iter().flatten() {
        written.get("arguments").into_iter().for_each(|view| refuse_patterns(view, diagnostics));
    }
    let match_mode = match map.text("match") {
        Some("exact") => ArgumentMatch::Exact,
        _ => ArgumentMatch::Subset,
    };
    if map.has("match") && arguments.is_none() {
        diagnostics.report(map.key_place("match"), "`match` applies to `arguments`, and there are none");
    }
    if map.get("where").and_then(NodeView::entries).is_some_and(|entries| entries.len() == 0) {
        diagnostics.report(map.place_of("where"), "`where` names no argument");
    }
    let check = ToolCalled {
        names: names.into_iter().map(str::to_string).collect(),
        server: map.text("server").map(str::to_string),
        arguments: arguments.map(|arguments| (arguments, match_mode)),
        conditions: map.get("where").map(|view| read_conditions(view, diagnostics)).unwrap_or_default(),
        count: read_count(map.get("count"), diagnostics),
    };
    refuse_any_count(check.count, map, diagnostics);
    let key = if map.has("name") { "name" } else { "value" };
    check_at(map, key, CheckKind::ToolCalled(check))
}
