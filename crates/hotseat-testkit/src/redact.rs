//! Replaces the parts of an output that differ between runs, so that the rest can be compared.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

/// Patterns and their placeholders, applied in this order after the test folder.
pub const REDACTIONS: [(&str, &str); 4] = [
    // Unique ids: 8-4-4-4-12 hexadecimal digits.
    ("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "[ID]"),
    // RFC 3339: 2026-01-31T12:00:00.123Z, 2026-01-31 12:00:00+01:00
    (r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})", "[WHEN]"),
    // Ports that the system chose.
    (r"\b(127\.0\.0\.1|localhost):\d+", "$1:[PORT]"),
    // Durations: 12ms, 1.3s, 2m 3s, 1h 2m 3s
    (r"\b(\d+h ?)?(\d+m ?)?\d+(\.\d+)?(ns|µs|us|ms|s)\b", "[TIME]"),
];

static COMPILED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let compile = |(pattern, placeholder)| (Regex::new(pattern).expect("a redaction compiles"), placeholder);
    REDACTIONS.into_iter().map(compile).collect()
});

/// Replaces `folder` with `[DIR]`, and then everything in [`REDACTIONS`].
pub fn redact(text: &str, folder: &Path) -> String {
    let text = text.replace(&*folder.to_string_lossy(), "[DIR]");
    COMPILED
        .iter()
        .fold(text, |text, (pattern, placeholder)| pattern.replace_all(&text, *placeholder).into_owned())
}

#[cfg(test)]
mod tests {
    use super::redact;
    use std::path::Path;

    fn check(text: &str, expected: &str) {
        assert_eq!(redact(text, Path::new("/var/folder")), expected);
    }

    #[test]
    fn replaces_varying_parts() {
        check("read /var/folder/a/b.yaml", "read [DIR]/a/b.yaml");
        check("http://127.0.0.1:40123/health", "http://127.0.0.1:[PORT]/health");
        check("http://localhost:1/", "http://localhost:[PORT]/");
        check("passed in 12ms", "passed in [TIME]");
        check("(1.3s)", "([TIME])");
        check("took 2m 3s, then 1h 2m 3s.", "took [TIME], then [TIME].");
        check("40µs", "[TIME]");
        check("at 2026-01-31T12:00:00Z", "at [WHEN]");
        check("\"2026-01-31 12:00:00.123456+01:00\"", "\"[WHEN]\"");
        check("run 6f1b0c1e-58a1-4b9e-9d55-0a1b2c3d4e5f-call-1", "run [ID]-call-1");
    }

    #[test]
    fn keeps_stable_parts() {
        for text in [
            "2 passed, 1 failed",
            "line 12:3",
            "amount 42.5",
            "version 0.1.0",
            "10.0.0.1:80",
            "3 items",
            "2026-01-31",
        ] {
            check(text, text);
        }
    }
}
