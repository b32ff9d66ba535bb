//! Calls of tools: validation, faults, rounds of input, cancellation.

use std::time::Instant;

use axum::http::StatusCode;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use super::faults::{SelectedFault, break_answer, delay};
use super::outbound::{AnswerDelivery, OutFrame};
use super::requests::RpcRequest;
use crate::answer::{InputRequired, McpAnswer, McpCall, McpToolResult};
use crate::canonical::canonical_text;
use crate::definition::UnmatchedPolicy;
use crate::event::McpEventKind;
use crate::fault::FaultKind;
use crate::frame::{Frame, RpcError};
use crate::revision::error_code;

/// Maximum number of rounds in which one call may ask for input.
const MAX_INPUT_ROUNDS: usize = 32;

/// End of a call.
enum CallEnd {
    /// The server answers.
    Answer(Result<McpToolResult, RpcError>),
    /// The client must provide input and call again.
    InputRequired(InputRequired),
    /// The client cancelled, or the conversation was closed.
    Cancelled,
}

/// Identity of a call that is carried through its rounds.
struct CallIdentity {
    number: u64,
    tool_number: u64,
    state: Option<Value>,
    is_new: bool,
}

/// Runs one request `tools/call` to its end.
pub(super) async fn run(request: RpcRequest) {
    let call = match open_call(&request).await {
        Ok(call) => call,
        Err(error) => {
            request.answer(Err(error)).await;
            return;
        }
    };
    let tools = request.server.tools();
    let Some(tool) = tools.find(&call.tool) else {
        let kind = McpEventKind::UnknownTool { call: call.number, tool: call.tool.clone() };
        request.report(request.arrived, kind).await;
        let message = format!("Unknown tool: {}", call.tool);
        return finish(&request, &call, Err(RpcError::new(error_code::INVALID_PARAMS, message)), None).await;
    };
    let violations = tool.violations(&call.arguments);
    if !violations.is_empty() {
        let text = format!("Invalid arguments for tool {}: {}", call.tool, violations.join("; "));
        let kind = McpEventKind::InvalidArguments { call: call.number, violations };
        request.report(request.arrived, kind).await;
        return finish(&request, &call, Ok(McpToolResult::error(text)), None).await;
    }
    let rules = &request.server.definition.faults;
    let fault = request.server.faults.select(rules, &call.tool, &call.arguments);
    if let Some(fault) = &fault {
        let kind =
            McpEventKind::FaultInjected { call: call.number, rule: fault.rule, fault: fault.kind.clone() };
        request.report(Instant::now(), kind).await;
        if !fault.kind.has_effect() {
            return fail(&request, &call, &fault.kind).await;
        }
    }
    match execute(&request, call.clone(), fault.as_ref()).await {
        (call, CallEnd::Answer(outcome)) => finish(&request, &call, outcome, fault).await,
        (call, CallEnd::InputRequired(input)) => ask_again(&request, &call, input).await,
        (call, CallEnd::Cancelled) => report_cancelled(&request, &call).await,
    }
}

/// Reads and counts the call.
async fn open_call(request: &RpcRequest) -> Result<McpCall, RpcError> {
    let invalid = |message: &str| RpcError::new(error_code::INVALID_PARAMS, message);
    let Some(tool) = request.params.get("name").and_then(Value::as_str) else {
        return Err(invalid("`name` of the tool is missing"));
    };
    let arguments = match request.params.get("arguments") {
        None | Some(Value::Null) => json!({}),
        Some(arguments @ Value::Object(_)) => arguments.clone(),
        Some(_) => return Err(invalid("`arguments` must be an object")),
    };
    let identity = identify(request, tool, &arguments).await?;
    let input_responses =
        request.params.get("inputResponses").and_then(Value::as_object).cloned().unwrap_or_default();
    if identity.is_new {
        let kind = McpEventKind::CallReceived {
            call: identity.number,
            tool: tool.to_string(),
            arguments: arguments.clone(),
            meta: request.meta(),
        };
        request.report(request.arrived, kind).await;
    } else {
        let kind = McpEventKind::InputProvided { call: identity.number, responses: input_responses.clone() };
        request.report(request.arrived, kind).await;
    }
    Ok(McpCall {
        number: identity.number,
        tool_number: identity.tool_number,
        server: request.server.name().to_string(),
        tool: tool.to_string(),
        arguments,
        revision: request.revision,
        meta: request.meta(),
        input_responses,
        input_state: identity.state,
        notifier: request.notifier().0,
    })
}

