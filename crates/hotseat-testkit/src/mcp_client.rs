//! A small MCP client for fake agents: one request per connection, in revision 2026-07-28 or with a session of 2025-11-25. It answers
//! questions of servers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::error::TestkitError;
use crate::post::{PostAnswer, READ_TIMEOUT, post_within, request_head};

const STATELESS: &str = "2026-07-28";
const WITH_SESSION: &str = "2025-11-25";

/// A client of one server.
#[derive(Debug, Clone)]
#[must_use]
pub struct McpClient {
    url: String,
    limit: Duration,
    /// Responses to questions, by their messages.
    responses: Vec<(String, Value)>,
    /// Identifier of the session; `None` for stateless requests.
    session: Option<String>,
}

impl McpClient {
    /// Creates a client for the address of a server.
    pub fn new(url: &str) -> McpClient {
        McpClient { url: url.to_string(), limit: READ_TIMEOUT, responses: Vec::new(), session: None }
    }

    /// The same client, which gives a request up if nothing arrives for this time.
    pub fn impatient(&self, limit: Duration) -> McpClient {
        McpClient { limit, ..self.clone() }
    }

    /// The same client, which can ask its user: with these responses to the questions with these messages.
    pub fn responding(&self, responses: &[(&str, Value)]) -> McpClient {
        let responses = responses.iter().map(|(message, response)| (message.to_string(), response.clone()));
        McpClient { responses: responses.collect(), ..self.clone() }
    }

    /// The same client with a session in revision 2025-11-25. Fails if the server opens no session.
    pub fn with_session(&self) -> Result<McpClient, TestkitError> {
        self.with_session_of(WITH_SESSION)
    }

