//! What is a template, and what it can use.

/// Variables of every template. Some have no value in some requests; using them then is an error.
pub(super) const VARIABLES: &[&str] = &[
    "user",
    "system",
    "notice",
    "result",
    "results",
    "messages",
    "tools",
    "conversation",
    "agent",
    "turn",
    "call",
    "attempt",
];

/// True if a text is a template.
pub(super) fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}
