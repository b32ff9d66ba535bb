//! Calls of tools: validation, faults, rounds of input, cancellation.

use std::sync::Mutex;
use std::time::Instant;

use axum::http::StatusCode;
use hotseat_trace::canonical_text;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::faults::{SelectedFault, break_answer, delay};
use super::observer::{MAX_INPUT_ROUNDS, asks_for_input, too_many_rounds};
use super::outbound::{AnswerDelivery, OutFrame};
use super::rpc_request::RpcRequest;
use super::state::{AnswerSource, WaitingCall};
use super::tasks::TaskCall;
use crate::answer::{InputRequired, McpAnswer, McpCall, McpToolResult};
use crate::definition::UnmatchedPolicy;
use crate::event::McpEventKind;
use crate::fault::FaultKind;
use crate::frame::{Frame, RpcError};
use crate::input_rounds::required_capability;
use crate::lock;
use crate::recording::{RecordedQuestion, ReplayTable};
use crate::revision::error_code;

enum CallEnd {
    /// The server answers with this result of `tools/call`.
    Answer(Result<Value, RpcError>),
    /// The client must provide input and call again.
    InputRequired(InputRequired),
    /// The server answered, but the client cancelled before it got the answer.
    Abandoned(Result<Value, RpcError>),
    /// The client cancelled before the server answered, or the conversation was closed.
    Cancelled,
}

/// Identity of a call that is carried through its rounds.
struct CallIdentity {
    number: u64,
    tool_number: u64,
    state: Option<Value>,
    is_new: bool,
    /// Number of the rounds before this one.
    round: u64,
    /// Index of the rule of its fault, for a call that continues.
    fault: Option<usize>,
    /// Set if the client named a state that the server did not give for this call.
    state_error: Option<RpcError>,
}

/// Runs one request `tools/call` to its end.
pub(super) async fn run(mut request: RpcRequest) {
    // Only recordings compare the whole request. Arguments may be megabytes.
    let arguments = request.params.get_mut("arguments").map(|arguments| match &request.server.source {
        AnswerSource::Replay(_) => arguments.clone(),
        _ => arguments.take(),
    });
    let (call, mut round) = match open_call(&request, arguments.unwrap_or_default()).await {
        Ok(opened) => opened,
        Err(error) => {
            request.answer(Err(error)).await;
            return;
        }
    };
    let refused = match &request.server.source {
        _ if round.state_error.is_some() => round.state_error.take().map(Err),
        _ if !call.arguments.is_object() => Some(refuse_malformed(&request, &call).await),
        AnswerSource::Mock => refuse_invalid(&request, &call).await,
        _ => None,
    };
    // The recorded server has decided what it accepts.
    let invalid = match &request.server.source {
        AnswerSource::Replay(_) if refused.is_none() => {
            request.server.validate(call.number, &call.tool, &call.arguments)
        }
        _ => None,
    };
    let is_invalid = matches!(invalid, Some(McpEventKind::InvalidArguments { .. }));
    if let Some(kind) = invalid.filter(|_| round.is_new) {
        request.report(request.arrived, kind).await;
    }
    if let Some(outcome) = refused {
        return finish(&request, &call, outcome, None).await;
    }
    let rules = &request.server.definition.faults;
    let faults = &request.server.faults;
    let fault = match round.is_new {
        _ if is_invalid => None,
        true => faults.select(rules, &call.tool, &call.arguments),
        false => round.fault.and_then(|rule| faults.resume(rules, &call.tool, rule)),
    };
    if let Some(fault) = fault.as_ref().filter(|fault| !fault.kind.has_effect()) {
        request.report(Instant::now(), fault.event(call.number)).await;
        let Some(failed) = fail_before_effect(&request, &fault.kind).await else {
            return report_cancelled(&request, &call).await;
        };
        return report_answer(&request, &call, failed.outcome, failed.delivered).await;
    }
    match execute(&request, call, fault.as_ref()).await {
        (call, CallEnd::Answer(Ok(result))) if asks_for_input(&result) => {
            if round.round >= MAX_INPUT_ROUNDS {
                return finish(&request, &call, Err(too_many_rounds()), None).await;
            }
            let fault = fault.map(|fault| fault.rule);
            let waiting = WaitingCall { number: call.number, rounds: round.round + 1, fault };
            let kind = request.server.wait_for_input(&result, waiting);
            request.report(Instant::now(), kind).await;
            request.answer(Ok(result)).await;
        }
        (call, CallEnd::Answer(outcome)) => finish(&request, &call, outcome, fault).await,
        (call, CallEnd::InputRequired(input)) => {
            ask_again(&request, &call, input, round.round, fault.as_ref()).await
        }
        (call, CallEnd::Abandoned(outcome)) => report_answer(&request, &call, outcome, false).await,
        (call, CallEnd::Cancelled) => report_cancelled(&request, &call).await,
    }
}

