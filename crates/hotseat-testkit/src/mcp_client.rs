//! A small MCP client for fake agents: one request per connection, without sessions (revision 2026-07-28).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than a server of a test may take.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// A client of one server.
#[derive(Debug, Clone)]
pub struct McpClient {
    host: String,
    path: String,
}

impl McpClient {
    /// Creates a client for the address of a server.
    ///
    /// # Panics
    /// If it is not an HTTP address.
    pub fn new(url: &str) -> McpClient {
        let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("not an address: {url}"));
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        McpClient { host: host.to_string(), path: format!("/{path}") }
    }

    /// Calls a tool. Returns the value of its result.
    ///
    /// # Errors
    /// What went wrong, in words: the tool or the server reports an error, or the answer does not arrive.
    pub fn call(&self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments}), Some(tool))?;
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
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "fake-agent", "version": "1.0"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let name = name.map_or_else(String::new, |name| format!("Mcp-Name: {name}\r\n"));
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: {VERSION}\r\nMcp-Method: {method}\r\n{name}Connection: close\r\nContent-Length: {}\r\n\r\n",
            self.path,
            self.host,
            body.len()
        );
        let lost = |error: std::io::Error| format!("no answer: {error}");
        let mut stream = TcpStream::connect(&self.host).map_err(lost)?;
        stream.set_read_timeout(Some(READ_TIMEOUT)).map_err(lost)?;
        stream.write_all(format!("{head}{body}").as_bytes()).map_err(lost)?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).map_err(lost)?;
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").ok_or("no answer: the connection closed")?;
        let status = head.split(' ').nth(1).unwrap_or_default();
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
