//! Token usage in chat completions.

use serde_json::Value;

/// Returns the usage in a chunk of chat completions, or in a whole one: its `usage`; that in `x_groq`, as Groq sends it; or
/// that in its first choice, as Moonshot sends it. `null` is none.
pub fn completion_usage(
    usage: Option<Value>,
    x_groq: Option<&Value>,
    in_choice: Option<&Value>,
) -> Option<Value> {
    let in_x_groq = x_groq.and_then(|members| members.get("usage"));
    let elsewhere = [in_x_groq, in_choice].into_iter().flatten().find(|usage| !usage.is_null());
    usage.filter(|usage| !usage.is_null()).or_else(|| elsewhere.cloned())
}