/// Returns the identity of a new call, or of the call that the client continues with its state.
async fn identify(request: &RpcRequest, tool: &str, arguments: &Value) -> Result<CallIdentity, RpcError> {
    if let Some(text) = request.params.get("requestState") {
        let state = text
            .as_str()
            .and_then(|text| request.run.signer.verify(&purpose(request, tool, arguments), text));
        let Some(state) = state else {
            let message = "`requestState` was changed, or belongs to another request";
            let kind = McpEventKind::ProtocolError {
                code: Some(error_code::INVALID_PARAMS),
                message: message.to_string(),
            };
            request.report(request.arrived, kind).await;
            return Err(RpcError::new(error_code::INVALID_PARAMS, message));
        };
        return Ok(CallIdentity {
            number: state["call"].as_u64().unwrap_or_default(),
            tool_number: state["toolCall"].as_u64().unwrap_or_default(),
            state: state.get("state").cloned(),
            is_new: false,
        });
    }
    let Some(number) = request.conversation.next_call() else {
        let limit = format!("{} calls", request.conversation.limits.max_calls);
        let message = format!("the limit of {limit} of the conversation is reached");
        request.report(request.arrived, McpEventKind::LimitReached { limit }).await;
        return Err(RpcError::new(error_code::LIMIT_REACHED, message));
    };
    let tool_number = request.server.count_call(tool);
    Ok(CallIdentity { number, tool_number, state: None, is_new: true })
}

/// The call that a signed state belongs to.
fn purpose(request: &RpcRequest, tool: &str, arguments: &Value) -> String {
    let hash = digest(&SHA256, canonical_text(arguments).as_bytes());
    let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}/{}/{tool}/{hash}", request.conversation.token, request.server.name())
}

