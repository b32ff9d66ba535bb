//! The listener: addresses and bodies of requests.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use hotseat_document::json::{may_have_more_values, read_bytes};
use hotseat_serve::{LoopbackServer, TowerToHyperService, check_access};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::answer_source::AnswerSource;
use super::call::ServedCall;
use super::conversation::{ConversationState, ModelState, RunState, ServedConversation};
use super::exchange::ExchangeRequest;
use super::limits::ServeLimits;
use super::respond::{Answer, error_response, json_response};
use super::served_model::ServedModel;
use super::{Dialect, ServedModelEventKind};
use crate::providers::served::{ReplyHead, RequestProblem, ServedRequest};
use crate::providers::tool_results::name_results;
use crate::{Model, ModelError, ModelErrorKind, ModelReply, ModelRequest, TokenUsage};

/// Maximum number of JSON values in a request: values take far more memory than their text.
const MAX_JSON_VALUES: usize = 1_000_000;

/// The served models of a run: one listener on the loopback interface, with a thread of its own. Dropping it closes
/// all conversations.
pub struct ModelServers {
    run: Arc<RunState>,
    listener: LoopbackServer,
}

impl ModelServers {
    /// Starts the listener on a free port.
    ///
    /// # Errors
    /// If the listener or its thread cannot be started.
    pub fn start(limits: ServeLimits) -> io::Result<ModelServers> {
        let accept_limits = limits.accept;
        let run = Arc::new(RunState::new(limits));
        let routes = TowerToHyperService::new(Router::new().fallback(answer).with_state(run.clone()));
        Ok(ModelServers { run, listener: LoopbackServer::start("models", 0, routes, accept_limits)? })
    }

    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Opens a conversation with these models. Scripts see `id` as the conversation.
    pub fn open_conversation(&self, id: &str, models: BTreeMap<String, ServedModel>) -> ServedConversation {
        ServedConversation::open(self.address(), self.run.clone(), id, models)
    }
}

/// An address below `/models/NAME/CONVERSATION`.
struct ServedPath {
    conversation: Arc<ConversationState>,
    model: Arc<ModelState>,
    /// The path after the conversation.
    path: String,
    /// The same without `v1`.
    rest: String,
}

async fn answer(State(run): State<Arc<RunState>>, request: Request) -> Response {
    let arrived = Instant::now();
    if let Err(error) = check_access(request.headers()) {
        return refusal(Dialect::ChatCompletions, error.status().as_u16(), error.to_string());
    }
    let path = match find_path(&run, request.uri().path()) {
        Ok(path) => path,
        Err(error) => return refusal(Dialect::ChatCompletions, 404, error.to_string()),
    };
    if *path.conversation.closed.borrow() {
        return refusal(Dialect::ChatCompletions, 404, "the conversation has ended".to_owned());
    }
    let AnswerSource::Model(answering) = &path.model.source else {
        return answer_exchange(path, arrived, request).await;
    };
    let counts_tokens = path.rest == "messages/count_tokens";
    let dialect = if counts_tokens { Some(Dialect::Messages) } else { Dialect::from_path(&path.rest) };
    match (dialect, request.method()) {
        (None, &Method::GET) if path.rest == "models" => model_list(answering.name()),
        (Some(dialect), &Method::POST) => {
            let call = (dialect, counts_tokens, answering);
            let answered = answer_call(&path, call, arrived, request).await;
            match answered {
                Ok(response) => response,
                Err((status, problem)) => {
                    let kind = ServedModelEventKind::Refused { message: problem.message.clone() };
                    path.conversation.report(&path.model.name, kind).await;
                    let member = problem.member.clone();
                    let error = ModelError { status: Some(status), ..ModelError::from(problem) };
                    error_response(dialect, &error, member.as_deref())
                }
            }
        }
        (dialect, method) => {
            let message = format!(
                "{method} {} is not served; POST chat/completions, responses, messages and messages/count_tokens, and GET \
                 models are",
                path.rest
            );
            path.conversation
                .report(&path.model.name, ServedModelEventKind::Refused { message: message.clone() })
                .await;
            refusal(dialect.unwrap_or(Dialect::ChatCompletions), 404, message)
        }
    }
}

/// Why nothing is served at a path.
#[derive(Debug, thiserror::Error)]
enum PathError {
    #[error("models are served below /models/NAME/CONVERSATION")]
    NoModel,
    #[error("the address belongs to no conversation, or to one that has ended")]
    NoConversation,
    #[error("unknown model {name:?}; served models: {}", .known.join(", "))]
    UnknownModel { name: String, known: Vec<String> },
}

/// Finds the model and the conversation of a path.
fn find_path(run: &RunState, path: &str) -> Result<ServedPath, PathError> {
    let mut segments = path.split('/').filter(|segment| !segment.is_empty());
    let (Some("models"), Some(name), Some(token)) = (segments.next(), segments.next(), segments.next())
    else {
        return Err(PathError::NoModel);
    };
    let conversation = run.find(token).ok_or(PathError::NoConversation)?;
    let Some(model) = conversation.models.get(name).cloned() else {
        let known = conversation.models.keys().cloned().collect();
        return Err(PathError::UnknownModel { name: name.to_owned(), known });
    };
    let path: Vec<&str> = segments.collect();
    let rest: Vec<&str> = path.iter().copied().skip_while(|segment| *segment == "v1").collect();
    Ok(ServedPath { conversation, model, rest: rest.join("/"), path: path.join("/") })
}