/// Reports a call whose arguments are no object, for example a text with JSON, and returns its answer.
async fn refuse_malformed(request: &RpcRequest, call: &McpCall) -> Result<Value, RpcError> {
    let message = "`arguments` must be an object";
    let violations = vec![message.to_string()];
    request.report(request.arrived, McpEventKind::InvalidArguments { call: call.number, violations }).await;
    Err(RpcError::new(error_code::INVALID_PARAMS, message))
}

/// Reports a call of an unknown tool or with invalid arguments, and returns its answer.
async fn refuse_invalid(request: &RpcRequest, call: &McpCall) -> Option<Result<Value, RpcError>> {
    let tools = request.server.tools();
    let Some(tool) = tools.find(&call.tool) else {
        let offered_after = tools.missing_effect(&call.tool).map(str::to_string);
        let kind = McpEventKind::UnknownTool { call: call.number, tool: call.tool.clone(), offered_after };
        request.report(request.arrived, kind).await;
        let message = format!("Unknown tool: {}", call.tool);
        return Some(Err(RpcError::new(error_code::INVALID_PARAMS, message)));
    };
    let kind = tool.validate(call.number, &call.arguments)?;
    let refusal = match &kind {
        McpEventKind::InvalidArguments { violations, .. } => {
            let text = format!("Invalid arguments for tool {}: {}", call.tool, violations.join("; "));
            Some(Ok(McpToolResult::error(text).to_json(request.revision)))
        }
        McpEventKind::UncheckedArguments { problem: Some(problem), .. } => {
            let message = format!("the arguments of a call are not validated: {problem}");
            request.report(request.arrived, McpEventKind::ProtocolError { code: None, message }).await;
            None
        }
        _ => None,
    };
    request.report(request.arrived, kind).await;
    refusal
}

/// Reads and counts the call.
async fn open_call(request: &RpcRequest, arguments: Value) -> Result<(McpCall, CallIdentity), RpcError> {
    let invalid = |message: &str| RpcError::new(error_code::INVALID_PARAMS, message);
    let Some(tool) = request.params.get("name").and_then(Value::as_str) else {
        return Err(invalid("`name` of the tool is missing"));
    };
    let arguments = if arguments.is_null() { json!({}) } else { arguments };
    let mut identity = identify(request, tool, &arguments).await?;
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
    let call = McpCall {
        number: identity.number,
        tool_number: identity.tool_number,
        server: request.server.name().to_string(),
        tool: tool.to_string(),
        arguments,
        revision: request.revision,
        capabilities: request.capabilities.clone(),
        input_responses,
        input_state: identity.state.take(),
        notifier: request.notifier().0,
    };
    Ok((call, identity))
}

/// Returns the identity of a new call, or of the call that the client continues with its state.
async fn identify(request: &RpcRequest, tool: &str, arguments: &Value) -> Result<CallIdentity, RpcError> {
    let (mut repeated, mut state_error) = (None, None);
    let text = request.params.get("requestState");
    if let (AnswerSource::Replay(_), Some(state)) = (&request.server.source, text) {
        // The recorded server has decided which states it accepts.
        let waiting = state.as_str().and_then(|state| lock(&request.server.waiting_calls).remove(state));
        if let Some(WaitingCall { number, rounds, fault }) = waiting {
            return Ok(CallIdentity {
                number,
                tool_number: 0,
                state: None,
                is_new: false,
                round: rounds,
                fault,
                state_error: None,
            });
        }
    } else if let Some(text) = text {
        match verify_state(request, tool, arguments, text).await {
            Ok(state) => {
                let (number, round) =
                    (state["call"].as_u64().unwrap_or_default(), state["round"].as_u64().unwrap_or_default());
                let inner = state.get("state").cloned();
                if request.conversation.continue_call(number, round) {
                    return Ok(CallIdentity {
                        number,
                        tool_number: state["toolCall"].as_u64().unwrap_or_default(),
                        state: inner,
                        is_new: false,
                        round,
                        fault: state["fault"].as_u64().and_then(|rule| usize::try_from(rule).ok()),
                        state_error: None,
                    });
                }
                repeated = inner;
            }
            Err(error) => state_error = Some(error),
        }
    }
    let number = request.conversation.begin_call(&request.server, request.arrived).await?;
    let tool_number = request.server.count_call(tool);
    // A client that repeats its responses makes another call, which may take effect again.
    Ok(CallIdentity {
        number,
        tool_number,
        state: repeated,
        is_new: true,
        round: 0,
        fault: None,
        state_error,
    })
}

