//! Shortens texts for messages.

use std::borrow::Cow;

/// Returns the first characters of a text, with an ellipsis if it is longer.
pub fn excerpt(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

/// Shortens a text to fit into a sentence.
pub fn shorten(text: &str) -> Cow<'_, str> {
    const MAX_SHOWN_CHARS: usize = 60;
    excerpt(text, MAX_SHOWN_CHARS)
}
