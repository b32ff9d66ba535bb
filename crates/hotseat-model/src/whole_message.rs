//! Whole messages in streams of chat completions.

/// Returns the part of the text of a whole message that was not streamed before it: nothing if the message repeats the
/// streamed text, as MiniMax sends it. Blanks at the ends do not matter. `None` if the message has another text.
pub fn unstreamed_text<'t>(streamed: &str, whole: &'t str) -> Option<&'t str> {
    match whole.strip_prefix(streamed) {
        Some(rest) => Some(rest),
        None => (whole.is_empty() || whole.trim() == streamed.trim()).then_some(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_message_adds_what_was_not_streamed() {
        let table = [
            ("", "Hello.", Some("Hello.")),
            ("Hello.", "Hello.", Some("")),
            ("Hello.\n", "Hello.", Some("")),
            ("Hello.", "", Some("")),
            ("Hello", "Hello, you.", Some(", you.")),
            ("Hello.", "Hell", None),
            ("Hello.", "Bye.", None),
        ];
        for (streamed, whole, rest) in table {
            assert_eq!(unstreamed_text(streamed, whole), rest, "{streamed:?}, {whole:?}");
        }
    }
}