/// Returns the content of a state. Fails, with a note, if the server did not give it for this call.
async fn verify_state(
    request: &RpcRequest,
    tool: &str,
    arguments: &Value,
    text: &Value,
) -> Result<Value, RpcError> {
    let purpose = purpose(request, tool, arguments);
    if let Some(state) = text.as_str().and_then(|text| request.run.signer.verify(&purpose, text)) {
        return Ok(state);
    }
    let error = RpcError::new(
        error_code::INVALID_PARAMS,
        "`requestState` was changed, or belongs to another request",
    );
    let kind = McpEventKind::ProtocolError { code: Some(error.code), message: error.message.clone() };
    request.report(request.arrived, kind).await;
    Err(error)
}

/// The call that a signed state belongs to.
fn purpose(request: &RpcRequest, tool: &str, arguments: &Value) -> String {
    let hash = Sha256::digest(canonical_text(arguments));
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}/{}/{tool}/{hash}", request.conversation.token, request.server.name())
}

/// Asks the answerer, and sends notifications meanwhile. Clients with a session are asked for input on the stream of
/// their call. A delay follows the answer, so the call has taken effect also if its client gives up.
async fn execute(
    request: &RpcRequest,
    mut call: McpCall,
    fault: Option<&SelectedFault>,
) -> (McpCall, CallEnd) {
    let cancelled = request.cancellation();
    tokio::pin!(cancelled);
    let (notifier, mut notifications) = request.notifier();
    call.notifier = notifier;
    let mut end = CallEnd::Cancelled;
    {
        let answer = async {
            match &request.server.source {
                AnswerSource::Replay(table) => replay_answer(request, &call, table).await,
                _ => answer_in_rounds(request, &mut call).await,
            }
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
            () = &mut cancelled => {}
            () = request.conversation.wait_closed() => {}
        }
    }
    // Notifications that the answerer sent immediately before its answer.
    while let Ok(message) = notifications.try_recv() {
        let _ = request.out.send(OutFrame::Interim(message)).await;
    }
    if let (CallEnd::Answer(Ok(result)), AnswerSource::Mock) = (&end, &request.server.source) {
        let violations = request.server.tools().find(&call.tool).map(|tool| tool.output_violations(result));
        if let Some(violations) = violations.filter(|violations| !violations.is_empty()) {
            let message = format!(
                "clients may refuse the answer to this call of `{}` because of its `outputSchema`: {}",
                call.tool,
                violations.join("; ")
            );
            request.report(Instant::now(), McpEventKind::ProtocolError { code: None, message }).await;
        }
    }
    if let CallEnd::Answer(Ok(result)) = &end
        && result["isError"] != true
    {
        request.server.take_effect(&call.tool);
    }
    // The fault breaks the answer, not a recorded question before it.
    let fault = fault.filter(|_| !matches!(&end, CallEnd::Answer(Ok(result)) if asks_for_input(result)));
    if let (CallEnd::Answer(_), Some(fault)) = (&end, fault) {
        request.report(Instant::now(), fault.event(call.number)).await;
    }
    if let (CallEnd::Answer(outcome), Some(delay)) = (&end, fault.and_then(|fault| delay(&fault.kind))) {
        let outcome = outcome.clone();
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = &mut cancelled => end = CallEnd::Abandoned(outcome),
            () = request.conversation.wait_closed() => end = CallEnd::Abandoned(outcome),
        }
    }
    (call, end)
}

