//! Calls whose server answers with a task, and gives their result later: since revision 2025-11-25 through `tasks/result`, and in the
//! extension of revision 2026-07-28 through `tasks/get`.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

use serde_json::{Map, Value};

use crate::event::McpEventKind;
use crate::frame::RpcError;
use crate::lock;

/// Maximum number of tasks of a server whose results are awaited at the same time.
const MAX_TASKS: usize = 256;

/// A call that a task carries out.
pub(super) struct TaskCall {
    /// Number of the call.
    pub(super) number: u64,
    /// When the call arrived.
    pub(super) arrived: Instant,
}

/// Calls of a proxied or recorded server whose results come later, by the identifiers of their tasks.
#[derive(Default)]
pub(super) struct TaskTable(Mutex<HashMap<String, TaskCall>>);

/// True if requests of this method may show the result of a task.
pub(super) fn shows_result(method: &str) -> bool {
    matches!(method, "tasks/get" | "tasks/result")
}

impl TaskTable {
    /// Remembers a call whose answer is a task. Returns the event to report; `None` for other answers.
    pub(super) fn begin(&self, answer: &Value, call: TaskCall) -> Option<McpEventKind> {
        let is_extension = answer.get("resultType").is_some_and(|kind| kind == "task");
        let task = if is_extension { answer.get("taskId") } else { answer.pointer("/task/taskId") };
        let task = task.and_then(Value::as_str)?;
        let kind = McpEventKind::TaskStarted { call: call.number };
        let mut calls = lock(&self.0);
        if calls.len() < MAX_TASKS {
            calls.insert(task.to_string(), call);
        }
        Some(kind)
    }

    /// Observes a request about a task and its outcome. Returns the events of the answer to the task's call, if this is its result.
    /// An error in place of it is none: the task may go on, or be forgotten.
    pub(super) fn observe(
        &self,
        method: &str,
        params: &Map<String, Value>,
        outcome: &Result<Value, RpcError>,
    ) -> Vec<McpEventKind> {
        let task = params.get("taskId").and_then(Value::as_str);
        let result = outcome.as_ref().ok().and_then(|answer| task_result(method, answer));
        let (Some(task), Some(outcome)) = (task, result) else { return Vec::new() };
        let Some(TaskCall { number, arrived }) = lock(&self.0).remove(task) else { return Vec::new() };
        McpEventKind::of_answer(number, outcome, arrived.elapsed(), true)
    }
}

/// The result of a task, if an answer shows it.
fn task_result(method: &str, answer: &Value) -> Option<Result<Value, RpcError>> {
    match method {
        "tasks/result" => Some(Ok(answer.clone())),
        "tasks/get" => match answer.get("status").and_then(Value::as_str)? {
            "completed" => Some(Ok(answer.get("result")?.clone())),
            "failed" => Some(Err(RpcError::from_json(answer.get("error")?))),
            _ => None,
        },
        _ => None,
    }
}
