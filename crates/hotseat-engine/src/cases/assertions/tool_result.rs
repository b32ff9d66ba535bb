//! `tool_result`: a tool returns a result.

use super::block_shape::SERVER;
use super::prelude::*;
use hotseat_checks::{ExpectedResult, ToolResultCheck};

assertion_type! {
    /// At least one call of a tool succeeds, with this result if set.
    TOOL_RESULT "ToolResult" "tool_result" {
        /// The tool.
        optional "tool" = Kind::NonEmptyText, aliases &["name"],
        /// The result: objects may have additional keys; text that starts with `regex:` is a pattern.
        optional "result" = Kind::ExpectedJson,
        ..SERVER,
        /// Instead of `tool` and `result`.
        optional "value" = Kind::Shape(&TOOL_RESULT_VALUE),
    }
    read_tool_result,
    |written| {
        let value = written.get("value");
        let part = |key: &str| written.get(key).or_else(|| value?.get(key));
        let result = part("result").map_or_else(String::new, |result| format!(" = {result}"));
        Some(format!("tool_result {}{result}", part("tool")?))
    }
}

document_shape! {
    /// A tool and its result.
    static TOOL_RESULT_VALUE "ToolResultValue" {
        /// The tool.
        required "tool" = Kind::NonEmptyText, aliases &["name"],
        /// The result.
        optional "result" = Kind::ExpectedJson,
    }
}

fn read_tool_result(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<Check>> {
    let inner = map.get("value").and_then(|value| value.map(&TOOL_RESULT_VALUE));
    let written = match (&inner, map.has("tool") || map.has("result")) {
        (Some(_), true) => {
            diagnostics
                .report(map.place_of("value"), "`value` replaces `tool` and `result`; use one or the other");
            return None;
        }
        (Some(inner), false) => inner,
        (None, _) => map,
    };
    let Some(name) = written.text("tool") else {
        diagnostics.report(map.place(), "`tool_result` needs the name of a `tool`");
        return None;
    };
    let result = match written.get("result") {
        None => None,
        Some(view) => match ExpectedResult::parse(&view.json()) {
            Ok(expected) => Some((view.json(), expected)),
            Err(words) => {
                diagnostics.report(view.place(), words);
                return None;
            }
        },
    };
    let place =
        written.place_of("result").or_else(|| written.place_of("tool")).unwrap_or_else(|| map.place());
    let server = map.text("server").map(str::to_string);
    let check = ToolResultCheck { name: name.to_string(), server, result };
    Some(vec![Check::new(CheckKind::ToolResult(check), place)])
}
