//! JSON as one line.

use serde_json::Value;

/// Characters other than control characters that some programs take for the end of a line, with their escapes: Node's
/// `readline` the last two, Python's `splitlines` all of them. JSON need not escape them.
const LINE_SEPARATORS: [(char, &str); 3] =
    [('\u{85}', "\\u0085"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];

/// Returns a value as JSON that every program reads as one line. The line feed is not part of it.
pub fn to_line(value: &Value) -> String {
    let mut line = value.to_string();
    for (separator, escape) in LINE_SEPARATORS {
        if line.contains(separator) {
            line = line.replace(separator, escape);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn escapes_line_separators() {
        let value = json!({"\u{2028}": "a\u{85}b\u{2029}\u{84}\u{2027}\n"});
        let line = to_line(&value);
        assert_eq!(line, "{\"\\u2028\":\"a\\u0085b\\u2029\u{84}\u{2027}\\n\"}");
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
    }
}
