//! Recognises answers in the protocol of another type of target.

/// Advice for JSON of no known protocol.
pub(crate) const OWN_API_ADVICE: &str =
    "if this is the answer of an API of its own, set `type: http`, `endpoint` and `map`";

/// Returns which protocol the beginning of an answer belongs to, and how to set it, if it is a known one.
pub(crate) fn other_protocol_advice(answer: &str) -> Option<&'static str> {
    let has = |part: &str| answer.contains(part);
    if has("\"chat.completion") || (has("\"choices\"") && (has("\"message\"") || has("\"delta\""))) {
        return Some("the agent speaks chat completions: set `type: openai` and `base_url`");
    }
    let is_ag_ui = ["\"RUN_STARTED\"", "\"RUN_ERROR\"", "\"TEXT_MESSAGE_START\""].into_iter().any(has);
    is_ag_ui.then_some("the agent speaks AG-UI: set `type: ag_ui` and `endpoint`")
}
