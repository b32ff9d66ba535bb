//! What the test answers when an agent calls a tool that the test offers: from the script of the turn, or by asking
//! the address that the tool names.

use hotseat_trace::{Failure, FailureKind};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};

use super::http::{self, Http, Outgoing, ReadError};
use super::json_text::readable;
use super::{Limits, TurnError, unanswered_call};
use crate::session::{ToolReply, TurnScript};

/// The longest answer of a tool, in bytes.
const LONGEST: usize = 16 * 1024 * 1024;

/// A call of a tool that the test offers.
pub(super) struct ClientCall<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: &'a Value,
}

/// The answer to a call.
///
/// # Errors
/// When no scripted answer fits and nobody else can be asked, or who is asked does not answer.
pub(super) async fn answer(
    call: ClientCall<'_>,
    script: &mut TurnScript,
    http: &Http,
    limits: Limits<'_>,
) -> Result<ToolReply, TurnError> {
    // What a backend of the test sends is not what the agent sends.
    let limits = limits.uncounted();
    let ClientCall { id, name, arguments } = call;
    if let Some(reply) = script.tool_reply(name, arguments) {
        return Ok(reply);
    }
    let Some(url) = script.tool_url(name) else {
        return Err(unanswered_call(name, arguments).into());
    };
    let unanswered = |words: String| {
        let message = format!("client tool {name} could not be asked: {words}");
        TurnError::from(Failure::new(FailureKind::TestError, message))
    };
    let body = json!({"id": id, "name": name, "arguments": arguments});
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let outgoing = Outgoing {
        method: Method::POST,
        url,
        headers,
        body: Some(body.to_string().into_bytes()),
        address_key: "`url` of the tool",
    };
    let mut response = match http.send(outgoing, limits).await {
        Ok(response) => response,
        // A tool that answers with an error has failed, which the agent is told.
        Err(TurnError::Failed(failure)) if failure.kind == FailureKind::AgentError => {
            let body = failure.detail.map_or_else(String::new, |detail| format!(": {detail}"));
            return Ok(ToolReply::Error(failure.message + &body));
        }
        Err(TurnError::Failed(failure)) if failure.kind == FailureKind::Timeout => {
            return Err(unanswered(silent(limits)));
        }
        Err(TurnError::Failed(failure)) => return Err(unanswered(failure.message)),
        Err(error @ (TurnError::Deadline | TurnError::Run(_))) => return Err(error),
    };
    match http::rest_of_body(&mut response, LONGEST, limits).await {
        Ok(body) if body.len() > LONGEST => {
            Err(unanswered(format!("its answer is longer than {LONGEST} bytes")))
        }
        Ok(body) => match String::from_utf8(body) {
            Ok(text) => Ok(ToolReply::Content(answer_of_text(text))),
            Err(_) => Err(unanswered("its answer is not UTF-8".to_string())),
        },
        Err(ReadError::Deadline) => Err(TurnError::Deadline),
        Err(ReadError::Silent) => Err(unanswered(silent(limits))),
        Err(ReadError::Limit(failure)) => Err(failure.into()),
        Err(ReadError::Broken(words)) => Err(unanswered(format!("the connection broke ({words})"))),
    }
}

/// An answer goes on to the agent as it was received, so only what is written again as it was read is read as JSON.
fn answer_of_text(text: String) -> Value {
    match serde_json::from_str(&readable(&text)) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) if readable(&text) == text => value,
        Ok(_) | Err(_) => Value::String(text),
    }
}

fn silent(limits: Limits<'_>) -> String {
    format!("it sent nothing for {} ms (target.idle_timeout_ms)", limits.idle.as_millis())
}