/// Answers a request by a relay or a recording.
async fn answer_exchange(path: ServedPath, arrived: Instant, request: Request) -> Response {
    let dialect = Dialect::from_path(&path.rest).filter(|_| request.method() == Method::POST);
    let (method, headers) = (request.method().clone(), request.headers().clone());
    let query = request.uri().query().map(str::to_owned);
    let prepared = match acquire_permit(&path.conversation) {
        Ok(permit) => read_body(request, &path.conversation.limits).await.map(|body| (permit, body)),
        Err(refused) => Err(refused),
    };
    let ServedPath { conversation, model, path, rest } = path;
    match prepared {
        Ok((permit, body)) => {
            let exchange = ExchangeRequest {
                conversation,
                model,
                method,
                path,
                rest,
                query,
                headers,
                body,
                dialect,
                arrived,
                _permit: permit,
            };
            exchange.answer().await
        }
        Err((status, problem)) => {
            let refused = ServedModelEventKind::Refused { message: problem.message.clone() };
            conversation.report(&model.name, refused).await;
            refusal(dialect.unwrap_or(Dialect::ChatCompletions), status, problem.message)
        }
    }
}

/// Reserves one of the open requests of a conversation.
fn acquire_permit(conversation: &ConversationState) -> Result<OwnedSemaphorePermit, (u16, RequestProblem)> {
    let limit = conversation.limits.max_open_requests;
    let refused = |_| (503, RequestProblem::new(format!("the conversation has {limit} open requests")));
    conversation.open_requests.clone().try_acquire_owned().map_err(refused)
}

/// Reads and answers a call.
async fn answer_call(
    path: &ServedPath,
    (dialect, counts_tokens, answering): (Dialect, bool, &Arc<dyn Model>),
    arrived: Instant,
    request: Request,
) -> Result<Response, (u16, RequestProblem)> {
    let ServedPath { conversation, model, .. } = path;
    let permit = acquire_permit(conversation)?;
    let body = read_body(request, &conversation.limits).await?;
    let refused = |problem| (400, problem);
    let served = read_call(dialect, &body, conversation).map_err(refused)?;
    let ServedRequest { model: requested, stream, include_usage, mut request, .. } = served;
    let input_tokens = TokenUsage::estimate(&request, &ModelReply::default()).input_tokens;
    if counts_tokens {
        return Ok(json_response(StatusCode::OK, &json!({"input_tokens": input_tokens})));
    }
    let number = conversation.number_call(&requested, &mut request);
    let head = ReplyHead {
        id: format!("{}{number}", dialect.id_prefix()),
        created: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        model: requested.clone(),
        include_usage,
        input_tokens,
    };
    let received = ServedModelEventKind::CallReceived {
        call: number,
        dialect,
        requested,
        position: request.position.clone(),
        input_tokens,
        messages: request.messages.len(),
        tools: request.tools.len(),
        results: request.new_results(),
        answered: request.answered_calls(),
    };
    conversation.report(&model.name, received).await;
    let call = ServedCall {
        number,
        reply_id: head.id.clone(),
        dialect,
        request,
        arrived,
        conversation: conversation.clone(),
        model: model.clone(),
        answering: answering.clone(),
    };
    let (sender, pieces) = mpsc::unbounded_channel();
    // The call has its own task, because this one ends when its client disconnects.
    tokio::spawn(call.run(sender));
    let answer = Answer { dialect, head, pieces, _permit: permit };
    Ok(if stream { answer.stream().await } else { answer.complete().await })
}

/// Reads a request with the messages of the response that it continues.
fn read_call(
    dialect: Dialect,
    body: &[u8],
    conversation: &ConversationState,
) -> Result<ServedRequest, RequestProblem> {
    if may_have_more_values(body, MAX_JSON_VALUES) {
        return Err(RequestProblem::new(format!("the body has more than {MAX_JSON_VALUES} JSON values")));
    }
    let mut body = read_bytes(body).map_err(|error| RequestProblem::new(format!("the body {error}")))?;
    if dialect == Dialect::Responses {
        conversation.resolve_items(&mut body)?;
    }
    let mut served = dialect.read_request(&body)?;
    let request: &mut ModelRequest = &mut served.request;
    if let Some(previous) = &served.previous {
        conversation.continue_response(previous, request)?;
    }
    name_results(dialect, &mut request.messages)?;
    Ok(served)
}

async fn read_body(request: Request, limits: &ServeLimits) -> Result<Bytes, (u16, RequestProblem)> {
    let read = hotseat_serve::read_body(request.into_body(), limits.max_body_bytes, limits.body_timeout);
    read.await.map_err(|error| (error.status().as_u16(), RequestProblem::new(error.to_string())))
}

/// Lists the served model.
fn model_list(id: &str) -> Response {
    let entry = json!({
        "id": id,
        "object": "model",
        "type": "model",
        "display_name": id,
        "created": 0,
        "created_at": "1970-01-01T00:00:00Z",
        "owned_by": "hotseat",
    });
    let list = json!({"object": "list", "data": [entry], "has_more": false, "first_id": id, "last_id": id});
    json_response(StatusCode::OK, &list)
}

/// Answers a request that is no call.
fn refusal(dialect: Dialect, status: u16, message: String) -> Response {
    let error = ModelError { status: Some(status), ..ModelError::new(ModelErrorKind::BadRequest, message) };
    error_response(dialect, &error, None)
}
