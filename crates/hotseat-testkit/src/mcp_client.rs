//! A small MCP client for fake agents: one request per connection, without sessions (revision 2026-07-28).

use std::time::Duration;

use serde_json::{Value, json};

use crate::post::{PostAnswer, READ_TIMEOUT, post_within};

/// A client of one server.
#[derive(Debug, Clone)]
pub struct McpClient {
    url: String,
    limit: Duration,
}

impl McpClient {
    /// Creates a client for the address of a server.
    pub fn new(url: &str) -> McpClient {
        McpClient { url: url.to_string(), limit: READ_TIMEOUT }
    }

    /// The same client, which gives a request up if nothing arrives for this time.
    pub fn impatient(&self, limit: Duration) -> McpClient {
        McpClient { url: self.url.clone(), limit }
    }

    /// Calls a tool. Returns the value of its result.
    ///
    /// # Errors
    /// What went wrong, in words: the tool or the server reports an error, or the answer does not arrive.
    pub fn call(&self, tool: &str, arguments: &Value) -> Result<Value, String> {
        self.call_with_meta(tool, arguments, json!({}))
    }

    /// Calls a tool with further members of `_meta`.
    ///
    /// # Errors
    /// As [`McpClient::call`].
    pub fn call_with_meta(&self, tool: &str, arguments: &Value, meta: Value) -> Result<Value, String> {
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let result = self.request("tools/call", params, Some(tool))?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_string();
        if result["isError"] == true {
            return Err(text);
        }
        Ok(match result.get("structuredContent") {
            Some(value) => value.clone(),
            None => Value::String(text),
        })
    }

    /// Returns the names of the tools.
    ///
    /// # Errors
    /// As [`McpClient::call`].
    pub fn tools(&self) -> Result<Vec<String>, String> {
        let result = self.request("tools/list", json!({}), None)?;
        let names = result["tools"].as_array().into_iter().flatten();
        Ok(names.filter_map(|tool| Some(tool["name"].as_str()?.to_string())).collect())
    }

    fn request(&self, method: &str, mut params: Value, name: Option<&str>) -> Result<Value, String> {
        const VERSION: &str = "2026-07-28";
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!(VERSION);
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "fake-agent", "version": "1.0"});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut headers = vec![
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", VERSION),
            ("Mcp-Method", method),
        ];
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        let PostAnswer { status, body, .. } = post_within(self.limit, &self.url, &headers, &body)?;
        // The message is the only object of a body: as JSON, in an event, or in a chunk.
        let message = body.find('{').zip(body.rfind('}'));
        let message =
            message.and_then(|(start, end)| serde_json::from_str::<Value>(body.get(start..=end)?).ok());
        let message = message.ok_or_else(|| format!("status {status} without a message"))?;
        match message.get("error") {
            Some(error) => Err(error["message"].as_str().unwrap_or("an error").to_string()),
            None => Ok(message["result"].clone()),
        }
    }
}
