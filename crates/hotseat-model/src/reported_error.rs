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

/// Members that contain the code of an error, and those that contain its text.
const CODE_MEMBERS: [&str; 2] = ["error_code", "errorCode"];
const TEXT_MEMBERS: [&str; 4] = ["error_message", "errorMessage", "error_msg", "error_type"];

/// Returns true if an object without `choices` reports an error in another form than `error`: its `object` or `type` is `error`
/// (vLLM) or such a word, its `status` is, it has a `code` with a `message` (DashScope), only a `detail` (FastAPI), a member
/// such as `error_code` or `error_msg`, a list of `errors`, or `success` is false.
pub fn is_error_object(chunk: &Value) -> bool {
    let Some(members) = chunk.as_object() else { return false };
    let has_text = |key: &str| chunk[key].as_str().is_some_and(|text| !text.is_empty());
    let detail = &chunk["detail"];
    let is_failure_word = |key: &str| {
        let word = chunk[key].as_str().unwrap_or_default().to_ascii_lowercase();
        ["error", "failed", "failure"].iter().any(|end| word.ends_with(end))
    };
    let is_http_error = chunk["http_status_code"].as_i64().is_some_and(|status| status >= 400);
    ["object", "type", "status"].into_iter().any(is_failure_word)
        || CODE_MEMBERS.iter().any(|key| is_failure_code(&chunk[*key]))
        || TEXT_MEMBERS.into_iter().any(has_text)
        || chunk["errors"].as_array().is_some_and(|errors| !errors.is_empty())
        || chunk["success"] == false
        || is_http_error
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
            json!({"error_code": 0, "error_msg": "", "errors": [], "success": true, "status": "ok"}),
            json!({"http_status_code": 200, "message": "fine"}),
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
            json!({"text": "**NETWORK ERROR**", "error_code": 50001}),
            json!({"errorCode": 500, "errorMessage": "no"}),
            json!({"error_msg": "quota"}),
            json!({"error_type": "overloaded", "message": "later"}),
            json!({"success": false, "message": "no"}),
            json!({"errors": [{"message": "no"}]}),
            json!({"message": "no", "type": "server_error"}),
            json!({"status": "error", "message": "no"}),
            json!({"type": "response.failed"}),
            json!({"message": "no", "http_status_code": 422}),
        ] {
            assert!(is_error_object(&chunk), "{chunk}");
        }
        for member in [json!(true), json!("failed"), json!({"message": ""}), json!(500), json!(["failed"])] {
            assert_eq!(reported_error(Some(&member)), Some(&member));
        }
    }
}
