//! Recognises answers in the protocol of another type of target.

/// Advice for JSON of no known protocol.
pub(crate) const OWN_API_ADVICE: &str =
    "if this is the answer of an API of its own, set `type: http`, `endpoint` and `map`";

/// Advice for AG-UI in place of another protocol.
pub(crate) const AG_UI_ADVICE: &str = "the agent speaks AG-UI: set `type: ag_ui` and `endpoint`";

/// Header of the UI message stream of the AI SDK. Some types of its events differ from those of AG-UI only in their spelling.
pub(crate) const AI_SDK_HEADER: &str = "x-vercel-ai-ui-message-stream";

/// Advice for that stream in place of AG-UI.
pub(crate) const AI_SDK_ADVICE: &str =
    "this is the UI message stream of the AI SDK, not AG-UI: set `type: http`, `stream: sse` and `map`";

/// Returns which protocol the beginning of an answer belongs to, and how to set it, if it is a known one.
pub(crate) fn other_protocol_advice(answer: &str) -> Option<&'static str> {
    let has = |part: &str| answer.contains(part);
    if has("\"chat.completion") || (has("\"choices\"") && (has("\"message\"") || has("\"delta\""))) {
        return Some("the agent speaks chat completions: set `type: openai` and `base_url`");
    }
    let is_ag_ui = ["\"RUN_STARTED\"", "\"RUN_ERROR\"", "\"TEXT_MESSAGE_START\""].into_iter().any(has);
    is_ag_ui.then_some(AG_UI_ADVICE)
}

/// Returns how to set the protocol of a server that refused a request for chat completions because it lacks the ids
/// that each request of AG-UI has.
pub(crate) fn refused_completion_advice(answer: &str) -> Option<&'static str> {
    let lower = answer.to_ascii_lowercase();
    let misses_something = lower.contains("missing") || lower.contains("required");
    (misses_something && names_member(answer, "threadId") && names_member(answer, "runId"))
        .then_some(AG_UI_ADVICE)
}

/// Returns true if a text names a member other than to give its value: errors of other servers may have such ids.
fn names_member(answer: &str, name: &str) -> bool {
    answer.match_indices(name).any(|(start, _)| {
        let rest = answer[start + name.len()..].trim_start_matches(['\\', '"', '\'', '`', ' ']);
        !rest.starts_with([':', '='])
    })
}
