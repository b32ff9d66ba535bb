//! Parsing of role answers as one JSON value.

use serde_json::Value;

use hotseat_checks::{JsonAnswerError, read_json};

/// Parses the answer of a role. Unescaped line breaks and tabs within strings, a common error of models, are
/// accepted since they are unambiguous. Fails if the answer is not exactly one JSON value.
pub(super) fn read_answer(text: &str) -> Result<Value, JsonAnswerError> {
    read_json(&escape_controls(text))
}

/// True if a text is an answer in the form of an object.
pub(super) fn is_object(text: &str) -> bool {
    matches!(read_answer(text), Ok(Value::Object(_)))
}

/// Escapes line breaks and tabs between quotation marks.
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
    fn accepts_only_unescaped_line_breaks_and_tabs() {
        let (glad, sorry) = (json!({"passed": true, "reason": "r"}), json!({"passed": false, "reason": "r"}));
        for malformed in malformed_answers(&glad, &sorry) {
            let is_read = read_answer(&malformed.text).is_ok();
            assert_eq!(is_read, malformed.kind == MalformedKind::Unescaped, "{}", malformed.text);
        }
    }
}
