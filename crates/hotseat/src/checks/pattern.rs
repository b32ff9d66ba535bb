//! Regular expressions as users write them: searched, not anchored, in time linear in the text.

use std::fmt;

use regex::{Regex, RegexBuilder};

/// A regular expression.
///
/// Written plainly, or as `/expression/flags` with the flags `i` (case does not matter), `m` (`^` and `$` at
/// line ends), `s` (`.` fits line ends), `u` (default), `x` (blanks ignored); `g` and `y` change nothing. As in
/// the languages that have this form, a slash inside must be written `\/`: so `/v1/orders/` is a plain one.
#[derive(Clone)]
pub struct Pattern {
    written: String,
    regex: Regex,
}

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// When it is not one; the words name what is wrong and, for what other dialects have, say so.
    pub fn compile(written: &str) -> Result<Pattern, String> {
        let (expression, flags) = split_flags(written);
        let has = |flag: char| flags.contains(flag);
        let regex = RegexBuilder::new(&expression)
            .case_insensitive(has('i'))
            .multi_line(has('m'))
            .dot_matches_new_line(has('s'))
            .ignore_whitespace(has('x'))
            .build()
            .map_err(|error| explain(&error.to_string()))?;
        Ok(Pattern { written: written.to_string(), regex })
    }

    /// Whether it fits anywhere in a text.
    pub fn fits(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl fmt::Display for Pattern {
    /// The expression between slashes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (expression, flags) = split_flags(&self.written);
        write!(f, "/{expression}/{flags}")
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({self})")
    }
}

/// A text as an expression that fits just that text.
pub fn escape(text: &str) -> String {
    regex::escape(text)
}

/// Takes `/expression/flags` apart; everything else is an expression without flags.
fn split_flags(written: &str) -> (String, &str) {
    let plain = || (written.to_string(), "");
    let Some((body, flags)) = written.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')) else { return plain() };
    let flags_known = flags.chars().all(|flag| "imsuxgy".contains(flag));
    let mut escaped = false;
    let bare_slash = body.chars().any(|c| {
        let bare = c == '/' && !escaped;
        escaped = c == '\\' && !escaped;
        bare
    });
    if body.is_empty() || !flags_known || bare_slash { plain() } else { (body.replace("\\/", "/"), flags) }
}

fn explain(error: &str) -> String {
    // The first lines draw the expression, which the snippet shows already; the last one says what is wrong.
    let reason = error.lines().rfind(|line| !line.trim().is_empty()).unwrap_or(error);
    let reason = reason.trim().trim_start_matches("error: ");
    if reason.contains("look-around") || reason.contains("backreferences") {
        return format!("{reason} (patterns are matched in linear time, which rules them out)");
    }
    reason.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_only_where_the_form_is_unmistakable() {
        for (written, text, fits) in [
            ("approved", "Payment APPROVED", false),
            ("/approved/i", "Payment APPROVED", true),
            ("(?i)approved", "Payment APPROVED", true),
            ("/^b$/m", "a\nb", true),
            ("^b$", "a\nb", false),
            ("/a.b/s", "a\nb", true),
            ("/a/g", "a", true),
            ("/v1/orders/", "GET /v1/orders/7", true),
            ("/v1/orders/", "GET v1/orders", false),
            (r"/v1\/orders/", "GET v1/orders", true),
            ("/tmp", "in /tmp", true),
            ("/", "a/b", true),
            ("//", "a//b", true),
            ("/usr/bin", "/usr/bin/env", true),
        ] {
            assert_eq!(Pattern::compile(written).unwrap().fits(text), fits, "{written} on {text}");
        }
    }

    #[test]
    fn what_does_not_compile_is_explained() {
        for (written, words) in [("(unclosed", "unclosed group"), ("(?=x)", "linear time"), (r"(a)\1", "linear time")] {
            let error = Pattern::compile(written).unwrap_err();
            assert!(error.contains(words), "{written}: {error}");
        }
    }

    #[test]
    fn time_is_linear() {
        let text = "a".repeat(100_000) + "b";
        assert!(!Pattern::compile("(a+)+$").unwrap().fits(&text));
    }
}
