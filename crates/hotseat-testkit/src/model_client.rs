//! A small client of chat completions for fake agents.

use serde_json::{Value, json};

use crate::post::post;

/// Maximum number of attempts at one call.
const MAX_ATTEMPTS: usize = 3;

/// A client of one model.
#[derive(Debug, Clone)]
pub struct ModelClient {
    url: String,
}

impl ModelClient {
    /// Creates a client for a base URL.
    pub fn new(url: &str) -> ModelClient {
        ModelClient { url: url.to_string() }
    }

    /// Calls the model once. Returns the message of its reply.
    ///
    /// # Errors
    /// The status, 0 without an answer, and what went wrong.
    pub fn call(&self, messages: &[Value], tools: &[&str]) -> Result<Value, (u16, String)> {
        let tools: Vec<Value> =
            tools.iter().map(|name| json!({"type": "function", "function": {"name": name}})).collect();
        let body = json!({"model": "gpt-5", "messages": messages, "tools": tools}).to_string();
        let answer = post(&format!("{}/v1/chat/completions", self.url), &[], &body);
        let answer = answer.map_err(|error| (0, error.to_string()))?;
        let reply: Value = serde_json::from_str(&answer.content()).map_err(|error| (0, error.to_string()))?;
        match answer.status {
            200 => Ok(reply["choices"][0]["message"].clone()),
            _ => Err((answer.status, reply["error"]["message"].as_str().unwrap_or_default().to_string())),
        }
    }

    /// Calls the model, and repeats calls that may succeed later.
    ///
    /// # Errors
    /// The last error.
    pub fn call_with_retries(&self, messages: &[Value], tools: &[&str]) -> Result<Value, (u16, String)> {
        let mut result = self.call(messages, tools);
        for _ in 1..MAX_ATTEMPTS {
            match &result {
                Err((0 | 429 | 500.., _)) => result = self.call(messages, tools),
                _ => break,
            }
        }
        result
    }
}
