//! `script`: a function of a script decides.

use super::prelude::*;
use crate::cases::limits::{MILLISECONDS, read_timeout};
use hotseat_checks::{ScriptCheck, ScriptInputKind};

assertion_type!(
    SCRIPT,
    "Script",
    "script",
    "A function of a script judges: it returns true, false, or an object with `pass` and `message`. If the function fails or returns anything else, the check errors and has no verdict.",
    [
        Field::required(
            "use",
            Kind::NonEmptyText,
            "The function, as `scripts:path.function`, or `scripts:path` for a default export.",
        )
        .aliases(&["script"]),
        Field::optional("value", Kind::Json, "The expected value, passed to the function.")
            .aliases(&["expected"]),
        Field::optional("options", Kind::JsonMap, "Further data passed to the function: `metadata`."),
        Field::optional(
            "timeout_ms",
            MILLISECONDS,
            "Time limit for the function, including everything it waits for. Default: `timeout_ms` under `scripts` of the project file, else 10 s.",
        ),
        Field::optional("timeout", Kind::NonEmptyText, "The time limit as a duration: `30s`."),
    ],
    |map, diagnostics| {
        let options = match map.json("options") {
            Some(Value::Object(options)) => options,
            _ => serde_json::Map::new(),
        };
        let check = ScriptCheck {
            function: map.text("use")?.to_string(),
            expected: map.json("value"),
            options,
            timeout: read_timeout(map, diagnostics),
            input_kind: ScriptInputKind::Answer,
            text: None,
        };
        check_at(map, "use", CheckKind::Script(check))
    }
);
