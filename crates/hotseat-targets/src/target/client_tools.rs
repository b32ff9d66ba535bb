//! Answers calls of tools that the test offers: from the script of the turn, by a function, or from the URL of the tool.

use ::http::Method;
use ::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hotseat_http::check_encoding;
use hotseat_trace::{AttemptFailure, FailureKind};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::connection::http::{self, HttpClient, HttpPeer, HttpRequest, ReadError};
use crate::connection::{TurnError, TurnLimits};
use crate::message::json_text::readable;
use crate::message::{ScriptedAnswers, ToolReply};
use crate::target::unanswered_call;

/// Maximum size of a tool's answer in bytes.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// A call of a tool that the test offers.
pub(crate) struct ClientCall<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a Value,
}

/// Returns the answer to a call. Fails if no scripted answer matches and the tool has no URL, or its function
/// or its server does not answer.
pub(crate) async fn answer_call(
    call: ClientCall<'_>,
    script: &mut ScriptedAnswers,
    http: &HttpClient,
    limits: TurnLimits<'_>,
) -> Result<ToolReply, TurnError> {
    let (tool, asked) = (call.name, Instant::now());
    let answer = ask_for_answer(call, script, http, limits).await;
    if let Err(TurnError::Deadline) = answer {
        script.set_late_answer(tool, asked.elapsed());
    }
    answer
}

async fn ask_for_answer(
    call: ClientCall<'_>,
    script: &mut ScriptedAnswers,
    http: &HttpClient,
    limits: TurnLimits<'_>,
) -> Result<ToolReply, TurnError> {
    // Traffic of the test's own server is not counted for the agent.
    let limits = limits.without_traffic();
    let ClientCall { id, name, arguments } = call;
    if let Some(reply) = script.tool_reply(name, arguments) {
        return match tokio::time::timeout_at(limits.deadline, reply.complete()).await {
            Ok(reply) => Ok(reply?),
            Err(_) => Err(TurnError::Deadline),
        };
    }
    let Some(url) = script.tool_url(name) else {
        return Err(unanswered_call(name, arguments, script).into());
    };
    let unanswered = |words: String| {
        let message = format!("client tool {name} could not be asked: {words}");
        TurnError::from(AttemptFailure::new(FailureKind::TestError, message))
    };
    let body = json!({"id": id, "name": name, "arguments": arguments});
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let outgoing = HttpRequest {
        method: Method::POST,
        url,
        headers,
        body: Some(body.to_string().into_bytes()),
        peer: HttpPeer::Tool,
    };
    let mut response = match http.send(outgoing, limits).await {
        Ok(response) => response,
        // An error response is a failed tool call, which is sent to the agent.
        Err(TurnError::Failed(failure)) if failure.kind == FailureKind::AgentError => {
            let body = failure.detail.map_or_else(String::new, |detail| format!(": {detail}"));
            return Ok(ToolReply::Error(failure.message + &body));
        }
        Err(TurnError::Failed(failure)) if failure.kind == FailureKind::Timeout => {
            return Err(unanswered(idle_message(limits)));
        }
        Err(TurnError::Failed(failure)) => return Err(unanswered(failure.message)),
        Err(error @ (TurnError::Deadline | TurnError::Run(_))) => return Err(error),
    };
    check_encoding(response.headers()).map_err(|error| unanswered(format!("its answer {error}")))?;
    match http::rest_of_body(&mut response, MAX_ANSWER_BYTES, limits).await {
        Ok(body) if body.len() > MAX_ANSWER_BYTES => {
            Err(unanswered(format!("its answer is longer than {MAX_ANSWER_BYTES} bytes")))
        }
        Ok(body) => match String::from_utf8(body) {
            Ok(text) => Ok(ToolReply::Content(parse_answer(text))),
            Err(_) => Err(unanswered("its answer is not UTF-8".to_string())),
        },
        Err(ReadError::Deadline) => Err(TurnError::Deadline),
        Err(ReadError::Idle) => Err(unanswered(idle_message(limits))),
        Err(ReadError::Limit(failure)) => Err(failure.into()),
        Err(ReadError::Broken(words)) => Err(unanswered(format!("the connection broke ({words})"))),
    }
}

/// Parses an answer as JSON only if serialising it restores the same value; the agent gets it as received.
fn parse_answer(text: String) -> Value {
    match serde_json::from_str(&readable(&text)) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) if readable(&text) == text => value,
        Ok(_) | Err(_) => Value::String(text),
    }
}

fn idle_message(limits: TurnLimits<'_>) -> String {
    format!("it sent nothing for {} ms (target.idle_timeout_ms)", limits.idle.as_millis())
}
