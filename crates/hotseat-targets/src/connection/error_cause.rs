//! The cause of an error, for messages.

/// Returns the innermost cause of an error.
pub(crate) fn innermost_cause(error: &dyn std::error::Error) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push(error.to_string());
        cause = error.source();
    }
    // The outer layers only repeat that a request failed.
    words.pop().unwrap_or_else(|| error.to_string())
}