/// Answers from a recording, with the recorded notifications.
async fn replay_answer(request: &RpcRequest, call: &McpCall, table: &Mutex<ReplayTable>) -> CallEnd {
    let taken = lock(table).take(&request.method, &request.params);
    match taken {
        Ok(exchange) => {
            super::replay::forward_notifications(request, &exchange).await;
            for question in &exchange.questions {
                if let Some(difference) = ask_recorded(request, call, question, table).await {
                    return CallEnd::Answer(unmatched(request, call, Some(difference)).await);
                }
            }
            CallEnd::Answer(exchange.outcome)
        }
        Err(error) => CallEnd::Answer(unmatched(request, call, Some(error.nearest)).await),
    }
}

/// Asks the client what the recorded server asked. Returns how its response differs from the recorded one.
async fn ask_recorded(
    request: &RpcRequest,
    call: &McpCall,
    question: &RecordedQuestion,
    table: &Mutex<ReplayTable>,
) -> Option<String> {
    let RecordedQuestion { method, params, response } = question;
    let asked = json!({"method": method, "params": params});
    let mut input = InputRequired { requests: Map::from_iter([(method.clone(), asked)]), state: None };
    if request.session.is_none() {
        return Some(format!("the recorded server asked a client with a session (`{method}`)"));
    }
    if let Err(missing) = keep_supported(request, &mut input) {
        return Some(format!("the recorded server asked its client (`{method}`): {}", missing.message));
    }
    let kind = McpEventKind::InputRequested { call: call.number, requests: input.requests.clone() };
    request.report(Instant::now(), kind).await;
    let responses = ask_client(request, &input).await;
    let now = responses.get(method).cloned().unwrap_or_default();
    request.report(Instant::now(), McpEventKind::InputProvided { call: call.number, responses }).await;
    let difference = lock(table).response_difference(response, &now)?;
    Some(format!("the client responds otherwise to `{method}`: {difference}"))
}

