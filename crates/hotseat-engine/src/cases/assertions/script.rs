//! `script`: a function of a script decides.

use super::prelude::*;
use crate::cases::limits::{MILLISECONDS, read_timeout};
use hotseat_checks::{ScriptCheck, ScriptInputKind};

assertion_type! {
    /// A function of a script judges: it returns true, false, or an object with `pass` and `message`. If the
    /// function fails or returns anything else, the check errors and has no verdict.
    SCRIPT "Script" "script" {
        /// The function, as `scripts:path.function`, or `scripts:path` for a default export.
        required "use" = Kind::NonEmptyText, aliases &["script"],
        /// The expected value, passed to the function.
        optional "value" = Kind::Json, aliases &["expected"],
        /// Further data passed to the function: `metadata`.
        optional "options" = Kind::JsonMap,
        /// Time limit for the function, including everything it waits for. Default: `timeout_ms` under
        /// `scripts` of the project file, else 10 s.
        optional "timeout_ms" = MILLISECONDS,
        /// The time limit as a duration: `30s`.
        optional "timeout" = Kind::Duration,
    }
    |map, diagnostics| {
        let check = ScriptCheck {
            function: map.text("use")?.into(),
            expected: map.json("value"),
            options: map.members("options"),
            timeout: read_timeout(map, diagnostics),
            input_kind: ScriptInputKind::Answer,
            text: None,
        };
        check_at(map, "use", CheckKind::Script(check))
    }
}
