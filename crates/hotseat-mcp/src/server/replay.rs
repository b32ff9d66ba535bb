//! Answers from recordings.

use std::sync::Mutex;
use std::time::Instant;

use serde_json::Value;

use super::outbound::OutFrame;
use super::rpc_request::{RpcRequest, list};
use crate::definition::ServerKind;
use crate::event::McpEventKind;
use crate::frame::RpcError;
use crate::lock;
use crate::recording::{McpExchange, ReplayTable, UnmatchedRequest};
use crate::revision::error_code;

/// Answers a request that is no call: lists from all recorded pages, everything else by an equal recorded request. A list
/// that was not recorded is not empty, but unknown.
pub(super) async fn answer(request: &RpcRequest, table: &Mutex<ReplayTable>) -> Result<Value, RpcError> {
    let member = match request.method.as_str() {
        "tools/list" => Some("tools"),
        "resources/list" => Some("resources"),
        "resources/templates/list" => Some("resourceTemplates"),
        "prompts/list" => Some("prompts"),
        _ => None,
    };
    if let (Some(member), ServerKind::Replay(source)) = (member, &request.server.definition.kind)
        && source.recording.has_answer(&request.method)
    {
        return list(request, member, &source.recording.entries(&request.method, member));
    }
    let taken = lock(table).take(&request.method, &request.params);
    match taken {
        Ok(exchange) => {
            forward_notifications(request, &exchange).await;
            let tasks = &request.server.tasks;
            for kind in tasks.observe(&request.method, &request.params, &exchange.outcome) {
                request.report(Instant::now(), kind).await;
            }
            exchange.outcome
        }
        Err(UnmatchedRequest { nearest }) => {
            let message = format!("no recorded exchange fits this request; nearest: {nearest}");
            let (method, nearest) = (request.method.clone(), Some(nearest));
            request.report(Instant::now(), McpEventKind::Unmatched { call: None, method, nearest }).await;
            Err(RpcError::new(error_code::INTERNAL_ERROR, message))
        }
    }
}

/// Sends the recorded notifications, with the progress token of this request.
pub(super) async fn forward_notifications(request: &RpcRequest, exchange: &McpExchange) {
    let token = request.meta().get("progressToken").cloned();
    for notification in &exchange.notifications {
        let mut notification = notification.clone();
        if notification["method"] == "notifications/progress" {
            let Some(token) = &token else { continue };
            notification["params"]["progressToken"] = token.clone();
        }
        // A client that disconnected misses its notifications.
        let _ = request.out.send(OutFrame::Interim(notification)).await;
    }
}