async fn answer_in_rounds(request: &RpcRequest, call: &mut McpCall) -> CallEnd {
    for _ in 0..MAX_INPUT_ROUNDS {
        let mut input = match request.conversation.answerer.answer(call).await {
            McpAnswer::Result(result) => return CallEnd::Answer(Ok(result.to_json(request.revision))),
            McpAnswer::Error(error) => return CallEnd::Answer(Err(error)),
            McpAnswer::Unmatched { nearest } => {
                return CallEnd::Answer(unmatched(request, call, nearest).await);
            }
            McpAnswer::Failed { message, detail } => {
                let text = format!("the answer to this call of {} failed", call.tool);
                let kind = McpEventKind::AnswerFailed { call: call.number, message, detail };
                request.report(Instant::now(), kind).await;
                return CallEnd::Answer(Err(RpcError::new(error_code::INTERNAL_ERROR, text)));
            }
            McpAnswer::InputRequired(input) => input,
        };
        if let Err(missing) = keep_supported(request, &mut input) {
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
    CallEnd::Answer(Err(too_many_rounds()))
}

/// Reports a call without a fitting answer, and returns the answer for the client.
async fn unmatched(request: &RpcRequest, call: &McpCall, nearest: Option<String>) -> Result<Value, RpcError> {
    let mut text = format!("no answer is defined for this call of {}", call.tool);
    if let Some(nearest) = &nearest {
        text = format!("{text}; nearest: {nearest}");
    }
    let kind = McpEventKind::Unmatched { call: Some(call.number), method: "tools/call".to_string(), nearest };
    request.report(Instant::now(), kind).await;
    match request.server.definition.unmatched {
        UnmatchedPolicy::RpcError => Err(RpcError::new(error_code::INTERNAL_ERROR, text)),
        UnmatchedPolicy::ErrorResult => Ok(McpToolResult::error(text).to_json(request.revision)),
    }
}

/// Removes requests that the client cannot serve. Fails if none remains: the error for a client without these
/// capabilities.
fn keep_supported(request: &RpcRequest, input: &mut InputRequired) -> Result<(), RpcError> {
    let mut missing = Map::new();
    input.requests.retain(|_, question| {
        let Some(capability) = required_capability(question) else { return true };
        let is_supported = request.capabilities.contains_key(capability);
        if !is_supported {
            missing.insert(capability.to_string(), json!({}));
        }
        is_supported
    });
    if missing.is_empty() || !input.requests.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.keys().map(String::as_str).collect();
    let message = format!("the client lacks the capability {}", names.join(", "));
    let code = match request.revision.is_stateless() {
        true => error_code::MISSING_CLIENT_CAPABILITY,
        false => error_code::INVALID_REQUEST,
    };
    Err(RpcError::new(code, message).with_data(json!({"requiredCapabilities": missing})))
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
async fn ask_again(
    request: &RpcRequest,
    call: &McpCall,
    input: InputRequired,
    round: u64,
    fault: Option<&SelectedFault>,
) {
    if round >= MAX_INPUT_ROUNDS {
        return finish(request, call, Err(too_many_rounds()), None).await;
    }
    let mut state = json!({"call": call.number, "toolCall": call.tool_number, "round": round + 1});
    // The fault breaks the answer, not the question.
    if let Some(fault) = fault {
        state["fault"] = json!(fault.rule);
    }
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
    outcome: Result<Value, RpcError>,
    fault: Option<SelectedFault>,
) {
    let delivered = deliver_broken(request, &call.tool, outcome.clone(), fault.as_ref()).await;
    report_answer(request, call, outcome, delivered).await;
}

/// Reports the answer to a call. `delivered` says whether the client gets it.
async fn report_answer(
    request: &RpcRequest,
    call: &McpCall,
    outcome: Result<Value, RpcError>,
    delivered: bool,
) {
    let task = TaskCall { number: call.number, arrived: request.arrived };
    let started = outcome.as_ref().ok().and_then(|answer| request.server.tasks.begin(answer, task));
    if let Some(kind) = started {
        return request.report(Instant::now(), kind).await;
    }
    for kind in McpEventKind::of_answer(call.number, outcome, request.arrived.elapsed(), delivered) {
        request.report(Instant::now(), kind).await;
    }
}

/// Sends the answer, changed by the fault. Returns whether the client gets an answer.
pub(super) async fn deliver_broken(
    request: &RpcRequest,
    tool: &str,
    mut outcome: Result<Value, RpcError>,
    fault: Option<&SelectedFault>,
) -> bool {
    let mut delivery = AnswerDelivery::Plain;
    if let Ok(result) = &mut outcome {
        request.server.faults.remember(&request.server.definition.faults, tool, result);
        if let Some(fault) = fault {
            delivery = break_answer(fault, result);
        }
    }
    request.deliver(outcome, delivery).await
}

/// End of a call that failed before its effect.
pub(super) struct FailedCall {
    /// The answer in place of that of the server.
    pub(super) outcome: Result<Value, RpcError>,
    /// Whether the client gets an answer.
    pub(super) delivered: bool,
}

/// Lets a call fail before its effect. Returns `None` when the client has given up.
pub(super) async fn fail_before_effect(request: &RpcRequest, kind: &FaultKind) -> Option<FailedCall> {
    let error = |message: &str| Err(RpcError::new(error_code::INTERNAL_ERROR, message));
    let (outcome, delivery) = match kind {
        FaultKind::Timeout => {
            let limit = tokio::time::sleep(request.conversation.limits.max_open_time);
            tokio::select! {
                () = request.out.closed() => {}
                () = request.conversation.wait_closed() => {}
                () = limit => {}
            }
            return None;
        }
        FaultKind::Http(status) => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            (error(&format!("HTTP status {status}")), AnswerDelivery::Status(status))
        }
        FaultKind::RpcError { code, message } => (Err(RpcError::new(*code, message)), AnswerDelivery::Plain),
        FaultKind::IsError { text } => {
            (Ok(McpToolResult::error(text).to_json(request.revision)), AnswerDelivery::Plain)
        }
        _ => (error("the connection was closed"), AnswerDelivery::Abort),
    };
    let delivered = request.deliver(outcome.clone(), delivery).await;
    Some(FailedCall { outcome, delivered })
}

async fn report_cancelled(request: &RpcRequest, call: &McpCall) {
    let kind = McpEventKind::CallCancelled { call: call.number, duration: request.arrived.elapsed() };
    request.report(Instant::now(), kind).await;
}
