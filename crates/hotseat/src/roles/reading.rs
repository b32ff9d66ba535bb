//! How answers of helpers are read: as one whole JSON value.

use serde_json::Value;

use crate::checks::read_json;

/// Reads the answer of a helper. Line ends and tabs within texts, which models forget to escape, are taken for escaped:
/// they can mean nothing else.
///
/// # Errors
/// When it is not exactly one JSON value. The reason fits behind "it".
pub(super) fn read_answer(text: &str) -> Result<Value, String> {
    read_json(&escape_controls(text))
}

/// A text in which line ends and tabs between quotation marks are written as escapes.
fn escape_controls(json: &str) -> String {
    let (mut in_text, mut escaped) = (false, false);
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' if in_text => out.push_str("\\n"),
            '\r' if in_text => out.push_str("\\r"),
            '\t' if in_text => out.push_str("\\t"),
            c => out.push(c),
        }
        if c == '"' && !escaped {
            in_text = !in_text;
        }
        escaped = c == '\\' && !escaped;
    }
    out
}

#[cfg(test)]
mod tests {
    use hotseat_testkit::malformed::{MalformedKind, malformed_answers};
    use serde_json::json;

    use super::*;

    #[test]
    fn only_line_ends_and_tabs_may_be_unescaped() {
        let (glad, sorry) = (json!({"passed": true, "reason": "r"}), json!({"passed": false, "reason": "r"}));
        for malformed in malformed_answers(&glad, &sorry) {
            let is_read = read_answer(&malformed.text).is_ok();
            assert_eq!(is_read, malformed.kind == MalformedKind::Unescaped, "{}", malformed.text);
        }
    }
}
