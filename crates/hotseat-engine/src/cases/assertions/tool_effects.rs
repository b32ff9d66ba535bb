//! Assertions about calls that MCP servers of the test receive: effects, faults, arguments.

use super::block_shape::SERVER;
use super::prelude::*;
use crate::cases::limits::TIMES;
use crate::cases::patterns::refuse_json_path;
use hotseat_checks::{AfterFault, Idempotent, ValidArguments};

assertion_type! {
    /// A tool takes effect at most once for each key, however often the agent calls it. A call whose answer
    /// is lost has taken effect. A call without a visible result may have taken effect; if that decides, the
    /// assertion does not pass, negated or not.
    IDEMPOTENT "Idempotent" "idempotent" {
        /// The tool.
        required "tool" = Kind::NonEmptyText,
        /// Argument that identifies the intended effect, for example `order_id`. Paths select nested values.
        required "key" = Kind::NonEmptyText,
        ..SERVER,
    }
    |map, diagnostics| {
        let check = Idempotent {
            tool: map.text("tool")?.to_string(),
            server: map.text("server").map(str::to_string),
            key: argument_path(map, diagnostics)?,
        };
        check_at(map, "tool", CheckKind::Idempotent(check))
    },
    |written| Some(format!("idempotent {} by {}", written.get("tool")?, written.get("key")?))
}

assertion_type! {
    /// Behaviour of the agent after a fault that the test injected. Fails if no such fault was injected.
    AFTER_FAULT "AfterFault" "after_fault" {
        /// Only faults in calls of this tool.
        optional "tool" = Kind::NonEmptyText,
        ..SERVER,
        /// Maximum number of calls of the same tool with the same arguments after the first fault in it, also at another
        /// server unless `server` is set.
        optional "max_retries" = TIMES,
        /// Path of the argument that makes two calls the same, such as `order_id`. Default: all arguments.
        optional "key" = Kind::NonEmptyText,
        /// Tools that must not be called after the first fault.
        optional "forbid" = Kind::NonEmptyList(&Kind::NonEmptyText),
    }
    read_after_fault
}

assertion_type! {
    /// The arguments of all calls that MCP servers of the test received satisfy the input schemas of their
    /// tools.
    VALID_ARGUMENTS "ValidArguments" "valid_arguments" {
        /// Only calls of this tool.
        optional "tool" = Kind::NonEmptyText,
        ..SERVER,
    }
    |map, _| {
        let text = |key: &str| map.text(key).map(str::to_string);
        let check = ValidArguments { tool: text("tool"), server: text("server") };
        check_at(map, "tool", CheckKind::ValidArguments(check))
    }
}

fn read_after_fault(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<Check>> {
    if !map.has("max_retries") && !map.has("forbid") {
        diagnostics.report(map.place(), "`after_fault` needs `max_retries` or `forbid`");
        return None;
    }
    if map.has("key") && !map.has("max_retries") {
        diagnostics.report(map.key_place("key"), "`key` needs `max_retries`");
        return None;
    }
    let forbidden = map.texts("forbid");
    let check = AfterFault {
        tool: map.text("tool").map(str::to_string),
        server: map.text("server").map(str::to_string),
        max_retries: map.integer("max_retries").and_then(|max| u64::try_from(max).ok()),
        key: argument_path(map, diagnostics),
        forbid: forbidden.map(str::to_string).collect(),
    };
    check_at(map, "tool", CheckKind::AfterFault(check))
}

/// Reads the path of the argument that identifies a call.
fn argument_path(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<String> {
    let view = map.get("key")?;
    refuse_json_path(view.text()?, view.place(), diagnostics);
    view.text().map(str::to_string)
}