/// Asks the answerer, and sends notifications meanwhile. Clients with a session are asked for input on the stream of
/// their call.
async fn execute(
    request: &RpcRequest,
    mut call: McpCall,
    fault: Option<&SelectedFault>,
) -> (McpCall, CallEnd) {
    let running = request.session.as_ref().map(|session| session.register_running(&request.id));
    let cancelled = async {
        match &running {
            Some(running) => running.wait_cancelled().await,
            // Without a session, the client cancels a request by closing its connection.
            None => request.out.closed().await,
        }
    };
    let (notifier, mut notifications) = request.notifier();
    call.notifier = notifier;
    let mut end = CallEnd::Cancelled;
    {
        let answer = async {
            if let Some(delay) = fault.and_then(|fault| delay(&fault.kind)) {
                tokio::time::sleep(delay).await;
            }
            answer_in_rounds(request, &mut call).await
        };
        let forward = async {
            while let Some(message) = notifications.recv().await {
                // A client that disconnected misses its notifications.
                let _ = request.out.send(OutFrame::Interim(message)).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            answered = answer => end = answered,
            () = forward => {}
            () = cancelled => {}
            () = request.conversation.wait_closed() => {}
        }
    }
    // Notifications that the answerer sent immediately before its answer.
    while let Ok(message) = notifications.try_recv() {
        let _ = request.out.send(OutFrame::Interim(message)).await;
    }
    (call, end)
}

async fn answer_in_rounds(request: &RpcRequest, call: &mut McpCall) -> CallEnd {
    for _ in 0..MAX_INPUT_ROUNDS {
        let input = match request.conversation.answerer.answer(call).await {
            McpAnswer::Result(result) => return CallEnd::Answer(Ok(result)),
            McpAnswer::Error(error) => return CallEnd::Answer(Err(error)),
            McpAnswer::Unmatched { nearest } => {
                return CallEnd::Answer(unmatched(request, call, nearest).await);
            }
            McpAnswer::InputRequired(input) => input,
        };
        if let Some(missing) = missing_capabilities(request, &input) {
            return CallEnd::Answer(Err(missing));
        }
        let kind = McpEventKind::InputRequested { call: call.number, requests: input.requests.clone() };
        request.report(Instant::now(), kind).await;
        if request.session.is_none() {
            return CallEnd::InputRequired(input);
        }
        call.input_responses = ask_client(request, &input).await;
        call.input_state = input.state;
        let responses = call.input_responses.clone();
        let kind = McpEventKind::InputProvided { call: call.number, responses };
        request.report(Instant::now(), kind).await;
    }
    let message = format!("the call asked for input more than {MAX_INPUT_ROUNDS} times");
    CallEnd::Answer(Err(RpcError::new(error_code::INTERNAL_ERROR, message)))
}

/// Reports a call without a fitting answer, and returns the answer for the client.
async fn unmatched(
    request: &RpcRequest,
    call: &McpCall,
    nearest: Option<String>,
) -> Result<McpToolResult, RpcError> {
    let mut text = format!("no answer is defined for this call of {}", call.tool);
    if let Some(nearest) = &nearest {
        text = format!("{text}; nearest: {nearest}");
    }
    let kind = McpEventKind::Unmatched { call: Some(call.number), method: "tools/call".to_string(), nearest };
    request.report(Instant::now(), kind).await;
    match request.server.definition.unmatched {
        UnmatchedPolicy::RpcError => Err(RpcError::new(error_code::INTERNAL_ERROR, text)),
        UnmatchedPolicy::ErrorResult => Ok(McpToolResult::error(text)),
    }
}

/// Returns the error for a client that cannot provide an input.
fn missing_capabilities(request: &RpcRequest, input: &InputRequired) -> Option<RpcError> {
    let needed = input.requests.values().filter_map(|request| match request["method"].as_str()? {
        "elicitation/create" => Some("elicitation"),
        "sampling/createMessage" => Some("sampling"),
        "roots/list" => Some("roots"),
        _ => None,
    });
    let missing: Map<String, Value> = needed
        .filter(|capability| !request.capabilities.contains_key(*capability))
        .map(|capability| (capability.to_string(), json!({})))
        .collect();
    if missing.is_empty() {
        return None;
    }
    let names: Vec<_> = missing.keys().map(String::as_str).collect();
    let message = format!("the client lacks the capability {}", names.join(", "));
    let code = match request.revision.is_stateless() {
        true => error_code::MISSING_CLIENT_CAPABILITY,
        false => error_code::INVALID_REQUEST,
    };
    Some(RpcError::new(code, message).with_data(json!({"requiredCapabilities": missing})))
}

/// Sends the requests for input to a client with a session, and returns its answers by their names.
async fn ask_client(request: &RpcRequest, input: &InputRequired) -> Map<String, Value> {
    let mut responses = Map::new();
    let Some(session) = &request.session else { return responses };
    for (name, question) in &input.requests {
        let Some((id, answer)) = session.register_question() else { continue };
        let method = question["method"].as_str().unwrap_or_default().to_string();
        let params = question.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
        let frame = Frame::Request { id: json!(id), method, params };
        if request.out.send(OutFrame::Interim(frame.to_json())).await.is_err() {
            continue;
        }
        // A client that refuses the request has cancelled it.
        let response = match answer.await {
            Ok(Ok(response)) => response,
            _ => json!({"action": "cancel"}),
        };
        responses.insert(name.clone(), response);
    }
    responses
}

/// Answers with the requests for input; the client calls again with the answers and the state.
async fn ask_again(request: &RpcRequest, call: &McpCall, input: InputRequired) {
    let mut state = json!({"call": call.number, "toolCall": call.tool_number});
    if let Some(inner) = input.state {
        state["state"] = inner;
    }
    let state = request.run.signer.sign(&purpose(request, &call.tool, &call.arguments), &state);
    let result = json!({
        "resultType": "input_required",
        "inputRequests": input.requests,
        "requestState": state,
    });
    request.answer(Ok(result)).await;
}

/// Sends the answer, changed by the fault, and reports it.
async fn finish(
    request: &RpcRequest,
    call: &McpCall,
    outcome: Result<McpToolResult, RpcError>,
    fault: Option<SelectedFault>,
) {
    let duration = request.arrived.elapsed();
    let mut answer = outcome.as_ref().map(|result| result.to_json(request.revision)).map_err(Clone::clone);
    let mut delivery = AnswerDelivery::Plain;
    if let Ok(result) = &mut answer {
        let original = result.clone();
        if let Some(fault) = &fault {
            delivery = break_answer(fault, result);
        }
        request.server.faults.remember(&request.server.definition.faults, &call.tool, &original);
    }
    let is_lost = matches!(delivery, AnswerDelivery::Abort);
    let at = Instant::now();
    let is_sent = request.deliver(answer, delivery).await;
    let delivered = is_sent && !is_lost;
    request.report(at, McpEventKind::CallAnswered { call: call.number, outcome, duration, delivered }).await;
}

/// Lets a call fail before its effect.
async fn fail(request: &RpcRequest, call: &McpCall, kind: &FaultKind) {
    let error = |message: &str| Err(RpcError::new(error_code::INTERNAL_ERROR, message));
    let (outcome, delivery) = match kind {
        FaultKind::Timeout => {
            let limit = tokio::time::sleep(request.conversation.limits.max_open_time);
            tokio::select! {
                () = request.out.closed() => {}
                () = request.conversation.wait_closed() => {}
                () = limit => {}
            }
            return report_cancelled(request, call).await;
        }
        FaultKind::Http(status) => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            (error(&format!("HTTP status {status}")), AnswerDelivery::Status(status))
        }
        FaultKind::RpcError { code, message } => (Err(RpcError::new(*code, message)), AnswerDelivery::Plain),
        FaultKind::IsError { text } => (Ok(McpToolResult::error(text)), AnswerDelivery::Plain),
        _ => (error("the connection was closed"), AnswerDelivery::Abort),
    };
    let answer = outcome.as_ref().map(|result| result.to_json(request.revision)).map_err(Clone::clone);
    let duration = request.arrived.elapsed();
    let delivered = !matches!(delivery, AnswerDelivery::Abort);
    let delivered = request.deliver(answer, delivery).await && delivered;
    let kind = McpEventKind::CallAnswered { call: call.number, outcome, duration, delivered };
    request.report(Instant::now(), kind).await;
}

async fn report_cancelled(request: &RpcRequest, call: &McpCall) {
    let kind = McpEventKind::CallCancelled { call: call.number, duration: request.arrived.elapsed() };
    request.report(Instant::now(), kind).await;
}