    /// The same client with a session, which asks for this revision. Fails as [`McpClient::with_session`].
    pub fn with_session_of(&self, revision: &str) -> Result<McpClient, TestkitError> {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": self.capabilities(),
            "clientInfo": {"name": "fake-agent", "version": "1.0"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string();
        let accept = [("Accept", "application/json, text/event-stream")];
        let PostAnswer { status, head, body } = post_within(self.limit, &self.url, &accept, &body)?;
        let header = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.to_string())
        };
        match head.lines().find_map(header) {
            Some(session) => Ok(McpClient { session: Some(session), ..self.clone() }),
            None => Err(TestkitError::NoSession { status, body }),
        }
    }

    /// Calls a tool. Returns the value of its result. Fails if the tool or the server reports an error, or
    /// the answer does not arrive.
    pub fn call(&self, tool: &str, arguments: &Value) -> Result<Value, TestkitError> {
        self.call_with_meta(tool, arguments, json!({}))
    }

    /// Calls a tool with further members of `_meta`. Fails as [`McpClient::call`].
    pub fn call_with_meta(&self, tool: &str, arguments: &Value, meta: Value) -> Result<Value, TestkitError> {
        let mut more = Map::from_iter([("_meta".to_string(), meta)]);
        let mut result = self.call_once(tool, arguments, &more)?;
        while result["resultType"] == "input_required" {
            let questions = result["inputRequests"].as_object().cloned().unwrap_or_default();
            let responses = questions.into_iter().map(|(name, question)| {
                let response = self.response(&question);
                (name, response)
            });
            more.insert("inputResponses".to_string(), Value::Object(responses.collect()));
            more.insert("requestState".to_string(), result["requestState"].clone());
            result = self.call_once(tool, arguments, &more)?;
        }
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_string();
        if result["isError"] == true {
            return Err(TestkitError::Reported(text));
        }
        Ok(match result.get("structuredContent") {
            Some(value) => value.clone(),
            None => Value::String(text),
        })
    }

    /// Sends one request `tools/call` with further members of its parameters, and returns the result as it
    /// is: perhaps with questions. Fails as [`McpClient::call`], except for errors of the tool.
    pub fn call_once(
        &self,
        tool: &str,
        arguments: &Value,
        more: &Map<String, Value>,
    ) -> Result<Value, TestkitError> {
        let mut params = json!({"name": tool, "arguments": arguments, "_meta": {}});
        if let Some(members) = params.as_object_mut() {
            members.extend(more.clone());
        }
        self.request("tools/call", params, Some(tool))
    }

    /// Returns the names of the tools. Fails as [`McpClient::call`].
    pub fn tools(&self) -> Result<Vec<String>, TestkitError> {
        let result = self.request("tools/list", json!({"_meta": {}}), None)?;
        let names = result["tools"].as_array().into_iter().flatten();
        Ok(names.filter_map(|tool| Some(tool["name"].as_str()?.to_string())).collect())
    }

    /// Opens the stream on which the server reports changes of its tools. Fails as [`McpClient::call`].
    pub fn listen(&self) -> Result<McpStream, TestkitError> {
        if let Some(session) = &self.session {
            return McpStream::open(self, "GET", &[("Mcp-Session-Id", session)], "");
        }
        let mut params = json!({"notifications": {"toolsListChanged": true}, "_meta": {}});
        self.add_meta(&mut params);
        let body = request_body("subscriptions/listen", &params);
        let headers = [("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "subscriptions/listen")];
        let mut stream = McpStream::open(self, "POST", &headers, &body)?;
        match stream.next_message() {
            Some(message) if message["method"] == "notifications/subscriptions/acknowledged" => Ok(stream),
            other => Err(TestkitError::NotAcknowledged(other)),
        }
    }

    fn capabilities(&self) -> Value {
        if self.responses.is_empty() { json!({}) } else { json!({"elicitation": {}}) }
    }

    /// The response to a question: as its test says, otherwise the user cancels.
    fn response(&self, question: &Value) -> Value {
        let message = question["params"]["message"].as_str().unwrap_or_default();
        let known = self.responses.iter().find(|(known, _)| known == message);
        known.map_or_else(|| json!({"action": "cancel"}), |(_, response)| response.clone())
    }

    fn add_meta(&self, params: &mut Value) {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!(STATELESS);
        meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities();
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "fake-agent", "version": "1.0"});
    }

    /// Sends a request of any method, for the tool or the address `name` if it has one. `params` has the member `_meta`. Fails as
    /// [`McpClient::call`].
    pub fn request(
        &self,
        method: &str,
        mut params: Value,
        name: Option<&str>,
    ) -> Result<Value, TestkitError> {
        if let Some(session) = &self.session {
            return self.request_in_session(session, method, &params);
        }
        self.add_meta(&mut params);
        let mut headers = vec![
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", STATELESS),
            ("Mcp-Method", method),
        ];
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        let body = request_body(method, &params);
        let PostAnswer { status, body, .. } = post_within(self.limit, &self.url, &headers, &body)?;
        // The message is the only object of a body: as JSON, in an event, or in a chunk.
        let message = body.find('{').zip(body.rfind('}'));
        let message =
            message.and_then(|(start, end)| serde_json::from_str::<Value>(body.get(start..=end)?).ok());
        outcome(&message.ok_or(TestkitError::NoMessage(status))?)
    }

    /// Sends a request in a session, and answers the questions on the stream of its answer.
    fn request_in_session(&self, session: &str, method: &str, params: &Value) -> Result<Value, TestkitError> {
        let headers = [("Mcp-Session-Id", session), ("MCP-Protocol-Version", WITH_SESSION)];
        let mut stream = McpStream::open(self, "POST", &headers, &request_body(method, params))?;
        while let Some(message) = stream.next_message() {
            match (message.get("method"), message.get("id")) {
                (Some(_), Some(id)) => {
                    let body = json!({"jsonrpc": "2.0", "id": id, "result": self.response(&message)});
                    post_within(self.limit, &self.url, &headers, &body.to_string())?;
                }
                (Some(_), None) => {}
                (None, _) => return outcome(&message),
            }
        }
        Err(TestkitError::NoAnswer(method.to_string()))
    }
}

fn request_body(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// The result of a response, or its error.
fn outcome(message: &Value) -> Result<Value, TestkitError> {
    match message.get("error") {
        Some(error) => {
            Err(TestkitError::Reported(error["message"].as_str().unwrap_or("an error").to_string()))
        }
        None => Ok(message["result"].clone()),
    }
}

/// The messages of an answer as they arrive.
#[derive(Debug)]
pub struct McpStream(BufReader<TcpStream>);

impl McpStream {
    fn open(
        client: &McpClient,
        method: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<McpStream, TestkitError> {
        let accept = ("Accept", "application/json, text/event-stream");
        let headers: Vec<_> = headers.iter().copied().chain([accept]).collect();
        let (host, head) = request_head(method, &client.url, &headers, body.len());
        let mut stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(client.limit))?;
        stream.write_all(format!("{head}{body}").as_bytes())?;
        let mut stream = McpStream(BufReader::new(stream));
        while !stream.line().ok_or(TestkitError::Closed)?.is_empty() {}
        Ok(stream)
    }

    /// Waits for the next message. Returns `None` at the end, or if nothing arrives.
    pub fn next_message(&mut self) -> Option<Value> {
        loop {
            let line = self.line()?;
            // Other lines are the sizes of chunks, and other fields of events.
            let data = line.strip_prefix("data: ").unwrap_or(&line);
            if data.starts_with('{') {
                return serde_json::from_str(data).ok();
            }
        }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.by_ref().read_line(&mut line) {
            Ok(1..) => Some(line.trim_end().to_string()),
            _ => None,
        }
    }
}
