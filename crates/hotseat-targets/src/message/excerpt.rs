//! Shortens texts for messages.

/// Returns the first characters of a text, with an ellipsis if it is longer.
pub fn excerpt(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
