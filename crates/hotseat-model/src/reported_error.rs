//! Errors that a server reports within a reply of chat completions.

use serde_json::Value;

/// Returns the error in a member `error`. `null`, `false` and an empty text, object or list are none: some servers send the
/// member with every reply.
pub fn reported_error(member: Option<&Value>) -> Option<&Value> {
    member.filter(|error| match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Array(entries) => !entries.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    })
}

/// Returns the error beside the choices of a reply: in `error`; in `base_resp`, as MiniMax sends it; or in `x_groq`, as Groq
/// sends it.
pub fn completion_error<'a>(
    error: Option<&'a Value>,
    base_resp: Option<&'a Value>,
    x_groq: Option<&'a Value>,
) -> Option<&'a Value> {
    let in_x_groq = || reported_error(x_groq.and_then(|members| members.get("error")));
    reported_error(error).or_else(|| failed_base_response(base_resp)).or_else(in_x_groq)
}

/// Returns a `base_resp`, in which MiniMax reports the status of a reply, if it is not that of success.
fn failed_base_response(member: Option<&Value>) -> Option<&Value> {
    member.filter(|response| is_failure_code(&response["status_code"]))
}

/// Returns true if an object without `choices` reports an error in another form than `error`: its `object` or `type` is `error`
/// (vLLM), it has a `code` with a `message` (DashScope), or only a `detail` (FastAPI).
pub fn is_error_object(chunk: &Value) -> bool {
    let Some(members) = chunk.as_object() else { return false };
    let has_text = |key: &str| chunk[key].as_str().is_some_and(|text| !text.is_empty());
    let detail = &chunk["detail"];
    chunk["object"] == "error"
        || chunk["type"] == "error"
        || (is_failure_code(&chunk["code"]) && has_text("message"))
        || (members.len() == 1 && (has_text("detail") || detail.is_array() || detail.is_object()))
}

/// Returns true unless a code is missing or means success.
fn is_failure_code(code: &Value) -> bool {
    match code {
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
        Value::Number(code) => !matches!(code.as_i64(), Some(0 | 200)),
        Value::String(code) => {
            !matches!(code.to_ascii_lowercase().as_str(), "" | "0" | "200" | "ok" | "success")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn harmless_objects_are_no_errors() {
        for chunk in [
            json!({"object": "chat.completion.chunk", "usage": {"total_tokens": 3}}),
            json!({"choices": [], "object": "", "prompt_filter_results": [{"content_filter_results": {}}]}),
            json!({"choices": [], "code": null, "message": null}),
            json!({"code": 0, "message": "success"}),
            json!({"code": "Success", "message": "done"}),
            json!({"code": "retry", "message": ""}),
            json!({"detail": null}),
            json!({"detail": "p99", "type": "ping"}),
            json!({"type": "ping"}),
            json!({}),
            json!([]),
        ] {
            assert!(!is_error_object(&chunk), "{chunk}");
        }
        for member in [json!(null), json!(false), json!(""), json!({}), json!([])] {
            assert_eq!(reported_error(Some(&member)), None);
        }
        assert_eq!(failed_base_response(Some(&json!({"status_code": 0, "status_msg": ""}))), None);
    }

    #[test]
    fn errors_of_servers_are_found() {
        for chunk in [
            json!({"object": "error", "message": "EngineDeadError", "code": 500}),
            json!({"type": "error", "message": "overloaded"}),
            json!({"code": "InternalError", "message": "inference failed"}),
            json!({"code": 500, "message": "failed"}),
            json!({"detail": "Internal Server Error"}),
            json!({"detail": [{"msg": "field required"}]}),
        ] {
            assert!(is_error_object(&chunk), "{chunk}");
        }
        for member in [json!(true), json!("failed"), json!({"message": ""}), json!(500), json!(["failed"])] {
            assert_eq!(reported_error(Some(&member)), Some(&member));
        }
    }
}
